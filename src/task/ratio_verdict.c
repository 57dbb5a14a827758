#include "ratio_verdict.h"

#include <math.h>
#include <stdio.h>

typedef struct judged {
    const n2_session *s;
    n2_judged which;
    n2_estimate e;
    const n2_quality *q;
    double z;
} judged;

enum { TEXT = sizeof((n2_judgement *)0)->reason };

const char *n2_trust_name(n2_trust trust) {
    static const char *const names[] = {"trusted", "doubtful", "failed"};
    return names[trust];
}

/* The sample that the number is a mean over: 1 is the numerator. */
static size_t side_of(const judged *j) { return j->which != N2_JUDGED_REVERSE; }

static const char *sample_name(size_t side) { return side ? "numerator" : "denominator"; }

static const char *column_name(const judged *j, const n2_column_fact *fact) {
    return j->s->num->names[fact->column];
}

/* ---- checks: true, and the reason, if something is wrong -------------------- */

static bool no_number(const judged *j, char *reason) {
    if (isfinite(j->e.value) && isfinite(j->e.error)) return false;
    snprintf(reason, TEXT, "the number is not finite: the ratio overflows; look at the columns");
    return true;
}

static bool few_rows(const judged *j, char *reason) {
    const n2_session *s = j->s;
    const size_t n = s->den && s->rows[0] < s->rows[1] ? s->rows[0] : s->rows[1];
    const size_t need = s->ratio->base ? 2 * (s->ratio->features->width + 3) : 60;
    if (n >= need || s->ratio->kernel) return false;
    snprintf(reason, TEXT, "%zu rows are too few for %zu columns; it takes at least %zu", n,
             s->num->cols, need);
    return true;
}

static bool below_zero(const judged *j, char *reason) {
    static const double ROUNDING = 1e-12;
    if (!(j->e.value + j->z * j->e.error < -ROUNDING)) return false;
    if (j->s->facts.shared > 0)
        snprintf(
            reason, TEXT,
            "%zu rows stand in both samples, so that the interval is below 0, which no divergence "
            "is: leave those rows out of one of them",
            j->s->facts.shared);
    else
        snprintf(reason, TEXT,
                 "the interval is below 0, which no divergence is: rows are not independent, or "
                 "columns are not what the fit takes them for");
    return true;
}

static bool infinite_by_an_atom(const judged *j, char *reason) {
    const n2_column_fact *atom = &j->s->facts.atom[side_of(j)];
    if (j->which == N2_JUDGED_BOUNDED || !(atom->share > 0)) return false;
    snprintf(reason, TEXT,
             "%.0f %% of the %s's rows have %.6g in column \"%.60s\", which the other sample never "
             "has: the divergence is infinite, or known to be large only",
             100 * atom->share, sample_name(side_of(j)), atom->value, column_name(j, atom));
    return true;
}

static bool infinite_by_dependence(const judged *j, char *reason) {
    const bool *dependent = j->s->facts.dependent;
    if (!(dependent[0] || dependent[1])) return false;
    snprintf(reason, TEXT,
             "columns of the %s are linear functions of one another, and not in the other sample: "
             "the divergence is infinite; leave such columns out with --columns",
             sample_name(dependent[1]));
    return true;
}

static bool infinite_by_copies(const judged *j, char *reason) {
    if (!j->s->facts.determined) return false;
    snprintf(reason, TEXT,
             "y is a linear function of x: the mutual information is infinite or, of whole numbers "
             "and levels, an entropy; read them with --categorical");
    return true;
}

static bool one_value(const judged *j, char *reason) {
    if (!j->s->one_sided) return false;
    snprintf(reason, TEXT,
             "column \"%.60s\" has one value in one of the samples: the divergence is infinite "
             "unless it is a count or the like",
             j->s->one_sided);
    return true;
}

static bool atom(const judged *j, char *reason) {
    const n2_column_fact *atoms = j->s->facts.atom, *a = &atoms[atoms[1].share > 0];
    if (!(a->share > 0)) return false;
    snprintf(
        reason, TEXT,
        "%.0f %% of the %s's rows have %.6g in column \"%.60s\" and none of the other's: values "
        "that are special do not go well with those that are not",
        100 * a->share, sample_name(a == &atoms[1]), a->value, column_name(j, a));
    return true;
}

static bool cut_short(const judged *j, char *reason) {
    const n2_fit_record *r = &j->s->record;
    bool out_of_time = false;
    for (size_t k = 0; k < r->folds_run; k++) out_of_time = out_of_time || r->fold[k].out_of_time;
    if (out_of_time) snprintf(reason, TEXT, "training was cut short by --time-limit");
    return out_of_time;
}

/* Networks whose last look at the validation rows was the best; of networks that are no part of the
 * ratio only where nothing else was learned. */
static bool still_learning(const judged *j, char *reason) {
    const n2_session *s = j->s;
    const n2_fit_record *r = &s->record;
    size_t learning = 0;
    if (s->ratio->critics == 0 && s->ratio->smooths + s->ratio->forests > 0) return false;
    for (size_t k = 0; k < r->folds_run; k++)
        learning += !r->fold[k].stopped_early && r->fold[k].best_step + 1 >= r->fold[k].steps &&
                    r->fold[k].best_step > 0;
    if (learning == 0 || 2 * learning < r->folds_run) return false;
    snprintf(reason, TEXT, "%zu of %zu networks were still learning after %zu steps: raise --steps",
             learning, r->folds_run, r->used.critic.steps);
    return true;
}

static bool shared_rows(const judged *j, char *reason) {
    if (j->s->facts.shared == 0) return false;
    snprintf(
        reason, TEXT,
        "%zu rows stand in both samples, though values hardly repeat: they are not independent; "
        "leave those rows out of one of them",
        j->s->facts.shared);
    return true;
}

static bool repeated_rows(const judged *j, char *reason) {
    if (j->s->facts.repeated == 0) return false;
    snprintf(
        reason, TEXT,
        "%zu rows are copies of others, though values hardly repeat: the interval takes them for "
        "new evidence; leave them out",
        j->s->facts.repeated);
    return true;
}

static bool far_rows(const judged *j, char *reason) {
    const n2_column_fact *far = j->s->facts.far, *fact = &far[far[1].share > 0];
    if (!(fact->share > 0)) return false;
    snprintf(
        reason, TEXT,
        "%.2g %% of the %s's rows are far beyond all others in column \"%.60s\": what they add "
        "cannot be known from these samples; try --scaling linear, or look at those rows",
        100 * fact->share, sample_name(fact == &far[1]), column_name(j, fact));
    return true;
}

static const double BEYOND = 0.1, EXTRAPOLATED = 0.25, STILL_RISING = 0.25;

/* Only where something was learned: the Gaussian part alone is a model of its own. */
static bool supports(const judged *j, char *reason) {
    const n2_column_fact *fact = &j->s->facts.beyond[side_of(j)];
    if (j->which == N2_JUDGED_BOUNDED || !j->s->record.learned || !(fact->share > BEYOND))
        return false;
    snprintf(reason, TEXT,
             "%.0f %% of the %s's rows are beyond all of the other sample in column \"%.60s\": the "
             "number is a lower bound",
             100 * fact->share, sample_name(side_of(j)), column_name(j, fact));
    return true;
}

/* Where a quarter of the rows have neighbours of their own sample alone. */
static bool lonely(const judged *j, char *reason) {
    const double alone = j->s->record.second.alone[side_of(j)];
    if (j->which == N2_JUDGED_BOUNDED || !j->s->record.learned || !(alone > 0.25)) return false;
    snprintf(
        reason, TEXT,
        "%.0f %% of the %s's rows have no row of the other sample near them: take the number for "
        "a lower bound, or bring more rows",
        100 * alone, sample_name(side_of(j)));
    return true;
}

static bool extrapolated(const judged *j, char *reason) {
    const double tail = j->q->tail;
    if (j->which == N2_JUDGED_BOUNDED || !(tail > 0.05 && tail > EXTRAPOLATED * fabs(j->e.value)))
        return false;
    snprintf(reason, TEXT,
             "much of the number (%.2g nats of its error) is of rows where the other sample has "
             "hardly any: take it for a lower bound, or bring more rows",
             tail);
    return true;
}

static bool off_balance(const judged *j, char *reason) {
    const bool learned = j->s->record.learned || j->s->ratio->kernel;
    const bool off = learned && fabs(j->q->balance) > 0.2 + 4 * j->q->balance_error;
    if (off)
        snprintf(reason, TEXT,
                 "the ratio is not normalised: its balance is %.3g, it should be 0 within %.2g",
                 j->q->balance, 4 * j->q->balance_error);
    return off;
}

/* The mean of r is 1 if r is right, so by Markov's inequality hardly ever above 20. */
static bool heavy_weights(const judged *j, char *reason) {
    if (j->which == N2_JUDGED_BOUNDED || !(j->q->normalisation > 20)) return false;
    snprintf(
        reason, TEXT,
        "the mean of the ratio is %.2g over rows where it should be 1: with so few rows for so "
        "many columns single scores are far off",
        j->q->normalisation);
    return true;
}

/* A Jensen-Shannon divergence is between 0 and ln 2: who does not know it knows no other number. */
static bool wide(const judged *j, char *reason) {
    const bool own = j->which == N2_JUDGED_BOUNDED; /* half of the path at M = 1 is JS */
    const double error = own ? j->e.error : n2_estimate_path(&j->s->scores, 1).error / 2;
    if (!(error > 0.1)) return false;
    snprintf(reason, TEXT,
             "the standard error%s is %.2g, of a number between 0 and 0.69: with so few rows for "
             "so many columns it is not known; bring more rows, or fewer columns",
             own ? "" : " of JS", error);
    return true;
}

/* JS and the path are read off the rows' log ratios, and have nothing else to go by. */
static bool noisy_base(const judged *j, char *reason) {
    if (j->which != N2_JUDGED_BOUNDED || !j->s->record.calmed) return false;
    snprintf(reason, TEXT,
             "with so few rows for so many columns most of what covariances say of single rows is "
             "noise, and was left out: take the number for a lower bound");
    return true;
}

/* Where the Gaussian part has the word alone although its columns are far from normal. */
static bool not_normal(const judged *j, char *reason) {
    const n2_fit_record *r = &j->s->record;
    if (r->learned || !(fabs(r->excess) > 0.5) || r->used.parts != N2_PARTS_BOTH) return false;
    snprintf(reason, TEXT,
             "columns are not normal (excess kurtosis %.2g), and rows are too few for so many "
             "columns to learn what two normals miss: bring more rows, or fewer columns",
             r->excess);
    return true;
}

static bool falling_path(const judged *j, char *reason) {
    n2_estimate before = n2_estimate_path(&j->s->scores, 1);
    if (j->which != N2_JUDGED_KL || !j->s->record.learned) return false;
    for (double m = 10; m < 1e4; m *= 10) {
        const n2_estimate at = n2_estimate_path(&j->s->scores, m);
        if (at.value < before.value - 2 * fmax(at.error, before.error)) {
            snprintf(
                reason, TEXT,
                "the M-path falls from %.3g to %.3g at M = %g, and a true one rises: large ratios "
                "are wrong; bring more rows",
                before.value, at.value, m);
            return true;
        }
        before = at;
    }
    return false;
}

static bool unstable(const judged *j, char *reason) {
    const double fitting = j->q->fitting;
    if (!(fitting > 0.1 + 0.25 * fabs(j->e.value))) return false; /* also of looser penalties */
    snprintf(
        reason, TEXT,
        "rows that the fit has seen put the number %.2g nats higher than rows that it has not: "
        "bring more rows, or fewer columns",
        2 * fitting);
    return true;
}

/* Whether half of the rows have less to do with `curve` than products of columns, or trees. */
static bool by_others(const n2_scores *s) {
    n2_scores halves = *s;
    halves.left_over = halves.passed_over = 0;
    return n2_estimate_curve(&halves) < n2_estimate_curve(s);
}

/* Twice as many rows should not find much more than half of them did. */
static bool still_rising(const judged *j, char *reason) {
    const double curve = j->q->curve;
    if (!(curve > STILL_RISING * fabs(j->e.value))) return false;
    if (by_others(&j->s->scores)) {
        snprintf(reason, TEXT,
                 "products of columns, or trees, tell about %.2g nats that the ratio has not "
                 "found: take the "
                 "number for a lower bound, or bring more rows",
                 curve);
        return true;
    }
    snprintf(reason, TEXT,
             "half of the rows find %.2g nats less, so that more of them would find more: take the "
             "number for a lower bound, or bring more rows",
             curve);
    return true;
}

/* Twice as many kernels should not find much more than half of them did. */
static bool too_fine(const judged *j, char *reason) {
    const double unresolved = j->s->record.unresolved;
    if (j->s->ratio->smooths == 0 || !(unresolved > 0.03)) return false;
    snprintf(
        reason, TEXT,
        "half as many kernels predict labels worse by %.2g nats a row: the pattern is finer than "
        "the fit can follow, and the number likely too low",
        unresolved);
    return true;
}

static bool unexplained(const judged *j, char *reason) {
    const n2_gain *g = &j->s->record.second.gain;
    if (!(g->value > 3 * g->error && g->value > 0.02)) return false;
    snprintf(
        reason, TEXT,
        "the nearest rows tell the samples apart better than the ratio does, by %.2g nats a row: "
        "there is a fine pattern that it has not found; bring more rows",
        g->value);
    return true;
}

/* The first that finds something has the word. */
static const struct {
    n2_trust trust;
    bool (*check)(const judged *j, char *reason);
} checks[] = {
    {N2_FAILED, no_number},
    {N2_FAILED, few_rows},
    {N2_FAILED, infinite_by_an_atom},
    {N2_FAILED, infinite_by_dependence},
    {N2_FAILED, infinite_by_copies},
    {N2_FAILED, below_zero},
    {N2_DOUBTFUL, cut_short},
    {N2_DOUBTFUL, one_value},
    {N2_DOUBTFUL, atom},
    {N2_DOUBTFUL, shared_rows},
    {N2_DOUBTFUL, repeated_rows},
    {N2_DOUBTFUL, far_rows},
    {N2_DOUBTFUL, unexplained},
    {N2_DOUBTFUL, too_fine},
    {N2_DOUBTFUL, still_learning},
    {N2_DOUBTFUL, off_balance},
    {N2_DOUBTFUL, heavy_weights},
    {N2_DOUBTFUL, wide},
    {N2_DOUBTFUL, noisy_base},
    {N2_DOUBTFUL, not_normal},
    {N2_DOUBTFUL, supports},
    {N2_DOUBTFUL, lonely},
    {N2_DOUBTFUL, extrapolated},
    {N2_DOUBTFUL, falling_path},
    {N2_DOUBTFUL, unstable},
    {N2_DOUBTFUL, still_rising},
};

n2_judgement n2_judge(const n2_session *s, n2_judged which, n2_estimate e, const n2_quality *q,
                      double z) {
    const judged j = {s, which, e, q, z};
    n2_judgement out = {N2_TRUSTED, ""};
    for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++)
        if (checks[k].check(&j, out.reason)) {
            out.trust = checks[k].trust;
            break;
        }
    return out;
}
