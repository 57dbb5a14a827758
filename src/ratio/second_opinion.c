#include "second_opinion.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>

enum { NEIGHBOURS = 10, MOST_NEIGHBOURS = 64, MOST_ROWS = 1500 };

typedef struct voting {
    const n2_opinion_rows *of;
    size_t n[2], d, neighbours;
    size_t stride;  /* rows are gone through in an order that knows nothing of samples */
    double *change; /* of each row's loss, denominator first */
    bool *alone;    /* likewise: no neighbour is of the other side */
} voting;

static const double *row_at(const voting *v, size_t i) {
    const size_t side = i >= v->n[0];
    return v->of->rows[side].x + (i - (side ? v->n[0] : 0)) * v->d;
}

static double distance(const double *x, const double *y, size_t d) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += (x[j] - y[j]) * (x[j] - y[j]);
    return sum;
}

/* How many of the nearest rows are of the numerator; *asked is how many there are. */
static size_t count_votes(const voting *v, size_t i, size_t *asked) {
    double near[MOST_NEIGHBOURS];
    bool num[MOST_NEIGHBOURS];
    const size_t all = v->n[0] + v->n[1], most = v->neighbours;
    size_t have = 0, votes = 0;
    for (size_t k = 0, j = i; k + 1 < all; k++) {
        j = (j + v->stride) % all;
        const double far = distance(row_at(v, i), row_at(v, j), v->d);
        if (have == most && !(far < near[most - 1])) continue;
        size_t at = have < most ? have++ : most - 1;
        for (; at > 0 && near[at - 1] > far; at--) {
            near[at] = near[at - 1];
            num[at] = num[at - 1];
        }
        near[at] = far;
        num[at] = j >= v->n[0];
    }
    for (size_t k = 0; k < have; k++) votes += num[k];
    *asked = have;
    return votes;
}

static double term(double f, size_t side) { return n2_softplus(side ? -f : f); }

static void ask_row(void *arg, size_t i, int worker) {
    (void)worker;
    const voting *v = arg;
    size_t asked;
    const size_t side = i >= v->n[0], votes = count_votes(v, i, &asked);
    const double f = v->of->f[side][i - (side ? v->n[0] : 0)];
    const double voted = log(((double)votes + 0.5) / ((double)(asked - votes) + 0.5)) +
                         log((double)v->n[0] / (double)v->n[1]);
    v->alone[i] = votes == (side ? asked : 0);
    v->change[i] = term(f, side) - term(voted, side);
}

static void add_up(const voting *v, size_t side, n2_opinion *out) {
    const size_t first = side ? v->n[0] : 0;
    const double n = (double)v->n[side];
    double sum = 0, square = 0;
    for (size_t i = first; i < first + v->n[side]; i++) {
        sum += v->change[i];
        square += v->change[i] * v->change[i];
        out->alone[side] += v->alone[i] / n;
    }
    out->gain.value += sum / n;
    out->gain.error += fmax(square / n - sum / n * sum / n, 0) / n;
}

/* As many neighbours as it takes that by chance one of a thousand rows has none of the smaller
 * sample. */
static size_t choose_neighbours(const size_t n[2]) {
    const double all = (double)(n[0] + n[1]), larger = (double)(n[0] > n[1] ? n[0] : n[1]);
    const double need = larger < all ? ceil(log(0.001) / log(larger / all)) : NEIGHBOURS;
    return (size_t)fmin(fmax(need, NEIGHBOURS), MOST_NEIGHBOURS);
}

/* About the golden section of all rows, and no divisor in common with their number. */
static size_t choose_stride(size_t all) {
    size_t stride = (size_t)(0.618 * (double)all) + 1;
    for (;; stride++) {
        size_t a = all, b = stride;
        while (b) {
            const size_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return stride;
    }
}

n2ce_status n2_second_opinion(n2ce_ctx *ctx, const n2_opinion_rows *of, n2_opinion *out) {
    voting v = {.of = of, .d = of->rows[1].d};
    for (size_t side = 0; side < 2; side++)
        v.n[side] = of->rows[side].n < MOST_ROWS ? of->rows[side].n : MOST_ROWS;
    v.neighbours = choose_neighbours(v.n);
    v.stride = choose_stride(v.n[0] + v.n[1]);
    *out = (n2_opinion){0};
    v.change = n2_alloc(ctx, v.n[0] + v.n[1], sizeof *v.change);
    v.alone = n2_alloc(ctx, v.n[0] + v.n[1], sizeof *v.alone);
    n2ce_status status = v.change && v.alone ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_parallel_for(ctx, v.n[0] + v.n[1], ask_row, &v);
    for (size_t side = 0; side < 2 && status == N2CE_OK; side++) add_up(&v, side, out);
    out->gain.error = sqrt(out->gain.error);
    n2_free(ctx, v.change);
    n2_free(ctx, v.alone);
    return status;
}
