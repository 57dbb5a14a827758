#include "explain.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { DEN = 0, NUM = 1 };

/* ---- pairs of rows ------------------------------------------------------- */

/* What is looked at of one fold, and the differences that are made of it. */
typedef struct explainer {
    n2ce_ctx *ctx;
    const n2_explain_data *data;
    n2_explanation *out;
    size_t d, columns;
    size_t *first; /* feature of each column, and the end */
    size_t pairs;  /* a fold, at most */
    /* of the fold at hand */
    size_t fold, n;       /* pairs of it */
    double *rows;         /* n x 2 x d: the denominator's and the numerator's row */
    double *change;       /* n x columns x 2: how exchanging the column raises the log ratio */
    double *turned;       /* d x d: the base's basis, transposed */
    double *ab;           /* a, b of the base: 2 d numbers */
    double *u;            /* n x 2 x d: rows along the directions */
    double *sum, *square; /* columns x 2, over the folds so far */
} explainer;

/* Multiplications that a glance may cost, and what an exchange costs the parts. */
static const double BASE_WORK = 4e9, NET_WORK = 3e10;

static size_t count_pairs(const n2_explain_data *data, size_t columns) {
    enum { MOST = 1000, LEAST = 32 };
    const double d = (double)data->num.d, c = (double)columns, w = (double)data->shapes->width;
    const double blocks = (double)data->shapes->blocks, stages = (double)data->shapes->stages;
    const double net = 2 * d * d + stages * w * (d + (3 + blocks) * w);
    double most = BASE_WORK / (6 * c * d + 2 * d * d);
    if (data->critics) most = fmin(most, NET_WORK / (2 * c * net));
    if (data->smooths)
        most = fmin(most, BASE_WORK / (2 * c * d * (double)data->smooth[0]->centres));
    if (data->kernel) most = fmin(most, BASE_WORK / (2 * c * d * (double)data->kernel->centres));
    return most < LEAST ? LEAST : most > MOST ? MOST : (size_t)most;
}

static double *row_of(const explainer *e, size_t pair, size_t side) {
    return e->rows + (2 * pair + side) * e->d;
}

static double *change_of(const explainer *e, size_t pair, size_t column) {
    return e->change + 2 * (pair * e->columns + column);
}

/* The first rows of the fold: rows are in random order. With dx the denominator's row is the x of
 * one later row and the y of another. */
static void take_pairs(explainer *e, size_t fold) {
    const n2_explain_data *data = e->data;
    const size_t d = e->d, dx = data->dx, folds = data->folds;
    const n2_rows_view den = dx ? data->num : data->den;
    const size_t i = data->num.n * fold / folds, n = data->num.n * (fold + 1) / folds - i;
    const size_t j = den.n * fold / folds, m = den.n * (fold + 1) / folds - j;
    e->fold = fold;
    e->n = n < m ? n : m;
    if (e->n > e->pairs) e->n = e->pairs;
    for (size_t p = 0; p < e->n; p++) {
        const double *x = den.x + (j + (dx ? (p + 1) % m : p)) * d;
        const double *y = den.x + (j + (dx ? (p + 2) % m : p)) * d;
        memcpy(row_of(e, p, NUM), data->num.x + (i + p) * d, d * sizeof *x);
        memcpy(row_of(e, p, DEN), x, dx * sizeof *x);
        memcpy(row_of(e, p, DEN) + dx, y + dx, (d - dx) * sizeof *x);
    }
    memset(e->change, 0, 2 * e->n * e->columns * sizeof *e->change);
}

/* ---- by the Gaussian part ------------------------------------------------ */

/* sum_i a_i u_i^2 + b_i u_i changes with u by v. */
static double quadratic_change(const double *ab, const double *u, const double *v, size_t d) {
    const double *a = ab, *b = ab + d;
    double sum = 0;
    for (size_t i = 0; i < d; i++) sum += (a[i] * (2 * u[i] + v[i]) + b[i]) * v[i];
    return sum;
}

/* Rows along the directions: a row of u is a sum over the columns of the basis. */
static void turn_row(const explainer *e, const double *centre, const double *x, double *u) {
    const size_t d = e->d;
    memset(u, 0, d * sizeof *u);
    for (size_t j = 0; j < d; j++)
        for (size_t i = 0; i < d; i++) u[i] += (x[j] - centre[j]) * e->turned[j * d + i];
}

/* Exchanging a column moves the rows of a pair by the same step, in opposite directions. */
static void base_of_pair(void *arg, size_t p, int worker) {
    (void)worker;
    const explainer *e = arg;
    const size_t d = e->d;
    const n2_gauss *base = e->data->base[e->fold];
    const double *num = row_of(e, p, NUM), *den = row_of(e, p, DEN);
    double *u_den = e->u + 2 * p * d, *u_num = u_den + d;
    double *v = e->u + (2 * e->pairs + 2 * p) * d, *back = v + d;
    turn_row(e, base->centre, den, u_den);
    turn_row(e, base->centre, num, u_num);
    for (size_t c = 0; c < e->columns; c++) {
        if (e->first[c] == e->first[c + 1]) continue;
        memset(v, 0, d * sizeof *v);
        for (size_t j = e->first[c]; j < e->first[c + 1]; j++)
            for (size_t i = 0; i < d; i++) v[i] += (den[j] - num[j]) * e->turned[j * d + i];
        for (size_t i = 0; i < d; i++) back[i] = -v[i];
        change_of(e, p, c)[NUM] += quadratic_change(e->ab, u_num, v, d);
        change_of(e, p, c)[DEN] += quadratic_change(e->ab, u_den, back, d);
    }
}

static void add_gaussian_stages(const explainer *e, const n2_gauss *base) {
    const double *alpha = e->data->alpha;
    const size_t d = e->d;
    double *a = e->u + 2 * e->pairs * d, *b = a + d, constant; /* where steps were */
    for (size_t k = 0; k < e->out->stages; k++) {
        double sum = 0;
        n2_gauss_waymark_ratio(base, alpha[k + 1], alpha[k], a, b, &constant);
        for (size_t p = 0; p < e->n; p++) {
            const double *u = e->u + (2 * p + NUM) * d;
            for (size_t i = 0; i < d; i++) sum += (a[i] * u[i] + b[i]) * u[i];
        }
        e->out->stage[k].gaussian += e->data->blend->weight[0] * (sum + (double)e->n * constant);
    }
}

static n2ce_status add_base(explainer *e) {
    const n2_gauss *base = e->data->base[e->fold];
    double constant;
    if (!base) return N2CE_OK;
    n2_gauss_waymark_ratio(base, 0, 1, e->ab, e->ab + e->d, &constant);
    for (size_t i = 0; i < 2 * e->d; i++) e->ab[i] *= e->data->blend->weight[0];
    for (size_t i = 0; i < e->d; i++)
        for (size_t j = 0; j < e->d; j++) e->turned[j * e->d + i] = base->basis[i * e->d + j];
    N2_TRY(n2_parallel_for(e->ctx, e->n, base_of_pair, e));
    add_gaussian_stages(e, base);
    return N2CE_OK;
}

/* ---- by what was learned ------------------------------------------------- */

/* Rows that are scored together: of exchange 0, which changes nothing, and of columns 1, 2, .. */
enum { AT_ONCE = 4096 };

typedef struct exchange_job {
    const explainer *e;
    size_t first;
    double *x;
} exchange_job;

static void write_exchanged(void *arg, size_t item, int worker) {
    (void)worker;
    const exchange_job *job = arg;
    const explainer *e = job->e;
    const size_t at = job->first + item, exchange = at / (2 * e->n), pair = at / 2 % e->n;
    double *x = job->x + item * e->d;
    memcpy(x, row_of(e, pair, at % 2), e->d * sizeof *x);
    if (exchange == 0) return;
    const size_t first = e->first[exchange - 1], end = e->first[exchange];
    memcpy(x + first, row_of(e, pair, !(at % 2)) + first, (end - first) * sizeof *x);
}

/* f + weight times what the fold's trees say. */
static n2ce_status add_trees(const explainer *e, double weight, const double *x, size_t n,
                             double *f) {
    const n2_boosting *trees = e->data->trees[e->fold];
    double *part = n2_alloc(e->ctx, n, sizeof *part);
    if (!part) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) part[i] = 0;
    n2_boosting_add(trees, 0, trees->trees, x, n, part);
    for (size_t i = 0; i < n; i++) f[i] += weight * part[i];
    n2_free(e->ctx, part);
    return N2CE_OK;
}

/* f + weight times what a smooth part (or, without one, the fold's network) says. */
static n2ce_status add_part(const explainer *e, const n2_smooth *smooth, double weight,
                            const double *x, size_t n, double *f) {
    double *part = n2_alloc(e->ctx, n, sizeof *part);
    if (!part) return N2CE_ENOMEM;
    const n2ce_status status = smooth ? n2_smooth_add(smooth, x, n, part)
                                      : n2_critic_add(e->data->critic[e->fold], x, n, part);
    for (size_t i = 0; i < n; i++) f[i] += weight * part[i];
    n2_free(e->ctx, part);
    return status;
}

static n2ce_status score_learned(const explainer *e, const double *x, size_t n, double *f) {
    const n2_explain_data *data = e->data;
    const double *weight = data->blend->weight;
    for (size_t i = 0; i < n; i++) f[i] = data->blend->constant;
    if (data->kernel) n2_kernel_ratio_score(data->kernel, x, n, f);
    if (e->fold < data->smooths) N2_TRY(add_part(e, data->smooth[e->fold], weight[1], x, n, f));
    if (e->fold < data->critics) N2_TRY(add_part(e, NULL, weight[2], x, n, f));
    if (e->fold < data->forests) N2_TRY(add_trees(e, weight[3], x, n, f));
    return n2_cancelled(e->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

/* Scores before the exchange are taken off as soon as those after it are there. */
static void take_changes(const explainer *e, size_t first, size_t n, const double *f,
                         double *before) {
    for (size_t i = 0; i < n; i++) {
        const size_t at = first + i, exchange = at / (2 * e->n), of_pair = at % (2 * e->n);
        if (exchange == 0)
            before[of_pair] = f[i];
        else
            change_of(e, of_pair / 2, exchange - 1)[at % 2] += f[i] - before[of_pair];
    }
}

static n2ce_status add_exchanges(const explainer *e) {
    const size_t all = 2 * e->n * (e->columns + 1);
    double *x = n2_alloc(e->ctx, (e->d + 1) * AT_ONCE + 2 * e->n, sizeof *x);
    double *f = x + e->d * AT_ONCE, *before = f + AT_ONCE;
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    for (size_t first = 0; first < all && status == N2CE_OK; first += AT_ONCE) {
        const size_t n = all - first < AT_ONCE ? all - first : AT_ONCE;
        exchange_job job = {e, first, x};
        status = n2_parallel_for(e->ctx, n, write_exchanged, &job);
        if (status == N2CE_OK) status = score_learned(e, x, n, f);
        if (status == N2CE_OK) take_changes(e, first, n, f, before);
    }
    n2_free(e->ctx, x);
    return status;
}

/* Of several stages only networks say what each adds. */
static n2ce_status add_learned_stages(const explainer *e) {
    const size_t d = e->d, stages = e->out->stages;
    double *x = n2_alloc(e->ctx, e->n * (d + stages), sizeof *x), *g = x + e->n * d;
    if (!x) return N2CE_ENOMEM;
    for (size_t p = 0; p < e->n; p++) memcpy(x + p * d, row_of(e, p, NUM), d * sizeof *x);
    const n2ce_status status = stages == 1 ? score_learned(e, x, e->n, g)
                                           : n2_critic_stages(e->data->critic[e->fold], x, e->n, g);
    for (size_t i = 0; i < e->n * stages && status == N2CE_OK; i++)
        e->out->stage[i % stages].learned += g[i];
    n2_free(e->ctx, x);
    return status;
}

static n2ce_status add_learned(const explainer *e) {
    const n2_explain_data *data = e->data;
    const bool parts =
        e->fold < data->critics || e->fold < data->smooths || e->fold < data->forests;
    if (parts || data->kernel) N2_TRY(add_exchanges(e));
    return parts ? add_learned_stages(e) : N2CE_OK;
}

/* ---- all folds ------------------------------------------------------------ */

static void add_up(explainer *e) {
    for (size_t p = 0; p < e->n; p++)
        for (size_t i = 0; i < 2 * e->columns; i++) {
            const double x = change_of(e, p, 0)[i];
            e->sum[i] += x;
            e->square[i] += x * x;
        }
    e->out->pairs += e->n;
}

static n2ce_status explain_folds(explainer *e) {
    for (size_t fold = 0; fold < e->data->folds; fold++) {
        take_pairs(e, fold);
        if (e->n == 0) continue;
        N2_TRY(add_base(e));
        N2_TRY(add_learned(e));
        add_up(e);
    }
    return N2CE_OK;
}

static double error_of(double sum, double square, double n) {
    const double var = square / n - sum / n * (sum / n);
    return n > 1 && var > 0 ? sqrt(var / (n - 1)) : 0;
}

static void conclude(const explainer *e) {
    const double n = (double)e->out->pairs;
    for (size_t c = 0; c < e->columns; c++) {
        const double *sum = e->sum + 2 * c, *square = e->square + 2 * c;
        e->out->column[c] = (n2_column_part){
            .num = -sum[NUM] / n,
            .num_error = error_of(sum[NUM], square[NUM], n),
            .den = sum[DEN] / n,
            .den_error = error_of(sum[DEN], square[DEN], n),
        };
    }
    for (size_t k = 0; k < e->out->stages; k++) {
        e->out->stage[k].gaussian /= n;
        e->out->stage[k].learned /= n;
    }
}

static n2ce_status explainer_fill(explainer *e) {
    const n2_explain_data *data = e->data;
    n2_explanation *out = e->out;
    const size_t d = e->d, c = e->columns, n = e->pairs;
    const bool base = data->base[0];
    *out = (n2_explanation){.ctx = e->ctx, .columns = c};
    out->stages = data->kernel ? 0 : data->shapes->stages;
    out->column = n2_alloc(e->ctx, c, sizeof *out->column);
    out->stage = n2_alloc(e->ctx, out->stages + 1, sizeof *out->stage);
    e->first = n2_alloc(e->ctx, c + 1, sizeof *e->first);
    e->rows = n2_alloc(e->ctx, 2 * n * d, sizeof(double));
    e->change = n2_alloc(e->ctx, 2 * n * c, sizeof(double));
    e->turned = n2_alloc(e->ctx, base ? d * d + 2 * d : 1, sizeof(double));
    e->u = n2_alloc(e->ctx, base ? 4 * n * d : 1, sizeof(double));
    e->sum = n2_alloc(e->ctx, 4 * c, sizeof(double));
    if (!out->column || !out->stage || !e->first || !e->rows || !e->change || !e->turned || !e->u ||
        !e->sum)
        return N2CE_ENOMEM;
    e->square = e->sum + 2 * c;
    e->ab = base ? e->turned + d * d : NULL;
    for (size_t k = 0; k <= c; k++) e->first[k] = n2_features_width(data->features, k);
    return N2CE_OK;
}

static void explainer_free(explainer *e) {
    void *const memory[] = {e->first, e->rows, e->change, e->turned, e->u, e->sum};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) n2_free(e->ctx, memory[i]);
}

void n2_explanation_free(n2_explanation *e) {
    if (!e->ctx) return;
    n2_free(e->ctx, e->column);
    n2_free(e->ctx, e->stage);
    *e = (n2_explanation){0};
}

n2ce_status n2_explain(n2ce_ctx *ctx, const n2_explain_data *data, n2_explanation *out) {
    const size_t columns = data->features->cols, folds = data->folds;
    explainer e = {.ctx = ctx, .data = data, .out = out, .d = data->num.d, .columns = columns};
    e.pairs = (count_pairs(data, columns) + folds - 1) / folds;
    n2ce_status status = explainer_fill(&e);
    if (status == N2CE_OK) status = explain_folds(&e);
    if (status == N2CE_OK) conclude(&e);
    explainer_free(&e);
    if (status != N2CE_OK) n2_explanation_free(out);
    return status;
}
