/* The reference backend: double precision, node by node. */
#define N2_NUM      double
#define N2_PLAIN(x) ref_##x
#include "plain.h"

/* Views and leaves need none. */
#define KERNEL(NAME) [N2_OP_##NAME] = ref_##NAME

static n2_kernel *const kernels[N2_OP_COUNT] = {
    KERNEL(normal),    KERNEL(uniform),     KERNEL(integer),    KERNEL(permutation),
    KERNEL(row_index), KERNEL(neg),         KERNEL(exp),        KERNEL(log),
    KERNEL(sqrt),      KERNEL(reciprocal),  KERNEL(tanh),       KERNEL(sigmoid),
    KERNEL(softplus),  KERNEL(sin),         KERNEL(cos),        KERNEL(positive),
    KERNEL(affine),    KERNEL(lrelu),       KERNEL(add),        KERNEL(sub),
    KERNEL(mul),       KERNEL(div),         KERNEL(maximum),    KERNEL(minimum),
    KERNEL(equal),     KERNEL(greater),     KERNEL(lrelu_grad), KERNEL(matmul),
    KERNEL(sum),       KERNEL(amax),        KERNEL(median),     KERNEL(broadcast),
    KERNEL(transpose), KERNEL(concat),      KERNEL(slice),      KERNEL(pad),
    KERNEL(gather),    KERNEL(scatter_add), KERNEL(n2ce_term),  KERNEL(n2ce_weight),
    KERNEL(assign),    KERNEL(adam),
};

static const bool split[N2_OP_COUNT] = {false};

const n2_backend *n2_ref_backend(void) {
    static const n2_backend backend = {
        .name = "ref", .bytes = sizeof(double), .kernel = kernels, .split = split};
    return &backend;
}
