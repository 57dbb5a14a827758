/* Chains of pictures, down the levels of noise. */
#include "denoiser.h"

#include "base/pool.h"
#include "base/random.h"
#include "picture_tensors.h"
#include "rewrite/rewrites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_ON_DEVICE = 512, ROWS_ON_CPU = 16 };

/* Numbers of a step, as plans read them. */
enum { SIGMA, KEEP, TAKE, NOISE, MIDDLE, FIRST, REST, NOW };

struct n2_chains {
    n2_chain_source from;
    n2_sampling how;
    size_t rows;
    int64_t label;
    n2_tensor *x, *z, *now, *labels; /* labels: NULL, nothing is told */
    n2_graph *graph[2];
    n2_plan *step, *heun; /* heun: NULL, it is not needed */
};

/* ---- plans ---- */

static n2_node number(n2_graph *g, const n2_chains *c, int which) {
    return n2g_slice(g, n2g_read(g, c->now), 0, which, 1);
}

static n2_node denoise(n2_graph *g, const n2_chains *c, n2_node x, n2_node sigma) {
    n2_unet_input in = {.x = x,
                        .level = n2g_broadcast(g, sigma, n2_dims((int64_t)c->rows)),
                        .labels = c->labels ? n2g_read(g, c->labels) : N2_NONE};
    const n2_node told = n2_edm_denoise(g, &c->from.spec->edm, &c->from.net->unet, &in);
    if (!c->labels || c->how.guide == 0) return told;
    in.labels = n2g_scale(g, in.labels, 0);
    const n2_node untold = n2_edm_denoise(g, &c->from.spec->edm, &c->from.net->unet, &in);
    return n2g_add(g, told, n2g_scale(g, n2g_sub(g, told, untold), c->how.guide));
}

/* keep x + take D(x; sigma), for x with the step's noise already if that comes first. */
static n2_node euler(n2_graph *g, const n2_chains *c, n2_node x) {
    const n2_node d = denoise(g, c, x, number(g, c, SIGMA));
    return n2g_add(g, n2g_mul(g, number(g, c, KEEP), x), n2g_mul(g, number(g, c, TAKE), d));
}

static n2_node noise(n2_graph *g, const n2_chains *c) {
    return n2g_mul(g, number(g, c, NOISE), n2g_read(g, c->z));
}

static void build_step(n2_graph *g, const n2_chains *c) {
    const n2_node x = n2g_read(g, c->x);
    if (c->how.kind == N2_SAMPLER_HEUN) /* its last */
        n2g_assign(g, c->x, euler(g, c, n2g_add(g, x, noise(g, c))));
    else
        n2g_assign(g, c->x, n2g_add(g, euler(g, c, x), noise(g, c)));
}

/* A mean of Euler's slope, which leads to u, and of that at u. */
static void build_heun(n2_graph *g, const n2_chains *c) {
    const n2_node x = n2g_add(g, n2g_read(g, c->x), noise(g, c)), middle = number(g, c, MIDDLE);
    const n2_node u = euler(g, c, x);
    const n2_node slope = n2g_div(g, n2g_sub(g, u, denoise(g, c, u, middle)), middle);
    const n2_node by_first = n2g_mul(g, number(g, c, FIRST), n2g_sub(g, u, x));
    const n2_node rest = n2g_mul(g, number(g, c, REST), slope);
    n2g_assign(g, c->x, n2g_add(g, n2g_add(g, x, by_first), rest));
}

static n2ce_status build(n2_chains *c) {
    for (int i = 0; i < 2; i++) {
        c->graph[i] = n2_graph_new(c->from.store);
        if (!c->graph[i]) return N2CE_ENOMEM;
    }
    build_step(c->graph[0], c);
    N2_TRY(n2_plan_compile(c->graph[0], c->from.backend, NULL, 0, &c->step));
    if (c->how.kind != N2_SAMPLER_HEUN) return N2CE_OK;
    build_heun(c->graph[1], c);
    return n2_plan_compile(c->graph[1], c->from.backend, NULL, 0, &c->heun);
}

static n2_tensor *new_tensor(const n2_chains *c, const char *what, n2_shape shape) {
    char name[48];
    snprintf(name, sizeof name, "chains.%zu.%s", c->rows, what);
    return n2_given_tensor(c->from.store, name, shape);
}

static n2ce_status make_tensors(n2_chains *c) {
    const n2_denoiser_spec *s = c->from.spec;
    const int64_t n = (int64_t)c->rows;
    const n2_shape pictures = n2_dims(n, s->height, s->width, s->net.channels);
    c->x = new_tensor(c, "x", pictures);
    c->z = new_tensor(c, "z", pictures);
    c->now = new_tensor(c, "now", n2_dims(NOW));
    if (s->net.labels) c->labels = new_tensor(c, "labels", n2_dims(n, s->net.labels));
    return c->x && c->z && c->now && (c->labels || !s->net.labels) ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_chains_open(const n2_chain_source *source, const n2_sampling *how, size_t rows,
                           int64_t label, n2_chains **out) {
    n2ce_ctx *ctx = n2_store_ctx(source->store);
    n2_chains *c = n2_alloc(ctx, 1, sizeof *c);
    *out = NULL;
    if (!c) return N2CE_ENOMEM;
    *c = (n2_chains){.from = *source, .how = *how, .rows = rows, .label = label};
    if (!rows) c->rows = source->backend->device ? ROWS_ON_DEVICE : ROWS_ON_CPU;
    n2ce_status status = make_tensors(c);
    if (status == N2CE_OK) status = build(c);
    if (status == N2CE_OK)
        *out = c;
    else
        n2_chains_close(c);
    return status;
}

void n2_chains_close(n2_chains *c) {
    if (!c) return;
    n2_plan_free(c->step);
    n2_plan_free(c->heun);
    for (int i = 0; i < 2; i++) n2_graph_free(c->graph[i]);
    n2_free(n2_store_ctx(c->from.store), c);
}

/* ---- noise: of picture i and step k, whatever is made beside it ---- */

typedef struct noise_rows {
    n2_stream stream;
    size_t first, numbers; /* of the first picture; of a picture */
    float scale;
} noise_rows;

static void write_noise(void *arg, size_t row, size_t n, void *out) {
    const noise_rows *r = arg;
    float *x = out;
    n2_fill_normal(r->stream, (uint64_t)(r->first + row) * r->numbers, n * r->numbers, x);
    for (size_t i = 0; i < n * r->numbers; i++) x[i] *= r->scale;
}

static n2ce_status draw_noise(const n2_chains *c, n2_tensor *to, uint64_t seed, uint32_t which,
                              size_t first, double scale) {
    noise_rows r = {
        {seed, which, 0}, first, (size_t)n2_denoiser_numbers(c->from.spec), (float)scale};
    return n2_tensor_fill(c->from.store, to, write_noise, &r);
}

/* ---- chains ---- */

static void set_labels(const n2_chains *c, size_t first) {
    if (!c->labels) return;
    const size_t k = (size_t)c->labels->shape.dim[1];
    float *to = c->labels->data;
    memset(to, 0, c->rows * k * sizeof *to);
    for (size_t i = 0; i < c->rows; i++)
        to[i * k + (c->label < 0 ? (first + i) % k : (size_t)c->label)] = 1;
    n2_tensor_push(c->from.store, c->labels);
}

static n2ce_status do_step(n2_chains *c, size_t i, uint64_t seed, size_t first) {
    n2_denoise_step s = n2_sampling_step(&c->how, i);
    float *now = c->now->data;
    const bool last = i + 1 == c->how.steps;
    if (c->from.log_sigma) s.noise = last ? 0 : exp((double)((float *)c->from.log_sigma->data)[i]);
    now[SIGMA] = (float)s.sigma;
    now[KEEP] = (float)s.keep;
    now[TAKE] = (float)s.take;
    now[NOISE] = (float)s.noise;
    now[MIDDLE] = (float)s.middle;
    now[FIRST] = (float)s.first;
    now[REST] = (float)s.rest;
    n2_tensor_push(c->from.store, c->now);
    if (s.noise > 0) N2_TRY(draw_noise(c, c->z, seed, (uint32_t)i + 1, first, 1));
    return n2_plan_run(c->heun && !last ? c->heun : c->step);
}

/* A batch of rows, from noise to pictures. */
static n2ce_status run_batch(n2_chains *c, uint64_t seed, size_t first) {
    set_labels(c, first);
    N2_TRY(draw_noise(c, c->x, seed, 0, first, n2_sampling_start(&c->how)));
    if (c->from.log_sigma) N2_TRY(n2_tensor_pull(c->from.store, c->from.log_sigma));
    for (size_t i = 0; i < c->how.steps; i++) N2_TRY(do_step(c, i, seed, first));
    return n2_tensor_pull(c->from.store, c->x);
}

typedef struct show_job {
    const n2_chains *c;
    const n2_images *to;
    size_t at;
} show_job;

static void show_one(void *arg, size_t i, int worker) {
    (void)worker;
    const show_job *j = arg;
    const size_t numbers = (size_t)n2_denoiser_numbers(j->c->from.spec);
    n2_picture_of_numbers((const float *)j->c->x->data + i * numbers, j->to, j->at + i);
}

n2ce_status n2_chains_make(n2_chains *c, uint64_t seed, size_t first, size_t n, const n2_images *to,
                           size_t at) {
    n2ce_ctx *ctx = n2_store_ctx(c->from.store);
    for (size_t done = 0; done < n; done += c->rows) {
        const size_t left = n - done;
        show_job job = {c, to, at + done};
        if (n2_cancelled(ctx))
            return n2_fail(ctx, N2CE_ECANCELED, "Stopped on request, after %zu of %zu pictures.",
                           done, n);
        N2_TRY(run_batch(c, seed, first + done));
        N2_TRY(n2_parallel_for(ctx, left < c->rows ? left : c->rows, show_one, &job));
    }
    return N2CE_OK;
}

/* ---- models ---- */

n2_sampling n2_denoiser_sampling(const n2_denoiser_spec *spec) {
    if (spec->kind == N2_DENOISER_ONE_STEP)
        return (n2_sampling){.kind = N2_SAMPLER_ONE_STEP, .steps = 1, .sigma = spec->sigma};
    if (spec->kind == N2_DENOISER_FEW_STEPS)
        return (n2_sampling){.kind = N2_SAMPLER_ANCESTRAL, .steps = spec->steps};
    return (n2_sampling){.kind = N2_SAMPLER_HEUN, .steps = 18};
}

n2ce_status n2_denoiser_sample(n2_denoiser *m, const n2_sampling *how, int64_t label, size_t n,
                               uint64_t seed, n2_images **out) {
    const n2_chain_source source = {m->store, &m->spec, &m->net, m->log_sigma, m->backend};
    const size_t each = 8 * ROWS_ON_DEVICE; /* between two reports of progress */
    n2_chains *c;
    N2_TRY(n2_images_new(m->ctx, n, (size_t)m->spec.height, (size_t)m->spec.width,
                         (size_t)m->spec.net.channels, out));
    n2ce_status status = n2_chains_open(&source, how, 0, label, &c);
    for (size_t i = 0; i < n && status == N2CE_OK; i += each) {
        status = n2_chains_make(c, seed, i, n - i < each ? n - i : each, *out, i);
        n2_progress(m->ctx, (double)(n - i < each ? n : i + each), (double)n);
    }
    n2_chains_close(c);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

/* ---- the device ---- */

typedef struct trial {
    n2_denoiser *m;
    const n2_sampling *how;
} trial;

/* Seconds of a step, for each picture. */
static n2ce_status time_step(void *user, const n2_backend *backend, double *seconds) {
    const trial *t = user;
    n2_denoiser *m = t->m;
    const n2_chain_source source = {m->store, &m->spec, &m->net, m->log_sigma, backend};
    n2_chains *c;
    N2_TRY(n2_chains_open(&source, t->how, 0, -1, &c));
    float *now = c->now->data;
    now[SIGMA] = now[MIDDLE] = 1; /* anything but 0 */
    n2_tensor_push(m->store, c->now);
    const n2ce_status status = n2_time_plan(c->step, N2_TRIAL_SECONDS, seconds);
    *seconds /= (double)c->rows;
    n2_chains_close(c);
    return status;
}

n2ce_status n2_denoiser_settle(n2_denoiser *m, n2_device_choice *choice, const n2_sampling *how,
                               size_t n) {
    trial t = {m, how};
    const double area = (double)(m->spec.height * m->spec.width);
    const double work = 2 * (double)n2_parameters_count(&m->net.parameters) * area / 8;
    const n2ce_status status =
        n2_choice_settle(choice, m->ctx, work * (double)(n * how->steps), time_step, &t);
    m->backend = n2_choice_backend(choice);
    return status;
}
