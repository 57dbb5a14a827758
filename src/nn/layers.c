#define N2_INSIDE
#include "nn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

n2_layer n2_layer_drawn(n2_parameters *p, const char *name, int64_t in, int64_t out, n2_init init,
                        bool bias) {
    char full[96];
    n2_layer layer = {0};
    snprintf(full, sizeof full, "%s.weight", name);
    const n2_drawn weight = {init.mode, init.weight, in, out};
    layer.weight = n2_parameter_drawn(p, full, n2_dims(out, in), weight);
    if (!bias) return layer;
    snprintf(full, sizeof full, "%s.bias", name);
    const n2_drawn shift = {init.mode, init.bias, in, out};
    layer.bias = n2_parameter_drawn(p, full, n2_dims(out), shift);
    return layer;
}

n2_layer n2_layer_new(n2_parameters *p, const char *name, int64_t in, int64_t out) {
    return n2_layer_drawn(p, name, in, out, N2_INIT_DEFAULT, true);
}

n2_node n2_build_layer(n2_graph *g, const n2_layer *layer, n2_node x) {
    const n2_node weight = n2g_read(g, layer->weight);
    if (!layer->bias) return n2g_matmul(g, x, weight, false, true);
    return n2g_linear(g, x, weight, n2g_read(g, layer->bias));
}

n2_layer *n2_layers_new(n2_store *store, const n2_layer *from, int n) {
    n2_layer *layers = n2_store_alloc(store, (size_t)n, sizeof *layers);
    if (layers && from && n) memcpy(layers, from, (size_t)n * sizeof *layers);
    return layers;
}

n2_mlp n2_mlp_new(n2_parameters *p, const char *name, const int64_t *widths, int n_widths,
                  double slope) {
    n2_mlp mlp = {.slope = slope, .layers = n2_layers_new(p->store, NULL, n_widths)};
    if (!mlp.layers) p->failed = true;
    for (int i = 0; i + 1 < n_widths && mlp.layers; i++) {
        char full[64];
        snprintf(full, sizeof full, "%s.%d", name, 2 * i);
        mlp.layers[mlp.n++] = n2_layer_new(p, full, widths[i], widths[i + 1]);
    }
    return mlp;
}

n2_node n2_build_mlp(n2_graph *g, const n2_mlp *mlp, n2_node x) {
    for (int i = 0; i < mlp->n; i++) {
        if (i > 0) x = n2g_lrelu(g, x, mlp->slope);
        x = n2_layer_apply(g, &mlp->layers[i], x);
    }
    return x;
}

n2_tensor *n2_sinusoid_table(n2_store *store, const char *name, int64_t n, int64_t width) {
    n2_tensor *t = n2_store_add(store, name, n2_dims(n, width));
    if (!t) return NULL;
    for (int64_t i = 0; i < n * width; i++) {
        const int64_t row = i / width, column = i % width;
        const double rate = pow(10000, -(double)(column / 2 * 2) / (double)width);
        const double angle = (double)row * rate, x = column % 2 ? cos(angle) : sin(angle);
        if (n2_store_bytes(store) == sizeof(float))
            ((float *)t->data)[i] = (float)x;
        else
            ((double *)t->data)[i] = x;
    }
    return t;
}
