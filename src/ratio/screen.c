#include "screen.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>

/* What products of three may cost, in multiplications: they are looked at in fewer rows, and left
 * out where these would be too few. */
static const double MOST_WORK = 4e8;

enum { MOST_ROWS = 3000, LEAST_ROWS = 800 };

typedef struct screen {
    const n2_smooth_rows *rows;
    size_t d, dx;
    size_t triple_rows; /* of a side, that products of three are looked at in; 0: they are not */
    double *found; /* d x d: the largest difference, in its standard errors, for which i saw j */
} screen;

static double clipped(double z) { return z > 3 ? 3 : z < -3 ? -3 : z; }

typedef struct moments {
    double mean, var; /* var of the mean */
} moments;

/* A product of powers of up to three columns. */
typedef struct product {
    size_t column[3];
    bool square[3];
    size_t n;
} product;

static double value_of(const product *p, const double *row) {
    double value = 1;
    for (size_t k = 0; k < p->n; k++) {
        const double z = clipped(row[p->column[k]]);
        value *= p->square[k] ? z * z - 1 : z;
    }
    return value;
}

static moments moments_of(const screen *s, size_t side, const product *p) {
    const size_t all = s->rows->n[side], most = p->n < 3 ? MOST_ROWS : s->triple_rows;
    const size_t n = all < most ? all : most;
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = value_of(p, s->rows->x[side] + i * s->d);
        sum += v;
        square += v * v;
    }
    const double mean = sum / (double)n;
    return (moments){mean, fmax(square / (double)n - mean * mean, 0) / (double)n};
}

static double difference(const screen *s, const product *p) {
    const moments a = moments_of(s, 0, p), b = moments_of(s, 1, p);
    const double error = sqrt(a.var + b.var);
    return error > 0 ? fabs(a.mean - b.mean) / error : 0;
}

/* Of two samples: column i, or i with j, alone and with each other column. */
static double best_of_two(const screen *s, size_t i, size_t j) {
    if (i == j)
        return fmax(difference(s, &(product){{i}, {false}, 1}),
                    difference(s, &(product){{i}, {true}, 1}));
    double best = difference(s, &(product){{i, j}, {false, false}, 2});
    for (size_t k = 0; k < s->d && s->triple_rows; k++)
        if (k != i && k != j)
            best = fmax(best, difference(s, &(product){{i, j, k}, {false, false, false}, 3}));
    return best;
}

/* Column i with j: what they do together, and in a joint sample with each column of y. */
static double best_of_pair(const screen *s, size_t i, size_t j) {
    double best = 0;
    if (!s->dx) return best_of_two(s, i, j);
    if (i < s->dx && j >= s->dx)
        for (size_t k = 0; k < 4; k++)
            best = fmax(best, difference(s, &(product){{i, j}, {k & 1, k >> 1}, 2}));
    if (s->triple_rows && i < j && j < s->dx)
        for (size_t y = s->dx; y < s->d; y++)
            for (size_t k = 0; k < 2; k++)
                best = fmax(best, difference(s, &(product){{i, j, y}, {false, false, k}, 3}));
    return best;
}

static void screen_row(void *arg, size_t i, int worker) {
    (void)worker;
    const screen *s = arg;
    for (size_t j = i; j < s->d; j++) s->found[i * s->d + j] = best_of_pair(s, i, j);
}

/* How many tests there are, about. */
static double tests(const screen *s) {
    const double x = (double)s->dx, y = (double)(s->d - s->dx);
    if (!s->dx) return y * (y + 3) / 2 + (s->triple_rows ? y * (y - 1) * (y - 2) / 6 : 0);
    return 4 * x * y + (s->triple_rows ? x * (x - 1) * y : 0);
}

static void take_most(const screen *s, size_t most, bool *active, size_t *count) {
    const double least = sqrt(2 * log(tests(s))) + 1;
    for (*count = 0; *count < most;) {
        double best = least;
        size_t at = s->d * s->d;
        for (size_t k = 0; k < s->d * s->d; k++) {
            const size_t i = k / s->d, j = k % s->d;
            if (s->found[k] > best && !(active[i] && active[j])) {
                best = s->found[k];
                at = k;
            }
        }
        if (at == s->d * s->d) return;
        const size_t pair[2] = {at / s->d, at % s->d};
        for (size_t k = 0; k < 2; k++) {
            *count += !active[pair[k]];
            active[pair[k]] = true;
        }
    }
}

n2ce_status n2_screen_columns(n2ce_ctx *ctx, const n2_smooth_rows *rows, size_t d, size_t dx,
                              size_t most, bool *active, size_t *count) {
    screen s = {.rows = rows, .d = d, .dx = dx};
    const double x = (double)dx, y = (double)(d - dx);
    const double affordable = MOST_WORK / ((dx > 0 ? x * x : y * y) * y * 2);
    const size_t all = rows->n[0] < rows->n[1] ? rows->n[0] : rows->n[1];
    const size_t least = all < LEAST_ROWS ? all : LEAST_ROWS;
    if (affordable >= (double)least)
        s.triple_rows = affordable < MOST_ROWS ? (size_t)affordable : MOST_ROWS;
    s.found = n2_alloc(ctx, d * d, sizeof *s.found);
    if (!s.found) return N2CE_ENOMEM;
    for (size_t j = 0; j < d; j++) active[j] = false;
    const n2ce_status status = n2_parallel_for(ctx, d, screen_row, &s);
    if (status == N2CE_OK) take_most(&s, most, active, count);
    n2_free(ctx, s.found);
    return status;
}
