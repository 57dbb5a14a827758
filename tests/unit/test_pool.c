/* Facts about the worker pool: each item once, one item at a time on a worker. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/pool.h"

#include <stdatomic.h>
#include <string.h>

enum { ITEMS = 1000, WORKERS = 7 };

static const int thread_counts[] = {1, 2, 7};
static const size_t item_counts[] = {0, 1, 2, 1000};

typedef struct ledger {
    int threads;
    atomic_int runs[ITEMS];
    atomic_bool busy[WORKERS];
    atomic_int overlaps, strangers;
} ledger;

/* Something to do, so that threads get a chance to meet. */
static double spin(size_t item) {
    volatile double x = (double)item;
    for (int i = 0; i < 200; i++) x = x * 0.999 + 1;
    return x;
}

static void note_item(void *arg, size_t item, int worker) {
    ledger *l = arg;
    if (worker < 0 || worker >= l->threads) {
        atomic_fetch_add(&l->strangers, 1);
        return;
    }
    if (atomic_exchange(&l->busy[worker], true)) atomic_fetch_add(&l->overlaps, 1);
    atomic_fetch_add(&l->runs[item], 1);
    spin(item);
    atomic_store(&l->busy[worker], false);
}

static void check_one_call(n2ce_ctx *ctx, int threads, size_t n) {
    ledger l;
    memset(&l, 0, sizeof l);
    l.threads = threads;
    assert_int_equal(n2_parallel_for(ctx, n, note_item, &l), N2CE_OK);
    for (size_t i = 0; i < ITEMS; i++) assert_int_equal(l.runs[i], i < n);
    assert_int_equal(l.overlaps, 0);
    assert_int_equal(l.strangers, 0);
}

/* Every item runs exactly once, and no worker runs two at a time. */
static void every_item_runs_exactly_once(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        for (size_t k = 0; k < COUNT_OF(item_counts); k++)
            check_one_call(ctx, thread_counts[t], item_counts[k]);
        n2ce_ctx_free(ctx);
    }
}

static void count_up(void *arg, size_t item, int worker) {
    (void)worker;
    atomic_size_t *sum = arg;
    atomic_fetch_add(sum, item + 1);
}

/* A thousand small calls in a row neither hang nor lose an item. */
static void many_small_calls_lose_nothing(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        for (size_t call = 0; call < 1000; call++) {
            const size_t n = call % 11;
            atomic_size_t sum = 0;
            assert_int_equal(n2_parallel_for(ctx, n, count_up, &sum), N2CE_OK);
            assert_int_equal(sum, n * (n + 1) / 2);
        }
        n2ce_ctx_free(ctx);
    }
}

static void compute_item(void *arg, size_t item, int worker) {
    (void)worker;
    double *out = arg;
    out[item] = spin(item) + sin((double)item);
}

/* What is computed does not depend on the number of threads, to the last bit. */
static void results_do_not_depend_on_threads(void **state) {
    (void)state;
    double results[3][ITEMS];
    for (size_t t = 0; t < 3; t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        assert_int_equal(n2_parallel_for(ctx, ITEMS, compute_item, results[t]), N2CE_OK);
        n2ce_ctx_free(ctx);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_memory_equal(results[0], results[2], sizeof results[0]);
}

/* Writes of the items are visible to the caller when the call returns. */
static void results_are_visible_when_the_call_returns(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double out[16];
    for (int call = 0; call < 500; call++) {
        memset(out, 0, sizeof out);
        assert_int_equal(n2_parallel_for(ctx, 16, compute_item, out), N2CE_OK);
        for (size_t i = 1; i < 16; i++) assert_true(out[i] != 0);
    }
    n2ce_ctx_free(ctx);
}

/* Contexts that never worked, or worked little, are freed without a hang. */
static void contexts_come_and_go(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        n2ce_ctx *ctx = new_ctx(7);
        atomic_size_t sum = 0;
        if (i % 2) assert_int_equal(n2_parallel_for(ctx, 2, count_up, &sum), N2CE_OK);
        n2ce_ctx_free(ctx);
    }
}

/* Without memory for the pool the call fails, runs nothing, and works later on. */
static void a_pool_that_cannot_be_made_is_an_error(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(1, false);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx = NULL;
    atomic_size_t sum = 0;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(n2_parallel_for(ctx, 3, count_up, &sum), N2CE_ENOMEM);
    assert_int_equal(sum, 0);
    assert_int_equal(n2_parallel_for(ctx, 3, count_up, &sum), N2CE_OK);
    assert_int_equal(sum, 6);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.strangers, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_exactly_once),
        cmocka_unit_test(many_small_calls_lose_nothing),
        cmocka_unit_test(results_do_not_depend_on_threads),
        cmocka_unit_test(results_are_visible_when_the_call_returns),
        cmocka_unit_test(contexts_come_and_go),
        cmocka_unit_test(a_pool_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
