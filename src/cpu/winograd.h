/* Convolutions with fewer multiplications (Winograd): which, and how much scratch memory they want.
 *
 * m outputs of r taps along an axis need not m r products but t = m + r - 1: transform t numbers of
 * the picture and r of the kernel into t each, multiply, transform back. In two dimensions that is
 * 36 products instead of 144 for 4 x 4 pixels and a kernel of 3 x 3, and with a kernel of 2 x 2 25
 * instead of 64 for 4 x 4 pixels, or 9 instead of 16 for 2 x 2. A kernel of 4 x 4 at a stride of 2
 * is four of 2 x 2, one for each of the four phases that pixels have. With channels the products
 * are t x t matrix products. */
#ifndef N2_CPU_WINOGRAD_H
#define N2_CPU_WINOGRAD_H

#include "engine/kernel.h"

enum {
    N2_WINOGRAD_CHANNELS = 16, /* channels are a multiple of so many: whole vectors */
    N2_WINOGRAD_GAP = 16       /* between matrices, lest they share sets of the cache */
};

typedef struct n2_winograd {
    int r, m, t;          /* r = 0: not for this convolution */
    int s;                /* the stride: s s phases */
    int64_t depth;        /* of the products, and */
    int64_t width;        /* their columns; for kernels' gradients, channels in and out */
    int64_t tiles;        /* of a phase, m x m pixels each, of all pictures */
    int64_t at_once;      /* tiles whose transforms are in memory */
    int64_t block;        /* columns whose kernel is, or, of its gradient, channels in */
    int64_t down, across; /* tiles of a picture */
} n2_winograd;

static inline int64_t n2_ratio_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

/* Tiles of m outputs, for r taps, over pictures of height x width. */
static inline n2_winograd n2_winograd_tiles(int r, int m, int64_t height, int64_t width) {
    return (n2_winograd){.r = r,
                         .m = m,
                         .t = m + r - 1,
                         .down = n2_ratio_up(height, m),
                         .across = n2_ratio_up(width, m)};
}

static inline int64_t n2_winograd_products(const n2_winograd *g) {
    return g->t * g->t * g->down * g->across;
}

/* Products of n pictures; transforming the kernel, which every tile of a picture shares, is worth
 * some tiles. */
static inline int64_t n2_winograd_cost(const n2_winograd *g, int64_t n) {
    enum { KERNEL = 40 };
    return g->t * g->t * (n * g->down * g->across + KERNEL);
}

/* Large tiles save more, if they do not stick out of the picture and are not few. */
static inline n2_winograd n2_winograd_best(int r, int64_t n, int64_t height, int64_t width) {
    const n2_winograd large = n2_winograd_tiles(r, 4, height, width);
    const n2_winograd small = n2_winograd_tiles(r, 2, height, width);
    if (r == 3 || 10 * n2_winograd_cost(&large, n) < 9 * n2_winograd_cost(&small, n)) return large;
    return small;
}

/* By tiles of m outputs; 0: of as many as is best. */
static inline n2_winograd n2_winograd_with(n2_op_id op, const n2_conv *v, int m) {
    enum { NUMBERS = 1 << 20, LEAST = 24, MOST = 384, ROWS = 12, KERNEL = 1 << 23 };
    const n2_winograd none = {.r = 0};
    const n2_window *w = &v->window;
    const int s = w->stride_y, r = (int)(v->rows / s);
    if (w->stride_x != s || s > 2 || v->rows != v->columns || v->rows != r * s) return none;
    if (r < 2 || r > 3) return none;
    if (v->c_in % N2_WINOGRAD_CHANNELS || v->c_out % N2_WINOGRAD_CHANNELS) return none;
    const bool input = op == N2_OP_conv2d_input;
    const int64_t height = input ? n2_ratio_up(v->h, s) : v->oh;
    const int64_t width = input ? n2_ratio_up(v->w, s) : v->ow;
    n2_winograd g =
        m ? n2_winograd_tiles(r, m, height, width) : n2_winograd_best(r, v->n, height, width);
    if (v->n == 0 || 4 * r * r * height * width < 5 * n2_winograd_products(&g)) return none;
    g.s = s;
    g.tiles = v->n * g.down * g.across;
    g.depth = input ? v->c_out : op == N2_OP_conv2d ? v->c_in * s * s : v->c_in;
    g.width = input ? v->c_in : v->c_out;
    const int64_t fit = NUMBERS / (g.t * g.t * (g.depth + g.width));
    g.at_once = fit < LEAST ? LEAST : fit > MOST ? MOST : fit / ROWS * ROWS;
    if (g.at_once > g.tiles) g.at_once = g.tiles;
    const bool weight = op == N2_OP_conv2d_weight;
    const int64_t side = weight ? g.depth : g.width, other = weight ? g.width : g.depth;
    const int64_t vectors = KERNEL / (g.t * g.t * other * N2_WINOGRAD_CHANNELS);
    g.block = (vectors < 4 ? 4 : vectors) * N2_WINOGRAD_CHANNELS;
    if (g.block > side) g.block = side;
    return g;
}

static inline n2_winograd n2_winograd_of(n2_op_id op, const n2_conv *v) {
    return n2_winograd_with(op, v, 0);
}

/* Transforms of pictures, [t t] matrices of so many numbers, lie so far apart. */
static inline int64_t n2_winograd_apart(int64_t numbers) { return numbers + N2_WINOGRAD_GAP; }

/* Transforms of a block of the kernel, of tiles before and after; the block, turned round. */
static inline int64_t n2_winograd_scratch(n2_op_id op, const n2_winograd *g) {
    const bool weight = op == N2_OP_conv2d_weight;
    const int64_t depth = weight ? g->block : g->depth, width = weight ? g->width : g->block;
    const int64_t square = g->t * g->t, taps = g->r * g->r, matrix = depth * width;
    return square * (matrix + n2_winograd_apart(g->at_once * depth) +
                     n2_winograd_apart(g->at_once * width)) +
           (op == N2_OP_conv2d_input ? taps * matrix : 0);
}

#endif
