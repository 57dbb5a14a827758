/* Scratch memory of norm_kernel.c. */
#ifndef N2_CPU_NORM_H
#define N2_CPU_NORM_H

#include "engine/kernel.h"

/* Three doubles and eight floats of every channel. */
static inline int64_t n2_norm_scratch(const n2_call *c) { return 14 * n2_normed_of(c).c; }

#endif
