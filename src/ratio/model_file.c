#include "model_file.h"

#include "critic_file.h"
#include "io/json.h"
#include "shapes_file.h"
#include "smooth_file.h"
#include "trees_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "n2ce ratio 1";

/* ---- the model ----------------------------------------------------------- */

void n2ce_model_free(n2ce_model *m) {
    if (!m) return;
    n2_ratio_free(m->ratio);
    for (size_t c = 0; c < m->cols && m->names; c++) n2_free(m->ctx, m->names[c]);
    n2_free(m->ctx, m->names);
    n2_free(m->ctx, m->categorical);
    n2_levels_free(m->levels);
    n2_free(m->ctx, m->json);
    n2_free(m->ctx, m);
}

size_t n2ce_model_columns(const n2ce_model *m) { return m ? m->cols : 0; }
const char *n2ce_model_column(const n2ce_model *m, size_t c) {
    return m && c < m->cols ? m->names[c] : NULL;
}
const char *n2ce_model_json(const n2ce_model *m) { return m ? m->json : NULL; }

n2ce_status n2ce_model_name(n2ce_model *m, const char *const *names) {
    if (!m || !names) return n2_fail(m ? m->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    return n2_columns_rename(m->ctx, names, m->cols, m->names, &m->levels);
}

static char *copy_text(n2ce_ctx *ctx, const char *text) {
    char *copy = n2_alloc(ctx, strlen(text) + 1, 1);
    if (copy) strcpy(copy, text);
    return copy;
}

static n2ce_status set_columns(n2ce_model *m, char *const *names, const bool *categorical,
                               size_t cols) {
    m->names = n2_alloc(m->ctx, cols, sizeof *m->names);
    m->categorical = n2_alloc(m->ctx, cols, sizeof *m->categorical);
    if (!m->names || !m->categorical) return N2CE_ENOMEM;
    m->cols = cols;
    memcpy(m->categorical, categorical, cols * sizeof *categorical);
    for (size_t c = 0; c < cols; c++)
        if (!(m->names[c] = copy_text(m->ctx, names[c]))) return N2CE_ENOMEM;
    return N2CE_OK;
}

n2ce_status n2_model_new(n2ce_ctx *ctx, n2_ratio *ratio, const n2_fit_record *record,
                         const n2_table *table, size_t x_cols, n2_levels *levels, const char *json,
                         n2ce_model **out) {
    *out = NULL;
    n2ce_model *m = n2_alloc(ctx, 1, sizeof *m);
    if (!m) {
        n2_ratio_free(ratio);
        return N2CE_ENOMEM;
    }
    *m = (n2ce_model){.ctx = ctx, .ratio = ratio, .record = *record, .x_cols = x_cols};
    n2ce_status status = set_columns(m, table->names, table->categorical, table->cols);
    if (status == N2CE_OK && levels) status = n2_levels_copy(ctx, levels, &m->levels);
    if (status == N2CE_OK && !(m->json = copy_text(ctx, json))) status = N2CE_ENOMEM;
    if (status == N2CE_OK)
        *out = m;
    else
        n2ce_model_free(m);
    return status;
}

/* As in a file, a number of a categorical column is the name of a level. */
static n2ce_status read_matrix(const n2ce_model *m, const n2ce_matrix *rows, n2_table **out) {
    char *categorical;
    *out = NULL;
    N2_TRY(n2_columns_quote(m->ctx, m->names, m->categorical, m->cols, &categorical));
    const n2_table_options o = {.names = m->names, .categorical = categorical, .levels = m->levels};
    const n2ce_status status = n2_table_of_matrix(m->ctx, rows, "the rows", &o, out);
    n2_free(m->ctx, categorical);
    if (status != N2CE_OK ||
        memcmp((*out)->categorical, m->categorical, m->cols * sizeof *m->categorical) == 0)
        return status;
    n2_table_free(*out);
    *out = NULL;
    return n2_fail(m->ctx, N2CE_EDATA, "The model has two columns of one name. Fit it anew.");
}

n2ce_status n2ce_model_score(n2ce_model *m, const n2ce_matrix *rows, double *f) {
    if (!m || !rows || !f) return n2_fail(m ? m->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_table *table;
    if (rows->cols != m->cols)
        return n2_fail(m->ctx, N2CE_EINVAL,
                       "The rows have %zu columns; the model was fitted to %zu.", rows->cols,
                       m->cols);
    if (rows->rows == 0) return N2CE_OK;
    N2_TRY(read_matrix(m, rows, &table));
    const n2ce_status status = n2_ratio_score(m->ratio, table->x, table->rows, f);
    n2_table_free(table);
    return status;
}

n2ce_status n2_model_open_rows(const n2ce_model *m, const char *path, n2_header header,
                               bool drop_missing, const char *columns, const size_t piece[2],
                               n2_reader **out) {
    char *names = NULL, *categorical = NULL;
    *out = NULL;
    n2ce_status status = n2_columns_quote(m->ctx, m->names, NULL, m->cols, &names);
    if (status == N2CE_OK)
        status = n2_columns_quote(m->ctx, m->names, m->categorical, m->cols, &categorical);
    if (status == N2CE_OK) {
        const n2_table_options o = {.header = header,
                                    .columns = columns && *columns ? columns : names,
                                    .categorical = categorical,
                                    .levels = m->levels,
                                    .drop_missing = drop_missing,
                                    .from = piece ? piece[0] : 0,
                                    .to = piece ? piece[1] : 0};
        status = n2_reader_open(m->ctx, path, &o, out);
    }
    if (status == N2CE_OK && *out && n2_reader_cols(*out) != m->cols) {
        status =
            n2_fail(m->ctx, N2CE_EDATA, "%s: %zu of its columns are chosen; the model has %zu.",
                    path, n2_reader_cols(*out), m->cols);
        n2_reader_close(*out);
        *out = NULL;
    }
    n2_free(m->ctx, names);
    n2_free(m->ctx, categorical);
    return status;
}

/* ---- what is in the file ------------------------------------------------- */

enum { FEATURE_NUMBERS = 5 }; /* kind, mean, scale, levels, knots */

static void put_features(n2_bundle *b, const n2_features *f) {
    size_t knots = 0;
    for (size_t c = 0; c < f->cols; c++) knots += f->column[c].n_knots;
    double *table = n2_bundle_room(b, f->cols * FEATURE_NUMBERS),
           *knot = n2_bundle_room(b, 2 * knots);
    if (b->failed) return;
    double *at = knot;
    for (size_t c = 0; c < f->cols; c++) {
        const n2_feature *x = &f->column[c];
        const double row[] = {(double)x->kind, x->mean, x->scale, (double)x->levels,
                              (double)x->n_knots};
        memcpy(table + c * FEATURE_NUMBERS, row, sizeof row);
        for (size_t k = 0; k < x->n_knots; k++) {
            *at++ = x->knot[k];
            *at++ = x->normal[k];
        }
    }
    n2_bundle_put_doubles(b, "features", f->cols, FEATURE_NUMBERS, table);
    n2_bundle_put_doubles(b, "knots", knots, 2, knot);
}

static void put_base(n2_bundle *b, const n2_gauss *g) {
    if (!g) return;
    n2_bundle_put_doubles(b, "base.basis", g->d, g->d, g->basis);
    n2_bundle_put_doubles(b, "base.whiten", g->d, g->d, g->whiten);
    n2_bundle_put_doubles(b, "base.centre", g->d, 0, g->centre);
    n2_bundle_put_doubles(b, "base.lambda", g->d, 0, g->lambda);
    n2_bundle_put_doubles(b, "base.delta", g->d, 0, g->delta);
}

static void put_kernel(n2_bundle *b, const n2_kernel_ratio *k) {
    if (!k) return;
    double *numbers = n2_bundle_room(b, 3);
    if (!numbers) return;
    numbers[0] = (double)k->method;
    numbers[1] = k->sigma;
    numbers[2] = k->lambda;
    n2_bundle_put_doubles(b, "kernel.numbers", 3, 0, numbers);
    n2_bundle_put_doubles(b, "kernel.centre", k->centres, k->cols, k->centre);
    n2_bundle_put_doubles(b, "kernel.alpha", k->centres, 0, k->alpha);
}

/* Without trees it is as it was before there were any. */
enum { PARTS_BEFORE_TREES = 3 };

static void put_blend(n2_bundle *b, const n2_blend *blend, bool trees) {
    const size_t parts = trees ? N2_BLEND_PARTS : PARTS_BEFORE_TREES;
    double *numbers = n2_bundle_room(b, parts + 1);
    if (!numbers) return;
    memcpy(numbers, blend->weight, parts * sizeof *numbers);
    numbers[parts] = blend->constant;
    n2_bundle_put_doubles(b, "blend", parts + 1, 0, numbers);
}

enum { RELIABILITY_NUMBERS = 5 }; /* of a bin, and of the row of means before all bins */

static void put_reliability(n2_bundle *b, const n2_reliability *r) {
    double *rows = n2_bundle_room(b, (r->bins + 1) * RELIABILITY_NUMBERS);
    if (!rows || r->bins == 0) return;
    const double means[] = {r->mean_weight.value, r->mean_weight.error, r->share,
                            r->mean_inverse.value, r->mean_inverse.error};
    memcpy(rows, means, sizeof means);
    for (size_t k = 0; k < r->bins; k++) {
        const n2_reliability_bin *of = &r->bin[k];
        const double row[] = {of->predicted, of->observed, of->error, of->num, of->den};
        memcpy(rows + (k + 1) * RELIABILITY_NUMBERS, row, sizeof row);
    }
    n2_bundle_put_doubles(b, "calibration", r->bins + 1, RELIABILITY_NUMBERS, rows);
}

/* ---- saving -------------------------------------------------------------- */

/* Names of the columns and levels, and the numbers that shape the networks. */
static n2ce_status describe(const n2ce_model *m, char **out) {
    n2_text text = n2_text_new(m->ctx);
    const n2_critic_options *o = &m->record.used.critic;
    n2_text_add(&text, "{\"columns\": [");
    for (size_t c = 0; c < m->cols; c++) {
        n2_text_add(&text, c ? ", [" : "[");
        n2_text_add_json_string(&text, m->names[c]);
        const size_t levels = m->categorical[c] ? n2_levels_count(m->levels, m->names[c]) : 0;
        for (size_t k = 0; k < levels; k++) {
            n2_text_add(&text, ", ");
            n2_text_add_json_string(&text, n2_levels_text(m->levels, m->names[c], k));
        }
        n2_text_add(&text, "]");
    }
    n2_text_add(&text, "], \"shape\": [%zu, %zu, %zu, %zu, %zu, %zu]}", m->x_cols,
                m->ratio->critics, o->stages, o->width, o->blocks,
                (size_t)m->ratio->features->width);
    return n2_text_take(&text, out);
}

static n2ce_status gather(const n2ce_model *m, n2_bundle *b) {
    put_features(b, m->ratio->features);
    put_base(b, m->ratio->base);
    if (m->ratio->smooths > 0) n2_shapes_put(b, m->ratio->shapes);
    n2_bundle_put_doubles(b, "shift", 1, 0, &m->ratio->shift);
    for (size_t k = 0; k < m->ratio->critics; k++) N2_TRY(n2_critic_put(b, m->ratio->critic[k], k));
    for (size_t k = 0; k < m->ratio->smooths; k++) N2_TRY(n2_smooth_put(b, m->ratio->smooth[k], k));
    for (size_t k = 0; k < m->ratio->forests; k++) N2_TRY(n2_trees_put(b, m->ratio->trees[k], k));
    put_blend(b, &m->ratio->blend, m->ratio->forests > 0);
    put_kernel(b, m->ratio->kernel);
    put_reliability(b, &m->reliability);
    return N2CE_OK;
}

n2ce_status n2ce_model_save(const n2ce_model *m, const char *path, bool overwrite) {
    if (!m || !path) return n2_fail(m ? m->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_bundle b = n2_bundle_new(m->ctx);
    char *about = NULL;
    n2ce_status status = gather(m, &b);
    if (status == N2CE_OK) status = describe(m, &about);
    if (status == N2CE_OK) {
        n2_bundle_note(&b, "model", about);
        n2_bundle_note(&b, "info", m->json);
        status = n2_bundle_write(&b, FORMAT, path, overwrite);
    }
    n2_bundle_free(&b);
    n2_free(m->ctx, about);
    return status;
}

/* ---- loading ------------------------------------------------------------- */

/* `levels` is how many the file's description gives the column. */
static n2ce_status read_feature(n2ce_ctx *ctx, const double *row, const double *knots,
                                size_t n_knots, size_t *at, size_t levels, n2_feature *f) {
    const bool fits = row[0] >= 0 && row[0] <= N2_FEATURE_LEVELS && row[2] > 0 &&
                      row[3] == (double)levels && row[4] >= 0 && row[4] <= (double)(n_knots - *at);
    if (!fits) return N2CE_EDATA;
    *f = (n2_feature){.kind = (n2_feature_kind)row[0],
                      .mean = row[1],
                      .scale = row[2],
                      .levels = levels,
                      .n_knots = (size_t)row[4]};
    if (f->kind != N2_FEATURE_NORMAL) return f->n_knots == 0 ? N2CE_OK : N2CE_EDATA;
    f->knot = n2_alloc(ctx, f->n_knots, sizeof(double));
    f->normal = n2_alloc(ctx, f->n_knots, sizeof(double));
    if (!f->knot || !f->normal) return N2CE_ENOMEM;
    for (size_t k = 0; k < f->n_knots; k++, ++*at) {
        f->knot[k] = knots[2 * *at];
        f->normal[k] = knots[2 * *at + 1];
    }
    return f->n_knots >= 2 ? N2CE_OK : N2CE_EDATA;
}

static n2ce_status read_features(const n2ce_model *m, const double *rows, const double *knots,
                                 size_t n_knots) {
    n2_features *f = m->ratio->features;
    size_t at = 0;
    for (size_t c = 0; c < m->cols; c++) {
        const size_t levels = m->categorical[c] ? n2_levels_count(m->levels, m->names[c]) : 0;
        N2_TRY(read_feature(m->ctx, rows + c * FEATURE_NUMBERS, knots, n_knots, &at, levels,
                            &f->column[c]));
    }
    f->width = n2_features_width(f, f->cols);
    return N2CE_OK;
}

static n2ce_status load_features(const n2ce_model *m, const n2_st_file *f) {
    const n2_st_tensor *k = n2_st_find(f, "knots");
    const size_t n_knots = k ? n2_st_elements(k) / 2 : 0;
    double *rows = NULL, *knots = NULL;
    n2_features *out = m->ratio->features = n2_alloc(m->ctx, 1, sizeof *out);
    if (!out) return N2CE_ENOMEM;
    out->ctx = m->ctx;
    out->column = n2_alloc(m->ctx, m->cols, sizeof *out->column);
    n2ce_status status = out->column ? N2CE_OK : N2CE_ENOMEM;
    if (out->column) out->cols = m->cols;
    if (status == N2CE_OK)
        status = n2_bundle_take(m->ctx, f, "features", m->cols * FEATURE_NUMBERS, &rows);
    if (status == N2CE_OK) status = n2_bundle_take(m->ctx, f, "knots", 2 * n_knots, &knots);
    if (status == N2CE_OK) status = read_features(m, rows, knots, n_knots);
    n2_free(m->ctx, rows);
    n2_free(m->ctx, knots);
    return status;
}

static n2ce_status load_base(n2_ratio *r, const n2_st_file *f, size_t d) {
    n2_gauss *g = r->base = n2_alloc(r->ctx, 1, sizeof *g);
    if (!g) return N2CE_ENOMEM;
    g->ctx = r->ctx;
    g->d = d;
    N2_TRY(n2_bundle_take(r->ctx, f, "base.basis", d * d, &g->basis));
    N2_TRY(n2_bundle_take(r->ctx, f, "base.whiten", d * d, &g->whiten));
    N2_TRY(n2_bundle_take(r->ctx, f, "base.centre", d, &g->centre));
    N2_TRY(n2_bundle_take(r->ctx, f, "base.lambda", d, &g->lambda));
    N2_TRY(n2_bundle_take(r->ctx, f, "base.delta", d, &g->delta));
    n2_gauss_find_pairs(g, r->dx);
    return N2CE_OK;
}

static n2ce_status load_critic(n2ce_model *m, const n2_st_file *f, size_t k) {
    n2_ratio *r = m->ratio;
    const n2_critic_shape shape = {r->features->width, r->dx, r->base, &m->record.used.critic};
    N2_TRY(n2_critic_take(m->ctx, f, k, &shape, &r->critic[k]));
    r->critics++;
    return N2CE_OK;
}

static n2ce_status load_kernel(n2_ratio *r, const n2_st_file *f, size_t d) {
    const size_t n = n2_st_elements(n2_st_find(f, "kernel.alpha"));
    n2_kernel_ratio *k = r->kernel = n2_alloc(r->ctx, 1, sizeof *k);
    double *numbers = NULL;
    if (!k) return N2CE_ENOMEM;
    *k = (n2_kernel_ratio){.ctx = r->ctx, .centres = n, .cols = d};
    n2ce_status status = n2_bundle_take(r->ctx, f, "kernel.numbers", 3, &numbers);
    if (status == N2CE_OK) {
        k->method = numbers[0] > 0 ? N2_KLIEP : N2_ULSIF;
        k->sigma = numbers[1];
        k->lambda = numbers[2];
        if (!(k->sigma > 0)) status = N2CE_EDATA;
    }
    if (status == N2CE_OK) status = n2_bundle_take(r->ctx, f, "kernel.centre", n * d, &k->centre);
    if (status == N2CE_OK) status = n2_bundle_take(r->ctx, f, "kernel.alpha", n, &k->alpha);
    n2_free(r->ctx, numbers);
    return status;
}

/* Files of before there was a blend have none: their parts are added. */
static n2ce_status load_blend(n2_ratio *r, const n2_st_file *f) {
    const size_t parts = n2_trees_are_there(f, 0) ? N2_BLEND_PARTS : PARTS_BEFORE_TREES;
    double *numbers = NULL;
    r->blend = (n2_blend){{1, 1, 1, 0}, 0};
    if (!n2_st_find(f, "blend")) return N2CE_OK;
    N2_TRY(n2_bundle_take(r->ctx, f, "blend", parts + 1, &numbers));
    memcpy(r->blend.weight, numbers, parts * sizeof *numbers);
    r->blend.constant = numbers[parts];
    n2_free(r->ctx, numbers);
    return N2CE_OK;
}

static n2ce_status load_smooths(n2_ratio *r, const n2_st_file *f, size_t d) {
    for (; r->smooths < N2_MOST_FOLDS && n2_smooth_is_there(f, r->smooths); r->smooths++)
        N2_TRY(n2_smooth_take(r->ctx, f, r->smooths, d, r->shapes, &r->smooth[r->smooths]));
    return N2CE_OK;
}

static n2ce_status load_trees(n2_ratio *r, const n2_st_file *f, size_t d) {
    for (; r->forests < N2_MOST_FOLDS && n2_trees_are_there(f, r->forests); r->forests++)
        N2_TRY(n2_trees_take(r->ctx, f, r->forests, d, &r->trees[r->forests]));
    return N2CE_OK;
}

/* Files of before there was a calibration have none. */
static n2ce_status load_reliability(n2ce_model *m, const n2_st_file *f) {
    const n2_st_tensor *t = n2_st_find(f, "calibration");
    n2_reliability *r = &m->reliability;
    double *rows = NULL;
    if (!t) return N2CE_OK;
    const size_t n = n2_st_elements(t) / RELIABILITY_NUMBERS;
    if (n < 1 || n > N2_RELIABILITY_BINS + 1) return N2CE_EDATA;
    N2_TRY(n2_bundle_take(m->ctx, f, "calibration", n * RELIABILITY_NUMBERS, &rows));
    r->mean_weight = (n2_estimate){rows[0], rows[1]};
    r->share = rows[2];
    r->mean_inverse = (n2_estimate){rows[3], rows[4]};
    r->bins = n - 1;
    for (size_t k = 0; k < r->bins; k++) {
        const double *row = rows + (k + 1) * RELIABILITY_NUMBERS;
        r->bin[k] = (n2_reliability_bin){row[0], row[1], row[2], row[3], row[4]};
    }
    n2_free(m->ctx, rows);
    return N2CE_OK;
}

/* One entry of "columns": the name, and the levels if it has some. */
static n2ce_status read_column(n2ce_model *m, n2_json *json, size_t c) {
    const char *text;
    bool more;
    size_t code;
    N2_TRY(n2_json_enter(json, '['));
    N2_TRY(n2_json_next(json, ']', &more));
    N2_TRY(n2_json_string(json, &text));
    if (!(m->names[c] = copy_text(m->ctx, text))) return N2CE_ENOMEM;
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_string(json, &text));
        m->categorical[c] = true;
        N2_TRY(n2_levels_add(m->levels, m->names[c], text, &code));
    }
}

/* The numbers of "shape", see describe(). */
static n2ce_status read_shape(n2_json *json, int64_t shape[6]) {
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (size_t i = 0; i < 6; i++) {
        N2_TRY(n2_json_next(json, ']', &more));
        N2_TRY(n2_json_count(json, &shape[i]));
    }
    return n2_json_next(json, ']', &more);
}

static n2ce_status read_description(n2ce_model *m, const char *path, const char *text,
                                    char *strings, size_t most, int64_t shape[6]) {
    n2_json json = n2_json_new(m->ctx, path, text, strlen(text), strings);
    const char *key;
    bool more;
    N2_TRY(n2_json_enter(&json, '{'));
    N2_TRY(n2_json_next(&json, '}', &more));
    N2_TRY(n2_json_key(&json, &key));
    N2_TRY(n2_json_enter(&json, '['));
    for (;;) {
        N2_TRY(n2_json_next(&json, ']', &more));
        if (!more) break;
        if (m->cols == most) return N2CE_EDATA;
        N2_TRY(read_column(m, &json, m->cols++));
    }
    N2_TRY(n2_json_next(&json, '}', &more));
    N2_TRY(n2_json_key(&json, &key));
    return read_shape(&json, shape);
}

static n2ce_status load_columns(n2ce_model *m, const char *path, const n2_st_file *f,
                                int64_t shape[6]) {
    const n2_st_tensor *t = n2_st_find(f, "features");
    const char *text = n2_st_metadata(f, "model"), *info = n2_st_metadata(f, "info");
    if (!t || !text || !info || t->rank != 2 || t->shape[0] < 1) return N2CE_EDATA;
    const size_t cols = (size_t)t->shape[0];
    m->names = n2_alloc(m->ctx, cols, sizeof *m->names);
    m->categorical = n2_alloc(m->ctx, cols, sizeof *m->categorical);
    m->json = copy_text(m->ctx, info);
    char *strings = n2_alloc(m->ctx, strlen(text) + 1, 1);
    n2ce_status status = m->names && m->categorical && m->json && strings ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_levels_new(m->ctx, &m->levels);
    if (status == N2CE_OK) status = read_description(m, path, text, strings, cols, shape);
    n2_free(m->ctx, strings);
    if (status == N2CE_OK) n2_levels_freeze(m->levels);
    return status == N2CE_OK && m->cols != cols ? N2CE_EDATA : status;
}

/* Whether the numbers of "shape" are possible, and what they say. */
static bool read_sizes(n2ce_model *m, const int64_t shape[6]) {
    n2_critic_options *o = &m->record.used.critic;
    const bool fits = shape[0] < (int64_t)m->cols && shape[1] <= N2_MOST_FOLDS &&
                      shape[2] <= N2_MOST_STAGES && shape[3] <= 65536 && shape[4] <= 32;
    if (!fits || (shape[1] > 0 && (shape[2] < 1 || shape[3] < 2))) return false;
    m->x_cols = (size_t)shape[0];
    o->stages = (size_t)shape[2];
    o->width = (size_t)shape[3];
    o->blocks = (size_t)shape[4];
    return true;
}

static n2ce_status load_parts(n2ce_model *m, const n2_st_file *f, const int64_t shape[6]) {
    n2_ratio *r = m->ratio = n2_alloc(m->ctx, 1, sizeof *r);
    if (!r) return N2CE_ENOMEM;
    r->ctx = m->ctx;
    if (!read_sizes(m, shape)) return N2CE_EDATA;
    N2_TRY(load_features(m, f));
    const size_t d = r->features->width;
    r->dx = n2_features_width(r->features, m->x_cols);
    const bool split = m->x_cols == 0 || (r->dx > 0 && r->dx < d);
    if (d == 0 || d != (size_t)shape[5] || !split) return N2CE_EDATA;
    const n2_st_tensor *shift = n2_st_find(f, "shift");
    if (!shift) return N2CE_EDATA;
    N2_TRY(n2_st_to_f64(m->ctx, shift, &r->shift, 1));
    if (n2_st_find(f, "base.basis")) N2_TRY(load_base(r, f, d));
    N2_TRY(load_blend(r, f));
    N2_TRY(n2_shapes_take(r->ctx, f, r->features, r->dx, &r->shapes));
    N2_TRY(load_smooths(r, f, d));
    N2_TRY(load_trees(r, f, d));
    if (n2_st_find(f, "kernel.alpha")) N2_TRY(load_kernel(r, f, d));
    for (int64_t k = 0; k < shape[1]; k++) N2_TRY(load_critic(m, f, (size_t)k));
    return load_reliability(m, f);
}

n2ce_status n2_model_of_file(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                             n2ce_model **out) {
    int64_t shape[6] = {0};
    *out = NULL;
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT, "a model of n2ce. Make one with: n2ce fit"));
    n2ce_model *m = n2_alloc(ctx, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    m->ctx = ctx;
    n2ce_status status = load_columns(m, path, f, shape);
    if (status == N2CE_OK) status = load_parts(m, f, shape);
    if (status == N2CE_OK) {
        *out = m;
        return N2CE_OK;
    }
    n2ce_model_free(m);
    return status == N2CE_ENOMEM
               ? status
               : n2_bundle_damaged(ctx, path, "a part is missing or does not fit");
}

n2ce_status n2ce_model_load(n2ce_ctx *ctx, const char *path, n2ce_model **out) {
    if (!ctx || !path || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2ce_status status = n2_model_of_file(ctx, path, f, out);
    n2_st_close(f);
    return status;
}
