/* Facts about the context: statuses, arguments, messages, hooks, cancellation. */
#include "close.h"
#include "failing_alloc.h"

#include "base/ctx.h"

#include <stdio.h>
#include <string.h>

/* Every status has its name and its text; the values never change. */
static void statuses_have_names_and_texts(void **state) {
    (void)state;
    static const struct {
        n2ce_status status;
        int value;
        const char *name, *text;
    } rows[] = {
#define ROW(name, value, text) {N2CE_##name, value, "N2CE_" #name, text},
        N2CE_STATUS_LIST(ROW)
#undef ROW
    };
    assert_int_equal(COUNT_OF(rows), 10);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(rows[i].status, rows[i].value);
        assert_int_equal(rows[i].status, -(int)i); /* stable */
        assert_string_equal(n2ce_status_name(rows[i].status), rows[i].name);
        assert_string_equal(n2ce_status_text(rows[i].status), rows[i].text);
    }
}

/* An unknown status gets a text that says so, never NULL. */
static void an_unknown_status_is_called_unknown(void **state) {
    (void)state;
    static const int values[] = {1, -10, -99, 12345};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const n2ce_status status = (n2ce_status)values[i];
        assert_non_null(n2ce_status_name(status));
        assert_non_null(strstr(n2ce_status_name(status), "unknown"));
        assert_non_null(n2ce_status_text(status));
        assert_non_null(strstr(n2ce_status_text(status), "unknown"));
    }
}

/* The running version is the header's. */
static void the_version_is_that_of_the_header(void **state) {
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", N2CE_VERSION_MAJOR, N2CE_VERSION_MINOR,
             N2CE_VERSION_PATCH);
    assert_string_equal(n2ce_version(), expected);
}

static void assert_not_made(const n2ce_ctx_options *options) {
    n2ce_ctx *ctx = (n2ce_ctx *)1;
    assert_int_equal(n2ce_ctx_new(&ctx, options), N2CE_EINVAL);
    assert_null(ctx);
}

/* Wrong options give N2CE_EINVAL and no context. */
static void wrong_options_make_no_context(void **state) {
    (void)state;
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = -1;
    assert_not_made(&options);
    options.threads = -2147483647;
    assert_not_made(&options);
    options = (n2ce_ctx_options)N2CE_CTX_OPTIONS_INIT;
    options.struct_size = 0;
    assert_not_made(&options);
    options.struct_size = sizeof options - 1;
    assert_not_made(&options);
    options.struct_size = sizeof options + 8;
    assert_not_made(&options);
    assert_int_equal(n2ce_ctx_new(NULL, NULL), N2CE_EINVAL);
}

/* No options at all is fine, and 0 threads means one per core. */
static void the_defaults_make_a_context(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    assert_non_null(ctx);
    assert_true(n2_ctx_threads(ctx) >= 1);
    assert_string_equal(n2ce_errmsg(ctx), "");
    n2ce_ctx_free(ctx);
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 3;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(n2_ctx_threads(ctx), 3);
    n2ce_ctx_free(ctx);
}

/* Without memory there is no context, and nothing is left behind. */
static void no_memory_makes_no_context(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(0, true);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
    n2ce_ctx *ctx = (n2ce_ctx *)1;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_ENOMEM);
    assert_null(ctx);
    assert_int_equal(memory.live, 0);
}

/* Freeing NULL is fine. */
static void freeing_null_is_fine(void **state) {
    (void)state;
    n2ce_ctx_free(NULL);
    n2ce_options_free(NULL);
    n2ce_answer_free(NULL);
}

/* The message is that of the last failure, cut if it is very long; without a context "". */
static void the_message_is_that_of_the_last_failure(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    assert_int_equal(n2_fail(ctx, N2CE_EIO, "first %d", 1), N2CE_EIO);
    assert_string_equal(n2ce_errmsg(ctx), "first 1");
    assert_int_equal(n2_fail(ctx, N2CE_EINVAL, "second %s", "2"), N2CE_EINVAL);
    assert_string_equal(n2ce_errmsg(ctx), "second 2");
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    n2_fail(ctx, N2CE_EINVAL, "%s", long_text);
    assert_true(strlen(n2ce_errmsg(ctx)) > 500 && strlen(n2ce_errmsg(ctx)) < sizeof long_text);
    n2ce_ctx_free(ctx);
    assert_int_equal(n2_fail(NULL, N2CE_ENAN, "nobody listens"), N2CE_ENAN);
    assert_string_equal(n2ce_errmsg(NULL), "");
}

/* A failure of one context leaves the message of another alone. */
static void contexts_have_their_own_messages(void **state) {
    (void)state;
    n2ce_ctx *a = NULL, *b = NULL;
    assert_int_equal(n2ce_ctx_new(&a, NULL), N2CE_OK);
    assert_int_equal(n2ce_ctx_new(&b, NULL), N2CE_OK);
    double loss;
    assert_int_equal(n2ce_loss_f64(a, NULL, NULL, &loss, NULL), N2CE_EINVAL);
    assert_true(strlen(n2ce_errmsg(a)) > 0);
    assert_string_equal(n2ce_errmsg(b), "");
    n2ce_ctx_free(a);
    n2ce_ctx_free(b);
}

/* Cancellation is remembered until it is served, for its context alone. */
static void cancellation_is_remembered(void **state) {
    (void)state;
    n2ce_ctx *a = NULL, *b = NULL;
    assert_int_equal(n2ce_ctx_new(&a, NULL), N2CE_OK);
    assert_int_equal(n2ce_ctx_new(&b, NULL), N2CE_OK);
    assert_false(n2_cancelled(a));
    n2ce_ctx_cancel(a);
    n2ce_ctx_cancel(a);
    assert_true(n2_cancelled(a));
    assert_false(n2_cancelled(b));
    n2_cancel_reset(a);
    assert_false(n2_cancelled(a));
    n2ce_ctx_free(a);
    n2ce_ctx_free(b);
}

typedef struct notes {
    char text[600];
    n2ce_log_level level;
    double done, total;
} notes;

static void note_log(void *user, n2ce_log_level level, const char *text) {
    notes *n = user;
    n->level = level;
    snprintf(n->text, sizeof n->text, "%s", text);
}

static void note_progress(void *user, double done, double total) {
    notes *n = user;
    n->done = done;
    n->total = total;
}

/* Log and progress reach their callbacks with their user pointers. */
static void callbacks_are_called(void **state) {
    (void)state;
    notes n = {.text = ""};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.log = note_log;
    options.progress = note_progress;
    options.log_user = options.progress_user = &n;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    n2_log(ctx, N2CE_LOG_WARNING, "%d threads", 3);
    assert_string_equal(n.text, "3 threads");
    assert_int_equal(n.level, N2CE_LOG_WARNING);
    n2_progress(ctx, 2, 5);
    assert_close(n.done, 2, 0, 0);
    assert_close(n.total, 5, 0, 0);
    n2ce_ctx_free(ctx);
}

/* Without callbacks nothing happens, and nothing breaks. */
static void callbacks_are_optional(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    n2_log(ctx, N2CE_LOG_INFO, "unheard");
    n2_log(NULL, N2CE_LOG_INFO, "unheard");
    n2_progress(ctx, 1, 2);
    n2ce_ctx_free(ctx);
}

/* What was allocated through the hook is freed through it, from the same thread. */
static void allocations_balance(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 4);
    const n2ce_task *task = n2ce_task_find("study gaussian");
    n2ce_ctx *ctx = NULL;
    n2ce_options *values = NULL;
    n2ce_answer *answer = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &values), N2CE_OK);
    static const char *const set[][2] = {{"dim", "2"}, {"n", "4"}, {"runs", "9"}, {"steps", "3"}};
    for (size_t i = 0; i < COUNT_OF(set); i++)
        assert_int_equal(n2ce_options_set(values, set[i][0], set[i][1]), N2CE_OK);
    assert_int_equal(n2ce_task_run(ctx, task, values, &answer), N2CE_OK);
    assert_true(memory.live > 3);
    n2ce_answer_free(answer);
    n2ce_options_free(values);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.strangers, 0);
}

static void assert_all(const unsigned char *p, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) assert_int_equal(p[i], value);
}

/* Blocks of every size begin as zeros, also where one was before; what they hold survives growing
 * and shrinking, across the size from which they have pages of their own. */
static void memory_begins_as_zeros_and_moves_whole(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 1000, (4 << 20) - 1, 4 << 20, (6 << 20) + 1, 70 << 20, 100};
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            const size_t kept = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            unsigned char *p = n2_alloc(ctx, sizes[i], 1);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            assert_all(p, sizes[i], 0);
            memset(p, 7, sizes[i]);
            p = n2_realloc(ctx, p, sizes[k], 1);
            assert_non_null(p);
            assert_all(p, kept, 7);
            memset(p, 8, sizes[k]);
            n2_free(ctx, p);
        }
    }
    n2ce_ctx_free(ctx);
}

/* More than there can be is refused with a message, and the old block stays. */
static void too_much_memory_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    unsigned char *p = n2_alloc(ctx, 5 << 20, 1);
    assert_non_null(p);
    p[5 << 19] = 3;
    assert_null(n2_alloc(ctx, SIZE_MAX, 2));
#ifndef __SANITIZE_ADDRESS__ /* which ends the program */
    assert_null(n2_alloc(ctx, SIZE_MAX / 4, 1));
    assert_null(n2_realloc(ctx, p, SIZE_MAX / 4, 1));
    assert_null(n2_realloc(ctx, p, SIZE_MAX - 8, 1));
#endif
    assert_non_null(strstr(n2ce_errmsg(ctx), "Out of memory"));
    assert_int_equal(p[5 << 19], 3);
    n2_free(ctx, p);
    n2ce_ctx_free(ctx);
}

static void operands_are_options(const n2ce_task *task) {
    char words[128];
    assert_true(strlen(n2ce_task_operands(task)) < sizeof words);
    strcpy(words, n2ce_task_operands(task));
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        assert_non_null(n2ce_option_find(n2ce_task_options(task), word));
}

/* Tasks are found by index and by name, and have all that help needs. */
static void tasks_are_found(void **state) {
    (void)state;
    size_t n = 0;
    for (const n2ce_task *task; (task = n2ce_task_at(n)); n++) {
        assert_ptr_equal(n2ce_task_find(n2ce_task_name(task)), task);
        assert_true(strlen(n2ce_task_summary(task)) > 0);
        assert_true(strlen(n2ce_task_description(task)) > 0);
        assert_true(strlen(n2ce_task_examples(task)) > 0);
        assert_true(!n2ce_report_page(task) || strstr(n2ce_report_page(task), ".html"));
        for (const n2ce_option *row = n2ce_task_options(task); row->name;
             row++) /* files have none */
            assert_true(strlen(row->help) > 0 && (row->fallback || row->type == N2CE_OPTION_PATH));
        operands_are_options(task);
    }
    assert_true(n >= 1);
    assert_null(n2ce_task_at(n));
    assert_null(n2ce_task_at(SIZE_MAX));
    assert_null(n2ce_task_find("study gauss"));
    assert_null(n2ce_task_find(""));
}

static int begun, ended;
static void begin_block(n2ce_ctx *ctx, void *block) {
    (void)ctx;
    *(int *)block = ++begun;
}
static void end_block(n2ce_ctx *ctx, void *block) {
    (void)ctx;
    ended += *(int *)block;
}

/* One block a key, made once and ended with the context. */
static void blocks_live_as_long_as_their_context(void **state) {
    (void)state;
    static const char first, second;
    n2ce_ctx *ctx;
    begun = ended = 0;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    int *a = n2_ctx_attached(ctx, &first, sizeof *a, begin_block, end_block);
    int *b = n2_ctx_attached(ctx, &second, sizeof *b, begin_block, end_block);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(n2_ctx_attached(ctx, &first, sizeof *a, begin_block, end_block), a);
    assert_int_equal(*a, 1);
    assert_int_equal(*b, 2);
    assert_int_equal(ended, 0);
    n2ce_ctx_free(ctx);
    assert_int_equal(begun, 2);
    assert_int_equal(ended, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names_and_texts),
        cmocka_unit_test(an_unknown_status_is_called_unknown),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(wrong_options_make_no_context),
        cmocka_unit_test(the_defaults_make_a_context),
        cmocka_unit_test(no_memory_makes_no_context),
        cmocka_unit_test(freeing_null_is_fine),
        cmocka_unit_test(the_message_is_that_of_the_last_failure),
        cmocka_unit_test(contexts_have_their_own_messages),
        cmocka_unit_test(cancellation_is_remembered),
        cmocka_unit_test(callbacks_are_called),
        cmocka_unit_test(callbacks_are_optional),
        cmocka_unit_test(allocations_balance),
        cmocka_unit_test(memory_begins_as_zeros_and_moves_whole),
        cmocka_unit_test(too_much_memory_is_refused),
        cmocka_unit_test(blocks_live_as_long_as_their_context),
        cmocka_unit_test(tasks_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
