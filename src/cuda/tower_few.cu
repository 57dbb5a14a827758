/* The kernel of towers of few rows: tower.h.
 *
 * With many rows what counts is how many are done at once (tower.cu); with few, how long a layer
 * takes. A block has 16 rows, and its eight warps 16 columns each: a product is 16 instructions of
 * the tensor cores for a warp, and a thread has eight numbers. What a layer makes goes to all warps
 * through shared memory, as factors, between two of which there is one barrier. A warp has its
 * weights in registers by then. */
#include "tower_parts.h"

enum {
    FEW_WARPS = 8,
    FEW_THREADS = 32 * FEW_WARPS,
    WARP_COLUMNS = TOWER_WIDTH / FEW_WARPS,
    FACTOR_BYTES = FEW_ROWS * TOWER_WIDTH * 2,
    STEPS = TOWER_WIDTH / 16, /* of a product */
    NUMBERS = 8               /* of a thread */
};

#if GPU_HAS_TOWERS

template <bool STRICT> struct few_memory {
    enum {
        PARTS = STRICT ? 2 : 1,                  /* of a factor */
        STAGES = STRICT ? 3 : 5,                 /* of weights */
        STAGE_BYTES = PARTS * IMAGE_BYTES + 1024 /* bias and power, too, at a multiple of 1024 */
    };
    char weights[STAGES][STAGE_BYTES];
    char factors[2][PARTS][FACTOR_BYTES]; /* as images of 16 rows, in turn */
    uint8_t gates[MOST_LAYERS][FEW_THREADS];
    float parts[TOWER_NARROW][FEW_WARPS][FEW_ROWS]; /* of the sums of a narrow product */
    tower t;
    uint32_t tops[2][FEW_WARPS]; /* the largest of the factors, before a LeakyReLU */
    uint64_t there[STAGES + 1];  /* a barrier a stage: the weights are there */
};

/* ---- a thread's numbers ---- */

/* Of the block's rows the first that a thread has, and its first column. */
struct few_place {
    int row, column;
    int rows; /* that the block has; none, or less than none, beyond the last */
    int block;
    int64_t row0;

    __device__ few_place(const tower &t) {
        const int lane = threadIdx.x % 32;
        row = lane / 4;
        column = (int)threadIdx.x / 32 * WARP_COLUMNS + lane % 4 * 2;
        block = (int)blockIdx.x - t.first_block;
        row0 = (int64_t)block * FEW_ROWS;
        const int64_t left = t.rows - row0;
        rows = left < FEW_ROWS ? (int)left : FEW_ROWS;
    }
};

/* f(i, h, c) for the 4 pairs i, i + 1 of a thread's numbers: its row 8h, columns c and c + 1. */
template <typename F> __device__ inline void each_pair(const few_place &p, F f) {
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) f(4 * j + 2 * h, h, p.column + 8 * j);
}

/* What a thread has of two rows of n; NULL: zeros. */
__device__ inline void load_pairs(float x[NUMBERS], const float *const rows[2], int n,
                                  const few_place &p) {
    const bool even = n % 2 == 0 && (uintptr_t)rows[0] % 8 == 0 && (uintptr_t)rows[1] % 8 == 0;
    each_pair(p, [&](int i, int h, int c) {
        const float *at = rows[h] + c;
        float2 v = {0, 0};
        if (rows[h] && c < n) {
            if (even)
                v = *(const float2 *)at;
            else
                v = float2{at[0], c + 1 < n ? at[1] : 0.0f};
        }
        x[i] = v.x, x[i + 1] = v.y;
    });
}

__device__ inline void load_rows(float x[NUMBERS], const float *from, int n, const few_place &p) {
    const float *rows[2];
    for (int h = 0; h < 2; h++)
        rows[h] = p.row + 8 * h < p.rows ? from + (p.row0 + p.row + 8 * h) * n : NULL;
    load_pairs(x, rows, n, p);
}

__device__ inline void load_addend(float x[NUMBERS], const tower_layer &l, const few_place &p) {
    if (!l.index) return load_rows(x, l.addend, l.n, p);
    const float *rows[2];
    for (int h = 0; h < 2; h++) {
        const int r = p.row + 8 * h;
        const float index = r < p.rows ? l.index[p.row0 + r] : 0.0f;
        const int row = (int)fminf(fmaxf(index, 0.0f), (float)(l.table_rows - 1)); /* NaN: 0 */
        rows[h] = r < p.rows ? l.addend + row * l.n : NULL;
    }
    load_pairs(x, rows, l.n, p);
}

/* The LeakyReLU of what a thread has, times `unit`. */
__device__ inline void store_rows(float *to, int n, const few_place &p, const float x[NUMBERS],
                                  float unit, float slope) {
    const bool even = n % 2 == 0 && (uintptr_t)to % 8 == 0;
    each_pair(p, [&](int i, int h, int c) {
        const int r = p.row + 8 * h;
        float *at = to + (p.row0 + r) * n + c;
        const float2 v = {leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
        if (r >= p.rows || c >= n) return;
        if (even) {
            *(float2 *)at = v;
            return;
        }
        at[0] = v.x;
        if (c + 1 < n) at[1] = v.y;
    });
}

/* Bit i: number i is not positive. */
__device__ inline uint32_t closed_of(const float x[NUMBERS]) {
    uint32_t closed = 0;
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) closed |= x[i] > 0.0f ? 0 : 1u << i;
    return closed;
}

/* ---- a block ---- */

template <bool STRICT> struct few_block {
    typedef few_memory<STRICT> memory;
    memory *m;
    few_place p;
    float last[NUMBERS];       /* what the last layer made, times `power` */
    float x[NUMBERS];          /* what is multiplied, before the LeakyReLU; times `power` */
    float rows[NUMBERS];       /* what is to be multiplied, from memory, */
    float extra[NUMBERS];      /* and a gate or an addend: of the next layers that have any */
    uint32_t a[4];             /* x as factors: number 2q and the next in a[q] */
    uint32_t rest[4];          /* what they leave over */
    uint32_t b[memory::PARTS * 32];
    float bias[4], unit;       /* that came with the weights */
    float power, slope;
    int used;                  /* products that have had their weights */
    int turn;                  /* which of the factors are multiplied */
    void *waiting;             /* factors are still to be stored here, as a sheet, */
    uint32_t *waiting_gates;   /* and their gates here; NULL: not */

    __device__ explicit few_block(memory *shared)
        : m(shared), p(shared->t), power(1), slope(1), used(0), turn(0), waiting(NULL),
          waiting_gates(NULL) {
        for (int i = 0; i < NUMBERS; i++) last[i] = x[i] = 0;
    }

    /* ---- weights ---- */

    /* One thread: an image, where there is room. */
    __device__ void fetch(int image) {
        if (threadIdx.x != 0 || image >= m->t.n_images) return;
        uint64_t *there = &m->there[image % memory::STAGES];
        arrival_expect(there, image_floats(STRICT) * 4);
        copy_bulk(m->weights[image % memory::STAGES], m->t.images[image],
                  image_floats(STRICT) * 4, there);
    }

    /* The next product's, to registers. */
    __device__ void take_weights() {
        if (used >= m->t.n_images) return;
        const int stage = used % memory::STAGES, lane = threadIdx.x % 32;
        const unsigned n = threadIdx.x / 32 * WARP_COLUMNS + lane / 16 * 8 + lane % 8;
        arrival_wait(&m->there[stage], (unsigned)(used / memory::STAGES));
#pragma unroll
        for (int part = 0; part < memory::PARTS; part++)
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                load_matrices(b + part * 32 + 4 * s,
                              m->weights[stage] + part * IMAGE_BYTES +
                                  2 * image_at(TOWER_WIDTH, n, 16 * s + lane / 8 % 2 * 8));
        const float *behind = (const float *)(m->weights[stage] + memory::PARTS * IMAGE_BYTES);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const float2 v = *(const float2 *)(behind + p.column + 4 * i);
            bias[i] = v.x, bias[i + 1] = v.y;
        }
        unit = behind[TOWER_WIDTH];
    }

    /* ---- factors ---- */

    __device__ void pack() {
        const uint32_t slopes = pack_halves(slope, slope);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            if (STRICT) {
                const float u = leaky(x[2 * q], slope), v = leaky(x[2 * q + 1], slope);
                a[q] = pack_halves(u, v);
                const float2 packed = unpack_halves(a[q]);
                rest[q] = pack_halves(u - packed.x, v - packed.y);
            } else {
                a[q] = leaky_halves(pack_halves(x[2 * q], x[2 * q + 1]), slopes);
            }
        }
    }

    /* The LeakyReLU of x, for all warps to see behind the next barrier. */
    __device__ void publish() {
        uint32_t top = 0;
        turn ^= 1;
        pack();
        each_pair(p, [&](int i, int h, int c) {
            const unsigned at = 2 * image_at(FEW_ROWS, (unsigned)(p.row + 8 * h), (unsigned)c);
            *(uint32_t *)(m->factors[turn][0] + at) = a[i / 2];
            if (STRICT) *(uint32_t *)(m->factors[turn][memory::PARTS - 1] + at) = rest[i / 2];
        });
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            const uint32_t bits = __float_as_uint(x[i]) & 0x7fffffffu;
            top = bits > top ? bits : top;
        }
        top = warp_most(top);
        if (threadIdx.x % 32 == 0) m->tops[turn][threadIdx.x / 32] = top;
    }

    __device__ uint32_t most() const {
        uint32_t top = 0;
#pragma unroll
        for (int w = 0; w < FEW_WARPS; w++) {
            const uint32_t bits = m->tops[turn][w];
            top = bits > top ? bits : top;
        }
        return top;
    }

    __device__ static bool is_well(uint32_t top) {
        return top == 0 || fits(__uint_as_float(top), STRICT);
    }

    /* Once more, with a power of two for which they fit. All warps do this together. */
    __device__ void refit(uint32_t top) {
        const float next = times_power(power, __uint_as_float(power_bits(top, STRICT)));
        const float ratio = next * inverse_power(power);
        power = next;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) last[i] *= ratio, x[i] *= ratio;
        __syncthreads(); /* nobody reads them any more */
        turn ^= 1;
        publish();
        __syncthreads();
    }

    /* ---- sheets ---- */

    struct alignas(8) two_words {
        uint32_t one, two;
    };

    /* A thread's numbers of a row lie side by side in a sheet: sheet_column. */
    __device__ void store_waiting() {
        const int which = p.block / (SHEET_ROWS / FEW_ROWS), part = p.block % (SHEET_ROWS / FEW_ROWS);
#pragma unroll
        for (int h = 0; h < 2 && waiting; h++) {
            const unsigned row = (unsigned)(part * FEW_ROWS + p.row + 8 * h);
            char *at = (char *)waiting + (int64_t)which * sheet_bytes(STRICT) +
                       2 * image_at(SHEET_ROWS, row, sheet_column((unsigned)p.column));
            *(two_words *)at = two_words{a[h], a[2 + h]};
            if (STRICT) *(two_words *)(at + SHEET_BYTES) = two_words{rest[h], rest[2 + h]};
        }
        if (waiting && threadIdx.x == 0)
            powers_of(waiting, m->t.rows, STRICT)[p.block] = inverse_power(power);
        if (waiting_gates) gate_of(waiting_gates) = negative();
        waiting = NULL;
        waiting_gates = NULL;
    }

    __device__ uint8_t &gate_of(const uint32_t *gates) const {
        return ((uint8_t *)gates)[p.block * FEW_THREADS + (int)threadIdx.x];
    }

    /* Bit i: factor i is negative. */
    __device__ uint8_t negative() const {
        uint32_t bits = 0;
#pragma unroll
        for (int q = 0; q < 4; q++) bits |= (a[q] >> 15 & 1) << 2 * q | a[q] >> 31 << (2 * q + 1);
        return (uint8_t)bits;
    }

    /* What is stored as a sheet, but not multiplied next. */
    __device__ void store_strays(const tower_layer &l, uint32_t does) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) {
            if (!(does & (more ? STRAYS_LEAKY : STRAYS))) continue;
#pragma unroll
            for (int i = 0; i < NUMBERS; i++) x[i] = last[i];
            slope = more ? l.slope_more : 1.0f;
            publish();
            __syncthreads();
            if (!is_well(most())) refit(most());
            waiting = more ? l.more_sheets : l.out_sheets;
            waiting_gates = more ? l.more_gates : NULL;
            store_waiting();
        }
    }

    /* ---- layers ---- */

    /* The next rows, or addend or gate, that a layer behind `k` wants of memory. */
    __device__ void load_next_rows(int k) {
        if (k < m->t.n_layers) load_rows(rows, m->t.layer[k].a, m->t.layer[k].k, p);
    }
    __device__ void load_next_extra(int k) {
        if (k >= m->t.n_layers) return;
        const tower_layer &l = m->t.layer[k];
        if (l.gate && !l.gates)
            load_rows(extra, l.gate, l.n, p);
        else
            load_addend(extra, l, p);
    }

    __device__ void prepare(int k, const tower_layer &l) {
        if (l.does & TAKES_SAME) return;
        slope = l.does & TAKES_LEAKY ? l.slope_a : 1.0f;
        if (l.does & TAKES_MEMORY) {
            if (l.does & READS_OWN) load_next_rows(k);
#pragma unroll
            for (int i = 0; i < NUMBERS; i++) x[i] = rows[i] * power;
            load_next_rows(l.next_rows);
            waiting = l.in_sheets;
        } else {
#pragma unroll
            for (int i = 0; i < NUMBERS; i++) x[i] = last[i];
        }
        publish();
    }

    /* sum = factors times weights. Even and odd steps have sums of their own: they need not wait for
     * each other. */
    __device__ void multiply(float sum[NUMBERS]) const {
        const int lane = threadIdx.x % 32;
        float odd[NUMBERS];
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) sum[i] = odd[i] = 0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            uint32_t f[4];
            float *to = s % 2 ? odd : sum;
            const unsigned at =
                2 * image_at(FEW_ROWS, (unsigned)lane % 16, (unsigned)(16 * s + lane / 16 * 8));
            load_matrices(f, m->factors[turn][0] + at);
            mma_halves(to, f, b + 4 * s);
            mma_halves(to + 4, f, b + 4 * s + 2);
            if (!STRICT) continue;
            const uint32_t *less = b + (memory::PARTS - 1) * 32 + 4 * s;
            mma_halves(to, f, less);
            mma_halves(to + 4, f, less + 2);
            load_matrices(f, m->factors[turn][memory::PARTS - 1] + at);
            mma_halves(to, f, b + 4 * s);
            mma_halves(to + 4, f, b + 4 * s + 2);
        }
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) sum[i] += odd[i];
    }

    __device__ void product(int k, const tower_layer &l) {
        float sum[NUMBERS];
        prepare(k, l);
        __syncthreads();
        const uint32_t top = most();
        multiply(sum);
        if (!is_well(top)) {
            refit(top);
            multiply(sum);
        }
        store_waiting();
        const float b0[4] = {bias[0], bias[1], bias[2], bias[3]}, unit0 = unit;
        fetch(used + memory::STAGES); /* all have passed the barrier with their weights */
        used++;
        take_weights();
        finish(k, l, sum, unit0, b0);
    }

    /* k <= TOWER_NARROW: no tensor cores. */
    __device__ void outer(int k, const tower_layer &l) {
        float sum[NUMBERS], b0[4];
        if (l.does & READS_OWN) __syncthreads();
        for (int i = 0; i < NUMBERS; i++) sum[i] = 0;
        for (int i = 0; i < l.k; i++)
            each_pair(p, [&](int to, int h, int c) {
                const int r = p.row + 8 * h;
                const float y = r < p.rows ? l.a[(p.row0 + r) * l.k + i] : 0.0f;
                sum[to] += y * (c < l.n ? l.b[i * l.n + c] : 0.0f);
                sum[to + 1] += y * (c + 1 < l.n ? l.b[i * l.n + c + 1] : 0.0f);
            });
        for (int i = 0; i < 4; i++) {
            const int c = p.column + i / 2 * 8 + i % 2;
            b0[i] = l.bias && c < l.n ? l.bias[c] : 0.0f;
        }
        finish(k, l, sum, power, b0);
    }

    /* n <= TOWER_NARROW; the rows that the block has stay as they are. */
    __device__ void narrow(const tower_layer &l) {
        const float y_slope = l.source == FROM_MORE ? l.slope_a : 1.0f;
        __syncthreads();
        for (int n = 0; n < l.n; n++) {
            float part[2] = {0, 0};
            each_pair(p, [&](int i, int h, int c) {
                const float *w = l.b + n * l.k + c;
                part[h] += leaky(last[i], y_slope) * (c < l.k ? w[0] : 0.0f) +
                           leaky(last[i + 1], y_slope) * (c + 1 < l.k ? w[1] : 0.0f);
            });
            for (int h = 0; h < 2; h++) {
                part[h] += __shfl_xor_sync(0xffffffffu, part[h], 1);
                part[h] += __shfl_xor_sync(0xffffffffu, part[h], 2);
                if (threadIdx.x % 4 == 0) m->parts[n][threadIdx.x / 32][p.row + 8 * h] = part[h];
            }
        }
        __syncthreads();
        const int n = (int)threadIdx.x / FEW_ROWS, r = (int)threadIdx.x % FEW_ROWS;
        if (n >= l.n || r >= p.rows) return;
        float sum = 0;
        for (int w = 0; w < FEW_WARPS; w++) sum += m->parts[n][w][r];
        l.out[(p.row0 + r) * l.n + n] =
            fmaf(sum, inverse_power(power), l.bias ? l.bias[n] : 0.0f);
    }

    __device__ uint32_t gates_for(int k, const tower_layer &l) {
        if (l.does & HAS_GATE_ROWS) {
            if (l.does & READS_OWN) load_next_extra(k);
            return closed_of(extra);
        }
        if (!(l.does & HAS_GATES)) return 0;
        return l.does & READS_OWN ? gate_of(l.gates) : m->gates[k][threadIdx.x];
    }

    __device__ void add_rows(const tower_layer &l, uint32_t does) {
        if (does & (HAS_GATE_ROWS | READS_OWN)) load_addend(extra, l, p);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) last[i] = fmaf(extra[i], power, last[i]);
    }

    /* What comes with a product: last = sums, which are 1 / by too large, and so on. */
    __device__ void finish(int k, const tower_layer &l, const float sum[NUMBERS], float by,
                           const float b0[4]) {
        const uint32_t does = l.does, closed = gates_for(k, l);
        const float slanted = does & (HAS_GATES | HAS_GATE_ROWS) ? by * l.slope : by;
        const float bias_power = does & ADDS_BIAS ? power : 0.0f;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            const float base = fmaf(b0[i / 4 * 2 + i % 2], bias_power,
                                    does & ADDS_LAST ? last[i] : 0.0f);
            last[i] = fmaf(sum[i], closed >> i & 1 ? slanted : by, base);
        }
        if (does & ADDS_ROWS) add_rows(l, does);
        if (does & (HAS_GATE_ROWS | ADDS_ROWS)) load_next_extra(l.next_extra);
        if (does & (STORES | STRAYS | STRAYS_LEAKY)) store(l, does);
        if (does & RIDES) waiting = l.out_sheets;
        if (does & RIDES_LEAKY) waiting = l.more_sheets, waiting_gates = l.more_gates;
    }

    __device__ void store(const tower_layer &l, uint32_t does) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) { /* one copy of the code */
            float *to = more ? l.more : l.out;
            if (to)
                store_rows(to, l.n, p, last, inverse_power(power), more ? l.slope_more : 1.0f);
        }
        store_strays(l, does);
    }

    /* All gates that others stored as bits, at once. */
    __device__ void ask_for_gates() {
        for (int i = (int)threadIdx.x; i < m->t.n_layers * (FEW_THREADS / 16); i += FEW_THREADS) {
            const int k = i / (FEW_THREADS / 16), at = i % (FEW_THREADS / 16) * 16;
            const uint32_t does = m->t.layer[k].does;
            if (!(does & HAS_GATES) || does & READS_OWN) continue;
            const uint8_t *from = (const uint8_t *)m->t.layer[k].gates + p.block * FEW_THREADS;
            copy_16((float *)&m->gates[k][at], (const float *)(from + at), 16);
        }
        copies_commit();
    }

    __device__ void run() {
        for (int k = 0; k < memory::STAGES; k++) fetch(k);
        load_next_rows(m->t.first_rows);
        load_next_extra(m->t.first_extra);
        ask_for_gates();
        copies_wait<0>();
        __syncthreads();
        take_weights();
#pragma unroll 1
        for (int k = 0; k < m->t.n_layers; k++) {
            const tower_layer &l = m->t.layer[k];
            if (l.does & MULTIPLIES)
                product(k, l);
            else if (l.does & IS_NARROW)
                narrow(l);
            else
                outer(k, l);
        }
    }
};

template <bool STRICT>
__device__ inline void prepare_block(few_memory<STRICT> *m, const tower *from) {
    copy_tower(&m->t, from);
    if (threadIdx.x == 0) {
        for (int s = 0; s < few_memory<STRICT>::STAGES; s++) arrival_init(&m->there[s], 1);
        arrivals_ready();
    }
    __syncthreads();
}
#endif

template <bool STRICT>
__global__ void __launch_bounds__(FEW_THREADS, 1)
    run_few_rows(const tower *towers, const __grid_constant__ tower_starts starts) {
#if GPU_HAS_TOWERS
    GPU_SHARED(shared);
    few_memory<STRICT> *m = (few_memory<STRICT> *)image_aligned(shared);
    grid_next();
    prepare_block(m, tower_of_block(towers, starts));
    grid_wait();
    few_block<STRICT>(m).run();
#else
    (void)towers, (void)starts;
#endif
}

/* ---- what layers do -------------------------------------------------------- */

static bool is_own(const tower *t, int k, const void *x) {
    for (int i = 0; x && i < k; i++) {
        const tower_layer *l = &t->layer[i];
        if (x == l->out || x == l->more || x == l->more_gates) return true;
    }
    return false;
}

static bool reads_own(const tower *t, int k) {
    const tower_layer *l = &t->layer[k];
    return is_own(t, k, l->gate) || is_own(t, k, l->gates) || is_own(t, k, l->addend) ||
           (l->source == FROM_MEMORY && is_own(t, k, l->a)) || (uintptr_t)l->gates % 16;
}

static uint32_t stores_of(const tower_layer *l, const tower_layer *next) {
    const bool multiplied = next && next->kind == LAYER_PRODUCT;
    const bool leaky = l->more_sheets || l->more_gates;
    uint32_t does = l->out || l->more ? STORES : 0;
    if (l->out_sheets) does |= multiplied && next->source == FROM_OUT ? RIDES : STRAYS;
    if (leaky) does |= multiplied && next->source == FROM_MORE ? RIDES_LEAKY : STRAYS_LEAKY;
    return does;
}

static uint32_t takes_of(const tower_layer *l) {
    static const uint32_t takes[] = {TAKES_MEMORY, 0, TAKES_LEAKY, TAKES_SAME}; /* tower_source */
    return l->kind == LAYER_PRODUCT ? MULTIPLIES | takes[l->source] : 0;
}

static uint32_t what_it_does(const tower *t, int k) {
    const tower_layer *l = &t->layer[k];
    if (l->kind == LAYER_NARROW) return IS_NARROW;
    return takes_of(l) | stores_of(l, k + 1 < t->n_layers ? l + 1 : NULL) |
           (l->adds_last ? ADDS_LAST : 0) | (l->bias ? ADDS_BIAS : 0) |
           (l->addend && !l->adds_last ? ADDS_ROWS : 0) | (l->gates ? HAS_GATES : 0) |
           (l->gate && !l->gates ? HAS_GATE_ROWS : 0) | (reads_own(t, k) ? READS_OWN : 0);
}

void n2_few_rows_make(tower *t) {
    int rows = t->n_layers, extra = t->n_layers;
    for (int k = t->n_layers; k-- > 0;) {
        tower_layer *l = &t->layer[k];
        l->does = what_it_does(t, k);
        l->next_rows = (int16_t)rows;
        l->next_extra = (int16_t)extra;
        if (l->does & READS_OWN) continue;
        if (l->does & TAKES_MEMORY) rows = k;
        if (l->does & (HAS_GATE_ROWS | ADDS_ROWS)) extra = k;
    }
    t->first_rows = rows;
    t->first_extra = extra;
}

/* ---- launches -------------------------------------------------------------- */

#if GPU_HAS_TOWERS
template <bool STRICT> static constexpr int shared_bytes() {
    static_assert(sizeof(few_memory<STRICT>) + 1024 <= 227 * 1024, "what a block may have");
    return (int)sizeof(few_memory<STRICT>) + 1024;
}

cudaError_t n2_few_rows_prepare() {
    const cudaError_t first =
        cudaFuncSetAttribute(run_few_rows<false>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes<false>());
    if (first != cudaSuccess) return first;
    return cudaFuncSetAttribute(run_few_rows<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                shared_bytes<true>());
}

void n2_few_rows_launch(const tower *towers, const tower_starts *starts, uint32_t blocks,
                        bool strict, cudaStream_t stream, bool early) {
    const tower_starts copy = *starts;
    if (strict)
        GPU_LAUNCH(run_few_rows<true>, blocks, FEW_THREADS, shared_bytes<true>(), stream, early,
                   towers, copy);
    else
        GPU_LAUNCH(run_few_rows<false>, blocks, FEW_THREADS, shared_bytes<false>(), stream, early,
                   towers, copy);
}
#endif
