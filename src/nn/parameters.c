/* Lists of parameters, and the numbers they begin with. */
#include "base/random.h"
#include "nn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

n2_parameters n2_parameters_new(n2_store *store, uint64_t seed) {
    return (n2_parameters){.store = store, .seed = seed};
}

n2_parameters n2_parameters_to_count(n2_store *store) {
    return (n2_parameters){.store = store, .only_counted = true};
}

int64_t n2_parameters_count(const n2_parameters *p) {
    int64_t n = p->counted;
    for (size_t i = 0; i < p->n; i++) n += n2_elements(p->list[i]->shape);
    return n;
}

static void set(const n2_parameters *p, n2_tensor *t, int64_t k, float x) {
    if (n2_store_bytes(p->store) == sizeof(float))
        ((float *)t->data)[k] = x;
    else
        ((double *)t->data)[k] = (double)x;
}

typedef void fill_fn(n2_stream s, uint64_t first, size_t n, float *out);

/* scale z, or scale (2 u - 1). Streams of initial values are far from those of nodes, which count
 * from 1. */
static void fill(const n2_parameters *p, n2_tensor *t, double scale, bool normal) {
    const n2_stream stream = {p->seed, 0x80000000u + (uint32_t)t->index, 0};
    fill_fn *draw = normal ? n2_fill_normal : n2_fill_uniform;
    const int64_t n = n2_elements(t->shape);
    for (int64_t i = 0; i < n; i += N2_DRAW_GROUP) {
        float u[N2_DRAW_GROUP];
        draw(stream, (uint64_t)i, N2_DRAW_GROUP, u);
        for (int64_t k = i; k < n && k < i + N2_DRAW_GROUP; k++)
            set(p, t, k, (float)scale * (normal ? u[k - i] : 2 * u[k - i] - 1));
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

/* Zeros, at the end of the list; NULL: none was made. */
static n2_tensor *append(n2_parameters *p, const char *name, n2_shape shape) {
    if (p->only_counted) {
        p->counted += n2_elements(shape);
        return NULL;
    }
    char full[160];
    if (p->prefix) snprintf(full, sizeof full, "%s.%s", p->prefix, name);
    n2_tensor *t = grow(p) ? n2_store_add(p->store, p->prefix ? full : name, shape) : NULL;
    if (t)
        p->list[p->n++] = t;
    else
        p->failed = true;
    return t;
}

n2_tensor *n2_parameter(n2_parameters *p, const char *name, n2_shape shape, double bound) {
    n2_tensor *t = append(p, name, shape);
    if (t) fill(p, t, bound, false);
    return t;
}

n2_tensor *n2_parameter_of(n2_parameters *p, const char *name, n2_shape shape, double value) {
    n2_tensor *t = append(p, name, shape);
    if (t && value != 0)
        for (int64_t k = 0; k < n2_elements(shape); k++) set(p, t, k, (float)value);
    return t;
}

static double scale_of(n2_init_mode mode, double fan_in, double fan_out) {
    switch (mode) {
    case N2_INIT_XAVIER_UNIFORM:
        return sqrt(6 / (fan_in + fan_out));
    case N2_INIT_XAVIER_NORMAL:
        return sqrt(2 / (fan_in + fan_out));
    case N2_INIT_KAIMING_UNIFORM:
        return sqrt(3 / fan_in);
    case N2_INIT_PYTORCH:
    case N2_INIT_KAIMING_NORMAL:
        break;
    }
    return 1 / sqrt(fan_in);
}

n2_tensor *n2_parameter_drawn(n2_parameters *p, const char *name, n2_shape shape, n2_drawn how) {
    n2_tensor *t = append(p, name, shape);
    const bool normal = how.mode == N2_INIT_XAVIER_NORMAL || how.mode == N2_INIT_KAIMING_NORMAL;
    const double scale = how.factor * scale_of(how.mode, (double)how.fan_in, (double)how.fan_out);
    if (t && how.factor != 0) fill(p, t, scale, normal);
    return t;
}

n2_tensor *n2_fixed_normal(n2_parameters *p, const char *name, n2_shape shape, double scale) {
    n2_tensor *t = n2_store_add(p->store, name, shape);
    if (t)
        fill(p, t, scale, true);
    else
        p->failed = true;
    return t;
}
