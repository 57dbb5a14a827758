#include "ratio_session.h"

#include "base/numerics.h"
#include "ratio/copies.h"
#include "ratio_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options ------------------------------------------------------------- */

typedef struct method_row {
    const char *name;
    n2_estimator estimator;
    n2_contrast contrast;
    double magnitude; /* 0: as asked */
} method_row;

static const method_row methods[] = {
    {"n2ce", N2_ESTIMATOR_NEURAL, N2_CONTRAST_N2CE, 0},
    {"nce", N2_ESTIMATOR_NEURAL, N2_CONTRAST_N2CE, 1},
    {"nwj", N2_ESTIMATOR_NEURAL, N2_CONTRAST_NWJ, 1},
    {"neg-reweight", N2_ESTIMATOR_NEURAL, N2_CONTRAST_NEG_REWEIGHT, 0},
    {"dv", N2_ESTIMATOR_NEURAL, N2_CONTRAST_DV, 1},
    {"infonce", N2_ESTIMATOR_NEURAL, N2_CONTRAST_INFONCE, 1},
    {"smile", N2_ESTIMATOR_NEURAL, N2_CONTRAST_SMILE, 1},
    {"ulsif", N2_ESTIMATOR_ULSIF, N2_CONTRAST_N2CE, 1},
    {"kliep", N2_ESTIMATOR_KLIEP, N2_CONTRAST_N2CE, 1},
};

static const method_row *find_method(const char *name) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0) return &methods[i];
    return &methods[0];
}

/* 0 for "auto": choose. */
static double number(const n2ce_options *o, const char *name) {
    const double x = n2ce_options_number(o, name);
    return isnan(x) ? 0 : x;
}

static size_t count(const n2ce_options *o, const char *name) { return (size_t)number(o, name); }

static bool is(const n2ce_options *o, const char *name, const char *word) {
    return strcmp(n2ce_options_get(o, name), word) == 0;
}

/* The baselines are a network alone, as they were published, unless asked otherwise. */
static n2_parts parts_of(const n2ce_options *o) {
    if (is(o, "critic", "auto")) return is(o, "method", "n2ce") ? N2_PARTS_BOTH : N2_PARTS_NET;
    if (is(o, "critic", "quadratic")) return N2_PARTS_QUADRATIC;
    return is(o, "critic", "net") ? N2_PARTS_NET : N2_PARTS_BOTH;
}

static n2ce_status read_options(n2ce_ctx *ctx, const n2ce_options *o, n2_fit_options *f) {
    const method_row *m = find_method(n2ce_options_get(o, "method"));
    *f = (n2_fit_options){
        .estimator = m->estimator,
        .parts = parts_of(o),
        .scaling = is(o, "scaling", "linear")   ? N2_SCALING_LINEAR
                   : is(o, "scaling", "normal") ? N2_SCALING_NORMAL
                                                : N2_SCALING_AUTO,
        .critic = {.contrast = m->contrast,
                   .magnitude = m->magnitude > 0 ? m->magnitude : number(o, "M"),
                   .regularisation = number(o, "lambda"),
                   .stages = count(o, "stages"),
                   .width = count(o, "width"),
                   .blocks = count(o, "blocks"),
                   .batch = count(o, "batch"),
                   .noise = count(o, "noise"),
                   .steps = count(o, "steps"),
                   .rate = number(o, "rate"),
                   .tau = 5},
        .folds = count(o, "folds"),
        .max_seconds = number(o, "time-limit"),
        .seed = n2_options_count(o, "seed"),
        .smooth = is(o, "critic", "auto") && is(o, "method", "n2ce"),
        .explain = n2ce_options_get(o, "report") != NULL,
    };
    const bool separable = m->contrast <= N2_CONTRAST_NEG_REWEIGHT;
    if (!separable && f->critic.stages > 1)
        return n2_fail(ctx, N2CE_EINVAL, "--method %s has no stages; use --stages 1, or n2ce.",
                       m->name);
    if (!f->critic.stages && !is(o, "method", "n2ce")) f->critic.stages = 1; /* as published */
    if (m->magnitude > 0 && number(o, "M") > 0 && number(o, "M") != m->magnitude)
        return n2_fail(ctx, N2CE_EINVAL,
                       "--method %s has no magnitude; leave --M out, or use n2ce.", m->name);
    return N2CE_OK;
}

n2ce_status n2_session_open(n2ce_ctx *ctx, const n2ce_options *o, n2_session *s) {
    *s = (n2_session){.ctx = ctx, .options = o};
    N2_TRY(read_options(ctx, o, &s->fit));
    N2_TRY(n2_choice_of_options_beside(ctx, o, &s->choice, &s->opening));
    return n2_levels_new(ctx, &s->levels);
}

void n2_session_close(n2_session *s) {
    n2_opening_end(&s->opening);
    n2_table_free(s->num);
    n2_table_free(s->den);
    if (s->levels) n2_levels_free(s->levels);
    n2_ratio_free(s->ratio);
    if (s->scores.ctx) n2_scores_free(&s->scores);
    n2_report_free(s->ctx, s->report);
}

n2ce_status n2_session_run(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                           n2ce_answer *answer, n2_session_fn *fn) {
    n2_session s;
    n2ce_status status = n2_session_open(ctx, o, &s);
    s.answer = answer;
    if (status == N2CE_OK) status = fn(&s, data, answer);
    n2_session_close(&s);
    return status;
}

/* ---- samples ------------------------------------------------------------- */

enum { TABLE_BYTES = 96 << 20 };

static n2_table_options table_options(const n2_session *s, const char *columns, const char *then) {
    return (n2_table_options){.header = n2_header_of(s->options),
                              .columns = columns,
                              .then = then,
                              .categorical = n2ce_options_get(s->options, "categorical"),
                              .levels = s->levels,
                              .drop_missing = n2_options_flag(s->options, "drop-missing"),
                              .max_rows = count(s->options, "max-rows"),
                              .max_bytes = TABLE_BYTES,
                              .seed = s->fit.seed};
}

static n2ce_status read_samples(n2_session *s, const n2_samples *from, const n2_table_options *o,
                                n2_table **out) {
    if (from->path) return n2_table_read(s->ctx, from->path, o, out);
    return n2_table_of_matrix(s->ctx, from->matrix, from->label, o, out);
}

static void note(n2_session *s, size_t side, const n2_table *t) {
    s->rows[side] = t->rows;
    s->seen[side] = t->seen;
    s->dropped += t->dropped;
}

static const char *name_of(const n2_samples *s) { return s->path ? s->path : s->label; }

static n2ce_status too_few(n2_session *s, const n2_table *t, const char *name) {
    if (t->rows >= 2) return N2CE_OK;
    return n2_fail(s->ctx, N2CE_EDATA, "%s has %zu row%s; a ratio needs at least 2 on each side.",
                   name, t->rows, t->rows == 1 ? "" : "s");
}

/* A column of a file without a header is called by its number. */
static bool is_number(const char *name) { return strspn(name, "0123456789") == strlen(name); }

/* Columns of two files must agree in number and, where both have names, in names. */
static n2ce_status same_columns(n2_session *s, const n2_samples *num, const n2_samples *den) {
    const n2_table *a = s->num, *b = s->den;
    if (a->cols != b->cols)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "%s has %zu column%s and %s has %zu. Choose the same ones with --columns.",
                       name_of(num), a->cols, a->cols == 1 ? "" : "s", name_of(den), b->cols);
    for (size_t c = 0; c < a->cols; c++) {
        const bool named = !is_number(a->names[c]) && !is_number(b->names[c]);
        if (named && strcmp(a->names[c], b->names[c]) != 0)
            return n2_fail(
                s->ctx, N2CE_EDATA,
                "Column %zu is \"%s\" in %s and \"%s\" in %s. Put them in one order with "
                "--columns.",
                c + 1, a->names[c], name_of(num), b->names[c], name_of(den));
    }
    return N2CE_OK;
}

/* Copies of rows are no new evidence. */
static n2ce_status drop_copies(n2_session *s) {
    double *rows[2] = {s->den->x, s->num->x};
    size_t n[2] = {s->den->rows, s->num->rows};
    N2_TRY(n2_copies_drop(s->ctx, rows, n, s->num->cols, &s->copies));
    s->den->rows = s->rows[0] = n[0];
    s->num->rows = s->rows[1] = n[1];
    if (s->copies)
        n2_log(
            s->ctx, N2CE_LOG_WARNING,
            "%zu rows stand in their sample more than once, though values hardly repeat: each is "
            "counted once. Copies are no new evidence.",
            s->copies);
    return N2CE_OK;
}

n2ce_status n2_session_read_pair(n2_session *s, const n2_samples *num, const n2_samples *den) {
    const n2_table_options o = table_options(s, n2ce_options_get(s->options, "columns"), NULL);
    N2_TRY(read_samples(s, num, &o, &s->num));
    N2_TRY(read_samples(s, den, &o, &s->den));
    N2_TRY(same_columns(s, num, den));
    N2_TRY(too_few(s, s->num, name_of(num)));
    N2_TRY(too_few(s, s->den, name_of(den)));
    note(s, 1, s->num);
    note(s, 0, s->den);
    return drop_copies(s);
}

n2ce_status n2_option_needed(n2ce_ctx *ctx, const n2ce_options *o, const char *verb,
                             const char *name) {
    if (n2ce_options_get(o, name)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "%s needs --%s FILE. Try: n2ce help %s", verb, name, verb);
}

n2ce_status n2_session_read_num_den(n2_session *s, const char *verb, const n2ce_matrix *data) {
    if (!data) {
        N2_TRY(n2_option_needed(s->ctx, s->options, verb, "num"));
        N2_TRY(n2_option_needed(s->ctx, s->options, verb, "den"));
    }
    const n2_samples num = {data ? NULL : n2ce_options_get(s->options, "num"), data, "num"};
    const n2_samples den = {data ? NULL : n2ce_options_get(s->options, "den"),
                            data ? data + 1 : NULL, "den"};
    return n2_session_read_pair(s, &num, &den);
}

static n2ce_status join(n2_session *s, const n2ce_matrix *m, n2_table **out) {
    static const char *const labels[] = {"x", "y", "(x, y)"};
    const n2_table_options o = table_options(s, NULL, NULL);
    if (m[1].rows != m[0].rows)
        return n2_fail(s->ctx, N2CE_EINVAL, "x has %zu rows and y has %zu; they must be pairs.",
                       m[0].rows, m[1].rows);
    return n2_table_of_matrices(s->ctx, m, labels, &o, out);
}

n2ce_status n2_session_read_joint(n2_session *s, const n2_samples *joint, const char *x,
                                  const char *y) {
    const n2_table_options o = table_options(s, x, y);
    if (joint->path)
        N2_TRY(n2_table_read(s->ctx, joint->path, &o, &s->num));
    else
        N2_TRY(join(s, joint->matrix, &s->num));
    s->x_cols = joint->path ? s->num->first_cols : joint->matrix[0].cols;
    note(s, 1, s->num);
    return too_few(s, s->num, joint->path ? joint->path : "(x, y)");
}

/* ---- columns that no fit can deal with ----------------------------------- */

static const double LARGEST = 1e100; /* its square is still a number */
static const double LEAST = 1e-100;  /* so is its inverse's */

static n2ce_status check_column(n2_session *s, size_t c, n2_extent a, n2_extent b, bool *varies) {
    const double size = fmax(fmax(-a.min, a.max), fmax(-b.min, b.max));
    if (size > LARGEST)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "Column \"%s\" has values of size %.3g. Rescale it, or leave it out with "
                       "--columns.",
                       s->num->names[c], size);
    const double range = fmax(a.max, b.max) - fmin(a.min, b.min);
    *varies = range > 0;
    if (*varies && range < LEAST)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "Column \"%s\" has values that differ by %.3g at most. Rescale it, or leave "
                       "it out with --columns.",
                       s->num->names[c], range);
    const bool one_value = !(a.min < a.max) || !(b.min < b.max);
    if (*varies && one_value && !s->one_sided) s->one_sided = s->num->names[c];
    return N2CE_OK;
}

/* How many columns of x and y, or of y alone, have more than one value. */
static n2ce_status count_varying(n2_session *s, size_t *x, size_t *y) {
    n2_extent *a = NULL, *b = NULL;
    n2ce_status status = n2_table_ranges(s->num, &a);
    if (status == N2CE_OK && s->den) status = n2_table_ranges(s->den, &b);
    for (size_t c = 0; c < s->num->cols && status == N2CE_OK; c++) {
        bool varies = false;
        status = check_column(s, c, a[c], b ? b[c] : a[c], &varies);
        *x += varies && c < s->x_cols;
        *y += varies && c >= s->x_cols;
    }
    n2_free(s->ctx, a);
    n2_free(s->ctx, b);
    return status;
}

/* A column with one value is left out; at least one must be left. */
static n2ce_status check_columns(n2_session *s) {
    size_t x = 0, y = 0;
    N2_TRY(count_varying(s, &x, &y));
    if (s->den && y == 0)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "All rows of both samples are the same; there is nothing to compare.");
    if (!s->den && (x == 0 || y == 0))
        return n2_fail(
            s->ctx, N2CE_EDATA,
            "%s has one value only, so the mutual information is 0. Choose other columns "
            "with --%s.",
            x ? "y" : "x", x ? "y" : "x");
    return N2CE_OK;
}

/* ---- fit ----------------------------------------------------------------- */

n2ce_status n2_session_levels(const n2_session *s, size_t **out) {
    size_t *levels = *out = n2_alloc(s->ctx, s->num->cols, sizeof *levels);
    if (!levels) return N2CE_ENOMEM;
    for (size_t c = 0; c < s->num->cols; c++)
        if (s->num->categorical[c]) levels[c] = n2_levels_count(s->levels, s->num->names[c]);
    return N2CE_OK;
}

n2ce_status n2_session_fit(n2_session *s) {
    size_t *levels;
    N2_TRY(n2_opening_look(s->ctx, s->options, &s->choice, &s->opening));
    N2_TRY(check_columns(s));
    N2_TRY(n2_data_facts_find(s->num, s->den, s->x_cols, &s->facts));
    N2_TRY(n2_session_levels(s, &levels));
    /* nothing can be learned of a ratio that is infinite */
    if (s->facts.determined || s->facts.dependent[0] || s->facts.dependent[1])
        if (s->fit.parts == N2_PARTS_BOTH) s->fit.parts = N2_PARTS_QUADRATIC;
    s->fit.critic.choice = &s->choice;
    n2ce_status status = n2_ratio_fit(s->ctx, s->num, s->den, s->x_cols, levels, &s->fit, &s->ratio,
                                      &s->scores, &s->record);
    /* without a network nobody waited for the GPU; but if it was asked for, it must be there */
    if (status == N2CE_OK && s->choice.asked_for)
        status = n2_choice_settle(&s->choice, s->ctx, 0, NULL, NULL);
    n2_choice_explain(&s->choice);
    n2_free(s->ctx, levels);
    s->scores.cells = s->facts.cells;
    if (status == N2CE_OK) status = n2_reliability_of(&s->scores, &s->reliability);
    if (status == N2CE_OK && s->fit.explain) status = n2_report_new(s);
    return status;
}

/* ---- its account of itself ----------------------------------------------- */

void n2_session_samples(const n2_session *s, n2_text *text) {
    const size_t rows = s->rows[0] + s->rows[1], seen = s->seen[0] + s->seen[1];
    n2_text_add(text, "%zu", s->rows[1]);
    if (s->den) n2_text_add(text, " and %zu", s->rows[0]);
    n2_text_add(text, " rows");
    if (seen - s->dropped > rows) {
        n2_text_add(text, " of %zu", s->seen[1]);
        if (s->den) n2_text_add(text, " and %zu", s->seen[0]);
        if (seen - s->dropped > rows + s->copies)
            n2_text_add(text, " (a random subset, see --max-rows)");
    }
    if (s->copies) n2_text_add(text, ", %zu copies left out", s->copies);
    if (s->dropped) n2_text_add(text, ", %zu left out for missing values", s->dropped);
    n2_text_add(text, ", %zu column%s", s->num->cols, s->num->cols == 1 ? "" : "s");
}

/* The parts that have a weight, as "quadratic + smooth". */
static const char *parts_name(const n2_session *s, char name[64]) {
    const n2_ratio *r = s->ratio;
    if (r->kernel) return s->fit.estimator == N2_ESTIMATOR_ULSIF ? "uLSIF" : "KLIEP";
    if (!s->record.learned) return "quadratic";
    const struct {
        bool there;
        const char *name;
    } part[] = {{r->base && s->scores.replaced < 1, "quadratic"},
                {r->smooths > 0 && s->record.shaped, "shapes"},
                {r->smooths > 0, "smooth"},
                {r->critics > 0, "network"},
                {r->forests > 0, "trees"}};
    size_t at = 0;
    for (size_t k = 0; k < sizeof part / sizeof part[0]; k++)
        if (part[k].there)
            at += (size_t)snprintf(name + at, 64 - at, "%s%s", at ? " + " : "", part[k].name);
    return at > 0 ? name : "constant"; /* held-out rows want none of them */
}

const char *n2_session_device(const n2_session *s) {
    return n2_choice_name(s->record.folds_run > 0 ? &s->choice : NULL);
}

void n2_session_say(const n2_session *s, n2_text *out) {
    const n2_fit_record *r = &s->record;
    const n2_critic_options *c = &r->used.critic;
    char name[64];
    n2_text_add(out, "%s", parts_name(s, name));
    if (s->ratio->base && isfinite(r->gaussian)) /* rows may be too few for one */
        n2_text_add(out, " (Gaussian part %.4g nats%s)", r->gaussian,
                    r->learned         ? ""
                    : r->folds_run > 0 ? "; nothing more was found on held-out rows"
                                       : "");
    if (s->ratio->smooths > 0)
        n2_text_add(out, ", smooth part of %zu kernels%s, penalty %.1g",
                    s->ratio->smooth[0]->centres, r->shaped ? " and functions of columns" : "",
                    r->penalty);
    if (s->ratio->forests > 0) n2_text_add(out, ", %zu trees", s->ratio->trees[0]->trees);
    if (r->learned && s->ratio->critics > 0)
        n2_text_add(out, ", M = %.3g, %zu stage%s, width %zu, %zu folds of at most %zu steps",
                    c->magnitude, c->stages, c->stages == 1 ? "" : "s", c->width, r->used.folds,
                    c->steps);
    if (r->mapped)
        n2_text_add(out, ", normal margins for %zu column%s", r->mapped, r->mapped == 1 ? "" : "s");
    if (s->ratio->critics > 0 && s->choice.backend)
        n2_text_add(out, ", trained on %s", n2_session_device(s));
    if (r->raced && s->ratio->critics > 0)
        n2_text_add(out, "; M is the best of %s on held-out rows", r->race);
    n2_text_add(out, "\n");
}

static void add_folds(const n2_fit_record *r, n2_text *out) {
    n2_text_add(out, "\"folds\": [");
    for (size_t k = 0; k < r->folds_run; k++) {
        const n2_critic_record *f = &r->fold[k];
        n2_text_add(out, "%s{\"steps\": %zu, \"gain\": ", k ? ", " : "", f->steps);
        n2_text_add_number(out, f->gain);
        n2_text_add(out, ", \"gain_error\": ");
        n2_text_add_number(out, f->gain_error);
        n2_text_add(out, "}");
    }
    n2_text_add(out, "]");
}

static void add_number(n2_text *out, const char *before, double value) {
    n2_text_add(out, "%s", before);
    n2_text_add_number(out, value);
}

static void add_reliability(const n2_reliability *r, n2_text *out) {
    if (r->bins == 0) return;
    add_number(out, "\"calibration\": {\"mean_weight\": ", r->mean_weight.value);
    add_number(out, ", \"mean_weight_error\": ", r->mean_weight.error);
    add_number(out, ", \"effective_share\": ", r->share);
    add_number(out, ", \"mean_inverse_weight\": ", r->mean_inverse.value);
    add_number(out, ", \"mean_inverse_weight_error\": ", r->mean_inverse.error);
    n2_text_add(out, ", \"bins\": [");
    for (size_t k = 0; k < r->bins; k++) {
        const n2_reliability_bin *b = &r->bin[k];
        add_number(out, k ? ", {\"predicted\": " : "{\"predicted\": ", b->predicted);
        add_number(out, ", \"observed\": ", b->observed);
        add_number(out, ", \"error\": ", b->error);
        n2_text_add(out, ", \"num\": %.0f, \"den\": %.0f}", b->num, b->den);
    }
    n2_text_add(out, "]}, ");
}

void n2_session_json(const n2_session *s, n2_text *out) {
    const n2_fit_record *r = &s->record;
    const n2_critic_options *c = &r->used.critic;
    char name[64];
    add_reliability(&s->reliability, out);
    n2_text_add(out, "\"choices\": {\"parts\": \"%s\", \"M\": ", parts_name(s, name));
    n2_text_add_number(out, c->magnitude);
    n2_text_add(out, ", \"stages\": %zu, \"alpha\": [", c->stages);
    for (size_t k = 0; k <= c->stages; k++) {
        if (k) n2_text_add(out, ", ");
        n2_text_add_number(out, r->alpha[k]);
    }
    n2_text_add(out, "], \"width\": %zu, \"blocks\": %zu, \"steps\": %zu, \"rate\": ", c->width,
                c->blocks, c->steps);
    n2_text_add_number(out, c->rate);
    n2_text_add(out, ", \"gaussian\": ");
    n2_text_add_number(out, r->gaussian);
    n2_text_add(out, ", \"unresolved\": ");
    n2_text_add_number(out, r->unresolved);
    n2_text_add(out, ", \"gain\": ");
    n2_text_add_number(out, r->gain.value);
    n2_text_add(out, ", \"gain_error\": ");
    n2_text_add_number(out, r->gain.error);
    n2_text_add(out, ", \"normal_margins\": %zu, ", r->mapped);
    add_folds(r, out);
    n2_text_add(
        out,
        "}, \"device\": \"%s\", \"samples\": {\"num\": %zu, \"den\": %zu, \"num_seen\": %zu, "
        "\"den_seen\": %zu, \"dropped\": %zu}, \"version\": \"%s\", \"options\": ",
        n2_session_device(s), s->rows[1], s->rows[0], s->seen[1], s->seen[0], s->dropped,
        n2ce_version());
    n2_options_json(s->options, out);
}

n2ce_status n2_session_model(n2_session *s, n2ce_model **out) {
    n2_text text = n2_text_new(s->ctx);
    char *json = NULL;
    n2_text_add(&text, "{\"ratio\": \"%s\", ",
                s->x_cols ? "ln p(x,y) / p(x)p(y)" : "ln p_num / p_den");
    n2_session_json(s, &text);
    n2_text_add(&text, "}");
    n2ce_status status = n2_text_take(&text, &json);
    n2_text_free(&text);
    if (status == N2CE_OK) status = n2_ratio_move(s->ratio, &s->record.used.critic, NULL);
    if (status == N2CE_OK) {
        const bool levels = n2_levels_columns(s->levels) > 0;
        status = n2_model_new(s->ctx, s->ratio, &s->record, s->num, s->x_cols,
                              levels ? s->levels : NULL, json, out);
        s->ratio = NULL; /* it belongs to the model, or is gone */
        if (status == N2CE_OK) (*out)->reliability = s->reliability;
    }
    n2_free(s->ctx, json);
    return status;
}
