#include "left_over.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>

enum { MOST_ROWS = 6000, FARS = 2 }; /* distances of x and y, or of the row */

/* Functions times rows that are looked at, at most. */
static const double MOST_WORK = 1e8;

/* Sums over rows of 1, f and a product h: of the slope of the loss in h, weighted by its curvature
 * and by the slope's square. */
typedef struct sums {
    double h, hh, hf;
} sums;

typedef struct looking {
    n2_arena arena;
    const n2_opinion_rows *of;
    size_t n[2], d, dx, fars;
    double *slope, *curve, *square; /* of each row's loss, denominator first */
    double *f, *far[FARS];
    double total[3], by_f[3], by_ff[3]; /* of slope, curve and square: sums of 1, f, f^2 */
    double least;                       /* standard errors */
    double *gain;                       /* of each column with those after it */
} looking;

static double clipped(double z) { return fmin(3, fmax(-3, z)); }

static const double *row_at(const looking *l, size_t i) {
    const size_t side = i >= l->n[0];
    return l->of->rows[side].x + (i - (side ? l->n[0] : 0)) * l->d;
}

static double product_at(const looking *l, size_t row, size_t i, size_t j, size_t far) {
    const double *x = row_at(l, row);
    const double value = i == j ? clipped(x[i]) * clipped(x[i]) - 1 : clipped(x[i]) * clipped(x[j]);
    return far < l->fars ? value * l->far[far][row] : value;
}

/* The score test of one more function beside the log ratio and a constant: half of S^2 / I, if S is
 * large enough for its variance. */
static double gain_of(const looking *l, size_t i, size_t j, size_t far) {
    const double *const weight[3] = {l->slope, l->curve, l->square};
    sums s[3] = {{0, 0, 0}};
    for (size_t row = 0; row < l->n[0] + l->n[1]; row++) {
        const double h = product_at(l, row, i, j, far);
        for (size_t k = 0; k < 3; k++) {
            s[k].h += weight[k][row] * h;
            s[k].hh += weight[k][row] * h * h;
            s[k].hf += weight[k][row] * h * l->f[row];
        }
    }
    const double mean = s[1].h / l->total[1], mean_f = l->by_f[1] / l->total[1];
    const double var_f = l->by_ff[1] - mean_f * l->by_f[1];
    const double b = var_f > 0 ? (s[1].hf - mean * l->by_f[1]) / var_f : 0;
    const double a = mean - b * mean_f; /* h - a - b f has nothing in common with 1 and f */
    const double slope = s[0].h - a * l->total[0] - b * l->by_f[0];
    double of_square[2];
    for (size_t k = 1; k < 3; k++)
        of_square[k - 1] = s[k].hh + a * a * l->total[k] + b * b * l->by_ff[k] - 2 * a * s[k].h -
                           2 * b * s[k].hf + 2 * a * b * l->by_f[k];
    const double information = of_square[0], var = of_square[1];
    if (!(var > 0 && information > 0) || !(slope * slope > l->least * l->least * var)) return 0;
    return 0.5 * (slope * slope - var) / information;
}

static void look_at_column(void *arg, size_t i, int worker) {
    (void)worker;
    const looking *l = arg;
    l->gain[i] = 0;
    if (l->dx && i >= l->dx) return;
    for (size_t j = l->dx ? l->dx : i; j < l->d; j++)
        for (size_t far = 0; far <= l->fars; far++) l->gain[i] += gain_of(l, i, j, far);
}

/* Squared distances from the middle in columns first .. end - 1, with mean 0 and variance 1. */
static void measure(const looking *l, size_t first, size_t end, double *far) {
    const size_t n = l->n[0] + l->n[1];
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        const double *x = row_at(l, i);
        far[i] = 0;
        for (size_t j = first; j < end; j++) far[i] += clipped(x[j]) * clipped(x[j]);
        sum += far[i] / (double)n;
        square += far[i] * far[i] / (double)n;
    }
    const double sd = sqrt(fmax(square - sum * sum, 1e-12));
    for (size_t i = 0; i < n; i++) far[i] = clipped((far[i] - sum) / sd);
}

static void differentiate(looking *l) {
    for (size_t i = 0; i < l->n[0] + l->n[1]; i++) {
        const size_t side = i >= l->n[0];
        const double f = l->f[i] = l->of->f[side][i - (side ? l->n[0] : 0)];
        const double p = n2_sigmoid(f), n = (double)l->n[side];
        l->slope[i] = ((double)side - p) / n;
        l->curve[i] = p * (1 - p) / n;
        l->square[i] = l->slope[i] * l->slope[i];
        const double weight[3] = {l->slope[i], l->curve[i], l->square[i]};
        for (size_t k = 0; k < 3; k++) {
            l->total[k] += weight[k];
            l->by_f[k] += weight[k] * f;
            l->by_ff[k] += weight[k] * f * f;
        }
    }
}

static bool make_room(looking *l) {
    const size_t n = l->n[0] + l->n[1];
    double **const of[] = {&l->slope, &l->curve, &l->square, &l->f, &l->far[0], &l->far[1]};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        if (!(*of[k] = n2_arena_alloc(&l->arena, n, sizeof(double)))) return false;
    return (l->gain = n2_arena_alloc(&l->arena, l->d, sizeof(double))) != NULL;
}

/* How many functions there are. One column has no distance but itself. */
static double count_functions(const looking *l) {
    const size_t x = l->dx ? l->dx : l->d, y = l->d - x;
    const double products = l->dx ? (double)(x * y) : (double)x * (double)(x + 1) / 2;
    return products * (double)(1 + (x > 1) + (y > 1));
}

static void measure_distances(looking *l) {
    const size_t x = l->dx ? l->dx : l->d;
    if (x > 1) measure(l, 0, x, l->far[l->fars++]);
    if (l->d - x > 1) measure(l, x, l->d, l->far[l->fars++]);
}

/* As many as cost no more than they may. */
static void choose_rows(looking *l) {
    const double most = fmin(MOST_ROWS, MOST_WORK / (2 * count_functions(l)));
    for (size_t side = 0; side < 2; side++) {
        const size_t n = l->of->rows[side].n;
        l->n[side] = (double)n < most ? n : (size_t)most;
    }
}

n2ce_status n2_left_over(n2ce_ctx *ctx, const n2_opinion_rows *of, size_t dx, double *out) {
    looking l = {.arena = n2_arena_new(ctx), .of = of, .d = of->rows[1].d, .dx = dx};
    *out = 0;
    choose_rows(&l);
    l.least = sqrt(2 * log(count_functions(&l))) + 1;
    n2ce_status status = make_room(&l) ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        differentiate(&l);
        measure_distances(&l);
        status = n2_parallel_for(ctx, l.d, look_at_column, &l);
    }
    for (size_t i = 0; i < l.d && status == N2CE_OK; i++) *out += l.gain[i];
    n2_arena_free(&l.arena);
    return status;
}
