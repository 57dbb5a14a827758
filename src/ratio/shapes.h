/* Functions of single columns that log ratios of common distributions are sums of: powers,
 * logarithms and the like of the column as it is in the table, which tells how tails and ends go on
 * where rows are few. Gamma, beta, Poisson, lognormal and Laplace distributions have log ratios of
 * this kind, Student's nearly so.
 *
 *     a positive column     u, u^2, ln u, ln^2 u,                  u = x / median
 *     between 0 and 1       x, ln x, ln(1 - x)
 *     counts                u, ln x!, ln(1 + x), [x = 0],          u = x / median
 *     positive or 0         u, ln(1 + u), ln u where x > 0, [x = 0]
 *     any other             t, t^2, ln(1 + t^2),                   t = (x - median) / spread
 *     with heavy tails      t, sqrt(1 + t^2), ln(1 + t^2), t / sqrt(1 + t^2)
 *
 * Levels are functions themselves, and so are products of those of different columns. Of a joint
 * sample they are the functions of both sides and their products. Values are held within all but
 * the two outermost of the samples', and functions have mean 0 and variance 1.
 *
 * Of two samples with two such columns and more there is the distance r from the middle of them,
 * the root of the sum of their t^2:  r, ln(0.01 + r^2), ln(1 + r^2).  Log ratios of shells, and
 * nearly those of elliptic distributions, are functions of it.
 *
 * Of two samples of several columns there may be functions of directions besides (directions.h), s:
 * s^2, sqrt(0.1 + s^2), ln(1 + s^2), s / sqrt(1 + s^2). */
#ifndef N2_SHAPES_H
#define N2_SHAPES_H

#include "feature_map.h"

typedef enum n2_shape_kind {
    N2_SHAPE_NONE, /* a level: nothing but itself */
    N2_SHAPE_LINEAR,
    N2_SHAPE_REAL, /* mapped to normal margins: heavy tails, or skew */
    N2_SHAPE_POSITIVE,
    N2_SHAPE_UNIT,
    N2_SHAPE_COUNT,
    N2_SHAPE_ZEROS
} n2_shape_kind;

enum { N2_MOST_SHAPES = 96 };

/* What is known of a feature that is a column. */
typedef struct n2_shape_column {
    n2_shape_kind kind;
    size_t of;                 /* column of the table */
    double centre, scale;      /* of t or u */
    double least, most;        /* x is held between them */
    const n2_feature *feature; /* back to x */
} n2_shape_column;

/* A direction's value is a sum of t of columns, held between two numbers. */
typedef struct n2_shape_direction {
    double centre, least, most;
} n2_shape_direction;

typedef struct n2_shapes {
    n2ce_ctx *ctx;
    size_t d, dx, n;         /* features; functions */
    n2_shape_column *column; /* d */
    double *mean, *scale;    /* n: of the functions */
    size_t directions;       /* 0: none */
    n2_shape_direction *direction;
    double *turn; /* directions x d */
} n2_shapes;

/* For rows of features of both samples, den.n = 0 with dx. *out is NULL where there would be more
 * than N2_MOST_SHAPES functions. */
n2ce_status n2_shapes_new(n2ce_ctx *ctx, const n2_features *features, const double *num,
                          size_t n_num, const double *den, size_t n_den, size_t dx,
                          n2_shapes **out);

/* The same with directions in which the samples differ and that are no columns; NULL if there are
 * none. `plain` has no directions. */
n2ce_status n2_shapes_direct(const n2_shapes *plain, const n2_features *features, const double *num,
                             size_t n_num, const double *den, size_t n_den, n2_shapes **out);

/* Room for directions, which are still to be filled in. */
n2ce_status n2_shapes_add_directions(n2_shapes *s, size_t n);

/* As many functions as these columns have; with mean and scale to be filled in. */
n2ce_status n2_shapes_alloc(n2ce_ctx *ctx, const n2_features *features, size_t dx, n2_shapes **out);
size_t n2_shapes_count(const n2_shapes *s);
void n2_shapes_free(n2_shapes *s); /* NULL is fine */

/* The functions at a row of features: s->n numbers. */
void n2_shapes_at(const n2_shapes *s, const double *row, double *out);

#endif
