/* Convolutions with fewer multiplications (Winograd): which, and how much scratch memory they want.
 *
 * m outputs of r taps along an axis need not m r products but t = m + r - 1: transform t numbers of
 * the picture and r of the kernel into t each, multiply, transform back. In two dimensions that is
 * 36 products instead of 144 for 4 x 4 pixels and a kernel of 3 x 3, and 9 instead of 16 for 2 x 2
 * pixels and a kernel of 2 x 2. A kernel of 4 x 4 at a stride of 2 is four of 2 x 2, one for each
 * of the four phases that pixels have. With channels the products are t x t matrix products. */
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
    int64_t down, across; /* tiles of a picture */
} n2_winograd;

static inline int64_t n2_ratio_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

/* It pays if tiles that stick out of the picture do not eat up what is saved. */
static inline bool n2_winograd_pays(const n2_winograd *g, int64_t height, int64_t width) {
    const int64_t products = g->t * g->t * g->down * g->across;
    return 4 * g->r * g->r * height * width >= 5 * products;
}

static inline n2_winograd n2_winograd_of(n2_op_id op, const n2_conv *v) {
    enum { NUMBERS = 1 << 20, LEAST = 24, MOST = 384, ROWS = 12 };
    n2_winograd g = {.r = 0};
    const n2_window *w = &v->window;
    const int s = w->stride_y, r = (int)(v->rows / s);
    if (w->stride_x != s || s > 2 || v->rows != v->columns || v->rows != r * s) return g;
    if (r < 2 || r > 3) return g;
    if (v->c_in % N2_WINOGRAD_CHANNELS || v->c_out % N2_WINOGRAD_CHANNELS) return g;
    const bool input = op == N2_OP_conv2d_input;
    const int64_t height = input ? n2_ratio_up(v->h, s) : v->oh;
    const int64_t width = input ? n2_ratio_up(v->w, s) : v->ow;
    g = (n2_winograd){.r = r, .m = r == 3 ? 4 : 2, .s = s};
    g.t = g.m + r - 1;
    g.down = n2_ratio_up(height, g.m);
    g.across = n2_ratio_up(width, g.m);
    g.tiles = v->n * g.down * g.across;
    g.depth = input ? v->c_out : op == N2_OP_conv2d ? v->c_in * s * s : v->c_in;
    g.width = input ? v->c_in : v->c_out;
    const int64_t fit = NUMBERS / (g.t * g.t * (g.depth + g.width));
    g.at_once = fit < LEAST ? LEAST : fit > MOST ? MOST : fit / ROWS * ROWS;
    if (g.at_once > g.tiles) g.at_once = g.tiles;
    if (g.tiles == 0 || !n2_winograd_pays(&g, height, width)) g.r = 0;
    return g;
}

/* Transforms of pictures, [t t] matrices of so many numbers, lie so far apart. */
static inline int64_t n2_winograd_apart(int64_t numbers) { return numbers + N2_WINOGRAD_GAP; }

/* Transforms of the kernel, of a block of tiles before and after; the kernel, turned round. */
static inline int64_t n2_winograd_scratch(n2_op_id op, const n2_winograd *g) {
    const int64_t matrix = g->depth * g->width, taps = g->r * g->r, square = g->t * g->t;
    return square * (matrix + n2_winograd_apart(g->at_once * g->depth) +
                     n2_winograd_apart(g->at_once * g->width)) +
           (op == N2_OP_conv2d_input ? taps * matrix : 0);
}

#endif
