/* The reference backend: double, naive loops, node by node. Its kernels are the specification. */
#ifndef N2_REF_H
#define N2_REF_H

#include "engine/kernel.h"

const n2_backend *n2_ref_backend(void);

#endif
