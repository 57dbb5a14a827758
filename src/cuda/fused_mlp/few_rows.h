/* A block of a fused MLP of few rows, in device code: its memory, a thread's numbers, factors and
 * the stash; and what it loads (few_loads). mlp_few_rows.cu says why it is as it is. */
#ifndef N2_CUDA_FEW_ROWS_H
#define N2_CUDA_FEW_ROWS_H

#include "mlp_parts.h"

enum {
    FEW_WARPS = 8,
    FEW_THREADS = 32 * FEW_WARPS, /* that have rows; a warp more fetches weights */
    FACTOR_BYTES = FEW_ROWS * MLP_WIDTH * 2,
    NUMBERS = 8, /* of a thread */
    PAIRS = NUMBERS / 2
};

#if GPU_HAS_WGMMA

template <bool STRICT> struct few_memory {
    enum {
        PARTS = STRICT ? 2 : 1,                   /* of a factor */
        STAGES = STRICT ? 3 : 5,                  /* of weights */
        STAGE_BYTES = PARTS * PACKED_BYTES + 1024 /* bias and power, too, at a multiple of 1024 */
    };
    char weights[STAGES][STAGE_BYTES];
    char factors[2][PARTS][FACTOR_BYTES]; /* as tiles of 16 rows, in turn */
    uint8_t gates[MOST_LAYERS][FEW_THREADS];
    float parts[MLP_NARROW][FEW_WARPS][FEW_ROWS]; /* of the sums of a narrow product */
    fused_mlp t;
    alignas(16) uint32_t tops[2][FEW_WARPS]; /* the largest of the factors, before a LeakyReLU */
    uint64_t there[STAGES];                  /* a barrier a stage: the weights are there, */
    uint64_t done[STAGES];                   /* and no thread needs them any more */
};

/* ---- a thread's numbers ---- */

/* Of the block's rows the first that a thread has, and its first column. Number i is of row
 * row + row_of(i), column column + column_of(i). */
struct few_rows_position {
    int row, column, warp, lane;
    int rows; /* that the block has; none, or less than none, beyond the last */
    int block;
    int row0;

    __device__ explicit few_rows_position(const fused_mlp &t) {
        lane = (int)threadIdx.x % 32;
        warp = (int)threadIdx.x / 32;
        row = lane % 4 * 2;
        column = warp * 16 + lane / 4;
        block = (int)blockIdx.x - t.first_block;
        row0 = block * FEW_ROWS;
        const int left = (int)t.rows - row0;
        rows = left < FEW_ROWS ? left : (int)FEW_ROWS;
    }
};
__device__ constexpr int row_of(int i) { return i / 4 * 8 + i % 2; }
__device__ constexpr int column_of(int i) { return i / 2 % 2 * 8; }

/* What a thread has of rows of n; row k of them is at[k], at most 4, numbers from the first on;
 * less than 0: zeros. */
__device__ inline void load_numbers(float x[NUMBERS], const float *from, const int at[4], int n,
                                    const few_rows_position &p) {
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) {
        const int k = at[i / 4 * 2 + i % 2], c = p.column + column_of(i);
        x[i] = k >= 0 && c < n ? from[k + c] : 0.0f;
    }
}

__device__ inline void load_rows(float x[NUMBERS], const float *from, int n,
                                 const few_rows_position &p) {
    int at[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int r = p.row + k / 2 * 8 + k % 2;
        at[k] = r < p.rows ? (p.row0 + r) * n : -1;
    }
    load_numbers(x, from, at, n, p);
}

__device__ inline void load_addend(float x[NUMBERS], const mlp_layer &l,
                                   const few_rows_position &p) {
    if (!l.index) return load_rows(x, l.addend, l.n, p);
    int at[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int r = p.row + k / 2 * 8 + k % 2;
        const float index = r < p.rows ? l.index[p.row0 + r] : 0.0f;
        at[k] = r < p.rows ? table_row(index, l.table_rows) * l.n : -1;
    }
    load_numbers(x, l.addend, at, l.n, p);
}

/* The LeakyReLU of what a thread has, times `unit`. Mostly all numbers are there. */
__device__ inline void store_rows(float *to, int n, const few_rows_position &p,
                                  const float x[NUMBERS], float unit, float slope) {
    if (n == MLP_WIDTH && p.rows == FEW_ROWS) {
        float *first = to + (p.row0 + p.row) * MLP_WIDTH + p.column;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            first[row_of(i) * MLP_WIDTH + column_of(i)] = leaky(x[i] * unit, slope);
        return;
    }
    float *first = to + (p.row0 + p.row) * n + p.column;
#pragma unroll
    for (int i = 0; i < NUMBERS; i++)
        if (p.row + row_of(i) < p.rows && p.column + column_of(i) < n)
            first[row_of(i) * n + column_of(i)] = leaky(x[i] * unit, slope);
}

/* ---- the rows of LAYER_ROWS ---- */

/* What lies side by side is there soonest, so a warp makes whole rows, MADE of them, four columns a
 * thread. They go to those who have them through shared memory: */
enum { MADE = FEW_ROWS / FEW_WARPS };
__device__ inline int made_at(int row, int column) {
    return row * MLP_WIDTH + (column ^ row / 2 % 4 * 8); /* in other banks than other rows */
}

__device__ inline float4 add_vec4(float4 a, float4 b) {
    return float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/* The sums of two tables' rows. Both indices are asked for before one of them is there. */
__device__ inline void find_rows(float4 x[MADE], const mlp_layer &l, const int row[MADE],
                                 int column) {
    float4 y[MADE];
    int a[MADE], b[MADE];
#pragma unroll
    for (int i = 0; i < MADE; i++) {
        a[i] = table_row(l.b[row[i]], l.k) * MLP_WIDTH + column;
        b[i] = table_row(l.index[row[i]], l.table_rows) * MLP_WIDTH + column;
    }
#pragma unroll
    for (int i = 0; i < MADE; i++) {
        x[i] = *(const float4 *)(l.a + a[i]);
        y[i] = *(const float4 *)(l.addend + b[i]);
    }
#pragma unroll
    for (int i = 0; i < MADE; i++) x[i] = add_vec4(x[i], y[i]);
}

/* The sums of rows on end, two by two: there are few, and doubles would take longer than memory. */
__device__ inline void sum_rows(float4 x[MADE], const mlp_layer &l, const int row[MADE],
                                int column) {
    const int n = l.sums;
    float4 y[MADE][MOST_SUMMED];
#pragma unroll
    for (int i = 0; i < MADE * MOST_SUMMED; i++) {
        const int k = i % MOST_SUMMED, r = row[i / MOST_SUMMED] * n + (k < n ? k : 0);
        y[i / MOST_SUMMED][k] = *(const float4 *)(l.a + r * MLP_WIDTH + column);
    }
#pragma unroll
    for (int i = 0; i < MADE; i++) {
#pragma unroll
        for (int k = 0; k < MOST_SUMMED; k++)
            if (k >= n) y[i][k] = float4{};
        const float4 *of = y[i];
        x[i] = add_vec4(add_vec4(add_vec4(of[0], of[1]), add_vec4(of[2], of[3])),
                        add_vec4(add_vec4(of[4], of[5]), add_vec4(of[6], of[7])));
    }
}

struct alignas(16) four_words {
    uint32_t a, b, c, d;
};

/* ---- gates ---- */

/* Bits of a thread, 1: the number is not positive. In the order in which signs of factors are got.
 */
__device__ constexpr uint32_t gate_bit(int i) { return 1u << (i % 2 * 4 + 3 - i / 2); }

__device__ inline uint32_t closed_of(const float x[NUMBERS]) {
    uint32_t closed = 0;
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) closed |= x[i] > 0.0f ? 0 : gate_bit(i);
    return closed;
}

__device__ inline uint8_t negative_of(const uint32_t a[PAIRS]) {
    uint32_t signs = 0;
#pragma unroll
    for (int q = 0; q < PAIRS; q++) signs |= (a[q] & 0x80008000u) >> q;
    return (uint8_t)((signs >> 12 & 0xfu) | (signs >> 24 & 0xf0u));
}

/* ---- a block ---- */

/* What a block has, its weights, and how factors are published and stashed. */
template <bool STRICT> struct few_factors {
    typedef few_memory<STRICT> memory;
    memory *m;
    few_rows_position p;
    float last[NUMBERS];  /* what the last layer made, times `power` */
    float rows[NUMBERS];  /* what is to be multiplied, from memory, */
    float extra[NUMBERS]; /* and a gate or an addend: of the next layers that have any */
    uint32_t a[PAIRS];    /* what is multiplied, as factors: pair i in a[i / 2] */
    float power;
    int packed;              /* that have not been waited for */
    int stage;               /* where the next product's is, */
    unsigned round;          /* and how many there have been before it */
    int turn;                /* which of the factors are multiplied */
    void *waiting;           /* factors are still to be stored here, in the stash, */
    uint32_t *waiting_gates; /* and their gates here; NULL: not */
    unsigned publishes;      /* where a thread stores rows of factors, */
    unsigned reads, tile;    /* where it reads and stores those of stash tiles, */
    unsigned powers;         /* and the block its power; in bytes */

    __device__ explicit few_factors(memory *shared)
        : m(shared), p(shared->t), power(1), packed((int)shared->t.n_packed), stage(0), round(0),
          turn(0), waiting(NULL), waiting_gates(NULL) {
        enum { PARTS = STASH_TILE_ROWS / FEW_ROWS };
        const unsigned unit = threadIdx.x % 16, row = threadIdx.x / 16, lane = threadIdx.x % 32;
        for (int i = 0; i < NUMBERS; i++) last[i] = rows[i] = extra[i] = 0;
        publishes = 2 * packed_at(FEW_ROWS, lane / 16 * 8 + lane % 8,
                                  (unsigned)p.warp * 16 + lane / 8 % 2 * 8);
        reads = 2 * packed_at(FEW_ROWS, row, unit / 4 * 32 + unit % 4 * 2);
        tile =
            (unsigned)(p.block / PARTS * stash_tile_bytes(STRICT)) +
            2 * packed_at(STASH_TILE_ROWS, (unsigned)(p.block % PARTS * FEW_ROWS) + row, unit * 8);
        powers =
            (unsigned)((char *)(powers_of(NULL, shared->t.rows, STRICT) + p.block) - (char *)NULL);
    }

    /* ---- weights ---- */

    /* Nobody needs a product's any more, as far as this thread knows; the next one's are next. */
    __device__ void packed_done() {
        arrive(&m->done[stage]);
        stage = stage + 1 < memory::STAGES ? stage + 1 : 0;
        round += stage == 0;
    }

    /* Until the next product's is there, or, if `ahead` is 1, the one's after it. */
    __device__ void wait_for_packed(int ahead) {
        const bool wraps = stage + ahead >= memory::STAGES;
        if (packed-- <= 0) return;
        arrival_wait(&m->there[wraps ? 0 : stage + ahead], round + wraps);
    }

    /* ---- factors ---- */

    /* The LeakyReLU of x, for all warps to see behind the next barrier. */
    __device__ void publish(const float x[NUMBERS], bool is_leaky, float slope) {
        char *to = m->factors[turn ^= 1][0] + publishes;
        float top = 0;
#pragma unroll
        for (int q = 0; q < PAIRS && !STRICT; q++) {
            a[q] = pack_fp16(x[2 * q], x[2 * q + 1]);
            if (is_leaky) a[q] = leaky_fp16(a[q], pack_fp16(slope, slope));
        }
        if (STRICT)
            publish_both(to, x, slope);
        else
            store_transposed(to, a);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) top = fmaxf(top, fabsf(x[i]));
        const uint32_t most = warp_most(__float_as_uint(top));
        if (p.lane == 0) m->tops[turn][p.warp] = most;
        shared_for_tensors();
    }

    /* And what they leave over. */
    __device__ void publish_both(char *to, const float x[NUMBERS], float slope) {
        uint32_t rest[PAIRS];
#pragma unroll
        for (int q = 0; q < PAIRS; q++) {
            const float u = leaky(x[2 * q], slope), v = leaky(x[2 * q + 1], slope);
            a[q] = pack_fp16(u, v);
            const float2 packed = unpack_fp16(a[q]);
            rest[q] = pack_fp16(u - packed.x, v - packed.y);
        }
        store_transposed(to, a);
        store_transposed(to + FACTOR_BYTES, rest);
    }

    __device__ uint32_t most() const {
        const four_words *tops = (const four_words *)m->tops[turn];
        uint32_t top = 0;
#pragma unroll
        for (int i = 0; i < FEW_WARPS / 4; i++) {
            const four_words w = tops[i];
            top = larger(larger(top, w.a), larger(larger(w.b, w.c), w.d));
        }
        return top;
    }
    __device__ static uint32_t larger(uint32_t x, uint32_t y) { return x > y ? x : y; }

    __device__ static bool is_well(uint32_t top) {
        return top == 0 || fits(__uint_as_float(top), STRICT);
    }

    /* Another power of two, for which factors of x will fit. All warps do this together, and
     * publish them once more. */
    __device__ void refit(uint32_t top, float x[NUMBERS]) {
        const float next = times_power(power, __uint_as_float(power_bits(top, STRICT)));
        const float ratio = next * inverse_power(power);
        power = next;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) last[i] *= ratio, x[i] *= ratio;
        barrier_of_eight(); /* nobody reads them any more */
        turn ^= 1;
    }

    /* ---- stash ---- */

    /* Factors that all warps have published go to memory, while they are multiplied. */
    __device__ void store_waiting() {
        if (waiting) {
            store_tile(0);
            if (STRICT) store_tile(1);
            if (threadIdx.x == 0) *(float *)((char *)waiting + powers) = inverse_power(power);
        }
        if (waiting_gates) *gate_of(waiting_gates) = negative_of(a);
        waiting = NULL;
        waiting_gates = NULL;
    }

    /* Four pairs of columns lie side by side in a stash tile: stash_column. */
    __device__ void store_tile(int part) const {
        uint32_t pair[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            pair[j] =
                *(const uint32_t *)(m->factors[turn][0] + part * FACTOR_BYTES + (reads ^ j * 16));
        *(four_words *)((char *)waiting + tile + part * STASH_TILE_BYTES) =
            four_words{pair[0], pair[1], pair[2], pair[3]};
    }

    __device__ uint8_t *gate_of(const uint32_t *gates) const {
        return (uint8_t *)gates + p.block * FEW_THREADS + (int)threadIdx.x;
    }

    __device__ static void copy(float to[NUMBERS], const float from[NUMBERS]) {
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) to[i] = from[i];
    }

    /* What is stashed, but not multiplied next. */
    __device__ void store_strays(const mlp_layer &l, uint32_t does) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) {
            if (!(does & (more ? STRAYS_LEAKY : STRAYS))) continue;
            float x[NUMBERS];
            copy(x, last);
            publish(x, true, more ? l.slope_more : 1.0f);
            barrier_of_eight();
            if (!is_well(most())) {
                refit(most(), x);
                publish(x, true, more ? l.slope_more : 1.0f);
                barrier_of_eight();
            }
            waiting = more ? l.more_stash : l.out_stash;
            waiting_gates = more ? l.more_gates : NULL;
            store_waiting();
        }
    }
};

/* Rows, addends and gates that layers want of memory. */
template <bool STRICT> struct few_loads : few_factors<STRICT> {
    typedef few_factors<STRICT> base;
    using base::extra;
    using base::gate_of;
    using base::last;
    using base::m;
    using base::p;
    using base::rows;
    using base::waiting;
    using base::waiting_gates;
    using typename base::memory;
    __device__ explicit few_loads(memory *shared) : base(shared) {}

    /* Rows of LAYER_ROWS, in place of factors, which are not there yet: for take_rows behind the
     * next barrier. Beyond the last they are zeros, whatever is found. */
    __device__ void make_rows(const mlp_layer &l) {
        const int column = p.lane * 4;
        float4 x[MADE];
        int row[MADE];
#pragma unroll
        for (int i = 0; i < MADE; i++) {
            const int r = p.warp + i * FEW_WARPS;
            row[i] = r < p.rows ? p.row0 + r : 0;
        }
        if (l.sums)
            sum_rows(x, l, row, column);
        else
            find_rows(x, l, row, column);
        static_assert(sizeof m->factors >= FEW_ROWS * MLP_WIDTH * sizeof(float), "room for them");
#pragma unroll
        for (int i = 0; i < MADE; i++) {
            const int r = p.warp + i * FEW_WARPS;
            *(float4 *)((float *)m->factors + made_at(r, column)) = r < p.rows ? x[i] : float4{};
        }
    }

    /* Returns 1 if that was all of the layer: most are multiplied, and stashed meanwhile.
     * Its stores are those of any layer, whose code need not be fetched if it has none. */
    __device__ int take_rows(const mlp_layer &l) {
        const float *made = (const float *)m->factors;
        const int first = made_at(p.row, p.column);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) /* its other rows have their columns in the same order */
            last[i] = made[(first ^ column_of(i)) + row_of(i) * MLP_WIDTH];
        barrier_of_eight(); /* there will be factors */
        if (l.does & (STORES | STORES_LEAKY | STRAYS | STRAYS_LEAKY)) return 0;
        waiting = l.does & RIDES ? l.out_stash : l.more_stash;
        waiting_gates = l.more_gates;
        return 1;
    }

    /* Rows, or an addend or gate, that layer k wants of memory. Called in one place only: code that
     * runs once is slow, and there is much of it. */
    __device__ void load_layers_rows(int k) {
        if (k >= MOST_LAYERS) return;
        const mlp_layer &l = m->t.layer[k];
        if (l.does & MULTIPLIES)
            load_rows(rows, l.a, l.k, p);
        else
            load_outer(l, 0);
    }
    __device__ void load_layers_extra(int k) {
        if (k >= MOST_LAYERS) return;
        const mlp_layer &l = m->t.layer[k];
        if (l.does & IS_NARROW)
            load_narrow(l, 0);
        else if (l.does & HAS_GATE_ROWS)
            load_rows(extra, l.gate, l.n, p);
        else
            load_addend(extra, l, p);
    }

    /* What it multiplies: number j of a thread's four rows, and of its two columns. */
    __device__ void load_outer(const mlp_layer &l, int j) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int r = p.row + k / 2 * 8 + k % 2;
            rows[k] = r < p.rows ? l.a[(p.row0 + r) * l.k + j] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            rows[4 + i] = p.column + 8 * i < l.n ? l.b[j * l.n + p.column + 8 * i] : 0.0f;
    }

    /* What a thread multiplies to get column n of a narrow layer. */
    __device__ void load_narrow(const mlp_layer &l, int n) {
        extra[0] = p.column < l.k ? l.b[n * l.k + p.column] : 0.0f;
        extra[1] = p.column + 8 < l.k ? l.b[n * l.k + p.column + 8] : 0.0f;
    }

    __device__ uint32_t gates_for(int k, const mlp_layer &l, uint32_t does) {
        if (does & HAS_GATE_ROWS) return closed_of(extra);
        if (!(does & HAS_GATES)) return 0;
        return does & READS_OWN ? *gate_of(l.gates) : m->gates[k][threadIdx.x];
    }

    /* All gates that others stored as bits, at once. */
    __device__ void ask_for_gates() {
        enum { UNITS = FEW_THREADS / 16 };
        for (int i = (int)threadIdx.x; i < m->t.n_layers * UNITS; i += FEW_THREADS) {
            const mlp_layer &l = m->t.layer[i / UNITS];
            if (!(l.does & HAS_GATES) || l.does & READS_OWN) continue;
            const char *from = (const char *)l.gates + p.block * FEW_THREADS + i % UNITS * 16;
            copy_16((float *)m->gates + i * 4, (const float *)from, 16);
        }
        copies_commit();
    }

    /* What others wrote is asked for ahead; what this fused MLP did, only now, for layer k. */
    __device__ void load_more(int k, int next_rows, int next_extra) {
        const uint32_t does = m->t.layer[k].does;
        if (does & READS_OWN && does & TAKES_MEMORY) next_rows = k;
        if (does & READS_OWN && does & (HAS_GATE_ROWS | ADDS_ROWS)) next_extra = k;
        load_layers_rows(next_rows);
        load_layers_extra(next_extra);
    }
};

#endif

#endif
