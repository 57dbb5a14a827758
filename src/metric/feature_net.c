#include "feature_net.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "feature_kind.h"
#include "picture_rgb.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <string.h>

static const n2_feature_kind *const kinds[] = {&n2_residual_kind, &n2_ncnn_kind};
enum { KINDS = sizeof kinds / sizeof *kinds, BATCH_MAX = 128, LARGE = 64 };

struct n2_feature_net {
    n2ce_ctx *ctx;
    const n2_feature_kind *kind;
    n2_feature_body body;
    size_t batch;         /* pictures at a time */
    size_t height, width; /* in which they come: what the network wants, unless it enlarges them */
    n2_tensor *input;     /* [batch, height, width, 3] */
    n2_graph *graph;
    n2_plan *plan;
    double *out; /* of a batch: features, then probabilities */
};

size_t n2_feature_net_width(const n2_feature_net *net) { return net->body.width; }
size_t n2_feature_net_classes(const n2_feature_net *net) { return net->body.classes; }

/* ---- from the file ---- */

static bool ends_in(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* NULL, and the context has the sentence: no kind has files of such names. */
static const n2_feature_kind *find_kind(n2ce_ctx *ctx, const char *path) {
    for (size_t i = 0; i < KINDS; i++)
        if (ends_in(path, kinds[i]->ending)) return kinds[i];
    n2_fail(ctx, N2CE_EDATA,
            "%s: the name of a network's weights ends in .f32, with the list NAME_manifest.txt "
            "beside it, or in .bin, with ncnn's NAME.param beside it.",
            path);
    return NULL;
}

static n2ce_status make_network(n2_feature_net *net, const char *path) {
    n2_feature_body *b = &net->body;
    N2_TRY(n2_store_new(net->ctx, sizeof(float), &b->store));
    N2_TRY(net->kind->read(b, path));
    net->height = net->width = b->side;
    net->out = n2_alloc(net->ctx, BATCH_MAX * (b->width + b->classes), sizeof *net->out);
    return net->out ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_feature_net_open(n2ce_ctx *ctx, const char *path, n2_feature_net **out) {
    *out = NULL;
    const n2_feature_kind *kind = find_kind(ctx, path);
    if (!kind) return N2CE_EDATA;
    n2_feature_net *net = n2_alloc(ctx, 1, sizeof *net);
    if (!net) return N2CE_ENOMEM;
    net->ctx = net->body.ctx = ctx;
    net->kind = kind;
    const n2ce_status status = make_network(net, path);
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
    net->kind->free(&net->body);
    n2_store_free(net->body.store);
    n2_free(net->ctx, net->out);
    n2_free(net->ctx, net);
}

/* ---- the graph ---- */

/* Large pictures come in small batches: what lies between layers grows with both. */
static size_t batch_of(size_t side, const n2_backend *backend) {
    if (side <= LARGE) return BATCH_MAX;
    return backend && backend->device ? 64 : 16;
}

/* A tensor of that shape, made if it is not there. */
static n2_tensor *given_tensor(n2_store *store, const char *what, n2_shape shape) {
    char name[112];
    const long long d[] = {shape.dim[0], shape.dim[1], shape.rank > 2 ? shape.dim[2] : 0};
    snprintf(name, sizeof name, "given.%s.%lld.%lld.%lld", what, d[0], d[1], d[2]);
    n2_tensor *t = n2_store_find(store, name);
    return t ? t : n2_store_add(store, name, shape);
}

/* What makes lines of `side` pixels of lines of n. */
static n2_tensor *line_weights(const n2_feature_net *net, size_t n) {
    const size_t side = net->body.side;
    n2_tensor *t = given_tensor(net->body.store, "lines", n2_dims((int64_t)n, (int64_t)side));
    if (!t) return NULL;
    n2_picture_line_weights(n, side, t->data);
    n2_tensor_push(net->body.store, t);
    return t;
}

/* Columns are made of columns, then rows of rows: two products for all pictures and channels. */
static n2_node enlarge(const n2_feature_net *net, n2_node x) {
    n2_graph *g = net->graph;
    const int64_t n = (int64_t)net->batch, side = (int64_t)net->body.side;
    const int64_t height = (int64_t)net->height, width = (int64_t)net->width;
    n2_tensor *rows = line_weights(net, net->height), *columns = line_weights(net, net->width);
    if (!rows || !columns) return N2_NONE;
    x = n2g_reshape(g, x, n2_dims(n, height, width * 3));
    x = n2g_matmul(g, x, n2g_read(g, rows), true, false);
    x = n2g_reshape(g, x, n2_dims(n, width, 3 * side));
    x = n2g_matmul(g, x, n2g_read(g, columns), true, false);
    x = n2g_transpose(g, n2g_reshape(g, x, n2_dims(n, 3, side * side)), 1, 2);
    return n2g_reshape(g, x, n2_dims(n, side, side, 3));
}

static bool enlarges(const n2_feature_net *net) {
    return net->height != net->body.side || net->width != net->body.side;
}

static n2ce_status build(n2_feature_net *net, const n2_backend *backend) {
    n2_plan_free(net->plan);
    n2_graph_free(net->graph);
    net->plan = NULL;
    net->batch = batch_of(net->body.side, backend);
    net->graph = n2_graph_new(net->body.store);
    net->input =
        given_tensor(net->body.store, "pictures",
                     n2_dims((int64_t)net->batch, (int64_t)net->height, (int64_t)net->width, 3));
    if (!net->graph || !net->input) return N2CE_ENOMEM;
    n2_node x = n2g_read(net->graph, net->input), out[2];
    if (enlarges(net)) x = enlarge(net, x);
    if (!x.id) return N2CE_ENOMEM;
    net->kind->build(&net->body, net->graph, x, &out[0], &out[1]);
    return n2_plan_compile(net->graph, backend, out, 2, &net->plan);
}

/* Unless it is there. */
static n2ce_status build_for(n2_feature_net *net, const n2_backend *backend) {
    return net->plan && n2_plan_backend(net->plan) == backend ? N2CE_OK : build(net, backend);
}

typedef struct batch_job {
    n2_feature_net *net;
    const n2_images *pictures;
    size_t first;
} batch_job;

/* A picture of the batch as the network wants it; beyond the last one: the last one. */
static void write_picture(void *arg, size_t item, int worker) {
    (void)worker;
    const batch_job *job = arg;
    const size_t i = job->first + item, last = job->pictures->n - 1;
    const n2_feature_net *net = job->net;
    const size_t numbers = net->height * net->width * 3, at = i < last ? i : last;
    float *out = (float *)net->input->data + item * numbers;
    if (enlarges(net))
        n2_picture_rgb_plain(job->pictures, at, out);
    else
        n2_picture_rgb(job->pictures, at, net->body.side, out);
    net->kind->prepare(out, numbers);
}

static n2ce_status run_batch(batch_job *job) {
    n2_feature_net *net = job->net;
    N2_TRY(n2_parallel_for(net->ctx, net->batch, write_picture, job));
    n2_tensor_push(net->body.store, net->input);
    N2_TRY(n2_plan_run(net->plan));
    n2_plan_get(net->plan, 0, net->out);
    n2_plan_get(net->plan, 1, net->out + net->batch * net->body.width);
    return N2CE_OK;
}

static n2ce_status run_all(n2_feature_net *net, const n2_images *pictures, float *features,
                           double *probabilities) {
    const size_t width = net->body.width, classes = net->body.classes;
    for (size_t first = 0; first < pictures->n; first += net->batch) {
        batch_job job = {net, pictures, first};
        const size_t left = pictures->n - first, n = left < net->batch ? left : net->batch;
        if (n2_cancelled(net->ctx))
            return n2_fail(net->ctx, N2CE_ECANCELED,
                           "Stopped on request, after %zu of %zu pictures.", first, pictures->n);
        N2_TRY(run_batch(&job));
        for (size_t i = 0; i < n * width; i++) features[first * width + i] = (float)net->out[i];
        memcpy(probabilities + first * classes, net->out + net->batch * width,
               n * classes * sizeof *probabilities);
        n2_progress(net->ctx, (double)(first + n), (double)pictures->n);
    }
    return N2CE_OK;
}

static n2ce_status time_batch(void *user, const n2_backend *backend, double *seconds) {
    n2_feature_net *net = user;
    N2_TRY(build(net, backend));
    return n2_time_plan(net->plan, N2_TRIAL_SECONDS, seconds);
}

/* Pictures that are smaller than the network wants are enlarged where it runs, which spares the way
 * there most of its load. A plan for another size is none. */
static void take_size(n2_feature_net *net, const n2_images *p) {
    const size_t side = net->body.side;
    const bool there = p->height <= side && p->width <= side;
    const size_t height = there ? p->height : side, width = there ? p->width : side;
    if (height == net->height && width == net->width) return;
    n2_plan_free(net->plan);
    net->plan = NULL;
    net->height = height;
    net->width = width;
}

n2ce_status n2_feature_net_apply(n2_feature_net *net, const n2_images *pictures,
                                 n2_device_choice *choice, float *features, double *probabilities) {
    take_size(net, pictures);
    N2_TRY(build_for(net, n2_choice_backend(choice)));
    const double batches = ceil((double)pictures->n / (double)net->batch);
    const double flops = batches * n2_plan_measure(net->plan).flops;
    N2_TRY(n2_choice_settle(choice, net->ctx, flops, time_batch, net));
    N2_TRY(build_for(net, n2_choice_backend(choice)));
    const n2ce_status status = run_all(net, pictures, features, probabilities);
    if (!n2_choice_retreat(choice, net->ctx, status)) return status;
    N2_TRY(build(net, n2_choice_backend(choice)));
    return run_all(net, pictures, features, probabilities);
}
