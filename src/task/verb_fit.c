/* fit: two samples in, a model of their log ratio out. */
#include "io/file.h"
#include "ratio_report.h"

#include <stdio.h>

static const n2ce_option fit_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of the numerator: CSV or NPY, - for standard input, or 'part-*.csv' for several "
     "files"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of the denominator"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the model here, a safetensors file"},
    N2_FORCE_OPTION,
    N2_COLUMNS_OPTION,
    N2_SAMPLE_OPTIONS,
    N2_FIT_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_REPORT_OPTION,
    {0},
};

static void write_fit(const n2_session *s, const n2_headline *h, const char *path, n2_writer *w) {
    if (path) n2_text_add(&w->text, "%s: ln p_num/p_den in nats\n", path);
    n2_interval_say(&w->text, s->options, "KL(num || den)", h->v);
    n2_headline_say(s, h, &w->text);
    n2_headline_begin(s, h, "kl", w);
    n2_headline_end(s, h, "the model", w);
}

static n2ce_status write_page(const n2_session *s, const n2_headline *h, n2ce_answer *answer) {
    char title[200], text[2][N2_REPORT_TEXT];
    snprintf(title, sizeof title, "Log ratio of %.80s to %.80s", n2_report_sample(s, 1),
             n2_report_sample(s, 0));
    const n2_page_number number =
        n2_report_number(s->options, "KL(num || den)", h->v, text[0], text[1]);
    const n2_report_front front = {.verb = "fit",
                                   .title = title,
                                   .numbers = &number,
                                   .n_numbers = 1,
                                   .judgement = &h->verdict};
    return n2_report_page(s, &front, answer);
}

static n2ce_status fit_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    const char *path = data ? NULL : n2ce_options_get(s->options, "output");
    const bool force = n2_options_flag(s->options, "force");
    if (!data) {
        N2_TRY(n2_option_needed(s->ctx, s->options, "fit", "num"));
        N2_TRY(n2_option_needed(s->ctx, s->options, "fit", "den"));
        N2_TRY(n2_option_needed(s->ctx, s->options, "fit", "output"));
        N2_TRY(n2_file_check_output(s->ctx, path, force));
    }
    N2_TRY(n2_session_read_num_den(s, "fit", data));
    N2_TRY(n2_session_fit(s));
    const n2_headline h = n2_headline_of(s);
    n2_writer w = n2_writer_new(s->ctx);
    write_fit(s, &h, path, &w);
    N2_TRY(n2_writer_take(&w, answer));
    N2_TRY(write_page(s, &h, answer));
    N2_TRY(n2_session_model(s, &answer->model));
    return path ? n2ce_model_save(answer->model, path, force) : N2CE_OK;
}

static n2ce_status run_fit(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                           n2ce_answer *answer) {
    return n2_session_run(ctx, o, data, answer, fit_session);
}

const n2ce_task n2_fit_task = {
    .name = "fit",
    .summary = "learn the log ratio of two samples, as a model file",
    .description =
        "Learns ln p_num(x)/p_den(x) from a file of samples of each. The model is a safetensors\n"
        "file with its scaling and options inside; n2ce score applies it to new rows.\n",
    .examples = "n2ce fit --num new.csv --den old.csv -o model.safetensors\n"
                "n2ce score model.safetensors rows.csv\n",
    .page = "fit.html",
    .data = "fit.json",
    .options = fit_options,
    .run_on = run_fit,
    .matrices = 2,
};
