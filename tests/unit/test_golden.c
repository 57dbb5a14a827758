/* Parity with PyTorch: what tools/make_goldens.py computed in double precision, computed again by
 * the engine on both backends. Errors are relative to the largest number of a tensor.
 *
 * The networks are spelt out here as they are there; the names of the layers are PyTorch's. */
#include "close.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "io/safetensors.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N2CE_GOLDEN_DIR
#define N2CE_GOLDEN_DIR "tests/golden"
#endif

enum { MOST_PARAMETERS = 32, STEPS = 10 };
static const double slope = 0.2;

/* ---- a golden file and a graph beside it ----------------------------------- */

typedef struct golden {
    n2ce_ctx *ctx;
    n2_st_file *file;
    const n2_backend *backend;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    double tolerance;
} golden;

static const n2_backend *backend_at(int i) { return i ? fast_backend() : n2_ref_backend(); }

/* Golden numbers are rounded to float, so ref cannot come nearer than 6e-8. */
static golden open_golden(const char *name, int backend) {
    golden d = {.backend = backend_at(backend),
                .tolerance = backend ? fast_tolerance(1e-5, 0.1) : 1e-6};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 2;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.safetensors", N2CE_GOLDEN_DIR, name);
    assert_int_equal(n2ce_ctx_new(&d.ctx, &options), N2CE_OK);
    if (n2_st_open(d.ctx, path, &d.file) != N2CE_OK) fail_msg("%s", n2ce_errmsg(d.ctx));
    assert_int_equal(n2_store_new(d.ctx, d.backend->bytes, &d.store), N2CE_OK);
    d.g = n2_graph_new(d.store);
    assert_non_null(d.g);
    return d;
}

static void close_golden(golden *d) {
    n2_plan_free(d->plan);
    n2_graph_free(d->g);
    n2_store_free(d->store);
    n2_st_close(d->file);
    n2ce_ctx_free(d->ctx);
}

static const n2_st_tensor *find(const golden *d, const char *name) {
    const n2_st_tensor *t = n2_st_find(d->file, name);
    if (!t) fail_msg("the golden file has no tensor %s", name);
    return t;
}

static double *doubles(size_t n) {
    double *p = calloc(n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* The numbers of a golden tensor; the caller frees them. */
static double *golden_values(const golden *d, const char *name, size_t *n) {
    const n2_st_tensor *t = find(d, name);
    *n = n2_st_elements(t);
    double *values = doubles(*n);
    assert_int_equal(n2_st_to_f64(d->ctx, t, values, *n), N2CE_OK);
    return values;
}

/* A tensor of the store, with the name, shape and numbers of a golden one. */
static n2_tensor *load(golden *d, const char *name) {
    n2_tensor *loaded = n2_store_find(d->store, name);
    if (loaded) return loaded;
    const n2_st_tensor *t = find(d, name);
    size_t n;
    double *values = golden_values(d, name, &n);
    loaded = n2_store_add(d->store, name, n2_shape_of(t->shape, (size_t)t->rank));
    assert_non_null(loaded);
    n2_tensor_set(d->store, loaded, values);
    free(values);
    return loaded;
}

static n2_node read_golden(golden *d, const char *name) { return n2g_read(d->g, load(d, name)); }

/* The last bias's gradient is mean(w_den) - mean(w_num), two numbers near 1 whose difference is
 * 6e-5: a float knows it to a rounding error of 1, so that 1e-7 is allowed. */
static double least_scale(const golden *d, const char *name) {
    return d->backend->bytes == 4 && strcmp(name, "grad.out.bias") == 0 ? 0.01 : 0;
}

/* Numbers agree with those of a golden tensor, from `first` on. */
static void compare_part(const golden *d, const char *name, size_t first, const double *found,
                         size_t n_found) {
    size_t n;
    double *expected = golden_values(d, name, &n), largest = least_scale(d, name);
    assert_true(first + n_found <= n);
    for (size_t i = 0; i < n_found; i++) largest = fmax(largest, fabs(expected[first + i]));
    for (size_t i = 0; i < n_found; i++) {
        if (!is_close(found[i], expected[first + i], 0, d->tolerance * largest))
            print_error("%s: %s, element %zu, %.2g of the largest\n", d->backend->name, name,
                        first + i, fabs(found[i] - expected[first + i]) / largest);
        assert_close(found[i], expected[first + i], 0, d->tolerance * largest);
    }
    free(expected);
}

static void compare(const golden *d, const char *name, const double *found, size_t n_found) {
    assert_int_equal(n_found, n2_st_elements(find(d, name)));
    compare_part(d, name, 0, found, n_found);
}

static void compare_output(const golden *d, size_t k, n2_node node, const char *name) {
    const size_t n = (size_t)n2_elements(n2_shape_at(d->g, node));
    double *found = doubles(n);
    n2_plan_get(d->plan, k, found);
    compare(d, name, found, n);
    free(found);
}

static void compare_tensor(const golden *d, const char *stored, const char *name, size_t row) {
    const n2_tensor *t = n2_store_find(d->store, stored);
    const size_t n = (size_t)n2_elements(t->shape);
    double *found = doubles(n);
    n2_tensor_get(d->store, t, found);
    compare_part(d, name, row * n, found, n);
    free(found);
}

/* ---- outputs with the golden name each should have -------------------------- */

enum { MOST_OUTPUTS = 64 };

typedef struct outputs {
    n2_node node[MOST_OUTPUTS];
    char name[MOST_OUTPUTS][64];
    size_t n;
} outputs;

static void expect(outputs *o, n2_node node, const char *prefix, const char *name) {
    assert_true(o->n < MOST_OUTPUTS);
    o->node[o->n] = node;
    snprintf(o->name[o->n++], sizeof o->name[0], "%s%s", prefix, name);
}

static void compile(golden *d, const outputs *o) {
    if (n2_plan_compile(d->g, d->backend, o->node, o->n, &d->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(d->ctx));
}

static void compare_outputs(const golden *d, const outputs *o) {
    for (size_t k = 0; k < o->n; k++) compare_output(d, k, o->node[k], o->name[k]);
}

static void run(const golden *d) { assert_int_equal(n2_plan_run(d->plan), N2CE_OK); }

/* ---- layers and training --------------------------------------------------- */

/* "param.NAME.weight" and "param.NAME.bias". */
static n2_node layer(golden *d, const char *name, n2_node x) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "param.%s.weight", name);
    snprintf(bias, sizeof bias, "param.%s.bias", name);
    return n2g_linear(d->g, x, read_golden(d, weight), read_golden(d, bias));
}

/* Several, with leaky ReLU between them. */
static n2_node stack(golden *d, const char *const *names, size_t n, n2_node x) {
    for (size_t i = 0; i < n; i++) x = layer(d, names[i], i ? n2g_lrelu(d->g, x, slope) : x);
    return x;
}

typedef struct training {
    n2_tensor *p[MOST_PARAMETERS];
    n2_node gradient[MOST_PARAMETERS];
    size_t n;
} training;

/* All tensors param.* of the store, and their gradients. */
static training find_parameters(golden *d, n2_node loss) {
    training t = {.n = 0};
    n2_node nodes[MOST_PARAMETERS];
    for (size_t i = 0; n2_store_at(d->store, i); i++) {
        n2_tensor *p = n2_store_at(d->store, i);
        if (strncmp(p->name, "param.", 6) != 0) continue;
        nodes[t.n] = n2g_read(d->g, p);
        t.p[t.n++] = p;
    }
    n2g_grad(d->g, loss, nodes, t.n, t.gradient);
    return t;
}

static n2_node global_norm(n2_graph *g, const n2_node *gradients, size_t n) {
    n2_node sum = n2g_constant(g, 0);
    for (size_t i = 0; i < n; i++)
        sum = n2g_add(g, sum, n2g_total(g, n2g_mul(g, gradients[i], gradients[i])));
    return n2g_sqrt(g, sum);
}

/* min(1, clip / (norm + 1e-6)). */
static n2_node clip_factor(n2_graph *g, n2_node norm, double clip) {
    const n2_node factor = n2g_scale(g, n2g_reciprocal(g, n2g_affine(g, norm, 1, 1e-6)), clip);
    return n2g_minimum(g, factor, n2g_constant(g, 1));
}

/* A counter that a run of the plan moves on; the new value. */
static n2_node count_steps(golden *d) {
    n2_tensor *step = n2_store_add(d->store, "step", n2_scalar_shape());
    assert_non_null(step);
    return n2g_assign(d->g, step, n2g_affine(d->g, n2g_read(d->g, step), 1, 1));
}

static void update(golden *d, const n2_adam *adam, n2_tensor *p, n2_node gradient, double rate,
                   n2_node factor, n2_node step) {
    char m[80], v[80];
    snprintf(m, sizeof m, "m.%s", p->name);
    snprintf(v, sizeof v, "v.%s", p->name);
    n2_tensor *const tensors[3] = {p, n2_store_add(d->store, m, p->shape),
                                   n2_store_add(d->store, v, p->shape)};
    n2g_adam_update(d->g, adam, tensors, gradient, n2g_constant(d->g, rate), factor, step);
}

/* Loss, norm and gradients are outputs; then Adam at rate 1e-3 on gradients clipped at 1. */
static training train(golden *d, n2_node loss, double beta1, outputs *o) {
    const training t = find_parameters(d, loss);
    const n2_node norm = global_norm(d->g, t.gradient, t.n);
    expect(o, loss, "loss", "");
    for (size_t i = 0; i < t.n; i++) expect(o, t.gradient[i], "grad.", t.p[i]->name + 6);
    const n2_node factor = clip_factor(d->g, norm, 1), step = count_steps(d);
    const n2_adam adam = {beta1, 0.999, 1e-8, 0};
    for (size_t i = 0; i < t.n; i++) update(d, &adam, t.p[i], t.gradient[i], 1e-3, factor, step);
    o->node[o->n] = norm; /* compared by hand */
    return t;
}

/* Ten steps: the first one's outputs, all losses and norms, and where the parameters end. */
static void check_training(golden *d, const training *t, outputs *o) {
    double losses[STEPS], norms[STEPS];
    size_t loss = 0;
    while (strcmp(o->name[loss], "loss") != 0) loss++;
    const size_t norm = o->n++;
    compile(d, o);
    o->n--;
    for (int step = 0; step < STEPS; step++) {
        run(d);
        if (step == 0) compare_outputs(d, o);
        losses[step] = n2_plan_scalar(d->plan, loss);
        norms[step] = n2_plan_scalar(d->plan, norm);
    }
    compare(d, "losses", losses, STEPS);
    compare(d, "grad_norms", norms, STEPS);
    for (size_t i = 0; i < t->n; i++) {
        char after[64];
        snprintf(after, sizeof after, "after.%s", t->p[i]->name + 6);
        compare_tensor(d, t->p[i]->name, after, 0);
    }
}

/* ---- the ratio network ----------------------------------------------------- */

/* Sinusoids of the stage, as PyTorch computed them: the file holds them rounded to float. */
static void set_stage_table(golden *d) {
    enum { STAGES = 3, WIDTH = 32 };
    double table[STAGES * WIDTH];
    for (int i = 0; i < STAGES * WIDTH; i++) {
        const double angle = i / WIDTH * pow(10000, -(double)(i % WIDTH / 2 * 2) / WIDTH);
        table[i] = i % 2 ? cos(angle) : sin(angle);
    }
    compare(d, "stage_table", table, STAGES * WIDTH);
    n2_tensor_set(d->store, load(d, "stage_table"), table);
}

static n2_node ratio_net(golden *d, n2_node z, n2_node k) {
    static const char *const input[] = {"input.0", "input.2"}, *const stage[] = {"stage.0",
                                                                                 "stage.2"};
    static const char *const blocks[] = {"blocks.0", "blocks.1", "blocks.2"};
    const n2_node table = stack(d, stage, 2, read_golden(d, "stage_table"));
    n2_node h = n2g_concat(d->g, stack(d, input, 2, z), n2g_gather(d->g, table, k), 1);
    h = layer(d, "join", n2g_lrelu(d->g, h, slope));
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        h = n2g_add(d->g, h, layer(d, blocks[i], n2g_lrelu(d->g, h, slope)));
    h = layer(d, "out", n2g_lrelu(d->g, h, slope));
    return n2g_reshape(d->g, h, n2_shape_at(d->g, k));
}

/* The gradient by z of f summed over all stages: what Langevin dynamics follows. */
static n2_node score(golden *d, n2_node z) {
    n2_node sum = n2g_constant(d->g, 0), gradient;
    for (int k = 0; k < 3; k++) {
        const n2_node index =
            n2g_broadcast(d->g, n2g_constant(d->g, k), n2_dims(n2_shape_at(d->g, z).dim[0]));
        sum = n2g_add(d->g, sum, n2g_total(d->g, ratio_net(d, z, index)));
    }
    n2g_grad(d->g, sum, &z, 1, &gradient);
    return gradient;
}

/* Logits, loss, gradients and ten steps of training of the shared ratio network. */
static void the_ratio_network_learns_as_in_pytorch(void **state) {
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        golden d = open_golden("ratio_net", backend);
        outputs o = {.n = 0};
        set_stage_table(&d);
        const n2_node z[] = {read_golden(&d, "z_num"), read_golden(&d, "z_den")};
        const n2_node f_num = ratio_net(&d, z[0], read_golden(&d, "k_num"));
        const n2_node f_den = ratio_net(&d, z[1], read_golden(&d, "k_den"));
        const n2_node loss = n2g_n2ce_loss(d.g, f_num, f_den, 100);
        n2_node gradient[2];
        n2g_grad(d.g, loss, z, 2, gradient);
        expect(&o, f_num, "f_num", "");
        expect(&o, f_den, "f_den", "");
        expect(&o, gradient[0], "grad.z_num", "");
        expect(&o, gradient[1], "grad.z_den", "");
        expect(&o, score(&d, z[0]), "grad_sum_f_z", "");
        const training t = train(&d, loss, 0.9, &o);
        assert_int_equal(t.n, 18);
        check_training(&d, &t, &o);
        close_golden(&d);
    }
}

/* ---- the variational auto-encoder ------------------------------------------ */

/* Codes, reconstruction, loss, gradients and ten steps of training. */
static void the_auto_encoder_learns_as_in_pytorch(void **state) {
    (void)state;
    static const char *const encoder[] = {"enc.0", "enc.2"};
    static const char *const decoder[] = {"dec.0", "dec.2", "dec.4", "dec.6", "dec.8"};
    for (int backend = 0; backend < 2; backend++) {
        golden d = open_golden("vae", backend);
        outputs o = {.n = 0};
        const n2_node x = read_golden(&d, "x");
        const n2_node h = n2g_lrelu(d.g, stack(&d, encoder, 2, x), slope);
        const n2_node mean = layer(&d, "mean", h), logvar = layer(&d, "logvar", h);
        const n2_node z = n2g_reparameterise(d.g, mean, logvar, read_golden(&d, "eps"));
        const n2_node recon = stack(&d, decoder, 5, z), error = n2g_sub(d.g, recon, x);
        const n2_node square = n2g_total(d.g, n2g_mul(d.g, error, error));
        const n2_node loss = n2g_add(d.g, n2g_scale(d.g, square, 50 / 16.0),
                                     n2g_scale(d.g, n2g_gaussian_kl(d.g, mean, logvar), 0.75));
        expect(&o, mean, "mean", "");
        expect(&o, logvar, "logvar", "");
        expect(&o, z, "z", "");
        expect(&o, recon, "recon", "");
        const training t = train(&d, loss, 0.5, &o);
        assert_int_equal(t.n, 18);
        check_training(&d, &t, &o);
        close_golden(&d);
    }
}

/* ---- optimisers ------------------------------------------------------------ */

static void set_row(const golden *d, n2_tensor *t, const char *name, size_t row) {
    size_t n;
    double *values = golden_values(d, name, &n);
    n2_tensor_set(d->store, t, values + row * (size_t)n2_elements(t->shape));
    free(values);
}

static void check_optimiser(const char *name, int backend, double decay, double clip) {
    golden d = open_golden("adam", backend);
    char after[32], m[32], v[32];
    snprintf(after, sizeof after, "%s.p", name);
    snprintf(m, sizeof m, "%s.m", name);
    snprintf(v, sizeof v, "%s.v", name);
    n2_tensor *p = load(&d, "p0"), *gradient = n2_store_add(d.store, "g", p->shape);
    n2_tensor *average = n2_store_add(d.store, "ema", p->shape);
    set_row(&d, average, "p0", 0);
    const n2_node grad = n2g_read(d.g, gradient), norm = global_norm(d.g, &grad, 1);
    const n2_node factor = clip > 0 ? clip_factor(d.g, norm, clip) : n2g_constant(d.g, 1);
    update(&d, &(n2_adam){0.9, 0.999, 1e-8, decay}, p, grad, 1e-2, factor, count_steps(&d));
    const n2_node kept = n2g_scale(d.g, n2g_read(d.g, average), 0.9);
    n2g_assign(d.g, average, n2g_add(d.g, kept, n2g_scale(d.g, n2g_read(d.g, p), 0.1)));
    compile(&d, &(outputs){.node = {norm}, .n = 1});
    double norms[5];
    for (size_t step = 0; step < 5; step++) {
        set_row(&d, gradient, "grads", step);
        run(&d);
        norms[step] = n2_plan_scalar(d.plan, 0);
        compare_tensor(&d, "p0", after, step);
        if (strcmp(name, "adam") == 0) compare_tensor(&d, "ema", "ema", step);
    }
    compare_tensor(&d, "m.p0", m, 0);
    compare_tensor(&d, "v.p0", v, 0);
    if (clip > 0) compare(&d, "clipped.norms", norms, 5);
    close_golden(&d);
}

/* Adam, with decoupled decay, with clipping, and a moving average of the first. */
static void optimisers_step_as_in_pytorch(void **state) {
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        check_optimiser("adam", backend, 0, 0);
        check_optimiser("adamw", backend, 0.01, 0);
        check_optimiser("clipped", backend, 0, 0.5);
    }
}

/* ---- operators ------------------------------------------------------------- */

#define BUILD(NAME, EXPRESSION) \
    static n2_node build_##NAME(n2_graph *g, const n2_node *x) { return EXPRESSION; }
BUILD(softmax_axis0, n2g_softmax(g, x[0], 0))
BUILD(softmax_axis1, n2g_softmax(g, x[0], 1))
BUILD(softmax_axis2, n2g_softmax(g, x[0], 2))
BUILD(logsumexp_axis0, n2g_logsumexp(g, x[0], n2_axis(0)))
BUILD(logsumexp_axis1, n2g_logsumexp(g, x[0], n2_axis(1)))
BUILD(logsumexp_axis2, n2g_logsumexp(g, x[0], n2_axis(2)))
BUILD(log_softmax_axis0, n2g_sub(g, x[0], n2g_logsumexp(g, x[0], n2_axis(0))))
BUILD(log_softmax_axis1, n2g_sub(g, x[0], n2g_logsumexp(g, x[0], n2_axis(1))))
BUILD(log_softmax_axis2, n2g_sub(g, x[0], n2g_logsumexp(g, x[0], n2_axis(2))))
BUILD(silu, n2g_silu(g, x[0]))
BUILD(tanh, n2g_tanh(g, x[0]))
BUILD(softplus, n2g_softplus(g, x[0]))
BUILD(logsigmoid, n2g_log_sigmoid(g, x[0]))
BUILD(leaky_relu, n2g_lrelu(g, x[0], slope))
BUILD(matmul_nn, n2g_matmul(g, x[0], x[1], false, false))
BUILD(matmul_nt, n2g_matmul(g, x[0], x[1], false, true))
BUILD(matmul_tn, n2g_matmul(g, x[0], x[1], true, false))
BUILD(matmul_tt, n2g_matmul(g, x[0], x[1], true, true))
BUILD(matmul_batched, n2g_matmul(g, x[0], x[1], false, false))
BUILD(gather, n2g_gather(g, x[0], x[1]))
BUILD(concat_axis0, n2g_concat(g, x[0], x[1], 0))
BUILD(concat_axis1, n2g_concat(g, x[0], x[1], 1))
BUILD(slice, n2g_slice(g, n2g_slice(g, x[0], 0, 1, 3), 1, 2, 3))
BUILD(transpose, n2g_transpose(g, x[0], 0, 1))
BUILD(transpose_last, n2g_transpose(g, x[0], 1, 2))

/* Row by row: the engine's loss is a mean, the golden one is not. */
static n2_node build_cross_entropy(n2_graph *g, const n2_node *x) {
    n2_node y = N2_NONE;
    for (int64_t i = 0; i < n2_shape_at(g, x[0]).dim[0]; i++) {
        const n2_node row =
            n2g_cross_entropy(g, n2g_slice(g, x[0], 0, i, 1), n2g_slice(g, x[1], 0, i, 1));
        const n2_node one = n2g_reshape(g, row, n2_dims(1));
        y = y.id ? n2g_concat(g, y, one, 0) : one;
    }
    return y;
}

#define ROW(NAME, ...)                       \
    {                                        \
#NAME, build_##NAME, { __VA_ARGS__ } \
    }
static const struct {
    const char *name;
    n2_node (*build)(n2_graph *g, const n2_node *x);
    const char *inputs[2]; /* "k" is an index and has no gradient */
} rows[] = {
    ROW(softmax_axis0, "x", NULL),
    ROW(softmax_axis1, "x", NULL),
    ROW(softmax_axis2, "x", NULL),
    ROW(logsumexp_axis0, "x", NULL),
    ROW(logsumexp_axis1, "x", NULL),
    ROW(logsumexp_axis2, "x", NULL),
    ROW(log_softmax_axis0, "x", NULL),
    ROW(log_softmax_axis1, "x", NULL),
    ROW(log_softmax_axis2, "x", NULL),
    ROW(cross_entropy, "x", "k"),
    ROW(silu, "x", NULL),
    ROW(tanh, "x", NULL),
    ROW(softplus, "x", NULL),
    ROW(logsigmoid, "x", NULL),
    ROW(leaky_relu, "x", NULL),
    ROW(matmul_nn, "a", "b"),
    ROW(matmul_nt, "a", "b"),
    ROW(matmul_tn, "a", "b"),
    ROW(matmul_tt, "a", "b"),
    ROW(matmul_batched, "a", "b"),
    ROW(gather, "table", "k"),
    ROW(concat_axis0, "a", "b"),
    ROW(concat_axis1, "a", "b"),
    ROW(slice, "x", NULL),
    ROW(transpose, "x", NULL),
    ROW(transpose_last, "x", NULL),
};

/* CASE.y from CASE.INPUT, and CASE.grad.INPUT of sum(w y). */
static void check_operator(size_t r, int backend) {
    golden d = open_golden("ops", backend);
    outputs o = {.n = 0};
    char name[64];
    n2_node x[2], gradient[2];
    size_t n = 0, n_smooth = 0;
    for (; n < 2 && rows[r].inputs[n]; n++) {
        snprintf(name, sizeof name, "%s.%s", rows[r].name, rows[r].inputs[n]);
        x[n] = read_golden(&d, name);
        n_smooth += strcmp(rows[r].inputs[n], "k") != 0;
    }
    snprintf(name, sizeof name, "%s.w", rows[r].name);
    const n2_node w = read_golden(&d, name);
    const n2_node y = n2g_reshape(d.g, rows[r].build(d.g, x), n2_shape_at(d.g, w));
    n2g_grad(d.g, n2g_total(d.g, n2g_mul(d.g, w, y)), x, n_smooth, gradient);
    expect(&o, y, rows[r].name, ".y");
    for (size_t k = 0; k < n_smooth; k++) {
        snprintf(name, sizeof name, "%s.grad.", rows[r].name);
        expect(&o, gradient[k], name, rows[r].inputs[k]);
    }
    compile(&d, &o);
    run(&d);
    compare_outputs(&d, &o);
    close_golden(&d);
}

static void operators_compute_as_in_pytorch(void **state) {
    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (int backend = 0; backend < 2; backend++) check_operator(r, backend);
}

/* ---- Stein variational gradient descent ------------------------------------ */

/* phi_i = mean_j [k(x_j, x_i) s_j + grad_{x_j} k(x_j, x_i)], with the median heuristic. */
static void svgd_moves_as_in_pytorch(void **state) {
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        golden d = open_golden("ops", backend);
        outputs o = {.n = 0};
        n2_graph *g = d.g;
        const n2_node x = read_golden(&d, "svgd.x"), s = read_golden(&d, "svgd.s");
        const double n = (double)n2_shape_at(g, x).dim[0];
        const n2_node d2 = n2g_squared_distances(g, x, x);
        const n2_node median = n2g_median(g, n2g_sqrt(g, d2), true);
        const n2_node h2 = n2g_scale(g, n2g_mul(g, median, median), 0.5 / log(n + 1));
        const n2_node kernel = n2g_exp(g, n2g_scale(g, n2g_div(g, d2, h2), -0.5));
        const n2_node attraction = n2g_matmul(g, kernel, s, false, false);
        const n2_node centre = n2g_mul(g, x, n2g_sum(g, kernel, n2_axis(1)));
        const n2_node apart = n2g_sub(g, centre, n2g_matmul(g, kernel, x, false, false));
        const n2_node phi = n2g_scale(g, n2g_add(g, attraction, n2g_div(g, apart, h2)), 1 / n);
        expect(&o, median, "svgd.median", "");
        expect(&o, h2, "svgd.h2", "");
        expect(&o, kernel, "svgd.kernel", "");
        expect(&o, phi, "svgd.phi", "");
        compile(&d, &o);
        run(&d);
        compare_outputs(&d, &o);
        close_golden(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compute_as_in_pytorch),
        cmocka_unit_test(svgd_moves_as_in_pytorch),
        cmocka_unit_test(optimisers_step_as_in_pytorch),
        cmocka_unit_test(the_ratio_network_learns_as_in_pytorch),
        cmocka_unit_test(the_auto_encoder_learns_as_in_pytorch),
    };
    printf("backend: %s\n", fast_backend()->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
