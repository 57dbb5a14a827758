/* The study of pictures as tables, text and JSON. */
#include "images_study.h"

#include <stdio.h>
#include <string.h>

const char n2_images_caveat[] =
    "Distances are of samples from the pictures that were learnt from, by the features named "
    "here; they can be compared with one another and with the floor, not with those of other "
    "features or printed ones. All priors of a seed have the same autoencoder; those that are "
    "said to be over N(0, I) are as published, the other learnt ones are over what --base names. "
    "Frozen: codes stand still while the prior is learnt or fitted. Joint: encoder, decoder and "
    "prior are then refined together, and the prior settles. Nats: how much more likely frozen "
    "codes of test pictures (or of the pictures, where a set has no others) are than under N(0, "
    "I).";

/* ---- summaries ---- */

n2_images_summary n2_images_summarise(const n2_images_study *s, size_t arm, size_t stage) {
    n2_images_summary sum = {{0}, {0}, {0}, {0}, {0}, {0}};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_images_score *x = &n2_images_run_at(s, arm, k)->score[stage];
        if (!x->done) continue;
        n2_tally_add(&sum.frechet, x->frechet);
        n2_tally_add(&sum.kid, x->kid);
        n2_tally_add(&sum.precision, x->precision);
        n2_tally_add(&sum.recall, x->recall);
        n2_tally_add(&sum.classes, x->classes);
        n2_tally_add(&sum.gain, x->gain);
    }
    return sum;
}

/* A stage of a run, or the only one. */
static const n2_images_score *score_at(const n2_images_study *s, size_t arm, size_t seed,
                                       size_t stage) {
    const n2_images_run *r = n2_images_run_at(s, arm, seed);
    return &r->score[n2_images_has_joint(s, arm) ? stage : N2_IMAGES_FROZEN];
}

n2_tally n2_images_gap(const n2_images_study *s, size_t arm, size_t stage) {
    n2_tally gap = {0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_images_score *a = score_at(s, arm, k, stage);
        const n2_images_score *b = score_at(s, N2_IMAGES_ARMS - 1, k, stage);
        if (a->done && b->done) n2_tally_add(&gap, a->frechet - b->frechet);
    }
    return gap;
}

/* ---- tables ---- */

enum { COLUMNS = 8 };

static const char *cell(n2_arena *arena, const n2_tally *t, int digits) {
    char text[64];
    if (t->n == 0) return "";
    if (t->n == 1)
        snprintf(text, sizeof text, "%.*g", digits, n2_tally_mean(t));
    else
        snprintf(text, sizeof text, "%.*g +- %.2g", digits, n2_tally_mean(t), n2_tally_spread(t));
    return n2_arena_strdup(arena, text);
}

static const char *number(n2_arena *arena, double x, int digits) {
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, x);
    return isfinite(x) ? n2_arena_strdup(arena, text) : "";
}

static void fill_row(const n2_images_study *s, size_t arm, size_t stage, n2_arena *arena,
                     const char **cells) {
    const n2_images_summary sum = n2_images_summarise(s, arm, stage);
    const bool joint = n2_images_has_joint(s, arm);
    cells[0] = n2_images_arms[arm].title;
    cells[1] = !joint ? "" : stage == N2_IMAGES_JOINT ? "joint" : "frozen";
    cells[2] = sum.frechet.n ? cell(arena, &sum.frechet, 4) : "failed";
    cells[3] = cell(arena, &sum.kid, 3);
    cells[4] = cell(arena, &sum.precision, 3);
    cells[5] = cell(arena, &sum.recall, 3);
    cells[6] = cell(arena, &sum.gain, 4);
    cells[7] = cell(arena, &sum.classes, 4);
}

static void fill_floor(const n2_images_study *s, n2_arena *arena, const char **cells) {
    const n2_set_distance *f = &s->floor;
    cells[0] = s->halves ? "floor: halves of real" : "floor: test pictures";
    cells[1] = "";
    cells[2] = number(arena, f->frechet.distance, 4);
    cells[3] = number(arena, f->kid.mean, 3);
    cells[4] = number(arena, f->neighbours.precision, 3);
    cells[5] = number(arena, f->neighbours.recall, 3);
    cells[6] = "";
    cells[7] = number(arena, s->real_classes, 4);
}

static bool has_row(const n2_images_study *s, size_t arm, size_t stage) {
    bool failed = false;
    for (size_t k = 0; k < s->n_seeds; k++) failed |= n2_images_run_at(s, arm, k)->failed;
    return n2_images_summarise(s, arm, stage).frechet.n > 0 ||
           (failed && (stage == N2_IMAGES_FROZEN || n2_images_has_joint(s, arm)));
}

n2ce_status n2_images_table(const n2_images_study *s, n2_arena *arena, n2_text_table *out) {
    enum { ROWS = 2 + N2_IMAGES_ARMS * N2_IMAGES_STAGES };
    static const char *const head[COLUMNS] = {"prior",     "",       "Frechet", "KID",
                                              "precision", "recall", "nats",    "class score"};
    const size_t columns = s->classes ? COLUMNS : COLUMNS - 1;
    const char **cells = n2_arena_alloc(arena, ROWS * COLUMNS, sizeof *cells);
    const char *row[COLUMNS];
    if (!cells) return N2CE_ENOMEM;
    *out = (n2_text_table){cells, 1, columns};
    memcpy(cells, head, columns * sizeof *cells);
    for (size_t i = 0; i <= N2_IMAGES_ARMS * N2_IMAGES_STAGES; i++) {
        const size_t arm = i / N2_IMAGES_STAGES, stage = i % N2_IMAGES_STAGES;
        const bool last = i == N2_IMAGES_ARMS * N2_IMAGES_STAGES;
        if (!last && !has_row(s, arm, stage)) continue;
        if (last)
            fill_floor(s, arena, row);
        else
            fill_row(s, arm, stage, arena, row);
        for (size_t c = 0; c < columns; c++) {
            if (!row[c]) return N2CE_ENOMEM;
            cells[out->n_rows * columns + c] = row[c];
        }
        out->n_rows++;
    }
    return N2CE_OK;
}

/* ---- text ---- */

static void say_gap(n2_text *text, const n2_images_study *s, size_t arm, size_t stage) {
    const n2_tally gap = n2_images_gap(s, arm, stage);
    if (gap.n == 0) return;
    const double mean = n2_tally_mean(&gap), spread = n2_tally_spread(&gap);
    n2_text_add(text, "  %-29s %+.4g", n2_images_arms[arm].title, mean);
    if (gap.n > 1)
        n2_text_add(text, " +- %.2g%s", spread, fabs(mean) > spread ? "" : ", within the spread");
    n2_text_add(text, "\n");
}

static void say_gaps(n2_text *text, const n2_images_study *s) {
    const size_t last = N2_IMAGES_ARMS - 1;
    for (size_t stage = 0; stage < N2_IMAGES_STAGES; stage++) {
        if (!has_row(s, last, stage)) continue;
        n2_text_add(text,
                    "\nFrechet distances less that of %s (%s), seed by seed; above 0: it is "
                    "nearer to the pictures\n",
                    n2_images_arms[last].title, stage == N2_IMAGES_JOINT ? "joint" : "frozen");
        for (size_t arm = 1; arm < last; arm++) say_gap(text, s, arm, stage);
    }
}

static void say_head(n2_text *text, const n2_images_study *s) {
    const n2_images *p = s->set.train;
    n2_text_add(text, "pictures   %s: %zu of %zu x %zu pixels, %s; %zu made with each prior\n",
                s->set.name, p->n, p->height, p->width, p->channels == 1 ? "grey" : "RGB",
                s->number);
    n2_text_add(text, "networks   %s, codes of %lld numbers, on %s\n", s->plan.spec.net->name,
                (long long)s->plan.spec.nz, n2_choice_name(&s->choice));
    n2_text_add(text, "base       %s, but for what is said to be over N(0, I)\n",
                n2_options_has_word(s->options, "base", "fitted")
                    ? "a Gaussian that is fitted to the codes and follows them"
                    : "N(0, I)");
    n2_text_add(text, "features   %zu, %s\n", s->d,
                s->net ? n2ce_options_get(s->options, "features") : "of layout and texture");
    n2_text_add(text, "seeds      %zu, from %llu\n\n", s->n_seeds,
                (unsigned long long)s->first_seed);
}

static n2ce_status say(n2_text *text, const n2_images_study *s, n2_arena *arena) {
    n2_text_table table;
    say_head(text, s);
    N2_TRY(n2_images_table(s, arena, &table));
    n2_text_table_add(text, &table);
    say_gaps(text, s);
    n2_text_add(text, "\n");
    n2_text_wrapped(text, n2_images_caveat);
    if (s->interrupted || s->out_of_time)
        n2_text_add(text, "\nThe study was stopped: it goes on with --reuse.\n");
    return N2CE_OK;
}

/* ---- JSON ---- */

static void add_number(n2_text *json, const char *name, double x) {
    n2_text_add(json, ", \"%s\": ", name);
    n2_text_add_number(json, x);
}

static void add_score(n2_text *json, const n2_images_score *x) {
    add_number(json, "frechet", x->frechet);
    add_number(json, "kid", x->kid);
    add_number(json, "kid_spread", x->kid_spread);
    add_number(json, "precision", x->precision);
    add_number(json, "recall", x->recall);
    add_number(json, "class_score", x->classes);
    add_number(json, "gain", x->gain);
}

static void add_rows(n2_text *json, const n2_images_study *s) {
    const char *between = "";
    for (size_t i = 0; i < N2_IMAGES_ARMS * s->n_seeds * N2_IMAGES_STAGES; i++) {
        const size_t stage = i % N2_IMAGES_STAGES, run = i / N2_IMAGES_STAGES;
        const size_t arm = run / s->n_seeds, seed = run % s->n_seeds;
        const n2_images_score *x = &s->runs[run].score[stage];
        if (!x->done) continue;
        n2_text_add(json, "%s\n    {\"arm\": \"%s\", \"seed\": %llu, \"stage\": \"%s\"", between,
                    n2_images_arms[arm].name, (unsigned long long)(s->first_seed + seed),
                    stage == N2_IMAGES_JOINT ? "joint" : "frozen");
        add_score(json, x);
        add_number(json, "seconds", s->runs[run].seconds);
        n2_text_add(json, "}");
        between = ",";
    }
}

static void say_json(n2_text *json, const n2_images_study *s) {
    const n2_set_distance *f = &s->floor;
    const n2_images_score floor = {.frechet = f->frechet.distance,
                                   .kid = f->kid.mean,
                                   .kid_spread = f->kid.spread,
                                   .precision = f->neighbours.precision,
                                   .recall = f->neighbours.recall,
                                   .classes = s->real_classes,
                                   .gain = N2_NAN};
    n2_text_add(json, "{\n  \"study\": \"images\",\n  \"options\": ");
    n2_options_json(s->options, json);
    n2_text_add(json, ",\n  \"settings\": ");
    n2_text_add_json_string(json, s->settings);
    n2_text_add(json, ",\n  \"device\": \"%s\", \"interrupted\": %s, \"features\": %zu",
                n2_choice_name(&s->choice), s->interrupted || s->out_of_time ? "true" : "false",
                s->d);
    n2_text_add(json, ",\n  \"floor\": {\"of\": \"%s\"", s->halves ? "halves" : "test");
    add_score(json, &floor);
    n2_text_add(json, "},\n  \"rows\": [");
    add_rows(json, s);
    n2_text_add(json, "\n  ]\n}\n");
}

static void say_brief(n2_text *brief, const n2_images_study *s) {
    for (size_t arm = 0; arm < N2_IMAGES_ARMS; arm++)
        for (size_t stage = 0; stage < N2_IMAGES_STAGES; stage++) {
            if (!has_row(s, arm, stage)) continue;
            const n2_images_summary sum = n2_images_summarise(s, arm, stage);
            n2_text_add_number(brief, sum.frechet.n ? n2_tally_mean(&sum.frechet) : N2_NAN);
            n2_text_add(brief, "\n");
        }
}

n2ce_status n2_images_show(n2ce_ctx *ctx, const n2_images_study *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(ctx);
    const n2ce_status status = say(&w.text, s, s->arena);
    if (status != N2CE_OK) {
        n2_writer_free(&w);
        return status;
    }
    say_json(&w.json, s);
    say_brief(&w.brief, s);
    n2_text_add(&w.kept, "%zu runs\n", s->n_done);
    N2_TRY(n2_writer_take(&w, answer));
    return n2_images_page(ctx, s, &answer->html);
}
