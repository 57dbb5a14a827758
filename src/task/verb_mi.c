/* mi: mutual information of two groups of columns. */
#include "ratio_report.h"

#include <math.h>
#include <stdio.h>

static const n2ce_option mi_options[] = {
    {"file", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "rows that hold x and y: CSV or NPY, - for standard input, or 'part-*.csv' for several files"},
    {"x", 'x', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns of x, by name, number or range: 0-9,12"},
    {"y", 'y', N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS", "columns of y"},
    {"bmi", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print one number only; x is the first DIM_X columns, y the next DIM_Y"},
    {"dim-x", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "DIM_X", "with --bmi: columns of x"},
    {"dim-y", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "DIM_Y", "with --bmi: columns of y"},
    N2_SAMPLE_OPTIONS,
    N2_INTERVAL_OPTIONS,
    N2_FIT_OPTIONS,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* x and y as texts of columns. */
static n2ce_status choose_columns(n2ce_ctx *ctx, const n2ce_options *o, char x[48], char y[48],
                                  const char **x_text, const char **y_text) {
    *x_text = n2ce_options_get(o, "x");
    *y_text = n2ce_options_get(o, "y");
    if (n2_options_flag(o, "bmi")) {
        const double dx = n2ce_options_number(o, "dim-x"), dy = n2ce_options_number(o, "dim-y");
        if (isnan(dx) || isnan(dy))
            return n2_fail(ctx, N2CE_EINVAL,
                           "--bmi needs three words: n2ce mi --bmi FILE DIM_X DIM_Y");
        snprintf(x, 48, "0-%.0f", dx - 1);
        snprintf(y, 48, "%.0f-%.0f", dx, dx + dy - 1);
        *x_text = x;
        *y_text = y;
    }
    if (!**x_text || !**y_text)
        return n2_fail(ctx, N2CE_EINVAL, "mi needs --x COLS and --y COLS. Try: n2ce help mi");
    return N2CE_OK;
}

static void write_mi(const n2_session *s, const n2_headline *h, n2_writer *w) {
    n2_headline_begin(s, h, "mi", w);
    n2_headline_end(s, h, "nothing", w);
    if (n2_options_flag(s->options, "bmi")) {
        n2_text_add_raw(&w->text, w->brief.data, w->brief.length);
        return;
    }
    n2_interval_say(&w->text, s->options, "mutual information", h->v);
    n2_headline_say(s, h, &w->text);
}

/* "temp, pressure and 3 more" */
static void name_columns(const n2_session *s, size_t first, size_t end, char *out, size_t size) {
    enum { NAMED = 3 };
    const size_t shown = end - first > NAMED ? NAMED - 1 : end - first;
    size_t at = 0;
    for (size_t c = first; c < first + shown; c++)
        at += (size_t)snprintf(out + at, size - at, "%s%.24s", c > first ? ", " : "",
                               s->num->names[c]);
    if (shown < end - first) snprintf(out + at, size - at, " and %zu more", end - first - shown);
}

static n2ce_status write_page(const n2_session *s, const n2_headline *h, n2ce_answer *answer) {
    char title[300], text[2][N2_REPORT_TEXT], x[120], y[120];
    name_columns(s, 0, s->x_cols, x, sizeof x);
    name_columns(s, s->x_cols, s->num->cols, y, sizeof y);
    snprintf(title, sizeof title, "Mutual information of x (%s) and y (%s)", x, y);
    const n2_page_number number =
        n2_report_number(s->options, "mutual information", h->v, text[0], text[1]);
    const n2_report_front front = {
        .verb = "mi", .title = title, .numbers = &number, .n_numbers = 1, .judgement = &h->verdict};
    return n2_report_page(s, &front, answer);
}

static n2ce_status mi_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    char x[48], y[48];
    const char *x_text = NULL, *y_text = NULL;
    n2_samples joint = {NULL, data, "(x, y)"};
    if (!data) {
        joint.path = n2ce_options_get(s->options, "file");
        N2_TRY(n2_option_needed(s->ctx, s->options, "mi", "file"));
        N2_TRY(choose_columns(s->ctx, s->options, x, y, &x_text, &y_text));
    }
    N2_TRY(n2_session_read_joint(s, &joint, x_text, y_text));
    N2_TRY(n2_session_fit(s));
    const n2_headline h = n2_headline_of(s);
    n2_writer w = n2_writer_new(s->ctx);
    write_mi(s, &h, &w);
    N2_TRY(n2_writer_take(&w, answer));
    N2_TRY(write_page(s, &h, answer));
    return n2_session_model(s, &answer->model);
}

static n2ce_status run_mi(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                          n2ce_answer *answer) {
    return n2_session_run(ctx, o, data, answer, mi_session);
}

const n2ce_task n2_mi_task = {
    .name = "mi",
    .summary = "mutual information of two groups of columns, with an interval",
    .description =
        "Contrasts rows (x, y) with pairs of x and y from different rows. --bmi follows the\n"
        "contract of the bmi benchmark's external estimators: three words in, one number out.\n",
    .examples = "n2ce mi --x temp,pressure --y yield runs.csv\n"
                "n2ce mi --x 0-9 --y 10-19 data.npy --quiet\n"
                "n2ce mi --bmi samples.csv 3 2\n",
    .page = "mi.html",
    .data = "mi.json",
    .options = mi_options,
    .operands = "file dim-x dim-y",
    .run_on = run_mi,
    .matrices = 2,
};
