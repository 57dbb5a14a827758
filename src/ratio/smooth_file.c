#include "smooth_file.h"

#include <stdio.h>

static const char *name_of(size_t k, const char *what, char text[64]) {
    snprintf(text, 64, "smooth.%zu.%s", k, what);
    return text;
}

static void put_singles(n2_bundle *b, const n2_smooth_singles *s, const char *name) {
    double *numbers = n2_bundle_room(b, 3);
    if (!numbers) return;
    numbers[0] = s->share;
    numbers[1] = s->scale;
    numbers[2] = (double)s->dx;
    n2_bundle_put_doubles(b, name, 3, 0, numbers);
}

n2ce_status n2_smooth_put(n2_bundle *b, const n2_smooth *s, size_t k) {
    char name[64];
    n2_bundle_put_doubles(b, name_of(k, "scale", name), s->d, 0, s->scale);
    n2_bundle_put_doubles(b, name_of(k, "row", name), s->centres, s->d, s->centre);
    n2_bundle_put_doubles(b, name_of(k, "weight", name), s->centres, 0, s->weight);
    n2_bundle_put_doubles(b, name_of(k, "constant", name), 1, 0, &s->constant);
    if (s->shapes)
        n2_bundle_put_doubles(b, name_of(k, "shapes", name), s->shapes->n, 0, s->shape_weight);
    if (s->singles.share > 0) put_singles(b, &s->singles, name_of(k, "singles", name));
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
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "row", name), s->centres * s->d, &s->centre));
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "weight", name), s->centres, &s->weight));
    N2_TRY(n2_bundle_take(ctx, f, name_of(k, "constant", name), 1, &constant));
    s->constant = *constant;
    n2_free(ctx, constant);
    if (!n2_st_find(f, name_of(k, "shapes", name))) {
        s->shapes = NULL;
        return N2CE_OK;
    }
    if (!s->shapes) return N2CE_EDATA; /* weights of functions that the file does not have */
    return n2_bundle_take(ctx, f, name, s->shapes->n, &s->shape_weight);
}

/* What single columns say, if the file has it. */
static n2ce_status take_singles(n2ce_ctx *ctx, const n2_st_file *f, size_t k, n2_smooth *s) {
    char name[64];
    double *found = NULL;
    if (!n2_st_find(f, name_of(k, "singles", name))) return N2CE_OK;
    N2_TRY(n2_bundle_take(ctx, f, name, 3, &found));
    const bool sound = found[0] >= 0 && found[0] <= 1 && found[2] >= 0 && found[2] < (double)s->d;
    if (sound) s->singles = (n2_smooth_singles){found[0], found[1], (size_t)found[2]};
    n2_free(ctx, found);
    return sound ? N2CE_OK
                 : n2_fail(ctx, N2CE_EDATA, "tensor \"%s\" has numbers that no model has", name);
}

n2ce_status n2_smooth_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k, size_t d,
                           const n2_shapes *shapes, n2_smooth **out) {
    char name[64];
    n2_smooth *s = n2_alloc(ctx, 1, sizeof *s);
    *out = NULL;
    if (!s) return N2CE_ENOMEM;
    const size_t centres = n2_st_elements(n2_st_find(f, name_of(k, "weight", name)));
    *s = (n2_smooth){.ctx = ctx, .d = d, .centres = centres, .shapes = shapes};
    n2ce_status status = take_tensors(ctx, f, k, s);
    if (status == N2CE_OK) status = take_singles(ctx, f, k, s);
    if (status == N2CE_OK)
        *out = s;
    else
        n2_smooth_free(s);
    return status;
}
