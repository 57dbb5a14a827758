/* The kernel of updates: update.h. */
#include "update.h"

#include "cuda/kernels/jobs_find.h"
#include "cuda/kernels/jobs_reduce.h"
#include "pack_weights.h"

enum {
    UPDATE_WARPS = JOB_THREADS / 32,
    NORM_PARTS = 8 * UPDATE_WARPS, /* whose numbers are on their way at once */
    NORM_FLOATS = NORM_PARTS * JOB_PIECE,
    WATCHED_AHEAD = 32, /* numbers whose places are fetched ahead */
    UPDATE_SHARED = NORM_FLOATS * 4,
    APART_SHARED = 115 * 1024 /* more than half of what a multiprocessor has */
};

/* What a block has in shared memory besides. */
struct update_memory {
    job mine;
    job_part parts[NORM_PARTS];
    double sums[UPDATE_WARPS];
    const float *watched[WATCHED_AHEAD];
    float fix[2]; /* 1 / (1 - beta^step) */
    bool held, norm_counts;
};

/* ---- the norm ---- */

__device__ inline void fetch_parts(const update_norm &w, int first, job_part *to) {
    const int i = (int)threadIdx.x;
    if (i < NORM_PARTS && first + i < w.n) to[i] = w.parts[first + i];
}

/* Numbers of the parts from `first` on, a warp's of every eighth; each lane finds its own. */
__device__ inline void ask_for_numbers(int n, const job_part *parts, float *to) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
    for (int k = (int)threadIdx.x / 32; k < n; k += UPDATE_WARPS) {
        const job_part part = parts[k];
#pragma unroll
        for (uint32_t i = lane; i < JOB_PIECE; i += 32)
            copy_4(to + k * JOB_PIECE + i, part.at + (i < part.n ? i : 0), i < part.n ? 4 : 0);
    }
    copies_commit();
}

__device__ inline double add_numbers(int n, const job_part *parts, const float *from) {
    const uint32_t lane = threadIdx.x % 32;
    double sum = 0;
    copies_wait<0>();
#pragma unroll 1
    for (int k = (int)threadIdx.x / 32; k < n; k += UPDATE_WARPS) {
        const bool squares = parts[k].squares != 0;
#pragma unroll
        for (uint32_t i = lane; i < JOB_PIECE; i += 32)
            sum += square_if(squares, from[k * JOB_PIECE + i]);
    }
    return sum;
}

/* This thread's share; the first parts have been fetched, and their numbers asked for. */
__device__ inline double add_parts(const update_norm &w, job_part *parts, float *numbers) {
    double sum = 0;
#pragma unroll 1
    for (int first = 0; first < w.n; first += NORM_PARTS) {
        const int n = w.n - first < NORM_PARTS ? w.n - first : (int)NORM_PARTS;
        if (first > 0) {
            __syncthreads(); /* all are done with those before */
            fetch_parts(w, first, parts);
            __syncthreads();
            ask_for_numbers(n, parts, numbers);
        }
        sum += add_numbers(n, parts, numbers);
    }
    return sum;
}

/* What it clips to, asked for in good time. */
struct limits {
    float limit, most;
    __device__ explicit limits(const update_norm &w)
        : limit(w.factor ? *w.limit : 0.0f), most(w.factor ? *w.most : 0.0f) {}
};

/* What clipping makes of the sum; and all of it is put where others find it. */
__device__ inline float put_norm(const update_norm &w, float sum, const limits &l, float *norm) {
    const job none = {};
    *norm = unary(none, N2_OP_sqrt, 0, 0, sum);
    if (threadIdx.x == 0) *w.sum = sum, *w.norm = *norm;
    if (!w.factor) return 1;
    const float shifted = unary(none, N2_OP_affine, w.a, w.b, *norm);
    const float ratio = binary(N2_OP_div, 0, l.limit, shifted);
    const float factor = binary(N2_OP_minimum, 0, l.most, ratio);
    if (threadIdx.x == 0) *w.shifted = shifted, *w.ratio = ratio, *w.factor = factor;
    return factor;
}

/* A barrier; behind it the same on all threads. mine: what this one has of the sum. */
__device__ inline float clip(const update_norm &w, update_memory &m, double mine, const limits &l,
                             float *norm) {
    double sum = 0;
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) m.sums[threadIdx.x / 32] = mine;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < UPDATE_WARPS; k++) sum += m.sums[k];
    return w.n > 0 ? put_norm(w, (float)sum, l, norm) : 1.0f;
}

/* ---- Adam ---- */

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

/* Of the last warp: whether something that was not finite holds the update back, but for the norm,
 * which is not there yet: then norm_counts. What a lane looks at is asked for in good time. */
struct guard {
    const float *at;
    float number;
    bool held;

    __device__ guard(const job &j, const float *norm, const update_memory &memory) {
        const uint32_t k = threadIdx.x % 32;
        at = threadIdx.x < JOB_THREADS - 32 || k >= j.guards ? NULL : memory.watched[k];
        number = at && at != norm ? *at : 0.0f;
        held = (j.state->frozen != 0) | (j.state->bad != 0);
    }
    __device__ void tell(const job &j, const float *norm, update_memory &memory) const {
        if (threadIdx.x < JOB_THREADS - 32) return;
        bool bad = held || !isfinite(number);
#pragma unroll 1
        for (uint32_t k = 32 + threadIdx.x % 32; k < j.guards; k += 32) /* hardly ever */
            bad |= !isfinite(*watched_of(j.state)[k]);
        const bool any = __ballot_sync(0xffffffffu, bad) != 0;
        const bool counts = __ballot_sync(0xffffffffu, at && at == norm) != 0;
        if (threadIdx.x % 32 == 0) memory.held = any, memory.norm_counts = counts;
    }
};

/* Eight numbers of a row, those that there are; the others are 0. */
__device__ inline void load_eight(float x[8], const float *from, uint32_t left, bool vec4) {
    if (vec4) {
        const float4 none = {0, 0, 0, 0};
        const float4 a = left > 0 ? *(const float4 *)from : none;
        const float4 b = left > 4 ? *(const float4 *)(from + 4) : none;
        x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
        x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
        return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 8; k++) x[k] = k < left ? from[k] : 0.0f;
}
__device__ inline void store_eight(float *to, const float x[8], uint32_t left, bool vec4) {
    if (vec4) {
        if (left > 0) *(float4 *)to = float4{x[0], x[1], x[2], x[3]};
        if (left > 4) *(float4 *)(to + 4) = float4{x[4], x[5], x[6], x[7]};
        return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 8; k++)
        if (k < left) to[k] = x[k];
}

/* in: gradient, rate, factor on the gradient, number of the step. f: betas, eps, decay. */
struct adam_block {
    enum { EACH = PACK_EACH };
    const job &j;
    uint32_t block; /* of its part */
    const job_update::update_part &part;
    uint32_t at, gradient_at, left; /* this thread's numbers: the first; how many */
    float p[EACH], m[EACH], v[EACH], rate, power;

    __device__ adam_block(const job &update, uint32_t number)
        : j(update), block(number % j.update.blocks),
          part(j.update.part[number / j.update.blocks]) {
        const uint32_t column = threadIdx.x % PACK_ROW_THREADS * EACH;
        const uint32_t row = block * PACK_ROWS + threadIdx.x / PACK_ROW_THREADS;
        at = row * j.update.stride + part.column + column;
        gradient_at = row * part.step + column;
        left = column < part.width ? part.width - column : 0;
        const uint32_t all = at < (uint32_t)j.n ? (uint32_t)j.n - at : 0;
        left = all < left ? all : left;
    }

    /* What the step before left. */
    __device__ void load(float *fix) {
        load_eight(p, j.out + at, left, part.vec4);
        load_eight(m, j.more[0] + at, left, part.vec4);
        load_eight(v, j.more[1] + at, left, part.vec4);
        rate = *j.in[1];
        power = 1;
        const float *packed = part.packed ? part.packed : part.transposed;
        if (packed) power = inverse_power(packed[(j.strict ? 2 : 1) * PACKED_FLOATS + MLP_WIDTH]);
        if (threadIdx.x < 2) fix[threadIdx.x] = bias_fix(j.f[threadIdx.x], *j.in[3]);
    }

    __device__ void change(const float g[EACH], float factor, const float *fix) {
        const float b1 = (float)j.f[0], b2 = (float)j.f[1];
        const float c1 = (float)(1 - j.f[0]), c2 = (float)(1 - j.f[1]);
        const float eps = (float)j.f[2], decay = (float)j.f[3], fix1 = fix[0], fix2 = fix[1];
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const float x = g[k] * factor;
            m[k] = b1 * m[k] + c1 * x;
            v[k] = b2 * v[k] + c2 * x * x;
            const float size = quick_root(v[k] * fix2) + eps;
            p[k] -= rate * (quick_quotient(m[k] * fix1, size) + decay * p[k]);
        }
    }

    __device__ void store() const {
        store_eight(j.out + at, p, left, part.vec4);
        store_eight(j.more[0] + at, m, left, part.vec4);
        store_eight(j.more[1] + at, v, left, part.vec4);
        if (j.more[2]) store_eight(j.more[2] + at, p, left, false);
    }

    /* Weights that have grown beyond what fp16 holds are cut off, until the power is chosen
     * anew. */
    __device__ void store_packed(float *shared) {
        const float most = 65504;
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const float x = k < left ? p[k] * power : 0.0f;
            p[k] = x > most ? most : x < -most ? -most : x;
        }
        put_packed(p, j.strict, block, shared, part.packed, part.transposed);
    }
};

__device__ inline void run_adam(const update_norm &w, update_memory &memory, float *shared,
                                uint32_t number, bool ahead) {
    const job &j = memory.mine;
    adam_block b(j, number);
    float g[adam_block::EACH], norm = 0;
    if (!ahead) grid_wait();
    b.load(memory.fix);
    if (ahead) grid_wait();
    grid_next();
    load_eight(g, b.part.gradient + b.gradient_at, b.left, b.part.vec4);
    ask_for_numbers(w.n < NORM_PARTS ? w.n : (int)NORM_PARTS, memory.parts, shared);
    const bool clips = w.factor && j.in[2] == w.factor;
    const float given = clips ? 1.0f : *j.in[2];
    const limits l(w);
    const guard watch(j, w.norm, memory);
    const double mine = add_parts(w, memory.parts, shared);
    watch.tell(j, w.norm, memory);
    const float clipped = clip(w, memory, mine, l, &norm);
    if (memory.held || (memory.norm_counts && !isfinite(norm))) return;
    b.change(g, clips ? clipped : given, memory.fix);
    b.store();
    if (b.part.packed || b.part.transposed) b.store_packed(shared);
}

/* What is updated without packed weights, or ends the run. */
__device__ static void run_others(const update_norm &w, update_memory &memory, float *shared,
                                  uint32_t block) {
    float norm;
    grid_wait();
    grid_next();
    ask_for_numbers(w.n < NORM_PARTS ? w.n : (int)NORM_PARTS, memory.parts, shared);
    const limits l(w);
    clip(w, memory, add_parts(w, memory.parts, shared), l, &norm);
    __syncthreads(); /* the norm is there */
    if (memory.mine.kind == JOB_ASSIGN)
        run_assign(memory.mine, block);
    else
        run_end(memory.mine);
}

__global__ void __launch_bounds__(JOB_THREADS, 2)
    run_updates(const __grid_constant__ job_list list, const __grid_constant__ update_norm norm,
                bool ahead) {
    __shared__ update_memory memory;
    GPU_SHARED(shared);
    fetch_parts(norm, 0, memory.parts);
    fetch_one(list, find_job(list)).put(&memory.mine);
    __syncthreads();
    const job &j = memory.mine;
    const uint32_t k = threadIdx.x % 32;
    if (threadIdx.x >= JOB_THREADS - 32 && k < j.guards)
        memory.watched[k] = watched_of(j.state)[k]; /* for the same thread */
    const uint32_t block = blockIdx.x - j.first_block;
    if (j.kind == JOB_ADAM)
        run_adam(norm, memory, (float *)shared, block, ahead);
    else
        run_others(norm, memory, (float *)shared, block);
}

cudaError_t n2_updates_prepare(bool apart) {
    return cudaFuncSetAttribute(run_updates, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                apart ? APART_SHARED : UPDATE_SHARED);
}

void n2_updates_launch(const job_list *list, const update_norm *norm, uint32_t blocks, bool ahead,
                       bool apart, cudaStream_t stream, bool early) {
    const job_list copy = *list;
    const update_norm copy_norm = *norm;
    const size_t shared = apart ? (size_t)APART_SHARED : (size_t)UPDATE_SHARED;
    GPU_LAUNCH(run_updates, blocks, JOB_THREADS, shared, stream, early, copy, copy_norm, ahead);
}
