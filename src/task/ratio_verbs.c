/* fit, score, info, divergence, mi, test: samples in, log ratios and divergences out. */
#include "base/numerics.h"
#include "base/random.h"
#include "io/file.h"
#include "io/npy.h"
#include "ratio_session.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- answers ------------------------------------------------------------- */

typedef struct writer {
    n2_text text, json, brief, kept;
} writer;

static writer writer_new(n2ce_ctx *ctx) {
    return (writer){n2_text_new(ctx), n2_text_new(ctx), n2_text_new(ctx), n2_text_new(ctx)};
}

/* Hands the texts to the answer, and frees what is left of them. */
static n2ce_status writer_take(writer *w, n2ce_answer *answer) {
    n2ce_status status = n2_text_take(&w->text, &answer->text);
    if (status == N2CE_OK) status = n2_text_take(&w->json, &answer->json);
    if (status == N2CE_OK) status = n2_text_take(&w->brief, &answer->brief);
    if (status == N2CE_OK) status = n2_text_take(&w->kept, &answer->kept);
    n2_text_free(&w->text);
    n2_text_free(&w->json);
    n2_text_free(&w->brief);
    n2_text_free(&w->kept);
    return status;
}

/* A number with its interval, in the unit that was asked for. */
typedef struct interval {
    double value, lo, hi;
} interval;

static interval interval_of(const n2ce_options *o, n2_estimate e, double most) {
    const double z = n2_normal_quantile(0.5 + 0.5 * n2ce_options_number(o, "level"));
    const double scale = strcmp(n2ce_options_get(o, "unit"), "bits") == 0 ? 1 / log(2) : 1;
    const double hi = e.value + z * e.error;
    return (interval){scale * e.value, scale * (e.value - z * e.error),
                      scale * (hi < most        ? hi
                               : e.value < most ? most
                                                : hi)};
}

static void add_interval(n2_text *json, const char *names[3], interval v) {
    const double numbers[] = {v.value, v.lo, v.hi};
    for (size_t i = 0; i < 3; i++) {
        n2_text_add(json, "%s\"%s\": ", i ? ", " : "", names[i]);
        n2_text_add_number(json, numbers[i]);
    }
}

static void add_head(n2_text *json, const n2ce_options *o, interval v, bool converged,
                     const char *reason) {
    static const char *names[] = {"estimate", "lo", "hi"};
    n2_text_add(json, "{");
    add_interval(json, names, v);
    n2_text_add(json,
                ", \"unit\": \"%s\", \"converged\": %s, \"verdict\": ", n2ce_options_get(o, "unit"),
                converged ? "true" : "false");
    n2_text_add_json_string(json, converged ? "converged" : reason);
}

static void add_named(n2_text *json, const char *name, interval v) {
    static const char *names[] = {"value", "lo", "hi"};
    n2_text_add(json, ", \"%s\": {", name);
    add_interval(json, names, v);
    n2_text_add(json, "}");
}

static void add_quality(n2_text *json, const n2_quality *q) {
    const struct {
        const char *name;
        double value;
    } rows[] = {{"balance", q->balance},
                {"balance_error", q->balance_error},
                {"balance_M", q->balance_magnitude},
                {"normalisation", q->normalisation},
                {"ess", q->ess},
                {"saturated", q->saturated},
                {"kl_bound", q->bound},
                {"kl_cap", q->cap}};
    n2_text_add(json, ", \"quality\": {");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        n2_text_add(json, "%s\"%s\": ", i ? ", " : "", rows[i].name);
        n2_text_add_number(json, rows[i].value);
    }
    n2_text_add(json, "}");
}

static void say_interval(n2_text *text, const n2ce_options *o, const char *name, interval v,
                         const char *more) {
    n2_text_add(text, "%-22s %10.4f %s   %g %% interval %.4f to %.4f%s%s\n", name, v.value,
                n2ce_options_get(o, "unit"), 100 * n2ce_options_number(o, "level"), v.lo, v.hi,
                v.lo <= 0 && v.hi >= 0 ? ", consistent with 0" : "", more);
}

static void say_samples(n2_text *text, const n2_session *s) {
    const size_t rows = s->rows[0] + s->rows[1], seen = s->seen[0] + s->seen[1];
    n2_text_add(text, "samples    %zu", s->rows[1]);
    if (s->den) n2_text_add(text, " and %zu", s->rows[0]);
    n2_text_add(text, " rows");
    if (seen - s->dropped > rows) {
        n2_text_add(text, " of %zu", s->seen[1]);
        if (s->den) n2_text_add(text, " and %zu", s->seen[0]);
        n2_text_add(text, " (a random subset, see --max-rows)");
    }
    if (s->dropped) n2_text_add(text, ", %zu left out for missing values", s->dropped);
    n2_text_add(text, ", %zu column%s\n", s->num->cols, s->num->cols == 1 ? "" : "s");
}

/* Rows, choices, checks: the lines below the numbers. */
static void say_rest(n2_text *text, const n2_session *s, const n2_quality *q, bool converged,
                     const char *reason) {
    n2_text_add(text, "\n");
    say_samples(text, s);
    n2_text_add(text, "chosen     ");
    n2_session_say(s, text);
    n2_text_add(text,
                "checks     balance %.3g +- %.2g (0 if the ratio is right), effective share of the "
                "denominator %.2g\n",
                q->balance, q->balance_error, q->ess);
    n2_text_add(text, "verdict    %s%s\n", converged ? "converged" : "not converged: ", reason);
}

/* ---- fit ----------------------------------------------------------------- */

static const n2ce_option fit_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of the numerator: CSV or NPY, - for standard input"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of the denominator"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "the model, a safetensors file"},
    {"force", 'f', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "replace a model that is there"},
    N2_COLUMNS_OPTION,
    N2_SAMPLE_OPTIONS,
    N2_FIT_OPTIONS,
    N2_INTERVAL_OPTIONS,
    {0},
};

static n2ce_status need(n2ce_ctx *ctx, const n2ce_options *o, const char *verb, const char *name) {
    if (n2ce_options_get(o, name)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "%s needs --%s FILE. Try: n2ce help %s", verb, name, verb);
}

/* Before hours of work: nothing is there that may not be replaced, and the folder is. */
static n2ce_status check_output(n2ce_ctx *ctx, const char *path, bool force) {
    struct stat info;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!force) N2_TRY(n2_file_check_absent(ctx, path));
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= sizeof folder) return N2CE_OK; /* writing will tell */
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO, "%s cannot be written: there is no folder %s. Make it first.",
                   path, folder);
}

static n2ce_status read_pair(n2_session *s, const char *verb, const n2ce_matrix *data) {
    if (!data) {
        N2_TRY(need(s->ctx, s->options, verb, "num"));
        N2_TRY(need(s->ctx, s->options, verb, "den"));
    }
    const n2_samples num = {data ? NULL : n2ce_options_get(s->options, "num"), data, "num"};
    const n2_samples den = {data ? NULL : n2ce_options_get(s->options, "den"),
                            data ? data + 1 : NULL, "den"};
    return n2_session_read_pair(s, &num, &den);
}

static void write_fit(const n2_session *s, const char *path, writer *w) {
    n2_quality q;
    char reason[200];
    const n2_estimate kl = n2_estimate_kl(&s->scores, &s->record, &q);
    const interval v = interval_of(s->options, kl, N2_INFINITY);
    const bool converged = n2_session_converged(s, &q, reason);
    if (path) n2_text_add(&w->text, "%s: ln p_num/p_den in nats\n", path);
    say_interval(&w->text, s->options, "KL(num || den)", v, "");
    say_rest(&w->text, s, &q, converged, reason);
    add_head(&w->json, s->options, v, converged, reason);
    add_quality(&w->json, &q);
    n2_text_add(&w->json, ", ");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, v.value);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "the model\n");
}

static n2ce_status fit_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    const char *path = data ? NULL : n2ce_options_get(s->options, "output");
    const bool force = n2_options_flag(s->options, "force");
    if (!data) {
        N2_TRY(need(s->ctx, s->options, "fit", "num"));
        N2_TRY(need(s->ctx, s->options, "fit", "den"));
        N2_TRY(need(s->ctx, s->options, "fit", "output"));
        N2_TRY(check_output(s->ctx, path, force));
    }
    N2_TRY(read_pair(s, "fit", data));
    N2_TRY(n2_session_fit(s));
    writer w = writer_new(s->ctx);
    write_fit(s, path, &w);
    N2_TRY(writer_take(&w, answer));
    N2_TRY(n2_session_model(s, &answer->model));
    return path ? n2ce_model_save(answer->model, path, force) : N2CE_OK;
}

typedef n2ce_status session_fn(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer);

static n2ce_status with_session(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                n2ce_answer *answer, session_fn *fn) {
    n2_session s;
    n2ce_status status = n2_session_open(ctx, o, &s);
    if (status == N2CE_OK) status = fn(&s, data, answer);
    n2_session_close(&s);
    return status;
}

static n2ce_status run_fit(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                           n2ce_answer *answer) {
    return with_session(ctx, o, data, answer, fit_session);
}

const n2ce_task n2_fit_task = {
    .name = "fit",
    .summary = "learn the log ratio of two samples, as a model file",
    .description =
        "Learns ln p_num(x)/p_den(x) from a file of samples of each. The model is a safetensors\n"
        "file with its scaling and options inside; n2ce score applies it to new rows.\n",
    .examples = "n2ce fit --num new.csv --den old.csv -o model.safetensors\n"
                "n2ce score model.safetensors rows.csv\n",
    .options = fit_options,
    .data = NULL,
    .run_on = run_fit,
    .matrices = 2,
};

/* ---- score --------------------------------------------------------------- */

static const n2ce_option score_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL", "a model that n2ce fit wrote"},
    {"rows", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "ROWS",
     "rows to score: CSV or NPY, - for standard input"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the log ratios here, as NPY if it ends in .npy; default: standard output"},
    {"force", 'f', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "replace a file that is there"},
    N2_COLUMNS_OPTION,
    {"drop-missing", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "leave out rows with missing values instead of refusing them"},
    {"weights", 'w', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "write importance weights p_num/p_den instead of their logarithms"},
    {0},
};

typedef struct scores_out {
    n2_text text;
    double *x;
    size_t n, room;
    bool npy, weights;
} scores_out;

static n2ce_status add_scores(n2ce_ctx *ctx, scores_out *out, double *f, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (out->weights) f[i] = exp(f[i]);
        if (out->npy) continue;
        n2_text_add_number(&out->text, f[i]);
        n2_text_add(&out->text, "\n");
    }
    if (out->npy && out->n + n > out->room) {
        const size_t room = 2 * (out->n + n);
        double *x = n2_realloc(ctx, out->x, room, sizeof *x);
        if (!x) return N2CE_ENOMEM;
        out->x = x;
        out->room = room;
    }
    if (out->npy) memcpy(out->x + out->n, f, n * sizeof *f);
    out->n += n;
    return N2CE_OK;
}

enum { READ_ROWS = 4096 };

static n2ce_status score_rows(n2ce_model *m, n2_reader *r, scores_out *out) {
    double *x = n2_alloc(m->ctx, READ_ROWS * m->cols, sizeof *x), f[READ_ROWS];
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    size_t n = 1;
    while (status == N2CE_OK && n > 0) {
        status = n2_reader_next(r, x, READ_ROWS, &n);
        if (status == N2CE_OK && n > 0) status = n2_ratio_score(m->ratio, x, n, f);
        if (status == N2CE_OK) status = add_scores(m->ctx, out, f, n);
    }
    n2_free(m->ctx, x);
    return status;
}

/* The list itself is the answer unless it went into a file. */
static n2ce_status write_scores(n2ce_ctx *ctx, const char *path, scores_out *out,
                                n2ce_answer *answer) {
    writer w = writer_new(ctx);
    n2ce_status status = N2CE_OK;
    if (path && out->npy) status = n2_npy_write(ctx, path, out->x, out->n);
    if (path && !out->npy) status = n2_file_write(ctx, path, out->text.data, out->text.length);
    if (path) {
        n2_text_add(&w.text, "%s: %zu %s\n", path, out->n,
                    out->weights ? "importance weights p_num/p_den"
                                 : "log ratios ln p_num/p_den in nats");
        n2_text_add(&w.brief, "%zu\n", out->n);
        n2_text_add(&w.json, "{\"rows\": %zu, \"file\": ", out->n);
        n2_text_add_json_string(&w.json, path);
        n2_text_add(&w.json, "}\n");
    } else {
        n2_text_add_raw(&w.text, out->text.data, out->text.length);
        n2_text_add_raw(&w.brief, out->text.data, out->text.length);
        n2_text_add(&w.json, "{\"rows\": %zu, \"%s\": [", out->n,
                    out->weights ? "weights" : "log_ratios");
        for (size_t i = 0; i < out->text.length; i++)
            n2_text_add_raw(&w.json,
                            out->text.data[i] != '\n'  ? out->text.data + i
                            : i + 1 < out->text.length ? ","
                                                       : "",
                            out->text.data[i] != '\n' || i + 1 < out->text.length);
        n2_text_add(&w.json, "]}\n");
    }
    n2_text_add(&w.kept, "nothing\n");
    const n2ce_status taken = writer_take(&w, answer);
    return status == N2CE_OK ? taken : status;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static n2ce_status score_file(n2ce_ctx *ctx, const n2ce_options *o, n2ce_model *m,
                              n2ce_answer *answer) {
    const char *path = n2ce_options_get(o, "output");
    n2_reader *r;
    scores_out out = {.text = n2_text_new(ctx), .npy = path && ends_with(path, ".npy")};
    out.weights = n2_options_flag(o, "weights");
    N2_TRY(n2_model_open_rows(m, n2ce_options_get(o, "rows"), n2_options_flag(o, "drop-missing"),
                              n2ce_options_get(o, "columns"), &r));
    n2ce_status status = score_rows(m, r, &out);
    n2_reader_close(r);
    if (status == N2CE_OK && out.text.failed) status = N2CE_ENOMEM;
    if (status == N2CE_OK) status = write_scores(ctx, path, &out, answer);
    n2_text_free(&out.text);
    n2_free(ctx, out.x);
    return status;
}

static n2ce_status run_score(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2ce_model *m;
    N2_TRY(need(ctx, o, "score", "model"));
    N2_TRY(need(ctx, o, "score", "rows"));
    const char *path = n2ce_options_get(o, "output");
    if (path) N2_TRY(check_output(ctx, path, n2_options_flag(o, "force")));
    N2_TRY(n2ce_model_load(ctx, n2ce_options_get(o, "model"), &m));
    const n2ce_status status = score_file(ctx, o, m, answer);
    n2ce_model_free(m);
    return status;
}

const n2ce_task n2_score_task = {
    .name = "score",
    .summary = "log ratios of new rows, by a fitted model",
    .description =
        "Writes ln p_num(x)/p_den(x) in nats, one number a row. Positive: the row is more\n"
        "likely under the numerator. Columns are found by the names the model was fitted\n"
        "to; --columns chooses others, in the model's order.\n",
    .examples = "n2ce score model.safetensors rows.csv > log_ratios.txt\n"
                "n2ce score model.safetensors rows.npy -o log_ratios.npy\n",
    .options = score_options,
    .operands = "model rows",
    .run = run_score,
};

/* ---- info ---------------------------------------------------------------- */

static const n2ce_option info_options[] = {
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL", "a model that n2ce fit wrote"},
    {0},
};

static void say_columns(n2_text *text, const n2ce_model *m) {
    for (size_t c = 0; c < m->cols; c++) {
        const n2_feature *f = &m->ratio->features->column[c];
        static const char *const kinds[] = {"constant, left out", "standardised", "normal margins",
                                            "levels"};
        n2_text_add(text, "%-10s %-16s %s", c ? "" : "columns", m->names[c], kinds[f->kind]);
        if (f->kind == N2_FEATURE_LINEAR)
            n2_text_add(text, ", mean %.6g, scale %.6g", f->mean, f->scale);
        if (f->kind == N2_FEATURE_LEVELS) n2_text_add(text, ", %zu", f->levels);
        if (m->x_cols) n2_text_add(text, c < m->x_cols ? "  (x)" : "  (y)");
        n2_text_add(text, "\n");
    }
}

static n2ce_status run_info(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2ce_model *m;
    N2_TRY(need(ctx, o, "info", "model"));
    N2_TRY(n2ce_model_load(ctx, n2ce_options_get(o, "model"), &m));
    writer w = writer_new(ctx);
    const n2_ratio *r = m->ratio;
    const n2_critic_options *c = &m->record.used.critic;
    n2_text_add(&w.text, "ratio      %s, nats\n",
                m->x_cols ? "ln p(x,y) / p(x)p(y)" : "ln p_num(x) / p_den(x)");
    say_columns(&w.text, m);
    n2_text_add(&w.text, "parts      %s%s", r->base ? "quadratic" : "", r->kernel ? "kernel" : "");
    if (r->critics)
        n2_text_add(&w.text, "%smean of %zu networks (width %zu, %zu blocks, %zu stage%s)",
                    r->base ? " + " : "", r->critics, c->width, c->blocks, c->stages,
                    c->stages == 1 ? "" : "s");
    n2_text_add(&w.text, "\nfitted as  %s\n", m->json);
    n2_text_add(&w.json, "%s\n", m->json);
    n2_text_add(&w.brief, "%zu\n", m->cols);
    n2_text_add(&w.kept, "nothing\n");
    n2ce_model_free(m);
    return writer_take(&w, answer);
}

const n2ce_task n2_info_task = {
    .name = "info",
    .summary = "what a model file is",
    .description = "Columns, scaling, parts, and how the model was fitted.\n",
    .examples = "n2ce info model.safetensors\n",
    .options = info_options,
    .operands = "model",
    .run = run_info,
};

/* ---- divergence ---------------------------------------------------------- */

static const n2ce_option divergence_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of the numerator: CSV or NPY, - for standard input"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of the denominator"},
    N2_COLUMNS_OPTION,
    {"path", 0, N2CE_OPTION_REALS, "1,10,100,1000", 1, 1e12, NULL, "LIST",
     "magnitudes at which to print the M-path, which runs from 2 JS at 1 to KL at infinity"},
    N2_SAMPLE_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_FIT_OPTIONS,
    {0},
};

static void write_path(const n2_session *s, const double *m, size_t n, writer *w) {
    static const char *names[] = {"value", "lo", "hi"};
    n2_text_add(&w->json, ", \"path\": [");
    for (size_t i = 0; i < n; i++) {
        const interval v =
            interval_of(s->options, n2_estimate_path(&s->scores, m[i]), n2ce_bound_cap(m[i]));
        char name[48];
        snprintf(name, sizeof name, "path at M = %g", m[i]);
        say_interval(&w->text, s->options, name, v, "");
        n2_text_add(&w->json, "%s{\"M\": ", i ? ", " : "");
        n2_text_add_number(&w->json, m[i]);
        n2_text_add(&w->json, ", ");
        add_interval(&w->json, names, v);
        n2_text_add(&w->json, "}");
    }
    n2_text_add(&w->json, "]");
}

static n2ce_status write_divergence(const n2_session *s, writer *w) {
    n2_quality q;
    char reason[200];
    const n2ce_options *o = s->options;
    const interval kl = interval_of(o, n2_estimate_kl(&s->scores, &s->record, &q), N2_INFINITY);
    const interval back =
        interval_of(o, n2_estimate_reverse_kl(&s->scores, &s->record), N2_INFINITY);
    n2_estimate js = n2_estimate_path(&s->scores, 1);
    js = (n2_estimate){js.value / 2, js.error / 2};
    const interval shannon = interval_of(o, js, log(2));
    const bool converged = n2_session_converged(s, &q, reason);
    say_interval(&w->text, o, "KL(num || den)", kl, "");
    say_interval(&w->text, o, "KL(den || num)", back, "");
    say_interval(&w->text, o, "JS(num, den)", shannon, "");
    add_head(&w->json, o, kl, converged, reason);
    add_named(&w->json, "kl", kl);
    add_named(&w->json, "kl_reverse", back);
    add_named(&w->json, "js", shannon);
    n2_arena arena = n2_arena_new(s->ctx);
    double *m;
    size_t n;
    const n2ce_status status = n2_options_reals(o, "path", &arena, &m, &n);
    if (status == N2CE_OK) write_path(s, m, n, w);
    n2_arena_free(&arena);
    say_rest(&w->text, s, &q, converged, reason);
    add_quality(&w->json, &q);
    n2_text_add(&w->json, ", ");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, kl.value);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "nothing\n");
    return status;
}

static n2ce_status divergence_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    N2_TRY(read_pair(s, "divergence", data));
    N2_TRY(n2_session_fit(s));
    writer w = writer_new(s->ctx);
    const n2ce_status status = write_divergence(s, &w);
    const n2ce_status taken = writer_take(&w, answer);
    return status == N2CE_OK ? taken : status;
}

static n2ce_status run_divergence(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                  n2ce_answer *answer) {
    return with_session(ctx, o, data, answer, divergence_session);
}

const n2ce_task n2_divergence_task = {
    .name = "divergence",
    .summary = "KL, JS and the M-path between two samples, with intervals",
    .description =
        "KL both ways, Jensen-Shannon, and the M-path (1+M) D_alpha between them, from two files\n"
        "of samples. Negative values happen where the truth is near 0; they are not clipped.\n",
    .examples = "n2ce divergence --num new.csv --den old.csv\n"
                "n2ce divergence --num a.npy --den b.npy --columns 0-4 --unit bits --json\n",
    .options = divergence_options,
    .run_on = run_divergence,
    .matrices = 2,
};

/* ---- mi ------------------------------------------------------------------ */

static const n2ce_option mi_options[] = {
    {"file", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "rows that hold x and y: CSV or NPY, - for standard input"},
    {"x", 'x', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns of x, by name, number or range: 0-9,12"},
    {"y", 'y', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS", "columns of y"},
    {"columns", 'c', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "the same as --y: with --x given, the columns to compare it with"},
    {"bmi", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print one number only; x is the first DIM_X columns, y the next DIM_Y"},
    {"dim-x", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "DIM_X", "with --bmi: columns of x"},
    {"dim-y", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "DIM_Y", "with --bmi: columns of y"},
    N2_SAMPLE_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_FIT_OPTIONS,
    {0},
};

/* x and y as texts of columns. */
static n2ce_status choose_columns(n2ce_ctx *ctx, const n2ce_options *o, char x[48], char y[48],
                                  const char **x_text, const char **y_text) {
    *x_text = n2ce_options_get(o, "x");
    *y_text = n2ce_options_get(o, *n2ce_options_get(o, "y") ? "y" : "columns");
    if (n2_options_flag(o, "bmi")) {
        const double dx = n2ce_options_number(o, "dim-x"), dy = n2ce_options_number(o, "dim-y");
        if (isnan(dx) || isnan(dy))
            return n2_fail(ctx, N2CE_EINVAL,
                           "--bmi needs three words: n2ce mi --bmi FILE DIM_X DIM_Y");
        snprintf(x, 48, "0-%.0f", dx - 1);
        snprintf(y, 48, "%.0f-%.0f", dx, dx + dy - 1);
        *x_text = x;
        *y_text = y;
    }
    if (!**x_text || !**y_text)
        return n2_fail(ctx, N2CE_EINVAL, "mi needs --x COLS and --y COLS. Try: n2ce help mi");
    return N2CE_OK;
}

static void write_mi(const n2_session *s, writer *w) {
    n2_quality q;
    char reason[200];
    const n2ce_options *o = s->options;
    const interval v = interval_of(o, n2_estimate_kl(&s->scores, &s->record, &q), N2_INFINITY);
    const bool converged = n2_session_converged(s, &q, reason);
    if (n2_options_flag(o, "bmi")) {
        n2_text_add_number(&w->text, v.value);
        n2_text_add(&w->text, "\n");
    } else {
        say_interval(&w->text, o, "mutual information", v, "");
        say_rest(&w->text, s, &q, converged, reason);
    }
    add_head(&w->json, o, v, converged, reason);
    add_quality(&w->json, &q);
    n2_text_add(&w->json, ", ");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, v.value);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "nothing\n");
}

static n2ce_status mi_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    char x[48], y[48];
    const char *x_text = NULL, *y_text = NULL;
    n2_samples joint = {NULL, data, "(x, y)"};
    if (!data) {
        joint.path = n2ce_options_get(s->options, "file");
        N2_TRY(need(s->ctx, s->options, "mi", "file"));
        N2_TRY(choose_columns(s->ctx, s->options, x, y, &x_text, &y_text));
    }
    N2_TRY(n2_session_read_joint(s, &joint, x_text, y_text));
    N2_TRY(n2_session_fit(s));
    writer w = writer_new(s->ctx);
    write_mi(s, &w);
    N2_TRY(writer_take(&w, answer));
    return n2_session_model(s, &answer->model);
}

static n2ce_status run_mi(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                          n2ce_answer *answer) {
    return with_session(ctx, o, data, answer, mi_session);
}

const n2ce_task n2_mi_task = {
    .name = "mi",
    .summary = "mutual information of two groups of columns, with an interval",
    .description =
        "Contrasts rows (x, y) with pairs of x and y from different rows. --bmi follows the\n"
        "contract of the bmi benchmark's external estimators: three words in, one number out.\n",
    .examples = "n2ce mi --x temp,pressure --y yield runs.csv\n"
                "n2ce mi --x 0-9 --y 10-19 data.npy --quiet\n"
                "n2ce mi --bmi samples.csv 3 2\n",
    .options = mi_options,
    .operands = "file dim-x dim-y",
    .run_on = run_mi,
    .matrices = 2,
};

/* ---- test ---------------------------------------------------------------- */

static const n2ce_option test_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "one sample: CSV or NPY, - for standard input"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "the other sample"},
    N2_COLUMNS_OPTION,
    {"permutations", 0, N2CE_OPTION_COUNT, "999", 9, 1e7, NULL, "N", "permutations of the labels"},
    N2_SAMPLE_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_FIT_OPTIONS,
    {0},
};

/* Cuts the second half of the rows off. The rows must be in random order. */
static n2ce_status split(n2ce_ctx *ctx, n2_table *t, double **rest, size_t *n) {
    const size_t half = t->rows / 2;
    *n = t->rows - half;
    *rest = n2_alloc(ctx, *n * t->cols, sizeof **rest);
    if (!*rest) return N2CE_ENOMEM;
    memcpy(*rest, t->x + half * t->cols, *n * t->cols * sizeof **rest);
    t->rows = half;
    return N2CE_OK;
}

static uint32_t random_word(uint64_t seed, uint64_t i) {
    uint32_t out[4];
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 3};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    n2_philox(counter, key, out);
    return out[0];
}

/* Sum of n of the N scores, drawn without replacement: a partial shuffle in place. */
static double draw_sum(double *score, size_t n, size_t all, uint64_t seed, uint64_t *at) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t j = i + (size_t)(((uint64_t)random_word(seed, (*at)++) * (all - i)) >> 32);
        const double x = score[j];
        score[j] = score[i];
        score[i] = x;
        sum += x;
    }
    return sum;
}

/* Share of permutations whose numerator sum is at least as large; ties with rounding
 * count as such. */
static double permutation_p(double *score, size_t n, size_t all, size_t permutations,
                            uint64_t seed) {
    double observed = 0, size = 0;
    for (size_t i = 0; i < n; i++) observed += score[i];
    for (size_t i = 0; i < all; i++) size += fabs(score[i]);
    size_t as_large = 1;
    uint64_t at = 0;
    for (size_t k = 0; k < permutations; k++)
        as_large += draw_sum(score, n, all, seed, &at) >= observed - 1e-12 * size;
    return (double)as_large / (double)(permutations + 1);
}

typedef struct test_result {
    double p, accuracy; /* accuracy: share of held-out rows on the right side, both samples alike */
    size_t n[2];
} test_result;

/* Scores of held-out rows, bounded so that no single one decides. */
static n2ce_status judge(n2_session *s, double *const rows[2], test_result *t) {
    const size_t n = t->n[0], all = n + t->n[1];
    double *f = n2_alloc(s->ctx, all, sizeof *f), right[2] = {0, 0};
    if (!f) return N2CE_ENOMEM;
    n2ce_status status = n2_ratio_score(s->ratio, rows[0], n, f);
    if (status == N2CE_OK) status = n2_ratio_score(s->ratio, rows[1], all - n, f + n);
    for (size_t i = 0; i < all && status == N2CE_OK; i++) {
        const double vote = f[i] > 0 ? 1 : f[i] < 0 ? 0 : 0.5;
        right[i >= n] += i < n ? vote : 1 - vote;
        f[i] = tanh(0.5 * f[i]);
    }
    if (status == N2CE_OK) {
        t->accuracy = 0.5 * (right[0] / (double)n + right[1] / (double)(all - n));
        t->p = permutation_p(f, n, all, (size_t)n2_options_count(s->options, "permutations"),
                             s->fit.seed);
    }
    n2_free(s->ctx, f);
    return status;
}

static void write_test(const n2_session *s, const test_result *t, const char *reason, writer *w) {
    n2_text_add(&w->text, "two-sample test        p = %.4g   (%s)\n", t->p,
                t->p < 0.05 ? "the samples differ at the 5 % level"
                            : "no difference found at the 5 % level");
    n2_text_add(&w->text, "held-out accuracy      %.4f   (0.5 is chance; %zu and %zu rows)\n",
                t->accuracy, t->n[0], t->n[1]);
    n2_text_add(&w->text, "chosen     ");
    n2_session_say(s, &w->text);
    n2_text_add(&w->json, "{\"p\": ");
    n2_text_add_number(&w->json, t->p);
    n2_text_add(&w->json, ", \"accuracy\": ");
    n2_text_add_number(&w->json, t->accuracy);
    n2_text_add(&w->json, ", \"permutations\": %llu, \"converged\": %s, ",
                (unsigned long long)n2_options_count(s->options, "permutations"),
                *reason ? "false" : "true");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, t->p);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "nothing\n");
}

/* The critic is fitted on one half of each sample; on the other half labels can be
 * exchanged if the distributions are the same, which makes the p-value exact. */
static n2ce_status test_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    double *rows[2] = {NULL, NULL};
    test_result t = {.p = 1};
    N2_TRY(read_pair(s, "test", data));
    n2ce_status status = n2_table_shuffle(s->num, s->fit.seed, 11);
    if (status == N2CE_OK) status = n2_table_shuffle(s->den, s->fit.seed, 12);
    if (status == N2CE_OK) status = split(s->ctx, s->num, &rows[0], &t.n[0]);
    if (status == N2CE_OK) status = split(s->ctx, s->den, &rows[1], &t.n[1]);
    if (status == N2CE_OK) status = n2_session_fit(s);
    if (status == N2CE_OK) status = judge(s, rows, &t);
    n2_free(s->ctx, rows[0]);
    n2_free(s->ctx, rows[1]);
    N2_TRY(status);
    n2_quality q;
    char reason[200];
    n2_estimate_kl(&s->scores, &s->record, &q);
    n2_session_converged(s, &q, reason);
    writer w = writer_new(s->ctx);
    write_test(s, &t, reason, &w);
    return writer_take(&w, answer);
}

static n2ce_status run_test(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                            n2ce_answer *answer) {
    return with_session(ctx, o, data, answer, test_session);
}

const n2ce_task n2_test_task = {
    .name = "test",
    .summary = "do two samples have one distribution? A p-value",
    .description =
        "Fits the ratio on one half of each sample and permutes the labels of the other half.\n"
        "If the distributions are the same, p is uniform, whatever the ratio is like.\n",
    .examples = "n2ce test --num monday.csv --den friday.csv\n"
                "n2ce test --num a.npy --den b.npy --quiet\n",
    .options = test_options,
    .run_on = run_test,
    .matrices = 2,
};
