/* CUDA on a processor, as far as src/cuda uses it: so that jobs, launches and the recording of
 * plans can be tested where there is no GPU. Slow, and nothing like a GPU in its timing; what it
 * cannot find are races and mistakes in inline assembly.
 *
 * The threads of a block are fibers that run until they come to a barrier, block after block. */
#ifndef TEST_CUDA_EMULATE_H
#define TEST_CUDA_EMULATE_H
#define N2_EMULATE

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__
#define GPU_JOB [[maybe_unused]] static
#define __launch_bounds__(...)

struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct emulated_index {
    unsigned x, y, z;
};
extern emulated_index threadIdx, blockIdx, blockDim;
extern float4 *emulated_shared;
#define GPU_SHARED(name) float4 *name = emulated_shared

/* ---- what threads of a cluster do together; such kernels have no other shared memory ---- */

void cluster_barrier();
float cluster_load(const float *own, unsigned rank);

/* ---- what threads of a block do together ---- */

void __syncthreads();
void emulated_warp_barrier();
struct emulated_lane { /* what a lane shows the others */
    double number;
    uint32_t a[4], b[2];
};
emulated_lane *emulated_warp(); /* the lanes' slots; a new set at every call */

template <typename T> T __shfl_sync(unsigned, T x, int from) {
    emulated_lane *lanes = emulated_warp();
    lanes[threadIdx.x % 32].number = (double)x;
    emulated_warp_barrier();
    return (T)lanes[(unsigned)from % 32].number;
}
template <typename T> T __shfl_xor_sync(unsigned all, T x, int mask) {
    return __shfl_sync(all, x, (int)(threadIdx.x % 32 ^ (unsigned)mask));
}

inline unsigned __ballot_sync(unsigned, bool x) {
    emulated_lane *lanes = emulated_warp();
    lanes[threadIdx.x % 32].number = x;
    emulated_warp_barrier();
    unsigned all = 0;
    for (unsigned k = 0; k < 32; k++) all |= (unsigned)(lanes[k].number != 0) << k;
    return all;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }

inline int atomicAdd(int *at, int x) {
    const int old = *at;
    *at += x;
    return old;
}
inline unsigned atomicMax(unsigned *at, unsigned x) {
    const unsigned old = *at;
    *at = x > old ? x : old;
    return old;
}
inline unsigned atomicAdd(unsigned *at, unsigned x) {
    const unsigned old = *at;
    *at += x;
    return old;
}

/* ---- arithmetic ---- */

inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline uint32_t __float_as_uint(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
inline float __uint_as_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* ---- gpu.h ---- */

#define GPU_WAITS 1
inline void grid_wait() {}
inline void grid_next() {}

inline void copy_bytes(float *to, const float *from, int bytes, int valid) {
    memset(to, 0, (size_t)bytes);
    if (valid) memcpy(to, from, (size_t)valid);
}
inline void copy_16(float *to, const float *from, int valid) { copy_bytes(to, from, 16, valid); }
inline void copy_4(float *to, const float *from, int valid) { copy_bytes(to, from, 4, valid); }
inline void copies_commit() {}
template <int LEFT> void copies_wait() {}

/* To nearest, ties away from zero; the last 13 bits become zero. */
inline uint32_t to_tf32(float x) {
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
    return (bits + 0x1000u) & ~0x1fffu;
}

void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]);
void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]);
void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2]);
void load_matrices(uint32_t x[4], const void *row);
void load_matrices_turned(uint32_t x[4], const void *row);

uint32_t pack_fp16(float x, float y);
uint32_t pack_bf16(float x, float y);
float2 unpack_fp16(uint32_t both);
uint32_t larger_fp16(uint32_t a, uint32_t b);
uint32_t leaky_fp16(uint32_t x, uint32_t slope);
uint32_t warp_most(uint32_t x);
inline float quick_root(float x) { return sqrtf(x); }
inline float quick_exp2(float x) { return exp2f(x); }
inline float quick_quotient(float x, float y) { return x / y; }
inline float quick_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* ---- gpu_tensor.h ---- */

#define GPU_HAS_WGMMA 1
inline void __syncwarp() { emulated_warp_barrier(); }
void arrival_init(uint64_t *arrival, unsigned count);
void arrive(uint64_t *arrival);
void arrival_expect(uint64_t *arrival, unsigned bytes);
void copy_bulk(void *to, const void *from, unsigned bytes, uint64_t *arrival);
#define copy_bulk_once copy_bulk
void arrival_wait(uint64_t *arrival, unsigned turn);
inline void arrivals_ready() {}
inline char *tile_aligned(void *shared) { return (char *)shared; }
template <int N = 64> void products_begin(float *) {}
inline void products_end() {}
template <int N = 64> void products_wait(float *) {}
void multiply_rows(float sum[64], const uint32_t a[32], const char *b, bool fresh);
template <typename F>
void multiply_rows(float sum[64], const uint32_t a[32], const char *b, bool fresh, F between) {
    multiply_rows(sum, a, b, fresh);
    for (int j = 0; j < 8; j++) between(j);
}
void store_transposed(void *row, const uint32_t a[4]);
inline void shared_for_tensors() {}
inline uint64_t tile_lower(const void *at, unsigned) { return (uint64_t)at / 16; }
inline uint64_t uniform(uint64_t x) { return x; }
void multiply_few(float sum[8], uint64_t left, uint64_t right, bool fresh);
void multiply_columns(float sum[64], const char *a, const char *b);
uint32_t negative_fp16(uint32_t a, uint32_t b);
void add_gated(float *to, float x, uint32_t word, uint32_t bit, float set, float clear);
bool any_of_four(bool holds);
void barrier_of_eight();
void store_far(bool stores, void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
template <int N> void fewer_registers() {}
template <int N> void more_registers() {}

/* ---- launches ---- */

typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaStreamNonBlocking = 1,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8
};
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_graph *cudaGraph_t, *cudaGraphExec_t;
struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem, sharedMemPerBlockOptin;
};

/* Bytes of shared memory that a block may have. */
size_t emulated_most_shared();

/* cluster: so many blocks at a time, which can see one another's memory. */
void emulated_launch(cudaStream_t stream, unsigned blocks, unsigned cluster, unsigned threads,
                     size_t shared, std::function<void()> kernel);
#define GPU_LAUNCH(kernel, blocks, threads, shared, queue, early, ...) \
    GPU_LAUNCH_CLUSTERS(kernel, blocks, 1, threads, shared, queue, early, __VA_ARGS__)
#define GPU_LAUNCH_CLUSTERS(kernel, blocks, cluster, threads, shared, queue, early, ...) \
    (void)(early),                                                                       \
        emulated_launch(queue, blocks, cluster, threads, shared, [=] { kernel(__VA_ARGS__); })

template <typename T> cudaError_t cudaFuncSetAttribute(T, int, int bytes) {
    return (size_t)bytes <= emulated_most_shared() ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaMemcpyFromSymbol(void *to, const int &symbol, size_t bytes) {
    memcpy(to, &symbol, bytes);
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t s);
cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*run)(void *), void *arg);
#define CUDART_CB
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
enum { cudaEventDisableTiming = 2, cudaEventDefault = 0, cudaEventRecordExternal = 1 };
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s);

#endif
