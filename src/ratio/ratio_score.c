/* A fitted log ratio: where its networks are, and what it says of rows. */
#include "fit.h"

#include <string.h>

void n2_ratio_free(n2_ratio *r) {
    if (!r) return;
    n2_features_free(r->features);
    n2_gauss_free(r->base);
    for (size_t k = 0; k < r->critics; k++) n2_critic_free(r->critic[k]);
    for (size_t k = 0; k < r->smooths; k++) n2_smooth_free(r->smooth[k]);
    for (size_t k = 0; k < r->forests; k++) n2_boosting_free(r->trees[k]);
    n2_shapes_free(r->shapes);
    n2_kernel_ratio_free(r->kernel);
    n2_free(r->ctx, r);
}

n2ce_status n2_ratio_move(n2_ratio *r, const n2_critic_options *o, n2_device_choice *choice) {
    n2_critic_options there = *o;
    there.choice = choice;
    for (size_t k = 0; k < r->critics; k++) {
        n2_critic *copy;
        N2_TRY(n2_critic_copy(r->critic[k], r->base, &there, &copy));
        n2_critic_free(r->critic[k]);
        r->critic[k] = copy;
    }
    return N2CE_OK;
}

enum { SCORE_BLOCK = 8192 };

/* Adds weight times the mean of what some parts have added up to, and starts the next sum. */
static void add_mean(double *f, double *sum, size_t n, double weight, size_t parts) {
    for (size_t i = 0; i < n && parts > 0; i++) f[i] += weight * (sum[i] / (double)parts);
    memset(sum, 0, n * sizeof *sum);
}

/* At most SCORE_BLOCK rows. */
static n2ce_status score_features(n2_ratio *r, const double *x, size_t n, double *f) {
    double sum[SCORE_BLOCK] = {0};
    memset(f, 0, n * sizeof *f);
    if (r->kernel) {
        n2_kernel_ratio_score(r->kernel, x, n, f);
        return N2CE_OK;
    }
    for (size_t k = 0; k < r->critics; k++) N2_TRY(n2_critic_add(r->critic[k], x, n, sum));
    add_mean(f, sum, n, r->blend.weight[2], r->critics);
    for (size_t k = 0; k < r->smooths; k++) N2_TRY(n2_smooth_add(r->smooth[k], x, n, sum));
    add_mean(f, sum, n, r->blend.weight[1], r->smooths);
    for (size_t k = 0; k < r->forests; k++)
        n2_boosting_add(r->trees[k], 0, r->trees[k]->trees, x, n, sum);
    add_mean(f, sum, n, r->blend.weight[3], r->forests);
    if (r->base) N2_TRY(n2_gauss_score(r->base, x, n, sum));
    add_mean(f, sum, n, r->blend.weight[0], r->base != NULL);
    for (size_t i = 0; i < n; i++) f[i] += r->blend.constant - r->shift;
    return N2CE_OK;
}

n2ce_status n2_ratio_score(n2_ratio *r, const double *rows, size_t n, double *f) {
    const size_t d = r->features->width;
    double *x = n2_realloc(r->ctx, NULL, SCORE_BLOCK * d, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    n2ce_status status = N2CE_OK;
    for (size_t first = 0; first < n && status == N2CE_OK; first += SCORE_BLOCK) {
        const size_t count = n - first < SCORE_BLOCK ? n - first : SCORE_BLOCK;
        status = n2_features_apply(r->features, rows + first * r->features->cols, count, x);
        if (status == N2CE_OK) status = score_features(r, x, count, f + first);
        if (n2_cancelled(r->ctx)) status = N2CE_ECANCELED;
    }
    n2_free(r->ctx, x);
    return status;
}
