/* The CPU backend: float, row programs, the fast kernels of this machine's instruction
 * set, and the plain ones for ops that need no speed. */
#include "cpu.h"

#include "base/isa.h"

#define N2_NUM      float
#define N2_PLAIN(x) plain_##x
#include "ref/plain.h"

#ifdef N2CE_X86
#define DECLARE(NAME) \
    n2_kernel n2_cpu_##NAME##_portable, n2_cpu_##NAME##_avx2, n2_cpu_##NAME##_avx512;
#else
#define DECLARE(NAME) n2_kernel n2_cpu_##NAME##_portable;
#endif
N2_FAST_LIST(DECLARE)

/* What the plain file has and no list below uses is not a mistake. */
static n2_kernel *const unused[] __attribute__((unused)) = {
    plain_neg,       plain_exp,       plain_sqrt,       plain_reciprocal, plain_sigmoid,
    plain_tanh,      plain_positive,  plain_affine,     plain_lrelu,      plain_add,
    plain_sub,       plain_mul,       plain_div,        plain_maximum,    plain_minimum,
    plain_equal,     plain_greater,   plain_lrelu_grad, plain_matmul,     plain_sum,
    plain_broadcast, plain_transpose, plain_adam};

#define PLAIN(NAME) [N2_OP_##NAME] = plain_##NAME
#define PLAIN_KERNELS                                                                    \
    PLAIN(normal), PLAIN(uniform), PLAIN(integer), PLAIN(permutation), PLAIN(row_index), \
        PLAIN(log), PLAIN(softplus), PLAIN(sin), PLAIN(cos), PLAIN(amax), PLAIN(median), \
        PLAIN(concat), PLAIN(slice), PLAIN(pad), PLAIN(gather), PLAIN(scatter_add),      \
        PLAIN(n2ce_term), PLAIN(n2ce_weight), PLAIN(assign)

#define PORTABLE(NAME) [N2_OP_##NAME] = n2_cpu_##NAME##_portable,
#define AVX2(NAME)     [N2_OP_##NAME] = n2_cpu_##NAME##_avx2,
#define AVX512(NAME)   [N2_OP_##NAME] = n2_cpu_##NAME##_avx512,

static n2_kernel *const portable[N2_OP_COUNT] = {N2_FAST_LIST(PORTABLE) PLAIN_KERNELS};
#ifdef N2CE_X86
static n2_kernel *const avx2[N2_OP_COUNT] = {N2_FAST_LIST(AVX2) PLAIN_KERNELS};
static n2_kernel *const avx512[N2_OP_COUNT] = {N2_FAST_LIST(AVX512) PLAIN_KERNELS};
#else
#define avx2   portable
#define avx512 portable
#endif

static const bool split[N2_OP_COUNT] = {[N2_OP_transpose] = true, [N2_OP_adam] = true};

#define CPU_BACKEND(ISA)                                                                   \
    {                                                                                      \
        .name = "cpu, " #ISA, .bytes = sizeof(float), .row_programs = true, .kernel = ISA, \
        .split = split                                                                     \
    }

const n2_backend *n2_cpu_backend(void) {
    static const n2_backend backends[N2_ISA_COUNT] = {
        CPU_BACKEND(portable),
        CPU_BACKEND(avx2),
        CPU_BACKEND(avx512),
    };
    return &backends[n2_isa_current()];
}
