#include "principal.h"

#include "base/linalg.h"
#include "base/pool.h"

enum { BLOCK = 256 }; /* rows of an item */

n2ce_status n2_principal_components(n2ce_ctx *ctx, const n2_running_moments *m, size_t d, size_t k,
                                    double *mean, double *direction, double *variance) {
    double *a = n2_alloc(ctx, 2 * d * d + d, sizeof *a);
    if (!a) return N2CE_ENOMEM;
    double *v = a + d * d, *values = v + d * d;
    n2_running_moments_get(m, mean, a);
    const bool found = n2_symmetric_eigen(a, d, values, v);
    for (size_t c = 0; found && c < k; c++) {
        variance[c] = values[d - 1 - c];
        for (size_t i = 0; i < d; i++) direction[c * d + i] = v[i * d + d - 1 - c];
    }
    n2_free(ctx, a);
    return found ? N2CE_OK : n2_fail(ctx, N2CE_ENAN, "Principal components were not found.");
}

n2ce_status n2_principal_learn(n2_arena *arena, const n2_feature_rows *rows, size_t k,
                               n2_principal *out) {
    const size_t d = rows->d;
    n2_running_moments *m;
    *out = (n2_principal){.d = d, .k = k};
    out->mean = n2_arena_alloc(arena, d, sizeof(double));
    out->direction = n2_arena_alloc(arena, k * d, sizeof(double));
    out->variance = n2_arena_alloc(arena, k, sizeof(double));
    if (!out->mean || !out->direction || !out->variance) return N2CE_ENOMEM;
    N2_TRY(n2_running_moments_new(arena->ctx, d, &m));
    n2ce_status status = n2_running_moments_add(m, rows->x, rows->n);
    if (status == N2CE_OK)
        status =
            n2_principal_components(arena->ctx, m, d, k, out->mean, out->direction, out->variance);
    n2_running_moments_free(m);
    return status;
}

typedef struct projection {
    const n2_principal *p;
    const n2_feature_rows *rows;
    float *coordinates;
    double *left_out, *scratch; /* scratch: [workers x d] */
} projection;

static void project_row(const projection *job, size_t row, double *x) {
    const n2_principal *p = job->p;
    for (size_t i = 0; i < p->d; i++) x[i] = (double)job->rows->x[row * p->d + i] - p->mean[i];
    double rest = n2_dot(x, x, p->d);
    for (size_t c = 0; c < p->k; c++) {
        const double along = n2_dot(x, p->direction + c * p->d, p->d);
        if (job->coordinates) job->coordinates[row * p->k + c] = (float)along;
        rest -= along * along;
    }
    if (job->left_out) job->left_out[row] = rest;
}

static void project_block(void *arg, size_t item, int worker) {
    const projection *job = arg;
    double *x = job->scratch + (size_t)worker * job->p->d;
    for (size_t i = item * BLOCK; i < (item + 1) * BLOCK && i < job->rows->n; i++)
        project_row(job, i, x);
}

n2ce_status n2_principal_project(n2ce_ctx *ctx, const n2_principal *p, const n2_feature_rows *rows,
                                 float *coordinates, double *left_out) {
    projection job = {p, rows, coordinates, left_out, NULL};
    job.scratch = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * p->d, sizeof(double));
    if (!job.scratch) return N2CE_ENOMEM;
    const n2ce_status status =
        n2_parallel_for(ctx, (rows->n + BLOCK - 1) / BLOCK, project_block, &job);
    n2_free(ctx, job.scratch);
    return status;
}
