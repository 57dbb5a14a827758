/* Convolutions by cuDNN: the lane. Kernels come turned over, and so do their gradients
 * (kernels/record_conv.cu). */
#ifndef N2_EMULATE
#include "cudnn_plan.h"
#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int alignment = 16; /* what engines want at most */

static bool is_aligned_job(const job *j) {
    const uintptr_t all = (uintptr_t)j->in[0] | (uintptr_t)j->in[1] | (uintptr_t)j->out;
    return all % (uintptr_t)alignment == 0;
}

#ifdef N2_HAS_CUDNN

static void *open_lane(int device, char *about, size_t bytes) {
    return n2_cudnn_open(device, about, bytes);
}
static void close_lane(void *handle) { n2_cudnn_close((cudnn *)handle); }

static bool admits(const job *j) { return j->conv.lines > 0; }

/* Loading it takes half a second; our kernel has a thread for each number. */
static bool pays(const job *j) {
    const job_conv *v = &j->conv;
    const double kernel = (double)(v->rows * v->columns) * v->c_in * v->c_out;
    return kernel * v->lines * v->ow >= 0x1p24;
}

/* ---- a call -------------------------------------------------------------- */

typedef struct convolution_call {
    convolution_plan plan;
    const void *x, *k, *y;
} convolution_call;

/* Zeros behind the last pixel: as many as before the first, if that makes no difference, which is
 * what most engines know; else as many as are read. */
static int32_t zeros_behind(int32_t before, int32_t pixels, int32_t window, int32_t stride,
                            int32_t steps) {
    if ((pixels + 2 * before - window) / stride + 1 == steps) return before;
    const int32_t read = (steps - 1) * stride + window - pixels - before;
    return read > 0 ? read : 0;
}

static convolution key_of(const job *j) {
    const job_conv *v = &j->conv;
    convolution c;
    memset(&c, 0, sizeof c);
    c.op = j->op;
    c.n = (int32_t)(v->lines / (uint32_t)v->oh);
    c.h = v->h, c.w = v->w, c.c_in = v->c_in;
    c.rows = v->rows, c.columns = v->columns;
    c.oh = v->oh, c.ow = v->ow, c.c_out = v->c_out;
    c.stride_y = v->stride_y, c.stride_x = v->stride_x;
    c.top = v->top, c.left = v->left;
    c.bottom = zeros_behind(v->top, v->h, v->rows, v->stride_y, v->oh);
    c.right = zeros_behind(v->left, v->w, v->columns, v->stride_x, v->ow);
    c.type_x = v->type_x, c.type_k = v->type_k, c.type_y = v->type_y;
    c.alignment = is_aligned_job(j) ? alignment : 4;
    c.strict = v->strict;
    return c;
}

static void place_operands(const job *j, convolution_call *c) {
    const bool by_input = j->op == N2_OP_conv2d_input, by_weight = j->op == N2_OP_conv2d_weight;
    c->x = by_input ? j->out : j->in[0];
    c->k = by_weight ? j->out : j->in[1];
    c->y = by_input ? j->in[0] : by_weight ? j->in[1] : j->out;
}

static void release(void *, void *call) { free(call); }

static n2ce_status make(n2ce_ctx *, void *handle, const job *j, void **call, size_t *workspace) {
    const convolution key = key_of(j);
    convolution_call *c = (convolution_call *)calloc(1, sizeof *c);
    *call = NULL;
    if (!c || !n2_cudnn_plan((cudnn *)handle, &key, &c->plan)) {
        free(c);
        return N2CE_ENOMEM;
    }
    place_operands(j, c);
    *workspace = (size_t)c->plan.workspace;
    if (c->plan.plan)
        *call = c;
    else
        free(c);
    return N2CE_OK;
}

/* A kernel may be loaded the first time that it is asked for, while the stream is captured. */
static n2ce_status launch(n2ce_ctx *ctx, void *handle, const void *call, void *workspace,
                          cudaStream_t stream) {
    cudnn *d = (cudnn *)handle;
    const convolution_call *c = (const convolution_call *)call;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cudnnStatus_t status = n2_cudnn_execute(d, &c->plan, c->x, c->k, c->y, workspace, stream);
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (status == CUDNN_STATUS_SUCCESS) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDEVICE,
                   "cuDNN could not convolve: %s (status %d). N2CE_CUDA_LIBRARY=off does without "
                   "it.",
                   d->cudnnGetErrorString(status), (int)status);
}

const library_lane n2_convolution_lane = {
    3,        {N2_OP_conv2d, N2_OP_conv2d_input, N2_OP_conv2d_weight},
    JOB_CONV, open_lane,
    admits,   pays,
    make,     launch,
    release,  close_lane};

#else /* no header: the lane is there, and has no library */

static void *open_none(int, char *about, size_t bytes) {
    snprintf(about, bytes, "This n2ce was built without cudnn.h.");
    return NULL;
}
static bool admits_none(const job *) { return false; }

const library_lane n2_convolution_lane = {
    3,           {N2_OP_conv2d, N2_OP_conv2d_input, N2_OP_conv2d_weight},
    JOB_CONV,    open_none,
    admits_none, admits_none,
    NULL,        NULL,
    NULL,        NULL};
#endif
#endif
