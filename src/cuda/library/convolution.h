/* cuDNN, loaded at run time (libcudnn.so.9): what a lane of convolutions is made of. */
#ifndef N2_CUDA_CONVOLUTION_H
#define N2_CUDA_CONVOLUTION_H

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/kernel.h"

/* Pictures [n x channels x height x width] and filters [filters x channels x rows x columns], both
 * on end in this order; zeros around the pictures. */
typedef struct n2_convolution {
    int n, channels, height, width;
    int filters, rows, columns;
    int padding, stride;
    bool strict; /* products in float32, else factors rounded to tf32 */
} n2_convolution;

/* Pixels of the output along an axis. */
static inline int n2_convolved(int length, int window, const n2_convolution *c) {
    return (length + 2 * c->padding - window) / c->stride + 1;
}

typedef struct n2_cudnn n2_cudnn;

/* Loads it for a GPU. *out is NULL, with N2CE_OK, where there is none; about: its name and version,
 * or a sentence that says why. N2CE_EDEVICE: it is there, and cannot begin. */
n2ce_status n2_cudnn_open(n2ce_ctx *ctx, const n2_backend *backend, n2_cudnn **out, char *about,
                          size_t bytes);
void n2_cudnn_close(n2_cudnn *d); /* NULL is fine */

/* y = x convolved with w, all in the GPU's memory; asked for in the GPU's stream. The algorithm is
 * the first that cuDNN's heuristics name, among those with the same bytes every time. */
n2ce_status n2_cudnn_forward(n2ce_ctx *ctx, n2_cudnn *d, const n2_convolution *c, const float *x,
                             const float *w, float *y);

#ifdef __cplusplus
}
#endif

#endif
