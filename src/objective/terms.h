/* The terms of the N2CE family and their derivatives, one logit at a time: shared by the
 * public loss (loss.c) and by the engine's kernels. m is the side's magnitude, infinity
 * for NWJ; r = exp(f). */
#ifndef N2_TERMS_H
#define N2_TERMS_H

#include "base/numerics.h"

#include <stdbool.h>

/* -ln(r / (m + r)), the numerator's; m ln((m + r) / m), the denominator's. */
static inline double n2_num_term(double f, double m) {
    return isinf(m) ? -f : n2_shifted_softplus(f, m);
}
static inline double n2_den_term(double f, double m) {
    return isinf(m) ? exp(f) : n2_scaled_softplus(f, m);
}

/* Minus the first's derivative, m / (m + r); the second's, m r / (m + r). */
static inline double n2_num_weight(double f, double m) {
    if (isinf(m)) return 1;
    return f < 700 ? 1 / (1 + exp(f) / m) : n2_sigmoid(log(m) - f); /* exp(f) overflows */
}
static inline double n2_den_weight(double f, double m) {
    return isinf(m) ? exp(f) : 1 / (1 / m + exp(-f));
}

#endif
