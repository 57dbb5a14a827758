/* "bench lebm" and "bench ld": latent energy-based models of pictures. */
#include "bench_lebm.h"

#include "bench_run.h"
#include "sampler/langevin.h"

/* ---- a joint training step ---------------------------------------------------------------- */

enum { LEBM_NZ = 100, LEBM_STAGES = 3, LEBM_BLOCKS = 3, LEBM_WIDTH = 128 };
enum { ENCODER_WIDTH = 64, EMBEDDING = 1024 };

static const n2ce_option lebm_options[] = {
    {"size", 0, N2CE_OPTION_WORD, "32", 0, 0, "28|32|64", "SIDE",
     "side of the pictures: 28 with one channel, 32 or 64 with three"},
    {"batch", 0, N2CE_OPTION_COUNT, "128", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e4, NULL, "M",
     "noise magnitude; so many rows of noise for every picture"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

typedef struct lebm {
    n2_lebm net;
    n2_parameters ratio_parameters, vae_parameters;
} lebm;

const double n2_lebm_variances[LEBM_STAGES + 1] = {0, 0.69175489, 0.92238785, 1};

static const n2_image_spec *spec_of_size(const n2ce_options *o) {
    return n2_image_spec_named(n2_options_has_word(o, "size", "28")   ? "mnist"
                               : n2_options_has_word(o, "size", "32") ? "svhn"
                                                                      : "celeba");
}

static lebm new_lebm(n2_graph *g, const n2_image_spec *spec, uint64_t seed) {
    lebm m;
    m.ratio_parameters = n2_parameters_new(n2_graph_store(g), seed);
    m.vae_parameters = n2_parameters_new(n2_graph_store(g), seed);
    m.net.ratio =
        n2_ratio_net_new(&m.ratio_parameters, LEBM_NZ, LEBM_WIDTH, LEBM_BLOCKS, LEBM_STAGES);
    m.net.encoder =
        n2_image_encoder_new(&m.vae_parameters, spec, ENCODER_WIDTH, EMBEDDING, LEBM_NZ);
    m.net.decoder = n2_image_decoder_new(&m.vae_parameters, spec, ENCODER_WIDTH, LEBM_NZ);
    return m;
}

/* Pictures of uniform numbers in [-1, 1]. */
static n2_node pictures(n2_graph *g, const n2_image_spec *spec, int64_t n) {
    n2_parameters data = n2_parameters_new(n2_graph_store(g), 1);
    const n2_shape shape = n2_dims(n, spec->side, spec->side, spec->channels);
    return n2g_read(g, n2_parameter(&data, "pictures", shape, 1));
}

n2_node n2_lebm_loss(n2_graph *g, const n2_lebm *net, n2_node x, n2_node mean, n2_node logvar,
                     n2_node z) {
    const n2_node made = n2_image_decode(g, &net->decoder, z);
    if (!made.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, made).dim[0];
    const n2_node miss = n2g_sub(g, x, made);
    const n2_node fit = n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 5 / n);
    const n2_node kl = n2g_gaussian_kl(g, mean, logvar);
    return n2g_add(g, fit, n2g_sub(g, kl, n2_bench_mean_ratio(g, &net->ratio, z)));
}

static n2_node build_lebm(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    const n2_image_spec *spec = spec_of_size(o);
    const int64_t n = (int64_t)n2_options_count(o, "batch");
    lebm m = new_lebm(g, spec, n2_options_count(o, "seed"));
    about->title = "joint training step";
    about->pictures = n;
    about->parameters =
        n2_parameters_count(&m.vae_parameters) + n2_parameters_count(&m.ratio_parameters);
    const n2_node x = pictures(g, spec, n);
    n2_node mean, logvar;
    n2_image_encode(g, &m.net.encoder, x, &mean, &logvar);
    const n2_node z = n2g_reparameterise(g, mean, logvar, n2g_randn(g, n2_dims(n, LEBM_NZ)));
    const n2_node critic = n2_bench_ratio_loss(g, &m.net.ratio, n2_lebm_variances, n2g_detach(g, z),
                                               (int64_t)n2_options_count(o, "M"), NULL);
    const n2_optimiser for_ratio = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 2e-4, .clip = 100};
    n2_minimise(g, &for_ratio, "ratio", &m.ratio_parameters, critic, NULL);
    const n2_node loss = n2_lebm_loss(g, &m.net, x, mean, logvar, z);
    const n2_optimiser for_vae = {.adam = {0.5, 0.999, 1e-8, 0}, .rate = 2e-4, .clip = 100};
    n2_minimise(g, &for_vae, "vae", &m.vae_parameters, loss, NULL);
    return loss;
}

static n2ce_status run_lebm(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_lebm, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_lebm_task = {
    .name = "bench lebm",
    .summary = "time a joint training step of a latent energy-based model of pictures",
    .description =
        "Pictures are encoded; the ratio network (K = 3, code of 100 numbers) takes a step on the\n"
        "codes against M times as much noise, then encoder and decoder take one through it. Adam,\n"
        "gradients clipped at 100. ./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench lebm --device cpu --threads 2\n"
                "n2ce bench lebm --device cuda --plan --seconds 1\n",
    .options = lebm_options,
    .run = run_lebm,
};

/* ---- Langevin dynamics through a decoder -------------------------------------------------- */

enum { LD_NZ = 8 };

static const n2ce_option ld_options[] = {
    {"ngf", 0, N2CE_OPTION_COUNT, "128", 1, 1024, NULL, "W",
     "width of the decoder: its layers have 8, 4 and 2 times as many channels"},
    {"batch", 0, N2CE_OPTION_COUNT, "128", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"steps", 0, N2CE_OPTION_COUNT, "30", 1, 1000, NULL, "T", "steps of Langevin dynamics, a run"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

typedef struct posterior {
    n2_image_decoder decoder;
    n2_node x;
} posterior;

/* log p(x, z) of each picture without its constant: -|x - g(z)|^2 / (2 sd^2) - |z|^2 / 2. */
static n2_node log_posterior(n2_graph *g, n2_node z, const void *model) {
    const double sd = 0.3;
    const posterior *p = model;
    const n2_node made = n2_image_decode(g, &p->decoder, z);
    if (!made.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, made).dim[0];
    const n2_node miss = n2g_sub(g, p->x, made);
    const int axes = n2_axis(1) | n2_axis(2) | n2_axis(3);
    const n2_node sum = n2g_sum(g, n2g_mul(g, miss, miss), axes);
    const n2_node fit = n2g_scale(g, n2g_reshape(g, sum, n2_dims(n, 1)), -0.5 / (sd * sd));
    return n2g_add(g, fit, n2g_scale(g, n2g_sum(g, n2g_mul(g, z, z), n2_axis(1)), -0.5));
}

/* All steps are one graph: the chain begins anew in every run. */
static n2_node build_ld(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    const n2_image_spec *spec = n2_image_spec_named("mnist");
    const int64_t n = (int64_t)n2_options_count(o, "batch");
    n2_parameters parameters = n2_parameters_new(n2_graph_store(g), n2_options_count(o, "seed"));
    posterior p = {.x = pictures(g, spec, n)};
    p.decoder = n2_image_decoder_new(&parameters, spec, (int64_t)n2_options_count(o, "ngf"), LD_NZ);
    about->title = "Langevin dynamics";
    about->pictures = n;
    about->parameters = n2_parameters_count(&parameters);
    n2_node z = n2g_randn(g, n2_dims(n, LD_NZ));
    for (uint64_t t = n2_options_count(o, "steps"); t > 0; t--)
        z = n2_langevin_move(g, z, n2_score(g, z, log_posterior, &p, NULL), 0.1);
    return n2g_total(g, n2g_mean(g, n2g_mul(g, z, z), N2_ALL_AXES));
}

static n2ce_status run_ld(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_ld, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_ld_task = {
    .name = "bench ld",
    .summary = "time Langevin dynamics of a decoder's posterior",
    .description =
        "Codes of 8 numbers follow the gradient of log p(code | picture) through the decoder of\n"
        "28 x 28 pictures, with noise: x is the decoder's picture and noise of 0.3. A run begins\n"
        "anew and does all steps. ./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench ld --ngf 32 --device cpu --threads 2\n"
                "n2ce bench ld --device cuda\n",
    .options = ld_options,
    .run = run_ld,
};
