#include "shapes.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "directions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTERMOST = 2, FEWEST = 20 };

static const double NEVER = 1e300; /* the scale of a function that is the same for all rows */

/* ---- at a row ------------------------------------------------------------ */

static size_t of_real(double t, double *out) {
    const double square = t * t, root = sqrt(1 + square);
    out[0] = t;
    out[1] = root;
    out[2] = log1p(square);
    out[3] = t / root;
    return 4;
}

static size_t of_linear(double t, double *out) {
    out[0] = t;
    out[1] = t * t;
    out[2] = log1p(t * t);
    return 3;
}

static size_t of_positive(double u, double *out) {
    const double log_u = log(u);
    out[0] = u;
    out[1] = log_u;
    out[2] = log_u * log_u;
    out[3] = u * u;
    return 4;
}

static size_t of_unit(double x, double *out) {
    out[0] = x;
    out[1] = log(x);
    out[2] = log1p(-x);
    return 3;
}

static size_t of_count(double x, double u, double *out) {
    out[0] = u;
    out[1] = lgamma(1 + x);
    out[2] = log1p(x);
    out[3] = x == 0;
    return 4;
}

static size_t of_zeros(double u, double *out) {
    out[0] = u;
    out[1] = log1p(u);
    out[2] = u > 0 ? log(u) : 0;
    out[3] = u == 0;
    return 4;
}

static double held(const n2_shape_column *c, double x) {
    return x < c->least ? c->least : x > c->most ? c->most : x;
}

/* Whole numbers are whole again after the way there and back. */
static double back_of(const n2_shape_column *c, double z) {
    const double x = n2_feature_back(c->feature, z), whole = nearbyint(x);
    const double slack = 1e-11 * (fabs(c->feature->mean) + c->feature->scale);
    return fabs(x - whole) < slack ? whole : x;
}

/* All functions of one feature; returns how many. */
static size_t of_column(const n2_shape_column *c, double z, double *out) {
    *out = z;
    if (c->kind == N2_SHAPE_NONE) return 1;
    const double x = held(c, back_of(c, z)), u = (x - c->centre) / c->scale;
    switch (c->kind) {
    case N2_SHAPE_NONE:
        break;
    case N2_SHAPE_LINEAR:
        return of_linear(u, out);
    case N2_SHAPE_REAL:
        return of_real(u, out);
    case N2_SHAPE_POSITIVE:
        return of_positive(u, out);
    case N2_SHAPE_UNIT:
        return of_unit(x, out);
    case N2_SHAPE_COUNT:
        return of_count(x, u, out);
    case N2_SHAPE_ZEROS:
        return of_zeros(u, out);
    }
    return 1;
}

static size_t count_of(const n2_shape_column *c) {
    static const size_t count[] = {
        [N2_SHAPE_NONE] = 1, [N2_SHAPE_LINEAR] = 3, [N2_SHAPE_REAL] = 4, [N2_SHAPE_POSITIVE] = 4,
        [N2_SHAPE_UNIT] = 3, [N2_SHAPE_COUNT] = 4,  [N2_SHAPE_ZEROS] = 4};
    return count[c->kind];
}

static size_t count_between(const n2_shapes *s, size_t begin, size_t end) {
    size_t n = 0;
    for (size_t j = begin; j < end; j++) n += count_of(&s->column[j]);
    return n;
}

/* Levels of different columns of two samples: what they are together. */
static bool are_levels(const n2_shapes *s, size_t i, size_t j) {
    const n2_shape_column *a = &s->column[i], *b = &s->column[j];
    return !s->dx && a->kind == N2_SHAPE_NONE && b->kind == N2_SHAPE_NONE && a->of != b->of;
}

static size_t count_pairs(const n2_shapes *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->d; i++)
        for (size_t j = 0; j < i; j++) n += are_levels(s, i, j);
    return n;
}

/* Columns whose first function is t. */
static bool has_place(const n2_shape_column *c) {
    return c->kind == N2_SHAPE_LINEAR || c->kind == N2_SHAPE_REAL;
}

enum { OF_DIRECTION = 4, OF_RADIUS = 3 };

/* Of columns and of pairs of levels. */
static size_t count_plain(const n2_shapes *s) {
    const size_t x = count_between(s, 0, s->dx), y = count_between(s, s->dx, s->d);
    return x + y + x * y + count_pairs(s);
}

/* Two columns have a place, and there is room. */
static bool has_radius(const n2_shapes *s) {
    size_t places = 0;
    for (size_t j = 0; j < s->d && !s->dx; j++) places += has_place(&s->column[j]);
    return places > 1 && count_plain(s) + OF_RADIUS <= N2_MOST_SHAPES;
}

size_t n2_shapes_count(const n2_shapes *s) {
    return count_plain(s) + (has_radius(s) ? OF_RADIUS : 0) + OF_DIRECTION * s->directions;
}

/* The value of a direction, by the functions of columns. */
static double along(const n2_shapes *s, size_t k, const double *of_columns) {
    const n2_shape_direction *v = &s->direction[k];
    double sum = -v->centre;
    for (size_t j = 0; j < s->d; of_columns += count_of(&s->column[j]), j++)
        sum += s->turn[k * s->d + j] * *of_columns;
    return sum < v->least ? v->least : sum > v->most ? v->most : sum;
}

static void of_direction(double t, double *out) {
    const double square = t * t;
    out[0] = square;
    out[1] = sqrt(0.1 + square);
    out[2] = log1p(square);
    out[3] = t / sqrt(1 + square);
}

/* How far from the middle of all columns that have a place. */
static void of_radius(const n2_shapes *s, const double *of_columns, double *out) {
    double square = 0;
    for (size_t j = 0; j < s->d; of_columns += count_of(&s->column[j]), j++)
        if (has_place(&s->column[j])) square += *of_columns * *of_columns;
    out[0] = sqrt(square);
    out[1] = log(0.01 + square);
    out[2] = log1p(square);
}

static void raw_at(const n2_shapes *s, const double *row, double *out) {
    size_t n = 0, x = 0;
    for (size_t j = 0; j < s->d; j++) {
        if (j == s->dx) x = n;
        n += of_column(&s->column[j], row[j], out + n);
    }
    double *product = out + n;
    for (size_t i = 0; i < x; i++)
        for (size_t j = x; j < n; j++) *product++ = out[i] * out[j];
    for (size_t i = 0; i < s->d; i++)
        for (size_t j = 0; j < i; j++)
            if (are_levels(s, i, j)) *product++ = row[i] * row[j];
    if (has_radius(s)) {
        of_radius(s, out, product);
        product += OF_RADIUS;
    }
    for (size_t k = 0; k < s->directions; k++, product += OF_DIRECTION)
        of_direction(along(s, k, out), product);
}

void n2_shapes_at(const n2_shapes *s, const double *row, double *out) {
    raw_at(s, row, out);
    for (size_t k = 0; k < s->n; k++) out[k] = (out[k] - s->mean[k]) / s->scale[k];
}

/* ---- what columns are ---------------------------------------------------- */

typedef struct values {
    const double *row[2];
    size_t n[2], d;
} values;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool are_whole(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] != floor(x[i])) return false;
    return true;
}

/* By sorted values. A positive column whose least values are far from 0 is like any other. */
static n2_shape_kind kind_of(const double *x, size_t n, double median) {
    const double least = x[0], most = x[n - 1];
    if (least < 0 || !(median > 0)) return N2_SHAPE_REAL;
    if (are_whole(x, n)) return least < 0.3 * median ? N2_SHAPE_COUNT : N2_SHAPE_REAL;
    if (least == 0) return N2_SHAPE_ZEROS;
    if (!(least < 0.3 * median)) return N2_SHAPE_REAL;
    return most < 1 && most > 0.7 ? N2_SHAPE_UNIT : N2_SHAPE_POSITIVE;
}

static void learn_column(n2_shape_column *c, const values *v, size_t j, double *x) {
    const size_t n = v->n[0] + v->n[1];
    double *at = x;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < v->n[side]; i++) *at++ = back_of(c, v->row[side][i * v->d + j]);
    qsort(x, n, sizeof *x, ascending);
    const double median = x[n / 2], spread = x[n - 1 - n / 4] - x[n / 4];
    c->kind = kind_of(x, n, median);
    c->least = x[OUTERMOST];
    c->most = x[n - 1 - OUTERMOST];
    const bool real = c->kind == N2_SHAPE_REAL;
    if (real && c->feature->kind == N2_FEATURE_LINEAR) c->kind = N2_SHAPE_LINEAR;
    c->centre = real ? median : 0;
    c->scale = real ? spread / 1.35 : median;
    if (!(c->scale > 0) || !isfinite(c->scale)) c->kind = N2_SHAPE_NONE;
}

/* Mean and standard deviation of the functions over both samples, each counting the same. Pairs of
 * a joint sample are rows with the y of the next one. */
static void measure(n2_shapes *s, const values *v, double *row, double *out) {
    double *square = out + s->n;
    memset(square, 0, s->n * sizeof *square);
    for (size_t side = 0; side < 2; side++) {
        const size_t n = s->dx ? v->n[1] : v->n[side];
        for (size_t i = 0; i < n; i++) {
            const double *x = v->row[s->dx ? 1 : side] + i * v->d;
            const double *y = s->dx && !side ? v->row[1] + (i + 1) % n * v->d : x;
            memcpy(row, x, s->dx * sizeof *x);
            memcpy(row + s->dx, y + s->dx, (s->d - s->dx) * sizeof *x);
            raw_at(s, row, out);
            for (size_t k = 0; k < s->n; k++) {
                s->mean[k] += 0.5 * out[k] / (double)n;
                square[k] += 0.5 * out[k] * out[k] / (double)n;
            }
        }
    }
    for (size_t k = 0; k < s->n; k++) {
        const double var = square[k] - s->mean[k] * s->mean[k];
        s->scale[k] = var > 1e-12 * square[k] && isfinite(var) ? sqrt(var) : NEVER;
        if (!isfinite(s->mean[k])) s->mean[k] = 0;
    }
}

/* ---- memory -------------------------------------------------------------- */

void n2_shapes_free(n2_shapes *s) {
    if (!s) return;
    n2_free(s->ctx, s->column);
    n2_free(s->ctx, s->direction);
    n2_free(s->ctx, s->turn);
    n2_free(s->ctx, s->mean);
    n2_free(s->ctx, s->scale);
    n2_free(s->ctx, s);
}

/* Which column of the table a feature is; those of levels stay without one. */
static void find_features(n2_shapes *s, const n2_features *features) {
    size_t j = 0;
    for (size_t c = 0; c < features->cols; c++) {
        const n2_feature *f = &features->column[c];
        if (f->kind == N2_FEATURE_CONSTANT) continue;
        if (f->kind == N2_FEATURE_LEVELS) {
            for (size_t k = 1; k < f->levels; k++) s->column[j++].of = c;
            continue;
        }
        s->column[j].of = c;
        s->column[j].feature = f;
        s->column[j].kind = N2_SHAPE_REAL;
        j++;
    }
}

n2ce_status n2_shapes_alloc(n2ce_ctx *ctx, const n2_features *features, size_t dx,
                            n2_shapes **out) {
    n2_shapes *s = *out = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_shapes){.ctx = ctx, .d = features->width, .dx = dx};
    s->column = n2_alloc(ctx, s->d, sizeof *s->column);
    s->mean = n2_alloc(ctx, N2_MOST_SHAPES, sizeof *s->mean);
    s->scale = n2_alloc(ctx, N2_MOST_SHAPES, sizeof *s->scale);
    if (s->column && s->mean && s->scale) {
        find_features(s, features);
        return N2CE_OK;
    }
    n2_shapes_free(s);
    *out = NULL;
    return N2CE_ENOMEM;
}

static n2ce_status learn(n2_shapes *s, const values *v) {
    const size_t n = v->n[0] + v->n[1];
    double *x = n2_alloc(s->ctx, n + s->d + 2 * N2_MOST_SHAPES, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t j = 0; j < s->d; j++)
        if (s->column[j].feature) learn_column(&s->column[j], v, j, x);
    s->n = n2_shapes_count(s);
    if (s->n <= N2_MOST_SHAPES) measure(s, v, x + n, x + n + s->d);
    n2_free(s->ctx, x);
    return N2CE_OK;
}

n2ce_status n2_shapes_new(n2ce_ctx *ctx, const n2_features *features, const double *num,
                          size_t n_num, const double *den, size_t n_den, size_t dx,
                          n2_shapes **out) {
    n2_shapes *s;
    const values v = {{den, num}, {n_den, n_num}, features->width};
    *out = NULL;
    if (features->width > N2_MOST_SHAPES || n_num + n_den < FEWEST) return N2CE_OK;
    N2_TRY(n2_shapes_alloc(ctx, features, dx, &s));
    const n2ce_status status = learn(s, &v);
    if (status == N2CE_OK && s->n <= N2_MOST_SHAPES)
        *out = s;
    else
        n2_shapes_free(s);
    return status;
}

/* ---- directions ---------------------------------------------------------- */

/* With fewer columns kernels see all there is to see. */
enum { FEWEST_COLUMNS = 4, SOME_ROWS = 2000 };

static const double SAME_AS_A_COLUMN = 0.95; /* correlation */
static const double SOME_DIFFERENCE = 2;     /* of a function's means, in standard errors */

n2ce_status n2_shapes_add_directions(n2_shapes *s, size_t n) {
    s->direction = n2_alloc(s->ctx, n, sizeof *s->direction);
    s->turn = n2_alloc(s->ctx, n * s->d, sizeof *s->turn);
    s->directions = s->direction && s->turn ? n : 0;
    return s->directions ? N2CE_OK : N2CE_ENOMEM;
}

typedef struct places {
    size_t n[2], m; /* rows of den and num; columns that have a place */
    size_t of[N2_MOST_DIRECTIONS];
    double *t; /* those of both samples, m each */
    double *w; /* m x m: directions */
    double *s; /* of each row, along one of them */
} places;

static void place_rows(const n2_shapes *s, const values *v, const places *p) {
    double h[N2_MOST_SHAPES], *to = p->t;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < p->n[side]; i++)
            for (size_t k = 0; k < p->m; k++) {
                of_column(&s->column[p->of[k]], v->row[side][i * v->d + p->of[k]], h);
                *to++ = h[0];
            }
}

/* Fills in the values along a direction, gives back how like a column it is. */
static double follow(const places *p, const double *w, double *centre) {
    const size_t rows = p->n[0] + p->n[1];
    double most = 0;
    *centre = 0;
    for (size_t i = 0; i < rows; i++) {
        p->s[i] = 0;
        for (size_t k = 0; k < p->m; k++) p->s[i] += w[k] * p->t[i * p->m + k];
        *centre += p->s[i] / (double)rows;
    }
    for (size_t i = 0; i < rows; i++) p->s[i] -= *centre;
    for (size_t k = 0; k < p->m; k++) {
        double mean = 0, square = 0, with = 0;
        for (size_t i = 0; i < rows; i++) mean += p->t[i * p->m + k] / (double)rows;
        for (size_t i = 0; i < rows; i++) {
            const double t = p->t[i * p->m + k] - mean;
            square += t * t;
            with += t * p->s[i];
        }
        most = fmax(most, fabs(with) / sqrt(square * (double)rows));
    }
    return most;
}

/* The largest difference of a function's means between the samples, in standard errors. */
static double differs(const places *p) {
    double sum[2][OF_DIRECTION] = {{0}}, square[2][OF_DIRECTION] = {{0}}, most = 0;
    for (size_t i = 0; i < p->n[0] + p->n[1]; i++) {
        const size_t side = i >= p->n[0];
        double h[OF_DIRECTION];
        of_direction(p->s[i], h);
        for (size_t k = 0; k < OF_DIRECTION; k++) {
            sum[side][k] += h[k] / (double)p->n[side];
            square[side][k] += h[k] * h[k] / (double)p->n[side];
        }
    }
    for (size_t k = 0; k < OF_DIRECTION; k++) {
        double var = 0;
        for (size_t side = 0; side < 2; side++)
            var += (square[side][k] - sum[side][k] * sum[side][k]) / (double)p->n[side];
        if (var > 0) most = fmax(most, fabs(sum[1][k] - sum[0][k]) / sqrt(var));
    }
    return most;
}

/* Directions that are no columns and in which the samples differ, as long as there is room. */
static void take_directions(n2_shapes *s, const places *p) {
    const size_t most = (N2_MOST_SHAPES - s->n) / OF_DIRECTION, rows = p->n[0] + p->n[1];
    size_t n = 0;
    for (size_t k = 0; k < p->m && n < most; k++) {
        n2_shape_direction *v = &s->direction[n];
        const double *w = p->w + k * p->m;
        if (follow(p, w, &v->centre) > SAME_AS_A_COLUMN || differs(p) < SOME_DIFFERENCE) continue;
        qsort(p->s, rows, sizeof *p->s, ascending);
        v->least = p->s[OUTERMOST];
        v->most = p->s[rows - 1 - OUTERMOST];
        for (size_t j = 0; j < p->m; j++) s->turn[n * s->d + p->of[j]] = w[j];
        n++;
    }
    s->directions = n;
}

static n2ce_status find(n2_shapes *s, const values *v, n2_arena *arena) {
    places p = {.m = 0};
    for (size_t side = 0; side < 2; side++)
        p.n[side] = v->n[side] < SOME_ROWS ? v->n[side] : SOME_ROWS;
    const size_t rows = p.n[0] + p.n[1];
    bool found;
    for (size_t j = 0; j < s->d; j++) {
        if (!has_place(&s->column[j])) continue;
        if (p.m == N2_MOST_DIRECTIONS) return N2CE_OK;
        p.of[p.m++] = j;
    }
    if (p.m < FEWEST_COLUMNS) return N2CE_OK;
    p.t = n2_arena_alloc(arena, rows * p.m, sizeof *p.t);
    p.w = n2_arena_alloc(arena, p.m * p.m, sizeof *p.w);
    p.s = n2_arena_alloc(arena, rows, sizeof *p.s);
    if (!p.t || !p.w || !p.s) return N2CE_ENOMEM;
    place_rows(s, v, &p);
    N2_TRY(n2_find_directions(s->ctx, p.t, rows, p.m, p.w, &found));
    if (!found) return N2CE_OK;
    N2_TRY(n2_shapes_add_directions(s, p.m));
    take_directions(s, &p);
    return N2CE_OK;
}

/* Means and scales of all functions, with directions. */
static n2ce_status measure_again(n2_shapes *s, const values *v, n2_arena *arena) {
    double *row = n2_arena_alloc(arena, s->d + 2 * N2_MOST_SHAPES, sizeof *row);
    if (!row) return N2CE_ENOMEM;
    s->n = n2_shapes_count(s);
    memset(s->mean, 0, s->n * sizeof *s->mean);
    measure(s, v, row, row + s->d);
    return N2CE_OK;
}

n2ce_status n2_shapes_direct(const n2_shapes *plain, const n2_features *features, const double *num,
                             size_t n_num, const double *den, size_t n_den, n2_shapes **out) {
    n2_arena arena = n2_arena_new(plain->ctx);
    const values v = {{den, num}, {n_den, n_num}, plain->d};
    n2_shapes *s;
    *out = NULL;
    if (plain->dx > 0) return N2CE_OK;
    N2_TRY(n2_shapes_alloc(plain->ctx, features, 0, &s));
    memcpy(s->column, plain->column, s->d * sizeof *s->column);
    s->n = plain->n;
    n2ce_status status = find(s, &v, &arena);
    if (status == N2CE_OK && s->directions > 0) {
        status = measure_again(s, &v, &arena);
        if (status == N2CE_OK) *out = s;
    }
    if (!*out) n2_shapes_free(s);
    n2_arena_free(&arena);
    return status;
}
