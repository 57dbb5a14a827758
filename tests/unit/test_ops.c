/* Facts about the ops, one row of a table each: the gradient is the derivative, the gradient's
 * gradient too, cpu computes what ref computes, and threads change nothing.
 *
 * The environment variable N2CE_ISA (portable, avx2, avx512) chooses the kernels under test.
 * Derivatives are checked on ref, which is the same for all of them: only when it is not set.
 * N2CE_TEST_DEVICE puts a GPU in the processor's place: fast_backend.h. */
#include "close.h"
#include "fast_backend.h"

#include "base/random.h"
#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 4, MOST_OUTPUTS = 3 + 2 * MOST_INPUTS };

typedef n2_node build_fn(n2_graph *g, const n2_node *x);

/* Shapes of the inputs of an op. */
typedef struct op_case {
    int n;
    n2_shape in[MOST_INPUTS];
    int64_t below[MOST_INPUTS]; /* > 0: holds row numbers below this, and has no gradient */
} op_case;

typedef struct op_row {
    const char *name;
    build_fn *build;
    const op_case *cases;
    size_t n_cases;
    double low, high;          /* of the inputs, which are never nearer to 0 than 0.05 */
    bool flat;                 /* the gradient is zero */
    bool grid;                 /* inputs keep a distance from one another and from 1 */
    double relative, absolute; /* allowed between cpu and ref; default 1e-5 and 0 */
} op_row;

#define S(...)                                                                     \
    {                                                                              \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), { __VA_ARGS__ } \
    }
#define SCALAR   \
    {            \
        0, { 0 } \
    }
#define ONE(...)                         \
    {                                    \
        .n = 1, .in = { S(__VA_ARGS__) } \
    }
#define TWO(a, b)              \
    {                          \
        .n = 2, .in = { a, b } \
    }

/* ---- shapes ---------------------------------------------------------------- */

/* 1000 rows are several chunks of more than one tile. */
static const op_case unary[] = {
    {.n = 1, .in = {SCALAR}},
    ONE(1),
    ONE(0),
    ONE(7),
    ONE(33),
    ONE(1000),
    ONE(1, 1),
    ONE(5, 3),
    ONE(0, 5),
    ONE(17, 1),
    ONE(100, 17),
    ONE(40, 33),
    ONE(1000, 3),
    ONE(2, 3, 5),
    ONE(20, 3, 4),
    ONE(2, 3, 4, 5),
    ONE(130, 2, 1, 3),
};

/* Axes that cannot be joined, as many as there may be. */
static const op_case many_axes[] = {ONE(2, 3, 2, 1, 3), ONE(40, 2, 3, 2, 2), ONE(2, 3, 2, 2, 1, 3)};
static const op_case many_pairs[] = {TWO(S(2, 3, 2, 2, 3), S(2, 1, 2, 1, 3)),
                                     TWO(S(3, 2, 2, 3, 2, 2), S(1, 2, 1, 3, 1, 2)),
                                     TWO(S(40, 1, 2, 1, 3), S(2, 1, 3, 1))};

/* So wide that a tile of the usual height would not fit the cache. */
static const op_case wide[] = {ONE(130, 900)};
static const op_case large[] = {ONE(1000, 33)};
static const op_case large_and_row[] = {TWO(S(1000, 33), S(33))};

static const op_case binary[] = {
    TWO(SCALAR, SCALAR),
    TWO(S(7), S(7)),
    TWO(SCALAR, S(7)),
    TWO(S(7), SCALAR),
    TWO(S(1), S(7)),
    TWO(S(1000), S(1)),
    TWO(S(5, 3), S(3)),
    TWO(S(5, 3), S(1, 3)),
    TWO(S(5, 3), S(5, 1)),
    TWO(S(5, 1), S(1, 3)),
    TWO(S(17, 1), S(17)),
    TWO(S(100, 17), SCALAR),
    TWO(S(1000, 3), S(3)),
    TWO(S(33), S(40, 33)),
    TWO(S(1000, 3), S(1000, 1)),
    TWO(S(1, 5), S(1000, 1)),
    TWO(S(0, 5), S(5)),
    TWO(S(0, 5), S(0, 1)),
    TWO(S(2, 3, 5), S(2, 1, 5)),
    TWO(S(20, 3, 4), S(3, 1)),
    TWO(S(20, 1, 4), S(20, 3, 1)),
    TWO(S(2, 3, 4, 5), S(2, 1, 4, 1)),
    TWO(S(2, 3, 4, 5), S(1, 3, 1, 5)),
    TWO(S(130, 2, 1, 3), S(1, 2, 5, 1)),
};

static const op_case row_numbers[] = {
    {.n = 2, .in = {S(100, 3), S(3)}, .below = {3, 3}},
    {.n = 2, .in = {S(5), S(5)}, .below = {2, 2}},
    {.n = 2, .in = {S(40, 1), S(1, 7)}, .below = {5, 5}},
};

/* m x k times k x n, with either factor stored transposed. */
#define PRODUCTS(X)                                                                            \
    X(1, 1, 1), X(5, 3, 7), X(0, 5, 3), X(5, 0, 3), X(16, 16, 16), X(1, 200, 1), X(20, 7, 65), \
        X(13, 129, 31), X(20, 130, 40), X(1000, 9, 17), X(777, 5, 1)
#define NN(m, k, n) TWO(S(m, k), S(k, n))
#define NT(m, k, n) TWO(S(m, k), S(n, k))
#define TN(m, k, n) TWO(S(k, m), S(k, n))
#define TT(m, k, n) TWO(S(k, m), S(n, k))
static const op_case products_nn[] = {PRODUCTS(NN),
                                      TWO(S(4, 7, 5), S(4, 5, 3)),
                                      TWO(S(200, 2, 3), S(200, 3, 5)),
                                      TWO(S(40, 7, 5), S(5, 3)),
                                      TWO(S(2, 3, 4, 5), S(2, 3, 5, 2)),
                                      TWO(S(40, 2, 13, 5), S(40, 2, 5, 17)),
                                      TWO(S(2, 3, 4, 5), S(5, 2)),
                                      TWO(S(2, 0, 4, 5), S(5, 2))};
static const op_case products_nt[] = {PRODUCTS(NT),
                                      TWO(S(4, 7, 5), S(4, 3, 5)),
                                      TWO(S(200, 2, 3), S(200, 5, 3)),
                                      TWO(S(40, 7, 5), S(3, 5)),
                                      TWO(S(2, 3, 4, 5), S(2, 3, 2, 5)),
                                      TWO(S(40, 2, 13, 5), S(40, 2, 17, 5)),
                                      TWO(S(2, 3, 4, 5), S(2, 5))};
static const op_case products_tn[] = {PRODUCTS(TN),
                                      TN(7, 1000, 33),
                                      TWO(S(4, 5, 7), S(4, 5, 3)),
                                      TWO(S(200, 3, 2), S(200, 3, 5)),
                                      TWO(S(2, 3, 5, 4), S(2, 3, 5, 2)),
                                      TWO(S(40, 2, 5, 13), S(40, 2, 5, 17)),
                                      TWO(S(2, 3, 5, 4), S(5, 2)),
                                      TWO(S(3, 5, 4), S(5, 2))};
static const op_case products_tt[] = {PRODUCTS(TT),
                                      TWO(S(4, 5, 7), S(4, 3, 5)),
                                      TWO(S(200, 3, 2), S(200, 5, 3)),
                                      TWO(S(2, 3, 5, 4), S(2, 3, 2, 5)),
                                      TWO(S(40, 2, 5, 13), S(40, 2, 17, 5)),
                                      TWO(S(3, 5, 4), S(2, 5))};

static const op_case from_rank_1[] = {ONE(1),     ONE(0),       ONE(7),       ONE(1000),
                                      ONE(5, 3),  ONE(0, 5),    ONE(17, 1),   ONE(1000, 0),
                                      ONE(1, 33), ONE(1000, 9), ONE(2, 3, 5), ONE(130, 2, 1, 3)};
static const op_case from_rank_2[] = {ONE(1, 1),    ONE(5, 3),      ONE(0, 5),
                                      ONE(33, 17),  ONE(100, 1),    ONE(1000, 9),
                                      ONE(2, 3, 5), ONE(200, 3, 5), ONE(2, 3, 4, 5)};
static const op_case from_rank_3[] = {ONE(1, 1, 1),    ONE(2, 3, 5),    ONE(200, 3, 5),
                                      ONE(0, 3, 5),    ONE(2, 3, 4, 5), ONE(130, 2, 1, 3),
                                      ONE(20, 33, 17), ONE(900, 2, 3)};
static const op_case not_empty[] = {ONE(1, 1),    ONE(5, 3),      ONE(33, 17), ONE(1000, 3),
                                    ONE(2, 3, 5), ONE(200, 3, 5), ONE(1, 7),   ONE(2, 3, 4, 5)};

/* The second input says which shape the first should get. */
static const op_case broadcasts[] = {
    TWO(SCALAR, S(7)),        TWO(SCALAR, S(1000, 3)),       TWO(S(1), S(0)),
    TWO(S(3), S(1000, 3)),    TWO(S(1000, 1), S(1000, 3)),   TWO(S(1, 3), S(20, 3)),
    TWO(S(3, 1), S(2, 3, 5)), TWO(S(20, 1, 4), S(20, 3, 4)), TWO(S(1, 3, 1, 5), S(20, 3, 2, 5))};
static const op_case reshapes[] = {
    TWO(SCALAR, S(1)),           TWO(S(1, 1), SCALAR),           TWO(S(12), S(3, 4)),
    TWO(S(0, 5), S(3, 0)),       TWO(S(1000, 6), S(1000, 2, 3)), TWO(S(1000, 3), S(3, 1000)),
    TWO(S(20, 3, 4), S(20, 12)), TWO(S(32, 6), S(64, 3)),        TWO(S(2, 3, 4, 5), S(6, 20))};
static const op_case joins[] = {TWO(S(5, 3), S(5, 3)),
                                TWO(S(1, 1), S(1, 1)),
                                TWO(S(1000, 3), S(1000, 3)),
                                TWO(S(0, 3), S(0, 3)),
                                TWO(S(2, 3, 5), S(2, 3, 5)),
                                TWO(S(200, 2, 3), S(200, 2, 3)),
                                TWO(S(20, 3, 4, 5), S(20, 3, 4, 5))};
static const op_case joins_of_rows[] = {TWO(S(5), S(3)), TWO(S(0, 2), S(3, 2)),
                                        TWO(S(700, 5), S(300, 5)), TWO(S(2, 3, 4), S(1, 3, 4))};
static const op_case joins_of_columns[] = {TWO(S(5, 2), S(5, 3)), TWO(S(5, 0), S(5, 3)),
                                           TWO(S(1000, 33), S(1000, 1)),
                                           TWO(S(200, 2, 3), S(200, 5, 3))};
static const op_case slices[] = {ONE(7, 5), ONE(1000, 33), ONE(30, 6, 4), ONE(4, 5, 2, 3)};

#define PICK(rows, ...)                                                  \
    {                                                                    \
        .n = 2, .in = {S(rows, 4), S(__VA_ARGS__)}, .below = { 0, rows } \
    }
static const op_case picks[] = {
    PICK(6, 9),
    PICK(6, 1),
    PICK(6, 0),
    PICK(1, 100),
    PICK(3, 1000),
    PICK(1000, 50),
    PICK(700, 1000),
    {.n = 2, .in = {S(5), S(40)}, .below = {0, 5}},
    {.n = 2, .in = {S(5, 2, 3), S(70)}, .below = {0, 5}},
    {.n = 2, .in = {S(5, 0), S(1000)}, .below = {0, 5}},
};
static const op_case drops[] = {
    {.n = 2, .in = {S(9, 4), S(9)}, .below = {0, 6}},
    {.n = 2, .in = {S(0, 4), S(0)}, .below = {0, 6}},
    {.n = 2, .in = {S(1000, 33), S(1000)}, .below = {0, 6}},
    {.n = 2, .in = {S(100), S(100)}, .below = {0, 6}},
    {.n = 2, .in = {S(100, 2, 3), S(100)}, .below = {0, 6}},
};
static const op_case without_columns[] = {TWO(S(5, 0), S(5, 3)), TWO(S(4000, 0), S(4000, 5))};
static const op_case classes[] = {
    {.n = 2, .in = {S(1, 1), S(1)}, .below = {0, 1}},
    {.n = 2, .in = {S(6, 5), S(6)}, .below = {0, 5}},
    {.n = 2, .in = {S(1000, 33), S(1000)}, .below = {0, 33}},
};
#define THREE(a, b, c)            \
    {                             \
        .n = 3, .in = { a, b, c } \
    }
static const op_case layers[] = {
    THREE(S(1, 1), S(1, 1), S(1)), THREE(S(5, 3), S(7, 3), S(7)), THREE(S(0, 3), S(7, 3), S(7)),
    THREE(S(1000, 33), S(17, 33), S(17)), THREE(S(50, 130), S(35, 130), S(35))};
static const op_case networks[] = {THREE(S(5, 7), S(7, 7), S(7)),
                                   THREE(S(300, 33), S(33, 33), S(33))};
static const op_case draws_of_z[] = {THREE(S(1, 1), S(1, 1), S(1, 1)),
                                     THREE(S(16, 4), S(16, 4), S(16, 4)),
                                     THREE(S(1000, 7), S(1000, 7), S(1000, 7))};
static const op_case picked_layers[] = {
    {.n = 4, .in = {S(3, 5), S(9), S(4, 5), S(4)}, .below = {0, 3}},
    {.n = 4, .in = {S(3, 33), S(1000), S(17, 33), S(17)}, .below = {0, 3}},
    {.n = 4, .in = {S(8, 5), S(9), S(4, 5), S(4)}, .below = {0, 8}},
};
static const op_case joined_layers[] = {
    {.n = 4, .in = {S(9, 2), S(3, 5), S(9), S(4, 7)}, .below = {0, 0, 3}},
    {.n = 4, .in = {S(300, 17), S(3, 5), S(300), S(20, 22)}, .below = {0, 0, 3}},
};
static const op_case pairs_of_rows[] = {TWO(S(1, 1), S(1, 1)), TWO(S(5, 3), S(7, 3)),
                                        TWO(S(100, 4), S(33, 4)), TWO(S(1000, 2), S(3, 2))};
static const op_case pairs[] = {TWO(S(16, 4), S(16, 4)), TWO(S(1, 1), S(1, 1)),
                                TWO(S(1000, 5), S(1000, 5))};
static const op_case logits[] = {TWO(S(1), S(1)), TWO(S(24), S(40)), TWO(S(1000), S(900)),
                                 TWO(S(24, 1), S(130, 1))};
static const op_case squares[] = {ONE(2, 2), ONE(5, 5), ONE(30, 30)};
static const op_case numbers[] = {ONE(1),  ONE(2),    ONE(7),       ONE(8),
                                  ONE(33), ONE(1000), ONE(100, 11), {.n = 1, .in = {SCALAR}}};

/* ---- what is built from them ----------------------------------------------- */

#define BUILD(NAME, EXPRESSION) \
    static n2_node build_##NAME(n2_graph *g, const n2_node *x) { return EXPRESSION; }
BUILD(neg, n2g_neg(g, x[0]))
BUILD(exp, n2g_exp(g, x[0]))
BUILD(log, n2g_log(g, x[0]))
BUILD(sqrt, n2g_sqrt(g, x[0]))
BUILD(reciprocal, n2g_reciprocal(g, x[0]))
BUILD(tanh, n2g_tanh(g, x[0]))
BUILD(sigmoid, n2g_sigmoid(g, x[0]))
BUILD(softplus, n2g_softplus(g, x[0]))
BUILD(sin, n2g_sin(g, x[0]))
BUILD(cos, n2g_cos(g, x[0]))
BUILD(positive, n2g_positive(g, x[0]))
BUILD(detach, n2g_detach(g, x[0]))
BUILD(affine, n2g_affine(g, x[0], -1.75, 0.3))
BUILD(lrelu, n2g_lrelu(g, x[0], 0.2))
BUILD(lrelu_of_square, n2g_lrelu(g, n2g_affine(g, n2g_mul(g, x[0], x[0]), 1, -1), 0.2))
BUILD(add, n2g_add(g, x[0], x[1]))
BUILD(sub, n2g_sub(g, x[0], x[1]))
BUILD(mul, n2g_mul(g, x[0], x[1]))
BUILD(mul_self, n2g_mul(g, x[0], x[0]))
BUILD(div, n2g_div(g, x[0], x[1]))
BUILD(maximum, n2g_maximum(g, x[0], x[1]))
BUILD(minimum, n2g_minimum(g, x[0], x[1]))
BUILD(equal, n2g_equal(g, x[0], x[1]))
BUILD(greater, n2g_greater(g, x[0], x[1]))
BUILD(matmul_nn, n2g_matmul(g, x[0], x[1], false, false))
BUILD(matmul_nt, n2g_matmul(g, x[0], x[1], false, true))
BUILD(matmul_tn, n2g_matmul(g, x[0], x[1], true, false))
BUILD(matmul_tt, n2g_matmul(g, x[0], x[1], true, true))

static int last_axis(n2_graph *g, n2_node x) { return n2_shape_at(g, x).rank - 1; }
static int64_t length(n2_graph *g, n2_node x, int axis) { return n2_shape_at(g, x).dim[axis]; }

BUILD(sum_rows, n2g_sum(g, x[0], n2_axis(0)))
BUILD(sum_last, n2g_sum(g, x[0], n2_axis(last_axis(g, x[0]))))
BUILD(sum_middle, n2g_sum(g, x[0], n2_axis(1)))
BUILD(sum_ends, n2g_sum(g, x[0], n2_axis(0) | n2_axis(last_axis(g, x[0]))))
BUILD(sum_of_nothing, n2g_add(g, n2g_sin(g, n2g_sin(g, x[1])), n2g_sum(g, x[0], n2_axis(1))))
BUILD(sum_all, n2g_sum(g, x[0], N2_ALL_AXES))
BUILD(total, n2g_total(g, x[0]))
BUILD(mean_rows, n2g_mean(g, x[0], n2_axis(0)))
BUILD(mean_all, n2g_mean(g, x[0], N2_ALL_AXES))
BUILD(amax_rows, n2g_amax(g, x[0], n2_axis(0)))
BUILD(amax_last, n2g_amax(g, x[0], n2_axis(last_axis(g, x[0]))))
BUILD(amax_all, n2g_amax(g, x[0], N2_ALL_AXES))
BUILD(logsumexp_rows, n2g_logsumexp(g, x[0], n2_axis(0)))
BUILD(logsumexp_last, n2g_logsumexp(g, x[0], n2_axis(last_axis(g, x[0]))))
BUILD(softmax_rows, n2g_softmax(g, x[0], 0))
BUILD(softmax_last, n2g_softmax(g, x[0], last_axis(g, x[0])))
BUILD(median, n2g_median(g, x[0], false))
BUILD(median_above, n2g_median(g, x[0], true))

BUILD(broadcast, n2g_broadcast(g, x[0], n2_shape_at(g, x[1])))
BUILD(reshape, n2g_exp(g, n2g_reshape(g, n2g_sin(g, x[0]), n2_shape_at(g, x[1]))))
BUILD(transpose_01, n2g_transpose(g, x[0], 0, 1))
BUILD(transpose_last, n2g_transpose(g, x[0], -1, -2))
BUILD(transpose_ends, n2g_transpose(g, x[0], 0, -1))
BUILD(concat_last, n2g_concat(g, x[0], x[1], last_axis(g, x[0])))
BUILD(concat_rows, n2g_concat(g, x[0], x[1], 0))
BUILD(concat_columns, n2g_concat(g, x[0], x[1], 1))
BUILD(concat_lrelu, n2g_lrelu(g, n2g_concat(g, x[0], x[1], 1), 0.2))
BUILD(transpose_13, n2g_transpose(g, x[0], 1, 3))
BUILD(concat_three, n2g_concat_all(g, ((n2_node[]){x[0], x[1], x[0]}), 3, 1))
BUILD(concat_many, n2g_concat_all(g,
                                  ((n2_node[]){x[0], x[1], x[0], x[1], x[0], x[1], x[0], x[1], x[0],
                                               x[1], x[1]}),
                                  11, 1))
BUILD(slice_rows, n2g_slice(g, x[0], 0, 1, length(g, x[0], 0) - 2))
BUILD(slice_columns, n2g_slice(g, x[0], 1, 1, 3))
BUILD(slice_nothing, n2g_slice(g, x[0], 1, 1, 0))
BUILD(pad_rows, n2_build_pad(g, x[0], 0, 2, length(g, x[0], 0) + 3))
BUILD(pad_columns, n2_build_pad(g, x[0], 1, 2, length(g, x[0], 1) + 3))
BUILD(gather, n2g_gather(g, x[0], x[1]))
BUILD(gather_tanh, n2g_tanh(g, n2g_gather(g, x[0], x[1])))
BUILD(scatter_add, n2g_scatter_add(g, x[0], x[1], 6))
BUILD(tile_rows, n2g_tile_rows(g, n2g_sin(g, x[0]), 3))
BUILD(repeat_rows, n2g_repeat_rows(g, n2g_sin(g, x[0]), 3))
BUILD(row_index, n2g_mul(g, x[0], n2g_row_index(g, length(g, x[0], last_axis(g, x[0])), 3, 5)))

/* A bias for a weight. */
static n2_node first_column(n2_graph *g, n2_node weight) {
    return n2g_reshape(g, n2g_slice(g, weight, 1, 0, 1), n2_dims(length(g, weight, 0)));
}

BUILD(silu, n2g_silu(g, x[0]))
BUILD(silu_grad, n2_build_binary(g, N2_OP_silu_grad, x[0], x[1], 0))
BUILD(log_sigmoid, n2g_log_sigmoid(g, x[0]))
BUILD(cross_entropy, n2g_cross_entropy(g, x[0], x[1]))
BUILD(linear, n2g_linear(g, x[0], x[1], x[2]))
BUILD(linear_of_gather, n2g_linear(g, n2g_gather(g, x[0], x[1]), x[2], x[3]))
BUILD(linear_gather_first,
      n2g_linear(g, n2g_concat(g, n2g_gather(g, x[1], x[2]), x[0], 1), x[3], first_column(g, x[3])))
BUILD(linear_gather_last,
      n2g_linear(g, n2g_concat(g, x[0], n2g_gather(g, x[1], x[2]), 1), x[3], first_column(g, x[3])))
BUILD(linear_of_concat,
      n2g_matmul(g, n2g_concat(g, x[0], n2g_gather(g, x[1], x[2]), 1), x[3], false, true))
BUILD(gaussian_kl, n2g_gaussian_kl(g, x[0], x[1]))
BUILD(reparameterise, n2g_reparameterise(g, x[0], x[1], x[2]))
BUILD(squared_distances, n2g_squared_distances(g, x[0], x[1]))
BUILD(n2ce_loss_1, n2g_n2ce_loss(g, x[0], x[1], 1))
BUILD(n2ce_loss_100, n2g_n2ce_loss(g, x[0], x[1], 100))
BUILD(n2ce_loss_1e9, n2g_n2ce_loss(g, x[0], x[1], 1e9))
BUILD(nwj_loss, n2g_n2ce_loss(g, x[0], x[1], (double)INFINITY))

/* h + W tanh(h) + b, three times, then the mean square of a row. */
static n2_node build_residual(n2_graph *g, const n2_node *x) {
    n2_node h = x[0];
    for (int i = 0; i < 3; i++)
        h = n2g_add(g, h, n2g_scale(g, n2g_linear(g, n2g_tanh(g, h), x[1], x[2]), 0.1));
    return n2g_mean(g, n2g_mul(g, h, h), n2_axis(1));
}

/* ---- the table ------------------------------------------------------------- */

/* clang-format off */
#define WITH(NAME, CASES, LOW, HIGH, ...)                                                   \
    {.name = #NAME, .build = build_##NAME, .cases = CASES, .n_cases = COUNT_OF(CASES),      \
     .low = LOW, .high = HIGH, __VA_ARGS__}
#define ROW(NAME, CASES, LOW, HIGH)  WITH(NAME, CASES, LOW, HIGH, .flat = false)
#define FLAT(NAME, CASES, LOW, HIGH) WITH(NAME, CASES, LOW, HIGH, .flat = true)
/* clang-format on */
static const op_row rows[] = {
    ROW(neg, unary, -2, 2),
    ROW(exp, unary, -4, 4),
    ROW(exp, large, -4, 4),
    ROW(log, unary, 0.3, 3),
    ROW(sqrt, unary, 0.3, 3),
    ROW(reciprocal, unary, 0.5, 3),
    ROW(tanh, unary, -4, 4),
    /* 1 - sigmoid, in the gradients, is known to a rounding error of 1 */
    WITH(sigmoid, unary, -8, 8, .absolute = 1e-6),
    WITH(softplus, unary, -8, 8, .absolute = 1e-6),
    ROW(sin, unary, -4, 4),
    ROW(cos, unary, -4, 4),
    FLAT(positive, unary, -2, 2),
    FLAT(detach, unary, -2, 2),
    ROW(affine, unary, -2, 2),
    ROW(lrelu, unary, -2, 2),
    WITH(lrelu_of_square, unary, -2, 2, .grid = true),
    ROW(mul_self, unary, -2, 2),
    WITH(silu, unary, -6, 6, .absolute = 1e-6),
    WITH(silu, wide, -6, 6, .absolute = 1e-6),
    WITH(silu_grad, pairs, -6, 6, .absolute = 3e-6),
    WITH(log_sigmoid, unary, -8, 8, .absolute = 1e-6),
    ROW(add, binary, -2, 2),
    ROW(sub, binary, -2, 2),
    ROW(mul, binary, -2, 2),
    ROW(mul, large_and_row, -2, 2),
    ROW(div, binary, 0.5, 3),
    WITH(maximum, binary, -2, 2, .grid = true),
    WITH(minimum, binary, -2, 2, .grid = true),
    FLAT(greater, binary, -2, 2),
    FLAT(equal, binary, -2, 2),
    ROW(equal, row_numbers, 0, 0),
    ROW(greater, row_numbers, 0, 0),
    ROW(silu, many_axes, -6, 6),
    ROW(mul, many_pairs, -2, 2),
    ROW(matmul_nn, products_nn, -1, 1),
    ROW(matmul_nt, products_nt, -1, 1),
    ROW(matmul_tn, products_tn, -1, 1),
    ROW(matmul_tt, products_tt, -1, 1),
    ROW(sum_rows, from_rank_1, -2, 2),
    ROW(sum_last, from_rank_1, -2, 2),
    ROW(sum_middle, from_rank_3, -2, 2),
    ROW(sum_ends, from_rank_3, -2, 2),
    ROW(sum_of_nothing, without_columns, -2, 2),
    ROW(sum_all, unary, -2, 2),
    ROW(total, unary, -2, 2),
    ROW(mean_rows, not_empty, -2, 2),
    ROW(mean_all, not_empty, -2, 2),
    ROW(amax_rows, not_empty, -2, 2),
    ROW(amax_last, not_empty, -2, 2),
    ROW(amax_all, not_empty, -2, 2),
    ROW(logsumexp_rows, not_empty, -4, 4),
    ROW(logsumexp_last, not_empty, -4, 4),
    /* second gradients are differences of numbers larger than they are */
    WITH(softmax_rows, not_empty, -4, 4, .relative = 3e-5),
    WITH(softmax_last, not_empty, -4, 4, .relative = 3e-5),
    FLAT(median, numbers, -2, 2),
    FLAT(median_above, squares, -2, 2),
    ROW(broadcast, broadcasts, -2, 2),
    ROW(reshape, reshapes, -2, 2),
    ROW(transpose_01, from_rank_2, -2, 2),
    ROW(transpose_last, from_rank_2, -2, 2),
    ROW(transpose_ends, from_rank_3, -2, 2),
    ROW(concat_last, joins, -2, 2),
    ROW(concat_rows, joins_of_rows, -2, 2),
    ROW(concat_columns, joins_of_columns, -2, 2),
    ROW(concat_lrelu, joins_of_columns, -2, 2),
    ROW(transpose_13, many_axes, -2, 2),
    ROW(sum_ends, many_axes, -2, 2),
    ROW(sum_middle, many_axes, -2, 2),
    ROW(concat_three, joins_of_columns, -2, 2),
    ROW(concat_many, joins_of_columns, -2, 2),
    ROW(slice_rows, slices, -2, 2),
    ROW(slice_columns, slices, -2, 2),
    ROW(slice_nothing, slices, -2, 2),
    ROW(pad_rows, slices, -2, 2),
    ROW(pad_columns, slices, -2, 2),
    ROW(gather, picks, -2, 2),
    ROW(gather_tanh, picks, -2, 2),
    ROW(scatter_add, drops, -2, 2),
    ROW(tile_rows, not_empty, -2, 2),
    ROW(repeat_rows, not_empty, -2, 2),
    ROW(row_index, from_rank_1, -2, 2),
    ROW(cross_entropy, classes, -4, 4),
    ROW(linear, layers, -1, 1),
    ROW(linear_of_gather, picked_layers, -1, 1),
    ROW(linear_of_concat, joined_layers, -1, 1),
    ROW(linear_gather_first, joined_layers, -1, 1),
    ROW(linear_gather_last, joined_layers, -1, 1),
    ROW(residual, networks, -1, 1),
    ROW(gaussian_kl, pairs, -2, 2),
    ROW(reparameterise, draws_of_z, -2, 2),
    ROW(squared_distances, pairs_of_rows, -2, 2),
    ROW(n2ce_loss_1, logits, -4, 4),
    ROW(n2ce_loss_100, logits, -4, 4),
    /* the numerator's weight is -1 + 1e-9 r, so a float knows nothing of its derivative */
    WITH(n2ce_loss_1e9, logits, -4, 4, .absolute = 1e-7),
    ROW(nwj_loss, logits, -4, 4),
};

/* ---- one row, one shape, one backend --------------------------------------- */

static const int thread_counts[] = {1, 2, 7};
static n2ce_ctx *contexts[COUNT_OF(thread_counts)];
static bool seen[N2_OP_COUNT];

/* L = sum(w y) and T = sum(v dL/dx). Outputs: L, T, y, dL/dx of each input that has a gradient,
 * dT/dx likewise. */
typedef struct problem {
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    n2_tensor *x[MOST_INPUTS]; /* those with a gradient */
    size_t n_x, n_outputs;
    n2_node outputs[MOST_OUTPUTS];
} problem;

static double *doubles(size_t n) {
    double *p = calloc(n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* Numbers that float holds, a function of the stream. */
static void fill(n2_store *store, n2_tensor *t, uint32_t stream, double low, double high,
                 int64_t below, bool grid) {
    const size_t n = (size_t)n2_elements(t->shape);
    double *x = doubles(n);
    float *u = malloc((n + 1) * sizeof *u);
    assert_non_null(u);
    n2_fill_uniform((n2_stream){20240607, stream, 0}, 0, n, u);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(float)(low + (high - low) * (double)u[i]);
        if (fabs(x[i]) < 0.05) x[i] += x[i] < 0 ? -0.0625 : 0.0625;
        if (grid) x[i] = floor(x[i] * 64) / 64 + (stream + 1) / 256.0;
        if (below) x[i] = fmin(floor((double)u[i] * (double)below), (double)below - 1);
    }
    n2_tensor_set(store, t, x);
    free(x);
    free(u);
}

static n2_node add_tensor(problem *p, const char *name, n2_shape shape, n2_tensor **out) {
    *out = n2_store_add(p->store, name, shape);
    assert_non_null(*out);
    return n2g_read(p->g, *out);
}

/* sum(weights x), the weights a tensor of their own. */
static n2_node weighted_sum(problem *p, const char *name, uint32_t stream, n2_node x) {
    n2_tensor *w;
    const n2_node weights = add_tensor(p, name, n2_shape_at(p->g, x), &w);
    fill(p->store, w, stream, 0.5, 1.5, 0, false);
    return n2g_total(p->g, n2g_mul(p->g, weights, x));
}

static void build(problem *p, const op_row *row, const op_case *c) {
    static const char *const names[] = {"x0", "x1", "x2", "x3"};
    static const char *const weights[] = {"v0", "v1", "v2", "v3"};
    n2_node in[MOST_INPUTS], x[MOST_INPUTS], *out = p->outputs;
    for (int k = 0; k < c->n; k++) {
        n2_tensor *t;
        in[k] = add_tensor(p, names[k], c->in[k], &t);
        fill(p->store, t, (uint32_t)k, row->low, row->high, c->below[k], row->grid);
        if (c->below[k]) continue;
        p->x[p->n_x] = t;
        x[p->n_x++] = in[k];
    }
    out[2] = row->build(p->g, in);
    out[0] = weighted_sum(p, "w", 8, out[2]);
    n2g_grad(p->g, out[0], x, p->n_x, out + 3);
    p->n_outputs = 3 + p->n_x;
    out[1] = n2g_constant(p->g, 0);
    for (size_t k = 0; k < p->n_x && !row->flat; k++)
        out[1] = n2g_add(p->g, out[1], weighted_sum(p, weights[k], 16 + (uint32_t)k, out[3 + k]));
    if (row->flat || !p->n_x) return;
    n2g_grad(p->g, out[1], x, p->n_x, out + 3 + p->n_x);
    p->n_outputs += p->n_x;
}

static problem open_problem(const op_row *row, const op_case *c, const n2_backend *backend,
                            n2ce_ctx *ctx) {
    problem p = {0};
    assert_int_equal(n2_store_new(ctx, backend->bytes, &p.store), N2CE_OK);
    p.g = n2_graph_new(p.store);
    assert_non_null(p.g);
    build(&p, row, c);
    if (n2_plan_compile(p.g, backend, p.outputs, p.n_outputs, &p.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    for (uint32_t id = 1; id <= n2_graph_size(p.g); id++) seen[n2_op_of(p.g, (n2_node){id})] = true;
    assert_int_equal(n2_plan_run(p.plan), N2CE_OK);
    return p;
}

static void close_problem(problem *p) {
    n2_plan_free(p->plan);
    n2_graph_free(p->g);
    n2_store_free(p->store);
}

static size_t output_size(const problem *p, size_t k) {
    return (size_t)n2_elements(n2_shape_at(p->g, p->outputs[k]));
}

static double *output(const problem *p, size_t k) {
    double *values = doubles(output_size(p, k));
    n2_plan_get(p->plan, k, values);
    return values;
}

/* ---- derivatives ----------------------------------------------------------- */

/* An input with a gradient, the gradients of L and T by it (T's may be missing), and where it
 * is. */
typedef struct probe {
    n2_tensor *t;
    double *x, *gradient[2], *direction;
    size_t n;
} probe;

/* L and T at x + step direction. */
static void values_at(problem *p, const probe *q, double step, double values[2]) {
    double *moved = doubles(q->n);
    for (size_t i = 0; i < q->n; i++) moved[i] = q->x[i] + step * q->direction[i];
    n2_tensor_set(p->store, q->t, moved);
    assert_int_equal(n2_plan_run(p->plan), N2CE_OK);
    for (size_t k = 0; k < 2; k++) values[k] = n2_plan_scalar(p->plan, k);
    free(moved);
}

/* The derivative along a direction is what central differences say. */
static void check_direction(problem *p, const probe *q) {
    const double h = 1e-5;
    double above[2], below[2];
    values_at(p, q, h, above);
    values_at(p, q, -h, below);
    for (size_t k = 0; k < 2 && q->gradient[k]; k++) {
        double expected = 0, size = 0;
        for (size_t i = 0; i < q->n; i++) {
            expected += q->gradient[k][i] * q->direction[i];
            size += fabs(q->gradient[k][i] * q->direction[i]);
        }
        const double found = (above[k] - below[k]) / (2 * h);
        const double rounding = 1e-10 * fabs(above[k]); /* of the scalar itself, over h */
        if (!is_close(expected, found, 0, 1e-6 * size + 1e-8 + rounding))
            print_error("d %s / d %s\n", k ? "T" : "L", q->t->name);
        assert_close(expected, found, 0, 1e-6 * size + 1e-8 + rounding);
    }
}

/* As many as keep the whole program quick. */
static size_t affordable_probes(const problem *p) {
    const double n = 2e5 / n2_plan_measure(p->plan).flops;
    return n > 10 ? 10 : (size_t)n;
}

/* Along single elements (all, or some of many), and along a direction that moves everything. */
static void check_all_directions(problem *p, const probe *q) {
    const size_t affordable = affordable_probes(p), n = q->n < affordable ? q->n : affordable;
    for (size_t k = 0; k < n; k++) {
        const size_t i = k * (q->n - 1) / (n > 1 ? n - 1 : 1);
        q->direction[i] = 1;
        check_direction(p, q);
        q->direction[i] = 0;
    }
    uint32_t random = 12345;
    for (size_t i = 0; i < q->n; i++) {
        random = random * 1664525u + 1013904223u;
        q->direction[i] = random >> 31 ? 1 : -1;
    }
    if (q->n > n) check_direction(p, q);
    n2_tensor_set(p->store, q->t, q->x);
    assert_int_equal(n2_plan_run(p->plan), N2CE_OK);
}

static void check_derivatives(problem *p, const op_row *row) {
    for (size_t k = 0; k < p->n_x; k++) {
        const size_t n = (size_t)n2_elements(p->x[k]->shape);
        probe q = {p->x[k], doubles(n), {output(p, 3 + k), NULL}, doubles(n), n};
        n2_tensor_get(p->store, q.t, q.x);
        if (row->flat) {
            for (size_t i = 0; i < n; i++) assert_true(q.gradient[0][i] == 0);
        } else {
            q.gradient[1] = output(p, 3 + p->n_x + k);
            check_all_directions(p, &q);
        }
        free(q.x);
        free(q.gradient[0]);
        free(q.gradient[1]);
        free(q.direction);
    }
}

/* ---- cpu ------------------------------------------------------------------- */

/* The largest error is small against the largest number. */
static void check_near(const op_row *row, const problem *ref, const problem *cpu, size_t k) {
    const size_t n = output_size(ref, k);
    double *expected = output(ref, k), *found = output(cpu, k), largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(expected[i]));
    const double relative = fast_tolerance(row->relative > 0 ? row->relative : 1e-5, 4e-3);
    for (size_t i = 0; i < n; i++) {
        const double allowed = relative * largest + row->absolute;
        if (!is_close(found[i], expected[i], 0, allowed))
            print_error("output %zu, element %zu of %zu\n", k, i, n);
        assert_close(found[i], expected[i], 0, allowed);
    }
    free(expected);
    free(found);
}

static void check_same_bytes(const problem *a, const problem *b) {
    for (size_t k = 0; k < a->n_outputs; k++) {
        double *x = output(a, k), *y = output(b, k); /* and a zero behind each */
        assert_memory_equal(x, y, (output_size(a, k) + 1) * sizeof *x);
        free(x);
        free(y);
    }
}

static void print_case(const op_row *row, const op_case *c) {
    char text[64];
    print_error("%s of", row->name);
    for (int k = 0; k < c->n; k++) print_error(" %s", n2_shape_text(c->in[k], text));
    print_error(":\n");
}

static const op_row *current_row;
static const op_case *current_case;

static void check_case(const op_row *row, const op_case *c) {
    current_row = row;
    current_case = c;
    problem ref = open_problem(row, c, n2_ref_backend(), contexts[0]);
    if (!getenv("N2CE_ISA") && !is_cuda()) check_derivatives(&ref, row);
    problem cpu = open_problem(row, c, fast_backend(), contexts[0]);
    for (size_t k = 2; k < ref.n_outputs; k++) check_near(row, &ref, &cpu, k);
    for (size_t i = 1; i < (is_cuda() ? 2 : COUNT_OF(thread_counts)); i++) {
        problem other = open_problem(row, c, fast_backend(), contexts[i]);
        check_same_bytes(&cpu, &other);
        close_problem(&other);
    }
    current_case = NULL;
    close_problem(&ref);
    close_problem(&cpu);
}

static void check_row(void **state) {
    const op_row *row = *state;
    for (size_t i = 0; i < row->n_cases; i++) check_case(row, &row->cases[i]);
}

/* Tells where a row failed. */
static int after_row(void **state) {
    (void)state;
    if (current_case) print_case(current_row, current_case);
    current_case = NULL;
    return 0;
}

/* ---- random numbers -------------------------------------------------------- */

typedef struct bench {
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    const n2_backend *backend;
} bench;

static const n2_backend *backend_at(int i) { return i ? fast_backend() : n2_ref_backend(); }

static bench open_bench(const n2_backend *backend) {
    bench b = {.backend = backend};
    assert_int_equal(n2_store_new(contexts[1], backend->bytes, &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static void compile(bench *b, const n2_node *outputs, size_t n) {
    if (n2_plan_compile(b->g, b->backend, outputs, n, &b->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(contexts[1]));
    for (uint32_t id = 1; id <= n2_graph_size(b->g); id++)
        seen[n2_op_of(b->g, (n2_node){id})] = true;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
}

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

/* The gradient and the other backend agree with an op that does something else altogether; what
 * PyTorch has too is compared with it in test_golden.c, and the rest here. */
static void check_values(const n2_backend *backend, build_fn *make, const double *x, n2_shape shape,
                         const double *expected, size_t n) {
    bench b = open_bench(backend);
    n2_tensor *t = n2_store_add(b.store, "x", shape);
    n2_tensor_set(b.store, t, x);
    const n2_node in = n2g_read(b.g, t), y = make(b.g, &in);
    compile(&b, &y, 1);
    assert_int_equal(n2_elements(n2_shape_at(b.g, y)), n);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double *found = doubles(n);
    n2_plan_get(b.plan, 0, found);
    for (size_t i = 0; i < n; i++) assert_close(found[i], expected[i], 1e-6, 0);
    free(found);
    close_bench(&b);
}

BUILD(tiled, n2g_tile_rows(g, x[0], 2))
BUILD(repeated, n2g_repeat_rows(g, x[0], 2))
BUILD(padded, n2_build_pad(g, x[0], 1, 1, 4))
BUILD(scattered, n2g_scatter_add(g, x[0], n2g_row_index(g, 3, 2, 3), 3))
BUILD(half, n2g_affine(g, x[0], 0.5, 3))

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
        CHECK(mean_rows, 13 / 3.0, 0);
        CHECK(mean_all, 13 / 6.0);
        CHECK(sum_last, 3, 7, 3);
        CHECK(amax_last, 2, 4, 9);
        CHECK(median, 2.5);
        CHECK(positive, 1, 1, 1, 1, 1, 0);
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
