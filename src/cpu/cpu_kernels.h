/* The fast kernels, by instruction set: *_kernel.c, compiled once for each. */
#ifndef N2_CPU_KERNELS_H
#define N2_CPU_KERNELS_H

#include "cpu_elementwise.h"
#include "engine/kernel.h"

#define N2_FAST_CONV(X)      X(conv2d, ) X(conv2d_input, ) X(conv2d_weight, )
#define N2_FAST_NORM(X)      X(norm, ) X(norm_input, ) X(norm_sums, )
#define N2_FAST_ATTENTION(X) X(attention, ) X(attention_grad, )
#define N2_FAST_OTHER(X)     X(matmul, ) X(sum, ) X(broadcast, ) X(transpose, ) X(adam, )

/* All ops with a fast kernel, X(name, ...). */
#define N2_FAST_LIST(X) \
    N2_FAST_UNARY(X)    \
    N2_FAST_BINARY(X) N2_FAST_OTHER(X) N2_FAST_CONV(X) N2_FAST_NORM(X) N2_FAST_ATTENTION(X)

#endif
