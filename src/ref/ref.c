/* The reference backend: double precision, node by node. */
#define N2_NUM      double
#define N2_PLAIN(x) ref_##x
#include "ref.h"
#include "plain.h"

#define KERNEL(NAME) [N2_OP_##NAME] = ref_##NAME,
static n2_kernel *const kernels[N2_OP_COUNT] = {N2_UNARY_LIST(KERNEL) N2_BINARY_LIST(KERNEL)
                                                    N2_KERNEL_LIST(KERNEL)};

static n2_scratch *const scratch[N2_OP_COUNT] = {[N2_OP_median] = ref_median_scratch,
                                                 [N2_OP_attention] = ref_attention_scratch,
                                                 [N2_OP_attention_grad] = ref_attention_scratch};

static const bool split[N2_OP_COUNT] = {false};

const n2_backend *n2_ref_backend(void) {
    static const n2_backend backend = {.name = "ref",
                                       .bytes = sizeof(double),
                                       .kernel = kernels,
                                       .scratch = scratch,
                                       .split = split};
    return &backend;
}
