/* The kernel of towers: tower.h. */
#include "tower.h"

#include "gpu_tensor.h"

/* Sixteen rows of every 64 are a warp's, and nothing else of the block touches them: warps share
 * weights only, so nobody waits for others but for those. What is done for every layer works on
 * registers and in straight lines; what is rare (inputs and outputs that are not 128 wide, addends
 * of other kernels) goes through shared memory in plain loops. */

enum {
    WEIGHT_STAGES = 4,
    STAGE_BYTES = IMAGE_BYTES + 1024, /* weights, bias and power, at a multiple of 1024 */
    WARP_ROWS = 16,
    WARP_FLOATS = WARP_ROWS * ROW_FLOATS, /* a warp's rows; or two sheets' share, 4096 bytes each */
    SHEET_SHARE = SHEET_BYTES / 4,
    TOWER_WARPS = TOWER_THREADS / 32,
    TOWER_SHARED = WEIGHT_STAGES * STAGE_BYTES + TOWER_WARPS * WARP_FLOATS * 4 +
                   (int)sizeof(tower) + WEIGHT_STAGES * 16 + 1024
};
static_assert(2 * (int)SHEET_SHARE <= (int)WARP_FLOATS * 4, "sheets lie where rows do");
static_assert(IMAGE_ALL_FLOATS * 4 <= (int)STAGE_BYTES, "a stage has room for all of an image");

#if GPU_HAS_TOWERS

/* What a block has in shared memory. */
struct tower_memory {
    char *weights;     /* [WEIGHT_STAGES x STAGE_BYTES] */
    float *rows;       /* this warp's, on their way in or out; or its share of sheets */
    uint64_t *there;   /* a barrier a stage: the weights are there, */
    uint64_t *done;    /* and no warp needs them any more */
    tower *t;

    __device__ explicit tower_memory(char *shared) {
        weights = shared;
        float *all = (float *)(shared + WEIGHT_STAGES * STAGE_BYTES);
        rows = all + threadIdx.x / 32 * WARP_FLOATS;
        there = (uint64_t *)(all + TOWER_WARPS * WARP_FLOATS);
        done = there + WEIGHT_STAGES;
        t = (tower *)(done + WEIGHT_STAGES);
    }
    __device__ char *stage(int which) const { return weights + which * STAGE_BYTES; }
};

/* Where a thread is: of its warp's rows the first that it has, and the first of each eight
 * columns. */
struct tower_place {
    int row, column;
    int rows;     /* that the warp has; none, or less than none, beyond the last */
    int64_t row0; /* the warp's first */

    __device__ tower_place(const tower &t, int block) {
        const int lane = threadIdx.x % 32;
        row = lane / 4;
        column = lane % 4 * 2;
        row0 = (int64_t)block * t.block_rows + threadIdx.x / 32 * WARP_ROWS;
        const int64_t left = t.rows - row0;
        rows = left < WARP_ROWS ? (int)left : WARP_ROWS;
    }
    __device__ int64_t sheet() const { return row0 / SHEET_ROWS; }
    /* Sheets are whole: the rows of the last one that nobody has are there, too. */
    __device__ bool has_sheet(const tower &t) const { return sheet() < sheets_of(t.rows); }
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

__device__ inline float2 *pair_at(float *rows, const tower_place &p, int h, int j) {
    return (float2 *)(rows + (p.row + 8 * h) * ROW_FLOATS + 8 * j + p.column);
}

/* Nobody uses them any more, nor the sheets in their place. */
__device__ inline void rows_free() {
    if (threadIdx.x % 32 == 0) stores_read<0>();
    __syncwarp();
}

/* n columns of this warp's rows, zeros around them. */
__device__ inline void rows_in(float *to, const float *from, int n, const tower_place &p) {
    const int lane = threadIdx.x % 32;
    const float *x = from + p.row0 * n;
    const bool wide = n == TOWER_WIDTH && (uintptr_t)from % 16 == 0;
    rows_free();
#pragma unroll 8
    for (int r = 0; r < WARP_ROWS; r++) {
        if (wide) {
            const float4 zero = {0, 0, 0, 0};
            *(float4 *)(to + r * ROW_FLOATS + 4 * lane) =
                r < p.rows ? ((const float4 *)x)[r * 32 + lane] : zero;
            continue;
        }
#pragma unroll
        for (int c = lane; c < TOWER_WIDTH; c += 32)
            to[r * ROW_FLOATS + c] = r < p.rows && c < n ? x[r * n + c] : 0.0f;
    }
    __syncwarp();
}

/* f(i, pair) for what a thread has of them; then there may be others. */
template <typename F> __device__ inline void each_pair_of(float *rows, const tower_place &p, F f) {
    each_pair([&](int i, int h, int j) { f(i, *pair_at(rows, p, h, j)); });
    __syncwarp();
}

/* The LeakyReLU of what a thread has, times `unit`; `rows` in between, unless the matrix is 128
 * wide. */
__device__ inline void rows_out(float *to, int n, bool wide, float *rows, const tower_place &p,
                                const float x[64], float unit, float slope) {
    float *out = to + p.row0 * n;
    if (wide) {
        each_pair([&](int i, int h, int j) {
            if (p.row + 8 * h < p.rows)
                *(float2 *)(out + (p.row + 8 * h) * TOWER_WIDTH + 8 * j + p.column) =
                    float2{leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
        });
        return;
    }
    rows_free();
    each_pair([&](int i, int h, int j) {
        *pair_at(rows, p, h, j) = float2{leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
    });
    __syncwarp();
    for (int r = 0; r < p.rows; r++)
        for (int c = threadIdx.x % 32; c < n; c += 32) out[r * n + c] = rows[r * ROW_FLOATS + c];
    __syncwarp();
}

/* ---- factors ---- */

/* What a warp multiplies next, as halves. All numbers that it has in registers are `power` times as
 * large as they should be, so that they fit. */
struct tower_factors {
    uint32_t a[32];
    float power;
    int of; /* the last layer's output, its LeakyReLU, or something else */
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
    uint32_t top[4];
#pragma unroll
    for (int k = 0; k < 4; k++) top[k] = larger_halves(a[k], a[k + 4]);
#pragma unroll
    for (int i = 8; i < 32; i++) top[i % 4] = larger_halves(top[i % 4], a[i]);
    const uint32_t all =
        larger_halves(larger_halves(top[0], top[1]), larger_halves(top[2], top[3]));
    const uint32_t low = all & 0xffffu, high = all >> 16;
    const uint32_t most = warp_most(low > high ? low : high);
    return most == 0 || (most >= 0x3000u && most < 0x7400u);
}

__device__ inline void pack(tower_factors *f, const float x[64], float slope) {
#pragma unroll
    for (int i = 0; i < 32; i++) f->a[i] = pack_halves(x[2 * i], x[2 * i + 1]);
    if (slope == 1.0f) return;
    const uint32_t slopes = pack_halves(slope, slope);
#pragma unroll
    for (int i = 0; i < 32; i++) f->a[i] = leaky_halves(f->a[i], slopes);
}

/* The LeakyReLU of what a thread has, as factors. */
__device__ inline void make_factors(tower_factors *f, float x[64], float slope, int of) {
    f->of = of;
#pragma unroll 1
    for (int attempt = 0; attempt < 2; attempt++) {
        pack(f, x, slope);
        if (attempt || is_in_range(f->a)) return;
        const float power = times_power(f->power, power_for(x));
        const float ratio = power * inverse_power(f->power);
#pragma unroll
        for (int i = 0; i < 64; i++) x[i] *= ratio;
        f->power = power;
    }
}

/* Of rows of memory. */
__device__ inline void load_factors(const tower_layer &l, const tower_place &p, float *rows,
                                    float last[64], tower_factors *f) {
    const float before = f->power;
    float x[64];
    rows_in(rows, l.a, l.k, p);
    each_pair_of(rows, p, [&](int i, float2 v) { x[i] = v.x * before, x[i + 1] = v.y * before; });
    make_factors(f, x, 1.0f, OF_NOTHING);
    const float ratio = f->power * inverse_power(before);
#pragma unroll
    for (int i = 0; i < 64; i++) last[i] *= ratio;
}

/* ---- gates ---- */

/* Bits of a thread: of pair i / 2 the first number's is i / 2 % 16 of word i / 32, the second's 16
 * further on. */
__device__ inline uint32_t gate_bit(int i) { return 1u << (i / 2 % 16 + i % 2 * 16); }

/* A thread's words of its sheet. */
__device__ inline uint32_t *gate_words(const uint32_t *gates, const tower_place &p) {
    return (uint32_t *)gates + p.sheet() * GATE_WORDS + threadIdx.x % 128;
}

/* Which of the factors are not negative. */
__device__ inline void store_gates(uint32_t *to, const tower_place &p, const uint32_t a[32]) {
    uint32_t *at = gate_words(to, p);
    if (p.rows <= 0) return;
#pragma unroll
    for (int w = 0; w < 2; w++) {
        uint32_t closed = 0;
#pragma unroll
        for (int k = 0; k < 16; k++) closed |= a[16 * w + k] >> (15 - k) & 0x00010001u << k;
        at[w * (GATE_WORDS / 2)] = ~closed;
    }
}

__device__ inline void open_gate(uint32_t open[2], int i, float2 x) {
    if (x.x > 0.0f) open[i / 32] |= gate_bit(i);
    if (x.y > 0.0f) open[i / 32] |= gate_bit(i + 1);
}

__device__ inline void load_gates(const uint32_t *gates, const tower_place &p, uint32_t open[2]) {
    const uint32_t *at = gate_words(gates, p);
    open[0] = p.rows > 0 ? at[0] : 0;
    open[1] = p.rows > 0 ? at[GATE_WORDS / 2] : 0;
}

__device__ inline void load_gate(const tower_layer &l, const tower_place &p, float *rows,
                                 uint32_t open[2]) {
    if (l.gates) {
        load_gates(l.gates, p, open);
        return;
    }
    open[0] = open[1] = 0;
    rows_in(rows, l.gate, l.n, p);
    each_pair_of(rows, p, [&](int i, float2 x) { open_gate(open, i, x); });
}

/* ---- a product and what comes with it ---- */

/* What sums are added to: the layer before, if `adds`, and the bias, if it is not NULL. */
__device__ inline void begin_sums(bool adds, const float *bias, float power, const tower_place &p,
                                  float last[64]) {
    if (!adds)
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = 0;
    if (!bias) return;
    each_pair([&](int i, int, int j) {
        const float2 b = *(const float2 *)(bias + 8 * j + p.column);
        last[i] = fmaf(b.x, power, last[i]);
        last[i + 1] = fmaf(b.y, power, last[i + 1]);
    });
}

/* last += the sums, which are 1 / unit too large; times `slope` where a gate is closed. */
__device__ inline void end_sums(bool gated, float unit, float slope, const uint32_t open[2],
                                const float sum[64], float last[64]) {
    if (!gated) {
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = fmaf(sum[i], unit, last[i]);
        return;
    }
    const float closed = unit * slope;
#pragma unroll
    for (int i = 0; i < 64; i++)
        last[i] = fmaf(sum[i], open[i / 32] & gate_bit(i) ? unit : closed, last[i]);
}

/* k <= TOWER_NARROW: no tensor cores. */
__device__ inline void outer_sums(const tower_layer &l, const tower_place &p, float sum[64]) {
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

/* n <= TOWER_NARROW; the four threads of a row add what they have. */
__device__ inline void narrow_product(const tower_layer &l, const tower_place &p, float unit,
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

/* ---- a block ---- */

struct tower_block {
    tower_memory m;
    tower_place p;
    int used;               /* products begun */
    int fetched, next;      /* by the first thread: images on their way, and the layer after them */
    int sheets;             /* stored */
    void *waiting;          /* factors are still to be stored here, as a sheet, */
    uint32_t *waiting_gates; /* and their gates here; NULL: not */

    __device__ tower_block(const tower_memory &memory, int b)
        : m(memory), p(*memory.t, b), used(0), fetched(0), next(0), sheets(0), waiting(NULL),
          waiting_gates(NULL) {}

    /* ---- weights ---- */

    /* One thread: the next layer's, if there is one, as soon as its stage is free. */
    __device__ void fetch_weights() {
        while (next < m.t->n_layers && m.t->layer[next].kind != LAYER_PRODUCT) next++;
        if (next == m.t->n_layers) return;
        const int stage = fetched % WEIGHT_STAGES, round = fetched / WEIGHT_STAGES;
        if (round) arrival_wait(&m.done[stage], (unsigned)round - 1);
        arrival_expect(&m.there[stage], IMAGE_ALL_FLOATS * 4);
        copy_bulk(m.stage(stage), m.t->layer[next].b, IMAGE_ALL_FLOATS * 4, &m.there[stage]);
        fetched++;
        next++;
    }

    /* Two stages ahead: whoever is slow may be a layer behind. */
    __device__ void keep_fetching() {
        if (threadIdx.x == 0 && fetched < used + WEIGHT_STAGES - 2) fetch_weights();
    }

    /* ---- sheets ---- */

    /* Factors go to memory while the next product is made. */
    __device__ void store_waiting(const tower_factors *f) {
        if (waiting) {
            char *share = (char *)m.rows + sheets++ % 2 * SHEET_SHARE;
            if (threadIdx.x % 32 == 0) stores_read<2>(); /* of two sheets ago, there is none */
            __syncwarp();
            store_sheet(f->a, share);
            shared_written();
            __syncwarp();
            if (threadIdx.x % 32 == 0 && p.has_sheet(*m.t)) send_sheet(share, f->power);
        }
        if (waiting_gates) store_gates(waiting_gates, p, f->a);
        waiting = NULL;
        waiting_gates = NULL;
    }

    /* One thread: a half of each panel. */
    __device__ void send_sheet(const char *share, float power) const {
        const int warp = (int)threadIdx.x / 32 % 4;
        char *to = (char *)waiting + p.sheet() * SHEET_BYTES + warp * (SHEET_SHARE / 2);
        store_bulk(to, share, SHEET_SHARE / 2);
        store_bulk(to + SHEET_BYTES / 2, share + SHEET_SHARE / 2, SHEET_SHARE / 2);
        powers_of(waiting, m.t->rows)[p.sheet() * SHEET_POWERS + warp] = inverse_power(power);
    }

    /* ---- layers ---- */

    template <bool PLAIN>
    __device__ void product(const tower_layer &l, uint32_t open[2], float last[64], float sum[64],
                            tower_factors *f) {
        const int stage = used % WEIGHT_STAGES;
        const float *behind = (const float *)(m.stage(stage) + IMAGE_BYTES);
        arrival_wait(&m.there[stage], (unsigned)(used / WEIGHT_STAGES));
        used++;
        products_begin(sum);
        multiply_rows(sum, f->a, m.stage(stage));
        products_end();
        const bool gated = l.gate;
        if (gated && PLAIN) load_gates(l.gates, p, open);
        if (gated && !PLAIN) load_gate(l, p, m.rows, open);
        store_waiting(f);
        keep_fetching();
        begin_sums(PLAIN || l.adds_last, l.bias ? behind : NULL, f->power, p, last);
        const float unit = behind[TOWER_WIDTH], slope = l.slope;
        products_wait(sum);
        if (threadIdx.x % 32 == 0) arrive(&m.done[stage]);
        end_sums(gated, unit, slope, open, sum, last);
    }

    __device__ void outer(const tower_layer &l, uint32_t open[2], float last[64], float sum[64],
                          float power) {
        outer_sums(l, p, sum);
        if (l.gate) load_gate(l, p, m.rows, open);
        begin_sums(l.adds_last, NULL, power, p, last);
        end_sums(l.gate, power, l.slope, open, sum, last);
        if (!l.bias) return;
        each_pair([&](int i, int, int j) {
            const int c = 8 * j + p.column;
            last[i] += c < l.n ? power * l.bias[c] : 0.0f;
            last[i + 1] += c + 1 < l.n ? power * l.bias[c + 1] : 0.0f;
        });
    }

    __device__ void add_rows(const float *addend, int n, float power, float last[64]) {
        rows_in(m.rows, addend, n, p);
        each_pair_of(m.rows, p, [&](int i, float2 x) {
            last[i] = fmaf(x.x, power, last[i]), last[i + 1] = fmaf(x.y, power, last[i + 1]);
        });
    }

    /* Sheets and gates leave when the next product is under way. */
    __device__ void make_next(const tower_layer &l, bool more, float last[64], tower_factors *f) {
        make_factors(f, last, more ? l.slope_more : 1.0f, more ? OF_MORE : OF_OUT);
        waiting = more ? l.more_sheets : l.out_sheets;
        waiting_gates = more ? l.more_gates : NULL;
    }

    __device__ void store(const tower_layer &l, float last[64], tower_factors *f) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) { /* one copy of the code */
            float *to = more ? l.more : l.out;
            if (to)
                rows_out(to, l.n, l.wide, m.rows, p, last, inverse_power(f->power),
                         more ? l.slope_more : 1.0f);
            if (!(more ? l.more_sheets || l.more_gates : l.out_sheets != NULL)) continue;
            store_waiting(f);
            make_next(l, more, last, f);
        }
    }

    __device__ void layer(const tower_layer &l, uint32_t open[2], float last[64], float sum[64],
                          tower_factors *f) {
        const int wanted = l.source == FROM_MORE ? OF_MORE : OF_OUT;
        if (l.kind != LAYER_PRODUCT) {
            outer(l, open, last, sum, f->power);
        } else {
            if (l.source == FROM_MEMORY) {
                store_waiting(f);
                load_factors(l, p, m.rows, last, f);
            } else if (f->of != wanted) {
                make_factors(f, last, l.source == FROM_MORE ? l.slope_a : 1.0f, wanted);
            }
            product<false>(l, open, last, sum, f);
        }
        f->of = OF_NOTHING;
        if (l.addend && !l.adds_last) add_rows(l.addend, l.n, f->power, last);
        store(l, last, f);
    }

    /* Most layers: the same without what they do not have. */
    __device__ void plain_layer(const tower_layer &l, uint32_t open[2], float last[64],
                                float sum[64], tower_factors *f) {
        product<true>(l, open, last, sum, f);
        make_next(l, l.plain_more, last, f);
    }

    __device__ void run() {
        float last[64], sum[64];
        uint32_t open[2] = {0, 0};
        tower_factors f;
        f.power = 1;
        f.of = OF_NOTHING;
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = sum[i] = 0;
#pragma unroll
        for (int i = 0; i < 32; i++) f.a[i] = 0;
        if (threadIdx.x == 0)
            for (int s = 0; s < WEIGHT_STAGES; s++) fetch_weights();
#pragma unroll 1
        for (int k = 0; k < m.t->n_layers; k++) {
            const tower_layer &l = m.t->layer[k];
            const bool ready = f.of == (l.source == FROM_MORE ? OF_MORE : OF_OUT);
            if (l.plain && ready)
                plain_layer(l, open, last, sum, &f);
            else if (l.kind == LAYER_NARROW)
                narrow_product(l, p, inverse_power(f.power), last);
            else
                layer(l, open, last, sum, &f);
        }
        store_waiting(&f);
        if (threadIdx.x % 32 == 0) stores_read<0>(); /* shared memory lasts no longer than we do */
    }
};

__device__ static void copy_tower(tower *to, const tower *from) {
    const uint32_t *x = (const uint32_t *)from;
    const int words = (int)(offsetof(tower, layer) + (size_t)from->n_layers * sizeof(tower_layer)) / 4;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x) ((uint32_t *)to)[i] = x[i];
}

__device__ static void prepare_block(const tower_memory &m, const tower *towers, int n) {
    int which = 0;
    while (which + 1 < n && (int)blockIdx.x >= towers[which + 1].first_block) which++;
    copy_tower(m.t, &towers[which]);
    if (threadIdx.x == 0) {
        for (int s = 0; s < WEIGHT_STAGES; s++) {
            arrival_init(&m.there[s], 1);
            arrival_init(&m.done[s], blockDim.x / 32);
        }
        arrivals_ready();
    }
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
