/* Passes whose one result is a linear function of their operands, which most are: residual sums,
 * sums of gradients, copies, pictures of another size. They need no steps: */
#ifndef N2_CUDA_PASS_LINEAR_H
#define N2_CUDA_PASS_LINEAR_H

#include "pass.h"

/* out = constant + sum over k of factor[k] input k */
typedef struct linear_form {
    float constant, factor[PASS_INPUTS];
} linear_form;

/* False: it is none. */
bool n2_pass_linear(const wide_pass *p, linear_form *out);

/* The same, of operands in float or in one type of 16 bits, eight elements on end everywhere. */
bool n2_pass_launch_linear(const job *j, cudaStream_t stream, bool early);

#endif
