/* A block of a fused MLP, in device code: its memory, which rows a thread has, and how they come,
 * are multiplied and leave. */
#ifndef N2_CUDA_MLP_ROWS_H
#define N2_CUDA_MLP_ROWS_H

#include "mlp_parts.h"

/* Sixteen rows of every 64 are a warp's, and nothing else of the block touches them: warps share
 * weights only, so nobody waits for others but for those. What is done for every layer works on
 * registers and in straight lines; what is rare (inputs and outputs that are not 128 wide, addends
 * of other kernels) goes through shared memory in plain loops. */

enum {
    WARP_ROWS = 16,
    WARP_FLOATS = WARP_ROWS * ROW_FLOATS, /* a warp's rows, on their way in or out */
    MLP_WARPS = MLP_THREADS / 32,
    FETCH_THREADS = 128, /* more, for one that fetches weights: registers are given by four warps */
    FETCH_REGISTERS = 24,
    MLP_REGISTERS = 240
};

template <bool STRICT> struct mlp_sizes {
    enum {
        PARTS = STRICT ? 2 : 1,                    /* of a factor */
        STAGES = STRICT ? 2 : 4,                   /* of weights */
        STAGE_BYTES = PARTS * PACKED_BYTES + 1024, /* bias and power, too, at a multiple of 1024 */
        SHARED = STAGES * STAGE_BYTES + MLP_WARPS * WARP_FLOATS * 4 + (int)sizeof(fused_mlp) +
                 STAGES * 16 + 1024
    };
    static_assert(PARTS * PACKED_BYTES + PACKED_BEHIND * 4 <= STAGE_BYTES,
                  "room for packed weights");
};

#if GPU_HAS_WGMMA

/* What a block has in shared memory. */
template <bool STRICT> struct mlp_memory {
    typedef mlp_sizes<STRICT> size;
    char *weights;   /* [STAGES x STAGE_BYTES] */
    float *rows;     /* this warp's, on their way in or out */
    uint64_t *there; /* a barrier a stage: the weights are there, */
    uint64_t *done;  /* and no warp needs them any more */
    fused_mlp *t;

    __device__ explicit mlp_memory(char *shared) {
        weights = shared;
        float *all = (float *)(shared + size::STAGES * size::STAGE_BYTES);
        rows = all + threadIdx.x / 32 * WARP_FLOATS;
        there = (uint64_t *)(all + MLP_WARPS * WARP_FLOATS);
        done = there + size::STAGES;
        t = (fused_mlp *)(done + size::STAGES); /* at a multiple of 16 bytes */
    }
    __device__ char *stage(int which) const { return weights + which * size::STAGE_BYTES; }
};

/* Where a thread is: of its warp's rows the first that it has, and the first of each eight
 * columns. */
struct mlp_position {
    int row, column;
    int rows;     /* that the warp has; none, or less than none, beyond the last */
    int64_t row0; /* the warp's first */
    bool speaks;  /* for its warp: the first lane */
    bool stores;  /* tiles of the stash; they are whole: rows of the last one that nobody has are
                     there, too */
    uint32_t tile, power; /* where the thread's are, from the first tile on; in bytes */
    uint32_t gates;       /* where the thread's are, from the first gates on; in words */

    __device__ mlp_position(const fused_mlp &t, int block, bool strict) {
        const int lane = threadIdx.x % 32;
        row = lane / 4;
        column = lane % 4 * 2;
        row0 = (int64_t)block * t.block_rows + threadIdx.x / 32 * WARP_ROWS;
        const int64_t left = t.rows - row0;
        rows = left < WARP_ROWS ? (int)left : WARP_ROWS;
        const int64_t which = row0 / STASH_TILE_ROWS;
        const int warp = (int)threadIdx.x / 32 % 4;
        speaks = lane == 0;
        stores = which < stash_tiles(t.rows);
        tile = (uint32_t)(which * stash_tile_bytes(strict) + (warp * WARP_ROWS + row) * 128 +
                          (lane % 4 ^ row) * 16);
        power = (uint32_t)((char *)(powers_of(NULL, t.rows, strict) + which * STASH_POWERS + warp) -
                           (char *)NULL);
        gates = (uint32_t)(which * GATE_WORDS + threadIdx.x % 128);
    }
};

/* f(i, h, j) for the 32 pairs i, i + 1 of a thread's 64 numbers: its row 8h, columns 8j on. */
template <typename F> __device__ inline void each_pair(F f) {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 16; j++) f(4 * j + 2 * h, h, j);
}

/* ---- rows in shared memory ---- */

__device__ inline float2 *pair_at(float *rows, const mlp_position &p, int h, int j) {
    return (float2 *)(rows + (p.row + 8 * h) * ROW_FLOATS + 8 * j + p.column);
}

/* f(i, row) for the numbers of a warp's rows of n, which lie one after the other. */
template <typename F> __device__ inline void each_number(const mlp_position &p, int n, F f) {
    const unsigned count = p.rows > 0 ? (unsigned)(p.rows * n) : 0;
    const unsigned part = (1u << 20) / (unsigned)n + 1; /* i * part >> 20 is i / n up to 2048 */
#pragma unroll 4
    for (unsigned i = threadIdx.x % 32; i < count; i += 32) f(i, i * part >> 20);
}

/* Asks for n columns of this warp's rows, zeros around them: they are there when each_of_rows has
 * waited. */
__device__ inline void ask_rows(float *to, const float *from, int n, const mlp_position &p) {
    const float *x = from + p.row0 * n;
    const unsigned lane = threadIdx.x % 32;
    __syncwarp();
    if (n == MLP_WIDTH && (uintptr_t)from % 16 == 0) {
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++)
            copy_16(to + r * ROW_FLOATS + lane * 4, x + r * MLP_WIDTH + lane * 4,
                    r < p.rows ? 16 : 0);
        copies_commit();
        return;
    }
    const float4 zero = {0, 0, 0, 0};
    for (unsigned i = lane; i < WARP_FLOATS / 4; i += 32) ((float4 *)to)[i] = zero;
    __syncwarp();
    each_number(p, n, [&](unsigned i, unsigned row) {
        copy_4(to + row * ROW_FLOATS + i - row * (unsigned)n, x + i, 4);
    });
    copies_commit();
}

/* The same for 128 columns of a table's rows. */
__device__ inline void ask_table(float *to, const mlp_layer &l, const mlp_position &p) {
    const int lane = (int)threadIdx.x % 32;
    const float index = lane < p.rows ? l.index[p.row0 + lane] : 0.0f;
    const int row = table_row(index, l.table_rows);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const int at = __shfl_sync(0xffffffffu, row, r);
        copy_16(to + r * ROW_FLOATS + lane * 4, l.addend + at * MLP_WIDTH + lane * 4,
                r < p.rows ? 16 : 0);
    }
    copies_commit();
}

/* use(i, pair) for what a thread has of rows that were asked for. */
template <typename F>
__device__ inline void each_of_rows(float *rows, const mlp_position &p, F use) {
    copies_wait<0>();
    __syncwarp();
    each_pair([&](int i, int h, int j) { use(i, *pair_at(rows, p, h, j)); });
    __syncwarp();
}

/* The LeakyReLU of what a thread has, times `unit`; `rows` in between, unless the matrix is 128
 * wide. */
__device__ inline void rows_out(float *to, int n, bool wide, float *rows, const mlp_position &p,
                                const float x[64], float unit, float slope) {
    float *out = to + p.row0 * n;
    if (wide) {
        each_pair([&](int i, int h, int j) {
            if (p.row + 8 * h < p.rows)
                *(float2 *)(out + (p.row + 8 * h) * MLP_WIDTH + 8 * j + p.column) =
                    float2{leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
        });
        return;
    }
    __syncwarp();
    each_pair([&](int i, int h, int j) {
        *pair_at(rows, p, h, j) = float2{leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
    });
    __syncwarp();
    each_number(p, n, [&](unsigned i, unsigned row) {
        out[i] = rows[row * ROW_FLOATS + i - row * (unsigned)n];
    });
    __syncwarp();
}

/* ---- factors ---- */

/* What a warp multiplies next, as fp16. All numbers that it has in registers are `power` times as
 * large as they should be, so that they fit. */
template <bool STRICT> struct mlp_factors {
    uint32_t a[32];
    uint32_t rest[STRICT ? 32 : 1]; /* what they leave over */
    float power;
    float slope;  /* of the LeakyReLU that they are */
    bool settled; /* they are known to fit */
    int of;       /* the last layer's output, its LeakyReLU, or something else */
};
enum { OF_NOTHING, OF_OUT, OF_MORE };

/* The largest magnitude that a warp has, as bits. */
__device__ inline uint32_t top_bits(const float x[64]) {
    uint32_t top = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) {
        const uint32_t bits = __float_as_uint(x[i]) & 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return warp_most(top);
}

/* Whether factors of x fit; or all are zero, and not only as fp16. */
__device__ inline bool is_in_range(const uint32_t a[32], const float x[64], bool strict) {
    uint32_t top[4];
#pragma unroll
    for (int k = 0; k < 4; k++) top[k] = larger_fp16(a[k], a[k + 4]);
#pragma unroll
    for (int i = 8; i < 32; i++) top[i % 4] = larger_fp16(top[i % 4], a[i]);
    const uint32_t all = larger_fp16(larger_fp16(top[0], top[1]), larger_fp16(top[2], top[3]));
    const uint32_t low = all & 0xffffu, high = all >> 16;
    const uint32_t most = warp_most(low > high ? low : high);
    const uint32_t least = strict ? 0x5c00u : 0x3000u; /* 256, 1/8 */
    const uint32_t end = strict ? 0x7800u : 0x7400u;   /* 32768, 16384 */
    if (most == 0) return top_bits(x) == 0;
    return most >= least && most < end;
}

__device__ inline void pack(mlp_factors<false> *f, const float x[64], float slope) {
#pragma unroll
    for (int i = 0; i < 32; i++) f->a[i] = pack_fp16(x[2 * i], x[2 * i + 1]);
    if (slope == 1.0f) return;
    const uint32_t slopes = pack_fp16(slope, slope);
#pragma unroll
    for (int i = 0; i < 32; i++) f->a[i] = leaky_fp16(f->a[i], slopes);
}

__device__ inline void pack(mlp_factors<true> *f, const float x[64], float slope) {
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const float u = leaky(x[2 * i], slope), v = leaky(x[2 * i + 1], slope);
        f->a[i] = pack_fp16(u, v);
        const float2 packed = unpack_fp16(f->a[i]);
        f->rest[i] = pack_fp16(u - packed.x, v - packed.y);
    }
}

/* The LeakyReLU of what a thread has, as factors. Whether they fit is looked at later, when there
 * is time. */
template <bool STRICT>
__device__ inline void make_factors(mlp_factors<STRICT> *f, const float x[64], float slope,
                                    int of) {
    f->of = of;
    f->slope = slope;
    f->settled = false;
    pack(f, x, slope);
}

/* Once more, with a power of two for which they fit. */
template <bool STRICT> __device__ inline void refit(mlp_factors<STRICT> *f, float x[64]) {
    const float power = times_power(f->power, __uint_as_float(power_bits(top_bits(x), STRICT)));
    const float ratio = power * inverse_power(f->power);
#pragma unroll
    for (int i = 0; i < 64; i++) x[i] *= ratio;
    f->power = power;
    pack(f, x, f->slope);
}

template <bool STRICT> __device__ inline void settle(mlp_factors<STRICT> *f, float x[64]) {
    if (!f->settled && !is_in_range(f->a, x, STRICT)) refit(f, x);
    f->settled = true;
}

/* What a thread has of rows of memory; straight to registers, if pairs of numbers are together. */
__device__ inline void load_rows(const float *from, int n, const mlp_position &p, float *rows,
                                 float x[64]) {
    if (n % 2 == 0 && (uintptr_t)from % 8 == 0) {
        const float *first = from + (p.row0 + p.row) * n + p.column;
        each_pair([&](int i, int h, int j) {
            const bool there = p.row + 8 * h < p.rows && 8 * j + p.column < n;
            const float2 v = there ? *(const float2 *)(first + 8 * h * n + 8 * j) : float2{0, 0};
            x[i] = v.x, x[i + 1] = v.y;
        });
        return;
    }
    ask_rows(rows, from, n, p);
    each_of_rows(rows, p, [&](int i, float2 v) { x[i] = v.x, x[i + 1] = v.y; });
}

/* Of rows of memory. */
template <bool STRICT>
__device__ inline void load_factors(const mlp_layer &l, const mlp_position &p, float *rows,
                                    float last[64], mlp_factors<STRICT> *f) {
    float x[64];
    load_rows(l.a, l.k, p, rows, x);
    const uint32_t top = top_bits(x);
    if (top && !fits(__uint_as_float(top) * f->power, STRICT)) {
        const float power = __uint_as_float(power_bits(top, STRICT));
        const float ratio = power * inverse_power(f->power);
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] *= ratio;
        f->power = power;
    }
#pragma unroll
    for (int i = 0; i < 64; i++) x[i] *= f->power;
    make_factors(f, x, 1.0f, OF_NOTHING);
    f->settled = true;
}

/* ---- gates ---- */

/* Bits of a thread, 1: the number is negative. Number i's is in byte i % 4 of word i / 32. */
__device__ constexpr uint32_t gate_bit(int i) { return 1u << (i % 4 * 8 + i / 4 % 8); }

/* A thread's words of its stash tile. */
__device__ inline uint32_t *gate_words(const uint32_t *gates, const mlp_position &p) {
    return (uint32_t *)gates + p.gates;
}

/* Which of the factors are negative. */
__device__ inline void store_gates(uint32_t *to, const mlp_position &p, const uint32_t a[32]) {
    uint32_t *at = gate_words(to, p);
    if (p.rows <= 0) return;
#pragma unroll
    for (int w = 0; w < 2; w++) {
        uint32_t closed = 0;
#pragma unroll
        for (int k = 0; k < 8; k++)
            closed |= negative_fp16(a[16 * w + 2 * k], a[16 * w + 2 * k + 1]) & 0x01010101u << k;
        at[w * (GATE_WORDS / 2)] = closed;
    }
}

__device__ inline void load_gates(const uint32_t *gates, const mlp_position &p,
                                  uint32_t closed[2]) {
    const uint32_t *at = gate_words(gates, p);
    closed[0] = p.rows > 0 ? at[0] : 0;
    closed[1] = p.rows > 0 ? at[GATE_WORDS / 2] : 0;
}

/* Of rows that were asked for. */
__device__ inline void find_gates(const mlp_position &p, float *rows, uint32_t closed[2]) {
    closed[0] = closed[1] = 0;
    each_of_rows(rows, p, [&](int i, float2 v) {
        if (!(v.x > 0.0f)) closed[i / 32] |= gate_bit(i);
        if (!(v.y > 0.0f)) closed[i / 32] |= gate_bit(i + 1);
        if (i % 16 == 14) asm volatile("" ::: "memory"); /* no more at once: few registers */
    });
}

/* ---- a product and what comes with it ---- */

/* What sums are added to: the layer before, if `adds`, and the bias. */
__device__ inline void begin_sums(bool adds, bool has_bias, const float *bias, float power,
                                  const mlp_position &p, float last[64]) {
    if (!adds) {
        asm volatile(""); /* a branch: most add */
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = 0;
    }
    if (!has_bias) return;
    each_pair([&](int i, int, int j) {
        const float2 b = *(const float2 *)(bias + 8 * j + p.column);
        last[i] = fmaf(b.x, power, last[i]);
        last[i + 1] = fmaf(b.y, power, last[i + 1]);
    });
}

/* last += the sums, which are 1 / unit too large; times `slope` where a gate is closed. */
__device__ inline void end_sums(bool gated, float unit, float slope, const uint32_t closed[2],
                                const float sum[64], float last[64]) {
    if (!gated) {
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = fmaf(sum[i], unit, last[i]);
        return;
    }
    const float slanted = unit * slope;
#pragma unroll
    for (int q = 0; q < 8; q++) /* byte by byte of the gates */
#pragma unroll
        for (int i = q / 4 * 32 + q % 4; i < q / 4 * 32 + 32; i += 4)
            add_gated(&last[i], sum[i], closed[i / 32], gate_bit(i), slanted, unit);
}

/* k <= MLP_NARROW: no tensor cores. */
__device__ inline void outer_sums(const mlp_layer &l, const mlp_position &p, float sum[64]) {
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0;
    for (int k = 0; k < l.k; k++) {
        float a[2];
        for (int h = 0; h < 2; h++)
            a[h] = p.row + 8 * h < p.rows ? l.a[(p.row0 + p.row + 8 * h) * l.k + k] : 0.0f;
        const float *b = l.b + k * l.n;
        each_pair([&](int i, int h, int j) {
            const int c = 8 * j + p.column;
            sum[i] += a[h] * (c < l.n ? b[c] : 0.0f);
            sum[i + 1] += a[h] * (c + 1 < l.n ? b[c + 1] : 0.0f);
        });
    }
}

/* n <= MLP_NARROW; the four threads of a row add what they have. */
__device__ inline void narrow_product(const mlp_layer &l, const mlp_position &p, float unit,
                                      const float last[64]) {
    const float slope = l.source == FROM_MORE ? l.slope_a : 1.0f;
    for (int c = 0; c < l.n; c++) {
        const float *b = l.b + c * l.k;
        float part[2] = {0, 0};
        each_pair([&](int i, int h, int j) {
            const int k = 8 * j + p.column;
            const float x = k < l.k ? b[k] : 0.0f, y = k + 1 < l.k ? b[k + 1] : 0.0f;
            part[h] += leaky(last[i], slope) * x + leaky(last[i + 1], slope) * y;
        });
        for (int h = 0; h < 2; h++) {
            float v = part[h];
            v += __shfl_xor_sync(0xffffffffu, v, 1);
            v += __shfl_xor_sync(0xffffffffu, v, 2);
            const int r = p.row + 8 * h;
            if (p.column || r >= p.rows) continue;
            l.out[(p.row0 + r) * l.n + c] = fmaf(v, unit, l.bias ? l.bias[c] : 0.0f);
        }
    }
}

#endif

#endif
