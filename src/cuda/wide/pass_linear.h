/* Passes whose one result is a linear function of their operands, which most are: residual sums,
 * sums of gradients, copies, pictures of another size; with an activation behind it, or a gate.
 * They need no steps. */
#ifndef N2_CUDA_PASS_LINEAR_H
#define N2_CUDA_PASS_LINEAR_H

#include "pass.h"

/* out = f(constant + sum over k of factor[k] input k) */
typedef struct linear_form {
    float constant, factor[PASS_INPUTS];
    int32_t op;   /* n2_op_id of f, of one number; or lrelu_grad by the sign of input `gate`; */
    int32_t gate; /* -1: none */
    float slope;  /* attr->a of f */
    bool acts;    /* whether there is an f */
} linear_form;

/* False: it is none. Without an f if `plain`. */
bool n2_pass_linear(const wide_pass *p, bool plain, linear_form *out);

/* The same, of operands in float or in one type of 16 bits, eight elements on end everywhere. */
bool n2_pass_launch_linear(const job *j, cudaStream_t stream, bool early);

#endif
