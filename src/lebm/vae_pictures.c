#include "vae_pictures.h"

#include <math.h>
#include <string.h>

/* ---- nets for sizes ---- */

static n2ce_status fits_net(n2ce_ctx *ctx, const n2_images *p, const n2_image_spec *net) {
    const size_t side = p->height > p->width ? p->height : p->width;
    if (side > (size_t)net->side)
        return n2_fail(ctx, N2CE_EDATA,
                       "The pictures are %zu x %zu, and the net \"%s\" holds %lld x %lld. Scale "
                       "them, or name another net.",
                       p->height, p->width, net->name, (long long)net->side, (long long)net->side);
    if (p->channels > (size_t)net->channels)
        return n2_fail(ctx, N2CE_EDATA,
                       "The pictures have colours, and the net \"%s\" is for grey ones. Name "
                       "another net.",
                       net->name);
    return N2CE_OK;
}

n2ce_status n2_lebm_net_for(n2ce_ctx *ctx, const n2_images *p, const char *name,
                            const n2_image_spec **out) {
    static const char *const by_size[] = {"mnist", "svhn", "celeba", "celeba-hq"};
    const size_t side = p->height > p->width ? p->height : p->width;
    size_t i = p->channels == 1 ? 0 : 1;
    if (strcmp(name, "auto") != 0) {
        *out = n2_image_spec_named(name);
        return *out ? fits_net(ctx, p, *out)
                    : n2_fail(ctx, N2CE_EINVAL, "There is no net \"%s\".", name);
    }
    while (i < 3 && (size_t)n2_image_spec_named(by_size[i])->side < side) i++;
    *out = n2_image_spec_named(by_size[i]);
    return fits_net(ctx, p, *out);
}

n2ce_status n2_lebm_check_frame(n2ce_ctx *ctx, const n2_lebm_spec *spec, const n2_images *p) {
    const n2_lebm_frame *f = &spec->frame;
    if (p->height == f->height && p->width == f->width && p->channels == f->channels)
        return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA,
                   "The pictures are %zu x %zu with %zu channel%s, and the model is of %zu x %zu "
                   "with %zu. Scale or convert them, or train another model.",
                   p->height, p->width, p->channels, p->channels == 1 ? "" : "s", f->height,
                   f->width, f->channels);
}

/* ---- pixels ---- */

typedef struct margin {
    size_t side, channels, top, left;
} margin;

static margin margin_of(const n2_lebm_spec *spec) {
    const size_t side = (size_t)spec->net->side;
    return (margin){side, (size_t)spec->net->channels, (side - spec->frame.height) / 2,
                    (side - spec->frame.width) / 2};
}

void n2_lebm_picture_in(const n2_lebm_spec *spec, const n2_images *p, size_t i, float *out) {
    const margin m = margin_of(spec);
    const unsigned char *from = p->pixels + i * p->height * p->width * p->channels;
    for (size_t k = 0; k < m.side * m.side * m.channels; k++) out[k] = -1;
    for (size_t y = 0; y < p->height; y++)
        for (size_t x = 0; x < p->width; x++, from += p->channels) {
            float *to = out + ((y + m.top) * m.side + x + m.left) * m.channels;
            for (size_t c = 0; c < m.channels; c++)
                to[c] = (float)from[c % p->channels] / 127.5f - 1;
        }
}

static unsigned char byte_of(double x) {
    const double level = floor((x + 1) * 127.5 + 0.5);
    return level >= 255 ? 255 : level > 0 ? (unsigned char)level : 0; /* NaN is black */
}

void n2_lebm_picture_out(const n2_lebm_spec *spec, const double *from, const n2_images *to,
                         size_t i) {
    const margin m = margin_of(spec);
    unsigned char *out = to->pixels + i * to->height * to->width * to->channels;
    for (size_t y = 0; y < to->height; y++)
        for (size_t x = 0; x < to->width; x++) {
            const double *pixel = from + ((y + m.top) * m.side + x + m.left) * m.channels;
            double grey = 0;
            for (size_t c = 0; c < m.channels; c++) grey += pixel[c] / (double)m.channels;
            for (size_t c = 0; c < to->channels; c++)
                *out++ = byte_of(to->channels == 1 ? grey : pixel[c]);
        }
}

/* ---- tensors ---- */

n2_tensor *n2_lebm_given(const n2_lebm *m, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_find(m->store, name);
    if (!t) t = n2_store_add_blank(m->store, name, shape);
    if (t) t->is_given = true;
    return t && n2_same_shape(t->shape, shape) ? t : NULL;
}

n2_tensor *n2_lebm_pictures_new(const n2_lebm *m, const char *name, size_t n) {
    return n2_lebm_given(m, name, n2_dims((int64_t)n, n2_lebm_numbers(m->nets.spec.net)));
}

typedef struct filling {
    const n2_lebm_spec *spec;
    const n2_images *pictures;
} filling;

static void write_rows(void *arg, size_t first, size_t n, void *out) {
    const filling *f = arg;
    const size_t numbers = (size_t)n2_lebm_numbers(f->spec->net);
    for (size_t i = 0; i < n; i++)
        n2_lebm_picture_in(f->spec, f->pictures, first + i, (float *)out + i * numbers);
}

n2ce_status n2_lebm_pictures_fill(const n2_lebm *m, n2_tensor *t, const n2_images *pictures) {
    filling f = {&m->nets.spec, pictures};
    return n2_tensor_fill(m->store, t, write_rows, &f);
}

n2_node n2_lebm_pick(n2_graph *g, const n2_image_spec *net, n2_tensor *pictures, n2_node index,
                     n2_node coin) {
    const n2_node rows = n2g_gather(g, n2g_read(g, pictures), index);
    if (!rows.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, rows).dim[0];
    const n2_node x = n2g_reshape(g, rows, n2_dims(n, net->side, net->side, net->channels));
    return coin.id ? n2_mirror_pictures(g, x, coin) : x;
}
