/* Facts about the ops, one row of a table each: the gradient is the derivative, the gradient's
 * gradient too, cpu computes what ref computes, and threads change nothing.
 *
 * The environment variable N2CE_ISA (portable, avx2, avx512) chooses the kernels under test.
 * Derivatives are checked on ref, which is the same for all of them: only when it is not set.
 * N2CE_TEST_DEVICE puts a GPU in the processor's place: fast_backend.h. */
#include "op_check.h"
#include "picture_facts.h"
#include "ref/ref.h"

/* ---- random numbers -------------------------------------------------------- */

enum { DRAWS = 7000, SIDES = 10, N_RANDOM = 7 };

static bench random_bench(const n2_backend *backend, n2_node outputs[N_RANDOM]) {
    bench b = open_bench(backend);
    outputs[0] = n2g_randn(b.g, n2_dims(1000, 7));
    outputs[1] = n2g_randu(b.g, n2_dims(1000, 7));
    outputs[2] = n2g_randint(b.g, n2_dims(DRAWS), SIDES);
    outputs[3] = n2g_permutation(b.g, 1000);
    outputs[4] = n2g_randn(b.g, n2_scalar_shape());
    outputs[5] = n2g_randn(b.g, n2_dims(5, 3));
    outputs[6] = n2g_randu(b.g, n2_dims(130, 2, 1, 3));
    compile(&b, outputs, N_RANDOM);
    n2_plan_seed(b.plan, 99, 0);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    return b;
}

/* All draws of all outputs, one after another; the caller frees. */
static double *draws_of(const bench *b, const n2_node *outputs, size_t *n) {
    double *all = doubles(40000);
    *n = 0;
    for (size_t k = 0; k < N_RANDOM; k++) {
        n2_plan_get(b->plan, k, all + *n);
        *n += (size_t)n2_elements(n2_shape_at(b->g, outputs[k]));
    }
    return all;
}

/* Draws are the same numbers on every backend, to the bit. */
static void draws_are_equal_on_ref_and_cpu(void **state) {
    (void)state;
    n2_node a_nodes[N_RANDOM], b_nodes[N_RANDOM];
    bench a = random_bench(n2_ref_backend(), a_nodes), b = random_bench(fast_backend(), b_nodes);
    size_t n_a, n_b;
    double *x = draws_of(&a, a_nodes, &n_a), *y = draws_of(&b, b_nodes, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(x, y, n_a * sizeof *x);
    free(x);
    free(y);
    close_bench(&a);
    close_bench(&b);
}

/* Every run draws other numbers; the same seed and count of runs draw the same. */
static void draws_change_from_run_to_run_and_repeat_after_a_seed(void **state) {
    (void)state;
    n2_node nodes[N_RANDOM];
    bench b = random_bench(fast_backend(), nodes);
    size_t n;
    double *first = draws_of(&b, nodes, &n);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    assert_int_equal(n2_plan_runs(b.plan), 2);
    double *second = draws_of(&b, nodes, &n);
    size_t same = 0;
    for (size_t i = 0; i < DRAWS; i++) same += first[i] == second[i];
    assert_true(same < 10);
    n2_plan_seed(b.plan, 99, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double *again = draws_of(&b, nodes, &n);
    assert_memory_equal(second, again, n * sizeof *again);
    n2_plan_seed(b.plan, 100, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double *other = draws_of(&b, nodes, &n);
    assert_memory_not_equal(again, other, DRAWS * sizeof *again);
    free(first);
    free(second);
    free(again);
    free(other);
    close_bench(&b);
}

/* Two nodes with the same arguments are two streams. */
static void every_random_node_draws_for_itself(void **state) {
    (void)state;
    n2_node nodes[N_RANDOM];
    bench b = random_bench(fast_backend(), nodes);
    double first[15], scalar;
    n2_plan_get(b.plan, 5, first);
    n2_plan_get(b.plan, 4, &scalar);
    assert_true(first[0] != scalar);
    close_bench(&b);
}

/* Integers are whole, in range, and about equally often; chi-square of 9 degrees. */
static void integers_are_uniform(void **state) {
    (void)state;
    n2_node nodes[N_RANDOM];
    bench b = random_bench(fast_backend(), nodes);
    static double draws[DRAWS];
    double count[SIDES] = {0}, chi2 = 0;
    n2_plan_get(b.plan, 2, draws);
    for (size_t i = 0; i < DRAWS; i++) {
        assert_true(draws[i] >= 0 && draws[i] < SIDES && draws[i] == floor(draws[i]));
        count[(size_t)draws[i]]++;
    }
    const double expected = (double)DRAWS / SIDES;
    for (size_t k = 0; k < SIDES; k++)
        chi2 += (count[k] - expected) * (count[k] - expected) / expected;
    assert_true(chi2 < 27.9); /* exceeded once in a thousand */
    close_bench(&b);
}

/* A permutation holds every number once, and is not the identity. */
static void permutations_hold_every_number_once(void **state) {
    (void)state;
    n2_node nodes[N_RANDOM];
    bench b = random_bench(fast_backend(), nodes);
    double order[1000];
    bool found[1000] = {false};
    size_t in_place = 0;
    n2_plan_get(b.plan, 3, order);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(order[i] >= 0 && order[i] < 1000 && !found[(size_t)order[i]]);
        found[(size_t)order[i]] = true;
        in_place += order[i] == (double)i;
    }
    assert_true(in_place < 12); /* Poisson with mean 1 */
    close_bench(&b);
}

/* Row numbers divide and wrap; a wrong row number stays inside the table. */
static void row_numbers_are_what_they_say(void **state) {
    (void)state;
    bench b = open_bench(fast_backend());
    n2_tensor *t = n2_store_add(b.store, "t", n2_dims(3)),
              *i = n2_store_add(b.store, "i", n2_dims(4));
    n2_tensor_set(b.store, t, (double[]){10, 20, 30});
    n2_tensor_set(b.store, i, (double[]){-7, 1, 99, (double)NAN});
    const n2_node outputs[] = {n2g_row_index(b.g, 100, 3, 5),
                               n2g_gather(b.g, n2g_read(b.g, t), n2g_read(b.g, i))};
    compile(&b, outputs, 2);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double index[100], picked[4];
    n2_plan_get(b.plan, 0, index);
    n2_plan_get(b.plan, 1, picked);
    for (int k = 0; k < 100; k++) assert_true(index[k] == k / 3 % 5);
    assert_memory_equal(picked, ((double[]){10, 20, 30, 10}), sizeof picked);
    close_bench(&b);
}

/* ---- meaning --------------------------------------------------------------- */

BUILD(tiled, n2g_tile_rows(g, x[0], 2))
BUILD(repeated, n2g_repeat_rows(g, x[0], 2))
BUILD(padded, n2_build_pad(g, x[0], 1, 1, 4))
BUILD(scattered, n2g_scatter_add(g, x[0], n2g_row_index(g, 3, 2, 3), 3))
BUILD(half, n2g_affine(g, x[0], 0.5, 3))
BUILD(gelu_of_quarter, n2g_gelu(g, n2g_scale(g, x[0], 0.25)))
BUILD(stored, n2g_cast(g, n2g_cast(g, n2g_affine(g, x[0], 1, 1e-6), N2_BF16), N2_NUMBER))

/* As pictures of 3 x 2, with a line of zeros above; the first four numbers are the kernel. */
static const n2_window line_above = {.stride_y = 1, .stride_x = 1, .top = 1};
static n2_node first_four(n2_graph *g, n2_node x) {
    return n2g_reshape(g, n2g_slice(g, x, 0, 0, 2), n2_dims(2, 2, 1, 1));
}
BUILD(convolved,
      n2g_conv2d(g, n2g_reshape(g, x[0], n2_dims(1, 3, 2, 1)), first_four(g, x[0]), line_above))
/* As pictures of 2 x 3, with a column of zeros on the left, going two columns at a time. */
static const n2_window every_other = {.stride_y = 1, .stride_x = 2, .left = 1};
BUILD(strode,
      n2g_conv2d(g, n2g_reshape(g, x[0], n2_dims(1, 2, 3, 1)), first_four(g, x[0]), every_other))
/* Two pixels of y, which put the kernel at the first two places going down. */
BUILD(deconvolved,
      n2g_conv2d_input(g, n2g_reshape(g, n2g_slice(g, x[0], 0, 0, 1), n2_dims(1, 2, 1, 1)),
                       first_four(g, x[0]), 2, 2, line_above))
BUILD(correlated, n2g_conv2d_weight(g, n2g_reshape(g, x[0], n2_dims(1, 3, 2, 1)),
                                    n2g_reshape(g, x[0], n2_dims(1, 3, 2, 1)), 2, 1, line_above))

#define CHECK(NAME, ...)                                                                 \
    check_values(backend_at(k), build_##NAME, x, n2_dims(3, 2), (double[]){__VA_ARGS__}, \
                 COUNT_OF(((double[]){__VA_ARGS__})))

static void ops_mean_what_their_names_say(void **state) {
    (void)state;
    static const double x[] = {1, 2, 3, 4, 9, -6};
    for (int k = 0; k < 2; k++) {
        CHECK(tiled, 1, 2, 3, 4, 9, -6, 1, 2, 3, 4, 9, -6);
        CHECK(repeated, 1, 2, 1, 2, 3, 4, 3, 4, 9, -6, 9, -6);
        CHECK(padded, 0, 1, 2, 0, 0, 3, 4, 0, 0, 9, -6, 0);
        CHECK(scattered, 4, 6, 9, -6, 0, 0);
        CHECK(convolved, 11, 30, 14);
        CHECK(strode, 18, 11);
        CHECK(deconvolved, 5, 8, 6, 8);
        CHECK(correlated, 1 * 3 + 2 * 4 + 3 * 9 - 4 * 6, 1 + 4 + 9 + 16 + 81 + 36);
        CHECK(mean_rows, 13 / 3.0, 0);
        CHECK(mean_all, 13 / 6.0);
        CHECK(sum_last, 3, 7, 3);
        CHECK(amax_last, 2, 4, 9);
        CHECK(median, 2.5);
        CHECK(positive, 1, 1, 1, 1, 1, 0);
        CHECK(stored, 1, 2, 3, 4, 9, -6);
        CHECK(gelu_of_quarter, 0.1496765814, 0.3457312306, 0.5800294857, 0.8413447461, 2.222494937,
              -0.1002108019);
        CHECK(half, 3.5, 4, 4.5, 5, 7.5, 0);
        CHECK(transpose_01, 1, 3, 9, 2, 4, -6);
        check_values(backend_at(k), build_median, x, n2_dims(3), (double[]){2}, 1);
        check_values(backend_at(k), build_median, x + 2, n2_dims(4), (double[]){3.5}, 1);
        check_values(backend_at(k), build_median_above, x, n2_dims(2, 2), (double[]){2}, 1);
    }
}

/* The loss as an op is the loss of the public header, for every magnitude. */
static void the_loss_is_that_of_the_header(void **state) {
    (void)state;
    build_fn *const builds[] = {build_n2ce_loss_1, build_n2ce_loss_100, build_n2ce_loss_1e9,
                                build_nwj_loss};
    static const double magnitudes[] = {1, 100, 1e9, 1}, f[] = {-3, 0.5, 8, -1, 2};
    for (size_t i = 0; i < 8; i++) {
        bench b = open_bench(backend_at(i % 2 != 0));
        n2_tensor *num = n2_store_add(b.store, "num", n2_dims(3));
        n2_tensor *den = n2_store_add(b.store, "den", n2_dims(2));
        n2_tensor_set(b.store, num, f);
        n2_tensor_set(b.store, den, f + 3);
        const n2_node x[] = {n2g_read(b.g, num), n2g_read(b.g, den)}, y = builds[i / 2](b.g, x);
        compile(&b, &y, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2ce_objective objective = N2CE_OBJECTIVE_INIT;
        objective.magnitude = magnitudes[i / 2];
        if (i / 2 == 3) objective.family = N2CE_FAMILY_NWJ;
        double expected, grad_num[3], grad_den[2];
        const n2ce_logits_f64 all = {f, 3, f + 3, 2, grad_num, grad_den};
        assert_int_equal(n2ce_loss_f64(contexts[1], &objective, &all, &expected, NULL), N2CE_OK);
        assert_close(n2_plan_scalar(b.plan, 0), expected, i % 2 ? 1e-6 : 1e-14, 0);
        close_bench(&b);
    }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

/* On cpu, functions are right to a few roundings over the whole range of float; below 2e-38
 * results may be zero, and what is not finite stays so. */
static void functions_are_right_everywhere(void **state) {
    (void)state;
    static const struct {
        build_fn *make;
        double (*exact)(double);
    } functions[] = {{build_exp, exp},           {build_tanh, tanh}, {build_sigmoid, sigmoid},
                     {build_softplus, softplus}, {build_log, log},   {build_sqrt, sqrt}};
    static const double specials[] = {0,    1e-30, 1e-4,  0.149, 0.151, 16.6, 79.9, 80.1,
                                      87.1, 88.7,  88.72, 88.73, 88.8,  104,  1e5,  1e38};
    enum { SWEEP = 2000, N_SPECIAL = COUNT_OF(specials), N = SWEEP + 2 * N_SPECIAL + 3 };
    static double x[N], y[N];
    for (size_t i = 0; i < SWEEP; i++) x[i] = (double)(float)(-100 + 0.1 * (double)i);
    for (size_t i = 0; i < N_SPECIAL; i++) {
        x[SWEEP + 2 * i] = (double)(float)specials[i];
        x[SWEEP + 2 * i + 1] = -(double)(float)specials[i];
    }
    x[N - 3] = (double)INFINITY;
    x[N - 2] = -(double)INFINITY;
    x[N - 1] = (double)NAN;
    for (size_t f = 0; f < COUNT_OF(functions); f++) {
        bench b = open_bench(fast_backend());
        n2_tensor *t = n2_store_add(b.store, "x", n2_dims(N));
        n2_tensor_set(b.store, t, x);
        const n2_node in = n2g_read(b.g, t), out = functions[f].make(b.g, &in);
        compile(&b, &out, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2_plan_get(b.plan, 0, y);
        for (size_t i = 0; i < N; i++) {
            const double exact = (double)(float)functions[f].exact(x[i]);
            if (!is_close(y[i], exact, 1e-6, 2e-38)) print_error("function %zu of %g\n", f, x[i]);
            assert_close(y[i], exact, 1e-6, 2e-38);
        }
        close_bench(&b);
    }
}

/* ---- updates --------------------------------------------------------------- */

static double tensor_scalar(const bench *b, const n2_tensor *t) {
    double value;
    n2_tensor_get(b->store, t, &value);
    return value;
}

/* What is read after an update is the new value, in the same run and in the next. */
static void a_read_after_an_update_sees_the_new_value(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_tensor *t = n2_store_add(b.store, "t", n2_scalar_shape());
        n2_tensor_set(b.store, t, (double[]){1});
        const n2_node before = n2g_scale(b.g, n2g_read(b.g, t), 10);
        n2g_assign(b.g, t, n2g_affine(b.g, n2g_read(b.g, t), 1, 1));
        const n2_node between = n2g_scale(b.g, n2g_read(b.g, t), 10);
        n2g_assign(b.g, t, n2g_affine(b.g, n2g_read(b.g, t), 2, 0));
        const n2_node outputs[] = {before, between, n2g_read(b.g, t)};
        compile(&b, outputs, 3);
        double expected = 1;
        for (int run = 0; run < 3; run++) {
            assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
            assert_close(n2_plan_scalar(b.plan, 0), 10 * expected, 0, 0);
            assert_close(n2_plan_scalar(b.plan, 1), 10 * (expected + 1), 0, 0);
            expected = 2 * (expected + 1);
            assert_close(n2_plan_scalar(b.plan, 2), expected, 0, 0);
            assert_close(tensor_scalar(&b, t), expected, 0, 0);
        }
        close_bench(&b);
    }
}

/* Readers by rows see the old rows, all of them, before the update overwrites any; even if the new
 * value was there before they began. */
static void readers_by_rows_are_waited_for(void **state) {
    (void)state;
    bench b = open_bench(fast_backend());
    n2_tensor *t = n2_store_add(b.store, "t", n2_dims(1000, 3));
    n2_tensor *other = n2_store_add(b.store, "other", n2_dims(1000, 3));
    fill(b.store, t, 5, -2, 2, 0, false);
    fill(b.store, other, 6, -2, 2, 0, false);
    double before[3000], next[3000], doubled[3000], after[3000];
    n2_tensor_get(b.store, t, before);
    n2_tensor_get(b.store, other, next);
    const n2_node output = n2g_scale(b.g, n2g_read(b.g, t), 2);
    n2g_assign(b.g, t, n2g_read(b.g, other));
    compile(&b, &output, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, doubled);
    n2_tensor_get(b.store, t, after);
    for (size_t i = 0; i < 3000; i++) assert_close(doubled[i], 2 * before[i], 0, 0);
    assert_memory_equal(after, next, sizeof after);
    close_bench(&b);
}

/* The value from before an update cannot be used after it; the message says where and what. */
static void a_stale_read_is_refused(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_tensor *t = n2_store_add(b.store, "weights", n2_dims(3));
        const n2_node old = n2g_read(b.g, t);
        n2g_assign(b.g, t, n2g_exp(b.g, old));
        const n2_node late = n2g_tanh(b.g, old);
        assert_int_equal(n2_graph_status(b.g), N2CE_OK);
        assert_int_equal(n2_plan_compile(b.g, b.backend, &late, 1, &b.plan), N2CE_EINVAL);
        assert_null(b.plan);
        const char *message = n2ce_errmsg(contexts[1]);
        assert_non_null(strstr(message, "tanh"));
        assert_non_null(strstr(message, "weights"));
        assert_non_null(strstr(message, "test_ops.c:"));
        close_bench(&b);
    }
}

/* An output that an update overwrites is refused as well, or is the value it was. */
static void a_stale_output_is_not_the_new_value(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_tensor *t = n2_store_add(b.store, "weights", n2_scalar_shape());
        n2_tensor_set(b.store, t, (double[]){1});
        const n2_node old = n2g_read(b.g, t);
        n2g_assign(b.g, t, n2g_affine(b.g, old, 1, 41));
        const n2ce_status status = n2_plan_compile(b.g, b.backend, &old, 1, &b.plan);
        if (status == N2CE_OK) {
            assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
            assert_close(n2_plan_scalar(b.plan, 0), 1, 0, 0);
        } else {
            assert_int_equal(status, N2CE_EINVAL);
        }
        close_bench(&b);
    }
}

/* An update of no tensor is a mistake, not nothing. */
static void an_update_of_no_tensor_is_a_mistake(void **state) {
    (void)state;
    bench b = open_bench(n2_ref_backend());
    n2g_assign(b.g, NULL, n2g_constant(b.g, 1));
    assert_int_equal(n2_graph_status(b.g), N2CE_EINVAL);
    close_bench(&b);
}

enum { N_ADAM = 33, STEPS = 5 };
static const n2_adam adam_options = {0.9, 0.999, 1e-8, 0.01};
static const double adam_rate = 0.01, adam_factor = 0.5;

/* Minimises sum (p - 1)^2 / 2 by hand; the moving average of p too. */
static void adam_by_hand(double *p, double *m, double *v, double *average) {
    for (int step = 1; step <= STEPS; step++)
        for (size_t i = 0; i < N_ADAM; i++) {
            const double g = (p[i] - 1) * adam_factor;
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            const double mean = m[i] / (1 - pow(0.9, step)), square = v[i] / (1 - pow(0.999, step));
            p[i] -= adam_rate * (mean / (sqrt(square) + 1e-8) + 0.01 * p[i]);
            average[i] = 0.75 * average[i] + 0.25 * p[i];
        }
}

static void compare_tensor(const bench *b, const char *name, const double *expected) {
    double found[N_ADAM];
    n2_tensor_get(b->store, n2_store_find(b->store, name), found);
    const double allowed = b->backend->bytes == 8 ? 1e-13 : 2e-6;
    for (size_t i = 0; i < N_ADAM; i++) assert_close(found[i], expected[i], allowed, allowed / 10);
}

static void build_adam(bench *b) {
    n2_tensor *tensors[3] = {n2_store_add(b->store, "p", n2_dims(N_ADAM)),
                             n2_store_add(b->store, "m", n2_dims(N_ADAM)),
                             n2_store_add(b->store, "v", n2_dims(N_ADAM))};
    n2_tensor *average = n2_store_add(b->store, "average", n2_dims(N_ADAM));
    n2_tensor *step = n2_store_add(b->store, "step", n2_scalar_shape());
    fill(b->store, tensors[0], 3, -2, 2, 0, false);
    const n2_node p = n2g_read(b->g, tensors[0]), error = n2g_affine(b->g, p, 1, -1);
    const n2_node loss = n2g_scale(b->g, n2g_total(b->g, n2g_mul(b->g, error, error)), 0.5);
    n2_node gradient;
    n2g_grad(b->g, loss, &p, 1, &gradient);
    const n2_node count = n2g_assign(b->g, step, n2g_affine(b->g, n2g_read(b->g, step), 1, 1));
    const n2_node moved =
        n2g_adam_update(b->g, &adam_options, tensors, gradient, n2g_constant(b->g, adam_rate),
                        n2g_constant(b->g, adam_factor), count);
    const n2_node kept = n2g_scale(b->g, n2g_read(b->g, average), 0.75);
    n2g_assign(b->g, average, n2g_add(b->g, kept, n2g_scale(b->g, moved, 0.25)));
}

/* Five steps of Adam, with decay and a factor, are the published formula; an exponential average
 * made of assign follows the new values. */
static void adam_is_the_published_formula(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        build_adam(&b);
        double p[N_ADAM], m[N_ADAM] = {0}, v[N_ADAM] = {0}, average[N_ADAM] = {0};
        n2_tensor_get(b.store, n2_store_find(b.store, "p"), p);
        compile(&b, NULL, 0);
        for (int step = 0; step < STEPS; step++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        adam_by_hand(p, m, v, average);
        compare_tensor(&b, "p", p);
        compare_tensor(&b, "m", m);
        compare_tensor(&b, "v", v);
        compare_tensor(&b, "average", average);
        assert_close(tensor_scalar(&b, n2_store_find(b.store, "step")), STEPS, 0, 0);
        close_bench(&b);
    }
}

/* What several workers do at once never overwrites what another still reads. */
static void a_transpose_is_finished_before_its_source_is_updated(void **state) {
    (void)state;
    enum { M = 5, N = 20011 };
    static double before[M * N], turned[N * M];
    problem p = {0};
    assert_int_equal(n2_store_new(contexts[2], sizeof(float), &p.store), N2CE_OK);
    p.g = n2_graph_new(p.store);
    n2_tensor *w[3], *gradient;
    const n2_node old = add_tensor(&p, "p", n2_dims(M, N), &w[0]);
    add_tensor(&p, "m", n2_dims(M, N), &w[1]);
    add_tensor(&p, "v", n2_dims(M, N), &w[2]);
    const n2_node d = add_tensor(&p, "d", n2_dims(M, N), &gradient);
    fill(p.store, gradient, 3, 1, 2, 0, false);
    const n2_node one = n2g_constant(p.g, 1), transposed = n2g_transpose(p.g, old, 0, 1);
    n2g_adam_update(p.g, &adam_options, w, d, one, one, one);
    assert_int_equal(n2_plan_compile(p.g, fast_backend(), &transposed, 1, &p.plan), N2CE_OK);
    for (int run = 0; run < 10; run++) {
        n2_tensor_get(p.store, w[0], before);
        assert_int_equal(n2_plan_run(p.plan), N2CE_OK);
        n2_plan_get(p.plan, 0, turned);
        for (size_t i = 0; i < M * N; i++) assert_true(turned[i % N * M + i / N] == before[i]);
    }
    close_problem(&p);
}

/* ---- all of them ----------------------------------------------------------- */

/* The table above, and the tests below it, leave no op out. */
static void every_op_was_seen(void **state) {
    (void)state;
    for (int op = 0; op < N2_OP_COUNT; op++)
        if (!seen[op]) fail_msg("no row uses the op %s", n2_ops[op]->name);
}

static int open_contexts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(thread_counts); i++) {
        n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
        options.threads = thread_counts[i];
        if (n2ce_ctx_new(&contexts[i], &options) != N2CE_OK) return -1;
    }
    return 0;
}

static int close_contexts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(thread_counts); i++) n2ce_ctx_free(contexts[i]);
    return 0;
}

int main(void) {
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(draws_are_equal_on_ref_and_cpu),
        cmocka_unit_test(draws_change_from_run_to_run_and_repeat_after_a_seed),
        cmocka_unit_test(every_random_node_draws_for_itself),
        cmocka_unit_test(integers_are_uniform),
        cmocka_unit_test(permutations_hold_every_number_once),
        cmocka_unit_test(row_numbers_are_what_they_say),
        cmocka_unit_test(ops_mean_what_their_names_say),
        cmocka_unit_test(pictures_shrink_and_grow),
        cmocka_unit_test(norm_is_its_formula),
        cmocka_unit_test(dropout_keeps_the_mean_and_follows_the_seed),
        cmocka_unit_test(pictures_that_do_not_fit_are_refused),
        cmocka_unit_test(convolutions_that_do_not_fit_are_refused),
        cmocka_unit_test(attention_that_does_not_fit_is_refused),
        cmocka_unit_test(attention_is_right_for_large_scores),
        cmocka_unit_test(the_loss_is_that_of_the_header),
        cmocka_unit_test(functions_are_right_everywhere),
        cmocka_unit_test(a_read_after_an_update_sees_the_new_value),
        cmocka_unit_test(readers_by_rows_are_waited_for),
        cmocka_unit_test(a_stale_read_is_refused),
        cmocka_unit_test(a_stale_output_is_not_the_new_value),
        cmocka_unit_test(an_update_of_no_tensor_is_a_mistake),
        cmocka_unit_test(adam_is_the_published_formula),
        cmocka_unit_test(a_transpose_is_finished_before_its_source_is_updated),
        cmocka_unit_test(every_op_was_seen),
    };
    static struct CMUnitTest tests[COUNT_OF(rows) + COUNT_OF(others)];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        tests[i] = (struct CMUnitTest){rows[i].name, check_row, NULL, after_row, (void *)&rows[i]};
    memcpy(tests + COUNT_OF(rows), others, sizeof others);
    printf("backend: %s\n", fast_backend()->name);
    return _cmocka_run_group_tests("ops", tests, COUNT_OF(tests), open_contexts, close_contexts);
}
