/* Features of pictures, and how near sets of them are. */
#include "images_study.h"

/* What there is to know of a set: features [n x d], and the class score. Free the features. */
static n2ce_status look(n2_images_study *s, const n2_images *p, float **features, double *classes) {
    float *x = *features = n2_alloc(s->ctx, p->n * s->d, sizeof *x);
    double *probabilities = s->classes ? n2_alloc(s->ctx, p->n * s->classes, sizeof(double)) : NULL;
    *classes = N2_NAN;
    n2ce_status status = x && (probabilities || !s->classes) ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK && s->net)
        status = n2_feature_net_apply(s->net, p, &s->choice, x, probabilities);
    else if (status == N2CE_OK)
        status = n2_patch_features(s->basis, p, x);
    if (status == N2CE_OK && s->classes)
        *classes = n2_class_score_of(probabilities, p->n, s->classes).mean;
    n2_free(s->ctx, probabilities);
    if (status == N2CE_OK) return N2CE_OK;
    n2_free(s->ctx, x);
    *features = NULL;
    return status;
}

static n2_feature_rows real_rows(const n2_images_study *s) {
    return (n2_feature_rows){s->set.train->n, s->d, s->real};
}

/* Halves of a copy: the order of the features is that of the pictures. */
static n2ce_status floor_of_halves(n2_images_study *s) {
    const size_t n = s->set.train->n * s->d;
    float *copy = n2_alloc(s->ctx, n, sizeof *copy);
    if (!copy) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) copy[i] = s->real[i];
    s->halves = true;
    const n2ce_status status =
        n2_set_floor(s->ctx, copy, s->set.train->n, s->d, s->neighbours, 0, &s->floor);
    n2_free(s->ctx, copy);
    return status;
}

static n2ce_status floor_of_test(n2_images_study *s) {
    const n2_feature_rows real = real_rows(s);
    float *x;
    double classes;
    N2_TRY(look(s, s->set.test, &x, &classes));
    const n2_feature_rows test = {s->set.test->n, s->d, x};
    const n2ce_status status =
        n2_set_distance_of(s->ctx, &real, &test, s->neighbours, 0, &s->floor);
    n2_free(s->ctx, x);
    return status;
}

n2ce_status n2_images_features_open(n2_images_study *s) {
    const char *path = n2ce_options_get(s->options, "features");
    if (path) N2_TRY(n2_feature_net_open(s->ctx, path, &s->net));
    if (!path) N2_TRY(n2_patch_basis_learn(s->ctx, s->set.train, &s->basis));
    s->d = s->net ? n2_feature_net_width(s->net) : N2_PATCH_FEATURES;
    s->classes = s->net ? n2_feature_net_classes(s->net) : 0;
    return N2CE_OK;
}

n2ce_status n2_images_judge_open(n2_images_study *s) {
    N2_TRY(look(s, s->set.train, &s->real, &s->real_classes));
    const bool test = s->set.test && s->set.test->n >= N2_SET_LEAST;
    return test ? floor_of_test(s) : floor_of_halves(s);
}

void n2_images_judge_close(n2_images_study *s) {
    n2_feature_net_free(s->net);
    n2_patch_basis_free(s->basis);
    n2_free(s->ctx, s->real);
    s->net = NULL;
    s->basis = NULL;
    s->real = NULL;
}

n2ce_status n2_images_judge(n2_images_study *s, const n2_images *made, n2_images_score *out) {
    const n2_feature_rows real = real_rows(s);
    n2_set_distance d;
    float *x;
    double classes;
    N2_TRY(look(s, made, &x, &classes));
    const n2_feature_rows rows = {made->n, s->d, x};
    const n2ce_status status = n2_set_distance_of(s->ctx, &real, &rows, s->neighbours, 0, &d);
    n2_free(s->ctx, x);
    if (status != N2CE_OK) return status;
    *out = (n2_images_score){.done = true,
                             .frechet = d.frechet.distance,
                             .kid = d.kid.mean,
                             .kid_spread = d.kid.spread,
                             .precision = d.neighbours.precision,
                             .recall = d.neighbours.recall,
                             .classes = classes,
                             .gain = N2_NAN};
    return N2CE_OK;
}
