/* An iteration of DAMC, as a whole and by its parts. */
#include "contexts.h"
#include "failing_alloc.h"
#include "stores.h"

#include "cpu/cpu.h"
#include "lebm/damc.h"
#include "rewrite/rewrites.h"

#include <math.h>

enum { PICTURES = 48, BATCH = 8 };

typedef struct world {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_damc model;
    n2_damc_learner learner;
    n2_tensor *pictures;
} world;

static n2_damc_spec small(n2_prior_kind kind) {
    n2_damc_spec s = n2_damc_defaults();
    s.decoder_width = s.encoder_width = 1;
    s.sampler_width = 8;
    s.embedding = 8;
    s.nz = 4;
    s.prior.kind = kind;
    s.prior.stages = kind == N2_PRIOR_N2CE ? 3 : 1;
    s.prior.noise = 2;
    s.prior.width = 8;
    s.prior.moves = 5;
    return s;
}

/* Bright squares on black, one for each picture. */
static void paint(n2_tensor *pictures) {
    float *x = pictures->data;
    for (size_t i = 0; i < PICTURES; i++)
        for (size_t k = 0; k < 784; k++) {
            const size_t row = k / 28 - i % 16, column = k % 28 - i * 5 % 16;
            x[i * 784 + k] = row < 12 && column < 12 ? 1 : -1;
        }
}

static n2ce_status open_world(n2ce_ctx *ctx, n2_prior_kind kind, uint64_t steps, world *w) {
    const n2_damc_spec spec = small(kind);
    n2_damc_training how = n2_damc_training_defaults();
    how.steps = steps;
    how.batch = BATCH;
    how.moves = 5;
    how.decoder_rate = how.sampler_rate = how.prior_rate = 2e-3;
    how.slow_every = 3;
    how.slow_rate = 0.5;
    *w = (world){.ctx = ctx};
    N2_TRY(n2_store_new(ctx, sizeof(float), &w->store));
    N2_TRY(n2_damc_new(w->store, &spec, 1, &w->model));
    w->pictures = n2_store_add(w->store, "pictures", n2_dims(PICTURES, 28, 28, 1));
    if (!w->pictures) return N2CE_ENOMEM;
    paint(w->pictures);
    return n2_damc_learner_new(w->store, &w->model, &how, w->pictures, &w->learner);
}

static world trained(int threads, n2_prior_kind kind, uint64_t steps, n2_phase_record *record) {
    world w;
    assert_int_equal(open_world(new_ctx(threads), kind, steps, &w), N2CE_OK);
    const n2_phase phase = n2_damc_phase(&w.learner);
    const n2_trainer t = {.store = w.store, .user = &w.learner, .phases = &phase, .n_phases = 1};
    if (n2_train(&t, record) != N2CE_OK) fail_msg("%s", n2ce_errmsg(w.ctx));
    return w;
}

static void close_world(world *w) {
    n2ce_ctx *ctx = w->ctx;
    n2_store_free(w->store);
    n2ce_ctx_free(ctx);
}

static void pictures_are_learnt_whatever_the_prior(void **state) {
    (void)state;
    for (n2_prior_kind kind = N2_PRIOR_GAUSSIAN; kind <= N2_PRIOR_MLE; kind++) {
        n2_phase_record first, last;
        world w = trained(2, kind, 1, &first);
        close_world(&w);
        w = trained(2, kind, 60, &last);
        assert_true(last.output[0] < 0.8 * first.output[0]);
        const size_t n = kind == N2_PRIOR_GAUSSIAN ? 2 : 3;
        for (size_t i = 0; i < n; i++) assert_true(isfinite(last.output[i]));
        close_world(&w);
    }
}

/* Of the first and second iteration the slow sampler keeps nothing, of the third a half. */
static void the_slow_sampler_goes_half_the_way_at_times(void **state) {
    (void)state;
    double *before = NULL;
    for (uint64_t steps = 2; steps <= 3; steps++) {
        n2_phase_record record;
        world w = trained(1, N2_PRIOR_N2CE, steps, &record);
        const n2_tensor *t = w.model.sampler.net.time[0].weight;
        double *fast = values_of(w.store, t), *slow = values_of(w.store, n2_average_of(w.store, t));
        if (!before) before = values_of(w.store, n2_average_of(w.store, t)); /* as drawn */
        for (int64_t i = 0; i < n2_elements(t->shape); i++)
            assert_close(slow[i], steps == 2 ? before[i] : (before[i] + fast[i]) / 2, 1e-5, 1e-7);
        free(fast);
        free(slow);
        close_world(&w);
    }
    free(before);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    n2_phase_record record;
    world a = trained(1, N2_PRIOR_MLE, 3, &record), b = trained(3, N2_PRIOR_MLE, 3, &record);
    assert_same_tensors(a.store, b.store);
    close_world(&a);
    close_world(&b);
}

/* The last batch is not full; the same seed gives the same scores, misfits are those of the model.
 */
static void pictures_are_scored_batch_by_batch(void **state) {
    (void)state;
    n2_phase_record record;
    world w = trained(2, N2_PRIOR_N2CE, 20, &record);
    n2_damc_scorer *s;
    double numbers[4][PICTURES];
    n2_damc_scores one = {numbers[0], numbers[1]}, two = {numbers[2], numbers[3]};
    assert_int_equal(n2_damc_scorer_new(w.store, &w.model, w.pictures, 20, 2, 0.1, &s), N2CE_OK);
    assert_int_equal(n2_damc_scorer_compile(s, n2_cpu_backend()), N2CE_OK);
    assert_int_equal(n2_damc_score(s, 5, &one), N2CE_OK);
    assert_int_equal(n2_damc_score(s, 5, &two), N2CE_OK);
    assert_memory_equal(numbers[0], numbers[2], 2 * sizeof numbers[0]);
    for (size_t i = 0; i < PICTURES; i++)
        assert_true(one.misfit[i] > 0 && one.misfit[i] < 4 * 784 && isfinite(one.prior[i]));
    n2_damc_scorer_free(s);
    close_world(&w);
}

static void sizes_that_are_none_are_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    n2_damc model;
    n2_damc_spec spec = small(N2_PRIOR_N2CE);
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    spec.nz = 3;
    assert_int_equal(n2_damc_new(store, &spec, 1, &model), N2CE_EINVAL);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* Everything but the training itself. */
static n2ce_status whole_life(failing_alloc *memory) {
    n2ce_ctx *ctx;
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    if (n2ce_ctx_new(&ctx, &options) != N2CE_OK) return N2CE_ENOMEM;
    world w;
    n2_damc_scorer *s = NULL;
    n2ce_status status = open_world(ctx, N2_PRIOR_MLE, 1, &w);
    if (status == N2CE_OK)
        status = n2_damc_scorer_new(w.store, &w.model, w.pictures, 4, 1, 0.1, &s);
    if (status == N2CE_OK) status = n2_damc_scorer_compile(s, n2_cpu_backend());
    n2_damc_scorer_free(s);
    n2_store_free(w.store);
    n2ce_ctx_free(ctx);
    return status;
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 16) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_learnt_whatever_the_prior),
        cmocka_unit_test(the_slow_sampler_goes_half_the_way_at_times),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(pictures_are_scored_batch_by_batch),
        cmocka_unit_test(sizes_that_are_none_are_refused),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
