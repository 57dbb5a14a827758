#include "lebm_options.h"

#include <math.h>

static bool is_fast(const n2ce_options *o) { return n2_options_has_word(o, "preset", "fast"); }

n2_lebm_sampling n2_lebm_sampling_of(const n2ce_options *o) {
    n2_lebm_sampling how = {.step = n2ce_options_number(o, "step-size")};
    if (n2_options_has_word(o, "chains", "plain")) how.chains = N2_LEBM_PLAIN;
    if (n2_options_has_word(o, "chains", "adjusted")) how.chains = N2_LEBM_ADJUSTED;
    return how;
}

/* Networks that two cores train in minutes. */
static void make_narrow(n2_lebm_plan *p) {
    p->spec.encoder_width = p->spec.decoder_width = 16;
    p->spec.embedding = 128;
    p->spec.nz = p->spec.net->channels == 1 ? 16 : 32;
    p->spec.prior.width = 64;
    p->schedule.steps[N2_LEBM_VAE] = 1500;
    p->schedule.steps[N2_LEBM_PRIOR] = 2000;
    p->schedule.steps[N2_LEBM_JOINT] = 400;
    p->schedule.steps[N2_LEBM_SETTLE] = 800;
    p->schedule.vae_rate = 1e-3;
    p->schedule.batch = 64;
}

/* A list of so many numbers, or `fewer` of them and zeros; false, and nothing: "auto". */
static n2ce_status read_list(n2ce_ctx *ctx, const n2ce_options *o, const char *name, size_t fewer,
                             size_t n, double *out, bool *given) {
    n2_arena arena = n2_arena_new(ctx);
    double *values;
    size_t found;
    n2ce_status status = n2_options_reals(o, name, &arena, &values, &found);
    *given = status == N2CE_OK && found > 0;
    if (status == N2CE_OK && found > 0 && (found < fewer || found > n))
        status =
            n2_fail(ctx, N2CE_EINVAL, "--%s has %zu numbers; it takes %zu%s, separated by commas.",
                    name, found, fewer, fewer < n ? " or one more" : "");
    for (size_t i = 0; i < n && status == N2CE_OK && *given; i++)
        out[i] = i < found ? values[i] : 0;
    n2_arena_free(&arena);
    return status;
}

static n2ce_status read_schedule(n2ce_ctx *ctx, const n2ce_options *o, n2_lebm_schedule *s) {
    double numbers[N2_LEBM_PHASES];
    bool given;
    N2_TRY(read_list(ctx, o, "misfit", 2, 2, numbers, &given));
    if (given) {
        s->weight[N2_LEBM_VAE] = numbers[0];
        s->weight[N2_LEBM_JOINT] = numbers[1];
    }
    N2_TRY(read_list(ctx, o, "phases", N2_LEBM_SETTLE, N2_LEBM_PHASES, numbers, &given));
    for (size_t i = 0; i < N2_LEBM_PHASES; i++) {
        if (given) s->steps[i] = (uint64_t)numbers[i];
        const double scaled = floor((double)s->steps[i] * n2ce_options_number(o, "effort") + 0.5);
        s->steps[i] = s->steps[i] && scaled < 1 ? 1 : (uint64_t)scaled;
    }
    if (!n2_options_is_auto(o, "rate")) s->vae_rate = n2ce_options_number(o, "rate");
    if (!n2_options_is_auto(o, "batch")) s->batch = (int64_t)n2_options_count(o, "batch");
    s->seed = n2_options_count(o, "seed");
    return N2CE_OK;
}

n2ce_status n2_lebm_plan_of_options(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                                    n2_lebm_plan *p) {
    const n2_image_spec *net;
    N2_TRY(n2_lebm_net_for(ctx, pictures, n2ce_options_get(o, "net"), &net));
    p->spec = n2_lebm_defaults(net);
    p->spec.frame = (n2_lebm_frame){pictures->height, pictures->width, pictures->channels};
    p->schedule = n2_lebm_schedule_for(&p->spec);
    if (is_fast(o)) make_narrow(p);
    if (!n2_options_is_auto(o, "codes")) p->spec.nz = (int64_t)n2_options_count(o, "codes");
    if (!n2_options_is_auto(o, "width")) {
        p->spec.encoder_width = p->spec.decoder_width = (int64_t)n2_options_count(o, "width");
        p->spec.embedding = 8 * p->spec.encoder_width;
    }
    return read_schedule(ctx, o, &p->schedule);
}

/* At which N2CE is done in the steps of the preset, and chains of maximum likelihood keep up. */
static double prior_rate(const n2ce_options *o, n2_prior_kind kind) {
    if (!n2_options_is_auto(o, "prior-rate")) return n2ce_options_number(o, "prior-rate");
    if (kind == N2_PRIOR_MLE) return is_fast(o) ? 5e-5 : 2e-5;
    return is_fast(o) ? 1e-3 : 2e-4;
}

void n2_lebm_plan_prior(const n2ce_options *o, n2_prior_kind kind, double magnitude, int64_t stages,
                        n2_lebm_plan *p) {
    enum { FEW = 8 };
    n2_prior_spec *s = &p->spec.prior;
    const double all = ceil(magnitude);
    s->kind = kind;
    s->magnitude = magnitude;
    s->stages = kind == N2_PRIOR_MLE ? 1 : stages;
    s->fitted = kind != N2_PRIOR_GAUSSIAN && n2_options_has_word(o, "base", "fitted");
    s->noise = (int64_t)(is_fast(o) && all > FEW ? FEW : all);
    if (!n2_options_is_auto(o, "noise")) s->noise = (int64_t)n2_options_count(o, "noise");
    p->schedule.prior_rate = prior_rate(o, kind);
    p->schedule.joint_prior_rate = kind == N2_PRIOR_MLE ? 2e-5 : 2e-4;
}
