/* Residual networks of He et al. for CIFAR-10: 32 x 32 RGB, shortcuts without parameters. */
#include "feature_kind.h"
#include "weights_file.h"

#include <math.h>
#include <stdio.h>

enum { SIDE = 32, GROUPS = 3, BLOCKS_MAX = 64, CHANNELS_MAX = 1024 };
static const double BATCH_NORM_EPS = 1e-5;

typedef struct net_block {
    n2_conv_layer conv1, conv2;
    n2_tensor *shortcut; /* [1, 1, in, out]: which channel goes where; NULL: all as they are */
} net_block;

typedef struct residual_net {
    n2_conv_layer first;
    net_block block[GROUPS][BLOCKS_MAX];
    size_t blocks[GROUPS];
    n2_layer last;
} residual_net;

/* ---- from the file ---- */

/* What is read, and how many arrays of it the network has used. */
typedef struct net_reader {
    n2_feature_body *body;
    residual_net *net;
    const n2_weights *w;
    size_t used;
} net_reader;

/* The array of that name and shape; a length of 0 may be anything up to CHANNELS_MAX. NULL, and the
 * context has the sentence: there is none. */
static const n2_weights_array *array_of(net_reader *r, const char *layer, const char *part,
                                        const size_t *dim, int rank) {
    char name[2 * N2_WEIGHTS_NAME];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    const n2_weights_array *a = n2_weights_find(r->w, name);
    bool fits = a && a->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = dim[i] ? a->dim[i] == dim[i] : a->dim[i] <= CHANNELS_MAX;
    if (fits) {
        r->used++;
        return a;
    }
    n2_fail(r->body->ctx, N2CE_EDATA,
            "%s: %s is %s. A residual network for CIFAR-10 is expected, with PyTorch's names; get "
            "another file.",
            r->w->label, name, a ? "of another shape than it should be" : "not there");
    return NULL;
}

/* What a batch norm makes of a channel: scale x + shift. */
typedef struct channel_norm {
    double scale, shift;
} channel_norm;

static n2ce_status read_norm(net_reader *r, const char *layer, size_t channels,
                             channel_norm out[CHANNELS_MAX]) {
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    const n2_weights_array *a[4];
    for (int i = 0; i < 4; i++) {
        a[i] = array_of(r, layer, parts[i], &channels, 1);
        if (!a[i]) return N2CE_EDATA;
    }
    for (size_t c = 0; c < channels; c++) {
        const double variance = n2_weights_number(r->w, a[3], c);
        if (variance < 0)
            return n2_fail(
                r->body->ctx, N2CE_EDATA,
                "%s: the variance %g of %s.running_var is negative. The file is damaged: "
                "get it again.",
                r->w->label, variance, layer);
        out[c].scale = n2_weights_number(r->w, a[0], c) / sqrt(variance + BATCH_NORM_EPS);
        out[c].shift =
            n2_weights_number(r->w, a[1], c) - out[c].scale * n2_weights_number(r->w, a[2], c);
    }
    return N2CE_OK;
}

static n2_tensor *add_tensor(net_reader *r, const char *layer, const char *part, n2_shape shape) {
    char name[2 * N2_WEIGHTS_NAME];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    return n2_store_add(r->body->store, name, shape);
}

/* A 3 x 3 convolution and the norm behind it as one convolution with a bias. */
static n2ce_status read_conv(net_reader *r, const char *conv, const char *norm, size_t in,
                             size_t out, int32_t stride, n2_conv_layer *layer) {
    channel_norm n[CHANNELS_MAX];
    const n2_weights_array *k = array_of(r, conv, "weight", (const size_t[]){out, in, 3, 3}, 4);
    if (!k) return N2CE_EDATA;
    N2_TRY(read_norm(r, norm, out, n));
    layer->window = (n2_window){stride, stride, 1, 1, 1, 1};
    layer->weight = add_tensor(r, conv, "weight", n2_dims(3, 3, (int64_t)in, (int64_t)out));
    layer->bias = add_tensor(r, conv, "bias", n2_dims((int64_t)out));
    if (!layer->weight || !layer->bias) return N2CE_ENOMEM;
    layer->weight->is_kernel = true;
    float *to = layer->weight->data, *bias = layer->bias->data;
    for (size_t o = 0; o < out; o++) {
        bias[o] = (float)n[o].shift;
        for (size_t i = 0; i < in * 9; i++) /* [in][9] becomes [9][in][out] */
            to[(i % 9 * in + i / 9) * out + o] =
                (float)(n[o].scale * n2_weights_number(r->w, k, o * in * 9 + i));
    }
    return N2CE_OK;
}

/* Every other pixel, and the channels in the middle of twice as many. */
static n2ce_status make_shortcut(net_reader *r, const char *layer, size_t in, n2_tensor **out) {
    *out = add_tensor(r, layer, "shortcut", n2_dims(1, 1, (int64_t)in, (int64_t)(2 * in)));
    if (!*out) return N2CE_ENOMEM;
    float *to = (*out)->data;
    for (size_t c = 0; c < in; c++) to[c * 2 * in + in / 2 + c] = 1;
    return N2CE_OK;
}

static n2ce_status read_block(net_reader *r, int group, size_t at, size_t in, size_t out) {
    char name[N2_WEIGHTS_NAME], conv[2][N2_WEIGHTS_NAME + 8], norm[2][N2_WEIGHTS_NAME + 8];
    net_block *b = &r->net->block[group][at];
    snprintf(name, sizeof name, "layer%d.%zu", group + 1, at);
    for (int i = 0; i < 2; i++) {
        snprintf(conv[i], sizeof conv[i], "%s.conv%d", name, i + 1);
        snprintf(norm[i], sizeof norm[i], "%s.bn%d", name, i + 1);
    }
    N2_TRY(read_conv(r, conv[0], norm[0], in, out, in == out ? 1 : 2, &b->conv1));
    N2_TRY(read_conv(r, conv[1], norm[1], out, out, 1, &b->conv2));
    return in == out ? N2CE_OK : make_shortcut(r, name, in, &b->shortcut);
}

static size_t count_blocks(const n2_weights *w, int group) {
    char name[N2_WEIGHTS_NAME];
    size_t n = 0;
    for (; n <= BLOCKS_MAX; n++) {
        snprintf(name, sizeof name, "layer%d.%zu.conv1.weight", group + 1, n);
        if (!n2_weights_find(w, name)) break;
    }
    return n;
}

static n2ce_status read_groups(net_reader *r, size_t channels) {
    for (int group = 0; group < GROUPS; group++) {
        const size_t n = count_blocks(r->w, group), in = channels;
        if (n == 0 || n > BLOCKS_MAX)
            return n2_fail(
                r->body->ctx, N2CE_EDATA,
                "%s: layer%d has %zu blocks; a residual network for CIFAR-10 has 1 to %d in "
                "layer1, layer2 and layer3 each.",
                r->w->label, group + 1, n, (int)BLOCKS_MAX);
        if (group > 0) channels *= 2;
        for (size_t i = 0; i < n; i++) N2_TRY(read_block(r, group, i, i ? channels : in, channels));
        r->net->blocks[group] = n;
    }
    r->body->width = channels;
    return N2CE_OK;
}

static n2ce_status read_last(net_reader *r) {
    n2_feature_body *body = r->body;
    n2_layer *last = &r->net->last;
    const n2_weights_array *w =
        array_of(r, "linear", "weight", (const size_t[]){0, body->width}, 2);
    if (!w) return N2CE_EDATA;
    const n2_weights_array *b = array_of(r, "linear", "bias", w->dim, 1);
    if (!b) return N2CE_EDATA;
    body->classes = w->dim[0];
    last->weight =
        add_tensor(r, "linear", "weight", n2_dims((int64_t)body->classes, (int64_t)body->width));
    last->bias = add_tensor(r, "linear", "bias", n2_dims((int64_t)body->classes));
    if (!last->weight || !last->bias) return N2CE_ENOMEM;
    float *weight = last->weight->data, *bias = last->bias->data;
    for (size_t i = 0; i < w->count; i++) weight[i] = (float)n2_weights_number(r->w, w, i);
    for (size_t i = 0; i < b->count; i++) bias[i] = (float)n2_weights_number(r->w, b, i);
    return N2CE_OK;
}

/* Channels of the first layer: even, so that a shortcut has a middle, and small enough twice
 * doubled. */
static n2ce_status first_channels(net_reader *r, size_t *out) {
    const n2_weights_array *a = n2_weights_find(r->w, "conv1.weight");
    *out = a ? a->dim[0] : 0;
    if (*out >= 2 && *out % 2 == 0 && *out <= CHANNELS_MAX / 4) return N2CE_OK;
    return n2_fail(r->body->ctx, N2CE_EDATA,
                   "%s: conv1.weight has %zu kernels; a residual network for CIFAR-10 has an even "
                   "number of them, 2 to %d.",
                   r->w->label, *out, (int)CHANNELS_MAX / 4);
}

static n2ce_status read_network(n2_feature_body *body, const n2_weights *w) {
    net_reader r = {body, body->net, w, 0};
    size_t channels;
    N2_TRY(first_channels(&r, &channels));
    N2_TRY(read_conv(&r, "conv1", "bn1", 3, channels, 1, &r.net->first));
    N2_TRY(read_groups(&r, channels));
    N2_TRY(read_last(&r));
    if (r.used == w->n) return N2CE_OK;
    return n2_fail(
        body->ctx, N2CE_EDATA,
        "%s: it has %zu arrays, of which a residual network for CIFAR-10 of this depth has "
        "%zu: it is another network.",
        w->label, w->n, r.used);
}

static n2ce_status read_residual(n2_feature_body *body, const char *path) {
    n2_weights w;
    body->side = SIDE;
    body->net = n2_alloc(body->ctx, 1, sizeof(residual_net));
    if (!body->net) return N2CE_ENOMEM;
    N2_TRY(n2_weights_read(body->ctx, path, &w));
    const n2ce_status status = read_network(body, &w);
    n2_weights_free(&w);
    return status;
}

static void free_residual(n2_feature_body *body) { n2_free(body->ctx, body->net); }

/* ---- the graph ---- */

static n2_node apply_block(n2_graph *g, const net_block *b, n2_node x) {
    const n2_window half = {2, 2, 0, 0, 0, 0};
    const n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &b->conv1, x), 0);
    const n2_node skip = b->shortcut ? n2g_conv2d(g, x, n2g_read(g, b->shortcut), half) : x;
    const n2_node y = n2g_add(g, n2_conv_layer_bare(g, &b->conv2, h), skip);
    return n2g_lrelu(g, n2g_add(g, y, n2g_read(g, b->conv2.bias)), 0);
}

static void build_residual(const n2_feature_body *body, n2_graph *g, n2_node pictures,
                           n2_node *features, n2_node *probabilities) {
    const residual_net *net = body->net;
    const int64_t n = n2_shape_at(g, pictures).dim[0];
    n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &net->first, pictures), 0);
    for (int group = 0; group < GROUPS; group++)
        for (size_t i = 0; i < net->blocks[group]; i++)
            h = apply_block(g, &net->block[group][i], h);
    h = n2g_mean(g, h, n2_axis(1) | n2_axis(2));
    *features = n2g_reshape(g, h, n2_dims(n, (int64_t)body->width));
    *probabilities = n2g_softmax(g, n2_layer_apply(g, &net->last, *features), 1);
}

static void prepare_residual(float *picture, size_t numbers) {
    static const float mean[] = {0.485f, 0.456f, 0.406f}, spread[] = {0.229f, 0.224f, 0.225f};
    for (size_t k = 0; k < numbers; k++) picture[k] = (picture[k] - mean[k % 3]) / spread[k % 3];
}

const n2_feature_kind n2_residual_kind = {.ending = ".f32",
                                          .read = read_residual,
                                          .prepare = prepare_residual,
                                          .build = build_residual,
                                          .free = free_residual};
