#include "rna_fold.h"

#include "base/numerics.h"

#include <math.h>

enum { LEAST_LOOP = 3, MOST_INTERIOR = 16, PAIRS = 6 };
static const double END_COST = 0.5, ASYMMETRY = 0.6, SEVERAL = 3.4, BRANCH = 0.4;

typedef struct folding {
    const int *base;
    size_t n;
    double closed[N2_RNA_MOST][N2_RNA_MOST];   /* the least with (i, j) paired */
    double branches[N2_RNA_MOST][N2_RNA_MOST]; /* one or more branches of a loop from i to j */
} folding;

/* CG GC GU UG AU UA are 1 to 6; 0: no pair. */
static int kind_of(int a, int b) {
    static const int kind[4][4] = {{0, 0, 0, 5}, {0, 0, 1, 0}, {0, 2, 0, 3}, {6, 0, 4, 0}};
    return kind[a][b];
}

int n2_rna_pairs(int a, int b) { return kind_of(a, b) != 0; }

double n2_rna_stack(int i, int j, int p, int q) {
    static const double stack[PAIRS][PAIRS] = {
        {-2.4, -3.3, -2.1, -1.4, -2.1, -2.1}, {-3.3, -3.4, -2.5, -1.5, -2.2, -2.4},
        {-2.1, -2.5, 1.3, -0.5, -1.4, -1.3},  {-1.4, -1.5, -0.5, 0.3, -0.6, -1.0},
        {-2.1, -2.2, -1.4, -0.6, -1.1, -0.9}, {-2.1, -2.4, -1.3, -1.0, -0.9, -1.3},
    };
    return stack[kind_of(i, j) - 1][kind_of(q, p) - 1];
}

static double end_cost(int a, int b) { return kind_of(a, b) > 2 ? END_COST : 0; }

/* Beyond the last entry loops cost what their entropy does. */
static double grown(const double *table, size_t last, size_t n) {
    if (n <= last) return table[n];
    return table[last] + 1.08 * log((double)n / (double)last);
}

static double hairpin(const folding *f, size_t i, size_t j) {
    static const double table[] = {0, 0, 0, 5.4, 5.6, 5.7, 5.4, 6.0, 5.5, 6.4};
    const size_t n = j - i - 1;
    return grown(table, 9, n) + (n == 3 ? end_cost(f->base[i], f->base[j]) : 0);
}

/* The loop between (i, j) and (p, q) inside of it. */
static double interior(const folding *f, size_t i, size_t j, size_t p, size_t q) {
    static const double bulge[] = {0, 3.8, 2.8, 3.2, 3.6, 4.0, 4.4};
    static const double loop[] = {0, 0, 1.0, 1.4, 1.1, 2.0, 2.0};
    const int *b = f->base;
    const size_t left = p - i - 1, right = j - q - 1, n = left + right;
    if (n == 0) return n2_rna_stack(b[i], b[j], b[p], b[q]);
    if (n == 1) return bulge[1] + n2_rna_stack(b[i], b[j], b[p], b[q]);
    const double ends = end_cost(b[i], b[j]) + end_cost(b[p], b[q]);
    if (left == 0 || right == 0) return grown(bulge, 6, n) + ends;
    const double uneven = (double)(left > right ? left - right : right - left);
    return grown(loop, 6, n) + ends + ASYMMETRY * uneven;
}

static double best_interior(const folding *f, size_t i, size_t j) {
    double best = N2_INFINITY;
    for (size_t p = i + 1; p < j && p - i - 1 <= MOST_INTERIOR; p++)
        for (size_t q = j - 1; q > p + LEAST_LOOP && p - i + j - q - 2 <= MOST_INTERIOR; q--)
            if (isfinite(f->closed[p][q]))
                best = fmin(best, f->closed[p][q] + interior(f, i, j, p, q));
    return best;
}

static double best_several(const folding *f, size_t i, size_t j) {
    double best = N2_INFINITY;
    for (size_t k = i + 2; k + 1 < j; k++)
        best = fmin(best, f->branches[i + 1][k - 1] + f->branches[k][j - 1]);
    return best + SEVERAL + BRANCH + end_cost(f->base[i], f->base[j]);
}

static double best_branches(const folding *f, size_t i, size_t j) {
    double best = f->closed[i][j] + BRANCH + end_cost(f->base[i], f->base[j]);
    if (i < j) best = fmin(best, fmin(f->branches[i + 1][j], f->branches[i][j - 1]));
    for (size_t k = i + 1; k < j; k++) best = fmin(best, f->branches[i][k - 1] + f->branches[k][j]);
    return best;
}

static void close_pairs(folding *f) {
    for (size_t i = 0; i < f->n; i++)
        for (size_t j = 0; j < f->n; j++) f->closed[i][j] = f->branches[i][j] = N2_INFINITY;
    for (size_t length = LEAST_LOOP + 1; length < f->n; length++)
        for (size_t i = 0; i + length < f->n; i++) {
            const size_t j = i + length;
            if (n2_rna_pairs(f->base[i], f->base[j]))
                f->closed[i][j] =
                    fmin(hairpin(f, i, j), fmin(best_interior(f, i, j), best_several(f, i, j)));
            f->branches[i][j] = best_branches(f, i, j);
        }
}

double n2_rna_energy(const int *base, size_t n) {
    folding f = {.base = base, .n = n};
    double best[N2_RNA_MOST + 1] = {0}; /* of the first so many bases */
    close_pairs(&f);
    for (size_t j = 1; j <= n; j++) {
        best[j] = best[j - 1];
        for (size_t i = 0; i + 1 < j; i++)
            if (isfinite(f.closed[i][j - 1]))
                best[j] =
                    fmin(best[j], best[i] + f.closed[i][j - 1] + end_cost(base[i], base[j - 1]));
    }
    return best[n];
}
