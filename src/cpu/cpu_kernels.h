/* The fast kernels, by instruction set. cpu_kernel.c is compiled once for each. */
#ifndef N2_CPU_KERNELS_H
#define N2_CPU_KERNELS_H

#include "cpu_elementwise.h"
#include "engine/kernel.h"

/* All ops with a fast kernel, X(name, ...). */
#define N2_FAST_LIST(X) \
    N2_FAST_UNARY(X) N2_FAST_BINARY(X) X(matmul, ) X(sum, ) X(broadcast, ) X(transpose, ) X(adam, )

#endif
