/* Every task of the library: options in, answer out, report on the side. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The processes that share the work; the program is one of them. */
static struct {
    n2ce_world *world;
    bool left;
} ranks;

static bool is_first(void) { return !ranks.world || n2ce_world_rank(ranks.world) == 0; }

/* Whether it is for this rank to say how the task ended; the code becomes that of all. */
static bool leave_ranks(int *code) {
    if (!ranks.world || ranks.left) return is_first();
    ranks.left = true;
    return n2ce_world_leave(ranks.world, code);
}

static int fail(const n2ce_ctx *ctx, n2ce_status status) {
    int code = exit_code(status);
    if (!leave_ranks(&code)) return code;
    if (is_first())
        complain("%s", n2ce_errmsg(ctx));
    else
        complain("rank %d: %s", n2ce_world_rank(ranks.world), n2ce_errmsg(ctx));
    return code;
}

static void log_to_stderr(void *user, n2ce_log_level level, const char *text) {
    (void)user;
    complain("%s%s", level == N2CE_LOG_WARNING ? "warning: " : "", text);
}

/* Options were read with a first context, because the number of threads is one of
 * them; the work is done in a second one. */
static n2ce_status make_working_ctx(const n2ce_options *common, const n2ce_task *task,
                                    n2ce_ctx **out) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = (int)n2ce_options_number(common, "threads");
    if (options.threads == 0) options.threads = n2ce_world_threads(ranks.world);
    const bool talks = !switched_on(common, "quiet") && is_first();
    if (talks) options.log = log_to_stderr;
    if (talks && stderr_is_terminal()) {
        options.progress = show_progress;
        options.progress_user = (void *)(uintptr_t)n2ce_task_name(task);
    }
    const n2ce_status status = n2ce_ctx_new(out, &options);
    return status == N2CE_OK ? n2ce_ctx_join(*out, ranks.world) : status;
}

static int print_answer(const n2ce_answer *answer, const n2ce_options *common) {
    if (!is_first()) return EXIT_OK;
    if (switched_on(common, "json"))
        fputs(n2ce_answer_json(answer), stdout);
    else if (switched_on(common, "quiet"))
        fputs(n2ce_answer_brief(answer), stdout);
    else if (isatty(STDOUT_FILENO))
        put_harmless(n2ce_answer_text(answer), stdout);
    else
        fputs(n2ce_answer_text(answer), stdout);
    return finish_output(EXIT_OK);
}

/* A task writes its report itself; here is said where it is. */
static void say_report(const n2ce_task *task, const n2ce_answer *answer, const arguments *args) {
    const char *folder = n2ce_options_get(args->own, "report");
    const bool prose = !switched_on(args->common, "json") && !switched_on(args->common, "quiet");
    if (is_first() && folder && n2ce_answer_page(answer) && prose)
        printf("\nreport: %s/%s\n", folder, n2ce_report_page(task));
}

/* What scripts are told of an answer's first number: with --strict that it is not trusted, with
 * --quiet, which prints no verdict, which verdict it is; what was written to --output is there
 * either way. */
static int verdict_code(const n2ce_answer *answer, const arguments *args) {
    const n2ce_estimate *e = n2ce_answer_estimate(answer, "estimate");
    if (!e || e->trusted) return EXIT_OK;
    const char *strict = n2ce_options_get(args->own, "strict");
    if (strict && strcmp(strict, "true") == 0) return EXIT_FAILED;
    const bool written = n2ce_options_get(args->own, "output") != NULL;
    if (written || !switched_on(args->common, "quiet")) return EXIT_OK;
    return strcmp(e->verdict, "failed") == 0 ? EXIT_NOTHING : EXIT_DOUBTFUL;
}

/* What was computed is printed also if its report could not be written. */
static int finish(n2ce_ctx *ctx, const n2ce_task *task, const n2ce_answer *answer,
                  n2ce_status status, const arguments *args) {
    const int printed = print_answer(answer, args->common);
    if (status != N2CE_OK && status != N2CE_ECANCELED) return fail(ctx, status);
    say_report(task, answer, args);
    if (printed != EXIT_OK || status != N2CE_OK) return printed ? printed : exit_code(status);
    return verdict_code(answer, args);
}

static int run_task(n2ce_ctx *ctx, const n2ce_task *task, const arguments *args) {
    n2ce_answer *answer;
    cancel_on_interrupt(ctx);
    const n2ce_status status = n2ce_task_run(ctx, task, args->own, &answer);
    clear_progress();
    if (status == N2CE_ECANCELED && !answer) {
        int code = EXIT_INTERRUPTED;
        if (leave_ranks(&code))
            complain("interrupted before anything was finished; nothing was written.");
        return code;
    }
    if (!answer) return fail(ctx, status);
    if (status == N2CE_ECANCELED && is_first())
        complain("interrupted; kept what was finished: %.*s.",
                 (int)strcspn(n2ce_answer_kept(answer), "\n"), n2ce_answer_kept(answer));
    const int code = finish(ctx, task, answer, status, args);
    n2ce_answer_free(answer);
    return code;
}

/* In a context of its own, which knows the other ranks. */
static int work(const n2ce_task *task, const arguments *args) {
    n2ce_ctx *ctx;
    const n2ce_status status = make_working_ctx(args->common, task, &ctx);
    if (status != N2CE_OK) {
        complain("%s.", n2ce_status_text(status));
        return exit_code(status);
    }
    const int code = run_task(ctx, task, args);
    cancel_on_interrupt(NULL);
    n2ce_ctx_free(ctx);
    return code;
}

/* The rank's own GPU, of those that there are for this process, is all that it will see. */
static n2ce_status take_gpu(const arguments *args) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const int rank = n2ce_world_rank(ranks.world);
    char gpu[64];
    snprintf(gpu, sizeof gpu, "%d", rank);
    for (int k = 0; visible && *visible && k <= rank; k++) {
        const size_t n = strcspn(visible, ",");
        snprintf(gpu, sizeof gpu, "%.*s", (int)n, visible);
        visible += n + (visible[n] == ',');
        if (!*visible && k < rank) snprintf(gpu, sizeof gpu, "-1"); /* there are fewer */
    }
    if (setenv("CUDA_VISIBLE_DEVICES", gpu, 1) != 0) return N2CE_ENOMEM;
    const char *device = n2ce_options_get(args->own, "device");
    return device && strcmp(device, "auto") == 0 ? n2ce_options_set(args->own, "device", "cuda")
                                                 : N2CE_OK;
}

static int with_arguments(n2ce_ctx *ctx, const n2ce_task *task, const arguments *args) {
    if (switched_on(args->common, "help")) {
        char *name = (char *)(uintptr_t)n2ce_task_name(task);
        return cmd_help(1, &name);
    }
    const int gpus = (int)n2ce_options_number(args->common, "gpus");
    const int wanted = gpus > 0 ? gpus : (int)n2ce_options_number(args->common, "ranks");
    if (switched_on(args->common, "reproducible")) setenv("N2CE_REPRODUCIBLE", "1", 1);
    all_may_complain = true;
    n2ce_status status = n2ce_world_join(ctx, wanted, &ranks.world);
    if (status == N2CE_OK && gpus > 0) status = take_gpu(args);
    if (status != N2CE_OK) return fail(ctx, status);
    int code = work(task, args);
    fflush(stdout);
    leave_ranks(&code);
    n2ce_world_free(ranks.world, code);
    ranks.world = NULL;
    return code;
}

int cmd_task(const n2ce_task *task, int argc, char **argv) {
    n2ce_ctx *ctx;
    const n2ce_status status = n2ce_ctx_new(&ctx, NULL);
    if (status != N2CE_OK) {
        complain("%s.", n2ce_status_text(status));
        return exit_code(status);
    }
    arguments args = {NULL, NULL};
    int code = read_arguments(ctx, argc, argv, task, &args);
    if (code == EXIT_OK) code = with_arguments(ctx, task, &args);
    n2ce_options_free(args.own);
    n2ce_options_free(args.common);
    n2ce_ctx_free(ctx);
    return code;
}
