/* Element-wise ops, in device code. The meaning is that of ref/plain.h. */
#ifndef N2_CUDA_JOBS_ELEMENTWISE_H
#define N2_CUDA_JOBS_ELEMENTWISE_H

#include "gpu.h"
#include "job.h"
#include "tower.h"

#include <math.h>

/* ---- the terms of the loss, objective/terms.h ---- */

/* f[0]: m; f[1]: its logarithm. With d = f - log(m) neither can overflow, and both are one exp
 * and little else: what is rounded to float in the end does not see the difference. */
__device__ inline double loss_term(const job &j, double f, bool is_den) {
    if (isinf(j.f[0])) return is_den ? exp(f) : -f;
    const double d = f - j.f[1], most = is_den ? d : -d;
    const double l = (most > 0 ? most : 0) + log1p(exp(-fabs(d)));
    return is_den ? j.f[0] * l : l;
}

__device__ inline double loss_weight(const job &j, double f, bool is_den) {
    if (isinf(j.f[0])) return is_den ? exp(f) : -1;
    const double d = f - j.f[1];
    return (is_den ? j.f[0] : -1) / (1 + exp(is_den ? -d : d));
}

/* ---- functions of one number ---- */

__device__ inline float sigmoid(float x) {
    if (x >= 0) return 1.0f / (1.0f + expf(-x));
    const float e = expf(x);
    return e / (1.0f + e);
}

__device__ inline float softplus(float x) { return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)); }

/* a, b: f[0] and f[1]. */
__device__ inline float unary(const job &j, int op, float a, float b, float x) {
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
    case N2_OP_n2ce_term:
        return (float)loss_term(j, (double)x, j.k != 0);
    default: /* n2ce_weight */
        return (float)loss_weight(j, (double)x, j.k != 0);
    }
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
__device__ inline uint32_t place(const job_loops &l, int which, uint32_t i) {
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
    bool fours;

    __device__ bool has(uint32_t k) const { return fours || first + k * JOB_THREADS < end; }

    /* step: 0 if all four are the same number. */
    template <typename PLACE>
    __device__ void load(float x[4], const float *in, uint32_t step, PLACE place_of) const {
        if (fours) {
            const float *from = in + place_of(first);
            const float4 v = step ? *(const float4 *)from : float4{*from, *from, *from, *from};
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
            return;
        }
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            x[k] = has(k) ? in[place_of(first + k * JOB_THREADS)] : 0.0f;
    }
    __device__ void store(float *out, const float x[4]) const {
        if (fours) {
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
    const bool fours = j.fours;
#pragma unroll 1
    for (uint32_t i = mine.begin + threadIdx.x * (fours ? 4 : 1); i < mine.end; i += JOB_ELEMENTS)
        f(four{i, mine.end, fours});
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

__device__ inline void load_operand(const job &j, const four &e, int operand, float4 last,
                                    float x[4]) {
    if (j.found >> operand & 1)
        copy_four(x, last);
    else
        e.load(x, j.in[operand], j.loops.step[operand][0],
               [&](uint32_t i) { return place(j.loops, operand, i); });
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
    const int lane = (int)threadIdx.x, n = jobs->stretch;
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

/* ---- stretches ---- */

/* A thread's own slots, and whether they have four numbers each. */
struct slots {
    float *mine;
    bool fours;

    __device__ slots(float *shared, bool is_fours)
        : mine(shared + threadIdx.x * (is_fours ? 4 : 1)), fours(is_fours) {}
    __device__ float *at(uint32_t k) const {
        return mine + k * (fours ? JOB_ELEMENTS : JOB_THREADS);
    }
    __device__ float4 get(uint32_t k, float4 last) const {
        if (k == SLOT_LAST) return last;
        return fours ? *(const float4 *)at(k) : float4{*at(k), 0.0f, 0.0f, 0.0f};
    }
    __device__ void put(float *to, float4 x) const {
        if (fours)
            *(float4 *)to = x;
        else
            *to = x.x;
    }
};

/* Where an operand has what goes to element i. */
__device__ inline const float *asked_at(const job *jobs, const job_ask &a, uint32_t i) {
    uint32_t row = job_quotient(job_divisor{a.by, a.scale, a.shift}, i);
    const uint32_t column = (i - row * a.by) * a.along;
    if (a.gather) {
        const job &j = jobs[a.gather - 1];
        row = row_number(j.in[1][row], (uint32_t)j.k);
    }
    return a.at + (uint64_t)row * a.step + column;
}

/* Of four elements, if it is not one number, four. */
__device__ inline void ask_for(const job_ask &a, const float *from, const slots &mine) {
    float *to = mine.at(a.slot);
    if (mine.fours && a.along) return copy_16(to, from, 16);
    copy_4(to, from, 4);
#pragma unroll
    for (int k = 1; k < 4; k++)
        if (mine.fours) copy_4(to + k, from, 4);
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
    const int n = b.fours ? 4 : 1;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        const float z = b.two ? binary(b.op, b.a, x.x, y.x) : unary(j, b.op, b.a, b.b, x.x);
        x = float4{x.y, x.z, x.w, z};
        y = float4{y.y, y.z, y.w, y.x};
    }
    if (n == 1) x.x = x.w;
    return x;
}

__device__ inline float4 function_of(const job &j, const job_brief &b, float4 x, float4 y) {
    switch (b.op) {
    case OP_COPY:
        return x;
    case N2_OP_neg:
        return four_of_one<N2_OP_neg>(j, b, x);
    case N2_OP_positive:
        return four_of_one<N2_OP_positive>(j, b, x);
    case N2_OP_affine:
        return four_of_one<N2_OP_affine>(j, b, x);
    case N2_OP_lrelu:
        return four_of_one<N2_OP_lrelu>(j, b, x);
    case N2_OP_add:
        return four_of_two<N2_OP_add>(b, x, y);
    case N2_OP_sub:
        return four_of_two<N2_OP_sub>(b, x, y);
    case N2_OP_mul:
        return four_of_two<N2_OP_mul>(b, x, y);
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

/* The jobs of a stretch, of which the first is given. Nobody waits for others: a barrier comes
 * before and after. */
GPU_JOB float4 run_stretch(const job *jobs, float *shared, uint32_t block, float4 last) {
    job_brief b = jobs->brief;
    const uint32_t n = jobs->stretch, asking = b.asking;
    const uint32_t i = (block * JOB_THREADS + threadIdx.x) * (b.fours ? 4 : 1);
    const slots mine(shared, b.fours);
    if (i >= b.n) return last;
#pragma unroll 1
    for (uint32_t k = 0; k < asking; k++) {
        const job_ask first = jobs[k].ask[0], second = jobs[k].ask[1];
        const float *at = asked_at(jobs, first, i), *at_second = asked_at(jobs, second, i);
        ask_for(first, at, mine);
        if (second.slot != first.slot) ask_for(second, at_second, mine); /* else there is none */
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++) {
        const job_brief next = jobs[k + 1 < n ? k + 1 : k].brief; /* on its way meanwhile */
        const float4 x = mine.get(b.from[0], last), y = mine.get(b.from[1], last);
        last = function_of(jobs[k], b, x, y);
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
    if (j.fours) return move_some<float4>(mine.begin + threadIdx.x * 4, mine.end, from, to);
#pragma unroll 1
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_ELEMENTS)
        last = move_some<float>(i, mine.end, from, to);
    return last;
}

/* As an element-wise job's output. */
__device__ inline float *moved_to(const job &j, uint32_t i) { return j.unread ? NULL : j.out + i; }

GPU_JOB float4 run_copy(const job &j, uint32_t block) {
    return move_numbers(
        j, block, [&](uint32_t i) { return j.in[0] + place(j.loops, 0, i); },
        [&](uint32_t i) { return moved_to(j, i); });
}

/* Rows of m numbers, or length[0], from rows of loops.step[0][0] to rows of loops.step[1][0]. */
GPU_JOB void run_move(const job &j, uint32_t block) {
    const job_divisor width = j.loops.length[0];
    const uint32_t from = j.loops.step[0][0], to = j.loops.step[1][0];
    const float *in = j.in[0];
    float *out = j.out;
    const auto place_in = [&](uint32_t i, uint32_t step) {
        const uint32_t row = job_quotient(width, i);
        return (uint64_t)row * step + (i - row * width.by);
    };
    move_numbers(
        j, block, [&](uint32_t i) { return in + place_in(i, from); },
        [&](uint32_t i) { return out + place_in(i, to); });
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

__device__ inline uint32_t larger_bits(uint32_t top, float x) {
    const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    return bits > top ? bits : top;
}

/* The largest magnitude of a matrix, as bits, from all its numbers: in rows of 128, if they lie
 * side by side. inner: width, stride, and how many there are from the first to the last; instead of
 * one beyond them the first is read again. */
__device__ inline uint32_t top_of_all(const job &j) {
    enum { AT_ONCE = 8 };
    const uint32_t each = j.fours ? 4 : 1, lanes = TOWER_WIDTH / each, step = JOB_THREADS / lanes;
    const uint32_t width = j.inner.length[0].by, end = j.inner.length[1].by;
    const uint32_t stride = j.inner.step[0][0], column = threadIdx.x % lanes * each;
    const uint32_t last = column < width ? end : 0;
    uint32_t top = 0, i = threadIdx.x / lanes * stride + column;
    const float *in = j.in[0];
    if (each == 1) {
#pragma unroll 4
        for (; i < last; i += step * stride) top = larger_bits(top, in[i]);
        return top;
    }
#pragma unroll 1
    for (; i < last; i += AT_ONCE * step * stride) {
        float4 v[AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            const uint32_t at = i + k * step * stride;
            v[k] = *(const float4 *)(in + (at < last ? at : 0));
        }
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            top = larger_bits(larger_bits(larger_bits(larger_bits(top, v[k].x), v[k].y), v[k].z),
                              v[k].w);
    }
    return top;
}

/* From those that an update left in in[3], a number for each 32 columns of JOB_ELEMENTS numbers.
 * loops.length[1]: how many; step[1][0]: the matrix's first column there. */
__device__ inline uint32_t top_of_tops(const job &j) {
    const uint32_t n = j.loops.length[1].by, stride = j.loops.step[0][0];
    const bool whole = stride == (uint32_t)j.k; /* else stride is a power of two */
    uint32_t top = 0;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < n; i += JOB_THREADS) {
        const uint32_t column = i * 32 % JOB_THREADS & (stride - 1);
        const bool inside = column - j.loops.step[1][0] < (uint32_t)j.k;
        top = larger_bits(top, whole || inside ? j.in[3][i] : 0.0f);
    }
    return top;
}

__device__ inline uint32_t block_top(uint32_t top, uint32_t *shared) {
    top = warp_most(top);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < JOB_THREADS / 32; w++) top = shared[w] > top ? shared[w] : top;
    return top;
}

enum { HALVES_PITCH = TOWER_WIDTH + 2 }; /* of rows in shared memory, read down and across */

/* Eight halves that lie side by side in an image of a block's rows, or of their transpose. */
__device__ inline void put_halves(const uint16_t *halves, bool lies, uint32_t block, float *image) {
    struct alignas(16) unit {
        uint32_t word[4];
    } x;
    const uint32_t i = threadIdx.x;
    const uint32_t row = lies ? i / 16 : i % 2 * 8, column = lies ? i % 16 * 8 : i / 2;
    const uint32_t step = lies ? 1 : HALVES_PITCH, above = block * IMAGE_SHARE;
    const uint32_t to = lies ? image_at(TOWER_WIDTH, above + row, column)
                             : image_at(TOWER_WIDTH, column, above + row);
    halves += row * HALVES_PITCH + column;
#pragma unroll
    for (int k = 0; k < 4; k++)
        x.word[k] = halves[2 * k * step] | (uint32_t)halves[(2 * k + 1) * step] << 16;
    *(unit *)(image + to / 2) = x;
}

/* What is behind the images: half of the threads do this for each. */
__device__ inline void put_behind(const job &j, float power) {
    const uint32_t which = threadIdx.x / TOWER_WIDTH, i = threadIdx.x % TOWER_WIDTH;
    const float *bias = j.in[1 + which];
    float *image = which ? j.more[0] : j.out;
    if (!image) return;
    image += (j.strict ? 2 : 1) * IMAGE_FLOATS;
    image[i] = bias && i < (uint32_t)(which ? j.k : j.m) ? bias[i] : 0.0f;
    if (i == 0) image[TOWER_WIDTH] = inverse_power(power);
}

/* The images of a matrix of m rows of k numbers, zeros around them, as they lie (out) and
 * transposed (more[0]), with biases (in[1], in[2]). Every block looks for the largest number
 * itself, and makes its share of the rows. */
GPU_JOB void run_image(const job &j, float *shared, uint32_t block) {
    enum { EACH = IMAGE_SHARE * TOWER_WIDTH / JOB_THREADS, STEP = JOB_THREADS / TOWER_WIDTH };
    static_assert(IMAGE_SHARE * TOWER_WIDTH == JOB_THREADS * 8, "a thread has eight numbers");
    const uint32_t column = threadIdx.x % TOWER_WIDTH, above = threadIdx.x / TOWER_WIDTH;
    const uint32_t first = block * IMAGE_SHARE + above, stride = j.loops.step[0][0];
    const uint32_t rows = column < (uint32_t)j.k ? (uint32_t)j.m : 0;
    const float *in = j.in[0] + (first * stride + column);
    uint16_t *halves = (uint16_t *)shared;
    float v[EACH];
#pragma unroll
    for (uint32_t i = 0; i < EACH; i++)
        v[i] = first + i * STEP < rows ? in[i * STEP * stride] : 0.0f;
    const uint32_t top = block_top(j.in[3] ? top_of_tops(j) : top_of_all(j), (uint32_t *)shared);
    const float power = __uint_as_float(power_bits(top, j.strict));
    for (uint32_t i = 0; i < EACH; i++) v[i] *= power;
#pragma unroll 1
    for (int part = 0; part < 1 + j.strict; part++) {
        __syncthreads(); /* shared memory has been read */
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t x = pack_halves(v[i], 0.0f);
            halves[(above + i * STEP) * HALVES_PITCH + column] = (uint16_t)x;
            v[i] -= unpack_halves(x).x;
        }
        __syncthreads();
#pragma unroll 1
        for (int which = 0; which < 2; which++) {
            float *image = which ? j.more[0] : j.out;
            if (image) put_halves(halves, which == 0, block, image + part * IMAGE_FLOATS);
        }
    }
    if (block == 0) put_behind(j, power);
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

/* 1 / (1 - beta^step), by squaring: pow() takes longer than all the rest, and the registers that
 * numbers on their way are for. */
__device__ inline float bias_fix(double beta, float step) {
    const uint32_t whole = (uint32_t)fminf(fmaxf(step, 0.0f), 4294967040.0f);
    const float rest = step - (float)whole;
    double power = 1, square = beta;
#pragma unroll 1
    for (uint32_t left = whole; left; left /= 2, square *= square)
        if (left % 2) power *= square;
    if (rest != 0.0f) power *= (double)exp2f(rest * log2f((float)beta));
    return 1.0f / (float)(1 - power);
}

/* Where number i of an update's gradient is: rows of m numbers at in[0], the others of
 * loops.length[0] at addend, if there is one. */
__device__ inline const float *gradient_at(const job &j, uint32_t i) {
    if (!j.addend) return j.in[0] + i;
    const job_divisor width = j.loops.length[0];
    const uint32_t m = (uint32_t)j.m, row = job_quotient(width, i), column = i - row * width.by;
    return column < m ? j.in[0] + (row * m + column)
                      : j.addend + (row * (width.by - m) + column - m);
}

/* in: gradient, rate, factor on the gradient, number of the step. f: betas, eps, decay. */
/* Numbers are asked for before it is known whether they are needed: all loads are on their way at
 * once. Each warp leaves its largest magnitude, as bits, for an image of the weights. */
GPU_JOB void run_adam(const job &j, float *shared, uint32_t block) {
    enum { EACH = JOB_ELEMENTS / JOB_THREADS };
    float g[EACH], p[EACH], m[EACH], v[EACH];
    const uint32_t first = block * JOB_ELEMENTS + threadIdx.x, n = (uint32_t)j.n;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t i = first + k * JOB_THREADS < n ? first + k * JOB_THREADS : n - 1;
        g[k] = *gradient_at(j, i), p[k] = j.out[i], m[k] = j.more[0][i], v[k] = j.more[1][i];
    }
    const float rate = *j.in[1], factor = *j.in[2], step = *j.in[3];
    const bool held = is_held_back(j);
    if (threadIdx.x < 2) shared[threadIdx.x] = bias_fix(j.f[threadIdx.x], step);
    __syncthreads();
    const float b1 = (float)j.f[0], b2 = (float)j.f[1], eps = (float)j.f[2], decay = (float)j.f[3];
    const float c1 = (float)(1 - j.f[0]), c2 = (float)(1 - j.f[1]);
    const float fix1 = shared[0], fix2 = shared[1];
    uint32_t top = 0;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t i = first + k * JOB_THREADS;
        if (i < n && !held) {
            const float x = g[k] * factor;
            const float mk = b1 * m[k] + c1 * x, vk = b2 * v[k] + c2 * x * x;
            p[k] -= rate * (mk * fix1 / (sqrtf(vk * fix2) + eps) + decay * p[k]);
            j.more[0][i] = mk;
            j.more[1][i] = vk;
            j.out[i] = p[k];
        }
        top = larger_bits(top, i < n ? p[k] : 0.0f);
    }
    if (!j.more[2]) return;
    top = warp_most(top);
    if (threadIdx.x % 32 == 0)
        j.more[2][(block * JOB_THREADS + threadIdx.x) / 32] = __uint_as_float(top);
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
