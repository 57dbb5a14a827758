/* Designs: what can be tried, and what was tried.
 *
 * A design is a row with one number a column: the value itself, or the level of a category.
 * Values of y are larger where a design is better; who minimises turns the sign. */
#ifndef N2_DESIGN_H
#define N2_DESIGN_H

#include "base/ctx.h"

typedef enum n2_factor_kind { N2_CONTINUOUS, N2_WHOLE, N2_CATEGORY } n2_factor_kind;

typedef struct n2_factor {
    n2_factor_kind kind;
    double low, high; /* of a number: designs outside cannot be tried */
    size_t levels;    /* of a category: 0 .. levels-1 */
} n2_factor;

typedef struct n2_space {
    n2_factor *factor;
    size_t n;
} n2_space;

/* What was tried: rows x space.n numbers, and a value a row. */
typedef struct n2_designs {
    n2_space space;
    size_t rows;
    double *x, *y;
} n2_designs;

/* What to try next, best first. Memory is the caller's: rows and x are given, the others may be
 * NULL. */
typedef struct n2_proposals {
    size_t rows;
    double *x;
    double *predicted; /* the value that is expected */
    double *log_prior; /* how usual the design is, nats; NAN where a method has no such thing */
    double inside;     /* share of designs within the bounds before they were moved into them */
    double *chance;    /* that a design has what is required; NULL: nothing is */
    double *unmoved;   /* designs as they were then, like x; NULL: not wanted */
    double low, high;  /* 80 % interval of the mean value of all; both 0: a method has none */
} n2_proposals;

/* A way to propose designs. The same (offline, seed, options) gives the same proposals for any
 * number of threads. */
typedef struct n2_method {
    const char *name, *summary;
    n2ce_status (*propose)(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           n2_proposals *out);
} n2_method;

#endif
