#include "sample_diffusion.h"

#include "device_options.h"

#include <string.h>

static n2ce_status read_sampling(n2_denoiser *m, const n2ce_options *o, n2_sampling *how) {
    const bool own = m->spec.kind != N2_DENOISER_TEACHER;
    *how = n2_denoiser_sampling(&m->spec);
    if (own && (n2_options_given(o, "sampler") || n2_options_given(o, "steps")))
        return n2_fail(m->ctx, N2CE_EINVAL,
                       "This model was distilled to %zu step%s: --sampler and --steps are for "
                       "teachers.",
                       how->steps, how->steps == 1 ? "" : "s");
    if (n2_options_given(o, "guidance") && (own || !m->spec.net.labels))
        return n2_fail(m->ctx, N2CE_EINVAL,
                       "--guidance is for teachers that were told classes (train --labels).");
    if (n2_options_has_word(o, "sampler", "ancestral")) how->kind = N2_SAMPLER_ANCESTRAL;
    if (n2_options_has_word(o, "sampler", "fastdpm")) how->kind = N2_SAMPLER_FASTDPM;
    if (!own && how->kind != N2_SAMPLER_HEUN) how->steps = 10;
    if (!n2_options_is_auto(o, "steps")) how->steps = (size_t)n2_options_count(o, "steps");
    how->churn = n2ce_options_number(o, "churn");
    how->early = 1 - n2ce_options_number(o, "second");
    how->guide = n2ce_options_number(o, "guidance") - 1;
    const size_t most = how->kind == N2_SAMPLER_FASTDPM ? 100 : N2_DENOISER_STEPS_MAX;
    if (own || (how->steps >= 2 && how->steps <= most)) return N2CE_OK;
    return n2_fail(m->ctx, N2CE_EINVAL, "%zu steps of %s: it takes 2 to %zu.", how->steps,
                   n2_sampler_name(how->kind), most);
}

static n2ce_status read_label(const n2_denoiser *m, const n2ce_options *o, int64_t *label) {
    *label = n2_options_is_auto(o, "label") ? -1 : (int64_t)n2_options_count(o, "label");
    if (*label < m->spec.net.labels || *label < 0) return N2CE_OK;
    return n2_fail(m->ctx, N2CE_EINVAL, "--label is %lld, and the model was told %lld classes.",
                   (long long)*label, (long long)m->spec.net.labels);
}

n2ce_status n2_sample_diffusion(n2_denoiser *m, const n2ce_options *o, n2_device_choice *choice,
                                n2_images **out) {
    n2_sampling how;
    int64_t label;
    N2_TRY(read_sampling(m, o, &how));
    N2_TRY(read_label(m, o, &label));
    N2_TRY(n2_denoiser_settle(m, choice, &how, (size_t)n2_options_count(o, "number")));
    return n2_denoiser_sample(m, &how, label, (size_t)n2_options_count(o, "number"),
                              n2_options_count(o, "seed"), out);
}
