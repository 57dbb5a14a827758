/* Facts about forks: a child uses what its parent made, also while a thread of the parent does. */
#include "contexts.h"
#include "samples.h"

#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What sanitizers of gcc 12 cannot do, in programs that have nothing of ours: a child of a process
 * one of whose threads allocates, or just begins, may find a lock of ASan's taken for ever (12 of
 * 600 children of three such threads hang); TSan takes a child's new thread for one of its parent's
 * that still runs, and ends. */
#ifdef __SANITIZE_ADDRESS__
enum { FORKS_BESIDE_THREADS = 0 };
#else
enum { FORKS_BESIDE_THREADS = 1 };
#endif
#ifdef __SANITIZE_THREAD__
enum { THREADS_IN_CHILDREN = 0 };
#else
enum { THREADS_IN_CHILDREN = FORKS_BESIDE_THREADS };
#endif

enum { ROWS = 400, SCORED = 4000, CHILDREN = 40, PATIENCE = 60 };

/* What a child that has done its work exits with; one that hangs is ended by an alarm. */
static int outcome_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void add_one(void *arg, size_t item, int worker) {
    (void)worker;
    ((int *)arg)[item]++;
}

static void a_child_has_threads_of_its_own(void **state) {
    (void)state;
    if (!THREADS_IN_CHILDREN) skip();
    n2ce_ctx *ctx = new_ctx(4);
    int counts[100] = {0};
    assert_int_equal(n2_parallel_for(ctx, 100, add_one, counts), N2CE_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        bool right = n2_parallel_for(ctx, 100, add_one, counts) == N2CE_OK;
        for (size_t i = 0; i < 100; i++) right = right && counts[i] == 2;
        n2ce_ctx_free(ctx);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(outcome_of(child), 0);
    n2ce_ctx_free(ctx);
}

static void a_background_is_not_waited_for(void **state) {
    (void)state;
    if (!FORKS_BESIDE_THREADS) skip();
    n2ce_ctx *ctx = new_ctx(2);
    int counts[1000] = {0};
    assert_int_equal(n2_background_begin(ctx, 1000, add_one, counts), N2CE_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        n2_background_end(ctx);
        n2ce_ctx_free(ctx);
        _exit(0);
    }
    assert_int_equal(outcome_of(child), 0);
    n2_background_end(ctx);
    n2ce_ctx_free(ctx);
}

/* ---- a model that another thread scores with ------------------------------ */

typedef struct scoring {
    n2ce_model *model;
    n2ce_matrix rows;
    double expected[SCORED], got[SCORED];
    atomic_bool enough;
} scoring;

static n2ce_model *fit(n2ce_ctx *ctx, const double *num, const double *den) {
    const n2ce_task *task = n2ce_task_find("fit");
    const n2ce_matrix data[2] = {matrix(num, ROWS, 2), matrix(den, ROWS, 2)};
    n2ce_options *o;
    n2ce_answer *answer;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "critic", "net"), N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "steps", "20"), N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "width", "16"), N2CE_OK);
    assert_int_equal(n2ce_task_run_on(ctx, task, o, data, 2, &answer), N2CE_OK);
    n2ce_model *m = n2ce_answer_take_model(answer);
    assert_non_null(m);
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    return m;
}

static void *score_on_and_on(void *arg) {
    scoring *s = arg;
    while (!atomic_load(&s->enough)) n2ce_model_score(s->model, &s->rows, s->got);
    return NULL;
}

static int score_in_child(scoring *s) {
    double got[SCORED];
    alarm(PATIENCE);
    if (n2ce_model_score(s->model, &s->rows, got) != N2CE_OK) return 1;
    return memcmp(got, s->expected, sizeof got) == 0 ? 0 : 2;
}

static void a_child_scores_while_a_thread_of_its_parent_does(void **state) {
    (void)state;
    if (!FORKS_BESIDE_THREADS) skip();
    double *num = normals(ROWS * 2, 1, 1, 1), *den = normals(ROWS * 2, 0, 1, 2);
    double *rows = normals(SCORED * 2, 0, 1, 3);
    static scoring s;
    n2ce_ctx *ctx = new_ctx(3);
    pthread_t thread;
    s.model = fit(ctx, num, den);
    s.rows = matrix(rows, SCORED, 2);
    assert_int_equal(n2ce_model_score(s.model, &s.rows, s.expected), N2CE_OK);
    assert_int_equal(pthread_create(&thread, NULL, score_on_and_on, &s), 0);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0) _exit(score_in_child(&s));
        assert_int_equal(outcome_of(child), 0);
    }
    atomic_store(&s.enough, true);
    pthread_join(thread, NULL);
    n2ce_model_free(s.model);
    free(num);
    free(den);
    free(rows);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_threads_of_its_own),
        cmocka_unit_test(a_background_is_not_waited_for),
        cmocka_unit_test(a_child_scores_while_a_thread_of_its_parent_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
