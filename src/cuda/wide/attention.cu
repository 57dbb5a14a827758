/* Attention as a wide job: which kernels, and how large their launches are. */
#include "attention_tiles.h"

#include "cuda/kernels/record.h"

#include <math.h>

/* ---- launches ------------------------------------------------------------ */

static const attention_variant *variant_of(const attention_table table, const wide_attention *w) {
    const int units = w->type_x == N2_BF16 ? 0 : w->type_x == N2_F16 ? 1 : w->strict ? 3 : 2;
    int width = 0;
    while (table[units][width].width < w->d) width++;
    return &table[units][width];
}

static void launch(const attention_table table, const wide_attention *w, attention_task a,
                   cudaStream_t stream, bool early) {
    const attention_variant *v = variant_of(table, w);
    const int64_t wanted = pieces(w->t, v->rows), warps = wanted < v->warps ? wanted : v->warps;
    a.blocks = (uint32_t)pieces(wanted, warps);
    const size_t tiles = v->walks == 1 && w->t <= v->tile ? 1 : 2;
    const int64_t blocks = (int64_t)w->n * w->heads * a.blocks * v->parts;
    GPU_LAUNCH(v->run, (unsigned)blocks, (unsigned)(32 * warps),
               tiles * v->tile_bytes + (size_t)warps * v->warp_bytes, stream, early, a);
}

static attention_operand operand_of(const float *at, uint8_t type, const wide_attention *w) {
    const uint32_t run = type == N2_NUMBER ? 4 : 8;
    return {(char *)at, type, (uint8_t)(w->d % run == 0 && w->c % run == 0 && is_aligned(at))};
}

void n2_attention_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early) {
    const wide_attention *w = (const wide_attention *)j->wide.about;
    const float scale = (float)(1 / sqrt((double)w->d));
    attention_task a = {};
    a.qkv = operand_of(j->in[0], w->type_x, w);
    a.dy = operand_of(j->in[1], w->type_dy, w);
    a.out = operand_of(j->out, w->type_out, w);
    a.notes = (float2 *)j->more[0];
    a.t = w->t, a.heads = w->heads, a.d = w->d, a.c = w->c, a.step = w->step;
    a.scale = scale;
    a.base = scale * 1.44269504f;
    if (!w->back) return launch(n2_attention_forward, w, a, stream, early);
    launch(n2_attention_queries, w, a, stream, early);
    launch(n2_attention_keys, w, a, stream, n2_wide_waits(q));
}

static size_t shared_of(const attention_variant *v) {
    return 2 * v->tile_bytes + v->warps * v->warp_bytes;
}

/* Those that this GPU has shared memory for; others are not asked for. */
static cudaError_t prepare(const attention_table table, size_t most) {
    for (int i = 0; i < ATTENTION_UNITS * ATTENTION_WIDTHS; i++) {
        const attention_variant *v = &table[i / ATTENTION_WIDTHS][i % ATTENTION_WIDTHS];
        const size_t bytes = shared_of(v);
        if (bytes > most) continue;
        const cudaError_t error =
            cudaFuncSetAttribute(v->run, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t n2_attention_prepare(int most_shared) {
    const size_t most = (size_t)most_shared;
    cudaError_t error = prepare(n2_attention_forward, most);
    if (error == cudaSuccess) error = prepare(n2_attention_queries, most);
    return error == cudaSuccess ? prepare(n2_attention_keys, most) : error;
}

/* ---- notes --------------------------------------------------------------- */

/* Whether the kernels of a call have the shared memory that they want. */
static bool has_shared(const n2_call *c, int64_t d) {
    const size_t most = n2_wide_shared(c->queue);
    wide_attention w = {};
    w.d = (uint32_t)d;
    w.type_x = (uint8_t)c->in[0].dtype;
    w.strict = c->queue->strict;
    if (c->node->op->id == N2_OP_attention)
        return shared_of(variant_of(n2_attention_forward, &w)) <= most;
    return shared_of(variant_of(n2_attention_queries, &w)) <= most &&
           shared_of(variant_of(n2_attention_keys, &w)) <= most;
}

/* A launch of its own is worth its time if there are many products. */
bool n2_attention_takes(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    return a.d <= ATTENTION_WIDTH && n2_wide_pays(c->queue, n_in(c, 0) * a.t) && has_shared(c, a.d);
}

void n2_note_wide_attention(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    job j = job_of(c, JOB_WIDE);
    if (j.n == 0 || !fits(c, 2 * n_in(c, 0))) return;
    wide_attention w = {};
    w.n = (uint32_t)a.n, w.t = (uint32_t)a.t, w.heads = (uint32_t)a.heads;
    w.d = (uint32_t)a.d, w.c = (uint32_t)a.c, w.step = (uint32_t)a.step;
    w.type_x = (uint8_t)c->in[0].dtype;
    w.type_dy = (uint8_t)c->in[1].dtype;
    w.type_out = (uint8_t)c->out.dtype;
    w.strict = c->queue->strict;
    w.back = c->node->op->id == N2_OP_attention_grad;
    const int64_t notes = 2 * a.n * a.heads * a.t;
    for (int k = 0; k < c->node->n_in; k++) j.in[k] = in_of(c, k);
    if (w.back) j.more[0] = n2_queue_scratch(c->queue, out_of(c), notes);
    noted *n = n2_wide_add(c->queue, &j, WIDE_ATTENTION, &w, sizeof w);
    for (int k = 0; k < c->node->n_in; k++) n2_wide_reads(n, &c->in[k]);
    n2_wide_writes(n, &c->out);
    if (w.back) n2_note_write(n, j.more[0], notes);
}
