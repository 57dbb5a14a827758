/* What the trained model says of designs. */
#include "latent_model.h"

#include <math.h>
#include <string.h>

/* One block of at most N2_APPRAISE_ROWS rows. */
static n2ce_status say_block(n2_latent *m, const float *rows, size_t n) {
    const size_t width = m->code->width;
    float *to = m->rows->data;
    memcpy(to, rows, n * width * sizeof *to);
    memset(to + n * width, 0, (N2_APPRAISE_ROWS - n) * width * sizeof *to);
    N2_TRY(n2_plan_run(m->appraise.plan));
    n2_plan_get(m->appraise.plan, 0, m->out);
    return N2CE_OK;
}

static void add_stages(n2_latent *m, const double *said, double weight) {
    for (size_t k = 0; k < m->o.stages; k++) m->record.stage_mean[k] += weight * said[k];
}

n2ce_status n2_latent_say(n2_latent *m, const float *rows, size_t n, double *members,
                          double *log_prior, double *codes) {
    const size_t e = m->o.members, nz = m->o.latent, wide = e + 1 + nz + m->o.stages;
    memset(m->record.stage_mean, 0, sizeof m->record.stage_mean);
    for (size_t first = 0; first < n; first += N2_APPRAISE_ROWS) {
        const size_t count = n - first < N2_APPRAISE_ROWS ? n - first : N2_APPRAISE_ROWS;
        N2_TRY(say_block(m, rows + first * m->code->width, count));
        for (size_t i = 0; i < count; i++) {
            const double *said = m->out + i * wide;
            if (members) memcpy(members + (first + i) * e, said, e * sizeof *said);
            if (log_prior) log_prior[first + i] = said[e];
            if (codes) memcpy(codes + (first + i) * nz, said + e + 1, nz * sizeof *said);
            add_stages(m, said + e + 1 + nz, 1 / (double)n);
        }
    }
    return members ? n2_latent_ask_forests(m, rows, n, members) : N2CE_OK;
}

static void summarise(const double *members, size_t n, double *mean, double *spread) {
    double sum = 0, square = 0;
    for (size_t k = 0; k < n; k++) sum += members[k];
    *mean = sum / (double)n;
    for (size_t k = 0; k < n; k++) square += (members[k] - *mean) * (members[k] - *mean);
    *spread = sqrt(square / (double)n);
}

n2ce_status n2_latent_appraise(n2_latent *m, const double *designs, size_t n, double *predicted,
                               double *spread, double *log_prior) {
    const size_t e = m->o.members, width = m->code->width, columns = m->code->columns;
    float *rows = n2_alloc(m->ctx, n * width, sizeof *rows);
    double *members = n2_alloc(m->ctx, n * e, sizeof *members);
    n2ce_status status = rows && members ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        for (size_t i = 0; i < n; i++)
            n2_latent_code_write(m->code, designs + i * columns, rows + i * width);
        status = n2_latent_say(m, rows, n, members, log_prior, NULL);
    }
    for (size_t i = 0; i < n && status == N2CE_OK; i++) {
        double mean, wide;
        summarise(members + i * e, e, &mean, &wide);
        if (predicted) predicted[i] = n2_latent_unbent(m, m->record.y_mean + m->record.y_sd * mean);
        if (spread) spread[i] = m->record.y_sd * wide;
    }
    n2_free(m->ctx, rows);
    n2_free(m->ctx, members);
    return status;
}
