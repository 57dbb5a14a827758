/* Facts about sharing a step between threads: nodes of much work are computed in parts, programs of
 * heavy rows in chunks, and nothing of it shows in the results. */
#include "close.h"
#include "cpu/cpu.h"
#include "ref/ref.h"

#include "engine/plan_data.h"
#include "rewrite/rewrites.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_INPUTS = 3 };

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static bench open_bench(const n2_backend *backend, int threads) {
    bench b = {0};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    assert_int_equal(n2ce_ctx_new(&b.ctx, &options), N2CE_OK);
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static n2_node input(bench *b, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_add(b->store, name, shape);
    const size_t n = (size_t)n2_elements(shape);
    double *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = sin(0.37 * (double)i) + 0.1;
    n2_tensor_set(b->store, t, x);
    free(x);
    return n2g_read(b->g, t);
}

/* ---- nodes of much work ---------------------------------------------------- */

static n2_node row_of_products(bench *b) {
    const n2_node x = input(b, "x", n2_dims(1, 200001)), y = input(b, "y", n2_dims(1, 200001));
    return n2g_tanh(b->g, n2g_mul(b->g, x, y));
}
static n2_node logs_of_a_row(bench *b) {
    const n2_node x = input(b, "x", n2_dims(1, 200001));
    return n2g_log(b->g, n2g_affine(b->g, x, 1, 2));
}
static n2_node columns_and_rows(bench *b) {
    const n2_node x = input(b, "x", n2_dims(1, 501, 1)), y = input(b, "y", n2_dims(1, 1, 401));
    return n2g_sub(b->g, x, y);
}
static n2_node spread(bench *b) {
    return n2g_broadcast(b->g, input(b, "x", n2_dims(1, 301, 1)), n2_dims(1, 301, 407));
}
static n2_node turned(bench *b) {
    return n2g_transpose(b->g, input(b, "x", n2_dims(611, 503)), 0, 1);
}
static n2_node turned_in_the_middle(bench *b) {
    return n2g_transpose(b->g, input(b, "x", n2_dims(37, 41, 13, 11)), 0, 2);
}
static n2_node sum_of_few_rows(bench *b) {
    return n2g_sum(b->g, input(b, "x", n2_dims(3, 70001)), n2_axis(0));
}
static n2_node sums_of_columns(bench *b) {
    return n2g_sum(b->g, input(b, "x", n2_dims(1, 97, 1301)), n2_axis(2));
}
static n2_node sums_apart(bench *b) {
    return n2g_sum(b->g, input(b, "x", n2_dims(3, 301, 103)), n2_axis(0) | n2_axis(2));
}
static n2_node total(bench *b) { return n2g_total(b->g, input(b, "x", n2_dims(1, 300001))); }
static n2_node gradient_of_few_rows(bench *b) {
    const n2_node x = input(b, "x", n2_dims(8, 401)), y = input(b, "y", n2_dims(8, 303));
    return n2g_matmul(b->g, x, y, true, false);
}
static n2_node one_tall_product(bench *b) {
    const n2_node x = input(b, "x", n2_dims(1, 1001, 40)), y = input(b, "y", n2_dims(1, 40, 53));
    return n2g_matmul(b->g, x, y, false, false);
}
static n2_node both_turned(bench *b) {
    const n2_node x = input(b, "x", n2_dims(40, 301)), y = input(b, "y", n2_dims(203, 40));
    return n2g_matmul(b->g, x, y, true, true);
}
static n2_node drawn(bench *b) { return n2g_randn(b->g, n2_dims(1, 100003)); }
static n2_node moved(bench *b) {
    const n2_node x = input(b, "x", n2_dims(1, 100003));
    return n2g_assign(b->g, n2_store_add(b->store, "to", n2_dims(1, 100003)), x);
}

typedef n2_node build_fn(bench *b);

static size_t parts_of(const n2_plan *p) {
    size_t parts = 0;
    for (size_t k = 0; k < p->n_steps; k++) parts += p->steps[k].shares.n;
    return parts;
}

static double *run(build_fn *build, const n2_backend *backend, int threads, size_t *n,
                   size_t *parts) {
    bench b = open_bench(backend, threads);
    const n2_node y = build(&b);
    if (n2_plan_compile(b.g, backend, &y, 1, &b.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(b.ctx));
    n2_plan_seed(b.plan, 5, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    *n = (size_t)n2_elements(n2_shape_at(b.g, y));
    *parts = parts_of(b.plan);
    double *values = malloc((*n + 1) * sizeof *values);
    assert_non_null(values);
    n2_plan_get(b.plan, 0, values);
    close_bench(&b);
    return values;
}

static void check_parts(build_fn *build, bool is_split) {
    size_t n, parts;
    double *expected = run(build, n2_ref_backend(), 1, &n, &parts);
    double *alone = run(build, n2_cpu_backend(), 1, &n, &parts);
    if ((parts > 1) != is_split) fail_msg("%zu parts of %zu elements", parts, n);
    for (size_t i = 0; i < n; i++) assert_close(alone[i], expected[i], 2e-5, 2e-5);
    for (int threads = 2; threads < 5; threads++) {
        double *shared = run(build, n2_cpu_backend(), threads, &n, &parts);
        assert_memory_equal(shared, alone, n * sizeof *alone);
        free(shared);
    }
    free(expected);
    free(alone);
}

/* A node of much work is computed in parts, which make up the whole; where an op cannot be split
 * it is computed once. */
static void nodes_of_much_work_are_shared(void **state) {
    (void)state;
    build_fn *const builders[] = {
        row_of_products,      logs_of_a_row,        columns_and_rows, spread,     turned,
        sum_of_few_rows,      turned_in_the_middle, sums_of_columns,  sums_apart, total,
        gradient_of_few_rows, one_tall_product,     both_turned,      drawn,      moved};
    for (size_t i = 0; i < COUNT_OF(builders); i++) check_parts(builders[i], true);
}

static n2_node largest(bench *b) {
    return n2g_amax(b->g, input(b, "x", n2_dims(5, 7)), n2_axis(0));
}
static n2_node middle(bench *b) {
    return n2g_median(b->g, input(b, "x", n2_dims(300, 300)), false);
}

/* Little work is not worth sharing, and an op that needs all at once is not asked for parts. */
static void other_nodes_are_not(void **state) {
    (void)state;
    check_parts(largest, false);
    check_parts(middle, false);
}

/* ---- rows ------------------------------------------------------------------ */

static const n2_step *program_of(const n2_plan *p, int64_t rows) {
    for (size_t k = 0; k < p->n_steps; k++)
        if (p->steps[k].kind == N2_STEP_ROWS && p->steps[k].n_rows == rows) return &p->steps[k];
    return NULL;
}

/* Chunks of a network of two layers over rows, with the gradient of its weights or without; 0: it
 * is no row program. */
static int chunks(int64_t rows, int64_t width, bool learns) {
    bench b = open_bench(n2_cpu_backend(), 1);
    const n2_node w = input(&b, "w", n2_dims(width, width));
    const n2_node h =
        n2g_lrelu(b.g, n2g_matmul(b.g, input(&b, "x", n2_dims(rows, width)), w, 0, 1), 0.2);
    const n2_node y = n2g_matmul(b.g, h, w, false, true), loss = n2g_total(b.g, y);
    n2_node out = y;
    if (learns) n2g_grad(b.g, loss, &w, 1, &out);
    assert_int_equal(n2_plan_compile(b.g, n2_cpu_backend(), &out, 1, &b.plan), N2CE_OK);
    const n2_step *s = program_of(b.plan, rows);
    const int n = s ? s->n_chunks : 0;
    close_bench(&b);
    return n;
}

/* Light rows go by 64; heavy ones are split however few they are. */
static void heavy_rows_are_split_finely(void **state) {
    (void)state;
    assert_int_equal(chunks(64, 64, true), 1);
    assert_int_equal(chunks(128, 64, true), 2);
    assert_int_equal(chunks(10000, 64, true), 8);
    assert_true(chunks(64, 2048, true) > 4);
    assert_true(chunks(64, 2048, false) > 3);
}

/* What is only mapped may have many chunks: there is nothing to add up. */
static void rows_without_sums_are_balanced(void **state) {
    (void)state;
    assert_true(chunks(10000, 64, false) > 30);
}

/* Nine rows go by threes, as four chunks cannot share them evenly: what is added up is three sums,
 * and not also the memory of a fourth. */
static void chunks_that_have_no_rows_add_nothing(void **state) {
    (void)state;
    enum { ROWS = 9, N = 256, SIZE = N * N };
    bench b = open_bench(n2_cpu_backend(), 2);
    const n2_node x = input(&b, "x", n2_dims(ROWS, N, N)), r = input(&b, "r", n2_dims(1, 1 << 20));
    const n2_node dirt = n2g_total(b.g, n2g_exp(b.g, r)); /* where the sums will be */
    n2_node y = n2g_mul(b.g, x, n2g_reshape(b.g, n2g_positive(b.g, dirt), n2_dims(1, 1, 1)));
    for (int k = 0; k < 3; k++) y = n2g_matmul(b.g, n2g_affine(b.g, y, 1.0 / N, 0), x, 0, 0);
    const n2_node out[] = {y, n2g_sum(b.g, y, n2_axis(0))};
    assert_int_equal(n2_plan_compile(b.g, n2_cpu_backend(), out, 2, &b.plan), N2CE_OK);
    const n2_step *s = program_of(b.plan, ROWS);
    assert_true((s->n_chunks - 1) * s->chunk_rows < ROWS);
    double *all = malloc(ROWS * SIZE * sizeof *all), *sums = malloc(SIZE * sizeof *sums);
    assert_true(all && sums);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, all);
    n2_plan_get(b.plan, 1, sums);
    for (size_t i = 0; i < SIZE; i++) {
        double expected = 0;
        for (size_t row = 0; row < ROWS; row++) expected += all[row * SIZE + i];
        assert_close(sums[i], expected, 1e-4, 1e-4);
    }
    free(all);
    free(sums);
    close_bench(&b);
}

/* Fewer than sixteen rows make a program only if they are heavy. */
static void few_heavy_rows_are_a_program(void **state) {
    (void)state;
    assert_int_equal(chunks(8, 64, true), 0);
    assert_true(chunks(8, 2048, true) > 0);
}

/* ---- order ----------------------------------------------------------------- */

/* An update in parts begins when all who read what it overwrites are done, in parts too, even if
 * what it needs itself is there long before. */
static void updates_wait_for_readers(void **state) {
    (void)state;
    enum { N = 100000, RUNS = 20 };
    static double before[N], after[N];
    bench b = open_bench(n2_cpu_backend(), 4);
    const n2_node x = input(&b, "x", n2_dims(1, N)), w = input(&b, "w", n2_dims(1, N));
    const n2_node late = n2g_positive(b.g, n2g_exp(b.g, n2g_tanh(b.g, w))); /* 1 */
    const n2_node y = n2g_mul(b.g, x, late);
    n2_tensor *t = n2_store_find(b.store, "x");
    n2g_assign(b.g, t, n2g_affine(b.g, x, 1, 0.25));
    assert_int_equal(n2_plan_compile(b.g, n2_cpu_backend(), &y, 1, &b.plan), N2CE_OK);
    for (int run = 0; run < RUNS; run++) {
        n2_tensor_get(b.store, t, before);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2_plan_get(b.plan, 0, after);
        assert_memory_equal(after, before, sizeof before);
        n2_tensor_get(b.store, t, after);
        assert_close(after[N - 1], before[N - 1] + 0.25, 1e-6, 1e-6);
    }
    close_bench(&b);
}

/* ---- many runs ------------------------------------------------------------- */

static n2_kernel *quick_tanh;

/* A kernel that is held up now and then, as threads are on a busy machine. */
static void sleepy_tanh(const n2_call *c) {
    const unsigned mixed =
        (c->step * 2654435761u) ^ ((unsigned)c->part * 40503u + (unsigned)c->row0);
    if (mixed % 13 == 0) nanosleep(&(struct timespec){.tv_nsec = mixed % 60000}, NULL);
    if (mixed % 7 == 0) sched_yield();
    quick_tanh(c);
}

enum { WIDE = 70001 }; /* what is computed in parts */

/* Rows with sums, whole nodes in parts, an update in parts that a watched number may hold back. */
static void build_all_kinds(bench *b, n2_node *loss) {
    n2_graph *g = b->g;
    const n2_node wide = input(b, "wide", n2_dims(1, WIDE)), w = input(b, "w", n2_dims(8, 8));
    const n2_node rows = n2g_tanh(g, n2g_matmul(g, n2g_randn(g, n2_dims(700, 8)), w, 0, 1));
    const n2_node noise = n2g_tanh(g, n2g_add(g, wide, n2g_randn(g, n2_dims(1, WIDE))));
    const n2_node fold = n2g_mean(g, n2g_mul(g, rows, rows), n2_axis(0) | n2_axis(1));
    *loss = n2g_add(g, n2g_total(g, fold), n2g_affine(g, n2g_total(g, noise), 1e-3, 0));
    n2g_watch(g, *loss);
    n2_node dw;
    n2g_grad(g, *loss, &w, 1, &dw);
    n2g_assign(g, n2_store_find(b->store, "wide"), n2g_affine(g, n2g_add(g, noise, wide), 0.5, 0));
    n2g_assign(g, n2_store_find(b->store, "w"), n2g_sub(g, w, n2g_affine(g, dw, 0.01, 0)));
}

/* The values of both tensors after so many runs, one call each. */
static void run_all_kinds(const n2_backend *backend, int threads, int runs, double *wide,
                          double *w) {
    bench b = open_bench(backend, threads);
    n2_node loss;
    build_all_kinds(&b, &loss);
    assert_int_equal(n2_plan_compile(b.g, backend, &loss, 1, &b.plan), N2CE_OK);
    for (int run = 0; run < runs; run++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_tensor_get(b.store, n2_store_find(b.store, "wide"), wide);
    n2_tensor_get(b.store, n2_store_find(b.store, "w"), w);
    /* a number that is not finite holds back all parts of an update, or none */
    double *after = malloc(WIDE * sizeof *after), bad[64] = {(double)NAN};
    assert_non_null(after);
    n2_tensor_set(b.store, n2_store_find(b.store, "w"), bad);
    assert_int_equal(n2_plan_run(b.plan), N2CE_ENAN);
    n2_tensor_get(b.store, n2_store_find(b.store, "wide"), after);
    assert_memory_equal(after, wide, WIDE * sizeof *after);
    free(after);
    close_bench(&b);
}

/* Hundreds of runs with threads that are held up at random give the same bytes as one thread. */
static void held_up_threads_change_nothing(void **state) {
    (void)state;
    enum { RUNS = 200 };
    static double wide[2][WIDE], w[2][64];
    static const int threads[] = {2, 7, 16};
    n2_kernel *kernels[N2_OP_COUNT];
    n2_backend backend = *n2_cpu_backend();
    memcpy(kernels, backend.kernel, sizeof kernels);
    quick_tanh = kernels[N2_OP_tanh];
    kernels[N2_OP_tanh] = sleepy_tanh;
    backend.kernel = kernels;
    run_all_kinds(n2_cpu_backend(), 1, RUNS, wide[0], w[0]);
    for (size_t t = 0; t < COUNT_OF(threads); t++) {
        run_all_kinds(&backend, threads[t], RUNS, wide[1], w[1]);
        assert_memory_equal(wide[1], wide[0], sizeof wide[0]);
        assert_memory_equal(w[1], w[0], sizeof w[0]);
    }
}

/* ---- scratch memory -------------------------------------------------------- */

/* A copy by way of scratch memory, slow enough for workers to meet there. */
static void copy_by_scratch(const n2_call *c) {
    const size_t n = (size_t)n2_elements(c->out.shape);
    memcpy(c->work, c->in[0].data, n * sizeof(float));
    sched_yield();
    memcpy(c->out.data, c->work, n * sizeof(float));
}

static int64_t as_much_as_the_tile(const n2_call *c) { return n2_elements(c->out.shape); }

/* Tiles that are worked on at the same time do not share it. */
static void workers_have_scratch_of_their_own(void **state) {
    (void)state;
    enum { ROWS = 4000, WIDTH = 33 };
    static double values[ROWS * WIDTH], copies[ROWS * WIDTH];
    n2_kernel *kernels[N2_OP_COUNT];
    n2_scratch *scratch[N2_OP_COUNT] = {[N2_OP_exp] = as_much_as_the_tile};
    n2_backend backend = *n2_cpu_backend();
    memcpy(kernels, backend.kernel, sizeof kernels);
    kernels[N2_OP_exp] = copy_by_scratch;
    backend.kernel = kernels;
    backend.scratch = scratch;
    bench b = open_bench(&backend, 4);
    const n2_node y = n2g_exp(b.g, input(&b, "x", n2_dims(ROWS, WIDTH)));
    assert_int_equal(n2_plan_compile(b.g, &backend, &y, 1, &b.plan), N2CE_OK);
    n2_tensor_get(b.store, n2_store_find(b.store, "x"), values);
    for (int run = 0; run < 20; run++) {
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2_plan_get(b.plan, 0, copies);
        assert_memory_equal(copies, values, sizeof values);
    }
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_much_work_are_shared),
        cmocka_unit_test(other_nodes_are_not),
        cmocka_unit_test(heavy_rows_are_split_finely),
        cmocka_unit_test(rows_without_sums_are_balanced),
        cmocka_unit_test(chunks_that_have_no_rows_add_nothing),
        cmocka_unit_test(few_heavy_rows_are_a_program),
        cmocka_unit_test(updates_wait_for_readers),
        cmocka_unit_test(held_up_threads_change_nothing),
        cmocka_unit_test(workers_have_scratch_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
