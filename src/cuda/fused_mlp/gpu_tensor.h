/* Tensor cores and copies of compute capability 9.0, for fused MLPs. tests/cuda/emulate.h has the
 * same for a processor. */
#ifndef N2_CUDA_GPU_TENSOR_H
#define N2_CUDA_GPU_TENSOR_H

#include "mlp.h"

#ifndef N2_EMULATE

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
#define GPU_HAS_WGMMA 1
#else
#define GPU_HAS_WGMMA 0
#endif

__device__ inline unsigned shared_address(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

#if GPU_HAS_WGMMA
/* ---- copies that a barrier counts the bytes of ---- */

__device__ inline void arrival_init(uint64_t *arrival, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(arrival)),
                 "r"(count));
}
__device__ inline void arrive(uint64_t *arrival) {
    asm volatile(
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(arrival))
        : "memory");
}
__device__ inline void arrivals_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrival_expect(uint64_t *arrival, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(arrival)),
        "r"(bytes)
        : "memory");
}
__device__ inline void copy_bulk(void *to, const void *from, unsigned bytes, uint64_t *arrival) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(arrival))
                 : "memory");
}
/* The same for what nobody will want again. */
__device__ inline void copy_bulk_once(void *to, const void *from, unsigned bytes,
                                      uint64_t *arrival) {
    uint64_t once;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(once));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(arrival)), "l"(once)
                 : "memory");
}
__device__ inline void arrival_wait(uint64_t *arrival, unsigned turn) {
    asm volatile("{\n"
                 ".reg .pred there;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
                 "@there bra done;\n"
                 "bra again;\n"
                 "done:\n"
                 "}" ::"r"(shared_address(arrival)),
                 "r"(turn & 1)
                 : "memory");
}

/* Tiles that tensor cores read begin at multiples of 1024 bytes of shared memory. */
__device__ inline char *tile_aligned(void *shared) {
    return (char *)shared + (1024 - shared_address(shared) % 1024) % 1024;
}

/* Four warps have so many registers from now on; fewer than before, or more, which others gave. */
template <int N> __device__ inline void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ inline void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- products ---- */

/* Of a tile with rows of 128 bytes, groups of eight 1024 bytes apart; `panels` bytes from panel
 * to panel, which counts where the inner axis is that of the rows. Its lower half has the place, in
 * units of 16 bytes; the upper is always the same. */
__device__ inline uint32_t tile_lower(const void *at, unsigned panels) {
    return shared_address(at) >> 4 | panels >> 4 << 16;
}
__device__ inline uint64_t tile_descriptor(uint32_t lower) {
    return (uint64_t)lower | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

#define EIGHT(x, i) x(i), x(i + 1), x(i + 2), x(i + 3), x(i + 4), x(i + 5), x(i + 6), x(i + 7)
#define ALL_64(x)                                                                     \
    EIGHT(x, 0), EIGHT(x, 8), EIGHT(x, 16), EIGHT(x, 24), EIGHT(x, 32), EIGHT(x, 40), \
        EIGHT(x, 48), EIGHT(x, 56)
#define CHANGED(i) "+f"(sum[i])
#define SUMS_64                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

/* Nothing that uses N sums moves past this. */
template <int N> __device__ inline void hold(float *sum) {
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

template <int N = 64> __device__ inline void products_begin(float *sum) {
    hold<N>(sum);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N = 64> __device__ inline void products_wait(float *sum) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    hold<N>(sum);
}

/* Four matrices of 8 x 8 fp16 numbers, spread over a warp as products are, transposed to shared
 * memory: lane i says where row i % 8 of what matrix i / 8 becomes goes. */
__device__ inline void store_transposed(void *row, const uint32_t a[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(row)),
                 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
                 : "memory");
}
/* Tensor cores will see what this thread wrote to shared memory. */
__device__ inline void shared_for_tensors() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The same for all lanes of a warp, and the compiler knows. */
__device__ inline uint32_t uniform(uint32_t x) { return __shfl_sync(0xffffffffu, x, 0); }

/* sum = a b^T, or += if not `fresh`, for 64 rows of a tile a, and 16 rows b that are a tile too, at
 * tile_lower: sum[4j + 2h + c] is row 16 warp + 8h + g of a, row 8j + 2t + c of b. */
__device__ inline void multiply_few(float sum[8], uint32_t left, uint32_t right, bool fresh) {
#pragma unroll
    for (unsigned j = 0; j < 8; j++)
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     "setp.ne.b32 add, %10, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, add, 1, 1, 0, 0;\n"
                     "}"
                     : EIGHT(CHANGED, 0)
                     : "l"(tile_descriptor(left + (j / 4 * (MLP_WIDTH * 128) + j % 4 * 32) / 16)),
                       "l"(tile_descriptor(right + (j / 4 * (FEW_ROWS * 128) + j % 4 * 32) / 16)),
                       "r"(fresh ? j : 1));
}

/* sum = a b^T, or += if not `fresh`, for 64 rows of a, in the registers of four warps, and a tile
 * b: sum[4j + 2h + c] is row 16 warp + 8h + g, column 8j + 2t + c; a[2j + h] has the same row and
 * columns 8j + 2t and the next. between(j) is called behind each of the 8 steps: a warp waits to
 * ask for a step until tensor cores have begun the one before, so that time is free. */
template <typename F>
__device__ inline void multiply_rows(float sum[64], const uint32_t a[32], const char *b, bool fresh,
                                     F between) {
    const uint32_t lower = tile_lower(b, 16);
#pragma unroll
    for (unsigned j = 0; j < 8; j++) {
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     "setp.ne.b32 add, %69, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS_64
                     ", {%64, %65, %66, %67}, %68, add, 1, 1, 0;\n"
                     "}"
                     : ALL_64(CHANGED)
                     : "r"(a[4 * j]), "r"(a[4 * j + 1]), "r"(a[4 * j + 2]), "r"(a[4 * j + 3]),
                       "l"(tile_descriptor(lower + (j / 4 * (MLP_WIDTH * 128) + j % 4 * 32) / 16)),
                       "r"(fresh ? j : 1));
        between((int)j);
    }
}

/* sum += a^T b for 16 rows of stash tiles a and b: `a` is where the rows of one of its panels
 * begin, 64 columns, `b` where those of its first panel do. */
__device__ inline void multiply_columns(float sum[64], const char *a, const char *b) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS_64
                 ", %64, %65, add, 1, 1, 1, 1;\n"
                 "}"
                 : ALL_64(CHANGED)
                 : "l"(tile_descriptor(tile_lower(a, STASH_TILE_BYTES / 2))),
                   "l"(tile_descriptor(tile_lower(b, STASH_TILE_BYTES / 2))));
}

/* 0xff for each of four fp16 numbers that is negative, else 0. */
__device__ inline uint32_t negative_fp16(uint32_t a, uint32_t b) {
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, 0xfdb9;" : "=r"(bytes) : "r"(a), "r"(b));
    return bytes;
}
/* *to += x times `set` if the bit is set in the word, else times `clear`. Asked for bit by bit of a
 * byte, seven bits become seven predicates in one instruction. */
__device__ inline void add_gated(float *to, float x, uint32_t word, uint32_t bit, float set,
                                 float clear) {
    asm("{\n"
        ".reg .pred is_set;\n"
        ".reg .b32 t;\n"
        "and.b32 t, %1, %2;\n"
        "setp.ne.u32 is_set, t, 0;\n"
        "@is_set fma.rn.f32 %0, %3, %4, %0;\n"
        "@!is_set fma.rn.f32 %0, %3, %5, %0;\n"
        "}"
        : "+f"(*to)
        : "r"(word), "r"(bit), "f"(x), "f"(set), "f"(clear));
}
/* Whether it holds for a thread of the four warps that multiply together; all of them ask. */
__device__ inline bool any_of_four(bool holds) {
    int any;
    asm volatile("{\n"
                 ".reg .pred mine, all;\n"
                 "setp.ne.s32 mine, %1, 0;\n"
                 "barrier.cta.red.or.pred all, %2, 128, mine;\n"
                 "selp.s32 %0, 1, 0, all;\n"
                 "}"
                 : "=r"(any)
                 : "r"((int)holds), "r"(threadIdx.x / 128 + 1)
                 : "memory");
    return any;
}

/* The first eight warps of a block wait for one another. */
__device__ inline void barrier_of_eight() { asm volatile("barrier.cta.sync 1, 256;" ::: "memory"); }

/* 16 bytes to the device's memory, if `stores`, that are read once and then not wanted any more:
 * code and weights are to stay in the cache instead. */
__device__ inline void store_far(bool stores, void *to, uint32_t a, uint32_t b, uint32_t c,
                                 uint32_t d) {
    asm volatile("{\n"
                 ".reg .pred stores;\n"
                 "setp.ne.s32 stores, %5, 0;\n"
                 "@stores st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};\n"
                 "}" ::"l"(__cvta_generic_to_global(to)),
                 "r"(a), "r"(b), "r"(c), "r"(d), "r"((int)stores)
                 : "memory");
}
#endif
#endif

#endif
