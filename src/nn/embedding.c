/* Numbers as waves of many frequencies. */
#define N2_INSIDE
#include "picture_layers.h"

#include <math.h>
#include <stdlib.h>

n2_waves n2_waves_new(n2_parameters *p, const char *name, int64_t width, n2_wave_form form) {
    n2_waves w = {.factor = 1, .cosine_first = form == N2_WAVES_COSINE_FIRST};
    const int64_t half = width / 2;
    const double last = (double)(w.cosine_first ? half : half - 1);
    n2ce_ctx *ctx = n2_store_ctx(p->store);
    double *f = n2_alloc(ctx, (size_t)half + 1, sizeof *f);
    w.frequencies = f ? n2_store_add(p->store, name, n2_dims(half)) : NULL;
    for (int64_t i = 0; f && i < half; i++) f[i] = pow(10000, -(double)i / last);
    if (w.frequencies)
        n2_tensor_set(p->store, w.frequencies, f);
    else
        p->failed = true;
    n2_free(ctx, f);
    return w;
}

n2_waves n2_fourier_new(n2_parameters *p, const char *name, int64_t width, double scale) {
    return (n2_waves){.frequencies = n2_fixed_normal(p, name, n2_dims(width / 2), scale),
                      .factor = 2 * 3.14159265358979323846,
                      .cosine_first = true};
}

n2_node n2_build_waves(n2_graph *g, const n2_waves *waves, n2_node t) {
    if (!t.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, t);
    char text[64];
    if (s.rank != 1)
        return n2_graph_fail(g, "waves: of one number for each picture, not of %s",
                             n2_shape_text(s, text));
    const n2_node column = n2g_reshape(g, t, n2_dims(s.dim[0], 1));
    const n2_node rates = n2g_scale(g, n2g_read(g, waves->frequencies), waves->factor);
    const n2_node angle = n2g_mul(g, column, rates);
    const n2_node sine = n2g_sin(g, angle), cosine = n2g_cos(g, angle);
    return waves->cosine_first ? n2g_concat(g, cosine, sine, 1) : n2g_concat(g, sine, cosine, 1);
}
