/* Every rewrite, before and after: the graph as it is built without rewrites and with them, as
 * expressions, and the same numbers from both. */
#include "close.h"
#include "contexts.h"
#include "cpu/cpu.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <string.h>

/* t is a table of 3 rows, i picks 12 of them, `long` is a table of 12. */
typedef struct leaves {
    n2_node t, i, x, w, v, b, longer;
} leaves;

typedef n2_node build_fn(n2_graph *g, const leaves *l);

#define BUILD(NAME, EXPRESSION) \
    static n2_node NAME(n2_graph *g, const leaves *l) { return (void)l, EXPRESSION; }
#define TWO n2g_constant(g, 2)
BUILD(constants, n2g_exp(g, n2g_affine(g, n2g_sub(g, n2g_mul(g, TWO, TWO), TWO), 0.5, 1)))
BUILD(constant_and_not, n2g_add(g, n2g_add(g, TWO, TWO), l->x))
BUILD(sums_with_nothing, n2g_sub(g, n2g_add(g, n2g_constant(g, 0), l->x), n2g_constant(g, 0)))
BUILD(products_with_one,
      n2g_div(g, n2g_mul(g, n2g_scale(g, l->x, 1), n2g_constant(g, 1)), n2g_constant(g, 1)))
BUILD(reshapes, n2g_reshape(g, n2g_reshape(g, l->x, n2_dims(2, 24)), n2_dims(6, 8)))
BUILD(function_of_rows, n2g_tanh(g, n2g_lrelu(g, n2g_gather(g, l->t, l->i), 0.2)))
BUILD(function_of_long_table, n2g_tanh(g, n2g_gather(g, l->longer, l->i)))
BUILD(layer_of_rows, n2g_linear(g, n2g_gather(g, l->t, l->i), l->w, l->b))
BUILD(transposed_rows, n2g_matmul(g, n2g_gather(g, l->t, l->i), l->x, true, false))
BUILD(joined, n2g_matmul(g, n2g_concat(g, l->x, n2g_gather(g, l->t, l->i), 1), l->v, false, false))
BUILD(joined_first, n2g_linear(g, n2g_concat(g, n2g_gather(g, l->t, l->i), l->x, 1),
                               n2g_transpose(g, l->v, 0, 1), l->b))
BUILD(joined_rows, n2g_matmul(g, n2g_concat(g, l->x, l->longer, 1), l->v, false, false))
BUILD(function_of_joined, n2g_lrelu(g, n2g_concat(g, l->x, l->longer, 1), 0.2))
#define PICTURES n2g_reshape(g, l->x, n2_dims(6, 2, 2, 2))
#define KERNEL   n2g_reshape(g, l->v, n2_dims(2, 2, 2, 5))
#define BARE     ((n2_window){.stride_y = 1, .stride_x = 2})
BUILD(covered, n2g_conv2d(g, PICTURES, KERNEL, BARE))
BUILD(covered_by_input,
      n2g_conv2d_input(g, n2g_reshape(g, l->b, n2_dims(1, 1, 1, 5)), KERNEL, 2, 2, BARE))
BUILD(covered_by_weight,
      n2g_conv2d_weight(g, PICTURES, n2g_reshape(g, l->t, n2_dims(6, 1, 1, 2)), 2, 2, BARE))
BUILD(framed, n2g_conv2d(g, PICTURES, KERNEL, ((n2_window){2, 2, 1, 0, 0, 0})))
BUILD(layer, n2g_linear(g, l->x, l->w, l->b))
BUILD(product, n2g_matmul(g, l->x, l->w, false, true))

static const struct {
    const char *name;
    build_fn *build;
    const char *before, *after;
} rows[] = {
    {"fold_constants", constants, "exp(affine(sub(mul(2, 2), 2)))", "7.38906"},
    {"fold_constants", constant_and_not, "add(add(2, 2), x)", "add(4, x)"},
    {"drop_no_ops", sums_with_nothing, "sub(add(0, x), 0)", "x"},
    {"drop_no_ops", products_with_one, "div(mul(affine(x), 1), 1)", "x"},
    {"drop_no_ops", reshapes, "reshape(reshape(x))", "reshape(x)"},
    {"hoist_off_rows", function_of_rows, "tanh(lrelu(gather(t, i)))", "gather(tanh(lrelu(t)), i)"},
    {"hoist_off_rows", function_of_long_table, "tanh(gather(long, i))", "tanh(gather(long, i))"},
    {"hoist_off_rows", layer_of_rows, "matmul(gather(t, i), w, , b)",
     "gather(matmul(t, w, transpose(w), b), i)"},
    {"hoist_off_rows", transposed_rows, "matmul(gather(t, i), x)", "matmul(gather(t, i), x)"},
    {"split_concats", joined, "matmul(concat(x, gather(t, i)), v)",
     "add(matmul(x, slice(v)), gather(matmul(t, slice(v)), i))"},
    {"split_concats", joined_first, "matmul(concat(gather(t, i), x), transpose(v), , b)",
     "add(gather(matmul(t, slice(transpose(v)), transpose(slice(transpose(v))), b), i), "
     "matmul(x, slice(transpose(v)), transpose(slice(transpose(v)))))"},
    {"split_concats", joined_rows, "matmul(concat(x, long), v)", "matmul(concat(x, long), v)"},
    {"split_concats", function_of_joined, "lrelu(concat(x, long))",
     "concat(lrelu(x), lrelu(long))"},
    {"whole_pictures", covered, "conv2d(reshape(x), reshape(v))", "reshape(matmul(reshape(x), v))"},
    {"whole_pictures", covered_by_input, "conv2d_input(reshape(b), reshape(v))",
     "reshape(matmul(reshape(b), v, transpose(v)))"},
    {"whole_pictures", covered_by_weight, "conv2d_weight(reshape(x), reshape(t))",
     "reshape(matmul(reshape(x), reshape(t)))"},
    {"whole_pictures", framed, "conv2d(reshape(x), reshape(v))", "conv2d(reshape(x), reshape(v))"},
    {"pack_transposed", layer, "matmul(x, w, , b)", "matmul(x, w, transpose(w), b)"},
    {"pack_transposed", product, "matmul(x, w)", "matmul(x, w, transpose(w))"},
};

/* ---- graphs as text --------------------------------------------------------- */

static void write_node(const n2_graph *g, n2_node x, char *out, size_t size) {
    if (!x.id) return;
    const n2_node_data *d = n2_at(g, x);
    size_t at = strlen(out);
    if (d->op->id == N2_OP_tensor) {
        snprintf(out + at, size - at, "%s", d->attr->tensor[0]->name);
        return;
    }
    if (d->op->id == N2_OP_constant) {
        snprintf(out + at, size - at, "%g", d->attr->value);
        return;
    }
    snprintf(out + at, size - at, "%s(", d->op->name);
    for (int k = 0; k < d->n_in; k++) {
        if (k) strncat(out, ", ", size - strlen(out) - 1);
        write_node(g, d->in[k], out, size);
    }
    strncat(out, ")", size - strlen(out) - 1);
}

static void assert_reads(const n2_graph *g, n2_node x, const char *expected) {
    char text[512] = "";
    write_node(g, x, text, sizeof text);
    assert_string_equal(text, expected);
}

/* ---- both graphs ------------------------------------------------------------ */

static n2_node read_new(n2_graph *g, const char *name, n2_shape shape, double from, double modulo) {
    double values[256];
    n2_store *store = n2_graph_store(g);
    n2_tensor *t = n2_store_find(store, name);
    if (!t) {
        assert_non_null(t = n2_store_add(store, name, shape));
        for (int64_t k = 0; k < n2_elements(shape); k++)
            values[k] = modulo > 0 ? fmod(7 * (double)k, modulo) : sin(from + (double)k);
        n2_tensor_set(store, t, values);
    }
    return n2g_read(g, t);
}

static leaves read_leaves(n2_graph *g) {
    return (leaves){.t = read_new(g, "t", n2_dims(3, 4), 1, 0),
                    .i = read_new(g, "i", n2_dims(12), 0, 3),
                    .x = read_new(g, "x", n2_dims(12, 4), 2, 0),
                    .w = read_new(g, "w", n2_dims(5, 4), 3, 0),
                    .v = read_new(g, "v", n2_dims(8, 5), 4, 0),
                    .b = read_new(g, "b", n2_dims(5), 5, 0),
                    .longer = read_new(g, "long", n2_dims(12, 4), 6, 0)};
}

static size_t values_of(n2_graph *g, const n2_backend *backend, n2_node y, double *values) {
    n2_plan *plan;
    assert_int_equal(n2_plan_compile(g, backend, &y, 1, &plan), N2CE_OK);
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    n2_plan_get(plan, 0, values);
    n2_plan_free(plan);
    return (size_t)n2_elements(n2_shape_at(g, y));
}

static void check_row(size_t row, const n2_backend *backend, double relative) {
    n2ce_ctx *ctx = new_ctx(2);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, backend->bytes, &store), N2CE_OK);
    n2_graph *graphs[] = {n2_graph_with(store, NULL), n2_graph_new(store)};
    double values[2][256];
    size_t n[2];
    for (int k = 0; k < 2; k++) {
        const leaves l = read_leaves(graphs[k]);
        const n2_node y = rows[row].build(graphs[k], &l);
        assert_int_equal(n2_graph_status(graphs[k]), N2CE_OK);
        assert_reads(graphs[k], y, k ? rows[row].after : rows[row].before);
        n[k] = values_of(graphs[k], backend, y, values[k]);
    }
    assert_int_equal(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) assert_close(values[1][i], values[0][i], relative, relative);
    for (int k = 0; k < 2; k++) n2_graph_free(graphs[k]);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

static void rewrites_do_what_they_say(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        print_message("%s: %s\n", rows[i].name, rows[i].after);
        check_row(i, n2_ref_backend(), 1e-14);
        check_row(i, n2_cpu_backend(), 1e-6);
    }
}

/* ---- fusion ----------------------------------------------------------------- */

/* x + lrelu_grad(x, x m): one instruction instead of three, and the same numbers. */
static void an_epilogue_is_part_of_the_product(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_graph *graphs[] = {n2_graph_with(store, NULL), n2_graph_new(store)};
    double values[2][160];
    for (int k = 0; k < 2; k++) {
        n2_graph *g = graphs[k];
        const n2_node x = read_new(g, "rows", n2_dims(40, 4), 1, 0);
        const n2_node m = read_new(g, "m", n2_dims(4, 4), 2, 0);
        const n2_node gated =
            n2_build_binary(g, N2_OP_lrelu_grad, x, n2g_matmul(g, x, m, false, false), 0.2);
        const n2_node y = n2g_add(g, x, gated);
        assert_reads(g, y, "add(rows, lrelu_grad(rows, matmul(rows, m)))");
        n2_plan *plan;
        assert_int_equal(n2_plan_compile(g, n2_cpu_backend(), &y, 1, &plan), N2CE_OK);
        assert_int_equal(n2_plan_measure(plan).nodes, k ? 1 : 3);
        assert_int_equal(n2_plan_run(plan), N2CE_OK);
        n2_plan_get(plan, 0, values[k]);
        n2_plan_free(plan);
    }
    for (size_t i = 0; i < 160; i++) assert_close(values[1][i], values[0][i], 1e-6, 1e-7);
    for (int k = 0; k < 2; k++) n2_graph_free(graphs[k]);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* Fusions, asked one by one: a gate of a product, a sum of a product, a sum of a gated one; and
 * not a product as the gate itself, nor a sum of a sum. */
static void fusions_are_few(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_graph *g = n2_graph_new(store);
    const n2_node x = read_new(g, "rows", n2_dims(40, 4), 1, 0);
    const n2_node p = n2g_matmul(g, x, read_new(g, "m", n2_dims(4, 4), 2, 0), false, false);
    const n2_node gated = n2_build_binary(g, N2_OP_lrelu_grad, x, p, 0.2);
    const n2_node gates = n2_build_binary(g, N2_OP_lrelu_grad, p, x, 0.2);
    const n2_node sum = n2g_add(g, p, x), again = n2g_add(g, sum, x);
    const n2_node after = n2g_add(g, gated, x), other = n2g_mul(g, p, x);
    const struct {
        n2_node node;
        int k;
        n2_epilogue done, expected;
    } cases[] = {
        {gated, 1, N2_NO_EPILOGUE, N2_GATE_PRODUCT},    {gates, 0, N2_NO_EPILOGUE, N2_NO_EPILOGUE},
        {sum, 0, N2_NO_EPILOGUE, N2_ADD_TO_PRODUCT},    {sum, 1, N2_NO_EPILOGUE, N2_NO_EPILOGUE},
        {after, 0, N2_GATE_PRODUCT, N2_ADD_TO_PRODUCT}, {after, 0, N2_NO_EPILOGUE, N2_NO_EPILOGUE},
        {again, 0, N2_ADD_TO_PRODUCT, N2_NO_EPILOGUE},  {other, 0, N2_NO_EPILOGUE, N2_NO_EPILOGUE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(n2_graph_fuse(g, n2_at(g, cases[i].node), cases[i].k, cases[i].done),
                         cases[i].expected);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_do_what_they_say),
        cmocka_unit_test(an_epilogue_is_part_of_the_product),
        cmocka_unit_test(fusions_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
