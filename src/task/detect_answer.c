/* detect: what was found, for a terminal and as JSON. */
#include "detect/detector_file.h"
#include "detect_session.h"

#include <math.h>
#include <string.h>

void n2_detect_value(const n2_detector *d, size_t column, double x, n2_text *out) {
    const bool level = d->n_levels[column] > 0;
    const char *text =
        level && !isnan(x) ? n2_levels_text(d->levels, d->names[column], (size_t)x) : NULL;
    if (text)
        n2_text_add(out, "%s", *text ? text : "missing");
    else if (isnan(x))
        n2_text_add(out, level ? "something new" : "missing");
    else
        n2_text_add(out, "%.6g", x);
}

/* ---- text ---------------------------------------------------------------- */

static void say_blame(const n2_detector *d, const n2_odd_row *row, n2_text *out) {
    for (size_t k = 0; k < row->blame.n && k < 3; k++) {
        const size_t c = row->blame.column[k];
        n2_text_add(out, "%s%s ", k ? ", " : "  ", d->names[c]);
        n2_detect_value(d, c, row->values[c], out);
        n2_text_add(out, " (usual: ");
        n2_detect_value(d, c, row->blame.usual[k], out);
        n2_text_add(out, ")");
    }
}

static void say_worst(const n2_detect_session *s, n2_text *out) {
    if (s->n_worst > 0)
        n2_text_add(out, "\n       row      score    p-value   what is odd about it\n");
    for (size_t i = 0; i < s->n_worst; i++) {
        const n2_odd_row *row = &s->worst[i];
        n2_text_add(out, "%10llu %10.3f %10.3g ", (unsigned long long)row->row, row->score, row->p);
        say_blame(s->detector, row, out);
        n2_text_add(out, "\n");
    }
}

static void say_learnt(const n2_detect_session *s, n2_text *out) {
    const n2_detector *d = s->detector;
    n2_text_add(out, "normal     %zu rows, %zu column%s", d->n, d->cols, d->cols == 1 ? "" : "s");
    if (s->own)
        n2_text_add(out, ", the least odd of those to be judged");
    else if (s->normal_seen > d->n)
        n2_text_add(out, ", a random subset of %zu", s->normal_seen);
    n2_text_add(out, "\n");
}

static void say_text(const n2_detect_session *s, n2_text *out) {
    const char *output = n2ce_options_get(s->options, "output");
    const char *save = n2ce_options_get(s->options, "save");
    say_learnt(s, out);
    if (save) n2_text_add(out, "model      %s\n", save);
    if (!s->rows) return;
    n2_text_add(out, "judged     %llu rows", (unsigned long long)s->judged);
    if (output) n2_text_add(out, ", in %s", output);
    n2_text_add(out, "\nflagged    %llu, at a false discovery rate of %s%s\n",
                (unsigned long long)s->n_flagged, n2ce_options_get(s->options, "fdr"),
                s->own ? " (by extrapolation: no rows are known to be normal)" : "");
    say_worst(s, out);
}

/* ---- JSON ---------------------------------------------------------------- */

static void add_key(n2_text *json, const char *key, double value) {
    n2_text_add(json, ", \"%s\": ", key);
    n2_text_add_number(json, value);
}

static void blame_json(const n2_detector *d, const n2_odd_row *row, n2_text *json) {
    n2_text value = n2_text_new(d->ctx);
    for (size_t k = 0; k < row->blame.n; k++) {
        const size_t c = row->blame.column[k];
        n2_text_add(json, "%s{\"column\": ", k ? ", " : "");
        n2_text_add_json_string(json, d->names[c]);
        for (size_t usual = 0; usual < 2; usual++) {
            value.length = 0;
            n2_detect_value(d, c, usual ? row->blame.usual[k] : row->values[c], &value);
            n2_text_add(json, usual ? ", \"usual\": " : ", \"value\": ");
            n2_text_add_json_string(json, value.data ? value.data : "");
        }
        add_key(json, "loss", row->blame.loss[k]);
        n2_text_add(json, "}");
    }
    json->failed |= value.failed;
    n2_text_free(&value);
}

static void worst_json(const n2_detect_session *s, n2_text *json) {
    n2_text_add(json, ", \"worst\": [");
    for (size_t i = 0; i < s->n_worst; i++) {
        const n2_odd_row *row = &s->worst[i];
        n2_text_add(json, "%s{\"row\": %llu", i ? ", " : "", (unsigned long long)row->row);
        add_key(json, "score", row->score);
        add_key(json, "p_value", row->p);
        n2_text_add(json, ", \"columns\": [");
        blame_json(s->detector, row, json);
        n2_text_add(json, "]}");
    }
    n2_text_add(json, "]");
}

static void say_json(const n2_detect_session *s, n2_text *json) {
    const n2_detector *d = s->detector;
    n2_text_add(json, "{\"normal\": %zu, \"seen\": %zu, \"columns\": %zu, \"cross_fitted\": %s",
                d->n, s->normal_seen, d->cols, s->own ? "true" : "false");
    if (s->rows) {
        n2_text_add(json, ", \"rows\": %llu, \"flagged\": %llu", (unsigned long long)s->judged,
                    (unsigned long long)s->n_flagged);
        add_key(json, "p_flagged", (double)s->ranks.flagged / (double)s->ranks.ranks);
        worst_json(s, json);
    }
    n2_text_add(json, ", \"device\": ");
    n2_text_add_json_string(json, n2_choice_name(&s->choice));
    n2_text_add(json, ", \"version\": ");
    n2_text_add_json_string(json, n2ce_version());
    n2_text_add(json, ", \"options\": ");
    n2_options_json(s->options, json);
    n2_text_add(json, "}\n");
}

n2ce_status n2_detect_say(const n2_detect_session *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(s->ctx);
    say_text(s, &w.text);
    say_json(s, &w.json);
    n2_text_add(&w.brief, "%llu\n", (unsigned long long)s->n_flagged);
    n2_text_add(&w.kept, "nothing\n");
    n2_note_number(answer, "rows", (double)s->judged);
    n2_note_number(answer, "flagged", (double)s->n_flagged);
    return n2_writer_take(&w, answer);
}

/* ---- info ---------------------------------------------------------------- */

static void describe(const n2_detector *d, n2_writer *w) {
    n2_text_add(&w->text, "detector   %zu normal rows, %zu folds\n", d->n, d->folds);
    n2_text_add(&w->json,
                "{\"kind\": \"detector\", \"normal\": %zu, \"folds\": %zu, \"columns\": [", d->n,
                d->folds);
    for (size_t c = 0; c < d->cols; c++) {
        n2_text_add(&w->text, "%-10s %-16s ", c ? "" : "columns", d->names[c]);
        if (d->n_levels[c])
            n2_text_add(&w->text, "levels, %zu\n", d->n_levels[c]);
        else
            n2_text_add(&w->text, "numbers\n");
        n2_text_add(&w->json, "%s{\"name\": ", c ? ", " : "");
        n2_text_add_json_string(&w->json, d->names[c]);
        n2_text_add(&w->json, ", \"levels\": %zu}", d->n_levels[c]);
    }
    n2_text_add(&w->json, "]}\n");
    n2_text_add(&w->brief, "%zu\n", d->cols);
    n2_text_add(&w->kept, "nothing\n");
}

n2ce_status n2_info_of_detector(n2ce_ctx *ctx, const char *path, n2ce_answer *answer) {
    n2_detector *d;
    n2_writer w = n2_writer_new(ctx);
    N2_TRY(n2_detector_load(ctx, path, NULL, &d));
    describe(d, &w);
    n2_detector_free(d);
    return n2_writer_take(&w, answer);
}
