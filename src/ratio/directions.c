#include "directions.h"

#include "base/arena.h"
#include "base/linalg.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 100, ROWS_A_COLUMN = 50 };

static const double SETTLED = 1e-4; /* how far from 1 the cosine of a turn may be */

typedef struct turning {
    size_t n, d;
    double *z;                   /* n x d: uncorrelated, of variance 1 */
    double *whiten;              /* d x d: from x to z */
    double *w, *next;            /* d x d: orthonormal rows */
    double *square, *v, *values; /* on the way */
} turning;

static n2ce_status make_room(n2_arena *arena, turning *t) {
    const size_t square = t->d * t->d;
    double **const arrays[] = {&t->whiten, &t->w, &t->next, &t->square, &t->v, &t->values};
    bool all = (t->z = n2_arena_alloc(arena, t->n * t->d, sizeof(double)));
    for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
        all = (*arrays[k] = n2_arena_alloc(arena, square, sizeof(double))) && all;
    return all ? N2CE_OK : N2CE_ENOMEM;
}

static void subtract_means(const double *x, turning *t) {
    for (size_t j = 0; j < t->d; j++) {
        double mean = 0;
        for (size_t i = 0; i < t->n; i++) mean += x[i * t->d + j] / (double)t->n;
        for (size_t i = 0; i < t->n; i++) t->z[i * t->d + j] = x[i * t->d + j] - mean;
    }
}

/* z = L^-1 (x - mean) for the factor L of the covariance; false if it has none. */
static bool whiten(const double *x, turning *t) {
    const size_t d = t->d;
    subtract_means(x, t);
    n2_turned_product(t->z, t->z, t->n, d, d, t->square);
    for (size_t k = 0; k < d * d; k++) t->square[k] /= (double)t->n;
    double trace = 0;
    for (size_t j = 0; j < d; j++) trace += t->square[j * d + j] / (double)d;
    if (!n2_cholesky(t->square, d)) return false;
    for (size_t j = 0; j < d; j++)
        if (!(t->square[j * d + j] > 1e-4 * sqrt(trace))) return false;
    n2_lower_inverse(t->square, d, t->whiten);
    for (size_t i = 0; i < t->n; i++) {
        double *row = t->z + i * d;
        for (size_t j = d; j-- > 0;) row[j] = n2_dot(t->whiten + j * d, row, j + 1);
    }
    return true;
}

/* W <- (W W')^-1/2 W. */
static bool orthonormalise(turning *t, double *w) {
    const size_t d = t->d;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) t->square[i * d + j] = n2_dot(w + i * d, w + j * d, d);
    if (!n2_symmetric_eigen(t->square, d, t->values, t->v) || !(t->values[0] > 1e-12)) return false;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) {
            double sum = 0;
            for (size_t k = 0; k < d; k++)
                sum += t->v[i * d + k] * t->v[j * d + k] / sqrt(t->values[k]);
            t->square[i * d + j] = sum;
        }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) {
            double sum = 0;
            for (size_t k = 0; k < d; k++) sum += t->square[i * d + k] * w[k * d + j];
            t->v[i * d + j] = sum;
        }
    memcpy(w, t->v, d * d * sizeof *w);
    return true;
}

/* Each row: mean of z tanh(w.z), less the mean of the slope of tanh times w. */
static void turn_once(const turning *t) {
    const size_t d = t->d;
    memset(t->next, 0, d * d * sizeof *t->next);
    for (size_t k = 0; k < d; k++) {
        double *next = t->next + k * d, slope = 0;
        for (size_t i = 0; i < t->n; i++) {
            const double *z = t->z + i * d, g = tanh(n2_dot(t->w + k * d, z, d));
            for (size_t j = 0; j < d; j++) next[j] += g * z[j] / (double)t->n;
            slope += (1 - g * g) / (double)t->n;
        }
        for (size_t j = 0; j < d; j++) next[j] -= slope * t->w[k * d + j];
    }
}

static bool has_settled(const turning *t) {
    for (size_t k = 0; k < t->d; k++)
        if (fabs(n2_dot(t->w + k * t->d, t->next + k * t->d, t->d)) < 1 - SETTLED) return false;
    return true;
}

/* From the whitened columns on, as long as something turns. */
static bool turn(turning *t) {
    const size_t d = t->d;
    for (size_t k = 0; k < d * d; k++) t->w[k] = k % (d + 1) == 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        turn_once(t);
        if (!orthonormalise(t, t->next)) return false;
        const bool settled = has_settled(t);
        memcpy(t->w, t->next, d * d * sizeof *t->w);
        if (settled) return true;
    }
    return true; /* among directions that are alike none settles, and any will do */
}

n2ce_status n2_find_directions(n2ce_ctx *ctx, const double *x, size_t n, size_t d, double *w,
                               bool *found) {
    n2_arena arena = n2_arena_new(ctx);
    turning t = {.n = n, .d = d};
    *found = false;
    if (d < 2 || d > N2_MOST_DIRECTIONS || n < ROWS_A_COLUMN * d) return N2CE_OK;
    const n2ce_status status = make_room(&arena, &t);
    if (status == N2CE_OK && whiten(x, &t) && turn(&t)) {
        *found = true;
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                double sum = 0;
                for (size_t k = j; k < d; k++) sum += t.w[i * d + k] * t.whiten[k * d + j];
                w[i * d + j] = sum;
            }
    }
    n2_arena_free(&arena);
    return status;
}
