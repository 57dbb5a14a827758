/* "study draw": samples of a problem whose answer is known, as files to try things on. */
#include "base/numerics.h"
#include "io/csv_writer.h"
#include "io/file.h"
#include "ratio/ratio_problems.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <stdlib.h>
#include <string.h>

static const n2ce_option options[] = {
    {"problem", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "PROBLEM",
     "name of the problem; without one, all are listed"},
    {"n", 0, N2CE_OPTION_COUNT, "auto", 1, 1e8, NULL, "N",
     "samples a side; auto: the problem's own number"},
    N2_SEED_OPTION,
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "write the rows (x, y) of a mutual information problem here, as CSV with columns X0, X1, .., "
     "Y0, .."},
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of the numerator of a divergence problem are written here, as CSV"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of its denominator"},
    N2_FORCE_OPTION,
    {0},
};

static void list(n2_text *text, n2_text *json) {
    n2_text_add(json, "{\"problems\": [");
    for (size_t i = 0; i < n2_problem_count(); i++) {
        const n2_problem *p = n2_problem_at(i);
        n2_text_add(text, "%-20s %-34s %s %10.4f nats\n", p->group, p->name,
                    p->kind == N2_PROBLEM_MI ? "MI" : "KL", n2_problem_truth(p));
        n2_text_add(json, "%s{\"group\": \"%s\", \"name\": \"%s\", \"truth\": ", i ? ", " : "",
                    p->group, p->name);
        n2_text_add_number(json, n2_problem_truth(p));
        n2_text_add(json, "}");
    }
    n2_text_add(json, "]}\n");
}

/* Rows as CSV: X0.. and Y0.. */
static n2ce_status write_csv(n2ce_ctx *ctx, const n2_problem *p, const double *x, size_t n,
                             const char *path, bool force) {
    const size_t d = p->dim_x + p->dim_y;
    n2_text header = n2_text_new(ctx);
    for (size_t j = 0; j < d; j++)
        n2_text_add(&header, "%s%c%zu", j ? "," : "", j < p->dim_x ? 'X' : 'Y',
                    j < p->dim_x ? j : j - p->dim_x);
    n2_text_add(&header, "\n");
    const n2ce_status status =
        header.failed ? N2CE_ENOMEM : n2_csv_write(ctx, path, header.data, x, n, d, force);
    n2_text_free(&header);
    return status;
}

static n2ce_status no_such_problem(n2ce_ctx *ctx, const char *name) {
    const char *names[128];
    size_t n = 0;
    for (; n < n2_problem_count() && n < 128; n++) names[n] = n2_problem_at(n)->name;
    const char *near = n2ce_nearest_word(name, names, n);
    return n2_fail(ctx, N2CE_EINVAL,
                   near ? "There is no problem \"%.60s\"; did you mean %s?"
                        : "There is no problem \"%.60s\". n2ce study draw%s lists them.",
                   name, near ? near : "");
}

/* Which of the paths a problem needs. */
static n2ce_status find_paths(n2ce_ctx *ctx, const n2ce_options *o, const n2_problem *p,
                              const char *path[2]) {
    const bool joint = p->kind == N2_PROBLEM_MI;
    path[0] = n2ce_options_get(o, joint ? "output" : "num");
    path[1] = joint ? NULL : n2ce_options_get(o, "den");
    if (path[0] && (joint || path[1])) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   joint ? "%s is a mutual information problem: it needs -o FILE."
                         : "%s is a divergence problem: it needs --num FILE --den FILE.",
                   p->name);
}

static n2ce_status draw(n2ce_ctx *ctx, const n2ce_options *o, const n2_problem *p, n2_text *text,
                        n2_text *json) {
    const double asked = n2ce_options_number(o, "n");
    const size_t n = isnan(asked) ? p->n : (size_t)asked, d = p->dim_x + p->dim_y;
    const bool force = n2_options_flag(o, "force");
    const char *path[2];
    N2_TRY(find_paths(ctx, o, p, path));
    if (path[1] && n2_file_is_same(path[0], path[1]))
        return n2_fail(ctx, N2CE_EINVAL, "--num and --den would write the same file, %s.", path[0]);
    for (size_t i = 0; i < 2 && path[i]; i++) N2_TRY(n2_file_check_output(ctx, path[i], force));
    double *a = n2_alloc(ctx, 2 * n * d, sizeof *a);
    if (!a) return N2CE_ENOMEM;
    n2ce_status status =
        n2_problem_draw(ctx, p, n, n2_options_count(o, "seed"), a, path[1] ? a + n * d : NULL);
    if (status == N2CE_OK) status = write_csv(ctx, p, a, n, path[0], force);
    if (status == N2CE_OK && path[1]) status = write_csv(ctx, p, a + n * d, n, path[1], force);
    n2_free(ctx, a);
    n2_text_add(text, "%s%s%s: %zu rows, %zu columns; the true %s is %.4f nats\n", path[0],
                path[1] ? " and " : "", path[1] ? path[1] : "", n, d,
                path[1] ? "KL(num || den)" : "mutual information", n2_problem_truth(p));
    n2_text_add(json, "{\"rows\": %zu, \"columns\": %zu, \"truth\": ", n, d);
    n2_text_add_number(json, n2_problem_truth(p));
    n2_text_add(json, "}\n");
    return status;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const char *name = n2ce_options_get(o, "problem");
    const n2_problem *p = *name ? n2_problem_find(name) : NULL;
    if (*name && !p) return no_such_problem(ctx, name);
    n2_writer w = n2_writer_new(ctx);
    n2ce_status status = N2CE_OK;
    if (p)
        status = draw(ctx, o, p, &w.text, &w.json);
    else
        list(&w.text, &w.json);
    n2_text_add_number(&w.brief, p ? n2_problem_truth(p) : (double)n2_problem_count());
    n2_text_add(&w.brief, "\n");
    n2_text_add(&w.kept, "nothing\n");
    if (status == N2CE_OK) return n2_writer_take(&w, answer);
    n2_writer_free(&w);
    return status;
}

const n2ce_task n2_draw_task = {
    .name = "study draw",
    .summary = "samples of a problem whose answer is known, as CSV",
    .description =
        "Writes samples of one of the problems of n2ce study ratio, to try the ratio verbs, or\n"
        "other programs, on data whose divergence or mutual information is known.\n",
    .examples = "n2ce study draw\n"
                "n2ce study draw student-3-nu-2 -o runs.csv\n"
                "n2ce study draw shifted-2d --num a.csv --den b.csv --n 1000\n",
    .options = options,
    .operands = "problem",
    .run = run,
};
