#include "convolution.h"

#include "cuda/runtime/gpu_device.h"
#include "dynamic.h"

#include <stdio.h>
#include <stdlib.h>

#if !defined(N2_EMULATE) && __has_include(<cudnn.h>)
#include <cudnn.h>

#define FUNCTIONS(F)                          \
    F(cudnnCreate)                            \
    F(cudnnDestroy)                           \
    F(cudnnSetStream)                         \
    F(cudnnGetVersion)                        \
    F(cudnnGetErrorString)                    \
    F(cudnnCreateTensorDescriptor)            \
    F(cudnnSetTensor4dDescriptor)             \
    F(cudnnDestroyTensorDescriptor)           \
    F(cudnnCreateFilterDescriptor)            \
    F(cudnnSetFilter4dDescriptor)             \
    F(cudnnDestroyFilterDescriptor)           \
    F(cudnnCreateConvolutionDescriptor)       \
    F(cudnnSetConvolution2dDescriptor)        \
    F(cudnnSetConvolutionMathType)            \
    F(cudnnDestroyConvolutionDescriptor)      \
    F(cudnnGetConvolutionForwardAlgorithm_v7) \
    F(cudnnConvolutionForward)

struct n2_cudnn {
#define FUNCTION_FIELD(name) decltype(&::name) name;
    FUNCTIONS(FUNCTION_FIELD)
    cudnnHandle_t handle;
    gpu_device *gpu;
};

/* Returns the name of a function that is missing; NULL: none is. */
static const char *find_functions(void *file, n2_cudnn *d) {
#define FIND_FUNCTION(name)                                        \
    d->name = (decltype(d->name))n2_library_function(file, #name); \
    if (!d->name) return #name;
    FUNCTIONS(FIND_FUNCTION)
    return NULL;
}

static bool load(n2_cudnn *d, char *about, size_t bytes) {
    static const char *const names[] = {"libcudnn.so.9", NULL};
    void *file = n2_library_load(names);
    if (!file) {
        snprintf(about, bytes, "There is no %s on this machine.", names[0]);
        return false;
    }
    const char *missing = find_functions(file, d);
    if (missing) {
        snprintf(about, bytes, "The cuDNN of this machine has no function %s.", missing);
        return false;
    }
    const unsigned version = (unsigned)d->cudnnGetVersion();
    snprintf(about, bytes, "cuDNN %u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return true;
}

static n2ce_status check(n2ce_ctx *ctx, const n2_cudnn *d, cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDEVICE, "cuDNN could not %s: %s (status %d).", what,
                   d->cudnnGetErrorString(status), (int)status);
}

static n2ce_status begin(n2ce_ctx *ctx, n2_cudnn *d) {
    GPU_TRY(ctx, cudaSetDevice(d->gpu->index), "choose the GPU");
    N2_TRY(check(ctx, d, d->cudnnCreate(&d->handle), "begin"));
    return check(ctx, d, d->cudnnSetStream(d->handle, d->gpu->stream), "use the GPU's stream");
}

n2ce_status n2_cudnn_open(n2ce_ctx *ctx, const n2_backend *backend, n2_cudnn **out, char *about,
                          size_t bytes) {
    *out = NULL;
    n2_cudnn *d = (n2_cudnn *)calloc(1, sizeof *d);
    if (!d) return N2CE_ENOMEM;
    d->gpu = (gpu_device *)backend->device;
    const bool there = load(d, about, bytes);
    const n2ce_status status = there ? begin(ctx, d) : N2CE_OK;
    if (there && status == N2CE_OK)
        *out = d;
    else
        n2_cudnn_close(d);
    return status;
}

void n2_cudnn_close(n2_cudnn *d) {
    if (d && d->handle) d->cudnnDestroy(d->handle);
    free(d);
}

/* ---- a convolution ------------------------------------------------------- */

typedef struct description {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    cudnnConvolutionFwdAlgoPerf_t algorithm;
} description;

static n2ce_status describe(n2ce_ctx *ctx, const n2_cudnn *d, const n2_convolution *c,
                            description *e) {
    const int height = n2_convolved(c->height, c->rows, c);
    const int width = n2_convolved(c->width, c->columns, c);
    const cudnnStatus_t all[] = {
        d->cudnnCreateTensorDescriptor(&e->x), d->cudnnCreateTensorDescriptor(&e->y),
        d->cudnnCreateFilterDescriptor(&e->w), d->cudnnCreateConvolutionDescriptor(&e->how),
        d->cudnnSetTensor4dDescriptor(e->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, c->n, c->channels,
                                      c->height, c->width),
        d->cudnnSetTensor4dDescriptor(e->y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, c->n, c->filters,
                                      height, width),
        d->cudnnSetFilter4dDescriptor(e->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, c->filters,
                                      c->channels, c->rows, c->columns),
        /* what networks call a convolution is a correlation */
        d->cudnnSetConvolution2dDescriptor(e->how, c->padding, c->padding, c->stride, c->stride, 1,
                                           1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        d->cudnnSetConvolutionMathType(e->how, c->strict ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH)};
    for (const cudnnStatus_t status : all) N2_TRY(check(ctx, d, status, "describe a convolution"));
    return N2CE_OK;
}

static void forget(const n2_cudnn *d, description *e) {
    if (e->x) d->cudnnDestroyTensorDescriptor(e->x);
    if (e->y) d->cudnnDestroyTensorDescriptor(e->y);
    if (e->w) d->cudnnDestroyFilterDescriptor(e->w);
    if (e->how) d->cudnnDestroyConvolutionDescriptor(e->how);
}

static n2ce_status choose(n2ce_ctx *ctx, const n2_cudnn *d, bool strict, description *e) {
    enum { MOST = CUDNN_CONVOLUTION_FWD_ALGO_COUNT };
    cudnnConvolutionFwdAlgoPerf_t results[MOST];
    int n = 0;
    N2_TRY(check(ctx, d,
                 d->cudnnGetConvolutionForwardAlgorithm_v7(d->handle, e->x, e->w, e->how, e->y,
                                                           MOST, &n, results),
                 "choose an algorithm"));
    for (int i = 0; i < n; i++) {
        const bool exact =
            results[i].mathType == CUDNN_FMA_MATH || results[i].mathType == CUDNN_DEFAULT_MATH;
        if (results[i].status != CUDNN_STATUS_SUCCESS || (strict && !exact)) continue;
        if (results[i].determinism != CUDNN_DETERMINISTIC) continue;
        e->algorithm = results[i];
        return N2CE_OK;
    }
    return n2_fail(ctx, N2CE_EDEVICE, "cuDNN has no algorithm for this convolution.");
}

static n2ce_status convolve(n2ce_ctx *ctx, n2_cudnn *d, const n2_convolution *c, description *e,
                            const float *x, const float *w, float *y) {
    n2_device *gpu = &d->gpu->api;
    const float one = 1, zero = 0;
    void *workspace = NULL;
    N2_TRY(describe(ctx, d, c, e));
    N2_TRY(choose(ctx, d, c->strict, e));
    const size_t bytes = e->algorithm.memory;
    if (bytes > 0) N2_TRY(gpu->alloc(gpu, ctx, bytes, &workspace));
    d->cudnnSetConvolutionMathType(e->how, e->algorithm.mathType);
    const cudnnStatus_t status =
        d->cudnnConvolutionForward(d->handle, &one, e->x, x, e->w, w, e->how, e->algorithm.algo,
                                   workspace, bytes, &zero, e->y, y);
    gpu->free(gpu, workspace); /* for whoever comes next in the stream */
    return check(ctx, d, status, "convolve");
}

n2ce_status n2_cudnn_forward(n2ce_ctx *ctx, n2_cudnn *d, const n2_convolution *c, const float *x,
                             const float *w, float *y) {
    description e = {};
    const n2ce_status status = convolve(ctx, d, c, &e, x, w, y);
    forget(d, &e);
    return status;
}

#else /* no header, or an emulated GPU */

struct n2_cudnn {
    int none;
};

n2ce_status n2_cudnn_open(n2ce_ctx *, const n2_backend *, n2_cudnn **out, char *about,
                          size_t bytes) {
    *out = NULL;
    snprintf(about, bytes, "This n2ce was built without cudnn.h.");
    return N2CE_OK;
}
void n2_cudnn_close(n2_cudnn *) {}
n2ce_status n2_cudnn_forward(n2ce_ctx *ctx, n2_cudnn *, const n2_convolution *, const float *,
                             const float *, float *) {
    return n2_fail(ctx, N2CE_EDEVICE, "This n2ce was built without cudnn.h.");
}
#endif
