/* What proposals can be expected to be worth. What a model predicts of its own best proposals is
 * off for two reasons, and its rows tell of both.
 *
 * The search finds where a model is too high; or the model is too low where the best is, because it
 * has not seen the best. Trials show the sum of that: judged less predicted. But where the best are
 * missing in the rows as well, the judge has not seen them either, and is too low in the same way:
 * what a trial shows of that is only the part that its hidden rows tell more, about a third. What
 * it shows of a model that is too high is the whole.
 *
 * And where the best rows are missing, as if they had been cut off at a value, the rows near the
 * cut are those whose noise let them stay: of designs that are worth f, such are seen as have
 * f + noise below the cut, which is f - noise phi(u) / Phi(-u) on average, u = (f - cut) / noise.
 * The model learns that average; turned around, it says f. Whether values end abruptly, their
 * quantiles tell. */
#include "base/numerics.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>

/* From tables of bench/optimize.py: docs/optimize.md. */
static const double OF_TRIAL_WHOLE = 0.3, OF_TRIAL_CUT = 3; /* times what a trial was off by */
static const double OF_TOO_HIGH = 1.0 / 3;                  /* of that, if it was too high */
static const double OF_CUT = 0.4;
static const double LEAST_ERROR = 0.25, ERROR_OF_TRIAL = 0.5, ERROR_OF_CUT = 0.85;
static const double UNTRIED_ERROR = 0.5;
static const double HIGHEST = 1.5; /* u, at most: beyond, the average hardly depends on f */

/* ---- what was cut off ------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 1 where values end abruptly, 0 where they thin out, by how far the best is above the 95 %
 * quantile, in parts of how far that is above the 80 % quantile: 1/3 where the density does not
 * fall, 1.7 for 500 normal values, more for more. A best that many share is a limit of the values,
 * and hides nothing. */
static double abruptness(const double *sorted, size_t n) {
    const double best = sorted[n - 1], high = sorted[(n - 1) * 95 / 100];
    const double middle = sorted[(n - 1) * 80 / 100];
    if (!(high > middle) || sorted[n - 3 - n / 100] == best) return 0;
    return fmin(fmax((1.2 - (best - high) / (high - middle)) / 0.6, 0), 1);
}

static n2ce_status look_at_end(n2_latent *m) {
    const size_t n = m->designs->rows;
    double *y = n2_alloc(m->ctx, n, sizeof *y);
    if (!y) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) y[i] = n2_latent_scaled(m, m->designs->y[i]);
    qsort(y, n, sizeof *y, by_size);
    m->record.cut = abruptness(y, n);
    n2_free(m->ctx, y);
    return N2CE_OK;
}

/* What is seen of designs that are worth u above the cut, on average, noise being 1. */
static double seen_of(double u) {
    return u - exp(-u * u / 2) / sqrt(2 * acos(-1)) / n2_normal_cdf(-u);
}

/* How much more designs are worth than what is seen of them says, the cut being 0. */
static double unseen_of(double seen, double noise) {
    double low = -8, high = HIGHEST;
    const double at = fmin(seen / noise, seen_of(HIGHEST));
    for (int i = 0; i < 50; i++) {
        const double middle = (low + high) / 2;
        *(seen_of(middle) < at ? &low : &high) = middle;
    }
    return at > -8 ? noise * (high - at) : 0;
}

/* ---- shift and error ------------------------------------------------------------------------- */

/* Judged less predicted, on the scale that values are learnt on. */
static double shift_of(const n2_latent *m, const n2_latent_trial *t) {
    double sum = 0;
    for (size_t i = 0; i < (size_t)t->n; i++)
        sum += n2_latent_scaled(m, t->each_judged[i]) - n2_latent_scaled(m, t->each_predicted[i]);
    return sum / t->n;
}

/* What is not explained, standardised. */
static double noise_of(const n2_latent_record *r) { return sqrt(fmin(fmax(1 - r->r2, 1e-4), 1)); }

n2ce_status n2_latent_learn_shift(n2_latent *m) {
    n2_latent_record *r = &m->record;
    double least = 1, shift = 0;
    for (size_t i = 0; i < r->trials; i++) {
        const n2_latent_trial *t = &r->trial[i];
        if (t->ambition != r->ambition || !(t->hidden < least)) continue;
        least = t->hidden; /* that with the least hidden is most like the run itself */
        shift = shift_of(m, t);
    }
    N2_TRY(look_at_end(m));
    shift *= r->cut * OF_TRIAL_CUT + (1 - r->cut) * OF_TRIAL_WHOLE;
    r->shift = shift > 0 ? shift : OF_TOO_HIGH * shift;
    r->error = LEAST_ERROR + ERROR_OF_CUT * r->cut * noise_of(r);
    r->error += least < 1 ? ERROR_OF_TRIAL * fabs(shift) : UNTRIED_ERROR;
    return N2CE_OK;
}

/* What a proposal is to be expected to be worth, from what is predicted; both in units of y, but
 * for `more`, which is standardised and added. */
static double worth_of(const n2_latent *m, double predicted, double more) {
    const n2_latent_record *r = &m->record;
    const double v = n2_latent_scaled(m, predicted), best = n2_latent_scaled(m, r->y_best);
    const double unseen = r->cut > 0 ? unseen_of(v - best, noise_of(r)) : 0;
    return n2_latent_unscaled(m, v + r->shift + OF_CUT * r->cut * unseen + more);
}

/* The mean over what the error may be: on a curved scale that is not what the mean error gives. */
static double expected_of(const n2_latent *m, double predicted, double error) {
    enum { PARTS = 9 };
    double sum = 0;
    for (size_t k = 0; k < PARTS; k++)
        sum += worth_of(m, predicted, error * n2_normal_quantile(((double)k + 0.5) / PARTS));
    return sum / PARTS;
}

void n2_latent_expect(const n2_latent *m, const double *predicted, double sway, n2_proposals *out) {
    const double error = hypot(m->record.error, sway), half = n2_normal_quantile(0.9) * error;
    out->low = out->high = 0;
    for (size_t i = 0; i < out->rows; i++) {
        out->low += worth_of(m, predicted[i], -half) / (double)out->rows;
        out->high += worth_of(m, predicted[i], half) / (double)out->rows;
    }
    for (size_t i = 0; i < out->rows && out->predicted; i++)
        out->predicted[i] = expected_of(m, out->predicted[i], error);
}
