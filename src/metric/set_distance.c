#include "set_distance.h"

#include "base/random.h"

static n2ce_status frechet_of(n2ce_ctx *ctx, const n2_feature_rows *a, const n2_feature_rows *b,
                              n2_frechet *out) {
    n2_gaussian_fit of_a, of_b;
    N2_TRY(n2_gaussian_fit_rows(ctx, a, &of_a));
    n2ce_status status = n2_gaussian_fit_rows(ctx, b, &of_b);
    if (status == N2CE_OK) {
        status = n2_frechet_distance(ctx, &of_a, &of_b, out);
        n2_gaussian_fit_free(ctx, &of_b);
    }
    n2_gaussian_fit_free(ctx, &of_a);
    return status;
}

n2ce_status n2_set_distance_of(n2ce_ctx *ctx, const n2_feature_rows *real,
                               const n2_feature_rows *made, size_t k, uint64_t seed,
                               n2_set_distance *out) {
    N2_TRY(frechet_of(ctx, real, made, &out->frechet));
    N2_TRY(n2_kid_distance(ctx, real, made, seed, &out->kid));
    return n2_precision_and_recall(ctx, real, made, k, &out->neighbours);
}

static void swap_rows(float *a, float *b, size_t d) {
    for (size_t i = 0; i < d; i++) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

n2ce_status n2_set_floor(n2ce_ctx *ctx, float *x, size_t n, size_t d, size_t k, uint64_t seed,
                         n2_set_distance *out) {
    enum { DEAL = 2 }; /* the stream after those of the kernel distance */
    const n2_stream s = {seed, DEAL, 0};
    for (size_t i = 0; i + 1 < n; i++)
        swap_rows(x + i * d, x + (i + n2_random_below(s, i, n - i)) * d, d);
    const n2_feature_rows one = {n / 2, d, x}, other = {n / 2, d, x + n / 2 * d};
    return n2_set_distance_of(ctx, &one, &other, k, seed, out);
}
