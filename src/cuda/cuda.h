/* The CUDA backend: float32 values in a GPU's memory, one kernel source for every op.
 * docs/cuda.md tells how a plan becomes a CUDA graph. */
#ifndef N2_CUDA_H
#define N2_CUDA_H

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/kernel.h"

typedef struct n2_cuda_options {
    int device;      /* number of the GPU, from 0 */
    bool strict;     /* matrix products to float32's precision; else factors rounded to tf32 */
    n2_dtype narrow; /* how values inside networks of pictures lie in memory: n2_backend.narrow */
} n2_cuda_options;

/* The backend of a GPU, with a stream and memory of the context's own. It is opened when the
 * context asks for it first, whichever thread that is, and closed with the context: stores and
 * plans on it go before. Several contexts may use one GPU. Fails with N2CE_EDEVICE: a build without
 * CUDA, no driver or one that is too old, no GPU of that number, one that is too old. */
n2ce_status n2_cuda_backend(n2ce_ctx *ctx, const n2_cuda_options *options, const n2_backend **out);

/* Lets the driver begin and load the kernels, which takes a while the first time in a program: from
 * a thread beside other work. What goes wrong is told by n2_cuda_backend. */
void n2_cuda_warm_up(const n2_cuda_options *options);

/* "NVIDIA H200, 132 multiprocessors, 139 GiB"; of a backend that was opened. */
const char *n2_cuda_name(const n2_backend *backend);

/* Which matrix products and convolutions a library does, cuBLASLt or cuDNN, instead of our kernels
 * (library/library.h): none, those that it is faster at, or all but products of a fused MLP. */
typedef enum n2_library_use { N2_LIBRARY_OFF, N2_LIBRARY_AUTO, N2_LIBRARY_ALWAYS } n2_library_use;

/* For plans whose first run is still to come; returns what held before. It begins as the
 * environment variable N2CE_CUDA_LIBRARY says: off, auto or always; auto without it. */
n2_library_use n2_cuda_use_library(const n2_backend *backend, n2_library_use use);

/* Whether there is one for an op (n2_op_id); loads it. about: "cuBLASLt 13.1.0", or a sentence that
 * says why not. */
bool n2_cuda_has_library(const n2_backend *backend, int op, const char **about);

/* Products and convolutions that were given to them so far, counted once for each plan. */
size_t n2_cuda_library_calls(const n2_backend *backend);

/* Bytes of the GPU's memory that the backend holds now, and the most it has held. */
void n2_cuda_memory(const n2_backend *backend, size_t *now, size_t *most);

#ifdef __cplusplus
}
#endif

#endif
