/* What recorders share: a call's memory and shapes, and a job with what all jobs have. */
#ifndef N2_CUDA_RECORD_H
#define N2_CUDA_RECORD_H

#include "cuda/runtime/queue.h"

#include <string.h>

static inline float *out_of(const n2_call *c) { return (float *)c->out.data; }
static inline const float *in_of(const n2_call *c, int k) { return (const float *)c->in[k].data; }
static inline int64_t n_out(const n2_call *c) { return n2_elements(c->out.shape); }
static inline int64_t n_in(const n2_call *c, int k) { return n2_elements(c->in[k].shape); }
static inline int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
static inline int64_t shares(int64_t n) { return pieces(n, job_share(n)); }

/* A job of a call, with what all have: outputs, the first input, the op, its numbers. */
static inline job job_of(const n2_call *c, job_kind kind) {
    job j;
    memset(&j, 0, sizeof j);
    j.kind = kind;
    j.op = c->node->op->id;
    j.out = out_of(c);
    j.n = n_out(c);
    j.state = c->queue->state;
    c->queue->node = c->node;
    j.add = c->add;
    j.kept = c->kept;
    j.f[0] = c->node->attr->a;
    j.f[1] = c->node->attr->b;
    return j;
}

/* Axes of the output with the operands' steps, innermost first. */
typedef struct axes {
    int rank;
    int64_t length[N2_MAX_RANK], step[2][N2_MAX_RANK];
} axes;

/* Adds an axis, or lengthens the last one if both operands go on as they did. */
static inline void add_axis(axes *l, int64_t length, int64_t a, int64_t b) {
    const int t = l->rank - 1;
    if (length == 1) return;
    const int64_t last = t >= 0 ? l->length[t] : 0;
    if (t >= 0 && a == last * l->step[0][t] && b == last * l->step[1][t]) {
        l->length[t] *= length;
        return;
    }
    l->length[l->rank] = length;
    l->step[0][l->rank] = a;
    l->step[1][l->rank++] = b;
}

/* Elements from one along axis k of `out` to the next, in an operand that broadcasts. */
static inline int64_t operand_step(n2_shape in, n2_shape out, int k) {
    const int j = k - (out.rank - in.rank);
    if (j < 0 || in.dim[j] == 1) return 0;
    int64_t step = 1;
    for (int i = j + 1; i < in.rank; i++) step *= in.dim[i];
    return step;
}

/* As a job has them; at most JOB_AXES. */
static inline job_loops loops_of(const axes *x) {
    job_loops l;
    memset(&l, 0, sizeof l);
    l.rank = x->rank ? x->rank : 1; /* of a single number; the steps are 0 */
    l.length[0] = job_divide_by(1);
    for (int k = 0; k < x->rank; k++) {
        l.length[k] = job_divide_by((uint32_t)x->length[k]);
        for (int i = 0; i < 2; i++) l.step[i][k] = (uint32_t)x->step[i][k];
    }
    return l;
}

static inline bool is_aligned(const float *x) { return (uintptr_t)x % 16 == 0; }

/* Whether the elements of a job can be taken four by four: rows of `width` are so many, and nobody
 * waits for threads that have nothing to do. */
static inline bool can_vec4(const job *j, int64_t width) {
    const bool idle = j->n <= JOB_THREADS || job_share(j->n) < JOB_ELEMENTS;
    return j->n % 4 == 0 && width % 4 == 0 && is_aligned(j->out) && !idle;
}

/* Divisions and steps have 32 bits. */
static inline bool fits(const n2_call *c, int64_t numbers) {
    n2_queue *q = c->queue;
    const int64_t most = (int64_t)UINT32_MAX - (1 << 16); /* kernels count a little beyond */
    if (numbers <= most || q->status != N2CE_OK) return q->status == N2CE_OK;
    q->status =
        n2_fail(q->ctx, N2CE_EDEVICE, "An op reads %lld numbers, more than it can. Use fewer rows.",
                (long long)numbers);
    return false;
}

/* record.cu: out [inner] = or += sums of few long rows. */
void n2_note_sum_slices(const n2_call *c, const float *in, float *out, int64_t rows, int64_t inner);
/* record.cu: out [outer x inner] = or += sums over the middle of in [outer x rows x inner]. */
void n2_note_sum_columns(const n2_call *c, const float *in, float *out, int64_t outer, int64_t rows,
                         int64_t inner);
/* record_matmul.cu */
void n2_note_matmul(const n2_call *c);
/* record_conv.cu: all three ops */
void n2_note_conv(const n2_call *c);
/* record_attention.cu: both ops */
void n2_note_attention(const n2_call *c);
/* record_norm.cu: all three ops */
void n2_note_norm(const n2_call *c);

#endif
