#include "feature_map.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KNOTS = 256, LEAST_VALUES = 20 };

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

/* x of a value that goes to `normal`. */
static double turned_back(const n2_feature *f, double normal) {
    const size_t last = f->n_knots - 1;
    const double over = normal - f->normal[last], under = f->normal[0] - normal;
    if (over > 0) return f->knot[last] - log1p(-fmin(over, 0.999)) / slope_of(f, last - 1);
    if (under > 0) return f->knot[0] + log1p(-fmin(under, 0.999)) / slope_of(f, 0);
    const size_t lo = find_piece(f->normal, 0, last, normal);
    return f->knot[lo] + (normal - f->normal[lo]) / slope_of(f, lo);
}

double n2_feature_back(const n2_feature *f, double z) {
    const double x = f->mean + f->scale * z;
    return f->kind == N2_FEATURE_NORMAL ? turned_back(f, x) : x;
}

/* For a map that is asked for many values: the piece before each of many cells of equal width, so
 * that hardly anything is left to be searched, and what the pieces' slopes are. */
enum { CELLS = 512 };

typedef struct map_table {
    const n2_feature *f;
    double begin, scale; /* of the cells */
    double least, most;  /* the ends */
    size_t reach;        /* pieces from `first` on that are searched, a power of 2 */
    unsigned char first[CELLS];
    double knot[2 * MOST_KNOTS]; /* where pieces begin; what comes after the last one never does */
    double slope[MOST_KNOTS], log_slope[MOST_KNOTS];
} map_table;

/* Rises with x, whatever rounding does. Without branches, too. */
static size_t cell_of(const map_table *t, double x) {
    double at = (x - t->begin) * t->scale;
    at = at > 0 ? at : 0;
    at = at < CELLS - 1 ? at : CELLS - 1;
    return (size_t)(int)at;
}

/* Cells between the knots that so many are beyond at either end. */
static void lay_cells(map_table *t, size_t tail) {
    const size_t pieces = t->f->n_knots - 1;
    t->begin = t->f->knot[tail];
    t->scale = CELLS / (t->f->knot[pieces - tail] - t->begin);
    t->reach = 1;
    for (size_t c = 0, lo = 0, hi = 0; c < CELLS; c++) {
        while (hi + 1 < pieces && cell_of(t, t->f->knot[hi + 1]) <= c) hi++;
        t->first[c] = (unsigned char)lo; /* the last that begins before the cell */
        while (t->reach < hi - lo + 1) t->reach *= 2;
        lo = hi;
    }
}

/* Tails that stretch too far leave the cells nothing but one to share: they are left to a longer
 * search. */
static void make_table(const n2_feature *f, map_table *t) {
    enum { SHORT = 4 };
    const size_t pieces = f->n_knots - 1;
    t->f = f;
    t->least = f->knot[0];
    t->most = f->knot[pieces];
    lay_cells(t, 0);
    if (t->reach > SHORT) lay_cells(t, f->n_knots / 8);
    for (size_t k = 0; k < pieces; k++) {
        t->slope[k] = slope_of(f, k);
        t->log_slope[k] = log(t->slope[k]);
    }
    for (size_t k = 0; k < 2 * MOST_KNOTS; k++) t->knot[k] = k < pieces ? f->knot[k] : N2_INFINITY;
}

static size_t look_up(const map_table *t, double x) {
    return find_piece(t->knot, t->first[cell_of(t, x)], t->reach, x);
}

static double mapped_beyond(const map_table *t, double x) {
    const size_t lo = look_up(t, x);
    const piece p = piece_at(t->f, lo, t->slope[lo], x);
    return value_on(&p);
}

static inline double mapped(const map_table *t, double x) {
    if (!(x >= t->least && x <= t->most)) return mapped_beyond(t, x);
    const size_t lo = look_up(t, x);
    return t->f->normal[lo] + t->slope[lo] * (x - t->knot[lo]);
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

/* ---- columns ------------------------------------------------------------- */

enum { TOGETHER = 8 }; /* columns of doubles that a line of a cache holds */

/* So many columns at most, side by side, of one or two tables. */
typedef struct columns_view {
    const n2_table *table[2];
    size_t n_tables, first, n;
} columns_view;

/* What row i of table t has in them. */
static const double *row_at(const columns_view *v, size_t t, size_t i) {
    return v->table[t]->x + i * v->table[t]->cols + v->first;
}

/* Rows lie so far apart that no processor foresees the next ones. */
static void fetch_row(const columns_view *v, size_t t, size_t i) {
    enum { AHEAD = 32 };
    if (i + AHEAD < v->table[t]->rows) __builtin_prefetch(row_at(v, t, i + AHEAD));
}

typedef struct spread {
    double mean, var, n;
} spread;

/* From n values' sum and sum of squares, less `shift`. */
static spread spread_of(double shift, double sum, double square, size_t rows) {
    const double n = (double)rows, mean = sum / (n > 0 ? n : 1);
    const double var = n > 1 ? (square - n * mean * mean) / (n - 1) : 0;
    return (spread){mean + shift, var < 0 ? 0 : var, n};
}

/* Of all rows. Columns are summed side by side, each in the order of its rows; `n` is a constant
 * where that matters. */
static inline void measure_rows(const columns_view *v, size_t t, size_t n, spread *out) {
    const size_t rows = v->table[t]->rows;
    double shift[TOGETHER] = {0}, sum[TOGETHER] = {0}, square[TOGETHER] = {0};
    if (rows > 0) memcpy(shift, row_at(v, t, 0), n * sizeof *shift);
    for (size_t i = 0; i < rows; i++) {
        const double *x = row_at(v, t, i);
        fetch_row(v, t, i);
        for (size_t c = 0; c < n; c++) {
            const double moved = x[c] - shift[c];
            sum[c] += moved;
            square[c] += moved * moved;
        }
    }
    for (size_t c = 0; c < n; c++) out[c] = spread_of(shift[c], sum[c], square[c], rows);
}

static void measure(const columns_view *v, size_t t, spread *out) {
    if (v->n == TOGETHER)
        measure_rows(v, t, TOGETHER, out);
    else
        measure_rows(v, t, v->n, out);
}

/* Sums of the values of one column as a map sees them. */
typedef struct mapped_sums {
    double shift, sum, square;
} mapped_sums;

static void add_mapped(const map_table *map, const double *x, size_t n, mapped_sums *s) {
    double sum = s->sum, square = s->square;
    for (size_t i = 0; i < n; i++) {
        const double moved = mapped(map, x[i]) - s->shift;
        sum += moved;
        square += moved * moved;
    }
    s->sum = sum;
    s->square = square;
}

/* Of every `step`-th of so many rows of the columns that have a map, through it. Some rows at a
 * time are put column by column first: lines of a cache hold all columns, and maps fill it. */
static void measure_mapped(const columns_view *v, size_t t, size_t step, size_t most,
                           const map_table *const *map, spread *out) {
    enum { ROWS = 256 };
    const size_t all = v->table[t]->rows, rows = ((all < most ? all : most) + step - 1) / step;
    mapped_sums s[TOGETHER] = {{0}};
    double x[TOGETHER][ROWS];
    for (size_t first = 0; first < rows; first += ROWS) {
        const size_t n = rows - first < ROWS ? rows - first : ROWS;
        for (size_t i = 0; i < n; i++) {
            const double *row = row_at(v, t, (first + i) * step);
            fetch_row(v, t, (first + i) * step);
            for (size_t c = 0; c < v->n; c++) x[c][i] = row[c];
        }
        for (size_t c = 0; c < v->n; c++) {
            if (map[c] && first == 0) s[c].shift = mapped(map[c], x[c][0]);
            if (map[c]) add_mapped(map[c], x[c], n, &s[c]);
        }
    }
    for (size_t c = 0; c < v->n; c++)
        if (map[c]) out[c] = spread_of(s[c].shift, s[c].sum, s[c].square, rows);
}

/* Both sides count the same. */
static spread pooled(const columns_view *v, spread a, spread b) {
    if (v->n_tables == 1) return a;
    const double gap = a.mean - b.mean;
    return (spread){0.5 * (a.mean + b.mean), 0.5 * (a.var + b.var) + 0.25 * gap * gap, a.n + b.n};
}

/* ---- sorted samples ------------------------------------------------------ */

/* As `<` orders numbers, so do these: both zeros are one. */
static uint64_t key_of(double x) {
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

static void deal_by_digit(const double *from, size_t n, unsigned shift, double *to) {
    size_t at[DIGITS] = {0};
    for (size_t i = 0; i < n; i++) at[key_of(from[i]) >> shift & (DIGITS - 1)]++;
    for (size_t k = 0, sum = 0; k < DIGITS; k++) {
        const size_t count = at[k];
        at[k] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) to[at[key_of(from[i]) >> shift & (DIGITS - 1)]++] = from[i];
}

/* By the bits from `shift` to `width` of the keys, the last digit first. */
static void sort_by_digits(double *x, size_t n, unsigned shift, unsigned width, double *spare) {
    double *from = x, *to = spare;
    for (; shift < width; shift += DIGIT) {
        deal_by_digit(from, n, shift, to);
        double *kept = from;
        from = to;
        to = kept;
    }
    if (from != x) memcpy(x, from, n * sizeof *x);
}

/* Puts what is nearly sorted in order; false if it is not, and nothing is lost. */
static bool sort_nearly_sorted(double *x, size_t n) {
    size_t moves = 0;
    for (size_t i = 1; i < n && moves <= 4 * n; i++) {
        const double moved = x[i];
        size_t to = i;
        for (; to > 0 && moved < x[to - 1]; to--) x[to] = x[to - 1];
        x[to] = moved;
        moves += i - to;
    }
    return moves <= 4 * n;
}

/* By three digits after what all keys have in common; that leaves little to be done, or else all
 * digits count. Equal numbers stay in their order. Many times as fast as qsort. */
static void sort(double *x, size_t n, double *spare) {
    uint64_t differ = 0;
    unsigned width = 0;
    for (size_t i = 1; i < n; i++) differ |= key_of(x[i]) ^ key_of(x[0]);
    while (width < 64 && differ >> width) width++;
    sort_by_digits(x, n, width > 3 * DIGIT ? width - 3 * DIGIT : 0, width, spare);
    if (!sort_nearly_sorted(x, n)) sort_by_digits(x, n, 0, width, spare);
}

static size_t fewest_rows(const columns_view *v) {
    const size_t a = v->table[0]->rows, b = v->n_tables == 2 ? v->table[1]->rows : a;
    return a < b ? a : b;
}

/* The values that the columns with a map have in every `step`-th of so many rows, both sides
 * alternating so that they count alike, n in all; column c's lie from c * n on. */
static void take_values(const columns_view *v, const map_table *const *map, size_t step,
                        size_t rows, size_t n, double *out) {
    const double fewest = (double)fewest_rows(v);
    for (size_t t = 0, k = 0; t < v->n_tables; t++) {
        const double stride = (double)v->table[t]->rows / fewest;
        for (size_t i = 0; i < rows; i += step, k++) {
            const size_t row = (size_t)((double)i * stride);
            const double *x = row_at(v, t, row);
            fetch_row(v, t, row);
            for (size_t c = 0; c < v->n; c++)
                if (map[c]) out[c * n + k] = x[c];
        }
    }
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

/* ---- which map ----------------------------------------------------------- */

/* So many rows of a side are enough to judge a map by. */
enum { JUDGED_ROWS = 20000 };

/* Mean and standard error of the gain in log likelihood per held-out value that the map of column c
 * brings when each side is a normal: fitted on even rows, judged on odd ones. As it is, all rows
 * count: one huge value, wherever it is, spoils the scale of all. */
static double gain_of_map(const columns_view *v, size_t c, spread as_is[2][TOGETHER],
                          spread as_mapped[2][TOGETHER], const map_table *map, double *error) {
    double sum = 0, square = 0, n = 0;
    for (size_t t = 0; t < v->n_tables; t++) {
        const spread a = as_is[t][c], b = as_mapped[t][c];
        const double log_a = log(a.var), log_b = log(b.var);
        if (!(a.var > 0) || !(b.var > 0)) return 0;
        for (size_t i = 1; i < v->table[t]->rows && i < JUDGED_ROWS; i += 2) {
            const double x = row_at(v, t, i)[c];
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

/* Columns are learned side by side, a few an item: in the table they lie side by side too. The last
 * items are small, so that threads end together. */
static size_t columns_of_item(size_t left) {
    return left > 64 ? TOGETHER : left > 16 ? TOGETHER / 2 : left > 4 ? TOGETHER / 4 : 1;
}

static size_t first_of_item(size_t cols, size_t item) {
    size_t first = 0;
    while (item-- > 0) first += columns_of_item(cols - first);
    return first;
}

static size_t count_items(size_t cols) {
    size_t items = 0;
    for (size_t first = 0; first < cols; items++) first += columns_of_item(cols - first);
    return items;
}

typedef struct learn_job {
    const n2_table *table[2];
    n2_scaling scaling;
    n2_features *f;
    double *work;  /* NULL: there are no maps */
    size_t each;   /* numbers of it: for the values of the columns of an item, and spare */
    bool by_items; /* each item has its own work, or else each worker */
} learn_job;

/* What is known of the columns of an item. */
typedef struct learner {
    columns_view v;
    n2_feature *f;
    spread as_is[2][TOGETHER], as_mapped[2][TOGETHER];
    const map_table *map[TOGETHER]; /* NULL: there is none, or none any more */
    map_table table[TOGETHER];
} learner;

/* Makes maps of every `step`-th of so many rows of a side, and measures such rows through them. */
static void make_maps(learner *l, size_t step, size_t most, double *work) {
    const size_t fewest = fewest_rows(&l->v), rows = fewest < most ? fewest : most;
    const size_t n = (rows + step - 1) / step * l->v.n_tables;
    take_values(&l->v, l->map, step, rows, n, work);
    for (size_t c = 0; c < l->v.n; c++) {
        if (!l->map[c]) continue;
        sort(work + c * n, n, work + l->v.n * n);
        if (make_knots(&l->f[c], work + c * n, n))
            make_table(&l->f[c], &l->table[c]);
        else
            l->map[c] = NULL;
    }
    for (size_t t = 0; t < l->v.n_tables; t++)
        measure_mapped(&l->v, t, step, most, l->map, l->as_mapped[t]);
}

/* Maps that bring nothing are dropped. */
static void judge_maps(learner *l) {
    for (size_t c = 0; c < l->v.n; c++) {
        double error = 0;
        if (!l->map[c]) continue;
        const double gain = gain_of_map(&l->v, c, l->as_is, l->as_mapped, l->map[c], &error);
        if (!(gain > 0.005 && gain > 3 * error)) l->map[c] = NULL;
    }
}

static bool any_map(const learner *l) {
    for (size_t c = 0; c < l->v.n; c++)
        if (l->map[c]) return true;
    return false;
}

/* Judges maps on held-out values, then makes them from all of them. */
static void choose_maps(learner *l, n2_scaling scaling, double *work) {
    if (any_map(l)) make_maps(l, 2, JUDGED_ROWS, work);
    if (scaling != N2_SCALING_NORMAL) judge_maps(l);
    if (any_map(l)) make_maps(l, 1, SIZE_MAX, work);
}

static void settle(const learner *l, size_t c) {
    n2_feature *f = &l->f[c];
    const bool map = l->map[c];
    const spread s = map ? pooled(&l->v, l->as_mapped[0][c], l->as_mapped[1][c])
                         : pooled(&l->v, l->as_is[0][c], l->as_is[1][c]);
    f->kind = map ? N2_FEATURE_NORMAL : N2_FEATURE_LINEAR;
    if (!map && (!(s.var > 0) || !isfinite(s.var))) {
        f->kind = N2_FEATURE_CONSTANT;
        return;
    }
    f->mean = s.mean;
    f->scale = sqrt(s.var);
}

/* The columns' memory for knots is there already. */
static void learn_some(void *arg, size_t item, int worker) {
    const learn_job *job = arg;
    const n2_table *a = job->table[0], *b = job->table[1];
    const size_t first = first_of_item(a->cols, item);
    learner l;
    memset(l.as_is, 0, sizeof l.as_is);
    memset(l.as_mapped, 0, sizeof l.as_mapped);
    l.v = (columns_view){{a, b}, b ? 2 : 1, first, columns_of_item(a->cols - first)};
    l.f = job->f->column + first;
    for (size_t t = 0; t < l.v.n_tables; t++) measure(&l.v, t, l.as_is[t]);
    for (size_t c = 0; c < l.v.n; c++) {
        const spread s = pooled(&l.v, l.as_is[0][c], l.as_is[1][c]);
        const bool numbers = !a->categorical[first + c] && s.var > 0 && isfinite(s.var);
        l.map[c] = numbers && job->work ? &l.table[c] : NULL;
    }
    if (job->work)
        choose_maps(&l, job->scaling,
                    job->work + (job->by_items ? item : (size_t)worker) * job->each);
    for (size_t c = 0; c < l.v.n; c++)
        if (!a->categorical[first + c]) settle(&l, c);
}

/* Memory for the maps, if there may be any. */
static n2ce_status alloc_maps(n2ce_ctx *ctx, learn_job *job) {
    const n2_table *a = job->table[0], *b = job->table[1];
    const size_t items = count_items(a->cols), threads = (size_t)n2_ctx_threads(ctx);
    bool any = false;
    for (size_t c = 0; c < a->cols && job->scaling != N2_SCALING_LINEAR; c++) {
        if (a->categorical[c]) continue;
        N2_TRY(alloc_knots(ctx, &job->f->column[c]));
        any = true;
    }
    if (!any) return N2CE_OK;
    job->by_items = items < threads;
    job->each = (columns_of_item(a->cols) + 1) * (a->rows + (b ? b->rows : 0));
    job->work =
        n2_realloc(ctx, NULL, (job->by_items ? items : threads) * job->each, sizeof *job->work);
    return job->work ? N2CE_OK : N2CE_ENOMEM;
}

/* Everything that needs memory comes before the work that is shared. */
static n2ce_status learn_all(n2ce_ctx *ctx, const n2_table *a, const n2_table *b,
                             const size_t *levels, n2_scaling scaling, n2_features *f) {
    learn_job job = {.table = {a, b}, .scaling = scaling, .f = f};
    for (size_t c = 0; c < a->cols; c++)
        f->column[c] =
            (n2_feature){.kind = N2_FEATURE_LEVELS, .scale = 1, .levels = levels ? levels[c] : 0};
    N2_TRY(alloc_maps(ctx, &job));
    const size_t items = count_items(a->cols);
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

enum { FEW_COLUMNS = 64 };

/* Few columns that are all linear are the rule, and they are taken side by side. */
static bool apply_linear(const n2_features *f, const double *x, size_t rows, double *out) {
    double mean[FEW_COLUMNS], scale[FEW_COLUMNS];
    if (f->cols > FEW_COLUMNS) return false;
    for (size_t c = 0; c < f->cols; c++) {
        if (f->column[c].kind != N2_FEATURE_LINEAR) return false;
        mean[c] = f->column[c].mean;
        scale[c] = f->column[c].scale;
    }
    for (size_t i = 0; i < rows; i++, x += f->cols, out += f->cols)
        for (size_t c = 0; c < f->cols; c++) out[c] = (x[c] - mean[c]) / scale[c];
    return true;
}

static void apply_block(void *arg, size_t item, int worker) {
    (void)worker;
    const apply_job *job = arg;
    const n2_features *f = job->f;
    const size_t first = item * BLOCK_ROWS, left = job->rows - first;
    const size_t end = first + (left < BLOCK_ROWS ? left : BLOCK_ROWS);
    double *out = job->out + first * f->width;
    if (apply_linear(f, job->x + first * f->cols, end - first, out)) return;
    for (size_t i = first; i < end; i++)
        for (size_t c = 0; c < f->cols; c++)
            out = apply_one(&f->column[c], job->x[i * f->cols + c], out);
}

n2ce_status n2_features_apply(const n2_features *f, const double *x, size_t rows, double *out) {
    apply_job job = {f, x, rows, out};
    return n2_parallel_for(f->ctx, (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, apply_block, &job);
}
