/* Mirror images. */
#define N2_INSIDE
#include "picture_layers.h"

/* Pixel (y, x) of picture i is row (i side + y) side + x; its mirror image is side - 1 - 2 x
 * further. */
n2_node n2_build_mirror(n2_graph *g, n2_node x, n2_node coin) {
    if (!x.id || !coin.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    const int64_t n = s.dim[0], side = s.dim[2], area = s.dim[1] * side;
    const n2_node at = n2g_row_index(g, n * area, 1, n * area);
    const n2_node column = n2g_row_index(g, n * area, 1, side);
    const n2_node way = n2g_affine(g, column, -2, (double)(side - 1));
    const n2_node picture = n2g_row_index(g, n * area, area, n);
    const n2_node flip = n2g_gather(g, n2g_reshape(g, coin, n2_dims(n, 1)), picture);
    const n2_node index = n2g_add(g, at, n2g_mul(g, way, n2g_reshape(g, flip, n2_dims(n * area))));
    const n2_node pixels = n2g_reshape(g, x, n2_dims(n * area, s.dim[3]));
    return n2g_reshape(g, n2g_gather(g, pixels, index), s);
}
