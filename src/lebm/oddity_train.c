/* Training of a member: the autoencoder, then what stands beside it. */
#include "oddity_parts.h"
#include "picture_adam.h"

#include "rewrite/rewrites.h"

static const double HEAD_SLOPE = 0.01;
static const double LEAST_LOG_VARIANCE = -9, LARGEST_LOG_VARIANCE = 1;

enum { ASKED = 500, NOISE = 16, MOST_EMBEDDING = 1024 };

/* ---- networks ---- */

n2_lebm_spec n2_oddity_autoencoder(const n2_oddity_spec *s, n2_lebm_frame frame) {
    n2_lebm_spec spec = n2_lebm_defaults(s->net);
    spec.nz = s->nz;
    spec.encoder_width = spec.decoder_width = s->width;
    spec.embedding = 16 * s->width < MOST_EMBEDDING ? 16 * s->width : MOST_EMBEDDING;
    if (spec.prior.width > 16 * s->width) spec.prior.width = 16 * s->width; /* of small ones */
    spec.prior.noise = NOISE;
    spec.frame = frame;
    return spec;
}

static void add_networks(n2_oddity_member *m, int64_t embedding) {
    const n2_oddity_spec *s = &m->spec;
    const int64_t half = s->width > 1 ? s->width / 2 : 1;
    m->variance_parameters = n2_parameters_new(m->store, m->seed + 1);
    m->variance_parameters.prefix = "variance";
    m->variance = n2_image_decoder_new(&m->variance_parameters, s->net, half, s->nz);
    m->critic_parameters = n2_parameters_new(m->store, m->seed + 2);
    m->critic_parameters.prefix = "critic";
    m->critic = n2_image_encoder_new(&m->critic_parameters, s->net, s->width, embedding, 0);
    m->critic_head = n2_layer_new(&m->critic_parameters, "head", embedding, 1);
}

n2ce_status n2_oddity_member_open(n2ce_ctx *ctx, const n2_oddity_spec *spec, uint64_t seed,
                                  n2_lebm_frame frame, size_t n, n2_oddity_member *m) {
    const n2_image_spec *net = spec->net;
    const n2_lebm_spec autoencoder = n2_oddity_autoencoder(spec, frame);
    *m = (n2_oddity_member){.ctx = ctx, .spec = *spec, .seed = seed, .arena = n2_arena_new(ctx)};
    N2_TRY(n2_store_new(ctx, sizeof(float), &m->store));
    N2_TRY(n2_lebm_nets_new(m->store, &autoencoder, seed, &m->nets));
    add_networks(m, autoencoder.embedding);
    if (m->variance_parameters.failed || m->critic_parameters.failed) return N2CE_ENOMEM;
    m->pictures = n2_store_add(m->store, "pictures",
                               n2_dims((int64_t)n, net->side, net->side, net->channels));
    m->asked = n2_store_add(m->store, "asked", n2_dims(ASKED, net->side, net->side, net->channels));
    return m->pictures && m->asked ? N2CE_OK : N2CE_ENOMEM;
}

void n2_oddity_member_close(n2_oddity_member *m) {
    n2_plan_free(m->plan);
    n2_graph_free(m->graph);
    n2_store_free(m->store);
    for (size_t k = 0; k < N2_ODDITY_PARTS; k++) n2_tail_free(m->ctx, &m->tails[k]);
    n2_arena_free(&m->arena);
}

/* A logistic function of the decoder's numbers keeps variances between two bounds: black pixels
 * that are always right have nearly none. */
n2_node n2_build_oddity_variance(n2_graph *g, const n2_oddity_member *m, n2_node code) {
    const n2_node share = n2g_sigmoid(g, n2_image_decode_bare(g, &m->variance, code));
    return n2g_affine(g, share, LARGEST_LOG_VARIANCE - LEAST_LOG_VARIANCE, LEAST_LOG_VARIANCE);
}

n2_node n2_build_oddity_critic(n2_graph *g, const n2_oddity_member *m, n2_node pictures) {
    const n2_node embedding = n2_image_embed(g, &m->critic, pictures);
    return n2_layer_apply(g, &m->critic_head, n2g_lrelu(g, embedding, HEAD_SLOPE));
}

/* ---- steps ---- */

static n2_lebm_batch draw_batch(n2_graph *g, const n2_oddity_member *m) {
    n2_lebm_batch b;
    const n2_node pick = n2g_randint(g, n2_dims(m->spec.batch), m->pictures->shape.dim[0]);
    const n2_node x = n2g_gather(g, n2g_read(g, m->pictures), pick);
    n2_lebm_encode(g, &b, &m->nets.encoder, x, n2g_randn(g, n2_dims(m->spec.batch, m->spec.nz)));
    return b;
}

static n2ce_status build_vae_step(void *user, n2_graph *g, n2_outputs *out) {
    const n2_oddity_member *m = user;
    const double steps = (double)m->spec.vae_steps;
    const n2_lebm_batch b = draw_batch(g, m);
    n2_lebm_bound bound;
    n2_lebm_bound_of(g, &bound, &m->nets.decoder, NULL, &b, m->spec.weight);
    const n2_optimiser adam = n2_picture_adam(m->spec.vae_rate, &steps);
    n2_minimise(g, &adam, "adam.vae", &m->nets.vae, bound.loss, NULL);
    n2_output(out, bound.misfit);
    n2_output(out, bound.divergence);
    return N2CE_OK;
}

/* Minus the log likelihood of a picture's errors, the mean over pictures. */
static n2_node variance_loss(n2_graph *g, const n2_oddity_member *m, n2_node x, n2_node made,
                             n2_node code) {
    const n2_node miss = n2g_sub(g, x, made), log_variance = n2_oddity_variance(g, m, code);
    const n2_node over = n2g_mul(g, n2g_mul(g, miss, miss), n2g_exp(g, n2g_neg(g, log_variance)));
    return n2g_scale(g, n2g_total(g, n2g_add(g, over, log_variance)), 0.5 / (double)m->spec.batch);
}

/* Codes that are made of others: two fifths on the line between two of them, two fifths with each
 * number of one or the other, a fifth of normal numbers as wide as codes are. */
static n2_node mix_codes(n2_graph *g, n2_node code) {
    const n2_shape shape = n2_shape_at(g, code);
    const int64_t n = shape.dim[0], nz = shape.dim[1], two = n * 2 / 5, rest = n - 2 * two;
    const n2_node first = n2g_slice(g, code, 0, 0, 1);
    const n2_node other = n2g_concat(g, n2g_slice(g, code, 0, 1, n - 1), first, 0);
    const n2_node on_line = n2g_broadcast(g, n2g_randu(g, n2_dims(two, 1)), n2_dims(two, nz));
    const n2_node coin = n2g_greater(g, n2g_randu(g, n2_dims(two, nz)), n2g_constant(g, 0.5));
    const n2_node share = n2g_concat(g, on_line, coin, 0);
    const n2_node a = n2g_slice(g, code, 0, 0, 2 * two), b = n2g_slice(g, other, 0, 0, 2 * two);
    const n2_node mixed = n2g_add(g, b, n2g_mul(g, share, n2g_sub(g, a, b)));
    const n2_node width = n2g_sqrt(g, n2g_mean(g, n2g_mul(g, code, code), n2_axis(0)));
    const n2_node normal = n2g_mul(g, n2g_randn(g, n2_dims(rest, nz)), width);
    return n2g_concat(g, mixed, normal, 0);
}

/* Of decoded codes, then as many decoded mixes. */
static n2_node contrast_loss(n2_graph *g, const n2_oddity_member *m, n2_node pictures) {
    const int64_t n = m->spec.batch;
    const n2_node f = n2_oddity_critic(g, m, pictures);
    return n2g_n2ce_loss(g, n2g_slice(g, f, 0, 0, n), n2g_slice(g, f, 0, n, n),
                         m->spec.contrast_magnitude);
}

enum { BESIDE = 3 };

static n2ce_status build_beside_step(void *user, n2_graph *g, n2_outputs *out) {
    const n2_oddity_member *m = user;
    const double steps = (double)m->spec.steps;
    const n2_lebm_batch b = draw_batch(g, m);
    const n2_node code = n2g_detach(g, b.mean);
    const n2_node both = n2g_concat(g, code, mix_codes(g, code), 0);
    const n2_node pictures = n2g_detach(g, n2_image_decode(g, &m->nets.decoder, both));
    const n2_node made = n2g_slice(g, pictures, 0, 0, m->spec.batch);
    const n2_node losses[BESIDE] = {n2_prior_loss(g, &m->nets.prior, b.z),
                                    variance_loss(g, m, b.x, made, code),
                                    contrast_loss(g, m, pictures)};
    const n2_parameters *const parameters[BESIDE] = {
        &m->nets.prior.parameters, &m->variance_parameters, &m->critic_parameters};
    const char *const names[BESIDE] = {"adam.prior", "adam.variance", "adam.critic"};
    const n2_optimiser adam = n2_picture_adam(m->spec.rate, &steps);
    for (int i = 0; i < BESIDE; i++) {
        n2_minimise(g, &adam, names[i], parameters[i], losses[i], NULL);
        n2_output(out, losses[i]);
    }
    return N2CE_OK;
}

/* ---- the training ---- */

static n2ce_status ready(void *user, const n2_backend *backend) {
    return n2_oddity_member_compile(user, backend);
}

n2ce_status n2_oddity_member_train(n2_oddity_member *m, n2_device_choice *choice) {
    const n2_phase phases[] = {
        {.build = build_vae_step, .steps = m->spec.vae_steps, .seed = m->seed + 3},
        {.build = build_beside_step, .steps = m->spec.steps, .seed = m->seed + 4}};
    const n2_trainer trainer = {.store = m->store,
                                .user = m,
                                .phases = phases,
                                .n_phases = 2,
                                .ready = ready,
                                .choice = choice};
    n2_phase_record records[2];
    N2_TRY(n2_train(&trainer, records));
    n2_log(m->ctx, N2CE_LOG_INFO,
           "autoencoder: misfit %.2f, divergence %.2f; prior %.3f, variances %.1f, critic %.3f",
           records[0].output[0], records[0].output[1], records[1].output[0], records[1].output[1],
           records[1].output[2]);
    return N2CE_OK;
}
