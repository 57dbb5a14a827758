/* Facts about a GPU beside the processor: the same training, whole or continued from the other's
 * checkpoint; the same bytes every time; tensors that host code touches between runs. Where there
 * is no GPU the tests say so and are skipped. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "contexts.h"
#include "cpu/cpu.h"
#include "fast_backend.h"
#include "stores.h"

#include "model/ratio_net.h"
#include "nn/nn.h"
#include "rewrite/rewrites.h"
#include "study/bench_model.h"

#include <unistd.h>

/* An emulated GPU takes seconds for what a real one does in a millisecond: it has a smaller
 * network to train, and less often. */
static bool is_small(void) {
    return strncmp(n2_cuda_name(open_cuda_or_skip(true)), "emulated", 8) == 0;
}

static int long_run(void) { return is_small() ? 20 : 200; }

typedef struct training {
    n2ce_ctx *ctx;
    n2_bench_model model; /* none, if it is small */
    n2_store *store;
    n2_graph *graph;
    n2_plan *plan;
} training;

/* A network with a gathered half, clipping, Adam and averages. */
static n2_node small_step(training *t) {
    assert_int_equal(n2_store_new(t->ctx, sizeof(float), &t->store), N2CE_OK);
    n2_graph *g = t->graph = n2_graph_new(t->store);
    assert_non_null(g);
    n2_parameters p = n2_parameters_new(t->store, 3);
    const n2_ratio_net net = n2_ratio_net_new(&p, 5, 16, 2, 3);
    const n2_node stage = n2g_row_index(g, 96, 32, 3);
    const n2_node num = n2_ratio_net_apply(g, &net, n2g_randn(g, n2_dims(96, 5)), stage);
    const n2_node x = n2g_affine(g, n2g_randn(g, n2_dims(96, 5)), 0.8, 0.2);
    const n2_node loss = n2g_n2ce_loss(g, num, n2_ratio_net_apply(g, &net, x, stage), 7);
    n2_minimise(g, &(n2_optimiser){.adam = {0.9, 0.999, 1e-8, 0.01}, .rate = 3e-3, .clip = 1},
                "adam", &p, loss, NULL);
    n2_tensor *average = n2_store_add(t->store, "average", p.list[0]->shape);
    n2_average(g, average, p.list[0], 0.9);
    return loss;
}

static n2_node paper_step(training *t) {
    assert_int_equal(n2_bench_model_new(t->ctx, 3, &t->model), N2CE_OK);
    t->store = t->model.store;
    t->graph = t->model.graph;
    return n2_bench_step(&t->model, 2);
}

static training start(const n2_backend *backend) {
    training t = {.ctx = NULL};
    assert_int_equal(n2ce_ctx_new(&t.ctx, NULL), N2CE_OK);
    const n2_node loss = is_small() ? small_step(&t) : paper_step(&t);
    if (n2_plan_compile(t.graph, backend, &loss, 1, &t.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(t.ctx));
    n2_plan_seed(t.plan, 11, 0);
    return t;
}

static void stop(training *t) {
    n2_plan_free(t->plan);
    if (t->model.store) {
        n2_bench_model_free(&t->model);
    } else {
        n2_graph_free(t->graph);
        n2_store_free(t->store);
    }
    n2ce_ctx_free(t->ctx);
}

static void steps(training *t, int n) {
    if (n2_plan_run_many(t->plan, (uint64_t)n) != N2CE_OK) fail_msg("%s", n2ce_errmsg(t->ctx));
}

/* ---- training --------------------------------------------------------------- */

/* Losses of `n` steps lie together: `tolerance` relative, at ten places on the way. */
static void check_curves(bool strict, double tolerance) {
    const n2_backend *cuda = open_cuda_or_skip(strict);
    training a = start(n2_cpu_backend()), b = start(cuda);
    double worst = 0;
    for (int done = 0, n = long_run(), stride = n / 10; done < n; done += stride) {
        steps(&a, stride);
        steps(&b, stride);
        const double x = n2_plan_scalar(a.plan, 0), y = n2_plan_scalar(b.plan, 0);
        worst = fmax(worst, fabs(x - y) / fabs(x));
        assert_close(y, x, tolerance, 0);
    }
    printf("%s: largest difference of the losses %.2g\n", cuda->name, worst);
    stop(&a);
    stop(&b);
}

static void a_gpu_learns_as_a_processor_does(void **state) {
    (void)state;
    check_curves(true, 2e-3);
}

static void tf32_learns_nearly_the_same(void **state) {
    (void)state;
    check_curves(false, 2e-2);
}

static void the_same_seed_gives_the_same_bytes(void **state) {
    (void)state;
    const n2_backend *cuda = open_cuda_or_skip(false);
    training a = start(cuda), b = start(cuda);
    const int n = long_run();
    steps(&a, n); /* at once, or one after another */
    for (int i = 0; i < n; i++) steps(&b, 1);
    assert_int_equal(n2_plan_runs(a.plan), n);
    assert_int_equal(n2_plan_runs(b.plan), n);
    assert_same_tensors(a.store, b.store);
    stop(&a);
    stop(&b);
}

/* `from` trains half the steps and is saved; `to`, which has trained before, continues. */
static void continue_from(training *from, training *to, int half) {
    char path[] = "/tmp/n2ce_cuda_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    steps(from, half);
    if (n2_checkpoint_save(from->store, from->plan, path) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(from->ctx));
    steps(to, 1); /* its tensors are on the device, and older than the file */
    if (n2_checkpoint_load(to->store, to->plan, path) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(to->ctx));
    assert_same_tensors(from->store, to->store);
    assert_int_equal(n2_plan_runs(to->plan), half);
    steps(to, half);
    close(file);
    unlink(path);
}

/* Half the steps on one device, the rest on the other: as if on the other alone. On the same
 * device, to the bit. */
static void check_continuation(const n2_backend *from, const n2_backend *to) {
    const int half = long_run() / 2 - 1; /* runs one by one and in graphs of eight */
    training a = start(from), b = start(to), whole = start(to);
    continue_from(&a, &b, half);
    steps(&whole, 2 * half);
    assert_int_equal(n2_plan_runs(b.plan), 2 * half);
    if (from == to) assert_same_tensors(whole.store, b.store);
    assert_close(n2_plan_scalar(b.plan, 0), n2_plan_scalar(whole.plan, 0), 2e-3, 0);
    stop(&a);
    stop(&b);
    stop(&whole);
}

static void a_checkpoint_continues_bit_for_bit(void **state) {
    (void)state;
    check_continuation(open_cuda_or_skip(true), open_cuda_or_skip(true));
    check_continuation(open_cuda_or_skip(false), open_cuda_or_skip(false));
}

static void a_checkpoint_continues_on_the_other_device(void **state) {
    (void)state;
    check_continuation(n2_cpu_backend(), open_cuda_or_skip(true));
    check_continuation(open_cuda_or_skip(true), n2_cpu_backend());
}

/* ---- tensors ---------------------------------------------------------------- */

typedef struct counter {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_tensor *t;
    n2_plan *plan;
} counter;

/* A plan that doubles a tensor, twice a run. */
static counter counter_new(const n2_backend *backend, int64_t n) {
    counter c;
    assert_int_equal(n2ce_ctx_new(&c.ctx, NULL), N2CE_OK);
    assert_int_equal(n2_store_new(c.ctx, sizeof(float), &c.store), N2CE_OK);
    c.g = n2_graph_new(c.store);
    c.t = n2_store_add(c.store, "t", n2_dims(n));
    for (int i = 0; i < 2; i++) n2g_assign(c.g, c.t, n2g_scale(c.g, n2g_read(c.g, c.t), 2));
    const n2_node output = n2g_read(c.g, c.t);
    if (n2_plan_compile(c.g, backend, &output, 1, &c.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(c.ctx));
    return c;
}

static void counter_free(counter *c) {
    n2_plan_free(c->plan);
    n2_graph_free(c->g);
    n2_store_free(c->store);
    n2ce_ctx_free(c->ctx);
}

static void assert_all(const counter *c, int64_t n, double expected) {
    double *x = values_of(c->store, c->t);
    for (int64_t i = 0; i < n; i++) assert_close(x[i], expected, 0, 0);
    free(x);
}

/* What the host wrote, before the first run or later, is what the next run reads. */
static void host_code_may_write_between_runs(void **state) {
    (void)state;
    enum { N = 3000 };
    counter c = counter_new(open_cuda_or_skip(true), N);
    float *data = c.t->data;
    for (int i = 0; i < N; i++) data[i] = 1; /* never on the device so far: needs no push */
    assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
    assert_all(&c, N, 4);
    assert_int_equal(n2_tensor_pull(c.store, c.t), N2CE_OK);
    for (int i = 0; i < N; i++) data[i] += 1;
    n2_tensor_push(c.store, c.t);
    assert_int_equal(n2_plan_run_many(c.plan, 2), N2CE_OK);
    assert_all(&c, N, 80);
    counter_free(&c);
}

/* A plan on the processor and one on the GPU work on the same tensors in turn. */
static void plans_of_both_devices_share_tensors(void **state) {
    (void)state;
    enum { N = 300 };
    counter c = counter_new(open_cuda_or_skip(true), N);
    n2_plan *cpu;
    double ones[N];
    for (int i = 0; i < N; i++) ones[i] = 1;
    assert_int_equal(n2_plan_compile(c.g, n2_cpu_backend(), NULL, 0, &cpu), N2CE_OK);
    n2_tensor_set(c.store, c.t, ones);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
        assert_int_equal(n2_plan_run(cpu), N2CE_OK);
    }
    assert_all(&c, N, 256);
    n2_plan_free(cpu);
    counter_free(&c);
}

/* The second GPU, or, where there is one only, the first with other products: a device of its own
 * either way. */
static const n2_backend *another_device(void) {
    const n2_backend *backend = NULL;
    if (open_cuda(1, true, &backend) != N2CE_OK) backend = open_cuda_or_skip(false);
    return backend;
}

/* Plans on two devices work on the same tensors in turn, whoever wrote them last. A tensor that one
 * of them only reads stays where it is. */
static void plans_of_two_gpus_share_tensors(void **state) {
    (void)state;
    enum { N = 300 };
    counter c = counter_new(open_cuda_or_skip(true), N);
    const n2_backend *other = another_device();
    double ones[N];
    n2_plan *plan, *reader;
    n2_graph *g = n2_graph_new(c.store);
    const n2_node sum = n2g_sum(g, n2g_read(g, c.t), 1);
    for (int i = 0; i < N; i++) ones[i] = 1;
    assert_ptr_not_equal(other->device, n2_plan_backend(c.plan)->device);
    assert_int_equal(n2_plan_compile(c.g, other, NULL, 0, &plan), N2CE_OK);
    assert_int_equal(n2_plan_compile(g, other, &sum, 1, &reader), N2CE_OK);
    n2_tensor_set(c.store, c.t, ones);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
        assert_int_equal(n2_plan_run(plan), N2CE_OK);
    }
    assert_all(&c, N, 256);
    assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(reader), N2CE_OK);
    assert_close(n2_plan_scalar(reader, 0), 1024.0 * N, 0, 0);
    n2_tensor_set(c.store, c.t, ones); /* both copies are stale */
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
    assert_all(&c, N, 16);
    n2_plan_free(reader);
    n2_plan_free(plan);
    n2_graph_free(g);
    counter_free(&c);
}

/* Who asks again gets the same, another context one of its own, which goes with it. */
static void contexts_open_gpus_of_their_own(void **state) {
    (void)state;
    const n2_cuda_options options = {.device = 0, .strict = true};
    const n2_backend *mine = open_cuda_or_skip(true), *theirs = NULL, *again = NULL;
    n2ce_ctx *ctx = new_ctx(1);
    n2_device *device;
    void *memory;
    assert_int_equal(n2_cuda_backend(ctx, &options, &theirs), N2CE_OK);
    assert_int_equal(n2_cuda_backend(ctx, &options, &again), N2CE_OK);
    assert_ptr_equal(theirs, again);
    assert_ptr_not_equal(theirs, mine);
    device = theirs->device;
    assert_int_equal(device->alloc(device, ctx, 1000, &memory), N2CE_OK);
    device->free(device, memory); /* kept for the next, until the context goes */
    n2ce_ctx_free(ctx);
    assert_ptr_equal(open_cuda_or_skip(true), mine);
}

/* A blank tensor begins with zeros on a device too, also where others were before, unless host or
 * processor wrote it. The host does something else while the device works. */
static void blank_tensors_begin_with_zeros(void **state) {
    (void)state;
    enum { N = 300 };
    const n2_backend *const backends[] = {n2_cpu_backend(), open_cuda_or_skip(true)};
    for (int k = 0; k < 4; k++) {
        const int who = k % 3;
        counter c = {NULL, NULL, NULL, NULL, NULL};
        n2_plan *cpu;
        double values[N];
        assert_int_equal(n2ce_ctx_new(&c.ctx, NULL), N2CE_OK);
        assert_int_equal(n2_store_new(c.ctx, sizeof(float), &c.store), N2CE_OK);
        c.g = n2_graph_new(c.store);
        c.t = n2_store_add_blank(c.store, "t", n2_dims(N));
        n2g_assign(c.g, c.t, n2g_affine(c.g, n2g_read(c.g, c.t), 1, 1));
        for (int i = 0; i < N; i++) values[i] = 5;
        if (who == 1) n2_tensor_set(c.store, c.t, values);
        assert_int_equal(n2_plan_compile(c.g, backends[0], NULL, 0, &cpu), N2CE_OK);
        if (who == 2) assert_int_equal(n2_plan_run_many(cpu, 7), N2CE_OK);
        assert_int_equal(n2_plan_compile(c.g, backends[1], NULL, 0, &c.plan), N2CE_OK);
        assert_int_equal(n2_plan_begin(c.plan, 2), N2CE_OK);
        for (int i = 0; i < N; i++) values[i] = 0;
        assert_int_equal(n2_plan_end(c.plan), N2CE_OK);
        assert_int_equal(n2_plan_runs(c.plan), 2);
        assert_all(&c, N, who == 0 ? 2 : who == 1 ? 7 : 9);
        n2_plan_free(cpu);
        counter_free(&c);
    }
}

/* ---- uploads ---- */

enum { LONG_ROWS = 50001, LONG_WIDTH = 101 }; /* 20 MB: several times what is on its way at once */

static float number_at(size_t row, size_t column) {
    return (float)((row * 7919 + column * 31) % 1000003);
}

static void write_numbers(void *arg, size_t first, size_t n, void *out) {
    const float sign = *(const float *)arg;
    for (size_t i = 0; i < n * LONG_WIDTH; i++)
        ((float *)out)[i] = sign * number_at(first + i / LONG_WIDTH, i % LONG_WIDTH);
}

static void assert_numbers(n2_store *store, const n2_tensor *t, float sign) {
    size_t wrong = 0;
    assert_int_equal(n2_tensor_pull(store, t), N2CE_OK);
    for (size_t i = 0; i < (size_t)LONG_ROWS * LONG_WIDTH; i++)
        wrong += ((const float *)t->data)[i] != sign * number_at(i / LONG_WIDTH, i % LONG_WIDTH);
    assert_int_equal(wrong, 0);
}

/* Whether it is written by the host first, or on its way. */
static void large_tensors_arrive_whole(void **state) {
    (void)state;
    n2_device *device = open_cuda_or_skip(false)->device;
    float sign = 1;
    n2ce_ctx *ctx = new_ctx(3);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_tensor *t = n2_store_add(store, "rows", n2_dims(LONG_ROWS, LONG_WIDTH));
    assert_non_null(t);
    assert_int_equal(n2_tensor_fill(store, t, write_numbers, &sign), N2CE_OK);
    assert_int_equal(n2_tensor_mirror(store, t, device), N2CE_OK);
    assert_int_equal(n2_tensor_upload(store, t, device), N2CE_OK);
    memset(t->data, 0, (size_t)LONG_ROWS * LONG_WIDTH * sizeof(float));
    n2_tensor_wrote(t, device);
    assert_numbers(store, t, sign);
    sign = -1;
    assert_int_equal(n2_tensor_fill(store, t, write_numbers, &sign), N2CE_OK);
    assert_numbers(store, t, sign);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* A queue of runs stops at the first bad one; the tensors are those of the run before. */
static void a_queue_of_runs_stops_where_it_goes_bad(void **state) {
    (void)state;
    n2ce_ctx *ctx;
    n2_store *store;
    n2_plan *plan;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_graph *g = n2_graph_new(store);
    n2_tensor *t = n2_store_add(store, "t", n2_scalar_shape());
    n2_tensor_set(store, t, (double[]){6.5});
    const n2_node root = n2g_sqrt(g, n2g_affine(g, n2g_read(g, t), 1, -1));
    n2g_watch(g, root);
    n2g_assign(g, t, n2g_affine(g, n2g_read(g, t), 1, -1));
    const n2_backend *cuda = open_cuda_or_skip(true);
    assert_int_equal(n2_plan_compile(g, cuda, &root, 1, &plan), N2CE_OK);
    assert_int_equal(n2_plan_run_many(plan, 5), N2CE_OK);
    assert_int_equal(n2_plan_run_many(plan, 20), N2CE_ENAN);
    assert_non_null(strstr(n2ce_errmsg(ctx), "Step 7"));
    assert_int_equal(n2_plan_runs(plan), 6);
    double *x = values_of(store, t);
    assert_close(x[0], 0.5, 0, 0);
    free(x);
    assert_int_equal(n2_plan_run(plan), N2CE_ENAN);
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* What is given back is given out again: the second of two that want the same takes no more. */
static void memory_is_given_out_again(void **state) {
    (void)state;
    const n2_backend *cuda = open_cuda_or_skip(true);
    size_t before, now, most[2];
    n2_cuda_memory(cuda, &before, &most[0]);
    for (int k = 0; k < 2; k++) {
        counter c = counter_new(cuda, 3000000); /* more than anybody else here wants */
        assert_int_equal(n2_plan_run(c.plan), N2CE_OK);
        assert_all(&c, 3000000, 0);
        counter_free(&c);
        n2_cuda_memory(cuda, &now, &most[k]);
        assert_int_equal(now, before);
    }
    assert_int_equal(most[0], most[1]);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_code_may_write_between_runs),
        cmocka_unit_test(plans_of_both_devices_share_tensors),
        cmocka_unit_test(plans_of_two_gpus_share_tensors),
        cmocka_unit_test(contexts_open_gpus_of_their_own),
        cmocka_unit_test(blank_tensors_begin_with_zeros),
        cmocka_unit_test(large_tensors_arrive_whole),
        cmocka_unit_test(a_queue_of_runs_stops_where_it_goes_bad),
        cmocka_unit_test(memory_is_given_out_again),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes),
        cmocka_unit_test(a_gpu_learns_as_a_processor_does),
        cmocka_unit_test(tf32_learns_nearly_the_same),
        cmocka_unit_test(a_checkpoint_continues_bit_for_bit),
        cmocka_unit_test(a_checkpoint_continues_on_the_other_device),
    };
    printf("%s\n", n2_cuda_name(open_cuda_or_skip(true)));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
