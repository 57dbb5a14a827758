/* Facts about planning: what is computed, in how many steps, in how much memory; and how mistakes
 * and failures are told. */
#include "close.h"
#include "cpu/cpu.h"
#include "failing_alloc.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <string.h>

/* ---- a graph to plan ------------------------------------------------------- */

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    const n2_backend *backend;
} bench;

static bench open_bench(const n2_backend *backend, const n2ce_ctx_options *given, int threads) {
    bench b = {.backend = backend};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    assert_int_equal(n2ce_ctx_new(&b.ctx, given ? given : &options), N2CE_OK);
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static bench cpu_bench(void) { return open_bench(n2_cpu_backend(), NULL, 1); }

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static n2_node tensor(bench *b, const char *name, n2_shape shape) {
    return n2g_read(b->g, n2_store_add(b->store, name, shape));
}

static void fill_tensor(bench *b, const char *name, double first, double slope) {
    n2_tensor *t = n2_store_find(b->store, name);
    const size_t n = (size_t)n2_elements(t->shape);
    double *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = first + slope * sin(0.7 * (double)i);
    n2_tensor_set(b->store, t, x);
    free(x);
}

static n2_plan_size compile(bench *b, const n2_node *outputs, size_t n) {
    n2_plan_free(b->plan);
    if (n2_plan_compile(b->g, b->backend, outputs, n, &b->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(b->ctx));
    return n2_plan_measure(b->plan);
}

/* How often a kind of step is in the printed plan. */
static size_t steps_of_kind(const bench *b, const char *kind) {
    n2_text text = n2_text_new(b->ctx);
    char *printed;
    size_t n = 0;
    n2_plan_print(b->plan, &text);
    assert_int_equal(n2_text_take(&text, &printed), N2CE_OK);
    for (const char *at = printed; (at = strstr(at, kind)) != NULL; at++) n++;
    n2_free(b->ctx, printed);
    return n;
}

/* A residual network over rows and its loss's gradient: all weights and biases. */
enum { DEPTH = 6, N_PARAMETERS = 2 * DEPTH };

static n2_node residual_loss(bench *b, n2_node x, n2_node gradients[N_PARAMETERS]) {
    const int64_t width = n2_shape_at(b->g, x).dim[1];
    n2_node parameters[N_PARAMETERS], h = x;
    char name[8];
    for (int i = 0; i < DEPTH; i++) {
        snprintf(name, sizeof name, "w%d", i);
        parameters[2 * i] = tensor(b, name, n2_dims(width, width));
        fill_tensor(b, name, 0, 0.1);
        snprintf(name, sizeof name, "b%d", i);
        parameters[2 * i + 1] = tensor(b, name, n2_dims(width));
        const n2_node y =
            n2g_linear(b->g, n2g_lrelu(b->g, h, 0.2), parameters[2 * i], parameters[2 * i + 1]);
        h = n2g_add(b->g, h, y);
    }
    const n2_node loss = n2g_total(b->g, n2g_mul(b->g, h, h));
    n2g_grad(b->g, loss, parameters, N_PARAMETERS, gradients);
    return loss;
}

/* ---- what runs ------------------------------------------------------------- */

/* A node that is built twice is one node; other arguments make another one. */
static void equal_nodes_are_one_node(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(4, 3)), y = tensor(&b, "y", n2_dims(3));
    const n2_node first = n2g_mul(b.g, n2g_exp(b.g, n2g_affine(b.g, x, 2, 1)), y);
    const uint32_t size = n2_graph_size(b.g);
    const n2_node second = n2g_mul(b.g, n2g_exp(b.g, n2g_affine(b.g, x, 2, 1)), y);
    assert_int_equal(first.id, second.id);
    assert_int_equal(n2_graph_size(b.g), size);
    assert_int_equal(n2g_read(b.g, n2_store_find(b.store, "x")).id, x.id);
    assert_int_not_equal(n2g_affine(b.g, x, 2, 1).id, n2g_affine(b.g, x, 2, 1.5).id);
    assert_int_not_equal(n2g_mul(b.g, x, y).id, n2g_mul(b.g, y, x).id);
    assert_int_not_equal(n2g_sum(b.g, x, n2_axis(0)).id, n2g_sum(b.g, x, n2_axis(1)).id);
    close_bench(&b);
}

/* Many nodes are found again too: the table of nodes grows without forgetting. */
static void equal_nodes_are_found_among_many(void **state) {
    (void)state;
    bench b = cpu_bench();
    uint32_t ids[3000];
    for (int i = 0; i < 3000; i++) ids[i] = n2g_constant(b.g, i).id;
    for (int i = 0; i < 3000; i++) assert_int_equal(n2g_constant(b.g, i).id, ids[i]);
    assert_int_equal(n2_graph_size(b.g), 3000);
    close_bench(&b);
}

/* Random nodes are never merged. */
static void random_nodes_stay_apart(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = n2g_randn(b.g, n2_dims(5)), y = n2g_randn(b.g, n2_dims(5));
    assert_int_not_equal(x.id, y.id);
    const n2_node outputs[] = {x, y};
    compile(&b, outputs, 2);
    double a[5], c[5];
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, a);
    n2_plan_get(b.plan, 1, c);
    assert_memory_not_equal(a, c, sizeof a);
    close_bench(&b);
}

/* Only what the outputs need is run; leaves and views need no running. */
static void dead_nodes_do_not_run(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(50, 3)), y = n2g_exp(b.g, x);
    assert_int_equal(compile(&b, &y, 1).nodes, 1);
    const n2_node dead = n2g_tanh(b.g, n2g_mul(b.g, y, n2g_randn(b.g, n2_dims(50, 3))));
    assert_int_equal(compile(&b, &y, 1).nodes, 1);
    assert_int_equal(compile(&b, &dead, 1).nodes, 4);
    const n2_node view = n2g_detach(b.g, n2g_reshape(b.g, y, n2_dims(150)));
    assert_int_equal(compile(&b, &view, 1).nodes, 1);
    const n2_node leaf = n2g_reshape(b.g, x, n2_dims(150));
    assert_int_equal(compile(&b, &leaf, 1).nodes, 0);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    close_bench(&b);
}

/* Updates run whether or not anybody asks for their value. */
static void updates_are_roots(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_scalar_shape());
    n2g_assign(b.g, n2_store_find(b.store, "x"), n2g_affine(b.g, x, 1, 1));
    assert_int_equal(compile(&b, NULL, 0).nodes, 2);
    for (int i = 0; i < 3; i++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double value;
    n2_tensor_get(b.store, n2_store_find(b.store, "x"), &value);
    assert_close(value, 3, 0, 0);
    close_bench(&b);
}

/* ---- row programs ---------------------------------------------------------- */

static n2_plan_size measure_chain(int depth, int64_t rows, size_t *programs) {
    bench b = cpu_bench();
    n2_node x = tensor(&b, "x", n2_dims(rows, 8));
    for (int i = 0; i < depth; i++) x = i % 2 ? n2g_affine(b.g, x, 0.5, i) : n2g_tanh(b.g, x);
    x = n2g_total(b.g, x);
    const n2_plan_size size = compile(&b, &x, 1);
    *programs = steps_of_kind(&b, "row program");
    close_bench(&b);
    return size;
}

/* A chain over rows is one row program, and deeper ones take no more memory. */
static void chains_take_no_memory(void **state) {
    (void)state;
    size_t programs[2];
    const n2_plan_size few = measure_chain(2, 10000, &programs[0]);
    const n2_plan_size many = measure_chain(40, 10000, &programs[1]);
    assert_int_equal(programs[0], 1);
    assert_int_equal(programs[1], 1);
    assert_int_equal(few.steps, 1);
    assert_int_equal(many.steps, 1);
    assert_int_equal(many.nodes, few.nodes + 38);
    assert_true(many.bytes < 10000 * 8 * sizeof(float) / 4); /* no value is there as a whole */
    assert_true(many.bytes <= few.bytes + 144 * 16 * sizeof(float)); /* one more tile value */
    assert_int_equal(measure_chain(60, 10000, &programs[0]).bytes, many.bytes);
    assert_int_equal(measure_chain(40, 20000, &programs[0]).bytes, many.bytes);
}

/* Forward and backward pass of a deep residual network with its loss: one row program. */
static void training_is_one_row_program(void **state) {
    (void)state;
    bench b = cpu_bench();
    n2_node outputs[N_PARAMETERS + 1];
    const n2_node x = tensor(&b, "x", n2_dims(1000, 33));
    outputs[N_PARAMETERS] = residual_loss(&b, x, outputs);
    compile(&b, outputs, N_PARAMETERS + 1);
    assert_int_equal(steps_of_kind(&b, "row program"), 1);
    close_bench(&b);
}

static void compare_with_reference(int64_t width) {
    const size_t n = (size_t)(width * width);
    double loss[2], *gradient[2], largest = 0;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(k ? n2_cpu_backend() : n2_ref_backend(), NULL, 2);
        n2_node outputs[N_PARAMETERS + 1];
        const n2_node x = tensor(&b, "x", n2_dims(300, width));
        fill_tensor(&b, "x", 0, 1);
        outputs[N_PARAMETERS] = residual_loss(&b, x, outputs);
        compile(&b, outputs, N_PARAMETERS + 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        loss[k] = n2_plan_scalar(b.plan, N_PARAMETERS);
        gradient[k] = malloc(n * sizeof *gradient[k]);
        assert_non_null(gradient[k]);
        n2_plan_get(b.plan, 0, gradient[k]);
        close_bench(&b);
    }
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(gradient[0][i]));
    assert_close(loss[1], loss[0], 1e-5, 0);
    for (size_t i = 0; i < n; i++) assert_close(gradient[1][i], gradient[0][i], 0, 1e-5 * largest);
    free(gradient[0]);
    free(gradient[1]);
}

/* Values of a row program are those of the reference, which runs node by node; for widths that
 * fill vectors and panels of the matrix product, and for those that do not. */
static void row_programs_change_nothing(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 5, 16, 33, 48, 150};
    for (size_t i = 0; i < COUNT_OF(widths); i++) compare_with_reference(widths[i]);
}

/* A sum with a product that nobody else reads, gated or not, is part of the product; and not if
 * somebody else reads it, or if the shapes differ. */
static void products_take_sums_and_gates_along(void **state) {
    (void)state;
    bench b = cpu_bench();
    n2_graph *g = b.g;
    const n2_node x = tensor(&b, "x", n2_dims(50, 8)), w = tensor(&b, "w", n2_dims(8, 8));
    const n2_node product = n2g_matmul(g, x, w, false, false);
    const n2_node gated = n2_build_binary(g, N2_OP_lrelu_grad, x, product, 0.2);
    const n2_node wide = n2g_add(g, product, tensor(&b, "row", n2_dims(1, 8)));
    const n2_node cases[][2] = {
        {n2g_add(g, x, product), x}, {n2g_add(g, product, x), x},       {gated, x},
        {n2g_add(g, gated, x), x},   {n2g_add(g, x, product), product}, {wide, x}};
    static const size_t ops[] = {1, 1, 1, 1, 2, 2};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(compile(&b, cases[i], 2).nodes, ops[i]);
    close_bench(&b);
}

/* Rows that only a later program needs are made by it, not stored by an earlier one. */
static void rows_are_made_where_they_are_needed(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(10000, 8)), noise = n2g_randn(b.g, n2_dims(10000, 8));
    const n2_node first = n2g_total(b.g, n2g_mul(b.g, x, x));
    const n2_node second = n2g_total(b.g, n2g_tanh(b.g, n2g_mul(b.g, noise, first)));
    const n2_plan_size size = compile(&b, &second, 1);
    assert_int_equal(steps_of_kind(&b, "row program"), 2);
    assert_true(size.bytes < 10000 * 8 * sizeof(float) / 4);
    close_bench(&b);
}

/* Rows that have no columns are tiled like any others: nothing is written beyond the tile. */
static void rows_without_columns_stay_in_their_tile(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(20000, 0)), y = n2g_sum(b.g, x, n2_axis(1));
    static double sums[20000];
    compile(&b, &y, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, sums);
    for (size_t i = 0; i < 20000; i++) assert_close(sums[i], 0, 0, 0);
    close_bench(&b);
}

/* ---- less work ------------------------------------------------------------- */

enum { ROWS = 1000, TABLE = 5, IN = 20, OUT = 30 };

/* Gathering from a short table comes after the product, and after functions of it. */
static void gathering_comes_after_the_product(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node table = tensor(&b, "table", n2_dims(TABLE, IN)),
                  w = tensor(&b, "w", n2_dims(OUT, IN));
    const n2_node bias = tensor(&b, "b", n2_dims(OUT)), index = tensor(&b, "index", n2_dims(ROWS));
    const n2_node rows = tensor(&b, "rows", n2_dims(ROWS, IN));
    const n2_node short_way = n2g_linear(b.g, n2g_gather(b.g, table, index), w, bias);
    const n2_node long_way = n2g_linear(b.g, rows, w, bias);
    assert_int_equal(n2_op_of(b.g, short_way), N2_OP_gather);
    const double few = compile(&b, &short_way, 1).flops, many = compile(&b, &long_way, 1).flops;
    assert_true(many >= 2.0 * ROWS * IN * OUT);
    assert_true(few < many / 20);
    assert_int_equal(n2_op_of(b.g, n2g_tanh(b.g, n2g_gather(b.g, table, index))), N2_OP_gather);
    const n2_node table_is_long = n2g_gather(b.g, rows, index);
    assert_int_equal(n2_op_of(b.g, n2g_tanh(b.g, table_is_long)), N2_OP_tanh);
    close_bench(&b);
}

/* A product with rows of which a part is gathered is taken apart: that part is done on the
 * table. */
static void products_of_joined_rows_are_taken_apart(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node table = tensor(&b, "table", n2_dims(TABLE, IN));
    const n2_node w = tensor(&b, "w", n2_dims(OUT, 2 * IN)),
                  index = tensor(&b, "index", n2_dims(ROWS));
    const n2_node rows = tensor(&b, "rows", n2_dims(ROWS, IN));
    const n2_node others = tensor(&b, "others", n2_dims(ROWS, IN));
    const n2_node half =
        n2g_matmul(b.g, n2g_concat(b.g, rows, n2g_gather(b.g, table, index), 1), w, false, true);
    const n2_node full = n2g_matmul(b.g, n2g_concat(b.g, rows, others, 1), w, false, true);
    const double few = compile(&b, &half, 1).flops, many = compile(&b, &full, 1).flops;
    const double product = 2.0 * ROWS * IN * OUT;
    assert_true(many >= 2 * product);
    assert_true(few < 1.2 * product);
    close_bench(&b);
}

/* ---- memory ---------------------------------------------------------------- */

/* A plan allocates when it is compiled and at its first run (threads), never again. */
static void runs_allocate_nothing(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 3);
    bench b = open_bench(n2_cpu_backend(), &options, 0);
    n2_node outputs[N_PARAMETERS + 1];
    outputs[N_PARAMETERS] = residual_loss(&b, n2g_randn(b.g, n2_dims(500, 9)), outputs);
    compile(&b, outputs, N_PARAMETERS + 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    const size_t calls = memory.calls;
    for (int i = 0; i < 100; i++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run_checked(b.plan), N2CE_OK);
    assert_int_equal(memory.calls, calls);
    close_bench(&b);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.strangers, 0);
}

/* A small training step. Tensors are made by hand: n2_store_add tells of missing memory by
 * NULL. */
static n2ce_status build_training(n2_store *store, n2_graph *g, n2_node *loss) {
    n2_tensor *t[3] = {n2_store_add(store, "p", n2_dims(6, 5)),
                       n2_store_add(store, "m", n2_dims(6, 5)),
                       n2_store_add(store, "v", n2_dims(6, 5))};
    if (!t[0] || !t[1] || !t[2]) return N2CE_ENOMEM;
    const n2_node p = n2g_read(g, t[0]), x = n2g_randn(g, n2_dims(100, 5));
    n2_node y = n2g_matmul(g, x, p, false, true), gradient;
    for (int i = 0; i < 100; i++) y = n2g_tanh(g, n2g_affine(g, y, 1, i)); /* many: nodes grow */
    *loss = n2g_total(g, n2g_mul(g, y, y));
    n2g_grad(g, *loss, &p, 1, &gradient);
    const n2_node one = n2g_constant(g, 1);
    n2g_adam_update(g, &(n2_adam){0.9, 0.999, 1e-8, 0}, t, gradient, one, one, one);
    return n2_graph_status(g);
}

static n2ce_status train_once(n2ce_ctx *ctx, const n2_backend *backend) {
    n2_store *store = NULL;
    n2_graph *g = NULL;
    n2_plan *plan = NULL;
    n2_node loss = N2_NONE;
    n2ce_status status = n2_store_new(ctx, backend->bytes, &store);
    if (status == N2CE_OK && !(g = n2_graph_new(store))) status = N2CE_ENOMEM;
    if (status == N2CE_OK) status = build_training(store, g, &loss);
    if (status == N2CE_OK) status = n2_plan_compile(g, backend, &loss, 1, &plan);
    if (status == N2CE_OK) status = n2_plan_run(plan);
    if (status == N2CE_OK) status = n2_plan_run_checked(plan);
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    return status;
}

/* Wherever memory runs out between the first tensor and the last run: N2CE_ENOMEM, nothing
 * leaks. */
static void running_out_of_memory_is_an_error(void **state) {
    (void)state;
    const n2_backend *const backends[] = {n2_ref_backend(), n2_cpu_backend()};
    for (int k = 0; k < 4; k++) {
        n2ce_status status = N2CE_ENOMEM;
        for (size_t n = 0; status != N2CE_OK; n++) {
            assert_true(n < 5000);
            failing_alloc memory = failing_alloc_new(n, k / 2 != 0);
            const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
            n2ce_ctx *ctx = NULL;
            status = n2ce_ctx_new(&ctx, &options);
            if (ctx) status = train_once(ctx, backends[k % 2]);
            if (status != N2CE_OK && status != N2CE_ENOMEM)
                print_error("allocation %zu: %s\n", n, n2ce_errmsg(ctx));
            assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
            n2ce_ctx_free(ctx);
            assert_int_equal(memory.live, 0);
        }
    }
}

/* ---- mistakes -------------------------------------------------------------- */

/* x is [128 x 20], y [32 x 30]. */
#define WRONG(NAME, EXPRESSION)                                      \
    enum { LINE_##NAME = __LINE__ };                                 \
    static n2_node wrong_##NAME(n2_graph *g, n2_node x, n2_node y) { \
        (void)x, (void)y;                                            \
        return EXPRESSION;                                           \
    }
WRONG(add, n2g_add(g, x, y))
WRONG(matmul, n2g_matmul(g, x, y, false, false))
WRONG(concat, n2g_concat(g, x, y, 1))
WRONG(broadcast, n2g_broadcast(g, x, n2_shape_at(g, y)))
WRONG(reshape, n2g_reshape(g, x, n2_shape_at(g, y)))
WRONG(gather, n2g_gather(g, x, y))
WRONG(scatter, n2g_scatter_add(g, x, y, 3))
WRONG(linear, n2g_linear(g, x, y, n2g_constant(g, 0)))
WRONG(assign, n2g_assign(g, n2_store_find(n2_graph_store(g), "y"), x))
/* compositions: the mistake is found inside, the line is that of the call */
WRONG(cross_entropy, n2g_cross_entropy(g, x, y))
WRONG(sum_to, n2g_sum_to(g, x, n2_shape_at(g, y)))
WRONG(gaussian_kl, n2g_gaussian_kl(g, x, y))
WRONG(reparameterise, n2g_reparameterise(g, x, y, y))
WRONG(squared_distances, n2g_squared_distances(g, x, y))
WRONG(inner, n2g_mean(g, n2g_silu(g, n2g_add(g, n2g_softmax(g, x, 1), y)), N2_ALL_AXES))
/* a helper's lines are its own, and the line of who goes on with its result is not lost */
static n2_node helper(n2_graph *g, n2_node x) { return n2g_tanh(g, n2g_affine(g, x, 2, 1)); }
WRONG(outer, n2g_add(g, helper(g, x), y))

#define MISTAKE(OP, NAME) \
    { OP, LINE_##NAME, wrong_##NAME }
static const struct {
    const char *op;
    int line;
    n2_node (*build)(n2_graph *g, n2_node x, n2_node y);
} mistakes[] = {
    MISTAKE("add", add),
    MISTAKE("matmul", matmul),
    MISTAKE("concat", concat),
    MISTAKE("broadcast", broadcast),
    MISTAKE("reshape", reshape),
    MISTAKE("gather", gather),
    MISTAKE("scatter_add", scatter),
    MISTAKE("matmul", linear),
    MISTAKE("assign", assign),
    MISTAKE("cross_entropy", cross_entropy),
    MISTAKE("reshape", sum_to),
    MISTAKE("add", gaussian_kl),
    MISTAKE("add", reparameterise),
    MISTAKE("matmul", squared_distances),
    MISTAKE("add", inner),
    MISTAKE("add", outer),
};

static void check_mistake(size_t k) {
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(128, 20)), y = tensor(&b, "y", n2_dims(32, 30));
    const n2_node wrong = mistakes[k].build(b.g, x, y);
    assert_int_equal(wrong.id, 0);
    assert_int_equal(n2_graph_status(b.g), N2CE_EINVAL);
    const char *message = n2ce_errmsg(b.ctx);
    char where[32];
    snprintf(where, sizeof where, "test_plan.c:%d: ", mistakes[k].line);
    const char *const words[] = {mistakes[k].op, "[128 x 20]", "[32 x 30]", where};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strstr(message, words[i])) fail_msg("\"%s\" does not say %s", message, words[i]);
    close_bench(&b);
}

/* Shapes that do not fit: the message names the op, both shapes, and file and line. */
static void a_mistake_is_told_with_op_shapes_and_line(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(mistakes); k++) check_mistake(k);
}

/* Nodes of a composition have the line of its call; those of a gradient, of what it is of. */
static void nodes_know_their_line(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(128, 20));
    const uint32_t first = n2_graph_size(b.g);
    const int line = __LINE__ + 1;
    const n2_node loss = n2g_total(b.g, n2g_logsumexp(b.g, helper(b.g, x), n2_axis(1)));
    n2_node dx;
    n2g_grad(b.g, loss, &x, 1, &dx);
    size_t of_helper = 0, of_loss = 0;
    for (uint32_t id = first + 1; id <= n2_graph_size(b.g); id++) {
        const n2_node_data *d = n2_at(b.g, (n2_node){id});
        assert_string_equal(d->file, "test_plan.c");
        of_helper += d->line == LINE_outer - 1;
        of_loss += d->line == line;
    }
    assert_int_equal(n2_at(b.g, dx)->line, LINE_outer - 1);
    assert_true(of_helper >= 4 && of_loss >= 8); /* values, and their gradients */
    close_bench(&b);
}

/* After a mistake nothing is built, nothing crashes, and the first message stays. */
static void after_a_mistake_building_does_nothing(void **state) {
    (void)state;
    bench b = cpu_bench();
    const n2_node x = tensor(&b, "x", n2_dims(5, 3));
    const int line = __LINE__ + 1;
    n2_node y = n2g_add(b.g, x, n2g_randn(b.g, n2_dims(4)));
    char first[256], where[32];
    snprintf(first, sizeof first, "%s", n2ce_errmsg(b.ctx));
    snprintf(where, sizeof where, "test_plan.c:%d", line);
    assert_non_null(strstr(first, where));
    const uint32_t size = n2_graph_size(b.g);
    n2_node dx;
    y = n2g_softmax(b.g, n2g_matmul(b.g, y, x, false, false), 0);
    y = n2g_logsumexp(b.g, n2g_slice(b.g, n2g_silu(b.g, y), 1, 2, 90), n2_axis(3));
    y = n2g_squared_distances(b.g, n2g_tile_rows(b.g, y, 3), x);
    y = n2g_n2ce_loss(b.g, n2g_mean(b.g, y, N2_ALL_AXES), n2g_median(b.g, x, true), 0.5);
    y = n2g_cross_entropy(b.g, n2g_gaussian_kl(b.g, y, x), n2g_permutation(b.g, 7));
    n2g_grad(b.g, y, &x, 1, &dx);
    n2g_assign(b.g, n2_store_find(b.store, "x"), dx);
    y = n2g_read(b.g, n2_store_find(b.store, "x"));
    y = n2g_exp(b.g, x);
    assert_int_equal(y.id, 0);
    assert_int_equal(n2_graph_size(b.g), size);
    assert_int_equal(n2_plan_compile(b.g, b.backend, &y, 1, &b.plan), N2CE_EINVAL);
    assert_null(b.plan);
    assert_string_equal(n2ce_errmsg(b.ctx), first);
    close_bench(&b);
}

/* A gradient is of a scalar; a store is of the backend's numbers; names are taken once. */
static void other_mistakes_are_told(void **state) {
    (void)state;
    bench b = cpu_bench();
    n2_node x = tensor(&b, "x", n2_dims(5, 3)), dx;
    assert_null(n2_store_add(b.store, "x", n2_dims(2)));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "\"x\""));
    assert_int_equal(n2_plan_compile(b.g, n2_ref_backend(), &x, 1, &b.plan), N2CE_EINVAL);
    n2g_grad(b.g, x, &x, 1, &dx);
    assert_int_equal(n2_graph_status(b.g), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "[5 x 3]"));
    close_bench(&b);
}

/* ---- checked runs ---------------------------------------------------------- */

/* Ten functions, and in their midst the logarithm of row 700, which is negative. */
static n2_node hidden_logarithm(bench *b, n2_shape shape, int *line) {
    n2_node x = tensor(b, "x", shape);
    for (int i = 0; i < 5; i++) x = n2g_tanh(b->g, n2g_affine(b->g, x, 1, 0.1));
    *line = __LINE__ + 1;
    x = n2g_log(b->g, x);
    for (int i = 0; i < 5; i++) x = n2g_exp(b->g, n2g_affine(b->g, x, -0.1, 0));
    return x;
}

static void check_hidden_logarithm(const n2_backend *backend, n2_shape shape) {
    bench b = open_bench(backend, NULL, 2);
    int line;
    const n2_node y = n2g_total(b.g, hidden_logarithm(&b, shape, &line));
    fill_tensor(&b, "x", 2, 0.5);
    compile(&b, &y, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run_checked(b.plan), N2CE_OK);
    assert_int_equal(n2_plan_runs(b.plan), 2);
    fill_tensor(&b, "x", 2, 30);
    assert_int_equal(n2_plan_run_checked(b.plan), N2CE_ENAN);
    char where[32];
    snprintf(where, sizeof where, "test_plan.c:%d ", line);
    const char *message = n2ce_errmsg(b.ctx);
    assert_non_null(strstr(message, "op log"));
    assert_non_null(strstr(message, where));
    assert_non_null(strstr(message, "Step 3"));
    close_bench(&b);
}

/* A checked run names the first op whose value is not finite, the step and the line. */
static void a_checked_run_finds_the_first_bad_node(void **state) {
    (void)state;
    check_hidden_logarithm(n2_ref_backend(), n2_dims(1000, 3));
    check_hidden_logarithm(n2_cpu_backend(), n2_dims(1000, 3));
    check_hidden_logarithm(n2_cpu_backend(), n2_dims(4, 3));
}

/* Checked or not, a run gives the same values and leaves the same tensors. */
static void checked_runs_give_the_same_values(void **state) {
    (void)state;
    double values[2][5 * 30], losses[2][3];
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(n2_cpu_backend(), NULL, 2);
        n2_node loss;
        assert_int_equal(build_training(b.store, b.g, &loss), N2CE_OK);
        fill_tensor(&b, "p", 0, 0.3);
        compile(&b, &loss, 1);
        n2_plan_seed(b.plan, 7, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(k ? n2_plan_run_checked(b.plan) : n2_plan_run(b.plan), N2CE_OK);
            losses[k][i] = n2_plan_scalar(b.plan, 0);
        }
        assert_int_equal(n2_plan_runs(b.plan), 6);
        n2_tensor_get(b.store, n2_store_find(b.store, "p"), values[k]);
        close_bench(&b);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_memory_equal(values[0], values[1], 30 * sizeof values[0][0]);
}

/* The text of a shape fits its buffer, however long the numbers. */
static void texts_of_shapes_fit(void **state) {
    (void)state;
    struct {
        char text[64], guard[64];
    } buffer;
    memset(&buffer, 'x', sizeof buffer);
    assert_string_equal(n2_shape_text(n2_dims(128, 20), buffer.text), "[128 x 20]");
    assert_string_equal(n2_shape_text(n2_scalar_shape(), buffer.text), "[]");
    char *text = buffer.text; /* hides the size from the compiler */
    n2_shape_text(n2_dims(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX), text);
    assert_non_null(memchr(buffer.text, 0, sizeof buffer.text));
    for (size_t i = 0; i < sizeof buffer.guard; i++) assert_int_equal(buffer.guard[i], 'x');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_nodes_are_one_node),
        cmocka_unit_test(equal_nodes_are_found_among_many),
        cmocka_unit_test(random_nodes_stay_apart),
        cmocka_unit_test(dead_nodes_do_not_run),
        cmocka_unit_test(updates_are_roots),
        cmocka_unit_test(chains_take_no_memory),
        cmocka_unit_test(training_is_one_row_program),
        cmocka_unit_test(row_programs_change_nothing),
        cmocka_unit_test(products_take_sums_and_gates_along),
        cmocka_unit_test(rows_are_made_where_they_are_needed),
        cmocka_unit_test(gathering_comes_after_the_product),
        cmocka_unit_test(products_of_joined_rows_are_taken_apart),
        cmocka_unit_test(runs_allocate_nothing),
        cmocka_unit_test(running_out_of_memory_is_an_error),
        cmocka_unit_test(a_mistake_is_told_with_op_shapes_and_line),
        cmocka_unit_test(nodes_know_their_line),
        cmocka_unit_test(after_a_mistake_building_does_nothing),
        cmocka_unit_test(other_mistakes_are_told),
        cmocka_unit_test(a_checked_run_finds_the_first_bad_node),
        cmocka_unit_test(checked_runs_give_the_same_values),
        cmocka_unit_test(rows_without_columns_stay_in_their_tile),
        cmocka_unit_test(texts_of_shapes_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
