/* The operator table: a row for each op, with shapes of its inputs and what is built from them. For
 * test_ops.c, which checks every row. */
#ifndef TEST_OP_TABLE_H
#define TEST_OP_TABLE_H

#include "close.h"

#include "engine/plan.h"

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
#define THREE(a, b, c)            \
    {                             \
        .n = 3, .in = { a, b, c } \
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
                                      NN(40, 600, 36),
                                      NN(33, 50, 700),
                                      NN(100, 530, 40),
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
static const op_case long_sums[] = {THREE(S(3, 1100), S(1100, 5), S(3, 5))};
static const op_case products_tn[] = {PRODUCTS(TN),
                                      TN(600, 40, 36),
                                      TN(600, 12, 520),
                                      TN(300, 12, 700),
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

/* Pictures [n, h, w, c_in] and kernels [rows, columns, c_in, c_out]: single pixels, one channel,
 * 7 pixels that become 3, lines that the stride leaves over, more pictures than a tile has and more
 * channels than a vector. */
static const op_case convolutions[] = {
    TWO(S(1, 1, 1, 1), S(1, 1, 1, 1)),   TWO(S(2, 1, 1, 3), S(3, 3, 3, 2)),
    TWO(S(3, 7, 7, 1), S(3, 3, 1, 2)),   TWO(S(2, 8, 5, 2), S(3, 4, 2, 3)),
    TWO(S(0, 5, 4, 3), S(3, 3, 3, 2)),   TWO(S(3, 4, 6, 5), S(1, 1, 5, 7)),
    TWO(S(130, 3, 2, 2), S(2, 3, 2, 1)), TWO(S(9, 4, 4, 17), S(4, 4, 17, 33)),
    TWO(S(2, 5, 4, 33), S(3, 3, 33, 3)), TWO(S(2, 3, 3, 20), S(3, 3, 20, 4))};
/* Of 16 channels and more, which fast kernels do in another way: 3 x 3 at a stride of 1, 4 x 4 and
 * 6 x 6 at a stride of 2, 2 x 2; tiles that stick out of the picture, more than one panel of
 * channels, more tiles than are done at once. */
static const op_case tiled_convolutions[] = {
    TWO(S(3, 7, 9, 16), S(3, 3, 16, 48)), TWO(S(2, 4, 4, 32), S(3, 3, 32, 16)),
    TWO(S(27, 15, 16, 16), S(3, 3, 16, 16)), TWO(S(1, 5, 4, 272), S(3, 3, 272, 16))};
static const op_case halving_convolutions[] = {
    TWO(S(2, 7, 8, 16), S(4, 4, 16, 48)), TWO(S(3, 9, 6, 32), S(4, 4, 32, 16)),
    TWO(S(2, 9, 13, 16), S(6, 6, 16, 16)), TWO(S(40, 12, 10, 16), S(4, 4, 16, 16)),
    TWO(S(40, 15, 13, 16), S(4, 4, 16, 32))};
static const op_case small_kernels[] = {TWO(S(2, 5, 3, 16), S(2, 2, 16, 16)),
                                        TWO(S(3, 4, 7, 32), S(2, 2, 32, 48))};
static const op_case doubling_convolutions[] = {TWO(S(2, 4, 3, 16), S(4, 4, 32, 16)),
                                                TWO(S(3, 3, 5, 48), S(4, 4, 16, 48)),
                                                TWO(S(1, 2, 6, 16), S(6, 6, 16, 16))};
static const op_case kernels_of_tiles[] = {TWO(S(2, 6, 5, 16), S(2, 6, 5, 32)),
                                           TWO(S(9, 4, 9, 48), S(9, 4, 9, 16))};
/* Kernels that outweigh the pictures, which plans do not run by rows but share between workers. */
static const op_case heavy_convolutions[] = {TWO(S(5, 6, 7, 32), S(3, 3, 32, 64)),
                                             TWO(S(3, 5, 5, 30), S(3, 3, 30, 70)),
                                             TWO(S(40, 2, 3, 16), S(3, 3, 16, 144))};
static const op_case heavy_halving_convolutions[] = {TWO(S(4, 8, 8, 32), S(4, 4, 32, 48)),
                                                     TWO(S(5, 7, 4, 33), S(4, 4, 33, 36))};
static const op_case heavy_pixels[] = {TWO(S(3, 7, 6, 130), S(1, 1, 130, 140)),
                                       TWO(S(2, 3, 3, 530), S(1, 1, 530, 40)),
                                       TWO(S(3, 2, 2, 40), S(1, 1, 40, 530))};
/* Kernels that fit without zeros around the pictures. */
static const op_case bare_convolutions[] = {
    TWO(S(1, 1, 1, 1), S(1, 1, 1, 1)), TWO(S(2, 7, 7, 1), S(3, 3, 1, 2)),
    TWO(S(2, 8, 5, 3), S(3, 4, 3, 2)), TWO(S(20, 6, 5, 4), S(1, 1, 4, 36)),
    TWO(S(3, 4, 4, 2), S(4, 4, 2, 5)), TWO(S(200, 2, 3, 3), S(1, 1, 3, 1))};
/* dy [n, oh, ow, c_out] and kernels. */
static const op_case transposed_convolutions[] = {
    TWO(S(1, 1, 1, 1), S(1, 1, 1, 1)),   TWO(S(2, 1, 1, 4), S(4, 4, 3, 4)),
    TWO(S(3, 3, 3, 2), S(3, 3, 1, 2)),   TWO(S(0, 3, 2, 2), S(3, 3, 3, 2)),
    TWO(S(2, 3, 2, 5), S(1, 2, 20, 5)),  TWO(S(130, 2, 2, 1), S(3, 1, 2, 1)),
    TWO(S(5, 2, 3, 33), S(4, 3, 3, 33)), TWO(S(3, 4, 2, 3), S(1, 1, 2, 3))};
/* Pictures and dy; kernels of 4 x 4, 1 x 2, 3 x 3, 1 x 1. */
static const op_case kernels_of[] = {
    TWO(S(2, 5, 4, 3), S(2, 4, 3, 2)),     TWO(S(3, 2, 3, 1), S(3, 4, 4, 2)),
    TWO(S(130, 3, 2, 2), S(130, 3, 2, 1)), TWO(S(4, 1, 1, 19), S(4, 3, 3, 34)),
    TWO(S(0, 3, 3, 2), S(0, 3, 3, 2)),     TWO(S(11, 6, 5, 3), S(11, 6, 5, 16))};

/* Queries, keys and values of one head, of three heads, and of more pictures, positions and
 * channels than a tile or a block has; with dy. */
static const op_case of_one_head[] = {
    ONE(1, 1, 3),  ONE(2, 7, 3),   ONE(3, 1, 15),  ONE(2, 5, 24),   ONE(0, 4, 6),  ONE(130, 2, 6),
    ONE(2, 70, 9), ONE(1, 33, 99), ONE(2, 16, 48), ONE(1, 130, 96), ONE(1, 3, 900)};
static const op_case of_three_heads[] = {ONE(1, 1, 9), ONE(2, 7, 45), ONE(40, 3, 18), ONE(2, 65, 9),
                                         ONE(1, 17, 153)};
static const op_case inside_networks[] = {ONE(2, 7, 45), ONE(3, 20, 72), ONE(1, 70, 144)};
static const op_case of_heads_and_dy[] = {
    TWO(S(1, 1, 9), S(1, 1, 3)), TWO(S(2, 7, 45), S(2, 7, 15)), TWO(S(0, 3, 9), S(0, 3, 3)),
    TWO(S(40, 3, 18), S(40, 3, 6)), TWO(S(1, 50, 45), S(1, 50, 15))};

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

/* [n, h, w, c], so many that they are split, and pixels of one channel. */
static const op_case pictures[] = {ONE(2, 4, 2, 3), ONE(1, 2, 2, 1),  ONE(3, 2, 6, 1),
                                   ONE(0, 2, 2, 3), ONE(9, 8, 10, 5), ONE(70, 2, 4, 33)};
static const op_case odd_pictures[] = {ONE(2, 1, 1, 3), ONE(5, 3, 7, 2), ONE(9, 7, 5, 5)};

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
static const op_case layers[] = {
    THREE(S(1, 1), S(1, 1), S(1)), THREE(S(5, 3), S(7, 3), S(7)), THREE(S(0, 3), S(7, 3), S(7)),
    THREE(S(1000, 33), S(17, 33), S(17)), THREE(S(50, 130), S(35, 130), S(35))};
static const op_case normed[] = {
    THREE(S(2, 3, 2, 10), S(10), S(10)), THREE(S(0, 2, 2, 5), S(5), S(5)),
    THREE(S(33, 2, 3, 5), S(5), S(5)), THREE(S(3, 1, 1, 10), S(10), S(10))};
#define FOUR(a, b, c, d)             \
    {                                \
        .n = 4, .in = { a, b, c, d } \
    }
/* x, shift, gamma, beta */
static const op_case normed_by_all[] = {
    FOUR(S(2, 3, 2, 10), S(10), S(10), S(10)),      FOUR(S(3, 2, 5), S(3, 5), S(3, 5), S(3, 5)),
    FOUR(S(33, 2, 3, 5), S(33, 5), S(5), S(33, 5)), FOUR(S(3, 1, 1, 10), S(10), S(3, 10), S(10)),
    FOUR(S(0, 2, 2, 5), S(5), S(0, 5), S(5)),       FOUR(S(2, 9, 15, 35), S(2, 35), S(35), S(35)),
    FOUR(S(3, 3, 3, 40), S(40), S(3, 40), S(40))};
static const op_case normed_by_one[] = {
    TWO(S(2, 3, 2, 10), S(10)), TWO(S(3, 2, 5), S(3, 5)),      TWO(S(3, 5), S(5)),
    TWO(S(33, 4, 4, 1), S(1)),  TWO(S(2, 1, 1, 7), S(2, 7)),   TWO(S(100, 3, 1), S(100, 1)),
    TWO(S(2, 12, 12, 3), S(3)), TWO(S(1, 3, 1, 1, 4), S(1, 4))};
static const op_case normed_bare[] = {ONE(2, 3, 2, 10), ONE(3, 5), ONE(33, 4, 4, 1), ONE(0, 3, 4)};
static const op_case norm_gradients[] = {FOUR(S(2, 3, 2, 10), S(10), S(2, 10), S(2, 3, 2, 10)),
                                         FOUR(S(17, 2, 5), S(17, 5), S(5), S(17, 2, 5)),
                                         FOUR(S(3, 5), S(5), S(5), S(3, 5)),
                                         FOUR(S(2, 3, 3, 40), S(40), S(2, 40), S(2, 3, 3, 40))};
static const op_case normed_rows[] = {TWO(S(4, 15), S(5)), TWO(S(40, 9), S(3))};
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
BUILD(matmul_and_sum, n2g_add(g, n2g_matmul(g, x[0], x[1], false, false), x[2]))
BUILD(matmul_nt, n2g_matmul(g, x[0], x[1], false, true))
BUILD(matmul_tn, n2g_matmul(g, x[0], x[1], true, false))
BUILD(matmul_tt, n2g_matmul(g, x[0], x[1], true, true))

/* Zeros are as many as {stride y, x, top, bottom, left, right} says. */
BUILD(conv2d, n2g_conv2d(g, x[0], x[1], (n2_window){1, 1, 1, 1, 1, 1}))
BUILD(conv2d_strided, n2g_conv2d(g, x[0], x[1], (n2_window){2, 3, 1, 2, 2, 0}))
BUILD(conv2d_aside, n2g_conv2d(g, x[0], x[1], (n2_window){1, 1, 4, 0, 0, 5}))
BUILD(conv2d_halving, n2g_conv2d(g, x[0], x[1], (n2_window){2, 2, 1, 2, 3, 0}))
BUILD(conv2d_small, n2g_conv2d(g, n2g_tanh(g, x[0]), x[1], (n2_window){1, 1, 0, 1, 1, 0}))
BUILD(conv2d_bare, n2g_conv2d(g, x[0], x[1], (n2_window){2, 2, 0, 0, 0, 0}))
BUILD(conv2d_dense, n2g_conv2d(g, n2g_tanh(g, x[0]), x[1], (n2_window){1, 1, 0, 0, 0, 0}))
BUILD(conv2d_far, n2g_conv2d(g, x[0], x[1], (n2_window){1, 2, 4, 0, 0, 5}))

static int last_axis(n2_graph *g, n2_node x) { return n2_shape_at(g, x).rank - 1; }
static int64_t length(n2_graph *g, n2_node x, int axis) { return n2_shape_at(g, x).dim[axis]; }

/* Of the pictures that the kernel, going 2 by 2 pixels, leaves a line of. */
static n2_node build_conv2d_input(n2_graph *g, const n2_node *x) {
    const int64_t h = 2 * length(g, x[0], 1) - 2 + length(g, x[1], 0);
    const int64_t w = 2 * length(g, x[0], 2) - 2 + length(g, x[1], 1);
    return n2g_conv2d_input(g, x[0], x[1], h, w, (n2_window){2, 2, 1, 0, 0, 1});
}
static n2_node build_conv2d_weight(n2_graph *g, const n2_node *x) {
    const int64_t rows = length(g, x[0], 1) + 3 - length(g, x[1], 1);
    const int64_t columns = length(g, x[0], 2) + 3 - length(g, x[1], 2);
    return n2g_conv2d_weight(g, x[0], x[1], rows, columns, (n2_window){1, 1, 1, 1, 2, 0});
}

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
BUILD(sum_odd, n2g_sum(g, x[0], n2_axis(1) | n2_axis(3)))
BUILD(sum_even, n2g_sum(g, x[0], n2_axis(0) | n2_axis(2)))
BUILD(avg_pool2, n2g_avg_pool2(g, x[0]))
BUILD(upsample2, n2g_upsample2(g, x[0]))
#define NORM(GROUPS, ACT, EPS) ((n2_norm){GROUPS, ACT, EPS, 0.2})
#define ALL_GROUPS             (int32_t) length(g, x[0], last_axis(g, x[0]))
BUILD(norm_1, n2g_norm(g, x[0], N2_NONE, x[1], x[2], NORM(1, N2_ACT_NONE, 0.01)))
BUILD(norm_5, n2g_norm(g, x[0], N2_NONE, x[1], x[2], NORM(5, N2_ACT_NONE, 0.1)))
BUILD(instance_norm, n2g_norm(g, x[0], N2_NONE, x[1], x[2], NORM(ALL_GROUPS, N2_ACT_NONE, 0.1)))
BUILD(norm_all, n2g_norm(g, x[0], x[1], x[2], x[3], NORM(5, N2_ACT_SILU, 0.1)))
BUILD(norm_lrelu, n2g_norm(g, x[0], x[1], x[2], x[3], NORM(1, N2_ACT_LRELU, 0.1)))
BUILD(norm_instance, n2g_norm(g, x[0], x[1], x[2], x[3], NORM(ALL_GROUPS, N2_ACT_SILU, 0.1)))
BUILD(norm_bare, n2g_norm(g, x[0], N2_NONE, N2_NONE, N2_NONE, NORM(1, N2_ACT_SILU, 0.1)))
BUILD(norm_shift, n2g_norm(g, x[0], x[1], N2_NONE, N2_NONE, NORM(1, N2_ACT_NONE, 0.1)))
BUILD(norm_gamma, n2g_norm(g, x[0], N2_NONE, x[1], N2_NONE, NORM(1, N2_ACT_SILU, 0.1)))
BUILD(norm_beta, n2g_norm(g, x[0], N2_NONE, N2_NONE, x[1], NORM(1, N2_ACT_LRELU, 0.1)))
BUILD(norm_input, n2g_norm_input(g, x[0], x[1], N2_NONE, x[2], x[3], NORM(5, N2_ACT_SILU, 0.1)))
BUILD(norm_sums, n2g_norm_sums(g, x[0], N2_NONE, x[1], x[2], x[3], NORM(5, N2_ACT_SILU, 0.1)))
BUILD(norm_input_of_one, n2g_norm_input(g, x[0], x[1], x[1], x[1], x[0], NORM(1, N2_ACT_SILU, 0.1)))
BUILD(norm_of_reshape,
      n2g_norm(g,
               n2g_reshape(g, n2g_sin(g, x[0]), n2_dims(length(g, x[0], 0), 3, length(g, x[1], 0))),
               x[1], N2_NONE, N2_NONE, NORM(1, N2_ACT_SILU, 0.1)))
BUILD(dropout, n2g_dropout(g, x[0], 0.3))
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
BUILD(gelu, n2g_gelu(g, x[0]))
BUILD(gelu_grad, n2_build_binary(g, N2_OP_gelu_grad, x[0], x[1], 0))
BUILD(attention_1, n2g_attention(g, x[0], 1))
BUILD(attention_3, n2g_attention(g, x[0], 3))
/* What is between lies in memory in 16 bits where there are such plans. */
BUILD(attention_inside, n2g_attention(g, n2g_attention(g, n2g_tanh(g, x[0]), 3), 1))
BUILD(attention_grad, n2g_attention_grad(g, x[0], x[1], 3))
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
    WITH(gelu, unary, -6, 6, .absolute = 1e-6),
    WITH(gelu, wide, -6, 6, .absolute = 1e-6),
    WITH(gelu_grad, pairs, -6, 6, .absolute = 3e-6),
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
    ROW(matmul_and_sum, long_sums, -1, 1),
    ROW(matmul_tt, products_tt, -1, 1),
    ROW(conv2d, convolutions, -1, 1),
    ROW(conv2d_strided, convolutions, -1, 1),
    ROW(conv2d_far, convolutions, -1, 1),
    ROW(conv2d, tiled_convolutions, -1, 1),
    ROW(conv2d_aside, tiled_convolutions, -1, 1),
    ROW(conv2d_halving, halving_convolutions, -1, 1),
    ROW(conv2d, heavy_convolutions, -1, 1),
    ROW(conv2d_halving, heavy_halving_convolutions, -1, 1),
    ROW(conv2d_dense, heavy_pixels, -1, 1),
    ROW(conv2d_small, small_kernels, -1, 1),
    ROW(conv2d_input, doubling_convolutions, -1, 1),
    ROW(conv2d_weight, kernels_of_tiles, -1, 1),
    ROW(conv2d_bare, bare_convolutions, -1, 1),
    ROW(conv2d_dense, bare_convolutions, -1, 1),
    ROW(conv2d_input, transposed_convolutions, -1, 1),
    ROW(conv2d_weight, kernels_of, -1, 1),
    /* second gradients are differences of numbers larger than they are */
    WITH(attention_1, of_one_head, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(attention_3, of_three_heads, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(attention_inside, inside_networks, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(attention_grad, of_heads_and_dy, -2, 2, .relative = 3e-5, .absolute = 1e-6),
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
    ROW(sum_odd, pictures, -2, 2),
    ROW(sum_even, pictures, -2, 2),
    ROW(sum_odd, many_axes, -2, 2),
    ROW(sum_even, many_axes, -2, 2),
    ROW(avg_pool2, pictures, -2, 2),
    ROW(upsample2, pictures, -2, 2),
    ROW(upsample2, odd_pictures, -2, 2),
    /* second gradients, again */
    WITH(norm_1, normed, -2, 2, .relative = 3e-5),
    WITH(norm_5, normed, -2, 2, .relative = 3e-5),
    WITH(instance_norm, normed, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    /* a shift's gradients are sums of what has the sum 0, or nearly */
    WITH(norm_all, normed_by_all, -2, 2, .relative = 3e-5, .absolute = 1e-5),
    WITH(norm_lrelu, normed_by_all, -2, 2, .relative = 3e-5, .absolute = 1e-5),
    WITH(norm_instance, normed_by_all, -2, 2, .relative = 3e-5, .absolute = 5e-5),
    WITH(norm_bare, normed_bare, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(norm_shift, normed_by_one, -2, 2, .relative = 3e-5, .absolute = 5e-5),
    WITH(norm_gamma, normed_by_one, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(norm_beta, normed_by_one, -2, 2, .relative = 3e-5, .absolute = 1e-6),
    WITH(norm_input, norm_gradients, -2, 2, .relative = 3e-5, .absolute = 1e-5),
    WITH(norm_sums, norm_gradients, -2, 2, .relative = 3e-5, .absolute = 1e-5),
    WITH(norm_input_of_one, normed_by_one, -2, 2, .relative = 3e-5, .absolute = 1e-5),
    WITH(norm_of_reshape, normed_rows, -2, 2, .relative = 3e-5, .absolute = 1e-6),
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

#endif
