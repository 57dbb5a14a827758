/* Facts about ranks: sums go by a tree whatever the sizes, everybody has what everybody should
 * have, and a rank that fails or dies ends the others' work with a sentence. */
#define _GNU_SOURCE

#include "contexts.h"
#include "forked_ranks.h"

#include "comm/comm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int counts[] = {1, 2, 3, 4, 5, 8};

static void with_all_counts(rank_fn *body) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_int_equal(run_ranks(counts[i], body), 0);
}

/* ---- sums ---- */

static float number(int rank, size_t i) {
    return 1.0f / (float)(3 + 7 * rank + 11 * (int)(i % 1013));
}

/* Ranks [first, first + n), n a power of two. */
static float tree(int first, int n, size_t i) {
    return n == 1 ? number(first, i) : tree(first, n / 2, i) + tree(first + n / 2, n / 2, i);
}

static bool sums_are_trees(n2ce_ctx *ctx) {
    static const size_t sizes[] = {1, 2, 3, 1000, 1025, 200001};
    static float x[200001];
    for (int n = 1; n <= n2_ranks(ctx); n *= 2)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            for (size_t i = 0; i < sizes[k]; i++) x[i] = number(n2_rank(ctx), i);
            if (n2_comm_sum(ctx, x, sizes[k], sizeof *x, n) != N2CE_OK) return false;
            for (size_t i = 0; i < sizes[k]; i++) {
                const float want = n2_ranks(ctx) == 1 ? number(0, i) : tree(0, n, i);
                if (memcmp(&x[i], &want, sizeof want) != 0) return false;
            }
        }
    return true;
}

static void sums_go_by_a_tree(void **state) {
    (void)state;
    with_all_counts(sums_are_trees);
}

/* ---- the others ---- */

static n2ce_status take_block(void *user, int rank, const void *bytes, size_t n) {
    int *next = user;
    const char *text = bytes;
    if (rank != *next || n != (size_t)(rank + 1)) return N2CE_EDATA;
    for (size_t i = 0; i < n; i++)
        if (text[i] != 'a' + rank) return N2CE_EDATA;
    ++*next;
    return N2CE_OK;
}

static bool everybody_has_it(n2ce_ctx *ctx) {
    const int rank = n2_rank(ctx), ranks = n2_ranks(ctx);
    int x[8] = {0}, next = 0;
    for (int root = 0; root < ranks; root++) {
        x[0] = rank == root ? 100 + root : -1;
        if (n2_comm_broadcast(ctx, root, x, sizeof x[0]) != N2CE_OK || x[0] != 100 + root)
            return false;
    }
    size_t begin[9];
    for (int r = 0; r <= ranks; r++) begin[r] = (size_t)r * sizeof(int);
    x[rank] = rank * rank;
    if (n2_comm_gather(ctx, x, begin) != N2CE_OK) return false;
    for (int r = 0; ranks > 1 && r < ranks; r++)
        if (x[r] != r * r) return false;
    char text[8];
    memset(text, 'a' + rank, sizeof text);
    if (n2_comm_collect(ctx, text, (size_t)rank + 1, take_block, &next) != N2CE_OK) return false;
    bool last = rank == ranks - 1, first = rank == 0, none = false;
    if (n2_comm_any(ctx, &last) != N2CE_OK || n2_comm_any(ctx, &none) != N2CE_OK) return false;
    if (n2_comm_decide(ctx, &first) != N2CE_OK) return false;
    return (rank > 0 || next == ranks) && last && first && !none;
}

static void results_reach_everybody(void **state) {
    (void)state;
    with_all_counts(everybody_has_it);
}

/* ---- tasks ---- */

enum { TASKS = 7 };

typedef struct squares {
    n2ce_ctx *ctx;
    double of[TASKS];
    size_t fails; /* TASKS: none */
    int at_once;
} squares;

static n2ce_status square(void *user, size_t task) {
    squares *s = user;
    s->at_once += n2_ranks(s->ctx) == 1;
    s->of[task] = (double)(task * task);
    if (task == s->fails) return n2_fail(s->ctx, N2CE_EDATA, "Task %zu is bad.", task);
    return N2CE_OK;
}

static n2ce_status share_square(void *user, size_t task, int root) {
    squares *s = user;
    return n2_comm_broadcast(s->ctx, root, &s->of[task], sizeof s->of[task]);
}

static bool tasks_are_done(n2ce_ctx *ctx) {
    squares s = {ctx, {0}, TASKS, 0};
    const int ranks = n2_ranks(ctx);
    if (n2_comm_tasks(ctx, TASKS, square, share_square, &s) != N2CE_OK) return false;
    for (size_t i = 0; i < TASKS; i++)
        if (s.of[i] != (double)(i * i)) return false;
    return s.at_once <= (TASKS + ranks - 1) / ranks;
}

static bool all_fail_alike(n2ce_ctx *ctx) {
    squares s = {ctx, {0}, 3, 0};
    return n2_comm_tasks(ctx, TASKS, square, share_square, &s) == N2CE_EDATA &&
           strcmp(n2ce_errmsg(ctx), "Task 3 is bad.") == 0;
}

static void tasks_are_dealt(void **state) {
    (void)state;
    with_all_counts(tasks_are_done);
    with_all_counts(all_fail_alike);
}

/* ---- faults ---- */

/* Rank 1 leaves with code 2; the others, who wait for it, fail because of that. */
static bool one_leaves(n2ce_ctx *ctx) {
    if (n2_rank(ctx) == 1) return false;
    float x = 1;
    return n2_comm_sum(ctx, &x, 1, sizeof x, 4) == N2CE_OK;
}

static bool one_dies(n2ce_ctx *ctx) {
    if (n2_rank(ctx) == 2) raise(SIGKILL);
    float x = 1;
    const n2ce_status status = n2_comm_sum(ctx, &x, 1, sizeof x, 4);
    if (n2_rank(ctx) == 0 &&
        (status != N2CE_EIO || !strstr(n2ce_errmsg(ctx), "--checkpoint, --resume")))
        _exit(70);
    return status == N2CE_OK;
}

/* Who waits by other means than an exchange looks now and then. Rank 0 has when rank 2 dies. */
static bool one_dies_unasked(n2ce_ctx *ctx) {
    char word = 0;
    if (n2_rank(ctx) == 0 && n2_comm_check(ctx) != N2CE_OK) _exit(71);
    const n2ce_status status = n2_comm_broadcast(ctx, 0, &word, 1);
    if (n2_rank(ctx) == 2) raise(SIGKILL);
    while (status == N2CE_OK && n2_comm_check(ctx) == N2CE_OK) usleep(500);
    return false;
}

static void nobody_waits_for_the_gone(void **state) {
    (void)state;
    assert_int_equal(run_ranks(4, one_dies_unasked), 1);
    assert_int_equal(run_ranks(4, one_leaves), 2); /* the code of the one that left */
    assert_int_equal(run_ranks(4, one_dies), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_go_by_a_tree),
        cmocka_unit_test(results_reach_everybody),
        cmocka_unit_test(tasks_are_dealt),
        cmocka_unit_test(nobody_waits_for_the_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
