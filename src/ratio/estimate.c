#include "estimate.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>

typedef struct average {
    double mean, var; /* of one term */
    double n;
} average;

static average average_of(const double *x, size_t n) {
    average a = {0, 0, (double)n};
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, x[i]);
    a.mean = n2_sum_value(&sum) / a.n;
    n2_sum square = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&square, (x[i] - a.mean) * (x[i] - a.mean));
    a.var = n > 1 ? n2_sum_value(&square) / (a.n - 1) : 0;
    return a;
}

/* ---- terms of sums over rows ---------------------------------------------- */

/* A function of each log ratio. The terms are computed on all threads, if the scores have memory
 * for them, and added up in their order by who asked for them. */
typedef double term_fn(double f, const double arg[2]);

typedef struct terms {
    const double *f;
    size_t n;
    term_fn *fn;
    double arg[2];
    double *ready; /* NULL: they are computed when they are asked for */
} terms;

enum { TERMS_AT_ONCE = 2048 };

static void take_terms(void *job, size_t item, int worker) {
    (void)worker;
    const terms *t = job;
    const size_t begin = item * TERMS_AT_ONCE, left = t->n - begin;
    const size_t end = begin + (left < TERMS_AT_ONCE ? left : TERMS_AT_ONCE);
    for (size_t i = begin; i < end; i++) t->ready[i] = t->fn(t->f[i], t->arg);
}

/* Of all log ratios of a side, until others are asked for. */
static terms terms_of(const n2_scores *s, size_t side, term_fn *fn, double a, double b) {
    terms t = {s->f[side], s->n[side], fn, {a, b}, s->terms};
    const size_t items = (t.n + TERMS_AT_ONCE - 1) / TERMS_AT_ONCE;
    if (t.ready && n2_parallel_for(s->ctx, items, take_terms, &t) != N2CE_OK) t.ready = NULL;
    return t;
}

static double term_at(const terms *t, size_t i) {
    return t->ready ? t->ready[i] : t->fn(t->f[i], t->arg);
}

static double sigmoid_term(double f, const double arg[2]) {
    return n2_sigmoid(arg[0] * f + arg[1]);
}
static double exp_term(double f, const double arg[2]) { return exp(arg[0] * f + arg[1]); }
static double num_term(double f, const double arg[2]) { return n2_shifted_softplus(f, arg[0]); }
static double den_term(double f, const double arg[2]) { return n2_scaled_softplus(f, arg[0]); }

/* ---- what log ratios say about themselves ---------------------------------- */

/* Mean of e^(sign f) and the effective share of rows, of the side in the denominator. */
static void weigh(const n2_scores *s, size_t side, double sign, n2_quality *q) {
    const double *f = s->f[side];
    const size_t n = s->n[side];
    double top = -N2_INFINITY, sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) top = sign * f[i] > top ? sign * f[i] : top;
    const terms t = terms_of(s, side, exp_term, sign, -top);
    for (size_t i = 0; i < n; i++) {
        const double w = term_at(&t, i);
        sum += w;
        square += w * w;
    }
    q->normalisation = sum / (double)n * exp(top);
    q->ess = sum * sum / square / (double)n;
}

/* balance(M) with the roles of the samples as in kl(). */
static n2_estimate balance(const n2_scores *s, size_t side, double log_m) {
    const double sign = side ? 1 : -1, m = exp(log_m);
    double mean[2] = {0, 0}, var = 0;
    for (size_t k = 0; k < 2; k++) { /* 0: the sample in the denominator */
        const terms t = k ? terms_of(s, side, sigmoid_term, -sign, log_m)
                          : terms_of(s, 1 - side, sigmoid_term, sign, -log_m);
        const size_t n = t.n;
        double sum = 0, square = 0;
        for (size_t i = 0; i < n; i++) {
            const double w = k ? term_at(&t, i) : m * term_at(&t, i);
            sum += w;
            square += w * w;
        }
        mean[k] = sum / (double)n;
        var += (square / (double)n - mean[k] * mean[k]) / (double)n;
    }
    return (n2_estimate){mean[0] - mean[1],
                         sqrt(fmax(var, 0))}; /* rounding may leave less than 0 */
}

n2_estimate n2_estimate_balance(const n2_scores *s, double magnitude) {
    return balance(s, 1, log(magnitude));
}

/* Pairs of x and y are no more independent rows than those that they were made of. */
n2_estimate n2_estimate_mean_ratio(const n2_scores *s, size_t side, double *share) {
    const size_t n = s->influence || s->n[side] < s->n[1] ? s->n[side] : s->n[1];
    n2_quality q;
    weigh(s, side, side ? -1 : 1, &q);
    *share = q.ess;
    return (n2_estimate){q.normalisation,
                         q.normalisation * sqrt(fmax(1 / q.ess - 1, 0) / (double)n)};
}

/* The balance at the largest M at which its noise is small beside the estimate's own. Of
 * m rows hardly any can have a ratio above m, so a larger M would see too few to tell. */
static void choose_balance(const n2_scores *s, size_t side, double error, n2_quality *q) {
    const double rows = (double)s->n[1 - side];
    for (double m = 1e4; m >= 1; m /= 10) {
        if (m > 1 && m > rows / 30) continue;
        const n2_estimate b = balance(s, side, log(m));
        q->balance = b.value;
        q->balance_error = b.error;
        q->balance_magnitude = m;
        if (b.error < 0.5 * error) return;
    }
}

/* What the method itself reads off its log ratios besides their mean: NWJ and SMILE take
 * the normalisation off, SMILE of clipped ratios; DV and InfoNCE are normalised already. */
static double correction(const n2_scores *s, const n2_fit_record *r, size_t side,
                         const n2_quality *q) {
    const double sign = side ? 1 : -1, tau = r->used.critic.tau;
    double sum = 0;
    switch (r->used.critic.contrast) {
    case N2_CONTRAST_N2CE:
    case N2_CONTRAST_NEG_REWEIGHT:
        return q->balance;
    case N2_CONTRAST_NWJ:
        return q->normalisation - 1;
    case N2_CONTRAST_DV:
    case N2_CONTRAST_INFONCE:
        return 0;
    case N2_CONTRAST_SMILE:
        break;
    }
    for (size_t i = 0; i < s->n[1 - side]; i++) {
        const double f = sign * s->f[1 - side][i];
        sum += exp(f > tau ? tau : f < -tau ? -tau : f);
    }
    return log(sum / (double)s->n[1 - side]);
}

/* The log ratios of rows by parts that have seen them, in the place of those that have not. */
static n2_scores seen_of(const n2_scores *s) {
    n2_scores seen = *s;
    for (size_t side = 0; side < 2; side++) seen.f[side] = s->seen[side];
    return seen;
}

static double mean_of(const double *x, size_t n) { return average_of(x, n).mean; }

/* How much higher rows that the fit has seen put the number: its mean, and the correction. */
static double optimism(const n2_scores *s, const n2_fit_record *r, size_t side, n2_quality *q) {
    if (!s->seen[0] || r->used.critic.contrast != N2_CONTRAST_N2CE) return 0;
    const double sign = side ? 1 : -1, log_m = log(q->balance_magnitude);
    const n2_scores seen = seen_of(s);
    const double mean = mean_of(seen.f[side], s->n[side]) - mean_of(s->f[side], s->n[side]);
    return sign * mean - (balance(&seen, side, log_m).value - q->balance);
}

enum { BEYOND = 10, MOST_BEYOND = 256 };

/* The BEYOND-th largest sign f of a side; of pairs, as many for each of their rounds. */
static double high_ratio(const n2_scores *s, size_t side, double sign) {
    double top[MOST_BEYOND];
    const size_t rounds = !s->influence && side == 0 ? s->n[0] / s->n[1] : 1;
    const size_t want = BEYOND * (rounds > 0 ? rounds : 1), n = s->n[side];
    size_t k = want < MOST_BEYOND ? want : MOST_BEYOND, have = 0;
    if (k > n) k = n;
    for (size_t i = 0; i < n; i++) {
        const double f = sign * s->f[side][i];
        if (have == k && !(f > top[k - 1])) continue;
        size_t at = have < k ? have++ : k - 1;
        for (; at > 0 && top[at - 1] < f; at--) top[at] = top[at - 1];
        top[at] = f;
    }
    return top[k - 1];
}

/* Where the other sample has hardly a row the log ratio is extrapolated: that part of the mean, and
 * the share of the rows that are there. */
static double extrapolated(const n2_scores *s, size_t side, double *share) {
    const double sign = side ? 1 : -1, high = high_ratio(s, 1 - side, sign);
    n2_sum sum = {0, 0};
    size_t there = 0;
    for (size_t i = 0; i < s->n[side]; i++) {
        n2_sum_add(&sum, fmax(sign * s->f[side][i] - high, 0));
        there += sign * s->f[side][i] > high;
    }
    *share = (double)there / (double)s->n[side];
    return n2_sum_value(&sum) / (double)s->n[side];
}

/* The share of the log ratio that was learned, in how it varies over rows. */
static double learned_share(const n2_scores *s, size_t side) {
    const size_t n = s->n[side];
    const double learned = average_of(s->learned[side], n).var, all = average_of(s->f[side], n).var;
    return all > 0 ? fmin(1, sqrt(learned / all)) : 0;
}

/* Shares of what is extrapolated and of what a smaller penalty adds, and nats for rows where the
 * other sample has hardly any, or that have no neighbour of it. */
static const double TAIL_SHARE = 0.7, LOOSE_SHARE = 0.7, TAIL_NATS = 0.3, ALONE_NATS = 0.5;

/* What each combination of levels may have of its own is lost among few rows: nats for a
 * combination a row. */
static const double CELL_NATS = 1;

/* Of what another weight of the base takes off its divergence, or adds to it. */
static const double REWEIGHED_SHARE = 0.5;

static double squared(double x) { return x * x; }

/* Which log ratios a path is of: those that were cross-fitted, those whose Gaussian part has seen
 * all rows, or the cross-fitted Gaussian part alone. */
typedef enum path_of { PATH_HELD, PATH_SEEN_BASE, PATH_BASE } path_of;

static double path_log_ratio(const n2_scores *s, size_t side, size_t i, path_of of) {
    const double f = s->f[side][i], base = f - s->learned[side][i];
    return of == PATH_BASE ? base : f + (1 - s->replaced) * (s->base[side][i] - base);
}

/* (1 + M) D_alpha. */
static n2_estimate path(const n2_scores *s, double magnitude, path_of of) {
    double value = n2ce_bound_cap(magnitude), var = 0;
    for (size_t side = 0; side < 2; side++) {
        n2_sum sum = {0, 0}, square = {0, 0};
        term_fn *const fn = side ? num_term : den_term;
        const double arg[2] = {magnitude, 0};
        const terms of_side = of ? (terms){0} : terms_of(s, side, fn, magnitude, 0);
        for (size_t i = 0; i < s->n[side]; i++) {
            const double t = of ? fn(path_log_ratio(s, side, i, of), arg) : term_at(&of_side, i);
            n2_sum_add(&sum, t);
            n2_sum_add(&square, t * t);
        }
        const double n = (double)s->n[side], mean = n2_sum_value(&sum) / n;
        value -= mean;
        var += (n2_sum_value(&square) / n - mean * mean) / n;
    }
    return (n2_estimate){value, sqrt(var > 0 ? var : 0)};
}

/* ---- what half of the rows say -------------------------------------------- */

/* How much less half of the rows find of 2 JS, and the standard error of that. Pairs of rows are no
 * more independent rows than those that they were made of. */
static n2_estimate found_less(const n2_scores *s) {
    const double arg[2] = {1, 0};
    n2_estimate less = {0, 0};
    for (size_t side = 0; side < 2; side++) {
        term_fn *const fn = side ? num_term : den_term;
        n2_sum sum = {0, 0}, square = {0, 0};
        for (size_t i = 0; i < s->n[side]; i++) {
            const double t = fn(s->half[side][i], arg) - fn(s->f[side][i], arg);
            n2_sum_add(&sum, t);
            n2_sum_add(&square, t * t);
        }
        const double n = (double)s->n[side], mean = n2_sum_value(&sum) / n;
        less.value += mean;
        less.error +=
            fmax(n2_sum_value(&square) / n - mean * mean, 0) / (s->influence ? n : (double)s->n[1]);
    }
    return (n2_estimate){less.value / s->half_share, sqrt(less.error) / s->half_share};
}

/* Errors fall like a power of the rows, so that what the second half of them has found is about
 * what is still to be found. It is seen at M = 1, where large ratios do not disturb, beyond its
 * standard error; the share that is missing there is missing of all. What products of columns would
 * add to it is seen to be missing, and so is what trees would that were not taken. */
double n2_estimate_curve(const n2_scores *s) {
    static const double SOMETHING = 0.004; /* nats */
    const double seen = fmax(s->left_over, s->passed_over);
    if (!s->half[0] && !(seen > 0)) return 0;
    const double found = path(s, 1, PATH_HELD).value;
    const n2_estimate less = s->half[0] ? found_less(s) : (n2_estimate){0, 0};
    const double missing = fmax(less.value - less.error, seen);
    return found > SOMETHING ? fmin(1, fmax(missing, 0) / found) : 0;
}

/* The variance of any estimate that learns the ratio contains that of r over the other sample, here
 * of M r / (M + r) for an M that few ratios exceed. Pairs of rows are as good as without end. */
static double other_variance(const n2_scores *s, size_t side) {
    const double m = fmax(1, (double)s->n[1 - side] / 30);
    const double weight = fmin(1, 3 * learned_share(s, side));
    const double error = s->influence ? weight * balance(s, side, log(m)).error : 0;
    return error * error;
}

/* What is learned belongs into the ratio with probability c, of which f has c times as much: so the
 * number is c times what it would be with all of it, and has a standard deviation of its own. */
static double choice_error(const n2_scores *s, double with, double without) {
    const double c = s->certainty;
    return c > 0 && c < 1 ? fabs(with - without) * sqrt((1 - c) / c) : 0;
}

/* The share of the log ratio that may be wrong where it is extrapolated: what was learned of it,
 * and of two samples half of the Gaussian part where columns had to be mapped for it, seven tenths
 * of functions in its place. */
static double doubtful_share(const n2_scores *s, const n2_fit_record *r, size_t side) {
    const double learned = learned_share(s, side), mapped = r->mapped > 0 ? 0.5 : 0;
    return s->influence ? fmax(learned, fmax(mapped, 0.7 * s->replaced)) : learned;
}

/* What an interval has to know of a learned part besides. */
static double fit_variance(const n2_scores *s, const n2_fit_record *r, size_t side, double gap,
                           n2_quality *q) {
    const double loose = s->influence || side ? LOOSE_SHARE * fmax(r->looser[side], 0) : 0;
    q->fitting = sqrt(0.25 * gap * gap + loose * loose);
    const double alone = ALONE_NATS * fmax(r->second.alone[side] - 0.1, 0);
    const double learned = doubtful_share(s, r, side);
    double share;
    const double beyond = TAIL_SHARE * extrapolated(s, side, &share);
    q->tail = learned * (beyond + alone) + fmin(1, 3 * learned) * TAIL_NATS * share;
    return q->fitting * q->fitting + q->tail * q->tail;
}

/* With many columns for the rows the folds' Gaussian parts are noisy, and what is learned beside
 * them takes some of that back: then what they lack is counted twice. Half of what is beyond
 * chance; of pairs the number is put in the middle. */
static double counted_twice(double more, double sampling) {
    return copysign(0.5 * fmax(fabs(more) - 2 * sampling, 0), more);
}

/* The variance from sampling rises with the number: log ratios that are too small vary too little.
 * What is added is that of a number two standard errors higher, at most twice of what is there. */
static double at_a_larger_number(double value, double sampling, double error) {
    return error > 0 ? squared(sampling) * 2 * error / (fabs(value) + error) : 0;
}

/* Half of the gap between rows that were seen and rows that were not is taken off as far as it is
 * one of first order: what is more is in the interval alone, and makes the number doubtful. */
static double between(double gap, double value) {
    return copysign(fmin(0.5 * fabs(gap), 0.1 + 0.25 * fabs(value)), gap);
}

/* Nobody knows a mean of rows better: a ratio of 1 everywhere, which has no variance, may be wrong
 * by as much. */
static double least_error(const n2_scores *s) {
    return 0.5 / (double)(s->n[0] < s->n[1] ? s->n[0] : s->n[1]);
}

/* A balance that is clearly not 0 is corrected for to first order; the ratio that it is of may be
 * off by more. */
static double clearly_off(const n2_quality *q) {
    return fmax(fabs(q->balance) - 2 * q->balance_error, 0);
}

/* What was learned puts the number right between rows that were seen and rows that were not, and
 * has errors of its own; e->error is a variance here. `more`: what the Gaussian part of all rows
 * adds. */
static void add_learned(const n2_scores *s, const n2_fit_record *r, size_t side, double more,
                        double gaussian, n2_quality *q, n2_estimate *e) {
    const double gap = optimism(s, r, side, q);
    e->value += between(gap, e->value); /* too high as unseen rows are too low */
    const double twice = counted_twice(more, q->sampling);
    if (!s->influence) e->value -= twice;
    q->choice = isfinite(gaussian) ? choice_error(s, e->value, gaussian) : 0;
    if (isfinite(gaussian) && r->reweighed) /* one weight for middle and tails may be too flat */
        q->choice = hypot(q->choice, REWEIGHED_SHARE * (e->value - gaussian));
    const double fit = fit_variance(s, r, side, gap, q);
    q->curve = n2_estimate_curve(s) * fabs(e->value);
    e->error += squared(twice) + fit + squared(q->choice) + squared(q->curve);
    e->error += squared(clearly_off(q));
}

/* Both directions of KL are the same sum with the roles exchanged: `side` is the sample
 * the log ratio is averaged over, 1 for KL(num || den). */
static n2_estimate kl(const n2_scores *s, const n2_fit_record *r, size_t side, n2_quality *q) {
    const double sign = side ? 1 : -1;
    const double gaussian = side ? r->gaussian : r->gaussian_reverse;
    const double *influence = side ? s->influence : s->reverse;
    const average f = average_of(s->f[side], s->n[side]);
    const average g = average_of(s->learned[side], s->n[side]);
    /* what the Gaussian part of all rows, without bias, says more than that of the folds */
    const double more =
        isfinite(gaussian) ? (1 - s->replaced) * (gaussian - sign * (f.mean - g.mean)) : 0;
    n2_estimate e = {sign * f.mean + more, f.var / f.n};
    *q = (n2_quality){0};
    weigh(s, 1 - side, sign, q);
    choose_balance(s, side, sqrt(e.error), q);
    /* One step towards the functional's own optimum: the error that is left is of second
     * order in that of f. */
    const bool learned = r->learned;
    const bool off = isfinite(gaussian) && !(r->pooled_off > 0) &&
                     fabs(q->balance) > 3 * q->balance_error && fabs(sign * f.mean - gaussian) < 1;
    double other = learned || off || !influence ? q->balance_error * q->balance_error : 0;
    if (influence) other += average_of(influence, s->n[1 - side]).var / (double)s->n[1 - side];
    if (learned) other = fmax(other, other_variance(s, side));
    e.error += other;
    q->sampling = sqrt(e.error);
    if (learned || off) e.value -= correction(s, r, side, q);
    if (learned) add_learned(s, r, side, more, gaussian, q, &e);
    if (learned || r->mapped > 0)
        e.error += at_a_larger_number(e.value, q->sampling, sqrt(e.error));
    e.error += 0.25 * r->pooled_off * r->pooled_off + squared(CELL_NATS * s->cells);
    if (isfinite(gaussian)) e.error += squared((1 - s->replaced) * r->second_order);
    e.error = fmax(sqrt(e.error), least_error(s));
    return e;
}

n2_estimate n2_estimate_kl(const n2_scores *s, const n2_fit_record *r, n2_quality *q) {
    const n2_estimate e = kl(s, r, 1, q);
    const double m = r->used.critic.magnitude;
    size_t saturated = 0;
    for (size_t i = 0; i < s->n[1]; i++) saturated += s->f[1][i] > log(m);
    q->saturated = (double)saturated / (double)s->n[1];
    q->cap = n2ce_bound_cap(m);
    q->bound = n2_estimate_path(s, m).value;
    return e;
}

n2_estimate n2_estimate_reverse_kl(const n2_scores *s, const n2_fit_record *r, n2_quality *q) {
    return kl(s, r, 0, q);
}

/* Rows that a fit has seen flatter it as much as rows that it has not seen wrong it: the
 * mean of both is free of that to first order, and a part of that is the error that is left. */
n2_estimate n2_estimate_path(const n2_scores *s, double magnitude) {
    static const double SECOND_ORDER = 0.5;
    n2_estimate e = path(s, magnitude, PATH_HELD);
    const double held = e.value, sampling = e.error;
    const double base = s->base[0] ? 0.5 * (path(s, magnitude, PATH_SEEN_BASE).value - held) : 0;
    double fitting = 0, choice = 0;
    if (s->seen[0]) {
        const n2_scores seen = seen_of(s);
        fitting = 0.5 * (path(&seen, magnitude, PATH_HELD).value - held);
        if (s->certainty < 1) choice = choice_error(s, held, path(s, magnitude, PATH_BASE).value);
    }
    e.value = held + base + fitting;
    const double left = s->seen[0] ? base + fitting : SECOND_ORDER * base;
    const double cells = CELL_NATS * s->cells * magnitude / (1 + magnitude);
    const double curve = n2_estimate_curve(s) * held;
    double var = squared(sampling) + squared(left) + squared(choice) + squared(curve);
    if (s->seen[0]) var += at_a_larger_number(e.value, sampling, sqrt(var));
    e.error = fmax(sqrt(var + squared(cells)), least_error(s));
    return e;
}
