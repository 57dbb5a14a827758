/* Runs of earlier studies of distillation, from their JSON. */
#include "distill_study.h"
#include "kept_answers.h"

#include <math.h>
#include <string.h>

/* A row in the reading. */
typedef struct kept_row {
    const char *arm;
    double seed;
    n2_distill_run run;
} kept_row;

/* ---- curves: lists of [seen, distance] ---- */

static n2ce_status read_point(n2_json *json, n2_curve *curve) {
    double x[2] = {N2_NAN, N2_NAN};
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (size_t k = 0;; k++) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) break;
        N2_TRY(k < 2 ? n2_json_number(json, &x[k]) : n2_json_skip(json));
    }
    if (curve->n < N2_CURVE_POINTS)
        curve->point[curve->n++] = (n2_curve_point){.seen = x[0], .distance = x[1]};
    return N2CE_OK;
}

static n2ce_status read_curve(n2_json *json, n2_curve *curve) {
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(read_point(json, curve));
    }
}

/* ---- rows ---- */

static n2ce_status read_value(n2_json *json, const char *key, kept_row *row) {
    n2_distill_score *s = &row->run.score;
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"seed", &row->seed},
                   {"seconds", &row->run.seconds},
                   {"frechet", &s->frechet},
                   {"kid", &s->kid},
                   {"precision", &s->precision},
                   {"recall", &s->recall},
                   {"class_score", &s->classes},
                   {"along", &s->along},
                   {"real", &s->real},
                   {"made", &s->made},
                   {"seen", &s->seen}};
    if (strcmp(key, "arm") == 0) return n2_json_string(json, &row->arm);
    if (strcmp(key, "curve") == 0) return read_curve(json, &row->run.curve);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0) return n2_json_number(json, numbers[i].to);
    return n2_json_skip(json);
}

/* Into its place, if the study has one that is empty. */
static void take_row(const kept_row *row, n2_distill_study *s) {
    size_t arm = 0;
    while (arm < N2_DISTILL_ARMS && strcmp(n2_distill_arms[arm].name, row->arm) != 0) arm++;
    const double k = row->seed - (double)s->first_seed;
    if (arm == N2_DISTILL_ARMS || !(k >= 0 && k < (double)s->n_seeds) || k != floor(k)) return;
    n2_distill_run *run = n2_distill_run_at(s, arm, (size_t)k);
    if (run->done || !isfinite(row->run.score.frechet)) return;
    const n2_text sheet = run->sheet;
    *run = row->run;
    run->sheet = sheet;
    run->done = true;
    s->n_done += s->asked[arm];
}

static n2ce_status read_row(n2_json *json, n2_distill_study *s) {
    kept_row row = {.arm = "", .seed = -1};
    const char *key;
    bool more;
    row.run.score = (n2_distill_score){
        .frechet = N2_NAN, .classes = N2_NAN, .along = N2_NAN, .real = N2_NAN, .made = N2_NAN};
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(json, &key));
        N2_TRY(read_value(json, key, &row));
    }
    take_row(&row, s);
    return N2CE_OK;
}

static n2ce_status read_rows(n2_json *json, n2_distill_study *s) {
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(read_row(json, s));
    }
}

/* ---- answers ---- */

static n2ce_status check_answer(const n2_json *json, const n2_distill_study *s, const char *study,
                                const char *settings) {
    if (strcmp(study, "distill") != 0)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "%s is not an answer of \"n2ce study distill --json\", nor a "
                       "distill-study.json of its report.",
                       json->source);
    if (strcmp(settings, s->settings) != 0)
        n2_log(s->ctx, N2CE_LOG_WARNING,
               "%s was made with other pictures, sizes or lengths: its runs are made again.",
               json->source);
    return N2CE_OK;
}

static n2ce_status read_answer(n2_json *json, void *user) {
    n2_distill_study *s = user;
    const char *key, *study = "", *settings = "";
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(json, &key));
        const bool same = strcmp(study, "distill") == 0 && strcmp(settings, s->settings) == 0;
        if (strcmp(key, "study") == 0)
            N2_TRY(n2_json_string(json, &study));
        else if (strcmp(key, "settings") == 0)
            N2_TRY(n2_json_string(json, &settings));
        else if (strcmp(key, "rows") == 0 && same)
            N2_TRY(read_rows(json, s));
        else
            N2_TRY(n2_json_skip(json));
    }
    N2_TRY(check_answer(json, s, study, settings));
    return n2_json_end(json);
}

n2ce_status n2_distill_take_kept(n2ce_ctx *ctx, const char *paths, n2_distill_study *s) {
    return n2_answers_read(ctx, paths, "distill-study.json", read_answer, s);
}
