#include "smooth.h"

#include "base/arena.h"
#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

double n2_smooth_penalty(size_t index) { return 30 * pow(10, -0.5 * (double)index); }

double n2_smooth_loss(const double *const f[2], const size_t n[2]) {
    double loss = 0;
    for (size_t side = 0; side < 2; side++) {
        n2_sum sum = {0, 0};
        for (size_t i = 0; i < n[side]; i++)
            n2_sum_add(&sum, n2_softplus(side ? -f[side][i] : f[side][i]));
        loss += n2_sum_value(&sum) / (double)n[side];
    }
    return loss;
}

/* ---- a fitted one -------------------------------------------------------- */

void n2_smooth_free(n2_smooth *s) {
    if (!s) return;
    n2_free(s->ctx, s->scale);
    n2_free(s->ctx, s->centre);
    n2_free(s->ctx, s->weight);
    n2_free(s->ctx, s->shape_weight);
    n2_free(s->ctx, s);
}

n2ce_status n2_smooth_new(n2ce_ctx *ctx, size_t d, size_t centres, const n2_shapes *shapes,
                          n2_smooth **out) {
    n2_smooth *s = *out = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_smooth){.ctx = ctx, .d = d, .centres = centres, .shapes = shapes};
    s->shape_weight = n2_alloc(ctx, shapes ? shapes->n : 1, sizeof *s->shape_weight);
    s->scale = n2_alloc(ctx, d, sizeof *s->scale);
    s->centre = n2_alloc(ctx, centres * d, sizeof *s->centre);
    s->weight = n2_alloc(ctx, centres, sizeof *s->weight);
    if (s->scale && s->centre && s->weight && s->shape_weight) return N2CE_OK;
    n2_smooth_free(s);
    *out = NULL;
    return N2CE_ENOMEM;
}

/* What a kernel is made of. */
typedef struct shape {
    size_t d;
    const double *scale;
    n2_smooth_singles singles;
} shape;

static double all_columns(const shape *k, const double *x, const double *centre) {
    double square = 0;
    for (size_t j = 0; j < k->d; j++) {
        const double step = k->scale[j] * (x[j] - centre[j]);
        square += step * step;
    }
    return exp(-0.5 * square);
}

/* Mean over columns, each alone. */
static double single_columns(const double *x, const double *centre, size_t d, double half) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += 1 / (1 + half * (x[j] - centre[j]) * (x[j] - centre[j]));
    return sum / (double)d;
}

static double kernel(const shape *k, const double *x, const double *centre) {
    const n2_smooth_singles *one = &k->singles;
    const double half = 0.5 * one->scale * one->scale;
    double value = one->share < 1 ? (1 - one->share) * all_columns(k, x, centre) : 0;
    if (!(one->share > 0)) return value;
    const size_t dx = one->dx;
    double alone = single_columns(x + dx, centre + dx, k->d - dx, half);
    if (dx > 0) alone *= single_columns(x, centre, dx, half);
    return value + one->share * alone;
}

static double by_shapes(const n2_smooth *s, const double *row) {
    double h[N2_MOST_SHAPES];
    if (!s->shapes) return 0;
    n2_shapes_at(s->shapes, row, h);
    return n2_dot(s->shape_weight, h, s->shapes->n);
}

enum { ROWS_AT_ONCE = 128 };

typedef struct adding {
    const n2_smooth *s;
    const double *x;
    size_t n;
    double *f;
} adding;

static void add_rows(void *arg, size_t item, int worker) {
    (void)worker;
    const adding *a = arg;
    const n2_smooth *s = a->s;
    const shape k = {s->d, s->scale, s->singles};
    const size_t begin = item * ROWS_AT_ONCE, left = a->n - begin;
    const size_t end = begin + (left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
    for (size_t i = begin; i < end; i++) {
        double sum = s->constant;
        for (size_t l = 0; l < s->centres; l++)
            sum += s->weight[l] * kernel(&k, a->x + i * s->d, s->centre + l * s->d);
        a->f[i] += sum + by_shapes(s, a->x + i * s->d);
    }
}

n2ce_status n2_smooth_add(const n2_smooth *s, const double *x, size_t n, double *f) {
    adding a = {s, x, n, f};
    return n2_parallel_for(s->ctx, (n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, add_rows, &a);
}

/* ---- fitting ------------------------------------------------------------- */

/* Kernels between rows and centres, K, times L'^-1 for the factor L of those between centres, so
 * that the penalty is a plain sum of squares; then functions of single columns; the last used
 * column is 1, for the constant. Columns are padded to whole tiles with zeros. */
typedef struct design {
    size_t rows, padded; /* to whole tiles */
    double *a;           /* padded x width */
    double *f, *base;    /* rows: the log ratio, and what it is added to */
} design;

typedef struct solver {
    n2_smooth_path *path;
    n2_arena arena;
    size_t centres, shapes, width; /* centres + shapes + 1, padded */
    shape shape;
    double *centre; /* centres x d */
    double *back;   /* L'^-1, width x width, zeros beyond */
    design train, held;
    size_t n[2], held_n[2];
    double *weighted; /* rows of a block of the design, by their curvature */
    double *hessian, *gradient, *coef, *step;
    double *square, *inverse, *kernels; /* on the way */
    double *found;                      /* coefficients of each penalty */
} solver;

static size_t whole_tiles(size_t n) { return (n + N2_TILE - 1) / N2_TILE * N2_TILE; }

static size_t total(const size_t n[2]) { return n[0] + n[1]; }

/* Half of the centres are the numerator's first rows, half the denominator's. */
static size_t centres_of(const solver *s, size_t side) {
    const size_t half = s->path->centres / 2, n = s->path->train.n[side];
    return n < half ? n : half;
}

static void choose_centres(solver *s) {
    const size_t d = s->path->d;
    double *at = s->centre;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < centres_of(s, side); i++, at += d)
            memcpy(at, s->path->train.x[side] + i * d, d * sizeof *at);
}

/* Rows that are alike make the kernels' matrix singular: its diagonal is raised a little. */
static const double RAISED = 1e-6;

static bool factor_centres(solver *s) {
    const size_t m = s->centres, d = s->path->d;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < i; j++)
            s->square[i * m + j] = kernel(&s->shape, s->centre + i * d, s->centre + j * d);
        s->square[i * m + i] = 1 + RAISED;
    }
    if (!n2_cholesky(s->square, m)) return false;
    n2_lower_inverse(s->square, m, s->inverse);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++) s->back[j * s->width + i] = s->inverse[i * m + j];
    for (size_t i = m; i <= m + s->shapes; i++) s->back[i * s->width + i] = 1;
    return true;
}

/* Kernels of a row with the centres, functions of its columns, and 1. */
static void fill_kernels(const solver *s, const double *x, double *out) {
    const size_t d = s->path->d;
    for (size_t l = 0; l < s->centres; l++) out[l] = kernel(&s->shape, x, s->centre + l * d);
    if (s->shapes > 0) n2_shapes_at(s->path->shapes.of, x, out + s->centres);
    out[s->centres + s->shapes] = 1;
}

/* out (a tile of rows x width) = kernels back, back being upper triangular. */
static void times_back(const solver *s, double *out) {
    double tile[N2_TILE * N2_TILE];
    const size_t w = s->width;
    for (size_t j = 0; j < w; j += N2_TILE) {
        n2_tile_product(s->kernels, w, 1, s->back + j, w, j + N2_TILE, tile);
        for (size_t r = 0; r < N2_TILE; r++)
            memcpy(out + r * w + j, tile + r * N2_TILE, N2_TILE * sizeof *tile);
    }
}

static void fill_design(const solver *s, const n2_smooth_rows *rows, const design *out) {
    const size_t d = s->path->d, w = s->width;
    for (size_t begin = 0; begin < out->rows; begin += N2_TILE) {
        memset(s->kernels, 0, N2_TILE * w * sizeof *s->kernels);
        for (size_t r = 0; r < N2_TILE && begin + r < out->rows; r++) {
            const size_t side = begin + r >= rows->n[0], i = begin + r - (side ? rows->n[0] : 0);
            fill_kernels(s, rows->x[side] + i * d, s->kernels + r * w);
            out->base[begin + r] = s->shapes > 0 ? 0 : rows->base[side][i];
        }
        times_back(s, out->a + begin * w);
    }
}

static void evaluate(const solver *s, const design *on) {
    for (size_t i = 0; i < on->rows; i++)
        on->f[i] = on->base[i] + n2_dot(on->a + i * s->width, s->coef, s->width);
}

enum { BLOCK = 64 }; /* rows of a design whose weighted copies fit into a cache */

/* Adds a block's share of A' W A, its lower tiles. */
static void add_gram(const solver *s, const double *a, size_t rows) {
    double tile[N2_TILE * N2_TILE];
    const size_t w = s->width;
    for (size_t i = 0; i < w; i += N2_TILE)
        for (size_t j = 0; j <= i; j += N2_TILE) {
            n2_tile_product(s->weighted + i, 1, w, a + j, w, rows, tile);
            for (size_t r = 0; r < N2_TILE; r++)
                for (size_t c = 0; c < N2_TILE; c++)
                    s->hessian[(i + r) * w + j + c] += tile[r * N2_TILE + c];
        }
}

/* Gradient and Hessian of the loss, a row counting 1/2n of its side's n. */
static void differentiate(solver *s) {
    const size_t w = s->width;
    memset(s->hessian, 0, w * w * sizeof *s->hessian);
    memset(s->gradient, 0, w * sizeof *s->gradient);
    for (size_t begin = 0; begin < s->train.rows; begin += BLOCK) {
        const size_t left = s->train.rows - begin, n = left < BLOCK ? left : BLOCK;
        for (size_t r = 0; r < n; r++) {
            const size_t i = begin + r, side = i >= s->n[0];
            const double *a = s->train.a + i * w, p = n2_sigmoid(s->train.f[i]);
            const double share = 0.5 / (double)s->n[side], slope = share * (p - (double)side);
            const double curve = share * fmax(p * (1 - p), 1e-5);
            for (size_t c = 0; c < w; c++) {
                s->gradient[c] += slope * a[c];
                s->weighted[r * w + c] = curve * a[c];
            }
        }
        add_gram(s, s->train.a + begin * w, n);
    }
}

/* The penalty of kernels, the ridge of functions; the constant has next to none. */
static double penalty_at(const solver *s, size_t c, double penalty) {
    if (c == s->centres + s->shapes) return 1e-8;
    return c >= s->centres && c < s->centres + s->shapes ? s->path->shapes.ridge / (double)s->n[1]
                                                         : penalty;
}

/* A Newton step, shortened where it would move some log ratio by more than 4; false if there is
 * none to be found. */
static bool newton_step(solver *s, double penalty, double *moved) {
    const size_t w = s->width;
    differentiate(s);
    for (size_t c = 0; c < w; c++) {
        s->step[c] = s->gradient[c] + penalty_at(s, c, penalty) * s->coef[c];
        s->hessian[c * w + c] += penalty_at(s, c, penalty);
    }
    if (!n2_cholesky(s->hessian, w)) return false;
    n2_cholesky_solve(s->hessian, w, s->step, 1);
    *moved = 0;
    for (size_t i = 0; i < s->train.rows; i++)
        *moved = fmax(*moved, fabs(n2_dot(s->train.a + i * w, s->step, w)));
    const double length = *moved > 4 ? 4 / *moved : 1;
    for (size_t c = 0; c < w; c++) s->coef[c] -= length * s->step[c];
    return isfinite(*moved);
}

static bool minimise(solver *s, double penalty) {
    for (size_t k = 0; k < s->path->newton; k++) {
        double moved;
        evaluate(s, &s->train);
        if (!newton_step(s, penalty, &moved)) return false;
        if (moved < s->path->enough) break;
    }
    return true;
}

static double held_loss(const solver *s) {
    evaluate(s, &s->held);
    const double *const f[2] = {s->held.f, s->held.f + s->held_n[0]};
    return n2_smooth_loss(f, s->held_n);
}

/* All fits of a path. Where there is none, as between rows that overflow, the loss stays infinite.
 */
static void run_path(void *arg, size_t item, int worker) {
    (void)worker;
    solver *s = (solver *)arg + item;
    n2_smooth_path *path = s->path;
    choose_centres(s);
    if (!factor_centres(s)) return;
    fill_design(s, &path->train, &s->train);
    fill_design(s, &path->held, &s->held);
    for (size_t i = 0; i < path->n; i++) {
        const double penalty = n2_smooth_penalty(path->first + i) / (double)s->n[1];
        if (!minimise(s, penalty)) return;
        const double loss = held_loss(s);
        if (isfinite(loss)) path->loss[i] = loss;
        memcpy(s->found + i * s->width, s->coef, s->width * sizeof *s->coef);
    }
}

/* ---- memory, and several at once ----------------------------------------- */

static double *room(solver *s, size_t rows, size_t cols) {
    return n2_arena_alloc(&s->arena, rows * cols, sizeof(double));
}

static bool room_for_design(solver *s, const size_t n[2], design *out) {
    *out = (design){.rows = total(n), .padded = whole_tiles(total(n))};
    out->a = room(s, out->padded, s->width);
    out->f = room(s, out->rows, 1);
    out->base = room(s, out->rows, 1);
    return out->a && out->f && out->base;
}

static n2ce_status solver_new(n2ce_ctx *ctx, n2_smooth_path *path, solver *s) {
    *s = (solver){
        .path = path, .arena = n2_arena_new(ctx), .shape = {path->d, path->scale, path->singles}};
    memcpy(s->n, path->train.n, sizeof s->n);
    memcpy(s->held_n, path->held.n, sizeof s->held_n);
    s->centres = centres_of(s, 0) + centres_of(s, 1);
    s->shapes = path->shapes.of ? path->shapes.of->n : 0;
    const size_t m = s->centres, w = s->width = whole_tiles(m + s->shapes + 1);
    const bool designs =
        room_for_design(s, s->n, &s->train) && room_for_design(s, s->held_n, &s->held);
    s->centre = room(s, m, path->d);
    s->square = room(s, m, m);
    s->inverse = room(s, m, m);
    s->back = room(s, w, w);
    s->kernels = room(s, N2_TILE, w);
    s->weighted = room(s, BLOCK, w);
    s->hessian = room(s, w, w);
    s->gradient = room(s, 1, w);
    s->coef = room(s, 1, w);
    s->step = room(s, 1, w);
    s->found = room(s, path->n, w);
    const bool all = designs && s->centre && s->square && s->inverse && s->back && s->kernels &&
                     s->weighted && s->hessian && s->gradient && s->coef && s->step && s->found;
    return all ? N2CE_OK : N2CE_ENOMEM;
}

/* The weights of kernels that the coefficients stand for. */
static n2ce_status take_fit(n2ce_ctx *ctx, const solver *s, size_t i) {
    const size_t d = s->path->d;
    const double *coef = s->found + i * s->width;
    n2_smooth *out;
    N2_TRY(n2_smooth_new(ctx, d, s->centres, s->path->shapes.of, &out));
    out->singles = s->path->singles;
    memcpy(out->scale, s->path->scale, d * sizeof(double));
    memcpy(out->centre, s->centre, s->centres * d * sizeof(double));
    for (size_t l = 0; l < s->centres; l++)
        out->weight[l] = n2_dot(s->back + l * s->width, coef, s->centres);
    if (s->shapes > 0) memcpy(out->shape_weight, coef + s->centres, s->shapes * sizeof *coef);
    out->constant = coef[s->centres + s->shapes];
    s->path->fit[i] = out;
    return N2CE_OK;
}

void n2_smooth_drop(n2_smooth_path *path, size_t n) {
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < path[k].n; i++) {
            n2_smooth_free(path[k].fit[i]);
            path[k].fit[i] = NULL;
        }
}

static n2ce_status take_fits(n2ce_ctx *ctx, const solver *s, size_t n) {
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < s[k].path->n; i++)
            if (isfinite(s[k].path->loss[i])) N2_TRY(take_fit(ctx, &s[k], i));
    return N2CE_OK;
}

n2ce_status n2_smooth_paths(n2ce_ctx *ctx, n2_smooth_path *path, size_t n, bool keep) {
    solver *s = n2_alloc(ctx, n, sizeof *s);
    n2ce_status status = s ? N2CE_OK : N2CE_ENOMEM;
    size_t made = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < N2_SMOOTH_PATH; i++) {
            path[k].loss[i] = N2_INFINITY;
            path[k].fit[i] = NULL;
        }
    for (; made < n && status == N2CE_OK; made++) status = solver_new(ctx, &path[made], &s[made]);
    if (status == N2CE_OK) status = n2_parallel_for(ctx, n, run_path, s);
    if (status == N2CE_OK && keep) status = take_fits(ctx, s, n);
    for (size_t k = 0; k < made; k++) n2_arena_free(&s[k].arena);
    n2_free(ctx, s);
    if (status == N2CE_OK && n2_cancelled(ctx)) status = N2CE_ECANCELED;
    if (status != N2CE_OK) n2_smooth_drop(path, n);
    return status;
}
