/* Uniform draws: from the whole space, and from a small cube around the best design offline, which
 * is the paper's control of "remembers the best point and adds noise". */
#include "design/design_space.h"
#include "methods.h"

#include <math.h>
#include <string.h>

enum { STREAM = 0x52410000, CUBE_STREAM = 0x52420000 };

static n2ce_status anywhere(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                            n2_proposals *out) {
    (void)ctx;
    n2_space_uniform(&offline->space, (n2_stream){seed, STREAM, 0}, out->rows, out->x);
    n2_proposals_settle(&offline->space, out);
    return N2CE_OK;
}

/* A number within width / 2 of its range either way; a category changes with probability width. */
static void shake(const n2_space *space, const double *centre, double width, uint64_t seed,
                  n2_proposals *out) {
    for (size_t i = 0; i < out->rows * space->n; i++) {
        const n2_factor *f = &space->factor[i % space->n];
        const double at = centre[i % space->n];
        float u;
        n2_fill_uniform((n2_stream){seed, CUBE_STREAM, 1}, i, 1, &u);
        if (f->kind != N2_CATEGORY)
            out->x[i] = at + width * (f->high - f->low) * ((double)u - 0.5);
        else if ((double)u > width)
            out->x[i] = at; /* else what was drawn */
    }
}

static n2ce_status in_cube(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed, double width,
                           n2_proposals *out) {
    size_t best;
    N2_TRY(n2_designs_best(ctx, offline, 1, &best));
    n2_space_uniform(&offline->space, (n2_stream){seed, CUBE_STREAM, 0}, out->rows, out->x);
    shake(&offline->space, offline->x + best * offline->space.n, width, seed, out);
    n2_proposals_settle(&offline->space, out);
    return N2CE_OK;
}

const n2_method n2_random_method = {"random", "uniform in the space", anywhere};

#define CUBE(name, title, width)                                                               \
    static n2ce_status in_##name(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,      \
                                 n2_proposals *out) {                                          \
        return in_cube(ctx, offline, seed, width, out);                                        \
    }                                                                                          \
    const n2_method n2_##name##_method = {                                                     \
        title, "uniform in a cube of this share of the ranges around the best design offline", \
        in_##name}

CUBE(cube_05, "cube-0.005", 0.005);
CUBE(cube_1, "cube-0.01", 0.01);
CUBE(cube_5, "cube-0.05", 0.05);
CUBE(cube_10, "cube-0.1", 0.1);
