/* What the device code needs of CUDA beyond the language. tests/cuda/emulate.h has the same
 * for a processor, so that everything but the instructions themselves can be tested there. */
#ifndef N2_CUDA_GPU_H
#define N2_CUDA_GPU_H

#ifndef N2_EMULATE /* else it was included before anything else */
#include <cuda_runtime.h>
#include <stdint.h>

/* Jobs are functions of their own: registers are given out by function. */
#define GPU_JOB [[maybe_unused]] __device__ __noinline__ static

/* The memory that a launch gives each of its blocks. */
#define GPU_SHARED(name) extern __shared__ float4 name[]

/* early: the kernel before it in the queue may still be at work when it begins (grid_wait). */
#define GPU_LAUNCH(kernel, blocks, threads, shared, queue, early, ...) \
    gpu_launch(blocks, 1, threads, shared, queue, early, kernel, __VA_ARGS__)
/* The same of clusters of so many blocks each, 8 at most. */
#define GPU_LAUNCH_CLUSTERS(kernel, blocks, cluster, threads, shared, queue, early, ...) \
    gpu_launch(blocks, cluster, threads, shared, queue, early, kernel, __VA_ARGS__)

template <typename... P, typename... A>
inline void gpu_launch(unsigned blocks, unsigned cluster, unsigned threads, size_t shared,
                       cudaStream_t queue, bool early, void (*kernel)(P...), A... arguments) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attributes[2] = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.stream = queue;
    config.attrs = attributes;
    if (early) {
        cudaLaunchAttribute *one = &attributes[config.numAttrs++];
        one->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        one->val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        cudaLaunchAttribute *one = &attributes[config.numAttrs++];
        one->id = cudaLaunchAttributeClusterDimension;
        one->val.clusterDim.x = cluster;
        one->val.clusterDim.y = one->val.clusterDim.z = 1;
    }
    cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* Code for a GPU that can launch early: every kernel of it waits before it touches what another
 * wrote. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GPU_WAITS 1
#else
#define GPU_WAITS 0
#endif

/* What comes before in the queue is done and seen. */
__device__ inline void grid_wait() {
#if GPU_WAITS
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* What comes next may begin, as soon as all blocks have said so. They do when they have waited
 * themselves: what began long before it can go on has to fetch its code again. */
__device__ inline void grid_next() {
#if GPU_WAITS
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* ---- clusters: blocks next to one another that see each other's shared memory ---- */

/* For all threads of all blocks of a cluster, warps as one. What they wrote before is seen behind
 * it. */
__device__ inline void cluster_barrier() {
#if GPU_WAITS
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}
/* A number of block `rank` of the cluster, at the place where `own` is of this one. */
__device__ inline float cluster_load(const float *own, unsigned rank) {
#if GPU_WAITS
    float x;
    unsigned at = (unsigned)__cvta_generic_to_shared(own);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(at), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(at));
    return x;
#else
    return *own;
#endif
}

/* ---- copies to shared memory, in the background (bytes beyond `valid` become zero) ---- */

__device__ inline void copy_16(float *to, const float *from, int valid) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid));
}
__device__ inline void copy_4(float *to, const float *from, int valid) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(valid));
}
__device__ inline void copies_commit() { asm volatile("cp.async.commit_group;"); }
template <int LEFT> __device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* ---- tensor cores ---- */

/* Rounds to the 10 bits of tf32, to nearest. */
__device__ inline uint32_t to_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* c += a b for a [16 x 8] and b [8 x 8], spread over a warp. With g = lane / 4, t = lane % 4:
 *   a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
 *   b: (t, g), (t + 4, g)
 *   c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) */
__device__ inline void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The same for a [16 x 16] and b [16 x 8] in 16 bits, two numbers a word, the first in its lower
 * half:
 *   a: (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), each with the next column
 *   b: (2t, g), (2t + 8, g), each with the next row */
__device__ inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four matrices of 8 x 8 numbers of 16 bits from shared memory: row r of matrix k begins where lane
 * 8 k + r says, at a multiple of 16 bytes. A lane gets (g, 2t) and (g, 2t + 1) of each; turned:
 * (2t, g) and (2t + 1, g). */
__device__ inline void load_matrices(uint32_t x[4], const void *row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}
__device__ inline void load_matrices_turned(uint32_t x[4], const void *row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

/* ---- fp16 ---- */

/* To nearest; x in the low 16 bits. */
__device__ inline uint32_t pack_fp16(float x, float y) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
__device__ inline float2 unpack_fp16(uint32_t both) {
    float2 x;
    asm("{\n"
        ".reg .f16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.f32.f16 %0, low;\n"
        "cvt.f32.f16 %1, high;\n"
        "}"
        : "=f"(x.x), "=f"(x.y)
        : "r"(both));
    return x;
}
/* The same in bfloat16. */
__device__ inline uint32_t pack_bf16(float x, float y) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
/* The larger magnitudes of two pairs. */
__device__ inline uint32_t larger_fp16(uint32_t a, uint32_t b) {
    uint32_t top;
    asm("{\n"
        ".reg .b32 x, y;\n"
        "abs.f16x2 x, %1;\n"
        "abs.f16x2 y, %2;\n"
        "max.f16x2 %0, x, y;\n"
        "}"
        : "=r"(top)
        : "r"(a), "r"(b));
    return top;
}
/* LeakyReLU of both, for a slope up to 1 in both 16-bit parts. */
__device__ inline uint32_t leaky_fp16(uint32_t x, uint32_t slope) {
    uint32_t y;
    asm("{\n"
        ".reg .b32 slanted;\n"
        "mul.rn.f16x2 slanted, %1, %2;\n"
        "max.f16x2 %0, %1, slanted;\n"
        "}"
        : "=r"(y)
        : "r"(x), "r"(slope));
    return y;
}
/* A few instructions each, right to 2 units of the last digit. */
__device__ inline float quick_root(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float quick_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float quick_quotient(float x, float y) { return __fdividef(x, y); }
__device__ inline float quick_sigmoid(float x) { /* and |x| units more, for x < 0 */
    float e, y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-1.44269504f * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0f + e));
    return y;
}
__device__ inline uint32_t warp_most(uint32_t x) { return __reduce_max_sync(0xffffffffu, x); }
#endif

#endif
