/* The networks of the latent model and their graphs: a training step of each phase, the check of
 * the value networks on held-out rows, and the appraisal of designs. */
#include "latent_model.h"
#include "rewrite/rewrites.h"
#include "sampler/langevin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SLOPE = 0.2, NUMBER_SD = 0.1;
enum { CHECK_ROWS = 2048, MLE_MOVES = 20 };

void n2_latent_plan_free(n2_latent_plan *p) {
    n2_plan_free(p->plan);
    n2_graph_free(p->g);
}

static n2ce_status compile(n2_latent *m, n2_latent_plan *p, const n2_node *outputs, size_t n) {
    return n2_plan_compile(p->g, m->backend, outputs, n, &p->plan);
}

static n2ce_status begin(n2_latent *m, n2_latent_plan *p) {
    p->g = n2_graph_new(m->store);
    return p->g ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- networks ------------------------------------------------------------ */

static n2ce_status make_line(n2_latent *m, size_t e) {
    char name[64];
    snprintf(name, sizeof name, "line.%zu.weight", e);
    m->line[e].weight = n2_store_add(m->store, name, n2_dims(1, (int64_t)m->code->width));
    snprintf(name, sizeof name, "line.%zu.bias", e);
    m->line[e].bias = n2_store_add(m->store, name, n2_dims(1));
    return m->line[e].weight && m->line[e].bias ? N2CE_OK : N2CE_ENOMEM;
}

/* The network adds nothing to the line at first. */
static void start_from_line(n2_latent *m, size_t e) {
    const n2_layer *last = &m->live[e].layers[m->live[e].n - 1];
    memset(last->weight->data, 0, (size_t)n2_elements(last->weight->shape) * sizeof(float));
    memset(last->bias->data, 0, (size_t)n2_elements(last->bias->shape) * sizeof(float));
}

static n2_node member_value(n2_graph *g, const n2_latent *m, size_t e, const n2_mlp *net,
                            n2_node x) {
    return n2g_add(g, n2_layer_apply(g, &m->line[e], x), n2_mlp_apply(g, net, x));
}

static n2ce_status make_value_networks(n2_latent *m) {
    const int64_t d = (int64_t)m->code->width, w = (int64_t)m->o.width;
    m->value_parameters = n2_parameters_new(m->store, m->o.seed);
    for (size_t e = 0; e < m->o.members; e++) {
        char name[32];
        snprintf(name, sizeof name, "value.%zu", e);
        m->live[e] = n2_mlp_new(&m->value_parameters, name, (int64_t[]){d, w, w, 1}, 4, SLOPE);
        N2_TRY(make_line(m, e));
    }
    if (m->value_parameters.failed) return N2CE_ENOMEM;
    for (size_t e = 0; e < m->o.members; e++) start_from_line(m, e);
    N2_TRY(n2_averages_add(&m->value_parameters));
    N2_TRY(n2_kept_add(&m->value_parameters));
    for (size_t e = 0; e < m->o.members; e++)
        N2_TRY(n2_averaged_mlp(m->store, &m->live[e], &m->value[e]));
    return N2CE_OK;
}

static n2ce_status make_other_networks(n2_latent *m) {
    const int64_t nz = (int64_t)m->o.latent;
    m->code_parameters = n2_parameters_new(m->store, m->o.seed);
    m->prior_parameters = n2_parameters_new(m->store, m->o.seed);
    m->vae = n2_latent_vae_new(&m->code_parameters, &m->code->layout, nz, (int64_t)m->o.code_width);
    m->ratio = n2_ratio_net_new(&m->prior_parameters, nz, (int64_t)m->o.ratio_width,
                                (int)m->o.blocks, (int64_t)m->o.stages);
    return m->code_parameters.failed || m->prior_parameters.failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2ce_status make_waymarks(n2_latent *m) {
    double variances[N2_LATENT_STAGES_MAX + 1];
    n2_waymarks_of_stages(m->o.stages, variances);
    m->waymarks = n2_waymarks_new(m->store, "waymarks", variances, m->o.stages + 1);
    return m->waymarks ? N2CE_OK : N2CE_ENOMEM;
}

/* In this order: initial values depend on how many tensors there are already. */
n2ce_status n2_latent_make_networks(n2_latent *m) {
    N2_TRY(make_waymarks(m));
    N2_TRY(make_value_networks(m));
    m->rows =
        n2_store_add(m->store, "appraise.rows", n2_dims(N2_APPRAISE_ROWS, (int64_t)m->code->width));
    return m->rows ? make_other_networks(m) : N2CE_ENOMEM;
}

/* ---- value --------------------------------------------------------------- */

void n2_latent_fold(const n2_latent *m, size_t e, int64_t *first, int64_t *n) {
    const size_t rows = m->designs->rows, k = m->o.members;
    *first = (int64_t)(rows * e / k);
    *n = (int64_t)(rows * (e + 1) / k) - *first;
}

static n2_node draw_rows(n2_latent *m, n2_graph *g, size_t e) {
    int64_t first, held;
    const int64_t n = (int64_t)m->designs->rows;
    const int64_t batch = n / 4 < 256 ? (n / 4 < 16 ? 16 : n / 4) : 256;
    n2_latent_fold(m, e, &first, &held);
    const n2_node i = n2g_randint(g, n2_dims(batch), n - held);
    const n2_node beyond = n2g_greater(g, i, n2g_constant(g, (double)first - 0.5));
    return n2g_add(g, i, n2g_scale(g, beyond, (double)held));
}

static n2_node mean_square(n2_graph *g, n2_node x) {
    return n2g_total(g, n2g_mean(g, n2g_mul(g, x, x), N2_ALL_AXES));
}

n2ce_status n2_latent_value_step(void *user, n2_graph *g, n2_outputs *out) {
    n2_latent *m = user;
    n2_node loss = N2_NONE;
    for (size_t e = 0; e < m->o.members; e++) {
        const n2_node pick = draw_rows(m, g, e);
        const n2_node x = n2g_gather(g, n2g_read(g, m->x), pick);
        const n2_node y = n2g_gather(g, n2g_read(g, m->y), pick);
        const n2_node miss = mean_square(g, n2g_sub(g, member_value(g, m, e, &m->live[e], x), y));
        loss = e ? n2g_add(g, loss, miss) : miss;
    }
    const double steps = (double)m->o.value_steps;
    const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0},
                            .rate = 1e-3,
                            .schedule = n2_schedule_cosine,
                            .schedule_arg = &steps};
    n2_minimise(g, &o, "value.adam", &m->value_parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

n2ce_status n2_latent_build_check(n2_latent *m) {
    n2_node miss[N2_LATENT_MEMBERS_MAX];
    N2_TRY(begin(m, &m->check));
    n2_graph *g = m->check.g;
    for (size_t e = 0; e < m->o.members; e++) {
        int64_t first, n;
        n2_latent_fold(m, e, &first, &n);
        if (n > CHECK_ROWS) n = CHECK_ROWS;
        const n2_node x = n2g_slice(g, n2g_read(g, m->x), 0, first, n);
        const n2_node y = n2g_slice(g, n2g_read(g, m->y), 0, first, n);
        miss[e] = mean_square(g, n2g_sub(g, member_value(g, m, e, &m->value[e], x), y));
    }
    return compile(m, &m->check, miss, m->o.members);
}

n2_node n2_latent_mean_value(n2_graph *g, const n2_latent *m, n2_node x) {
    n2_node sum = N2_NONE;
    for (size_t e = 0; e < m->o.members; e++) {
        const n2_node y = member_value(g, m, e, &m->value[e], x);
        sum = e ? n2g_add(g, sum, y) : y;
    }
    return n2g_scale(g, sum, 1 / (double)m->o.members);
}

/* ---- code ---------------------------------------------------------------- */

/* A tenth; more of few rows, so that there are some. */
size_t n2_latent_uncoded(const n2_latent *m) {
    enum { SOME = 40 };
    const size_t rows = m->designs->rows, few = rows / 4 < SOME ? rows / 4 : SOME;
    return rows / 10 > few ? rows / 10 : few;
}

static n2_node draw_designs(n2_latent *m, n2_graph *g) {
    const int64_t rows = (int64_t)(m->designs->rows - n2_latent_uncoded(m));
    const n2_node pick = n2g_randint(g, n2_dims((int64_t)m->o.batch), rows);
    return n2g_gather(g, n2g_read(g, m->x), pick);
}

static n2_node draw_code(n2_graph *g, const n2_latent *m, n2_node x, n2_node *mean,
                         n2_node *logvar) {
    n2_latent_encode(g, &m->vae, x, mean, logvar);
    const n2_node eps = n2g_randn(g, n2_dims((int64_t)m->o.batch, (int64_t)m->o.latent));
    return n2g_reparameterise(g, *mean, *logvar, eps);
}

/* -ln p(x|z) of rows, [n x 1]. */
static n2_node misfits(n2_graph *g, const n2_latent *m, n2_node x, n2_node z) {
    return n2_latent_misfits(g, &m->vae, n2_latent_decode(g, &m->vae, z), x, NUMBER_SD);
}

static n2_node mean_misfit(n2_graph *g, const n2_latent *m, n2_node x, n2_node z) {
    return n2g_total(g, n2g_mean(g, misfits(g, m, x, z), N2_ALL_AXES));
}

n2ce_status n2_latent_code_step(void *user, n2_graph *g, n2_outputs *out) {
    n2_latent *m = user;
    n2_node mean, logvar;
    const n2_node x = draw_designs(m, g), z = draw_code(g, m, x, &mean, &logvar);
    const n2_node misfit = mean_misfit(g, m, x, z);
    const n2_node kl = n2g_gaussian_kl(g, mean, logvar);
    const n2_node loss = n2g_add(g, misfit, n2g_scale(g, kl, m->o.divergence_weight));
    const double steps = (double)m->o.code_steps;
    const n2_optimiser o = {.adam = {0.5, 0.999, 1e-8, 0},
                            .rate = 1e-3,
                            .clip = 100,
                            .schedule = n2_schedule_cosine,
                            .schedule_arg = &steps};
    n2_minimise(g, &o, "code.adam", &m->code_parameters, loss, NULL);
    n2_output(out, misfit);
    n2_output(out, kl);
    return N2CE_OK;
}

/* ---- prior --------------------------------------------------------------- */

/* sqrt(1 - s) noise + sqrt(s) z. */
static n2_node interpolate(n2_graph *g, n2_node s, n2_node z) {
    const n2_node noise = n2g_randn(g, n2_shape_at(g, z));
    const n2_node rest = n2g_sqrt(g, n2g_affine(g, s, -1, 1));
    return n2g_add(g, n2g_mul(g, rest, noise), n2g_mul(g, n2g_sqrt(g, s), z));
}

static n2_node n2ce_prior_loss(n2_latent *m, n2_graph *g, n2_node z) {
    const int64_t n = (int64_t)m->o.batch, times = (int64_t)m->o.noise;
    const n2_node table = n2g_read(g, m->waymarks);
    const n2_node k = n2g_randint(g, n2_dims(n), (int64_t)m->o.stages);
    const n2_node z_num = interpolate(g, n2g_gather(g, table, n2g_affine(g, k, 1, 1)), z);
    const n2_node k_den = n2g_tile_rows(g, k, times);
    const n2_node z_den = interpolate(g, n2g_gather(g, table, k_den), n2g_tile_rows(g, z, times));
    return n2g_n2ce_loss(g, n2_ratio_net_apply(g, &m->ratio, z_num, k),
                         n2_ratio_net_apply(g, &m->ratio, z_den, k_den), m->o.magnitude);
}

n2_node n2_latent_log_prior(n2_graph *g, n2_node z, const n2_latent *m) {
    const n2_node base = n2g_scale(g, n2g_sum(g, n2g_mul(g, z, z), n2_axis(1)), -0.5);
    if (m->o.prior == N2_LATENT_GAUSSIAN) return base;
    return n2g_add(g, n2_ratio_net_sum(g, &m->ratio, z), base);
}

static n2_node prior_density(n2_graph *g, n2_node z, const void *model) {
    return n2_latent_log_prior(g, z, model);
}

/* E f over short-run samples of the model minus E f over codes: its gradient is that of the
 * likelihood. The square holds f near 0 where nothing pulls. */
static n2_node mle_prior_loss(n2_latent *m, n2_graph *g, n2_node z) {
    const n2_shape shape = n2_shape_at(g, z);
    n2_node at = n2g_randn(g, shape);
    for (int i = 0; i < MLE_MOVES; i++) {
        const n2_node score = n2_score(g, at, prior_density, m, NULL);
        at = n2g_detach(g, n2_langevin_move(g, at, score, 0.4));
    }
    const n2_node f_model = n2_ratio_net_sum(g, &m->ratio, at);
    const n2_node f_data = n2_ratio_net_sum(g, &m->ratio, z);
    const n2_node gap = n2g_sub(g, n2g_total(g, n2g_mean(g, f_model, N2_ALL_AXES)),
                                n2g_total(g, n2g_mean(g, f_data, N2_ALL_AXES)));
    const n2_node size = n2g_add(g, mean_square(g, f_model), mean_square(g, f_data));
    return n2g_add(g, gap, n2g_scale(g, size, 0.01));
}

n2ce_status n2_latent_prior_step(void *user, n2_graph *g, n2_outputs *out) {
    n2_latent *m = user;
    n2_node mean, logvar;
    const n2_node z = n2g_detach(g, draw_code(g, m, draw_designs(m, g), &mean, &logvar));
    const bool mle = m->o.prior == N2_LATENT_MLE;
    const n2_node loss = mle ? mle_prior_loss(m, g, z) : n2ce_prior_loss(m, g, z);
    const double steps = (double)m->o.prior_steps;
    const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0},
                            .rate = mle ? 2e-4 : 1e-3,
                            .clip = 100,
                            .schedule = n2_schedule_cosine,
                            .schedule_arg = &steps};
    n2_minimise(g, &o, "prior.adam", &m->prior_parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

/* Both at once, as the paper trains: ratio network on detached codes, then encoder and
 * decoder against the learnt prior. */
n2ce_status n2_latent_joint_step(void *user, n2_graph *g, n2_outputs *out) {
    n2_latent *m = user;
    n2_node mean, logvar;
    const n2_node x = draw_designs(m, g), z = draw_code(g, m, x, &mean, &logvar);
    const n2_node loss = n2ce_prior_loss(m, g, n2g_detach(g, z));
    const n2_optimiser ratio = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 5e-5, .clip = 100};
    n2_minimise(g, &ratio, "joint.ratio", &m->prior_parameters, loss, NULL);
    const n2_node misfit = mean_misfit(g, m, x, z);
    const n2_node f = n2_ratio_net_sum(g, &m->ratio, z);
    const n2_node kl =
        n2g_sub(g, n2g_gaussian_kl(g, mean, logvar), n2g_total(g, n2g_mean(g, f, N2_ALL_AXES)));
    const n2_node total = n2g_add(g, misfit, n2g_scale(g, kl, m->o.divergence_weight));
    const n2_optimiser code = {.adam = {0.5, 0.999, 1e-8, 0}, .rate = 1e-4, .clip = 100};
    n2_minimise(g, &code, "joint.code", &m->code_parameters, total, NULL);
    n2_output(out, loss);
    n2_output(out, misfit);
    n2_output(out, kl);
    return N2CE_OK;
}

/* ---- appraisal ----------------------------------------------------------- */

n2ce_status n2_latent_build_appraise(n2_latent *m) {
    N2_TRY(begin(m, &m->appraise));
    n2_graph *g = m->appraise.g;
    const size_t wide = m->o.members + 2 + m->o.latent + m->o.stages;
    m->out = n2_alloc(m->ctx, N2_APPRAISE_ROWS * wide, sizeof *m->out);
    if (!m->out) return N2CE_ENOMEM;
    const n2_node x = n2g_read(g, m->rows);
    n2_node said = N2_NONE, mean;
    for (size_t e = 0; e < m->o.members; e++) {
        const n2_node y = member_value(g, m, e, &m->value[e], x);
        said = e ? n2g_concat(g, said, y, 1) : y;
    }
    if (m->o.value_only) return compile(m, &m->appraise, &said, 1);
    n2_latent_encode(g, &m->vae, x, &mean, NULL);
    said = n2g_concat(g, said, n2_latent_log_prior(g, mean, m), 1);
    said = n2g_concat(g, said, misfits(g, m, x, mean), 1);
    said = n2g_concat(g, said, mean, 1);
    for (size_t k = 0; k < m->o.stages; k++) {
        const n2_node stage =
            n2g_broadcast(g, n2g_constant(g, (double)k), n2_dims(N2_APPRAISE_ROWS));
        said = n2g_concat(g, said, n2_ratio_net_apply(g, &m->ratio, mean, stage), 1);
    }
    return compile(m, &m->appraise, &said, 1);
}
