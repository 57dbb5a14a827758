/* Layers, initial values, optimiser, checkpoints, and whole training runs. */
#include "contexts.h"
#include "cpu/cpu.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "base/numerics.h"
#include "io/safetensors.h"
#include "model/ratio_net.h"
#include "rewrite/rewrites.h"
#include "study/bench_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- layers -------------------------------------------------------------- */

/* The sizes of the paper's ratio networks. */
static void ratio_networks_have_the_papers_sizes(void **state) {
    (void)state;
    static const struct {
        int64_t nz;
        int blocks;
        int64_t parameters;
    } rows[] = {
        {8, 3, 133249}, {100, 3, 145025}, {128, 3, 148609}, {512, 3, 197761}, {20, 16, 349441}};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        n2_store *store;
        assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
        n2_parameters p = n2_parameters_new(store, 0);
        n2_ratio_net_new(&p, rows[i].nz, 128, rows[i].blocks, 7);
        assert_false(p.failed);
        assert_int_equal(n2_parameters_count(&p), rows[i].parameters);
        n2_store_free(store);
    }
    n2ce_ctx_free(ctx);
}

/* U(-b, b) with b = 1/sqrt(fan in), for weights and biases, other for every seed. */
static void layers_start_as_pytorchs_do(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(double), &store), N2CE_OK);
    n2_parameters p = n2_parameters_new(store, 5);
    const n2_layer layer = n2_layer_new(&p, "layer", 64, 300);
    const double *w = layer.weight->data, bound = 1 / 8.0;
    double mean = 0, square = 0, largest = 0;
    const double n = 64 * 300;
    for (int i = 0; i < 64 * 300; i++) {
        mean += w[i] / n;
        square += w[i] * w[i] / n;
        largest = fmax(largest, fabs(w[i]));
    }
    assert_true(largest <= bound && largest > 0.999 * bound);
    assert_close(mean, 0, 0, 5 * bound / sqrt(3 * n));
    assert_close(square, bound * bound / 3, 0.03, 0);
    n2_parameters other = n2_parameters_new(store, 6);
    const n2_layer again = n2_layer_new(&other, "other", 64, 300);
    assert_memory_not_equal(again.weight->data, w, sizeof(double) * 100);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* Row t, pair i: sine and cosine of t 10000^(-2i/width), interleaved. */
static void sinusoids_are_interleaved(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(double), &store), N2CE_OK);
    const n2_tensor *t = n2_sinusoid_table(store, "table", 5, 8);
    const double *x = t->data;
    for (int row = 0; row < 5; row++)
        for (int i = 0; i < 4; i++) {
            const double angle = row * pow(10000, -2 * i / 8.0);
            assert_close(x[8 * row + 2 * i], sin(angle), 1e-14, 1e-16);
            assert_close(x[8 * row + 2 * i + 1], cos(angle), 1e-14, 1e-16);
        }
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

typedef struct net {
    n2_layer layer;
    n2_mlp mlp;
    n2_ratio_net ratio;
    n2_vae vae;
    n2_parameters parameters;
} net;

/* Neither layers nor parameters have a limit: 150 layers, 300 parameters, one optimiser. */
static void a_network_may_have_many_layers(void **state) {
    (void)state;
    enum { N = 150, WIDTH = 4 };
    int64_t widths[N + 1];
    for (int i = 0; i <= N; i++) widths[i] = WIDTH;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_parameters p = n2_parameters_new(store, 3);
    const n2_mlp mlp = n2_mlp_new(&p, "deep", widths, N + 1, 0.2);
    assert_false(p.failed);
    assert_int_equal(mlp.n, N);
    assert_int_equal(p.n, 2 * N);
    n2_graph *g = n2_graph_new(store);
    const n2_node y = n2_mlp_apply(g, &mlp, n2g_randn(g, n2_dims(8, WIDTH)));
    const n2_node loss = n2g_total(g, n2g_mul(g, y, y));
    n2_minimise(g, &(n2_optimiser)N2_OPTIMISER_DEFAULTS, "adam", &p, loss, NULL);
    n2_plan *plan;
    assert_int_equal(n2_plan_compile(g, n2_cpu_backend(), &loss, 1, &plan), N2CE_OK);
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    const double first = n2_plan_scalar(plan, 0);
    assert_int_equal(n2_plan_run_many(plan, 50), N2CE_OK);
    assert_true(n2_plan_scalar(plan, 0) < first);
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* x is [10 x 3]; the layers want 5 columns. */
#define WRONG(NAME, STATEMENT)                                       \
    enum { LINE_##NAME = __LINE__ };                                 \
    static void wrong_##NAME(n2_graph *g, const net *n, n2_node x) { \
        n2_node y = N2_NONE, z = N2_NONE;                            \
        STATEMENT;                                                   \
        (void)n, (void)x, (void)y, (void)z;                          \
    }
WRONG(layer, y = n2_layer_apply(g, &n->layer, x))
WRONG(mlp, y = n2_mlp_apply(g, &n->mlp, x))
WRONG(ratio, y = n2_ratio_net_apply(g, &n->ratio, x, n2g_randint(g, n2_dims(10), 7)))
WRONG(encode, n2_vae_encode(g, &n->vae, x, &y, &z))
WRONG(decode, y = n2_vae_decode(g, &n->vae, x))
WRONG(minimise, n2_minimise(g, &(n2_optimiser)N2_OPTIMISER_DEFAULTS, "o", &n->parameters, x, &y))
WRONG(average, n2_average(g, n->layer.bias, n->layer.weight, 0.9))

/* A layer that does not fit: the message has the line where it was applied. */
static void mistakes_in_layers_have_the_line_of_the_call(void **state) {
    (void)state;
    static const struct {
        void (*build)(n2_graph *g, const net *n, n2_node x);
        int line;
    } rows[] = {{wrong_layer, LINE_layer},    {wrong_mlp, LINE_mlp},
                {wrong_ratio, LINE_ratio},    {wrong_encode, LINE_encode},
                {wrong_decode, LINE_decode},  {wrong_minimise, LINE_minimise},
                {wrong_average, LINE_average}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        n2ce_ctx *ctx = new_ctx(1);
        n2_store *store;
        assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
        net n = {.parameters = n2_parameters_new(store, 0)};
        n.layer = n2_layer_new(&n.parameters, "layer", 5, 4);
        n.mlp = n2_mlp_new(&n.parameters, "mlp", (int64_t[]){5, 4, 4}, 3, 0.2);
        n.ratio = n2_ratio_net_new(&n.parameters, 5, 8, 2, 7);
        n.vae = n2_vae_new(&n.parameters, 5, 5, 8);
        n2_graph *g = n2_graph_new(store);
        rows[i].build(g, &n, n2g_randn(g, n2_dims(10, 3)));
        char where[32];
        snprintf(where, sizeof where, "test_nn.c:%d: ", rows[i].line);
        assert_int_equal(n2_graph_status(g), N2CE_EINVAL);
        if (!strstr(n2ce_errmsg(ctx), where)) fail_msg("%s: not %s", n2ce_errmsg(ctx), where);
        n2_graph_free(g);
        n2_store_free(store);
        n2ce_ctx_free(ctx);
    }
}

/* ---- runs that go bad ------------------------------------------------------ */

typedef struct doomed {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    n2_parameters w, v;
    int line;
} doomed;

/* Two parameters, [5 x 3] each. */
static doomed doomed_new(const n2_backend *backend) {
    doomed d = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(d.ctx, backend->bytes, &d.store), N2CE_OK);
    d.w = n2_parameters_new(d.store, 1);
    d.v = n2_parameters_new(d.store, 2);
    n2_parameter(&d.w, "w", n2_dims(5, 3), 1);
    n2_parameter(&d.v, "v", n2_dims(5, 3), 1);
    d.g = n2_graph_new(d.store);
    assert_non_null(d.g);
    return d;
}

static void doomed_compile(doomed *d, const n2_backend *backend) {
    if (n2_plan_compile(d->g, backend, NULL, 0, &d->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(d->ctx));
}

static void doomed_free(doomed *d) {
    n2_plan_free(d->plan);
    n2_graph_free(d->g);
    n2_store_free(d->store);
    n2ce_ctx_free(d->ctx);
}

/* mean log(5.5 - k + small) + mean (x w')^2 over 100 rows, k the steps done: the logarithm of
 * a negative number at step 7. */
static n2_node logarithm_of_a_countdown(doomed *d, n2_node w) {
    n2_graph *g = d->g;
    n2_tensor *count = n2_store_add(d->store, "count", n2_scalar_shape());
    const n2_node left = n2g_affine(g, n2g_read(g, count), -1, 5.5);
    const n2_node y = n2g_matmul(g, n2g_randn(g, n2_dims(100, 3)), w, false, true);
    const n2_node small = n2g_scale(g, n2g_tanh(g, y), 0.1);
    d->line = __LINE__ + 1;
    const n2_node bad = n2g_log(g, n2g_add(g, small, left));
    return n2g_mean(g, n2g_add(g, bad, n2g_mul(g, y, y)), N2_ALL_AXES);
}

static n2_node scalar(n2_graph *g, n2_node x) { return n2g_reshape(g, x, n2_scalar_shape()); }

static void assert_stops(doomed *d, uint32_t step, const char *op, const char *more) {
    char where[64], number[32];
    snprintf(where, sizeof where, "built at test_nn.c:%d ", d->line);
    snprintf(number, sizeof number, "Step %u: ", (unsigned)step);
    assert_int_equal(n2_plan_run(d->plan), N2CE_ENAN);
    const char *const words[] = {number, op, where, more};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strstr(n2ce_errmsg(d->ctx), words[i]))
            fail_msg("\"%s\" does not say %s", n2ce_errmsg(d->ctx), words[i]);
    assert_int_equal(n2_plan_runs(d->plan), step - 1);
}

static void assert_tensor_is(const doomed *d, const char *name, const double *x, bool same) {
    const n2_tensor *t = n2_store_find(d->store, name);
    double now[15];
    n2_tensor_get(d->store, t, now);
    const size_t bytes = (size_t)n2_elements(t->shape) * sizeof *now;
    if ((memcmp(now, x, bytes) == 0) != same) fail_msg("%s %s", name, same ? "moved" : "stayed");
}

/* The logarithm becomes NaN at step 7: the run stops there by itself, names the op and its line,
 * and parameters, moments and counters are those after step 6. It stays stopped. */
static void a_run_stops_when_the_loss_is_not_finite(void **state) {
    (void)state;
    static const char *const names[] = {"w", "o.m.w", "o.v.w", "o.step.count", "count"};
    const n2_backend *const backends[] = {n2_ref_backend(), fast_backend()};
    for (size_t k = 0; k < 2; k++) {
        doomed d = doomed_new(backends[k]);
        const n2_node loss = scalar(d.g, logarithm_of_a_countdown(&d, n2g_read(d.g, d.w.list[0])));
        const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.01};
        n2_minimise(d.g, &o, "o", &d.w, loss, NULL);
        n2_tensor *count = n2_store_find(d.store, "count");
        n2g_assign(d.g, count, n2g_affine(d.g, n2g_read(d.g, count), 1, 1));
        doomed_compile(&d, backends[k]);
        for (int i = 0; i < 6; i++) assert_int_equal(n2_plan_run(d.plan), N2CE_OK);
        double before[COUNT_OF(names)][15];
        for (size_t i = 0; i < COUNT_OF(names); i++)
            n2_tensor_get(d.store, n2_store_find(d.store, names[i]), before[i]);
        assert_stops(&d, 7, "op log [100 x 5]", "not finite.");
        for (size_t i = 0; i < COUNT_OF(names); i++)
            assert_tensor_is(&d, names[i], before[i], true);
        assert_stops(&d, 7, "op log", "");
        n2_tensor_set(d.store, count, (double[]){0});
        assert_int_equal(n2_plan_run(d.plan), N2CE_OK); /* and goes on when the cause is gone */
        doomed_free(&d);
    }
}

/* Of two optimisers, the one whose loss is good has made its step; the other has not. */
static void a_bad_loss_holds_back_its_own_updates(void **state) {
    (void)state;
    doomed d = doomed_new(fast_backend());
    const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.01, .clip = 10};
    const n2_node w = n2g_read(d.g, d.w.list[0]);
    n2_minimise(d.g, &o, "first", &d.w, n2g_total(d.g, n2g_mul(d.g, w, w)), NULL);
    const n2_node v = n2g_read(d.g, d.v.list[0]), sum = n2g_add(d.g, n2g_read(d.g, d.w.list[0]), v);
    d.line = __LINE__ + 1;
    const n2_node bad = n2g_sqrt(d.g, n2g_affine(d.g, n2g_mul(d.g, sum, sum), -1, 0));
    n2_minimise(d.g, &o, "second", &d.v, n2g_total(d.g, bad), NULL);
    doomed_compile(&d, fast_backend());
    double before[2][15];
    n2_tensor_get(d.store, d.w.list[0], before[0]);
    n2_tensor_get(d.store, d.v.list[0], before[1]);
    assert_stops(&d, 1, "op sqrt [5 x 3]", "");
    assert_tensor_is(&d, "w", before[0], false);
    assert_tensor_is(&d, "v", before[1], true);
    doomed_free(&d);
}

/* The loss |w| is 0 at w = 0 and its gradient is 0/0. Clipping looks at the gradient's norm, so
 * w stays; without, w is spoilt, and the next step says who it was. */
static void a_bad_gradient_stops_the_run(void **state) {
    (void)state;
    for (int clip = 0; clip < 2; clip++) {
        doomed d = doomed_new(fast_backend());
        const double zeros[15] = {0};
        n2_tensor_set(d.store, d.w.list[0], zeros);
        const n2_node w = n2g_read(d.g, d.w.list[0]);
        d.line = __LINE__ + 1;
        const n2_node loss = n2g_sqrt(d.g, n2g_total(d.g, n2g_mul(d.g, w, w)));
        const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.01, .clip = clip};
        n2_minimise(d.g, &o, "o", &d.w, loss, NULL);
        doomed_compile(&d, fast_backend());
        if (clip) {
            assert_stops(&d, 1, "op div", "");
        } else {
            assert_int_equal(n2_plan_run(d.plan), N2CE_OK);
            assert_stops(&d, 2, "op mul", "tensor \"w\"");
        }
        assert_tensor_is(&d, "w", zeros, clip);
        doomed_free(&d);
    }
}

/* Two losses with one name: the second step is the second of one Adam, whose moments hold both. */
static void losses_of_one_name_have_one_optimiser(void **state) {
    (void)state;
    doomed d = doomed_new(n2_ref_backend());
    const n2_optimiser o = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.01};
    double moment[15], square[15], steps;
    for (int i = 1; i <= 2; i++) { /* gradients 1 and 2 */
        const n2_node w = n2g_read(d.g, d.w.list[0]);
        n2_minimise(d.g, &o, "o", &d.w, n2g_scale(d.g, n2g_total(d.g, w), i), NULL);
    }
    doomed_compile(&d, n2_ref_backend());
    assert_int_equal(n2_plan_run(d.plan), N2CE_OK);
    n2_tensor_get(d.store, n2_store_find(d.store, "o.m.w"), moment);
    n2_tensor_get(d.store, n2_store_find(d.store, "o.v.w"), square);
    n2_tensor_get(d.store, n2_store_find(d.store, "o.step.count"), &steps);
    assert_close(steps, 2, 0, 0);
    assert_close(moment[3], 0.9 * 0.1 * 1 + 0.1 * 2, 1e-12, 0);
    assert_close(square[3], 0.999 * 0.001 * 1 + 0.001 * 4, 1e-12, 0);
    doomed_free(&d);
}

/* Every number of a gradient for itself, whatever the loss is scaled by. */
static void numbers_of_a_gradient_are_clipped(void **state) {
    (void)state;
    for (double scale = 0; scale < 5000; scale += 4096) {
        doomed d = doomed_new(n2_ref_backend());
        const n2_optimiser o = {
            .adam = {0, 0.999, 1e-8, 0}, .rate = 0.01, .clip_each = 1, .loss_scale = scale};
        const double values[15] = {-3, 0.25, 7};
        double moment[15];
        n2_tensor_set(d.store, d.w.list[0], values);
        const n2_node w = n2g_read(d.g, d.w.list[0]);
        n2_minimise(d.g, &o, "o", &d.w, n2g_total(d.g, n2g_mul(d.g, w, w)), NULL);
        doomed_compile(&d, n2_ref_backend());
        assert_int_equal(n2_plan_run(d.plan), N2CE_OK);
        n2_tensor_get(d.store, n2_store_find(d.store, "o.m.w"), moment); /* the gradient itself */
        assert_close(moment[0], -1, 1e-12, 0);
        assert_close(moment[1], 0.5, 1e-12, 0);
        assert_close(moment[2], 1, 1e-12, 0);
        doomed_free(&d);
    }
}

/* ---- training runs ------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

/* Sanitizers and an emulated GPU make a step a hundred times slower; a few still show a race or a
 * bad access. */
static bool is_slow(void) { return is_sanitized || is_emulated(); }
static int long_run(void) { return is_slow() ? 4 : 200; }

typedef struct training {
    n2ce_ctx *ctx;
    n2_bench_model model;
    n2_plan *plan;
} training;

static training start(int threads) {
    training t = {.ctx = new_ctx(threads)};
    assert_int_equal(n2_bench_model_new(t.ctx, 3, &t.model), N2CE_OK);
    const n2_node loss = n2_bench_step(&t.model, 2);
    const n2ce_status status = n2_plan_compile(t.model.graph, fast_backend(), &loss, 1, &t.plan);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(t.ctx));
    assert_int_equal(status, N2CE_OK);
    n2_plan_seed(t.plan, 11, 0);
    return t;
}

static void stop(training *t) {
    n2_plan_free(t->plan);
    n2_bench_model_free(&t->model);
    n2ce_ctx_free(t->ctx);
}

static void steps(training *t, int n) {
    for (int i = 0; i < n; i++) assert_int_equal(n2_plan_run(t->plan), N2CE_OK);
}

/* What a device has is fetched first: without that, two trainings on one would be compared by
 * what they began with. */
static void assert_same_tensors(const training *a, const training *b) {
    for (size_t i = 0; n2_store_at(a->model.store, i); i++) {
        const n2_tensor *x = n2_store_at(a->model.store, i), *y = n2_store_at(b->model.store, i);
        assert_int_equal(n2_tensor_pull(a->model.store, x), N2CE_OK);
        assert_int_equal(n2_tensor_pull(b->model.store, y), N2CE_OK);
        if (memcmp(x->data, y->data, (size_t)n2_elements(x->shape) * sizeof(float)) != 0)
            fail_msg("the tensor %s differs", x->name);
    }
}

/* Parameters and moments after a training run are the same bytes for any threads. */
static void training_does_not_depend_on_threads(void **state) {
    (void)state;
    training one = start(1);
    steps(&one, long_run());
    static const int threads[] = {2, 7};
    for (size_t i = 0; i < (is_cuda() ? 1 : COUNT_OF(threads)); i++) {
        training many = start(threads[i]);
        steps(&many, long_run());
        assert_same_tensors(&one, &many);
        stop(&many);
    }
    stop(&one);
}

/* A resumed run is the run that was not interrupted. */
static void a_checkpoint_continues_bit_for_bit(void **state) {
    (void)state;
    char path[] = "/tmp/n2ce-test-XXXXXX";
    assert_true(mkstemp(path) >= 0);
    training whole = start(2), first = start(1), second = start(2);
    const int n = long_run();
    steps(&whole, n);
    steps(&first, n / 2);
    assert_int_equal(n2_checkpoint_save(first.model.store, first.plan, path), N2CE_OK);
    assert_int_equal(n2_checkpoint_load(second.model.store, second.plan, path), N2CE_OK);
    assert_int_equal(n2_plan_runs(second.plan), n / 2);
    char device[N2_DEVICE_NAME];
    assert_int_equal(n2_checkpoint_device(n2_store_ctx(first.model.store), path, device), N2CE_OK);
    assert_string_equal(device, n2_backend_device(n2_plan_backend(first.plan)));
    steps(&second, n - n / 2);
    assert_same_tensors(&whole, &second);
    stop(&whole);
    stop(&first);
    stop(&second);
    unlink(path);
}

static void train_until_killed(const char *path) {
    training t = start(2);
    for (;;) {
        steps(&t, 1);
        if (n2_checkpoint_save(t.model.store, t.plan, path) != N2CE_OK) _exit(1);
    }
}

/* Killed at any moment, the last checkpoint is whole and the run goes on from it. */
static void a_killed_run_resumes(void **state) {
    (void)state;
    if (is_cuda()) skip(); /* CUDA does not survive a fork */
    char path[] = "/tmp/n2ce-test-XXXXXX";
    assert_true(mkstemp(path) >= 0);
    const pid_t child = fork();
    if (child == 0) train_until_killed(path);
    struct stat info = {.st_size = 0};
    for (int i = 0; i < 600 && info.st_size == 0; i++) { /* until the first checkpoint */
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        stat(path, &info);
    }
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    training resumed = start(2), whole = start(1);
    const n2ce_status status = n2_checkpoint_load(resumed.model.store, resumed.plan, path);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(resumed.ctx));
    assert_int_equal(status, N2CE_OK);
    const int done = (int)n2_plan_runs(resumed.plan);
    assert_true(done > 0);
    steps(&resumed, 5);
    steps(&whole, done + 5);
    assert_same_tensors(&whole, &resumed);
    stop(&resumed);
    stop(&whole);
    unlink(path);
}

/* A checkpoint of another model is refused, by name, and changes nothing. */
static void a_foreign_checkpoint_is_refused(void **state) {
    (void)state;
    char path[] = "/tmp/n2ce-test-XXXXXX";
    assert_true(mkstemp(path) >= 0);
    training t = start(1);
    const float x[3] = {1, 2, 3};
    const n2_st_tensor other = {
        .name = "other", .dtype = N2_ST_F32, .rank = 1, .shape = {3}, .data = x, .bytes = sizeof x};
    assert_int_equal(n2_st_write(t.ctx, path, &other, 1, NULL, 0), N2CE_OK);
    assert_int_equal(n2_checkpoint_load(t.model.store, t.plan, path), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(t.ctx), "stage."));
    stop(&t);
    unlink(path);
}

/* The loss of the untrained network is near that of a blind critic, and falls. */
static void training_lowers_the_loss(void **state) {
    (void)state;
    if (is_slow()) skip();
    training t = start(2);
    steps(&t, 1);
    assert_close(n2_plan_scalar(t.plan, 0), n2ce_bound_cap(2), 0.05, 0);
    steps(&t, 300);
    double late = 0;
    for (int i = 0; i < 20; i++) {
        steps(&t, 1);
        late += n2_plan_scalar(t.plan, 0) / 20;
    }
    assert_true(late < n2ce_bound_cap(2) - 0.02);
    stop(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_networks_have_the_papers_sizes),
        cmocka_unit_test(layers_start_as_pytorchs_do),
        cmocka_unit_test(sinusoids_are_interleaved),
        cmocka_unit_test(a_network_may_have_many_layers),
        cmocka_unit_test(mistakes_in_layers_have_the_line_of_the_call),
        cmocka_unit_test(a_run_stops_when_the_loss_is_not_finite),
        cmocka_unit_test(a_bad_loss_holds_back_its_own_updates),
        cmocka_unit_test(a_bad_gradient_stops_the_run),
        cmocka_unit_test(losses_of_one_name_have_one_optimiser),
        cmocka_unit_test(numbers_of_a_gradient_are_clipped),
        cmocka_unit_test(training_does_not_depend_on_threads),
        cmocka_unit_test(a_checkpoint_continues_bit_for_bit),
        cmocka_unit_test(a_killed_run_resumes),
        cmocka_unit_test(a_foreign_checkpoint_is_refused),
        cmocka_unit_test(training_lowers_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
