/* Products as they are recorded: which of them become layers, with their weights packed. */
#include "gradient.h"
#include "make.h"

#include <string.h>

/* Whether something noted after job i touches these numbers. */
static bool is_touched_after(const n2_queue *q, size_t i, const float *x, int64_t floats,
                             bool reads) {
    for (size_t k = i + 1; x && k < q->n; k++)
        if (n2_noted_touches(&q->list[k], x, floats, reads)) return true;
    return false;
}
static bool is_written_after(const n2_queue *q, size_t i, const float *x, int64_t floats) {
    return is_touched_after(q, i, x, floats, false);
}

/* A matrix as it lies in memory: rows of `width` numbers, `stride` from one to the next. */
typedef struct matrix {
    const float *at;
    int64_t height, width, stride;
} matrix;

static int64_t floats_of(const matrix *m) { return (m->height - 1) * m->stride + m->width; }

static bool goes_by_vec4(const matrix *m) {
    const bool whole = m->stride == m->width || (m->stride % 4 == 0 && m->width % 4 == 0);
    return whole && m->height * m->width % 4 == 0 && (uintptr_t)m->at % 16 == 0;
}

/* If it is a copy of columns of a wider one, those. */
static matrix original_of(const n2_queue *q, matrix m) {
    for (size_t i = q->n; i-- > 0;) {
        const job *j = &q->list[i].j;
        if (j->kind != JOB_MOVE || j->out != m.at || j->m != m.width ||
            j->n != m.height * m.width || j->loops.step[1][0] != m.width)
            continue;
        const matrix from = {j->in[0], m.height, m.width, j->loops.step[0][0]};
        const bool changed = is_written_after(q, i, m.at, floats_of(&m)) ||
                             is_written_after(q, i, from.at, floats_of(&from));
        return changed ? m : from;
    }
    return m;
}

/* The last job that packs a matrix, if it is still the same; SIZE_MAX: none. */
static size_t find_packed(const n2_queue *q, const matrix *m) {
    for (size_t i = q->n; i-- > 0;) {
        const job *j = &q->list[i].j;
        if (j->kind == JOB_PACK_WEIGHTS && j->in[0] == m->at && j->m == m->height &&
            j->k == m->width && j->loops.step[0][0] == m->stride)
            return is_written_after(q, i, m->at, floats_of(m)) ? SIZE_MAX : i;
    }
    return SIZE_MAX;
}

/* The job that packs a matrix, or could: its index. */
static size_t note_packing(n2_queue *q, const matrix *m) {
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_PACK_WEIGHTS;
    j.in[0] = m->at;
    j.n = packed_floats(q->strict);
    j.strict = q->strict;
    j.vec4 = goes_by_vec4(m);
    j.m = m->height;
    j.k = m->width;
    j.loops.step[0][0] = (uint32_t)m->stride;
    const bool gap = m->stride > m->width;
    j.inner.length[0].by = gap ? (uint32_t)m->width : (uint32_t)MLP_WIDTH;
    j.inner.length[1].by = (uint32_t)floats_of(m);
    j.inner.step[0][0] = gap ? (uint32_t)m->stride : (uint32_t)MLP_WIDTH;
    noted *packed = n2_queue_add(q, &j, MLP_WIDTH / PACK_ROWS);
    if (!packed) return SIZE_MAX;
    n2_note_read(packed, m->at, floats_of(m));
    return q->n - 1;
}

/* The packed form of a product's factor b [n x k], or [k x n] if not `tb`, with its bias, if it has
 * one; noted, if it is not there already. NULL after a failure. */
static const float *pack_weights(n2_queue *q, const float *b, const float *bias, int64_t n,
                                 int64_t k, bool tb) {
    const matrix m = original_of(q, matrix{b, tb ? n : k, tb ? k : n, tb ? k : n});
    const int64_t floats = packed_floats(q->strict);
    size_t i = find_packed(q, &m);
    const job *j = i != SIZE_MAX && !is_written_after(q, i, bias, n) ? &q->list[i].j : NULL;
    const float *there = j ? tb ? j->out : j->more[0] : NULL;
    if (there && j->in[tb ? 1 : 2] == bias && !is_written_after(q, i, there, floats)) return there;
    float *memory = n2_queue_scratch(q, (const char *)m.at + 1 + tb + (bias ? 2 : 0), floats);
    /* the job that makes the other may make this one too, if nobody minds it there as soon */
    if (!j || there || is_touched_after(q, i, memory, floats, true)) i = note_packing(q, &m);
    if (!memory || i == SIZE_MAX) return NULL;
    noted *packed = &q->list[i];
    *(tb ? &packed->j.out : &packed->j.more[0]) = memory;
    packed->j.in[tb ? 1 : 2] = bias;
    n2_note_read(packed, bias, n);
    n2_note_write(packed, memory, floats);
    return memory;
}

/* So narrow that it needs no tensor cores, it needs no packed weights either. */
void n2_fused_mlp_offer(n2_queue *q, job *j) {
    job_product *p = &j->product;
    const bool fits = p->rows && !j->add && p->m > 0 && !(j->gate && j->in[3]);
    const bool outer = p->k <= MLP_NARROW && !p->tb;
    if (!q->fuses_mlps || !fits) return;
    if (j->kind == JOB_NARROW) {
        p->mlp_layer = p->tb && !j->gate && !j->addend;
        return;
    }
    if (!outer) j->in[2] = pack_weights(q, j->in[1], j->in[3], p->n, p->k, p->tb);
    p->mlp_layer = outer || j->in[2];
}

void n2_fused_mlp_note_weights(const n2_queue *q, noted *n, const job *j) {
    n2_note_read(n, j->in[2], packed_floats(q->strict));
}

int64_t n2_fused_mlp_slice_unit(const n2_queue *q, const job_product *p) {
    const bool layer = q->fuses_mlps && p->ta && p->m <= MLP_WIDTH && p->n <= MLP_WIDTH;
    return layer ? (int64_t)GRADIENT_STEP : 0;
}
