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

/* Runs of n numbers in k chunks each; out has a number per chunk. */
GPU_JOB void run_sum_chunks(const job &j, float *shared, uint32_t block) {
    const int64_t run = block / j.k, begin = block % j.k * JOB_CHUNK;
    const int64_t end = begin + JOB_CHUNK < j.n ? begin + JOB_CHUNK : j.n;
    const float *in = j.in[0] + run * j.n;
    double sum = 0;
#pragma unroll 8
    for (int64_t i = begin + threadIdx.x; i < end; i += JOB_THREADS) {
        const double x = (double)in[i];
        sum += j.squares ? x * x : x;
    }
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) j.out[block] = (float)(j.add ? (double)j.out[block] + sum : sum);
}

/* A warp takes each eighth of the k parts. The first of a lane, mostly the only one, are on their
 * way together. */
GPU_JOB void run_sum_list(const job &j, float *shared) {
    enum { AT_ONCE = 8 };
    const job_part *parts = (const job_part *)j.in[0];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = JOB_THREADS / 32;
    double sum = 0;
    for (int64_t first = warp; first < j.k; first += warps * AT_ONCE) {
        job_part part[AT_ONCE];
        float x[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int64_t at = first + k * warps;
            part[k] = at < j.k ? parts[at] : job_part{NULL, 0, 0};
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) x[k] = lane < part[k].n ? part[k].at[lane] : 0.0f;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            sum += part[k].squares ? (double)x[k] * (double)x[k] : (double)x[k];
            for (int64_t i = lane + 32; i < part[k].n; i += 32) {
                const double more = (double)part[k].at[i];
                sum += part[k].squares ? more * more : more;
            }
        }
    }
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) *j.out = (float)sum;
}

/* [. x n x m] in k slices of n; out is [. x k x m]. A block has 32 columns, a warp each
 * eighth row. */
GPU_JOB void run_sum_columns(const job &j, float *shared, uint32_t block) {
    const uint32_t stretches = (uint32_t)((j.m + 31) / 32);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t column = block % stretches * 32 + lane;
    const int64_t slice = block / stretches % j.k, outer = block / stretches / j.k;
    const int64_t begin = slice * JOB_SLICE;
    const int64_t end = begin + JOB_SLICE < j.n ? begin + JOB_SLICE : j.n;
    double sum = 0, *part = (double *)shared;
#pragma unroll 8
    for (int64_t r = begin + warp; r < end && column < j.m; r += JOB_THREADS / 32)
        sum += (double)j.in[0][(outer * j.n + r) * j.m + column];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || column >= j.m) return;
    for (int w = 1; w < JOB_THREADS / 32; w++) sum += part[w * 32 + lane];
    float *out = &j.out[(outer * j.k + slice) * j.m + column];
    *out = (float)(j.add ? (double)*out + sum : sum);
}

/* n rows of m numbers, which are added in their order: many loads are on their way at once. */
GPU_JOB void run_sum_slices(const job &j, uint32_t block) {
    const int64_t column = ((int64_t)block * JOB_THREADS + threadIdx.x) * 4;
    if (column >= j.m) return;
    const float *in = j.in[0] + column;
    const int64_t rows = j.n, m = j.m;
    double sum[4] = {0, 0, 0, 0};
    if (m % 4 == 0) {
#pragma unroll 16
        for (int64_t r = 0; r < rows; r++) {
            const float4 x = *(const float4 *)(in + r * m);
            sum[0] += (double)x.x, sum[1] += (double)x.y;
            sum[2] += (double)x.z, sum[3] += (double)x.w;
        }
    } else {
        for (int64_t r = 0; r < j.n; r++)
            for (int i = 0; i < 4 && column + i < j.m; i++) sum[i] += (double)in[r * j.m + i];
    }
    for (int i = 0; i < 4 && column + i < j.m; i++) {
        float *out = j.out + column + i;
        *out = (float)(j.add ? (double)*out + sum[i] : sum[i]);
    }
}

/* n numbers, each from k others: `loops` says where they begin, `inner` where they are. */
GPU_JOB void run_reduce(const job &j, uint32_t block) {
    const int64_t i = (int64_t)block * JOB_ROWS + threadIdx.x / 32;
    if (i >= j.n) return; /* a whole warp */
    const float *in = j.in[0] + place(j.loops, 0, (uint32_t)i);
    double sum = 0;
    float top = -INFINITY;
    for (int64_t r = threadIdx.x % 32; r < j.k; r += 32) {
        const float x = in[place(j.inner, 0, (uint32_t)r)];
        sum += (double)x;
        top = larger(top, x);
    }
    sum = warp_sum(sum);
    top = warp_max(top);
    if (threadIdx.x % 32) return;
    if (j.op == N2_OP_amax)
        j.out[i] = top;
    else
        j.out[i] = (float)(j.add ? (double)j.out[i] + sum : sum);
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

/* out[index[i]] += x[i] for a slice of the n rows x; a table of k rows of m numbers per slice.
 * Every number of the table is looked after by one thread, which takes the rows in their order;
 * a block has JOB_THREADS numbers of one table. */
GPU_JOB void run_scatter(const job &j, float *shared, uint32_t block) {
    int *row = (int *)shared;
    const int64_t size = j.k * j.m, parts = (size + JOB_THREADS - 1) / JOB_THREADS;
    const int64_t slice = block / parts, o = block % parts * JOB_THREADS + threadIdx.x;
    const int64_t begin = slice * JOB_DROPS, left = j.n - begin;
    const int rows = left < JOB_DROPS ? (int)left : JOB_DROPS;
    for (int i = threadIdx.x; i < rows; i += JOB_THREADS)
        row[i] = (int)row_number(j.in[1][begin + i], (uint32_t)j.k);
    __syncthreads();
    if (o >= size) return;
    const int mine = (int)(o / j.m);
    const float *x = j.in[0] + begin * j.m + o % j.m;
    float *out = j.out + slice * size + o;
    double sum = j.add ? (double)*out : 0;
    const int64_t m = j.m;
#pragma unroll 16
    for (int i = 0; i < rows; i++) { /* all are read: so many are on their way at once */
        const float v = x[i * m];
        if (row[i] == mine) sum += (double)v;
    }
    *out = (float)sum;
}

#endif
