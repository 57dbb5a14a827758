/* The kernel of towers: tower.h. */
#include "tower.h"

#include "gpu_tensor.h"

/* Code is small on purpose: a block runs through it once a layer, and what does not fit the
 * instruction cache costs more than arithmetic. What is done for every layer works on registers;
 * what is rare (inputs and outputs that are not 128 wide, addends of other kernels) goes through
 * shared memory in plain loops. */

enum {
    WEIGHT_STAGES = 2,
    ROWS_FLOATS = TOWER_ROWS * ROW_FLOATS,
    TOWER_SHARED = 4 * (IMAGE_FLOATS + 2 * ROWS_FLOATS + MOST_LAYERS * TOWER_WIDTH) +
                   (int)sizeof(tower) + 3072
};

#if GPU_HAS_TOWERS

/* What a block has in shared memory. */
struct tower_memory {
    float *weights[WEIGHT_STAGES]; /* the second is the gradient's input, if there are gradients */
    float *rows;                   /* on their way in or out; a factor of the gradient */
    float *bias;                   /* [MOST_LAYERS x 128] */
    float *column_sums;            /* [2 x 128] */
    uint64_t *weights_there;       /* a barrier a stage */
    int *done, *asked;             /* groups done with a stage; layers whose weights were asked for */
    tower *t;

    __device__ explicit tower_memory(float *shared) {
        weights[0] = shared;
        rows = shared + IMAGE_FLOATS;
        weights[1] = rows + ROWS_FLOATS;
        bias = weights[1] + ROWS_FLOATS;
        column_sums = bias + MOST_LAYERS * TOWER_WIDTH;
        weights_there = (uint64_t *)(column_sums + 2 * TOWER_WIDTH);
        done = (int *)(weights_there + WEIGHT_STAGES);
        asked = done + WEIGHT_STAGES;
        t = (tower *)(asked + 2);
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

/* n columns of this block's rows, zeros around them. */
__device__ inline void rows_in(float *to, const float *from, int n, const tower_place &p) {
    __syncthreads();
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
    __syncthreads();
    each_pair([&](int i, int h, int j) {
        *pair_at(rows, p, h, j) = float2{leaky(x[i], slope), leaky(x[i + 1], slope)};
    });
    __syncthreads();
    each_number(p.rows, n, [&](int i, int r, int c) { out[i] = rows[r * ROW_FLOATS + c]; });
}

/* The same in a block's own order, for a later tower with these blocks or for who adds slices
 * up. */
__device__ inline void own_out(float *to, int block, const float x[64], float slope) {
    float4 *out =
        (float4 *)(to + (int64_t)block * IMAGE_FLOATS + own_place((int)threadIdx.x, 0));
#pragma unroll
    for (int i = 0; i < 64; i += 4)
        out[i / 4 * 128] = float4{leaky(x[i], slope), leaky(x[i + 1], slope),
                                  leaky(x[i + 2], slope), leaky(x[i + 3], slope)};
}

/* ---- factors ---- */

/* Tensor cores cut the last 13 bits off. A little more of the number itself makes that a rounding:
 * without bias, off by at most 0.7 of the last bit that counts; what is not finite stays so. */
__device__ inline uint32_t to_factor(float x) {
    return __float_as_uint(fmaf(x, 0.7f / 2048, x));
}

/* Pair i of sums as factors. */
__device__ inline void set_factors(uint32_t a[64], int i, float x, float y) {
    a[i / 4 * 4 + i % 4 / 2] = to_factor(x);
    a[i / 4 * 4 + i % 4 / 2 + 2] = to_factor(y);
}

__device__ inline void load_factors(const tower_layer &l, const tower_place &p, float *rows,
                                    const float last[64], uint32_t a[64]) {
    if (l.source == FROM_MEMORY) {
        rows_in(rows, l.a, l.k, p);
        each_pair([&](int i, int h, int j) {
            const float2 x = *pair_at(rows, p, h, j);
            set_factors(a, i, x.x, x.y);
        });
        return;
    }
    const float slope = l.source == FROM_MORE ? l.slope_a : 1.0f;
    each_pair([&](int i, int, int) {
        set_factors(a, i, leaky(last[i], slope), leaky(last[i + 1], slope));
    });
}

/* ---- a product and what comes with it ---- */

/* Sums begin with the bias and, if no gate comes between, with what is added. */
__device__ inline void begin_sums(const tower_layer &l, const tower_place &p, const float *bias,
                                  float *rows, const float last[64], float sum[64]) {
    each_pair([&](int i, int, int j) {
        const float2 b = *(const float2 *)(bias + 8 * j + p.column);
        sum[i] = b.x, sum[i + 1] = b.y;
    });
    if (l.gate || !l.addend) return;
    if (l.adds_last) {
        each_pair([&](int i, int, int) { sum[i] += last[i], sum[i + 1] += last[i + 1]; });
        return;
    }
    rows_in(rows, l.addend, l.n, p);
    each_pair([&](int i, int h, int j) {
        const float2 x = *pair_at(rows, p, h, j);
        sum[i] += x.x, sum[i + 1] += x.y;
    });
}

/* Two words a thread. */
__device__ inline uint32_t *bits_of(const float *at, int block) {
    return (uint32_t *)at + (int64_t)block * (2 * (int)blockDim.x) + threadIdx.x;
}

/* Which numbers are positive, a bit each. */
__device__ inline void open_gate(uint32_t open[2], int i, float2 x) {
    open[i / 32] |= (uint32_t)(x.x > 0.0f) << i % 32 | (uint32_t)(x.y > 0.0f) << (i + 1) % 32;
}

__device__ inline void store_bits(float *to, int block, const float x[64]) {
    uint32_t open[2] = {0, 0};
    each_pair([&](int i, int, int) { open_gate(open, i, float2{x[i], x[i + 1]}); });
    uint32_t *at = bits_of(to, block);
    at[0] = open[0];
    at[blockDim.x] = open[1];
}

__device__ inline void load_gate(const tower_layer &l, const tower_place &p, int block,
                                 float *rows, uint32_t open[2]) {
    if (l.gate_bits) {
        const uint32_t *at = bits_of(l.gate, block);
        open[0] = at[0];
        open[1] = at[blockDim.x];
        return;
    }
    open[0] = open[1] = 0;
    if (!l.wide) {
        rows_in(rows, l.gate, l.n, p);
        each_pair([&](int i, int h, int j) { open_gate(open, i, *pair_at(rows, p, h, j)); });
        return;
    }
    const float *gate = l.gate + p.row0 * TOWER_WIDTH + p.column;
    each_pair([&](int i, int h, int j) {
        const int row = p.row + 8 * h < p.rows ? p.row + 8 * h : p.rows - 1;
        open_gate(open, i, *(const float2 *)(gate + row * TOWER_WIDTH + 8 * j));
    });
}

__device__ inline void end_sums(const tower_layer &l, const tower_place &p, float *rows,
                                const uint32_t open[2], float sum[64], float last[64]) {
    if (!l.gate) {
        each_pair([&](int i, int, int) { last[i] = sum[i], last[i + 1] = sum[i + 1]; });
        return;
    }
    const float slope = l.slope;
    const bool adds = l.adds_last;
    each_pair([&](int i, int, int) {
        const float u = open[i / 32] & 1u << i % 32 ? 1.0f : slope;
        const float v = open[i / 32] & 1u << (i + 1) % 32 ? 1.0f : slope;
        last[i] = fmaf(sum[i], u, adds ? last[i] : 0.0f);
        last[i + 1] = fmaf(sum[i + 1], v, adds ? last[i + 1] : 0.0f);
    });
    if (adds) return;
    if (!l.addend) return;
    rows_in(rows, l.addend, l.n, p);
    each_pair([&](int i, int h, int j) {
        const float2 x = *pair_at(rows, p, h, j);
        last[i] += x.x, last[i + 1] += x.y;
    });
}

/* k <= TOWER_NARROW: no tensor cores. */
__device__ inline void outer_sums(const tower_layer &l, const tower_place &p, float *rows,
                                  float sum[64]) {
    __syncthreads();
    const float *a = l.a + p.row0 * l.k;
    clear_rows(rows);
    __syncthreads();
    for (int k = 0; k < l.k; k++)
        each_number(p.rows, l.n, [&](int, int r, int c) {
            rows[r * ROW_FLOATS + c] += a[r * l.k + k] * l.b[k * l.n + c];
        });
    __syncthreads();
    each_pair([&](int i, int h, int j) {
        const float2 x = *pair_at(rows, p, h, j);
        sum[i] += x.x, sum[i + 1] += x.y;
    });
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

/* ---- gradients ---- */

/* Factors as the image of their transpose: columns are rows of it, rows its inner numbers. */
__device__ inline void store_transposed(const tower_place &p, const uint32_t a[64], float *image) {
    each_pair([&](int i, int h, int j) {
        const unsigned r = (unsigned)(p.row + 8 * h), c = (unsigned)(8 * j + p.column);
        image[image_at(c, r)] = __uint_as_float(a[i / 4 * 4 + i % 4 / 2]);
        image[image_at(c + 1, r)] = __uint_as_float(a[i / 4 * 4 + i % 4 / 2 + 2]);
    });
}

/* A thread's numbers of the layer's input. */
__device__ inline void load_input(const tower_layer &l, const tower_place &p, int block,
                                  float x[64]) {
    if (l.own_input) {
        const float4 *in = (const float4 *)(l.input + (int64_t)block * IMAGE_FLOATS +
                                            own_place((int)threadIdx.x, 0));
#pragma unroll
        for (int i = 0; i < 64; i += 4) {
            const float4 v = in[i / 4 * 128];
            x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        }
        return;
    }
    const float *in = l.input + p.row0 * TOWER_WIDTH + p.column;
    each_pair([&](int i, int h, int j) {
        const int row = p.row + 8 * h < p.rows ? p.row + 8 * h : p.rows - 1;
        const float2 v = *(const float2 *)(in + row * TOWER_WIDTH + 8 * j);
        x[i] = v.x, x[i + 1] = v.y;
    });
}

/* As factors, zeros beyond the last row, and which are positive. */
__device__ inline void take_input(const tower_place &p, const float x[64], uint32_t a[64],
                                  uint32_t open[2]) {
    open[0] = open[1] = 0;
    each_pair([&](int i, int h, int) {
        const bool inside = p.row + 8 * h < p.rows;
        set_factors(a, i, inside ? x[i] : 0.0f, inside ? x[i + 1] : 0.0f);
        open_gate(open, i, float2{x[i], x[i + 1]});
    });
}

/* Half of the rows each for two threads a column. */
__device__ inline void sum_columns(const float *image, float *sums) {
    const unsigned column = threadIdx.x % 128, half = threadIdx.x / 128;
    float sum = 0;
#pragma unroll 4
    for (unsigned r = half * 64; r < half * 64 + 64; r += 4) {
        const float4 x = *(const float4 *)(image + image_at(column, r));
        sum += x.x + x.y + (x.z + x.w);
    }
    sums[threadIdx.x] = sum;
}

__device__ inline void store_gradient(const tower_layer &l, const tower_place &p, int block,
                                      const float sum[64]) {
    if (l.own_gradient) {
        own_out(l.gradient, block, sum, 1.0f);
        return;
    }
    float *out = l.gradient + (int64_t)block * IMAGE_FLOATS + p.row * TOWER_WIDTH + p.column;
    if (l.gradient_adds)
        each_pair([&](int i, int h, int j) {
            float2 *at = (float2 *)(out + 8 * h * TOWER_WIDTH + 8 * j);
            *at = float2{sum[i] + at->x, sum[i + 1] + at->y};
        });
    else
        each_pair([&](int i, int h, int j) {
            *(float2 *)(out + 8 * h * TOWER_WIDTH + 8 * j) = float2{sum[i], sum[i + 1]};
        });
}

__device__ inline void store_sums(const tower_layer &l, int block, const float *sums) {
    if (!l.sums || threadIdx.x >= TOWER_WIDTH) return;
    float *at = l.sums + (int64_t)block * TOWER_WIDTH + threadIdx.x;
    const float x = sums[threadIdx.x] + sums[threadIdx.x + TOWER_WIDTH];
    *at = l.sums_add ? *at + x : x;
}

/* ---- a block ---- */

struct tower_block {
    tower_memory m;
    tower_place p;
    int block;
    int stages, used; /* weights: stages there are, products done */

    __device__ tower_block(const tower_memory &memory, int b)
        : m(memory), p(*memory.t, b), block(b), stages(m.t->gradients ? 1 : WEIGHT_STAGES),
          used(0) {}

    /* One thread: the next layer's weights, if there is one, into the stage that is free. */
    __device__ void fetch_weights(int stage) {
        int next = *(volatile int *)m.asked;
        while (next < m.t->n_layers && m.t->layer[next].kind != LAYER_PRODUCT) next++;
        if (next == m.t->n_layers) return;
        *(volatile int *)m.asked = next + 1;
        arrival_expect(&m.weights_there[stage], IMAGE_FLOATS * 4);
        copy_bulk(stage ? m.weights[1] : m.weights[0], m.t->layer[next].b, IMAGE_FLOATS * 4,
                  &m.weights_there[stage]);
    }

    /* This group no longer reads a stage. The last one to say so asks for what comes next: groups
     * do not wait for one another, so that one multiplies while the other stores. */
    __device__ void leave_stage(int stage) {
        group_sync();
        if (threadIdx.x % 128) return;
        __threadfence_block();
        const int groups = (int)blockDim.x / 128;
        if (atomicAdd(&m.done[stage], 1) % groups != groups - 1) return;
        __threadfence_block();
        fetch_weights(stage);
    }

    __device__ void begin() {
        if (threadIdx.x == 0)
            for (int s = 0; s < stages; s++) fetch_weights(s);
    }

    __device__ void product(const tower_layer &l, uint32_t open[2], float last[64], float sum[64]) {
        uint32_t a[64];
        load_factors(l, p, m.rows, last, a);
        const int stage = used % stages;
        arrival_wait(&m.weights_there[stage], (unsigned)(used / stages));
        used++;
        products_begin(sum);
        multiply_rows(sum, a, stage ? m.weights[1] : m.weights[0]);
        products_end();
        if (l.gate && !l.gates_input && l.wide) load_gate(l, p, block, m.rows, open);
        products_wait(sum);
        leave_stage(stage);
    }

    /* And which of the input's numbers are positive. `sum` has the input until it has sums. */
    __device__ void gradient(const tower_layer &l, const float last[64], float sum[64],
                             uint32_t open[2]) {
        uint32_t a[64];
        load_input(l, p, block, sum);
        __syncthreads(); /* nobody reads rows any more */
        each_pair([&](int i, int, int) { set_factors(a, i, last[i], last[i + 1]); });
        store_transposed(p, a, m.rows);
        take_input(p, sum, a, open);
        store_transposed(p, a, m.weights[1]);
        shared_written();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 64; i++) sum[i] = 0;
        products_begin(sum);
        multiply_images(sum, m.rows + threadIdx.x / 128 * (64 * 32), m.weights[1]);
        products_end();
        if (l.sums) sum_columns(m.rows, m.column_sums);
        products_wait(sum);
        shared_written();
        __syncthreads(); /* nobody reads the factors any more */
        store_gradient(l, p, block, sum);
        store_sums(l, block, m.column_sums);
    }

    __device__ void layer(int k, uint32_t open[2], float last[64], float sum[64]) {
        const tower_layer &l = m.t->layer[k];
        begin_sums(l, p, m.bias + k * TOWER_WIDTH, m.rows, last, sum);
        if (l.kind == LAYER_PRODUCT)
            product(l, open, last, sum);
        else
            outer_sums(l, p, m.rows, sum);
        if (l.gate && !l.gates_input && !(l.wide && l.kind == LAYER_PRODUCT))
            load_gate(l, p, block, m.rows, open);
        end_sums(l, p, m.rows, open, sum, last);
#pragma unroll 1
        for (int more = 0; more < 2; more++) { /* one copy of the code */
            float *to = more ? l.more : l.out;
            if (!to || (more && (l.own_more || l.more_bits))) continue;
            rows_out(to, l.n, l.wide, m.rows, p, last, more ? l.slope_more : 1.0f);
        }
        if (l.own_more) own_out(l.more, block, last, l.slope_more);
        if (l.more_bits) store_bits(l.more, block, last);
        if (l.input) gradient(l, last, sum, open);
    }

    __device__ void run() {
        float last[64], sum[64];
        uint32_t open[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = 0;
        begin();
#pragma unroll 1
        for (int k = 0; k < m.t->n_layers; k++) {
            const tower_layer &l = m.t->layer[k];
            if (l.kind == LAYER_NARROW)
                narrow_product(l, p, last);
            else
                layer(k, open, last, sum);
        }
    }
};

__device__ static void copy_tower(tower *to, const tower *from) {
    const uint32_t *x = (const uint32_t *)from;
    for (int i = (int)threadIdx.x; i < (int)(sizeof *to / 4); i += (int)blockDim.x)
        ((uint32_t *)to)[i] = x[i];
}

__device__ static void copy_biases(const tower_memory &m) {
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
    const tower_memory m(image_aligned((float *)shared));
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
