/* Runs of earlier studies of anomalies, from their JSON. */
#include "anomaly_study.h"
#include "kept_answers.h"

#include <math.h>
#include <string.h>

/* A row in the reading. */
typedef struct kept_row {
    double digit, seed, subset;
    double setting[N2_ANOMALY_SETTINGS]; /* NaN: it does not say */
    const char *method;
    n2_anomaly_run run;
} kept_row;

/* Numbers of a list: the first `most` of them, and how many these are. */
static n2ce_status read_numbers(n2_json *json, double *x, size_t most, size_t *n) {
    bool more;
    *n = 0;
    N2_TRY(n2_json_enter(json, '['));
    for (;;) {
        double value;
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_number(json, &value));
        if (*n < most) x[(*n)++] = value;
    }
}

static n2ce_status read_pictures(n2_json *json, size_t *pictures, size_t *n) {
    double x[N2_ANOMALY_SHOWN];
    N2_TRY(read_numbers(json, x, N2_ANOMALY_SHOWN, n));
    for (size_t i = 0; i < *n; i++) pictures[i] = x[i] >= 0 && x[i] < 1e9 ? (size_t)x[i] : 0;
    return N2CE_OK;
}

static n2ce_status read_checks(n2_json *json, n2_anomaly_run *run) {
    double x[2 * N2_ANOMALY_CHECKS];
    size_t n;
    N2_TRY(read_numbers(json, x, 2 * N2_ANOMALY_CHECKS, &n));
    run->n_checks = n / 2;
    for (size_t i = 0; i < run->n_checks; i++)
        run->checks[i] = (n2_anomaly_check){x[2 * i], x[2 * i + 1]};
    return N2CE_OK;
}

static n2ce_status read_parts(n2_json *json, n2_arena *arena, n2_anomaly_run *run) {
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        const char *name;
        double value;
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_key(json, &name));
        N2_TRY(n2_json_number(json, &value));
        if (run->n_parts == N2_ANOMALY_PARTS) continue;
        run->parts[run->n_parts].name = n2_arena_strdup(arena, name);
        if (!run->parts[run->n_parts].name) return N2CE_ENOMEM;
        run->parts[run->n_parts++].auprc = value;
    }
}

static n2ce_status read_text(n2_json *json, n2_arena *arena, const char **out) {
    const char *text;
    N2_TRY(n2_json_string(json, &text));
    *out = n2_arena_strdup(arena, text);
    return *out ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status read_value(n2_json *json, const char *key, n2_arena *arena, kept_row *row) {
    n2_anomaly_run *run = &row->run;
    size_t n;
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"digit", &row->digit}, {"seed", &row->seed},   {"subset", &row->subset},
                   {"auprc", &run->auprc}, {"auroc", &run->auroc}, {"seconds", &run->seconds}};
    n2_anomaly_setting settings[N2_ANOMALY_SETTINGS];
    n2_anomaly_settings(&(n2_anomaly_effort){0}, settings);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(key, numbers[i].key) == 0) return n2_json_number(json, numbers[i].to);
    for (size_t i = 0; i < N2_ANOMALY_SETTINGS; i++)
        if (strcmp(key, settings[i].key) == 0) return n2_json_number(json, &row->setting[i]);
    if (strcmp(key, "method") == 0) return read_text(json, arena, &row->method);
    if (strcmp(key, "device") == 0) return read_text(json, arena, &run->device);
    if (strcmp(key, "parts") == 0) return read_parts(json, arena, run);
    if (strcmp(key, "precision") == 0)
        return read_numbers(json, run->precision, N2_ANOMALY_CURVE, &n);
    if (strcmp(key, "checks") == 0) return read_checks(json, run);
    if (strcmp(key, "odd") == 0) return read_pictures(json, run->odd, &run->n_odd);
    if (strcmp(key, "normal") == 0) return read_pictures(json, run->normal, &run->n_normal);
    return n2_json_skip(json);
}

static n2ce_status read_row(n2_json *json, n2_arena *arena, kept_row *row) {
    bool more;
    *row = (kept_row){.method = ""};
    row->run.auprc = row->run.auroc = N2_NAN;
    for (size_t i = 0; i < N2_ANOMALY_SETTINGS; i++) row->setting[i] = N2_NAN;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        const char *key;
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) return N2CE_OK;
        N2_TRY(n2_json_key(json, &key));
        N2_TRY(read_value(json, key, arena, row));
    }
}

static bool is_whole(double x) { return x >= 0 && x <= 9007199254740992.0 && x == floor(x); }

/* Whether a run is what this study would make. */
static bool is_same(const kept_row *row, const n2_anomaly_method *m, const n2_anomaly_effort *e) {
    if (!isfinite(row->run.auprc) || row->subset != (double)e->subset) return false;
    n2_anomaly_setting settings[N2_ANOMALY_SETTINGS];
    n2_anomaly_settings(e, settings);
    bool same = true;
    for (size_t i = 0; m->seeded && i < N2_ANOMALY_SETTINGS; i++)
        same = same && row->setting[i] == settings[i].value;
    return same;
}

/* Into its place, if the study has one that is empty. */
static void take_row(const kept_row *row, n2_anomaly_study *s) {
    size_t d = 0, m = 0;
    while (d < s->n_digits && s->digits[d] != row->digit) d++;
    while (m < s->n_methods && strcmp(s->methods[m]->name, row->method) != 0) m++;
    if (d == s->n_digits || m == s->n_methods || !is_whole(row->seed)) return;
    const uint64_t k = s->methods[m]->seeded ? (uint64_t)row->seed - s->first_seed : 0;
    if (k >= s->n_seeds || !is_same(row, s->methods[m], &s->effort)) return;
    n2_anomaly_run *run = n2_anomaly_run_at(s, d, m, (size_t)k);
    if (run->done) return;
    *run = row->run;
    run->seed = s->first_seed + k;
    run->done = true;
    s->n_done++;
}

static n2ce_status read_rows(n2_json *json, n2_anomaly_study *s) {
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (;;) {
        kept_row row;
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(read_row(json, s->arena, &row));
        take_row(&row, s);
    }
}

static n2ce_status read_study(n2_json *json, n2_anomaly_study *s) {
    const char *key, *study = "";
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(json, &key));
        if (strcmp(key, "study") == 0)
            N2_TRY(n2_json_string(json, &study));
        else if (strcmp(key, "rows") == 0 && strcmp(study, "anomaly") == 0)
            N2_TRY(read_rows(json, s));
        else
            N2_TRY(n2_json_skip(json));
    }
    if (strcmp(study, "anomaly") == 0) return n2_json_end(json);
    return n2_fail(json->ctx, N2CE_EDATA,
                   "%s is not an answer of \"n2ce study anomaly --json\", nor an anomaly.json of "
                   "its report.",
                   json->source);
}

static n2ce_status read_answer(n2_json *json, void *study) { return read_study(json, study); }

n2ce_status n2_anomaly_take_kept(n2ce_ctx *ctx, const char *paths, n2_anomaly_study *s) {
    return n2_answers_read(ctx, paths, "anomaly.json", read_answer, s);
}
