#define N2_INSIDE
#include "unet.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
const n2_unet_spec n2_unet_ddpmpp_cifar10 = {
    .kind = N2_UNET_DDPMPP, .channels = 3, .base = 128, .multiples = {2, 2, 2}, .levels = 3,
    .blocks = 4, .attention = 1 << 1, .augment = 9, .dropout = 0.13};
const n2_unet_spec n2_unet_ddpm_cifar10 = {
    .kind = N2_UNET_DDPM, .channels = 3, .base = 128, .multiples = {1, 2, 2, 2}, .levels = 4,
    .blocks = 2, .attention = 1 << 1, .dropout = 0.1};
const n2_unet_spec n2_unet_adm_imagenet64 = {
    .kind = N2_UNET_ADM, .channels = 3, .base = 192, .multiples = {1, 2, 3, 4}, .levels = 4,
    .blocks = 3, .attention = 1 << 1 | 1 << 2 | 1 << 3, .labels = 1000, .dropout = 0.1};
const n2_unet_spec n2_unet_s = {
    .kind = N2_UNET_DDPMPP, .channels = 3, .base = 64, .multiples = {1, 2, 2}, .levels = 3,
    .blocks = 2, .attention = 1 << 1, .augment = 9};
/* clang-format on */

/* ---- making it ----------------------------------------------------------------- */

/* DDPM's variance scaling by 1e-10 is a factor of 1e-5. */
static n2_block_style style_of(const n2_unet_spec *spec) {
    n2_block_style s = {.embedding = 4 * spec->base, .eps = 1e-6, .dropout = spec->dropout};
    const n2_init xavier = {N2_INIT_XAVIER_UNIFORM, 1, 0};
    s.init = s.init_qkv = s.init_last = xavier;
    s.init_last.weight = 1e-5;
    s.scale = 1;
    if (spec->kind == N2_UNET_DDPMPP) {
        s.scale = sqrt(0.5);
        s.always_skips = true;
        s.init_qkv.weight = sqrt(0.2);
    } else if (spec->kind == N2_UNET_ADM) {
        s.eps = 1e-5;
        s.adaptive = true;
        s.init = s.init_qkv = N2_INIT_DEFAULT;
        s.init_last = (n2_init){N2_INIT_PYTORCH, 0, 0};
    }
    return s;
}

typedef struct maker {
    n2_parameters *p;
    const char *prefix;
    n2_unet *net;
    n2_block_style style;
    int64_t width;              /* channels so far */
    int64_t kept[N2_UNET_KEPT]; /* channels of what the way down keeps */
    int n_kept;
    int number; /* of the next part in its list */
} maker;

enum { NAME = 64 };

static const char *name_of(const maker *m, const char *list, char name[NAME]) {
    snprintf(name, NAME, "%s%s", m->prefix, list);
    return name;
}

static n2_unet_part *next_part(maker *m, const char *list, char name[NAME]) {
    snprintf(name, NAME, "%s%s.%d", m->prefix, list, m->number++);
    return &m->net->parts[m->net->n_parts++];
}

static void add_block(maker *m, const char *list, n2_block_shape shape, bool joins) {
    char name[NAME];
    n2_unet_part *part = next_part(m, list, name);
    shape.in = m->width + (joins ? m->kept[--m->n_kept] : 0);
    part->joins = joins;
    part->block = n2_block_new(m->p, name, shape, &m->style);
    m->width = shape.out;
}

static n2_conv_layer new_conv(const maker *m, const char *name, int64_t in, int64_t out, int stride,
                              n2_init init) {
    const n2_conv_shape shape = {.in = in, .out = out, .kernel = 3, .stride = stride, .padding = 1};
    return n2_conv_layer_new(m->p, name, shape, init);
}

/* DDPM halves with zeros on the right and below alone. */
static void add_resampling(maker *m, const char *list, n2_resampling how) {
    char name[NAME];
    if (m->net->spec.kind != N2_UNET_DDPM) {
        add_block(m, list, (n2_block_shape){.out = m->width, .resampling = how}, false);
        return;
    }
    n2_unet_part *part = next_part(m, list, name);
    part->convolves = how;
    part->conv = new_conv(m, name, m->width, m->width, how == N2_HALF_SIZE ? 2 : 1, m->style.init);
    if (how == N2_HALF_SIZE) part->conv.window.top = part->conv.window.left = 0;
}

static void keep(maker *m) {
    m->kept[m->n_kept++] = m->width;
    if (m->net->n_parts) m->net->parts[m->net->n_parts - 1].kept = true;
}

static int64_t heads_of(const n2_unet_spec *spec, int64_t width, bool wanted) {
    const int64_t heads = spec->kind == N2_UNET_ADM ? width / 64 : 1;
    return wanted ? heads : 0;
}

static bool attends(const n2_unet_spec *spec, int level) { return spec->attention >> level & 1; }

static void make_way_down(maker *m) {
    const n2_unet_spec *spec = &m->net->spec;
    keep(m);
    for (int l = 0; l < spec->levels; l++) {
        const int64_t out = spec->base * spec->multiples[l];
        if (l) {
            add_resampling(m, "enc", N2_HALF_SIZE);
            keep(m);
        }
        for (int b = 0; b < spec->blocks; b++) {
            const int64_t heads = heads_of(spec, out, attends(spec, l));
            add_block(m, "enc", (n2_block_shape){.out = out, .heads = heads}, false);
            keep(m);
        }
    }
}

static void make_bottom(maker *m) {
    const int64_t heads = heads_of(&m->net->spec, m->width, true);
    m->number = 0;
    add_block(m, "mid", (n2_block_shape){.out = m->width, .heads = heads}, false);
    add_block(m, "mid", (n2_block_shape){.out = m->width}, false);
}

static void make_way_up(maker *m) {
    const n2_unet_spec *spec = &m->net->spec;
    m->number = 0;
    for (int l = spec->levels - 1; l >= 0; l--) {
        const int64_t out = spec->base * spec->multiples[l];
        if (l < spec->levels - 1) add_resampling(m, "dec", N2_DOUBLE_SIZE);
        for (int b = 0; b <= spec->blocks; b++) {
            const bool chosen = spec->kind != N2_UNET_DDPMPP || b == spec->blocks;
            const int64_t heads = heads_of(spec, out, chosen && attends(spec, l));
            add_block(m, "dec", (n2_block_shape){.out = out, .heads = heads}, true);
        }
    }
}

static void make_embedding(maker *m) {
    n2_unet *net = m->net;
    const n2_unet_spec *spec = &net->spec;
    const bool adm = spec->kind == N2_UNET_ADM;
    const int64_t width = spec->base, embedding = m->style.embedding;
    const n2_init init = m->style.init;
    char name[NAME];
    net->waves = n2_waves_new(m->p, name_of(m, "frequencies", name), width,
                              adm ? N2_WAVES_COSINE_FIRST : N2_WAVES_SINE_FIRST);
    if (spec->labels) {
        const double classes = sqrt((double)spec->labels);
        const n2_init wide = {N2_INIT_KAIMING_NORMAL, classes, 0};
        net->label = n2_layer_drawn(m->p, name_of(m, "map_label", name), spec->labels,
                                    adm ? embedding : width, adm ? wide : init, !adm);
    }
    if (spec->augment)
        net->augment = n2_layer_drawn(m->p, name_of(m, "map_augment", name), spec->augment, width,
                                      adm ? m->style.init_last : init, false);
    net->map0 = n2_layer_drawn(m->p, name_of(m, "map_layer0", name), width, embedding, init, true);
    net->map1 =
        n2_layer_drawn(m->p, name_of(m, "map_layer1", name), embedding, embedding, init, true);
}

static bool is_possible(n2_parameters *p, const n2_unet_spec *s) {
    const char *wrong = NULL;
    if (s->levels < 1 || s->levels > N2_UNET_LEVELS || s->blocks < 1)
        wrong = "has no levels, too many, or no blocks";
    else if ((s->blocks + 1) * s->levels > N2_UNET_KEPT)
        wrong = "has too many blocks";
    else if (s->channels < 1 || s->base < 4 || s->base % 4)
        wrong = "has no channels, or a base that is not divisible by 4";
    for (int l = 0; !wrong && l < s->levels; l++)
        if (s->multiples[l] < 1) wrong = "has a level without channels";
    if (wrong) n2_fail(n2_store_ctx(p->store), N2CE_EINVAL, "A U-Net %s.", wrong);
    return !wrong;
}

n2_unet n2_unet_new(n2_parameters *p, const char *prefix, const n2_unet_spec *spec) {
    n2_unet net = {.spec = *spec};
    maker m = {.p = p, .prefix = prefix, .net = &net, .width = spec->base};
    char name[NAME];
    m.style = style_of(spec);
    const size_t most =
        is_possible(p, spec) ? (size_t)(spec->levels * (2 * spec->blocks + 3) + 2) : 0;
    if (most) net.parts = n2_store_alloc(p->store, most, sizeof *net.parts);
    if (!net.parts) {
        p->failed = true;
        return net;
    }
    make_embedding(&m);
    const int64_t channels = spec->channels;
    net.in = new_conv(&m, name_of(&m, "conv_in", name), channels, m.width, 1, m.style.init);
    make_way_down(&m);
    make_bottom(&m);
    make_way_up(&m);
    net.norm = n2_block_norm_new(p, name_of(&m, "norm_out", name), m.width, m.style.eps);
    net.out = new_conv(&m, name_of(&m, "conv_out", name), m.width, channels, 1, m.style.init_last);
    return net;
}

/* ---- building it into a graph ---------------------------------------------------- */

static n2_node embed(n2_graph *g, const n2_unet *net, const n2_unet_input *in) {
    const bool adm = net->spec.kind == N2_UNET_ADM, labels = in->labels.id && net->label.weight;
    n2_node e = n2_waves_apply(g, &net->waves, in->level);
    if (in->augment.id && net->augment.weight)
        e = n2g_add(g, e, n2_layer_apply(g, &net->augment, in->augment));
    if (labels && !adm) {
        const n2_node scaled = n2g_scale(g, in->labels, sqrt((double)net->spec.labels));
        e = n2g_add(g, e, n2_layer_apply(g, &net->label, scaled));
    }
    e = n2_layer_apply(g, &net->map1, n2g_silu(g, n2_layer_apply(g, &net->map0, e)));
    if (labels && adm) e = n2g_add(g, e, n2_layer_apply(g, &net->label, in->labels));
    return n2g_silu(g, e);
}

static n2_node apply_part(n2_graph *g, const n2_unet_part *part, n2_node x, n2_node e,
                          bool training) {
    if (part->convolves == N2_SAME_SIZE) return n2_block_apply(g, &part->block, x, e, training);
    if (part->convolves == N2_DOUBLE_SIZE) x = n2g_upsample2(g, x);
    return n2_conv_layer_apply(g, &part->conv, x);
}

/* On its way through the parts. */
typedef struct walk {
    const n2_unet *net;
    const n2_unet_input *in;
    n2_node e, h, kept[N2_UNET_KEPT];
    int n_kept, part; /* part: the next one */
} walk;

static void begin_walk(n2_graph *g, walk *w) {
    w->e = embed(g, w->net, w->in);
    w->h = n2_conv_layer_apply(g, &w->net->in, w->in->x);
    w->kept[w->n_kept++] = w->h;
}

/* All that come next and are on the way down, or are not. */
static void walk_on(n2_graph *g, walk *w, bool down) {
    for (; w->part < w->net->n_parts && w->net->parts[w->part].kept == down; w->part++) {
        const n2_unet_part *part = &w->net->parts[w->part];
        if (part->joins) w->h = n2g_concat(g, w->h, w->kept[--w->n_kept], 3);
        w->h = apply_part(g, part, w->h, w->e, w->in->training);
        if (down) w->kept[w->n_kept++] = w->h;
    }
}

n2_node n2_build_unet(n2_graph *g, const n2_unet *net, const n2_unet_input *in) {
    walk w = {.net = net, .in = in};
    begin_walk(g, &w);
    walk_on(g, &w, true);
    if (in->bottom) *in->bottom = w.h;
    walk_on(g, &w, false);
    w.h = n2_norm_layer_apply(g, &net->norm, w.h, N2_NONE, N2_ACT_SILU);
    return n2_conv_layer_apply(g, &net->out, w.h);
}

n2_node n2_build_unet_encode(n2_graph *g, const n2_unet *net, const n2_unet_input *in) {
    walk w = {.net = net, .in = in};
    begin_walk(g, &w);
    walk_on(g, &w, true);
    return w.h;
}
