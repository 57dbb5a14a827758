#include "critic_file.h"

#include "engine/graph.h"

#include <stdio.h>
#include <string.h>

n2ce_status n2_critic_put(n2_bundle *b, const n2_critic *c, size_t k) {
    const n2_tensor *t;
    N2_TRY(n2_critic_pull(c));
    for (size_t i = 0; (t = n2_critic_parameter(c, i)); i++) {
        char name[64];
        snprintf(name, sizeof name, "critic.%zu.%s", k, t->name);
        n2_bundle_put(b, name, N2_ST_F32, t->shape.rank, t->shape.dim, t->data);
    }
    return N2CE_OK;
}

/* A critic that is larger than its part of the file must not even be begun: its width
 * squared, for each block, and its width times the features are among its parameters. */
static bool fits_file(const n2_st_file *f, size_t k, const n2_critic_shape *shape) {
    const n2_critic_options *o = shape->options;
    size_t found = 0;
    char prefix[32];
    const int n = snprintf(prefix, sizeof prefix, "critic.%zu.", k);
    for (size_t i = 0; i < n2_st_count(f); i++)
        if (strncmp(n2_st_at(f, i)->name, prefix, (size_t)n) == 0)
            found += n2_st_elements(n2_st_at(f, i));
    return found >= o->width * o->width * (o->blocks ? o->blocks : 1) &&
           found >= o->width * shape->d;
}

static n2ce_status fill(n2ce_ctx *ctx, const n2_st_file *f, size_t k, n2_critic *c) {
    const n2_tensor *t;
    for (size_t i = 0; (t = n2_critic_parameter(c, i)); i++) {
        char name[64];
        snprintf(name, sizeof name, "critic.%zu.%s", k, t->name);
        const n2_st_tensor *s = n2_st_find(f, name);
        if (!s) return N2CE_EDATA;
        N2_TRY(n2_st_to_f32(ctx, s, t->data, (size_t)n2_elements(t->shape)));
    }
    n2_critic_push(c);
    return N2CE_OK;
}

n2ce_status n2_critic_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k,
                           const n2_critic_shape *shape, n2_critic **out) {
    n2_critic *c;
    *out = NULL;
    if (!fits_file(f, k, shape)) return N2CE_EDATA;
    N2_TRY(n2_critic_new(ctx, shape->d, shape->dx, shape->gauss, shape->options, &c));
    const n2ce_status status = fill(ctx, f, k, c);
    if (status == N2CE_OK)
        *out = c;
    else
        n2_critic_free(c);
    return status;
}
