/* What the CUDA backend says in a build without it. */
#include "cuda.h"

n2ce_status n2_cuda_backend(n2ce_ctx *ctx, const n2_cuda_options *options, const n2_backend **out) {
    (void)options;
    *out = NULL;
    return n2_fail(ctx, N2CE_EDEVICE,
                   "This n2ce was built without CUDA. Use --device cpu, or build it where nvcc "
                   "is found (cmake -DN2CE_CUDA=on).");
}

void n2_cuda_warm_up(const n2_cuda_options *options) { (void)options; }

const char *n2_cuda_name(const n2_backend *backend) {
    (void)backend;
    return "none";
}

void n2_cuda_memory(const n2_backend *backend, size_t *now, size_t *most) {
    (void)backend;
    *now = *most = 0;
}

n2_library_use n2_cuda_use_library(const n2_backend *backend, n2_library_use use) {
    (void)backend;
    (void)use;
    return N2_LIBRARY_OFF;
}

bool n2_cuda_has_library(const n2_backend *backend, int op, const char **about) {
    (void)backend;
    (void)op;
    *about = "This n2ce was built without CUDA.";
    return false;
}

size_t n2_cuda_library_calls(const n2_backend *backend) {
    (void)backend;
    return 0;
}
