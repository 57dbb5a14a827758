#include "task.h"

#include "base/numerics.h"
#include "io/file.h"
#include "io/own_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *n2ce_task_name(const n2ce_task *task) { return task ? task->name : NULL; }
const char *n2ce_task_summary(const n2ce_task *task) { return task ? task->summary : NULL; }
const char *n2ce_task_description(const n2ce_task *task) { return task ? task->description : NULL; }
const char *n2ce_task_examples(const n2ce_task *task) { return task ? task->examples : NULL; }
const n2ce_option *n2ce_task_options(const n2ce_task *task) { return task ? task->options : NULL; }
const char *n2ce_task_operands(const n2ce_task *task) {
    if (!task) return NULL;
    return task->operands ? task->operands : "";
}

/* The folder that a report goes to; NULL: none is asked for. */
static const char *report_folder(const n2ce_options *options, bool *overwrite) {
    const char *folder = n2ce_options_get(options, "report");
    *overwrite = folder && n2_options_flag(options, "force");
    return folder;
}

typedef struct report_paths {
    char page[PATH_MAX], data[PATH_MAX];
} report_paths;

static n2ce_status find_paths(n2ce_ctx *ctx, const n2ce_task *task, const char *folder,
                              report_paths *paths) {
    N2_TRY(n2_path_join(ctx, paths->page, sizeof paths->page, folder, task->page));
    return n2_path_join(ctx, paths->data, sizeof paths->data, folder, task->data);
}

static n2ce_status find_part(n2ce_ctx *ctx, const n2ce_task *task, const char *folder,
                             char path[PATH_MAX]) {
    char name[NAME_MAX];
    snprintf(name, sizeof name, "%s" N2_PART, task->data);
    return n2_path_join(ctx, path, PATH_MAX, folder, name);
}

/* What a task that was killed had finished is not replaced unasked. */
static n2ce_status check_part(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                              const char *folder, bool overwrite) {
    char path[PATH_MAX];
    N2_TRY(find_part(ctx, task, folder, path));
    if (access(path, F_OK) != 0) return N2CE_OK;
    if (overwrite || n2ce_options_get(options, "reuse")) return n2_own_file_claim(ctx, path);
    return n2_fail(ctx, N2CE_EEXIST,
                   "%s has runs of a study that was killed. --reuse %s takes them over, --force "
                   "begins anew.",
                   path, folder);
}

static n2ce_status check_report(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                                const char *folder, bool overwrite) {
    N2_TRY(n2ce_report_check(ctx, task, folder, overwrite));
    return check_part(ctx, task, options, folder, overwrite);
}

/* The report, in whose place nothing has to be kept any more. */
static n2ce_status write_report(n2ce_ctx *ctx, const n2ce_answer *answer, const char *folder,
                                bool overwrite) {
    char part[PATH_MAX];
    N2_TRY(n2ce_report_write(ctx, answer, folder, overwrite));
    N2_TRY(find_part(ctx, answer->task, folder, part));
    n2_own_file_remove(ctx, part);
    return N2CE_OK;
}

/* The files that a command writes are different ones. */
static n2ce_status check_apart(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                               const char *folder) {
    static const char *const names[] = {"output", "save", "checkpoint", "sheet"};
    enum { NAMES = sizeof names / sizeof names[0] };
    report_paths report = {"", ""};
    const char *path[NAMES + 2] = {[NAMES] = report.page, [NAMES + 1] = report.data};
    if (folder && task->page) N2_TRY(find_paths(ctx, task, folder, &report));
    for (size_t i = 0; i < NAMES; i++) path[i] = n2ce_options_get(options, names[i]);
    for (size_t i = 0; i < NAMES; i++)
        for (size_t k = i + 1; k < NAMES + 2; k++)
            if (path[i] && path[k] && *path[k] && n2_file_is_same(path[i], path[k]))
                return n2_fail(ctx, N2CE_EINVAL, "--%s and --%s would write the same file, %s.",
                               names[i], k < NAMES ? names[k] : "report", path[i]);
    return N2CE_OK;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                       const n2ce_matrix *data, n2ce_answer **out) {
    bool overwrite;
    *out = NULL;
    N2_TRY(n2_options_check_table(ctx, options, task->options));
    const char *folder = report_folder(options, &overwrite);
    N2_TRY(check_apart(ctx, task, options, folder));
    if (folder) N2_TRY(check_report(ctx, task, options, folder, overwrite));
    n2ce_answer *answer = n2_alloc(ctx, 1, sizeof *answer);
    if (!answer) return N2CE_ENOMEM;
    answer->ctx = ctx;
    answer->task = task;
    answer->arena = n2_arena_new(ctx);
    const n2_c_locale scope = n2_c_locale_enter();
    n2ce_status status =
        task->run_on ? task->run_on(ctx, options, data, answer) : task->run(ctx, options, answer);
    if (status == N2CE_OK && answer->incomplete) status = N2CE_ENOMEM;
    n2_c_locale_leave(scope);
    n2_cancel_reset(ctx); /* the request was served */
    const bool usable = status == N2CE_OK || (status == N2CE_ECANCELED && answer->text);
    if (usable)
        *out = answer;
    else
        n2ce_answer_free(answer);
    if (!usable || !folder) return status;
    const n2ce_status written = write_report(ctx, *out, folder, overwrite);
    return written == N2CE_OK ? status : written;
}

n2ce_status n2ce_task_run(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                          n2ce_answer **out) {
    if (!ctx || !task || !options || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    return run(ctx, task, options, NULL, out);
}

n2ce_status n2ce_task_run_on(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_options *options,
                             const n2ce_matrix *data, size_t n_data, n2ce_answer **out) {
    if (!ctx || !task || !options || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    *out = NULL;
    if (!task->run_on || n_data != task->matrices)
        return n2_fail(ctx, N2CE_EINVAL, "%s takes %zu matrices, not %zu.", task->name,
                       task->matrices, n_data);
    N2_TRY(n2_options_check_table(ctx, options, task->options));
    if (n2ce_option_find(task->options, "output") && n2_options_given(options, "output"))
        return n2_fail(
            ctx, N2CE_EINVAL,
            "--output is for %s on files; on matrices the result is in the answer. Leave "
            "it out.",
            task->name);
    return run(ctx, task, options, data, out);
}

n2_writer n2_writer_new(n2ce_ctx *ctx) {
    return (n2_writer){n2_text_new(ctx), n2_text_new(ctx), n2_text_new(ctx), n2_text_new(ctx)};
}

void n2_writer_free(n2_writer *w) {
    n2_text_free(&w->text);
    n2_text_free(&w->json);
    n2_text_free(&w->brief);
    n2_text_free(&w->kept);
}

n2ce_status n2_writer_take(n2_writer *w, n2ce_answer *answer) {
    n2ce_status status = n2_text_take(&w->text, &answer->text);
    if (status == N2CE_OK) status = n2_text_take(&w->json, &answer->json);
    if (status == N2CE_OK) status = n2_text_take(&w->brief, &answer->brief);
    if (status == N2CE_OK) status = n2_text_take(&w->kept, &answer->kept);
    n2_writer_free(w);
    return status;
}

n2ce_model *n2ce_answer_take_model(n2ce_answer *answer) {
    if (!answer) return NULL;
    n2ce_model *model = answer->model;
    answer->model = NULL;
    return model;
}

void n2ce_answer_free(n2ce_answer *answer) {
    if (!answer) return;
    n2ce_ctx *ctx = answer->ctx;
    char *const texts[] = {answer->text, answer->json, answer->brief, answer->kept, answer->html};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) n2_free(ctx, texts[i]);
    n2ce_model_free(answer->model);
    n2_arena_free(&answer->arena);
    n2_free(ctx, answer);
}

const char *n2ce_answer_text(const n2ce_answer *answer) { return answer ? answer->text : NULL; }
const char *n2ce_answer_json(const n2ce_answer *answer) { return answer ? answer->json : NULL; }
const char *n2ce_answer_page(const n2ce_answer *answer) { return answer ? answer->html : NULL; }
const char *n2ce_answer_brief(const n2ce_answer *answer) { return answer ? answer->brief : NULL; }
const char *n2ce_answer_kept(const n2ce_answer *answer) { return answer ? answer->kept : NULL; }

/* ---- the report's files -------------------------------------------------- */

const char *n2ce_report_page(const n2ce_task *task) { return task ? task->page : NULL; }

n2ce_status n2ce_report_check(n2ce_ctx *ctx, const n2ce_task *task, const char *folder,
                              bool overwrite) {
    if (!ctx || !task || !folder) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    report_paths paths;
    if (!task->page)
        return n2_fail(ctx, N2CE_EINVAL, "%s has no report; leave --report out.", task->name);
    N2_TRY(find_paths(ctx, task, folder, &paths));
    N2_TRY(n2_folder_check_writable(ctx, folder));
    if (overwrite) return N2CE_OK;
    N2_TRY(n2_file_check_absent(ctx, paths.page));
    return n2_file_check_absent(ctx, paths.data);
}

/* Page and data, or neither. */
static n2ce_status write_both(n2ce_ctx *ctx, const report_paths *paths, const n2ce_answer *answer,
                              bool overwrite) {
    n2_new_file both[2];
    N2_TRY(n2_new_file_begin(ctx, paths->data, &both[0]));
    const n2ce_status status = n2_new_file_begin(ctx, paths->page, &both[1]);
    if (status != N2CE_OK) return n2_new_file_end(&both[0], status);
    both[0].keep = both[1].keep = !overwrite;
    n2_new_file_add(&both[0], answer->json, strlen(answer->json));
    n2_new_file_add(&both[1], answer->html, strlen(answer->html));
    return n2_new_files_end(both, 2, N2CE_OK);
}

n2ce_status n2ce_report_write(n2ce_ctx *ctx, const n2ce_answer *answer, const char *folder,
                              bool overwrite) {
    if (!ctx || !answer || !folder) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    report_paths paths;
    if (!answer->html) return N2CE_OK;
    N2_TRY(n2ce_report_check(ctx, answer->task, folder, overwrite));
    N2_TRY(find_paths(ctx, answer->task, folder, &paths));
    N2_TRY(n2_folder_make(ctx, folder));
    return write_both(ctx, &paths, answer, overwrite);
}

n2ce_status n2_task_in_arena(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer,
                             n2_task_body *body) {
    n2_arena arena = n2_arena_new(ctx);
    const n2ce_status status = body(ctx, options, &arena, answer);
    n2_arena_free(&arena);
    return status;
}

n2ce_status n2_form_write(n2ce_ctx *ctx, const void *about, n2_form *form, char **to) {
    n2_text out = n2_text_new(ctx);
    n2_arena arena = n2_arena_new(ctx);
    n2ce_status status = form(&out, about, &arena);
    if (status == N2CE_OK) status = n2_text_take(&out, to);
    n2_text_free(&out);
    n2_arena_free(&arena);
    return status;
}
