/* What a model is made of. */
#include "denoiser.h"

#include "picture_tensors.h"

#include <stdio.h>
#include <string.h>

/* ---- networks ---- */

n2ce_status n2_score_net_new(n2_store *store, const char *prefix, const n2_unet_spec *spec,
                             uint64_t seed, n2_score_net *out) {
    out->parameters = n2_parameters_new(store, seed);
    out->unet = n2_unet_new(&out->parameters, prefix, spec);
    return out->parameters.failed ? N2CE_ENOMEM : N2CE_OK;
}

n2ce_status n2_score_net_copy(const n2_score_net *to, const n2_score_net *from) {
    const n2_parameters *a = &from->parameters, *b = &to->parameters;
    for (size_t i = 0; i < a->n; i++) {
        N2_TRY(n2_tensor_pull(a->store, a->list[i]));
        memcpy(b->list[i]->data, a->list[i]->data, n2_tensor_bytes(a->store, a->list[i]));
        n2_tensor_push(b->store, b->list[i]);
    }
    return N2CE_OK;
}

/* ---- models ---- */

static n2ce_status make_log_sigma(n2_denoiser *m) {
    const n2_sampling how = {.kind = N2_SAMPLER_ANCESTRAL, .steps = m->spec.steps};
    if (m->spec.steps < 2 || m->spec.steps > N2_FEW_STEPS_MAX)
        return n2_fail(m->ctx, N2CE_EINVAL, "A sampler of few steps has 2 to %d.",
                       (int)N2_FEW_STEPS_MAX);
    m->log_sigma = n2_store_add(m->store, "log_sigma", n2_dims((int64_t)m->spec.steps));
    if (!m->log_sigma) return N2CE_ENOMEM;
    for (size_t i = 0; i < m->spec.steps; i++)
        ((float *)m->log_sigma->data)[i] = (float)n2_few_steps_log_sigma(&how, i);
    return N2CE_OK;
}

static n2ce_status make(n2_denoiser *m, uint64_t seed) {
    N2_TRY(n2_store_new(m->ctx, sizeof(float), &m->store));
    N2_TRY(n2_score_net_new(m->store, "", &m->spec.net, seed, &m->net));
    return m->spec.kind == N2_DENOISER_FEW_STEPS ? make_log_sigma(m) : N2CE_OK;
}

n2ce_status n2_denoiser_new(n2ce_ctx *ctx, const n2_denoiser_spec *spec, uint64_t seed,
                            n2_denoiser **out) {
    n2_denoiser *m = n2_alloc(ctx, 1, sizeof *m);
    *out = NULL;
    if (!m) return N2CE_ENOMEM;
    *m = (n2_denoiser){.ctx = ctx, .spec = *spec, .backend = n2_choice_backend(NULL)};
    const n2ce_status status = make(m, seed);
    if (status == N2CE_OK)
        *out = m;
    else
        n2_denoiser_free(m);
    return status;
}

void n2_denoiser_free(n2_denoiser *m) {
    if (!m) return;
    n2_store_free(m->store);
    n2_free(m->ctx, m);
}

/* ---- sizes ---- */

static const struct {
    const char *name;
    const n2_unet_spec *spec;
} nets[] = {
    {"s", &n2_unet_s}, {"ddpmpp", &n2_unet_ddpmpp_cifar10}, {"ddpm", &n2_unet_ddpm_cifar10}};

static n2ce_status check_sides(n2ce_ctx *ctx, const n2_denoiser_spec *s, const char *name) {
    const int64_t times = (int64_t)1 << (s->net.levels - 1);
    if (s->height > N2_DENOISER_SIDE_MAX || s->width > N2_DENOISER_SIDE_MAX)
        return n2_fail(ctx, N2CE_EDATA,
                       "The pictures are %lld x %lld; of diffusion models no side is longer than "
                       "%d. Scale or cut them.",
                       (long long)s->height, (long long)s->width, (int)N2_DENOISER_SIDE_MAX);
    if (s->height % times == 0 && s->width % times == 0) return N2CE_OK;
    return n2_fail(
        ctx, N2CE_EDATA,
        "The pictures are %lld x %lld, and the network \"%s\" halves them %d times: both "
        "sides must be divisible by %lld. Scale or cut them.",
        (long long)s->height, (long long)s->width, name, s->net.levels - 1, (long long)times);
}

n2ce_status n2_denoiser_spec_for(n2ce_ctx *ctx, const char *name, const n2_images *p, int64_t width,
                                 int64_t labels, n2_denoiser_spec *out) {
    const size_t n = sizeof nets / sizeof *nets;
    size_t i = 0;
    while (i < n && strcmp(nets[i].name, name) != 0) i++;
    if (i == n)
        return n2_fail(ctx, N2CE_EINVAL,
                       "There is no score network \"%s\": there are s, ddpmpp and ddpm.", name);
    *out = (n2_denoiser_spec){.height = (int64_t)p->height,
                              .width = (int64_t)p->width,
                              .net = *nets[i].spec,
                              .edm = N2_EDM_DEFAULTS};
    out->net.channels = (int64_t)p->channels;
    out->net.labels = labels;
    out->net.augment = 0;
    if (width) out->net.base = width;
    if (out->net.base % 4)
        return n2_fail(ctx, N2CE_EINVAL, "A width of %lld: it must be divisible by 4.",
                       (long long)width);
    return check_sides(ctx, out, name);
}

n2ce_status n2_denoiser_check_size(n2ce_ctx *ctx, const n2_denoiser_spec *s, const n2_images *p) {
    if (p->height == (size_t)s->height && p->width == (size_t)s->width &&
        p->channels == (size_t)s->net.channels)
        return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA,
                   "The pictures are %zu x %zu with %zu channel%s, and the model is of %lld x %lld "
                   "with %lld. Scale or convert them, or take another model.",
                   p->height, p->width, p->channels, p->channels == 1 ? "" : "s",
                   (long long)s->height, (long long)s->width, (long long)s->net.channels);
}
