#include "distance_watch.h"

#include "base/numerics.h"
#include "metric/patch_features.h"

struct n2_distance_watch {
    n2ce_ctx *ctx;
    n2_feature_net *net; /* NULL: layout and texture */
    n2_patch_basis *basis;
    n2_device_choice *choice;
    size_t d, classes;
    n2_feature_rows real;
    float *features; /* of the real pictures */
    n2_gaussian_fit fit;
};

enum { NEIGHBOURS = 3 };

/* Features of all pictures, to be freed, and the class score. */
static n2ce_status look(n2_distance_watch *w, const n2_images *p, float **features,
                        double *classes) {
    float *x = n2_alloc(w->ctx, p->n * w->d, sizeof *x);
    double *shares = n2_alloc(w->ctx, p->n * w->classes, sizeof *shares);
    n2ce_status status = x && shares ? N2CE_OK : N2CE_ENOMEM;
    *classes = N2_NAN;
    if (status == N2CE_OK && w->net)
        status = n2_feature_net_apply(w->net, p, w->choice, x, shares);
    else if (status == N2CE_OK)
        status = n2_patch_features(w->basis, p, x);
    if (status == N2CE_OK && w->classes)
        *classes = n2_class_score_of(shares, p->n, w->classes).mean;
    n2_free(w->ctx, shares);
    if (status != N2CE_OK) n2_free(w->ctx, x);
    *features = status == N2CE_OK ? x : NULL;
    return status;
}

static n2ce_status prepare(n2_distance_watch *w, const char *features, const n2_images *real) {
    double classes;
    if (features)
        N2_TRY(n2_feature_net_open(w->ctx, features, &w->net));
    else
        N2_TRY(n2_patch_basis_learn(w->ctx, real, &w->basis));
    w->d = w->net ? n2_feature_net_width(w->net) : N2_PATCH_FEATURES;
    w->classes = w->net ? n2_feature_net_classes(w->net) : 0;
    N2_TRY(look(w, real, &w->features, &classes));
    w->real = (n2_feature_rows){real->n, w->d, w->features};
    const n2ce_status status = n2_gaussian_fit_rows(w->ctx, &w->real, &w->fit);
    if (status != N2CE_OK) w->fit.mean = NULL;
    return status;
}

n2ce_status n2_distance_watch_open(n2ce_ctx *ctx, const char *features, const n2_images *real,
                                   n2_device_choice *choice, n2_distance_watch **out) {
    n2_distance_watch *w = n2_alloc(ctx, 1, sizeof *w);
    *out = NULL;
    if (!w) return N2CE_ENOMEM;
    *w = (n2_distance_watch){.ctx = ctx, .choice = choice};
    const n2ce_status status = prepare(w, features, real);
    if (status == N2CE_OK)
        *out = w;
    else
        n2_distance_watch_close(w);
    return status;
}

void n2_distance_watch_close(n2_distance_watch *w) {
    if (!w) return;
    n2_feature_net_free(w->net);
    n2_patch_basis_free(w->basis);
    if (w->fit.mean) n2_gaussian_fit_free(w->ctx, &w->fit);
    n2_free(w->ctx, w->features);
    n2_free(w->ctx, w);
}

size_t n2_watch_features(const n2_distance_watch *w) { return w->d; }

n2ce_status n2_watch_distance(n2_distance_watch *w, const n2_images *made, double *out) {
    n2_gaussian_fit fit;
    n2_frechet distance;
    float *x;
    double classes;
    N2_TRY(look(w, made, &x, &classes));
    const n2_feature_rows rows = {made->n, w->d, x};
    n2ce_status status = n2_gaussian_fit_rows(w->ctx, &rows, &fit);
    n2_free(w->ctx, x);
    if (status != N2CE_OK) return status;
    status = n2_frechet_distance(w->ctx, &w->fit, &fit, &distance);
    n2_gaussian_fit_free(w->ctx, &fit);
    *out = distance.distance;
    return status;
}

n2ce_status n2_watch_all(n2_distance_watch *w, const n2_images *made, n2_set_distance *out,
                         double *classes) {
    float *x;
    N2_TRY(look(w, made, &x, classes));
    const n2_feature_rows rows = {made->n, w->d, x};
    const n2ce_status status = n2_set_distance_of(w->ctx, &w->real, &rows, NEIGHBOURS, 0, out);
    n2_free(w->ctx, x);
    return status;
}
