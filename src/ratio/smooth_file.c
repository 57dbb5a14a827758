#include "smooth_file.h"

#include <stdio.h>

static const char *name_of(size_t k, const char *what, char text[64]) {
    snprintf(text, 64, "smooth.%zu.%s", k, what);
    return text;
}

n2ce_status n2_smooth_put(n2_bundle *b, const n2_smooth *s, size_t k) {
    char name[64];
    n2_bundle_put_doubles(b, name_of(k, "scale", name), s->d, 0, s->scale);
    n2_bundle_put_doubles(b, name_of(k, "centre", name), s->centres, s->d, s->centre);
    n2_bundle_put_doubles(b, name_of(k, "weight", name), s->centres, 0, s->weight);
    n2_bundle_put_doubles(b, name_of(k, "constant", name), 1, 0, &s->constant);
    return b->failed ? N2CE_ENOMEM : N2CE_OK;
}

bool n2_smooth_is_there(const n2_st_file *f, size_t k) {
    char name[64];
    return n2_st_find(f, name_of(k, "weight", name)) != NULL;
}

static n2ce_status take_tensors(n2ce_ctx *ctx, const n2_st_file *f, size_t k, n2_smooth *s) {
    char name[64];
    double *constant = NULL;
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "scale", name), s->d, &s->scale));
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "centre", name), s->centres * s->d, &s->centre));
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "weight", name), s->centres, &s->weight));
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "constant", name), 1, &constant));
    s->constant = *constant;
    n2_free(ctx, constant);
    return N2CE_OK;
}

n2ce_status n2_smooth_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k, size_t d,
                           n2_smooth **out) {
    char name[64];
    n2_smooth *s = n2_alloc(ctx, 1, sizeof *s);
    *out = NULL;
    if (!s) return N2CE_ENOMEM;
    const size_t centres = n2_st_elements(n2_st_find(f, name_of(k, "weight", name)));
    *s = (n2_smooth){.ctx = ctx, .d = d, .centres = centres};
    const n2ce_status status = take_tensors(ctx, f, k, s);
    if (status == N2CE_OK)
        *out = s;
    else
        n2_smooth_free(s);
    return status;
}
