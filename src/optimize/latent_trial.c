/* How far to go beyond what was seen, by trials: the best rows are hidden, a smaller model learns
 * from the others and proposes, and the model that knows what was hidden judges. Nothing else is
 * asked. */
#include "base/numerics.h"
#include "base/random.h"
#include "design/design_space.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DEPTH[N2_LATENT_DEPTHS] = {0.15, 0.35};
static const double AMBITION[N2_LATENT_AMBITIONS] = {0.5, 2, 100};
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

static double largest_of(const double *x, size_t n) {
    double most = -N2_INFINITY;
    for (size_t i = 0; i < n; i++) most = fmax(most, x[i]);
    return most;
}

/* As many designs by chance as a trial proposes, judged. */
static n2ce_status try_chance(n2_latent *m) {
    const size_t c = m->designs->space.n;
    double *x = n2_alloc(m->ctx, PROPOSALS * (c + 1), sizeof *x), *judged = x + PROPOSALS * c;
    float *uniform = n2_alloc(m->ctx, 2 * c, sizeof *uniform);
    n2ce_status status = x && uniform ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < PROPOSALS && status == N2CE_OK; i++) {
        n2_fill_uniform((n2_stream){m->o.seed, 81, (uint32_t)i}, 0, 2 * c, uniform);
        n2_latent_code_scatter(m->code, false, uniform, x + i * c);
        if (m->o.rules) n2_design_rules_apply(m->o.rules, x + i * c);
    }
    if (status == N2CE_OK) status = n2_latent_appraise(m, x, PROPOSALS, judged, NULL, NULL);
    if (status == N2CE_OK) m->record.chance = largest_of(judged, PROPOSALS);
    n2_free(m->ctx, x);
    n2_free(m->ctx, uniform);
    return status;
}

/* Whether chance did better than the search in a trial, by the best of each. */
static bool was_outdone(const n2_latent_record *r) {
    for (size_t i = 0; i < r->trials; i++) {
        const n2_latent_trial *t = &r->trial[i];
        if (t->ambition == r->ambition && largest_of(t->each_judged, (size_t)t->n) < r->chance)
            return true;
    }
    return false;
}

n2ce_status n2_latent_try(n2_latent *m) {
    m->record.ambition = m->o.ambition;
    m->record.trials = 0;
    if (!isnan(m->o.ambition)) return N2CE_OK;
    for (size_t k = 0; k < N2_LATENT_DEPTHS; k++) N2_TRY(try_depth(m, DEPTH[k]));
    m->record.ambition = best_ambition(&m->record);
    return N2CE_OK;
}

n2ce_status n2_latent_learn_from_trials(n2_latent *m) {
    N2_TRY(try_chance(m));
    m->record.outdone = was_outdone(&m->record);
    return n2_latent_learn_shift(m);
}
