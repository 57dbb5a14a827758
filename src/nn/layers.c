#include "base/random.h"
#define N2_INSIDE
#include "nn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

n2_parameters n2_parameters_new(n2_store *store, uint64_t seed) {
    return (n2_parameters){.store = store, .seed = seed};
}

int64_t n2_parameters_count(const n2_parameters *p) {
    int64_t n = 0;
    for (size_t i = 0; i < p->n; i++) n += n2_elements(p->list[i]->shape);
    return n;
}

/* Streams of initial values are far from those of nodes, which count from 1. */
static void fill_uniform(const n2_parameters *p, n2_tensor *t, double bound) {
    const n2_stream stream = {p->seed, 0x80000000u + (uint32_t)t->index, 0};
    const int64_t n = n2_elements(t->shape);
    for (int64_t i = 0; i < n; i += N2_DRAW_GROUP) {
        float u[N2_DRAW_GROUP];
        n2_fill_uniform(stream, (uint64_t)i, N2_DRAW_GROUP, u);
        for (int64_t k = i; k < n && k < i + N2_DRAW_GROUP; k++) {
            const float x = (float)bound * (2 * u[k - i] - 1);
            if (n2_store_bytes(p->store) == sizeof(float))
                ((float *)t->data)[k] = x;
            else
                ((double *)t->data)[k] = (double)x;
        }
    }
}

static bool grow(n2_parameters *p) {
    if (p->n < p->capacity) return true;
    const size_t capacity = p->capacity ? 2 * p->capacity : 32;
    n2_tensor **list = n2_store_alloc(p->store, capacity, sizeof *list);
    if (!list) return false;
    if (p->n) memcpy(list, p->list, p->n * sizeof *list);
    p->list = list;
    p->capacity = capacity;
    return true;
}

n2_tensor *n2_parameter(n2_parameters *p, const char *name, n2_shape shape, double bound) {
    n2_tensor *t = grow(p) ? n2_store_add(p->store, name, shape) : NULL;
    if (!t) {
        p->failed = true;
        return NULL;
    }
    fill_uniform(p, t, bound);
    p->list[p->n++] = t;
    return t;
}

n2_layer n2_layer_new(n2_parameters *p, const char *name, int64_t in, int64_t out) {
    char full[96];
    n2_layer layer;
    const double bound = 1 / sqrt((double)in);
    snprintf(full, sizeof full, "%s.weight", name);
    layer.weight = n2_parameter(p, full, n2_dims(out, in), bound);
    snprintf(full, sizeof full, "%s.bias", name);
    layer.bias = n2_parameter(p, full, n2_dims(out), bound);
    return layer;
}

n2_node n2_build_layer(n2_graph *g, const n2_layer *layer, n2_node x) {
    return n2g_linear(g, x, n2g_read(g, layer->weight), n2g_read(g, layer->bias));
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
