/* cuDNN, loaded at run time (libcudnn.so.9), and convolutions as its execution plans.
 *
 * To cuDNN pictures are [n, channels, height, width] and kernels [out, in, rows, columns], whatever
 * way they lie: channels innermost here, kernels [out][rows][columns][in], which is what its fast
 * engines read. Our kernels lie as [rows, columns, in, out]: its are those turned over, as a matrix
 * of rows x columns x in by out.
 *
 * Same bytes every time: engines that add in any order are left out, and the heuristics say which
 * of the others is to be taken. A stopwatch chooses only among plans that make the very same bytes.
 */
#ifndef N2_CUDA_CUDNN_PLAN_H
#define N2_CUDA_CUDNN_PLAN_H

#if !defined(N2_EMULATE) && __has_include(<cudnn.h>)
#define N2_HAS_CUDNN 1
#include <cudnn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define CUDNN_FUNCTIONS(F)           \
    F(cudnnCreate)                   \
    F(cudnnDestroy)                  \
    F(cudnnSetStream)                \
    F(cudnnGetVersion)               \
    F(cudnnGetErrorString)           \
    F(cudnnBackendCreateDescriptor)  \
    F(cudnnBackendDestroyDescriptor) \
    F(cudnnBackendSetAttribute)      \
    F(cudnnBackendGetAttribute)      \
    F(cudnnBackendFinalize)          \
    F(cudnnBackendExecute)

/* What a plan is chosen by. No gaps: compared byte by byte. */
typedef struct convolution {
    int32_t op; /* n2_op_id */
    int32_t n, h, w, c_in, rows, columns, oh, ow, c_out;
    int32_t stride_y, stride_x, top, bottom, left, right;
    int32_t type_x, type_k, type_y; /* n2_dtype */
    int32_t alignment;              /* of all three, in bytes */
    int32_t strict;                 /* products in float32, else factors rounded to tf32 */
} convolution;

/* plan: NULL, the library has none. */
typedef struct convolution_plan {
    convolution key;
    cudnnBackendDescriptor_t plan, config;
    int64_t workspace; /* bytes */
} convolution_plan;

typedef struct cudnn {
#define CUDNN_FIELD(name) decltype(&::name) name;
    CUDNN_FUNCTIONS(CUDNN_FIELD)
    cudnnHandle_t handle;
    int device;
    pthread_mutex_t lock; /* of the handle, and of what follows */
    convolution_plan *list;
    size_t n, room;
} cudnn;

/* For a GPU; NULL, and a sentence in `about`, where there is none. */
cudnn *n2_cudnn_open(int device, char *about, size_t bytes);
void n2_cudnn_close(cudnn *d);

/* The plan for a convolution, which stays the library's; chosen once, and kept. False: no memory.
 */
bool n2_cudnn_plan(cudnn *d, const convolution *c, convolution_plan *out);

/* Asks for it in a stream. */
cudnnStatus_t n2_cudnn_execute(cudnn *d, const convolution_plan *p, const void *x, const void *k,
                               const void *y, void *workspace, cudaStream_t stream);

/* ---- behind it ---- */

/* The same in the handle's stream; the caller has the lock. */
cudnnStatus_t n2_cudnn_ask(const cudnn *d, const convolution_plan *p, const void *x, const void *k,
                           const void *y, void *workspace);

/* cudnn_choice.cu: a plan for a graph of one operation, which out->key describes. Leaves out->plan
 * as it is, NULL, if there is none. */
void n2_cudnn_choose(cudnn *d, cudnnBackendDescriptor_t graph, convolution_plan *out);

/* cudnn_trial.cu: which of n plans for the same convolution is the fastest, of those that make the
 * same bytes as the first. Without memory to try them, the first. */
int n2_cudnn_fastest(cudnn *d, const convolution_plan *plans, int n);

#endif
#endif
