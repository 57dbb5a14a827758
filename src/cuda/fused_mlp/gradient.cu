/* The kernel of weights' gradients: gradient.h. */
#include "gradient.h"

#include "gpu_tensor.h"

/* Two stages keep memory busy; with more on their way, others that read would wait behind them. */
enum { GRADIENT_STAGES = 2, GRADIENT_THREADS = 256, SUMS_FLOATS = 4 * MLP_WIDTH };

template <bool STRICT> struct gradient_sizes {
    enum {
        TILES = STRICT ? 1 : GRADIENT_STEP / STASH_TILE_ROWS, /* that are multiplied at once */
        FACTOR_BYTES = TILES * stash_tile_bytes(STRICT),
        POWERS_BYTES = TILES * STASH_POWERS * 4,
        STAGE_BYTES = 2 * FACTOR_BYTES, /* of g and of x */
        SHARED = GRADIENT_STAGES * (STAGE_BYTES + 2 * POWERS_BYTES + 8) + SUMS_FLOATS * 4 +
                 (int)sizeof(gradient) + 2048
    };
};

#if GPU_HAS_WGMMA

/* What a block has in shared memory. */
template <bool STRICT> struct gradient_memory {
    typedef gradient_sizes<STRICT> size;
    char *factors;   /* [GRADIENT_STAGES] x (g, x) */
    float *powers;   /* the same */
    float *sums;     /* [4 x 128] */
    uint64_t *there; /* a barrier a stage */
    gradient *t;

    __device__ explicit gradient_memory(char *shared) {
        factors = shared;
        powers = (float *)(shared + GRADIENT_STAGES * size::STAGE_BYTES);
        sums = powers + GRADIENT_STAGES * (2 * size::POWERS_BYTES / 4);
        there = (uint64_t *)(sums + SUMS_FLOATS);
        t = (gradient *)(there + GRADIENT_STAGES);
    }
    __device__ char *g(int stage) const { return factors + stage * size::STAGE_BYTES; }
    __device__ char *x(int stage) const { return g(stage) + size::FACTOR_BYTES; }
    __device__ float *powers_g(int stage) const {
        return powers + stage * (2 * size::POWERS_BYTES / 4);
    }
    __device__ float *powers_x(int stage) const { return powers_g(stage) + size::POWERS_BYTES / 4; }
};

template <bool STRICT> struct gradient_block {
    typedef gradient_sizes<STRICT> size;
    gradient_memory<STRICT> m;
    const gradient &t;
    int64_t first_tile, last_tile; /* of this block: [first, last) */
    int steps, all_steps;          /* all: with those of the pair */
    float unit;                    /* sums are 1 / unit too large */

    __device__ gradient_block(const gradient_memory<STRICT> &memory, const gradient &which,
                              int slice)
        : m(memory), t(which), unit(1) {
        const int64_t all = stash_tiles(t.rows), length = t.slice_rows / STASH_TILE_ROWS;
        first_tile = slice * length;
        last_tile = first_tile + length < all ? first_tile + length : all;
        steps = all_steps = (int)((last_tile - first_tile + size::TILES - 1) / size::TILES);
        if (t.pair_g && slice == t.n_blocks - 1)
            all_steps += (int)((stash_tiles(t.pair_rows) + size::TILES - 1) / size::TILES);
    }

    __device__ int tiles_in(int step) const {
        const int64_t all = step < steps ? last_tile - first_tile : stash_tiles(t.pair_rows);
        const int64_t left = all - (int64_t)(step < steps ? step : step - steps) * size::TILES;
        return left < size::TILES ? (int)left : size::TILES;
    }

    /* One thread: the stash tiles of a step, if there is such a step. */
    __device__ void fetch(int step) {
        if (step >= all_steps) return;
        const bool own = step < steps;
        const void *from_g = own ? t.g : t.pair_g, *from_x = own ? t.x : t.pair_x;
        const int64_t rows = own ? t.rows : t.pair_rows;
        const int64_t at =
            own ? first_tile + (int64_t)step * size::TILES : (int64_t)(step - steps) * size::TILES;
        const int stage = step % GRADIENT_STAGES;
        const unsigned tiles = (unsigned)tiles_in(step), bytes = tiles * stash_tile_bytes(STRICT);
        const unsigned powers = tiles * STASH_POWERS * 4;
        uint64_t *there = &m.there[stage];
        arrival_expect(there, 2 * bytes + 2 * powers);
        copy_bulk_once(m.g(stage), (const char *)from_g + at * stash_tile_bytes(STRICT), bytes,
                       there);
        copy_bulk_once(m.x(stage), (const char *)from_x + at * stash_tile_bytes(STRICT), bytes,
                       there);
        copy_bulk(m.powers_g(stage), powers_of(from_g, rows, STRICT) + at * STASH_POWERS, powers,
                  there);
        copy_bulk(m.powers_x(stage), powers_of(from_x, rows, STRICT) + at * STASH_POWERS, powers,
                  there);
    }

    /* The sums in another unit. */
    __device__ void change_unit(float to, float sum[64]) {
        const float ratio = unit / to;
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] *= ratio;
        unit = to;
    }

    __device__ void multiply(int stage, int sixteen, float sum[64]) const {
        const int at = sixteen / 4 * stash_tile_bytes(STRICT) + sixteen % 4 * (16 * 128);
        const int panel = (int)threadIdx.x / 128 * (STASH_TILE_BYTES / 2);
        const char *g = m.g(stage) + at + panel, *x = m.x(stage) + at;
        multiply_columns(sum, g, x);
        if (STRICT) {
            multiply_columns(sum, g, x + STASH_TILE_BYTES);
            multiply_columns(sum, g + STASH_TILE_BYTES, x);
        }
    }

    /* Sixteen rows at a time, for they have a power of two each; mostly the same. */
    __device__ void add_products(int stage, int sixteens, float sum[64]) {
        const float *g = m.powers_g(stage), *x = m.powers_x(stage);
        products_begin(sum);
        for (int k = 0; k < sixteens; k++) {
            const float here = g[k] * x[k];
            if (here != unit) {
                products_end();
                products_wait(sum);
                change_unit(here, sum);
                products_begin(sum);
            }
            multiply(stage, k, sum);
        }
        products_end();
    }

    /* A thread has two columns of a quarter of the rows. */
    __device__ void add_columns(int stage, int sixteens, float2 *sum) const {
        const unsigned pair = threadIdx.x % 64, part = threadIdx.x / 64;
        const int begin = (int)part * size::TILES;
        for (int k = begin; k < begin + size::TILES && k < sixteens; k++) {
            const char *tile = m.g(stage) + k / 4 * stash_tile_bytes(STRICT);
            float2 here = {0, 0};
#pragma unroll
            for (int r = 0; r < 16; r++) {
                const unsigned at =
                    packed_at(STASH_TILE_ROWS, (unsigned)(k % 4 * 16 + r), 2 * pair);
                float2 x = unpack_fp16(*(const uint32_t *)(tile + 2 * at));
                here.x += x.x, here.y += x.y;
                if (!STRICT) continue;
                x = unpack_fp16(*(const uint32_t *)(tile + STASH_TILE_BYTES + 2 * at));
                here.x += x.x, here.y += x.y;
            }
            const float power = m.powers_g(stage)[k];
            sum->x += here.x * power, sum->y += here.y * power;
        }
    }

    __device__ void store_columns(int slice, float2 sum) const {
        *(float2 *)(m.sums + threadIdx.x / 64 * MLP_WIDTH + threadIdx.x % 64 * 2) = sum;
        __syncthreads();
        if ((int)threadIdx.x >= t.m) return;
        float *to = t.sums + slice * t.m + threadIdx.x;
        const float *part = m.sums + stash_column(threadIdx.x);
        const float all = (part[0] + part[MLP_WIDTH]) + (part[2 * MLP_WIDTH] + part[3 * MLP_WIDTH]);
        *to = t.sums_add ? *to + all : all;
    }

    /* A thread's sums are eight numbers side by side (stash_column) of two rows, four times. Number
     * e of eight k: */
    __device__ static int number_at(int k, int e) {
        return 16 * (k / 2) + e / 2 * 4 + k % 2 * 2 + e % 2;
    }
    __device__ static int row_of(int k) {
        const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
        return (int)stash_column(row + (unsigned)k % 2 * 8);
    }
    __device__ static int column_of(int k) { return k / 2 * 32 + (int)threadIdx.x % 4 * 8; }

    /* Many are on their way at once. */
    __device__ void add_stored(const float *from, float sum[64]) const {
        enum { AT_ONCE = 4 };
#pragma unroll
        for (int first = 0; first < 8; first += AT_ONCE) {
            float x[AT_ONCE][8];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const int r = row_of(first + k), c = column_of(first + k);
#pragma unroll
                for (int e = 0; e < 8; e++)
                    x[k][e] = r < t.m && c + e < t.n ? from[r * t.n + c + e] : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
                for (int e = 0; e < 8; e++) sum[number_at(first + k, e)] += x[k][e];
        }
    }

    /* Eight numbers, those that there are; returns the sum of their squares. */
    __device__ static float store_eight(float *to, const float x[8], int left, bool vec4) {
        float squares = 0;
#pragma unroll
        for (int e = 0; e < 8; e++) squares += e < left ? x[e] * x[e] : 0.0f;
        if (!vec4) {
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (e < left) to[e] = x[e];
            return squares;
        }
        *(float4 *)to = float4{x[0], x[1], x[2], x[3]};
        if (left > 4) *(float4 *)(to + 4) = float4{x[4], x[5], x[6], x[7]};
        return squares;
    }

    /* Returns the sum of the squares of what this thread stores. */
    __device__ float store(int slice, float sum[64]) {
        float *to = t.out + (int64_t)slice * (t.m * t.n), squares = 0;
        const bool vec4 = t.n % 4 == 0 && (uintptr_t)to % 16 == 0;
        change_unit(1, sum);
        if (t.adds) add_stored(to, sum);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int r = row_of(k), c = column_of(k);
            float x[8];
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = sum[number_at(k, e)];
            if (r < t.m && c < t.n) squares += store_eight(to + r * t.n + c, x, t.n - c, vec4);
        }
        return squares;
    }

    __device__ void store_squares(float sum) const {
        for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        __syncthreads(); /* the columns' sums were there */
        if (threadIdx.x % 32 == 0) m.sums[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x > 0) return;
        for (int w = 1; w < GRADIENT_THREADS / 32; w++) sum += m.sums[w];
        *t.squares = sum;
    }

    __device__ void run(int slice) {
        float sum[64];
        float2 columns = {0, 0};
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] = 0;
        if (threadIdx.x == 0)
            for (int s = 0; s < GRADIENT_STAGES; s++) fetch(s);
#pragma unroll 1
        for (int step = 0; step < all_steps; step++) {
            const int stage = step % GRADIENT_STAGES, sixteens = 4 * tiles_in(step);
            arrival_wait(&m.there[stage], (unsigned)(step / GRADIENT_STAGES));
            if (step == 0) unit = m.powers_g(stage)[0] * m.powers_x(stage)[0];
            add_products(stage, sixteens, sum);
            if (t.sums) add_columns(stage, sixteens, &columns);
            products_wait(sum);
            __syncthreads(); /* nobody reads the stage any more */
            if (threadIdx.x == 0) fetch(step + GRADIENT_STAGES);
        }
        const float squares = store(slice, sum);
        if (t.sums) store_columns(slice, columns);
        if (t.squares) store_squares(squares);
    }
};

__device__ inline void copy_words(gradient *to, const gradient *from) {
    static_assert(sizeof *to / 4 <= GRADIENT_THREADS && sizeof *to % 4 == 0, "a word a thread");
    if (threadIdx.x < sizeof *to / 4)
        ((uint32_t *)to)[threadIdx.x] = ((const uint32_t *)from)[threadIdx.x];
}
#endif

template <bool STRICT>
__global__ void __launch_bounds__(GRADIENT_THREADS, 1)
    run_gradients(const gradient *list, const __grid_constant__ block_starts starts) {
#if GPU_HAS_WGMMA
    GPU_SHARED(shared);
    const gradient_memory<STRICT> m(tile_aligned(shared));
    const int which = which_of(starts, [&](int i) { return list[i].first_block; });
    copy_words(m.t, &list[which]);
    if (threadIdx.x == 0) {
        for (int s = 0; s < GRADIENT_STAGES; s++) arrival_init(&m.there[s], 1);
        arrivals_ready();
    }
    __syncthreads();
    const int slice = (int)blockIdx.x - m.t->first_block;
    grid_wait();
    grid_next();
    gradient_block<STRICT>(m, *m.t, slice).run(slice);
#else
    (void)list, (void)starts;
#endif
}

cudaError_t n2_gradients_prepare(void) {
    const cudaError_t error =
        cudaFuncSetAttribute(run_gradients<false>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             gradient_sizes<false>::SHARED);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(run_gradients<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                gradient_sizes<true>::SHARED);
}

void n2_gradients_launch(const gradient *list, const block_starts *starts, uint32_t blocks,
                         bool strict, cudaStream_t stream, bool early) {
    const block_starts copy = *starts;
    if (strict)
        GPU_LAUNCH(run_gradients<true>, blocks, GRADIENT_THREADS, gradient_sizes<true>::SHARED,
                   stream, early, list, copy);
    else
        GPU_LAUNCH(run_gradients<false>, blocks, GRADIENT_THREADS, gradient_sizes<false>::SHARED,
                   stream, early, list, copy);
}
