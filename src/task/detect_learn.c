/* detect: where normal rows come from. */
#include "detect_session.h"

#include "base/random.h"
#include "detect/detector_file.h"

#include <math.h>
#include <string.h>

static size_t most_rows(const n2_detect_session *s) {
    const double x = n2ce_options_number(s->options, "max-rows");
    return isnan(x) ? N2_DETECT_ROWS : (size_t)x;
}

static n2_table_options table_options(const n2_detect_session *s, n2_levels *levels) {
    return (n2_table_options){.columns = n2ce_options_get(s->options, "columns"),
                              .categorical = n2ce_options_get(s->options, "categorical"),
                              .find_texts = true,
                              .levels = levels,
                              .keep_missing = true,
                              .max_rows = most_rows(s),
                              .seed = n2_options_count(s->options, "seed")};
}

static n2_detect_options detect_options(n2_detect_session *s) {
    static const char *const names[] = {"near", "margins", "ratio"};
    n2_detect_options o = {.seed = n2_options_count(s->options, "seed"), .choice = &s->choice};
    for (size_t p = 0; p < N2_PARTS_COUNT; p++)
        o.use[p] = n2_options_has_word(s->options, "parts", names[p]);
    return o;
}

static n2ce_status learn_from(n2_detect_session *s, const n2_table *t, const n2_levels *levels) {
    const n2_detect_options o = detect_options(s);
    s->normal_seen = t->seen;
    return n2_detector_fit(s->ctx, t, levels, s->own ? t->origin : NULL, &o, &s->detector);
}

/* Rows that are judged by one another are the normal rows, too: a row is judged by those that
 * learnt from others. */
static n2ce_status learn_from_file(n2_detect_session *s, const char *path) {
    n2_levels *levels = NULL;
    n2_table *t = NULL;
    n2ce_status status = n2_levels_new(s->ctx, &levels);
    if (status == N2CE_OK) {
        const n2_table_options o = table_options(s, levels);
        status = n2_table_read(s->ctx, path, &o, &t);
    }
    if (status == N2CE_OK) status = learn_from(s, t, levels);
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

n2ce_status n2_detect_learn(n2_detect_session *s) {
    const char *normal = n2ce_options_get(s->options, "normal");
    const char *model = n2ce_options_get(s->options, "model");
    if (normal && model)
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "--normal learns and --model uses what was learnt; give one of the two.");
    if (model) return n2_detector_load(s->ctx, model, &s->choice, &s->detector);
    s->own = !normal;
    return learn_from_file(s, normal ? normal : s->rows);
}
