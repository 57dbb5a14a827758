#include "patch_features.h"

#include "base/linalg.h"
#include "base/pool.h"
#include "picture_rgb.h"
#include "principal.h"

#include <math.h>

enum {
    PATCH = 8,
    STEP = 4,
    NUMBERS = PATCH * PATCH * 3,
    ACROSS = (N2_RGB_SIDE - PATCH) / STEP + 1,
    PATCHES = ACROSS * ACROSS,
    LEARNT = 4096
};

/* Directions are divided by the spread along them. */
typedef struct components {
    double mean[NUMBERS], direction[N2_PATCH_COMPONENTS][NUMBERS];
} components;

struct n2_patch_basis {
    n2ce_ctx *ctx;
    components layout, texture;
};

static void miniature(const float rgb[N2_RGB_NUMBERS], float out[NUMBERS]) {
    enum { CELL = N2_RGB_SIDE / PATCH };
    for (int i = 0; i < NUMBERS; i++) out[i] = 0;
    for (int r = 0; r < N2_RGB_SIDE; r++)
        for (int s = 0; s < N2_RGB_SIDE; s++)
            for (int c = 0; c < 3; c++)
                out[(r / CELL * PATCH + s / CELL) * 3 + c] +=
                    rgb[(r * N2_RGB_SIDE + s) * 3 + c] / (CELL * CELL);
}

static void patch_at(const float rgb[N2_RGB_NUMBERS], int at, float out[NUMBERS]) {
    const int top = at / ACROSS * STEP, left = at % ACROSS * STEP;
    for (int r = 0; r < PATCH; r++)
        for (int k = 0; k < PATCH * 3; k++)
            out[r * PATCH * 3 + k] = rgb[((top + r) * N2_RGB_SIDE + left) * 3 + k];
}

/* ---- learning ---- */

static n2ce_status find_components(n2ce_ctx *ctx, const n2_running_moments *m, components *out) {
    double variance[N2_PATCH_COMPONENTS];
    N2_TRY(n2_principal_components(ctx, m, NUMBERS, N2_PATCH_COMPONENTS, out->mean,
                                   out->direction[0], variance));
    for (size_t k = 0; k < N2_PATCH_COMPONENTS; k++) {
        const bool spreads = variance[k] > 1e-9 * variance[0] && variance[k] > 0;
        const double scale = spreads ? 1 / sqrt(variance[k]) : 0;
        for (size_t i = 0; i < NUMBERS; i++) out->direction[k][i] *= scale;
    }
    return N2CE_OK;
}

static n2ce_status add_picture(const n2_images *real, size_t i, n2_running_moments *layout,
                               n2_running_moments *texture) {
    float rgb[N2_RGB_NUMBERS], small[NUMBERS], patches[PATCHES][NUMBERS];
    n2_picture_rgb(real, i, N2_RGB_SIDE, rgb);
    miniature(rgb, small);
    for (int k = 0; k < PATCHES; k++) patch_at(rgb, k, patches[k]);
    N2_TRY(n2_running_moments_add(layout, small, 1));
    return n2_running_moments_add(texture, patches[0], PATCHES);
}

static n2ce_status learn(n2_patch_basis *basis, const n2_images *real, n2_running_moments *layout,
                         n2_running_moments *texture) {
    const size_t n = real->n < LEARNT ? real->n : LEARNT;
    for (size_t i = 0; i < n; i++) N2_TRY(add_picture(real, i * real->n / n, layout, texture));
    N2_TRY(find_components(basis->ctx, layout, &basis->layout));
    return find_components(basis->ctx, texture, &basis->texture);
}

n2ce_status n2_patch_basis_learn(n2ce_ctx *ctx, const n2_images *real, n2_patch_basis **out) {
    n2_running_moments *layout = NULL, *texture = NULL;
    n2_patch_basis *basis = n2_alloc(ctx, 1, sizeof *basis);
    *out = NULL;
    if (!basis) return N2CE_ENOMEM;
    basis->ctx = ctx;
    n2ce_status status = n2_running_moments_new(ctx, NUMBERS, &layout);
    if (status == N2CE_OK) status = n2_running_moments_new(ctx, NUMBERS, &texture);
    if (status == N2CE_OK) status = learn(basis, real, layout, texture);
    n2_running_moments_free(layout);
    n2_running_moments_free(texture);
    if (status == N2CE_OK)
        *out = basis;
    else
        n2_patch_basis_free(basis);
    return status;
}

void n2_patch_basis_free(n2_patch_basis *basis) {
    if (basis) n2_free(basis->ctx, basis);
}

/* ---- applying ---- */

typedef struct patch_job {
    const n2_patch_basis *basis;
    const n2_images *pictures;
    float *features;
} patch_job;

static void centre(const components *c, const float x[NUMBERS], double out[NUMBERS]) {
    for (int i = 0; i < NUMBERS; i++) out[i] = (double)x[i] - c->mean[i];
}

static void describe(void *arg, size_t item, int worker) {
    (void)worker;
    const patch_job *job = arg;
    const components *layout = &job->basis->layout, *texture = &job->basis->texture;
    float rgb[N2_RGB_NUMBERS], part[NUMBERS], *out = job->features + item * N2_PATCH_FEATURES;
    double x[NUMBERS], squares[N2_PATCH_COMPONENTS] = {0};
    n2_picture_rgb(job->pictures, item, N2_RGB_SIDE, rgb);
    miniature(rgb, part);
    centre(layout, part, x);
    for (int k = 0; k < N2_PATCH_COMPONENTS; k++)
        out[k] = (float)n2_dot(layout->direction[k], x, NUMBERS);
    for (int p = 0; p < PATCHES; p++) {
        patch_at(rgb, p, part);
        centre(texture, part, x);
        for (int k = 0; k < N2_PATCH_COMPONENTS; k++) {
            const double v = n2_dot(texture->direction[k], x, NUMBERS);
            squares[k] += v * v;
        }
    }
    for (int k = 0; k < N2_PATCH_COMPONENTS; k++)
        out[N2_PATCH_COMPONENTS + k] = (float)sqrt(squares[k] / PATCHES);
}

n2ce_status n2_patch_features(const n2_patch_basis *basis, const n2_images *pictures,
                              float *features) {
    patch_job job = {basis, pictures, features};
    return n2_parallel_for(basis->ctx, pictures->n, describe, &job);
}
