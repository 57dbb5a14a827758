/* Which values of a plan lie in memory in 16 bits: the rule of engine/plan_storage.c, by a backend
 * whose convolutions want their pictures so. Nothing is run. */
#include "contexts.h"
#include "cpu/cpu.h"

#include "engine/plan_data.h"
#include "rewrite/rewrites.h"

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static n2_storage rules[N2_OP_COUNT];
static n2_backend backend;

/* The processor's backend, as if its kernels could do what a GPU's can. */
static int make_backend(void **state) {
    (void)state;
#define ELEMENTWISE(name) rules[N2_OP_##name] = (n2_storage){255, 0, true, true};
    N2_UNARY_LIST(ELEMENTWISE)
    N2_BINARY_LIST(ELEMENTWISE)
    rules[N2_OP_conv2d] = rules[N2_OP_conv2d_input] = (n2_storage){1, 1, true, false};
    rules[N2_OP_conv2d_weight] = (n2_storage){3, 3, false, false};
    rules[N2_OP_sum] = (n2_storage){1, 0, false, false};
    backend = *n2_cpu_backend();
    backend.narrow = N2_BF16;
    backend.storage = rules;
    return 0;
}

static bench open_bench(void) {
    bench b = {.ctx = new_ctx(1)};
    assert_int_equal(n2_store_new(b.ctx, sizeof(float), &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    return b;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static n2_node read_new(bench *b, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_add(b->store, name, shape);
    assert_non_null(t);
    return n2g_read(b->g, t);
}

static void compile(bench *b, const n2_node *outputs, size_t n) {
    assert_int_equal(n2_plan_compile(b->g, &backend, outputs, n, &b->plan), N2CE_OK);
}

static n2_dtype type_of(const bench *b, n2_node x) { return b->plan->nodes[x.id].dtype; }

static const n2_window window = {1, 1, 1, 1, 1, 1};
enum { N = 20, SIDE = 6, C = 4 };

/* x -> conv -> + bias -> silu -> conv -> + skip -> conv -> loss */
typedef struct network {
    n2_node x, k[3], bias, first, shifted, hidden, second, joined, last, loss;
} network;

static network build(bench *b) {
    n2_graph *g = b->g;
    network w = {.x = n2g_randn(g, n2_dims(N, SIDE, SIDE, C))};
    w.k[0] = read_new(b, "k0", n2_dims(3, 3, C, C));
    w.k[1] = read_new(b, "k1", n2_dims(3, 3, C, C));
    w.k[2] = read_new(b, "k2", n2_dims(3, 3, C, 2));
    w.bias = n2g_add(g, read_new(b, "bias", n2_dims(C)), read_new(b, "more", n2_dims(C)));
    w.first = n2g_conv2d(g, w.x, w.k[0], window);
    w.shifted = n2g_add(g, w.first, w.bias);
    w.hidden = n2g_silu(g, w.shifted);
    w.second = n2g_conv2d(g, w.hidden, w.k[1], window);
    w.joined = n2g_add(g, w.second, w.hidden);
    w.last = n2g_conv2d(g, w.joined, w.k[2], window);
    w.loss = n2g_total(g, n2g_mul(g, w.last, w.last));
    return w;
}

static void the_inside_of_a_network_is_narrow(void **state) {
    (void)state;
    bench b = open_bench();
    const network w = build(&b);
    n2_node d[4];
    const n2_node parameters[] = {w.k[0], w.k[1], w.k[2], w.bias};
    n2g_grad(b.g, w.loss, parameters, 4, d);
    const n2_node outputs[] = {w.loss, d[0], d[1], d[2], d[3]};
    compile(&b, outputs, 5);
    const n2_node narrow[] = {w.first, w.shifted, w.hidden, w.second, w.joined};
    for (size_t i = 0; i < 5; i++) assert_int_equal(type_of(&b, narrow[i]), N2_BF16);
    const n2_node wide[] = {w.x, w.k[0], w.bias, w.last, w.loss, d[0], d[1], d[2], d[3]};
    for (size_t i = 0; i < 9; i++) assert_int_equal(type_of(&b, wide[i]), N2_NUMBER);
    /* on the way back, what convolutions read */
    for (size_t s = 0; s < b.plan->n_steps; s++)
        for (size_t i = 0; i < b.plan->steps[s].n_code; i++) {
            const n2_instruction *at = &b.plan->steps[s].code[i];
            if (at->node->op->id == N2_OP_conv2d_input) assert_int_equal(at->in[0].dtype, N2_BF16);
            if (at->node->op->id == N2_OP_conv2d_weight) assert_int_equal(at->in[1].dtype, N2_BF16);
        }
    close_bench(&b);
}

/* An output is read as it is; a view of one too. */
static void outputs_are_numbers(void **state) {
    (void)state;
    bench b = open_bench();
    const network w = build(&b);
    const n2_node outputs[] = {w.loss, w.shifted,
                               n2g_reshape(b.g, w.joined, n2_dims(N, SIDE * SIDE * C))};
    compile(&b, outputs, 3);
    assert_int_equal(type_of(&b, w.shifted), N2_NUMBER);
    assert_int_equal(type_of(&b, w.joined), N2_NUMBER);
    assert_int_equal(type_of(&b, w.first), N2_NUMBER); /* nobody wants it now */
    assert_int_equal(type_of(&b, w.hidden), N2_BF16);
    close_bench(&b);
}

/* One reader that cannot read it is enough; sums neither mind nor want. */
static void every_reader_must_agree(void **state) {
    (void)state;
    bench b = open_bench();
    const network w = build(&b);
    const n2_node top = n2g_amax(b.g, w.hidden, n2_axis(3));
    const n2_node sum = n2g_sum(b.g, w.joined, n2_axis(1));
    const n2_node alone = n2g_exp(b.g, w.x);
    const n2_node outputs[] = {w.loss, top, sum, n2g_sum(b.g, alone, n2_axis(0))};
    compile(&b, outputs, 4);
    assert_int_equal(type_of(&b, w.hidden), N2_NUMBER);
    assert_int_equal(type_of(&b, w.joined), N2_BF16);
    assert_int_equal(type_of(&b, alone), N2_NUMBER);
    close_bench(&b);
}

static void without_a_narrow_type_all_are_numbers(void **state) {
    (void)state;
    bench b = open_bench();
    const network w = build(&b);
    assert_int_equal(n2_plan_compile(b.g, n2_cpu_backend(), &w.loss, 1, &b.plan), N2CE_OK);
    for (uint32_t id = 1; id <= b.plan->n_nodes; id++)
        assert_int_equal(b.plan->nodes[id].dtype, N2_NUMBER);
    close_bench(&b);
}

/* Half as many bytes, and the plan says where. */
static void plans_tell_and_are_smaller(void **state) {
    (void)state;
    bench b = open_bench();
    const network w = build(&b);
    n2_text text = n2_text_new(b.ctx);
    compile(&b, &w.loss, 1);
    n2_plan_print(b.plan, &text);
    assert_non_null(strstr(text.data, "silu         [20 x 6 x 6 x 4], bf16"));
    const size_t bytes = n2_plan_measure(b.plan).bytes;
    n2_plan_free(b.plan);
    assert_int_equal(n2_plan_compile(b.g, n2_cpu_backend(), &w.loss, 1, &b.plan), N2CE_OK);
    assert_true(bytes < n2_plan_measure(b.plan).bytes);
    n2_text_free(&text);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inside_of_a_network_is_narrow),
        cmocka_unit_test(outputs_are_numbers),
        cmocka_unit_test(every_reader_must_agree),
        cmocka_unit_test(without_a_narrow_type_all_are_numbers),
        cmocka_unit_test(plans_tell_and_are_smaller),
    };
    return cmocka_run_group_tests(tests, make_backend, NULL);
}
