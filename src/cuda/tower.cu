/* The kernel of towers: tower.h. */
#include "tower.h"

#include "gpu_tensor.h"

/* Code is small on purpose: a block runs through it once a layer, and what does not fit the
 * instruction cache costs more than arithmetic. What is done for every layer works on registers;
 * what is rare (inputs and outputs that are not 128 wide, addends of other kernels) goes through
 * shared memory in plain loops. */

enum {
    WEIGHT_STAGES = 4,
    GROUP_ROWS_BYTES = 64 * ROW_FLOATS * 4, /* a group's rows; or two sheets, with some room left */
    ROWS_FLOATS = 2 * GROUP_ROWS_BYTES / 4,
    TOWER_SHARED = WEIGHT_STAGES * IMAGE_BYTES + 2 * GROUP_ROWS_BYTES +
                   MOST_LAYERS * (TOWER_WIDTH + 1) * 4 + (int)sizeof(tower) + 2048
};

#if GPU_HAS_TOWERS

/* What a block has in shared memory. */
struct tower_memory {
    char *weights;           /* [WEIGHT_STAGES] images */
    float *rows;             /* on their way in or out; each group's part also has two sheets */
    float *bias;             /* [MOST_LAYERS x 128] */
    float *power;            /* [MOST_LAYERS], of the images */
    uint64_t *weights_there; /* a barrier a stage */
    int *done, *asked;       /* groups done with a stage; layers whose weights were asked for */
    tower *t;

    __device__ explicit tower_memory(char *shared) {
        weights = shared;
        rows = (float *)(shared + WEIGHT_STAGES * IMAGE_BYTES);
        bias = rows + ROWS_FLOATS;
        power = bias + MOST_LAYERS * TOWER_WIDTH;
        weights_there = (uint64_t *)(power + MOST_LAYERS);
        done = (int *)(weights_there + WEIGHT_STAGES);
        asked = done + WEIGHT_STAGES;
        t = (tower *)(asked + 2);
    }
    __device__ char *sheet(int which) const {
        return (char *)rows + threadIdx.x / 128 * GROUP_ROWS_BYTES + which * SHEET_BYTES;
    }
};

/* Where a thread is: its first row of the block and first column of each eight. */
struct tower_place {
    int row, column, rows;
    int64_t row0;

    __device__ tower_place(const tower &t, int block) {
        const int lane = threadIdx.x % 32;
        row = (int)threadIdx.x / 32 * 16 + lane / 4;
        column = lane % 4 * 2;
        row0 = (int64_t)block * t.block_rows;
        const int64_t left = t.rows - row0;
        rows = left < t.block_rows ? (int)left : t.block_rows;
    }
};

/* f(i, h, j) for the 32 pairs i, i + 1 of a thread's 64 numbers: its row 8h, columns 8j on. */
template <typename F> __device__ inline void each_pair(F f) {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 16; j++) f(4 * j + 2 * h, h, j);
}

/* Right for slopes up to 1, and others are not let in. */
__device__ inline float leaky(float x, float slope) { return fmaxf(x, slope * x); }

/* ---- rows in shared memory ---- */

/* f(i, row, column) for the numbers of `rows` rows of n, which lie one after the other. */
template <typename F> __device__ inline void each_number(int rows, int n, F f) {
#pragma unroll 8
    for (int i = (int)threadIdx.x; i < rows * n; i += (int)blockDim.x) f(i, i / n, i % n);
}

__device__ inline void clear_rows(float *rows) {
    float4 *to = (float4 *)rows;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < ROWS_FLOATS / 4; i += (int)blockDim.x)
        to[i] = float4{0, 0, 0, 0};
}

__device__ inline float2 *pair_at(float *rows, const tower_place &p, int h, int j) {
    return (float2 *)(rows + (p.row + 8 * h) * ROW_FLOATS + 8 * j + p.column);
}

/* Nobody uses them any more, nor the sheets in their place. */
__device__ inline void rows_free() {
    if (threadIdx.x % 128 == 0) stores_read<0>();
    __syncthreads();
}

/* f(i, pair, h, j) for what a thread has of them; then the group may put sheets there. */
template <typename F> __device__ inline void each_pair_of(float *rows, const tower_place &p, F f) {
    each_pair([&](int i, int h, int j) { f(i, *pair_at(rows, p, h, j)); });
    group_sync();
}

/* n columns of this block's rows, zeros around them. */
__device__ inline void rows_in(float *to, const float *from, int n, const tower_place &p) {
    rows_free();
    const float *x = from + p.row0 * n;
    if (n < TOWER_WIDTH || p.rows < (int)blockDim.x / 2) clear_rows(to);
    __syncthreads();
    if (n == TOWER_WIDTH && (uintptr_t)from % 16 == 0)
        each_number(p.rows, TOWER_WIDTH / 4, [&](int i, int r, int c) {
            *(float4 *)(to + r * ROW_FLOATS + 4 * c) = ((const float4 *)x)[i];
        });
    else
        each_number(p.rows, n, [&](int i, int r, int c) { to[r * ROW_FLOATS + c] = x[i]; });
    __syncthreads();
}

/* The LeakyReLU of what a thread has; `rows` in between, unless the matrix is 128 wide. */
__device__ inline void rows_out(float *to, int n, bool wide, float *rows, const tower_place &p,
                                const float x[64], float slope) {
    float *out = to + p.row0 * n;
    if (wide) {
        each_pair([&](int i, int h, int j) {
            if (p.row + 8 * h < p.rows)
                *(float2 *)(out + (p.row + 8 * h) * TOWER_WIDTH + 8 * j + p.column) =
                    float2{leaky(x[i], slope), leaky(x[i + 1], slope)};
        });
        return;
    }
    rows_free();
    each_pair([&](int i, int h, int j) {
        *pair_at(rows, p, h, j) = float2{leaky(x[i], slope), leaky(x[i + 1], slope)};
    });
    __syncthreads();
    each_number(p.rows, n, [&](int i, int r, int c) { out[i] = rows[r * ROW_FLOATS + c]; });
    __syncthreads();
}

/* ---- factors ---- */

/* What a warp multiplies next, as halves, and the power of two that they were multiplied by. */
struct tower_factors {
    uint32_t a[32];
    float power;
    int of; /* OF_OUT or OF_MORE of the last layer, or OF_NOTHING */
};
enum { OF_NOTHING, OF_OUT, OF_MORE };

__device__ inline float power_for(const float x[64]) {
    uint32_t top = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) {
        const uint32_t bits = __float_as_uint(x[i]) & 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return __uint_as_float(power_bits(warp_most(top)));
}

/* Whether the largest is within 1/8 and 16384, or all are zero. */
__device__ inline bool is_in_range(const uint32_t a[32]) {
    uint32_t top = larger_halves(a[0], a[1]);
#pragma unroll
    for (int i = 2; i < 32; i++) top = larger_halves(top, a[i]);
    const uint32_t low = top & 0xffffu, high = top >> 16;
    top = warp_most(low > high ? low : high);
    return top == 0 || (top >= 0x3000u && top < 0x7400u);
}

/* The LeakyReLU of what a thread has, as factors. */
__device__ inline void make_factors(tower_factors *f, const float x[64], float slope) {
    bool good = false;
#pragma unroll 1
    for (int attempt = 0; attempt < 2 && !good; attempt++) {
        if (attempt) f->power = power_for(x);
        const float power = f->power, slanted = slope * f->power;
#pragma unroll
        for (int i = 0; i < 64; i += 2)
            f->a[i / 2] = pack_halves(fmaxf(x[i] * power, x[i] * slanted),
                                      fmaxf(x[i + 1] * power, x[i + 1] * slanted));
        good = is_in_range(f->a);
    }
}

__device__ inline void load_factors(const tower_layer &l, const tower_place &p, float *rows,
                                    const float last[64], tower_factors *f) {
    if (l.source != FROM_MEMORY) {
        const bool more = l.source == FROM_MORE;
        if (f->of != (more ? OF_MORE : OF_OUT)) make_factors(f, last, more ? l.slope_a : 1.0f);
        return;
    }
    float x[64];
    rows_in(rows, l.a, l.k, p);
    each_pair_of(rows, p, [&](int i, float2 v) { x[i] = v.x, x[i + 1] = v.y; });
    make_factors(f, x, 1.0f);
}

/* ---- sheets and gates ---- */

/* Bits of a thread: of pair i / 2 the first number's is i / 2 % 16 of word i / 32, the second's 16
 * further on. */
__device__ inline uint32_t gate_bit(int i) { return 1u << (i / 2 % 16 + i % 2 * 16); }

/* Which of the factors are not negative. */
__device__ inline void gates_of_factors(const uint32_t a[32], uint32_t open[2]) {
#pragma unroll
    for (int w = 0; w < 2; w++) {
        uint32_t closed = 0;
#pragma unroll
        for (int k = 0; k < 16; k++)
            closed |= a[16 * w + k] >> (15 - k) & 0x00010001u << k;
        open[w] = ~closed;
    }
}

/* This group's sheet: its number. Groups beyond the last row have none. */
__device__ inline int64_t sheet_of(const tower_place &p) {
    return p.row0 / SHEET_ROWS + threadIdx.x / 128;
}
__device__ inline bool has_rows(const tower_place &p) {
    return (int)threadIdx.x / 128 * SHEET_ROWS < p.rows;
}

__device__ inline void store_gates(uint32_t *to, const tower_place &p, const uint32_t a[32]) {
    if (!has_rows(p)) return;
    uint32_t open[2];
    gates_of_factors(a, open);
    uint32_t *at = to + sheet_of(p) * GATE_WORDS + threadIdx.x % 128;
    at[0] = open[0];
    at[GATE_WORDS / 2] = open[1];
}

/* ---- a product and what comes with it ---- */

/* Two words a thread. */
__device__ inline void open_gate(uint32_t open[2], int i, float2 x) {
    if (x.x > 0.0f) open[i / 32] |= gate_bit(i);
    if (x.y > 0.0f) open[i / 32] |= gate_bit(i + 1);
}

__device__ inline void load_gate(const tower_layer &l, const tower_place &p, float *rows,
                                 uint32_t open[2]) {
    open[0] = open[1] = 0;
    if (l.gates) {
        if (!has_rows(p)) return;
        const uint32_t *at = l.gates + sheet_of(p) * GATE_WORDS + threadIdx.x % 128;
        open[0] = at[0];
        open[1] = at[GATE_WORDS / 2];
        return;
    }
    if (!l.wide) {
        rows_in(rows, l.gate, l.n, p);
        each_pair_of(rows, p, [&](int i, float2 x) { open_gate(open, i, x); });
        return;
    }
    const float *gate = l.gate + p.row0 * TOWER_WIDTH + p.column;
    each_pair([&](int i, int h, int j) {
        const int row = p.row + 8 * h < p.rows ? p.row + 8 * h : p.rows - 1;
        open_gate(open, i, *(const float2 *)(gate + row * TOWER_WIDTH + 8 * j));
    });
}

/* What a layer makes of its sums, which are 1 / unit too large. */
__device__ inline void end_sums(const tower_layer &l, const tower_place &p, const float *bias,
                                float unit, float *rows, const uint32_t open[2],
                                const float sum[64], float last[64]) {
    const bool gated = l.gate, adds = l.adds_last;
    const float slope = l.slope;
    each_pair([&](int i, int, int j) {
        const float2 b = *(const float2 *)(bias + 8 * j + p.column);
        float x = fmaf(sum[i], unit, b.x), y = fmaf(sum[i + 1], unit, b.y);
        if (gated) {
            x *= open[i / 32] & gate_bit(i) ? 1.0f : slope;
            y *= open[i / 32] & gate_bit(i + 1) ? 1.0f : slope;
        }
        last[i] = adds ? last[i] + x : x;
        last[i + 1] = adds ? last[i + 1] + y : y;
    });
    if (adds || !l.addend) return;
    rows_in(rows, l.addend, l.n, p);
    each_pair_of(rows, p, [&](int i, float2 x) { last[i] += x.x, last[i + 1] += x.y; });
}

/* k <= TOWER_NARROW: no tensor cores. */
__device__ inline void outer_sums(const tower_layer &l, const tower_place &p, float *rows,
                                  float sum[64]) {
    rows_free();
    const float *a = l.a + p.row0 * l.k;
    clear_rows(rows);
    __syncthreads();
    for (int k = 0; k < l.k; k++)
        each_number(p.rows, l.n, [&](int, int r, int c) {
            rows[r * ROW_FLOATS + c] += a[r * l.k + k] * l.b[k * l.n + c];
        });
    __syncthreads();
    each_pair_of(rows, p, [&](int i, float2 x) { sum[i] = x.x, sum[i + 1] = x.y; });
}

/* n <= TOWER_NARROW; the four threads of a row add what they have. */
__device__ inline void narrow_product(const tower_layer &l, const tower_place &p,
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
            l.out[(p.row0 + r) * l.n + c] = v + (l.bias ? l.bias[c] : 0.0f);
        }
    }
}

/* ---- a block ---- */

struct tower_block {
    tower_memory m;
    tower_place p;
    int used;   /* products done */
    int sheets; /* sheets on their way */

    __device__ tower_block(const tower_memory &memory, int b)
        : m(memory), p(*memory.t, b), used(0), sheets(0) {}

    /* One thread: the next layer's weights, if there is one, into the stage that is free. */
    __device__ void fetch_weights(int stage) {
        int next = *(volatile int *)m.asked;
        while (next < m.t->n_layers && m.t->layer[next].kind != LAYER_PRODUCT) next++;
        if (next == m.t->n_layers) return;
        *(volatile int *)m.asked = next + 1;
        arrival_expect(&m.weights_there[stage], IMAGE_BYTES);
        copy_bulk(m.weights + stage * IMAGE_BYTES, m.t->layer[next].b, IMAGE_BYTES,
                  &m.weights_there[stage]);
    }

    /* One of the group's two, as soon as all of it are here. */
    __device__ void free_sheet() {
        if (threadIdx.x % 128 == 0) stores_read<1>();
        group_sync();
    }

    /* This group no longer reads a stage. The last one to say so asks for what comes next: groups
     * do not wait for one another, so that one multiplies while the other stores. */
    __device__ void leave_stage(int stage) {
        free_sheet();
        if (threadIdx.x % 128) return;
        __threadfence_block();
        const int groups = (int)blockDim.x / 128;
        if (atomicAdd(&m.done[stage], 1) % groups != groups - 1) return;
        __threadfence_block();
        fetch_weights(stage);
    }

    __device__ void begin() {
        if (threadIdx.x == 0)
            for (int s = 0; s < WEIGHT_STAGES; s++) fetch_weights(s);
    }

    __device__ void product(const tower_layer &l, uint32_t open[2], const float last[64],
                            float sum[64], tower_factors *f) {
        load_factors(l, p, m.rows, last, f);
        const int stage = used % WEIGHT_STAGES;
        arrival_wait(&m.weights_there[stage], (unsigned)(used / WEIGHT_STAGES));
        used++;
        products_begin(sum);
        multiply_rows(sum, f->a, m.weights + stage * IMAGE_BYTES);
        products_end();
        if (l.gate && (l.gates || l.wide)) load_gate(l, p, m.rows, open);
        products_wait(sum);
        leave_stage(stage);
    }

    /* Factors, on their way while the next product is made. */
    __device__ void sheet_out(void *to, const tower_factors *f) {
        char *sheet = m.sheet(sheets++ % 2);
        store_sheet(f->a, sheet);
        shared_written();
        group_sync();
        if (!has_rows(p)) return;
        if (threadIdx.x % 128 == 0)
            store_bulk((char *)to + sheet_of(p) * SHEET_BYTES, sheet, SHEET_BYTES);
        if (threadIdx.x % 32 == 0)
            powers_of(to, m.t->rows)[sheet_of(p) * SHEET_POWERS + threadIdx.x / 32 % 4] =
                inverse_power(f->power);
    }

    __device__ void store(const tower_layer &l, const float last[64], tower_factors *f) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) { /* one copy of the code */
            float *to = more ? l.more : l.out;
            if (to) rows_out(to, l.n, l.wide, m.rows, p, last, more ? l.slope_more : 1.0f);
            void *sheet = more ? l.more_sheets : l.out_sheets;
            if (!sheet && !(more && l.more_gates)) continue;
            if (more && l.out_sheets) free_sheet();
            make_factors(f, last, more ? l.slope_more : 1.0f);
            f->of = more ? OF_MORE : OF_OUT;
            if (sheet) sheet_out(sheet, f);
            if (more && l.more_gates) store_gates(l.more_gates, p, f->a);
        }
    }

    __device__ void layer(int k, uint32_t open[2], float last[64], float sum[64],
                          tower_factors *f) {
        const tower_layer &l = m.t->layer[k];
        float unit = 1;
        if (l.kind == LAYER_PRODUCT) {
            product(l, open, last, sum, f);
            unit = m.power[k] * inverse_power(f->power);
        } else {
            outer_sums(l, p, m.rows, sum);
        }
        if (l.gate && !((l.gates || l.wide) && l.kind == LAYER_PRODUCT))
            load_gate(l, p, m.rows, open);
        end_sums(l, p, m.bias + k * TOWER_WIDTH, unit, m.rows, open, sum, last);
        f->of = OF_NOTHING;
        store(l, last, f);
    }

    __device__ void run() {
        float last[64], sum[64];
        uint32_t open[2] = {0, 0};
        tower_factors f;
        f.power = 1;
        f.of = OF_NOTHING;
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = sum[i] = 0;
        begin();
#pragma unroll 1
        for (int k = 0; k < m.t->n_layers; k++) {
            const tower_layer &l = m.t->layer[k];
            if (l.kind == LAYER_NARROW)
                narrow_product(l, p, last);
            else
                layer(k, open, last, sum, &f);
        }
        if (threadIdx.x % 128 == 0) stores_read<0>(); /* shared memory lasts no longer than we do */
    }
};

__device__ static void copy_tower(tower *to, const tower *from) {
    const uint32_t *x = (const uint32_t *)from;
    for (int i = (int)threadIdx.x; i < (int)(sizeof *to / 4); i += (int)blockDim.x)
        ((uint32_t *)to)[i] = x[i];
}

__device__ static void copy_biases(const tower_memory &m) {
    for (int k = (int)threadIdx.x; k < m.t->n_layers; k += (int)blockDim.x)
        if (m.t->layer[k].kind == LAYER_PRODUCT) m.power[k] = m.t->layer[k].b[IMAGE_FLOATS];
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < m.t->n_layers * TOWER_WIDTH; i += (int)blockDim.x) {
        const tower_layer &l = m.t->layer[i / TOWER_WIDTH];
        const int c = i % TOWER_WIDTH;
        m.bias[i] = l.bias && c < l.n ? l.bias[c] : 0.0f;
    }
}

__device__ static void prepare_block(const tower_memory &m, const tower *towers, int n) {
    int which = 0;
    while (which + 1 < n && (int)blockIdx.x >= towers[which + 1].first_block) which++;
    copy_tower(m.t, &towers[which]);
    if (threadIdx.x == 0) {
        for (int s = 0; s < WEIGHT_STAGES; s++) arrival_init(&m.weights_there[s]), m.done[s] = 0;
        *m.asked = 0;
        arrivals_ready();
    }
    __syncthreads();
    copy_biases(m);
    __syncthreads();
}
#endif

__global__ void __launch_bounds__(TOWER_THREADS, 1) run_towers(const tower *towers, int n) {
#if GPU_HAS_TOWERS
    GPU_SHARED(shared);
    const tower_memory m(image_aligned(shared));
    prepare_block(m, towers, n);
    tower_block(m, (int)blockIdx.x - m.t->first_block).run();
#else
    (void)towers, (void)n;
#endif
}

/* Every architecture that the file is compiled for has its own. */
__device__ int code_has_towers = GPU_HAS_TOWERS;

cudaError_t n2_towers_prepare(bool *there) {
    int has = 0;
    const cudaError_t error = cudaMemcpyFromSymbol(&has, code_has_towers, sizeof has);
    *there = has != 0;
    if (error != cudaSuccess || !has) return error;
    return cudaFuncSetAttribute(run_towers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                TOWER_SHARED);
}

void n2_towers_launch(const tower *towers, int n, uint32_t blocks, int block_rows,
                      cudaStream_t stream) {
    GPU_LAUNCH(run_towers, blocks, (unsigned)block_rows * 2, TOWER_SHARED, stream, towers, n);
}
