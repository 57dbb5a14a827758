#include "norm.h"

#include "cuda/kernels/record.h"
#include "norm_kernels.h"

/* ---- launches ------------------------------------------------------------ */

typedef void norm_kernel(norm_task t);

/* By whether it is a gradient, and by the type of all operands if they are in shared memory; the
 * last two are for operands of different types, and for those that are not there. */
static norm_kernel *const kernels[2][5] = {
    {run_norm_output<true, N2_NUMBER>, run_norm_output<true, N2_BF16>,
     run_norm_output<true, N2_F16>, run_norm_output<true, -1>, run_norm_output<false, -1>},
    {run_norm_gradient<true, N2_NUMBER>, run_norm_gradient<true, N2_BF16>,
     run_norm_gradient<true, N2_F16>, run_norm_gradient<true, -1>, run_norm_gradient<false, -1>}};

static norm_kernel *kernel_of(const wide_norm *v) {
    const bool gradient = !v->has_y;
    const bool same_out = v->type_out == v->type_x || (gradient && !v->has_dx);
    const bool same = same_out && (!gradient || v->type_dy == v->type_x);
    const int type = v->type_x == N2_NUMBER ? 0 : v->type_x == N2_BF16 ? 1 : 2;
    return kernels[gradient][!v->held ? 4 : same ? type : 3];
}

cudaError_t n2_wide_norm_prepare(int most_shared) {
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < 10 && error == cudaSuccess; k++)
        error = cudaFuncSetAttribute(kernels[k / 5][k % 5],
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared);
    return error;
}

void n2_wide_norm_launch(const n2_queue *, const job *j, cudaStream_t stream, bool early) {
    norm_task t = {};
    t.v = *(const wide_norm *)j->wide.about;
    t.x = j->in[0];
    t.dy = j->gate;
    t.addend = j->addend;
    for (int k = 0; k < 3; k++) t.parameter[k] = j->in[k + 1];
    const bool sums_only = !t.v.has_y && !t.v.has_dx;
    t.out = sums_only ? NULL : j->out;
    t.sums = sums_only ? j->out : j->more[0];
    norm_kernel *const kernel = kernel_of(&t.v);
    GPU_LAUNCH_CLUSTERS(kernel, t.v.pictures * t.v.slices * t.v.cluster, t.v.cluster, t.v.threads,
                        norm_shared(t.v), stream, early, t);
}

/* ---- how channels are dealt out ------------------------------------------ */

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Bytes that a picture's channel has in shared memory. */
static int64_t channel_bytes(const wide_norm *v) {
    const size_t dy = v->has_y ? 0 : norm_bytes_of((n2_dtype)v->type_dy);
    return (int64_t)v->positions * (int64_t)(norm_bytes_of((n2_dtype)v->type_x) + dy);
}

/* Whole groups and whole vectors of eight channels, so many that memory is read in runs and threads
 * have something to do. 0: a block cannot have them. */
static uint32_t choose_width(const wide_norm *v) {
    enum { RUN = 32, NUMBERS = 4096, MOST = 8 * NORM_THREADS };
    const int64_t unit = common_multiple(v->each, 8), c = v->c;
    int64_t width = unit;
    if (c % unit || unit > MOST) return 0;
    for (int64_t w = 2 * unit; w <= c && w <= MOST; w += unit)
        if (c % w == 0 && (width < RUN || width * v->positions < NUMBERS)) width = w;
    return (uint32_t)width;
}

/* Blocks of a cluster share the positions: few each, so that several blocks of a multiprocessor can
 * wait for memory, compute and write at the same time. */
static void choose_cluster(const n2_queue *q, wide_norm *v) {
    enum { TILE = 66 << 10, MOST = 8 };
    const int64_t all = channel_bytes(v) * v->width;
    v->cluster = 1;
    while (n2_wide_waits(q) && v->cluster < MOST && all > v->cluster * TILE) v->cluster *= 2;
    v->share = (v->positions + v->cluster - 1) / v->cluster;
}

static bool is_power_of_two(uint32_t x) { return (x & (x - 1)) == 0; }

/* Threads have eight vectors or more each, if there are so many. */
static void choose_threads(wide_norm *v) {
    const uint32_t columns = v->width / 8;
    const uint64_t vectors = (uint64_t)columns * v->share;
    v->threads = 64;
    while (v->threads < NORM_THREADS && (v->threads < columns || vectors >= 16 * v->threads))
        v->threads *= 2;
    if (columns % 3 == 0 && 192 % columns == 0) v->threads = 192;
    v->by_warps = is_power_of_two(columns) && columns < 32;
    v->rows = v->by_warps ? v->threads / 32 : v->threads / columns;
}

/* ---- notes --------------------------------------------------------------- */

static bool is_aligned_16(const void *x) { return (uintptr_t)x % 16 == 0; }

/* False: a block cannot do it. */
static bool describe(const n2_call *c, wide_norm *v) {
    const n2_normed shape = n2_normed_of(c);
    const n2_norm a = c->node->attr->norm;
    const n2_op_id op = c->node->op->id;
    *v = wide_norm{};
    v->pictures = (uint32_t)shape.n, v->positions = (uint32_t)shape.positions;
    v->c = (uint32_t)shape.c, v->each = (uint32_t)shape.each;
    v->eps = (float)a.eps, v->slope = (float)a.slope, v->act = (uint8_t)a.act;
    v->has_y = op == N2_OP_norm, v->has_dx = op == N2_OP_norm_input;
    v->has_sums = op == N2_OP_norm_sums;
    v->type_x = (uint8_t)c->in[0].dtype, v->type_out = (uint8_t)c->out.dtype;
    if (op != N2_OP_norm) v->type_dy = (uint8_t)c->in[4].dtype;
    for (int k = 1; k < 4; k++) v->step[k - 1] = (uint32_t)n2_norm_step(c, k);
    v->width = choose_width(v);
    if (v->width == 0) return false;
    v->slices = v->c / v->width;
    choose_cluster(c->queue, v);
    choose_threads(v);
    v->held = 1;
    v->held = norm_shared(*v) <= n2_wide_shared(c->queue);
    return is_aligned_16(c->in[0].data) && is_aligned_16(c->out.data) &&
           (op == N2_OP_norm || is_aligned_16(c->in[4].data));
}

bool n2_wide_norm_takes(const n2_call *c) {
    enum { MANY_GROUPS = 2048 }; /* a plain job has a block for each, which costs some 10 ns */
    wide_norm v;
    const int64_t n = n_in(c, 0), most = INT32_MAX;
    bool narrow = c->out.dtype != N2_NUMBER;
    for (int k = 0; k < c->node->n_in; k++)
        narrow |= c->node->in[k].id && c->in[k].dtype != N2_NUMBER;
    const n2_normed s = n2_normed_of(c);
    if (n == 0 || s.positions > most || s.c > most || s.n * s.c > most) return false;
    const bool many = s.n * (s.c / s.each) >= MANY_GROUPS;
    return (narrow || many || n2_wide_pays(c->queue, n)) && describe(c, &v);
}

/* The other gradient of the same norm, if it was noted shortly before and nothing that was noted
 * since stands in between: then both are one job. */
static noted *other_gradient(const n2_call *c, const wide_norm *v, const job *j) {
    enum { SHORTLY = 64 };
    n2_queue *q = c->queue;
    const int64_t floats = n2_floats_of(c->out.dtype, n_out(c));
    for (size_t i = q->n; i-- > 0 && q->n - i < SHORTLY;) {
        noted *at = &q->list[i];
        const wide_norm *w = (const wide_norm *)at->j.wide.about;
        if (at->j.kind == JOB_WIDE && at->j.wide.kernel == WIDE_NORM && at->j.n_blocks > 0 &&
            at->j.in[0] == j->in[0] && at->j.gate == j->gate && !w->has_y) {
            bool same = w->has_dx != v->has_dx && w->has_sums != v->has_sums && w->act == v->act &&
                        w->each == v->each && w->eps == v->eps && w->slope == v->slope;
            for (int k = 1; k < 4; k++) same &= at->j.in[k] == j->in[k];
            return same && !n2_noted_touches(at, j->out, floats, true) ? at : NULL;
        }
        if (n2_noted_touches(at, j->out, floats, true)) return NULL;
        for (int k = 0; k < 5; k++) {
            const n2_view *in = &c->in[k];
            if (c->node->in[k].id &&
                n2_noted_touches(at, (const float *)in->data,
                                 n2_floats_of(in->dtype, n2_elements(in->shape)), false))
                return NULL;
        }
    }
    return NULL;
}

static void join(noted *other, const n2_call *c, const job *j) {
    wide_norm *w = (wide_norm *)other->j.wide.about;
    if (w->has_sums) { /* which are out until now */
        other->j.more[0] = other->j.out;
        other->j.out = j->out;
        w->type_out = (uint8_t)c->out.dtype;
    } else {
        other->j.more[0] = j->out;
    }
    w->has_dx = w->has_sums = 1;
    other->kept |= c->kept;
    other->j.kept |= c->kept;
    n2_wide_writes(other, &c->out);
}

void n2_note_wide_norm(const n2_call *c) {
    wide_norm v;
    job j = job_of(c, JOB_WIDE);
    if (!describe(c, &v)) return;
    for (int k = 0; k < 4; k++) j.in[k] = c->node->in[k].id ? in_of(c, k) : NULL;
    if (!v.has_y) j.gate = in_of(c, 4);
    noted *other = v.has_y ? NULL : other_gradient(c, &v, &j);
    if (other) {
        join(other, c, &j);
        return;
    }
    noted *n = n2_wide_add(c->queue, &j, WIDE_NORM, &v, sizeof v);
    for (int k = 0; k < c->node->n_in; k++)
        if (c->node->in[k].id) n2_wide_reads(n, &c->in[k]);
    n2_wide_writes(n, &c->out);
}
