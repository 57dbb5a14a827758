/* Convolutions by a vendor's library, captured among our own jobs: the same numbers as ref, the
 * same bytes every time, kernels turned over as often as they change. */
#define _POSIX_C_SOURCE 200809L
#include "library_problem.h"
#include "stores.h"

#include "nn/nn.h"

static const n2_backend *open_convolutions_or_skip(bool strict) {
    return open_library_or_skip(N2_OP_conv2d, (n2_precision){.strict = strict});
}

/* ---- one op ------------------------------------------------------------------ */

typedef struct shape {
    int64_t n, h, w, c_in, rows, columns, c_out;
    n2_window v;
} shape;

static const shape shapes[] = {
    {2, 12, 10, 16, 3, 3, 32, {1, 1, 1, 1, 1, 1}}, {2, 9, 11, 3, 3, 3, 5, {2, 2, 1, 1, 1, 1}},
    {3, 8, 8, 8, 4, 4, 16, {2, 2, 1, 1, 1, 1}},    {2, 7, 7, 4, 3, 3, 6, {2, 2, 0, 0, 0, 0}},
    {3, 1, 1, 24, 3, 3, 8, {1, 1, 1, 1, 1, 1}},    {2, 6, 5, 1, 3, 2, 1, {1, 1, 1, 0, 0, 1}},
    {2, 8, 9, 7, 2, 3, 3, {3, 2, 0, 2, 1, 0}},     {2, 5, 6, 5, 3, 3, 4, {1, 1, 1, 1, 1, 1}},
    {1, 5, 4, 40, 4, 4, 33, {1, 1, 0, 0, 0, 0}},   {2, 6, 6, 16, 1, 1, 24, {1, 1, 0, 0, 0, 0}},
};

static int64_t steps(int64_t pixels, int64_t window, int64_t stride) {
    return (pixels - window) / stride + 1;
}

static n2_shape output_of_shape(const shape *s) {
    return n2_dims(s->n, steps(s->h + s->v.top + s->v.bottom, s->rows, s->v.stride_y),
                   steps(s->w + s->v.left + s->v.right, s->columns, s->v.stride_x), s->c_out);
}

/* Made by an op, so that they may lie in memory in 16 bits. */
static n2_node pictures(problem *p, const shape *s) {
    return n2g_tanh(p->graph, numbers(p, "x", n2_dims(s->n, s->h, s->w, s->c_in)));
}
static n2_node gradient(problem *p, const shape *s) {
    return n2g_tanh(p->graph, numbers(p, "d", output_of_shape(s)));
}
static n2_node kernel(problem *p, const shape *s) {
    return numbers(p, "k", n2_dims(s->rows, s->columns, s->c_in, s->c_out));
}

static n2_node forward(problem *p, const void *arg) {
    const shape *s = arg;
    return n2g_conv2d(p->graph, pictures(p, s), kernel(p, s), s->v);
}

static n2_node by_input(problem *p, const void *arg) {
    const shape *s = arg;
    return n2g_conv2d_input(p->graph, gradient(p, s), kernel(p, s), s->h, s->w, s->v);
}

static n2_node by_weight(problem *p, const void *arg) {
    const shape *s = arg;
    return n2g_conv2d_weight(p->graph, pictures(p, s), gradient(p, s), s->rows, s->columns, s->v);
}

static void check_shape(const n2_backend *cuda, double close, const shape *s) {
    const size_t x = (size_t)(s->n * s->h * s->w * s->c_in);
    const size_t k = (size_t)(s->rows * s->columns * s->c_in * s->c_out);
    /* whatever the library has nothing for is ours */
    check_output(cuda, close, forward, s, (size_t)n2_elements(output_of_shape(s)), 0);
    check_output(cuda, close, by_input, s, x, 0);
    check_output(cuda, close, by_weight, s, k, 0);
}

static void check_shapes(bool strict) {
    const n2_backend *cuda = open_convolutions_or_skip(strict);
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        check_shape(cuda, strict ? 1e-5 : 4e-3, &shapes[i]);
}

static void convolutions_are_those_of_ref(void **state) {
    (void)state;
    check_shapes(true);
}
static void convolutions_in_tf32_are_nearly(void **state) {
    (void)state;
    check_shapes(false);
}

/* Few channels on one side, and a multiple of 64 on the other. */
static void check_few_channels(const n2_backend *cuda, double close) {
    static const shape some[] = {
        {3, 9, 7, 3, 3, 3, 64, {1, 1, 1, 1, 1, 1}},   {2, 9, 7, 64, 3, 3, 3, {1, 1, 1, 1, 1, 1}},
        {2, 20, 6, 3, 4, 4, 128, {2, 2, 1, 1, 1, 1}}, {2, 7, 5, 1, 3, 3, 256, {1, 1, 1, 1, 1, 1}},
        {2, 19, 9, 256, 3, 3, 1, {1, 1, 1, 1, 1, 1}}, {1, 6, 8, 4, 2, 3, 64, {3, 2, 0, 2, 1, 0}},
        {2, 6, 5, 64, 3, 4, 4, {1, 1, 0, 1, 3, 0}},   {1, 1, 1, 2, 3, 3, 128, {1, 1, 1, 1, 1, 1}},
        {300, 3, 3, 3, 3, 3, 64, {1, 1, 0, 0, 1, 1}},
    };
    const size_t before = n2_cuda_library_calls(cuda);
    for (size_t i = 0; i < COUNT_OF(some); i++) check_shape(cuda, close, &some[i]);
    assert_int_equal(n2_cuda_library_calls(cuda), before);
}

static void few_channels_are_ours(void **state) {
    (void)state;
    check_few_channels(open_convolutions_or_skip(false), 4e-3);
}

static void convolutions_in_16_bits_are_nearly(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        const n2_precision precision = {.narrow = k ? N2_F16 : N2_BF16};
        const n2_backend *cuda = open_library_or_skip(N2_OP_conv2d, precision);
        const double close = k ? 4e-3 : 2e-2;
        for (size_t i = 0; i < COUNT_OF(shapes); i++) check_shape(cuda, close, &shapes[i]);
        check_few_channels(cuda, close);
    }
}

static void usual_shapes_go_to_the_library(void **state) {
    (void)state;
    const n2_backend *cuda = open_convolutions_or_skip(false);
    const shape *s = &shapes[0];
    check_output(cuda, 4e-3, forward, s, (size_t)n2_elements(output_of_shape(s)), 1);
    check_output(cuda, 4e-3, by_input, s, (size_t)(s->n * s->h * s->w * s->c_in), 1);
    check_output(cuda, 4e-3, by_weight, s, (size_t)(s->rows * s->columns * s->c_in * s->c_out), 1);
}

/* ---- a network --------------------------------------------------------------- */

enum { PICTURES = 6, SIDE = 8, CHANNELS = 8 };

/* Three layers with kernels that are read twice forward, and changed before the last reads them. */
static n2_node training(problem *p, const void *arg) {
    n2_graph *g = p->graph;
    const n2_window same = {1, 1, 1, 1, 1, 1}, half = {2, 2, 1, 1, 1, 1};
    n2_parameters q = n2_parameters_new(p->store, 2);
    n2_tensor *w[2];
    w[0] = n2_parameter(&q, "u", n2_dims(3, 3, CHANNELS, CHANNELS), 1);
    w[1] = n2_parameter(&q, "v", n2_dims(4, 4, CHANNELS, 1), 1);
    const n2_node x = n2g_randn(g, n2_dims(PICTURES, SIDE, SIDE, CHANNELS));
    n2_node h = n2g_conv2d(g, x, n2g_read(g, w[0]), same);
    h = n2g_conv2d(g, n2g_tanh(g, h), n2g_read(g, w[0]), same);
    h = n2g_conv2d(g, n2g_tanh(g, h), n2g_read(g, w[1]), half);
    const n2_node loss = n2g_total(g, n2g_mul(g, h, h));
    const double *rate = arg;
    n2_minimise(g, &(n2_optimiser){.adam = {0.9, 0.999, 1e-8, 0}, .rate = *rate, .clip = 1}, "adam",
                &q, loss, NULL);
    h = n2g_conv2d(g, x, n2g_read(g, w[0]), same); /* as it is now */
    return n2g_add(g, loss, n2g_total(g, n2g_mul(g, h, h)));
}

static void training_goes_as_on_ref(void **state) {
    (void)state;
    const double rate = 1e-2;
    const n2_backend *cuda = open_convolutions_or_skip(true);
    const size_t before = n2_cuda_library_calls(cuda);
    problem a = start(cuda, training, &rate), b = start(n2_ref_backend(), training, &rate);
    run(&a, 1);
    run(&b, 1);
    assert_true(n2_cuda_library_calls(cuda) - before >= 6);
    for (int k = 0; k < 3; k++) {
        assert_close(n2_plan_scalar(a.plan, 0), n2_plan_scalar(b.plan, 0), 1e-3, 0);
        run(&a, 9); /* one by one, and eight to a graph */
        run(&b, 9);
    }
    stop(&a);
    stop(&b);
}

static void the_same_seed_gives_the_same_bytes(void **state) {
    (void)state;
    const double rate = 1e-2;
    const n2_backend *cuda = open_convolutions_or_skip(false);
    problem a = start(cuda, training, &rate), b = start(cuda, training, &rate);
    run(&a, 20);
    for (int k = 0; k < 20; k++) run(&b, 1);
    assert_same_tensors(a.store, b.store);
    stop(&a);
    stop(&b);
}

/* Pictures that go tile by tile: the second tile's gradient is added to the first's. */
static n2_node sum_of_tiles(problem *p, const void *arg) {
    n2_graph *g = p->graph;
    (void)arg;
    const n2_node x = n2g_tanh(g, numbers(p, "x", n2_dims(40000, 3, 2, 2)));
    const n2_node dy = n2g_sin(g, numbers(p, "y", n2_dims(40000, 2, 1, 3)));
    return n2g_conv2d_weight(g, x, dy, 2, 2, (n2_window){1, 1, 0, 0, 0, 0});
}

static void tiles_are_added_up(void **state) {
    (void)state;
    check_output(open_convolutions_or_skip(true), 1e-5, sum_of_tiles, NULL, 2 * 2 * 2 * 3, 2);
}

static void small_convolutions_stay_ours(void **state) {
    (void)state;
    const n2_backend *cuda = open_convolutions_or_skip(true);
    const size_t before = n2_cuda_library_calls(cuda);
    n2_cuda_use_library(cuda, N2_LIBRARY_AUTO);
    free(output_of(cuda, forward, &shapes[5], (size_t)n2_elements(output_of_shape(&shapes[5]))));
    assert_int_equal(n2_cuda_library_calls(cuda), before);
    n2_cuda_use_library(cuda, N2_LIBRARY_ALWAYS);
}

int main(void) {
    setenv("N2CE_CUDA_WIDE", "always", 1); /* small ones too */
    open_convolutions_or_skip(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_those_of_ref),
        cmocka_unit_test(convolutions_in_tf32_are_nearly),
        cmocka_unit_test(usual_shapes_go_to_the_library),
        cmocka_unit_test(few_channels_are_ours),
        cmocka_unit_test(convolutions_in_16_bits_are_nearly),
        cmocka_unit_test(training_goes_as_on_ref),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(tiles_are_added_up),
        cmocka_unit_test(small_convolutions_stay_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
