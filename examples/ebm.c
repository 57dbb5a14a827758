/* An energy-based model of one's own: a density p(x) = exp(-E(x)) / Z in the plane, learnt from
 * samples of a ring of eight Gaussians by telling them from Gaussian noise (the N2CE loss), and
 * then sampled by Langevin dynamics. cc ebm.c $(pkg-config --cflags --libs n2ce) -lm -o ebm &&
 * ./ebm
 *
 * The noise is q = N(0, WIDE^2 I). The model is p(x) = q(x) exp(f(x)) with a network f, so that f
 * is the log ratio that the loss is about, and -E(x) = f(x) - |x|^2 / (2 WIDE^2). */
#include <math.h>
#include <n2ce_engine.h>
#include <stdio.h>

enum { BATCH = 256, STEPS = 3000, CHAINS = 1000, MOVES = 500, MODES = 8 };
static const double RADIUS = 2, NARROW = 0.2, WIDE = 2, MAGNITUDE = 10;

/* f: two hidden layers with SiLU, which is smooth, as an energy that is sampled from should be. */
typedef struct ratio_net {
    n2ce_layer *first, *second, *last;
} ratio_net;

static ratio_net ratio_net_new(n2ce_parameters *weights) {
    return (ratio_net){n2ce_layer_new(weights, "first", 2, 64),
                       n2ce_layer_new(weights, "second", 64, 64),
                       n2ce_layer_new(weights, "last", 64, 1)};
}

static n2ce_node log_ratio(n2ce_graph *g, n2ce_node x, const ratio_net *net) {
    n2ce_node h = n2ce_silu(g, n2ce_layer_apply(g, net->first, x));
    h = n2ce_silu(g, n2ce_layer_apply(g, net->second, h));
    return n2ce_layer_apply(g, net->last, h);
}

/* -E(x), one number a row. */
static n2ce_node log_density(n2ce_graph *g, n2ce_node x, const void *net) {
    n2ce_node square = n2ce_sum(g, n2ce_mul(g, x, x), N2CE_AXIS(1));
    return n2ce_add(g, log_ratio(g, x, net), n2ce_scale(g, square, -0.5 / (WIDE * WIDE)));
}

/* Fresh samples of the ring: a random mode, and a little noise around it. */
static n2ce_node ring(n2ce_graph *g) {
    n2ce_node mode = n2ce_integers(g, n2ce_dims(BATCH, 1), MODES);
    n2ce_node angle = n2ce_scale(g, mode, 2 * 3.14159265358979 / MODES);
    n2ce_node centre = n2ce_concat(g, n2ce_cos(g, angle), n2ce_sin(g, angle), 1);
    n2ce_node around = n2ce_normal(g, n2ce_dims(BATCH, 2));
    return n2ce_add(g, n2ce_scale(g, centre, RADIUS), n2ce_scale(g, around, NARROW));
}

/* What is trained: the store and the network in it. */
typedef struct model {
    n2ce_store *store;
    n2ce_parameters *weights;
    ratio_net net;
} model;

/* One step: fresh samples of both, the loss of their log ratios, the update of the weights. */
static n2ce_node build_step(n2ce_graph *g, void *user) {
    static const double steps = STEPS;
    const model *m = user;
    n2ce_node data = ring(g), noise = n2ce_scale(g, n2ce_normal(g, n2ce_dims(BATCH, 2)), WIDE);
    n2ce_node f_data = log_ratio(g, data, &m->net), f_noise = log_ratio(g, noise, &m->net);
    n2ce_node loss = n2ce_loss(g, f_data, f_noise, MAGNITUDE);
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 1e-2;
    adam.schedule = n2ce_schedule_cosine;
    adam.schedule_arg = &steps;
    n2ce_minimise(g, &adam, "adam", m->weights, loss, NULL);
    return loss;
}

static n2ce_status train(model *m, const char *device, n2ce_training *result) {
    n2ce_trainer trainer = N2CE_TRAINER_INIT;
    trainer.store = m->store;
    trainer.step = build_step;
    trainer.user = m;
    trainer.steps = STEPS;
    trainer.device = device;
    const n2ce_status status = n2ce_train(&trainer, result);
    if (status == N2CE_OK)
        printf("%d steps on %s, loss %.3f nats\n", (int)result->steps, result->device,
               result->loss);
    return status;
}

/* Chains start in the centre, since a new tensor is all zeros, and end in x [CHAINS x 2]. */
static n2ce_status sample(const model *m, const char *device, double *x) {
    n2ce_graph *g = NULL;
    n2ce_plan *plan = NULL;
    n2ce_tensor *chains = n2ce_store_add(m->store, "chains", n2ce_dims(CHAINS, 2));
    n2ce_status status = n2ce_graph_new(m->store, &g);
    if (status != N2CE_OK) return status;
    n2ce_node mean = n2ce_langevin_step(g, chains, log_density, &m->net, 0.1, true);
    status = n2ce_plan_compile(g, device, &mean, 1, &plan);
    if (status == N2CE_OK) status = n2ce_plan_run_many(plan, MOVES);
    if (status == N2CE_OK) status = n2ce_tensor_get(m->store, chains, x);
    n2ce_plan_free(plan);
    n2ce_graph_free(g);
    return status;
}

/* How many samples lie within three standard deviations of a mode, and of how many modes. */
static bool is_good(const double *x) {
    int near = 0, of_mode[MODES] = {0}, modes = 0;
    for (int i = 0; i < CHAINS; i++)
        for (int m = 0; m < MODES; m++) {
            const double angle = 2 * 3.14159265358979 * m / MODES;
            const double dx = x[2 * i] - RADIUS * cos(angle);
            const double dy = x[2 * i + 1] - RADIUS * sin(angle);
            if (dx * dx + dy * dy > 9 * NARROW * NARROW) continue;
            near++;
            if (of_mode[m]++ == 0) modes++;
        }
    printf("%d of %d samples are near one of %d modes of %d\n", near, CHAINS, modes, MODES);
    return near > 0.9 * CHAINS && modes == MODES;
}

int main(int argc, char **argv) {
    static double x[2 * CHAINS];
    const char *device = argc > 1 ? argv[1] : "cpu";
    n2ce_ctx *ctx = NULL;
    n2ce_training result;
    model m = {NULL, NULL, {NULL, NULL, NULL}};
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    n2ce_status status = n2ce_store_new(ctx, &m.store);
    if (status == N2CE_OK) {
        m.weights = n2ce_parameters_new(m.store, 1);
        m.net = ratio_net_new(m.weights);
        status = train(&m, device, &result);
    }
    if (status == N2CE_OK) status = sample(&m, result.device, x);
    if (status != N2CE_OK) fprintf(stderr, "ebm: %s\n", n2ce_errmsg(ctx));
    const bool good = status == N2CE_OK && is_good(x);
    n2ce_store_free(m.store);
    n2ce_ctx_free(ctx);
    return good ? 0 : 1;
}
