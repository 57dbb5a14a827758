/* Facts about n2ce_engine.h: what a program that knows only the public headers can rely on. */
#include "engine_bench.h"
#include "failing_alloc.h"

#include <stdio.h>
#include <string.h>

static void expect_mistake(bench *b, int line, const char *words) {
    char place[64];
    n2ce_plan *plan = NULL;
    snprintf(place, sizeof place, "test_engine_api.c:%d: ", line);
    assert_int_equal(n2ce_graph_status(b->g), N2CE_EINVAL);
    assert_int_equal(n2ce_plan_compile(b->g, "cpu", NULL, 0, &plan), N2CE_EINVAL);
    assert_null(plan);
    if (strncmp(n2ce_errmsg(b->ctx), place, strlen(place)) != 0 ||
        !strstr(n2ce_errmsg(b->ctx), words))
        fail_msg("\"%s\" is not \"%s...%s...\"", n2ce_errmsg(b->ctx), place, words);
}

/* ---- mistakes -------------------------------------------------------------- */

/* Shapes that do not fit are told with the caller's file and line, and with the shapes; what is
 * built after that changes nothing. */
static void a_mistake_names_the_callers_line(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_node a = n2ce_normal(b.g, n2ce_dims(3, 4)), c = n2ce_normal(b.g, n2ce_dims(5, 6));
    const n2ce_node product = n2ce_matmul(b.g, a, c, false, false);
    const int line = __LINE__ - 1;
    n2ce_exp(b.g, product);
    n2ce_matmul(b.g, c, a, false, false); /* one more, of which nobody hears */
    assert_non_null(n2ce_store_add(b.store, "twice", n2ce_dims(1)));
    assert_null(n2ce_store_add(b.store, "twice", n2ce_dims(1))); /* as of this, when compiling */
    expect_mistake(&b, line, "[3 x 4] times [5 x 6]");
    close_bench(&b);
}

/* So is a node that is none, or of another graph, and a tensor of another store. */
static void strangers_are_refused(void **state) {
    (void)state;
    bench one = open_bench(1), two = open_bench(1);
    n2ce_node x = {0};
    for (int i = 0; i < 100; i++) x = n2ce_normal(one.g, n2ce_dims(2));
    n2ce_exp(two.g, x);
    expect_mistake(&two, __LINE__ - 1, "another graph");
    close_bench(&two);
    two = open_bench(1);
    n2ce_exp(two.g, (n2ce_node){0});
    expect_mistake(&two, __LINE__ - 1, "missing");
    close_bench(&two);
    two = open_bench(1);
    n2ce_read(two.g, n2ce_store_add(one.store, "mine", n2ce_dims(2)));
    expect_mistake(&two, __LINE__ - 1, "\"mine\" belongs to another store");
    close_bench(&two);
    close_bench(&one);
}

/* What could not be made is NULL, and the graph tells why when it is used. */
static void what_failed_is_told_where_it_is_used(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_parameters *p = n2ce_parameters_new(b.store, 1);
    assert_non_null(n2ce_layer_new(p, "one", 2, 3));
    n2ce_layer *again = n2ce_layer_new(p, "one", 2, 3);
    assert_null(again);
    n2ce_layer_apply(b.g, again, n2ce_normal(b.g, n2ce_dims(4, 2)));
    expect_mistake(&b, __LINE__ - 1, "two tensors named \"one.");
    assert_int_equal(n2ce_tensor_set(b.store, NULL, NULL), N2CE_EINVAL);
    close_bench(&b);
}

/* Numbers that cannot be are refused, not computed with. */
static void impossible_numbers_are_refused(void **state) {
    (void)state;
    for (int k = 0; k < 7; k++) {
        bench b = open_bench(1);
        const n2ce_node x = n2ce_normal(b.g, n2ce_dims(4, 3));
        if (k == 0) n2ce_slice(b.g, x, 0, INT64_MAX, 1);
        if (k == 1) n2ce_tile_rows(b.g, x, INT64_MAX / 2);
        if (k == 2) n2ce_repeat_rows(b.g, x, INT64_MAX / 2);
        if (k == 3) n2ce_reshape(b.g, x, n2ce_dims(1LL << 40, 1LL << 40));
        if (k == 4) n2ce_softmax(b.g, x, -1);
        if (k == 5) n2ce_softmax(b.g, x, 40);
        if (k == 6) n2ce_score(b.g, x, NULL, NULL);
        assert_int_equal(n2ce_graph_status(b.g), N2CE_EINVAL);
        close_bench(&b);
    }
    assert_int_equal(n2ce_shape_elements(n2ce_dims(1LL << 40, 1LL << 40)), -1);
}

/* So are NULL and a matrix of another size in place of values, before memory is read. */
static void values_must_be_there(void **state) {
    (void)state;
    bench b = open_bench(1);
    double values[12] = {0};
    n2ce_tensor *t = n2ce_store_add(b.store, "t", n2ce_dims(4, 3));
    const n2ce_matrix none = {.rows = 4, .cols = 3, .type = N2CE_F64};
    const n2ce_matrix wraps = {
        .data = values, .rows = 4, .cols = 3 + ((size_t)1 << 62), .type = N2CE_F64};
    assert_int_equal(n2ce_tensor_set(b.store, t, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_tensor_get(b.store, t, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_tensor_set_matrix(b.store, t, &none), N2CE_EINVAL);
    assert_int_equal(n2ce_tensor_set_matrix(b.store, t, &wraps), N2CE_EINVAL);
    assert_null(n2ce_store_add(b.store, NULL, n2ce_dims(1)));
    assert_null(n2ce_store_find(b.store, NULL));
    n2ce_plan *plan;
    assert_int_equal(n2ce_plan_compile(b.g, "cpu", NULL, 1, &plan), N2CE_EINVAL);
    close_bench(&b);
}

/* What has several elements is no single number, and is not written where one belongs. */
static void many_numbers_are_no_scalar(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_node out[] = {n2ce_normal(b.g, n2ce_dims(400, 3)), n2ce_constant(b.g, 2)};
    compile(&b, out, 2);
    run(&b, 1);
    assert_true(isnan(n2ce_plan_scalar(b.plan, 0)));
    assert_true(n2ce_plan_scalar(b.plan, 1) == 2);
    assert_true(isnan(n2ce_plan_scalar(b.plan, 2)));
    close_bench(&b);
}

static n2ce_node schedule_of_many(n2ce_graph *g, n2ce_node step, const void *arg) {
    (void)step, (void)arg;
    return n2ce_normal(g, n2ce_dims(3));
}

/* An optimiser, its schedule and its parameters, each wrong in turn. */
static void what_minimises_is_checked(void **state) {
    (void)state;
    const char *const words[] = {"optimiser is NULL",    "another store",      "one number",
                                 "schedule_arg is NULL", "parameters is NULL", "not NULL"};
    for (int k = 0; k < 6; k++) {
        bench b = open_bench(1), other = open_bench(1);
        n2ce_adam adam = N2CE_ADAM_INIT;
        n2ce_parameters *w = n2ce_parameters_new(k == 1 ? other.store : b.store, 1);
        assert_non_null(n2ce_parameter(w, "w", n2ce_dims(3), 1));
        if (k == 2) adam.schedule = schedule_of_many;
        if (k == 3) adam.schedule = n2ce_schedule_cosine;
        const n2ce_node loss =
            n2ce_total(b.g, n2ce_read(b.g, k == 1 ? n2ce_store_add(b.store, "w", n2ce_dims(3))
                                                  : n2ce_parameters_at(w, 0)));
        n2ce_minimise(b.g, k ? &adam : NULL, k == 5 ? NULL : "adam", k == 4 ? NULL : w, loss, NULL);
        expect_mistake(&b, __LINE__ - 1, words[k]);
        close_bench(&b);
        close_bench(&other);
    }
}

/* An optimiser's own tensors are not read while it writes them. */
static void moments_are_the_optimisers_own(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_adam adam = N2CE_ADAM_INIT;
    n2ce_parameters *w = n2ce_parameters_new(b.store, 1);
    n2ce_tensor *t = n2ce_parameter(w, "w", n2ce_dims(3), 1);
    const n2ce_node loss = n2ce_total(b.g, n2ce_read(b.g, t));
    n2ce_minimise(b.g, &adam, "adam", w, loss, NULL);
    const n2ce_node m = n2ce_total(b.g, n2ce_read(b.g, n2ce_store_find(b.store, "adam.m.w")));
    n2ce_plan *plan;
    assert_int_equal(n2ce_plan_compile(b.g, "cpu", &m, 1, &plan), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "\"adam.m.w\" is the adam update's"));
    compile(&b, &loss, 1);
    run(&b, 1);
    close_bench(&b);
}

/* A network of one width, or without a name, is none. */
static void a_network_has_two_widths_and_a_name(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_parameters *w = n2ce_parameters_new(b.store, 1);
    const int64_t widths[] = {2, 3};
    assert_null(n2ce_mlp_new(w, "net", widths, 1, 0.1));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "two at least"));
    assert_null(n2ce_mlp_new(w, "net", NULL, 2, 0.1));
    assert_null(n2ce_mlp_new(w, NULL, widths, 2, 0.1));
    assert_null(n2ce_layer_new(w, NULL, 2, 3));
    assert_null(n2ce_parameter(w, NULL, n2ce_dims(2), 1));
    char much[100] = {0};
    memset(much, 'x', sizeof much - 1);
    assert_null(n2ce_layer_new(w, much, 2, 3));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "at most 80 characters"));
    assert_null(n2ce_mlp_new(w, much, widths, 2, 0.1));
    assert_null(n2ce_parameter(w, much, n2ce_dims(2), 1));
    assert_int_equal(n2ce_parameters_n(w), 0);
    assert_int_equal(n2ce_parameters_n(NULL), 0);
    assert_non_null(n2ce_mlp_new(w, "net", widths, 2, 0.1));
    close_bench(&b);
}

static n2ce_node density_of_all(n2ce_graph *g, n2ce_node x, const void *model) {
    (void)model;
    return n2ce_total(g, x);
}

static void a_density_is_one_number_a_row(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_tensor *rows = n2ce_store_add(b.store, "rows", n2ce_dims(5, 2));
    n2ce_langevin_step(b.g, rows, density_of_all, NULL, 0.1, false);
    assert_int_equal(n2ce_graph_status(b.g), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "[5 x 1]"));
    close_bench(&b);
}

static void a_device_is_known_by_name(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_node x = n2ce_constant(b.g, 1);
    const char *const bad[] = {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1, fp8", "cpu0"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        n2ce_plan *plan;
        assert_int_equal(n2ce_plan_compile(b.g, bad[i], &x, 1, &plan), N2CE_EINVAL);
        assert_null(plan);
        assert_non_null(strstr(n2ce_errmsg(b.ctx), "cuda:N"));
    }
    assert_int_equal(n2ce_plan_compile(b.g, NULL, &x, 1, &b.plan), N2CE_OK);
    assert_string_equal(n2ce_plan_device(b.plan), "cpu");
    n2ce_plan_free(b.plan);
    assert_int_equal(n2ce_plan_compile(b.g, "auto", &x, 1, &b.plan), N2CE_OK);
    assert_int_equal(n2ce_plan_run(b.plan), N2CE_OK);
    assert_close(n2ce_plan_scalar(b.plan, 0), 1, 0, 0);
    assert_true(isnan(n2ce_plan_scalar(b.plan, 1)));
    close_bench(&b);
}

/* NULL in place of what could not be made: nothing is done, and nothing crashes. */
static void without_a_handle_nothing_is_done(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_node x = {1};
    n2ce_node dx = {7};
    n2ce_adam adam = N2CE_ADAM_INIT;
    n2ce_graph *graph;
    n2ce_plan *plan;
    double value = 3;
    assert_int_equal(n2ce_add(NULL, x, x).id, 0);
    assert_int_equal(n2ce_mean(NULL, x, N2CE_ALL_AXES).id, 0);
    assert_int_equal(n2ce_conv2d(NULL, x, x, N2CE_WINDOW(1, 0)).id, 0);
    assert_int_equal(n2ce_norm(NULL, x, x, x, 1, 0, N2CE_NO_ACTIVATION).id, 0);
    assert_int_equal(n2ce_loss(NULL, x, x, 0).id, 0);
    assert_int_equal(n2ce_read(NULL, NULL).id, 0);
    assert_int_equal(n2ce_layer_apply(NULL, NULL, x).id, 0);
    assert_int_equal(n2ce_langevin_step(NULL, NULL, NULL, NULL, 1, true).id, 0);
    n2ce_grad(NULL, x, &x, 1, &dx);
    assert_int_equal(dx.id, 0);
    n2ce_watch(NULL, x);
    n2ce_minimise(NULL, &adam, "adam", NULL, x, &dx);
    assert_int_equal(n2ce_graph_status(NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_graph_new(NULL, &graph), N2CE_EINVAL);
    assert_null(n2ce_parameters_new(NULL, 1));
    assert_null(n2ce_store_add(NULL, "x", N2CE_SCALAR));
    assert_null(n2ce_tensor_name(NULL));
    assert_int_equal(n2ce_tensor_set(NULL, NULL, &value), N2CE_EINVAL);
    assert_int_equal(n2ce_plan_compile(NULL, "cpu", &x, 1, &plan), N2CE_EINVAL);
    assert_null(plan);
    assert_int_equal(n2ce_plan_run(NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_plan_run_many(NULL, 3), N2CE_EINVAL);
    assert_true(isnan(n2ce_plan_scalar(NULL, 0)));
    assert_int_equal(n2ce_checkpoint_save(NULL, "x"), N2CE_EINVAL);
    close_bench(&b);
}

/* ---- numbers --------------------------------------------------------------- */

/* Every op is the one its name says, at one point each. */
static void ops_are_what_they_are_called(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_graph *g = b.g;
    const double x = 0.7, y = -1.3, s = 1 / (1 + exp(-x));
    n2ce_tensor *tx = n2ce_store_add(b.store, "x", N2CE_SCALAR);
    n2ce_tensor *ty = n2ce_store_add(b.store, "y", N2CE_SCALAR);
    assert_int_equal(n2ce_tensor_set(b.store, tx, &x), N2CE_OK);
    assert_int_equal(n2ce_tensor_set(b.store, ty, &y), N2CE_OK);
    const n2ce_node a = n2ce_read(g, tx), c = n2ce_read(g, ty);
    const struct {
        n2ce_node node;
        double truth;
    } table[] = {{n2ce_neg(g, a), -x},
                 {n2ce_exp(g, a), exp(x)},
                 {n2ce_log(g, a), log(x)},
                 {n2ce_sqrt(g, a), sqrt(x)},
                 {n2ce_reciprocal(g, a), 1 / x},
                 {n2ce_sin(g, a), sin(x)},
                 {n2ce_cos(g, a), cos(x)},
                 {n2ce_tanh(g, a), tanh(x)},
                 {n2ce_sigmoid(g, a), s},
                 {n2ce_log_sigmoid(g, a), log(s)},
                 {n2ce_softplus(g, a), log1p(exp(x))},
                 {n2ce_silu(g, a), x * s},
                 {n2ce_gelu(g, a), x * (1 - 0.5 * erfc(x / sqrt(2)))},
                 {n2ce_positive(g, c), 0},
                 {n2ce_detach(g, a), x},
                 {n2ce_affine(g, a, 3, 4), 3 * x + 4},
                 {n2ce_scale(g, a, 5), 5 * x},
                 {n2ce_lrelu(g, c, 0.1), 0.1 * y},
                 {n2ce_add(g, a, c), x + y},
                 {n2ce_sub(g, a, c), x - y},
                 {n2ce_mul(g, a, c), x * y},
                 {n2ce_div(g, a, c), x / y},
                 {n2ce_maximum(g, a, c), x},
                 {n2ce_minimum(g, a, c), y},
                 {n2ce_equal(g, a, c), 0},
                 {n2ce_greater(g, a, c), 1}};
    n2ce_node outputs[COUNT_OF(table)];
    for (size_t i = 0; i < COUNT_OF(table); i++) outputs[i] = table[i].node;
    compile(&b, outputs, COUNT_OF(table));
    run(&b, 1);
    for (size_t i = 0; i < COUNT_OF(table); i++)
        assert_close(n2ce_plan_scalar(b.plan, i), table[i].truth, 0, 1e-5);
    close_bench(&b);
}

static void a_matrix_of_any_layout_fills_a_tensor(void **state) {
    (void)state;
    bench b = open_bench(1);
    const int32_t columns[] = {1, 2, 3, 10, 20, 30}; /* three rows of two, column by column */
    const n2ce_matrix m = {columns, N2CE_I32, 3, 2, 4, 12};
    double back[6];
    n2ce_tensor *t = n2ce_store_add(b.store, "t", n2ce_dims(3, 2, 1));
    assert_int_equal(n2ce_tensor_set_matrix(b.store, t, &m), N2CE_OK);
    assert_int_equal(n2ce_tensor_get(b.store, t, back), N2CE_OK);
    const double truth[] = {1, 10, 2, 20, 3, 30};
    assert_memory_equal(back, truth, sizeof truth);
    const n2ce_matrix other = {columns, N2CE_I32, 2, 3, 0, 0};
    assert_int_equal(n2ce_tensor_set_matrix(b.store, t, &other), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "2 x 3"));
    close_bench(&b);
}

/* The N2CE loss of a graph is n2ce_loss_f64 of its logits, and so is its gradient. */
static void the_loss_is_that_of_the_objective(void **state) {
    (void)state;
    bench b = open_bench(1);
    const double num[] = {2.1, 0.3, 4.0, 1.2}, den[] = {-1.0, 0.2, -3.5, -0.4};
    n2ce_tensor *tn = n2ce_store_add(b.store, "num", n2ce_dims(4, 1));
    n2ce_tensor *td = n2ce_store_add(b.store, "den", n2ce_dims(4, 1));
    assert_int_equal(n2ce_tensor_set(b.store, tn, num), N2CE_OK);
    assert_int_equal(n2ce_tensor_set(b.store, td, den), N2CE_OK);
    const n2ce_node f[] = {n2ce_read(b.g, tn), n2ce_read(b.g, td)};
    n2ce_node out[3] = {n2ce_loss(b.g, f[0], f[1], 100)};
    n2ce_grad(b.g, out[0], f, 2, out + 1);
    compile(&b, out, 3);
    run(&b, 1);
    double loss, grad[2][4], seen[4];
    n2ce_objective objective = N2CE_OBJECTIVE_INIT;
    objective.magnitude = 100;
    const n2ce_logits_f64 logits = {num, 4, den, 4, grad[0], grad[1]};
    assert_int_equal(n2ce_loss_f64(b.ctx, &objective, &logits, &loss, NULL), N2CE_OK);
    assert_close(n2ce_plan_scalar(b.plan, 0), loss, 0, 1e-5);
    for (size_t k = 0; k < 2; k++) {
        n2ce_plan_get(b.plan, k + 1, seen);
        for (int i = 0; i < 4; i++) assert_close(seen[i], grad[k][i], 0, 1e-6);
    }
    close_bench(&b);
}

/* ---- training -------------------------------------------------------------- */

/* Rows of three random numbers, and the line 1 x - 2 y + 3 z + 0.5 through them. */
static n2ce_node build_line_fit(bench *b, n2ce_layer **layer) {
    n2ce_parameters *p = n2ce_parameters_new(b->store, 7);
    *layer = n2ce_layer_new(p, "line", 3, 1);
    n2ce_tensor *slope = n2ce_store_add(b->store, "slope", n2ce_dims(3, 1));
    assert_int_equal(n2ce_tensor_set(b->store, slope, (double[]){1, -2, 3}), N2CE_OK);
    const n2ce_node x = n2ce_normal(b->g, n2ce_dims(64, 3));
    const n2ce_node y =
        n2ce_affine(b->g, n2ce_matmul(b->g, x, n2ce_read(b->g, slope), false, false), 1, 0.5);
    const n2ce_node miss = n2ce_sub(b->g, n2ce_layer_apply(b->g, *layer, x), y);
    const n2ce_node loss = n2ce_mean(b->g, n2ce_mul(b->g, miss, miss), N2CE_ALL_AXES);
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 0.05;
    n2ce_minimise(b->g, &adam, "adam", p, loss, NULL);
    assert_int_equal(n2ce_parameters_n(p), 2);
    assert_string_equal(n2ce_tensor_name(n2ce_parameters_at(p, 0)), "line.weight");
    assert_null(n2ce_parameters_at(p, 2));
    return loss;
}

static void a_line_is_learnt(void **state) {
    (void)state;
    double bytes[2][4];
    for (int threads = 1; threads <= 2; threads++) {
        bench b = open_bench(threads);
        n2ce_layer *layer;
        const n2ce_node loss = build_line_fit(&b, &layer);
        compile(&b, &loss, 1);
        run(&b, 1000);
        assert_int_equal(n2ce_plan_runs(b.plan), 1000);
        double *w = bytes[threads - 1];
        n2ce_tensor_get(b.store, n2ce_store_find(b.store, "line.weight"), w);
        n2ce_tensor_get(b.store, n2ce_store_find(b.store, "line.bias"), w + 3);
        for (int i = 0; i < 4; i++) assert_close(w[i], ((double[]){1, -2, 3, 0.5})[i], 0, 1e-3);
        close_bench(&b);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]); /* whatever the threads */
}

/* A run that is resumed from a checkpoint gives the bytes of one that never stopped; a file of
 * another model is refused. */
static void a_checkpoint_goes_on(void **state) {
    (void)state;
    const char *path = "test_engine_api.safetensors";
    double once[3], twice[3];
    n2ce_layer *layer;
    bench b = open_bench(1);
    n2ce_node loss = build_line_fit(&b, &layer);
    compile(&b, &loss, 1);
    n2ce_plan_seed(b.plan, 5);
    run(&b, 20);
    assert_int_equal(n2ce_checkpoint_save(b.plan, path), N2CE_OK);
    run(&b, 20);
    n2ce_tensor_get(b.store, n2ce_store_find(b.store, "line.weight"), once);
    close_bench(&b);
    b = open_bench(1);
    loss = build_line_fit(&b, &layer);
    compile(&b, &loss, 1);
    assert_int_equal(n2ce_checkpoint_load(b.plan, path), N2CE_OK);
    assert_int_equal(n2ce_plan_runs(b.plan), 20);
    run(&b, 20);
    n2ce_tensor_get(b.store, n2ce_store_find(b.store, "line.weight"), twice);
    assert_memory_equal(once, twice, sizeof once);
    n2ce_store_add(b.store, "more", n2ce_dims(1));
    assert_int_equal(n2ce_checkpoint_load(b.plan, path), N2CE_EDATA);
    close_bench(&b);
    remove(path);
}

/* A loss that becomes infinite stops the run with the line that made it, and leaves weights alone.
 */
static void what_is_not_finite_is_told_by_line(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_parameters *p = n2ce_parameters_new(b.store, 1);
    n2ce_tensor *w = n2ce_parameter(p, "w", n2ce_dims(1), 1);
    double before, after;
    n2ce_tensor_get(b.store, w, &before);
    const n2ce_node zero = n2ce_scale(b.g, n2ce_read(b.g, w), 0);
    const n2ce_node loss = n2ce_total(b.g, n2ce_log(b.g, zero));
    char line[64];
    snprintf(line, sizeof line, "test_engine_api.c:%d", __LINE__ - 2);
    const n2ce_adam adam = N2CE_ADAM_INIT;
    n2ce_minimise(b.g, &adam, "adam", p, loss, NULL);
    compile(&b, &loss, 1);
    assert_int_equal(n2ce_plan_run(b.plan), N2CE_ENAN);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), line));
    n2ce_tensor_get(b.store, w, &after);
    assert_memory_equal(&before, &after, sizeof before);
    close_bench(&b);
}

/* ---- samplers -------------------------------------------------------------- */

/* ln N(1, 1/4) of every element, up to a constant. */
static n2ce_node narrow_normal(n2ce_graph *g, n2ce_node x, const void *mean) {
    const n2ce_node away = n2ce_affine(g, x, 1, -*(const double *)mean);
    return n2ce_scale(g, n2ce_sum(g, n2ce_mul(g, away, away), N2CE_AXIS(1)), -2);
}

static void chains_have_the_density_they_were_given(void **state) {
    (void)state;
    enum { N = 4000 };
    static double x[N];
    bench b = open_bench(2);
    const double mean = 1;
    n2ce_tensor *rows = n2ce_store_add(b.store, "rows", n2ce_dims(N, 1));
    const n2ce_node density = n2ce_langevin_step(b.g, rows, narrow_normal, &mean, 0.4, true);
    compile(&b, &density, 1);
    run(&b, 200);
    n2ce_tensor_get(b.store, rows, x);
    double m = 0, v = 0;
    for (int i = 0; i < N; i++) m += x[i] / N;
    for (int i = 0; i < N; i++) v += (x[i] - m) * (x[i] - m) / N;
    assert_close(m, 1, 0, 4 * 0.5 / sqrt(N));
    assert_close(v, 0.25, 0, 4 * 0.25 * sqrt(2.0 / N));
    close_bench(&b);
}

/* Particles of SVGD that start close together spread around the mean. */
static void particles_find_the_mean(void **state) {
    (void)state;
    enum { N = 50 };
    double x[N], m = 0;
    bench b = open_bench(1);
    const double mean = 1;
    n2ce_tensor *rows = n2ce_store_add(b.store, "rows", n2ce_dims(N, 1));
    for (int i = 0; i < N; i++) x[i] = 0.01 * i;
    assert_int_equal(n2ce_tensor_set(b.store, rows, x), N2CE_OK);
    const n2ce_node density = n2ce_svgd_step(b.g, "svgd", rows, narrow_normal, &mean, 0.05);
    compile(&b, &density, 1);
    run(&b, 500);
    n2ce_tensor_get(b.store, rows, x);
    for (int i = 0; i < N; i++) m += x[i] / N;
    assert_close(m, 1, 0, 0.05);
    assert_true(x[N - 1] - x[0] > 1); /* two standard deviations */
    close_bench(&b);
}

/* ---- memory ---------------------------------------------------------------- */

/* Builds, runs and samples; whatever fails on the way shows in a status. */
static n2ce_status whole_life(failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    bench b = {0};
    const double mean = 0;
    n2ce_status status = n2ce_ctx_new(&b.ctx, &options);
    if (status == N2CE_OK) status = n2ce_store_new(b.ctx, &b.store);
    if (status == N2CE_OK) status = n2ce_graph_new(b.store, &b.g);
    if (status == N2CE_OK) {
        n2ce_parameters *p = n2ce_parameters_new(b.store, 1);
        n2ce_mlp *net = n2ce_mlp_new(p, "net", (int64_t[]){2, 4, 1}, 3, 0.1);
        n2ce_tensor *rows = n2ce_store_add(b.store, "rows", n2ce_dims(3, 2));
        const n2ce_node y = n2ce_mlp_apply(b.g, net, n2ce_normal(b.g, n2ce_dims(8, 2)));
        const n2ce_node loss = n2ce_mean(b.g, n2ce_mul(b.g, y, y), N2CE_ALL_AXES);
        const n2ce_adam adam = N2CE_ADAM_INIT;
        n2ce_minimise(b.g, &adam, "adam", p, loss, NULL);
        n2ce_langevin_step(b.g, rows, narrow_normal, &mean, 0.1, true);
        status = n2ce_plan_compile(b.g, "cpu", &loss, 1, &b.plan);
    }
    if (status == N2CE_OK) status = n2ce_plan_run_many(b.plan, 2);
    close_bench(&b);
    return status;
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    n2ce_status status = N2CE_ENOMEM;
    size_t n = 0;
    for (; status != N2CE_OK; n++) {
        assert_true(n < 1000);
        failing_alloc memory = failing_alloc_new(n, true);
        status = whole_life(&memory);
        assert_true((status == N2CE_OK) == (memory.calls <= n));
        assert_int_equal(memory.live, 0);
    }
    assert_true(n > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_names_the_callers_line),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(what_failed_is_told_where_it_is_used),
        cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(values_must_be_there),
        cmocka_unit_test(many_numbers_are_no_scalar),
        cmocka_unit_test(what_minimises_is_checked),
        cmocka_unit_test(moments_are_the_optimisers_own),
        cmocka_unit_test(a_network_has_two_widths_and_a_name),
        cmocka_unit_test(a_density_is_one_number_a_row),
        cmocka_unit_test(a_device_is_known_by_name),
        cmocka_unit_test(without_a_handle_nothing_is_done),
        cmocka_unit_test(ops_are_what_they_are_called),
        cmocka_unit_test(a_matrix_of_any_layout_fills_a_tensor),
        cmocka_unit_test(the_loss_is_that_of_the_objective),
        cmocka_unit_test(a_line_is_learnt),
        cmocka_unit_test(a_checkpoint_goes_on),
        cmocka_unit_test(what_is_not_finite_is_told_by_line),
        cmocka_unit_test(chains_have_the_density_they_were_given),
        cmocka_unit_test(particles_find_the_mean),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
