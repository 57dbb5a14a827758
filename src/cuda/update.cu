/* The kernel of updates: update.h. */
#include "update.h"

#include "jobs_find.h"
#include "jobs_image.h"
#include "jobs_reduce.h"

enum {
    UPDATE_WARPS = JOB_THREADS / 32,
    NORM_PARTS = 8 * UPDATE_WARPS, /* whose numbers are on their way at once */
    NORM_FLOATS = NORM_PARTS * JOB_PIECE,
    UPDATE_SHARED = NORM_FLOATS * 4
};

/* What a block has in shared memory besides. */
struct update_memory {
    job mine;
    job_part parts[NORM_PARTS];
    double sums[UPDATE_WARPS];
    float fix[2]; /* 1 / (1 - beta^step) */
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

/* What clipping makes of the sum; and all of it is put where others find it. */
__device__ inline float put_norm(const update_norm &w, float sum, float limit, float most,
                                 float *norm) {
    const job none = {};
    *norm = unary(none, N2_OP_sqrt, 0, 0, sum);
    if (threadIdx.x == 0) *w.sum = sum, *w.norm = *norm;
    if (!w.factor) return 1;
    const float shifted = unary(none, N2_OP_affine, w.a, w.b, *norm);
    const float ratio = binary(N2_OP_div, 0, limit, shifted);
    const float factor = binary(N2_OP_minimum, 0, most, ratio);
    if (threadIdx.x == 0) *w.shifted = shifted, *w.ratio = ratio, *w.factor = factor;
    return factor;
}

/* A barrier; behind it the same on all threads. */
__device__ inline float clip(const update_norm &w, update_memory &m, float *numbers, float *norm) {
    const float limit = w.factor ? *w.limit : 0.0f, most = w.factor ? *w.most : 0.0f;
    const double mine = warp_sum(add_parts(w, m.parts, numbers));
    double sum = 0;
    if (threadIdx.x % 32 == 0) m.sums[threadIdx.x / 32] = mine;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < UPDATE_WARPS; k++) sum += m.sums[k];
    return w.n > 0 ? put_norm(w, (float)sum, limit, most, norm) : 1.0f;
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

/* Where number i of an update's gradient is: rows of m numbers at in[0], the others of
 * loops.length[0] at addend, if there is one. */
__device__ inline const float *gradient_at(const job &j, uint32_t i) {
    if (!j.addend) return j.in[0] + i;
    const job_divisor width = j.loops.length[0];
    const uint32_t m = (uint32_t)j.m, row = job_quotient(width, i), column = i - row * width.by;
    return column < m ? j.in[0] + (row * m + column)
                      : j.addend + (row * (width.by - m) + column - m);
}

/* As is_held_back, but for the norm, which is not there yet: *norm_counts. */
__device__ inline bool is_held(const job &j, const float *norm, bool *norm_counts) {
    bool held = (j.state->frozen != 0) | (j.state->bad != 0);
    *norm_counts = false;
#pragma unroll 1
    for (uint32_t k = 0; k < j.guards; k++) {
        const float *at = watched_of(j.state)[k];
        if (at == norm)
            *norm_counts = true;
        else
            held |= !isfinite(*at);
    }
    return held;
}

/* in: gradient, rate, factor on the gradient, number of the step. f: betas, eps, decay. */
struct adam_block {
    enum { EACH = IMAGE_EACH };
    const job &j;
    uint32_t block, which; /* of the image's; the image's */
    uint32_t first, step, end;
    float p[EACH], m[EACH], v[EACH], rate, power;

    __device__ adam_block(const job &update, uint32_t at) : j(update) {
        const uint32_t column = threadIdx.x % TOWER_WIDTH, above = threadIdx.x / TOWER_WIDTH;
        const uint32_t stride = j.update.stride;
        which = at / j.update.blocks;
        block = at - which * j.update.blocks;
        const auto &of = j.update.of[which];
        first = (block * IMAGE_SHARE + above) * stride + of.column + column;
        step = IMAGE_STEP * stride;
        end = column < of.width ? (uint32_t)j.n : 0;
    }

    __device__ bool has(uint32_t k) const { return first + k * step < end; }
    __device__ float get(const float *from, uint32_t k) const {
        return has(k) ? from[first + k * step] : 0.0f;
    }

    /* What the step before left. */
    __device__ void load(float *fix) {
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++)
            p[k] = get(j.out, k), m[k] = get(j.more[0], k), v[k] = get(j.more[1], k);
        rate = *j.in[1];
        power = 1;
        const float *image = j.update.of[which].image;
        if (!image) image = j.update.of[which].transposed;
        if (image) power = inverse_power(image[(j.strict ? 2 : 1) * IMAGE_FLOATS + TOWER_WIDTH]);
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
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint32_t i = first + k * step;
            if (i >= end) continue;
            j.out[i] = p[k], j.more[0][i] = m[k], j.more[1][i] = v[k];
            if (j.more[2]) j.more[2][i] = p[k];
        }
    }

    /* Weights that have grown beyond what halves hold are cut off, until the power is chosen
     * anew. */
    __device__ void store_images(float *shared) {
        const float most = 65504;
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const float x = has(k) ? p[k] * power : 0.0f;
            p[k] = x > most ? most : x < -most ? -most : x;
        }
        put_images(p, j.strict, block, shared, j.update.of[which].image,
                   j.update.of[which].transposed);
    }
};

__device__ inline void run_adam(const update_norm &w, update_memory &memory, float *shared,
                                uint32_t at, bool ahead) {
    const job &j = memory.mine;
    adam_block b(j, at);
    float g[adam_block::EACH], norm = 0;
    bool norm_counts;
    if (!ahead) grid_wait();
    b.load(memory.fix);
    if (ahead) grid_wait();
    ask_for_numbers(w.n < NORM_PARTS ? w.n : (int)NORM_PARTS, memory.parts, shared);
#pragma unroll
    for (uint32_t k = 0; k < adam_block::EACH; k++)
        g[k] = b.has(k) ? *gradient_at(j, b.first + k * b.step) : 0.0f;
    const float given = *j.in[2];
    const bool held = is_held(j, w.norm, &norm_counts);
    const float clipped = clip(w, memory, shared, &norm);
    if (held || (norm_counts && !isfinite(norm))) return;
    b.change(g, w.factor && j.in[2] == w.factor ? clipped : given, memory.fix);
    b.store();
    if (j.update.n_images > 0) b.store_images(shared);
}

/* What is updated without images, or ends the run. */
__device__ static void run_others(const update_norm &w, update_memory &memory, float *shared,
                                  uint32_t block) {
    float norm;
    grid_wait();
    ask_for_numbers(w.n < NORM_PARTS ? w.n : (int)NORM_PARTS, memory.parts, shared);
    clip(w, memory, shared, &norm);
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
    grid_next();
    fetch_parts(norm, 0, memory.parts);
    fetch_one(list, find_job(list)).put(&memory.mine);
    __syncthreads();
    const uint32_t block = blockIdx.x - memory.mine.first_block;
    if (memory.mine.kind == JOB_ADAM)
        run_adam(norm, memory, (float *)shared, block, ahead);
    else
        run_others(norm, memory, (float *)shared, block);
}

cudaError_t n2_updates_prepare() {
    return cudaFuncSetAttribute(run_updates, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                UPDATE_SHARED);
}

void n2_updates_launch(const job_list *list, const update_norm *norm, uint32_t blocks, bool ahead,
                       cudaStream_t stream, bool early) {
    const job_list copy = *list;
    const update_norm copy_norm = *norm;
    GPU_LAUNCH(run_updates, blocks, JOB_THREADS, UPDATE_SHARED, stream, early, copy, copy_norm,
               ahead);
}
