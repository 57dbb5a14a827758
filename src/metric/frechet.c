/* The Fréchet distance of two normal distributions.
 *
 * With A = V L V', the matrix A^1/2 B A^1/2 has the eigenvalues of C = R B R' for R = L^1/2 V',
 * whose rows are those of the directions in which A has spread. So C has the rank of A for its
 * size, and nothing is inverted. */
#include "metric.h"

#include "base/arena.h"
#include "base/linalg.h"

#include <float.h>
#include <math.h>
#include <string.h>

static double trace(const double *a, size_t d) {
    double sum = 0;
    for (size_t i = 0; i < d; i++) sum += a[i * d + i];
    return sum;
}

static n2ce_status no_eigenvalues(n2ce_ctx *ctx) {
    return n2_fail(
        ctx, N2CE_EDATA,
        "The eigenvalues of a covariance could not be found: its numbers are not finite, "
        "or too far apart.");
}

/* Eigenvalues of a copy of a, ascending; how many are not rounding. */
static n2ce_status eigen(n2_arena *arena, const double *a, size_t d, double *values, double *v,
                         size_t *rank) {
    double *copy = n2_arena_alloc(arena, d * d, sizeof *copy);
    if (!copy) return N2CE_ENOMEM;
    memcpy(copy, a, d * d * sizeof *copy);
    if (!n2_symmetric_eigen(copy, d, values, v)) return no_eigenvalues(arena->ctx);
    const double least = (double)d * DBL_EPSILON * values[d - 1];
    *rank = 0;
    for (size_t i = 0; i < d; i++) *rank += values[i] > least && values[i] > 0;
    return N2CE_OK;
}

/* The r directions of the largest eigenvalues, times their roots, as columns: R' [d x r]. */
static void scaled_directions(const double *values, const double *v, size_t d, size_t r,
                              double *out) {
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < r; k++)
            out[i * r + k] = v[i * d + d - r + k] * sqrt(values[d - r + k]);
}

/* tr (A^1/2 B A^1/2)^1/2 */
static n2ce_status trace_of_root(n2_arena *arena, const double *values, const double *v, size_t r,
                                 const double *b, size_t d, double *out) {
    double *root = n2_arena_alloc(arena, d * r, sizeof *root);
    double *half = n2_arena_alloc(arena, d * r, sizeof *half);
    double *c = n2_arena_alloc(arena, r * r, sizeof *c);
    double *of_c = n2_arena_alloc(arena, r, sizeof *of_c);
    *out = 0;
    if (!root || !half || !c || !of_c) return N2CE_ENOMEM;
    if (r == 0) return N2CE_OK;
    scaled_directions(values, v, d, r, root);
    n2_turned_product(b, root, d, d, r, half); /* B is symmetric: B R' */
    n2_turned_product(root, half, d, r, r, c);
    if (!n2_symmetric_eigen(c, r, of_c, NULL)) return no_eigenvalues(arena->ctx);
    for (size_t i = 0; i < r; i++) *out += of_c[i] > 0 ? sqrt(of_c[i]) : 0;
    return N2CE_OK;
}

static n2ce_status distance(n2_arena *arena, const n2_gaussian_fit *a, const n2_gaussian_fit *b,
                            n2_frechet *out) {
    const size_t d = a->d;
    double *values = n2_arena_alloc(arena, d, sizeof *values), both;
    double *v = n2_arena_alloc(arena, d * d, sizeof *v);
    if (!values || !v) return N2CE_ENOMEM;
    N2_TRY(eigen(arena, b->covariance, d, values, NULL, &out->rank_b));
    N2_TRY(eigen(arena, a->covariance, d, values, v, &out->rank_a));
    N2_TRY(trace_of_root(arena, values, v, out->rank_a, b->covariance, d, &both));
    for (size_t i = 0; i < d; i++) {
        const double gap = a->mean[i] - b->mean[i];
        out->means += gap * gap;
    }
    out->distance =
        fmax(0, out->means + trace(a->covariance, d) + trace(b->covariance, d) - 2 * both);
    if (isfinite(out->distance)) return N2CE_OK;
    return n2_fail(arena->ctx, N2CE_EDATA, "The Frechet distance of these features overflows.");
}

n2ce_status n2_frechet_distance(n2ce_ctx *ctx, const n2_gaussian_fit *a, const n2_gaussian_fit *b,
                                n2_frechet *out) {
    n2_arena arena = n2_arena_new(ctx);
    *out = (n2_frechet){0};
    const n2ce_status status = distance(&arena, a, b, out);
    n2_arena_free(&arena);
    return status;
}
