#include "feature_net.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "feature_kind.h"
#include "picture_rgb.h"
#include "rewrite/rewrites.h"

#include <string.h>

static const n2_feature_kind *const kinds[] = {&n2_residual_kind, &n2_ncnn_kind};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct n2_feature_net {
    n2ce_ctx *ctx;
    const n2_feature_kind *kind;
    n2_feature_body body;
    size_t batch;     /* pictures at a time */
    n2_tensor *input; /* [batch, side, side, 3] */
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

/* Large pictures come in small batches: what lies between layers grows with both. */
static size_t batch_of(size_t side) { return side <= 64 ? 128 : 16; }

static n2ce_status make_network(n2_feature_net *net, const char *path) {
    n2_feature_body *b = &net->body;
    N2_TRY(n2_store_new(net->ctx, sizeof(float), &b->store));
    N2_TRY(net->kind->read(b, path));
    net->batch = batch_of(b->side);
    const int64_t side = (int64_t)b->side;
    net->input = n2_store_add(b->store, "pictures", n2_dims((int64_t)net->batch, side, side, 3));
    net->out = n2_alloc(net->ctx, net->batch * (b->width + b->classes), sizeof *net->out);
    return net->input && net->out ? N2CE_OK : N2CE_ENOMEM;
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

/* ---- the pictures ---- */

static n2ce_status build(n2_feature_net *net, const n2_backend *backend) {
    n2_plan_free(net->plan);
    n2_graph_free(net->graph);
    net->plan = NULL;
    n2_graph *g = net->graph = n2_graph_new(net->body.store);
    if (!g) return N2CE_ENOMEM;
    n2_node out[2];
    net->kind->build(&net->body, g, n2g_read(g, net->input), &out[0], &out[1]);
    return n2_plan_compile(g, backend, out, 2, &net->plan);
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
    const size_t side = job->net->body.side, numbers = side * side * 3;
    float *out = (float *)job->net->input->data + item * numbers;
    n2_picture_rgb(job->pictures, i < last ? i : last, side, out);
    job->net->kind->prepare(out, numbers);
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

n2ce_status n2_feature_net_apply(n2_feature_net *net, const n2_images *pictures,
                                 n2_device_choice *choice, float *features, double *probabilities) {
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
