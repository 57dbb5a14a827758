/* The kernels of winograd_kernel.c, for other kernel files of the same instruction set. */
#ifndef N2_CPU_WINOGRAD_KERNELS_H
#define N2_CPU_WINOGRAD_KERNELS_H

#include "base/isa.h"
#include "winograd.h"

typedef void n2_winograd_kernel(const n2_call *c, const n2_conv *v, const n2_winograd *g);
n2_winograd_kernel N2_ISA(n2_winograd_conv2d), N2_ISA(n2_winograd_conv2d_input),
    N2_ISA(n2_winograd_conv2d_weight);

#endif
