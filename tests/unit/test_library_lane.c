/* Products by a vendor's library, captured among our own jobs: the same numbers as ref, the same
 * bytes every time, runs that go bad as without it. */
#define _POSIX_C_SOURCE 200809L
#include "library_problem.h"
#include "stores.h"

#include "nn/nn.h"

static const n2_backend *open_products_or_skip(bool strict) {
    return open_library_or_skip(N2_OP_matmul, (n2_precision){.strict = strict});
}

static void check_product(bool strict, build *f, const void *arg, size_t n, size_t calls) {
    check_output(open_products_or_skip(strict), strict ? 1e-5 : 4e-3, f, arg, n, calls);
}

/* ---- products ---------------------------------------------------------------- */

typedef struct shape {
    int64_t batches, m, n, k; /* no batches: 0 */
    bool ta, tb;
} shape;

static n2_shape matrix(const shape *s, int64_t rows, int64_t columns) {
    return s->batches ? n2_dims(s->batches, rows, columns) : n2_dims(rows, columns);
}

static n2_node multiply(problem *p, const void *arg) {
    const shape *s = arg;
    const n2_node a = numbers(p, "a", s->ta ? matrix(s, s->k, s->m) : matrix(s, s->m, s->k));
    const n2_node b = numbers(p, "b", s->tb ? matrix(s, s->n, s->k) : matrix(s, s->k, s->n));
    return n2g_matmul(p->graph, a, b, s->ta, s->tb);
}

static void check_products(bool strict) {
    static const int64_t sizes[][4] = {
        {0, 96, 160, 64}, {0, 37, 151, 29}, {0, 130, 131, 133}, {0, 256, 5, 192},
        {3, 40, 24, 56},  {5, 17, 9, 31},   {0, 1, 140, 200},   {0, 64, 144, 300},
    };
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) {
            const int64_t *d = sizes[i];
            const shape s = {d[0], d[1], d[2], d[3], t & 1, t & 2};
            const size_t n = (size_t)((s.batches ? s.batches : 1) * s.m * s.n);
            check_product(strict, multiply, &s, n, 1);
        }
}

static void products_are_those_of_ref(void **state) {
    (void)state;
    check_products(true);
}
static void products_in_tf32_are_nearly(void **state) {
    (void)state;
    check_products(false);
}

static n2_node affine_map(problem *p, const void *arg) {
    const shape *s = arg;
    const n2_node x = numbers(p, "x", n2_dims(s->m, s->k)),
                  w = numbers(p, "w", n2_dims(s->n, s->k));
    return n2g_linear(p->graph, x, w, numbers(p, "c", n2_dims(s->n)));
}

static void a_bias_is_added_to_every_row(void **state) {
    (void)state;
    static const shape shapes[] = {{0, 48, 192, 96, false, true}, {0, 33, 135, 47, false, true}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        check_product(i == 0, affine_map, &shapes[i], (size_t)(shapes[i].m * shapes[i].n), 1);
}

/* Rows that go tile by tile: the second tile adds to what the first made. */
static n2_node sum_of_tiles(problem *p, const void *arg) {
    (void)arg;
    const n2_node x = n2g_tanh(p->graph, numbers(p, "x", n2_dims(40000, 3)));
    return n2g_matmul(p->graph, x, n2g_sin(p->graph, numbers(p, "y", n2_dims(40000, 130))), true,
                      false);
}

static void tiles_are_added_up(void **state) {
    (void)state;
    check_product(true, sum_of_tiles, NULL, 3 * 130, 2);
}

/* A product that the emulated library declines, in the middle of others that it does not. */
static n2_node declined(problem *p, const void *arg) {
    (void)arg;
    const n2_node x = numbers(p, "x", n2_dims(13, 200)), w = numbers(p, "w", n2_dims(200, 200));
    const n2_node y = n2g_matmul(p->graph, w, w, false, false);
    return n2g_matmul(p->graph, x, n2g_tanh(p->graph, y), false, true);
}

static void what_the_library_declines_is_ours(void **state) {
    (void)state;
    check_product(true, declined, NULL, 13 * 200, 1);
}

/* A long inner axis, few numbers, and a gate and a sum on the way out: ours, in slices. */
static n2_node long_product(problem *p, const void *arg) {
    n2_graph *g = p->graph;
    (void)arg;
    const n2_node x = n2g_tanh(g, numbers(p, "x", n2_dims(30, 5000)));
    const n2_node gate = n2g_tanh(g, numbers(p, "g", n2_dims(30, 8)));
    const n2_node y = n2g_matmul(g, x, numbers(p, "w", n2_dims(5000, 8)), false, false);
    return n2g_add(g, n2_build_binary(g, N2_OP_lrelu_grad, gate, y, 0.2), gate);
}

static void long_products_are_cut_into_slices(void **state) {
    (void)state;
    const n2_backend *cuda = open_products_or_skip(true);
    n2_cuda_use_library(cuda, N2_LIBRARY_OFF);
    check_output(cuda, 1e-5, long_product, NULL, 30 * 8, 0);
    n2_cuda_use_library(cuda, N2_LIBRARY_ALWAYS);
}

/* ---- networks ---------------------------------------------------------------- */

enum { WIDTH = 144, ROWS = 40 }; /* wider than what is fused */

/* Two residual blocks: on the way back there are gates and sums after products. */
static n2_node network_loss(problem *p, n2_node w[4]) {
    n2_graph *g = p->graph;
    n2_node h = numbers(p, "x", n2_dims(ROWS, WIDTH));
    for (int k = 0; k < 4; k++) {
        const char name[2] = {(char)('p' + k), 0}, bias[2] = {(char)('B' + k), 0};
        w[k] = numbers(p, name, n2_dims(WIDTH, WIDTH));
        const n2_node c = numbers(p, bias, n2_dims(WIDTH)), in = n2g_affine(g, h, 0.1, 0);
        h = n2g_add(g, h, n2g_lrelu(g, n2g_linear(g, in, w[k], c), 0.2));
    }
    return n2g_total(g, n2g_mul(g, h, h));
}

static n2_node first_gradient(problem *p, const void *arg) {
    n2_node w[4], d;
    const n2_node loss = network_loss(p, w);
    (void)arg;
    n2g_grad(p->graph, loss, w, 1, &d);
    return d;
}

static void gradients_of_a_wide_network(void **state) {
    (void)state;
    check_product(true, first_gradient, NULL, WIDTH * WIDTH, 8);
}

/* Training of a wide network, with clipping and Adam. */
static n2_node training(problem *p, const void *arg) {
    n2_graph *g = p->graph;
    const double *rate = arg;
    n2_parameters q = n2_parameters_new(p->store, 3);
    n2_tensor *w[3];
    n2_node h = n2g_randn(g, n2_dims(ROWS, 24));
    const n2_node target = n2g_tanh(g, n2g_sum(g, h, n2_axis(1)));
    for (int k = 0; k < 3; k++) {
        const char name[2] = {(char)('u' + k), 0};
        const int64_t in = k == 0 ? 24 : WIDTH;
        w[k] = n2_parameter(&q, name, k == 2 ? n2_dims(1, in) : n2_dims(WIDTH, in), 1);
        h = n2g_matmul(g, h, n2g_read(g, w[k]), false, true);
        if (k < 2) h = n2g_lrelu(g, h, 0.1);
    }
    const n2_node error = n2g_sub(g, h, target);
    const n2_node loss = n2g_total(g, n2g_mul(g, error, error));
    n2_minimise(g, &(n2_optimiser){.adam = {0.9, 0.999, 1e-8, 0}, .rate = *rate, .clip = 1}, "adam",
                &q, loss, NULL);
    return loss;
}

static void training_goes_as_without_the_library(void **state) {
    (void)state;
    const double rate = 1e-3;
    const n2_backend *cuda = open_products_or_skip(true);
    problem a = start(cuda, training, &rate), b = start(cuda, training, &rate);
    run(&a, 1);
    const size_t calls = n2_cuda_library_calls(cuda);
    n2_cuda_use_library(cuda, N2_LIBRARY_OFF);
    run(&b, 1);
    assert_int_equal(n2_cuda_library_calls(cuda), calls);
    for (int k = 0; k < 4; k++) {
        run(&a, 9); /* one by one, and eight to a graph */
        run(&b, 9);
        assert_close(n2_plan_scalar(a.plan, 0), n2_plan_scalar(b.plan, 0), 1e-3, 0);
    }
    stop(&a);
    stop(&b);
}

static void the_same_seed_gives_the_same_bytes(void **state) {
    (void)state;
    const double rate = 1e-2;
    const n2_backend *cuda = open_products_or_skip(false);
    problem a = start(cuda, training, &rate), b = start(cuda, training, &rate);
    run(&a, 20);
    for (int k = 0; k < 20; k++) run(&b, 1);
    assert_same_tensors(a.store, b.store);
    stop(&a);
    stop(&b);
}

static void a_run_that_goes_bad_changes_nothing(void **state) {
    (void)state;
    const double rate = 1e-2;
    const n2_backend *cuda = open_products_or_skip(true);
    problem p = start(cuda, training, &rate);
    n2_tensor *last = n2_store_find(p.store, "v"), *first = n2_store_find(p.store, "u");
    run(&p, 3);
    double *bad = values_of(p.store, last), *before = values_of(p.store, first);
    bad[7] = (double)INFINITY;
    n2_tensor_set(p.store, last, bad);
    assert_int_equal(n2_plan_run_many(p.plan, 10), N2CE_ENAN);
    assert_int_equal(n2_plan_runs(p.plan), 3);
    double *after = values_of(p.store, first);
    assert_memory_equal(before, after, (size_t)n2_elements(first->shape) * sizeof *before);
    free(bad);
    free(before);
    free(after);
    stop(&p);
}

/* ---- which products go there -------------------------------------------------- */

static size_t calls_of(const n2_backend *cuda, n2_library_use use, const shape *s) {
    const size_t before = n2_cuda_library_calls(cuda);
    n2_cuda_use_library(cuda, use);
    problem p = start(cuda, multiply, s);
    run(&p, 1);
    stop(&p);
    n2_cuda_use_library(cuda, N2_LIBRARY_ALWAYS);
    return n2_cuda_library_calls(cuda) - before;
}

static void small_products_stay_ours(void **state) {
    (void)state;
    const shape small = {0, 20, 140, 30, false, false}, large = {0, 768, 768, 768, false, false};
    const n2_backend *cuda = open_products_or_skip(false);
    const bool emulated = strncmp(n2_cuda_name(cuda), "emulated", 8) == 0;
    const shape some = {0, 140, 140, 140, false, false};
    assert_int_equal(calls_of(cuda, N2_LIBRARY_AUTO, &small), 0);
    assert_int_equal(calls_of(cuda, N2_LIBRARY_ALWAYS, &small), 1);
    assert_int_equal(calls_of(cuda, N2_LIBRARY_AUTO, emulated ? &some : &large), 1);
    assert_int_equal(calls_of(cuda, N2_LIBRARY_OFF, emulated ? &some : &large), 0);
}

int main(void) {
    open_products_or_skip(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_ref),
        cmocka_unit_test(products_in_tf32_are_nearly),
        cmocka_unit_test(a_bias_is_added_to_every_row),
        cmocka_unit_test(tiles_are_added_up),
        cmocka_unit_test(what_the_library_declines_is_ours),
        cmocka_unit_test(long_products_are_cut_into_slices),
        cmocka_unit_test(gradients_of_a_wide_network),
        cmocka_unit_test(training_goes_as_without_the_library),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(a_run_that_goes_bad_changes_nothing),
        cmocka_unit_test(small_products_stay_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
