#include "ratio_peers.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "ratio/boosting.h"
#include "small_net.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 10000, KL_NEIGHBOURS = 5, MI_NEIGHBOURS = 3, MOST_NEIGHBOURS = 5, FOLDS = 5 };

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

/* ---- neighbours ---------------------------------------------------------- */

typedef struct rows_view {
    const double *x;
    size_t n, d;
} rows_view;

static double square_distance(const double *x, const double *y, size_t d) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += (x[j] - y[j]) * (x[j] - y[j]);
    return sum;
}

/* The largest difference of a column. */
static double most_apart(const double *x, const double *y, size_t d) {
    double most = 0;
    for (size_t j = 0; j < d; j++) most = fmax(most, fabs(x[j] - y[j]));
    return most;
}

/* Distance of a row to its k-th nearest of others; `self` is not one of them. */
static double nearest(double (*far)(const double *, const double *, size_t), const double *row,
                      rows_view among, size_t k, size_t self) {
    double near[MOST_NEIGHBOURS];
    size_t have = 0;
    for (size_t i = 0; i < among.n; i++) {
        if (i == self) continue;
        const double at = far(row, among.x + i * among.d, among.d);
        if (have == k && !(at < near[k - 1])) continue;
        size_t place = have < k ? have++ : k - 1;
        for (; place > 0 && near[place - 1] > at; place--) near[place] = near[place - 1];
        near[place] = at;
    }
    return have > 0 ? near[have - 1] : 0;
}

typedef struct asking {
    rows_view num, den;
    size_t dx;
    double *term; /* of each numerator row */
} asking;

static void ask_kl(void *arg, size_t i, int worker) {
    (void)worker;
    const asking *a = arg;
    const double *row = a->num.x + i * a->num.d;
    const double other = nearest(square_distance, row, a->den, KL_NEIGHBOURS, a->den.n);
    const double own = nearest(square_distance, row, a->num, KL_NEIGHBOURS, i);
    a->term[i] = own > 0 && other > 0 ? 0.5 * (double)a->num.d * log(other / own) : 0;
}

/* Rows nearer than `reach` in some columns. */
static size_t count_near(rows_view rows, size_t i, size_t first, size_t n, double reach) {
    const double *x = rows.x + i * rows.d + first;
    size_t count = 0;
    for (size_t k = 0; k < rows.n; k++)
        count += k != i && most_apart(x, rows.x + k * rows.d + first, n) < reach;
    return count;
}

static void ask_mi(void *arg, size_t i, int worker) {
    (void)worker;
    const asking *a = arg;
    const rows_view rows = a->num;
    const double reach = nearest(most_apart, rows.x + i * rows.d, rows, MI_NEIGHBOURS, i);
    const size_t x = count_near(rows, i, 0, a->dx, reach);
    const size_t y = count_near(rows, i, a->dx, rows.d - a->dx, reach);
    a->term[i] = -n2_digamma((double)x + 1) - n2_digamma((double)y + 1);
}

/* Copies of rows with columns of variance 1, both samples counting the same. */
static void standardise(double *x, size_t n, double *y, size_t m, size_t d) {
    for (size_t j = 0; j < d; j++) {
        double sum = 0, square = 0;
        for (size_t i = 0; i < n + m; i++) {
            const double v = i < n ? x[i * d + j] : y[(i - n) * d + j];
            sum += v;
            square += v * v;
        }
        const double mean = sum / (double)(n + m), var = square / (double)(n + m) - mean * mean;
        const double scale = var > 0 ? 1 / sqrt(var) : 0;
        for (size_t i = 0; i < n + m; i++) {
            double *v = i < n ? &x[i * d + j] : &y[(i - n) * d + j];
            *v = (*v - mean) * scale;
        }
    }
}

static double mean_of(const double *x, size_t n) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, x[i]);
    return n2_sum_value(&sum) / (double)n;
}

static n2ce_status ask(n2ce_ctx *ctx, const asking *a, double *out) {
    const bool joint = a->dx > 0;
    asking job = *a;
    N2_TRY(n2_parallel_for(ctx, a->num.n, joint ? ask_mi : ask_kl, &job));
    const double n = (double)a->num.n, mean = mean_of(a->term, a->num.n);
    *out = joint ? mean + n2_digamma(MI_NEIGHBOURS) + n2_digamma(n)
                 : mean + log((double)a->den.n / (n - 1));
    return n2_cancelled(ctx) ? N2CE_ECANCELED : N2CE_OK;
}

n2ce_status n2_peer_neighbours(n2ce_ctx *ctx, const n2_peer_rows *rows, double *out) {
    const size_t d = rows->d, n = at_most(rows->n_num, MOST_ROWS);
    const size_t m = rows->dx ? 0 : at_most(rows->n_den, MOST_ROWS);
    double *x = n2_alloc(ctx, (n + m) * d + n, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    double *y = x + n * d;
    memcpy(x, rows->num, n * d * sizeof *x);
    if (m > 0) memcpy(y, rows->den, m * d * sizeof *x);
    standardise(x, n, y, m, d);
    const asking a = {{x, n, d}, {y, m, d}, rows->dx, y + m * d};
    const n2ce_status status = ask(ctx, &a, out);
    n2_free(ctx, x);
    return status;
}

/* ---- a classifier -------------------------------------------------------- */

/* Row i of both samples one after the other; of a joint sample x with the y half a sample on. */
static void write_row(const n2_peer_rows *r, size_t i, double *to) {
    const size_t d = r->d;
    if (i < r->n_num || !r->dx) {
        const double *from = i < r->n_num ? r->num + i * d : r->den + (i - r->n_num) * d;
        memcpy(to, from, d * sizeof *to);
        return;
    }
    const size_t at = i - r->n_num, other = (at + r->n_num / 2 + 1) % r->n_num;
    memcpy(to, r->num + at * d, r->dx * sizeof *to);
    memcpy(to + r->dx, r->num + other * d + r->dx, (d - r->dx) * sizeof *to);
}

/* Learns from n rows of d columns and their labels, and says the log odds of others. */
typedef n2ce_status classifier(n2ce_ctx *ctx, const double *x, const double *label, size_t n,
                               size_t d, const double *at, size_t n_at, double *odds);

typedef struct labelled {
    classifier *by;
    double *x, *label;   /* of the rows that are learned from */
    double *held, *odds; /* of the numerator's held-out ones */
} labelled;

/* Learns from all rows but every fifth, and adds up log odds of the numerator's that it has not
 * seen. */
static n2ce_status ask_fold(n2ce_ctx *ctx, const n2_peer_rows *r, size_t fold, const labelled *to,
                            double *sum) {
    const size_t d = r->d, m = r->dx ? r->n_num : r->n_den;
    size_t n = 0, held = 0;
    for (size_t i = 0; i < r->n_num + m; i++) {
        if (i % FOLDS != fold) {
            write_row(r, i, to->x + n * d);
            to->label[n++] = i < r->n_num;
        } else if (i < r->n_num) {
            write_row(r, i, to->held + held++ * d);
        }
    }
    N2_TRY(to->by(ctx, to->x, to->label, n, d, to->held, held, to->odds));
    for (size_t i = 0; i < held; i++) *sum += to->odds[i];
    return N2CE_OK;
}

static n2ce_status ask_classifier(n2ce_ctx *ctx, classifier *by, const n2_peer_rows *rows,
                                  double *out) {
    const size_t d = rows->d, m = rows->dx ? rows->n_num : rows->n_den, all = rows->n_num + m;
    double *x = n2_alloc(ctx, all * (d + 1) + rows->n_num * (d + 1), sizeof *x), sum = 0;
    if (!x) return N2CE_ENOMEM;
    double *held = x + all * (d + 1);
    const labelled to = {by, x, x + all * d, held, held + rows->n_num * d};
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < FOLDS && status == N2CE_OK; k++)
        status = ask_fold(ctx, rows, k, &to, &sum);
    n2_free(ctx, x);
    *out = sum / (double)rows->n_num + log((double)m / (double)rows->n_num);
    return status;
}

static n2ce_status ask_trees(n2ce_ctx *ctx, const double *x, const double *label, size_t n,
                             size_t d, const double *at, size_t n_at, double *odds) {
    n2_boosting *trees;
    N2_TRY(n2_boosting_fit(ctx, &(n2_boosting_options){.loss = N2_BOOSTING_LOGISTIC}, x, label, n,
                           d, &trees));
    n2_boosting_predict(trees, at, n_at, odds);
    n2_boosting_free(trees);
    return N2CE_OK;
}

n2ce_status n2_peer_boosting(n2ce_ctx *ctx, const n2_peer_rows *rows, double *out) {
    return ask_classifier(ctx, ask_trees, rows, out);
}

n2ce_status n2_peer_mlp(n2ce_ctx *ctx, const n2_peer_rows *rows, double *out) {
    return ask_classifier(ctx, n2_small_net_odds, rows, out);
}
