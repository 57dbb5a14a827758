/* divergence: KL, JS and the M-path between two samples. */
#include "base/numerics.h"
#include "ratio_report.h"

#include <math.h>
#include <stdio.h>

static const n2ce_option divergence_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of the numerator: CSV or NPY, - for standard input, or 'part-*.csv' for several "
     "files"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of the denominator"},
    N2_COLUMNS_OPTION,
    {"path", 0, N2CE_OPTION_REALS, "1,10,100,1000", 1, 1e12, NULL, "LIST",
     "magnitudes at which to print the M-path, which runs from 2 JS at 1 to KL at infinity"},
    N2_SAMPLE_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_FIT_OPTIONS,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* What is found besides KL(num || den). */
typedef struct divergences {
    n2_headline h;
    n2_interval reverse, js;
    n2_judgement reverse_verdict, js_verdict;
} divergences;

/* Under a heading in the text, which says if it is not to be trusted, and a key of the JSON. */
static void write_named(const n2_session *s, const char *heading, const char *key, n2_interval v,
                        const n2_judgement *verdict, n2_writer *w) {
    n2_interval_say(&w->text, s->options, heading, v);
    n2_text_add(&w->json, ", \"%s\": {", key);
    n2_interval_json(&w->json, "value", v);
    n2_verdict_json(&w->json, verdict);
    n2_text_add(&w->json, "}");
    n2_answer_note(s, verdict, key, v);
}

static void write_path(const n2_session *s, const divergences *d, const double *m, size_t n,
                       n2_writer *w) {
    n2_text_add(&w->json, ", \"path\": [");
    for (size_t i = 0; i < n; i++) {
        const n2_interval v =
            n2_interval_of(s->options, n2_estimate_path(&s->scores, m[i]), n2ce_bound_cap(m[i]));
        char name[48];
        snprintf(name, sizeof name, "path at M = %g", m[i]);
        n2_interval_say(&w->text, s->options, name, v);
        snprintf(name, sizeof name, "path %g", m[i]);
        n2_answer_note(s, &d->js_verdict, name, v);
        n2_text_add(&w->json, "%s{\"M\": ", i ? ", " : "");
        n2_text_add_number(&w->json, m[i]);
        n2_text_add(&w->json, ", ");
        n2_interval_json(&w->json, "value", v);
        n2_text_add(&w->json, "}");
    }
    n2_text_add(&w->json, "]");
}

static divergences diverge(const n2_session *s) {
    const double z = n2_interval_quantile(s->options);
    n2_quality q = {0};
    const n2_estimate back = n2_estimate_reverse_kl(&s->scores, &s->record, &q);
    n2_estimate js = n2_estimate_path(&s->scores, 1);
    js = (n2_estimate){js.value / 2, js.error / 2};
    const n2_headline h = n2_headline_of(s);
    return (divergences){
        .h = h,
        .reverse = n2_interval_of(s->options, back, N2_INFINITY),
        .js = n2_interval_of(s->options, js, log(2)),
        .reverse_verdict = n2_judge(s, N2_JUDGED_REVERSE, back, &q, z),
        .js_verdict = n2_judge(s, N2_JUDGED_BOUNDED, js,
                               &(n2_quality){.curve = n2_estimate_curve(&s->scores) * js.value}, z),
    };
}

/* Below the headline's verdict, if it is another. */
static void say_reverse(const divergences *d, n2_text *text) {
    const n2_judgement *v = &d->reverse_verdict;
    if (v->trust != N2_TRUSTED && v->trust != d->h.verdict.trust)
        n2_text_add(text, "           KL(den || num) is %s: %s\n", n2_trust_name(v->trust),
                    v->reason);
}

static void write_divergence(const n2_session *s, const divergences *d, const double *m, size_t n,
                             n2_writer *w) {
    n2_headline_begin(s, &d->h, "kl", w);
    write_named(s, "KL(num || den)", "kl", d->h.v, &d->h.verdict, w);
    write_named(s, "KL(den || num)", "kl_reverse", d->reverse, &d->reverse_verdict, w);
    write_named(s, "JS(num, den)", "js", d->js, &d->js_verdict, w);
    write_path(s, d, m, n, w);
    n2_headline_say(s, &d->h, &w->text);
    say_reverse(d, &w->text);
    n2_headline_end(s, &d->h, "nothing", w);
}

static n2ce_status write_page(const n2_session *s, const divergences *d, n2ce_answer *answer) {
    char title[200], text[3][2][N2_REPORT_TEXT];
    snprintf(title, sizeof title, "Divergence of %.80s from %.80s", n2_report_sample(s, 1),
             n2_report_sample(s, 0));
    const n2_page_number numbers[] = {
        n2_report_number(s->options, "KL(num || den)", d->h.v, text[0][0], text[0][1]),
        n2_report_number(s->options, "KL(den || num)", d->reverse, text[1][0], text[1][1]),
        n2_report_number(s->options, "Jensen-Shannon", d->js, text[2][0], text[2][1])};
    const n2_report_front front = {.verb = "divergence",
                                   .title = title,
                                   .numbers = numbers,
                                   .n_numbers = 3,
                                   .judgement = &d->h.verdict};
    return n2_report_page(s, &front, answer);
}

static n2ce_status write_answer(const n2_session *s, const double *m, size_t n,
                                n2ce_answer *answer) {
    const divergences d = diverge(s);
    n2_writer w = n2_writer_new(s->ctx);
    write_divergence(s, &d, m, n, &w);
    N2_TRY(n2_writer_take(&w, answer));
    return write_page(s, &d, answer);
}

static n2ce_status divergence_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    n2_arena arena = n2_arena_new(s->ctx);
    double *m;
    size_t n;
    n2ce_status status = n2_session_read_num_den(s, "divergence", data);
    if (status == N2CE_OK) status = n2_options_reals(s->options, "path", &arena, &m, &n);
    if (status == N2CE_OK) status = n2_session_fit(s);
    if (status == N2CE_OK) status = write_answer(s, m, n, answer);
    n2_arena_free(&arena);
    return status;
}

static n2ce_status run_divergence(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                  n2ce_answer *answer) {
    return n2_session_run(ctx, o, data, answer, divergence_session);
}

const n2ce_task n2_divergence_task = {
    .name = "divergence",
    .summary = "KL, JS and the M-path between two samples, with intervals",
    .description =
        "KL both ways, Jensen-Shannon, and the M-path (1+M) D_alpha between them, from two files\n"
        "of samples. Negative values happen where the truth is near 0; they are not clipped.\n",
    .examples = "n2ce divergence --num new.csv --den old.csv\n"
                "n2ce divergence --num a.npy --den b.npy --columns 0-4 --unit bits --json\n"
                "n2ce divergence --num new.csv --den old.csv --report out\n",
    .page = "divergence.html",
    .data = "divergence.json",
    .options = divergence_options,
    .run_on = run_divergence,
    .matrices = 2,
};
