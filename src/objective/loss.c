/* The N2CE family: from logits to loss, gradient and diagnostics.
 *
 *     L = mean_num w l_num(f) + mean_den w l_den(f) + lambda (mean_num f^2 + mean_den f^2)
 *
 *                 l_num                     l_den                      -dl_num     dl_den
 *     n2ce        softplus(ln M - f)        M softplus(f - ln M)       M/(M+r)     M r/(M+r)
 *     nwj         -f                        exp(f)                     1           r
 *     neg-rew.    softplus(-f)              M softplus(f - ln M)       1/(1+r)     M r/(M+r)
 *
 * with r = exp(f). All members are one formula with two magnitudes, one for each
 * side: n2ce (M, M), nwj (infinity, infinity), neg-reweight (1, M). Everything is
 * written in r/M and M/r, so that neither ln M nor a difference of large numbers
 * costs digits. */
#include "base/ctx.h"
#include "base/numerics.h"
#include "terms.h"

#include <float.h>
#include <math.h>

/* One side's logits in either precision. */
typedef struct side {
    const char *name; /* for messages */
    const double *f64;
    const float *f32;
    double *grad64;
    float *grad32;
    size_t n;
    const uint32_t *stage;
} side;

static double logit(const side *s, size_t i) { return s->f64 ? s->f64[i] : (double)s->f32[i]; }

static void magnitudes(const n2ce_objective *o, double *m_num, double *m_den) {
    *m_num = *m_den = o->family == N2CE_FAMILY_NWJ ? N2_INFINITY : o->magnitude;
    if (o->family == N2CE_FAMILY_NEG_REWEIGHT) *m_num = 1;
}

/* ---- checks ------------------------------------------------------------- */

static n2ce_status check_stages(n2ce_ctx *ctx, const n2ce_objective *o, const side *s) {
    if (!s->stage)
        return n2_fail(ctx, N2CE_EINVAL, "There are %zu stages but no stage indices for the %s.",
                       o->n_stages, s->name);
    for (size_t i = 0; i < s->n; i++)
        if (s->stage[i] >= o->n_stages)
            return n2_fail(ctx, N2CE_EINVAL,
                           "Stage %u of %s sample %zu is out of range: there are %zu stages.",
                           (unsigned)s->stage[i], s->name, i, o->n_stages);
    return N2CE_OK;
}

static n2ce_status check_side(n2ce_ctx *ctx, const n2ce_objective *o, const side *s) {
    if (s->n == 0 || (!s->f64 && !s->f32))
        return n2_fail(ctx, N2CE_EINVAL, "The %s has no logits; each side needs at least one.",
                       s->name);
    for (size_t i = 0; i < s->n; i++)
        if (!isfinite(logit(s, i)))
            return n2_fail(ctx, N2CE_ENAN,
                           "Logit %zu of the %s is %g; log ratios must be finite. Look for a "
                           "diverged network or a bad input row.",
                           i, s->name, logit(s, i));
    return o->n_stages ? check_stages(ctx, o, s) : N2CE_OK;
}

static n2ce_status check_objective(n2ce_ctx *ctx, const n2ce_objective *o) {
    if (o->struct_size != sizeof *o)
        return n2_fail(ctx, N2CE_EINVAL,
                       "The objective's struct_size is %zu, not %zu; start from "
                       "N2CE_OBJECTIVE_INIT.",
                       o->struct_size, sizeof *o);
    if ((unsigned)o->family > N2CE_FAMILY_NEG_REWEIGHT)
        return n2_fail(ctx, N2CE_EINVAL, "Family %d is unknown.", (int)o->family);
    if (o->family != N2CE_FAMILY_NWJ && !(o->magnitude >= 1 && o->magnitude <= DBL_MAX))
        return n2_fail(ctx, N2CE_EINVAL,
                       "The magnitude M is %g; it must be finite and at least 1 (1 is vanilla "
                       "NCE; for the limit of infinity use the NWJ family).",
                       o->magnitude);
    if (!(o->regularisation >= 0 && o->regularisation <= DBL_MAX))
        return n2_fail(ctx, N2CE_EINVAL, "The regularisation is %g; it must be finite and >= 0.",
                       o->regularisation);
    if (o->n_stages && !o->stage_weights)
        return n2_fail(ctx, N2CE_EINVAL, "There are %zu stages but no stage weights.", o->n_stages);
    for (size_t k = 0; k < o->n_stages; k++)
        if (!(o->stage_weights[k] >= 0 && o->stage_weights[k] <= DBL_MAX))
            return n2_fail(ctx, N2CE_EINVAL, "Stage weight %zu is %g; it must be finite and >= 0.",
                           k, o->stage_weights[k]);
    return N2CE_OK;
}

/* ---- loss and gradient --------------------------------------------------- */

static double stage_weight(const n2ce_objective *o, const side *s, size_t i) {
    return o->n_stages ? o->stage_weights[s->stage[i]] : 1;
}

/* Stores a derivative; false if it does not fit. */
static bool store(const side *s, size_t i, double g) {
    if (s->grad64) s->grad64[i] = g;
    if (s->grad32) {
        s->grad32[i] = (float)g;
        return isfinite(s->grad32[i]);
    }
    return isfinite(g);
}

/* Adds one side's mean loss to the total and writes its gradient. */
static bool accumulate(const n2ce_objective *o, const side *s, double m, bool is_num,
                       double *total) {
    const double n = (double)s->n, lambda = o->regularisation;
    const bool wants_gradient = s->grad64 || s->grad32;
    bool fits = true;
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < s->n; i++) {
        const double f = logit(s, i), w = stage_weight(o, s, i);
        const double term = w > 0 ? w * (is_num ? n2_num_term(f, m) : n2_den_term(f, m)) : 0;
        n2_sum_add(&sum, term + lambda * f * f);
        if (!wants_gradient) continue;
        const double slope = is_num ? -n2_num_weight(f, m) : n2_den_weight(f, m);
        fits &= store(s, i, ((w > 0 ? w * slope : 0) + 2 * lambda * f) / n);
    }
    *total += n2_sum_value(&sum) / n;
    return fits;
}

/* ---- diagnostics --------------------------------------------------------- */

typedef struct moments {
    double mean_f, mean_term, mean_term_1, saturated;
} moments;

static moments side_moments(const side *s, double m, bool is_num) {
    n2_sum f_sum = {0, 0}, term = {0, 0}, term_1 = {0, 0};
    size_t saturated = 0;
    const double log_m = log(m);
    for (size_t i = 0; i < s->n; i++) {
        const double f = logit(s, i);
        n2_sum_add(&f_sum, f);
        n2_sum_add(&term, is_num ? n2_num_term(f, m) : n2_den_term(f, m));
        n2_sum_add(&term_1, is_num ? n2_num_term(f, 1) : n2_den_term(f, 1));
        saturated += f > log_m;
    }
    const double n = (double)s->n;
    return (moments){n2_sum_value(&f_sum) / n, n2_sum_value(&term) / n, n2_sum_value(&term_1) / n,
                     (double)saturated / n};
}

/* (sum w)^2 / sum w^2 with the largest weight scaled to 1, so that nothing
 * overflows or vanishes: w = M r/(M+r) rises with f, so its logarithm at the
 * largest logit is the scale. */
static double effective_samples(const side *s, double m) {
    const double log_m = isinf(m) ? 0 : log(m);
    double top = -N2_INFINITY;
    for (size_t i = 0; i < s->n; i++) top = fmax(top, logit(s, i));
    const double log_top = isinf(m) ? top : n2_log_sigmoid(top - log_m);
    n2_sum sum = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < s->n; i++) {
        const double f = logit(s, i);
        const double w = exp((isinf(m) ? f : n2_log_sigmoid(f - log_m)) - log_top);
        n2_sum_add(&sum, w);
        n2_sum_add(&squares, w * w);
    }
    return n2_sum_value(&sum) * n2_sum_value(&sum) / n2_sum_value(&squares);
}

static n2ce_diagnostics diagnose(const n2ce_objective *o, const side *num, const side *den) {
    const bool nwj = o->family == N2CE_FAMILY_NWJ;
    const double m = nwj ? N2_INFINITY : o->magnitude;
    const moments a = side_moments(num, m, true), b = side_moments(den, m, false);
    const double loss = a.mean_term + b.mean_term, loss_1 = a.mean_term_1 + b.mean_term_1;
    return (n2ce_diagnostics){
        .mean_num = a.mean_f,
        .mean_den = b.mean_f,
        .kl_bound = (nwj ? 1 : n2ce_bound_cap(m)) - loss,
        .kl_cap = n2ce_bound_cap(m),
        .js_bound = log(2) - loss_1 / 2,
        .js_cap = log(2),
        .ess_den = effective_samples(den, m),
        .saturated_num = a.saturated,
        .saturated_den = b.saturated,
    };
}

/* ---- the two doors ------------------------------------------------------- */

static n2ce_status compute(n2ce_ctx *ctx, const n2ce_objective *o, const side *num, const side *den,
                           double *loss, n2ce_diagnostics *diagnostics) {
    if (!loss) return n2_fail(ctx, N2CE_EINVAL, "The loss has nowhere to go: loss is NULL.");
    N2_TRY(check_objective(ctx, o));
    N2_TRY(check_side(ctx, o, num));
    N2_TRY(check_side(ctx, o, den));
    double m_num, m_den, total = 0;
    magnitudes(o, &m_num, &m_den);
    const bool num_fits = accumulate(o, num, m_num, true, &total);
    const bool den_fits = accumulate(o, den, m_den, false, &total);
    *loss = total;
    if (diagnostics) *diagnostics = diagnose(o, num, den);
    if (isfinite(total) && num_fits && den_fits) return N2CE_OK;
    return n2_fail(ctx, N2CE_ERANGE,
                   "The %s overflows: a log ratio is too large for this family. Use the n2ce "
                   "family, whose weights are bounded by M, or regularise the ratio.",
                   isfinite(total) ? "gradient" : "loss");
}

n2ce_status n2ce_loss_f64(n2ce_ctx *ctx, const n2ce_objective *objective,
                          const n2ce_logits_f64 *logits, double *loss,
                          n2ce_diagnostics *diagnostics) {
    if (!objective || !logits) return n2_fail(ctx, N2CE_EINVAL, "Objective or logits are NULL.");
    const side num = {.name = "numerator",
                      .f64 = logits->num,
                      .grad64 = logits->grad_num,
                      .n = logits->n_num,
                      .stage = objective->stage_num};
    const side den = {.name = "denominator",
                      .f64 = logits->den,
                      .grad64 = logits->grad_den,
                      .n = logits->n_den,
                      .stage = objective->stage_den};
    return compute(ctx, objective, &num, &den, loss, diagnostics);
}

n2ce_status n2ce_loss_f32(n2ce_ctx *ctx, const n2ce_objective *objective,
                          const n2ce_logits_f32 *logits, double *loss,
                          n2ce_diagnostics *diagnostics) {
    if (!objective || !logits) return n2_fail(ctx, N2CE_EINVAL, "Objective or logits are NULL.");
    const side num = {.name = "numerator",
                      .f32 = logits->num,
                      .grad32 = logits->grad_num,
                      .n = logits->n_num,
                      .stage = objective->stage_num};
    const side den = {.name = "denominator",
                      .f32 = logits->den,
                      .grad32 = logits->grad_den,
                      .n = logits->n_den,
                      .stage = objective->stage_den};
    return compute(ctx, objective, &num, &den, loss, diagnostics);
}
