/* Runs of earlier studies of pictures, from their JSON. */
#include "images_study.h"
#include "io/file.h"
#include "io/json.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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
                   {"class_score", &row->score.classes}};
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
    row.score.frechet = row.score.classes = N2_NAN;
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

static n2ce_status read_file(n2ce_ctx *ctx, const char *path, n2_images_study *s) {
    n2_text text = n2_text_new(ctx);
    n2ce_status status = n2_file_read(ctx, path, &text);
    char *strings = status == N2CE_OK ? n2_alloc(ctx, text.length + 1, 1) : NULL;
    if (status == N2CE_OK && !strings) status = N2CE_ENOMEM;
    if (status == N2CE_OK) {
        n2_json json = n2_json_new(ctx, path, text.data ? text.data : "", text.length, strings);
        status = read_study(&json, s);
    }
    n2_free(ctx, strings);
    n2_text_free(&text);
    return status;
}

/* A folder stands for the images.json in it. */
static n2ce_status read_part(n2ce_ctx *ctx, const char *at, size_t n, n2_images_study *s) {
    char name[PATH_MAX], path[PATH_MAX];
    struct stat info;
    if (n == 0 || n >= PATH_MAX)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A list of files has one without a name, or with too long a name.");
    memcpy(name, at, n);
    name[n] = '\0';
    if (stat(name, &info) != 0 || !S_ISDIR(info.st_mode)) return read_file(ctx, name, s);
    N2_TRY(n2_path_join(ctx, path, sizeof path, name, "images.json"));
    return read_file(ctx, path, s);
}

n2ce_status n2_images_take_kept(n2ce_ctx *ctx, const char *paths, n2_images_study *s) {
    for (const char *at = paths;; at++) {
        const size_t n = strcspn(at, ",");
        N2_TRY(read_part(ctx, at, n, s));
        at += n;
        if (!*at) return N2CE_OK;
    }
}
