#include "picture_tensors.h"

#include "base/numerics.h"

#include <math.h>
#include <string.h>

n2_tensor *n2_given_tensor(n2_store *store, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_find(store, name);
    if (!t) t = n2_store_add_blank(store, name, shape);
    if (t) t->is_given = true;
    return t && n2_same_shape(t->shape, shape) ? t : NULL;
}

/* ---- data ---- */

static n2ce_status check_labels(n2ce_ctx *ctx, const n2_images *p, int64_t classes) {
    if (!p->labels)
        return n2_fail(ctx, N2CE_EDATA,
                       "The pictures have no classes, and the model is told some. Take a file "
                       "with labels (CIFAR-10), or train without --labels.");
    for (size_t i = 0; i < p->n; i++)
        if (p->labels[i] >= classes)
            return n2_fail(ctx, N2CE_EDATA, "Picture %zu is of class %d; the model knows %lld.", i,
                           p->labels[i], (long long)classes);
    return N2CE_OK;
}

static n2ce_status new_labels(n2_store *store, int64_t classes, n2_picture_data *d) {
    N2_TRY(check_labels(n2_store_ctx(store), d->pictures, classes));
    d->labels = n2_given_tensor(store, "labels", n2_dims((int64_t)d->pictures->n));
    d->classes = n2_given_tensor(store, "classes", n2_dims(classes, classes));
    return d->labels && d->classes ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_picture_data_new(n2_store *store, const n2_denoiser_spec *spec,
                                const n2_images *pictures, n2_picture_data *out) {
    *out = (n2_picture_data){.pictures = pictures};
    N2_TRY(n2_denoiser_check_size(n2_store_ctx(store), spec, pictures));
    out->x = n2_given_tensor(store, "pictures",
                             n2_dims((int64_t)pictures->n, n2_denoiser_numbers(spec)));
    if (!out->x) return N2CE_ENOMEM;
    return spec->net.labels ? new_labels(store, spec->net.labels, out) : N2CE_OK;
}

static void write_rows(void *arg, size_t first, size_t n, void *out) {
    const n2_images *p = arg;
    const size_t numbers = p->height * p->width * p->channels;
    const unsigned char *from = p->pixels + first * numbers;
    for (size_t i = 0; i < n * numbers; i++) ((float *)out)[i] = (float)from[i] / 127.5f - 1;
}

n2ce_status n2_picture_data_fill(n2_store *store, const n2_picture_data *d) {
    if (d->labels) {
        const int64_t k = d->classes->shape.dim[0];
        for (size_t i = 0; i < d->pictures->n; i++)
            ((float *)d->labels->data)[i] = d->pictures->labels[i];
        for (int64_t i = 0; i < k; i++) ((float *)d->classes->data)[i * k + i] = 1;
        n2_tensor_push(store, d->labels);
        n2_tensor_push(store, d->classes);
    }
    return n2_tensor_fill(store, d->x, write_rows, (void *)d->pictures);
}

n2_node n2_draw_pictures(n2_graph *g, const n2_denoiser_spec *s, const n2_picture_data *d,
                         int64_t n, bool flips, n2_node *labels) {
    const n2_node pick = n2g_randint(g, n2_dims(n), d->x->shape.dim[0]);
    const n2_node rows = n2g_gather(g, n2g_read(g, d->x), pick);
    const n2_node x = n2g_reshape(g, rows, n2_dims(n, s->height, s->width, s->net.channels));
    *labels = N2_NONE;
    if (d->labels) {
        const n2_node column =
            n2g_reshape(g, n2g_read(g, d->labels), n2_dims(d->x->shape.dim[0], 1));
        const n2_node class = n2g_reshape(g, n2g_gather(g, column, pick), n2_dims(n));
        *labels = n2g_gather(g, n2g_read(g, d->classes), class);
    }
    return flips ? n2_mirror_pictures(g, x, n2g_randint(g, n2_dims(n), 2)) : x;
}

n2_node n2_draw_classes(n2_graph *g, const n2_denoiser_spec *s, const n2_picture_data *d,
                        int64_t n) {
    if (!d->classes) return N2_NONE;
    return n2g_gather(g, n2g_read(g, d->classes), n2g_randint(g, n2_dims(n), s->net.labels));
}

static unsigned char byte_of(float x) {
    const double level = floor((double)x * 127.5 + 128);
    return level >= 255 ? 255 : level > 0 ? (unsigned char)level : 0;
}

void n2_picture_of_numbers(const float *x, const n2_images *to, size_t i) {
    const size_t numbers = to->height * to->width * to->channels;
    for (size_t k = 0; k < numbers; k++) to->pixels[i * numbers + k] = byte_of(x[k]);
}

/* ---- running means ---- */

n2_tensor *n2_running_new(n2_store *store, const char *name, size_t n) {
    return n2_store_add(store, name, n2_dims((int64_t)n + 1));
}

void n2_running_note(n2_graph *g, n2_tensor *running, const n2_node *numbers, size_t n) {
    static const double KEEP = 0.99;
    n2_node all[N2_MAX_INPUTS];
    for (size_t i = 0; i <= n && i < N2_MAX_INPUTS; i++)
        all[i] = n2g_reshape(g, i < n ? numbers[i] : n2g_constant(g, 1), n2_dims(1));
    const n2_node now = n2g_concat_all(g, all, (int)n + 1, 0);
    n2g_assign(g, running, n2g_add(g, n2g_scale(g, n2g_read(g, running), KEEP), now));
}

void n2_running_read(const n2_store *store, const n2_tensor *running, size_t n, double *means) {
    double all[N2_MAX_INPUTS];
    n2_tensor_get(store, running, all);
    for (size_t i = 0; i < n; i++) means[i] = all[n] > 0 ? all[i] / all[n] : N2_NAN;
}

/* ---- rates ---- */

n2_node n2_rate_factor(n2_graph *g, n2_node step, const void *course) {
    const n2_rate_course *c = course;
    n2_node factor = n2g_constant(g, 1);
    if (c->ramp > 0) factor = n2g_minimum(g, factor, n2g_scale(g, step, 1 / c->ramp));
    if (c->fall < 1) return factor;
    const n2_node left = n2g_affine(g, step, -1 / c->fall, (c->steps + 1) / c->fall);
    return n2g_mul(g, factor, n2g_minimum(g, left, n2g_constant(g, 1)));
}

/* ---- the average of weights ---- */

n2_node n2_count_step(n2_graph *g, n2_tensor *count) {
    return n2g_assign(g, count, n2g_affine(g, n2g_read(g, count), 1, 1));
}

void n2_average_weights(n2_graph *g, const n2_score_net *average, const n2_score_net *of,
                        n2_node steps, int64_t batch, double half_life) {
    static const double SHARE = 0.05, LN2 = 0.69314718055994531;
    const double n = (double)batch;
    const n2_node life = n2g_minimum(g, n2g_scale(g, steps, SHARE * n), n2g_constant(g, half_life));
    const n2_node decay = n2g_exp(g, n2g_div(g, n2g_constant(g, -LN2 * n), life));
    const n2_node rest = n2g_affine(g, decay, -1, 1);
    const n2_parameters *to = &average->parameters, *from = &of->parameters;
    for (size_t i = 0; i < to->n && n2_graph_status(g) == N2CE_OK; i++) {
        const n2_node old = n2g_mul(g, decay, n2g_read(g, to->list[i]));
        const n2_node new = n2g_mul(g, rest, n2g_read(g, from->list[i]));
        n2g_assign(g, to->list[i], n2g_add(g, old, new));
    }
}
