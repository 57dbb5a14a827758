/* The kernel of towers of few rows: tower.h.
 *
 * With many rows what counts is how many are done at once (tower.cu); with few, how long a layer
 * takes. A block has 16 rows, and four warps 32 columns each, so that a thread has sixteen numbers.
 * What a layer makes goes to all warps through shared memory, as factors: one barrier a layer. A
 * warp has its weights in registers by then. */
#include "tower_parts.h"

#ifndef SPLIT
#define SPLIT 1
#endif
enum {
    FEW_WARPS = 4,
    FEW_THREADS = 32 * FEW_WARPS, /* that have rows; a warp more fetches weights */
    WARP_COLUMNS = TOWER_WIDTH / FEW_WARPS,
    FACTOR_BYTES = FEW_ROWS * TOWER_WIDTH * 2,
    STEPS = TOWER_WIDTH / 16, /* of a product */
    NUMBERS = 16,             /* of a thread */
    PAIRS = NUMBERS / 2
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
    uint16_t gates[MOST_LAYERS][FEW_THREADS];
    float parts[TOWER_NARROW][FEW_WARPS][FEW_ROWS]; /* of the sums of a narrow product */
    tower t;
    uint32_t tops[2][FEW_WARPS]; /* the largest of the factors, before a LeakyReLU */
    uint64_t there[STAGES];      /* a barrier a stage: the weights are there, */
    uint64_t done[STAGES];       /* and no thread needs them any more */
};

/* ---- a thread's numbers ---- */

/* Of the block's rows the first that a thread has, and its first column. */
struct few_place {
    int row, column, warp, lane;
    int rows; /* that the block has; none, or less than none, beyond the last */
    int block;
    int row0;

    __device__ explicit few_place(const tower &t) {
        lane = (int)threadIdx.x % 32;
        warp = (int)threadIdx.x / 32;
        row = lane / 4;
        column = warp * WARP_COLUMNS + lane % 4 * 2;
        block = (int)blockIdx.x - t.first_block;
        row0 = block * FEW_ROWS;
        const int left = (int)t.rows - row0;
        rows = left < FEW_ROWS ? left : (int)FEW_ROWS;
    }
};

/* f(i, h, c) for the pairs i, i + 1 of a thread's numbers: its row 8h, columns c and c + 1. */
template <typename F> __device__ inline void each_pair(const few_place &p, F f) {
#pragma unroll
    for (int j = 0; j < NUMBERS / 4; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) f(4 * j + 2 * h, h, p.column + 8 * j);
}

/* Whether pairs of numbers lie at multiples of 8 bytes. */
__device__ inline bool is_even(const float *x, int n) {
    return n % 2 == 0 && (uintptr_t)x % 8 == 0;
}

/* What a thread has of rows of n: of those at[0] and at[1] numbers from the first on; less than 0:
 * zeros. */
__device__ inline void load_pairs(float x[NUMBERS], const float *from, const int at[2], int n,
                                  const few_place &p) {
    if (is_even(from, n)) {
        each_pair(p, [&](int i, int h, int c) {
            float2 v = {0, 0};
            if (at[h] >= 0 && c < n) v = *(const float2 *)(from + at[h] + c);
            x[i] = v.x, x[i + 1] = v.y;
        });
        return;
    }
    each_pair(p, [&](int i, int h, int c) {
        x[i] = at[h] >= 0 && c < n ? from[at[h] + c] : 0.0f;
        x[i + 1] = at[h] >= 0 && c + 1 < n ? from[at[h] + c + 1] : 0.0f;
    });
}

__device__ inline void load_rows(float x[NUMBERS], const float *from, int n, const few_place &p) {
    const int first = (p.row0 + p.row) * n;
    const int at[2] = {p.row < p.rows ? first : -1, p.row + 8 < p.rows ? first + 8 * n : -1};
    load_pairs(x, from, at, n, p);
}

__device__ inline void load_addend(float x[NUMBERS], const tower_layer &l, const few_place &p) {
    if (!l.index) return load_rows(x, l.addend, l.n, p);
    int at[2];
    for (int h = 0; h < 2; h++) {
        const int r = p.row + 8 * h;
        const float index = r < p.rows ? l.index[p.row0 + r] : 0.0f;
        const int row = (int)fminf(fmaxf(index, 0.0f), (float)(l.table_rows - 1)); /* NaN: 0 */
        at[h] = r < p.rows ? row * l.n : -1;
    }
    load_pairs(x, l.addend, at, l.n, p);
}

/* The LeakyReLU of what a thread has, times `unit`. */
__device__ inline void store_rows(float *to, int n, const few_place &p, const float x[NUMBERS],
                                  float unit, float slope) {
    float *first = to + (p.row0 + p.row) * n;
    if (is_even(to, n)) {
        each_pair(p, [&](int i, int h, int c) {
            const float2 v = {leaky(x[i] * unit, slope), leaky(x[i + 1] * unit, slope)};
            if (p.row + 8 * h < p.rows && c < n) *(float2 *)(first + 8 * h * n + c) = v;
        });
        return;
    }
    each_pair(p, [&](int i, int h, int c) {
        float *at = first + 8 * h * n + c;
        if (p.row + 8 * h < p.rows && c < n) at[0] = leaky(x[i] * unit, slope);
        if (p.row + 8 * h < p.rows && c + 1 < n) at[1] = leaky(x[i + 1] * unit, slope);
    });
}

/* ---- gates ---- */

/* Bits of a thread, 1: the number is not positive. So ordered that two bytes of the sixteen signs of
 * factors are what is stored. */
__device__ constexpr uint32_t gate_bit(int i) { return 1u << (i % 2 * 8 + 7 - i / 2); }

__device__ inline uint32_t closed_of(const float x[NUMBERS]) {
    uint32_t closed = 0;
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) closed |= x[i] > 0.0f ? 0 : gate_bit(i);
    return closed;
}

__device__ inline uint32_t negative_of(const uint32_t a[PAIRS]) {
    uint32_t signs = 0;
#pragma unroll
    for (int q = 0; q < PAIRS; q++) signs |= (a[q] & 0x80008000u) >> q;
    return signs >> 8 & 0xffu | signs >> 16 & 0xff00u;
}

/* ---- a block ---- */

struct alignas(16) four_words {
    uint32_t a, b, c, d;
};

template <bool STRICT> struct few_block {
    typedef few_memory<STRICT> memory;
    memory *m;
    few_place p;
    float last[NUMBERS];     /* what the last layer made, times `power` */
    float rows[NUMBERS];     /* what is to be multiplied, from memory, */
    float extra[NUMBERS];    /* and a gate or an addend: of the next layers that have any */
    uint32_t a[PAIRS];       /* what is multiplied, as factors: pair i in a[i / 2] */
    uint32_t rest[PAIRS];    /* what they leave over */
    uint32_t b[64];          /* weights, unless strict: then they stay in shared memory */
    float bias[NUMBERS / 2], unit; /* that came with them */
    float power;
    int used;                /* products that have had their weights */
    int turn;                /* which of the factors are multiplied */
    void *waiting;           /* factors are still to be stored here, as a sheet, */
    uint32_t *waiting_gates; /* and their gates here; NULL: not */
    uint32_t sheet;          /* where a thread's are, from the first sheet on, in bytes */
    unsigned publishes, multiplies, takes; /* where it stores factors and reads them and weights */

    __device__ explicit few_block(memory *shared)
        : m(shared), p(shared->t), power(1), used(0), turn(0), waiting(NULL),
          waiting_gates(NULL) {
        const unsigned part = (unsigned)(p.block % (SHEET_ROWS / FEW_ROWS)), lane = p.lane;
        for (int i = 0; i < NUMBERS; i++) last[i] = rows[i] = extra[i] = 0;
        sheet = (uint32_t)(p.block / (SHEET_ROWS / FEW_ROWS) * sheet_bytes(STRICT)) +
                2 * image_at(SHEET_ROWS, part * FEW_ROWS + p.row, sheet_column(p.column));
        publishes = 2 * image_at(FEW_ROWS, p.row, p.column);
        multiplies = 2 * image_at(FEW_ROWS, lane % 16, lane / 16 * 8);
        takes = 2 * image_at(TOWER_WIDTH, p.warp * WARP_COLUMNS + lane / 16 * 8 + lane % 8,
                             lane / 8 % 2 * 8);
    }

    /* ---- weights ---- */

    __device__ char *stage() const { return (char *)m->weights[used % memory::STAGES]; }

    /* Of 16 columns, 32 j bytes of them from the first on: what `takes` is for the first. */
    __device__ unsigned step_of(unsigned first, unsigned panel, int s) const {
        return (first ^ s % 4 * 32) + s / 4 * panel;
    }

    /* Of 16 of the warp's columns, for one step. */
    __device__ void load_step(uint32_t to[4], const char *image, int half, int s) const {
        load_matrices(to, image + step_of(takes, TOWER_WIDTH * 128, s) + half * (16 * 128));
    }

    /* The next product's, once they are there. */
    __device__ void take_weights() {
        if (used >= m->t.n_images) return;
        arrival_wait(&m->there[used % memory::STAGES], (unsigned)(used / memory::STAGES));
        const char *image = stage();
        const float *behind = (const float *)(image + memory::PARTS * IMAGE_BYTES);
#pragma unroll
        for (int s = 0; s < STEPS && !STRICT; s++) {
            load_step(b + 8 * s, image, 0, s);
            load_step(b + 8 * s + 4, image, 1, s);
        }
#pragma unroll
        for (int i = 0; i < NUMBERS / 2; i += 2) {
            const float2 v = *(const float2 *)(behind + p.column + 4 * i);
            bias[i] = v.x, bias[i + 1] = v.y;
        }
        unit = behind[TOWER_WIDTH];
    }

    /* Nobody needs them any more, as far as this thread knows. */
    __device__ void weights_done() {
        arrive(&m->done[used % memory::STAGES]);
        used++;
    }

    /* ---- factors ---- */

    __device__ void pack(const float x[NUMBERS], float slope) {
        const uint32_t slopes = pack_halves(slope, slope);
#pragma unroll
        for (int q = 0; q < PAIRS; q++) {
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
    __device__ void publish(const float x[NUMBERS], float slope) {
        float top[4] = {0, 0, 0, 0};
        turn ^= 1;
        pack(x, slope);
#pragma unroll
        for (int q = 0; q < PAIRS; q++) {
            char *at = m->factors[turn][0] + (publishes ^ q / 2 * 16) + q % 2 * (8 * 128);
            *(uint32_t *)at = a[q];
            if (STRICT) *(uint32_t *)(at + FACTOR_BYTES) = rest[q];
        }
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) top[i % 4] = fmaxf(top[i % 4], fabsf(x[i]));
        const float all = fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3]));
        const uint32_t most = warp_most(__float_as_uint(all));
        if (p.lane == 0) m->tops[turn][p.warp] = most;
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
    __device__ void refit(uint32_t top, bool memory_rows, float slope) {
        const float next = times_power(power, __uint_as_float(power_bits(top, STRICT)));
        const float ratio = next * inverse_power(power);
        float x[NUMBERS];
        power = next;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            last[i] *= ratio;
            x[i] = memory_rows ? rows[i] * power : last[i];
        }
        barrier_of_four(); /* nobody reads them any more */
        turn ^= 1;
        publish(x, slope);
        barrier_of_four();
    }

    /* ---- sheets ---- */

    /* A thread's numbers of a row lie side by side in a sheet: sheet_column. */
    __device__ void store_waiting() {
        char *to = (char *)waiting + sheet;
#pragma unroll
        for (int h = 0; h < 2 && waiting; h++, to += 8 * 128) {
            *(four_words *)to = four_words{a[h], a[2 + h], a[4 + h], a[6 + h]};
            if (STRICT)
                *(four_words *)(to + SHEET_BYTES) =
                    four_words{rest[h], rest[2 + h], rest[4 + h], rest[6 + h]};
        }
        if (waiting && threadIdx.x == 0)
            powers_of(waiting, m->t.rows, STRICT)[p.block] = inverse_power(power);
        if (waiting_gates) *gate_of(waiting_gates) = (uint16_t)negative_of(a);
        waiting = NULL;
        waiting_gates = NULL;
    }

    __device__ uint16_t *gate_of(const uint32_t *gates) const {
        return (uint16_t *)gates + p.block * FEW_THREADS + (int)threadIdx.x;
    }

    /* What is stored as a sheet, but not multiplied next. */
    __device__ void store_strays(const tower_layer &l, uint32_t does) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) {
            if (!(does & (more ? STRAYS_LEAKY : STRAYS))) continue;
            const float slope = more ? l.slope_more : 1.0f;
            publish(last, slope);
            barrier_of_four();
            if (!is_well(most())) refit(most(), false, slope);
            waiting = more ? l.more_sheets : l.out_sheets;
            waiting_gates = more ? l.more_gates : NULL;
            store_waiting();
        }
    }

    /* ---- layers ---- */

    /* The next rows, or addend or gate, that layer k wants of memory. */
    __device__ void load_next_rows(int k) {
        if (k < m->t.n_layers) load_rows(rows, m->t.layer[k].a, m->t.layer[k].k, p);
    }
    __device__ void load_next_extra(int k) {
        if (k >= m->t.n_layers) return;
        const tower_layer &l = m->t.layer[k];
        if (l.does & IS_NARROW)
            load_narrow(l, 0);
        else if (l.does & HAS_GATE_ROWS)
            load_rows(extra, l.gate, l.n, p);
        else
            load_addend(extra, l, p);
    }

    __device__ void publish_rows(int k, const tower_layer &l, uint32_t does) {
        float x[NUMBERS];
        if (does & READS_OWN) load_next_rows(k);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) x[i] = rows[i] * power;
        publish(x, 1.0f);
        waiting = l.in_sheets;
    }

    /* sum = factors times weights. Even and odd steps have sums of their own: they need not wait for
     * each other. */
    __device__ void multiply(float sum[NUMBERS]) const {
        float odd[NUMBERS];
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) sum[i] = odd[i] = 0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            uint32_t f[4];
            float *to = s % 2 ? odd : sum;
            const char *at = m->factors[turn][0] + step_of(multiplies, FEW_ROWS * 128, s);
            load_matrices(f, at);
            if (STRICT)
                multiply_strict(to, f, at, s);
            else
                for (int j = 0; j < 4; j++) mma_halves(to + 4 * j, f, b + 8 * s + 2 * j);
        }
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) sum[i] += odd[i];
    }

    __device__ void multiply_strict(float to[NUMBERS], const uint32_t f[4], const char *at,
                                    int s) const {
        uint32_t less[4];
        load_matrices(less, at + FACTOR_BYTES);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t w[4], rest_of_w[4];
            load_step(w, stage(), half, s);
            load_step(rest_of_w, stage() + IMAGE_BYTES, half, s);
            for (int j = 0; j < 2; j++) {
                float *sum = to + 8 * half + 4 * j;
                mma_halves(sum, f, w + 2 * j);
                mma_halves(sum, f, rest_of_w + 2 * j);
                mma_halves(sum, less, w + 2 * j);
            }
        }
    }

    /* A layer that does KNOWN; 0: what it says itself. */
    template <uint32_t KNOWN> __device__ void product(int k, const tower_layer &l) {
        const uint32_t does = KNOWN ? KNOWN : l.does;
        const float slope = does & TAKES_LEAKY ? l.slope_a : 1.0f;
        float sum[NUMBERS], came[NUMBERS / 2];
        if (does & TAKES_MEMORY)
            publish_rows(k, l, does);
        else if (!(does & TAKES_SAME))
            publish(last, slope);
        barrier_of_four();
        const uint32_t top = most();
        multiply(sum);
        if (!is_well(top)) {
            refit(top, does & TAKES_MEMORY, slope);
            multiply(sum);
        }
        const float by = unit;
#pragma unroll
        for (int i = 0; i < NUMBERS / 2; i++) came[i] = bias[i];
        weights_done();
        take_weights();
        store_waiting();
        if (does & TAKES_MEMORY) load_next_rows(l.next_rows);
        finish<KNOWN>(k, l, sum, by, came);
    }

    /* k <= TOWER_NARROW: no tensor cores. */
    __device__ void outer(int k, const tower_layer &l) {
        float sum[NUMBERS], came[NUMBERS / 2];
        if (l.does & READS_OWN) barrier_of_four();
        for (int i = 0; i < NUMBERS; i++) sum[i] = 0;
        for (int i = 0; i < l.k; i++) {
            float y[2], w[NUMBERS];
            const int at[2] = {i * l.n, -1};
            for (int h = 0; h < 2; h++)
                y[h] = p.row + 8 * h < p.rows ? l.a[(p.row0 + p.row + 8 * h) * l.k + i] : 0.0f;
            load_pairs(w, l.b, at, l.n, p);
#pragma unroll
            for (int q = 0; q < NUMBERS; q++)
                sum[q] = fmaf(y[q / 2 % 2], w[q / 4 * 4 + q % 2], sum[q]);
        }
        for (int i = 0; i < NUMBERS / 2; i++) {
            const int c = p.column + i / 2 * 8 + i % 2;
            came[i] = l.bias && c < l.n ? l.bias[c] : 0.0f;
        }
        finish<0>(k, l, sum, power, came);
    }

    /* What a thread multiplies to get column n of a narrow layer. */
    __device__ void load_narrow(const tower_layer &l, int n) {
        const int at[2] = {n * l.k, n * l.k};
        load_pairs(extra, l.b, at, l.k, p);
    }

    /* n <= TOWER_NARROW; the rows that the block has stay as they are. */
    __device__ void narrow(const tower_layer &l) {
        const float slope = l.source == FROM_MORE ? l.slope_a : 1.0f;
        barrier_of_four();
        for (int n = 0; n < l.n; n++) {
            float part[2] = {0, 0};
            if (n > 0) load_narrow(l, n);
#pragma unroll
            for (int i = 0; i < NUMBERS; i++)
                part[i / 2 % 2] = fmaf(leaky(last[i], slope), extra[i], part[i / 2 % 2]);
            for (int h = 0; h < 2; h++) {
                part[h] += __shfl_xor_sync(0xffffffffu, part[h], 1);
                part[h] += __shfl_xor_sync(0xffffffffu, part[h], 2);
                if (p.lane % 4 == 0) m->parts[n][p.warp][p.row + 8 * h] = part[h];
            }
        }
        barrier_of_four();
        load_next_extra(l.next_extra);
        const int n = (int)threadIdx.x / FEW_ROWS, r = (int)threadIdx.x % FEW_ROWS;
        if (n >= l.n || r >= p.rows) return;
        float sum = 0;
        for (int w = 0; w < FEW_WARPS; w++) sum += m->parts[n][w][r];
        l.out[(p.row0 + r) * l.n + n] =
            fmaf(sum, inverse_power(power), l.bias ? l.bias[n] : 0.0f);
    }

    __device__ uint32_t gates_for(int k, const tower_layer &l, uint32_t does) {
        if (does & HAS_GATE_ROWS) {
            if (does & READS_OWN) load_next_extra(k);
            return closed_of(extra);
        }
        if (!(does & HAS_GATES)) return 0;
        return does & READS_OWN ? *gate_of(l.gates) : m->gates[k][threadIdx.x];
    }

    __device__ void add_rows(const tower_layer &l, uint32_t does) {
        if (does & (HAS_GATE_ROWS | READS_OWN)) load_addend(extra, l, p);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) last[i] = fmaf(extra[i], power, last[i]);
    }

    /* What comes with a product, whose sums are 1 / by too large. */
    template <uint32_t KNOWN>
    __device__ void finish(int k, const tower_layer &l, const float sum[NUMBERS], float by,
                           const float came[NUMBERS / 2]) {
        const uint32_t does = KNOWN ? KNOWN : l.does, closed = gates_for(k, l, does);
        const bool gated = does & (HAS_GATES | HAS_GATE_ROWS);
        const float slanted = gated ? by * l.slope : by;
        const float bias_power = does & ADDS_BIAS ? power : 0.0f;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            last[i] = does & ADDS_LAST ? last[i] : 0.0f;
            if (!KNOWN || KNOWN & ADDS_BIAS)
                last[i] = fmaf(came[i / 4 * 2 + i % 2], bias_power, last[i]);
            if (!KNOWN || KNOWN & HAS_GATES)
                add_gated(&last[i], sum[i], closed, gate_bit(i), slanted, by);
            else
                last[i] = fmaf(sum[i], by, last[i]);
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
        enum { UNITS = FEW_THREADS * 2 / 16 };
        for (int i = (int)threadIdx.x; i < m->t.n_layers * UNITS; i += FEW_THREADS) {
            const tower_layer &l = m->t.layer[i / UNITS];
            if (!(l.does & HAS_GATES) || l.does & READS_OWN) continue;
            const char *from = (const char *)l.gates + p.block * (UNITS * 16) + i % UNITS * 16;
            copy_16((float *)m->gates + i * 4, (const float *)from, 16);
        }
        copies_commit();
    }

    /* Most layers are of two forms. */
    __device__ void run() {
        load_next_rows(m->t.first_rows);
        load_next_extra(m->t.first_extra);
        ask_for_gates();
        copies_wait<0>();
        barrier_of_four();
        take_weights();
#pragma unroll 1
        for (int k = 0; k < m->t.n_layers; k++) {
            const tower_layer &l = m->t.layer[k];
            if (l.does == GOES_FORWARD)
                product<GOES_FORWARD>(k, l);
            else if (l.does == GOES_BACK)
                product<GOES_BACK>(k, l);
            else if (l.does & MULTIPLIES)
                product<0>(k, l);
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
        for (int s = 0; s < few_memory<STRICT>::STAGES; s++) {
            arrival_init(&m->there[s], SPLIT);
            arrival_init(&m->done[s], FEW_THREADS);
        }
        arrivals_ready();
    }
    __syncthreads();
}

/* A warp: every image, as soon as there is room; a lane has a stage. */
template <bool STRICT> __device__ inline void fetch_weights(few_memory<STRICT> *m) {
    enum { STAGES = few_memory<STRICT>::STAGES };
    const int stage = (int)threadIdx.x % 32 / SPLIT, part = (int)threadIdx.x % SPLIT;
    if (stage >= STAGES) return;
    const unsigned all = image_floats(STRICT) * 4, each = all / SPLIT / 16 * 16, from = part * each, bytes = part + 1 < SPLIT ? each : all - from;
    for (int image = stage; image < m->t.n_images; image += STAGES) {
        if (image >= STAGES) arrival_wait(&m->done[stage], (unsigned)(image / STAGES - 1));
        arrival_expect(&m->there[stage], bytes);
        copy_bulk(m->weights[stage] + from, (const char *)m->t.images[image] + from, bytes,
                  &m->there[stage]);
    }
}
#endif

template <bool STRICT>
__global__ void __launch_bounds__(FEW_THREADS + 32, 1)
    run_few_rows(const tower *towers, const __grid_constant__ tower_starts starts) {
#if GPU_HAS_TOWERS
    GPU_SHARED(shared);
    few_memory<STRICT> *m = (few_memory<STRICT> *)image_aligned(shared);
    grid_next();
    prepare_block(m, tower_of_block(towers, starts));
    grid_wait();
    if (threadIdx.x >= FEW_THREADS)
        fetch_weights(m);
    else
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

/* Layers that store no sheets may be of a form that does: there is none to store. */
static uint32_t form_of(uint32_t does) {
    if ((does | RIDES) == GOES_BACK) return GOES_BACK;
    return (does | RIDES_LEAKY) == GOES_FORWARD ? (uint32_t)GOES_FORWARD : does;
}

void n2_few_rows_make(tower *t) {
    int rows = t->n_layers, extra = t->n_layers;
    for (int k = t->n_layers; k-- > 0;) {
        tower_layer *l = &t->layer[k];
        l->does = form_of(what_it_does(t, k));
        l->next_rows = (int16_t)rows;
        l->next_extra = (int16_t)extra;
        if (l->does & READS_OWN) continue;
        if (l->does & TAKES_MEMORY) rows = k;
        if (l->does & (HAS_GATE_ROWS | ADDS_ROWS | IS_NARROW)) extra = k;
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
        GPU_LAUNCH(run_few_rows<true>, blocks, FEW_THREADS + 32, shared_bytes<true>(), stream, early,
                   towers, copy);
    else
        GPU_LAUNCH(run_few_rows<false>, blocks, FEW_THREADS + 32, shared_bytes<false>(), stream, early,
                   towers, copy);
}
#endif
