/* Facts about ranks that train on a GPU together, or on one that they share: with shards the same
 * bytes as one rank, without them the same numbers but for rounding; a rank that is gone is told.
 * Where there is no GPU the tests say so and are skipped. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include "close.h"
#include "fast_backend.h"
#include "forked_ranks.h"

#include "engine/plan.h"
#include "nn/nn.h"
#include "rewrite/rewrites.h"

#include <signal.h>
#include <sys/mman.h>

enum { MOST = 1 << 16, ROWS = 136, STEPS = 3, SKIPPED = 77 };

/* What rank 0 found: seen by the test, whose child it is. */
static struct {
    size_t n;
    double loss, x[MOST];
} * found;

/* Losses over rows of noise, of two networks: several row programs, sums, and a clipped norm. */
static n2_node build_loss(n2_graph *g, const n2_mlp *f) {
    const n2_node a = n2g_randn(g, n2_dims(ROWS, 9)), b = n2g_randn(g, n2_dims(3 * ROWS, 9));
    const n2_node fa = n2_mlp_apply(g, f, a), fb = n2_mlp_apply(g, f, n2g_affine(g, b, 0.5, 0.2));
    return n2g_n2ce_loss(g, fa, fb, 3);
}

static bool train(n2ce_ctx *ctx, const n2_backend *backend) {
    static const int64_t widths[] = {9, 64, 64, 1};
    n2_store *store;
    n2_plan *plan = NULL;
    if (n2_store_new(ctx, sizeof(float), &store) != N2CE_OK) return false;
    n2_parameters p = n2_parameters_new(store, 3);
    const n2_mlp f = n2_mlp_new(&p, "f", widths, 4, 0.1);
    n2_graph *g = n2_graph_new(store);
    const n2_node loss = build_loss(g, &f);
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0.01}, .rate = 1e-2, .clip = 1};
    n2_minimise(g, &adam, "adam", &p, loss, NULL);
    n2ce_status status = n2_plan_compile(g, backend, &loss, 1, &plan);
    if (status == N2CE_OK) n2_plan_seed(plan, 11, 0);
    if (status == N2CE_OK) status = n2_plan_run_many(plan, STEPS);
    if (status != N2CE_OK) printf("rank %d: %s\n", n2_rank(ctx), n2ce_errmsg(ctx));
    if (status == N2CE_OK && n2_rank(ctx) == 0) {
        found->n = 0;
        found->loss = n2_plan_scalar(plan, 0);
        for (size_t i = 0; i < p.n; i++) {
            n2_tensor_get(store, p.list[i], found->x + found->n);
            found->n += (size_t)n2_elements(p.list[i]->shape);
        }
    }
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    return status == N2CE_OK;
}

static bool train_on_gpu(n2ce_ctx *ctx) {
    const n2_cuda_options options = {.strict = true};
    const n2_backend *backend;
    if (n2_cuda_backend(ctx, &options, &backend) != N2CE_OK) _exit(SKIPPED);
    return train(ctx, backend);
}

static void train_on(int ranks) {
    memset(found, 0, sizeof *found);
    const int code = run_ranks(ranks, train_on_gpu);
    if (code == SKIPPED) {
        printf("no GPU: skipped.\n");
        exit(SKIPPED);
    }
    assert_int_equal(code, 0);
    assert_true(found->n > 4000);
}

/* All row programs are worth sharing here. */
static int set_up(void **state) {
    (void)state;
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED || setenv("N2CE_CUDA_SHARE", "0", 1) != 0;
}

static void with_shards_ranks_give_the_same_bytes(void **state) {
    (void)state;
    static double one[MOST];
    setenv("N2CE_REPRODUCIBLE", "1", 1);
    train_on(1);
    const double loss = found->loss;
    memcpy(one, found->x, sizeof one);
    for (int ranks = 2; ranks <= 4; ranks++) {
        train_on(ranks);
        assert_true(found->loss == loss);
        assert_memory_equal(found->x, one, sizeof one);
    }
}

static void without_shards_ranks_differ_by_rounding(void **state) {
    (void)state;
    static double one[MOST];
    unsetenv("N2CE_REPRODUCIBLE");
    train_on(1);
    memcpy(one, found->x, sizeof one);
    const double loss = found->loss;
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        train_on(ranks);
        assert_close(found->loss, loss, 1e-5, 1e-6);
        for (size_t i = 0; i < found->n; i++) assert_close(found->x[i], one[i], 1e-4, 1e-4);
    }
}

/* Alone it exchanges its sums with itself: by NCCL where there is one, else by way of the host. */
static void one_rank_may_exchange_with_itself(void **state) {
    (void)state;
    static double one[MOST];
    unsetenv("N2CE_REPRODUCIBLE");
    train_on(1);
    memcpy(one, found->x, sizeof one);
    setenv("N2CE_NCCL", "always", 1);
    train_on(1);
    unsetenv("N2CE_NCCL");
    for (size_t i = 0; i < found->n; i++) assert_close(found->x[i], one[i], 1e-4, 1e-4);
}

/* One that ends, or is killed, while others wait for its sums. */
static bool leave_early(n2ce_ctx *ctx) {
    if (n2_rank(ctx) == 1) return false;
    return !train_on_gpu(ctx);
}

static void a_rank_that_leaves_ends_the_others(void **state) {
    (void)state;
    assert_int_equal(run_ranks(2, leave_early), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_shards_ranks_give_the_same_bytes),
        cmocka_unit_test(without_shards_ranks_differ_by_rounding),
        cmocka_unit_test(one_rank_may_exchange_with_itself),
        cmocka_unit_test(a_rank_that_leaves_ends_the_others),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
