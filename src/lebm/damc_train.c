/* An iteration of DAMC: inner loops that draw codes, then the sampler's steps, then the others'. */
#include "damc.h"
#include "picture_adam.h"

n2_damc_training n2_damc_training_defaults(void) {
    return (n2_damc_training){.steps = 3000,
                              .batch = 128,
                              .moves = 30,
                              .move = 0.1,
                              .sampler_steps = 6,
                              .decoder_rate = 1e-4,
                              .prior_rate = 5e-5,
                              .sampler_rate = 1e-4,
                              .slow_every = 10,
                              .slow_rate = 0.005};
}

n2ce_status n2_damc_learner_new(n2_store *store, const n2_damc *model, const n2_damc_training *how,
                                n2_tensor *pictures, n2_damc_learner *out) {
    const bool mle = model->prior.spec.kind == N2_PRIOR_MLE;
    const n2_image_spec *net = model->spec.net;
    *out = (n2_damc_learner){.model = *model, .how = *how, .pictures = pictures};
    N2_TRY(n2_damc_batch_new(store, model, "drawn", how->batch * (int64_t)how->slow_every,
                             &out->drawn));
    out->x = n2_store_add(store, "x", n2_dims(how->batch, net->side, net->side, net->channels));
    out->z = n2_store_add(store, "z", n2_dims(how->batch, model->spec.nz));
    out->count = n2_store_add(store, "count", n2_scalar_shape());
    out->sampler_loss = n2_store_add(store, "sampler_loss", n2_scalar_shape());
    if (mle)
        out->from_model = n2_store_add(store, "from_model", n2_dims(how->batch, model->spec.nz));
    const bool all = out->x && out->z && out->count && out->sampler_loss;
    return all && (out->from_model || !mle) ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- codes ---- */

static n2ce_status build_begin(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    (void)out;
    const int64_t n = l->drawn.x->shape.dim[0];
    const n2_node pick = n2g_randint(g, n2_dims(n), l->pictures->shape.dim[0]);
    const n2_node x = n2g_gather(g, n2g_read(g, l->pictures), pick);
    n2_damc_begin(g, &l->model.slow, &l->drawn, x);
    return N2CE_OK;
}

static n2ce_status build_draw(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    (void)out;
    n2_damc_draw(g, &l->model.slow, &l->drawn);
    return N2CE_OK;
}

/* The next of the batches that were drawn: `count` are done. */
static n2ce_status build_take(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    const n2_node first = n2g_scale(g, n2g_read(g, l->count), (double)l->how.batch);
    const n2_node rows = n2g_add(g, n2g_row_index(g, l->how.batch, 1, l->how.batch), first);
    const n2_node z = n2g_gather(g, n2g_read(g, l->drawn.chain.z), rows);
    (void)out;
    n2g_assign(g, l->x, n2g_gather(g, n2g_read(g, l->drawn.x), rows));
    n2g_assign(g, l->z, z);
    if (l->from_model) n2g_assign(g, l->from_model, z);
    return N2CE_OK;
}

static n2ce_status build_posterior_move(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    const n2_damc_posterior p = {&l->model, l->x};
    (void)out;
    n2_langevin_step(g, l->z, n2_damc_log_posterior, &p, l->how.move, false);
    return N2CE_OK;
}

static n2ce_status build_prior_move(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    const n2_prior *p = &l->model.prior;
    (void)out;
    n2_langevin_step(g, l->from_model, n2_prior_log_density, p, p->spec.step, false);
    return N2CE_OK;
}

/* ---- steps ---- */

/* Codes twice: with the embeddings of their pictures, and with those of noise. */
static n2ce_status build_sampler_step(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    const n2_damc_sampler *s = &l->model.sampler;
    const double steps = (double)(l->how.steps * l->how.sampler_steps);
    const n2_node z = n2g_read(g, l->z);
    const n2_node given = n2_image_embed(g, &s->encoder, n2g_read(g, l->x));
    const n2_node noise = n2g_randn(g, l->z->shape);
    const n2_node free = n2_mlp_apply(g, &s->nothing, noise);
    const n2_node mean = n2_diffusion_loss(g, &s->net, n2g_concat(g, z, z, 0),
                                           n2g_concat(g, given, free, 0), N2_NONE, N2_NONE);
    const n2_node loss = n2g_scale(g, mean, 2);
    const n2_optimiser adam = n2_picture_adam(l->how.sampler_rate, &steps);
    (void)out;
    n2_minimise(g, &adam, "adam.sampler", &l->model.sampler_parameters, loss, NULL);
    n2g_assign(g, l->sampler_loss, loss);
    return N2CE_OK;
}

/* average <- average + rate (parameter - average) in iterations slow_every, 2 slow_every, ... */
static void build_slow_copy(n2_graph *g, const n2_damc_learner *l) {
    const n2_parameters *p = &l->model.sampler_parameters;
    const n2_node count = n2g_affine(g, n2g_read(g, l->count), 1, 1);
    const n2_node due = n2g_equal(g, count, n2g_constant(g, (double)l->how.slow_every));
    const n2_node rate = n2g_scale(g, due, l->how.slow_rate);
    n2g_assign(g, l->count, n2g_mul(g, count, n2g_affine(g, due, -1, 1)));
    for (size_t i = 0; i < p->n && n2_graph_status(g) == N2CE_OK; i++) {
        n2_tensor *slow = n2_average_of(p->store, p->list[i]);
        const n2_node at = n2g_read(g, slow);
        const n2_node way = n2g_sub(g, n2g_read(g, p->list[i]), at);
        n2g_assign(g, slow, n2g_add(g, at, n2g_mul(g, way, rate)));
    }
}

static n2_node prior_loss(n2_graph *g, const n2_damc_learner *l, n2_node z) {
    if (!l->from_model) return n2_prior_loss(g, &l->model.prior, z);
    return n2_prior_contrast(g, &l->model.prior, z, n2g_read(g, l->from_model));
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const n2_damc_learner *l = user;
    const n2_damc *m = &l->model;
    const double steps = (double)l->how.steps;
    const n2_node z = n2g_read(g, l->z), x = n2g_read(g, l->x);
    const n2_node misfit = n2g_total(g, n2g_mean(g, n2_damc_misfit(g, m, x, z), N2_ALL_AXES));
    const n2_optimiser of_decoder = n2_picture_adam(l->how.decoder_rate, &steps);
    n2_minimise(g, &of_decoder, "adam.decoder", &m->decoder_parameters, misfit, NULL);
    n2_output(out, misfit);
    if (m->prior.spec.kind != N2_PRIOR_GAUSSIAN) {
        const n2_node loss = prior_loss(g, l, z);
        const n2_optimiser of_prior = n2_picture_adam(l->how.prior_rate, &steps);
        n2_minimise(g, &of_prior, "adam.prior", &m->prior.parameters, loss, NULL);
        n2_output(out, loss);
    }
    n2_output(out, n2g_read(g, l->sampler_loss));
    build_slow_copy(g, l);
    return N2CE_OK;
}

n2_phase n2_damc_phase(const n2_damc_learner *l) {
    const uint64_t seed = l->how.seed;
    n2_phase phase = {.build = build_step, .steps = l->how.steps, .seed = seed};
    const uint64_t every = l->how.slow_every;
    phase.inner[0] = (n2_inner_loop){build_begin, 1, seed + 1, every};
    phase.inner[1] = (n2_inner_loop){build_draw, N2_DIFFUSION_STEPS, seed + 2, every};
    phase.inner[2] = (n2_inner_loop){.build = build_take, .times = 1};
    phase.inner[3] = (n2_inner_loop){build_posterior_move, l->how.moves, seed + 3, 1};
    phase.inner[4] = (n2_inner_loop){build_sampler_step, l->how.sampler_steps, seed + 4, 1};
    if (l->from_model)
        phase.inner[5] =
            (n2_inner_loop){build_prior_move, (uint64_t)l->model.prior.spec.moves, seed + 5, 1};
    return phase;
}
