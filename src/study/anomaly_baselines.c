/* Methods that learn nothing but a mean and a covariance: what a better one has to beat. */
#include "anomaly_study.h"
#include "metric/neighbours.h"
#include "metric/principal.h"

#include <math.h>

enum { NEIGHBOURS = 5, NEIGHBOUR_COMPONENTS = 50, KEPT_COMPONENTS = 20 };

/* Rows that are learnt from and rows that are judged, and components of the first. */
typedef struct rows_and_basis {
    n2_feature_rows train, test;
    n2_principal basis;
} rows_and_basis;

static n2ce_status learn(const n2_anomaly_job *job, size_t components, rows_and_basis *out) {
    const n2_anomaly_split *s = job->split;
    N2_TRY(n2_anomaly_rows(job->arena, s->pictures, s->train, s->n_train, &out->train));
    N2_TRY(n2_anomaly_rows(job->arena, s->pictures, s->test, s->n_test, &out->test));
    return n2_principal_learn(job->arena, &out->train, components, &out->basis);
}

static n2ce_status project(const n2_anomaly_job *job, const n2_principal *basis,
                           const n2_feature_rows *rows, n2_packed_rows *out) {
    float *x = n2_arena_alloc(job->arena, rows->n * basis->k, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    N2_TRY(n2_principal_project(job->ctx, basis, rows, x, NULL));
    const n2_feature_rows projected = {rows->n, basis->k, x};
    return n2_pack_rows(job->arena, &projected, rows->n, out);
}

n2ce_status n2_anomaly_neighbours(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    rows_and_basis r;
    n2_packed_rows train, test;
    const size_t n = job->split->n_test;
    double *squares = n2_arena_alloc(job->arena, n * NEIGHBOURS, sizeof *squares);
    if (!squares) return N2CE_ENOMEM;
    N2_TRY(learn(job, NEIGHBOUR_COMPONENTS, &r));
    N2_TRY(project(job, &r.basis, &r.train, &train));
    N2_TRY(project(job, &r.basis, &r.test, &test));
    N2_TRY(n2_nearest_squares(job->ctx, &test, &train, NEIGHBOURS, squares));
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < NEIGHBOURS; k++) sum += sqrt(fmax(squares[i * NEIGHBOURS + k], 0));
        out->score[i] = sum / NEIGHBOURS;
    }
    return N2CE_OK;
}

n2ce_status n2_anomaly_reconstruction(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    rows_and_basis r;
    N2_TRY(learn(job, KEPT_COMPONENTS, &r));
    return n2_principal_project(job->ctx, &r.basis, &r.test, NULL, out->score);
}
