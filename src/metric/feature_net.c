#include "feature_net.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "nn/picture_layers.h"
#include "picture_rgb.h"
#include "rewrite/rewrites.h"
#include "weights_file.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS = 3, BLOCKS_MAX = 64, BATCH = 128, CHANNELS_MAX = 1024, CLASSES_MAX = 4096 };
static const double BATCH_NORM_EPS = 1e-5;

typedef struct net_block {
    n2_conv_layer conv1, conv2;
    n2_tensor *shortcut; /* [1, 1, in, out]: which channel goes where; NULL: all as they are */
} net_block;

struct n2_feature_net {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_conv_layer first;
    net_block block[GROUPS][BLOCKS_MAX];
    size_t blocks[GROUPS];
    n2_layer last;
    size_t width, classes;
    n2_tensor *input; /* [BATCH, 32, 32, 3] */
    n2_graph *graph;
    n2_plan *plan;
    double *out; /* of a batch: features, then probabilities */
};

size_t n2_feature_net_width(const n2_feature_net *net) { return net->width; }
size_t n2_feature_net_classes(const n2_feature_net *net) { return net->classes; }

/* ---- from the file ---- */

/* What is read, and how many arrays of it the network has used. */
typedef struct net_reader {
    n2_feature_net *net;
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
    n2_fail(r->net->ctx, N2CE_EDATA,
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
                r->net->ctx, N2CE_EDATA,
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
    return n2_store_add(r->net->store, name, shape);
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
                r->net->ctx, N2CE_EDATA,
                "%s: layer%d has %zu blocks; a residual network for CIFAR-10 has 1 to %d in "
                "layer1, layer2 and layer3 each.",
                r->w->label, group + 1, n, (int)BLOCKS_MAX);
        if (group > 0) channels *= 2;
        for (size_t i = 0; i < n; i++) N2_TRY(read_block(r, group, i, i ? channels : in, channels));
        r->net->blocks[group] = n;
    }
    r->net->width = channels;
    return N2CE_OK;
}

static n2ce_status read_last(net_reader *r) {
    n2_feature_net *net = r->net;
    const n2_weights_array *w = array_of(r, "linear", "weight", (const size_t[]){0, net->width}, 2);
    if (!w) return N2CE_EDATA;
    const n2_weights_array *b = array_of(r, "linear", "bias", w->dim, 1);
    if (!b) return N2CE_EDATA;
    net->classes = w->dim[0];
    net->last.weight =
        add_tensor(r, "linear", "weight", n2_dims((int64_t)net->classes, (int64_t)net->width));
    net->last.bias = add_tensor(r, "linear", "bias", n2_dims((int64_t)net->classes));
    if (!net->last.weight || !net->last.bias) return N2CE_ENOMEM;
    float *weight = net->last.weight->data, *bias = net->last.bias->data;
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
    return n2_fail(r->net->ctx, N2CE_EDATA,
                   "%s: conv1.weight has %zu kernels; a residual network for CIFAR-10 has an even "
                   "number of them, 2 to %d.",
                   r->w->label, *out, (int)CHANNELS_MAX / 4);
}

static n2ce_status read_network(n2_feature_net *net, const n2_weights *w) {
    net_reader r = {net, w, 0};
    size_t channels;
    N2_TRY(first_channels(&r, &channels));
    N2_TRY(read_conv(&r, "conv1", "bn1", 3, channels, 1, &net->first));
    N2_TRY(read_groups(&r, channels));
    N2_TRY(read_last(&r));
    if (r.used == w->n) return N2CE_OK;
    return n2_fail(
        net->ctx, N2CE_EDATA,
        "%s: it has %zu arrays, of which a residual network for CIFAR-10 of this depth has "
        "%zu: it is another network.",
        w->label, w->n, r.used);
}

static n2ce_status make_network(n2_feature_net *net, const n2_weights *w) {
    N2_TRY(n2_store_new(net->ctx, sizeof(float), &net->store));
    N2_TRY(read_network(net, w));
    net->input = n2_store_add(net->store, "pictures", n2_dims(BATCH, N2_RGB_SIDE, N2_RGB_SIDE, 3));
    net->out = n2_alloc(net->ctx, BATCH * (net->width + net->classes), sizeof *net->out);
    return net->input && net->out ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_feature_net_open(n2ce_ctx *ctx, const char *path, n2_feature_net **out) {
    n2_weights w;
    *out = NULL;
    N2_TRY(n2_weights_read(ctx, path, &w));
    n2_feature_net *net = n2_alloc(ctx, 1, sizeof *net);
    n2ce_status status = N2CE_ENOMEM;
    if (net) {
        net->ctx = ctx;
        status = make_network(net, &w);
    }
    n2_weights_free(&w);
    if (status == N2CE_OK)
        *out = net;
    else
        n2_feature_net_free(net);
    return status;
}

void n2_feature_net_free(n2_feature_net *net) {
    if (!net) return;
    n2_plan_free(net->plan);
    n2_graph_free(net->graph);
    n2_store_free(net->store);
    n2_free(net->ctx, net->out);
    n2_free(net->ctx, net);
}

/* ---- the graph ---- */

static n2_node apply_block(n2_graph *g, const net_block *b, n2_node x) {
    const n2_window half = {2, 2, 0, 0, 0, 0};
    const n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &b->conv1, x), 0);
    const n2_node skip = b->shortcut ? n2g_conv2d(g, x, n2g_read(g, b->shortcut), half) : x;
    const n2_node y = n2g_add(g, n2_conv_layer_bare(g, &b->conv2, h), skip);
    return n2g_lrelu(g, n2g_add(g, y, n2g_read(g, b->conv2.bias)), 0);
}

static n2ce_status build(n2_feature_net *net, const n2_backend *backend) {
    n2_plan_free(net->plan);
    n2_graph_free(net->graph);
    net->plan = NULL;
    n2_graph *g = net->graph = n2_graph_new(net->store);
    if (!g) return N2CE_ENOMEM;
    n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &net->first, n2g_read(g, net->input)), 0);
    for (int group = 0; group < GROUPS; group++)
        for (size_t i = 0; i < net->blocks[group]; i++)
            h = apply_block(g, &net->block[group][i], h);
    h = n2g_mean(g, h, n2_axis(1) | n2_axis(2));
    h = n2g_reshape(g, h, n2_dims(BATCH, (int64_t)net->width));
    const n2_node out[] = {h, n2g_softmax(g, n2_layer_apply(g, &net->last, h), 1)};
    return n2_plan_compile(g, backend, out, 2, &net->plan);
}

/* ---- the pictures ---- */

typedef struct batch_job {
    n2_feature_net *net;
    const n2_images *pictures;
    size_t first;
} batch_job;

/* A picture of the batch as the network wants it; beyond the last one: the last one. */
static void write_picture(void *arg, size_t item, int worker) {
    (void)worker;
    static const float mean[] = {0.485f, 0.456f, 0.406f}, spread[] = {0.229f, 0.224f, 0.225f};
    const batch_job *job = arg;
    const size_t i = job->first + item, last = job->pictures->n - 1;
    float *out = (float *)job->net->input->data + item * N2_RGB_NUMBERS;
    n2_picture_rgb(job->pictures, i < last ? i : last, out);
    for (size_t k = 0; k < N2_RGB_NUMBERS; k++) out[k] = (out[k] - mean[k % 3]) / spread[k % 3];
}

static n2ce_status run_batch(batch_job *job) {
    n2_feature_net *net = job->net;
    N2_TRY(n2_parallel_for(net->ctx, BATCH, write_picture, job));
    n2_tensor_push(net->store, net->input);
    N2_TRY(n2_plan_run(net->plan));
    n2_plan_get(net->plan, 0, net->out);
    n2_plan_get(net->plan, 1, net->out + BATCH * net->width);
    return N2CE_OK;
}

static n2ce_status run_all(n2_feature_net *net, const n2_images *pictures, float *features,
                           double *probabilities) {
    for (size_t first = 0; first < pictures->n; first += BATCH) {
        batch_job job = {net, pictures, first};
        const size_t left = pictures->n - first, n = left < BATCH ? left : BATCH;
        if (n2_cancelled(net->ctx))
            return n2_fail(net->ctx, N2CE_ECANCELED,
                           "Stopped on request, after %zu of %zu pictures.", first, pictures->n);
        N2_TRY(run_batch(&job));
        for (size_t i = 0; i < n * net->width; i++)
            features[first * net->width + i] = (float)net->out[i];
        memcpy(probabilities + first * net->classes, net->out + BATCH * net->width,
               n * net->classes * sizeof *probabilities);
        n2_progress(net->ctx, (double)(first + n), (double)pictures->n);
    }
    return N2CE_OK;
}

static n2ce_status time_batch(void *user, const n2_backend *backend, double *seconds) {
    n2_feature_net *net = user;
    N2_TRY(build(net, backend));
    return n2_time_plan(net->plan, N2_TRIAL_SECONDS, seconds);
}

n2ce_status n2_feature_net_apply(n2_feature_net *net, const n2_images *pictures,
                                 n2_device_choice *choice, float *features, double *probabilities) {
    N2_TRY(build(net, n2_choice_backend(choice)));
    const double batches = ceil((double)pictures->n / BATCH);
    const double flops = batches * n2_plan_measure(net->plan).flops;
    N2_TRY(n2_choice_settle(choice, net->ctx, flops, time_batch, net));
    if (!net->plan || n2_plan_backend(net->plan) != n2_choice_backend(choice))
        N2_TRY(build(net, n2_choice_backend(choice)));
    const n2ce_status status = run_all(net, pictures, features, probabilities);
    if (!n2_choice_retreat(choice, net->ctx, status)) return status;
    N2_TRY(build(net, n2_choice_backend(choice)));
    return run_all(net, pictures, features, probabilities);
}
