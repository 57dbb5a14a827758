#include "pass.h"

#include "cuda/kernels/jobs_elementwise.h"
#include "cuda/kernels/record.h"
#include "eight.h"
#include "pass_linear.h"

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

/* Where element i goes. */
__device__ inline size_t place_of(const pass_output &out, uint32_t i) {
    if (!out.pitched) return i;
    const uint32_t row = job_quotient(out.width, i);
    return (size_t)row * out.pitch + (i - row * out.width.by);
}

__device__ inline void store_output(const pass_task &t, int k, uint32_t i, const float x[8]) {
    const pass_output &out = t.p.output[k];
    const n2_dtype type = (n2_dtype)out.type;
    if (t.p.whole) return store_eight(type, t.out[k], place_of(out, i), x);
#pragma unroll
    for (uint32_t e = 0; e < 8; e++)
        if (i + e < t.p.n) store_one(type, t.out[k], place_of(out, i + e), x[e]);
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
    case N2_OP_slice:
    case N2_OP_concat:
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
    if (n2_pass_launch_linear(j, stream, early)) return;
    pass_task t = {};
    t.p = *(const wide_pass *)j->wide.about;
    for (int k = 0; k < PASS_INPUTS; k++) t.in[k] = n2_pass_input_at(j, k);
    for (int k = 0; k < PASS_OUTPUTS; k++) t.out[k] = n2_pass_output_at(j, k);
    const unsigned blocks = (unsigned)pieces(t.p.n, 8 * PASS_THREADS);
    if (t.p.n_slots <= 3)
        GPU_LAUNCH(run_pass<3>, blocks, PASS_THREADS, 0, stream, early, t);
    else
        GPU_LAUNCH(run_pass<PASS_SLOTS>, blocks, PASS_THREADS, 0, stream, early, t);
}
