/* The CPU backend: float, row programs, the fast kernels of this machine's instruction
 * set, and the plain ones for ops that need no speed. */
#include "cpu.h"
#include "attention_blocks.h"
#include "conv_patches.h"
#include "cpu_kernels.h"
#include "cpu_norm.h"
#include "large_product.h"

#include "base/isa.h"

#define N2_NUM      float
#define N2_PLAIN(x) plain_##x
#include "ref/plain.h"

#ifdef N2CE_X86
#define DECLARE(NAME, ...) \
    n2_kernel n2_cpu_##NAME##_portable, n2_cpu_##NAME##_avx2, n2_cpu_##NAME##_avx512;
#else
#define DECLARE(NAME, ...) n2_kernel n2_cpu_##NAME##_portable;
#endif
N2_FAST_LIST(DECLARE)

#define PLAIN(NAME)         [N2_OP_##NAME] = plain_##NAME,
#define PORTABLE(NAME, ...) [N2_OP_##NAME] = n2_cpu_##NAME##_portable,
#define AVX2(NAME, ...)     [N2_OP_##NAME] = n2_cpu_##NAME##_avx2,
#define AVX512(NAME, ...)   [N2_OP_##NAME] = n2_cpu_##NAME##_avx512,
#define PLAIN_KERNELS       N2_UNARY_LIST(PLAIN) N2_BINARY_LIST(PLAIN) N2_KERNEL_LIST(PLAIN)

/* A fast kernel takes the place of the plain one. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

static n2_kernel *const portable[N2_OP_COUNT] = {PLAIN_KERNELS N2_FAST_LIST(PORTABLE)};
#ifdef N2CE_X86
static n2_kernel *const avx2[N2_OP_COUNT] = {PLAIN_KERNELS N2_FAST_LIST(AVX2)};
static n2_kernel *const avx512[N2_OP_COUNT] = {PLAIN_KERNELS N2_FAST_LIST(AVX512)};
#else
#define avx2   portable
#define avx512 portable
#endif

static n2_scratch *const scratch[N2_OP_COUNT] = {[N2_OP_median] = plain_median_scratch,
                                                 [N2_OP_matmul] = n2_matmul_scratch,
                                                 [N2_OP_conv2d] = n2_conv_scratch,
                                                 [N2_OP_conv2d_input] = n2_conv_scratch,
                                                 [N2_OP_conv2d_weight] = n2_conv_scratch,
                                                 [N2_OP_attention] = n2_attention_scratch,
                                                 [N2_OP_attention_grad] = n2_attention_grad_scratch,
                                                 [N2_OP_norm] = n2_norm_scratch,
                                                 [N2_OP_norm_input] = n2_norm_scratch,
                                                 [N2_OP_norm_sums] = n2_norm_scratch};

/* By elements of the output, but for matmul, convolutions, sum, transpose and gather, which see for
 * themselves.
 * Not: scatter_add, median, permutation, and what only copies along an axis. */
#define SPLIT(NAME) [N2_OP_##NAME] = true,
static const bool split[N2_OP_COUNT] = {
    N2_UNARY_LIST(SPLIT) N2_BINARY_LIST(SPLIT) SPLIT(normal) SPLIT(uniform) SPLIT(integer)
        SPLIT(matmul) SPLIT(sum) SPLIT(broadcast) SPLIT(transpose) SPLIT(gather) SPLIT(assign)
            SPLIT(cast) SPLIT(pool2) SPLIT(upsample2) SPLIT(adam) SPLIT(conv2d) SPLIT(conv2d_input)
                SPLIT(conv2d_weight)};

/* Weights that outweigh rows are read, or their gradient written, once for all rows: a tile has too
 * few. */
static bool is_heavy_product(const n2_graph *g, const n2_node_data *d) {
    enum { NUMBERS = 1 << 22 };
    if (d->shape.rank != 2) return false;
    const bool by_weight = d->attr->matmul.transpose_a;
    return n2_elements(by_weight ? d->shape : n2_shape_at(g, d->in[1])) > NUMBERS;
}

static bool is_heavy_convolution(const n2_graph *g, const n2_node_data *d) {
    enum { PIXELS = 64, NUMBERS = 16384 };
    const bool conv = d->op->id == N2_OP_conv2d, input = d->op->id == N2_OP_conv2d_input;
    const n2_shape y = conv ? d->shape : n2_shape_at(g, d->in[input ? 0 : 1]);
    const n2_shape kernel = conv || input ? n2_shape_at(g, d->in[1]) : d->shape;
    return y.dim[1] * y.dim[2] <= PIXELS && n2_elements(kernel) >= NUMBERS;
}

static bool is_done_whole(const n2_graph *g, const n2_node_data *d) {
    switch (d->op->id) {
    case N2_OP_matmul:
        return is_heavy_product(g, d);
    case N2_OP_conv2d:
    case N2_OP_conv2d_input:
    case N2_OP_conv2d_weight:
        return is_heavy_convolution(g, d);
    default:
        return false;
    }
}

#define CPU_BACKEND(NAME, ISA)                                                             \
    {                                                                                      \
        .name = "cpu, " NAME, .bytes = sizeof(float), .row_programs = true, .kernel = ISA, \
        .scratch = scratch, .split = split, .whole = is_done_whole                         \
    }

const n2_backend *n2_cpu_backend(void) {
    static const n2_backend backends[N2_ISA_COUNT] = {
        CPU_BACKEND(N2_ISA_FIRST, portable),
        CPU_BACKEND("avx2", avx2),
        CPU_BACKEND("avx512", avx512),
    };
    return &backends[n2_isa_current()];
}
