/* Facts about what a GPU makes of a graph: chains of ops, products, rows of tables and columns side
 * by side have the values that the processor gives them, in fewer launches than nodes. Where there
 * is no GPU the tests say so and are skipped. */
#include "close.h"
#include "cpu/cpu.h"
#include "fast_backend.h"

#include "nn/nn.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chains ----------------------------------------------------------------- */

typedef n2_node chain_builder(n2_graph *g, int64_t rows, int64_t width);

/* Their sums are exact. */
static n2_node whole_numbers(n2_graph *g, int64_t rows, int64_t width) {
    return n2g_affine(g, n2g_randint(g, n2_dims(rows, width), 9), 1, -4);
}

/* What a device makes of a graph, and in how many launches. */
static double *chain_values(const n2_backend *backend, chain_builder *build, int64_t rows,
                            int64_t width, size_t *launches) {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_plan *plan;
    double *values = calloc((size_t)(rows * width), sizeof *values);
    assert_non_null(values);
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_graph *g = n2_graph_new(store);
    const n2_node out = build(g, rows, width);
    if (n2_plan_compile(g, backend, &out, 1, &plan) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    n2_plan_seed(plan, 5, 0);
    assert_int_equal(n2_plan_run_many(plan, 2), N2CE_OK); /* what is left over does not matter */
    n2_plan_get(plan, 0, values);
    if (launches) *launches = n2_plan_measure(plan).launches;
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
    return values;
}

static void check_shape(chain_builder *build, int64_t rows, int64_t width) {
    double *x = chain_values(open_cuda_or_skip(true), build, rows, width, NULL);
    double *y = chain_values(n2_cpu_backend(), build, rows, width, NULL);
    for (int64_t i = 0; i < rows * width; i++) assert_close(x[i], y[i], 1e-5, 1e-6);
    free(x);
    free(y);
}

/* Threads have one element, four in a row, four apart, or several times four; chains are one
 * block's or many blocks'. */
static void check_chain(chain_builder *build) {
    static const int64_t shapes[][2] = {{1, 7},     {10, 20},   {31, 33},  {16, 32},
                                        {125, 24},  {1001, 3},  {2048, 8}, {1003, 21},
                                        {5000, 12}, {1025, 16}, {65536, 9}};
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        check_shape(build, shapes[k][0], shapes[k][1]);
}

/* Each takes what the one before made, and something else: more than threads have slots for, and
 * more jobs than are fetched at once. */
static n2_node long_chain(n2_graph *g, int64_t rows, int64_t width) {
    n2_node in[6], x = n2g_randn(g, n2_dims(rows, width));
    for (int k = 0; k < 6; k++) in[k] = n2g_randn(g, n2_dims(rows, width));
    for (int k = 0; k < 6; k++) {
        x = n2g_mul(g, x, in[k]);
        x = n2g_tanh(g, n2g_sub(g, in[(k + 1) % 6], n2g_affine(g, x, 0.5, 0.1)));
        x = n2g_maximum(g, n2g_lrelu(g, x, 0.1), n2g_neg(g, in[k]));
    }
    return x;
}
static void a_chain_may_be_long(void **state) {
    (void)state;
    check_chain(long_chain);
}

/* What is made is needed by the next, again by a later one, and twice by one. */
static n2_node used_again(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), y = n2g_randn(g, n2_dims(rows, width));
    const n2_node a = n2g_affine(g, n2g_mul(g, x, x), 1, 0.5), b = n2g_div(g, y, a);
    const n2_node c = n2g_sub(g, n2g_mul(g, b, b), n2g_sqrt(g, a)), d = n2g_add(g, c, a);
    const n2_node e = n2g_mul(g, n2g_greater(g, d, b), n2g_exp(g, n2g_neg(g, a)));
    return n2g_add(g, n2g_minimum(g, e, x), n2g_mul(g, d, n2g_add(g, y, c)));
}
static void what_a_chain_makes_may_be_used_again(void **state) {
    (void)state;
    check_chain(used_again);
}

/* Zeros of both signs, which functions keep, change, or make; copied they stay what they are. */
static n2_node zeros(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), nought = n2g_sub(g, x, x);
    const n2_node column = n2g_mul(g, n2g_randn(g, n2_dims(rows, 1)), n2g_sum(g, nought, 2));
    const n2_node a = n2g_mul(g, x, nought), b = n2g_neg(g, a), c = n2g_add(g, a, a);
    const n2_node wide = n2g_broadcast(g, column, n2_dims(rows, width));
    const n2_node d = n2g_sub(g, b, nought), e = n2g_sub(g, n2g_neg(g, nought), a);
    const n2_node list[] = {a, b, c, d, e, wide};
    n2_node sum = n2g_scale(g, x, 0.1);
    for (int k = 0; k < 6; k++) {
        const n2_node positive = n2g_greater(g, n2g_reciprocal(g, list[k]), nought);
        sum = n2g_add(g, sum, n2g_scale(g, positive, (double)(1 << k)));
    }
    return sum;
}
static void zeros_have_their_signs(void **state) {
    (void)state;
    check_chain(zeros);
}

/* Operands that are one number, a row, or a column; one number that the chain's own elements are
 * summed up to. */
static n2_node broadcasts(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), one = n2g_randn(g, n2_dims(1, 1));
    const n2_node row = n2g_randn(g, n2_dims(1, width)), column = n2g_randn(g, n2_dims(rows, 1));
    const n2_node a = n2g_mul(g, n2g_add(g, x, row), column), b = n2g_sub(g, one, a);
    const n2_node wide = n2g_broadcast(g, column, n2_dims(rows, width));
    const n2_node c = n2g_add(g, n2g_mul(g, n2g_sigmoid(g, b), row), n2g_affine(g, wide, 2, 1));
    const n2_node mean = n2g_scale(g, n2g_mean(g, c, N2_ALL_AXES), 0.5);
    const n2_node d = n2g_sub(g, n2g_mul(g, c, one), mean);
    return n2g_add(g, n2g_mul(g, d, d), n2g_add(g, n2g_mul(g, wide, d), column));
}
static void operands_of_a_chain_may_be_broadcast(void **state) {
    (void)state;
    check_chain(broadcasts);
}

/* Between its functions a chain fetches rows of a table, also of one of as many elements that was
 * made just before, by other threads. */
static n2_node gathers(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node table = n2g_randn(g, n2_dims(5, width)), x = n2g_randn(g, n2_dims(rows, width));
    const n2_node index = n2g_randint(g, n2_dims(rows), 5);
    const n2_node a = n2g_lrelu(g, n2g_gather(g, table, index), 0.2);
    const n2_node b = n2g_affine(g, n2g_gather(g, n2g_neg(g, table), index), 3, -1);
    const n2_node mixed = n2g_gather(g, n2g_affine(g, n2g_sub(g, a, x), 2, 1), index);
    const n2_node c = n2g_add(g, n2g_mul(g, n2g_sub(g, a, x), b), n2g_neg(g, mixed));
    return n2g_add(g, c, n2g_mul(g, a, n2g_softplus(g, x)));
}
static void a_chain_may_fetch_rows(void **state) {
    (void)state;
    check_chain(gathers);
}

/* Rows of a table, and a function of many numbers, that are needed only when a product is there:
 * by one job, or by two. */
static n2_node late(n2_graph *g, int64_t rows, int64_t width, bool again) {
    const n2_node table = whole_numbers(g, 5, width), x = whole_numbers(g, rows, width);
    const n2_node index = n2g_randint(g, n2_dims(rows), 5);
    const n2_node a = n2g_gather(g, table, index), b = n2g_mul(g, x, whole_numbers(g, 1, width));
    const n2_node y = n2g_neg(g, whole_numbers(g, rows, 6)), w = whole_numbers(g, 6, width);
    const n2_node c = n2g_add(g, n2g_mul(g, a, n2g_matmul(g, y, w, false, false)), b);
    return again ? n2g_add(g, c, n2g_mul(g, n2g_neg(g, a), n2g_sum(g, b, 2))) : c;
}
static n2_node late_once(n2_graph *g, int64_t rows, int64_t width) {
    return late(g, rows, width, false);
}
static n2_node late_again(n2_graph *g, int64_t rows, int64_t width) {
    return late(g, rows, width, true);
}
static void what_is_needed_late_is_made_late(void **state) {
    (void)state;
    for (int64_t rows = 100; rows <= 2000; rows += 900) {
        check_shape(late_once, rows, 24);
        check_shape(late_again, rows, 24);
    }
}

static size_t launches_of(chain_builder *build, int64_t rows, int64_t width) {
    size_t launches;
    free(chain_values(open_cuda_or_skip(true), build, rows, width, &launches));
    return launches;
}

/* A tensor that is changed, and its average. */
static n2_node changed(n2_graph *g, int64_t rows, int64_t width, bool averaged) {
    n2_store *store = n2_graph_store(g);
    n2_tensor *t = n2_store_add(store, "t", n2_dims(rows, width));
    n2_tensor *average = n2_store_add(store, "average", n2_dims(rows, width));
    n2g_assign(g, t, n2g_add(g, n2g_read(g, t), n2g_randn(g, n2_dims(rows, width))));
    if (averaged) n2_average(g, average, t, 0.75);
    return averaged ? n2g_read(g, average) : n2g_read(g, t);
}
static n2_node changed_alone(n2_graph *g, int64_t rows, int64_t width) {
    return changed(g, rows, width, false);
}
static n2_node changed_and_averaged(n2_graph *g, int64_t rows, int64_t width) {
    return changed(g, rows, width, true);
}
static void averages_are_made_and_assigned_at_once(void **state) {
    (void)state;
    check_chain(changed_and_averaged);
    for (int64_t rows = 1; rows <= 10000; rows *= 100)
        assert_true(launches_of(changed_and_averaged, rows, 4) <=
                    launches_of(changed_alone, rows, 4) + 1);
}

/* ---- products --------------------------------------------------------------- */

/* Both factors as they are and transposed, whose rows begin anywhere. */
static n2_node all_products(n2_graph *g, int64_t rows, int64_t width) {
    enum { K = 37 };
    n2_node sum = whole_numbers(g, 1, width);
    for (int k = 0; k < 4; k++) {
        const bool ta = k % 2 == 1, tb = k / 2 == 1;
        const n2_node a = ta ? whole_numbers(g, K, rows) : whole_numbers(g, rows, K);
        const n2_node b = tb ? whole_numbers(g, width, K) : whole_numbers(g, K, width);
        sum = n2g_add(g, sum, n2g_matmul(g, a, b, ta, tb));
    }
    return sum;
}
/* The same with a long inner axis, which is cut into slices. */
static n2_node long_product(n2_graph *g, int64_t rows, int64_t width) {
    enum { K = 1030 };
    return n2g_matmul(g, whole_numbers(g, K, rows), whole_numbers(g, K, width), true, false);
}
/* Few tiles, which are small then, or many; wider than a tile, and not a multiple of anything. */
static void rows_of_factors_may_begin_anywhere(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {33, 7}, {65, 129}, {131, 30}, {1100, 133}};
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        check_shape(all_products, shapes[k][0], shapes[k][1]);
    check_shape(long_product, 67, 131);
}

/* ---- rows of a table -------------------------------------------------------- */

/* Copies of tables: of rows, and of an index with which rows are fetched. */
static n2_node with_copies(n2_graph *g, int64_t rows, int64_t width, n2_node all) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), y = n2g_neg(g, x);
    const n2_node index = n2g_gather(g, n2g_randint(g, n2_dims(rows), 5), all);
    const n2_node table = n2g_randn(g, n2_dims(5, width));
    const n2_node a = n2g_mul(g, n2g_gather(g, y, all), n2g_gather(g, table, index));
    return n2g_add(g, a, n2g_gather(g, x, all));
}
static n2_node copies_by_number(n2_graph *g, int64_t rows, int64_t width) {
    return with_copies(g, rows, width, n2g_row_index(g, rows, 1, rows));
}
/* The same rows, of which it is not known. */
static n2_node copies_unknown(n2_graph *g, int64_t rows, int64_t width) {
    return with_copies(g, rows, width, n2g_affine(g, n2g_row_index(g, rows, 1, rows), 1, 0.25));
}
static void a_gather_of_all_rows_is_no_launch(void **state) {
    (void)state;
    check_chain(copies_by_number);
    check_chain(copies_unknown);
    assert_true(launches_of(copies_by_number, 2000, 4) < launches_of(copies_unknown, 2000, 4));
}

/* Single numbers of tables, for all columns of a row, some of rows beyond the table, with an index
 * that is made just before; unless `once`, others read some of them, too. */
static n2_node with_numbers(n2_graph *g, int64_t rows, int64_t width, bool once) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), y = n2g_randn(g, n2_dims(rows, width));
    const n2_node table = n2g_exp(g, n2g_randn(g, n2_dims(5, 1)));
    const n2_node drawn = n2g_randint(g, n2_dims(rows), 7);
    const n2_node index = once ? drawn : n2g_affine(g, drawn, 1, -1);
    const n2_node a = n2g_gather(g, table, index), b = n2g_gather(g, n2g_neg(g, table), drawn);
    const n2_node c = n2g_add(g, n2g_mul(g, a, x), n2g_mul(g, y, b));
    const n2_node d = n2g_gather(g, table, n2g_affine(g, drawn, -1, 4));
    const n2_node e = n2g_sub(g, n2g_tanh(g, c), n2g_sub(g, d, n2g_lrelu(g, x, 0.5)));
    return once ? e : n2g_mul(g, n2g_add(g, e, n2g_exp(g, a)), n2g_sigmoid(g, b));
}
static n2_node numbers_once(n2_graph *g, int64_t rows, int64_t width) {
    return with_numbers(g, rows, width, true);
}
static n2_node numbers_again(n2_graph *g, int64_t rows, int64_t width) {
    return with_numbers(g, rows, width, false);
}
/* Who wants the numbers finds them in the table; or wants something else. */
static n2_node numbers_found(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width));
    const n2_node table = n2g_randn(g, n2_dims(5, 1)), index = n2g_randint(g, n2_dims(rows), 5);
    return n2g_mul(g, x, n2g_gather(g, table, index));
}
static n2_node numbers_made(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width));
    const n2_node table = n2g_randn(g, n2_dims(5, 1)), index = n2g_randint(g, n2_dims(rows), 5);
    const n2_node y = n2g_randn(g, n2_dims(rows, 1));
    return n2g_mul(g, x, n2g_add(g, y, n2g_gather(g, table, index)));
}
static void numbers_of_a_table_are_looked_up(void **state) {
    (void)state;
    check_chain(numbers_once);
    check_chain(numbers_again);
    for (int64_t rows = 100; rows <= 10000; rows *= 10)
        assert_true(launches_of(numbers_found, rows, 20) < launches_of(numbers_made, rows, 20));
}

/* Table or index change before the last who wants the numbers; or one wants two of them, or both
 * operands are the same. */
static n2_node numbers_changed(n2_graph *g, int64_t rows, int64_t width) {
    n2_store *store = n2_graph_store(g);
    n2_tensor *t = n2_store_add(store, "t", n2_dims(5, 1)),
              *i = n2_store_add(store, "i", n2_dims(rows));
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), row = n2g_randn(g, n2_dims(1, width));
    const n2_node index = n2g_randint(g, n2_dims(rows), 5), table = n2g_randn(g, n2_dims(5, 1));
    const n2_node a = n2g_gather(g, n2g_read(g, t), index);
    const n2_node b = n2g_gather(g, table, n2g_read(g, i));
    const n2_node before = n2g_add(g, n2g_mul(g, x, a), n2g_mul(g, x, b));
    n2g_assign(g, t, n2g_add(g, n2g_read(g, t), table));
    n2g_assign(g, i, index);
    const n2_node after = n2g_sub(g, n2g_mul(g, x, a), n2g_div(g, b, n2g_exp(g, x)));
    const n2_node spread = n2g_mul(g, n2g_mul(g, n2g_gather(g, table, index), row), b);
    return n2g_add(g, n2g_add(g, before, after), n2g_mul(g, spread, n2g_mul(g, a, a)));
}
static void numbers_that_change_are_gathered(void **state) {
    (void)state;
    check_chain(numbers_changed);
}

/* The table is written before the copy is read for the last time; and other gathers read all rows,
 * but not in their order, or not once each, or not of the whole table. */
static n2_node written_later(n2_graph *g, int64_t rows, int64_t width) {
    n2_tensor *t = n2_store_add(n2_graph_store(g), "t", n2_dims(rows, width));
    const n2_node all = n2g_row_index(g, rows, 1, rows);
    const n2_node copy = n2g_gather(g, n2g_read(g, t), all);
    const n2_node x = n2g_randn(g, n2_dims(rows, width));
    n2g_assign(g, t, n2g_sub(g, x, copy));
    const n2_node now = n2g_read(g, t), some = n2g_row_index(g, rows, 1, (rows + 1) / 2);
    const n2_node twice = n2g_gather(g, now, n2g_row_index(g, rows, 2, rows));
    const n2_node other = n2g_sub(g, n2g_gather(g, x, some), n2g_scale(g, twice, 2));
    const n2_node longer = n2g_concat(g, x, now, 0);
    const n2_node few = n2g_mul(g, n2g_gather(g, longer, all), n2g_gather(g, x, all));
    return n2g_add(g, n2g_add(g, n2g_scale(g, copy, 3), now), n2g_mul(g, other, few));
}
static void copies_of_a_table_stay_as_they_were(void **state) {
    (void)state;
    check_chain(written_later);
}

/* Two tables, both scattered to, are added: rows are as many as there are, in several slices or
 * tiles if these are many, and few; some rows are told to go beyond the table. */
static n2_node two_tables(n2_graph *g, int64_t rows, int64_t width, bool swap, bool apart) {
    enum { FEW = 150, TABLE = 11 };
    const n2_node x = whole_numbers(g, FEW, width), y = whole_numbers(g, rows, width);
    const n2_node to = n2g_affine(g, n2g_randint(g, n2_dims(FEW), TABLE + 3), 1, -1);
    const n2_node from = n2g_randint(g, n2_dims(rows), TABLE + 2);
    const n2_node a = n2g_scatter_add(g, x, to, TABLE), b = n2g_scatter_add(g, y, from, TABLE);
    const n2_node sum = apart  ? n2g_sub(g, a, n2g_neg(g, b))
                        : swap ? n2g_add(g, b, a)
                               : n2g_add(g, a, b);
    return n2g_gather(g, sum, n2g_row_index(g, rows, 1, TABLE));
}
static n2_node tables_added(n2_graph *g, int64_t rows, int64_t width) {
    return two_tables(g, rows, width, false, false);
}
static n2_node tables_swapped(n2_graph *g, int64_t rows, int64_t width) {
    return two_tables(g, rows, width, true, false);
}
static n2_node tables_apart(n2_graph *g, int64_t rows, int64_t width) {
    return two_tables(g, rows, width, false, true);
}
static void two_tables_are_scattered_to_at_once(void **state) {
    (void)state;
    check_chain(tables_added);
    check_chain(tables_swapped);
    for (int64_t rows = 100; rows <= 10000; rows *= 10) /* one slice, one, ten */
        assert_true(launches_of(tables_added, rows, 40) < launches_of(tables_apart, rows, 40));
}

/* Neither may go along with the other: one is read by somebody else, or both are the same. */
static n2_node tables_read(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = whole_numbers(g, rows, width), y = whole_numbers(g, rows, width);
    const n2_node index = n2g_randint(g, n2_dims(rows), 6);
    const n2_node a = n2g_scatter_add(g, x, index, 6), b = n2g_scatter_add(g, y, index, 6);
    const n2_node sum = n2g_add(g, n2g_add(g, a, b), n2g_add(g, a, a));
    return n2g_gather(g, sum, index);
}
/* There is room for two only, whichever are added first. */
static n2_node three_tables(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node index = n2g_randint(g, n2_dims(rows), 6);
    n2_node table[3], sum = n2g_randn(g, n2_dims(6, width));
    for (int which = 0; which < 3; which++) {
        for (int k = 0; k < 3; k++)
            table[k] = n2g_scatter_add(g, whole_numbers(g, 50 + k, width),
                                       n2g_randint(g, n2_dims(50 + k), 6), 6);
        const n2_node two = n2g_add(g, table[(which + 1) % 3], table[(which + 2) % 3]);
        sum = n2g_mul(g, sum, n2g_add(g, table[which], two));
    }
    return n2g_gather(g, sum, index);
}
static void tables_that_cannot_go_along_stay(void **state) {
    (void)state;
    check_chain(tables_read);
    check_chain(three_tables);
}

/* ---- columns side by side --------------------------------------------------- */

/* One block's, many blocks', four side by side, and so many that matrices share memory. */
static void check_columns(chain_builder *build) {
    static const int64_t shapes[][2] = {{1, 7},    {12, 90},   {31, 33},
                                        {1001, 3}, {1003, 24}, {3000, 200}};
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        check_shape(build, shapes[k][0], shapes[k][1]);
}

static n2_node function_of_rows(n2_graph *g, n2_node x, double which) {
    return n2g_affine(g, n2g_sum(g, x, 2), 1, which);
}

/* The last columns of a matrix, each times something. */
static n2_node last_columns(n2_graph *g, n2_node x, int64_t wide, int64_t width) {
    const n2_node row = whole_numbers(g, 1, wide);
    return n2g_slice(g, n2g_mul(g, x, row), 1, wide - width, width);
}

/* Single columns beside a matrix, one after the other. */
static n2_node appended(n2_graph *g, int64_t rows, int64_t width, int columns) {
    const n2_node x = n2g_neg(g, whole_numbers(g, rows, width));
    n2_node all = x;
    for (int k = 0; k < columns; k++) all = n2g_concat(g, all, function_of_rows(g, x, k), 1);
    return last_columns(g, all, width + columns, width);
}
static n2_node one_appended(n2_graph *g, int64_t rows, int64_t width) {
    return appended(g, rows, width, 1);
}
static n2_node three_appended(n2_graph *g, int64_t rows, int64_t width) {
    return appended(g, rows, width, 3);
}
/* The other way round: what is on the left comes last; and rows below rows. */
static n2_node in_front(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = whole_numbers(g, rows, width), y = n2g_affine(g, x, -1, 1);
    n2_node all = n2g_concat(g, y, x, 1);
    for (int k = 1; k < 4; k++) all = n2g_concat(g, function_of_rows(g, y, k), all, 1);
    const n2_node below = n2g_concat(g, n2g_concat(g, y, n2g_neg(g, x), 0), n2g_positive(g, x), 0);
    const n2_node wide = last_columns(g, n2g_concat(g, x, all, 1), 3 * width + 3, width);
    return n2g_add(g, wide, n2g_slice(g, below, 0, rows / 2, rows));
}
static void columns_are_put_where_they_belong_at_once(void **state) {
    (void)state;
    check_columns(three_appended);
    check_columns(in_front);
    for (int64_t rows = 100; rows <= 10000; rows *= 10)
        assert_int_equal(launches_of(three_appended, rows, 12),
                         launches_of(one_appended, rows, 12));
}

/* Rows of tables beside one another; of some others read the copies, too, or the table is changed
 * before the copy. */
static n2_node rows_beside(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node index = n2g_randint(g, n2_dims(rows), 5);
    const n2_node first = n2g_neg(g, whole_numbers(g, 5, width)), other = whole_numbers(g, 5, 3);
    const n2_node a = n2g_gather(g, first, index), b = n2g_gather(g, other, index);
    const n2_node all = n2g_concat(g, n2g_concat(g, a, b, 1), n2g_gather(g, first, index), 1);
    const n2_node again = n2g_concat(g, n2g_positive(g, n2g_sum(g, b, 2)), a, 1);
    return n2g_add(g, last_columns(g, all, 2 * width + 3, width),
                   last_columns(g, again, width + 1, width));
}
static n2_node rows_of_changed(n2_graph *g, int64_t rows, int64_t width) {
    n2_tensor *t = n2_store_add(n2_graph_store(g), "t", n2_dims(5, width));
    const n2_node index = n2g_randint(g, n2_dims(rows), 5), table = n2g_read(g, t);
    const n2_node a = n2g_gather(g, table, index);
    const n2_node next = n2g_assign(g, t, n2g_add(g, table, whole_numbers(g, 5, width)));
    const n2_node all = n2g_concat(g, a, n2g_gather(g, next, index), 1);
    return last_columns(g, all, 2 * width, width);
}
static void rows_are_put_where_they_belong_at_once(void **state) {
    (void)state;
    check_columns(rows_beside);
    check_columns(rows_of_changed);
}

/* Both halves, of columns that several read, or one. */
static n2_node halves_summed(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), y = n2g_mul(g, x, x);
    const n2_node left = n2g_slice(g, y, 1, 0, width / 2);
    const n2_node right = n2g_slice(g, y, 1, width / 2, width - width / 2);
    return n2g_sub(g, n2g_mul(g, y, n2g_sum(g, left, 2)), n2g_amax(g, right, 2));
}
static n2_node rows_summed(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = n2g_randn(g, n2_dims(rows, width)), y = n2g_mul(g, x, x);
    return n2g_sub(g, n2g_mul(g, y, n2g_sum(g, y, 2)), n2g_amax(g, y, 2));
}
static void columns_are_summed_where_they_are(void **state) {
    (void)state;
    check_columns(halves_summed);
    for (int64_t rows = 100; rows <= 10000; rows *= 10)
        assert_int_equal(launches_of(halves_summed, rows, 20), launches_of(rows_summed, rows, 20));
}

/* Copies that others read too, before what is made of them and after. */
static n2_node columns_read(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node x = whole_numbers(g, rows, width), y = n2g_neg(g, x);
    const n2_node some = n2g_slice(g, y, 1, 1, width - 1), sums = n2g_sum(g, some, 2);
    const n2_node a = n2g_concat(g, x, sums, 1), first = n2g_slice(g, a, 1, 0, width);
    const n2_node b = n2g_concat(g, a, n2g_sum(g, n2g_neg(g, first), 2), 1);
    const n2_node c = n2g_concat(g, y, function_of_rows(g, x, 2), 1);
    const n2_node d = n2g_concat(g, c, n2g_sum(g, n2g_neg(g, some), 2), 1);
    const n2_node e = n2g_mul(g, last_columns(g, b, width + 2, width), first);
    const n2_node f = last_columns(g, n2g_concat(g, c, d, 1), 2 * width + 3, width);
    return n2g_add(g, e, n2g_sub(g, f, last_columns(g, c, width + 1, width)));
}
/* The caller reads them. */
static n2_node columns_kept(n2_graph *g, int64_t rows, int64_t width) {
    n2_tensor *t = n2_store_add(n2_graph_store(g), "t", n2_dims(rows, width + 1));
    const n2_node x = n2g_neg(g, whole_numbers(g, rows, width - 2));
    const n2_node a = n2g_concat(g, x, function_of_rows(g, x, 1), 1);
    const n2_node b = n2g_concat(g, a, function_of_rows(g, x, 2), 1);
    n2g_assign(g, t, n2g_neg(g, n2g_concat(g, b, function_of_rows(g, x, 3), 1)));
    return b;
}
static void columns_that_others_need_are_copied(void **state) {
    (void)state;
    check_columns(columns_read);
    check_columns(columns_kept);
}

/* Matrices side by side again and again, each in memory of those before. */
static n2_node columns_again(n2_graph *g, int64_t rows, int64_t width) {
    const n2_node least = n2g_constant(g, -9), most = n2g_constant(g, 9);
    n2_node x = whole_numbers(g, rows, width);
    for (int k = 0; k < 4; k++) {
        const n2_node half = n2g_slice(g, x, 1, width / 2, width - width / 2);
        const n2_node all = n2g_concat(g, n2g_concat(g, x, function_of_rows(g, x, k), 1), half, 1);
        const n2_node next = last_columns(g, all, 2 * width + 1 - width / 2, width);
        x = n2g_maximum(g, least, n2g_minimum(g, most, next));
    }
    return x;
}
static void columns_may_lie_where_others_were(void **state) {
    (void)state;
    check_columns(columns_again);
}

/* A network of so many layers, too wide to be fused, and a step of Adam. */
static n2_node deep_step(n2_graph *g, int64_t rows, int64_t width, int layers) {
    n2_parameters p = n2_parameters_new(n2_graph_store(g), 1);
    n2_node x = n2g_randn(g, n2_dims(rows, width));
    for (int k = 0; k < layers; k++) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", k);
        const n2_layer layer = n2_layer_new(&p, name, width, width);
        x = n2g_tanh(g, n2_layer_apply(g, &layer, x));
    }
    const n2_node loss = n2g_total(g, n2g_mul(g, x, x));
    n2_minimise(g, &(n2_optimiser)N2_OPTIMISER_DEFAULTS, "adam", &p, loss, NULL);
    return x;
}
static n2_node four_layers(n2_graph *g, int64_t rows, int64_t width) {
    return deep_step(g, rows, width, 4);
}
static n2_node twelve_layers(n2_graph *g, int64_t rows, int64_t width) {
    return deep_step(g, rows, width, 12);
}

/* Gradients are ready one after the other; updates, which nobody waits for, are made together. */
static void what_nobody_waits_for_is_done_together(void **state) {
    (void)state;
    check_shape(four_layers, 20, 200);
    const size_t twelve = launches_of(twelve_layers, 20, 200);
    assert_true(twelve - launches_of(four_layers, 20, 200) <= 4 * 8);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_waits_for_is_done_together),
        cmocka_unit_test(a_chain_may_be_long),
        cmocka_unit_test(what_a_chain_makes_may_be_used_again),
        cmocka_unit_test(zeros_have_their_signs),
        cmocka_unit_test(operands_of_a_chain_may_be_broadcast),
        cmocka_unit_test(a_chain_may_fetch_rows),
        cmocka_unit_test(what_is_needed_late_is_made_late),
        cmocka_unit_test(averages_are_made_and_assigned_at_once),
        cmocka_unit_test(rows_of_factors_may_begin_anywhere),
        cmocka_unit_test(a_gather_of_all_rows_is_no_launch),
        cmocka_unit_test(copies_of_a_table_stay_as_they_were),
        cmocka_unit_test(numbers_of_a_table_are_looked_up),
        cmocka_unit_test(numbers_that_change_are_gathered),
        cmocka_unit_test(two_tables_are_scattered_to_at_once),
        cmocka_unit_test(tables_that_cannot_go_along_stay),
        cmocka_unit_test(columns_are_put_where_they_belong_at_once),
        cmocka_unit_test(rows_are_put_where_they_belong_at_once),
        cmocka_unit_test(columns_are_summed_where_they_are),
        cmocka_unit_test(columns_that_others_need_are_copied),
        cmocka_unit_test(columns_may_lie_where_others_were),
    };
    printf("%s\n", n2_cuda_name(open_cuda_or_skip(true)));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
