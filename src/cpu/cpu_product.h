/* The matrix product of cpu_kernel.c, for other kernel files of the same instruction set. */
#ifndef N2_CPU_PRODUCT_H
#define N2_CPU_PRODUCT_H

#include "base/isa.h"

#include <stdbool.h>
#include <stdint.h>

/* Element (i, l) of a is data[i row + l column]; one of the two is 1. */
typedef struct strided {
    const float *data;
    int64_t row, column;
} strided;

/* out [m x n] = or += a [m x k] b [k x n]. Sums are taken in the order of k. */
void N2_ISA(n2_cpu_product)(int64_t m, int64_t n, int64_t k, strided a, const float *b, float *out,
                            bool add);

/* The same; rows of b are ldb numbers apart, those of out ldo. */
void N2_ISA(n2_cpu_product_in)(int64_t m, int64_t n, int64_t k, strided a, const float *b,
                               int64_t ldb, float *out, int64_t ldo, bool add);

#endif
