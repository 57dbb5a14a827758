#include "detect_pictures.h"

#include "base/random.h"
#include "device_options.h"
#include "io/csv_writer.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "lebm/oddity.h"
#include "report/histogram.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DRAWS = 0x51 }; /* stream of the numbers that decide among equal scores */

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2_arena *arena;
    n2_device_choice choice;
    n2_images *normal, *pictures;
    n2_oddity *oddity;
    size_t members, ranks;
    double *nats;      /* [n x N2_ODDITY_PARTS] */
    double *by_member; /* [n x members] */
    double *score;     /* [n] */
    size_t *rank;      /* [n]: p is rank / ranks */
    size_t flagged_rank, n_flagged;
    size_t *worst, n_worst; /* the oddest first */
} session;

/* ---- what is asked for ----------------------------------------------------------------------- */

/* NPY: 6 bytes of magic, then a header that names the type. */
static bool is_npy_of_numbers(const char *path) {
    char head[256] = "";
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const size_t n = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    if (n < 12 || memcmp(head, "\x93NUMPY", 6) != 0) return false;
    for (size_t i = 10; i + 2 < n; i++)
        if (memcmp(head + i, "|u1", 3) == 0) return false;
    return true;
}

bool n2_is_detector_of_pictures(n2ce_ctx *ctx, const char *path) {
    n2_st_file *f;
    if (n2_st_open(ctx, path, &f) != N2CE_OK) return false;
    const bool is_one = n2_is_oddity(f);
    n2_st_close(f);
    return is_one;
}

bool n2_detects_pictures(n2ce_ctx *ctx, const n2ce_options *o) {
    const char *normal = n2ce_options_get(o, "normal"), *model = n2ce_options_get(o, "model");
    const char *rows = n2ce_options_get(o, "rows"), *first = normal ? normal : rows;
    if (model && !normal) return n2_is_detector_of_pictures(ctx, model);
    /* what is looked at in a pipe is lost to who reads it then: pipes are of rows */
    if (!first || strcmp(first, "-") == 0 || n2_file_is_pipe(first)) return false;
    return !is_npy_of_numbers(first) && n2_may_be_images(ctx, first);
}

static n2ce_status check_outputs(const session *s) {
    static const char *const outputs[] = {"output", "save"};
    const bool force = n2_options_flag(s->options, "force");
    for (size_t i = 0; i < 2; i++) {
        const char *path = n2ce_options_get(s->options, outputs[i]);
        if (path) N2_TRY(n2_file_check_output(s->ctx, path, force));
    }
    return N2CE_OK;
}

static n2ce_status check(const session *s) {
    static const char *const of_rows[] = {"columns", "categorical", "parts", "max-rows"};
    const char *rows = n2ce_options_get(s->options, "rows");
    for (size_t i = 0; i < sizeof of_rows / sizeof of_rows[0]; i++)
        if (n2_options_given(s->options, of_rows[i]))
            return n2_fail(s->ctx, N2CE_EINVAL, "--%s is for rows of numbers, not for pictures.",
                           of_rows[i]);
    if (n2ce_options_get(s->options, "model") && n2ce_options_get(s->options, "normal"))
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "--normal learns and --model uses what was learnt; give one of the two.");
    if (!n2ce_options_get(s->options, "model") && !n2ce_options_get(s->options, "normal"))
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "Pictures are judged by normal ones, and not by one another: say with "
                       "--normal which are normal.");
    if (!rows && (n2ce_options_get(s->options, "output") || !n2ce_options_get(s->options, "save")))
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "detect needs pictures to judge, or --normal and --save FILE. Try: n2ce "
                       "help detect");
    return check_outputs(s);
}

/* On processors narrower networks, in minutes; the wide ones are for GPUs that are asked for. */
static n2_oddity_spec spec_for(const session *s, const n2_image_spec *net) {
    n2_oddity_spec spec = n2_oddity_defaults(net);
    spec.members = 1; /* the score and the p-value are then those of one model */
    if (n2_gpu_number(n2ce_options_get(s->options, "device")) >= 0) return spec;
    spec.width = 8;
    spec.batch = 128;
    spec.vae_steps = 1500;
    spec.steps = 750;
    return spec;
}

/* ---- learning and judging -------------------------------------------------------------------- */

static n2ce_status check_sizes(const session *s) {
    const n2_images *a = s->normal, *b = s->pictures;
    if (!b || (a->height == b->height && a->width == b->width && a->channels == b->channels))
        return N2CE_OK;
    return n2_fail(s->ctx, N2CE_EDATA,
                   "The pictures to judge are %zu x %zu with %zu channel(s), the normal ones %zu x "
                   "%zu with %zu. Scale or convert them.",
                   b->height, b->width, b->channels, a->height, a->width, a->channels);
}

static n2ce_status learn(session *s) {
    const n2_image_spec *net;
    N2_TRY(n2_images_read(s->ctx, n2ce_options_get(s->options, "normal"), &s->normal));
    N2_TRY(check_sizes(s));
    N2_TRY(n2_lebm_net_for(s->ctx, s->normal, "auto", &net));
    const n2_oddity_spec spec = spec_for(s, net);
    return n2_oddity_learn(s->ctx, &spec, s->normal, n2_options_count(s->options, "seed"),
                           &s->choice, &s->oddity);
}

/* The pictures to judge are read first: what is wrong with them need not wait. */
static n2ce_status read_and_learn(session *s) {
    const char *rows = n2ce_options_get(s->options, "rows");
    const char *model = n2ce_options_get(s->options, "model");
    const char *save = n2ce_options_get(s->options, "save");
    if (rows) N2_TRY(n2_images_read(s->ctx, rows, &s->pictures));
    if (model)
        N2_TRY(n2_oddity_load(s->ctx, model, &s->choice, &s->oddity));
    else
        N2_TRY(learn(s));
    s->members = n2_oddity_member_count(s->oddity);
    const bool force = n2_options_flag(s->options, "force");
    return save ? n2_oddity_save(s->oddity, save, force) : N2CE_OK;
}

/* p-values: the rank among normal pictures that were held out, each by a member that did not see
 * it; a new picture is judged by one member, too. */
static n2ce_status rank_all(session *s) {
    const n2_stream draws = {n2_options_count(s->options, "seed"), DRAWS, 0};
    const size_t n = s->pictures->n;
    size_t usual;
    const double *ranked = n2_oddity_ranked(s->oddity, &usual);
    s->ranks = usual + 1;
    uint64_t *count = n2_arena_alloc(s->arena, s->ranks + 1, sizeof *count);
    float *draw = n2_arena_alloc(s->arena, n, sizeof *draw);
    if (!count || !draw) return N2CE_ENOMEM;
    n2_fill_uniform(draws, 0, n, draw);
    for (size_t i = 0; i < n; i++) {
        const double score = s->by_member[i * s->members + i % s->members];
        s->rank[i] = n2_conformal_rank(ranked, usual, score, (double)draw[i]);
        count[s->rank[i]]++;
    }
    s->flagged_rank = n2_flagged_rank(count, s->ranks, n2ce_options_number(s->options, "fdr"));
    for (size_t i = 0; i < n; i++) s->n_flagged += s->rank[i] <= s->flagged_rank;
    return N2CE_OK;
}

static n2ce_status find_worst(session *s) {
    const size_t most = (size_t)n2_options_count(s->options, "worst"), n = s->pictures->n;
    s->worst = n2_arena_alloc(s->arena, most + 1, sizeof *s->worst);
    if (!s->worst) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t at = s->n_worst < most ? s->n_worst++ : most;
        for (; at > 0 && s->score[i] > s->score[s->worst[at - 1]]; at--)
            s->worst[at] = s->worst[at - 1];
        s->worst[at] = i;
    }
    return N2CE_OK;
}

static n2ce_status judge(session *s) {
    const size_t n = s->pictures->n;
    s->nats = n2_arena_alloc(s->arena, n * N2_ODDITY_PARTS, sizeof *s->nats);
    s->by_member = n2_arena_alloc(s->arena, n * s->members, sizeof *s->by_member);
    s->score = n2_arena_alloc(s->arena, n, sizeof *s->score);
    s->rank = n2_arena_alloc(s->arena, n, sizeof *s->rank);
    if (!s->nats || !s->by_member || !s->score || !s->rank) return N2CE_ENOMEM;
    N2_TRY(n2_oddity_nats(s->oddity, s->pictures, s->nats, s->by_member));
    for (size_t i = 0; i < n; i++) s->score[i] = n2_oddity_score(s->nats + i * N2_ODDITY_PARTS);
    N2_TRY(rank_all(s));
    return find_worst(s);
}

static double p_of(const session *s, size_t i) { return (double)s->rank[i] / (double)s->ranks; }

/* ---- the file -------------------------------------------------------------------------------- */

/* What is shown of a picture: the parts that the score is made of. */
enum { SHOWN = N2_ODD_BOUND, COLUMNS = SHOWN + 4 };

static n2ce_status write_output(const session *s, const char *path) {
    const size_t n = s->pictures->n;
    double *table = n2_arena_alloc(s->arena, n * COLUMNS, sizeof *table);
    char header[256];
    int at = snprintf(header, sizeof header, "picture");
    if (!table) return N2CE_ENOMEM;
    for (size_t k = 0; k < SHOWN; k++)
        at += snprintf(header + at, sizeof header - (size_t)at, ",%s", n2_oddity_part_names[k]);
    snprintf(header + at, sizeof header - (size_t)at, ",score,p_value,flag\n");
    for (size_t i = 0; i < n; i++) {
        double *row = table + i * COLUMNS;
        row[0] = (double)i;
        memcpy(row + 1, s->nats + i * N2_ODDITY_PARTS, SHOWN * sizeof *row);
        row[SHOWN + 1] = s->score[i];
        row[SHOWN + 2] = p_of(s, i);
        row[SHOWN + 3] = s->rank[i] <= s->flagged_rank;
    }
    return n2_csv_write(s->ctx, path, header, table, n, COLUMNS,
                        n2_options_flag(s->options, "force"));
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* "contrast 6.1, place 3.0": the parts that have most nats. */
static void say_parts(const double *nats, n2_text *out) {
    bool said[SHOWN] = {false};
    for (int k = 0; k < 3; k++) {
        size_t most = SHOWN;
        for (size_t i = 0; i < SHOWN; i++)
            if (!said[i] && (most == SHOWN || nats[i] > nats[most])) most = i;
        n2_text_add(out, "%s%s %.1f", k ? ", " : "", n2_oddity_part_names[most], nats[most]);
        said[most] = true;
    }
}

static void say_learnt(const session *s, n2_text *out) {
    const n2_lebm_frame f = n2_oddity_frame(s->oddity);
    const char *model = n2ce_options_get(s->options, "model");
    const char *save = n2ce_options_get(s->options, "save");
    n2_text_add(out, "normal     ");
    if (s->normal) n2_text_add(out, "%zu ", s->normal->n);
    n2_text_add(out, "pictures of %zu x %zu\n", f.height, f.width);
    if (model || save) n2_text_add(out, "model      %s\n", model ? model : save);
}

static void say_text(const session *s, n2_text *out) {
    const char *output = n2ce_options_get(s->options, "output");
    say_learnt(s, out);
    if (!s->pictures) return;
    n2_text_add(out, "judged     %zu pictures", s->pictures->n);
    if (output) n2_text_add(out, ", in %s", output);
    n2_text_add(out, "\nflagged    %zu, at a false discovery rate of %s\n", s->n_flagged,
                n2ce_options_get(s->options, "fdr"));
    if (s->n_worst)
        n2_text_add(out, "\n   picture      score    p-value   what is odd about it, in nats\n");
    for (size_t i = 0; i < s->n_worst; i++) {
        const size_t at = s->worst[i];
        n2_text_add(out, "%10zu %10.3f %10.3g   ", at, s->score[at], p_of(s, at));
        say_parts(s->nats + at * N2_ODDITY_PARTS, out);
        n2_text_add(out, "\n");
    }
}

static void add_key(n2_text *json, const char *key, double value) {
    n2_text_add(json, ", \"%s\": ", key);
    n2_text_add_number(json, value);
}

static void worst_json(const session *s, n2_text *json) {
    n2_text_add(json, ", \"rows\": %zu, \"flagged\": %zu", s->pictures->n, s->n_flagged);
    add_key(json, "p_flagged", (double)s->flagged_rank / (double)s->ranks);
    n2_text_add(json, ", \"worst\": [");
    for (size_t i = 0; i < s->n_worst; i++) {
        const size_t at = s->worst[i];
        n2_text_add(json, "%s{\"picture\": %zu", i ? ", " : "", at);
        add_key(json, "score", s->score[at]);
        add_key(json, "p_value", p_of(s, at));
        for (size_t k = 0; k < SHOWN; k++)
            add_key(json, n2_oddity_part_names[k], s->nats[at * N2_ODDITY_PARTS + k]);
        n2_text_add(json, "}");
    }
    n2_text_add(json, "]");
}

static void say_json(const session *s, n2_text *json) {
    n2_text_add(json, "{\"pictures\": true");
    if (s->normal) n2_text_add(json, ", \"normal\": %zu", s->normal->n);
    if (s->pictures) worst_json(s, json);
    n2_text_add(json, ", \"device\": ");
    n2_text_add_json_string(json, n2_choice_name(&s->choice));
    n2_text_add(json, ", \"version\": ");
    n2_text_add_json_string(json, n2ce_version());
    n2_text_add(json, ", \"options\": ");
    n2_options_json(s->options, json);
    n2_text_add(json, "}\n");
}

static void add_histogram(const session *s, n2_text *page) {
    size_t usual;
    const double *ranked = n2_oddity_ranked(s->oddity, &usual);
    const double *const samples[] = {ranked, s->score};
    const size_t sizes[] = {usual, s->pictures->n};
    const n2_bins bins = n2_bins_for(samples, sizes, 2);
    double x[2][N2_MOST_STEPS], y[2][N2_MOST_STEPS];
    n2_series series[2];
    for (size_t k = 0; k < 2; k++) {
        const n2_histogram h = n2_histogram_of(&bins, samples[k], sizes[k]);
        series[k] = (n2_series){.label = k ? "judged" : "normal, held out", .x = x[k], .y = y[k]};
        series[k].n = n2_histogram_steps(&h, &bins, x[k], y[k]);
        series[k].colour = k ? 1 : 0;
    }
    const n2_plot plot = {.title = "Scores",
                          .x_label = "score, nats",
                          .y_label = "density",
                          .series = series,
                          .n_series = 2};
    n2_page_figure(page, &plot, "Normal pictures that were held out, and those that were judged.");
}

static n2ce_status add_worst(const session *s, n2_text *page) {
    n2_images *some;
    n2_text png = n2_text_new(s->ctx);
    if (s->n_worst == 0) return N2CE_OK;
    N2_TRY(n2_images_pick(s->pictures, s->worst, s->n_worst, &some));
    const n2ce_status status = n2_images_sheet_bytes(some, s->n_worst, 0, &png);
    n2_images_free(some);
    if (status == N2CE_OK)
        n2_page_picture(page, png.data, png.length, "The oddest pictures",
                        "The oddest pictures, row by row.");
    page->failed |= png.failed;
    n2_text_free(&png);
    return status == N2CE_EINVAL ? N2CE_OK : status; /* without libpng there are none */
}

static n2ce_status make_page(const session *s, char **html) {
    n2_text page = n2_text_new(s->ctx), text = n2_text_new(s->ctx);
    char footer[64];
    n2_page_begin(&page, "Pictures that are not like the others", "n2ce detect");
    say_text(s, &text);
    if (text.data) n2_page_code(&page, text.data);
    page.failed |= text.failed;
    n2_text_free(&text);
    const n2ce_status status = add_worst(s, &page);
    add_histogram(s, &page);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    const n2ce_status taken = n2_text_take(&page, html);
    return status == N2CE_OK ? taken : status;
}

static n2ce_status say(const session *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(s->ctx);
    say_text(s, &w.text);
    say_json(s, &w.json);
    n2_text_add(&w.brief, "%zu\n", s->n_flagged);
    n2_text_add(&w.kept, "nothing\n");
    n2_note_number(answer, "rows", s->pictures ? (double)s->pictures->n : 0);
    n2_note_number(answer, "flagged", (double)s->n_flagged);
    N2_TRY(n2_writer_take(&w, answer));
    return s->pictures ? make_page(s, &answer->html) : N2CE_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static n2ce_status run(session *s, n2ce_answer *answer) {
    const char *output = n2ce_options_get(s->options, "output");
    N2_TRY(check(s));
    N2_TRY(n2_choice_of_options(s->ctx, s->options, &s->choice));
    N2_TRY(read_and_learn(s));
    if (s->pictures) N2_TRY(judge(s));
    if (output) N2_TRY(write_output(s, output));
    return say(s, answer);
}

n2ce_status n2_detect_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_arena arena = n2_arena_new(ctx);
    session s = {.ctx = ctx, .options = o, .arena = &arena};
    const n2ce_status status = run(&s, answer);
    n2_oddity_free(s.oddity);
    n2_images_free(s.normal);
    n2_images_free(s.pictures);
    n2_arena_free(&arena);
    return status;
}

n2ce_status n2_info_of_odd_pictures(n2ce_ctx *ctx, const char *path, n2ce_answer *answer) {
    n2_oddity *o;
    size_t usual;
    n2_writer w = n2_writer_new(ctx);
    N2_TRY(n2_oddity_load(ctx, path, NULL, &o));
    const n2_lebm_frame f = n2_oddity_frame(o);
    const size_t members = n2_oddity_member_count(o);
    n2_oddity_ranked(o, &usual);
    n2_oddity_free(o);
    n2_text_add(&w.text, "detector   of odd pictures, %zu x %zu with %zu channel%s\n", f.height,
                f.width, f.channels, f.channels == 1 ? "" : "s");
    n2_text_add(&w.text, "members    %zu; %zu held-out pictures say what p-values are\n", members,
                usual);
    n2_text_add(&w.json,
                "{\"detector\": \"pictures\", \"height\": %zu, \"width\": %zu, \"channels\": %zu, "
                "\"members\": %zu, \"held_out\": %zu}\n",
                f.height, f.width, f.channels, members, usual);
    n2_text_add(&w.brief, "%zu\n", usual);
    n2_text_add(&w.kept, "nothing\n");
    return n2_writer_take(&w, answer);
}
