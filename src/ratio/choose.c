#include "choose.h"

#include <math.h>

/* A stage should not have to bridge more than this many nats. */
static const double NATS_A_STAGE = 3;

/* Of few rows for many columns most of what the Gaussians say of themselves may be chance. */
static size_t choose_stages(const n2_gauss *base, double unbiased) {
    if (!base) return 1;
    double kl = n2_gauss_waymark_kl(base, 0, 1);
    if (unbiased < 0.5 * kl) kl = fmax(unbiased, 0);
    const double stages = ceil(kl / NATS_A_STAGE - 1);
    return stages < 1 ? 1 : stages > 12 ? 12 : (size_t)stages;
}

void n2_choose_folds(size_t n_num, size_t n_den, n2_fit_options *o) {
    const size_t n = n_num < n_den ? n_num : n_den;
    if (!o->folds) o->folds = n < 20000 ? 5 : n < 100000 ? 3 : 2;
    if (o->folds > n) o->folds = n; /* each fold has a row of each side */
}

void n2_choose(const n2_gauss *base, double unbiased, size_t n_num, size_t n_den, n2_fit_options *o,
               double alpha[N2_MOST_STAGES + 1]) {
    n2_critic_options *c = &o->critic;
    const size_t n = n_num < n_den ? n_num : n_den;
    if (!c->stages) c->stages = choose_stages(base, unbiased);
    c->judge = c->magnitude > 0 ? c->magnitude : sqrt(n2ce_magnitude_for((double)n, 0));
    if (!c->width) c->width = n < 20000 ? 64 : 128;
    if (!c->blocks) c->blocks = 2;
    if (!c->batch) c->batch = 256;
    if (!c->noise) c->noise = 4;
    if (!c->steps) c->steps = 1500;
    if (!(c->rate > 0)) c->rate = 5e-3;
    if (!(c->decay > 0)) c->decay = 0.5;
    for (size_t k = 0; k <= c->stages; k++) alpha[k] = 1 - (double)k / (double)c->stages;
    if (base) n2_gauss_waymarks(base, c->stages, alpha);
}
