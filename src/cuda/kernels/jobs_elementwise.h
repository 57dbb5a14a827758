/* Element-wise ops, in device code. The meaning is that of ref/plain.h. */
#ifndef N2_CUDA_JOBS_ELEMENTWISE_H
#define N2_CUDA_JOBS_ELEMENTWISE_H

#include "cuda/runtime/gpu.h"
#include "job.h"

#include <math.h>

/* ---- the terms of the loss, objective/terms.h ---- */

/* exp(x), right to a unit of float's last digit or two: exp() of double is so much code that
 * fetching it takes longer than everything else of the loss. */
__device__ inline float exp_of_double(double x) {
    const double whole = rint(fmin(fmax(x, -200.0), 200.0) * 1.4426950408889634);
    const float rest = (float)fma(whole, -0.6931471805599453, x);
    return x < -150 ? 0.0f : ldexpf(expf(rest), (int)whole); /* NaN stays what it is */
}

/* f[0]: m; f[1]: its logarithm. With d = f - log(m) neither can overflow, and both are one exp
 * and little else. */
__device__ inline double loss_term(const job &j, double f, bool is_den) {
    if (isinf(j.f[0])) return is_den ? (double)exp_of_double(f) : -f;
    const double d = f - j.f[1], most = is_den ? d : -d;
    const double l = (most > 0 ? most : 0) + (double)log1pf(exp_of_double(-fabs(d)));
    return is_den ? j.f[0] * l : l;
}

__device__ inline double loss_weight(const job &j, double f, bool is_den) {
    if (isinf(j.f[0])) return is_den ? (double)exp_of_double(f) : -1;
    const double d = f - j.f[1];
    return (is_den ? j.f[0] : -1) / (1 + (double)exp_of_double(is_den ? -d : d));
}

/* ---- functions of one number ---- */

__device__ inline float sigmoid(float x) {
    if (x >= 0) return 1.0f / (1.0f + expf(-x));
    const float e = expf(x);
    return e / (1.0f + e);
}

__device__ inline float softplus(float x) { return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)); }

/* Of x sigmoid(x). */
__device__ inline float silu_slope(float x) {
    const float s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
}

/* P(z < x) for a standard normal z, and the slope of x times that. */
__device__ inline float normal_below(float x) { return 0.5f * erfcf(-0.707106781f * x); }
__device__ inline float gelu_slope(float x) {
    return normal_below(x) + 0.398942280f * x * expf(-0.5f * x * x);
}

/* All but the terms of the loss. a, b: f[0] and f[1]. */
__device__ inline float unary(int op, float a, float b, float x) {
    switch (op) {
    case N2_OP_neg:
        return -x;
    case N2_OP_exp:
        return expf(x);
    case N2_OP_log:
        return logf(x);
    case N2_OP_sqrt:
        return sqrtf(x);
    case N2_OP_reciprocal:
        return 1.0f / x;
    case N2_OP_tanh:
        return tanhf(x);
    case N2_OP_sigmoid:
        return sigmoid(x);
    case N2_OP_softplus:
        return softplus(x);
    case N2_OP_sin:
        return sinf(x);
    case N2_OP_cos:
        return cosf(x);
    case N2_OP_positive:
        return x > 0.0f ? 1.0f : 0.0f;
    case N2_OP_affine:
        return a * x + b;
    case N2_OP_lrelu:
        return x > 0.0f ? x : a * x;
    case N2_OP_silu:
        return x * sigmoid(x);
    default: /* gelu */
        return x * normal_below(x);
    }
}

__device__ inline float unary(const job &j, int op, float a, float b, float x) {
    if (op == N2_OP_n2ce_term) return (float)loss_term(j, (double)x, j.k != 0);
    if (op == N2_OP_n2ce_weight) return (float)loss_weight(j, (double)x, j.k != 0);
    return unary(op, a, b, x);
}

/* ---- functions of two ---- */

__device__ inline float binary(int op, float a, float x, float y) {
    switch (op) {
    case N2_OP_add:
        return x + y;
    case N2_OP_sub:
        return x - y;
    case N2_OP_mul:
        return x * y;
    case N2_OP_div:
        return x / y;
    case N2_OP_maximum:
        return x > y || x != x ? x : y;
    case N2_OP_minimum:
        return x < y || x != x ? x : y;
    case N2_OP_equal:
        return x == y ? 1.0f : 0.0f;
    case N2_OP_greater:
        return x > y ? 1.0f : 0.0f;
    case N2_OP_silu_grad:
        return y * silu_slope(x);
    case N2_OP_gelu_grad:
        return y * gelu_slope(x);
    default: /* lrelu_grad */
        return x > 0.0f ? y : a * y;
    }
}

__device__ inline float unary(const job &j, float x) {
    return unary(j, j.op, (float)j.f[0], (float)j.f[1], x);
}
__device__ inline float binary(const job &j, float x, float y) {
    return binary(j.op, (float)j.f[0], x, y);
}

/* ---- walking ---- */

/* Where operand `which` has the element that goes to element i. */
__device__ inline uint32_t operand_offset(const job_loops &l, int which, uint32_t i) {
    uint32_t at = 0;
#pragma unroll 1
    for (int k = 0; k + 1 < l.rank; k++) {
        const uint32_t rest = job_quotient(l.length[k], i);
        at += (i - rest * l.length[k].by) * l.step[which][k];
        i = rest;
    }
    return at + i * l.step[which][l.rank - 1];
}

/* A row number, kept inside the table; without branches, so that several are on their way. */
__device__ inline uint32_t row_number(float index, uint32_t rows) {
    const uint32_t row = (uint32_t)fminf(fmaxf(index, 0.0f), 4294967040.0f); /* NaN: 0 */
    return row < rows ? row : rows - 1;
}

/* A block's elements. */
struct share {
    uint32_t begin, end;
    __device__ share(const job &j, uint32_t block) {
        const uint32_t n = (uint32_t)j.n, size = job_share(j.n);
        begin = block * size;
        end = n - begin < size ? n : begin + size;
    }
};

/* Four elements of a thread: consecutive ones from `first` on, or else every JOB_THREADS-th before
 * `end`. */
struct four {
    uint32_t first, end;
    bool vec4;

    __device__ bool has(uint32_t k) const { return vec4 || first + k * JOB_THREADS < end; }

    /* step: 0 if all four are the same number. */
    template <typename OFFSET>
    __device__ void load(float x[4], const float *in, uint32_t step, OFFSET offset_of) const {
        if (vec4) {
            const float *from = in + offset_of(first);
            const float4 v = step ? *(const float4 *)from : float4{*from, *from, *from, *from};
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
            return;
        }
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            x[k] = has(k) ? in[offset_of(first + k * JOB_THREADS)] : 0.0f;
    }
    __device__ void store(float *out, const float x[4]) const {
        if (vec4) {
            *(float4 *)(out + first) = float4{x[0], x[1], x[2], x[3]};
            return;
        }
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (has(k)) out[first + k * JOB_THREADS] = x[k];
    }
};

/* f(four) for all that this thread has of the block's elements. All four are loaded before one is
 * stored. */
template <typename F> __device__ inline void each_four(const job &j, uint32_t block, F f) {
    const share mine(j, block);
    const bool vec4 = j.vec4;
#pragma unroll 1
    for (uint32_t i = mine.begin + threadIdx.x * (vec4 ? 4 : 1); i < mine.end; i += JOB_ELEMENTS)
        f(four{i, mine.end, vec4});
}

/* What a thread made last stays with it, for the next job of a chain: `last`. */
__device__ inline void copy_four(float to[4], float4 from) {
    to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w;
}

__device__ inline float4 put_four(const job &j, const four &e, const float x[4]) {
    if (!j.unread) e.store(j.out, x);
    return float4{x[0], x[1], x[2], x[3]};
}

/* The four take turns at one place, so that the code of a function is there once: most of it runs
 * once, and fetching it takes longer than running it. */
GPU_JOB float4 run_unary(const job &j, uint32_t block, float4 last) {
    each_four(j, block, [&](four e) {
        float x[4];
        if (j.found)
            copy_four(x, last);
        else
            e.load(x, j.in[0], 1, [](uint32_t i) { return i; });
#pragma unroll 1
        for (uint32_t k = 0; k < 4; k++) {
            const float y = e.has(k) ? unary(j, x[0]) : 0.0f;
            x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = y;
        }
        last = put_four(j, e, x);
    });
    return last;
}

/* Numbers of a table, one for all columns of a row; apart, for most jobs have none. */
GPU_JOB float4 looked_up(const job &j, four e, int operand) {
    float x[4];
    e.load(x, j.in[operand], 0, [&](uint32_t i) {
        return row_number(j.index[job_quotient(j.loops.length[0], i)], (uint32_t)j.k);
    });
    return float4{x[0], x[1], x[2], x[3]};
}

__device__ inline void load_operand(const job &j, const four &e, int operand, float4 last,
                                    float x[4]) {
    if (j.found >> operand & 1)
        copy_four(x, last);
    else if (j.looks_up >> operand & 1)
        copy_four(x, looked_up(j, e, operand));
    else
        e.load(x, j.in[operand], j.loops.step[operand][0],
               [&](uint32_t i) { return operand_offset(j.loops, operand, i); });
}

GPU_JOB float4 run_binary(const job &j, uint32_t block, float4 last) {
    each_four(j, block, [&](four e) {
        float x[4], y[4];
        load_operand(j, e, 0, last, x);
        load_operand(j, e, 1, last, y);
#pragma unroll 1
        for (uint32_t k = 0; k < 4; k++) {
            const float z = e.has(k) ? binary(j, x[0], y[0]) : 0.0f;
            x[0] = x[1], x[1] = x[2], x[2] = x[3], x[3] = z;
            y[0] = y[1], y[1] = y[2], y[2] = y[3];
        }
        last = put_four(j, e, x);
    });
    return last;
}

/* Jobs of one number come in chains. What they need is asked for by a thread each, at once; then
 * they are done in turn, and what one makes the others need not fetch. */
__device__ inline bool is_scalar(const job &j) {
    return j.n == 1 && (j.kind == JOB_UNARY || j.kind == JOB_BINARY);
}
GPU_JOB void run_scalars(const job *jobs, float *made) {
    const int lane = (int)threadIdx.x, n = jobs->segment;
    if (lane >= 32) return;
    const job &j = jobs[lane < n ? lane : 0];
    const bool two = j.kind == JOB_BINARY;
    float x = *j.in[0], y = two ? *j.in[1] : 0.0f;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        if (lane == i) made[i] = *j.out = two ? binary(j, x, y) : unary(j, x);
        __syncwarp();
        if (j.in[0] == jobs[i].out) x = made[i];
        if (two && j.in[1] == jobs[i].out) y = made[i];
    }
}

/* ---- fused segments ---- */

/* A thread's own slots, and whether they have four numbers each. */
struct slots {
    float *mine;
    bool vec4;

    __device__ slots(float *shared, bool is_vec4)
        : mine(shared + threadIdx.x * (is_vec4 ? 4 : 1)), vec4(is_vec4) {}
    __device__ float *at(uint32_t k) const {
        return mine + k * (vec4 ? JOB_ELEMENTS : JOB_THREADS);
    }
    __device__ float4 get(uint32_t k, float4 last) const {
        if (k == SLOT_LAST) return last;
        return vec4 ? *(const float4 *)at(k) : float4{*at(k), 0.0f, 0.0f, 0.0f};
    }
    __device__ void put(float *to, float4 x) const {
        if (vec4)
            *(float4 *)to = x;
        else
            *to = x.x;
    }
};

/* Where an operand has what goes to element i; of a row of a table first its number, which is in
 * the slot then. */
__device__ inline const float *asked_at(const job *jobs, const job_ask &a, uint32_t i,
                                        const slots &mine, bool numbers) {
    uint32_t row = job_quotient(job_divisor{a.by, a.scale, a.shift}, i);
    const uint32_t column = (i - row * a.by) * a.along;
    if (a.gather) {
        const job &j = jobs[a.gather - 1];
        if (numbers) return j.index + row;
        row = row_number(*mine.at(a.slot), (uint32_t)j.k);
    }
    return a.at + (uint64_t)row * a.step + column;
}

/* Of four elements, if it is not one number, four. */
__device__ inline void ask_for(const job_ask &a, const float *from, const slots &mine,
                               bool numbers) {
    float *to = mine.at(a.slot);
    if (numbers && a.gather) return copy_4(to, from, 4);
    if (mine.vec4 && a.along) return copy_16(to, from, 16);
    copy_4(to, from, 4);
#pragma unroll
    for (int k = 1; k < 4; k++)
        if (mine.vec4) copy_4(to + k, from, 4);
}

/* Functions of little code are done for all four at once; the others in turn, so that their code is
 * there once. */
template <int OP> __device__ inline float4 four_of_one(const job &j, const job_brief &b, float4 x) {
    return float4{unary(j, OP, b.a, b.b, x.x), unary(j, OP, b.a, b.b, x.y),
                  unary(j, OP, b.a, b.b, x.z), unary(j, OP, b.a, b.b, x.w)};
}
template <int OP> __device__ inline float4 four_of_two(const job_brief &b, float4 x, float4 y) {
    return float4{binary(OP, b.a, x.x, y.x), binary(OP, b.a, x.y, y.y), binary(OP, b.a, x.z, y.z),
                  binary(OP, b.a, x.w, y.w)};
}
__device__ inline float4 in_turn(const job &j, const job_brief &b, float4 x, float4 y) {
    const int n = b.vec4 ? 4 : 1;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        const float z = b.two ? binary(b.op, b.a, x.x, y.x) : unary(j, b.op, b.a, b.b, x.x);
        x = float4{x.y, x.z, x.w, z};
        y = float4{y.y, y.z, y.w, y.x};
    }
    if (n == 1) x.x = x.w;
    return x;
}

/* What is no sum, of a job of a fused segment; apart, so that the code that most need is short. */
GPU_JOB float4 function_of(const job &j, float4 x, float4 y) {
    const job_brief b = j.brief;
    switch (b.op) {
    case N2_OP_positive:
        return four_of_one<N2_OP_positive>(j, b, x);
    case N2_OP_lrelu:
        return four_of_one<N2_OP_lrelu>(j, b, x);
    case N2_OP_maximum:
        return four_of_two<N2_OP_maximum>(b, x, y);
    case N2_OP_minimum:
        return four_of_two<N2_OP_minimum>(b, x, y);
    case N2_OP_lrelu_grad:
        return four_of_two<N2_OP_lrelu_grad>(b, x, y);
    default:
        return in_turn(j, b, x, y);
    }
}

/* a * x + b, or what else a sum is; the compiler makes one instruction of both. */
__device__ inline float sum_of(const job_brief &b, float x, float y) {
    return (b.form & TIMES_Y ? y : b.a) * x + (b.form & PLUS_Y ? y : b.b);
}
__device__ inline float4 sum_of(const job_brief &b, float4 x, float4 y) {
    return float4{sum_of(b, x.x, y.x), sum_of(b, x.y, y.y), sum_of(b, x.z, y.z),
                  sum_of(b, x.w, y.w)};
}

/* All that a fused segment asks for, b: of its first job. Rows of tables are asked for when their
 * numbers are there, at once too: two trips to memory, however many tables there are. */
__device__ inline void ask_for_all(const job *jobs, const job_brief &b, uint32_t i,
                                   const slots &mine) {
    uint32_t pairs = b.asking;
#pragma unroll 1
    for (bool numbers = true; pairs > 0; pairs = numbers ? b.looking : 0, numbers = false) {
#pragma unroll 1
        for (uint32_t k = 0; k < pairs; k++) {
            const job_ask first = jobs[k].ask[0], second = jobs[k].ask[1];
            const float *at = asked_at(jobs, first, i, mine, numbers);
            const float *at_second = asked_at(jobs, second, i, mine, numbers);
            ask_for(first, at, mine, numbers);
            if (second.slot != first.slot) /* else there is none */
                ask_for(second, at_second, mine, numbers);
        }
        copies_commit();
        copies_wait<0>();
    }
}

/* The jobs of a fused segment, of which the first is given. Nobody waits for others: a barrier
 * comes before and after. */
GPU_JOB float4 run_segment(const job *jobs, float *shared, uint32_t block, float4 last) {
    job_brief b = jobs->brief;
    const uint32_t n = jobs->segment;
    const uint32_t i = (block * JOB_THREADS + threadIdx.x) * (b.vec4 ? 4 : 1);
    const slots mine(shared, b.vec4);
    if (i >= b.n) return last;
    ask_for_all(jobs, b, i, mine);
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++) {
        const float4 x = mine.get(b.from[0], last), y = mine.get(b.from[1], last);
        last = b.form ? sum_of(b, x, y) : function_of(jobs[k], x, y);
        const job_brief next = jobs[k + 1 < n ? k + 1 : k].brief; /* on its way meanwhile */
        if (b.out) mine.put(b.out + i, last);
        if (b.keep != SLOT_LAST) mine.put(mine.at(b.keep), last);
        b = next;
    }
    return last;
}

/* ---- moving ---- */

/* Of jobs that only move numbers: from(i) is where element i comes from, NULL if it is zero; to(i)
 * where it goes, NULL if nowhere. All of a thread's numbers are on their way at once; the first
 * four are returned. */
template <typename V, typename FROM, typename TO>
__device__ inline float4 move_some(uint32_t first, uint32_t end, FROM from, TO to) {
    enum { AT_ONCE = 4, STEP = JOB_THREADS * sizeof(V) / 4 };
    const float *at[AT_ONCE];
    V x[AT_ONCE];
    if (first >= end) return float4{};
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; k++) /* beyond the end the first again: no branches */
        at[k] = from(first + (first + k * STEP < end ? k * STEP : 0));
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; k++) x[k] = at[k] ? *(const V *)at[k] : V{};
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; k++)
        if (first + k * STEP < end && to(first)) *(V *)to(first + k * STEP) = x[k];
    const float *made = (const float *)x;
    return float4{made[0], made[1], made[2], made[3]};
}

template <typename FROM, typename TO>
__device__ inline float4 move_numbers(const job &j, uint32_t block, FROM from, TO to) {
    const share mine(j, block);
    float4 last = {};
    if (j.vec4) return move_some<float4>(mine.begin + threadIdx.x * 4, mine.end, from, to);
#pragma unroll 1
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_ELEMENTS)
        last = move_some<float>(i, mine.end, from, to);
    return last;
}

/* As an element-wise job's output. */
__device__ inline float *moved_to(const job &j, uint32_t i) { return j.unread ? NULL : j.out + i; }

GPU_JOB float4 run_copy(const job &j, uint32_t block) {
    return move_numbers(
        j, block, [&](uint32_t i) { return j.in[0] + operand_offset(j.loops, 0, i); },
        [&](uint32_t i) { return moved_to(j, i); });
}

/* Rows of m numbers, or length[0], from rows of loops.step[0][0] to rows of loops.step[1][0]; with
 * an index from those of a table of k rows that it says. */
GPU_JOB void run_move(const job &j, uint32_t block) {
    const job_divisor width = j.loops.length[0];
    const uint32_t from = j.loops.step[0][0], to = j.loops.step[1][0], rows = (uint32_t)j.k;
    const float *in = j.in[0], *index = j.index;
    float *out = j.out;
    move_numbers(
        j, block,
        [&](uint32_t i) {
            const uint32_t row = job_quotient(width, i), column = i - row * width.by;
            return in + ((uint64_t)(index ? row_number(index[row], rows) : row) * from + column);
        },
        [&](uint32_t i) {
            const uint32_t row = job_quotient(width, i);
            return out + ((uint64_t)row * to + (i - row * width.by));
        });
}

/* Rows of m numbers become rows of loops.step[1][0], or length[0], with the m from k on; beside
 * them zeros, or, if k is 0, other rows. */
GPU_JOB float4 run_pad(const job &j, uint32_t block) {
    const job_divisor width = j.loops.length[0];
    const uint32_t begin = (uint32_t)j.k, m = (uint32_t)j.m;
    const float *in = j.in[0], *others = j.in[1];
    return move_numbers(
        j, block,
        [&](uint32_t i) {
            const uint32_t row = job_quotient(width, i), column = i - row * width.by - begin;
            if (column < m) return in + (row * m + column); /* wraps below 0 */
            return others ? others + (row * (width.by - m) + column - m) : (const float *)NULL;
        },
        [&](uint32_t i) { return moved_to(j, i); });
}

/* Row loops.step[0][0] + i, divided by k, or length[0], modulo m, or length[1]. */
GPU_JOB void run_row_index(const job &j, uint32_t block) {
    const share mine(j, block);
    const job_divisor each = j.loops.length[0], rows = j.loops.length[1];
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_THREADS) {
        const uint32_t row = job_quotient(each, j.loops.step[0][0] + i);
        j.out[i] = (float)(row - job_quotient(rows, row) * rows.by);
    }
}

/* m, or loops.length[0]: width of a row; k: rows of the table. */
GPU_JOB float4 run_gather(const job &j, uint32_t block) {
    const job_divisor width = j.loops.length[0];
    const uint32_t rows = (uint32_t)j.k;
    const float *table = j.in[0], *indices = j.in[1];
    return move_numbers(
        j, block,
        [&](uint32_t i) {
            const uint32_t row = job_quotient(width, i);
            return table + (uint64_t)row_number(indices[row], rows) * width.by +
                   (i - row * width.by);
        },
        [&](uint32_t i) { return moved_to(j, i); });
}

/* Between float and 16 bits. */
GPU_JOB void run_cast(const job &j, uint32_t block) {
    const share mine(j, block);
    const n2_dtype from = (n2_dtype)j.m, to = (n2_dtype)j.k;
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_THREADS) {
        const float x =
            from == N2_NUMBER ? j.in[0][i] : n2_widen(from, ((const uint16_t *)j.in[0])[i]);
        if (to == N2_NUMBER)
            j.out[i] = x;
        else
            ((uint16_t *)j.out)[i] = n2_narrow(to, x);
    }
}

/* ---- updates ---- */

__device__ inline const float *const *watched_of(const n2_device_state *s) {
    return (const float *const *)(s + 1);
}

/* Not made once something was not finite. It does not stop at the first: several numbers are on
 * their way at once. */
__device__ inline bool is_held_back(const job &j) {
    bool held = (j.state->frozen != 0) | (j.state->bad != 0);
#pragma unroll 4
    for (uint32_t k = 0; k < j.guards; k++) held |= !isfinite(*watched_of(j.state)[k]);
    return held;
}

GPU_JOB void run_assign(const job &j, uint32_t block) {
    if (is_held_back(j)) return;
    move_numbers(
        j, block, [&](uint32_t i) { return j.in[0] + i; }, [&](uint32_t i) { return j.out + i; });
}

/* A good run counts; after a bad one nothing changes any more. */
GPU_JOB void run_end(const job &j) {
    n2_device_state *s = j.state;
    if (threadIdx.x > 0) return;
    for (uint32_t k = 0; k < s->n_watched && !s->bad; k++)
        if (!isfinite(*watched_of(s)[k])) s->bad = k + 1;
    if (!s->bad) s->step++;
}

#endif
