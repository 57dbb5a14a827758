#include "feature_map.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KNOTS = 256, LEAST_VALUES = 20 };

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the map to normal margins ------------------------------------------- */

/* The piece between two knots that x lies on; beyond the ends the outermost one. */
typedef struct piece {
    double from, slope, at; /* normal(from); its rise; x - knot(from) */
    double beyond;          /* > 0: how far x is beyond the ends, as the piece counts */
    double end;             /* normal of that end */
} piece;

/* The last of n pieces, from `lo` on, that does not begin beyond x. Without branches: they cannot
 * be foreseen. */
static size_t find_piece(const double *knot, size_t lo, size_t n, double x) {
    for (; n > 1; n -= n / 2) lo += (n / 2) * (size_t) !(x < knot[lo + n / 2]);
    return lo;
}

static double slope_of(const n2_feature *f, size_t lo) {
    return (f->normal[lo + 1] - f->normal[lo]) / (f->knot[lo + 1] - f->knot[lo]);
}

static piece piece_at(const n2_feature *f, size_t lo, double slope, double x) {
    const size_t hi = lo + 1;
    piece p = {f->normal[lo], slope, x - f->knot[lo], 0, f->normal[hi]};
    if (x > f->knot[hi]) p.beyond = p.slope * (x - f->knot[hi]);
    if (x < f->knot[lo]) {
        p.beyond = p.slope * (f->knot[lo] - x);
        p.end = f->normal[lo];
    }
    return p;
}

/* Beyond the ends the outermost piece goes on but levels off, within 1: a value that no other
 * of the sample is near, 1e30 among ones, becomes the largest and no more. */
static double value_on(const piece *p) {
    if (p->beyond > 0) return p->end + copysign(-expm1(-p->beyond), p->at);
    return p->from + p->slope * p->at;
}

static double interpolate(const n2_feature *f, double x) {
    const size_t lo = find_piece(f->knot, 0, f->n_knots - 1, x);
    const piece p = piece_at(f, lo, slope_of(f, lo), x);
    return value_on(&p);
}

/* For a map that is asked for many values: pieces that lie in each of many cells of equal width, so
 * that hardly anything is left to be searched, and what their slopes are. */
enum { CELLS = 512 };

typedef struct map_table {
    const n2_feature *f;
    double begin, scale; /* of the cells, which end where tails begin */
    unsigned char first[CELLS], n[CELLS];
    double slope[MOST_KNOTS], log_slope[MOST_KNOTS];
} map_table;

/* Rises with x, whatever rounding does. */
static size_t cell_of(const map_table *t, double x) {
    const double at = (x - t->begin) * t->scale;
    return at > 0 ? at < CELLS - 1 ? (size_t)at : CELLS - 1 : 0;
}

static void make_table(const n2_feature *f, map_table *t) {
    const size_t pieces = f->n_knots - 1, tail = f->n_knots / 8;
    t->f = f;
    t->begin = f->knot[tail];
    t->scale = CELLS / (f->knot[pieces - tail] - t->begin);
    for (size_t c = 0, lo = 0, hi = 0; c < CELLS; c++) {
        while (hi + 1 < pieces && cell_of(t, f->knot[hi + 1]) <= c) hi++;
        t->first[c] = (unsigned char)lo; /* the last that begins before the cell */
        t->n[c] = (unsigned char)(hi - lo + 1);
        lo = hi;
    }
    for (size_t k = 0; k < pieces; k++) {
        t->slope[k] = slope_of(f, k);
        t->log_slope[k] = log(t->slope[k]);
    }
}

static size_t look_up(const map_table *t, double x) {
    const size_t cell = cell_of(t, x);
    return find_piece(t->f->knot, t->first[cell], t->n[cell], x);
}

static double mapped(const map_table *t, double x) {
    const size_t lo = look_up(t, x);
    const piece p = piece_at(t->f, lo, t->slope[lo], x);
    return value_on(&p);
}

/* Shares of the sample at which knots lie: evenly, and closer and closer to the ends,
 * because tails stretch furthest. Ascending; returns how many. */
static size_t knot_shares(size_t n, double *share) {
    const size_t inner = n / 50 < 100 ? n / 50 : 100;
    const double step = 1 / ((double)inner + 1);
    size_t count = 0, tail = 0;
    double ends[64];
    for (double u = 0.5 / (double)n; u < 0.7 * step && tail < 64; u *= 2) ends[tail++] = u;
    for (size_t i = 0; i < tail; i++) share[count++] = ends[i];
    for (size_t i = 1; i <= inner; i++) share[count++] = (double)i * step;
    for (size_t i = tail; i > 0; i--) share[count++] = 1 - ends[i - 1];
    return count;
}

/* Value of the sorted sample at a share of it. */
static double quantile(const double *sorted, size_t n, double share) {
    const double at = share * (double)n - 0.5;
    if (at <= 0) return sorted[0];
    if (at >= (double)(n - 1)) return sorted[n - 1];
    const size_t i = (size_t)at;
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* Knots of a sorted sample. False if it has too many equal values for such a map. */
static bool make_knots(n2_feature *f, const double *sorted, size_t n) {
    double share[MOST_KNOTS];
    if (n < LEAST_VALUES) return false;
    const size_t count = knot_shares(n, share);
    /* by the middle of the sample: one huge value must not make all others equal */
    const double least = 1e-12 * (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25));
    f->n_knots = 0;
    size_t ties = 0;
    for (size_t i = 0; i < count; i++) {
        const double x = quantile(sorted, n, share[i]);
        if (f->n_knots > 0 && !(x > f->knot[f->n_knots - 1] + least)) {
            ties++;
            continue;
        }
        f->knot[f->n_knots] = x;
        f->normal[f->n_knots++] = n2_normal_quantile(share[i]);
    }
    return f->n_knots >= 8 && ties * 10 < count;
}

/* ---- which map ----------------------------------------------------------- */

/* A column of one or two tables, copied; a value of the one with fewer rows weighs more. */
typedef struct column_view {
    const double *x[2];
    size_t rows[2], n_tables;
    double *sorted; /* room for all values, */
    size_t room;    /* which is so many */
} column_view;

typedef struct spread {
    double mean, var, n;
} spread;

/* Mean and variance of every `step`-th row from `first`, through the map if there is one. */
static spread measure(const column_view *v, size_t t, size_t first, size_t step,
                      const map_table *map) {
    spread s = {0, 0, 0};
    double shift = v->rows[t] ? v->x[t][0] : 0;
    if (map) shift = mapped(map, shift);
    for (size_t i = first; i < v->rows[t]; i += step) {
        const double x = (map ? mapped(map, v->x[t][i]) : v->x[t][i]) - shift;
        s.mean += x;
        s.var += x * x;
        s.n++;
    }
    s.mean /= s.n > 0 ? s.n : 1;
    s.var = s.n > 1 ? (s.var - s.n * s.mean * s.mean) / (s.n - 1) : 0;
    if (s.var < 0) s.var = 0;
    s.mean += shift;
    return s;
}

/* Of all rows of each side. */
static void measure_sides(const column_view *v, const map_table *map, spread side[2]) {
    for (size_t t = 0; t < v->n_tables; t++) side[t] = measure(v, t, 0, 1, map);
}

/* Both sides count the same. */
static spread pooled(const column_view *v, const spread side[2]) {
    spread s = side[0];
    if (v->n_tables == 2) {
        const spread t = side[1];
        const double gap = s.mean - t.mean;
        s = (spread){0.5 * (s.mean + t.mean), 0.5 * (s.var + t.var) + 0.25 * gap * gap, s.n + t.n};
    }
    return s;
}

/* So many rows of a side are enough to judge a map by. */
enum { JUDGED_ROWS = 20000 };

/* Mean and standard error of the gain in log likelihood per held-out value that the map
 * brings when each side is a normal: fitted on even rows, judged on odd ones. As it is, all rows
 * count: one huge value, wherever it is, spoils the scale of all. */
static double gain_of_map(const column_view *v, const spread *as_is, const map_table *map,
                          double *error) {
    double sum = 0, square = 0, n = 0;
    for (size_t t = 0; t < v->n_tables; t++) {
        const spread a = as_is[t], b = measure(v, t, 0, 2, map);
        const double log_a = log(a.var), log_b = log(b.var);
        if (!(a.var > 0) || !(b.var > 0)) return 0;
        for (size_t i = 1; i < v->rows[t] && i < JUDGED_ROWS; i += 2) {
            const double x = v->x[t][i];
            const size_t lo = look_up(map, x);
            const piece p = piece_at(map->f, lo, map->slope[lo], x);
            const double z = value_on(&p);
            const double plain = -0.5 * ((x - a.mean) * (x - a.mean) / a.var + log_a);
            const double normal = -0.5 * ((z - b.mean) * (z - b.mean) / b.var + log_b);
            double gain = normal + (map->log_slope[lo] - p.beyond) - plain;
            gain = gain > 5 ? 5 : gain < -5 ? -5 : gain; /* one outlier must not decide */
            sum += gain;
            square += gain * gain;
            n++;
        }
    }
    const double mean = sum / n;
    *error = sqrt((square / n - mean * mean) / n);
    return mean;
}

/* As `ascending` orders numbers, so do these: both zeros are one. */
static uint64_t key_of(double x) {
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* One digit's share of sort_by_digits; counts[] says how often each of its values comes. */
static void deal_by_digit(const double *from, size_t n, unsigned shift, const uint32_t *counts,
                          double *to) {
    size_t at[256], sum = 0;
    for (size_t k = 0; k < 256; k++) {
        at[k] = sum;
        sum += counts[k];
    }
    for (size_t i = 0; i < n; i++) to[at[key_of(from[i]) >> shift & 255]++] = from[i];
}

/* Sorts by the keys' bytes, from the last to the first; a byte that all have in common, as the
 * last ones of what was a float, is passed over. Several times as fast as qsort. */
static void sort_by_digits(double *x, size_t n, double *spare) {
    uint32_t counts[8][256] = {{0}};
    double *from = x, *to = spare;
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < 8; k++) counts[k][key_of(x[i]) >> 8 * k & 255]++;
    for (unsigned k = 0; k < 8 && n > 0; k++) {
        if (counts[k][key_of(x[0]) >> 8 * k & 255] == n) continue;
        deal_by_digit(from, n, 8 * k, counts[k], to);
        double *kept = from;
        from = to;
        to = kept;
    }
    if (from != x) memcpy(x, from, n * sizeof *x);
}

/* The values of every `step`-th row, of so many at most, both sides alternating so that they count
 * alike, sorted. Returns how many. */
static size_t sort_values(const column_view *v, size_t step, size_t most) {
    size_t fewest = v->rows[0], n = 0;
    if (v->n_tables == 2 && v->rows[1] < fewest) fewest = v->rows[1];
    for (size_t t = 0; t < v->n_tables; t++) {
        const double stride = (double)v->rows[t] / (double)fewest;
        for (size_t i = 0; i < fewest && i < most; i += step)
            v->sorted[n++] = v->x[t][(size_t)((double)i * stride)];
    }
    if (n <= v->room / 2)
        sort_by_digits(v->sorted, n, v->sorted + n);
    else
        qsort(v->sorted, n, sizeof *v->sorted, ascending);
    return n;
}

static n2ce_status alloc_knots(n2ce_ctx *ctx, n2_feature *f) {
    f->knot = n2_alloc(ctx, MOST_KNOTS, sizeof(double));
    f->normal = n2_alloc(ctx, MOST_KNOTS, sizeof(double));
    return f->knot && f->normal ? N2CE_OK : N2CE_ENOMEM;
}

static void drop_knots(n2ce_ctx *ctx, n2_feature *f) {
    n2_free(ctx, f->knot);
    n2_free(ctx, f->normal);
    f->knot = f->normal = NULL;
    f->n_knots = 0;
}

/* Judges the map on held-out values, then makes it from all of them. */
static bool choose_map(const column_view *v, const spread *as_is, n2_scaling scaling,
                       n2_feature *f) {
    map_table map;
    double error = 0;
    if (!make_knots(f, v->sorted, sort_values(v, 2, JUDGED_ROWS))) return false;
    make_table(f, &map);
    const double gain = gain_of_map(v, as_is, &map, &error);
    if (scaling != N2_SCALING_NORMAL && !(gain > 0.005 && gain > 3 * error)) return false;
    return make_knots(f, v->sorted, sort_values(v, 1, SIZE_MAX));
}

/* ---- features ------------------------------------------------------------ */

/* The column's memory for knots is there already. */
static void learn(const column_view *v, n2_scaling scaling, n2_feature *f) {
    spread side[2] = {{0, 0, 0}};
    measure_sides(v, NULL, side);
    spread s = pooled(v, side);
    f->kind = N2_FEATURE_CONSTANT;
    if (!(s.var > 0) || !isfinite(s.var)) return;
    const bool map = scaling != N2_SCALING_LINEAR && choose_map(v, side, scaling, f);
    f->kind = map ? N2_FEATURE_NORMAL : N2_FEATURE_LINEAR;
    if (map) {
        map_table table;
        make_table(f, &table);
        measure_sides(v, &table, side);
        s = pooled(v, side);
    }
    f->mean = s.mean;
    f->scale = sqrt(s.var);
}

/* Columns are learned side by side, a few an item: in the table they lie side by side too. */
typedef struct learn_job {
    const n2_table *table[2];
    n2_scaling scaling;
    n2_features *f;
    double *work;
    size_t each; /* numbers of work for a worker */
} learn_job;

enum { TOGETHER = 4 };

static void copy_columns(const n2_table *t, size_t first, size_t n, double *out) {
    for (size_t i = 0; i < t->rows; i++)
        for (size_t c = 0; c < n; c++) out[c * t->rows + i] = t->x[i * t->cols + first + c];
}

static void learn_some(void *arg, size_t item, int worker) {
    const learn_job *job = arg;
    const n2_table *a = job->table[0], *b = job->table[1];
    const size_t first = item * TOGETHER, left = job->f->cols - first;
    const size_t n = left < TOGETHER ? left : TOGETHER;
    double *x = job->work + (size_t)worker * job->each, *y = x + TOGETHER * a->rows;
    double *sorted = y + (b ? TOGETHER * b->rows : 0);
    copy_columns(a, first, n, x);
    if (b) copy_columns(b, first, n, y);
    for (size_t c = 0; c < n; c++) {
        const column_view v = {{x + c * a->rows, b ? y + c * b->rows : NULL},
                               {a->rows, b ? b->rows : 0},
                               b ? 2 : 1,
                               sorted,
                               a->rows + (b ? b->rows : 0)};
        if (!a->categorical[first + c]) learn(&v, job->scaling, &job->f->column[first + c]);
    }
}

/* Everything that needs memory comes before the work that is shared. */
static n2ce_status learn_all(n2ce_ctx *ctx, const n2_table *a, const n2_table *b,
                             const size_t *levels, n2_scaling scaling, n2_features *f) {
    const size_t rows = a->rows + (b ? b->rows : 0);
    learn_job job = {{a, b}, scaling, f, NULL, (TOGETHER + 1) * rows};
    for (size_t c = 0; c < a->cols; c++) {
        f->column[c] =
            (n2_feature){.kind = N2_FEATURE_LEVELS, .scale = 1, .levels = levels ? levels[c] : 0};
        if (!a->categorical[c] && scaling != N2_SCALING_LINEAR)
            N2_TRY(alloc_knots(ctx, &f->column[c]));
    }
    const size_t items = (a->cols + TOGETHER - 1) / TOGETHER;
    const size_t workers = items > 1 ? (size_t)n2_ctx_threads(ctx) : 1;
    job.work = n2_alloc(ctx, workers * job.each, sizeof *job.work);
    if (!job.work) return N2CE_ENOMEM;
    const n2ce_status status = n2_parallel_for(ctx, items, learn_some, &job);
    n2_free(ctx, job.work);
    for (size_t c = 0; c < a->cols; c++)
        if (f->column[c].kind != N2_FEATURE_NORMAL) drop_knots(ctx, &f->column[c]);
    return status;
}

static size_t width_of(const n2_feature *f) {
    switch (f->kind) {
    case N2_FEATURE_CONSTANT:
        return 0;
    case N2_FEATURE_LEVELS:
        return f->levels > 0 ? f->levels - 1 : 0;
    case N2_FEATURE_LINEAR:
    case N2_FEATURE_NORMAL:
        break;
    }
    return 1;
}

size_t n2_features_width(const n2_features *f, size_t cols) {
    size_t width = 0;
    for (size_t c = 0; c < cols; c++) width += width_of(&f->column[c]);
    return width;
}

bool n2_features_fit_in_place(const n2_features *f) {
    for (size_t c = 0; c < f->cols; c++)
        if (width_of(&f->column[c]) != 1) return false;
    return true;
}

n2ce_status n2_features_new(n2ce_ctx *ctx, const n2_table *a, const n2_table *b,
                            const size_t *levels, n2_scaling scaling, n2_features **out) {
    *out = NULL;
    n2_features *f = n2_alloc(ctx, 1, sizeof *f);
    if (!f) return N2CE_ENOMEM;
    f->ctx = ctx;
    f->column = n2_alloc(ctx, a->cols, sizeof *f->column);
    n2ce_status status = f->column ? N2CE_OK : N2CE_ENOMEM;
    if (f->column) f->cols = a->cols;
    if (status == N2CE_OK) status = learn_all(ctx, a, b, levels, scaling, f);
    if (status == N2CE_OK) {
        f->width = n2_features_width(f, f->cols);
        *out = f;
    } else {
        n2_features_free(f);
    }
    return status;
}

void n2_features_free(n2_features *f) {
    if (!f) return;
    for (size_t c = 0; c < f->cols; c++) drop_knots(f->ctx, &f->column[c]);
    n2_free(f->ctx, f->column);
    n2_free(f->ctx, f);
}

static double *apply_one(const n2_feature *f, double x, double *out) {
    switch (f->kind) {
    case N2_FEATURE_CONSTANT:
        break;
    case N2_FEATURE_LINEAR:
        *out++ = (x - f->mean) / f->scale;
        break;
    case N2_FEATURE_NORMAL:
        *out++ = (interpolate(f, x) - f->mean) / f->scale;
        break;
    case N2_FEATURE_LEVELS:
        for (size_t k = 1; k < f->levels; k++) *out++ = x == (double)k ? 1 : 0;
        break;
    }
    return out;
}

typedef struct apply_job {
    const n2_features *f;
    const double *x;
    size_t rows;
    double *out;
} apply_job;

enum { BLOCK_ROWS = 256 };

static void apply_block(void *arg, size_t item, int worker) {
    (void)worker;
    const apply_job *job = arg;
    const n2_features *f = job->f;
    const size_t first = item * BLOCK_ROWS, left = job->rows - first;
    const size_t end = first + (left < BLOCK_ROWS ? left : BLOCK_ROWS);
    double *out = job->out + first * f->width;
    for (size_t i = first; i < end; i++)
        for (size_t c = 0; c < f->cols; c++)
            out = apply_one(&f->column[c], job->x[i * f->cols + c], out);
}

n2ce_status n2_features_apply(const n2_features *f, const double *x, size_t rows, double *out) {
    apply_job job = {f, x, rows, out};
    return n2_parallel_for(f->ctx, (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, apply_block, &job);
}
