/* What proposals must have besides a good value: each need is learnt as a value of its own, and a
 * design that is unlikely to meet it is worth less. */
#include "base/numerics.h"
#include "latent_model.h"

#include <math.h>
#include <string.h>

static const double LIKELY = 0.8;   /* a probability that is enough */
static const double PENALTY = 10;   /* standard deviations for no chance at all */
static const double LEAST_SD = .03; /* of a prediction: no model is better than that */

static n2_latent_options options_of(const n2_latent *m) {
    n2_latent_options o = m->o;
    o.value_only = true;
    o.like = NULL;
    o.needs = NULL;
    o.n_needs = 0;
    o.members = o.members < 3 ? o.members : 3;
    o.width = (o.width + 1) / 2;
    o.value_steps = (o.value_steps + 1) / 2;
    o.seconds = 0;
    o.checkpoint = o.identity = NULL;
    o.resume = false;
    o.choice = NULL;
    o.trained = NULL;
    return o;
}

n2ce_status n2_latent_fit_needs(n2_latent *m) {
    const n2_latent_options o = options_of(m);
    for (size_t k = 0; k < m->o.n_needs; k++) {
        n2_designs *d = &m->need_designs[k];
        *d = *m->designs;
        d->y = n2_alloc(m->ctx, d->rows, sizeof *d->y);
        if (!d->y) return N2CE_ENOMEM;
        memcpy(d->y, m->o.needs[k].y, d->rows * sizeof *d->y);
        N2_TRY(n2_latent_fit(m->ctx, d, &o, &m->need[k]));
    }
    return N2CE_OK;
}

void n2_latent_free_needs(n2_latent *m) {
    for (size_t k = 0; k < N2_LATENT_NEEDS_MAX; k++) {
        n2_latent_free(m->need[k]);
        n2_free(m->ctx, m->need_designs[k].y);
    }
}

/* The chance that a need is met, of what its members say: errors are as large as on held-out rows.
 */
static double chance_of(const n2_latent *need, const double *members) {
    const size_t e = need->o.members;
    double mean = 0, square = 0;
    for (size_t k = 0; k < e; k++) mean += members[k] / (double)e;
    for (size_t k = 0; k < e; k++) square += (members[k] - mean) * (members[k] - mean) / (double)e;
    const double error = fmax(1 - need->record.r2, LEAST_SD * LEAST_SD);
    return n2_normal_cdf((mean - n2_latent_scaled(need, 0)) / sqrt(error + square));
}

/* The least chance of all needs; rows are coded. */
static n2ce_status find_chances(n2_latent *m, const float *rows, size_t n, double *chance) {
    for (size_t i = 0; i < n; i++) chance[i] = 1;
    for (size_t k = 0; k < m->o.n_needs; k++) {
        n2_latent *need = m->need[k];
        double *members = n2_alloc(m->ctx, n * need->o.members, sizeof *members);
        if (!members) return N2CE_ENOMEM;
        const n2ce_status status =
            n2_latent_say(need, rows, n, &(n2_latent_words){.members = members});
        for (size_t i = 0; i < n && status == N2CE_OK; i++)
            chance[i] = fmin(chance[i], chance_of(need, members + i * need->o.members));
        n2_free(m->ctx, members);
        N2_TRY(status);
    }
    return N2CE_OK;
}

n2ce_status n2_latent_penalise(n2_latent *m, const float *rows, size_t n, double *penalty) {
    N2_TRY(find_chances(m, rows, n, penalty));
    for (size_t i = 0; i < n; i++) penalty[i] = PENALTY * fmax(LIKELY - penalty[i], 0);
    return N2CE_OK;
}

n2ce_status n2_latent_chance(n2_latent *m, const double *designs, size_t n, double *chance) {
    const size_t width = m->code->width;
    float *rows = n2_alloc(m->ctx, n * width, sizeof *rows);
    if (!rows) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        n2_latent_code_write(m->code, designs + i * m->code->columns, rows + i * width);
    const n2ce_status status = find_chances(m, rows, n, chance);
    n2_free(m->ctx, rows);
    return status;
}
