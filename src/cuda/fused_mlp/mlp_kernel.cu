/* The kernel of fused MLPs: mlp.h. */
#include "mlp_rows.h"

#if GPU_HAS_WGMMA

/* ---- a block ---- */

template <bool STRICT> struct mlp_block {
    typedef mlp_sizes<STRICT> size;
    typedef mlp_factors<STRICT> factors;
    mlp_memory<STRICT> m;
    mlp_position p;
    int used;                     /* products begun */
    void *waiting;                /* factors are still to be stored here, in the stash, */
    uint32_t *waiting_gates;      /* and their gates here; NULL: not */
    uint32_t closed[2], ahead[2]; /* gates of this layer, and of the next, if stored as such */

    __device__ mlp_block(const mlp_memory<STRICT> &memory, int b)
        : m(memory), p(*memory.t, b, STRICT), used(0), waiting(NULL), waiting_gates(NULL) {}

    /* ---- weights ---- */

    /* Where the next product's are, once they are there. */
    __device__ const char *next_packed() {
        const int stage = used % size::STAGES;
        arrival_wait(&m.there[stage], (unsigned)(used / size::STAGES));
        return m.stage(stage);
    }

    __device__ static const float *behind(const char *packed) {
        return (const float *)(packed + size::PARTS * PACKED_BYTES);
    }

    /* No thread of the warp needs them any more. */
    __device__ void packed_done() {
        arrive(&m.done[used % size::STAGES]);
        used++;
    }

    /* ---- stash ---- */

    /* One of eight parts of factors to a stash tile. Four registers of a row lie side by side
     * there: stash_column. */
    __device__ void store_part(const factors *f, int i) const {
        char *at = (char *)waiting + (p.tile ^ i / 2 % 2 * 64) +
                   i / 4 % 2 * (STASH_TILE_BYTES / 2) + i % 2 * (8 * 128);
#pragma unroll
        for (int part = 0; part < size::PARTS; part++) {
            const uint32_t *a = (part ? f->rest : f->a) + i / 2 * 8 + i % 2;
            store_far(waiting && p.stores, at + part * STASH_TILE_BYTES, a[0], a[2], a[4], a[6]);
        }
    }

    /* What is known only when factors fit; they are stored. */
    __device__ void end_waiting(const factors *f) {
        if (waiting && p.stores && p.speaks)
            *(float *)((char *)waiting + p.power) = inverse_power(f->power);
        if (waiting_gates) store_gates(waiting_gates, p, f->a);
        waiting = NULL;
        waiting_gates = NULL;
    }

    /* ---- layers ---- */

    /* Factors go to memory meanwhile, again if they turn out not to fit. */
    __device__ void multiply(const char *packed, const factors *f, float sum[64]) {
        const auto nothing = [](int) {};
        products_begin(sum);
        multiply_rows(sum, f->a, packed, true, [&](int i) { store_part(f, i); });
        if (STRICT) {
            multiply_rows(sum, f->a, packed + PACKED_BYTES, false, nothing);
            multiply_rows(sum, f->rest, packed, false, nothing);
        }
        products_end();
    }

    /* What was multiplied turns out not to fit, for one of four warps that multiply together. */
    __device__ void multiply_again(const char *packed, float last[64], float sum[64], factors *f) {
        products_wait(sum);
        settle(f, last);
        multiply(packed, f, sum);
    }

    /* Gates are far away: they are asked for a layer ahead. */
    __device__ void load_ahead(int layer) {
        const uint32_t *gates = layer < m.t->n_layers ? m.t->layer[layer].gates : NULL;
        if (gates) load_gates(gates, p, ahead);
    }

    __device__ void product(int k, float last[64], float sum[64], factors *f) {
        const mlp_layer &l = m.t->layer[k];
        const char *packed = next_packed();
        multiply(packed, f, sum);
        load_ahead(k + 1);
        look(packed, last, sum, f);
        begin_sums(l.adds_last, l.bias, behind(packed), f->power, p, last);
        const float unit = behind(packed)[MLP_WIDTH], slope = l.slope;
        products_wait(sum);
        packed_done();
        if (l.gate && !l.gates) find_gates(p, m.rows, closed);
        end_sums(l.gate, unit, slope, closed, sum, last);
    }

    /* While tensor cores multiply factors: whether they fit, and where they go. */
    __device__ void look(const char *packed, float last[64], float sum[64], factors *f) {
        if (any_of_four(!f->settled && !is_in_range(f->a, last, STRICT)))
            multiply_again(packed, last, sum, f);
        f->settled = true;
        end_waiting(f);
    }

    /* n layers of a residual network from layer k on, or of its way back. They are most of all, so
     * this does nothing but what they need, and asks nothing that is the same for all. */
    template <bool BACK>
    __device__ void run_of_layers(int k, int n, float last[64], float sum[64], factors *f) {
        const mlp_layer *l = &m.t->layer[k];
        const float slope = BACK ? l->slope : l->slope_more;
#pragma unroll 1
        for (const mlp_layer *end = l + n; l < end; l++, k++) {
            const char *packed = next_packed();
            multiply(packed, f, sum);
            void *tile = BACK ? l->out_stash : l->more_stash;
            uint32_t *gates = BACK ? NULL : l->more_gates;
            if (BACK) load_ahead(k + 1);
            look(packed, last, sum, f);
            const float unit = behind(packed)[MLP_WIDTH];
            begin_sums(true, !BACK, behind(packed), f->power, p, last);
            products_wait(sum);
            packed_done();
            end_sums(BACK, unit, slope, closed, sum, last);
            make_factors(f, last, BACK ? 1.0f : slope, BACK ? OF_OUT : OF_MORE);
            waiting = tile;
            waiting_gates = gates;
            if (BACK) closed[0] = ahead[0], closed[1] = ahead[1];
        }
        if (!BACK) load_ahead(k);
        closed[0] = ahead[0], closed[1] = ahead[1];
    }

    __device__ void outer(const mlp_layer &l, float last[64], float sum[64], float power) {
        outer_sums(l, p, sum);
        if (l.gate && !l.gates) find_gates(p, m.rows, closed);
        begin_sums(l.adds_last, false, NULL, power, p, last);
        end_sums(l.gate, power, l.slope, closed, sum, last);
        if (!l.bias) return;
        each_pair([&](int i, int, int j) {
            const int c = 8 * j + p.column;
            last[i] += c < l.n ? power * l.bias[c] : 0.0f;
            last[i + 1] += c + 1 < l.n ? power * l.bias[c + 1] : 0.0f;
        });
    }

    /* What a layer needs besides its factors is asked for before they are multiplied: gates, or
     * else an addend. */
    __device__ void ask_for(const mlp_layer &l) {
        const bool gated = l.gate && !l.gates;
        if (gated)
            ask_rows(m.rows, l.gate, l.n, p);
        else if (addend_of(l))
            ask_addend(l);
    }

    __device__ void ask_addend(const mlp_layer &l) {
        if (l.index)
            ask_table(m.rows, l, p);
        else
            ask_rows(m.rows, l.addend, l.n, p);
    }

    /* What is added to a layer's output, but for the layer before. */
    __device__ static const float *addend_of(const mlp_layer &l) {
        return l.adds_last ? NULL : l.addend;
    }

    __device__ void add_rows(const mlp_layer &l, float power, float last[64]) {
        if (l.gate && !l.gates) ask_addend(l);
        each_of_rows(m.rows, p, [&](int i, float2 v) {
            last[i] = fmaf(v.x, power, last[i]);
            last[i + 1] = fmaf(v.y, power, last[i + 1]);
        });
    }

    /* Stash tiles and gates leave when the next product is under way. */
    __device__ void make_next(const mlp_layer &l, bool more, float last[64], factors *f) {
        make_factors(f, last, more ? l.slope_more : 1.0f, more ? OF_MORE : OF_OUT);
        waiting = more ? l.more_stash : l.out_stash;
        waiting_gates = more ? l.more_gates : NULL;
    }

    __device__ void store(const mlp_layer &l, float last[64], factors *f) {
#pragma unroll 1
        for (int more = 0; more < 2; more++) { /* one copy of the code */
            float *to = more ? l.more : l.out;
            if (to)
                rows_out(to, l.n, l.wide, m.rows, p, last, inverse_power(f->power),
                         more ? l.slope_more : 1.0f);
            if (!(more ? l.more_stash || l.more_gates : l.out_stash != NULL)) continue;
            finish_waiting(last, f);
            make_next(l, more, last, f);
        }
    }

    /* No product follows that would look whether they fit. */
    __device__ void finish_waiting(float last[64], factors *f) {
        if (!waiting && !waiting_gates) return;
        settle(f, last);
#pragma unroll
        for (int i = 0; i < 8; i++) store_part(f, i);
        end_waiting(f);
    }

    /* What a layer multiplies, if it is not there already. */
    __device__ void prepare_factors(const mlp_layer &l, float last[64], factors *f) {
        const int wanted = l.source == FROM_MORE ? OF_MORE : OF_OUT;
        if (l.source == FROM_SAME) return;
        if (l.source == FROM_MEMORY) {
            finish_waiting(last, f);
            load_factors(l, p, m.rows, last, f);
            waiting = l.in_stash;
        } else if (f->of != wanted) {
            finish_waiting(last, f);
            make_factors(f, last, l.source == FROM_MORE ? l.slope_a : 1.0f, wanted);
        }
    }

    /* A layer that reads or stores more than factors. */
    __device__ void finish_layer(const mlp_layer &l, float last[64], factors *f) {
        f->of = OF_NOTHING;
        if (addend_of(l)) add_rows(l, f->power, last);
        store(l, last, f);
    }

    /* Most layers are plain, and have a short way. */
    __device__ void layer(int k, float last[64], float sum[64], factors *f) {
        const mlp_layer &l = m.t->layer[k];
        if (l.kind == LAYER_NARROW) {
            narrow_product(l, p, inverse_power(f->power), last);
            return;
        }
        if (l.kind == LAYER_PRODUCT) {
            prepare_factors(l, last, f);
            ask_for(l);
            product(k, last, sum, f);
        } else {
            load_ahead(k + 1);
            ask_for(l);
            outer(l, last, sum, f->power);
        }
        if (l.plain && !addend_of(l))
            make_next(l, l.plain_more, last, f);
        else
            finish_layer(l, last, f);
        closed[0] = ahead[0], closed[1] = ahead[1];
    }

    __device__ void run() {
        float last[64], sum[64];
        factors f;
        f.power = 1;
        f.of = OF_NOTHING;
        f.settled = true;
#pragma unroll
        for (int i = 0; i < 64; i++) last[i] = sum[i] = 0;
#pragma unroll
        for (int i = 0; i < 32; i++) f.a[i] = f.rest[STRICT ? i : 0] = 0;
        ahead[0] = ahead[1] = 0;
        load_ahead(0);
        closed[0] = ahead[0], closed[1] = ahead[1];
#pragma unroll 1
        for (int k = 0; k < m.t->n_layers;) {
            const mlp_layer &l = m.t->layer[k];
            const int n = f.of == (l.gate ? OF_OUT : OF_MORE) ? l.run : 0;
            if (n && l.gate)
                run_of_layers<true>(k, n, last, sum, &f);
            else if (n)
                run_of_layers<false>(k, n, last, sum, &f);
            else
                layer(k, last, sum, &f);
            k += n ? n : 1;
        }
        finish_waiting(last, &f);
    }
};

template <bool STRICT>
__device__ inline void prepare_block(const mlp_memory<STRICT> &m, const fused_mlp *fused_mlps,
                                     const block_starts &starts) {
    copy_mlp(m.t, mlp_of_block(fused_mlps, starts));
    if (threadIdx.x == 0) {
        for (int s = 0; s < mlp_sizes<STRICT>::STAGES; s++) {
            arrival_init(&m.there[s], 1);
            arrival_init(&m.done[s], blockDim.x - FETCH_THREADS);
        }
        arrivals_ready();
    }
    __syncthreads();
}

/* One thread: all packed weights, one by one, as soon as there is room. */
template <bool STRICT> __device__ inline void fetch_weights(const mlp_memory<STRICT> &m) {
    typedef mlp_sizes<STRICT> size;
    if (threadIdx.x != blockDim.x - FETCH_THREADS) return;
    for (int k = 0; k < m.t->n_packed; k++) {
        const int stage = k % size::STAGES, round = k / size::STAGES;
        if (round) arrival_wait(&m.done[stage], (unsigned)round - 1);
        arrival_expect(&m.there[stage], packed_floats(STRICT) * 4);
        copy_bulk(m.stage(stage), m.t->packed[k], packed_floats(STRICT) * 4, &m.there[stage]);
    }
}
#endif

template <bool STRICT>
__global__ void __launch_bounds__(MLP_THREADS + FETCH_THREADS, 1)
    run_fused_mlps(const fused_mlp *fused_mlps, const __grid_constant__ block_starts starts) {
#if GPU_HAS_WGMMA
    GPU_SHARED(shared);
    const mlp_memory<STRICT> m(tile_aligned(shared));
    prepare_block(m, fused_mlps, starts);
    grid_wait();
    grid_next();
    if (threadIdx.x >= blockDim.x - FETCH_THREADS) {
        fewer_registers<FETCH_REGISTERS>();
        fetch_weights(m);
    } else {
        more_registers<MLP_REGISTERS>();
        mlp_block<STRICT>(m, (int)blockIdx.x - m.t->first_block).run();
    }
#else
    (void)fused_mlps, (void)starts;
#endif
}

/* Every architecture that the file is compiled for has its own. */
__device__ int code_has_wgmma = GPU_HAS_WGMMA;

cudaError_t n2_fused_mlps_prepare(bool *there) {
    int has = 0;
    const cudaError_t error = cudaMemcpyFromSymbol(&has, code_has_wgmma, sizeof has);
    *there = has != 0;
    if (error != cudaSuccess || !has) return error;
    const cudaError_t first =
        cudaFuncSetAttribute(run_fused_mlps<false>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             mlp_sizes<false>::SHARED);
    if (first != cudaSuccess) return first;
    const cudaError_t second = cudaFuncSetAttribute(
        run_fused_mlps<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, mlp_sizes<true>::SHARED);
    return second != cudaSuccess ? second : n2_few_rows_prepare();
}

void n2_fused_mlps_launch(const fused_mlp *fused_mlps, const block_starts *starts, uint32_t blocks,
                          int block_rows, bool strict, cudaStream_t stream, bool early) {
    const block_starts copy = *starts;
    const unsigned threads = (unsigned)block_rows * 2 + FETCH_THREADS;
    if (block_rows == FEW_ROWS) {
        n2_few_rows_launch(fused_mlps, starts, blocks, strict, stream, early);
        return;
    }
    if (strict)
        GPU_LAUNCH(run_fused_mlps<true>, blocks, threads, mlp_sizes<true>::SHARED, stream, early,
                   fused_mlps, copy);
    else
        GPU_LAUNCH(run_fused_mlps<false>, blocks, threads, mlp_sizes<false>::SHARED, stream, early,
                   fused_mlps, copy);
}
