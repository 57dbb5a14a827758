/* How far to go beyond what was seen, by trials: the best rows are hidden, a smaller model learns
 * from the others and proposes, and the model that knows what was hidden judges. Nothing else is
 * asked. */
#include "base/numerics.h"
#include "design/design_space.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DEPTH[N2_LATENT_DEPTHS] = {0.15, 0.35};
static const double AMBITION[N2_LATENT_AMBITIONS] = {0.5, 2, 100};
/* The model that judges errs in the same direction as the one that is judged, so what happens is
 * further off than what it says. Too low is further than too high: values that are best are not
 * only unknown, but left out. These numbers are from tables of bench/optimize.py, errors with seed
 * 0, shifts with seed 1. */
static const double FURTHER = 1.7, UPWARD = 1.3, DOWNWARD = 0.35;
static const double LEAST_ERROR = 0.2, TRIAL_ERROR = 0.5, UNTRIED_ERROR = 1;
static const double UNEXPLAINED_ERROR = 0.4;
static const double WITHOUT_TRIALS = 2; /* where rows are too few for them */
enum { PROPOSALS = N2_LATENT_TRIED, ROUNDS = 20, MOST_ROWS = 4000, FEWEST_ROWS = 40 };

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

/* What is left when the best are hidden; every so-manieth row, of many. */
static n2ce_status hide(const n2_latent *m, double share, n2_designs *out) {
    const n2_designs *d = m->designs;
    const size_t c = d->space.n;
    double *sorted = n2_alloc(m->ctx, d->rows, sizeof *sorted);
    *out = (n2_designs){.space = d->space};
    out->x = n2_alloc(m->ctx, d->rows * c, sizeof *out->x);
    out->y = n2_alloc(m->ctx, d->rows, sizeof *out->y);
    if (!sorted || !out->x || !out->y) {
        n2_free(m->ctx, sorted);
        return N2CE_ENOMEM;
    }
    memcpy(sorted, d->y, d->rows * sizeof *sorted);
    const double limit = n2_percentile(sorted, d->rows, 100 * (1 - share));
    n2_free(m->ctx, sorted);
    const size_t stride = (d->rows + MOST_ROWS - 1) / MOST_ROWS;
    for (size_t i = 0; i < d->rows; i += stride) {
        if (d->y[i] > limit) continue;
        memcpy(out->x + out->rows * c, d->x + i * c, c * sizeof *out->x);
        out->y[out->rows++] = d->y[i];
    }
    return N2CE_OK;
}

static n2_latent_options smaller(const n2_latent *m) {
    n2_latent_options o = m->o;
    o.like = m;
    o.value_only = true;
    o.n_needs = 0;
    o.members = o.members < 3 ? o.members : 3;
    o.width = (o.width + 1) / 2;
    o.value_steps = (o.value_steps + 2) / 3;
    o.rounds = o.rounds < ROUNDS ? o.rounds : ROUNDS;
    o.seconds = 0;
    o.checkpoint = o.identity = NULL;
    o.resume = false;
    o.choice = NULL;
    o.trained = NULL;
    o.ambition = AMBITION[0];
    return o;
}

/* Proposals with one ambition, and what the two models say of them. */
static n2ce_status propose_once(n2_latent *m, n2_latent *small, double share, double ambition) {
    const size_t c = m->designs->space.n;
    double *room = n2_alloc(m->ctx, PROPOSALS * (c + 1), sizeof *room);
    n2_proposals p = {.rows = PROPOSALS, .x = room, .predicted = room + PROPOSALS * c};
    n2ce_status status = room ? N2CE_OK : N2CE_ENOMEM;
    small->record.ambition = ambition;
    if (status == N2CE_OK) status = n2_latent_propose(small, &p);
    if (status == N2CE_OK && p.rows > 0) {
        n2_latent_trial *t = &m->record.trial[m->record.trials++];
        *t = (n2_latent_trial){.hidden = share,
                               .best = small->record.y_best,
                               .ambition = ambition,
                               .n = (double)p.rows,
                               .predicted = mean_of(p.predicted, p.rows)};
        memcpy(t->each_predicted, p.predicted, p.rows * sizeof *p.predicted);
        status = n2_latent_appraise(m, p.x, p.rows, t->each_judged, NULL, NULL);
        t->judged = mean_of(t->each_judged, p.rows);
    }
    n2_free(m->ctx, room);
    return status;
}

static n2ce_status try_depth(n2_latent *m, double share) {
    const n2_latent_options o = smaller(m);
    n2_designs visible;
    n2_latent *small = NULL;
    n2ce_status status = hide(m, share, &visible);
    if (status == N2CE_OK && visible.rows >= FEWEST_ROWS)
        status = n2_latent_fit(m->ctx, &visible, &o, &small);
    for (size_t k = 0; small && k < N2_LATENT_AMBITIONS && status == N2CE_OK; k++)
        status = propose_once(m, small, share, AMBITION[k]);
    if (status == N2CE_EDATA) status = N2CE_OK; /* too little was left to learn from */
    n2_latent_free(small);
    n2_free(m->ctx, visible.x);
    n2_free(m->ctx, visible.y);
    return status;
}

/* The ambition whose proposals were judged best, over all depths. */
static double best_ambition(const n2_latent_record *r) {
    double best = -N2_INFINITY, out = WITHOUT_TRIALS;
    for (size_t k = 0; k < N2_LATENT_AMBITIONS; k++) {
        double sum = 0;
        size_t n = 0;
        for (size_t i = 0; i < r->trials; i++)
            if (r->trial[i].ambition == AMBITION[k]) {
                sum += r->trial[i].judged;
                n++;
            }
        if (n == 0 || !(sum / (double)n > best)) continue;
        best = sum / (double)n;
        out = AMBITION[k];
    }
    return out;
}

/* Judged less predicted, on the scale that values are learnt on. */
static double shift_of(const n2_latent *m, const n2_latent_trial *t) {
    double sum = 0;
    for (size_t i = 0; i < (size_t)t->n; i++)
        sum += n2_latent_scaled(m, t->each_judged[i]) - n2_latent_scaled(m, t->each_predicted[i]);
    return sum / t->n;
}

/* What predictions will be off by, and how sure that is: both know how far the trials were off. */
void n2_latent_learn_shift(n2_latent *m) {
    n2_latent_record *r = &m->record;
    double size = 0, sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->trials; i++) {
        const n2_latent_trial *t = &r->trial[i];
        if (t->ambition != r->ambition) continue;
        const double shift = shift_of(m, t);
        sum += shift;
        size += FURTHER * fabs(shift);
        n++;
    }
    r->shift = n > 0 ? sum / (double)n * (sum > 0 ? UPWARD : DOWNWARD) : 0;
    r->error = n > 0 ? LEAST_ERROR + TRIAL_ERROR * size / (double)n : UNTRIED_ERROR;
    r->error += UNEXPLAINED_ERROR * sqrt(fmin(fmax(1 - r->r2, 0), 1));
}

n2ce_status n2_latent_try(n2_latent *m) {
    m->record.ambition = m->o.ambition;
    m->record.trials = 0;
    n2_latent_learn_shift(m);
    if (!isnan(m->o.ambition)) return N2CE_OK;
    for (size_t k = 0; k < N2_LATENT_DEPTHS; k++) N2_TRY(try_depth(m, DEPTH[k]));
    m->record.ambition = best_ambition(&m->record);
    n2_latent_learn_shift(m);
    return N2CE_OK;
}
