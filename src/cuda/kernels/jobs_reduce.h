/* Reductions, selection and scattering, in device code. Sums are taken in an order that
 * depends on the shapes only: the same bytes every time. */
#ifndef N2_CUDA_JOBS_REDUCE_H
#define N2_CUDA_JOBS_REDUCE_H

#include "jobs_elementwise.h"
#include "jobs_random.h"

/* ---- within a warp and a block ---- */

__device__ inline double warp_sum(double x) {
    for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* NaN wins. */
__device__ inline float larger(float x, float y) { return y > x || y != y ? y : x; }

__device__ inline float warp_max(float x) {
    for (int d = 16; d > 0; d /= 2) x = larger(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* To thread 0. */
__device__ inline double block_sum(double x, double *shared) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    for (int w = 0; threadIdx.x == 0 && w < JOB_THREADS / 32; w++) sum += shared[w];
    return sum;
}

/* ---- sums ---- */

/* What at(0), at(1) ... point to, as far as `n` goes: all are asked for before the first is used.
 * Beyond the end the first is read again: conditions would be more than a GPU keeps. */
template <int N, typename V, typename AT>
__device__ inline void load_some(V x[N], uint32_t n, AT at) {
    if (n == 0) {
#pragma unroll
        for (uint32_t k = 0; k < N; k++) x[k] = V{};
        return;
    }
#pragma unroll
    for (uint32_t k = 0; k < N; k++) x[k] = *(const V *)at(k < n ? k : 0);
#pragma unroll
    for (uint32_t k = 1; k < N; k++)
        if (k >= n) x[k] = V{};
}

/* How many of first, first + step ... are below `end`. */
__device__ inline uint32_t steps_to(uint32_t first, uint32_t end, uint32_t step) {
    return first < end ? (end - first + step - 1) / step : 0;
}

__device__ inline float put_sum(const job &j, float *out, double sum) {
    return *out = (float)(j.add ? (double)*out + sum : sum);
}

__device__ inline double square_if(bool squares, float x) {
    return (double)x * (squares ? (double)x : 1.0);
}

/* Runs of n numbers in k chunks each; out has a number per chunk. The second run may lie
 * elsewhere. */
GPU_JOB void run_sum_chunks(const job &j, float *shared, uint32_t block) {
    enum { EACH = JOB_CHUNK / JOB_THREADS };
    const uint32_t run = block / (uint32_t)j.k, n = (uint32_t)j.n;
    const uint32_t first = (block - run * (uint32_t)j.k) * JOB_CHUNK + threadIdx.x;
    const float *in = (run && j.in[1] ? j.in[1] : j.in[0] + (int64_t)run * n) + first;
    float x[EACH];
    double sum = 0;
    load_some<EACH>(x, steps_to(first, n, JOB_THREADS),
                    [&](uint32_t k) { return in + k * JOB_THREADS; });
#pragma unroll
    for (int k = 0; k < EACH; k++) sum += square_if(j.squares != 0, x[k]);
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) put_sum(j, j.out + block, sum);
}

/* A warp takes each eighth of the k parts, of JOB_PIECE numbers at most. Where they are is fetched
 * by all threads together, and so are the numbers. */
GPU_JOB void run_sum_list(const job &j, float *shared) {
    enum { PARTS = 8, EACH = JOB_PIECE / 32, WARPS = JOB_THREADS / 32, AT_ONCE = PARTS * WARPS };
    const job_part *parts = (const job_part *)j.in[0];
    job_part *here = (job_part *)shared;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = (uint32_t)j.k;
    double sum = 0;
#pragma unroll 1
    for (uint32_t first = 0; first < n; first += AT_ONCE) {
        __syncthreads();
        if (threadIdx.x < AT_ONCE) {
            const uint32_t i = first + threadIdx.x;
            here[threadIdx.x] = i < n ? parts[i] : job_part{(const float *)parts, 0, 0};
        }
        __syncthreads();
        float x[PARTS][EACH];
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++) {
            const job_part &part = here[k * WARPS + warp];
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++)
                x[k][i] = part.at[lane + i * 32 < part.n ? lane + i * 32 : 0];
        }
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++) {
            const job_part &part = here[k * WARPS + warp];
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++)
                sum += square_if(part.squares != 0, lane + i * 32 < part.n ? x[k][i] : 0.0f);
        }
    }
    __syncthreads();
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) *j.out = (float)sum;
}

/* [. x n x m] in k slices of n; out is [. x k x m]. A block has 32 columns, a warp each
 * eighth row. */
GPU_JOB void run_sum_columns(const job &j, float *shared, uint32_t block) {
    enum { WARPS = JOB_THREADS / 32, AT_ONCE = 8 };
    const uint32_t m = (uint32_t)j.m, n = (uint32_t)j.n, strips = (m + 31) / 32;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t above = block / strips, column = (block - above * strips) * 32 + lane;
    const uint32_t outer = above / (uint32_t)j.k, slice = above - outer * (uint32_t)j.k;
    const uint32_t begin = slice * JOB_SLICE + warp;
    const uint32_t end = n - slice * JOB_SLICE < JOB_SLICE ? n : (slice + 1) * JOB_SLICE;
    const float *in = j.in[0] + (int64_t)outer * n * m + column;
    double sum = 0, *part = (double *)shared;
#pragma unroll 1
    for (uint32_t r = begin; r < end && column < m; r += AT_ONCE * WARPS) {
        float x[AT_ONCE];
        load_some<AT_ONCE>(x, steps_to(r, end, WARPS),
                           [&](uint32_t k) { return in + (int64_t)(r + k * WARPS) * m; });
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) sum += (double)x[k];
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || column >= m) return;
#pragma unroll
    for (int w = 1; w < WARPS; w++) sum += part[w * 32 + lane];
    put_sum(j, j.out + (int64_t)above * m + column, sum);
}

/* Four columns of n rows of m numbers, which are added in their order. Returns the sum of the
 * squares of what is put there. */
__device__ inline double sum_slices(const job &j, int64_t column) {
    enum { AT_ONCE = 8 };
    const int64_t m = j.m;
    const uint32_t rows = (uint32_t)j.n;
    const float *in = j.in[0] + column;
    float *out = j.out + column;
    double sum[4] = {0, 0, 0, 0}, squares = 0;
    if (column >= m) return 0;
    if (m % 4 != 0) {
#pragma unroll 1
        for (int i = 0; i < 4 && column + i < m; i++) {
#pragma unroll 4
            for (uint32_t r = 0; r < rows; r++) sum[0] += (double)in[r * m + i];
            squares += square_if(true, put_sum(j, out + i, sum[0]));
            sum[0] = 0;
        }
        return squares;
    }
    float before[4];
#pragma unroll
    for (int i = 0; i < 4; i++) before[i] = j.add ? out[i] : 0.0f;
#pragma unroll 1
    for (uint32_t first = 0; first < rows; first += AT_ONCE) {
        float4 x[AT_ONCE];
        load_some<AT_ONCE>(x, rows - first, [&](uint32_t k) { return in + (first + k) * m; });
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            sum[0] += (double)x[k].x, sum[1] += (double)x[k].y;
            sum[2] += (double)x[k].z, sum[3] += (double)x[k].w;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out[i] = (float)((double)before[i] + sum[i]);
        squares += square_if(true, (float)((double)before[i] + sum[i]));
    }
    return squares;
}

GPU_JOB void run_sum_slices(const job &j, float *shared, uint32_t block) {
    double squares = sum_slices(j, ((int64_t)block * JOB_THREADS + threadIdx.x) * 4);
    if (!j.squares) return;
    squares = block_sum(squares, (double *)shared);
    if (threadIdx.x == 0) j.more[0][block] = (float)squares;
}

__device__ inline void put_reduced(const job &j, int64_t i, double sum, float top) {
    if (j.op == N2_OP_amax)
        j.out[i] = top;
    else
        j.out[i] = (float)(j.add ? (double)j.out[i] + sum : sum);
}

/* n numbers, each from k others: `loops` says where they begin, `inner` where they are. */
GPU_JOB void run_reduce(const job &j, uint32_t block) {
    const int64_t i = (int64_t)block * JOB_ROWS + threadIdx.x / 32;
    if (i >= j.n) return; /* a whole warp */
    const float *in = j.in[0] + operand_offset(j.loops, 0, (uint32_t)i);
    double sum = 0;
    float top = -INFINITY;
    for (int64_t r = threadIdx.x % 32; r < j.k; r += 32) {
        const float x = in[operand_offset(j.inner, 0, (uint32_t)r)];
        sum += (double)x;
        top = larger(top, x);
    }
    sum = warp_sum(sum);
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) put_reduced(j, i, sum, top);
}

GPU_JOB void run_reduce_few(const job &j, uint32_t block) {
    const int64_t i = (int64_t)block * JOB_THREADS + threadIdx.x;
    if (i >= j.n) return;
    const float *in = j.in[0] + operand_offset(j.loops, 0, (uint32_t)i);
    double sum = 0;
    float top = -INFINITY;
#pragma unroll 1
    for (uint32_t r = 0; r < j.k; r++) {
        const float x = in[operand_offset(j.inner, 0, r)];
        sum += (double)x;
        top = larger(top, x);
    }
    put_reduced(j, i, sum, top);
}

/* ---- small products ---- */

/* [rows x SMALL_M] of a, from row `begin` and column `column` on, to shared memory, in the
 * background; zeros beyond its columns. */
__device__ inline void stage_a(const job &j, uint32_t begin, uint32_t rows, uint32_t column,
                               float *to) {
    const uint32_t m = (uint32_t)j.product.m, here = column + threadIdx.x % SMALL_M;
    const float *a = j.in[0] + (int64_t)begin * m + (here < m ? here : 0);
#pragma unroll 2
    for (uint32_t i = threadIdx.x; i < rows * SMALL_M; i += JOB_THREADS)
        copy_4(to + i, a + (int64_t)(i / SMALL_M) * m, here < m ? 4 : 0);
    copies_commit();
}

/* Sums of the warps' shares, in their order. */
__device__ inline float finish_small(const job &j, const float *part, uint32_t row, uint32_t column,
                                     float *out) {
    const uint32_t m = (uint32_t)j.product.m, n = (uint32_t)j.product.n;
    float sum = 0;
    row += threadIdx.x / SMALL_N, column += threadIdx.x % SMALL_N;
    if (threadIdx.x >= SMALL_M * SMALL_N || row >= m || column >= n) return 0;
#pragma unroll
    for (int w = 0; w < JOB_THREADS / 32; w++) sum += part[w * SMALL_M * SMALL_N + threadIdx.x];
    out += (int64_t)row * n + column;
    return *out = j.add ? *out + sum : sum;
}

/* A weight's gradient from few rows, or with few rows itself: tensor cores would be quicker to
 * multiply, but not to be fed. A block has SMALL_M x SMALL_N of the output for a slice of k, a warp
 * every eighth row of it. */
GPU_JOB void run_small(const job &j, float *shared, uint32_t block) {
    enum { AT_ONCE = 16, WARPS = JOB_THREADS / 32 };
    const uint32_t m = (uint32_t)j.product.m, n = (uint32_t)j.product.n;
    const uint32_t strips = (n + SMALL_N - 1) / SMALL_N, rows = (m + SMALL_M - 1) / SMALL_M;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t above = block / strips, column = (block - above * strips) * SMALL_N;
    const uint32_t slice = above / rows, row = (above - slice * rows) * SMALL_M;
    const uint32_t most = (uint32_t)j.product.slice_k, begin = slice * most;
    const uint32_t left = (uint32_t)j.product.k - begin, length = left < most ? left : most;
    const float *b = j.in[1] + (int64_t)begin * n + (column + lane < n ? column + lane : 0);
    float sum[SMALL_M] = {};
    stage_a(j, begin, length, row, shared);
#pragma unroll 1
    for (uint32_t first = 0; first < length; first += WARPS * AT_ONCE) {
        float x[AT_ONCE];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) { /* what is beyond the end is not used */
            const uint32_t at = first + warp + i * WARPS;
            x[i] = b[(int64_t)(at < length ? at : 0) * n];
        }
        copies_wait<0>();
        if (first == 0) __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const uint32_t at = first + warp + i * WARPS;
            if (at >= length) break;
            const float4 a = *(const float4 *)(shared + at * SMALL_M);
            sum[0] += a.x * x[i], sum[1] += a.y * x[i];
            sum[2] += a.z * x[i], sum[3] += a.w * x[i];
        }
    }
    __syncthreads();
    for (int r = 0; r < SMALL_M; r++) shared[(warp * SMALL_M + r) * SMALL_N + lane] = sum[r];
    __syncthreads();
    const float x = finish_small(j, shared, row, column, j.out + (int64_t)slice * m * n);
    if (!j.squares) return;
    __syncthreads();
    const double squares = block_sum(square_if(true, x), (double *)shared);
    if (threadIdx.x == 0) j.more[0][block] = (float)squares;
}

/* ---- narrow products ---- */

/* A warp per row of the output, at most a few columns. */
GPU_JOB void run_narrow(const job &j, uint32_t block) {
    const job_product &p = j.product;
    const int64_t row = (int64_t)block * JOB_ROWS + threadIdx.x / 32;
    if (row >= p.m) return;
    for (int64_t c = 0; c < p.n; c++) {
        double sum = 0;
        for (int64_t l = threadIdx.x % 32; l < p.k; l += 32)
            sum += (double)(j.in[0][row * p.k + l] * j.in[1][p.tb ? c * p.k + l : l * p.n + c]);
        sum = warp_sum(sum);
        if (threadIdx.x % 32) continue;
        const int64_t at = row * p.n + c;
        float v = (float)sum;
        if (j.in[3]) v += j.in[3][c];
        if (j.add) v += j.out[at];
        if (j.gate) v = j.gate[at] > 0.0f ? v : j.slope * v;
        if (j.addend) v += j.addend[at];
        j.out[at] = v;
    }
}

/* ---- median ---- */

/* Keys are ordered as the numbers are. */
__device__ inline uint32_t sort_key(float x) {
    const uint32_t bits = __float_as_uint(x);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
__device__ inline float from_key(uint32_t key) {
    return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}

/* f(key) for every number; many are on their way at once. */
template <typename F> __device__ inline void each_key(const job &j, F f) {
    const uint32_t side = (uint32_t)j.m; /* > 0: above the diagonal of a square only */
    const uint32_t n = (uint32_t)j.n;
    const float *in = j.in[0];
    enum { AT_ONCE = 16 };
    for (uint32_t first = threadIdx.x; first < n; first += AT_ONCE * JOB_THREADS) {
        float x[AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            const uint32_t i = first + k * JOB_THREADS;
            x[k] = in[i < n ? i : 0];
        }
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            const uint32_t i = first + k * JOB_THREADS;
            if (i < n && !(side && i % side <= i / side)) f(sort_key(x[k]));
        }
    }
}

/* Counts keys that begin with `prefix` (under `mask`) by their next bits. */
__device__ inline void count_keys(const job &j, uint32_t prefix, uint32_t mask, int shift,
                                  uint32_t bins, uint32_t *count) {
    for (uint32_t i = threadIdx.x; i < bins; i += JOB_THREADS) count[i] = 0;
    __syncthreads();
    each_key(j, [&](uint32_t key) {
        if ((key & mask) == prefix) atomicAdd(&count[key >> shift & (bins - 1)], 1u);
    });
    __syncthreads();
}

/* The bin that holds the k-th; *k becomes its place there. Threads have 8 bins each at most,
 * whose sums are scanned by thread 0. */
__device__ inline uint32_t find_bin(uint32_t bins, uint32_t *count, uint32_t *sums, uint32_t *k) {
    const uint32_t each = bins / JOB_THREADS, first = threadIdx.x * each;
    uint32_t sum = 0;
    for (uint32_t i = first; i < first + each; i++) sum += count[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t left = *k, t = 0;
        while (t < JOB_THREADS - 1 && left >= sums[t]) left -= sums[t++];
        uint32_t bin = t * each;
        while (bin < t * each + each - 1 && left >= count[bin]) left -= count[bin++];
        sums[JOB_THREADS] = bin;
        sums[JOB_THREADS + 1] = left;
    }
    __syncthreads();
    *k = sums[JOB_THREADS + 1];
    return sums[JOB_THREADS];
}

/* The k-th smallest, by 11, 11 and 10 bits. */
__device__ inline float select_number(const job &j, uint32_t k, uint32_t *shared) {
    uint32_t prefix = 0, mask = 0, *sums = shared + 2048;
    for (int pass = 0; pass < 3; pass++) {
        const int shift = pass == 0 ? 21 : pass == 1 ? 10 : 0;
        const uint32_t bins = pass < 2 ? 2048 : 1024;
        count_keys(j, prefix, mask, shift, bins, shared);
        prefix |= find_bin(bins, shared, sums, &k) << shift;
        mask |= (bins - 1) << shift;
        __syncthreads();
    }
    return from_key(prefix);
}

/* The number before `upper`, which is the k-th, in order: itself if it occurs often enough. */
__device__ inline float number_before(const job &j, float upper, uint32_t k, uint32_t *shared) {
    const uint32_t limit = sort_key(upper);
    if (threadIdx.x < 2) shared[threadIdx.x] = 0;
    __syncthreads();
    uint32_t below = 0, largest = 0;
    each_key(j, [&](uint32_t key) {
        if (key >= limit) return;
        below++;
        largest = key > largest ? key : largest;
    });
    atomicAdd(&shared[0], below);
    atomicMax(&shared[1], largest);
    __syncthreads();
    return shared[0] < k ? upper : from_key(shared[1]);
}

/* n: elements to look at; m: side of the square, 0: all elements; k: how many count. */
GPU_JOB void run_median(const job &j, float *shared) {
    uint32_t *memory = (uint32_t *)shared;
    const uint32_t n = (uint32_t)j.k;
    if (n == 0) {
        if (threadIdx.x == 0) *j.out = NAN;
        return;
    }
    const float upper = select_number(j, n / 2, memory);
    const float lower = n % 2 ? upper : number_before(j, upper, n / 2, memory);
    if (threadIdx.x == 0) *j.out = n % 2 ? upper : (float)(((double)lower + (double)upper) / 2);
}

/* ---- random numbers ---- */

/* n elements of the stream from k on; a thread has a counter, which makes four of them. */
GPU_JOB void run_random(const job &j, uint32_t block) {
    const uint64_t first = (uint64_t)j.k, group0 = first / 64;
    const uint64_t c = (uint64_t)block * JOB_THREADS + threadIdx.x, l = c % 16;
    uint32_t w[4];
    float x[4];
    draw_words(j.state, j.stream, group0 * 16 + c, w);
    if (j.op == N2_OP_normal) {
        box_muller(w[0], w[1], &x[0], &x[1]);
        box_muller(w[2], w[3], &x[2], &x[3]);
    }
    for (int i = 0; i < 4; i++) {
        const uint64_t e = (group0 + c / 16) * 64 + 16 * (uint64_t)i + l;
        if (e < first || e >= first + (uint64_t)j.n) continue;
        if (j.op != N2_OP_normal) x[i] = open_uniform(w[i]);
        if (j.op == N2_OP_integer)
            x[i] = fminf(floorf(__fmul_rn(x[i], (float)j.m)), (float)j.m - 1.0f);
        j.out[e - first] = x[i];
    }
}

/* Fisher and Yates: one thread swaps, in shared memory if it fits. */
GPU_JOB void run_permutation(const job &j, float *shared) {
    const bool fits = j.n * 4 <= JOB_SHARED_SMALL;
    float *x = fits ? shared : j.out;
    for (int64_t i = threadIdx.x; i < j.n; i += JOB_THREADS) x[i] = (float)i;
    __syncthreads();
    for (int64_t i = j.n - 1; threadIdx.x == 0 && i > 0; i--) {
        const float u = draw_uniform(j.state, j.stream, (uint64_t)i);
        const int64_t at = (int64_t)fminf(floorf(__fmul_rn(u, (float)(i + 1))), (float)i);
        const float swap = x[i];
        x[i] = x[at];
        x[at] = swap;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; fits && i < j.n; i += JOB_THREADS) j.out[i] = x[i];
}

/* ---- scattering ---- */

/* Which of so many rows go to row `mine` of the table, in their order; returns how many. For a
 * warp. */
__device__ inline uint32_t list_rows(const uint8_t *row, uint32_t rows, uint32_t mine,
                                     uint16_t *list) {
    const uint32_t lane = threadIdx.x % 32, before = (1u << lane) - 1;
    uint32_t found = 0;
    __syncwarp();
#pragma unroll 4
    for (uint32_t i = lane; i - lane < rows; i += 32) {
        const bool here = i < rows && row[i] == mine;
        const uint32_t all = __ballot_sync(0xffffffffu, here);
        if (here) list[found + (uint32_t)__popc(all & before)] = (uint16_t)i;
        found += (uint32_t)__popc(all);
    }
    __syncwarp();
    return found;
}

/* out[index[i]] += x[i] for a slice of the n rows x; a table of k rows of m numbers per slice. To
 * the last slice go those of a second source too, in[2] and in[3]. A warp has a row of the table,
 * SCATTER_COLUMNS of it, and adds up only what goes there: everything is read once. Lanes of the
 * same column take turns. loops.length[0]: rows of a slice; loops.length[1]: of the second
 * source. */
GPU_JOB void run_scatter(const job &j, float *shared, uint32_t block) {
    enum { AT_ONCE = 16, TURNS = 32 / SCATTER_COLUMNS };
    const uint32_t m = (uint32_t)j.m, k = (uint32_t)j.k, slice_rows = j.loops.length[0].by;
    const uint32_t strips = (m + SCATTER_COLUMNS - 1) / SCATTER_COLUMNS;
    const uint32_t groups = (k + JOB_ROWS - 1) / JOB_ROWS, warp = threadIdx.x / 32;
    const uint32_t lane = threadIdx.x % SCATTER_COLUMNS, turn = threadIdx.x % 32 / SCATTER_COLUMNS;
    const uint32_t above = block / strips;
    const uint32_t column = (block - above * strips) * SCATTER_COLUMNS + lane;
    const uint32_t slice = above / groups, table = (above - slice * groups) * JOB_ROWS;
    const int64_t begin = (int64_t)slice * slice_rows, left = j.n - begin;
    const uint32_t rows = left < slice_rows ? (uint32_t)left : slice_rows;
    const uint32_t more = left <= slice_rows ? j.loops.length[1].by : 0;
    const uint32_t row_bytes = m * sizeof(float); /* so that an address is one instruction */
    uint8_t *row = (uint8_t *)shared;             /* as of `table`, 255: not ours */
    uint16_t *list = (uint16_t *)shared + (1 + warp) * JOB_DROPS;
    for (uint32_t i = threadIdx.x; i < rows + more; i += JOB_THREADS) {
        const float *index = i < rows ? j.in[1] + begin + i : j.in[3] + (i - rows);
        const uint32_t at = row_number(*index, k) - table;
        row[i] = (uint8_t)(at < JOB_ROWS ? at : 255);
    }
    __syncthreads();
    const bool at_once = rows + more <= JOB_DROPS; /* a list has room for both sources */
    const char *second = (const char *)(j.in[2] + column) - (uint64_t)rows * row_bytes;
    double sum = 0;
#pragma unroll 1
    for (int source = 0; source < (more && !at_once ? 2 : 1); source++) {
        const uint32_t listed = source ? more : at_once ? rows + more : rows;
        const uint32_t n = list_rows(source ? row + rows : row, listed, warp, list);
        const uint32_t end = source ? 0 : rows; /* of the first source's */
        const char *x = (const char *)(j.in[0] + begin * m + column);
        const char *others = source ? (const char *)(j.in[2] + column) : second;
#pragma unroll 1
        for (uint32_t first = turn; first < n && column < m; first += AT_ONCE * TURNS) {
            float v[AT_ONCE];
            load_some<AT_ONCE>(v, steps_to(first, n, TURNS), [&](uint32_t i) {
                const uint32_t at = list[first + i * TURNS];
                return (at < end ? x : others) + (uint64_t)at * row_bytes;
            });
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; i++) sum += (double)v[i];
        }
    }
    for (int d = SCATTER_COLUMNS; d < 32; d *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (table + warp < k && column < m && turn == 0)
        put_sum(j, j.out + ((int64_t)slice * k + table + warp) * m + column, sum);
}

#endif
