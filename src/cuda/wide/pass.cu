#include "pass.h"

#include "cuda/kernels/jobs_elementwise.h"
#include "cuda/kernels/record.h"
#include "eight.h"

/* ---- device code --------------------------------------------------------- */

/* Whether an op has two operands. */
__device__ inline bool is_binary(int op) {
#define COUNT(name) +1
    return op >= N2_OP_add && op < N2_OP_add N2_BINARY_LIST(COUNT);
#undef COUNT
}

/* What a launch gives its threads. */
typedef struct pass_task {
    wide_pass p;
    const void *in[PASS_INPUTS];
    void *out[PASS_OUTPUTS];
} pass_task;

/* Where an operand has the element that goes to element i. */
__device__ inline uint32_t offset_along(const pass_axes &a, uint32_t i) {
    uint32_t at = 0;
#pragma unroll 1
    for (int k = 0; k + 1 < a.rank; k++) {
        const uint32_t rest = job_quotient(a.length[k], i);
        at += (i - rest * a.length[k].by) * a.step[k];
        i = rest;
    }
    return at + i * a.step[a.rank - 1];
}

__device__ inline void load_each(const pass_input &in, const void *at, uint32_t i, uint32_t n,
                                 float x[8]) {
#pragma unroll
    for (uint32_t k = 0; k < 8; k++) {
        const uint32_t e = i + k < n ? i + k : n - 1;
        x[k] = load_one((n2_dtype)in.type, at, in.way == PASS_ALONG ? e : offset_along(in.axes, e));
    }
}

__device__ inline void load_input(const pass_task &t, int k, uint32_t i, float x[8]) {
    const pass_input &in = t.p.input[k];
    const n2_dtype type = (n2_dtype)in.type;
    if (!t.p.whole || in.way == PASS_EACH) {
        load_each(in, t.in[k], i, t.p.n, x);
    } else if (in.way == PASS_ONE) {
        const float one = load_one(type, t.in[k], offset_along(in.axes, i));
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] = one;
    } else {
        load_eight(type, t.in[k], in.way == PASS_ALONG ? i : offset_along(in.axes, i), x);
    }
}

__device__ inline void store_output(const pass_task &t, int k, uint32_t i, const float x[8]) {
    const n2_dtype type = (n2_dtype)t.p.output[k].type;
    if (t.p.whole) return store_eight(type, t.out[k], i, x);
#pragma unroll
    for (uint32_t e = 0; e < 8; e++)
        if (i + e < t.p.n) store_one(type, t.out[k], i + e, x[e]);
}

/* A slot by its number, which is the same for all threads: slots are registers. */
template <int SLOTS>
__device__ inline void read_slot(const float (&slots)[SLOTS][8], int which, float x[8]) {
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
        if (s == which)
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = slots[s][e];
}

template <int SLOTS>
__device__ inline void write_slot(float (&slots)[SLOTS][8], int which, const float x[8]) {
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
        if (s == which)
#pragma unroll
            for (int e = 0; e < 8; e++) slots[s][e] = x[e];
}

/* The eight take turns at one place, so that the code is there once. */
__device__ inline void apply_other(const pass_step &s, bool two, float x[8], const float y[8]) {
    float b[8];
#pragma unroll
    for (int e = 0; e < 8; e++) b[e] = y[e];
#pragma unroll 1
    for (int k = 0; k < 8; k++) {
        const float z = two ? binary(s.op, s.f[0], x[0], b[0]) : unary(s.op, s.f[0], s.f[1], x[0]);
#pragma unroll
        for (int e = 0; e < 7; e++) x[e] = x[e + 1], b[e] = b[e + 1];
        x[7] = z;
    }
}

#define EACH(expression)                                                   \
    do {                                                                   \
        _Pragma("unroll") for (int e = 0; e < 8; e++) x[e] = (expression); \
        return;                                                            \
    } while (0)

/* x becomes what the step makes of x and y; the most frequent ones are instructions of their own.
 */
__device__ inline void apply_step(const pass_step &s, float x[8], const float y[8]) {
    switch (s.op) {
    case N2_OP_add:
        EACH(x[e] + y[e]);
    case N2_OP_sub:
        EACH(x[e] - y[e]);
    case N2_OP_mul:
        EACH(x[e] * y[e]);
    case N2_OP_affine:
        EACH(s.f[0] * x[e] + s.f[1]);
    case N2_OP_lrelu:
        EACH(x[e] > 0.0f ? x[e] : s.f[0] * x[e]);
    case N2_OP_lrelu_grad:
        EACH(x[e] > 0.0f ? y[e] : s.f[0] * y[e]);
    case N2_OP_cast:
    case N2_OP_broadcast:
        return;
    default:
        return apply_other(s, is_binary(s.op), x, y);
    }
}

template <int SLOTS>
__global__ void __launch_bounds__(PASS_THREADS) run_pass(const __grid_constant__ pass_task t) {
    grid_wait();
    grid_next();
    const uint32_t i = (blockIdx.x * PASS_THREADS + threadIdx.x) * 8;
    if (i >= t.p.n) return;
    float slots[SLOTS][8];
#pragma unroll
    for (int k = 0; k < SLOTS && k < PASS_INPUTS; k++)
        if (k < t.p.n_inputs) load_input(t, k, i, slots[k]);
#pragma unroll 1
    for (int s = 0; s < t.p.n_steps; s++) {
        const pass_step &step = t.p.step[s];
        float x[8], y[8];
        read_slot(slots, step.a, x);
        read_slot(slots, step.b, y);
        apply_step(step, x, y);
        write_slot(slots, step.to, x);
    }
#pragma unroll 1
    for (int k = 0; k < t.p.n_outputs; k++) {
        float x[8];
        read_slot(slots, t.p.output[k].slot, x);
        store_output(t, k, i, x);
    }
}

/* ---- launches ------------------------------------------------------------ */

void n2_pass_launch(const n2_queue *, const job *j, cudaStream_t stream, bool early) {
    pass_task t = {};
    t.p = *(const wide_pass *)j->wide.about;
    for (int k = 0; k < PASS_INPUTS; k++) t.in[k] = k < 4 ? j->in[k] : k == 4 ? j->gate : j->addend;
    for (int k = 0; k < PASS_OUTPUTS; k++) t.out[k] = k ? j->more[k - 1] : j->out;
    const unsigned blocks = (unsigned)pieces(t.p.n, 8 * PASS_THREADS);
    if (t.p.n_slots <= 3)
        GPU_LAUNCH(run_pass<3>, blocks, PASS_THREADS, 0, stream, early, t);
    else
        GPU_LAUNCH(run_pass<PASS_SLOTS>, blocks, PASS_THREADS, 0, stream, early, t);
}

/* ---- notes --------------------------------------------------------------- */

/* Pictures of many numbers, and whatever has an operand in 16 bits, which other jobs cannot read.
 */
bool n2_pass_takes(const n2_call *c) {
    bool narrow = c->out.dtype != N2_NUMBER;
    for (int k = 0; k < c->node->n_in; k++) narrow |= c->in[k].dtype != N2_NUMBER;
    const n2_op_id op = c->node->op->id;
    if (op == N2_OP_n2ce_term || op == N2_OP_n2ce_weight) return false;
    const bool always = n2_wide_pays(c->queue, 1);
    return narrow || always || (c->out.shape.rank >= 4 && n2_wide_pays(c->queue, n_out(c)));
}

/* The axes of the output as an operand goes along them. */
static pass_axes axes_of(n2_shape in, n2_shape out) {
    axes all = {};
    for (int k = out.rank - 1; k >= 0; k--) add_axis(&all, out.dim[k], operand_step(in, out, k), 0);
    pass_axes a = {};
    a.rank = all.rank ? all.rank : 1;
    a.length[0] = job_divide_by(1);
    for (int k = 0; k < all.rank; k++) {
        a.length[k] = job_divide_by((uint32_t)all.length[k]);
        a.step[k] = (uint32_t)all.step[0][k];
    }
    return a;
}

static bool is_aligned_16(const void *x) { return (uintptr_t)x % 16 == 0; }

static uint8_t way_of(const n2_view *v, const pass_axes *a) {
    const uint32_t first = a->length[0].by;
    bool eight = is_aligned_16(v->data);
    for (int k = 1; k < a->rank; k++) eight &= a->step[k] % 8 == 0;
    if (a->rank == 1 && a->step[0] == 1) return PASS_ALONG;
    if (a->rank > 1 && first % 8 != 0) return PASS_EACH;
    return a->step[0] == 0 ? PASS_ONE : eight ? PASS_EIGHT : PASS_EACH;
}

static pass_input input_of(const n2_call *c, int k) {
    pass_input in = {};
    in.type = (uint8_t)c->in[k].dtype;
    in.axes = axes_of(c->in[k].shape, c->out.shape);
    in.way = way_of(&c->in[k], &in.axes);
    return in;
}

void n2_note_pass(const n2_call *c) {
    job j = job_of(c, JOB_WIDE);
    const int inputs = c->node->n_in;
    wide_pass p = {};
    if (j.n == 0 || !fits(c, j.n)) return;
    p.n = (uint32_t)j.n;
    p.n_inputs = (uint8_t)inputs;
    p.n_outputs = p.n_steps = 1;
    p.n_slots = (uint8_t)(inputs + 1);
    p.whole = j.n % 8 == 0 && is_aligned_16(j.out);
    p.output[0] = {(uint8_t)c->out.dtype, (uint8_t)inputs};
    for (int k = 0; k < inputs; k++) {
        j.in[k] = in_of(c, k);
        p.input[k] = input_of(c, k);
        p.whole &= p.input[k].way != PASS_ALONG || is_aligned_16(j.in[k]);
    }
    p.step[0] = {0,
                 (uint8_t)(inputs - 1),
                 (uint8_t)inputs,
                 (uint8_t)c->node->op->id,
                 {(float)j.f[0], (float)j.f[1]}};
    noted *n = n2_wide_add(c->queue, &j, WIDE_PASS, &p, sizeof p);
    for (int k = 0; k < inputs; k++) n2_wide_reads(n, &c->in[k]);
    n2_wide_writes(n, &c->out);
}
