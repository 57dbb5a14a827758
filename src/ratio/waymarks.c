/* Waymarks between two Gaussians, as far from one another as each from the next.
 *
 * The divergence of two waymarks grows when either moves away from the other. So from each
 * waymark there is one next at a given step, the walk with a greater step is ahead everywhere,
 * and there is one step with which it arrives. */
#include "gauss.h"

#include <math.h>

/* The waymark a: what it has of the denominator's variance, a^2, and of the numerator's, 1 - a^2.
 * Of a variance that is many powers of ten above or below the other the smaller part decides, so
 * both are kept. */
typedef struct waymark {
    double aa, ss;
} waymark;

static const waymark DATA = {0, 1}, NOISE = {1, 0};

static waymark waymark_at(double a) { return (waymark){a * a, (1 - a) * (1 + a)}; }

/* By how much more of q is the denominator: the difference of what is smaller is more exact. */
static double between(waymark p, waymark q) {
    return fmax(p.aa, q.aa) < fmax(p.ss, q.ss) ? q.aa - p.aa : p.ss - q.ss;
}

/* A divergence and its derivative by q.aa. */
typedef struct divergence {
    double kl, slope;
} divergence;

/* x - ln(1 + x) of a small x, in which the two lose no digits to one another. */
static double curvature(double x) {
    const double z = x / (2 + x), zz = z * z; /* ln(1 + x) = 2 artanh z */
    return x * z - 2 * z * zz * (1.0 / 3 + zz * (1.0 / 5 + zz * (1.0 / 7 + zz * (1.0 / 9))));
}

/* KL(p || q). Of a product of ratios of variances the logarithm is taken when it is huge or tiny.
 */
static divergence diverge(const n2_gauss *g, waymark p, waymark q) {
    static const double SMALL = 0.1, HUGE_PRODUCT = 1e100, TINY_PRODUCT = 1e-100;
    const double w = between(p, q), s = sqrt(q.ss), gap = w != 0 ? w / (sqrt(p.ss) + s) : 0;
    double first = 0, second = 0, shift = 0, bend = 0, product = 1;
    for (size_t i = 0; i < g->d; i++) {
        const double lambda = g->lambda[i], per_variance = 1 / (q.ss * lambda + q.aa);
        const double more = (lambda - 1) * per_variance, x = w * more; /* p by q is 1 + x */
        const double far = g->delta[i] * g->delta[i] * per_variance;
        second += x * more;
        shift += far;
        bend += far * more;
        if (fabs(x) < SMALL) {
            first += curvature(x);
            continue;
        }
        first += x;
        product *= (p.ss * lambda + p.aa) * per_variance;
        if (product < HUGE_PRODUCT && product > TINY_PRODUCT) continue;
        first -= log(product);
        product = 1;
    }
    return (divergence){0.5 * (first - log(product) + gap * gap * shift),
                        0.5 * (second + gap * (shift / s + gap * bend))};
}

double n2_gauss_waymark_kl(const n2_gauss *g, double from, double to) {
    return diverge(g, waymark_at(from), waymark_at(to)).kl;
}

void n2_gauss_waymark_ratio(const n2_gauss *g, double from, double to, double *a, double *b,
                            double *c) {
    const waymark p = waymark_at(from), q = waymark_at(to);
    const double p_keeps = sqrt(p.ss), q_keeps = sqrt(q.ss);
    *c = 0;
    for (size_t i = 0; i < g->d; i++) {
        const double p_mean = p_keeps * g->delta[i], p_var = p.ss * g->lambda[i] + p.aa;
        const double q_mean = q_keeps * g->delta[i], q_var = q.ss * g->lambda[i] + q.aa;
        a[i] = 0.5 * (1 / q_var - 1 / p_var);
        b[i] = p_mean / p_var - q_mean / q_var;
        *c += 0.5 * (q_mean * q_mean / q_var - p_mean * p_mean / p_var + log(q_var / p_var));
    }
}

/* ---- one stage ---- */

/* The waymark that is the share e^x / (1 + e^x) of the way from p to the noise. */
static waymark onward(waymark p, double x) {
    return (waymark){p.aa + p.ss / (1 + exp(-x)), p.ss / (1 + exp(x))};
}

/* How far onward from p, as x above, a divergence of `step` is; to the noise it is more. Newton's
 * method from a guess, on logarithms, of which one is nearly linear in the other. */
static double stage_from(const n2_gauss *g, waymark p, double step, double guess) {
    enum { MOST_GUESSES = 100 };
    static const double FARTHEST = 200, NEAR = 1e-7; /* whose square is rounding */
    double lo = -FARTHEST, hi = FARTHEST, x = guess;
    for (int i = 0; i < MOST_GUESSES; i++) {
        const waymark q = onward(p, x);
        const divergence d = diverge(g, p, q);
        const double by_x = d.slope * between(p, q) * (q.ss / p.ss);
        const double too_far = log(d.kl / step) * d.kl / by_x;
        if (fabs(too_far) <= NEAR) return x - too_far;
        if (d.kl > step)
            hi = x;
        else
            lo = x;
        x -= too_far;
        if (!(x > lo && x < hi)) x = 0.5 * (lo + hi);
    }
    return x;
}

/* ---- all stages ---- */

/* Stage k leads from alpha[k + 1] to alpha[k]. While the step is searched for, alpha[k] is how far
 * onward that was in the last walk, where the next walk begins to look. */
typedef struct search {
    const n2_gauss *g;
    size_t stages;
    double *alpha;
} search;

/* Walks from the data towards the noise with steps of e^x, all stages but the last. Returns
 * ln(stages needed / stages), which falls and is continuous in x: as divergences are nearly squares
 * of distances, what is left at the end counts as the root of its part of a step. */
static double walk(const search *s, double x) {
    const double step = exp(x);
    waymark p = DATA;
    for (size_t k = s->stages - 1;; k--) {
        const double rest = diverge(s->g, p, NOISE).kl;
        if (k == 0 || rest <= step) {
            const double needed = (double)(s->stages - 1 - k) + sqrt(fmax(rest, 0) / step);
            return log(needed / (double)s->stages);
        }
        s->alpha[k] = stage_from(s->g, p, step, s->alpha[k]);
        p = onward(p, s->alpha[k]);
    }
}

/* Finds the step that arrives with the last stage, by secants of logarithms. An end that stays
 * where it is counts half, or it might stay for long. The first guess is right if only means
 * differ. */
static void find_step(const search *s, double kl) {
    enum { MOST_WALKS = 60 };
    static const double ENOUGH = 1e-13, LESS = 2.5;
    const double log_stages = log((double)s->stages);
    double hi = log(kl), at_hi = -log_stages, lo = hi - 2 * log_stages, at_lo = walk(s, lo);
    for (int i = 0; i < MOST_WALKS && at_lo < 0; i++, lo -= LESS, at_lo = walk(s, lo)) {
        hi = lo;
        at_hi = at_lo;
    }
    double before = 0;
    for (int i = 0; i < MOST_WALKS && hi - lo > ENOUGH; i++) {
        const double x = lo + (hi - lo) * at_lo / (at_lo - at_hi), at = walk(s, x);
        if (fabs(at) <= ENOUGH) return;
        if (at > 0) {
            lo = x;
            at_lo = at;
            if (before > 0) at_hi *= 0.5;
        } else {
            hi = x;
            at_hi = at;
            if (before < 0) at_lo *= 0.5;
        }
        before = at;
    }
}

/* Puts in alpha[1] .. the waymarks of the last walk. */
static void place_waymarks(const search *s) {
    waymark p = DATA;
    for (size_t k = s->stages - 1; k > 0; k--) {
        p = onward(p, s->alpha[k]);
        s->alpha[k] = sqrt(p.aa);
    }
    for (size_t k = 1; k < s->stages; k++) /* nearer to one another than numbers are */
        if (!(s->alpha[k] < s->alpha[k - 1])) s->alpha[k] = nextafter(s->alpha[k - 1], 0);
}

void n2_gauss_waymarks(const n2_gauss *g, size_t stages, double *alpha) {
    static const double NOTHING = 1e-20;
    const double kl = n2_gauss_waymark_kl(g, 0, 1);
    const bool apart = kl > NOTHING && isfinite(kl);
    const search s = {g, stages, alpha};
    for (size_t k = 0; k <= stages; k++) alpha[k] = 1 - (double)k / (double)stages;
    if (!apart || stages < 2) return;
    for (size_t k = 1; k < stages; k++) alpha[k] = 0; /* half of the way, to begin with */
    find_step(&s, kl);
    place_waymarks(&s);
}
