/* Designs as rows of numbers that networks like, and back.
 *
 * A number goes through its column's quantiles to [-1, 1], so that outliers do not squeeze
 * the others; a value that a tenth of the rows or more have in common (a zero, often) is an
 * atom with an indicator of its own, so that it comes back exactly. A category is one-hot. A
 * column with one value is left out and comes back as it was. The layout is that of
 * model/latent_vae.h. */
#ifndef N2_LATENT_CODE_H
#define N2_LATENT_CODE_H

#include "design/design.h"
#include "model/latent_vae.h"

enum { N2_CODE_KNOTS = 33, N2_CODE_LEVELS_MAX = 512, N2_CODE_WIDTH_MAX = 4096 };

typedef struct n2_latent_code_column {
    n2_factor factor;
    bool constant, has_atom;
    double value; /* of a constant, or of the atom */
    double unit;  /* all values are multiples of it: 1, 0.1, ... 1e-6; 0: of none */
    double u[N2_CODE_KNOTS + 2], x[N2_CODE_KNOTS + 2]; /* quantile function: u rises from 0 to 1 */
    size_t knots;
    size_t at, atom_at; /* places in a row of the code */
} n2_latent_code_column;

typedef struct n2_latent_code {
    n2ce_ctx *ctx;
    n2_latent_code_column *column;
    size_t columns, width;
    n2_latent_layout layout;
    size_t *block;
} n2_latent_code;

/* Fails with N2CE_EDATA for a category with too many levels, or designs without a column
 * that varies. */
n2ce_status n2_latent_code_new(n2ce_ctx *ctx, const n2_designs *designs, n2_latent_code **out);
void n2_latent_code_free(n2_latent_code *code); /* NULL is fine */

/* One design to one row of `width` numbers. */
void n2_latent_code_write(const n2_latent_code *code, const double *design, float *row);

/* A move of the search: a decoded row (numbers in (-1, 1) and log odds), the design that the
 * search came from, that design's own decoding, and two numbers in (0, 1] a column. */
typedef struct n2_latent_move {
    const double *decoded, *decoded_from, *from;
    const float *uniform;
} n2_latent_move;

/* The design at the end of a move: numbers and atoms are changed by the difference of the two
 * decodings only, so that what the code cannot hold is not lost; categories are drawn. */
void n2_latent_code_read(const n2_latent_code *code, const n2_latent_move *move, double temperature,
                         double *design);

/* The same for a part of the move: half of the numbers stay as they were, and a category changes
 * only if the decoder has changed its mind, but for one column or so by chance. */
void n2_latent_code_read_part(const n2_latent_code *code, const n2_latent_move *move,
                              double *design);

/* A change of a design that asks no decoder. Numbers move on the scale of quantiles, from -1 to 1.
 */
typedef struct n2_latent_change {
    const double *from;          /* what is changed */
    const double *toward, *away; /* designs: numbers also move by `along` times their difference,
                                  * and some levels become those of `toward`; NULL: none */
    double along;
    double size;  /* of the normal steps */
    double share; /* of the columns that make one, besides column `always` */
    size_t always;
    const float *uniform, *normal; /* two in (0, 1] a column, one a column */
} n2_latent_change;
void n2_latent_code_change(const n2_latent_code *code, const n2_latent_change *change,
                           double *design);

/* A design by chance, from two numbers in (0, 1] a column: anything within the bounds, as evenly as
 * the numbers are there, or with about half of its numbers at an end of theirs. */
void n2_latent_code_scatter(const n2_latent_code *code, bool ends, const float *uniform,
                            double *design);

#endif
