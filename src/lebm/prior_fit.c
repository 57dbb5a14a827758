#include "prior_fit.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"

#include <string.h>

enum { BLOCK = 256, ROUNDS = 60 };
static const double LN_2PI = 1.8378770664093453, FLOOR = 1e-6, ENOUGH = 1e-4;

/* Streams of random numbers. */
enum { DRAW_CODES = 1, DRAW_CENTRES, DRAW_COMPONENTS, DRAW_SAMPLES };

static n2ce_status new_mixture(n2ce_ctx *ctx, size_t k, size_t d, n2_code_mixture *m) {
    *m = (n2_code_mixture){.k = k, .d = d};
    m->weight = n2_alloc(ctx, k, sizeof *m->weight);
    m->mean = n2_alloc(ctx, k * d, sizeof *m->mean);
    m->factor = n2_alloc(ctx, k * d * d, sizeof *m->factor);
    if (m->weight && m->mean && m->factor) return N2CE_OK;
    n2_code_mixture_free(ctx, m);
    return N2CE_ENOMEM;
}

void n2_code_mixture_free(n2ce_ctx *ctx, n2_code_mixture *m) {
    n2_free(ctx, m->weight);
    n2_free(ctx, m->mean);
    n2_free(ctx, m->factor);
    *m = (n2_code_mixture){.k = 0};
}

/* A covariance becomes its factor; directions without spread are given a little. */
static n2ce_status factorise(n2ce_ctx *ctx, double *a, size_t d) {
    double trace = 0;
    for (size_t i = 0; i < d; i++) trace += a[i * d + i];
    for (size_t i = 0; i < d; i++) a[i * d + i] += FLOOR * trace / (double)d + 1e-12;
    if (n2_cholesky(a, d)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA, "The codes have no covariance: some are not finite.");
}

/* ---- one Gaussian ---- */

static void moments_of(const float *codes, size_t n, size_t d, n2_code_mixture *m) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < d; c++) {
            const float *row = codes + i * 2 * d;
            m->mean[c] += (double)row[c] / (double)n;
            m->factor[c * d + c] += exp((double)row[d + c]) / (double)n;
        }
}

typedef struct covariance_job {
    const float *codes;
    size_t n, d;
    n2_code_mixture *m;
} covariance_job;

/* Row c of the lower triangle. */
static void add_covariance(void *arg, size_t c, int worker) {
    (void)worker;
    const covariance_job *j = arg;
    double *to = j->m->factor + c * j->d;
    for (size_t i = 0; i < j->n; i++) {
        const float *row = j->codes + i * 2 * j->d;
        const double x = ((double)row[c] - j->m->mean[c]) / (double)(j->n - 1);
        for (size_t k = 0; k <= c; k++) to[k] += x * ((double)row[k] - j->m->mean[k]);
    }
}

n2ce_status n2_code_gaussian_fit(n2ce_ctx *ctx, const float *codes, size_t n, size_t d,
                                 n2_code_mixture *out) {
    covariance_job job = {codes, n, d, out};
    if (n < 2) return n2_fail(ctx, N2CE_EDATA, "It takes two codes for a covariance.");
    N2_TRY(new_mixture(ctx, 1, d, out));
    out->weight[0] = 1;
    moments_of(codes, n, d, out);
    n2ce_status status = n2_parallel_for(ctx, d, add_covariance, &job);
    if (status == N2CE_OK) status = factorise(ctx, out->factor, d);
    if (status != N2CE_OK) n2_code_mixture_free(ctx, out);
    return status;
}

void n2_code_draw(const float *codes, size_t n, size_t d, uint64_t seed, double *z) {
    for (size_t i = 0; i < n * d; i += N2_DRAW_GROUP) {
        float eps[N2_DRAW_GROUP];
        n2_fill_normal((n2_stream){seed, DRAW_CODES, 0}, i, N2_DRAW_GROUP, eps);
        for (size_t k = i; k < n * d && k < i + N2_DRAW_GROUP; k++) {
            const float *row = codes + k / d * 2 * d + k % d;
            z[k] = (double)row[0] + exp((double)row[d] / 2) * (double)eps[k - i];
        }
    }
}

/* ---- expectation ---- */

typedef struct em {
    n2ce_ctx *ctx;
    const double *z;
    size_t n, d, k;
    n2_code_mixture *m;
    double *share;  /* [n x k]: of components in rows */
    double *likely; /* [blocks]: sums of ln p */
    double *room;   /* [threads x d x BLOCK] */
    bool *failed;   /* [k] */
} em;

/* ln of weight and density of component c, for the rows of a block, which stand as columns in
 * `room`, to share[row x k + c]. */
static void weigh(const em *e, size_t c, size_t first, size_t rows, double *room) {
    const size_t d = e->d;
    const double *factor = e->m->factor + c * d * d, *mean = e->m->mean + c * d;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < d; j++) room[j * rows + i] = e->z[(first + i) * d + j] - mean[j];
    n2_lower_solve(factor, d, room, rows);
    const double constant =
        log(e->m->weight[c]) - 0.5 * (n2_cholesky_log_det(factor, d) + (double)d * LN_2PI);
    for (size_t i = 0; i < rows; i++) {
        double square = 0;
        for (size_t j = 0; j < d; j++) square += room[j * rows + i] * room[j * rows + i];
        e->share[(first + i) * e->k + c] = constant - 0.5 * square;
    }
}

static void expect(void *arg, size_t block, int worker) {
    const em *e = arg;
    const size_t first = block * BLOCK, left = e->n - first, rows = left < BLOCK ? left : BLOCK;
    for (size_t c = 0; c < e->k; c++)
        weigh(e, c, first, rows, e->room + (size_t)worker * e->d * BLOCK);
    e->likely[block] = 0;
    for (size_t i = first; i < first + rows; i++) {
        double *share = e->share + i * e->k;
        const double all = n2_logsumexp(share, e->k);
        for (size_t c = 0; c < e->k; c++) share[c] = exp(share[c] - all);
        e->likely[block] += all;
    }
}

/* ---- maximisation ---- */

static double count_rows(const em *e, size_t c) {
    double sum = 0;
    for (size_t i = 0; i < e->n; i++) sum += e->share[i * e->k + c];
    return sum;
}

/* Weighted deviations of a block's rows, [rows x d], times themselves are added to the covariance.
 */
static void add_block(const em *e, size_t c, size_t first, size_t rows, double *room, double *sum) {
    const size_t d = e->d;
    for (size_t i = 0; i < rows; i++) {
        const double root = sqrt(e->share[(first + i) * e->k + c]);
        for (size_t j = 0; j < d; j++)
            room[i * d + j] = root * (e->z[(first + i) * d + j] - e->m->mean[c * d + j]);
    }
    n2_turned_product(room, room, rows, d, d, sum);
}

static void set_mean(const em *e, size_t c, double rows) {
    double *mean = e->m->mean + c * e->d;
    memset(mean, 0, e->d * sizeof *mean);
    for (size_t i = 0; i < e->n; i++)
        for (size_t j = 0; j < e->d; j++)
            mean[j] += e->share[i * e->k + c] / rows * e->z[i * e->d + j];
}

/* A component with hardly a row stays as it was. */
static void maximise(void *arg, size_t c, int worker) {
    const em *e = arg;
    const size_t d = e->d;
    const double rows = count_rows(e, c);
    double *factor = e->m->factor + c * d * d;
    double *room = e->room + (size_t)worker * d * (BLOCK + d), *sum = room + d * BLOCK;
    e->m->weight[c] = rows / (double)e->n;
    if (rows < 2) return;
    set_mean(e, c, rows);
    memset(factor, 0, d * d * sizeof *factor);
    for (size_t first = 0; first < e->n; first += BLOCK) {
        const size_t left = e->n - first;
        add_block(e, c, first, left < BLOCK ? left : BLOCK, room, sum);
        for (size_t i = 0; i < d * d; i++) factor[i] += sum[i] / rows;
    }
    e->failed[c] = factorise(NULL, factor, d) != N2CE_OK;
}

/* ---- the beginning ---- */

static double squared_distance(const double *a, const double *b, size_t d) {
    double sum = 0;
    for (size_t j = 0; j < d; j++) sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sum;
}

/* The row that a uniform number hits, where a row takes as much room as its weight. */
static size_t pick(const double *weight, size_t n, double sum, float u) {
    double at = (double)u * sum;
    size_t i = 0;
    while (i + 1 < n && (at -= weight[i]) > 0) i++;
    return i;
}

/* k-means++: each centre a row, with a chance of the square of its distance from those before. */
static void choose_centres(const em *e, uint64_t seed, double *nearest) {
    float u[N2_DRAW_GROUP];
    double sum = (double)e->n;
    for (size_t i = 0; i < e->n; i++) nearest[i] = 1;
    for (size_t c = 0; c < e->k; c++) {
        n2_fill_uniform((n2_stream){seed, DRAW_CENTRES, (uint32_t)c}, 0, N2_DRAW_GROUP, u);
        const double *row = e->z + pick(nearest, e->n, sum, u[0]) * e->d;
        memcpy(e->m->mean + c * e->d, row, e->d * sizeof *row);
        sum = 0;
        for (size_t i = 0; i < e->n; i++) {
            const double square = squared_distance(e->z + i * e->d, row, e->d);
            nearest[i] = c == 0 ? square : fmin(nearest[i], square);
            sum += nearest[i];
        }
    }
}

/* All components have the covariance of all rows: a step of maximisation with one component. */
static n2ce_status begin(em *e, uint64_t seed) {
    const size_t d = e->d;
    em all = *e;
    all.k = 1;
    for (size_t i = 0; i < e->n; i++) all.share[i] = 1;
    maximise(&all, 0, 0);
    if (e->failed[0]) return n2_fail(e->ctx, N2CE_EDATA, "Some of the codes are not finite.");
    for (size_t c = 1; c < e->k; c++)
        memcpy(e->m->factor + c * d * d, e->m->factor, d * d * sizeof(double));
    choose_centres(e, seed, e->share);
    for (size_t c = 0; c < e->k; c++) e->m->weight[c] = 1 / (double)e->k;
    return N2CE_OK;
}

/* ---- rounds ---- */

static n2ce_status run_em(em *e, uint64_t seed) {
    const size_t blocks = (e->n + BLOCK - 1) / BLOCK;
    double before = -N2_INFINITY;
    N2_TRY(begin(e, seed));
    for (e->m->rounds = 0; e->m->rounds < ROUNDS; e->m->rounds++) {
        if (n2_cancelled(e->ctx)) return N2CE_ECANCELED;
        N2_TRY(n2_parallel_for(e->ctx, blocks, expect, e));
        e->m->likelihood = 0;
        for (size_t b = 0; b < blocks; b++) e->m->likelihood += e->likely[b] / (double)e->n;
        if (e->m->likelihood - before < ENOUGH) return N2CE_OK;
        before = e->m->likelihood;
        N2_TRY(n2_parallel_for(e->ctx, e->k, maximise, e));
        for (size_t c = 0; c < e->k; c++)
            if (e->failed[c])
                return n2_fail(e->ctx, N2CE_EDATA, "Some of the codes are not finite.");
    }
    return N2CE_OK;
}

n2ce_status n2_code_mixture_fit(n2ce_ctx *ctx, const double *z, size_t n, size_t d, size_t k,
                                uint64_t seed, n2_code_mixture *out) {
    em e = {.ctx = ctx, .z = z, .n = n, .d = d, .k = k, .m = out};
    if (k < 1 || n < 2 * k)
        return n2_fail(ctx, N2CE_EINVAL, "%zu codes are too few for %zu Gaussians.", n, k);
    N2_TRY(new_mixture(ctx, k, d, out));
    e.share = n2_alloc(ctx, n * k, sizeof *e.share);
    e.likely = n2_alloc(ctx, (n + BLOCK - 1) / BLOCK, sizeof *e.likely);
    e.room = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * d * (BLOCK + d), sizeof *e.room);
    e.failed = n2_alloc(ctx, k, sizeof *e.failed);
    const bool there = e.share && e.likely && e.room && e.failed;
    const n2ce_status status = there ? run_em(&e, seed) : N2CE_ENOMEM;
    void *const rooms[] = {e.share, e.likely, e.room, e.failed};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) n2_free(ctx, rooms[i]);
    if (status != N2CE_OK) n2_code_mixture_free(ctx, out);
    return status;
}

/* ---- densities ---- */

n2ce_status n2_code_mixture_gain(n2ce_ctx *ctx, const n2_code_mixture *m, const double *z, size_t n,
                                 double *nats) {
    const size_t blocks = (n + BLOCK - 1) / BLOCK, d = m->d;
    em e = {.ctx = ctx, .z = z, .n = n, .d = d, .k = m->k, .m = (n2_code_mixture *)m};
    e.share = n2_alloc(ctx, n * m->k, sizeof *e.share);
    e.likely = n2_alloc(ctx, blocks, sizeof *e.likely);
    e.room = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * d * BLOCK, sizeof *e.room);
    n2ce_status status = e.share && e.likely && e.room ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_parallel_for(ctx, blocks, expect, &e);
    double sum = 0;
    for (size_t b = 0; b < blocks && status == N2CE_OK; b++) sum += e.likely[b];
    for (size_t i = 0; i < n * d; i++) sum += 0.5 * (z[i] * z[i] + LN_2PI);
    *nats = sum / (double)n;
    void *const rooms[] = {e.share, e.likely, e.room};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) n2_free(ctx, rooms[i]);
    return status;
}

/* ---- draws ---- */

typedef struct sampling {
    const n2_code_mixture *m;
    size_t n;
    uint64_t seed;
    double *z;
} sampling;

static void draw_row(void *arg, size_t i, int worker) {
    (void)worker;
    const sampling *s = arg;
    const size_t d = s->m->d;
    float u[N2_DRAW_GROUP], eps[N2_DRAW_GROUP];
    n2_fill_uniform((n2_stream){s->seed, DRAW_COMPONENTS, (uint32_t)i}, 0, N2_DRAW_GROUP, u);
    const size_t c = pick(s->m->weight, s->m->k, 1, u[0]);
    const double *factor = s->m->factor + c * d * d;
    double *z = s->z + i * d;
    memcpy(z, s->m->mean + c * d, d * sizeof *z);
    for (size_t j = 0; j < d; j++) {
        if (j % N2_DRAW_GROUP == 0)
            n2_fill_normal((n2_stream){s->seed, DRAW_SAMPLES, (uint32_t)i}, j, N2_DRAW_GROUP, eps);
        for (size_t r = j; r < d; r++) z[r] += factor[r * d + j] * (double)eps[j % N2_DRAW_GROUP];
    }
}

n2ce_status n2_code_mixture_sample(n2ce_ctx *ctx, const n2_code_mixture *m, size_t n, uint64_t seed,
                                   double *z) {
    sampling s = {m, n, seed, z};
    return n2_parallel_for(ctx, n, draw_row, &s);
}
