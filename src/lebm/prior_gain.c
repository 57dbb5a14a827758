/* How much more likely codes are under a learnt prior than under N(0, I). */
#include "base/numerics.h"
#include "rewrite/rewrites.h"
#include "vae_pictures.h"

enum { ROWS = 500, NOISE_BATCHES = 100 };

typedef struct scale {
    n2_lebm *m;
    n2_tensor *rows;
    n2_graph *graph[2];
    n2_plan *codes, *noise; /* ln p / N(0, I) of codes that are given, f of noise; both but for Z */
    double f[ROWS];
} scale;

static n2ce_status build(scale *s) {
    const n2_prior *p = &s->m->nets.prior;
    for (int i = 0; i < 2; i++) {
        s->graph[i] = n2_graph_new(s->m->store);
        if (!s->graph[i]) return N2CE_ENOMEM;
    }
    const n2_node given = n2_prior_ratio(s->graph[0], p, n2g_read(s->graph[0], s->rows));
    const n2_node noise =
        n2_ratio_net_sum(s->graph[1], &p->net, n2g_randn(s->graph[1], s->rows->shape));
    N2_TRY(n2_plan_compile(s->graph[0], s->m->backend, &given, 1, &s->codes));
    return n2_plan_compile(s->graph[1], s->m->backend, &noise, 1, &s->noise);
}

/* The mean of f over codes. A last batch is filled up with its first row. */
static n2ce_status weigh_codes(scale *s, const double *z, size_t n, double *mean) {
    const size_t nz = (size_t)s->m->nets.spec.nz;
    n2_sum sum = {0, 0};
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t left = n - first, rows = left < ROWS ? left : ROWS;
        N2_TRY(n2_tensor_pull(s->m->store, s->rows));
        for (size_t i = 0; i < ROWS * nz; i++)
            ((float *)s->rows->data)[i] =
                (float)z[(first + (i / nz < rows ? i / nz : 0)) * nz + i % nz];
        n2_tensor_push(s->m->store, s->rows);
        N2_TRY(n2_plan_run(s->codes));
        n2_plan_get(s->codes, 0, s->f);
        for (size_t i = 0; i < rows; i++) n2_sum_add(&sum, s->f[i]);
    }
    *mean = n2_sum_value(&sum) / (double)n;
    return N2CE_OK;
}

/* ln Z = ln E exp f over noise, and the effective number of draws of it. */
static n2ce_status weigh_noise(scale *s, double *f, double *log_z, double *draws) {
    const size_t n = (size_t)NOISE_BATCHES * ROWS;
    for (size_t b = 0; b < NOISE_BATCHES; b++) {
        N2_TRY(n2_plan_run(s->noise));
        n2_plan_get(s->noise, 0, f + b * ROWS);
    }
    const double sum = n2_logsumexp(f, n);
    for (size_t i = 0; i < n; i++) f[i] *= 2;
    *log_z = sum - log((double)n);
    *draws = exp(2 * sum - n2_logsumexp(f, n));
    return N2CE_OK;
}

static n2ce_status measure(scale *s, const double *z, size_t n, uint64_t seed, n2_lebm_gain *out) {
    double mean, log_z;
    double *f = n2_alloc(s->m->ctx, (size_t)NOISE_BATCHES * ROWS, sizeof *f);
    if (!f) return N2CE_ENOMEM;
    n2ce_status status = build(s);
    if (status == N2CE_OK) n2_plan_seed(s->noise, seed, 0);
    if (status == N2CE_OK) status = weigh_codes(s, z, n, &mean);
    if (status == N2CE_OK) status = weigh_noise(s, f, &log_z, &out->draws);
    if (status == N2CE_OK) out->nats = mean - log_z;
    n2_free(s->m->ctx, f);
    return status;
}

n2ce_status n2_lebm_prior_gain(n2_lebm *m, const double *z, size_t n, uint64_t seed,
                               n2_lebm_gain *out) {
    scale s = {.m = m};
    *out = (n2_lebm_gain){0, 0};
    if (m->nets.prior.spec.kind == N2_PRIOR_GAUSSIAN || n == 0) return N2CE_OK;
    s.rows = n2_lebm_given(m, "gain.codes", n2_dims(ROWS, m->nets.spec.nz));
    const n2ce_status status = s.rows ? measure(&s, z, n, seed, out) : N2CE_ENOMEM;
    n2_plan_free(s.codes);
    n2_plan_free(s.noise);
    for (int i = 0; i < 2; i++) n2_graph_free(s.graph[i]);
    return status;
}
