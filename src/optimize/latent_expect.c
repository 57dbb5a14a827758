/* What proposals can be expected to be worth. What a model predicts of its own best proposals is
 * off for two reasons, and its rows tell of both.
 *
 * The search finds where a model is too high; or the model is too low where the best is, because it
 * has not seen the best. Trials show the sum of that: judged less predicted. But the judge of a
 * trial lacks the rows that the file lacks, and is off in the same direction as the model on trial:
 * the whole is a multiple of what a trial shows. A trial is one draw, so that large numbers count
 * less.
 *
 * And where the best rows are missing, as if they had been cut off at a value, the rows near the
 * cut are those whose noise let them stay: what is seen of good designs is too low, by as much as
 * there is noise. Whether values end abruptly, their quantiles tell.
 *
 * Where models of nearly the same rows disagree by many standard deviations, as on a logarithmic
 * scale that leads to the sky, neither is believed: nothing is said to be above the best seen by
 * more than a few times what the best rows are above the others.
 *
 * Both are in standard deviations of the values as they are. On the scale that values are learnt
 * on, which may be a logarithm, the same shift would be next to nothing or enormous. */
#include "base/numerics.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>

/* From tables of bench/optimize.py: docs/optimize.md. */
static const double OF_TRIAL = 2.5, LARGE = 2; /* times what a trial was off by; large for that */
static const double OF_NOISE = 1.4;            /* times what is not explained, where values end */
static const double LEAST_ERROR = 0.4, ERROR_OF_TRIAL = 0.8; /* the latter of the trial's part */
static const double UNSTABLE = 10;  /* standard deviations that a trial was off by */
static const double STEPS_MORE = 3; /* times from the best that was left in it to the best of all */
static const double UNTRIED = 0.5;  /* what a trial might have been off by, where there was none */

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

/* ---- shift and error ------------------------------------------------------------------------- */

/* The trial that is most like the run itself: that with the least hidden; NULL: there was none. */
static const n2_latent_trial *nearest_trial(const n2_latent_record *r) {
    const n2_latent_trial *out = NULL;
    for (size_t i = 0; i < r->trials; i++) {
        const n2_latent_trial *t = &r->trial[i];
        if (t->ambition == r->ambition && (!out || t->hidden < out->hidden)) out = t;
    }
    return out;
}

/* Neither model is believed: the best seen, and some steps more, are all that is promised. */
static void come_down(n2_latent *m, double best_left) {
    n2_latent_record *r = &m->record;
    const double step = STEPS_MORE * fmax(r->y_best - best_left, 0);
    r->shift = 0;
    r->error = fmax(LEAST_ERROR, step / r->y_sd);
    r->ceiling = r->y_best + step;
    n2_log(m->ctx, N2CE_LOG_WARNING,
           "Models of nearly the same rows disagree about what proposals are worth by more than "
           "%.0f standard deviations: nothing above %.6g is promised. Their order may still be "
           "right; try out a few.",
           UNSTABLE, r->ceiling);
}

n2ce_status n2_latent_learn_shift(n2_latent *m) {
    n2_latent_record *r = &m->record;
    const n2_latent_trial *t = nearest_trial(r);
    const double raw = t ? (t->judged - t->predicted) / r->y_sd : N2_NAN;
    const double off = raw / hypot(1, raw / LARGE); /* large numbers are made smaller */
    N2_TRY(look_at_end(m));
    r->ceiling = N2_INFINITY;
    if (t && !(fabs(raw) < UNSTABLE)) {
        come_down(m, t->best);
        return N2CE_OK;
    }
    const double noise = r->cut * sqrt(fmin(fmax(1 - r->r2, 0), 1));
    r->shift = OF_NOISE * noise + (isnan(off) ? 0 : OF_TRIAL * off);
    r->error = LEAST_ERROR + ERROR_OF_TRIAL * OF_TRIAL * (isnan(off) ? UNTRIED : fabs(off));
    return N2CE_OK;
}

void n2_latent_expect(const n2_latent *m, const double *predicted, double sway, n2_proposals *out) {
    const n2_latent_record *r = &m->record;
    const double shift = r->shift * r->y_sd;
    double sum = 0, apart = 0;
    for (size_t i = 0; i < out->rows; i++) {
        const bool high = predicted[i] + shift > r->ceiling;
        sum += high ? r->ceiling : predicted[i] + shift;
        apart += high ? 0 : n2_latent_half_width(m, predicted[i], sway);
    }
    const double n = (double)out->rows, error = hypot(r->error * r->y_sd, apart / n);
    out->low = sum / n - n2_normal_quantile(0.9) * error;
    out->high = sum / n + n2_normal_quantile(0.9) * error;
    for (size_t i = 0; i < out->rows && out->predicted; i++)
        out->predicted[i] = fmin(out->predicted[i] + shift, r->ceiling);
}
