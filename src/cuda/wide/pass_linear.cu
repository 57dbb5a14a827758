#include "pass_linear.h"

#include "cuda/kernels/jobs_elementwise.h"
#include "eight.h"

#include <string.h>

/* ---- device code --------------------------------------------------------- */

/* How an operand lies: in float or not, beside the output or along axes. */
typedef struct linear_operand {
    const void *at;
    float factor;
    uint8_t floats, way;
    pass_axes axes;
} linear_operand;

typedef struct linear_task {
    uint32_t n;
    float constant, slope;
    int32_t op, gate; /* of what is done with the sum; -1: nothing, none */
    linear_operand in[PASS_INPUTS];
    void *out;
    uint8_t out_floats, pitched;
    job_divisor width;
    uint32_t pitch;
} linear_task;

__device__ inline uint32_t place_along(const linear_operand &in, uint32_t i) {
    if (in.way == PASS_ALONG) return i;
    const pass_axes &a = in.axes;
    uint32_t at = 0;
#pragma unroll 1
    for (int k = 0; k + 1 < a.rank; k++) {
        const uint32_t rest = job_quotient(a.length[k], i);
        at += (i - rest * a.length[k].by) * a.step[k];
        i = rest;
    }
    return at + i * a.step[a.rank - 1];
}

/* Eight numbers as they come: in 16 bits the second half is nothing. */
struct eight_words {
    uint4 low, high;
};

template <n2_dtype T> __device__ inline eight_words fetch(const linear_operand &in, uint32_t i) {
    eight_words w = {};
    const uint32_t at = place_along(in, i);
    if (in.way == PASS_ONE) {
        w.low.x = __float_as_uint(load_one(in.floats ? N2_NUMBER : T, in.at, at));
    } else if (in.floats) {
        const uint4 *from = (const uint4 *)((const float *)in.at + at);
        w.low = from[0];
        w.high = from[1];
    } else {
        w.low = *(const uint4 *)((const uint16_t *)in.at + at);
    }
    return w;
}

template <n2_dtype T>
__device__ inline void decode(const linear_operand &in, const eight_words &w, float x[8]) {
    const uint32_t low[4] = {w.low.x, w.low.y, w.low.z, w.low.w};
    const uint32_t high[4] = {w.high.x, w.high.y, w.high.z, w.high.w};
    if (in.way == PASS_ONE) {
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] = __uint_as_float(low[0]);
    } else if (in.floats) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            x[e] = __uint_as_float(low[e]);
            x[e + 4] = __uint_as_float(high[e]);
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float2 two = unpack_narrow(T, low[e]);
            x[2 * e] = two.x;
            x[2 * e + 1] = two.y;
        }
    }
}

/* What is done with the sum. The eight take turns at functions that are more than an instruction.
 */
__device__ inline void act(const linear_task &t, float x[8], const float gate[8]) {
    if (t.op == N2_OP_lrelu || t.op == N2_OP_lrelu_grad) {
#pragma unroll
        for (int e = 0; e < 8; e++)
            x[e] = (t.gate < 0 ? x[e] : gate[e]) > 0.0f ? x[e] : t.slope * x[e];
    } else if (t.op == N2_OP_silu) {
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] *= sigmoid(x[e]);
    } else if (t.op >= 0) {
#pragma unroll 1
        for (int k = 0; k < 8; k++) {
            const float y = unary(t.op, t.slope, 0.0f, x[0]);
#pragma unroll
            for (int e = 0; e < 7; e++) x[e] = x[e + 1];
            x[7] = y;
        }
    }
}

/* Threads have `TIMES` times eight elements; all that they read is on its way before the first is
 * used. */
enum { TIMES = 2 };
template <int INPUTS, n2_dtype T>
__global__ void __launch_bounds__(PASS_THREADS) run_linear(const __grid_constant__ linear_task t) {
    grid_wait();
    grid_next();
    const uint32_t first = (blockIdx.x * TIMES * PASS_THREADS + threadIdx.x) * 8;
    eight_words words[TIMES][INPUTS];
#pragma unroll
    for (int v = 0; v < TIMES; v++) {
        const uint32_t i = first + (uint32_t)v * PASS_THREADS * 8;
#pragma unroll
        for (int k = 0; k < INPUTS; k++)
            if (i < t.n) words[v][k] = fetch<T>(t.in[k], i);
    }
#pragma unroll
    for (int v = 0; v < TIMES; v++) {
        const uint32_t i = first + (uint32_t)v * PASS_THREADS * 8;
        if (i >= t.n) return;
        float sum[8], gate[8] = {}, x[8];
#pragma unroll
        for (int e = 0; e < 8; e++) sum[e] = t.constant;
#pragma unroll
        for (int k = 0; k < INPUTS; k++) {
            decode<T>(t.in[k], words[v][k], x);
            const bool gates = k == t.gate;
#pragma unroll
            for (int e = 0; e < 8; e++) {
                if (gates) gate[e] = x[e];
                sum[e] += gates ? 0.0f : t.in[k].factor * x[e];
            }
        }
        act(t, sum, gate);
        const uint32_t row = t.pitched ? job_quotient(t.width, i) : 0;
        const size_t at = t.pitched ? (size_t)row * t.pitch + (i - row * t.width.by) : i;
        store_eight(t.out_floats ? N2_NUMBER : T, t.out, at, sum);
    }
}

/* ---- the form ------------------------------------------------------------ */

static linear_form scaled(const linear_form *x, float a, float b) {
    linear_form y = {};
    y.constant = a * x->constant + b;
    for (int k = 0; k < PASS_INPUTS; k++) y.factor[k] = a * x->factor[k];
    return y;
}

static linear_form sum_of(const linear_form *x, const linear_form *y, float sign) {
    linear_form z = {};
    z.constant = x->constant + sign * y->constant;
    for (int k = 0; k < PASS_INPUTS; k++) z.factor[k] = x->factor[k] + sign * y->factor[k];
    return z;
}

/* What a step makes of linear functions; false: no such. */
static bool follow(const pass_step *s, linear_form slots[PASS_SLOTS]) {
    const linear_form x = slots[s->a], y = slots[s->b];
    linear_form *to = &slots[s->to];
    switch (s->op) {
    case N2_OP_add:
        *to = sum_of(&x, &y, 1);
        return true;
    case N2_OP_sub:
        *to = sum_of(&x, &y, -1);
        return true;
    case N2_OP_neg:
        *to = scaled(&x, -1, 0);
        return true;
    case N2_OP_affine:
        *to = scaled(&x, s->f[0], s->f[1]);
        return true;
    case N2_OP_cast:
    case N2_OP_broadcast:
    case N2_OP_slice:
    case N2_OP_concat:
        *to = x;
        return true;
    default:
        return false;
    }
}

static bool is_unary(int op) {
#define COUNT(name) +1
    return op >= N2_OP_neg && op < N2_OP_neg N2_UNARY_LIST(COUNT);
#undef COUNT
}

/* The operand that a value is, unchanged; -1: it is something else. */
static int operand_of(const linear_form *x, int n_inputs) {
    int which = -1;
    for (int k = 0; k < n_inputs; k++) {
        if (x->factor[k] == 0) continue;
        if (which >= 0 || x->factor[k] != 1) return -1;
        which = k;
    }
    return x->constant == 0 ? which : -1;
}

/* The last step may be an activation, or a gate by an operand that is nothing else. */
static bool end_with(const wide_pass *p, const pass_step *s, linear_form slots[PASS_SLOTS],
                     linear_form *out) {
    const bool gates = s->op == N2_OP_lrelu_grad;
    if ((!gates && !is_unary(s->op)) || s->to != p->output[0].slot) return false;
    *out = slots[gates ? s->b : s->a];
    out->op = s->op;
    out->slope = s->f[0];
    out->acts = true;
    out->gate = gates ? operand_of(&slots[s->a], p->n_inputs) : -1;
    return !gates || (out->gate >= 0 && out->factor[out->gate] == 0);
}

bool n2_pass_linear(const wide_pass *p, bool plain, linear_form *out) {
    linear_form slots[PASS_SLOTS] = {};
    for (int k = 0; k < p->n_inputs; k++) slots[k].factor[k] = 1;
    if (p->n_outputs != 1) return false;
    for (int s = 0; s < p->n_steps; s++)
        if (!follow(&p->step[s], slots))
            return !plain && s + 1 == p->n_steps && end_with(p, &p->step[s], slots, out);
    *out = slots[p->output[0].slot];
    out->gate = -1;
    return true;
}

/* ---- launches ------------------------------------------------------------ */

/* The type of 16 bits, if it is one and all lies in vectors; N2_NUMBER: not so. */
static n2_dtype narrow_type(const wide_pass *p) {
    n2_dtype type = N2_NUMBER;
    bool one = p->whole;
    for (int k = 0; k <= p->n_inputs; k++) {
        const n2_dtype t = (n2_dtype)(k < p->n_inputs ? p->input[k].type : p->output[0].type);
        one &= k == p->n_inputs || p->input[k].way != PASS_EACH;
        one &= t == N2_NUMBER || type == N2_NUMBER || t == type;
        if (t != N2_NUMBER) type = t;
    }
    return !one ? N2_NUMBER : type == N2_NUMBER ? N2_BF16 : type;
}

static linear_task task_of(const wide_pass *p, const job *j, const linear_form *form) {
    linear_task t = {};
    const pass_output *o = &p->output[0];
    t.n = p->n;
    t.constant = form->constant;
    t.op = form->acts ? form->op : -1;
    t.gate = form->gate;
    t.slope = form->slope;
    t.out = j->out;
    t.out_floats = o->type == N2_NUMBER;
    t.pitched = o->pitched;
    t.width = o->width;
    t.pitch = o->pitch;
    for (int k = 0; k < p->n_inputs; k++) {
        const pass_input *in = &p->input[k];
        t.in[k].at = n2_pass_input_at(j, k);
        t.in[k].factor = form->factor[k];
        t.in[k].floats = in->type == N2_NUMBER;
        t.in[k].way = in->way;
        t.in[k].axes = in->axes;
    }
    return t;
}

template <n2_dtype T>
static void launch(const linear_task &t, int inputs, cudaStream_t stream, bool early) {
    const unsigned blocks = (t.n + 8 * TIMES * PASS_THREADS - 1) / (8 * TIMES * PASS_THREADS);
    if (inputs == 1)
        GPU_LAUNCH((run_linear<1, T>), blocks, PASS_THREADS, 0, stream, early, t);
    else if (inputs == 2)
        GPU_LAUNCH((run_linear<2, T>), blocks, PASS_THREADS, 0, stream, early, t);
    else if (inputs == 3)
        GPU_LAUNCH((run_linear<3, T>), blocks, PASS_THREADS, 0, stream, early, t);
    else
        GPU_LAUNCH((run_linear<4, T>), blocks, PASS_THREADS, 0, stream, early, t);
}

bool n2_pass_launch_linear(const job *j, cudaStream_t stream, bool early) {
    const wide_pass *p = (const wide_pass *)j->wide.about;
    const n2_dtype type = narrow_type(p);
    linear_form form;
    if (type == N2_NUMBER || p->n_inputs > 4 || !n2_pass_linear(p, false, &form)) return false;
    const linear_task t = task_of(p, j, &form);
    if (type == N2_BF16)
        launch<N2_BF16>(t, p->n_inputs, stream, early);
    else
        launch<N2_F16>(t, p->n_inputs, stream, early);
    return true;
}
