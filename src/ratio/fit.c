#include "fit_parts.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "choose.h"
#include "left_over.h"
#include "second_opinion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- scores -------------------------------------------------------------- */

void n2_scores_free(n2_scores *s) {
    for (size_t side = 0; side < 2; side++) {
        n2_free(s->ctx, s->f[side]);
        n2_free(s->ctx, s->learned[side]);
        n2_free(s->ctx, s->seen[side]);
        n2_free(s->ctx, s->half[side]);
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
    *s = (n2_scores){.ctx = ctx, .n = {dx ? shifts * n_num : n_den, n_num}, .certainty = 1};
    for (size_t side = 0; side < 2; side++) {
        s->f[side] = n2_alloc(ctx, s->n[side], sizeof(double));
        s->learned[side] = n2_alloc(ctx, s->n[side], sizeof(double));
        if (!s->f[side] || !s->learned[side]) return N2CE_ENOMEM;
    }
    s->terms = n2_alloc(ctx, s->n[0] > s->n[1] ? s->n[0] : s->n[1], sizeof(double));
    return s->terms ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- fitting ------------------------------------------------------------- */

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

static void fold_progress(void *user, double share) {
    const n2_fitter *f = user;
    n2_progress(f->ctx, (double)f->fold + share, (double)f->o.folds);
}

/* With fewer rows a side a network has nothing to learn from. */
enum { ROWS_FOR_A_NETWORK = 60, ROWS_A_COLUMN = 8 };

static bool promising(const n2_critic_record *r) { return r->gain > 0.5 * r->gain_error; }

/* Of few rows and columns a smooth part that has kernels to spare leaves nothing to a network. In
 * more columns it is smooth because it has to be, and would not know what it misses. */
enum { FEW_ROWS = 8000, FEW_COLUMNS = 3 };
static const double RESOLVED = 0.03; /* nats a row that half of the kernels lose */

/* Columns that its kernels look at. */
static size_t columns_of(const n2_smooth *s) {
    size_t n = 0;
    for (size_t j = 0; j < s->d; j++) n += s->scale[j] > 0;
    return n;
}

static size_t count_kind(const n2_features *f, n2_feature_kind kind) {
    size_t n = 0;
    for (size_t c = 0; c < f->cols; c++) n += f->column[c].kind == kind;
    return n;
}

/* Levels and products of them are functions that the smooth part has. */
static bool are_levels(const n2_features *f) {
    return count_kind(f, N2_FEATURE_LEVELS) + count_kind(f, N2_FEATURE_CONSTANT) == f->cols;
}

static bool smooth_is_enough(const n2_fitter *f, size_t n) {
    if (f->ratio->smooths == 0 || n >= FEW_ROWS || f->record->unresolved >= RESOLVED) return false;
    return columns_of(f->ratio->smooth[0]) <= FEW_COLUMNS || are_levels(f->ratio->features);
}

/* After a first fold in which the network found nothing the others do not try. */
static bool worth_training(const n2_fitter *f) {
    const size_t n = f->dx || f->num.n < f->den.n ? f->num.n : f->den.n;
    if (f->o.parts == N2_PARTS_QUADRATIC || f->o.estimator != N2_ESTIMATOR_NEURAL) return false;
    if (n < ROWS_FOR_A_NETWORK || smooth_is_enough(f, n)) return false;
    if (f->o.parts == N2_PARTS_BOTH && n < ROWS_A_COLUMN * f->num.d) return false;
    return f->o.parts == N2_PARTS_NET || f->fold == 0 || f->go_on;
}

static n2ce_status train_here(n2_fitter *f, size_t held[2][2], const n2_gauss *base,
                              double magnitude, size_t more, n2_critic **critic,
                              n2_critic_record *r) {
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
static n2ce_status train_once(n2_fitter *f, size_t held[2][2], const n2_gauss *base,
                              double magnitude, size_t more, n2_critic **critic,
                              n2_critic_record *r) {
    const n2ce_status status = train_here(f, held, base, magnitude, more, critic, r);
    if (!n2_choice_retreat(f->o.critic.choice, f->ctx, status)) return status;
    return train_here(f, held, base, magnitude, more, critic, r);
}

/* The critic of a fold, with the magnitude that is settled. */
static n2ce_status train_settled(n2_fitter *f, size_t held[2][2], const n2_gauss *base,
                                 n2_critic **critic) {
    return train_once(f, held, base, f->o.critic.magnitude, 0, critic, &f->record->fold[f->fold]);
}

/* The first fold tries magnitudes: the rule's C sqrt(n) is an upper bound, so 1 and the
 * geometric middle run too. All are judged by one loss on the validation rows. If the
 * middle finds nothing beyond the base, neither will the others. */
static n2ce_status race(n2_fitter *f, size_t held[2][2], const n2_gauss *base, n2_critic **critic) {
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

/* With more rows a network is limited by its steps. */
enum { MOST_ROWS_TO_HALVE = 20000 };

/* The network of the first fold once more, learned from half of its rows. */
static n2ce_status train_half(n2_fitter *f) {
    const n2_rows_view all[2] = {f->den, f->num};
    const size_t n = f->dx || f->num.n < f->den.n ? f->num.n : f->den.n;
    size_t held[2][2];
    n2_critic_record r;
    if (f->ratio->critics == 0 || !f->record->learned || n >= MOST_ROWS_TO_HALVE) return N2CE_OK;
    f->fold = 0;
    n2_find_fold(f, 0, held);
    f->num.n -= (f->num.n - held[0][1]) / 2;
    if (!f->dx) f->den.n -= (f->den.n - held[1][1]) / 2;
    const n2ce_status status =
        train_once(f, held, f->base[0], f->o.critic.magnitude, 0, &f->half_critic, &r);
    f->den = all[0];
    f->num = all[1];
    if (r.out_of_time) { /* it says nothing of rows */
        n2_critic_free(f->half_critic);
        f->half_critic = NULL;
    }
    return status;
}

static n2ce_status train_fold(n2_fitter *f, size_t held[2][2], const n2_gauss *base,
                              n2_critic **critic) {
    const bool settled = f->o.critic.magnitude > 0;
    N2_TRY(settled ? train_settled(f, held, base, critic) : race(f, held, base, critic));
    f->record->folds_run++;
    return N2CE_OK;
}

/* After the first fold. A network that is not better than the smooth part is not worth the time of
 * the others; without one it has to find something. */
static n2ce_status decide_others(n2_fitter *f) {
    n2_gain gain;
    f->go_on = promising(&f->record->fold[0]);
    if (f->ratio->smooths == 0) return N2CE_OK;
    N2_TRY(n2_fit_first_gain(f, &gain));
    f->go_on = f->record->fold[0].best_step > 0 && gain.value > -0.25 * gain.error;
    return N2CE_OK;
}

/* Its network waits until all are trained. Nothing else may run while it is found out where
 * networks are trained faster. */
static n2ce_status run_fold(n2_fitter *f) {
    size_t held[2][2];
    n2_critic *critic = NULL;
    const bool has_base = f->ratio->base, timed = n2_choice_is_timed(f->o.critic.choice);
    n2_find_fold(f, f->fold, held);
    if (has_base) N2_TRY(n2_fit_base(f));
    if (has_base && !timed) N2_TRY(n2_fit_begin_scoring(f));
    if (worth_training(f)) {
        const n2ce_status status = train_fold(f, held, f->base[f->fold], &critic);
        if (critic) f->ratio->critic[f->ratio->critics++] = critic;
        N2_TRY(status);
        if (f->fold == 0) N2_TRY(decide_others(f));
    }
    if (has_base && timed) N2_TRY(n2_fit_begin_scoring(f));
    return has_base && f->fold + 1 == f->scored ? n2_fit_end_scoring(f) : N2CE_OK;
}

static n2ce_status fit_kernel(n2_fitter *f) {
    const n2_kernel_method method = f->o.estimator == N2_ESTIMATOR_ULSIF ? N2_ULSIF : N2_KLIEP;
    double *pairs = NULL;
    n2_rows_view den = f->den;
    if (f->dx) {
        pairs = n2_alloc(f->ctx, f->num.n * f->num.d, sizeof *pairs);
        if (!pairs) return N2CE_ENOMEM;
        n2_pairing p = {f, 0, f->num.n, 0, f->num.n, 1, pairs};
        const n2ce_status paired = n2_pair_rows(&p);
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
static void keep_or_drop(n2_fitter *f) {
    f->record->learned = n2_networks_pay(f->record, f->o.folds) ||
                         (!f->ratio->base && f->record->folds_run == f->o.folds);
    if (f->record->learned || !f->ratio->base) return;
    for (size_t k = 0; k < f->ratio->critics; k++) n2_critic_free(f->ratio->critic[k]);
    f->ratio->critics = 0;
}

/* Once more on the processor, if a device that nobody insists on failed. */
static n2ce_status explain(n2_fitter *f) {
    const n2_ratio *r = f->ratio;
    const n2_explain_data data = {.num = f->num,
                                  .den = f->den,
                                  .dx = f->dx,
                                  .features = r->features,
                                  .folds = f->o.folds,
                                  .base = f->base,
                                  .critic = r->critic,
                                  .critics = r->critics,
                                  .smooth = r->smooth,
                                  .smooths = r->smooths,
                                  .trees = r->trees,
                                  .forests = r->forests,
                                  .blend = &r->blend,
                                  .kernel = r->kernel,
                                  .shapes = &f->o.critic,
                                  .alpha = f->record->alpha};
    const n2ce_status status = n2_explain(f->ctx, &data, &f->scores->explanation);
    if (!n2_choice_retreat(f->o.critic.choice, f->ctx, status)) return status;
    for (size_t k = 0; k < r->critics; k++) N2_TRY(n2_fit_bring_back(f, k));
    return n2_explain(f->ctx, &data, &f->scores->explanation);
}

/* The smooth part needs the Gaussian parts of all folds, and their scores. Where there is one and
 * rows are few, networks have M = 1: a race of magnitudes would take longer than it is worth. */
enum { ROWS_FOR_A_RACE = 8000 };

static n2ce_status fit_smooth(n2_fitter *f) {
    const size_t n = f->dx || f->num.n < f->den.n ? f->num.n : f->den.n;
    if (!n2_fit_has_smooth(f)) return N2CE_OK;
    for (f->fold = 0; f->fold < f->o.folds; f->fold++) N2_TRY(n2_fit_base(f));
    f->fold = 0;
    N2_TRY(n2_fit_begin_scoring(f));
    n2_background_end(f->ctx);
    N2_TRY(n2_fit_smooth(f));
    if (f->ratio->smooths > 0 && n < ROWS_FOR_A_RACE && !(f->o.critic.magnitude > 0))
        f->o.critic.magnitude = f->o.critic.judge = 1;
    return N2CE_OK;
}

/* Pairs of all rows with the y of the next one in their fold, as the scores have them first. */
static n2ce_status first_pairs(const n2_fitter *f, double *x) {
    for (size_t k = 0; k < f->o.folds; k++) {
        size_t range[2];
        n2_fold_rows(f->num.n, f->o.folds, k, range);
        const size_t n = range[1] - range[0];
        n2_pairing p = {f, range[0], n, 0, n, 1, x + range[0] * f->num.d};
        N2_TRY(n2_pair_rows(&p));
    }
    return N2CE_OK;
}

enum { MOST_OPINION_COLUMNS = 64 };

static n2ce_status ask_again(n2_fitter *f) {
    const n2_scores *s = f->scores;
    n2_opinion_rows of = {{f->den, f->num}, {s->f[0], s->f[1]}};
    double *pairs = NULL;
    if (f->o.estimator != N2_ESTIMATOR_NEURAL || f->num.d > MOST_OPINION_COLUMNS) return N2CE_OK;
    if (f->dx) {
        pairs = n2_alloc(f->ctx, f->num.n * f->num.d, sizeof *pairs);
        if (!pairs) return N2CE_ENOMEM;
        of.rows[0] = (n2_rows_view){pairs, f->num.n, f->num.d};
    }
    n2ce_status status = f->dx ? first_pairs(f, pairs) : N2CE_OK;
    if (status == N2CE_OK) status = n2_second_opinion(f->ctx, &of, &f->record->second);
    if (status == N2CE_OK && f->record->learned)
        status = n2_left_over(f->ctx, &of, f->dx, &f->scores->left_over);
    n2_free(f->ctx, pairs);
    return status;
}

static n2ce_status run_all(n2_fitter *f) {
    n2_choose_folds(f->num.n, f->dx ? f->num.n : f->den.n, &f->o);
    if (f->o.estimator != N2_ESTIMATOR_NEURAL) N2_TRY(fit_kernel(f));
    if (f->o.estimator == N2_ESTIMATOR_NEURAL && f->o.parts != N2_PARTS_NET)
        N2_TRY(n2_fit_gaussian(f));
    if (f->o.smooth && !f->o.critic.stages && count_kind(f->ratio->features, N2_FEATURE_LEVELS) > 0)
        f->o.critic.stages = 1; /* normals in levels' place do not know how far apart samples are */
    n2_choose(f->ratio->base, f->record->gaussian, f->num.n, f->dx ? f->num.n : f->den.n, &f->o,
              f->record->alpha);
    N2_TRY(fit_smooth(f));
    f->record->used = f->o;
    for (f->fold = 0; f->fold < f->o.folds; f->fold++) N2_TRY(run_fold(f));
    if (n2_fit_is_blended(f)) {
        N2_TRY(n2_fit_blend(f));
        N2_TRY(train_half(f));
        N2_TRY(n2_fit_halves(f));
    } else {
        keep_or_drop(f);
        N2_TRY(n2_fit_learned(f));
    }
    N2_TRY(ask_again(f));
    return f->o.explain ? explain(f) : N2CE_OK;
}

static n2ce_status prepare(n2_fitter *f, n2_table *num, n2_table *den, size_t x_cols,
                           const size_t *levels) {
    N2_TRY(n2_table_shuffle(num, f->o.seed, 1));
    if (den) N2_TRY(n2_table_shuffle(den, f->o.seed, 2));
    N2_TRY(n2_features_new(f->ctx, num, den, levels, f->o.scaling, &f->ratio->features));
    const n2_features *features = f->ratio->features;
    f->record->mapped = count_kind(features, N2_FEATURE_NORMAL);
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
    n2_fitter f = {.ctx = ctx, .o = *o, .record = record, .scores = scores, .start = n2_seconds()};
    f.ratio = n2_alloc(ctx, 1, sizeof *f.ratio);
    if (!f.ratio) return N2CE_ENOMEM;
    f.ratio->ctx = ctx;
    f.ratio->blend = (n2_blend){{1, 1, 1, 1}, 0};
    n2ce_status status = prepare(&f, num, den, x_cols, levels);
    if (status == N2CE_OK) status = run_all(&f);
    n2_background_drop(ctx); /* there still is some if something failed */
    n2_fit_forget_scoring(&f);
    n2_free(ctx, (void *)(uintptr_t)f.num.x);
    n2_free(ctx, (void *)(uintptr_t)f.den.x);
    for (size_t k = 0; k < N2_MOST_FOLDS; k++) n2_gauss_free(f.base[k]);
    n2_fit_free_sums(&f);
    n2_fit_free_parts(&f, &f.held);
    n2_fit_free_halves(&f);
    n2_free(ctx, f.says);
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
