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
    n2_tensor_push(m->store, m->rows);
    N2_TRY(n2_plan_run(m->appraise.plan));
    n2_plan_get(m->appraise.plan, 0, m->out);
    return N2CE_OK;
}

static void add_stages(n2_latent *m, const double *said, double weight) {
    for (size_t k = 0; k < m->o.stages; k++) m->record.stage_mean[k] += weight * said[k];
}

static void keep(const n2_latent *m, const double *said, const n2_latent_words *w, size_t row) {
    const size_t e = m->o.members, nz = m->o.latent;
    if (w->members) memcpy(w->members + row * e, said, e * sizeof *said);
    if (m->o.value_only) return;
    if (w->log_prior) w->log_prior[row] = said[e];
    if (w->misfit) w->misfit[row] = said[e + 1];
    if (w->codes) memcpy(w->codes + row * nz, said + e + 2, nz * sizeof *said);
}

n2ce_status n2_latent_say(n2_latent *m, const float *rows, size_t n, const n2_latent_words *words) {
    const size_t stages = m->o.members + 2 + m->o.latent;
    const size_t wide = m->o.value_only ? m->o.members : stages + m->o.stages;
    memset(m->record.stage_mean, 0, sizeof m->record.stage_mean);
    for (size_t first = 0; first < n; first += N2_APPRAISE_ROWS) {
        const size_t count = n - first < N2_APPRAISE_ROWS ? n - first : N2_APPRAISE_ROWS;
        N2_TRY(say_block(m, rows + first * m->code->width, count));
        for (size_t i = 0; i < count; i++) {
            keep(m, m->out + i * wide, words, first + i);
            if (!m->o.value_only) add_stages(m, m->out + i * wide + stages, 1 / (double)n);
        }
    }
    if (!words->members) return N2CE_OK;
    N2_TRY(n2_latent_ask_forests(m, rows, n, words->members));
    return n2_latent_ask_process(m, rows, n, words->members);
}

/* What the members say of designs, n x members, from the context. */
static n2ce_status ask_members(n2_latent *m, const double *designs, size_t n, double *log_prior,
                               double **out) {
    const size_t e = m->o.members, width = m->code->width, columns = m->code->columns;
    float *rows = n2_alloc(m->ctx, n * width, sizeof *rows);
    double *members = *out = n2_alloc(m->ctx, n * e, sizeof *members);
    n2ce_status status = rows && members ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i++)
        n2_latent_code_write(m->code, designs + i * columns, rows + i * width);
    if (status == N2CE_OK)
        status = n2_latent_say(m, rows, n,
                               &(n2_latent_words){.members = members, .log_prior = log_prior});
    n2_free(m->ctx, rows);
    return status;
}

static void summarise(const double *members, size_t n, double *mean, double *spread) {
    double sum = 0, square = 0;
    for (size_t k = 0; k < n; k++) sum += members[k];
    *mean = sum / (double)n;
    for (size_t k = 0; k < n; k++) square += (members[k] - *mean) * (members[k] - *mean);
    *spread = n > 1 ? sqrt(square / (double)(n - 1)) : 0;
}

double n2_latent_half_width(const n2_latent *m, double y, double width) {
    const double v = n2_latent_scaled(m, y);
    return (n2_latent_unscaled(m, v + width) - n2_latent_unscaled(m, v - width)) / 2;
}

n2ce_status n2_latent_appraise(n2_latent *m, const double *designs, size_t n, double *predicted,
                               double *spread, double *log_prior) {
    const size_t e = m->o.members;
    double *members = NULL;
    const n2ce_status status = ask_members(m, designs, n, log_prior, &members);
    for (size_t i = 0; i < n && status == N2CE_OK; i++) {
        double mean, wide;
        summarise(members + i * e, e, &mean, &wide);
        const double y = n2_latent_unscaled(m, mean);
        if (predicted) predicted[i] = y;
        if (spread) /* all may be off together */
            spread[i] = hypot(n2_latent_half_width(m, y, wide), m->record.error * m->record.y_sd);
    }
    n2_free(m->ctx, members);
    return status;
}

n2ce_status n2_latent_sway(n2_latent *m, const double *designs, size_t n, double *sway) {
    const size_t e = m->o.members;
    double *members = NULL, each[N2_LATENT_MEMBERS_MAX] = {0}, mean;
    const n2ce_status status = ask_members(m, designs, n, NULL, &members);
    for (size_t i = 0; i < n * e && status == N2CE_OK; i++) each[i % e] += members[i] / (double)n;
    summarise(each, e, &mean, sway);
    n2_free(m->ctx, members);
    return status;
}
