/* The study of distillation as tables, text and JSON. */
#include "distill_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char n2_distill_caveat[] =
    "Distances are of samples from the pictures that were learnt from, by the features named here; "
    "they can be compared with one another and with the floor, not with those of other features or "
    "printed ones. All students have the same teacher; lengths are fixed and the last state is "
    "judged. Along: the mean distance over the pictures seen, of fewer samples. Real, made: log "
    "ratios of SiDA, values of DxMI, at the end. A control has M = 1 and a lambda at which the gap "
    "of rewards is that of the larger M.";

n2_distill_summary n2_distill_summarise(const n2_distill_study *s, size_t arm) {
    n2_distill_summary sum = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_distill_run *r = n2_distill_run_at(s, arm, k);
        const n2_distill_score *x = &r->score;
        if (!r->done) continue;
        n2_tally *const to[] = {&sum.frechet, &sum.along,   &sum.kid,  &sum.precision,
                                &sum.recall,  &sum.classes, &sum.real, &sum.made};
        const double from[] = {x->frechet, x->along,   x->kid,  x->precision,
                               x->recall,  x->classes, x->real, x->made};
        for (size_t i = 0; i < sizeof from / sizeof *from; i++)
            if (isfinite(from[i])) n2_tally_add(to[i], from[i]);
    }
    return sum;
}

/* ---- the table ---- */

static void put_tally(n2_cells *c, const n2_tally *t, int digits) {
    char text[64] = "";
    if (t->n == 1) snprintf(text, sizeof text, "%.*g", digits, n2_tally_mean(t));
    if (t->n > 1)
        snprintf(text, sizeof text, "%.*g +- %.2g", digits, n2_tally_mean(t), n2_tally_spread(t));
    n2_cells_put(c, text);
}

static void put_number(n2_cells *c, double x, int digits) {
    char text[32] = "";
    if (isfinite(x)) snprintf(text, sizeof text, "%.*g", digits, x);
    n2_cells_put(c, text);
}

static bool has_row(const n2_distill_study *s, size_t arm, bool *failed) {
    *failed = false;
    for (size_t k = 0; k < s->n_seeds; k++) *failed |= n2_distill_run_at(s, arm, k)->failed;
    return n2_distill_summarise(s, arm).frechet.n > 0 || *failed;
}

static void put_arm(n2_cells *c, const n2_distill_study *s, size_t arm, bool failed) {
    const n2_distill_summary sum = n2_distill_summarise(s, arm);
    n2_cells_put(c, n2_distill_arms[arm].title);
    if (sum.frechet.n)
        put_tally(c, &sum.frechet, 4);
    else
        n2_cells_put(c, failed ? "failed" : "");
    put_tally(c, &sum.along, 4);
    put_tally(c, &sum.kid, 3);
    put_tally(c, &sum.precision, 3);
    put_tally(c, &sum.recall, 3);
    put_tally(c, &sum.real, 3);
    put_tally(c, &sum.made, 3);
    if (isfinite(s->real_classes)) put_tally(c, &sum.classes, 4);
}

static void put_floor(n2_cells *c, const n2_distill_study *s) {
    const n2_set_distance *f = &s->floor;
    n2_cells_put(c, s->set.test ? "floor: test pictures" : "floor: half of the pictures");
    put_number(c, f->frechet.distance, 4);
    n2_cells_put(c, "");
    put_number(c, f->kid.mean, 3);
    put_number(c, f->neighbours.precision, 3);
    put_number(c, f->neighbours.recall, 3);
    n2_cells_put(c, "");
    n2_cells_put(c, "");
    if (isfinite(s->real_classes)) put_number(c, s->real_classes, 4);
}

n2ce_status n2_distill_table(const n2_distill_study *s, n2_arena *arena, n2_text_table *out) {
    static const char *const head[] = {"student", "Frechet", "along", "KID",        "precision",
                                       "recall",  "real",    "made",  "class score"};
    enum { COLUMNS = sizeof head / sizeof *head };
    n2_cells cells = n2_cells_new(arena, COLUMNS * (N2_DISTILL_ARMS + 2));
    const size_t columns = isfinite(s->real_classes) ? COLUMNS : COLUMNS - 1;
    bool failed;
    n2_cells_put_all(&cells, head, columns);
    for (size_t arm = 0; arm < N2_DISTILL_ARMS; arm++)
        if (has_row(s, arm, &failed)) put_arm(&cells, s, arm, failed);
    put_floor(&cells, s);
    return n2_cells_table(&cells, columns, out);
}

/* ---- differences, seed by seed ---- */

static n2_tally gap_of(const n2_distill_study *s, size_t arm, size_t from) {
    n2_tally gap = {0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_distill_run *a = n2_distill_run_at(s, arm, k), *b = n2_distill_run_at(s, from, k);
        if (a->done && b->done) n2_tally_add(&gap, a->score.frechet - b->score.frechet);
    }
    return gap;
}

static void say_gap(n2_text *text, const n2_tally *gap, const char *title) {
    const double mean = n2_tally_mean(gap), spread = n2_tally_spread(gap);
    n2_text_add(text, "  %-26s %+.4g", title, mean);
    if (gap->n > 1)
        n2_text_add(text, " +- %.2g%s", spread, fabs(mean) > spread ? "" : ", within the spread");
    n2_text_add(text, "\n");
}

/* Of one method: the others less the arm with the paper's M. */
static void say_gaps(n2_text *text, const n2_distill_study *s, size_t from, size_t first,
                     size_t last) {
    bool begun = false;
    for (size_t arm = first; arm <= last; arm++) {
        const n2_tally gap = gap_of(s, arm, from);
        if (arm == from || gap.n == 0) continue;
        if (!begun)
            n2_text_add(text,
                        "\nFrechet distances less that of %s, seed by seed; above 0: it is nearer "
                        "to the pictures\n",
                        n2_distill_arms[from].title);
        begun = true;
        say_gap(text, &gap, n2_distill_arms[arm].title);
    }
}

/* ---- text ---- */

static void say_head(n2_text *text, const n2_distill_study *s) {
    const n2_images *p = s->set.train;
    const char *net = n2ce_options_get(s->options, "features");
    n2_text_add(text, "pictures   %s: %zu of %zu x %zu pixels, %s; %zu made with each student\n",
                s->set.name, p->n, p->height, p->width, p->channels == 1 ? "grey" : "RGB",
                s->number);
    n2_text_add(text, "features   %s\n", net ? net : "of layout and texture");
    n2_text_add(text, "seeds      %zu, from %llu, on %s\n\n", s->n_seeds,
                (unsigned long long)s->first_seed, n2_choice_name(&s->choice));
}

static n2ce_status say(n2_text *text, const n2_distill_study *s) {
    n2_text_table table;
    say_head(text, s);
    N2_TRY(n2_distill_table(s, s->arena, &table));
    n2_text_table_add(text, &table);
    say_gaps(text, s, N2_ARM_DXMI_M100, 1, N2_ARM_DXMI_M100);
    say_gaps(text, s, N2_ARM_SIDA_M50, N2_ARM_DXMI_M100 + 1, N2_DISTILL_ARMS - 1);
    n2_text_add(text, "\n");
    n2_text_wrapped(text, n2_distill_caveat);
    if (s->interrupted || s->out_of_time)
        n2_text_add(text, "\nThe study was stopped: it goes on with --reuse.\n");
    return N2CE_OK;
}

/* ---- JSON ---- */

static void add_number(n2_text *json, const char *name, double x) {
    n2_text_add(json, ", \"%s\": ", name);
    n2_text_add_number(json, x);
}

static void add_score(n2_text *json, const n2_distill_score *x) {
    add_number(json, "frechet", x->frechet);
    add_number(json, "kid", x->kid);
    add_number(json, "precision", x->precision);
    add_number(json, "recall", x->recall);
    add_number(json, "class_score", x->classes);
    add_number(json, "along", x->along);
    add_number(json, "real", x->real);
    add_number(json, "made", x->made);
    add_number(json, "seen", x->seen);
}

static void add_curve(n2_text *json, const n2_curve *c) {
    n2_text_add(json, ", \"curve\": [");
    for (size_t i = 0; i < c->n; i++) {
        n2_text_add(json, "%s[", i ? ", " : "");
        n2_text_add_number(json, c->point[i].seen);
        n2_text_add(json, ", ");
        n2_text_add_number(json, c->point[i].distance);
        n2_text_add(json, "]");
    }
    n2_text_add(json, "]");
}

static void add_rows(n2_text *json, const n2_distill_study *s) {
    const char *between = "";
    for (size_t i = 0; i < N2_DISTILL_ARMS * s->n_seeds; i++) {
        const n2_distill_run *r = &s->runs[i];
        if (!r->done) continue;
        n2_text_add(json, "%s\n    {\"arm\": \"%s\", \"seed\": %llu", between,
                    n2_distill_arms[i / s->n_seeds].name,
                    (unsigned long long)(s->first_seed + i % s->n_seeds));
        add_score(json, &r->score);
        add_number(json, "seconds", r->seconds);
        add_curve(json, &r->curve);
        n2_text_add(json, "}");
        between = ",";
    }
}

static void say_json(n2_text *json, const n2_distill_study *s) {
    const n2_set_distance *f = &s->floor;
    const n2_distill_score floor = {.frechet = f->frechet.distance,
                                    .kid = f->kid.mean,
                                    .precision = f->neighbours.precision,
                                    .recall = f->neighbours.recall,
                                    .classes = s->real_classes,
                                    .along = N2_NAN,
                                    .real = N2_NAN,
                                    .made = N2_NAN};
    n2_text_add(json, "{\n  \"study\": \"distill\",\n  \"options\": ");
    n2_options_json(s->options, json);
    n2_text_add(json, ",\n  \"settings\": ");
    n2_text_add_json_string(json, s->settings);
    n2_text_add(json, ",\n  \"device\": \"%s\", \"interrupted\": %s", n2_choice_name(&s->choice),
                s->interrupted || s->out_of_time ? "true" : "false");
    add_number(json, "teacher_seconds", s->taught ? s->taught_seconds : N2_NAN);
    if (s->taught) add_curve(json, &s->taught->curve);
    n2_text_add(json, ",\n  \"floor\": {\"of\": \"%s\"", s->set.test ? "test" : "half");
    add_score(json, &floor);
    n2_text_add(json, "},\n  \"rows\": [");
    add_rows(json, s);
    n2_text_add(json, "\n  ]\n}\n");
}

n2ce_status n2_distill_show(n2ce_ctx *ctx, const n2_distill_study *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(ctx);
    const n2ce_status status = say(&w.text, s);
    bool failed;
    if (status != N2CE_OK) {
        n2_writer_free(&w);
        return status;
    }
    say_json(&w.json, s);
    for (size_t arm = 0; arm < N2_DISTILL_ARMS; arm++) {
        if (!has_row(s, arm, &failed)) continue;
        const n2_tally t = n2_distill_summarise(s, arm).frechet;
        n2_text_add_number(&w.brief, t.n ? n2_tally_mean(&t) : N2_NAN);
        n2_text_add(&w.brief, "\n");
    }
    n2_text_add(&w.kept, "%zu runs\n", s->n_done);
    N2_TRY(n2_writer_take(&w, answer));
    return n2_distill_page(ctx, s, &answer->html);
}
