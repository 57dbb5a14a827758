/* The fast kernels, by instruction set. cpu_kernel.c is compiled once for each. */
#ifndef N2_CPU_H
#define N2_CPU_H

#include "engine/kernel.h"

/* clang-format off */
#define N2_FAST_LIST(X)                                                                   \
    X(neg) X(exp) X(sqrt) X(reciprocal) X(sigmoid) X(tanh) X(positive) X(affine) X(lrelu) \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(equal) X(greater) X(lrelu_grad)   \
    X(matmul) X(sum) X(broadcast) X(transpose) X(adam)
/* clang-format on */

#endif
