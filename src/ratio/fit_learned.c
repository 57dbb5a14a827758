/* What networks and kernel models say of rows that they have not seen. */
#include "fit_parts.h"

#include "base/numerics.h"

#include <math.h>
#include <string.h>

enum { SMOOTH = 1, NETWORK, TREES }; /* parts, as blend.h counts them */

static n2_critic *critic_of(const n2_fitter *f, size_t fold) {
    return fold < f->ratio->critics ? f->ratio->critic[fold] : NULL;
}

static n2_critic *critic_asked(const n2_fitter *f, size_t fold, bool half) {
    return half ? f->half_critic : critic_of(f, fold);
}

/* What a part of some fold says of the rows of another or the same one: to where scores of the
 * denominator and of the numerator go. */
typedef struct reading {
    n2_fitter *f;
    size_t part, fold;
    double *const *to;
    bool half; /* by parts that were learned from half of the rows */
} reading;

/* At n rows of features, for the scores from `at` on. */
static n2ce_status read_rows(const reading *r, const double *x, size_t n, size_t side, size_t at) {
    const n2_fitter *f = r->f;
    double *out = r->to[side] + at;
    n2_critic *critic = critic_asked(f, r->fold, r->half);
    n2_smooth *const *smooth = r->half ? f->half_smooth : f->ratio->smooth;
    n2_boosting *const *trees = r->half ? f->half_trees : f->ratio->trees;
    memset(out, 0, n * sizeof *out);
    if (r->part == SMOOTH) N2_TRY(n2_smooth_add(smooth[r->fold], x, n, out));
    if (r->part == TREES) n2_boosting_add(trees[r->fold], 0, trees[r->fold]->trees, x, n, out);
    if (r->part == NETWORK && critic) N2_TRY(n2_critic_add(critic, x, n, out));
    if (r->part == NETWORK && f->ratio->kernel) n2_kernel_ratio_score(f->ratio->kernel, x, n, out);
    return n2_cancelled(f->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

enum { SOME_PAIRS = 8192 };

/* Pairs of a fold go to their places shift by shift, some of them at a time. */
static n2ce_status read_pairs(const reading *r, const size_t range[2]) {
    const n2_fitter *f = r->f;
    const size_t d = f->num.d, n = range[1] - range[0], shifts = f->scores->n[0] / f->num.n;
    const size_t most = n < SOME_PAIRS ? n : SOME_PAIRS;
    double *x = n2_alloc(f->ctx, most * d, sizeof *x);
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    for (size_t s = 1; s <= shifts; s++)
        for (size_t i = 0; i < n && status == N2CE_OK; i += most) {
            n2_pairing p = {f, range[0], n, i, n - i < most ? n - i : most, s, x};
            status = n2_pair_rows(&p);
            if (status == N2CE_OK)
                status = read_rows(r, x, p.n, 0, (s - 1) * f->num.n + range[0] + i);
        }
    n2_free(f->ctx, x);
    return status;
}

static n2ce_status read_fold(const reading *r, size_t held[2][2]) {
    const n2_fitter *f = r->f;
    const size_t d = f->num.d, n = held[0][0], m = held[1][0];
    N2_TRY(read_rows(r, f->num.x + n * d, held[0][1] - n, 1, n));
    if (f->dx) return read_pairs(r, held[0]);
    return read_rows(r, f->den.x + m * d, held[1][1] - m, 0, m);
}

static n2ce_status bring_back(const n2_fitter *f, n2_critic **critic) {
    n2_critic *copy;
    N2_TRY(n2_critic_copy(*critic, f->ratio->base, &f->o.critic, &copy));
    n2_critic_free(*critic);
    *critic = copy;
    return N2CE_OK;
}

/* A fold's network is replaced by a copy where networks are evaluated now. */
n2ce_status n2_fit_bring_back(const n2_fitter *f, size_t fold) {
    return bring_back(f, &f->ratio->critic[fold]);
}

/* Once more by a copy on the processor, if a device that nobody insists on failed. */
static n2ce_status read_fold_somewhere(const reading *r, size_t rows) {
    n2_fitter *f = r->f;
    size_t held[2][2];
    n2_find_fold(f, rows, held);
    const n2ce_status status = read_fold(r, held);
    if (r->part != NETWORK || !critic_asked(f, r->fold, r->half)) return status;
    if (!n2_choice_retreat(f->o.critic.choice, f->ctx, status)) return status;
    N2_TRY(bring_back(f, r->half ? &f->half_critic : &f->ratio->critic[r->fold]));
    return read_fold(r, held);
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
static void settle_constant(n2_fitter *f, size_t held[2][2]) {
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

/* Networks or a kernel model, as they are. */
n2ce_status n2_fit_learned(n2_fitter *f) {
    const size_t shifts = f->scores->n[0] / f->num.n;
    for (size_t k = 0; k < f->o.folds; k++) {
        size_t held[2][2];
        if (!critic_of(f, k) && !f->ratio->kernel) continue;
        n2_find_fold(f, k, held);
        N2_TRY(read_fold_somewhere(&(reading){f, NETWORK, k, f->scores->learned, false}, k));
        const size_t n = held[0][1] - held[0][0];
        add_learned(f->scores, 1, held[0][0], n);
        for (size_t s = 0; s < shifts && f->dx; s++)
            add_learned(f->scores, 0, s * f->num.n + held[0][0], n);
        if (!f->dx) add_learned(f->scores, 0, held[1][0], held[1][1] - held[1][0]);
        if (critic_of(f, k)) settle_constant(f, held);
    }
    return N2CE_OK;
}

/* ---- parts that are weighed ---------------------------------------------- */

bool n2_fit_is_blended(const n2_fitter *f) {
    return f->o.estimator == N2_ESTIMATOR_NEURAL && f->o.parts == N2_PARTS_BOTH && f->ratio->base &&
           f->o.critic.contrast == N2_CONTRAST_N2CE && f->o.critic.stages == 1;
}

static n2ce_status pair_of_arrays(const n2_fitter *f, double *out[2]) {
    for (size_t side = 0; side < 2; side++)
        if (!out[side] && !(out[side] = n2_alloc(f->ctx, f->scores->n[side], sizeof(double))))
            return N2CE_ENOMEM;
    return N2CE_OK;
}

/* A part at all rows, by the fold `ahead` of theirs. */
static n2ce_status read_part(n2_fitter *f, size_t part, size_t ahead, double *to[2]) {
    N2_TRY(pair_of_arrays(f, to));
    for (size_t k = 0; k < f->o.folds; k++)
        N2_TRY(read_fold_somewhere(&(reading){f, part, (k + ahead) % f->o.folds, to, false}, k));
    return N2CE_OK;
}

/* Scores of parts at rows; those of the base are in the scores already. */
static n2_blend_rows rows_of_parts(const n2_fitter *f, const n2_part_scores *scores) {
    const n2_scores *s = f->scores;
    n2_blend_rows rows = {.n = {s->n[0], s->n[1]}, .independent = {s->n[0], s->n[1]}};
    if (f->dx) rows.independent[0] = s->n[1];
    for (size_t side = 0; side < 2; side++) {
        for (size_t p = 0; p < N2_BLEND_PARTS; p++) rows.part[side][p] = scores->of[side][p];
        rows.part[side][0] = s->f[side];
    }
    return rows;
}

/* Those of a fold; of pairs the first ones. */
static n2_blend_rows rows_of_fold(const n2_fitter *f, size_t fold) {
    size_t held[2][2];
    n2_find_fold(f, fold, held);
    n2_blend_rows rows = rows_of_parts(f, &f->held);
    for (size_t side = 0; side < 2; side++) {
        const size_t *range = side || f->dx ? held[0] : held[1];
        for (size_t p = 0; p < N2_BLEND_PARTS; p++)
            if (rows.part[side][p]) rows.part[side][p] += range[0];
        rows.n[side] = rows.independent[side] = range[1] - range[0];
    }
    return rows;
}

/* A part at the rows of the first fold. */
static n2ce_status read_first(n2_fitter *f, size_t part) {
    double *to[2] = {f->held.of[0][part], f->held.of[1][part]};
    n2ce_status status = pair_of_arrays(f, to);
    for (size_t side = 0; side < 2; side++) f->held.of[side][part] = to[side];
    if (status == N2CE_OK) status = read_fold_somewhere(&(reading){f, part, 0, to, false}, 0);
    return status;
}

n2ce_status n2_fit_first_gain(n2_fitter *f, n2_gain *out) {
    const n2_blend before = {{f->record->shaped ? 0 : 1, 1, 0, 0}, 0}, after = {{1, 0, 1, 0}, 0};
    N2_TRY(read_first(f, SMOOTH));
    N2_TRY(read_first(f, NETWORK));
    const n2_blend_rows rows = rows_of_fold(f, 0);
    *out = n2_blend_gain(&rows, &before, &after);
    return N2CE_OK;
}

/* The blend at each row. */
static void write_blend(const n2_fitter *f, const n2_part_scores *scores, double *const out[2]) {
    const n2_blend_rows rows = rows_of_parts(f, scores);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < rows.n[side]; i++)
            out[side][i] = n2_blend_at(&rows, &f->ratio->blend, side, i);
}

static n2ce_status read_parts(n2_fitter *f, size_t ahead, n2_part_scores *out) {
    const bool there[N2_BLEND_PARTS] = {false, f->ratio->smooths > 0,
                                        f->ratio->critics == f->o.folds, f->ratio->forests > 0};
    for (size_t p = 1; p < N2_BLEND_PARTS; p++) {
        double *to[2] = {out->of[0][p], out->of[1][p]};
        if (!there[p]) continue;
        const n2ce_status status = read_part(f, p, ahead, to);
        for (size_t side = 0; side < 2; side++) out->of[side][p] = to[side];
        N2_TRY(status);
    }
    return N2CE_OK;
}

void n2_fit_free_parts(const n2_fitter *f, n2_part_scores *scores) {
    for (size_t side = 0; side < 2; side++)
        for (size_t p = 0; p < N2_BLEND_PARTS; p++) {
            n2_free(f->ctx, scores->of[side][p]);
            scores->of[side][p] = NULL;
        }
}

/* Parts without a weight are gone. */
static void drop_parts(n2_fitter *f) {
    n2_ratio *r = f->ratio;
    const double *weight = r->blend.weight;
    for (size_t k = 0; k < r->smooths && weight[SMOOTH] == 0; k++) {
        n2_smooth_free(r->smooth[k]);
        r->smooth[k] = NULL;
    }
    for (size_t k = 0; k < r->critics && weight[NETWORK] == 0; k++) {
        n2_critic_free(r->critic[k]);
        r->critic[k] = NULL;
    }
    if (weight[TREES] == 0) n2_fit_drop_trees(f);
    if (weight[SMOOTH] == 0) r->smooths = 0;
    if (weight[NETWORK] == 0) r->critics = 0;
}

bool n2_networks_pay(const n2_fit_record *r, size_t folds) {
    double gain = 0, var = 0;
    for (size_t k = 0; k < r->folds_run; k++) {
        gain += r->fold[k].gain;
        var += r->fold[k].gain_error * r->fold[k].gain_error;
    }
    return r->folds_run == folds && gain > 2 * sqrt(var);
}

/* Gains, in their standard errors, from which on something is learned, and all of it. */
static const double SOME_GAIN = 0.25, CLEAR_GAIN = 1.5;

/* How far the gain is on the way from nothing to a clear one. */
static double certainty_of(const n2_gain *g) {
    const double errors = g->error > 0 ? g->value / g->error : 0;
    return fmin(1, fmax(0, (errors - SOME_GAIN) / (CLEAR_GAIN - SOME_GAIN)));
}

/* That share of what is learned; the base is the rest. */
static n2_blend share_of(n2_blend b, double share) {
    for (size_t p = 0; p < N2_BLEND_PARTS; p++) b.weight[p] *= share;
    b.weight[0] += 1 - share;
    b.constant *= share;
    return b;
}

static n2_blend_rows rows_to_weigh(const n2_fitter *f) {
    n2_blend_rows rows = rows_of_parts(f, &f->held);
    if (f->ratio->critics < f->o.folds) rows.part[0][NETWORK] = rows.part[1][NETWORK] = NULL;
    return rows;
}

/* Of many columns the Gaussian parts of folds are noise for a part: what they say of rows that they
 * have not seen is too much. Then it is made less, as held-out rows want it; else whatever is
 * learned beside them would take back the noise, and with it their divergences, which are those of
 * all rows and have no bias. How much of their variance is noise the number of their parameters
 * says, a unit for as many rows as there are: what is not normal makes them too large as well, and
 * is no reason. */
static const double NOISE = 0.5, NOISY = 0.3, CLEARLY = 3; /* nats squared; of the variance of the
                                                            * calmer sample; standard errors */

static double noise_of_base(const n2_fitter *f) {
    const double d = (double)f->num.d, dx = (double)f->dx, folds = (double)f->o.folds;
    const double rows[2] = {(double)(f->dx ? f->num.n : f->den.n), (double)f->num.n};
    const double moments = f->dx ? dx * (d - dx) : d + (f->pooled ? 0 : d * (d + 1) / 2);
    const double seen = 1 - 1 / folds;
    return moments / (seen * rows[1]) + (f->dx ? 0 : moments / (seen * rows[0]));
}

static double variance_of(const double *x, size_t n) {
    n2_sum sum = {0, 0}, square = {0, 0};
    for (size_t i = 0; i < n; i++) {
        n2_sum_add(&sum, x[i]);
        n2_sum_add(&square, x[i] * x[i]);
    }
    const double mean = n2_sum_value(&sum) / (double)n;
    return n2_sum_value(&square) / (double)n - mean * mean;
}

static bool is_noisy(const n2_fitter *f, const n2_blend_rows *rows, const n2_blend *calm) {
    const n2_blend raw = {{1, 0, 0, 0}, 0};
    const n2_gain gain = n2_blend_gain(rows, &raw, calm);
    const double variance =
        fmin(variance_of(rows->part[0][0], rows->n[0]), variance_of(rows->part[1][0], rows->n[1]));
    return noise_of_base(f) > fmax(NOISE, NOISY * variance) && gain.value > CLEARLY * gain.error;
}

static n2_blend calm_base(n2_fitter *f) {
    n2_scores *s = f->scores;
    n2_blend_rows rows = rows_of_parts(f, &(n2_part_scores){0});
    const n2_blend calm = n2_blend_fit(&rows, true);
    if (!(calm.weight[0] < 1) || !is_noisy(f, &rows, &calm)) return (n2_blend){{1, 0, 0, 0}, 0};
    f->record->calmed = true;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < s->n[side]; i++) {
            s->f[side][i] = calm.constant + calm.weight[0] * s->f[side][i];
            if (s->base[side]) s->base[side][i] = calm.constant + calm.weight[0] * s->base[side][i];
        }
    return calm;
}

/* The blend was of bases that had been made less: here it is of bases as they are. */
static void undo_calm(n2_blend *blend, const n2_blend *calm) {
    blend->constant += blend->weight[0] * calm->constant;
    blend->weight[0] *= calm->weight[0];
}

/* Trees are taken for no less, in nats a row and in standard errors: what is smooth they tell worse
 * beyond the rows. */
static const double SHARPER = 0.003, SURELY = 2;

/* The base has a weight of its own where it is free to, or where held-out rows clearly want another
 * than 1: of bits and counts, say, normals tell too much. */
static n2_blend weigh(n2_fit_record *r, const n2_blend_rows *rows, bool free_base) {
    const n2_blend fixed = n2_blend_fit(rows, false), all = n2_blend_fit(rows, true);
    const n2_gain gain = n2_blend_gain(rows, &fixed, &all);
    const bool clear = gain.value > SHARPER && gain.value > CLEARLY * gain.error;
    r->reweighed = clear && !free_base;
    return free_base || clear ? all : fixed;
}

/* The weights, with trees if these predict held-out rows better. */
static n2ce_status weigh_trees(n2_fitter *f, n2_blend *blend) {
    const n2_blend_rows rows = rows_to_weigh(f);
    *blend = weigh(f->record, &rows, f->record->shaped);
    if (!n2_fit_has_trees(f)) return N2CE_OK;
    N2_TRY(n2_fit_trees(f));
    double *to[2] = {f->held.of[0][TREES], f->held.of[1][TREES]};
    const n2ce_status status = read_part(f, TREES, 0, to);
    for (size_t side = 0; side < 2; side++) f->held.of[side][TREES] = to[side];
    N2_TRY(status);
    const n2_blend_rows all = rows_to_weigh(f);
    const bool reweighed = f->record->reweighed;
    const n2_blend with = weigh(f->record, &all, f->record->shaped || n2_fit_trees_are_bare(f));
    const n2_gain gain = f->record->sharper = n2_blend_gain(&all, blend, &with);
    if (gain.value > SHARPER && gain.value > SURELY * gain.error)
        *blend = with;
    else {
        f->record->reweighed = reweighed;
        f->scores->passed_over = gain.value > gain.error ? gain.value : 0;
    }
    return N2CE_OK;
}

/* The weights, less of them if they gain too little to be sure, or those of the Gaussian part
 * alone. Where samples are so far apart that the NCE loss sees nothing, networks may gain in their
 * own. */
static void settle_blend(n2_fitter *f, n2_blend blend) {
    const n2_blend none = {{1, 0, 0, 0}, 0};
    const n2_blend_rows rows = rows_to_weigh(f);
    f->record->gain = n2_blend_gain(&rows, &none, &blend);
    double certainty = certainty_of(&f->record->gain);
    if (certainty < 1 && n2_networks_pay(f->record, f->o.folds)) {
        certainty = 1;
        blend = (n2_blend){{1, 0, 1, 0}, 0};
    }
    f->record->learned = certainty > 0;
    f->scores->certainty = certainty;
    blend = share_of(blend, certainty);
    f->ratio->blend = f->record->learned ? blend : none;
    f->scores->replaced = 1 - f->ratio->blend.weight[0];
    drop_parts(f);
}

/* What is learned is the blend without the base as it is, which it then takes the place of. */
static void take_blend(const n2_scores *s, size_t side) {
    for (size_t i = 0; i < s->n[side]; i++) {
        const double whole = s->learned[side][i];
        s->learned[side][i] = whole - s->f[side][i];
        s->f[side][i] = whole;
    }
}

/* The blend at rows that its parts have not seen, and at rows that they have. */
static n2ce_status write_scores(n2_fitter *f) {
    n2_part_scores seen = {0};
    n2ce_status status = pair_of_arrays(f, f->scores->seen);
    if (status == N2CE_OK) status = read_parts(f, 1, &seen);
    if (status == N2CE_OK) {
        write_blend(f, &seen, f->scores->seen);
        write_blend(f, &f->held, f->scores->learned);
        for (size_t side = 0; side < 2; side++) take_blend(f->scores, side);
    }
    n2_fit_free_parts(f, &seen);
    return status;
}

n2ce_status n2_fit_blend(n2_fitter *f) {
    n2_blend blend;
    N2_TRY(read_parts(f, 0, &f->held));
    const n2_blend calm = calm_base(f);
    N2_TRY(weigh_trees(f, &blend));
    settle_blend(f, blend);
    const n2ce_status status = f->record->learned ? write_scores(f) : N2CE_OK;
    undo_calm(&f->ratio->blend, &calm);
    return status;
}

/* ---- half of the rows ---------------------------------------------------- */

/* Every part that has a weight was learned from half of the rows, too. */
static bool has_halves(const n2_fitter *f) {
    const n2_ratio *r = f->ratio;
    if (r->smooths == 0 && r->critics == 0 && r->forests == 0) return false;
    for (size_t k = 0; k < r->smooths; k++)
        if (!f->half_smooth[k]) return false;
    return r->critics == 0 || f->half_critic;
}

/* Where half of the rows say something else of rows of a fold. */
static void move_to_half(const n2_fitter *f, size_t part, size_t side, const double *half,
                         const size_t range[2]) {
    double *to = f->scores->half[side];
    const double *held = f->held.of[side][part], weight = f->ratio->blend.weight[part];
    const size_t rounds = f->dx && side == 0 ? f->scores->n[0] / f->num.n : 1;
    for (size_t s = 0; s < rounds; s++)
        for (size_t i = s * f->num.n + range[0]; i < s * f->num.n + range[1]; i++)
            to[i] += weight * (half[i] - held[i]);
}

static n2ce_status halve_part(n2_fitter *f, size_t part, size_t folds, double *room[2]) {
    for (size_t k = 0; k < folds; k++) {
        size_t held[2][2];
        n2_find_fold(f, k, held);
        N2_TRY(read_fold_somewhere(&(reading){f, part, k, room, true}, k));
        move_to_half(f, part, 1, room[1], held[0]);
        move_to_half(f, part, 0, room[0], f->dx ? held[0] : held[1]);
    }
    return N2CE_OK;
}

n2ce_status n2_fit_halves(n2_fitter *f) {
    n2_scores *s = f->scores;
    double *room[2] = {NULL, NULL};
    if (!f->record->learned || !has_halves(f)) return N2CE_OK;
    const size_t folds = f->ratio->critics > 0 ? 1 : f->o.folds;
    n2ce_status status = f->ratio->forests > 0 ? n2_fit_half_trees(f, folds) : N2CE_OK;
    if (status == N2CE_OK) status = pair_of_arrays(f, s->half);
    if (status == N2CE_OK) status = pair_of_arrays(f, room);
    for (size_t side = 0; side < 2 && status == N2CE_OK; side++)
        memcpy(s->half[side], s->f[side], s->n[side] * sizeof *s->f[side]);
    if (status == N2CE_OK && f->ratio->smooths > 0) status = halve_part(f, SMOOTH, folds, room);
    if (status == N2CE_OK && f->ratio->critics > 0) status = halve_part(f, NETWORK, folds, room);
    if (status == N2CE_OK && f->ratio->forests > 0) status = halve_part(f, TREES, folds, room);
    s->half_share = (double)folds / (double)f->o.folds;
    for (size_t side = 0; side < 2; side++) n2_free(f->ctx, room[side]);
    return status;
}

void n2_fit_free_halves(n2_fitter *f) {
    for (size_t k = 0; k < N2_MOST_FOLDS; k++) {
        n2_smooth_free(f->half_smooth[k]);
        n2_boosting_free(f->half_trees[k]);
    }
    n2_critic_free(f->half_critic);
}
