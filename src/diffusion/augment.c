#include "augment.h"

static const double PI = 3.14159265358979323846, LN2 = 0.69314718055994531;

/* ---- what is done to each picture: [n] ---- */

typedef struct change {
    n2_node mirrored, turned; /* 1, or 0 */
    n2_node scale;            /* w of 2^(0.2 w) */
    n2_node cosine, sine;     /* of the angle */
    n2_node stretch;          /* w of 2^(0.2 w) along a direction: */
    n2_node along, across;    /* its cosine and sine */
    n2_node right, down;      /* in eighths of a side */
} change;

/* 1 with probability p. */
static n2_node chance(n2_graph *g, int64_t n, double p) {
    return n2g_greater(g, n2g_constant(g, p), n2g_randu(g, n2_dims(n)));
}

static n2_node normal(n2_graph *g, int64_t n, n2_node mask) {
    return n2g_mul(g, mask, n2g_randn(g, n2_dims(n)));
}

static n2_node angle(n2_graph *g, int64_t n, n2_node mask) {
    return n2g_mul(g, mask, n2g_affine(g, n2g_randu(g, n2_dims(n)), 2 * PI, -PI));
}

static change draw_change(n2_graph *g, int64_t n, double p) {
    change c = {.mirrored = chance(g, n, 0.5)};
    c.turned = n2g_mul(g, chance(g, n, p), chance(g, n, 0.5));
    c.scale = normal(g, n, chance(g, n, p));
    const n2_node by = angle(g, n, chance(g, n, p)), to = angle(g, n, chance(g, n, 0.5));
    c.cosine = n2g_cos(g, by);
    c.sine = n2g_sin(g, by);
    c.stretch = normal(g, n, chance(g, n, p));
    c.along = n2g_cos(g, to);
    c.across = n2g_sin(g, to);
    const n2_node moved = chance(g, n, p);
    c.right = normal(g, n, moved);
    c.down = normal(g, n, moved);
    return c;
}

static n2_node tell(n2_graph *g, const change *c, int64_t n) {
    const n2_node all[N2_AUGMENT_NUMBERS] = {c->mirrored,
                                             c->turned,
                                             c->scale,
                                             n2g_affine(g, c->cosine, 1, -1),
                                             c->sine,
                                             n2g_mul(g, c->stretch, c->along),
                                             n2g_mul(g, c->stretch, c->across),
                                             c->right,
                                             c->down};
    n2_node told = n2g_reshape(g, all[0], n2_dims(n, 1));
    for (size_t i = 1; i < N2_AUGMENT_NUMBERS; i++)
        told = n2g_concat(g, told, n2g_reshape(g, all[i], n2_dims(n, 1)), 1);
    return told;
}

/* ---- where a pixel comes from ---- */

/* 2 x 2, of [n] each: row by row. */
typedef struct matrix {
    n2_node m[4];
} matrix;

static matrix product(n2_graph *g, const matrix *a, const matrix *b) {
    matrix c;
    for (int i = 0; i < 4; i++)
        c.m[i] = n2g_add(g, n2g_mul(g, a->m[i / 2 * 2], b->m[i % 2]),
                         n2g_mul(g, a->m[i / 2 * 2 + 1], b->m[2 + i % 2]));
    return c;
}

static matrix rotation(n2_graph *g, n2_node cosine, n2_node sine) {
    return (matrix){{cosine, n2g_neg(g, sine), sine, cosine}};
}

/* 2^(-0.2 w) and so on: maps go from where a pixel is to where it was. */
static n2_node power(n2_graph *g, n2_node w, double sign) {
    return n2g_exp(g, n2g_scale(g, w, sign * 0.2 * LN2));
}

static matrix map_back(n2_graph *g, const change *c) {
    const n2_node none = n2g_scale(g, c->mirrored, 0), smaller = power(g, c->scale, -1);
    const matrix flips = {{n2g_mul(g, smaller, n2g_affine(g, c->mirrored, -2, 1)), none, none,
                           n2g_mul(g, smaller, n2g_affine(g, c->turned, -2, 1))}};
    const matrix turn = rotation(g, c->cosine, c->sine);
    const matrix to = rotation(g, c->along, c->across);
    const matrix from = rotation(g, c->along, n2g_neg(g, c->across));
    const matrix stretch = {{power(g, c->stretch, -1), none, none, power(g, c->stretch, 1)}};
    matrix all = product(g, &flips, &turn);
    all = product(g, &all, &to);
    all = product(g, &all, &stretch);
    return product(g, &all, &from);
}

static n2_node absolute(n2_graph *g, n2_node x) { return n2g_maximum(g, x, n2g_neg(g, x)); }

/* Between 0 and side - 1: mirrored at both ends, and cut off beyond. */
static n2_node inside(n2_graph *g, n2_node x, int64_t side) {
    const double last = (double)(side - 1);
    const n2_node once = n2g_affine(g, absolute(g, x), -1, last);
    const n2_node twice = n2g_affine(g, absolute(g, once), -1, last);
    return n2g_maximum(g, twice, n2g_constant(g, 0));
}

/* The whole number below, of numbers from 0 to side - 1: side - 2 at most, so that there is a next
 * one. */
static n2_node whole(n2_graph *g, n2_node x, int64_t side) {
    n2_node sum = n2g_scale(g, x, 0);
    for (int64_t k = 1; k + 1 < side; k++)
        sum = n2g_add(g, sum, n2g_greater(g, x, n2g_constant(g, (double)k)));
    return sum;
}

/* ---- pictures ---- */

/* Numbers of pictures [n] beside numbers of pixels. */
static n2_node column(n2_graph *g, n2_node x) {
    return n2g_reshape(g, x, n2_dims(n2_shape_at(g, x).dim[0], 1));
}

/* Row or column of where all pixels [n x area] come from. */
static n2_node source(n2_graph *g, const change *c, n2_node by_x, n2_node by_y, n2_shape s,
                      int64_t side) {
    static const double WAY = 0.125;
    const int64_t h = s.dim[1], w = s.dim[2], area = h * w;
    const n2_node x = n2g_affine(g, n2g_row_index(g, area, 1, w), 1, -0.5 * (double)(w - 1));
    const n2_node y = n2g_affine(g, n2g_row_index(g, area, w, h), 1, -0.5 * (double)(h - 1));
    const n2_node from_x = n2g_sub(g, x, column(g, n2g_scale(g, c->right, WAY * (double)w)));
    const n2_node from_y = n2g_sub(g, y, column(g, n2g_scale(g, c->down, WAY * (double)h)));
    const n2_node sum =
        n2g_add(g, n2g_mul(g, column(g, by_x), from_x), n2g_mul(g, column(g, by_y), from_y));
    return inside(g, n2g_affine(g, sum, 1, 0.5 * (double)(side - 1)), side);
}

/* The pixel (row + i, column + k) of each place, times its weight. */
static n2_node corner(n2_graph *g, n2_node pixels, n2_node at, n2_node weight, int64_t next) {
    const int64_t all = n2_elements(n2_shape_at(g, at));
    const n2_node index = n2g_reshape(g, n2g_affine(g, at, 1, (double)next), n2_dims(all));
    return n2g_mul(g, n2g_gather(g, pixels, index), n2g_reshape(g, weight, n2_dims(all, 1)));
}

n2_node n2_augment_pictures(n2_graph *g, n2_node x, double p, n2_node *told) {
    *told = N2_NONE;
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    const int64_t n = s.dim[0], h = s.dim[1], w = s.dim[2], area = h * w;
    const change c = draw_change(g, n, p);
    const matrix m = map_back(g, &c);
    const n2_node at_x = source(g, &c, m.m[0], m.m[1], s, w);
    const n2_node at_y = source(g, &c, m.m[2], m.m[3], s, h);
    const n2_node left = whole(g, at_x, w), top = whole(g, at_y, h);
    const n2_node fx = n2g_sub(g, at_x, left), fy = n2g_sub(g, at_y, top);
    const n2_node gx = n2g_affine(g, fx, -1, 1), gy = n2g_affine(g, fy, -1, 1);
    const n2_node first = column(g, n2g_scale(g, n2g_row_index(g, n, 1, n), (double)area));
    const n2_node at = n2g_add(g, n2g_add(g, n2g_scale(g, top, (double)w), left), first);
    const n2_node pixels = n2g_reshape(g, x, n2_dims(n * area, s.dim[3]));
    const n2_node upper = n2g_add(g, corner(g, pixels, at, n2g_mul(g, gx, gy), 0),
                                  corner(g, pixels, at, n2g_mul(g, fx, gy), 1));
    const n2_node lower = n2g_add(g, corner(g, pixels, at, n2g_mul(g, gx, fy), w),
                                  corner(g, pixels, at, n2g_mul(g, fx, fy), w + 1));
    *told = tell(g, &c, n);
    return n2g_reshape(g, n2g_add(g, upper, lower), s);
}
