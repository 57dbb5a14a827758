#include "fit.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "choose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- scores -------------------------------------------------------------- */

void n2_scores_free(n2_scores *s) {
    for (size_t side = 0; side < 2; side++) {
        n2_free(s->ctx, s->f[side]);
        n2_free(s->ctx, s->learned[side]);
        n2_free(s->ctx, s->base[side]);
    }
    n2_free(s->ctx, s->influence);
    n2_free(s->ctx, s->reverse);
    n2_free(s->ctx, s->terms);
    n2_explanation_free(&s->explanation);
    *s = (n2_scores){0};
}

/* Pairs of a joint sample that stand for the product of the margins: row i with rows
 * i + 1 .. i + SHIFTS of its fold. */
enum { SHIFTS = 20, MOST_PAIRS = 100000 };

static n2ce_status scores_new(n2ce_ctx *ctx, size_t n_num, size_t n_den, size_t dx, n2_scores *s) {
    size_t shifts = MOST_PAIRS / n_num;
    shifts = shifts < 1 ? 1 : shifts > SHIFTS ? SHIFTS : shifts;
    *s = (n2_scores){.ctx = ctx, .n = {dx ? shifts * n_num : n_den, n_num}};
    for (size_t side = 0; side < 2; side++) {
        s->f[side] = n2_alloc(ctx, s->n[side], sizeof(double));
        s->learned[side] = n2_alloc(ctx, s->n[side], sizeof(double));
        if (!s->f[side] || !s->learned[side]) return N2CE_ENOMEM;
    }
    s->terms = n2_alloc(ctx, s->n[0] > s->n[1] ? s->n[0] : s->n[1], sizeof(double));
    return s->terms ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- fitting ------------------------------------------------------------- */

typedef struct fitter {
    n2ce_ctx *ctx;
    n2_fit_options o; /* resolved */
    n2_fit_record *record;
    n2_ratio *ratio;
    n2_scores *scores;
    n2_rows_view num, den; /* features */
    size_t dx;
    n2_fold_sums *sums[2];         /* of den (NULL with dx) and num, for the Gaussian part */
    n2_gauss *base[N2_MOST_FOLDS]; /* of this fold and of those to come */
    n2_gauss_scoring *scoring[2 * N2_MOST_FOLDS]; /* of folds up to, not including, `scored` */
    size_t n_scoring, scored;
    double start;
    size_t fold;
} fitter;

/* Features of all rows, where the table's values were if they fit there. Either way the table has
 * lost its memory afterwards. */
static n2ce_status make_features(n2ce_ctx *ctx, const n2_features *f, n2_table *t,
                                 n2_rows_view *out) {
    double *from = t->x, *x = from;
    if (!n2_features_fit_in_place(f)) x = n2_alloc(ctx, t->rows * f->width, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    *out = (n2_rows_view){x, t->rows, f->width};
    t->x = NULL;
    const n2ce_status status = n2_features_apply(f, from, t->rows, x);
    if (x != from) n2_free(ctx, from);
    return status;
}

static void fold_range(size_t n, size_t folds, size_t k, size_t range[2]) {
    range[0] = n * k / folds;
    range[1] = n * (k + 1) / folds;
}

static n2ce_status sum_folds(fitter *f, size_t side) {
    const n2_rows_view rows = side ? f->num : f->den;
    size_t bounds[N2_MOST_FOLDS + 1], range[2];
    for (size_t k = 0; k < f->o.folds; k++) {
        fold_range(rows.n, f->o.folds, k, range);
        bounds[k] = range[0];
        bounds[k + 1] = range[1];
    }
    return n2_fold_sums_new(f->ctx, rows, bounds, f->o.folds, &f->sums[side]);
}

/* Of all rows but those of a fold, or of all; with dx of the joint sample alone. */
static n2ce_status both_moments(const fitter *f, size_t fold, n2_moments m[2]) {
    m[0] = (n2_moments){0};
    N2_TRY(n2_moments_without(f->sums[1], fold, &m[1]));
    n2_moments_shrink(&m[1], f->num.d);
    if (f->dx) return N2CE_OK;
    const n2ce_status status = n2_moments_without(f->sums[0], fold, &m[0]);
    if (status == N2CE_OK)
        n2_moments_shrink(&m[0], f->num.d);
    else
        n2_moments_free(f->ctx, &m[1]);
    return status;
}

static void free_moments(const fitter *f, n2_moments *num, n2_moments *den, size_t n) {
    for (size_t k = 0; k < n; k++) {
        n2_moments_free(f->ctx, &num[k]);
        n2_moments_free(f->ctx, &den[k]);
    }
}

/* Gaussian parts learned from all rows but those of a fold, for each of n. */
static n2ce_status make_bases(const fitter *f, const size_t *without, size_t n, n2_gauss **out) {
    n2_moments num[N2_MOST_FOLDS + 1] = {{0}}, den[N2_MOST_FOLDS + 1] = {{0}};
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < n && status == N2CE_OK; k++) {
        n2_moments m[2] = {{0}};
        status = both_moments(f, without[k], m);
        den[k] = m[0];
        num[k] = m[1];
    }
    if (status == N2CE_OK) status = n2_gauss_new_all(f->ctx, f->num.d, f->dx, n, num, den, out);
    free_moments(f, num, den, n);
    return status;
}

static void free_sums(fitter *f) {
    for (size_t side = 0; side < 2; side++) {
        n2_fold_sums_free(f->sums[side]);
        f->sums[side] = NULL;
    }
}

/* The Gaussian part of all rows, and at the same time those of the folds, on as many threads, if
 * that takes no more memory than the rows do. */
static n2ce_status make_first_bases(fitter *f) {
    size_t without[N2_MOST_FOLDS + 1] = {N2_ALL_FOLDS}, n = 1;
    n2_gauss *made[N2_MOST_FOLDS + 1];
    if (n2_gauss_numbers(f->num.d) * (f->o.folds + 1) <= f->num.n * f->num.d)
        for (; n <= f->o.folds; n++) without[n] = n - 1;
    N2_TRY(make_bases(f, without, n, made));
    f->ratio->base = made[0];
    for (size_t k = 1; k < n; k++) f->base[k - 1] = made[k];
    if (n > 1) free_sums(f);
    return N2CE_OK;
}

/* The Gaussian part for the fold. */
static n2ce_status make_base(fitter *f) {
    return f->base[f->fold] ? N2CE_OK : make_bases(f, &f->fold, 1, &f->base[f->fold]);
}

/* The rows' scores by the Gaussian part that has seen them. */
static n2ce_status score_by_all(fitter *f) {
    const n2_rows_view rows[] = {f->den, f->num};
    for (size_t side = 0; side < 2; side++) {
        f->scores->base[side] = n2_alloc(f->ctx, rows[side].n, sizeof(double));
        if (!f->scores->base[side]) return N2CE_ENOMEM;
        N2_TRY(n2_gauss_score(f->ratio->base, rows[side].x, rows[side].n, f->scores->base[side]));
    }
    return N2CE_OK;
}

static n2ce_status gaussian_divergences(const fitter *f, const n2_moments m[2]) {
    n2_fit_record *r = f->record;
    const size_t d = f->num.d;
    r->gaussian_reverse = N2_NAN;
    if (f->dx) return n2_gauss_mi(f->ctx, d, f->dx, &m[1], &r->gaussian);
    N2_TRY(n2_gauss_kl(f->ctx, d, &m[1], &m[0], &r->gaussian));
    return n2_gauss_kl(f->ctx, d, &m[0], &m[1], &r->gaussian_reverse);
}

/* Gaussian divergences of the whole samples, and how each row moves them. */
static n2ce_status gaussian_facts(fitter *f) {
    n2_moments m[2];
    N2_TRY(sum_folds(f, 1));
    if (!f->dx) N2_TRY(sum_folds(f, 0));
    N2_TRY(both_moments(f, N2_ALL_FOLDS, m));
    const size_t d = f->num.d;
    n2ce_status status = gaussian_divergences(f, m);
    if (status == N2CE_OK) status = make_first_bases(f);
    n2_gauss *reverse = NULL;
    if (status == N2CE_OK && !f->dx) status = score_by_all(f);
    if (status == N2CE_OK && !f->dx) {
        f->scores->influence = n2_alloc(f->ctx, f->den.n, sizeof(double));
        f->scores->reverse = n2_alloc(f->ctx, f->num.n, sizeof(double));
        status = f->scores->influence && f->scores->reverse ? N2CE_OK : N2CE_ENOMEM;
        if (status == N2CE_OK) status = n2_gauss_new(f->ctx, d, &m[0], &m[1], &reverse);
        if (status == N2CE_OK)
            status =
                n2_gauss_influence_den(f->ratio->base, f->den.x, f->den.n, f->scores->influence);
        if (status == N2CE_OK)
            status = n2_gauss_influence_den(reverse, f->num.x, f->num.n, f->scores->reverse);
    }
    n2_gauss_free(reverse);
    n2_moments_free(f->ctx, &m[0]);
    n2_moments_free(f->ctx, &m[1]);
    return status;
}

static void fold_progress(void *user, double share) {
    const fitter *f = user;
    n2_progress(f->ctx, (double)f->fold + share, (double)f->o.folds);
}

/* Rows first .. first + n - 1 of a fold, each with the y of the row `shift` rows on in the fold. */
typedef struct pairing {
    const fitter *f;
    size_t begin, rows; /* of the fold */
    size_t first, n, shift;
    double *x;
} pairing;

enum { PAIR_BLOCK = 256 };

static void pair_block(void *arg, size_t item, int worker) {
    (void)worker;
    const pairing *p = arg;
    const size_t d = p->f->num.d, dx = p->f->dx, begin = item * PAIR_BLOCK;
    const size_t end = p->n - begin < PAIR_BLOCK ? p->n : begin + PAIR_BLOCK;
    const double *rows = p->f->num.x + p->begin * d;
    for (size_t i = begin; i < end; i++) {
        const double *x = rows + (p->first + i) * d;
        const double *y = rows + (p->first + i + p->shift) % p->rows * d;
        memcpy(p->x + i * d, x, dx * sizeof *x);
        memcpy(p->x + i * d + dx, y + dx, (d - dx) * sizeof *x);
    }
}

static n2ce_status pair_rows(pairing *p) {
    return n2_parallel_for(p->f->ctx, (p->n + PAIR_BLOCK - 1) / PAIR_BLOCK, pair_block, p);
}

/* ---- by the Gaussian part ---- */

static void find_fold(const fitter *f, size_t fold, size_t held[2][2]) {
    fold_range(f->num.n, f->o.folds, fold, held[0]);
    fold_range(f->den.n, f->o.folds, fold, held[1]);
}

/* All share what workers need; the two sides of a fold have more in common. */
static n2ce_status add_scoring(fitter *f, size_t fold, const n2_score_rows *rows) {
    const size_t n = f->n_scoring;
    const n2_gauss_scoring *lender = n == 0 ? NULL : f->scoring[n % 2 && !f->dx ? n - 1 : 0];
    N2_TRY(n2_gauss_scoring_new(f->base[fold], rows, lender, &f->scoring[n]));
    f->n_scoring++;
    return N2CE_OK;
}

/* The rows of a fold, by a Gaussian part that has not seen them. */
static n2ce_status add_fold_scoring(fitter *f, size_t fold) {
    const size_t d = f->num.d, shifts = f->scores->n[0] / f->num.n;
    double *const *to = f->scores->f;
    size_t held[2][2];
    find_fold(f, fold, held);
    const size_t i = held[0][0], j = held[1][0];
    const n2_score_rows num = {f->num.x + i * d, held[0][1] - i, to[1] + i, 0, 0, NULL};
    const n2_score_rows den = {f->den.x + j * d, held[1][1] - j, to[0] + j, 0, 0, NULL};
    const n2_score_rows joint = {num.x, num.n, num.f, shifts, f->num.n, to[0] + i};
    if (f->dx) return add_scoring(f, fold, &joint);
    N2_TRY(add_scoring(f, fold, &num));
    return add_scoring(f, fold, &den);
}

static void score_item(void *arg, size_t item, int worker) {
    const fitter *f = arg;
    size_t k = 0;
    if (n2_cancelled(f->ctx)) return; /* nobody will look */
    for (size_t n; item >= (n = n2_gauss_scoring_items(f->scoring[k])); k++) item -= n;
    n2_gauss_scoring_item(f->scoring[k], item, worker);
}

/* Threads that have nothing else to do score the rows of this fold, and of those to come that have
 * their Gaussian part already. */
static n2ce_status begin_scoring(fitter *f) {
    size_t items = 0;
    if (f->scored > f->fold) return N2CE_OK;
    while (f->scored < f->o.folds && f->base[f->scored]) N2_TRY(add_fold_scoring(f, f->scored++));
    for (size_t k = 0; k < f->n_scoring; k++) items += n2_gauss_scoring_items(f->scoring[k]);
    return n2_background_begin(f->ctx, items, score_item, f);
}

/* Who explains needs the Gaussian parts once more. */
static void forget_scoring(fitter *f) {
    while (f->n_scoring > 0) n2_gauss_scoring_free(f->scoring[--f->n_scoring]);
    for (size_t k = 0; k < f->scored && !f->o.explain; k++) {
        n2_gauss_free(f->base[k]);
        f->base[k] = NULL;
    }
}

static n2ce_status end_scoring(fitter *f) {
    n2_background_end(f->ctx);
    forget_scoring(f);
    return n2_cancelled(f->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

/* ---- by the learned part ---- */

static n2_critic *critic_of(const fitter *f, size_t fold) {
    return fold < f->ratio->critics ? f->ratio->critic[fold] : NULL;
}

/* The learned part at n rows of features, for the scores from `at` on. */
static n2ce_status learned_rows(const fitter *f, size_t fold, const double *x, size_t n,
                                size_t side, size_t at) {
    double *learned = f->scores->learned[side] + at;
    n2_critic *critic = critic_of(f, fold);
    memset(learned, 0, n * sizeof *learned);
    if (critic) N2_TRY(n2_critic_add(critic, x, n, learned));
    if (f->ratio->kernel) n2_kernel_ratio_score(f->ratio->kernel, x, n, learned);
    return n2_cancelled(f->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

enum { SOME_PAIRS = 8192 };

/* Pairs of a fold go to their places shift by shift, some of them at a time. */
static n2ce_status learned_pairs(const fitter *f, size_t fold, const size_t range[2]) {
    const size_t d = f->num.d, n = range[1] - range[0], shifts = f->scores->n[0] / f->num.n;
    const size_t most = n < SOME_PAIRS ? n : SOME_PAIRS;
    double *x = n2_alloc(f->ctx, most * d, sizeof *x);
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    for (size_t s = 1; s <= shifts; s++)
        for (size_t i = 0; i < n && status == N2CE_OK; i += most) {
            pairing p = {f, range[0], n, i, n - i < most ? n - i : most, s, x};
            status = pair_rows(&p);
            if (status == N2CE_OK)
                status = learned_rows(f, fold, x, p.n, 0, (s - 1) * f->num.n + range[0] + i);
        }
    n2_free(f->ctx, x);
    return status;
}

static n2ce_status learned_fold(const fitter *f, size_t fold, size_t held[2][2]) {
    const size_t d = f->num.d, n = held[0][0], m = held[1][0];
    N2_TRY(learned_rows(f, fold, f->num.x + n * d, held[0][1] - n, 1, n));
    if (f->dx) return learned_pairs(f, fold, held[0]);
    return learned_rows(f, fold, f->den.x + m * d, held[1][1] - m, 0, m);
}

/* A fold's network is replaced by a copy where networks are evaluated now. */
static n2ce_status bring_back(const fitter *f, size_t fold) {
    n2_critic *copy;
    N2_TRY(n2_critic_copy(critic_of(f, fold), f->ratio->base, &f->o.critic, &copy));
    n2_critic_free(f->ratio->critic[fold]);
    f->ratio->critic[fold] = copy;
    return N2CE_OK;
}

/* Once more by a copy on the processor, if a device that nobody insists on failed. */
static n2ce_status learned_fold_somewhere(const fitter *f, size_t fold, size_t held[2][2]) {
    n2_critic *copy = NULL;
    const n2ce_status status = learned_fold(f, fold, held);
    if (!critic_of(f, fold) || !n2_choice_retreat(f->o.critic.choice, f->ctx, status))
        return status;
    N2_TRY(n2_critic_copy(critic_of(f, fold), f->ratio->base, &f->o.critic, &copy));
    n2_critic_free(f->ratio->critic[fold]);
    f->ratio->critic[fold] = copy;
    return learned_fold(f, fold, held);
}

static void add_learned(const n2_scores *s, size_t side, size_t begin, size_t n) {
    double *total = s->f[side] + begin, *learned = s->learned[side] + begin;
    for (size_t i = 0; i < n; i++) total[i] += learned[i];
}

static void take_off(double *x, size_t n, double by) {
    for (size_t i = 0; i < n; i++) x[i] -= by;
}

/* DV and InfoNCE determine f up to a constant only: take the one that makes the mean of
 * e^f over the fold's denominator rows 1. */
static void settle_constant(fitter *f, size_t held[2][2]) {
    const n2_contrast contrast = f->o.critic.contrast;
    if (contrast != N2_CONTRAST_DV && contrast != N2_CONTRAST_INFONCE) return;
    n2_scores *s = f->scores;
    const size_t *den = f->dx ? held[0] : held[1], n = den[1] - den[0];
    const size_t rounds = f->dx ? s->n[0] / f->num.n : 1;
    double log_sum = -N2_INFINITY;
    for (size_t k = 0; k < rounds; k++) {
        const double part = n2_logsumexp(s->f[0] + k * f->num.n + den[0], n);
        log_sum = n2_logsumexp((double[]){log_sum, part}, 2);
    }
    const double by = log_sum - log((double)(n * rounds));
    for (size_t k = 0; k < rounds; k++) {
        take_off(s->f[0] + k * f->num.n + den[0], n, by);
        take_off(s->learned[0] + k * f->num.n + den[0], n, by);
    }
    take_off(s->f[1] + held[0][0], held[0][1] - held[0][0], by);
    take_off(s->learned[1] + held[0][0], held[0][1] - held[0][0], by);
    f->ratio->shift += by / (double)f->o.folds;
}

/* With fewer rows a side a network has nothing to learn from. */
enum { ROWS_FOR_A_NETWORK = 60 };

static bool promising(const n2_critic_record *r) { return r->gain > 0.5 * r->gain_error; }

/* After a first fold in which the network found nothing the others do not try. */
static bool worth_training(const fitter *f) {
    const size_t n = f->dx || f->num.n < f->den.n ? f->num.n : f->den.n;
    if (f->o.parts == N2_PARTS_QUADRATIC || f->o.estimator != N2_ESTIMATOR_NEURAL) return false;
    if (n < ROWS_FOR_A_NETWORK) return false;
    return f->o.parts == N2_PARTS_NET || f->fold == 0 || promising(&f->record->fold[0]);
}

static n2ce_status train_here(fitter *f, size_t held[2][2], const n2_gauss *base, double magnitude,
                              size_t more, n2_critic **critic, n2_critic_record *r) {
    n2_critic_options o = f->o.critic;
    const n2_contrast_data data = {
        f->num, f->den, f->dx, {{held[0][0], held[0][1]}, {held[1][0], held[1][1]}}};
    o.alpha = f->record->alpha;
    o.seed = f->o.seed + 1000003u * (f->fold + 1);
    o.magnitude = magnitude;
    if (f->o.max_seconds > 0) { /* an equal share of what is left for this one and those to come */
        const double now = n2_seconds(), left = f->start + f->o.max_seconds - now;
        o.deadline = now + 0.9 * left / (double)(f->o.folds - f->fold + more);
    }
    const n2_critic_listener listener = {fold_progress, f};
    return n2_critic_train(f->ctx, &data, base, f->ratio->base, &o, &listener, critic, r);
}

/* Once more on the processor, if a device that nobody insists on failed. */
static n2ce_status train_once(fitter *f, size_t held[2][2], const n2_gauss *base, double magnitude,
                              size_t more, n2_critic **critic, n2_critic_record *r) {
    const n2ce_status status = train_here(f, held, base, magnitude, more, critic, r);
    if (!n2_choice_retreat(f->o.critic.choice, f->ctx, status)) return status;
    return train_here(f, held, base, magnitude, more, critic, r);
}

/* The critic of a fold, with the magnitude that is settled. */
static n2ce_status train_settled(fitter *f, size_t held[2][2], const n2_gauss *base,
                                 n2_critic **critic) {
    return train_once(f, held, base, f->o.critic.magnitude, 0, critic, &f->record->fold[f->fold]);
}

/* The first fold tries magnitudes: the rule's C sqrt(n) is an upper bound, so 1 and the
 * geometric middle run too. All are judged by one loss on the validation rows. If the
 * middle finds nothing beyond the base, neither will the others. */
static n2ce_status race(fitter *f, size_t held[2][2], const n2_gauss *base, n2_critic **critic) {
    const double middle = f->o.critic.judge, tried[] = {middle, 1, middle * middle};
    n2_critic_record *best = &f->record->fold[0];
    N2_TRY(train_once(f, held, base, middle, 2, critic, best));
    f->o.critic.magnitude = middle;
    for (size_t i = 1; i < 3 && (promising(best) || !base) && !best->out_of_time; i++) {
        n2_critic_record r;
        n2_critic *other;
        const n2ce_status status = train_once(f, held, base, tried[i], 2 - i, &other, &r);
        if (status != N2CE_OK) {
            n2_critic_free(*critic);
            *critic = NULL;
            return status;
        }
        const bool better = r.loss < best->loss;
        n2_critic_free(better ? *critic : other);
        if (better) {
            *critic = other;
            *best = r;
            f->o.critic.magnitude = tried[i];
        }
        f->record->raced = true;
    }
    snprintf(f->record->race, sizeof f->record->race, "1, %.3g and %.3g", middle, middle * middle);
    f->record->used.critic.magnitude = f->o.critic.magnitude;
    return N2CE_OK;
}

static n2ce_status train_fold(fitter *f, size_t held[2][2], const n2_gauss *base,
                              n2_critic **critic) {
    const bool settled = f->o.critic.magnitude > 0;
    N2_TRY(settled ? train_settled(f, held, base, critic) : race(f, held, base, critic));
    f->record->folds_run++;
    return N2CE_OK;
}

/* Its network waits until all are trained. Nothing else may run while it is found out where
 * networks are trained faster. */
static n2ce_status run_fold(fitter *f) {
    size_t held[2][2];
    n2_critic *critic = NULL;
    const bool has_base = f->ratio->base, timed = n2_choice_is_timed(f->o.critic.choice);
    find_fold(f, f->fold, held);
    if (has_base) N2_TRY(make_base(f));
    if (has_base && !timed) N2_TRY(begin_scoring(f));
    if (worth_training(f)) {
        const n2ce_status status = train_fold(f, held, f->base[f->fold], &critic);
        if (critic) f->ratio->critic[f->ratio->critics++] = critic;
        N2_TRY(status);
    }
    if (has_base && timed) N2_TRY(begin_scoring(f));
    return has_base && f->fold + 1 == f->scored ? end_scoring(f) : N2CE_OK;
}

/* What the networks or the kernel model say of the rows of each fold. */
static n2ce_status add_all_learned(fitter *f) {
    const size_t shifts = f->scores->n[0] / f->num.n;
    for (size_t k = 0; k < f->o.folds; k++) {
        size_t held[2][2];
        if (!critic_of(f, k) && !f->ratio->kernel) continue;
        find_fold(f, k, held);
        N2_TRY(learned_fold_somewhere(f, k, held));
        const size_t n = held[0][1] - held[0][0];
        add_learned(f->scores, 1, held[0][0], n);
        for (size_t s = 0; s < shifts && f->dx; s++)
            add_learned(f->scores, 0, s * f->num.n + held[0][0], n);
        if (!f->dx) add_learned(f->scores, 0, held[1][0], held[1][1] - held[1][0]);
        if (critic_of(f, k)) settle_constant(f, held);
    }
    return N2CE_OK;
}

static n2ce_status fit_kernel(fitter *f) {
    const n2_kernel_method method = f->o.estimator == N2_ESTIMATOR_ULSIF ? N2_ULSIF : N2_KLIEP;
    double *pairs = NULL;
    n2_rows_view den = f->den;
    if (f->dx) {
        pairs = n2_alloc(f->ctx, f->num.n * f->num.d, sizeof *pairs);
        if (!pairs) return N2CE_ENOMEM;
        pairing p = {f, 0, f->num.n, 0, f->num.n, 1, pairs};
        const n2ce_status paired = pair_rows(&p);
        if (paired != N2CE_OK) {
            n2_free(f->ctx, pairs);
            return paired;
        }
        den = (n2_rows_view){pairs, f->num.n, f->num.d};
    }
    const n2ce_status status = n2_kernel_ratio_fit(f->ctx, method, f->num.x, f->num.n, den.x, den.n,
                                                   f->num.d, 0, f->o.seed, &f->ratio->kernel);
    n2_free(f->ctx, pairs);
    return status;
}

/* The networks stay if they lower the loss of held-out rows by more than twice its
 * error; else the Gaussian part is the better estimate. */
static void keep_or_drop(fitter *f) {
    n2_fit_record *r = f->record;
    double gain = 0, var = 0;
    for (size_t k = 0; k < r->folds_run; k++) {
        gain += r->fold[k].gain;
        var += r->fold[k].gain_error * r->fold[k].gain_error;
    }
    r->learned = r->folds_run == f->o.folds && (!f->ratio->base || gain > 2 * sqrt(var));
    if (r->learned || !f->ratio->base) return;
    for (size_t k = 0; k < f->ratio->critics; k++) n2_critic_free(f->ratio->critic[k]);
    f->ratio->critics = 0;
}

/* Once more on the processor, if a device that nobody insists on failed. */
static n2ce_status explain(fitter *f) {
    const n2_ratio *r = f->ratio;
    const n2_explain_data data = {.num = f->num,
                                  .den = f->den,
                                  .dx = f->dx,
                                  .features = r->features,
                                  .folds = f->o.folds,
                                  .base = f->base,
                                  .critic = r->critic,
                                  .critics = r->critics,
                                  .kernel = r->kernel,
                                  .shapes = &f->o.critic,
                                  .alpha = f->record->alpha};
    const n2ce_status status = n2_explain(f->ctx, &data, &f->scores->explanation);
    if (!n2_choice_retreat(f->o.critic.choice, f->ctx, status)) return status;
    for (size_t k = 0; k < r->critics; k++) N2_TRY(bring_back(f, k));
    return n2_explain(f->ctx, &data, &f->scores->explanation);
}

static n2ce_status run_all(fitter *f) {
    n2_choose_folds(f->num.n, f->dx ? f->num.n : f->den.n, &f->o);
    if (f->o.estimator != N2_ESTIMATOR_NEURAL) N2_TRY(fit_kernel(f));
    if (f->o.estimator == N2_ESTIMATOR_NEURAL && f->o.parts != N2_PARTS_NET)
        N2_TRY(gaussian_facts(f));
    n2_choose(f->ratio->base, f->num.n, f->dx ? f->num.n : f->den.n, &f->o, f->record->alpha);
    f->record->used = f->o;
    for (f->fold = 0; f->fold < f->o.folds; f->fold++) N2_TRY(run_fold(f));
    keep_or_drop(f);
    N2_TRY(add_all_learned(f));
    return f->o.explain ? explain(f) : N2CE_OK;
}

static size_t count_mapped(const n2_features *f) {
    size_t n = 0;
    for (size_t c = 0; c < f->cols; c++) n += f->column[c].kind == N2_FEATURE_NORMAL;
    return n;
}

static n2ce_status prepare(fitter *f, n2_table *num, n2_table *den, size_t x_cols,
                           const size_t *levels) {
    N2_TRY(n2_table_shuffle(num, f->o.seed, 1));
    if (den) N2_TRY(n2_table_shuffle(den, f->o.seed, 2));
    N2_TRY(n2_features_new(f->ctx, num, den, levels, f->o.scaling, &f->ratio->features));
    const n2_features *features = f->ratio->features;
    f->record->mapped = count_mapped(features);
    if (!den) f->dx = f->ratio->dx = n2_features_width(features, x_cols);
    N2_TRY(make_features(f->ctx, features, num, &f->num));
    if (den) N2_TRY(make_features(f->ctx, features, den, &f->den));
    return scores_new(f->ctx, f->num.n, f->den.n, f->dx, f->scores);
}

n2ce_status n2_ratio_fit(n2ce_ctx *ctx, n2_table *num, n2_table *den, size_t x_cols,
                         const size_t *levels, const n2_fit_options *o, n2_ratio **out,
                         n2_scores *scores, n2_fit_record *record) {
    *out = NULL;
    *scores = (n2_scores){.ctx = ctx};
    *record = (n2_fit_record){.used = *o, .gaussian = N2_NAN, .gaussian_reverse = N2_NAN};
    fitter f = {.ctx = ctx, .o = *o, .record = record, .scores = scores, .start = n2_seconds()};
    f.ratio = n2_alloc(ctx, 1, sizeof *f.ratio);
    if (!f.ratio) return N2CE_ENOMEM;
    f.ratio->ctx = ctx;
    n2ce_status status = prepare(&f, num, den, x_cols, levels);
    if (status == N2CE_OK) status = run_all(&f);
    n2_background_drop(ctx); /* there still is some if something failed */
    forget_scoring(&f);
    n2_free(ctx, (void *)(uintptr_t)f.num.x);
    n2_free(ctx, (void *)(uintptr_t)f.den.x);
    for (size_t k = 0; k < N2_MOST_FOLDS; k++) n2_gauss_free(f.base[k]);
    free_sums(&f);
    record->used.critic.choice = NULL;
    record->seconds = n2_seconds() - f.start;
    if (status == N2CE_OK) {
        *out = f.ratio;
    } else {
        n2_ratio_free(f.ratio);
        n2_scores_free(scores);
    }
    return status;
}
