/* Chains of codes, and what they become. */
#include "base/pool.h"
#include "rewrite/rewrites.h"
#include "vae_pictures.h"

#include <stdio.h>
#include <string.h>

enum { USUAL_ROWS = 500 };

struct n2_lebm_sampler {
    n2_lebm *m;
    n2_prior prior; /* that is used */
    n2_lebm_sampling how;
    n2_tensor *z;
    n2_graph *graph[3];
    n2_plan *start, *move, *show;
    uint64_t seed;
    double *out; /* pictures of all rows, as numbers */
};

/* ---- plans ---- */

static n2ce_status compile(n2_lebm_sampler *s, n2_graph *g, const n2_node *out, n2_plan **plan) {
    return n2_plan_compile(g, s->m->backend, out, out ? 1 : 0, plan);
}

static bool is_adjusted(const n2_lebm_sampler *s) {
    if (s->how.chains != N2_LEBM_AUTO) return s->how.chains == N2_LEBM_ADJUSTED;
    return s->prior.spec.kind == N2_PRIOR_N2CE;
}

static n2ce_status build(n2_lebm_sampler *s) {
    const n2_lebm_nets *nets = &s->m->nets;
    for (int i = 0; i < 3; i++) {
        s->graph[i] = n2_graph_new(s->m->store);
        if (!s->graph[i]) return N2CE_ENOMEM;
    }
    n2g_assign(s->graph[0], s->z, n2g_randn(s->graph[0], s->z->shape));
    n2_langevin_step(s->graph[1], s->z, n2_prior_log_density, &s->prior, s->how.step,
                     is_adjusted(s));
    const n2_node z = n2_prior_place(s->graph[2], &s->prior, n2g_read(s->graph[2], s->z));
    const n2_node x = n2_image_decode(s->graph[2], &nets->decoder, z);
    N2_TRY(compile(s, s->graph[0], NULL, &s->start));
    N2_TRY(compile(s, s->graph[1], NULL, &s->move));
    return compile(s, s->graph[2], &x, &s->show);
}

n2ce_status n2_lebm_sampler_open(n2_lebm *m, const n2_lebm_sampling *how, n2_lebm_sampler **out) {
    n2_lebm_sampler *s = n2_alloc(m->ctx, 1, sizeof *s);
    *out = NULL;
    if (!s) return N2CE_ENOMEM;
    *s = (n2_lebm_sampler){.m = m, .prior = m->nets.prior, .how = *how};
    if (how->no_prior) s->prior = (n2_prior){.spec.kind = N2_PRIOR_GAUSSIAN};
    if (!s->how.rows) s->how.rows = USUAL_ROWS;
    if (!(s->how.step > 0)) s->how.step = 0.4;
    char name[48];
    snprintf(name, sizeof name, "sample.codes.%zu", s->how.rows);
    s->z = n2_lebm_given(m, name, n2_dims((int64_t)s->how.rows, m->nets.spec.nz));
    s->out =
        n2_alloc(m->ctx, s->how.rows * (size_t)n2_lebm_numbers(m->nets.spec.net), sizeof *s->out);
    const n2ce_status status = s->z && s->out ? build(s) : N2CE_ENOMEM;
    if (status == N2CE_OK)
        *out = s;
    else
        n2_lebm_sampler_close(s);
    return status;
}

void n2_lebm_sampler_close(n2_lebm_sampler *s) {
    if (!s) return;
    n2_plan *const plans[] = {s->start, s->move, s->show};
    for (int i = 0; i < 3; i++) {
        n2_plan_free(plans[i]);
        n2_graph_free(s->graph[i]);
    }
    n2_free(s->m->ctx, s->out);
    n2_free(s->m->ctx, s);
}

/* ---- chains ---- */

/* Moves of a batch are numbered from a place of their own, so that no two batches share noise. */
n2ce_status n2_lebm_sampler_begin(n2_lebm_sampler *s, uint64_t seed, uint32_t batch) {
    enum { APART = 1 << 16 };
    s->seed = seed;
    n2_plan_seed(s->start, seed, batch);
    n2_plan_seed(s->move, seed + 1, batch * (uint32_t)APART);
    return n2_plan_run(s->start);
}

n2ce_status n2_lebm_sampler_set(n2_lebm_sampler *s, const double *codes, size_t n) {
    N2_TRY(n2_tensor_pull(s->m->store, s->z));
    const size_t numbers = n * (size_t)s->m->nets.spec.nz;
    for (size_t i = 0; i < numbers; i++) ((float *)s->z->data)[i] = (float)codes[i];
    n2_tensor_push(s->m->store, s->z);
    return N2CE_OK;
}

n2ce_status n2_lebm_sampler_move(n2_lebm_sampler *s, uint64_t moves) {
    return moves ? n2_plan_run_many(s->move, moves) : N2CE_OK;
}

typedef struct show_job {
    const n2_lebm_sampler *s;
    const n2_images *to;
    size_t first;
} show_job;

static void show_one(void *arg, size_t i, int worker) {
    (void)worker;
    const show_job *j = arg;
    const n2_lebm_spec *spec = &j->s->m->nets.spec;
    const double *x = j->s->out + i * (size_t)n2_lebm_numbers(spec->net);
    n2_lebm_picture_out(spec, x, j->to, j->first + i);
}

n2ce_status n2_lebm_sampler_show(n2_lebm_sampler *s, size_t n, const n2_images *to, size_t first) {
    show_job job = {s, to, first};
    N2_TRY(n2_plan_run(s->show));
    n2_plan_get(s->show, 0, s->out);
    return n2_parallel_for(s->m->ctx, n, show_one, &job);
}

n2ce_status n2_lebm_blank(const n2_lebm *m, size_t n, n2_images **out) {
    const n2_lebm_frame *f = &m->nets.spec.frame;
    return n2_images_new(m->ctx, n, f->height, f->width, f->channels, out);
}

static n2ce_status stopped(n2ce_ctx *ctx, size_t done, size_t n) {
    return n2_fail(ctx, N2CE_ECANCELED, "Stopped on request, after %zu of %zu pictures.", done, n);
}

static n2ce_status sample_all(n2_lebm_sampler *s, uint64_t moves, uint64_t seed,
                              const n2_images *to) {
    const size_t rows = s->how.rows;
    for (size_t first = 0; first < to->n; first += rows) {
        const size_t left = to->n - first;
        if (n2_cancelled(s->m->ctx)) return stopped(s->m->ctx, first, to->n);
        N2_TRY(n2_lebm_sampler_begin(s, seed, (uint32_t)(first / rows)));
        N2_TRY(n2_lebm_sampler_move(s, moves));
        N2_TRY(n2_lebm_sampler_show(s, left < rows ? left : rows, to, first));
        n2_progress(s->m->ctx, (double)(left < rows ? to->n : first + rows), (double)to->n);
    }
    return N2CE_OK;
}

n2ce_status n2_lebm_sample(n2_lebm *m, const n2_lebm_sampling *how, size_t n, uint64_t moves,
                           uint64_t seed, n2_images **out) {
    n2_lebm_sampler *s;
    N2_TRY(n2_lebm_sampler_open(m, how, &s));
    const bool still = s->prior.spec.kind == N2_PRIOR_GAUSSIAN; /* the start is exact */
    n2ce_status status = n2_lebm_blank(m, n, out);
    if (status == N2CE_OK) status = sample_all(s, still ? 0 : moves, seed, *out);
    n2_lebm_sampler_close(s);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

/* ---- codes of one's own ---- */

static n2ce_status decode_all(n2_lebm_sampler *s, const double *codes, const n2_images *to) {
    const size_t rows = s->how.rows, nz = (size_t)s->m->nets.spec.nz;
    for (size_t first = 0; first < to->n; first += rows) {
        const size_t left = to->n - first, n = left < rows ? left : rows;
        if (n2_cancelled(s->m->ctx)) return stopped(s->m->ctx, first, to->n);
        N2_TRY(n2_lebm_sampler_set(s, codes + first * nz, n));
        N2_TRY(n2_lebm_sampler_show(s, n, to, first));
    }
    return N2CE_OK;
}

n2ce_status n2_lebm_decode(n2_lebm *m, const double *codes, size_t n, n2_images **out) {
    n2_lebm_sampler *s;
    *out = NULL;
    N2_TRY(n2_lebm_sampler_open(m, &(n2_lebm_sampling){.no_prior = true}, &s));
    n2ce_status status = n2_lebm_blank(m, n, out);
    if (status == N2CE_OK) status = decode_all(s, codes, *out);
    n2_lebm_sampler_close(s);
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}

/* Means of the codes of pictures, [n x nz]; free them. */
static n2ce_status means_of(n2_lebm *m, const n2_images *pictures, double **out) {
    const size_t nz = (size_t)m->nets.spec.nz, n = pictures->n;
    float *codes = n2_alloc(m->ctx, n * 2 * nz, sizeof *codes);
    double *means = n2_alloc(m->ctx, n * nz, sizeof *means);
    n2ce_status status = codes && means ? n2_lebm_codes(m, pictures, false, codes) : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i++)
        for (size_t k = 0; k < nz; k++) means[i * nz + k] = (double)codes[i * 2 * nz + k];
    n2_free(m->ctx, codes);
    if (status != N2CE_OK) n2_free(m->ctx, means);
    *out = status == N2CE_OK ? means : NULL;
    return status;
}

/* Picture i of `from` becomes picture k of `to`. */
static void copy_picture(const n2_images *from, size_t i, const n2_images *to, size_t k) {
    const size_t bytes = from->height * from->width * from->channels;
    memcpy(to->pixels + k * bytes, from->pixels + i * bytes, bytes);
}

n2ce_status n2_lebm_reconstruct(n2_lebm *m, const n2_images *pictures, n2_images **out) {
    double *means;
    n2_images *made = NULL;
    *out = NULL;
    N2_TRY(means_of(m, pictures, &means));
    n2ce_status status = n2_lebm_decode(m, means, pictures->n, &made);
    if (status == N2CE_OK) status = n2_lebm_blank(m, 2 * pictures->n, out);
    for (size_t i = 0; i < pictures->n && status == N2CE_OK; i++) {
        copy_picture(pictures, i, *out, 2 * i);
        copy_picture(made, i, *out, 2 * i + 1);
    }
    n2_images_free(made);
    n2_free(m->ctx, means);
    return status;
}

n2ce_status n2_lebm_interpolate(n2_lebm *m, const n2_images *pictures, size_t columns,
                                n2_images **out) {
    const size_t nz = (size_t)m->nets.spec.nz, pairs = pictures->n / 2;
    double *means;
    *out = NULL;
    if (pairs == 0 || columns < 2)
        return n2_fail(m->ctx, N2CE_EDATA, "There is one picture; it takes two to go between.");
    N2_TRY(means_of(m, pictures, &means));
    double *codes = n2_alloc(m->ctx, pairs * columns * nz, sizeof *codes);
    for (size_t i = 0; codes && i < pairs * columns * nz; i++) {
        const double *a = means + 2 * (i / (columns * nz)) * nz;
        const double share = (double)(i / nz % columns) / (double)(columns - 1);
        codes[i] = (1 - share) * a[i % nz] + share * a[nz + i % nz];
    }
    const n2ce_status status = codes ? n2_lebm_decode(m, codes, pairs * columns, out) : N2CE_ENOMEM;
    n2_free(m->ctx, codes);
    n2_free(m->ctx, means);
    return status;
}

/* ---- the device ---- */

typedef struct trial {
    n2_lebm *m;
    double moves; /* for one decoding */
} trial;

/* Seconds of a batch. */
static n2ce_status time_batch(void *user, const n2_backend *backend, double *seconds) {
    trial *t = user;
    n2_lebm_sampler *s;
    double show, move;
    t->m->backend = backend;
    N2_TRY(n2_lebm_sampler_open(t->m, &(n2_lebm_sampling){.rows = 0}, &s));
    n2ce_status status = n2_time_plan(s->show, N2_TRIAL_SECONDS / 2, &show);
    if (status == N2CE_OK) status = n2_time_plan(s->move, N2_TRIAL_SECONDS / 2, &move);
    n2_lebm_sampler_close(s);
    if (status == N2CE_OK) *seconds = show + t->moves * move;
    return status;
}

/* Of all pictures, as the plain algorithm does it. */
static double work_of(const n2_lebm *m, double n, double moves) {
    const double decoder = 2 * (double)n2_parameters_count(&m->nets.vae);
    const double ratio = 6 * (double)n2_parameters_count(&m->nets.prior.parameters);
    return n * (decoder + moves * ratio * (double)m->nets.spec.prior.stages);
}

n2ce_status n2_lebm_settle(n2_lebm *m, n2_device_choice *choice, size_t n, uint64_t moves) {
    trial t = {m, (double)moves};
    const double work = work_of(m, (double)n, t.moves);
    const n2ce_status status = n2_choice_settle(choice, m->ctx, work, time_batch, &t);
    m->backend = n2_choice_backend(choice);
    return status;
}
