/* Classifiers of ImageNet in ncnn's format, of convolutions with ReLU, pools and concatenations:
 * SqueezeNet. NET.bin, or NET_fp16.bin, has the weights; NET.param beside it the layers. */
#include "base/narrow.h"
#include "feature_kind.h"
#include "io/file.h"
#include "ncnn_layers.h"

#include <math.h>
#include <stdio.h>

enum { CHANNELS_MAX = 4096, SIDE_MAX = 512 };

/* Parameters of layers, by ncnn's numbers. */
enum { CONV_OUT = 0, CONV_KERNEL, CONV_DILATION, CONV_STRIDE, CONV_PADDING, CONV_BIAS, CONV_COUNT };
enum { CONV_ACTIVATION = 9, RELU = 1 };
enum { POOL_AVERAGE = 0, POOL_KERNEL, POOL_STRIDE, POOL_PADDING, POOL_GLOBAL };
static const uint32_t TAG_F32 = 0, TAG_F16 = 0x01306b47;

/* How large a blob is. */
typedef struct extent {
    size_t channels, side;
} extent;

typedef struct ncnn_net {
    n2_ncnn_layers list;
    n2_conv_layer *conv; /* by layer; those of convolutions are used */
    size_t last;         /* the last convolution: features are the mean of what it reads */
} ncnn_net;

typedef struct net_reader {
    n2_feature_body *body;
    ncnn_net *net;
    const char *path, *list_path;
    n2_text weights;
    size_t at;    /* bytes of weights that were read */
    extent *blob; /* by number */
} net_reader;

static bool is(const n2_ncnn_layer *l, const char *type) { return strcmp(l->type, type) == 0; }

static n2ce_status bad_layer(const net_reader *r, const n2_ncnn_layer *l, const char *what) {
    return n2_fail(
        r->body->ctx, N2CE_EDATA,
        "%s: line %zu, a layer of type %s: %s. Networks are read that are made of Input, "
        "Convolution with ReLU, Pooling, Split, Concat, Dropout and a Softmax at the end.",
        r->list_path, l->line, l->type, what);
}

/* ---- weights ---- */

/* The next n bytes; NULL: there are fewer. */
static const char *take(net_reader *r, size_t n) {
    if (n > r->weights.length - r->at) return NULL;
    const char *bytes = r->weights.data + r->at;
    r->at += n;
    return bytes;
}

static n2ce_status too_short(const net_reader *r) {
    return n2_fail(r->body->ctx, N2CE_EDATA,
                   "%s: it ends before the weights of all layers of %s do. The files do not belong "
                   "together, or it was cut off: get them again.",
                   r->path, r->list_path);
}

static n2ce_status not_finite(const net_reader *r) {
    return n2_fail(r->body->ctx, N2CE_EDATA,
                   "%s: a weight is not a finite number. The file is damaged: get it again.",
                   r->path);
}

static float number_at(const char *bytes, size_t i, bool half) {
    if (half) {
        uint16_t h;
        memcpy(&h, bytes + i * sizeof h, sizeof h);
        return n2_from_f16(h);
    }
    float x;
    memcpy(&x, bytes + i * sizeof x, sizeof x);
    return x;
}

/* [out][in][k k] becomes [k k][in][out]. */
static n2ce_status read_kernel(net_reader *r, size_t out, size_t in, size_t places, float *to) {
    const size_t n = out * in * places;
    uint32_t tag;
    const char *bytes = take(r, sizeof tag);
    if (!bytes) return too_short(r);
    memcpy(&tag, bytes, sizeof tag);
    if (tag != TAG_F16 && tag != TAG_F32)
        return n2_fail(r->body->ctx, N2CE_EDATA,
                       "%s: at byte %zu weights begin that are neither half precision nor floats "
                       "(tag %08x).",
                       r->path, r->at - sizeof tag, (unsigned)tag);
    const bool half = tag == TAG_F16;
    bytes = take(r, half ? (n * 2 + 3) / 4 * 4 : n * sizeof(float));
    if (!bytes) return too_short(r);
    for (size_t i = 0; i < n; i++) {
        const size_t place = i % places, c = i / places % in, o = i / places / in;
        const float x = number_at(bytes, i, half);
        if (!isfinite(x)) return not_finite(r);
        to[(place * in + c) * out + o] = x;
    }
    return N2CE_OK;
}

static n2ce_status read_bias(net_reader *r, size_t out, float *to) {
    const char *bytes = take(r, out * sizeof *to);
    if (!bytes) return too_short(r);
    memcpy(to, bytes, out * sizeof *to);
    for (size_t i = 0; i < out; i++)
        if (!isfinite(to[i])) return not_finite(r);
    return N2CE_OK;
}

/* ---- layers ---- */

static n2ce_status check_conv(const net_reader *r, const n2_ncnn_layer *l, const extent *in) {
    const long *p = l->parameter;
    const long kernel = p[CONV_KERNEL], stride = p[CONV_STRIDE], padding = p[CONV_PADDING];
    const double count = (double)p[CONV_OUT] * (double)in->channels * (double)(kernel * kernel);
    if (p[CONV_OUT] < 1 || p[CONV_OUT] > CHANNELS_MAX || kernel < 1 || kernel > 11 || stride < 0 ||
        stride > 8 || padding < 0 || padding > 8 || p[CONV_DILATION] > 1)
        return bad_layer(r, l, "its kernel, stride, zeros, dilation or channels are not supported");
    if ((long)in->side + 2 * padding < kernel)
        return bad_layer(r, l, "its kernel is larger than the picture");
    if (p[CONV_ACTIVATION] != RELU || p[CONV_BIAS] != 1)
        return bad_layer(r, l, "it has no bias, or another activation than ReLU");
    if ((double)p[CONV_COUNT] != count)
        return bad_layer(r, l, "the number of its weights does not fit what it reads");
    return N2CE_OK;
}

static n2ce_status read_conv(net_reader *r, size_t at) {
    const n2_ncnn_layer *l = &r->net->list.layer[at];
    const extent in = r->blob[l->in[0]];
    N2_TRY(check_conv(r, l, &in));
    const long *p = l->parameter;
    const size_t out = (size_t)p[CONV_OUT], kernel = (size_t)p[CONV_KERNEL];
    const int32_t stride = p[CONV_STRIDE] ? (int32_t)p[CONV_STRIDE] : 1;
    const int32_t padding = (int32_t)p[CONV_PADDING];
    n2_conv_layer *c = &r->net->conv[at];
    char name[2][40];
    snprintf(name[0], sizeof name[0], "layer%zu.weight", at);
    snprintf(name[1], sizeof name[1], "layer%zu.bias", at);
    c->window = (n2_window){stride, stride, padding, padding, padding, padding};
    const int64_t k = (int64_t)kernel;
    c->weight =
        n2_store_add(r->body->store, name[0], n2_dims(k, k, (int64_t)in.channels, (int64_t)out));
    c->bias = n2_store_add(r->body->store, name[1], n2_dims((int64_t)out));
    if (!c->weight || !c->bias) return N2CE_ENOMEM;
    c->weight->is_kernel = true;
    const size_t side = (in.side + 2 * (size_t)padding - kernel) / (size_t)stride + 1;
    r->blob[l->out[0]] = (extent){out, side};
    r->net->last = at;
    N2_TRY(read_kernel(r, out, in.channels, kernel * kernel, c->weight->data));
    return read_bias(r, out, c->bias->data);
}

/* The last window may reach over the edge. */
static size_t pooled(size_t side) { return (side - 3 + 1) / 2 + 1; }

static n2ce_status read_pool(net_reader *r, const n2_ncnn_layer *l) {
    const long *p = l->parameter;
    const extent in = r->blob[l->in[0]];
    if (p[POOL_GLOBAL] == 1 && p[POOL_AVERAGE] == 1) {
        r->blob[l->out[0]] = (extent){in.channels, 1};
        return N2CE_OK;
    }
    if (p[POOL_AVERAGE] != 0 || p[POOL_GLOBAL] != 0 || p[POOL_KERNEL] != 3 || p[POOL_STRIDE] != 2 ||
        p[POOL_PADDING] != 0 || in.side < 3)
        return bad_layer(r, l,
                         "it is neither the maximum of 3 x 3 pixels at a stride of 2 nor "
                         "the average of all");
    r->blob[l->out[0]] = (extent){in.channels, pooled(in.side)};
    return N2CE_OK;
}

static n2ce_status read_concat(net_reader *r, const n2_ncnn_layer *l) {
    extent sum = {0, r->blob[l->in[0]].side};
    for (size_t i = 0; i < l->n_in; i++) {
        const extent b = r->blob[l->in[i]];
        if (b.side != sum.side) return bad_layer(r, l, "what it joins differs in size");
        sum.channels += b.channels;
    }
    if (l->parameter[0] != 0 || sum.channels > CHANNELS_MAX)
        return bad_layer(r, l, "it joins something else than channels, or too many of them");
    r->blob[l->out[0]] = sum;
    return N2CE_OK;
}

static n2ce_status read_input(net_reader *r, const n2_ncnn_layer *l) {
    const long *p = l->parameter;
    if (r->body->side || p[0] != p[1] || p[0] < 8 || p[0] > SIDE_MAX || p[2] != 3)
        return bad_layer(r, l, "it is not the only one, or not square RGB of 8 to 512 pixels");
    r->body->side = (size_t)p[0];
    r->blob[l->out[0]] = (extent){3, r->body->side};
    return N2CE_OK;
}

static n2ce_status read_layer(net_reader *r, size_t at) {
    const n2_ncnn_layer *l = &r->net->list.layer[at];
    if (is(l, "Input")) return read_input(r, l);
    if (l->n_in == 0) return bad_layer(r, l, "it reads nothing");
    if (is(l, "Convolution")) return read_conv(r, at);
    if (is(l, "Pooling")) return read_pool(r, l);
    if (is(l, "Concat")) return read_concat(r, l);
    if (!is(l, "Split") && !is(l, "Dropout") && !is(l, "Softmax"))
        return bad_layer(r, l, "it is of no known type");
    for (size_t i = 0; i < l->n_out; i++) r->blob[l->out[i]] = r->blob[l->in[0]];
    return N2CE_OK;
}

/* What is left to say when all layers are known. */
static n2ce_status finish(net_reader *r) {
    const n2_ncnn_layers *list = &r->net->list;
    const n2_ncnn_layer *end = &list->layer[list->n - 1];
    const extent b = r->blob[end->out[0]];
    if (!is(end, "Softmax") || b.side != 1 || b.channels < 2 || !r->net->conv[r->net->last].weight)
        return bad_layer(r, end, "the network does not end in probabilities of classes");
    if (r->at != r->weights.length)
        return n2_fail(r->body->ctx, N2CE_EDATA,
                       "%s: it has %zu bytes, of which the layers of %s use %zu: the files do not "
                       "belong together.",
                       r->path, r->weights.length, r->list_path, r->at);
    r->body->classes = b.channels;
    r->body->width = r->blob[list->layer[r->net->last].in[0]].channels;
    return N2CE_OK;
}

static n2ce_status read_layers(net_reader *r) {
    n2ce_ctx *ctx = r->body->ctx;
    const n2_ncnn_layers *list = &r->net->list;
    r->net->conv = n2_alloc(ctx, list->n, sizeof *r->net->conv);
    r->blob = n2_alloc(ctx, list->blobs, sizeof *r->blob);
    if (!r->net->conv || !r->blob) return N2CE_ENOMEM;
    for (size_t i = 0; i < list->n; i++) N2_TRY(read_layer(r, i));
    return finish(r);
}

/* NET.param of NET.bin or NET_fp16.bin. */
static n2ce_status list_path(n2ce_ctx *ctx, const char *path, char *out, size_t room) {
    size_t n = strlen(path) - strlen(".bin");
    if (n > 5 && strncmp(path + n - 5, "_fp16", 5) == 0) n -= 5;
    const int length = snprintf(out, room, "%.*s.param", (int)n, path);
    if (length > 0 && (size_t)length < room) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "%s: the path is too long.", path);
}

static n2ce_status read_files(net_reader *r, n2_text *list) {
    n2ce_ctx *ctx = r->body->ctx;
    N2_TRY(n2_file_read(ctx, r->path, &r->weights));
    N2_TRY(n2_file_read(ctx, r->list_path, list));
    N2_TRY(n2_ncnn_parse(ctx, r->list_path, list, &r->net->list));
    return read_layers(r);
}

static n2ce_status read_ncnn(n2_feature_body *body, const char *path) {
    n2ce_ctx *ctx = body->ctx;
    char beside[PATH_MAX];
    N2_TRY(list_path(ctx, path, beside, sizeof beside));
    body->net = n2_alloc(ctx, 1, sizeof(ncnn_net));
    if (!body->net) return N2CE_ENOMEM;
    net_reader r = {.body = body, .net = body->net, .path = path, .list_path = beside};
    n2_text list = n2_text_new(ctx);
    r.weights = n2_text_new(ctx);
    const n2ce_status status = read_files(&r, &list);
    n2_text_free(&list);
    n2_text_free(&r.weights);
    n2_free(ctx, r.blob);
    return status;
}

static void free_ncnn(n2_feature_body *body) {
    ncnn_net *net = body->net;
    if (!net) return;
    n2_free(body->ctx, net->list.layer);
    n2_free(body->ctx, net->conv);
    n2_free(body->ctx, net);
}

/* ---- the graph ---- */

/* The larger of three pixels on end at every other one along an axis, 1 or 2, of numbers that are
 * not negative: x has 2 m + 1 or fewer of them, and zeros behind the last change nothing. */
static n2_node pool_axis(n2_graph *g, n2_node x, int axis, int64_t m) {
    if (!x.id) return N2_NONE; /* the graph has failed before, and has no shapes */
    n2_shape s = n2_shape_at(g, x), rest = s;
    rest.dim[axis] = 2 * (m + 1) - s.dim[axis];
    x = n2g_concat(g, x, n2g_broadcast(g, n2g_constant(g, 0), rest), axis);
    const int64_t before = axis == 1 ? 1 : s.dim[1], after = axis == 1 ? s.dim[2] : 1;
    x = n2g_reshape(g, x, n2_dims(s.dim[0], before, m + 1, 2, after * s.dim[3]));
    const n2_node even = n2g_slice(g, x, 3, 0, 1), odd = n2g_slice(g, x, 3, 1, 1);
    const n2_node pair = n2g_maximum(g, n2g_slice(g, even, 2, 0, m), n2g_slice(g, odd, 2, 0, m));
    const n2_node y = n2g_maximum(g, pair, n2g_slice(g, even, 2, 1, m));
    s.dim[axis] = m;
    return n2g_reshape(g, y, s);
}

static n2_node apply_pool(n2_graph *g, const n2_ncnn_layer *l, n2_node x) {
    if (l->parameter[POOL_GLOBAL]) return n2g_mean(g, x, n2_axis(1) | n2_axis(2));
    if (!x.id) return N2_NONE;
    const int64_t m = (int64_t)pooled((size_t)n2_shape_at(g, x).dim[1]);
    return pool_axis(g, pool_axis(g, x, 1, m), 2, m);
}

static n2_node apply_concat(n2_graph *g, const n2_ncnn_layer *l, const n2_node *blob) {
    n2_node x = blob[l->in[0]];
    for (size_t i = 1; i < l->n_in; i++) x = n2g_concat(g, x, blob[l->in[i]], 3);
    return x;
}

static n2_node apply_layer(n2_graph *g, const ncnn_net *net, size_t at, const n2_node *blob) {
    const n2_ncnn_layer *l = &net->list.layer[at];
    const n2_node x = blob[l->in[0]];
    if (is(l, "Convolution")) return n2g_lrelu(g, n2_conv_layer_apply(g, &net->conv[at], x), 0);
    if (is(l, "Pooling")) return apply_pool(g, l, x);
    if (is(l, "Concat")) return apply_concat(g, l, blob);
    return x;
}

static void build_ncnn(const n2_feature_body *body, n2_graph *g, n2_node pictures,
                       n2_node *features, n2_node *probabilities) {
    const ncnn_net *net = body->net;
    const int64_t n = n2_shape_at(g, pictures).dim[0];
    n2_node blob[2 * N2_NCNN_LAYERS] = {{0}}, x = pictures;
    for (size_t at = 0; at < net->list.n; at++) {
        const n2_ncnn_layer *l = &net->list.layer[at];
        x = is(l, "Input") ? pictures : apply_layer(g, net, at, blob);
        for (size_t i = 0; i < l->n_out; i++) blob[l->out[i]] = x;
    }
    const n2_node seen = blob[net->list.layer[net->last].in[0]];
    *features = n2g_reshape(g, n2g_mean(g, seen, n2_axis(1) | n2_axis(2)),
                            n2_dims(n, (int64_t)body->width));
    x = n2g_reshape(g, x, n2_dims(n, (int64_t)body->classes));
    *probabilities = n2g_softmax(g, x, 1);
}

/* Blue, green, red from 0 to 255, less the means of ImageNet, as Caffe's networks want it. */
static void prepare_ncnn(float *picture, size_t numbers) {
    for (size_t k = 0; k < numbers; k += 3) {
        const float red = picture[k], blue = picture[k + 2];
        picture[k] = 255 * blue - 104;
        picture[k + 1] = 255 * picture[k + 1] - 117;
        picture[k + 2] = 255 * red - 123;
    }
}

const n2_feature_kind n2_ncnn_kind = {.ending = ".bin",
                                      .read = read_ncnn,
                                      .prepare = prepare_ncnn,
                                      .build = build_ncnn,
                                      .free = free_ncnn};
