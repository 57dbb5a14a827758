/* Conditioning by adaptive sampling (Brookes et al. 2019), as Design-Bench runs it.
 *
 * A variational n2_autoencoder p of the offline designs, one hidden layer of 256 either way and 32
 * latent numbers, 200 epochs (100 for sequences of more than 8). q starts as its copy; 20 times
 * 1000 designs are drawn from q and q is fitted to them for 10 epochs with the weights
 *
 *     p(x|z) / q(x|z)  P(y >= gamma | x),   gamma = 80th percentile of the predicted means,
 *
 * P by the ensemble's mixture. Proposals are decodes of N(0, I) by q. Weights are divided by
 * their mean; their logarithms are kept within 20 of the largest. */
#include "cbas.h"

#include "base/numerics.h"
#include "design/design_space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LATENT = N2_CBAS_LATENT,
    WIDTH = 256,
    EPOCHS = 200,
    EPOCHS_IF_LONG = 100,
    LONG = 8,
    BATCH = 100
};
enum { ROUNDS = N2_CBAS_ROUNDS, SAMPLES = 1000, REFIT = 10 * SAMPLES / BATCH };
static const double SLOPE = 0.3, RATE = 3e-4, PERCENTILE = 80;

/* ---- networks -------------------------------------------------------------------------------- */

static n2_autoencoder new_autoencoder(n2_cbas *c, const char *name) {
    const int64_t width = n2_effort_width(c->ws->effort, WIDTH), n = (int64_t)c->code.width;
    n2_autoencoder a = {.parameters = n2_parameters_new(c->ws->store, c->ws->seed)};
    n2_parameters *p = &a.parameters;
    char full[4][16];
    static const char *const parts[] = {"first", "mean", "logvar", "decoder"};
    for (size_t i = 0; i < 4; i++) snprintf(full[i], sizeof full[i], "%s.%s", name, parts[i]);
    a.first = n2_first_layer_new(p, full[0], &c->code, width);
    a.mean = n2_layer_new(p, full[1], width, LATENT);
    a.logvar = n2_layer_new(p, full[2], width, LATENT);
    a.decoder =
        n2_mlp_new(p, full[3], (int64_t[]){LATENT, width, c->sequence ? n : 2 * n}, 3, SLOPE);
    return a;
}

static void encode(n2_graph *g, const n2_autoencoder *a, n2_node x, n2_node *mean,
                   n2_node *logvar) {
    const n2_node h = n2g_lrelu(g, n2_first_layer_apply(g, &a->first, x), SLOPE);
    *mean = n2_layer_apply(g, &a->mean, h);
    *logvar = n2_layer_apply(g, &a->logvar, h);
}

/* What the decoder says of z: logits [rows x positions x levels], or means and log spreads. */
typedef struct decoded {
    n2_node logits, mean, log_spread;
} decoded;

static decoded decode(n2_graph *g, const n2_cbas *c, const n2_autoencoder *a, n2_node z) {
    const n2_node out = n2_mlp_apply(g, &a->decoder, z);
    const int64_t n = (int64_t)c->code.width, positions = (int64_t)c->code.space->n;
    const int64_t rows = n2_shape_at(g, z).dim[0];
    decoded d = {N2_NONE, N2_NONE, N2_NONE};
    if (c->sequence) {
        d.logits = n2g_reshape(g, out, n2_dims(rows, positions, n / positions));
        return d;
    }
    d.mean = n2g_slice(g, out, 1, 0, n);
    d.log_spread = n2_soft_clamp(g, n2g_slice(g, out, 1, n, n), n2g_read(g, c->bounds));
    return d;
}

/* ln p(x|z) of every row, [rows x 1]. */
static n2_node log_density(n2_graph *g, const n2_cbas *c, const decoded *d, n2_node x) {
    const int64_t rows = n2_shape_at(g, x).dim[0];
    if (c->sequence) {
        const n2_node hot = n2g_reshape(g, x, n2_shape_at(g, d->logits));
        const n2_node own = n2g_sum(g, n2g_mul(g, hot, d->logits), n2_axis(2));
        const n2_node each = n2g_sub(g, own, n2g_logsumexp(g, d->logits, n2_axis(2)));
        return n2g_reshape(g, n2g_sum(g, each, n2_axis(1)), n2_dims(rows, 1));
    }
    const n2_node z = n2g_mul(g, n2g_sub(g, x, d->mean), n2g_exp(g, n2g_neg(g, d->log_spread)));
    const n2_node each =
        n2g_add(g, n2g_scale(g, n2g_mul(g, z, z), -0.5), n2g_neg(g, d->log_spread));
    return n2g_sum(g, each, n2_axis(1));
}

static n2_node draw_design(n2_graph *g, const n2_cbas *c, const decoded *d, int64_t rows) {
    const int64_t n = (int64_t)c->code.width;
    if (!c->sequence)
        return n2g_add(g, d->mean,
                       n2g_mul(g, n2g_exp(g, d->log_spread), n2g_randn(g, n2_dims(rows, n))));
    return n2g_reshape(g, n2_draw_levels(g, d->logits), n2_dims(rows, n));
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Weighted mean of -ln p(x|z) + KL(q(z|x) || N(0, I)). */
static n2_node negative_elbo(n2_graph *g, const n2_cbas *c, const n2_autoencoder *a, n2_node x,
                             n2_node weight) {
    n2_node mean, logvar;
    encode(g, a, x, &mean, &logvar);
    const n2_node eps = n2g_randn(g, n2_shape_at(g, mean));
    const decoded d = decode(g, c, a, n2g_reparameterise(g, mean, logvar, eps));
    const n2_node square = n2g_add(g, n2g_mul(g, mean, mean), n2g_exp(g, logvar));
    const n2_node kl = n2g_sum(g, n2g_affine(g, n2g_sub(g, square, logvar), 0.5, -0.5), n2_axis(1));
    const n2_node loss = n2g_sub(g, kl, log_density(g, c, &d, x));
    return n2_mean_all(g, weight.id ? n2g_mul(g, loss, weight) : loss);
}

/* A step on rows of a table, weighted or not. */
static n2ce_status build_fit(const n2_cbas *c, n2_graph *g, const n2_autoencoder *a,
                             const char *name, n2_tensor *rows, n2_tensor *weight,
                             n2_outputs *out) {
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), rows->shape.dim[0]);
    const n2_node w = weight ? n2g_gather(g, n2g_read(g, weight), pick) : N2_NONE;
    const n2_node loss = negative_elbo(g, c, a, n2g_gather(g, n2g_read(g, rows), pick), w);
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-7, 0}, .rate = RATE};
    n2_minimise(g, &adam, name, &a->parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status build_fit_p(void *user, n2_graph *g, n2_outputs *out) {
    const n2_cbas *c = user;
    return build_fit(c, g, &c->p, "adam.p", c->data, NULL, out);
}

static n2ce_status build_fit_q(void *user, n2_graph *g, n2_outputs *out) {
    const n2_cbas *c = user;
    return build_fit(c, g, &c->q, "adam.q", c->samples, c->weight, out);
}

/* Draws from q, and what p and q think of them. */
static n2ce_status build_sampling(n2_cbas *c) {
    n2_graph *g = n2_workspace_graph(c->ws);
    if (!g) return N2CE_ENOMEM;
    const n2_node z = n2g_randn(g, n2_dims(SAMPLES, LATENT));
    const decoded q = decode(g, c, &c->q, z), p = decode(g, c, &c->p, z);
    const n2_node x = draw_design(g, c, &q, SAMPLES);
    const n2_node out[] = {x, log_density(g, c, &p, x), log_density(g, c, &q, x)};
    return n2_workspace_compile(c->ws, g, out, 3, &c->draw);
}

static n2ce_status copy_parameters(const n2_cbas *c) {
    for (size_t i = 0; i < c->p.parameters.n; i++) {
        const n2_tensor *from = c->p.parameters.list[i];
        n2_tensor *to = c->q.parameters.list[i];
        N2_TRY(n2_tensor_pull(c->ws->store, from));
        memcpy(to->data, from->data,
               (size_t)n2_elements(from->shape) * n2_store_bytes(c->ws->store));
        n2_tensor_push(c->ws->store, to);
    }
    return N2CE_OK;
}

/* ---- weights of samples ---------------------------------------------------------------------- */

static double chance_above(const n2_cbas *c, size_t i, double gamma) {
    const size_t members = c->surrogate.options.members;
    double sum = 0;
    for (size_t m = 0; m < members; m++) {
        const size_t k = i * members + m;
        sum += n2_normal_cdf((c->means[k] - gamma) / c->spreads[k]) / (double)members;
    }
    return sum;
}

static double eightieth(const n2_cbas *c) {
    const size_t members = c->surrogate.options.members;
    for (size_t i = 0; i < SAMPLES; i++) {
        c->sorted[i] = 0;
        for (size_t m = 0; m < members; m++)
            c->sorted[i] += c->means[i * members + m] / (double)members;
    }
    return n2_percentile(c->sorted, SAMPLES, PERCENTILE);
}

void n2_cbas_weights(double *w, size_t n) {
    double most = -N2_INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, w[i]);
    for (size_t i = 0; i < n; i++) sum += w[i] = exp(fmax(w[i] - most, -20));
    for (size_t i = 0; i < n; i++) w[i] *= (double)n / sum;
}

static n2ce_status weigh(n2_cbas *c) {
    N2_TRY(n2_surrogate_ask(&c->surrogate, c->x, SAMPLES, c->means, c->spreads));
    const double gamma = eightieth(c);
    for (size_t i = 0; i < SAMPLES; i++)
        c->w[i] = c->log_p[i] - c->log_q[i] + log(fmax(chance_above(c, i, gamma), 1e-300));
    n2_cbas_weights(c->w, SAMPLES);
    n2_tensor_set(c->ws->store, c->samples, c->x);
    n2_tensor_set(c->ws->store, c->weight, c->w);
    return N2CE_OK;
}

/* ---- the method ------------------------------------------------------------------------------ */

static n2ce_status prepare(n2_cbas *c) {
    const double bounds[2] = {-4, 1};
    n2_arena *arena = &c->ws->arena;
    c->sequence = n2_space_is_sequence(c->code.space);
    c->p = new_autoencoder(c, "p");
    c->q = new_autoencoder(c, "q");
    c->bounds = n2_store_add(c->ws->store, "spread.bounds", n2_dims(2));
    c->data = n2_workspace_table(c->ws, "data", c->code.rows, c->code.width, c->code.x);
    c->samples = n2_workspace_table(c->ws, "samples", SAMPLES, c->code.width, NULL);
    c->weight = n2_workspace_table(c->ws, "weight", SAMPLES, 1, NULL);
    c->x = n2_arena_alloc(arena, SAMPLES * c->code.width, sizeof *c->x);
    double *rest = n2_arena_alloc(arena, SAMPLES * (4 + 2 * N2_MOST_MEMBERS), sizeof *rest);
    if (!c->bounds || !c->data || !c->samples || !c->weight || !c->x || !rest) return N2CE_ENOMEM;
    n2_tensor_set(c->ws->store, c->bounds, bounds);
    double **const parts[] = {&c->log_p, &c->log_q, &c->w, &c->sorted, &c->means, &c->spreads};
    for (size_t i = 0; i < 6; i++, rest += i < 5 ? SAMPLES : SAMPLES * N2_MOST_MEMBERS)
        *parts[i] = rest;
    return c->p.parameters.failed || c->q.parameters.failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2ce_status sample(n2_cbas *c) {
    N2_TRY(n2_plan_run(c->draw));
    n2_plan_get(c->draw, 0, c->x);
    n2_plan_get(c->draw, 1, c->log_p);
    n2_plan_get(c->draw, 2, c->log_q);
    return N2CE_OK;
}

static n2ce_status renew(void *user, uint64_t step) {
    (void)step;
    N2_TRY(sample(user));
    return weigh(user);
}

/* All rounds in one training. */
static n2ce_status adapt(n2_cbas *c) {
    const n2_phase refit = {.build = build_fit_q,
                            .steps = ROUNDS * REFIT,
                            .seed = n2_workspace_seed(c->ws),
                            .renew = renew,
                            .renew_every = REFIT};
    return n2_workspace_train(c->ws, c, &refit, 1, 1);
}

/* Round by round, with the ensemble refitted after each. */
static n2ce_status adapt_focused(n2_cbas *c, n2_cbas_focus *focus) {
    for (size_t round = 0; round < ROUNDS; round++) {
        const n2_phase refit = {
            .build = build_fit_q, .steps = REFIT, .seed = n2_workspace_seed(c->ws)};
        N2_TRY(renew(c, 0));
        N2_TRY(n2_workspace_train(c->ws, c, &refit, 1, c->ws->done));
        N2_TRY(focus(c, round));
    }
    return N2CE_OK;
}

n2_node n2_cbas_log_density(n2_graph *g, const n2_cbas *c, const n2_autoencoder *a, n2_node z,
                            n2_node x) {
    const decoded d = decode(g, c, a, z);
    return log_density(g, c, &d, x);
}

/* As many rows as are wanted, SAMPLES at a time. */
static n2ce_status propose_decodes(n2_cbas *c, n2_proposals *out) {
    const size_t width = c->code.width;
    double *x = n2_arena_alloc(&c->ws->arena, out->rows * width, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t i = 0; i < out->rows; i += SAMPLES) {
        const size_t n = out->rows - i < SAMPLES ? out->rows - i : SAMPLES;
        N2_TRY(sample(c));
        memcpy(x + i * width, c->x, n * width * sizeof *x);
    }
    n2_code_propose(&c->code, x, out);
    return N2CE_OK;
}

n2ce_status n2_cbas_run(n2_workspace *ws, const n2_designs *offline, n2_cbas_focus *focus,
                        n2_proposals *out) {
    const n2_surrogate_options o = n2_surrogate_ensemble(3e-4);
    n2_cbas c = {.ws = ws};
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_ONE_HOT, &c.code));
    N2_TRY(n2_surrogate_fit(ws, &c.code, &o, focus ? 0.4 : 0.5, &c.surrogate));
    N2_TRY(prepare(&c));
    const bool is_long = c.sequence && offline->space.n > LONG;
    const size_t epochs = is_long ? EPOCHS_IF_LONG : EPOCHS;
    const n2_phase fit = {.build = build_fit_p,
                          .steps = n2_workspace_steps(ws, c.code.rows, BATCH, epochs),
                          .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, &c, &fit, 1, focus ? 0.7 : 0.9));
    N2_TRY(build_sampling(&c));
    N2_TRY(copy_parameters(&c));
    N2_TRY(focus ? adapt_focused(&c, focus) : adapt(&c));
    return propose_decodes(&c, out);
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    return n2_cbas_run(ws, offline, NULL, out);
}

n2ce_status n2_cbas_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                         const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_cbas_with)

const n2_method n2_cbas_method = {"cbas", "conditioning a VAE of designs by adaptive sampling",
                                  propose};
