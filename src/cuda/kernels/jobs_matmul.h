/* Matrix products on tensor cores, in device code: a block makes TILE_M x TILE_N of the
 * output, or a quarter of that if there are so few blocks that most multiprocessors would have
 * none. Its eight warps have 32 x 32 each, or 16 x 16; TILE_K deep pieces of both factors come
 * through shared memory, STAGES of them, copied in the background.
 *
 * A factor is kept as it lies in memory, row by row, with rows padded so that the 32 numbers
 * a warp reads at once lie in 32 banks. It is copied 16 bytes at a time, whether or not its rows
 * begin at multiples of them: they begin as far behind one in shared memory (shift_of).
 *
 * Loops stay loops: a small product runs through the code once, and then fetching instructions
 * takes longer than the product. */
#ifndef N2_CUDA_JOBS_MATMUL_H
#define N2_CUDA_JOBS_MATMUL_H

#include "cuda/runtime/gpu.h"
#include "job.h"

/* Numbers from a multiple of 16 bytes to x. Rows that are a multiple of four apart agree, and so do
 * columns: a thread, which has such rows, has one shift for each factor. */
__device__ inline int shift_of(const float *x) { return (int)((uintptr_t)x / 4 % 4); }

/* Pieces of a matrix, ROWS x COLUMNS numbers, which follow one another to the right or, if DOWN,
 * downwards; zeros beyond the matrix. A thread has a unit of 16 bytes of every STEP-th row. */
template <int ROWS, int COLUMNS, int PITCH, bool DOWN> struct piece_source {
    enum { LANES = COLUMNS / 4, STEP = JOB_THREADS / LANES };
    static_assert(ROWS % STEP == 0 && STEP % 4 == 0 && PITCH >= COLUMNS + 4, "shift_of");
    const float *at;       /* the thread's first unit of the next piece */
    int ld, rows, columns; /* of a row; from the next piece's first to the matrix's end */
    int shift;
    bool odd; /* rows have different shifts, or one that is not 0 */

    /* The first piece begins at (row0, column0), of so many rows and columns. */
    __device__ piece_source(const float *matrix, int stride, int row0, int all_rows, int column0,
                            int all_columns)
        : ld(stride), rows(all_rows - row0), columns(all_columns - column0) {
        at = matrix + (int64_t)row0 * ld + column0;
        odd = shift_of(at) != 0 || ld % 4 != 0;
        at += (int64_t)first_row() * ld;
        shift = shift_of(at);
        at += 4 * unit() - shift;
    }

    __device__ static int first_row() { return threadIdx.x / LANES; }
    __device__ static int unit() { return threadIdx.x % LANES; }
    /* Of a unit from which on so many numbers are left. */
    __device__ static int bytes(int left) { return left <= 0 ? 0 : left < 4 ? left * 4 : 16; }

    __device__ void load(float *to) {
        const int there = bytes(columns - 4 * unit() + shift);
        float *mine = to + first_row() * PITCH + 4 * unit();
#pragma unroll
        for (int r = 0; r < ROWS; r += STEP)
            copy_16(mine + r * PITCH, at + (int64_t)r * ld, first_row() + r < rows ? there : 0);
        if (odd && threadIdx.x < ROWS) load_end(to);
        at += DOWN ? (int64_t)TILE_K * ld : (int64_t)TILE_K;
        (DOWN ? rows : columns) -= TILE_K;
    }

    /* What is left of a row that does not begin with a unit. */
    __device__ void load_end(float *to) {
        const int r = threadIdx.x;
        const int64_t down = (int64_t)(r - first_row()) * ld;
        const float *end = at + (shift - 4 * unit() + down) + COLUMNS;
        const int there = r < rows ? bytes(columns - COLUMNS + shift_of(end)) : 0;
        if (shift_of(end)) copy_16(to + r * PITCH + COLUMNS, end - shift_of(end), there);
    }
};

/* Splits x into a tf32 number and the tf32 rest. */
__device__ inline void split_tf32(float x, uint32_t *high, uint32_t *low) {
    *high = to_tf32(x);
    *low = to_tf32(x - __uint_as_float(*high));
}

template <bool STRICT>
__device__ inline void multiply(float c[4], const float a[4], const float b[2]) {
    uint32_t ah[4], bh[2];
    if constexpr (STRICT) {
        uint32_t al[4], bl[2];
        for (int i = 0; i < 4; i++) split_tf32(a[i], &ah[i], &al[i]);
        for (int i = 0; i < 2; i++) split_tf32(b[i], &bh[i], &bl[i]);
        mma_tf32(c, al, bh); /* the small ones first */
        mma_tf32(c, ah, bl);
    } else {
        for (int i = 0; i < 4; i++) ah[i] = to_tf32(a[i]);
        for (int i = 0; i < 2; i++) bh[i] = to_tf32(b[i]);
    }
    mma_tf32(c, ah, bh);
}

/* What is added, gated and stored on the way out: n2_call. In registers, because the compiler
 * must assume that a store changes the job. */
struct product_end {
    float *out, *more;
    const float *bias, *gate, *addend;
    int64_t m, n;
    float slope, slope_more;
    bool add, even; /* even: two neighbours are 8 bytes at a multiple of 8 */

    __device__ product_end(const job &j, float *to, int64_t offset)
        : out(to), more(j.more[0]), bias(j.in[3]), gate(j.gate), addend(j.addend), m(j.product.m),
          n(j.product.n), slope(j.slope), slope_more(j.slope_more), add(j.add != 0) {
        if (more) more += offset;
        if (gate) gate += offset;
        if (addend) addend += offset;
        const uintptr_t all = (uintptr_t)out | (uintptr_t)more | (uintptr_t)gate |
                              (uintptr_t)addend | (uintptr_t)bias;
        even = n % 2 == 0 && all % 8 == 0;
    }

    __device__ float finish(float v, float b, float before, float g, float a) const {
        v += b;
        if (add) v += before;
        if (gate) v = g > 0.0f ? v : slope * v;
        return addend ? v + a : v;
    }
    __device__ float leaky(float v) const { return v > 0.0f ? v : slope_more * v; }

    __device__ void finish_one(int64_t r, int64_t c, float &v) const {
        if (c >= n) return;
        const int64_t at = r * n + c;
        v = finish(v, bias ? bias[c] : 0.0f, add ? out[at] : 0.0f, gate ? gate[at] : 0.0f,
                   addend ? addend[at] : 0.0f);
        out[at] = v;
        if (more) more[at] = leaky(v);
    }

    __device__ static float2 two(const float *x, int64_t at) {
        return x ? *(const float2 *)(x + at) : float2{0, 0};
    }

    /* Columns c and c + 1, c even. They become what they are as an output. */
    __device__ void finish_two(int64_t r, int64_t c, float &v0, float &v1) const {
        if (r >= m) return;
        if (!even) {
            finish_one(r, c, v0);
            finish_one(r, c + 1, v1);
            return;
        }
        if (c >= n) return;
        const int64_t at = r * n + c;
        const float2 b = two(bias, c), before = two(add ? out : (const float *)NULL, at);
        const float2 g = two(gate, at), a = two(addend, at);
        v0 = finish(v0, b.x, before.x, g.x, a.x);
        v1 = finish(v1, b.y, before.y, g.y, a.y);
        *(float2 *)(out + at) = float2{v0, v1};
        if (more) *(float2 *)(more + at) = float2{leaky(v0), leaky(v1)};
    }
};

template <bool TA, bool TB, bool STRICT, bool SMALL> struct matmul_block {
    /* of the block's part of the output, and of a warp's */
    static constexpr int HEIGHT = SMALL ? TILE_M / 2 : TILE_M, WIDTH = SMALL ? TILE_N / 2 : TILE_N;
    static constexpr int WARP_M = HEIGHT / 2, WARP_N = WIDTH / 4;
    static constexpr int X = WARP_M / 16, Y = WARP_N / 8; /* products of tensor cores in it */
    static constexpr int DEPTH = TILE_K;
    static constexpr int PITCH_A = TA ? HEIGHT + 8 : DEPTH + 4;
    static constexpr int PITCH_B = TB ? DEPTH + 4 : WIDTH + 8;
    using source_a = piece_source<TA ? DEPTH : HEIGHT, TA ? HEIGHT : DEPTH, PITCH_A, TA>;
    using source_b = piece_source<TB ? WIDTH : DEPTH, TB ? DEPTH : WIDTH, PITCH_B, !TB>;
    const job &j;
    float *shared;
    int m, n, k, m0, n0, k_begin, k_end;
    const float *a, *b;
    float *out;
    int64_t batch_offset;
    int shift_a, shift_b;
    float sum[X][Y][4];

    __device__ matmul_block(const job &work, float *memory, uint32_t block)
        : j(work), shared(memory) {
        const job_product &p = j.product;
        m = (int)p.m, n = (int)p.n, k = (int)p.k;
        const uint32_t row = job_quotient(p.tiles_n, block), z = job_quotient(p.tiles_m, row);
        n0 = (int)(block - row * p.tiles_n.by) * WIDTH;
        m0 = (int)(row - z * p.tiles_m.by) * HEIGHT;
        const int slice = p.slices > 1 ? (int)z : 0, batch = p.slices > 1 ? 0 : (int)z;
        k_begin = slice * p.slice_k;
        k_end = k_begin + p.slice_k < k ? k_begin + p.slice_k : k;
        a = j.in[0] + batch * p.stride_a;
        b = j.in[1] + batch * p.stride_b;
        batch_offset = batch * p.stride_out;
        out = j.out + batch_offset + slice * p.stride_out;
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4; /* multiply_piece */
        shift_a = shift_of(TA ? a + (int64_t)(k_begin + t) * m + m0
                              : a + (int64_t)(m0 + g) * k + k_begin);
        shift_b = shift_of(TB ? b + (int64_t)(n0 + g) * k + k_begin
                              : b + (int64_t)(k_begin + t) * n + n0);
        for (int x = 0; x < X; x++)
            for (int y = 0; y < Y; y++)
                for (int i = 0; i < 4; i++) sum[x][y][i] = 0;
    }

    __device__ source_a pieces_a() const {
        return TA ? source_a(a, m, k_begin, k_end, m0, m) : source_a(a, k, m0, m, k_begin, k_end);
    }
    __device__ source_b pieces_b() const {
        return TB ? source_b(b, k, n0, n, k_begin, k_end) : source_b(b, n, k_begin, k_end, n0, n);
    }

    __device__ void multiply_piece(int piece) {
        const float *sa = shared + piece % STAGES * (A_FLOATS + B_FLOATS), *sb = sa + A_FLOATS;
        sa += shift_a, sb += shift_b;
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int row = threadIdx.x / 128 * WARP_M + g, column = threadIdx.x / 32 % 4 * WARP_N + g;
#pragma unroll(STRICT ? 1 : 4)
        for (int k = t; k < t + TILE_K; k += 8) {
            float fa[X][4], fb[Y][2];
#pragma unroll
            for (int x = 0; x < X; x++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int r = row + x * 16 + i % 2 * 8, l = k + i / 2 * 4;
                    fa[x][i] = TA ? sa[l * PITCH_A + r] : sa[r * PITCH_A + l];
                }
#pragma unroll
            for (int y = 0; y < Y; y++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int c = column + y * 8, l = k + i * 4;
                    fb[y][i] = TB ? sb[c * PITCH_B + l] : sb[l * PITCH_B + c];
                }
#pragma unroll
            for (int x = 0; x < X; x++)
#pragma unroll
                for (int y = 0; y < Y; y++) multiply<STRICT>(sum[x][y], fa[x], fb[y]);
        }
    }

    __device__ void run() {
        const int pieces = (k_end - k_begin + TILE_K - 1) / TILE_K;
        const int row = m0 + (int)threadIdx.x / 128 * WARP_M;
        const int column = n0 + (int)threadIdx.x / 32 % 4 * WARP_N;
        const bool useful = row < m && column < n;
        source_a next_a = pieces_a();
        source_b next_b = pieces_b();
#pragma unroll 1
        for (int piece = 1 - STAGES; piece < pieces; piece++) { /* the first ones are only loaded */
            if (piece >= 0) {
                copies_wait<STAGES - 2>();
                __syncthreads(); /* the piece is there, and nobody reads the one before it */
            }
            const int next = piece + STAGES - 1;
            float *to = shared + next % STAGES * (A_FLOATS + B_FLOATS);
            if (next < pieces) next_a.load(to);
            if (next < pieces) next_b.load(to + A_FLOATS);
            copies_commit();
            if (piece >= 0 && useful) multiply_piece(piece);
        }
        copies_wait<0>();
        __syncthreads();
        finish();
    }

    /* Through shared memory: one loop for all of them. */
    __device__ void finish() {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int row = threadIdx.x / 128 * WARP_M + g;
        const int column = threadIdx.x / 32 % 4 * WARP_N + 2 * t;
#pragma unroll
        for (int x = 0; x < X; x++)
#pragma unroll
            for (int y = 0; y < Y; y++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    shared[(row + x * 16 + i / 2 * 8) * ROW_PITCH + column + y * 8 + i % 2] =
                        sum[x][y][i];
        __syncthreads();
        const product_end end(j, out, batch_offset);
#pragma unroll 1
        for (int v = 2 * threadIdx.x; v < HEIGHT * WIDTH; v += 2 * JOB_THREADS) {
            const int64_t r = m0 + v / WIDTH, c = n0 + v % WIDTH;
            float *at = shared + v / WIDTH * ROW_PITCH + v % WIDTH;
            if (end.even) end.finish_two(r, c, at[0], at[1]);
#pragma unroll 1
            for (int i = 0; i < 2 && !end.even && r < end.m; i++) end.finish_one(r, c + i, at[i]);
        }
    }
};

/* A product whose blocks have whole rows of at most 128 numbers, a not transposed. The rows of a
 * stay in shared memory, where the product before may have left them and where this one leaves
 * its own for the next: a chain of such products is a network. */
template <bool TB, bool STRICT> struct row_block {
    enum { PITCH_B = TB ? TILE_K + 4 : TILE_N + 8 };
    const job &j;
    float *rows, *pieces_b;
    int64_t m0;
    int shift_a, shift_b;
    float sum[2][4][4];

    __device__ row_block(const job &work, float *memory, uint32_t block)
        : j(work), rows(memory), pieces_b(memory + TILE_M * ROW_PITCH),
          m0((int64_t)block * TILE_M) {
        const job_product &p = j.product;
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4; /* multiply_piece */
        shift_a = p.finds ? 0 : shift_of(j.in[0] + (m0 + g) * p.k);
        shift_b = shift_of(j.in[1] + (TB ? g * p.k : t * p.n));
        for (int x = 0; x < 2; x++)
            for (int y = 0; y < 4; y++)
                for (int i = 0; i < 4; i++) sum[x][y][i] = 0;
    }

    __device__ void load_b(int piece, const float *b, int n, int k) {
        const int k0 = piece * TILE_K;
        float *to = pieces_b + piece % STAGES * B_FLOATS;
        if constexpr (TB)
            piece_source<TILE_N, TILE_K, PITCH_B, false>(b, k, 0, n, k0, k).load(to);
        else
            piece_source<TILE_K, TILE_N, PITCH_B, true>(b, n, k0, k, 0, n).load(to);
    }

    __device__ void load(int piece) {
        const job_product &p = j.product;
        const int k = (int)p.k, k0 = piece * TILE_K;
        if (!p.finds)
            piece_source<TILE_M, TILE_K, ROW_PITCH, false>(j.in[0], k, (int)m0, (int)p.m, k0, k)
                .load(rows + k0);
        load_b(piece, j.in[1], (int)p.n, k);
    }

    /* Nobody uses the pieces of b any more: the next product's may come while this one ends. */
    __device__ void begin_next() {
        const job_product &p = j.product;
        if (!p.next_b) return;
#pragma unroll 1
        for (int piece = 0; piece < STAGES - 1; piece++) {
            if (piece * TILE_K < p.next_k) load_b(piece, p.next_b, p.next_n, p.next_k);
            copies_commit();
        }
    }

    __device__ void multiply_piece(int piece) {
        const float *sa = rows + piece * TILE_K + shift_a;
        const float *sb = pieces_b + piece % STAGES * B_FLOATS + shift_b;
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const int row = threadIdx.x / 128 * 32 + g, column = threadIdx.x / 32 % 4 * 32 + g;
#pragma unroll 1
        for (int k = t; k < TILE_K; k += 8) {
            float fa[2][4], fb[4][2];
#pragma unroll
            for (int x = 0; x < 2; x++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    fa[x][i] = sa[(row + x * 16 + i % 2 * 8) * ROW_PITCH + k + i / 2 * 4];
#pragma unroll
            for (int y = 0; y < 4; y++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int c = column + y * 8, l = k + i * 4;
                    fb[y][i] = TB ? sb[c * PITCH_B + l] : sb[l * PITCH_B + c];
                }
#pragma unroll
            for (int x = 0; x < 2; x++)
#pragma unroll
                for (int y = 0; y < 4; y++) multiply<STRICT>(sum[x][y], fa[x], fb[y]);
        }
    }

    __device__ void finish() {
        const product_end end(j, j.out, 0);
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, keeps = j.product.keeps;
        const int row = threadIdx.x / 128 * 32 + g, column = threadIdx.x / 32 % 4 * 32 + 2 * t;
#pragma unroll
        for (int x = 0; x < 2; x++)
#pragma unroll
            for (int y = 0; y < 4; y++)
#pragma unroll
                for (int i = 0; i < 4; i += 2) {
                    const int r = row + x * 16 + i / 2 * 8, c = column + y * 8;
                    float v0 = sum[x][y][i], v1 = sum[x][y][i + 1];
                    end.finish_two(m0 + r, c, v0, v1);
                    if (!keeps) continue;
                    rows[r * ROW_PITCH + c] = keeps == 2 ? end.leaky(v0) : v0;
                    rows[r * ROW_PITCH + c + 1] = keeps == 2 ? end.leaky(v1) : v1;
                }
    }

    __device__ void run() {
        const int pieces = (int)((j.product.k + TILE_K - 1) / TILE_K);
        const bool useful = threadIdx.x / 32 % 4 * 32 < j.product.n;
#pragma unroll 1
        for (int piece = 0; piece < STAGES - 1 && !j.product.begun; piece++) {
            if (piece < pieces) load(piece);
            copies_commit();
        }
        for (int piece = 0; piece < pieces; piece++) {
            copies_wait<STAGES - 2>();
            __syncthreads(); /* the piece is there, and nobody reads the one before it */
            if (piece + STAGES - 1 < pieces) load(piece + STAGES - 1);
            copies_commit();
            if (useful) multiply_piece(piece);
        }
        copies_wait<0>();
        __syncthreads(); /* nobody reads the rows any more */
        begin_next();
        if (useful) finish();
    }
};

template <bool TA, bool TB, bool STRICT>
GPU_JOB void matmul_of(const job &j, float *shared, uint32_t block) {
    if constexpr (!TA)
        if (j.product.rows) {
            row_block<TB, STRICT>(j, shared, block).run();
            return;
        }
    if (j.product.small)
        matmul_block<TA, TB, STRICT, true>(j, shared, block).run();
    else
        matmul_block<TA, TB, STRICT, false>(j, shared, block).run();
}

template <bool STRICT>
__device__ inline void run_matmul_with(const job &j, float *shared, uint32_t block) {
    if (j.product.ta)
        j.product.tb ? matmul_of<true, true, STRICT>(j, shared, block)
                     : matmul_of<true, false, STRICT>(j, shared, block);
    else
        j.product.tb ? matmul_of<false, true, STRICT>(j, shared, block)
                     : matmul_of<false, false, STRICT>(j, shared, block);
}

__device__ inline void run_matmul(const job &j, float *shared, uint32_t block) {
    if (j.product.strict)
        run_matmul_with<true>(j, shared, block);
    else
        run_matmul_with<false>(j, shared, block);
}

#endif
