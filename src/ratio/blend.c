#include "blend.h"

#include "base/linalg.h"
#include "base/numerics.h"

#include <math.h>
#include <string.h>

enum { CONSTANT = N2_BLEND_PARTS, NUMBERS = N2_BLEND_PARTS + 1 };

double n2_blend_at(const n2_blend_rows *rows, const n2_blend *b, size_t side, size_t i) {
    double f = b->constant;
    for (size_t p = 0; p < N2_BLEND_PARTS; p++)
        if (rows->part[side][p]) f += b->weight[p] * rows->part[side][p][i];
    return f;
}

/* Slope and curvature of the loss in those numbers that are free. */
typedef struct slopes {
    double gradient[NUMBERS], hessian[NUMBERS][NUMBERS];
} slopes;

static double entry(const n2_blend_rows *rows, size_t side, size_t i, size_t number) {
    return number == CONSTANT ? 1 : rows->part[side][number][i];
}

static void differentiate(const n2_blend_rows *rows, const n2_blend *b, const bool *free,
                          slopes *s) {
    *s = (slopes){0};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < rows->n[side]; i++) {
            const double p = n2_sigmoid(n2_blend_at(rows, b, side, i));
            const double share = 1 / (double)rows->n[side];
            for (size_t j = 0; j < NUMBERS; j++) {
                if (!free[j]) continue;
                const double x = entry(rows, side, i, j);
                s->gradient[j] += share * (p - (double)side) * x;
                for (size_t k = 0; k <= j; k++)
                    if (free[k])
                        s->hessian[j][k] += share * p * (1 - p) * x * entry(rows, side, i, k);
            }
        }
}

/* Newton's step in the free numbers, none of which moves by more than a half. */
static double move(const slopes *s, const bool *free, n2_blend *b) {
    double a[NUMBERS * NUMBERS], step[NUMBERS], largest = 0;
    size_t of[NUMBERS], n = 0;
    for (size_t j = 0; j < NUMBERS; j++)
        if (free[j]) of[n++] = j;
    for (size_t j = 0; j < n; j++) {
        step[j] = s->gradient[of[j]];
        for (size_t k = 0; k <= j; k++) a[j * n + k] = s->hessian[of[j]][of[k]];
        a[j * n + j] += 1e-9 + 1e-6 * a[j * n + j];
    }
    if (!n2_cholesky(a, n)) return 0;
    n2_cholesky_solve(a, n, step, 1);
    for (size_t j = 0; j < n; j++) largest = fmax(largest, fabs(step[j]));
    const double length = largest > 0.5 ? 0.5 / largest : 1;
    for (size_t j = 0; j < n; j++)
        *(of[j] == CONSTANT ? &b->constant : &b->weight[of[j]]) -= length * step[j];
    return largest;
}

static void minimise(const n2_blend_rows *rows, const bool *free, n2_blend *b) {
    enum { STEPS = 20 };
    for (size_t k = 0; k < STEPS; k++) {
        slopes s;
        differentiate(rows, b, free, &s);
        if (move(&s, free, b) < 1e-6) return;
    }
}

/* A part whose weight would be below 0 is left out, the one furthest below first. */
static bool leave_out(n2_blend *b, bool *free) {
    size_t worst = 0;
    for (size_t p = 1; p < N2_BLEND_PARTS; p++)
        if (b->weight[p] < b->weight[worst]) worst = p;
    if (!(b->weight[worst] < 0)) return false;
    b->weight[worst] = 0;
    free[worst] = false;
    return true;
}

n2_blend n2_blend_fit(const n2_blend_rows *rows, bool all) {
    n2_blend b = {{1, 0, 0}, 0};
    bool free[NUMBERS] = {[CONSTANT] = true};
    for (size_t p = 0; p < N2_BLEND_PARTS; p++) free[p] = rows->part[0][p] && (p > 0 || all);
    do {
        minimise(rows, free, &b);
    } while (leave_out(&b, free));
    return b;
}

static double term(double f, size_t side) { return n2_softplus(side ? -f : f); }

n2_gain n2_blend_gain(const n2_blend_rows *rows, const n2_blend *a, const n2_blend *b) {
    n2_gain gain = {0, 0};
    for (size_t side = 0; side < 2; side++) {
        n2_sum sum = {0, 0}, square = {0, 0};
        for (size_t i = 0; i < rows->n[side]; i++) {
            const double change = term(n2_blend_at(rows, a, side, i), side) -
                                  term(n2_blend_at(rows, b, side, i), side);
            n2_sum_add(&sum, change);
            n2_sum_add(&square, change * change);
        }
        const double n = (double)rows->n[side], mean = n2_sum_value(&sum) / n;
        gain.value += mean;
        gain.error +=
            fmax(n2_sum_value(&square) / n - mean * mean, 0) / (double)rows->independent[side];
    }
    gain.error = sqrt(gain.error);
    return gain;
}
