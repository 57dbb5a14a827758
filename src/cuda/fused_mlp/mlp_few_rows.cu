/* The kernel of fused MLPs of few rows: mlp.h.
 *
 * With many rows what counts is how many are done at once (mlp_kernel.cu); with few, how long a
 * layer takes. A block has 16 rows and multiplies weights with them, not them with weights: tensor
 * cores want 64 rows on the left, which weights have, and are content with 16 on the right. So
 * eight warps have 16 columns of the output each, and a thread eight numbers. What a layer makes
 * goes to all warps through shared memory, as factors: one barrier a layer. */
#include "few_rows.h"

#if GPU_HAS_WGMMA

/* ---- layers ---- */

template <bool STRICT> struct few_block : few_loads<STRICT> {
    typedef few_loads<STRICT> base;
    using base::ask_for_gates;
    using base::extra;
    using base::gates_for;
    using base::is_well;
    using base::last;
    using base::load_more;
    using base::load_narrow;
    using base::load_outer;
    using base::m;
    using base::make_rows;
    using base::most;
    using base::p;
    using base::packed_done;
    using base::power;
    using base::publish;
    using base::refit;
    using base::rows;
    using base::stage;
    using base::store_strays;
    using base::store_waiting;
    using base::take_rows;
    using base::turn;
    using base::wait_for_packed;
    using base::waiting;
    using base::waiting_gates;
    using typename base::memory;
    __device__ explicit few_block(memory *shared) : base(shared) {}

    /* Where tensor cores find the weights, and the factors. */
    struct factors {
        decltype(tile_lower(NULL, 16)) w, x;
    };
    __device__ factors find_factors() const {
        return factors{uniform(tile_lower(m->weights[stage] + p.warp / 4 * (64 * 128), 16)),
                       uniform(tile_lower(m->factors[turn][0], 16))};
    }

    __device__ void multiply(float sum[NUMBERS], const factors &at) const {
        const auto w = at.w, x = at.x;
        products_begin<NUMBERS>(sum);
        multiply_few(sum, w, x, true);
        if (STRICT) {
            multiply_few(sum, w + PACKED_BYTES / 16, x, false);
            multiply_few(sum, w, x + FACTOR_BYTES / 16, false);
        }
        products_end();
    }

    /* What is done while tensor cores are at work. Returns the layer's gates. */
    __device__ uint32_t meanwhile(int k, const mlp_layer &l, uint32_t does) {
        store_waiting();
        wait_for_packed(1);
        return gates_for(k, l, does);
    }

    /* What a layer makes before it is finished: sums that are 1 / by too large. */
    struct raw {
        float sum[NUMBERS], by, bias[2];
        uint32_t closed;
    };

    /* A product of a layer that does KNOWN; 0: what it says itself. */
    template <uint32_t KNOWN>
    __device__ void product(int k, const mlp_layer &l, uint32_t says, raw *y) {
        const uint32_t does = KNOWN ? KNOWN : says;
        const float *behind = (const float *)(m->weights[stage] + memory::PARTS * PACKED_BYTES);
        float x[NUMBERS];
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            x[i] = !KNOWN && does & TAKES_MEMORY ? rows[i] * power : last[i];
        if (!KNOWN && does & TAKES_MEMORY) waiting = l.in_stash;
        for (bool again = false;;) {
            if (KNOWN || !(does & TAKES_SAME))
                publish(x, !KNOWN || KNOWN & TAKES_LEAKY, does & TAKES_LEAKY ? l.slope_a : 1.0f);
            const factors at = find_factors(); /* while others come to the barrier */
            barrier_of_eight();
            const uint32_t top = most();
            multiply(y->sum, at);
            if (again || is_well(top)) break;
            products_wait<NUMBERS>(y->sum);
            refit(top, x);
            again = true;
        }
        y->by = behind[MLP_WIDTH];
        y->bias[0] = behind[p.column], y->bias[1] = behind[p.column + 8];
        y->closed = meanwhile(k, l, does);
        products_wait<NUMBERS>(y->sum);
        packed_done();
    }

    /* k <= MLP_NARROW: no tensor cores. Or none at all, for rows that are made already. */
    __device__ void outer(int k, const mlp_layer &l, uint32_t does, raw *out) {
        const int inner = does & MAKES_ROWS ? 0 : l.k;
        if (does & READS_OWN) barrier_of_eight();
        for (int i = 0; i < NUMBERS; i++) out->sum[i] = 0;
        for (int j = 0; j < inner; j++) {
            if (!(does & TAKES_MEMORY) || j > 0) load_outer(l, j);
#pragma unroll
            for (int i = 0; i < NUMBERS; i++)
                out->sum[i] = fmaf(rows[i / 4 * 2 + i % 2], rows[4 + i / 2 % 2], out->sum[i]);
        }
        for (int i = 0; i < 2; i++)
            out->bias[i] = l.bias && p.column + 8 * i < l.n ? l.bias[p.column + 8 * i] : 0.0f;
        out->by = power;
        out->closed = gates_for(k, l, does);
    }

    /* n <= MLP_NARROW; the rows that the block has stay as they are. */
    __device__ void narrow(const mlp_layer &l) {
        const float slope = l.source == FROM_MORE ? l.slope_a : 1.0f;
        barrier_of_eight();
        for (int n = 0; n < l.n; n++) {
            if (n > 0) load_narrow(l, n);
#pragma unroll
            for (int k = 0; k < 4; k++) { /* its rows */
                const int i = k / 2 * 4 + k % 2;
                float part =
                    leaky(last[i], slope) * extra[0] + leaky(last[i + 2], slope) * extra[1];
                for (int other = 4; other < 32; other *= 2)
                    part += __shfl_xor_sync(0xffffffffu, part, other);
                if (p.lane < 4) m->parts[n][p.warp][p.row + row_of(i)] = part;
            }
        }
        barrier_of_eight();
        const int n = (int)threadIdx.x / FEW_ROWS, r = (int)threadIdx.x % FEW_ROWS;
        if (n >= l.n || r >= p.rows) return;
        float sum = 0;
        for (int w = 0; w < FEW_WARPS; w++) sum += m->parts[n][w][r];
        l.out[(p.row0 + r) * l.n + n] = fmaf(sum, inverse_power(power), l.bias ? l.bias[n] : 0.0f);
    }

    __device__ void add_rows(const mlp_layer &l, uint32_t does) {
        if (does & HAS_GATE_ROWS) load_addend(extra, l, p);
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) last[i] = fmaf(extra[i], power, last[i]);
    }

    /* What comes with a product. */
    template <uint32_t KNOWN>
    __device__ void finish(const mlp_layer &l, uint32_t does, const raw &y) {
        const float by = y.by, slanted = does & (HAS_GATES | HAS_GATE_ROWS) ? by * l.slope : by;
        const float bias_power = does & ADDS_BIAS ? power : 0.0f;
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            last[i] = does & ADDS_LAST ? last[i] : 0.0f;
            if (!KNOWN || KNOWN & ADDS_BIAS) last[i] = fmaf(y.bias[i / 2 % 2], bias_power, last[i]);
            if (!KNOWN || KNOWN & HAS_GATES)
                add_gated(&last[i], y.sum[i], y.closed, gate_bit(i), slanted, by);
            else
                last[i] = fmaf(y.sum[i], by, last[i]);
        }
        if (does & ADDS_ROWS) add_rows(l, does);
        if (does & (STORES | STORES_LEAKY | STRAYS | STRAYS_LEAKY)) store_all(l, does);
        if (does & RIDES) waiting = l.out_stash;
        if (does & RIDES_LEAKY) waiting = l.more_stash, waiting_gates = l.more_gates;
    }

    /* As it is, or its LeakyReLU, one after the other: so the code is there once. */
    __device__ void store_all(const mlp_layer &l, uint32_t does) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) {
            if (!(does & (more ? STORES_LEAKY : STORES))) continue;
            store_rows(more ? l.more : l.out, l.n, p, last, inverse_power(power),
                       more ? l.slope_more : 1.0f);
        }
        if (does & (STRAYS | STRAYS_LEAKY)) store_strays(l, does);
    }

    /* Layers of the same form, from layer k on; returns the next. */
    template <uint32_t KNOWN> __device__ int run_of(int k) {
        const mlp_layer *l = &m->t.layer[k];
#pragma unroll 1
        for (int end = k + l->run; k < end; k++, l++) {
            raw y;
            product<KNOWN>(k, *l, KNOWN, &y);
            finish<KNOWN>(*l, KNOWN, y);
        }
        return k;
    }

    /* Any layer. */
    __device__ void layer(int k, const mlp_layer &l, uint32_t does) {
        raw y;
        if (does & IS_NARROW) return narrow(l);
        if (does & MULTIPLIES)
            product<0>(k, l, does, &y);
        else
            outer(k, l, does, &y);
        finish<0>(l, does, y);
    }

    /* Gates and rows that others wrote are there, or are made. Returns the first layer that is not
     * done by that. */
    __device__ int begin() {
        const bool makes = m->t.layer[0].does & MAKES_ROWS;
        if (makes) make_rows(m->t.layer[0]);
        copies_wait<0>();
        barrier_of_eight();
        const int first = makes ? take_rows(m->t.layer[0]) : 0;
        wait_for_packed(0);
        return first;
    }

    __device__ void run() {
        int next_rows = m->t.first_rows, next_extra = m->t.first_extra;
        bool begun = false;
        const int n_layers = m->t.n_layers;
        ask_for_gates();
#pragma unroll 1
        for (int k = 0; k < n_layers;) {
            const mlp_layer *l = &m->t.layer[k];
            uint32_t does = l->does;
            if (next_rows + next_extra < 2 * MOST_LAYERS || does & READS_OWN) { /* not both none */
                load_more(k, next_rows, next_extra);
                next_rows = next_extra = MOST_LAYERS;
            }
            if (!begun) {
                begun = true;
                k = begin();
                l = &m->t.layer[k];
                does = l->does;
            }
            if (does == GOES_FORWARD) {
                k = run_of<GOES_FORWARD>(k);
            } else if (does == GOES_BACK) {
                k = run_of<GOES_BACK>(k);
            } else {
                layer(k++, *l, does);
                if (does & TAKES_MEMORY) next_rows = l->next_rows;
                if (does & (HAS_GATE_ROWS | ADDS_ROWS | IS_NARROW)) next_extra = l->next_extra;
            }
        }
    }
};

template <bool STRICT>
__device__ inline void prepare_block(few_memory<STRICT> *m, const fused_mlp *from) {
    copy_mlp(&m->t, from);
    if (threadIdx.x == 0) {
        for (int s = 0; s < few_memory<STRICT>::STAGES; s++) {
            arrival_init(&m->there[s], 1);
            arrival_init(&m->done[s], FEW_THREADS);
        }
        arrivals_ready();
    }
    __syncthreads();
}

/* A warp: all packed weights, one by one, as soon as there is room; a lane has a stage. */
template <bool STRICT> __device__ inline void fetch_weights(few_memory<STRICT> *m) {
    enum { STAGES = few_memory<STRICT>::STAGES };
    const int stage = (int)threadIdx.x % 32;
    if (stage >= STAGES) return;
    for (int packed = stage; packed < m->t.n_packed; packed += STAGES) {
        if (packed >= STAGES) arrival_wait(&m->done[stage], (unsigned)(packed / STAGES - 1));
        arrival_expect(&m->there[stage], packed_floats(STRICT) * 4);
        copy_bulk(m->weights[stage], m->t.packed[packed], packed_floats(STRICT) * 4,
                  &m->there[stage]);
    }
}
#endif

template <bool STRICT>
__global__ void __launch_bounds__(FEW_THREADS + 32, 1)
    run_few_rows(const fused_mlp *fused_mlps, const __grid_constant__ block_starts starts) {
#if GPU_HAS_WGMMA
    GPU_SHARED(shared);
    few_memory<STRICT> *m = (few_memory<STRICT> *)tile_aligned(shared);
    prepare_block(m, mlp_of_block(fused_mlps, starts));
    if (threadIdx.x >= FEW_THREADS) {
        grid_wait();
        fetch_weights(m);
    } else {
        few_block<STRICT> block(m);
        grid_wait();
        grid_next();
        block.run();
    }
#else
    (void)fused_mlps, (void)starts;
#endif
}

/* ---- launches -------------------------------------------------------------- */

#if GPU_HAS_WGMMA
template <bool STRICT> static constexpr int shared_bytes() {
    static_assert(sizeof(few_memory<STRICT>) + 1024 <= 227 * 1024, "what a block may have");
    return (int)sizeof(few_memory<STRICT>) + 1024;
}

cudaError_t n2_few_rows_prepare() {
    const cudaError_t first = cudaFuncSetAttribute(
        run_few_rows<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<false>());
    if (first != cudaSuccess) return first;
    return cudaFuncSetAttribute(run_few_rows<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                shared_bytes<true>());
}

void n2_few_rows_launch(const fused_mlp *fused_mlps, const block_starts *starts, uint32_t blocks,
                        bool strict, cudaStream_t stream, bool early) {
    const block_starts copy = *starts;
    if (strict)
        GPU_LAUNCH(run_few_rows<true>, blocks, FEW_THREADS + 32, shared_bytes<true>(), stream,
                   early, fused_mlps, copy);
    else
        GPU_LAUNCH(run_few_rows<false>, blocks, FEW_THREADS + 32, shared_bytes<false>(), stream,
                   early, fused_mlps, copy);
}
#endif
