/* Facts about the worker pool: each item once, one item at a time on a worker; what is in front
 * comes before what is in the background. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/pool.h"

#include <sched.h>
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

static void open_ledger(ledger *l, int threads) {
    memset(l, 0, sizeof *l);
    l->threads = threads;
}

/* Items 0 .. n-1 ran once, the others did not. */
static void check_ledger(ledger *l, size_t n) {
    for (size_t i = 0; i < ITEMS; i++) assert_int_equal(l->runs[i], i < n);
    assert_int_equal(l->overlaps, 0);
    assert_int_equal(l->strangers, 0);
}

static void check_one_call(n2ce_ctx *ctx, int threads, size_t n) {
    ledger l;
    open_ledger(&l, threads);
    assert_int_equal(n2_parallel_for(ctx, n, note_item, &l), N2CE_OK);
    check_ledger(&l, n);
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

/* ---- the background ---- */

/* Every item of the background runs exactly once, by its end; ends of nothing do nothing. */
static void every_item_of_the_background_runs_once(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        n2_background_end(ctx);
        for (size_t k = 0; k < COUNT_OF(item_counts); k++) {
            ledger l;
            open_ledger(&l, thread_counts[t]);
            assert_int_equal(n2_background_begin(ctx, item_counts[k], note_item, &l), N2CE_OK);
            n2_background_end(ctx);
            check_ledger(&l, item_counts[k]);
            n2_background_end(ctx);
            check_ledger(&l, item_counts[k]);
        }
        n2ce_ctx_free(ctx);
    }
}

/* Jobs come and go in front of one in the background, with workers of their own. */
static void jobs_run_in_front_of_the_background(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        for (int round = 0; round < 20; round++) {
            ledger l;
            open_ledger(&l, thread_counts[t]);
            assert_int_equal(n2_background_begin(ctx, ITEMS, note_item, &l), N2CE_OK);
            for (size_t k = 0; k < COUNT_OF(item_counts); k++)
                check_one_call(ctx, thread_counts[t], item_counts[k]);
            n2_background_end(ctx);
            check_ledger(&l, ITEMS);
        }
        n2ce_ctx_free(ctx);
    }
}

/* One job of the background after another, each ended by the next. */
static void the_next_background_ends_the_one_before(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(thread_counts); t++) {
        n2ce_ctx *ctx = new_ctx(thread_counts[t]);
        ledger first, second;
        for (int round = 0; round < 100; round++) {
            open_ledger(&first, thread_counts[t]);
            open_ledger(&second, thread_counts[t]);
            assert_int_equal(n2_background_begin(ctx, 50, note_item, &first), N2CE_OK);
            assert_int_equal(n2_background_begin(ctx, 30, note_item, &second), N2CE_OK);
            check_ledger(&first, 50);
            n2_background_end(ctx);
            check_ledger(&second, 30);
        }
        n2ce_ctx_free(ctx);
    }
}

typedef struct gate {
    atomic_int waiting;
    atomic_bool open;
} gate;

static void wait_at_gate(void *arg, size_t item, int worker) {
    (void)item;
    (void)worker;
    gate *g = arg;
    atomic_fetch_add(&g->waiting, 1);
    while (!atomic_load(&g->open)) sched_yield();
}

/* A job in front is done while every worker is stuck at an item of the background. */
static void nobody_waits_for_the_background(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(3);
    gate g = {0};
    assert_int_equal(n2_background_begin(ctx, 2, wait_at_gate, &g), N2CE_OK);
    while (atomic_load(&g.waiting) < 2) sched_yield();
    for (int call = 0; call < 100; call++) check_one_call(ctx, 3, 10);
    atomic_store(&g.open, true);
    n2_background_end(ctx);
    assert_int_equal(g.waiting, 2);
    n2ce_ctx_free(ctx);
}

enum { PHASES = 40 };

typedef struct procession {
    int threads;
    size_t done, items;             /* phases; items of the one that is open */
    atomic_size_t finished, strays; /* items of this phase; items that were run at a wrong time */
    atomic_bool busy[WORKERS];
} procession;

/* 0, 1 and many items in turn. */
static size_t items_of(size_t phase) { return phase % 4 == 0 ? 0 : phase % 4 == 1 ? 1 : phase; }

/* All of the phase before is there. */
static size_t open_phase(void *arg, size_t phase) {
    procession *p = arg;
    if (phase != p->done || p->finished != p->items) p->strays++;
    p->done = phase + 1;
    p->items = items_of(phase);
    p->finished = 0;
    return p->items;
}

static void run_in_phase(void *arg, size_t phase, size_t item, int worker) {
    procession *p = arg;
    if (worker < 0 || worker >= p->threads || atomic_exchange(&p->busy[worker], true)) p->strays++;
    if (phase + 1 != p->done || item >= p->items) p->strays++;
    spin(item);
    atomic_store(&p->busy[worker], false);
    p->finished++;
}

/* Phases follow one another: none is opened before all items of the one before are done. With
 * workers that are busy in the background, too. */
static void phases_follow_one_another(void **state) {
    (void)state;
    for (int threads = 1; threads <= WORKERS; threads += 2) {
        n2ce_ctx *ctx = new_ctx(threads);
        ledger l;
        open_ledger(&l, threads);
        assert_int_equal(n2_background_begin(ctx, ITEMS, note_item, &l), N2CE_OK);
        for (int round = 0; round < 50; round++) {
            procession p = {.threads = threads};
            const n2_phases phases = {PHASES, open_phase, run_in_phase, &p};
            assert_int_equal(n2_parallel_phases(ctx, &phases), N2CE_OK);
            assert_int_equal(p.strays, 0);
            assert_int_equal(p.done, PHASES);
            assert_int_equal(p.finished, items_of(PHASES - 1));
        }
        n2_background_end(ctx);
        check_ledger(&l, ITEMS);
        n2ce_ctx_free(ctx);
    }
}

/* Phases go on while every worker is held in the background. */
static size_t open_two(void *arg, size_t phase) {
    (void)arg, (void)phase;
    return 2;
}

static void count_in_phase(void *arg, size_t phase, size_t item, int worker) {
    (void)phase;
    count_up(arg, item, worker);
}

static void phases_wait_for_no_one(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(3);
    gate g = {.open = false};
    assert_int_equal(n2_background_begin(ctx, 2, wait_at_gate, &g), N2CE_OK);
    while (atomic_load(&g.waiting) < 2) sched_yield();
    atomic_size_t sum = 0;
    const n2_phases phases = {100, open_two, count_in_phase, &sum};
    assert_int_equal(n2_parallel_phases(ctx, &phases), N2CE_OK);
    assert_int_equal(sum, 300);
    atomic_store(&g.open, true);
    n2_background_end(ctx);
    n2ce_ctx_free(ctx);
}

/* Alone, the caller does everything at the end and nothing before. */
static void without_workers_the_background_waits_for_its_end(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    atomic_size_t sum = 0;
    assert_int_equal(n2_background_begin(ctx, 10, count_up, &sum), N2CE_OK);
    check_one_call(ctx, 1, 5);
    assert_int_equal(sum, 0);
    n2_background_end(ctx);
    assert_int_equal(sum, 55);
    n2ce_ctx_free(ctx);
}

/* What was begun is finished, what was not is left out, and the next job is whole. */
static void a_background_may_be_dropped(void **state) {
    (void)state;
    for (int threads = 1; threads < 5; threads++) {
        n2ce_ctx *ctx = new_ctx(threads);
        atomic_size_t sum = 0;
        n2_background_drop(ctx);
        assert_int_equal(n2_background_begin(ctx, 1 << 24, count_up, &sum), N2CE_OK);
        n2_background_drop(ctx);
        const size_t done = sum, all = (size_t)1 << 24;
        assert_true(done < all * (all + 1) / 2);
        check_one_call(ctx, threads, 50);
        assert_int_equal(sum, done);
        sum = 0;
        assert_int_equal(n2_background_begin(ctx, 10, count_up, &sum), N2CE_OK);
        n2_background_end(ctx);
        assert_int_equal(sum, 55);
        n2ce_ctx_free(ctx);
    }
}

/* Without memory for the pool there is no job, and its end does nothing. */
static void a_background_without_memory_is_an_error(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(1, false);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx = NULL;
    atomic_size_t sum = 0;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(n2_background_begin(ctx, 3, count_up, &sum), N2CE_ENOMEM);
    n2_background_end(ctx);
    assert_int_equal(sum, 0);
    assert_int_equal(n2_background_begin(ctx, 3, count_up, &sum), N2CE_OK);
    n2_background_end(ctx);
    assert_int_equal(sum, 6);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_exactly_once),
        cmocka_unit_test(many_small_calls_lose_nothing),
        cmocka_unit_test(results_do_not_depend_on_threads),
        cmocka_unit_test(results_are_visible_when_the_call_returns),
        cmocka_unit_test(contexts_come_and_go),
        cmocka_unit_test(a_pool_that_cannot_be_made_is_an_error),
        cmocka_unit_test(every_item_of_the_background_runs_once),
        cmocka_unit_test(jobs_run_in_front_of_the_background),
        cmocka_unit_test(the_next_background_ends_the_one_before),
        cmocka_unit_test(nobody_waits_for_the_background),
        cmocka_unit_test(phases_follow_one_another),
        cmocka_unit_test(phases_wait_for_no_one),
        cmocka_unit_test(without_workers_the_background_waits_for_its_end),
        cmocka_unit_test(a_background_may_be_dropped),
        cmocka_unit_test(a_background_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
