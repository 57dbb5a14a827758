/* Runs of earlier studies of pictures, from their JSON. */
#include "images_study.h"
#include "kept_answers.h"

#include <string.h>

/* A row in the reading. */
typedef struct kept_row {
    const char *arm, *stage;
    double seed, seconds;
    n2_images_score score;
} kept_row;

static n2ce_status read_value(n2_json *json, const char *key, kept_row *row) {
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"seed", &row->seed},
                   {"seconds", &row->seconds},
                   {"frechet", &row->score.frechet},
                   {"kid", &row->score.kid},
                   {"kid_spread", &row->score.kid_spread},
                   {"precision", &row->score.precision},
                   {"recall", &row->score.recall},
                   {"class_score", &row->score.classes},
                   {"gain", &row->score.gain}};
    if (strcmp(key, "arm") == 0) return n2_json_string(json, &row->arm);
    if (strcmp(key, "stage") == 0) return n2_json_string(json, &row->stage);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0) return n2_json_number(json, numbers[i].to);
    return n2_json_skip(json);
}

/* Into its place, if the study has one that is empty. */
static void take_row(const kept_row *row, n2_images_study *s) {
    size_t arm = 0;
    while (arm < N2_IMAGES_ARMS && strcmp(n2_images_arms[arm].name, row->arm) != 0) arm++;
    const double k = row->seed - (double)s->first_seed;
    if (arm == N2_IMAGES_ARMS || !(k >= 0 && k < (double)s->n_seeds) || k != floor(k)) return;
    const size_t seed = (size_t)k;
    const size_t stage = strcmp(row->stage, "joint") == 0 ? N2_IMAGES_JOINT : N2_IMAGES_FROZEN;
    n2_images_run *run = n2_images_run_at(s, arm, seed);
    if (run->score[stage].done || !isfinite(row->score.frechet)) return;
    run->score[stage] = row->score;
    run->score[stage].done = true;
    run->seconds = row->seconds;
    s->n_done += s->asked[arm] && n2_images_is_done(s, arm, seed);
}

static n2ce_status read_row(n2_json *json, n2_images_study *s) {
    kept_row row = {.arm = "", .stage = "", .seed = -1};
    bool more;
    row.score.frechet = row.score.classes = row.score.gain = N2_NAN;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        const char *key;
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(json, &key));
        N2_TRY(read_value(json, key, &row));
    }
    take_row(&row, s);
    return N2CE_OK;
}

static n2ce_status read_rows(n2_json *json, n2_images_study *s) {
    bool more;
    N2_TRY(n2_json_enter(json, '['));
    for (;;) {
        N2_TRY(n2_json_next(json, ']', &more));
        if (!more) return N2CE_OK;
        N2_TRY(read_row(json, s));
    }
}

static n2ce_status read_study(n2_json *json, n2_images_study *s) {
    const char *key, *study = "", *settings = "";
    bool more;
    N2_TRY(n2_json_enter(json, '{'));
    for (;;) {
        N2_TRY(n2_json_next(json, '}', &more));
        if (!more) break;
        N2_TRY(n2_json_key(json, &key));
        const bool same = strcmp(study, "images") == 0 && strcmp(settings, s->settings) == 0;
        if (strcmp(key, "study") == 0)
            N2_TRY(n2_json_string(json, &study));
        else if (strcmp(key, "settings") == 0)
            N2_TRY(n2_json_string(json, &settings));
        else if (strcmp(key, "rows") == 0 && same)
            N2_TRY(read_rows(json, s));
        else
            N2_TRY(n2_json_skip(json));
    }
    if (strcmp(study, "images") != 0)
        return n2_fail(s->ctx, N2CE_EDATA,
                       "%s is not an answer of \"n2ce study images --json\", nor an images.json of "
                       "its report.",
                       json->source);
    if (strcmp(settings, s->settings) != 0)
        n2_log(s->ctx, N2CE_LOG_WARNING,
               "%s was made with other pictures, sizes or steps: its runs are made again.",
               json->source);
    return n2_json_end(json);
}

static n2ce_status read_answer(n2_json *json, void *study) { return read_study(json, study); }

n2ce_status n2_images_take_kept(n2ce_ctx *ctx, const char *paths, n2_images_study *s) {
    return n2_answers_read(ctx, paths, "images.json", read_answer, s);
}
