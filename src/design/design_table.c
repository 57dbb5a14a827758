#include "design_table.h"

#include "base/numerics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last column of the table is the value where `then` chose it; else it is looked for. */
static n2ce_status target_column(const n2_design_table *t, const char *name, size_t *at) {
    size_t *found = NULL, n = 0;
    n2_text text = n2_text_new(t->ctx);
    n2_columns_add(&text, name);
    n2ce_status status = text.failed ? N2CE_ENOMEM : N2CE_OK;
    if (status == N2CE_OK)
        status = n2_columns_parse(t->ctx, text.data, t->table->names, t->table->cols, &found, &n);
    n2_text_free(&text);
    *at = n == 1 ? found[0] : 0;
    n2_free(t->ctx, found);
    if (status != N2CE_OK || n == 1) return status;
    return n2_fail(t->ctx, N2CE_EINVAL, "\"%s\" is %zu columns; the value is one.", name, n);
}

/* ---- reading ------------------------------------------------------------- */

static n2_table_options table_options(const n2_design_table *t, const n2_design_table_options *o) {
    return (n2_table_options){.header = o->header,
                              .columns = o->columns,
                              .categorical = o->categorical,
                              .levels = t->levels,
                              .drop_missing = o->drop_missing,
                              .max_rows = o->max_rows,
                              .seed = o->seed};
}

/* The value and the columns aside, as n2_columns_parse has them. */
static n2ce_status name_others(n2_design_table *t, const n2_design_table_options *o, char **out) {
    n2_text text = n2_text_new(t->ctx);
    n2_columns_add(&text, o->target);
    for (size_t k = 0; k < o->n_aside; k++) n2_columns_add(&text, o->aside[k]);
    return n2_text_take(&text, out);
}

/* Where the value is, at[0], and the columns aside, behind it. */
static n2ce_status read_file(n2_design_table *t, const char *path, const n2_design_table_options *o,
                             size_t *at) {
    n2_table_options to = table_options(t, o);
    char *then = NULL;
    to.find_texts = true;
    if (*to.columns) N2_TRY(name_others(t, o, &then));
    to.then = then;
    to.columns_by = "--columns";
    to.then_by = o->asked_by;
    n2ce_status status = n2_table_read(t->ctx, path, &to, &t->table);
    for (size_t k = 0; k <= o->n_aside && status == N2CE_OK; k++) {
        at[k] = then ? t->table->first_cols + k : 0;
        if (!then) status = target_column(t, k ? o->aside[k - 1] : o->target, &at[k]);
    }
    n2_free(t->ctx, then);
    return status;
}

/* ---- more rows ----------------------------------------------------------- */

/* Rows of another table with the same columns behind those that are there. */
static n2ce_status add_rows(n2_design_table *t, const n2_table *more) {
    n2_table *to = t->table;
    const size_t n = to->rows * to->cols, m = more->rows * more->cols;
    double *x = n2_realloc(t->ctx, to->x, n + m, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    memcpy(x + n, more->x, m * sizeof *x);
    to->x = x;
    to->rows += more->rows;
    t->appended += more->rows;
    t->unfinished += more->dropped;
    return N2CE_OK;
}

/* The columns are known by their names, in any order, and others may be there: proposals that were
 * tried, with their values in a column more. */
static n2ce_status append_file(n2_design_table *t, const char *path) {
    n2_table_options o = {.levels = t->levels, .drop_missing = true};
    char *columns = NULL, *categories = NULL;
    n2_table *more = NULL;
    n2ce_status status = n2_columns_quote(t->ctx, t->table->names, NULL, t->table->cols, &columns);
    if (status == N2CE_OK)
        status = n2_columns_quote(t->ctx, t->table->names, t->table->categorical, t->table->cols,
                                  &categories);
    o.columns = columns;
    o.categorical = categories;
    if (status == N2CE_OK) status = n2_table_read(t->ctx, path, &o, &more);
    if (status == N2CE_OK) status = add_rows(t, more);
    n2_table_free(more);
    n2_free(t->ctx, columns);
    n2_free(t->ctx, categories);
    return status;
}

static n2ce_status append_files(n2_design_table *t, const char *paths) {
    while (paths && *paths) {
        const size_t n = strcspn(paths, ",");
        char *path = n2_alloc(t->ctx, n + 1, 1);
        if (!path) return N2CE_ENOMEM;
        memcpy(path, paths, n);
        path[n] = '\0';
        const n2ce_status status = append_file(t, path);
        n2_free(t->ctx, path);
        N2_TRY(status);
        paths += n + (paths[n] == ',');
    }
    return N2CE_OK;
}

/* X and y side by side. */
static n2ce_status read_matrices(n2_design_table *t, const n2ce_matrix *m,
                                 const n2_design_table_options *o, size_t *at) {
    static const char *const labels[] = {"X", "y", "(X, y)"};
    const n2_table_options to = table_options(t, o);
    *at = m[0].cols;
    if (m[1].cols != 1 || m[1].rows != m[0].rows)
        return n2_fail(t->ctx, N2CE_EINVAL, "X has %zu rows; y must be as many single values.",
                       m[0].rows);
    return n2_table_of_matrices(t->ctx, m, labels, &to, &t->table);
}

/* The place of a column among those that are no part of a design; `most` if it is a part. */
static size_t place_among(const size_t *at, size_t most, size_t column) {
    size_t k = 0;
    while (k < most && at[k] != column) k++;
    return k;
}

static n2ce_status make_room(n2_design_table *t, size_t rows, size_t n, size_t n_aside) {
    n2_designs *d = &t->designs;
    d->rows = rows;
    d->space.n = n;
    d->space.factor = n2_alloc(t->ctx, n, sizeof *d->space.factor);
    d->x = n2_alloc(t->ctx, rows * n, sizeof *d->x);
    d->y = n2_alloc(t->ctx, rows, sizeof *d->y);
    t->names = n2_alloc(t->ctx, n, sizeof *t->names);
    if (n_aside) t->aside = n2_alloc(t->ctx, n_aside * rows, sizeof *t->aside);
    return d->space.factor && d->x && d->y && t->names && (t->aside || !n_aside) ? N2CE_OK
                                                                                 : N2CE_ENOMEM;
}

static n2ce_status check_values(const n2_design_table *t, const size_t *at, size_t others) {
    const n2_table *from = t->table;
    for (size_t k = 0; k < others; k++) {
        if (from->categorical[at[k]])
            return n2_fail(t->ctx, N2CE_EINVAL, "The value \"%s\" cannot be a category.",
                           from->names[at[k]]);
        if (place_among(at, k, at[k]) < k)
            return n2_fail(t->ctx, N2CE_EINVAL, "\"%s\" is asked for twice.", from->names[at[k]]);
    }
    if (from->cols <= others)
        return n2_fail(t->ctx, N2CE_EDATA, "There is no column besides \"%s\"; a design needs one.",
                       from->names[at[0]]);
    return N2CE_OK;
}

/* Columns at[0], the value, and those behind it, aside; the rest are designs. */
static n2ce_status split(n2_design_table *t, const size_t *at, size_t n_aside) {
    const n2_table *from = t->table;
    const size_t others = n_aside + 1, n = from->cols - others;
    n2_designs *d = &t->designs;
    N2_TRY(check_values(t, at, others));
    N2_TRY(make_room(t, from->rows, n, n_aside));
    t->target = from->names[at[0]];
    for (size_t k = 0; k < n_aside; k++) t->aside_name[k] = from->names[at[k + 1]];
    size_t j = 0;
    for (size_t c = 0; c < from->cols; c++) {
        const size_t k = place_among(at, others, c);
        for (size_t i = 0; i < from->rows; i++) {
            const double x = from->x[i * from->cols + c];
            if (k == 0)
                d->y[i] = t->sign * x;
            else if (k < others)
                t->aside[(k - 1) * from->rows + i] = x;
            else
                d->x[i * n + j] = x;
        }
        if (k < others) continue;
        t->names[j] = from->names[c];
        if (from->categorical[c])
            d->space.factor[j] =
                (n2_factor){.kind = N2_CATEGORY, .levels = n2_levels_count(t->levels, t->names[j])};
        j++;
    }
    return N2CE_OK;
}

/* ---- the space ----------------------------------------------------------- */

/* Bounds from the data; a column of whole numbers stays one, unless told otherwise. */
static void describe_column(n2_design_table *t, size_t j, bool may_be_whole) {
    const n2_designs *d = &t->designs;
    n2_factor *f = &d->space.factor[j];
    bool whole = may_be_whole;
    f->low = N2_INFINITY;
    f->high = -N2_INFINITY;
    for (size_t i = 0; i < d->rows; i++) {
        const double x = d->x[i * d->space.n + j];
        f->low = fmin(f->low, x);
        f->high = fmax(f->high, x);
        whole = whole && x == floor(x);
    }
    f->kind = whole ? N2_WHOLE : N2_CONTINUOUS;
}

static n2ce_status describe_space(n2_design_table *t, const char *words) {
    const n2_space *s = &t->designs.space;
    size_t *list = NULL, n = 0;
    N2_TRY(n2_columns_parse(t->ctx, words, (char *const *)(uintptr_t)t->names, s->n, &list, &n));
    for (size_t j = 0; j < s->n; j++) {
        bool continuous = false;
        for (size_t k = 0; k < n; k++) continuous = continuous || list[k] == j;
        if (s->factor[j].kind != N2_CATEGORY) describe_column(t, j, !continuous);
    }
    n2_free(t->ctx, list);
    return N2CE_OK;
}

/* Numbers beyond these, or so near to one another, have no squares, or no quotients. */
static const double LARGEST = 1e300, LEAST = 1e-300, WIDEST = 1e30;

static n2ce_status check_size(const n2_design_table *t, const char *name, double low, double high) {
    const double range = high - low;
    if (range == 0 || (range <= LARGEST && range >= LEAST)) return N2CE_OK;
    return n2_fail(t->ctx, N2CE_EDATA,
                   "Column \"%s\" has values from %.6g to %.6g, which are too %s to compute with. "
                   "Rescale it, or leave it out with --columns.",
                   name, low, high, range < LEAST ? "near to one another" : "far apart");
}

static n2ce_status check_sizes(const n2_design_table *t) {
    const n2_space *s = &t->designs.space;
    double low = N2_INFINITY, high = -N2_INFINITY;
    for (size_t j = 0; j < s->n; j++)
        if (s->factor[j].kind != N2_CATEGORY)
            N2_TRY(check_size(t, t->names[j], s->factor[j].low, s->factor[j].high));
    for (size_t i = 0; i < t->designs.rows; i++) {
        low = fmin(low, t->sign * t->designs.y[i]);
        high = fmax(high, t->sign * t->designs.y[i]);
    }
    return check_size(t, t->target, low, high);
}

/* What keeps a column with the data's range from having these bounds; NULL: nothing. */
static const char *mistake_in(const n2_factor *f, double low, double high) {
    const double farthest = fmax(fabs(f->low), fabs(f->high));
    if (!(low <= high)) return "the lower one comes first";
    if (!(high - low <= LARGEST)) return "they are too far apart to compute with";
    if (f->kind == N2_WHOLE && ceil(low) > floor(high)) return "no whole number lies between";
    if (farthest / (high - low) > WIDEST) return "they are too near to one another for these data";
    return NULL;
}

static n2ce_status set_bound(n2_design_table *t, const char *path, const char *name, double low,
                             double high) {
    n2_space *s = &t->designs.space;
    size_t j = 0;
    while (j < s->n && strcmp(t->names[j], name) != 0) j++;
    if (j == s->n || s->factor[j].kind == N2_CATEGORY)
        return n2_fail(t->ctx, N2CE_EDATA, "%s: \"%s\" is not a number column of the designs.",
                       path, name);
    if (low == high)
        return n2_fail(t->ctx, N2CE_EDATA,
                       "%s: the bounds of \"%s\" are both %.6g. Use --fix \"%s=%.6g\" for a column "
                       "with one value.",
                       path, name, low, name, low);
    const char *mistake = mistake_in(&s->factor[j], low, high);
    if (mistake)
        return n2_fail(t->ctx, N2CE_EDATA, "%s: the bounds of \"%s\" are %.6g and %.6g; %s.", path,
                       name, low, high, mistake);
    s->factor[j].low = low;
    s->factor[j].high = high;
    return N2CE_OK;
}

/* A file with a header and rows column, low, high. */
static n2ce_status read_bounds(n2_design_table *t, const char *path) {
    n2_levels *levels;
    n2_table *b = NULL;
    if (!path) return N2CE_OK;
    N2_TRY(n2_levels_new(t->ctx, &levels));
    const n2_table_options o = {.categorical = "0", .levels = levels};
    n2ce_status status = n2_table_read(t->ctx, path, &o, &b);
    if (status == N2CE_OK && b->cols != 3)
        status = n2_fail(t->ctx, N2CE_EDATA,
                         "%s has %zu columns; bounds have three: column, low, "
                         "high.",
                         path, b->cols);
    for (size_t i = 0; status == N2CE_OK && i < b->rows; i++) {
        const double *row = b->x + 3 * i;
        const char *name = n2_levels_text(levels, b->names[0], (size_t)row[0]);
        status = set_bound(t, path, name, row[1], row[2]);
    }
    n2_table_free(b);
    n2_levels_free(levels);
    return status;
}

/* Whether proposals have a design to start from. */
static n2ce_status check_bounds(const n2_design_table *t) {
    const n2_designs *d = &t->designs;
    for (size_t i = 0; i < d->rows; i++) {
        bool within = true;
        for (size_t j = 0; j < d->space.n && within; j++) {
            const n2_factor *f = &d->space.factor[j];
            const double x = d->x[i * d->space.n + j];
            within = f->kind == N2_CATEGORY || (x >= f->low && x <= f->high);
        }
        if (within) return N2CE_OK;
    }
    return n2_fail(t->ctx, N2CE_EDATA,
                   "The bounds exclude all %zu designs; widen them, so that there is one to start "
                   "from.",
                   d->rows);
}

static n2ce_status begin(n2ce_ctx *ctx, const n2_design_table_options *o, n2_design_table *t) {
    *t = (n2_design_table){.ctx = ctx, .sign = o->minimize ? -1 : 1};
    return n2_levels_new(ctx, &t->levels);
}

/* Once the table is there, with the value in column at[0]. */
static n2ce_status finish(n2_design_table *t, const n2_design_table_options *o, const size_t *at) {
    N2_TRY(split(t, at, o->n_aside));
    N2_TRY(describe_space(t, o->continuous));
    N2_TRY(check_sizes(t));
    N2_TRY(read_bounds(t, o->bounds));
    return o->bounds ? check_bounds(t) : N2CE_OK;
}

n2ce_status n2_design_table_read(n2ce_ctx *ctx, const char *path, const n2_design_table_options *o,
                                 n2_design_table *t) {
    size_t at[N2_DESIGN_ASIDE + 1];
    N2_TRY(begin(ctx, o, t));
    N2_TRY(read_file(t, path, o, at));
    N2_TRY(append_files(t, o->append));
    return finish(t, o, at);
}

n2ce_status n2_design_table_of_matrices(n2ce_ctx *ctx, const n2ce_matrix x_and_y[2],
                                        const n2_design_table_options *o, n2_design_table *t) {
    size_t at = 0;
    N2_TRY(begin(ctx, o, t));
    N2_TRY(read_matrices(t, x_and_y, o, &at));
    return finish(t, o, &at);
}

void n2_design_table_close(n2_design_table *t) {
    n2_free(t->ctx, t->designs.x);
    n2_free(t->ctx, t->designs.y);
    n2_free(t->ctx, t->aside);
    n2_free(t->ctx, t->designs.space.factor);
    n2_free(t->ctx, t->names);
    n2_table_free(t->table);
    n2_levels_free(t->levels);
}

/* ---- writing ------------------------------------------------------------- */

static void add_field(n2_text *out, const char *text) {
    if (!strpbrk(text, ",\"\n\r;\t")) {
        n2_text_add(out, "%s", text);
        return;
    }
    n2_text_add(out, "\"");
    for (const char *c = text; *c; c++) n2_text_add(out, *c == '"' ? "\"\"" : "%c", *c);
    n2_text_add(out, "\"");
}

void n2_design_value(const n2_design_table *t, size_t j, double value, n2_text *out) {
    char number[32];
    if (t->designs.space.factor[j].kind == N2_CATEGORY)
        add_field(out, n2_levels_text(t->levels, t->names[j], (size_t)value));
    else
        n2_text_add(out, "%s", n2_format_number(value, number));
}

void n2_design_csv(const n2_design_table *t, const n2_proposals *p, n2_text *out) {
    const size_t n = t->designs.space.n;
    char number[32], name[300];
    for (size_t j = 0; j < n; j++) {
        add_field(out, t->names[j]);
        n2_text_add(out, ",");
    }
    snprintf(name, sizeof name, "%.280s_predicted", t->target);
    add_field(out, name);
    n2_text_add(out, p->chance ? ",log_prior,chance" : ",log_prior");
    for (size_t k = 0; k < t->n_also; k++) {
        n2_text_add(out, ",");
        add_field(out, t->also_name[k]);
    }
    n2_text_add(out, "\n");
    for (size_t i = 0; i < p->rows; i++) {
        for (size_t j = 0; j < n; j++) {
            n2_design_value(t, j, p->x[i * n + j], out);
            n2_text_add(out, ",");
        }
        n2_text_add(out, "%s,", n2_format_number(t->sign * p->predicted[i], number));
        n2_text_add(out, "%s", n2_format_number(p->log_prior[i], number));
        if (p->chance) n2_text_add(out, ",%.4g", p->chance[i]);
        for (size_t k = 0; k < t->n_also; k++)
            n2_text_add(out, ",%s", n2_format_number(t->also[k * p->rows + i], number));
        n2_text_add(out, "\n");
    }
}

/* ---- for programs -------------------------------------------------------- */

/* The texts of a column's levels; NULL, and *n 0, if it holds numbers. */
static const char *const *find_levels(const n2_design_table *t, size_t j, n2_arena *arena,
                                      size_t *n) {
    *n = t->designs.space.factor[j].kind == N2_CATEGORY ? n2_levels_count(t->levels, t->names[j])
                                                        : 0;
    const char **texts = *n ? n2_arena_alloc(arena, *n, sizeof *texts) : NULL;
    for (size_t k = 0; texts && k < *n; k++) texts[k] = n2_levels_text(t->levels, t->names[j], k);
    return texts;
}

n2ce_status n2_design_proposals(const n2_design_table *t, const n2_proposals *p,
                                const double *spread, const double *distance, n2_arena *arena,
                                n2ce_proposals *out) {
    const size_t cols = t->designs.space.n;
    double *values = n2_arena_alloc(arena, p->rows, sizeof *values);
    size_t *n_levels = n2_arena_alloc(arena, cols, sizeof *n_levels);
    const char *const **levels = n2_arena_alloc(arena, cols, sizeof *levels);
    if (!values || !n_levels || !levels) return N2CE_ENOMEM;
    for (size_t i = 0; i < p->rows; i++) values[i] = t->sign * p->predicted[i];
    for (size_t j = 0; j < cols; j++) {
        levels[j] = find_levels(t, j, arena, &n_levels[j]);
        if (n_levels[j] && !levels[j]) return N2CE_ENOMEM;
    }
    *out = (n2ce_proposals){.rows = p->rows,
                            .cols = cols,
                            .designs = p->x,
                            .names = t->names,
                            .n_levels = n_levels,
                            .levels = levels,
                            .predicted = values,
                            .spread = spread,
                            .log_prior = p->log_prior,
                            .distance = distance};
    return N2CE_OK;
}
