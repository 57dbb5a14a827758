/* The backend under test beside ref: cpu, or what the environment variable N2CE_TEST_DEVICE
 * names: "cuda" (products to float32's precision), "cuda-tf32", "cuda-bf16", "cuda-half". Without a
 * GPU the program says so and exits with 77, which ctest takes for skipped. */
#ifndef TEST_FAST_BACKEND_H
#define TEST_FAST_BACKEND_H

#include "cpu/cpu.h"
#include "cuda/cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whose GPUs tests use: open until the program ends. */
static inline n2ce_ctx **gpu_ctx(void) {
    static n2ce_ctx *ctx;
    return &ctx;
}
static inline void free_gpu_ctx(void) { n2ce_ctx_free(*gpu_ctx()); }

static inline n2ce_status open_cuda_as(int device, n2_precision precision, const n2_backend **out) {
    const n2_cuda_options options = {
        .device = device, .strict = precision.strict, .narrow = precision.narrow};
    n2ce_ctx **ctx = gpu_ctx();
    const bool first = !*ctx;
    if (first && n2ce_ctx_new(ctx, NULL) != N2CE_OK) exit(1);
    const n2ce_status status = n2_cuda_backend(*ctx, &options, out);
    if (first) atexit(free_gpu_ctx); /* before the driver's, which has begun by now */
    return status;
}

static inline n2ce_status open_cuda(int device, bool strict, const n2_backend **out) {
    return open_cuda_as(device, (n2_precision){.strict = strict}, out);
}

static inline const n2_backend *open_cuda_as_or_skip(n2_precision precision) {
    const n2_backend *backend = NULL;
    if (open_cuda_as(0, precision, &backend) == N2CE_OK) return backend;
    printf("no GPU: skipped. %s\n", n2ce_errmsg(*gpu_ctx()));
    exit(77);
}

static inline const n2_backend *open_cuda_or_skip(bool strict) {
    return open_cuda_as_or_skip((n2_precision){.strict = strict});
}

static inline const n2_backend *fast_backend(void) {
    static const n2_backend *cuda;
    const char *name = getenv("N2CE_TEST_DEVICE");
    if (!name) return n2_cpu_backend();
    n2_precision precision = {.strict = true};
    if (strncmp(name, "cuda-", 5) == 0) n2_precision_of_word(name + 5, &precision);
    if (!cuda) cuda = open_cuda_as_or_skip(precision);
    return cuda;
}

/* On a GPU; there threads are not what tests are about. */
static inline bool is_cuda(void) { return getenv("N2CE_TEST_DEVICE") != NULL; }

/* An emulated GPU takes seconds for what a real one does in a millisecond. */
static inline bool is_emulated(void) {
    return is_cuda() && strncmp(n2_cuda_name(fast_backend()), "emulated", 8) == 0;
}

/* tf32 has 10 bits: a factor of a product is rounded by up to 2^-11, 5e-4 relative; bf16 has 7, and
 * rounds what it stores besides. Errors of many products add up, and a number near zero may come
 * out on the other side of a LeakyReLU: so the test says what it allows with tf32, which is doubled
 * for bf16. */
static inline double fast_tolerance(double usual, double with_tf32) {
    const char *name = getenv("N2CE_TEST_DEVICE");
    if (!name || strncmp(name, "cuda-", 5) != 0) return usual;
    return fmax(usual, strcmp(name, "cuda-bf16") == 0 ? 2 * with_tf32 : with_tf32);
}

#endif
