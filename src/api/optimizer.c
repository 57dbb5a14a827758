/* n2ce_optimizer: the model behind "optimize", kept to propose again, to be saved and loaded. */
#include "io/bundle.h"
#include "io/json.h"
#include "task/device_options.h"
#include "task/verb_optimize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "n2ce optimizer 1";

struct n2ce_optimizer {
    n2ce_ctx *ctx;
    n2_design_table t; /* of one that was loaded: names in the arena, and no table */
    n2_design_rules rules;
    n2_device_choice choice;
    n2_latent_options latent;
    n2_latent *model;
    n2_arena arena, answer; /* answer: of the last proposals */
    n2ce_proposals proposals;
    char *json;
};

static n2ce_status new_optimizer(n2ce_ctx *ctx, n2ce_optimizer **out) {
    n2ce_optimizer *o = *out = n2_alloc(ctx, 1, sizeof *o);
    if (!o) return N2CE_ENOMEM;
    *o = (n2ce_optimizer){
        .ctx = ctx, .t = {.ctx = ctx}, .arena = n2_arena_new(ctx), .answer = n2_arena_new(ctx)};
    return N2CE_OK;
}

void n2ce_optimizer_free(n2ce_optimizer *o) {
    if (!o) return;
    n2_latent_free(o->model);
    n2_design_rules_free(&o->rules);
    n2_design_table_close(&o->t);
    n2_arena_free(&o->arena);
    n2_arena_free(&o->answer);
    n2_free(o->ctx, o->json);
    n2_free(o->ctx, o);
}

const char *n2ce_optimizer_json(const n2ce_optimizer *o) { return o ? o->json : NULL; }

static void add_number(n2_text *out, const char *name, double value) {
    n2_text_add(out, ", \"%s\": ", name);
    n2_text_add_number(out, value);
}

static n2ce_status describe(n2ce_optimizer *o) {
    o->json = NULL;
    const n2_latent_record *r = n2_latent_seen(o->model);
    n2_text text = n2_text_new(o->ctx);
    n2_text_add(&text, "{\"columns\": [");
    for (size_t j = 0; j < o->t.designs.space.n; j++) {
        if (j) n2_text_add(&text, ", ");
        n2_text_add_json_string(&text, o->t.names[j]);
    }
    n2_text_add(&text, "], \"direction\": \"%s\", \"device\": \"%s\"",
                o->t.sign < 0 ? "minimize" : "maximize", n2_choice_name(&o->choice));
    add_number(&text, "seen", (double)r->rows);
    add_number(&text, "best_seen", o->t.sign * r->y_best);
    add_number(&text, "r2", r->r2);
    add_number(&text, "forest_share", r->forest_share);
    add_number(&text, "steps", (double)r->steps_done);
    n2_text_add(&text, ", \"out_of_time\": %s, \"version\": \"%s\"}",
                r->out_of_time ? "true" : "false", n2ce_version());
    return n2_text_take(&text, &o->json);
}

/* ---- fitting ------------------------------------------------------------- */

static n2ce_status fit(n2ce_optimizer *o, const n2ce_options *options, const n2ce_matrix data[2]) {
    N2_TRY(n2_options_check_table(o->ctx, options, n2ce_task_options(n2ce_task_find("optimize"))));
    if (*n2ce_options_get(options, "require"))
        return n2_fail(o->ctx, N2CE_EINVAL, "--require needs a file with the columns it names.");
    N2_TRY(n2_optimize_designs(o->ctx, options, data, NULL, NULL, &o->t));
    N2_TRY(n2_choice_of_options(o->ctx, options, &o->choice));
    N2_TRY(n2_optimize_rules(options, &o->t, &o->rules));
    n2_optimize_model(options, &o->latent);
    o->latent.rules = &o->rules;
    o->latent.checkpoint = n2ce_options_get(options, "checkpoint");
    o->latent.choice = &o->choice;
    n2ce_status status = n2_latent_fit(o->ctx, &o->t.designs, &o->latent, &o->model);
    if (n2_choice_retreat(&o->choice, o->ctx, status))
        status = n2_latent_fit(o->ctx, &o->t.designs, &o->latent, &o->model);
    return status == N2CE_OK ? describe(o) : status;
}

/* Frees what failed, and says so with *out. */
static n2ce_status finish(n2ce_optimizer *o, n2ce_status status, n2ce_optimizer **out) {
    n2_cancel_reset(o->ctx);
    if (status != N2CE_OK) n2ce_optimizer_free(o);
    *out = status == N2CE_OK ? o : NULL;
    return status;
}

static n2ce_status fit_with_defaults(n2ce_optimizer *o, const n2ce_matrix data[2]) {
    n2ce_options *defaults;
    N2_TRY(n2ce_options_new(o->ctx, n2ce_task_options(n2ce_task_find("optimize")), &defaults));
    const n2ce_status status = fit(o, defaults, data);
    n2ce_options_free(defaults);
    return status;
}

n2ce_status n2ce_optimizer_fit(n2ce_ctx *ctx, const n2ce_options *options,
                               const n2ce_matrix *designs, const n2ce_matrix *values,
                               n2ce_optimizer **out) {
    if (!ctx || !designs || !values || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    const n2ce_matrix data[] = {*designs, *values};
    n2ce_optimizer *o;
    *out = NULL;
    N2_TRY(new_optimizer(ctx, &o));
    const n2_c_locale scope = n2_c_locale_enter();
    const n2ce_status status = options ? fit(o, options, data) : fit_with_defaults(o, data);
    n2_c_locale_leave(scope);
    return finish(o, status, out);
}

/* ---- names --------------------------------------------------------------- */

static n2ce_status check_names(n2ce_ctx *ctx, const char *const *names, size_t n) {
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < j; k++)
            if (strcmp(names[j], names[k]) == 0)
                return n2_fail(ctx, N2CE_EINVAL, "Two columns are called \"%s\".", names[j]);
    return N2CE_OK;
}

/* The texts of a category's levels, whose texts were numbers so far. */
static n2ce_status name_levels(const n2_design_table *t, size_t j, const char *name,
                               const char *const *texts, size_t n, n2_levels *to) {
    const size_t levels = n2_levels_count(t->levels, t->names[j]);
    for (size_t k = 0; k < levels; k++) {
        const char *old = n2_levels_text(t->levels, t->names[j], k);
        char *end;
        const double number = strtod(old, &end); /* one that has a text already is no number */
        size_t code;
        if (n > 0 &&
            !(*old && !*end && number >= 0 && number < (double)n && number == floor(number)))
            return n2_fail(t->ctx, N2CE_EINVAL,
                           "Column \"%s\" holds the level %s, which has no text among %zu.", name,
                           old, n);
        N2_TRY(n2_levels_add(to, name, n > 0 ? texts[(size_t)number] : old, &code));
        if (code != k)
            return n2_fail(t->ctx, N2CE_EINVAL, "Two levels of column \"%s\" are called \"%s\".",
                           name, texts[(size_t)number]);
    }
    return N2CE_OK;
}

static n2ce_status rename_columns(n2ce_optimizer *o, const char *const *names,
                                  const char *const *const *levels, const size_t *n_levels,
                                  n2_levels *to) {
    const size_t n = o->t.designs.space.n;
    const char **own = n2_arena_alloc(&o->arena, n, sizeof *own);
    if (!own) return N2CE_ENOMEM;
    N2_TRY(check_names(o->ctx, names, n));
    for (size_t j = 0; j < n; j++) {
        if (!(own[j] = n2_arena_strdup(&o->arena, names[j]))) return N2CE_ENOMEM;
        if (o->t.designs.space.factor[j].kind != N2_CATEGORY) continue;
        const size_t count = n_levels ? n_levels[j] : 0;
        N2_TRY(name_levels(&o->t, j, names[j], count ? levels[j] : NULL, count, to));
    }
    memcpy(o->t.names, own, n * sizeof *own);
    return N2CE_OK;
}

n2ce_status n2ce_optimizer_name(n2ce_optimizer *o, const char *const *names,
                                const char *const *const *levels, const size_t *n_levels) {
    if (!o || !names) return n2_fail(o ? o->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_levels *renamed, *old = o->t.levels;
    for (size_t j = 0; j < o->t.designs.space.n; j++)
        if (!names || !names[j] || (n_levels && n_levels[j] && (!levels || !levels[j])))
            return n2_fail(o->ctx, N2CE_EINVAL, "Column %zu has no name, or no texts.", j);
    N2_TRY(n2_levels_new(o->ctx, &renamed));
    n2ce_status status = rename_columns(o, names, levels, n_levels, renamed);
    if (status == N2CE_OK) o->t.levels = renamed;
    n2_levels_free(status == N2CE_OK ? old : renamed);
    n2_free(o->ctx, status == N2CE_OK ? o->json : NULL);
    return status == N2CE_OK ? describe(o) : status;
}

/* ---- proposing ----------------------------------------------------------- */

/* Into memory of the last answer. */
static n2ce_status ask(n2ce_optimizer *o, n2_optimize_result *r) {
    const size_t n = r->asked;
    n2_proposals *p = &r->proposals;
    p->rows = n;
    p->x = n2_arena_alloc(&o->answer, n * o->t.designs.space.n, sizeof *p->x);
    p->predicted = n2_arena_alloc(&o->answer, n, sizeof *p->predicted);
    p->log_prior = n2_arena_alloc(&o->answer, n, sizeof *p->log_prior);
    r->spread = n2_arena_alloc(&o->answer, n, sizeof *r->spread);
    if (!p->x || !p->predicted || !p->log_prior || !r->spread) return N2CE_ENOMEM;
    N2_TRY(n2_latent_propose(o->model, p));
    if (p->rows == 0)
        return n2_fail(o->ctx, N2CE_EDATA,
                       "No design was found that is new and plausible: all that the columns allow "
                       "may have been tried.");
    return n2_latent_appraise(o->model, p->x, p->rows, NULL, r->spread, NULL);
}

static n2ce_status keep(n2ce_optimizer *o, const n2_optimize_result *r) {
    const size_t n = r->proposals.rows;
    double *distance = n2_arena_alloc(&o->answer, n, sizeof *distance);
    if (!distance) return N2CE_ENOMEM;
    memcpy(distance, r->worth.distance, n * sizeof *distance);
    return n2_design_proposals(&o->t, &r->proposals, r->spread, distance, &o->answer,
                               &o->proposals);
}

static n2ce_status propose(n2ce_optimizer *o, size_t n) {
    n2_backtest nothing_hidden;
    n2_optimize_result r = {
        .t = &o->t, .asked = n, .record = *n2_latent_seen(o->model), .worth = {.ctx = o->ctx}};
    n2ce_status status = n2_backtest_begin(o->ctx, &o->t.designs, 0, &nothing_hidden);
    if (status == N2CE_OK) status = ask(o, &r);
    if (status == N2CE_OK)
        status = n2_appraise(&nothing_hidden, &r.proposals, r.record.y_best, &r.worth);
    if (status == N2CE_OK) status = keep(o, &r);
    if (status == N2CE_OK) n2_optimize_warn(o->ctx, &r);
    n2_appraisal_free(&r.worth);
    n2_backtest_end(&nothing_hidden);
    return status;
}

n2ce_status n2ce_optimizer_propose(n2ce_optimizer *o, size_t n, const n2ce_proposals **out) {
    if (!o || !out) return n2_fail(o ? o->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    *out = NULL;
    if (n == 0) return n2_fail(o->ctx, N2CE_EINVAL, "0 designs are wanted; ask for one at least.");
    n2_arena_free(&o->answer);
    const n2ce_status status = propose(o, n);
    n2_cancel_reset(o->ctx);
    if (status == N2CE_OK) *out = &o->proposals;
    return status;
}

/* ---- saving -------------------------------------------------------------- */

enum { FACTOR_NUMBERS = 4 }; /* kind, low, high, levels */

static void put_designs(const n2ce_optimizer *o, n2_bundle *b) {
    const n2_designs *d = &o->t.designs;
    double *space = n2_bundle_room(b, d->space.n * FACTOR_NUMBERS);
    if (!space) return;
    for (size_t j = 0; j < d->space.n; j++) {
        const n2_factor *f = &d->space.factor[j];
        const double row[] = {(double)f->kind, f->low, f->high, (double)f->levels};
        memcpy(space + j * FACTOR_NUMBERS, row, sizeof row);
    }
    n2_bundle_put_doubles(b, "space", d->space.n, FACTOR_NUMBERS, space);
    n2_bundle_put_doubles(b, "designs", d->rows, d->space.n, d->x);
    n2_bundle_put_doubles(b, "values", d->rows, 0, d->y);
}

static void put_rules(const n2ce_optimizer *o, n2_bundle *b) {
    const size_t n = o->t.designs.space.n, size = n2_design_rules_size(&o->rules);
    double *fixed = n2_bundle_room(b, n), *sums = n2_bundle_room(b, size + 1);
    if (!fixed || !sums) return;
    n2_design_rules_write(&o->rules, fixed, sums);
    n2_bundle_put_doubles(b, "rules.fixed", n, 0, fixed);
    if (size > 0) n2_bundle_put_doubles(b, "rules.sums", o->rules.n_sums, n + 1, sums);
}

/* A list of columns, each a list of its name and its levels. */
static n2ce_status name_columns(const n2_design_table *t, char **out) {
    n2_text text = n2_text_new(t->ctx);
    n2_text_add(&text, "[");
    for (size_t j = 0; j < t->designs.space.n; j++) {
        n2_text_add(&text, j ? ", [" : "[");
        n2_text_add_json_string(&text, t->names[j]);
        const bool numbers = t->designs.space.factor[j].kind != N2_CATEGORY;
        const size_t levels = numbers ? 0 : n2_levels_count(t->levels, t->names[j]);
        for (size_t k = 0; k < levels; k++) {
            n2_text_add(&text, ", ");
            n2_text_add_json_string(&text, n2_levels_text(t->levels, t->names[j], k));
        }
        n2_text_add(&text, "]");
    }
    n2_text_add(&text, "]");
    return n2_text_take(&text, out);
}

n2ce_status n2ce_optimizer_save(n2ce_optimizer *o, const char *path, bool overwrite) {
    if (!o || !path) return n2_fail(o ? o->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_bundle b = n2_bundle_new(o->ctx);
    char *columns = NULL;
    put_designs(o, &b);
    put_rules(o, &b);
    n2ce_status status = n2_latent_put(o->model, &b);
    if (status == N2CE_OK) status = name_columns(&o->t, &columns);
    if (status == N2CE_OK) {
        n2_bundle_note(&b, "columns", columns);
        n2_bundle_note(&b, "target", o->t.target);
        n2_bundle_note(&b, "direction", o->t.sign < 0 ? "minimize" : "maximize");
        n2_bundle_note(&b, "device", n2_choice_name(&o->choice));
        status = n2_bundle_write(&b, FORMAT, path, overwrite);
    }
    n2_bundle_free(&b);
    n2_free(o->ctx, columns);
    return status;
}

/* ---- loading ------------------------------------------------------------- */

static bool read_factor(const double row[FACTOR_NUMBERS], n2_factor *f) {
    const bool known = row[0] >= N2_CONTINUOUS && row[0] <= N2_CATEGORY && row[0] == floor(row[0]);
    const bool category = row[0] == N2_CATEGORY;
    const bool bounded = isfinite(row[1]) && isfinite(row[2]) && row[1] <= row[2];
    if (!known || !(category ? row[3] >= 1 && row[3] < 1e6 : bounded)) return false;
    *f = (n2_factor){(n2_factor_kind)row[0], row[1], row[2], category ? (size_t)row[3] : 0};
    return true;
}

/* Every value is finite, and every category one of its levels. */
static bool are_designs(const n2_designs *d) {
    for (size_t i = 0; i < d->rows; i++) {
        if (!isfinite(d->y[i])) return false;
        for (size_t j = 0; j < d->space.n; j++) {
            const n2_factor *f = &d->space.factor[j];
            const double x = d->x[i * d->space.n + j];
            if (!isfinite(x)) return false;
            if (f->kind == N2_CATEGORY && !(x >= 0 && x < (double)f->levels && x == floor(x)))
                return false;
        }
    }
    return true;
}

static n2ce_status load_designs(n2ce_optimizer *o, const n2_st_file *f) {
    n2_designs *d = &o->t.designs;
    const n2_st_tensor *x = n2_st_find(f, "designs");
    double *space = NULL;
    if (!x || x->rank != 2 || x->shape[0] < 1 || x->shape[1] < 1) return N2CE_EDATA;
    const size_t n = (size_t)x->shape[1];
    d->rows = (size_t)x->shape[0];
    N2_TRY(n2_bundle_take(o->ctx, f, "designs", d->rows * n, &d->x));
    N2_TRY(n2_bundle_take(o->ctx, f, "values", d->rows, &d->y));
    d->space.factor = n2_alloc(o->ctx, n, sizeof *d->space.factor);
    if (!d->space.factor) return N2CE_ENOMEM;
    n2ce_status status = n2_bundle_take(o->ctx, f, "space", n * FACTOR_NUMBERS, &space);
    for (size_t j = 0; j < n && status == N2CE_OK; j++)
        if (!read_factor(space + j * FACTOR_NUMBERS, &d->space.factor[j])) status = N2CE_EDATA;
    d->space.n = n;
    n2_free(o->ctx, space);
    return status == N2CE_OK && !are_designs(d) ? N2CE_EDATA : status;
}

/* One column: its name, and as many levels as it has. */
static n2ce_status read_column(n2ce_optimizer *o, n2_json *json, size_t j) {
    const n2_factor *f = &o->t.designs.space.factor[j];
    const char *text;
    bool more;
    size_t levels = 0, code;
    N2_TRY(n2_json_enter(json, '['));
    N2_TRY(n2_json_next(json, ']', &more));
    N2_TRY(n2_json_string(json, &o->t.names[j]));
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) break;
        N2_TRY(n2_json_string(json, &text));
        N2_TRY(n2_levels_add(o->t.levels, o->t.names[j], text, &code));
        if (code != levels++) return N2CE_EDATA; /* one text twice */
    }
    return levels == (f->kind == N2_CATEGORY ? f->levels : 0) ? N2CE_OK : N2CE_EDATA;
}

static n2ce_status load_names(n2ce_optimizer *o, const char *path, const n2_st_file *f) {
    const size_t n = o->t.designs.space.n;
    const char *columns = n2_st_metadata(f, "columns"), *target = n2_st_metadata(f, "target");
    const char *direction = n2_st_metadata(f, "direction");
    bool more;
    if (!columns || !target || !direction) return N2CE_EDATA;
    o->t.sign = strcmp(direction, "minimize") == 0 ? -1 : 1;
    o->t.target = n2_arena_strdup(&o->arena, target);
    o->t.names = n2_alloc(o->ctx, n, sizeof *o->t.names);
    char *strings = n2_arena_alloc(&o->arena, strlen(columns) + 1, 1);
    if (!o->t.target || !o->t.names || !strings) return N2CE_ENOMEM;
    N2_TRY(n2_levels_new(o->ctx, &o->t.levels));
    n2_json json = n2_json_new(o->ctx, path, columns, strlen(columns), strings);
    N2_TRY(n2_json_enter(&json, '['));
    for (size_t j = 0; j < n; j++) {
        N2_TRY(n2_json_next(&json, ']', &more));
        if (!more) return N2CE_EDATA;
        N2_TRY(read_column(o, &json, j));
    }
    N2_TRY(n2_json_next(&json, ']', &more));
    return more ? N2CE_EDATA : N2CE_OK;
}

static n2ce_status load_rules(n2ce_optimizer *o, const n2_st_file *f) {
    const size_t n = o->t.designs.space.n;
    const n2_st_tensor *t = n2_st_find(f, "rules.sums");
    const size_t rows = t && t->rank == 2 && t->shape[0] > 0 ? (size_t)t->shape[0] : 0;
    double *fixed = NULL, *sums = NULL;
    n2ce_status status = n2_bundle_take(o->ctx, f, "rules.fixed", n, &fixed);
    if (status == N2CE_OK && rows > 0)
        status = n2_bundle_take(o->ctx, f, "rules.sums", rows * (n + 1), &sums);
    if (status == N2CE_OK) status = n2_design_rules_restore(&o->t, fixed, sums, rows, &o->rules);
    n2_free(o->ctx, fixed);
    n2_free(o->ctx, sums);
    return status;
}

static n2ce_status load(n2ce_optimizer *o, const char *path, const n2_st_file *f) {
    const char *device = n2_st_metadata(f, "device");
    N2_TRY(load_designs(o, f));
    N2_TRY(load_names(o, path, f));
    if (!device) return N2CE_EDATA;
    N2_TRY(n2_choice_again(o->ctx, device, &o->choice));
    N2_TRY(load_rules(o, f));
    N2_TRY(n2_latent_load(o->ctx, &o->t.designs, f, &o->rules, &o->choice, &o->model));
    return describe(o);
}

static n2ce_status load_file(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                             n2ce_optimizer **out) {
    n2ce_optimizer *o;
    N2_TRY(n2_bundle_check(ctx, path, f, FORMAT,
                           "an optimiser of n2ce, as n2ce_optimizer_save() writes it."));
    N2_TRY(new_optimizer(ctx, &o));
    n2ce_status status = load(o, path, f);
    if (status == N2CE_EDATA || status == N2CE_ENAN)
        status = n2_bundle_damaged(ctx, path, "a part is missing or does not fit");
    return finish(o, status, out);
}

n2ce_status n2ce_optimizer_load(n2ce_ctx *ctx, const char *path, n2ce_optimizer **out) {
    if (!ctx || !path || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_st_file *f;
    *out = NULL;
    N2_TRY(n2_st_open(ctx, path, &f));
    const n2_c_locale scope = n2_c_locale_enter();
    const n2ce_status status = load_file(ctx, path, f, out);
    n2_c_locale_leave(scope);
    n2_st_close(f);
    return status;
}
