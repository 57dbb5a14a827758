/* Where the model is trained: on whichever is faster, by a trial of its own steps. */
#include "latent_model.h"

/* Floating-point operations of all steps: forward and back, a product and a sum for every
 * parameter and row. */
static double guess_work(const n2_latent *m) {
    const n2_latent_options *o = &m->o;
    const double d = (double)m->code->width, w = (double)o->width, c = (double)o->code_width;
    const double r = (double)o->ratio_width, batch = (double)o->batch;
    const double value = 256 * (double)o->members * w * (d + w);
    const double code = batch * 2 * c * (d + c);
    const double prior = batch * (double)(1 + o->noise) * r * r * (double)(3 + o->blocks);
    const bool gaussian = o->prior == N2_LATENT_GAUSSIAN;
    return 6 * ((double)o->value_steps * value + (double)o->code_steps * code +
                (gaussian ? 0 : (double)o->prior_steps * prior) +
                (gaussian ? 0 : (double)o->joint_steps * (code + prior)));
}

/* Of a step, on average over all that will be made. */
static n2ce_status time_phases(const n2_latent *m, double *seconds) {
    n2_phase phases[N2_PHASES];
    double sum = 0, steps = 0;
    n2_latent_phases(m, phases);
    for (size_t i = 0; i < N2_PHASES; i++) {
        if (phases[i].steps == 0) continue;
        double each;
        N2_TRY(n2_time_plan(phases[i].program->plan, N2_TRIAL_SECONDS / 2, &each));
        sum += each * (double)phases[i].steps;
        steps += (double)phases[i].steps;
    }
    *seconds = steps > 0 ? sum / steps : 0;
    return N2CE_OK;
}

static n2ce_status time_on(void *user, const n2_backend *backend, double *seconds) {
    n2_latent copy = *(const n2_latent *)user; /* of a model that is not set up yet */
    copy.backend = backend;
    n2ce_status status = n2_latent_set_up(&copy);
    if (status == N2CE_OK) status = time_phases(&copy, seconds);
    n2_latent_clear(&copy);
    return status;
}

n2ce_status n2_latent_settle(n2_latent *m) {
    N2_TRY(n2_choice_settle(m->o.choice, m->ctx, guess_work(m), time_on, m));
    m->backend = n2_choice_backend(m->o.choice);
    return N2CE_OK;
}
