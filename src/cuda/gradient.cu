/* The kernel of weights' gradients: gradient.h. */
#include "gradient.h"

#include "gpu_tensor.h"

enum {
    SHEETS_STEP = GRADIENT_STEP / SHEET_ROWS,
    FACTOR_BYTES = SHEETS_STEP * SHEET_BYTES,
    POWERS_BYTES = SHEETS_STEP * SHEET_POWERS * 4,
    STAGE_BYTES = 2 * FACTOR_BYTES, /* of g and of x */
    GRADIENT_STAGES = 3,
    GRADIENT_THREADS = 256,
    SUMS_FLOATS = 4 * TOWER_WIDTH, /* of a step; the next one has others */
    GRADIENT_SHARED =
        GRADIENT_STAGES * (STAGE_BYTES + 2 * POWERS_BYTES + 8) + 2 * SUMS_FLOATS * 4 + 2048
};

#if GPU_HAS_TOWERS

/* What a block has in shared memory. */
struct gradient_memory {
    char *factors;   /* [GRADIENT_STAGES] x (g, x) */
    float *powers;   /* the same */
    float *sums;     /* [2 x 4 x 128] */
    uint64_t *there; /* a barrier a stage */

    __device__ explicit gradient_memory(char *shared) {
        factors = shared;
        powers = (float *)(shared + GRADIENT_STAGES * STAGE_BYTES);
        sums = powers + GRADIENT_STAGES * (2 * POWERS_BYTES / 4);
        there = (uint64_t *)(sums + 2 * SUMS_FLOATS);
    }
    __device__ char *g(int stage) const { return factors + stage * STAGE_BYTES; }
    __device__ char *x(int stage) const { return g(stage) + FACTOR_BYTES; }
    __device__ float *powers_g(int stage) const { return powers + stage * (2 * POWERS_BYTES / 4); }
    __device__ float *powers_x(int stage) const { return powers_g(stage) + POWERS_BYTES / 4; }
};

struct gradient_block {
    gradient_memory m;
    const gradient &t;
    int64_t first_sheet, last_sheet; /* of this block: [first, last) */
    int steps;
    float unit; /* sums are 1 / unit too large */

    __device__ gradient_block(const gradient_memory &memory, const gradient &which, int slice)
        : m(memory), t(which), unit(1) {
        const int64_t all = sheets_of(t.rows), length = t.slice_rows / SHEET_ROWS;
        first_sheet = slice * length;
        last_sheet = first_sheet + length < all ? first_sheet + length : all;
        steps = (int)((last_sheet - first_sheet + SHEETS_STEP - 1) / SHEETS_STEP);
    }

    __device__ int sheets_in(int step) const {
        const int64_t left = last_sheet - first_sheet - (int64_t)step * SHEETS_STEP;
        return left < SHEETS_STEP ? (int)left : SHEETS_STEP;
    }

    /* One thread: the sheets of a step, if there is such a step. */
    __device__ void fetch(int step) {
        if (step >= steps) return;
        const int stage = step % GRADIENT_STAGES;
        const unsigned sheets = (unsigned)sheets_in(step), bytes = sheets * SHEET_BYTES;
        const unsigned powers = sheets * SHEET_POWERS * 4;
        const int64_t at = first_sheet + (int64_t)step * SHEETS_STEP;
        arrival_expect(&m.there[stage], 2 * bytes + 2 * powers);
        copy_bulk(m.g(stage), (const char *)t.g + at * SHEET_BYTES, bytes, &m.there[stage]);
        copy_bulk(m.x(stage), (const char *)t.x + at * SHEET_BYTES, bytes, &m.there[stage]);
        copy_bulk(m.powers_g(stage), powers_of(t.g, t.rows) + at * SHEET_POWERS, powers,
                  &m.there[stage]);
        copy_bulk(m.powers_x(stage), powers_of(t.x, t.rows) + at * SHEET_POWERS, powers,
                  &m.there[stage]);
    }

    /* The sums in another unit. */
    __device__ void change_unit(float to, float sum[64]) {
        const float ratio = unit / to;
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] *= ratio;
        unit = to;
    }

    __device__ void multiply(int stage, int sixteen, float sum[64]) const {
        const int at = sixteen / 4 * SHEET_BYTES + sixteen % 4 * (16 * 128);
        const int panel = (int)threadIdx.x / 128 * (SHEET_BYTES / 2);
        multiply_columns(sum, m.g(stage) + at + panel, m.x(stage) + at);
    }

    /* Sixteen rows at a time, for they have a power of two each; mostly the same. */
    __device__ void add_products(int stage, int sixteens, float sum[64]) {
        const float *g = m.powers_g(stage), *x = m.powers_x(stage);
        bool same = true;
        for (int k = 0; k < sixteens; k++) same = same && g[k] * x[k] == unit;
        if (same) {
            products_begin(sum);
            for (int k = 0; k < sixteens; k++) multiply(stage, k, sum);
            products_end();
            return;
        }
#pragma unroll 1
        for (int k = 0; k < sixteens; k++) {
            const float here = g[k] * x[k];
            if (here != unit) change_unit(here, sum);
            products_begin(sum);
            multiply(stage, k, sum);
            products_end();
            products_wait(sum);
        }
    }

    /* A thread has two columns of 32 rows. */
    __device__ void add_columns(int stage, int sixteens, float *sums) {
        const int pair = (int)threadIdx.x % 64, part = (int)threadIdx.x / 64;
        float2 sum = {0, 0};
        for (int k = 2 * part; k < 2 * part + 2 && k < sixteens; k++) {
            float2 here = {0, 0};
#pragma unroll
            for (int r = 0; r < 16; r++) {
                const unsigned row = (unsigned)(k % 4 * 16 + r);
                const char *sheet = m.g(stage) + k / 4 * SHEET_BYTES;
                const float2 x = unpack_halves(*(const uint32_t *)(
                    sheet + 2 * image_at(SHEET_ROWS, row, 2 * (unsigned)pair)));
                here.x += x.x, here.y += x.y;
            }
            sum.x += here.x * m.powers_g(stage)[k], sum.y += here.y * m.powers_g(stage)[k];
        }
        *(float2 *)(sums + part * TOWER_WIDTH + 2 * pair) = sum;
    }

    __device__ void store_columns(int step, const float *sums) const {
        if (threadIdx.x >= TOWER_WIDTH) return;
        const int64_t at = first_sheet / SHEETS_STEP + step;
        float *to = t.sums + at * TOWER_WIDTH + threadIdx.x;
        const float *part = sums + threadIdx.x;
        const float sum = (part[0] + part[TOWER_WIDTH]) +
                          (part[2 * TOWER_WIDTH] + part[3 * TOWER_WIDTH]);
        *to = t.sums_add ? *to + sum : sum;
    }

    __device__ void store(int slice, const float sum[64]) const {
        const int lane = threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16 + lane / 4;
        float *to = t.out + (int64_t)slice * (TOWER_WIDTH * TOWER_WIDTH) + row * TOWER_WIDTH +
                    lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 64; i += 2) {
            float2 *at = (float2 *)(to + i / 2 % 2 * (8 * TOWER_WIDTH) + i / 4 * 8);
            float2 x = {sum[i] * unit, sum[i + 1] * unit};
            if (t.adds) x.x += at->x, x.y += at->y;
            *at = x;
        }
    }

    __device__ void run(int slice) {
        float sum[64];
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] = 0;
        if (threadIdx.x == 0)
            for (int s = 0; s < GRADIENT_STAGES; s++) fetch(s);
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            const int stage = step % GRADIENT_STAGES, sixteens = 4 * sheets_in(step);
            arrival_wait(&m.there[stage], (unsigned)(step / GRADIENT_STAGES));
            if (step == 0) unit = m.powers_g(stage)[0] * m.powers_x(stage)[0];
            add_products(stage, sixteens, sum);
            float *sums = m.sums + step % 2 * SUMS_FLOATS;
            if (t.sums) add_columns(stage, sixteens, sums);
            products_wait(sum);
            __syncthreads(); /* nobody reads the stage any more */
            if (threadIdx.x == 0) fetch(step + GRADIENT_STAGES);
            if (t.sums) store_columns(step, sums);
        }
        store(slice, sum);
    }
};
#endif

__global__ void __launch_bounds__(GRADIENT_THREADS, 1)
    run_gradients(const gradient *list, int n) {
#if GPU_HAS_TOWERS
    GPU_SHARED(shared);
    const gradient_memory m(image_aligned(shared));
    int which = 0;
    while (which + 1 < n && (int)blockIdx.x >= list[which + 1].first_block) which++;
    if (threadIdx.x == 0) {
        for (int s = 0; s < GRADIENT_STAGES; s++) arrival_init(&m.there[s], 1);
        arrivals_ready();
    }
    __syncthreads();
    const int slice = (int)blockIdx.x - list[which].first_block;
    gradient_block(m, list[which], slice).run(slice);
#else
    (void)list, (void)n;
#endif
}

cudaError_t n2_gradients_prepare(void) {
    return cudaFuncSetAttribute(run_gradients, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                GRADIENT_SHARED);
}

void n2_gradients_launch(const gradient *list, int n, uint32_t blocks, cudaStream_t stream) {
    GPU_LAUNCH(run_gradients, blocks, GRADIENT_THREADS, GRADIENT_SHARED, stream, list, n);
}
