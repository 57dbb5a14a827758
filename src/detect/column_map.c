#include "column_map.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_KNOTS = 1024, /* of a map to normal margins */
    OWN_LEVELS = 32,   /* levels that have a feature of their own */
    ROWS_AN_ITEM = 256
};

/* What is new counts as so many standard deviations. */
static const double NOVEL = 5;

/* Two rows differ in a nearly constant column of levels as much as if so many of a hundred did. */
static const double LEAST_MIXED = 0.01;

typedef struct column {
    size_t levels;   /* 0: numbers */
    size_t at;       /* its first feature */
    size_t features; /* how many it has; none if it is constant */
    bool constant;
    bool gaps;                  /* some values were missing: its last feature says which */
    double mean, scale;         /* of the numbers; `mean` is what a constant column holds */
    double gap_mean, gap_scale; /* of 1 where it is missing, else 0 */
    double *knot, *normal;      /* n_knots increasing values, and their normal scores */
    size_t n_knots;
    double normal_mean, normal_scale; /* of the scores */
    size_t *place;                    /* of each level, its feature; */
    double level_size;                /* which is this, or 0 */
} column;

struct n2_column_map {
    n2ce_ctx *ctx;
    n2_arena arena;
    size_t cols, width;
    column *columns;
};

size_t n2_column_map_width(const n2_column_map *m) { return m->width; }

void n2_column_map_free(n2_column_map *m) {
    if (!m) return;
    n2_arena_free(&m->arena);
    n2_free(m->ctx, m);
}

/* ---- numbers ------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Distinct values of a sorted sample, or about MOST_KNOTS of them, and the normal quantile of the
 * middle of their ranks. */
static n2ce_status make_knots(n2_column_map *m, column *c, const double *sorted, size_t n) {
    const size_t step = n / MOST_KNOTS + 1, room = n / step + 2;
    c->knot = n2_arena_alloc(&m->arena, room, sizeof *c->knot);
    c->normal = n2_arena_alloc(&m->arena, room, sizeof *c->normal);
    if (!c->knot || !c->normal) return N2CE_ENOMEM;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && sorted[end] <= sorted[i]) end++;
        c->knot[c->n_knots] = sorted[i];
        c->normal[c->n_knots++] = n2_normal_quantile((double)(i + end + 1) / 2 / (double)(n + 1));
        const size_t next = i + step < n - 1 || i == n - 1 ? i + step : n - 1;
        i = end > next ? end : next;
    }
    return N2CE_OK;
}

static double normal_score(const column *c, double x) {
    const size_t last = c->n_knots - 1;
    if (x <= c->knot[0]) return c->normal[0] - (c->knot[0] - x) / c->scale;
    if (x >= c->knot[last]) return c->normal[last] + (x - c->knot[last]) / c->scale;
    size_t low = 0, high = last;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (c->knot[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    const double share = (x - c->knot[low]) / (c->knot[high] - c->knot[low]);
    return c->normal[low] + share * (c->normal[high] - c->normal[low]);
}

/* A sum of squares may overflow where the values do not. */
static void set_spread(const double *x, size_t n, double *mean, double *scale) {
    n2_tally t = {0};
    for (size_t i = 0; i < n; i++) n2_tally_add(&t, x[i]);
    *mean = t.mean;
    *scale = n > 0 ? sqrt(t.squares / (double)n) : 0;
}

static void set_gaps(column *c, size_t missing, size_t n) {
    const double share = (double)missing / (double)n;
    c->gaps = missing > 0 && missing < n;
    c->gap_mean = share;
    c->gap_scale = sqrt(fmax(share * (1 - share), LEAST_MIXED));
}

/* x: the values of the column that are there; they are overwritten. */
static n2ce_status learn_numbers(n2_column_map *m, column *c, double *x, size_t n, size_t rows) {
    qsort(x, n, sizeof *x, ascending);
    set_gaps(c, rows - n, rows);
    c->constant = n == 0 || x[0] >= x[n - 1];
    c->mean = n > 0 ? x[0] : N2_NAN;
    c->features = c->gaps;
    if (c->constant) return N2CE_OK;
    set_spread(x, n, &c->mean, &c->scale);
    if (!isfinite(c->scale) || c->scale <= 0) c->scale = (x[n - 1] / 2 - x[0] / 2) + 1e-300;
    N2_TRY(make_knots(m, c, x, n));
    for (size_t i = 0; i < n; i++) x[i] = normal_score(c, x[i]);
    set_spread(x, n, &c->normal_mean, &c->normal_scale);
    if (c->normal_scale <= 0) c->normal_scale = 1;
    c->features++;
    return N2CE_OK;
}

/* ---- levels -------------------------------------------------------------- */

typedef struct frequency {
    size_t level, rows;
} frequency;

static int most_frequent_first(const void *a, const void *b) {
    const frequency *x = a, *y = b;
    if (x->rows != y->rows) return x->rows < y->rows ? 1 : -1;
    return (x->level > y->level) - (x->level < y->level);
}

static double share_of_unlike_pairs(const frequency *f, size_t n) {
    double all = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        all += (double)f[i].rows;
        squares += (double)f[i].rows * (double)f[i].rows;
    }
    return all > 0 ? 1 - squares / (all * all) : 0;
}

/* Levels that no row has are new when they come. */
static n2ce_status learn_levels(n2_column_map *m, column *c, const double *codes, size_t n) {
    frequency *f = n2_arena_alloc(&m->arena, c->levels, sizeof *f);
    c->place = n2_arena_alloc(&m->arena, c->levels, sizeof *c->place);
    if (!f || !c->place) return N2CE_ENOMEM;
    for (size_t k = 0; k < c->levels; k++) f[k].level = k;
    for (size_t i = 0; i < n; i++) f[(size_t)codes[i]].rows++;
    qsort(f, c->levels, sizeof *f, most_frequent_first);
    size_t seen = 0;
    for (size_t k = 0; k < c->levels; k++) {
        seen += f[k].rows > 0;
        c->place[f[k].level] = f[k].rows == 0 ? SIZE_MAX : k < OWN_LEVELS ? k : OWN_LEVELS;
    }
    c->constant = seen <= 1;
    if (!c->constant) c->features = seen < OWN_LEVELS ? seen : OWN_LEVELS + (seen > OWN_LEVELS);
    c->level_size = 1 / sqrt(fmax(share_of_unlike_pairs(f, c->levels), LEAST_MIXED));
    return N2CE_OK;
}

/* ---- all columns --------------------------------------------------------- */

static n2ce_status learn_column(n2_column_map *m, size_t c, const double *rows, size_t n,
                                double *values) {
    column *col = &m->columns[c];
    size_t there = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i * m->cols + c])) values[there++] = rows[i * m->cols + c];
    N2_TRY(col->levels ? learn_levels(m, col, values, there)
                       : learn_numbers(m, col, values, there, n));
    col->at = m->width;
    m->width += col->features;
    return N2CE_OK;
}

n2ce_status n2_column_map_new(n2ce_ctx *ctx, const double *rows, size_t n, size_t cols,
                              const size_t *levels, n2_column_map **out) {
    n2_column_map *m = *out = n2_alloc(ctx, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    *m = (n2_column_map){.ctx = ctx, .arena = n2_arena_new(ctx), .cols = cols};
    m->columns = n2_arena_alloc(&m->arena, cols, sizeof *m->columns);
    double *values = n2_alloc(ctx, n, sizeof *values);
    n2ce_status status = m->columns && values ? N2CE_OK : N2CE_ENOMEM;
    for (size_t c = 0; c < cols && status == N2CE_OK; c++) {
        m->columns[c].levels = levels[c];
        status = learn_column(m, c, rows, n, values);
    }
    m->width++; /* what is new */
    n2_free(ctx, values);
    if (status == N2CE_OK) return N2CE_OK;
    n2_column_map_free(m);
    *out = NULL;
    return status;
}

/* ---- rows ---------------------------------------------------------------- */

/* Writes the features of a number; returns 1 if it is something new. */
static size_t put_number(const column *c, n2_column_view view, double x, double *out) {
    const bool missing = isnan(x);
    if (c->gaps) out[c->features - 1] = ((missing ? 1 : 0) - c->gap_mean) / c->gap_scale;
    if (c->constant) return missing ? !isnan(c->mean) && !c->gaps : x != c->mean;
    if (missing)
        out[0] = 0;
    else if (view == N2_VIEW_PLAIN)
        out[0] = (x - c->mean) / c->scale;
    else
        out[0] = (normal_score(c, x) - c->normal_mean) / c->normal_scale;
    return missing && !c->gaps;
}

static size_t put_level(const column *c, double code, double *out) {
    memset(out, 0, c->features * sizeof *out);
    if (isnan(code) || code < 0 || code >= (double)c->levels) return 1;
    const size_t place = c->place[(size_t)code];
    if (place == SIZE_MAX) return 1;
    if (!c->constant) out[place] = c->level_size;
    return 0;
}

typedef struct apply_job {
    const n2_column_map *m;
    n2_column_view view;
    const double *rows;
    size_t n;
    double *out;
} apply_job;

static void apply_some(void *arg, size_t item, int worker) {
    (void)worker;
    const apply_job *job = arg;
    const n2_column_map *m = job->m;
    const size_t end = (item + 1) * ROWS_AN_ITEM < job->n ? (item + 1) * ROWS_AN_ITEM : job->n;
    for (size_t i = item * ROWS_AN_ITEM; i < end; i++) {
        double *out = job->out + i * m->width;
        size_t new = 0;
        for (size_t c = 0; c < m->cols; c++) {
            const column *col = &m->columns[c];
            const double x = job->rows[i * m->cols + c];
            new += col->levels ? put_level(col, x, out + col->at)
                               : put_number(col, job->view, x, out + col->at);
        }
        out[m->width - 1] = NOVEL * (double)new;
    }
}

n2ce_status n2_column_map_apply(const n2_column_map *m, n2_column_view view, const double *rows,
                                size_t n, double *out) {
    apply_job job = {m, view, rows, n, out};
    return n2_parallel_for(m->ctx, (n + ROWS_AN_ITEM - 1) / ROWS_AN_ITEM, apply_some, &job);
}

double n2_column_map_usual(const n2_column_map *m, size_t c) {
    const column *col = &m->columns[c];
    if (!col->levels) return col->mean;
    size_t level = 0;
    while (level + 1 < col->levels && col->place[level] != 0) level++;
    return (double)level;
}

double n2_column_map_step(const n2_column_map *m, size_t c, double a, double b) {
    const column *col = &m->columns[c];
    if (col->levels || col->constant || isnan(a) || isnan(b)) return NOVEL;
    return fabs(a - b) / col->scale;
}
