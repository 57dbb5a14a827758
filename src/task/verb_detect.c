/* detect: which rows are not like the others? */
#include "detect/detector_file.h"
#include "detect_pictures.h"
#include "detect_session.h"
#include "detect_write.h"
#include "ratio_session.h"
#include "vocabulary.h"

#include <string.h>

/* clang-format off */
static const n2ce_option detect_options[] = {
    {"rows", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "ROWS", "rows to judge: CSV or NPY"},
    {"normal", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "rows that are known to be normal; without them, or --model, the rows are judged by one another"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the rows here, as CSV, with three more columns: score, p_value, flag"},
    N2_FORCE_OPTION,
    {"fdr", 0, N2CE_OPTION_REAL, "0.05", 0, 1, NULL, "Q",
     "flag rows so that of those flagged at most this share is normal, in the mean"},
    {"save", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write what was learnt here, for --model"},
    {"model", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "MODEL",
     "a model that --save wrote, instead of --normal"},
    N2_COLUMNS_OPTION,
    N2_HEADER_OPTION,
    {"categorical", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",
     "columns whose values are names of levels, besides those that hold no number"},
    {"max-rows", 0, N2CE_OPTION_COUNT, "auto", 10, 1e6, NULL, "N",
     "use a random subset of so many normal rows; auto: 10000"},
    {"parts", 0, N2CE_OPTION_WORDS, "near,margins,ratio", 0, 0, "near|margins|ratio", "LIST",
     "what a score is made of: distances to neighbours, the same with normal margins, the learned log ratio"},
    {"worst", 0, N2CE_OPTION_COUNT, "10", 0, N2_WORST_ROWS, NULL, "N",
     "how many of the oddest rows to show, with the columns that make them odd"},
    N2_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    N2_REPORT_OPTION,
    {0},
};
/* clang-format on */

/* The rows are judged by one another. */
static bool is_own(const n2_detect_session *s) {
    return s->rows && !n2ce_options_get(s->options, "normal") &&
           !n2ce_options_get(s->options, "model");
}

/* A model knows its columns and parts: what says how to learn would have no say. */
static n2ce_status check_model(const n2_detect_session *s) {
    static const char *const learning[] = {"columns", "categorical", "parts", "max-rows", "seed"};
    if (!n2ce_options_get(s->options, "model")) return N2CE_OK;
    for (size_t i = 0; i < sizeof learning / sizeof learning[0]; i++)
        if (n2_options_given(s->options, learning[i]))
            return n2_fail(s->ctx, N2CE_EINVAL,
                           "--%s says how to learn, and a model has learnt: leave it out, or give "
                           "--normal instead of --model.",
                           learning[i]);
    return N2CE_OK;
}

/* Before anything is learnt: what is asked for makes sense, and can be written. */
static n2ce_status check(n2_detect_session *s) {
    const char *output = n2ce_options_get(s->options, "output");
    const char *save = n2ce_options_get(s->options, "save");
    const bool force = n2_options_flag(s->options, "force");
    if (!s->rows && !(save && n2ce_options_get(s->options, "normal")))
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "detect needs rows to judge, or --normal FILE and --save FILE. Try: n2ce "
                       "help detect");
    if (!s->rows && output)
        return n2_fail(s->ctx, N2CE_EINVAL, "--output needs rows to judge. Name their file.");
    if (s->rows && strcmp(s->rows, "-") == 0)
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "The rows to judge are read twice, so they cannot come from standard input. "
                       "Put them into a file.");
    N2_TRY(check_model(s));
    if (output) N2_TRY(n2_file_check_output(s->ctx, output, force));
    if (output || is_own(s)) N2_TRY(n2_detect_check_rows(s));
    return save ? n2_file_check_output(s->ctx, save, force) : N2CE_OK;
}

static n2ce_status run(n2_detect_session *s, n2ce_answer *answer) {
    const char *save = n2ce_options_get(s->options, "save");
    s->rows = n2ce_options_get(s->options, "rows");
    N2_TRY(check(s));
    if (n2ce_options_get(s->options, "model"))
        N2_TRY(n2_choice_of_options(s->ctx, s->options, &s->choice)); /* nothing is trained first */
    else
        N2_TRY(n2_choice_of_options_beside(s->ctx, s->options, &s->choice, &s->opening));
    N2_TRY(n2_detect_learn(s));
    if (save) N2_TRY(n2_detector_save(s->detector, save, n2_options_flag(s->options, "force")));
    if (s->rows) N2_TRY(n2_detect_judge(s));
    N2_TRY(n2_detect_say(s, answer));
    return s->rows ? n2_detect_page(s, answer) : N2CE_OK;
}

static n2ce_status run_detect(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_detect_session s = {.ctx = ctx, .options = o};
    if (n2_detects_pictures(ctx, o)) return n2_detect_pictures(ctx, o, answer);
    const n2ce_status status = run(&s, answer);
    n2_detect_close(&s);
    return status;
}

const n2ce_task n2_detect_task = {
    .name = "detect",
    .summary = "which rows are not like the others?",
    .description =
        "Learns from normal rows what is normal, and gives every other row a score (larger is\n"
        "odder), a p-value that is right for any sample size, and a flag, so that of the flagged\n"
        "rows at most a share of --fdr is normal. Columns may hold numbers, names and missing\n"
        "values. Without --normal the rows are judged by one another.\n"
        "\n"
        "Rows may be pictures, too: folders of PNGs, IDX, CIFAR-10, or NPY of bytes. A picture\n"
        "has parts of its score instead of columns that make it odd. On processors this takes\n"
        "minutes; --device cuda trains wider networks.\n",
    .examples = "n2ce detect --normal good.csv new.csv -o flagged.csv\n"
                "n2ce detect --normal good.csv --save model.n2ce\n"
                "n2ce detect --model model.n2ce new.csv -o flagged.csv --fdr 0.01\n"
                "n2ce detect all.csv --report report\n"
                "n2ce detect --normal good/ new/ -o flagged.csv --report report\n",
    .page = "detect.html",
    .data = "detect.json",
    .options = detect_options,
    .operands = "rows",
    .run = run_detect,
};
