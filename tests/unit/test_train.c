/* Facts about the trainer: what it runs, averages, keeps, saves and resumes, and when it stops. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "cpu/cpu.h"
#include "failing_alloc.h"
#include "files.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "rewrite/rewrites.h"
#include "train/train.h"

#include <unistd.h>

enum { ROWS = 64, EVERY = 4, STEPS = 24 };

/* A line through noisy points, by gradient steps on random batches; its slope is w. */
typedef struct problem {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_tensor *x, *y, *noise;
    n2_parameters parameters;
    n2_tensor *w[2];
    size_t members;
    const double *script; /* losses that the check reads out, one a check */
    size_t checks, readied, renewed;
    float seen[STEPS + 1][2]; /* what was checked, at each step */
    double cancel_at;         /* share of the steps */
} problem;

static void fill(problem *p) {
    for (int i = 0; i < ROWS; i++) {
        ((float *)p->x->data)[i] = (float)i / ROWS - 0.5f;
        ((float *)p->y->data)[i] = 2 * ((float)i / ROWS - 0.5f);
    }
}

static n2ce_status make(n2ce_ctx *ctx, size_t members, problem *p) {
    *p = (problem){.ctx = ctx, .members = members, .cancel_at = 2};
    N2_TRY(n2_store_new(ctx, sizeof(float), &p->store));
    p->x = n2_store_add(p->store, "x", n2_dims(ROWS, 1));
    p->y = n2_store_add(p->store, "y", n2_dims(ROWS, 1));
    p->noise = n2_store_add(p->store, "noise", n2_dims(8, 1));
    if (!p->x || !p->y || !p->noise) return N2CE_ENOMEM;
    fill(p);
    p->parameters = n2_parameters_new(p->store, 7);
    for (size_t m = 0; m < members; m++)
        p->w[m] = n2_parameter(&p->parameters, m ? "w.1" : "w.0", n2_dims(1, 1), 0.1);
    return p->parameters.failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2ce_ctx *new_ctx(n2ce_ctx_options *options) {
    n2ce_ctx_options plain = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, options ? options : &plain), N2CE_OK);
    return ctx;
}

static problem start(size_t members) {
    problem p;
    assert_int_equal(make(new_ctx(NULL), members, &p), N2CE_OK);
    return p;
}

static void finish(problem *p) {
    n2_store_free(p->store);
    n2ce_ctx_free(p->ctx);
}

static float weight(const problem *p, size_t m) { return ((const float *)p->w[m]->data)[0]; }

/* ---- a training ---- */

static n2ce_status build_noise(void *user, n2_graph *g, n2_outputs *out) {
    problem *p = user;
    (void)out;
    const n2_node more = n2g_add(g, n2g_read(g, p->noise), n2g_randn(g, n2_dims(8, 1)));
    n2g_assign(g, p->noise, n2g_scale(g, more, 0.5));
    return N2CE_OK;
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    problem *p = user;
    const n2_node pick = n2g_randint(g, n2_dims(8), ROWS);
    const n2_node x = n2g_gather(g, n2g_read(g, p->x), pick);
    const n2_node y = n2g_add(g, n2g_gather(g, n2g_read(g, p->y), pick),
                              n2g_scale(g, n2g_read(g, p->noise), 0.01));
    n2_node loss = N2_NONE;
    for (size_t m = 0; m < p->members; m++) {
        const n2_node fit = n2g_matmul(g, x, n2g_read(g, p->w[m]), false, true);
        const n2_node miss = n2g_sub(g, fit, y);
        const n2_node mean = n2g_total(g, n2g_mean(g, n2g_mul(g, miss, miss), N2_ALL_AXES));
        loss = m ? n2g_add(g, loss, mean) : mean;
    }
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.05};
    n2_minimise(g, &adam, "adam", &p->parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status build_second(void *user, n2_graph *g, n2_outputs *out) {
    problem *p = user;
    const n2_node w = n2g_read(g, p->w[0]), e = n2g_randn(g, n2_dims(1, 1));
    n2_output(out, n2g_total(g, n2g_mul(g, e, e)));
    n2g_assign(g, p->w[0], n2g_add(g, w, n2g_scale(g, e, 1e-3)));
    return N2CE_OK;
}

static n2ce_status check(void *user, uint64_t step, double *losses) {
    problem *p = user;
    for (size_t m = 0; m < p->members; m++) {
        const n2_tensor *t = n2_average_of(p->store, p->w[m]);
        p->seen[step][m] = ((const float *)(t ? t : p->w[m])->data)[0];
        losses[m] = p->script[p->checks * p->members + m];
    }
    p->checks++;
    return N2CE_OK;
}

static n2_phase plain_phase(const problem *p) {
    return (n2_phase){.build = build_step,
                      .steps = STEPS,
                      .seed = 3,
                      .parameters = &p->parameters,
                      .members = p->members,
                      .inner = {{build_noise, 3, 4, 1}}};
}

static n2_trainer trainer_of(problem *p, const n2_phase *phases, size_t n) {
    return (n2_trainer){.store = p->store, .user = p, .phases = phases, .n_phases = n};
}

static void train(problem *p, const n2_phase *phase, n2_phase_record *record) {
    const n2_trainer t = trainer_of(p, phase, 1);
    if (n2_train(&t, record) != N2CE_OK) fail_msg("%s", n2ce_errmsg(p->ctx));
}

static void it_learns(void **state) {
    (void)state;
    problem p = start(1);
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    phase.steps = 200;
    train(&p, &phase, &record);
    assert_int_equal(record.steps, 200);
    assert_close((double)weight(&p, 0), 2, 0, 0.1);
    assert_true(record.output[0] > 0 && record.output[0] < 0.01);
    finish(&p);
}

static n2ce_status build_count(void *user, n2_graph *g, n2_outputs *out) {
    problem *p = user;
    (void)out;
    n2g_assign(g, p->noise, n2g_affine(g, n2g_read(g, p->noise), 1, 1));
    return N2CE_OK;
}

static n2ce_status build_nothing(void *user, n2_graph *g, n2_outputs *out) {
    n2_output(out, n2g_total(g, n2g_read(g, ((problem *)user)->noise)));
    return N2CE_OK;
}

/* Twice in steps 0, 3 and 6 of seven. */
static void inner_loops_may_skip_steps(void **state) {
    (void)state;
    problem p = start(1);
    const n2_phase phase = {.build = build_nothing, .steps = 7, .inner = {{build_count, 2, 4, 3}}};
    n2_phase_record record;
    const double rows = (double)n2_elements(p.noise->shape);
    double before = 0;
    for (int64_t i = 0; i < n2_elements(p.noise->shape); i++)
        before += (double)((const float *)p.noise->data)[i];
    train(&p, &phase, &record);
    assert_close((record.output[0] - before) / rows, 6, 1e-6, 0);
    finish(&p);
}

/* The averages are those of the weights after each step. */
static void averages_become_the_parameters(void **state) {
    (void)state;
    problem by_hand = start(1), p = start(1);
    double average = (double)weight(&p, 0);
    for (uint64_t n = 1; n <= STEPS; n++) {
        problem again = start(1);
        n2_phase_record record;
        n2_phase phase = plain_phase(&again);
        phase.steps = n;
        train(&again, &phase, &record);
        average = 0.8 * average + 0.2 * (double)weight(&again, 0);
        finish(&again);
    }
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    phase.average = 0.8;
    train(&p, &phase, &record);
    assert_close((double)weight(&p, 0), average, 1e-5, 0);
    finish(&p);
    finish(&by_hand);
}

/* ---- checks ---- */

static void the_best_is_kept_and_patience_ends(void **state) {
    (void)state;
    static const double script[] = {5, 4, 3, 3, 6, 7, 8};
    for (int averaged = 0; averaged < 2; averaged++) {
        problem p = start(1);
        n2_phase phase = plain_phase(&p);
        n2_phase_record record;
        p.script = script;
        phase.check = check;
        phase.check_every = EVERY;
        phase.patience = 3;
        phase.average = averaged ? 0.9 : 0;
        train(&p, &phase, &record);
        assert_true(record.stopped_early && !record.out_of_time);
        assert_int_equal(record.steps, 5 * EVERY);
        assert_int_equal(record.best[0], 2 * EVERY);
        assert_true(record.loss[0] == 3);
        assert_memory_equal(p.w[0]->data, &p.seen[2 * EVERY][0], sizeof(float));
        assert_true(p.seen[EVERY][0] != p.seen[2 * EVERY][0]);
        finish(&p);
    }
}

static void members_are_judged_one_by_one(void **state) {
    (void)state;
    static const double script[] = {5, 5, 4, 6, 6, 4, 7, 7, 7, 7, 7, 7, 7, 7};
    problem p = start(2);
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    p.script = script;
    phase.check = check;
    phase.check_every = EVERY;
    phase.average = 0.5;
    train(&p, &phase, &record);
    assert_int_equal(record.steps, STEPS);
    assert_int_equal(p.checks, 1 + STEPS / EVERY);
    assert_int_equal(record.best[0], EVERY);
    assert_int_equal(record.best[1], 2 * EVERY);
    assert_memory_equal(p.w[0]->data, &p.seen[EVERY][0], sizeof(float));
    assert_memory_equal(p.w[1]->data, &p.seen[2 * EVERY][1], sizeof(float));
    finish(&p);
}

/* A start that is best is what remains, also where its check waits. */
static void what_learns_nothing_stays(void **state) {
    (void)state;
    static const double script[] = {1, 2, 2, 2, 2, 2, 2};
    for (int later = 0; later < 2; later++) {
        problem p = start(1);
        const float before = weight(&p, 0);
        n2_phase phase = plain_phase(&p);
        n2_phase_record record;
        p.script = script;
        phase.check = check;
        phase.check_every = EVERY;
        phase.check_later = later;
        train(&p, &phase, &record);
        assert_true(weight(&p, 0) == before && record.best[0] == 0 && record.loss[0] == 1);
        finish(&p);
    }
}

static n2ce_status renew(void *user, uint64_t step) {
    problem *p = user;
    assert_int_equal(step, p->renewed++ * EVERY);
    n2_tensor_set(p->store, p->y, (const double[ROWS]){0}); /* what is to be learnt is 0 now */
    return N2CE_OK;
}

/* What the host renews every so often is what the next steps read. */
static void data_may_be_renewed(void **state) {
    (void)state;
    problem p = start(1);
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    phase.steps = 50 * EVERY;
    phase.renew = renew;
    phase.renew_every = EVERY;
    train(&p, &phase, &record);
    assert_int_equal(p.renewed, 50);
    assert_close((double)weight(&p, 0), 0, 0, 0.1);
    finish(&p);
}

static void a_deadline_ends_a_phase(void **state) {
    (void)state;
    problem p = start(1);
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    phase.deadline = n2_seconds() - 1;
    train(&p, &phase, &record);
    assert_true(record.out_of_time && !record.stopped_early);
    assert_int_equal(record.steps, 1);
    finish(&p);
}

/* ---- checkpoints ---- */

static n2ce_ctx *to_cancel;
static void cancel_then(void *user, double done, double total) {
    if (done >= ((const problem *)user)->cancel_at * total) n2ce_ctx_cancel(to_cancel);
}

/* Two phases, with checks; from the checkpoint if there is one. */
static n2ce_status train_both(problem *p, const char *path, double cancel_at,
                              n2_phase_record record[2]) {
    static const double script[] = {5, 4, 4.5, 3, 3.5, 6, 7};
    n2_phase phases[2] = {plain_phase(p), {.build = build_second, .steps = 10, .seed = 9}};
    phases[0].check = check;
    phases[0].check_every = EVERY;
    phases[0].average = 0.9;
    p->script = script;
    p->cancel_at = cancel_at;
    n2_trainer t = trainer_of(p, phases, 2);
    t.checkpoint = path;
    t.resume = true;
    t.progress = cancel_then;
    t.progress_user = p;
    to_cancel = p->ctx;
    return n2_train(&t, record);
}

static void stopped_and_resumed_is_the_same(void **state) {
    (void)state;
    const char *path = "test_train.checkpoint";
    static const double stops[] = {0.2, 0.5, 0.8, 0.999};
    problem whole = start(1);
    n2_phase_record asked[2], record[2];
    unlink(path);
    if (train_both(&whole, NULL, 2, asked) != N2CE_OK) fail_msg("%s", n2ce_errmsg(whole.ctx));
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        problem first = start(1), second = start(1);
        assert_int_equal(train_both(&first, path, stops[i], record), N2CE_ECANCELED);
        second.checks = first.checks;
        assert_int_equal(train_both(&second, path, 2, record), N2CE_OK);
        assert_memory_equal(second.w[0]->data, whole.w[0]->data, sizeof(float));
        assert_int_equal(record[0].best[0], asked[0].best[0]);
        assert_true(record[0].output[0] == asked[0].output[0]);
        assert_true(record[1].output[0] == asked[1].output[0]);
        /* and what has ended is not run again */
        problem third = start(1);
        assert_int_equal(train_both(&third, path, 0, record), N2CE_OK);
        assert_memory_equal(third.w[0]->data, whole.w[0]->data, sizeof(float));
        unlink(path);
        finish(&first);
        finish(&second);
        finish(&third);
    }
    finish(&whole);
}

static void a_checkpoint_of_something_else_is_refused(void **state) {
    (void)state;
    const char *path = "test_train.other";
    problem p = start(1), other = start(2);
    n2_phase_record record[2];
    unlink(path);
    assert_int_equal(train_both(&p, path, 2, record), N2CE_OK);
    assert_int_equal(train_both(&other, path, 2, record), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(other.ctx), path));
    finish(&other);
    problem third = start(1);
    n2_phase phase = plain_phase(&third);
    n2_trainer t = trainer_of(&third, &phase, 1);
    n2_graph *g = n2_graph_new(third.store);
    n2_plan *plan;
    assert_int_equal(build_step(&third, g, &(n2_outputs){.n = 0}), N2CE_OK);
    assert_int_equal(n2_plan_compile(g, n2_cpu_backend(), NULL, 0, &plan), N2CE_OK);
    assert_int_equal(n2_checkpoint_save(third.store, plan, path), N2CE_OK);
    n2_plan_free(plan);
    n2_graph_free(g);
    finish(&third);
    third = start(1);
    t = trainer_of(&third, &phase, 1);
    phase = plain_phase(&third);
    t.checkpoint = path;
    t.resume = true;
    assert_int_equal(n2_train(&t, record), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(third.ctx), "no checkpoint of this training"));
    unlink(path);
    finish(&third);
    finish(&p);
}

static int warnings;
static void count_warning(void *user, n2ce_log_level level, const char *message) {
    (void)user;
    warnings += level == N2CE_LOG_WARNING && strstr(message, "could not be saved") != NULL;
}

/* In a folder that is not there: the training goes on, and says so; only who stops it loses. */
static void a_checkpoint_that_cannot_be_written_stops_nothing(void **state) {
    (void)state;
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.log = count_warning;
    problem p;
    n2_phase_record record[2];
    assert_int_equal(make(new_ctx(&options), 1, &p), N2CE_OK);
    n2_phase phase = plain_phase(&p);
    n2_trainer t = trainer_of(&p, &phase, 1);
    t.checkpoint = "no_such_folder/checkpoint";
    t.save_seconds = 1e-9;
    warnings = 0;
    assert_int_equal(n2_train(&t, record), N2CE_OK);
    assert_true(warnings > 1);
    finish(&p);
    problem stopped = start(1);
    assert_int_equal(train_both(&stopped, t.checkpoint, 0.5, record), N2CE_EIO);
    finish(&stopped);
}

/* Goes on from a checkpoint; what it says if that is refused is in the context of p. */
static n2ce_status go_on(problem *p, const char *path, const char *identity) {
    n2_phase phase = plain_phase(p);
    n2_phase_record record;
    n2_trainer t = trainer_of(p, &phase, 1);
    t.checkpoint = path;
    t.resume = true;
    t.identity = identity;
    return n2_train(&t, &record);
}

/* Trained with other options or other data: the first that differs is named. */
static void a_checkpoint_of_other_options_is_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"M=100\ndata=8\n", "begun with data=7; now it is data=8"},
                                         {"M=1\ndata=7\n", "begun with M=100; now it is M=1."},
                                         {"K=1\nM=100\n", "another kind"},
                                         {"M=100\n", "another kind"},
                                         {NULL, "another kind"}};
    const char *path = "test_train.identity";
    unlink(path);
    problem p = start(1);
    assert_int_equal(go_on(&p, path, "M=100\ndata=7\n"), N2CE_OK);
    finish(&p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p = start(1);
        assert_int_equal(go_on(&p, path, bad[i][0]), N2CE_EDATA);
        assert_non_null(strstr(n2ce_errmsg(p.ctx), bad[i][1]));
        finish(&p);
    }
    p = start(1);
    assert_int_equal(go_on(&p, path, "M=100\ndata=7\n"), N2CE_OK);
    finish(&p);
    unlink(path);
}

/* Whichever bit of a checkpoint flips, nobody goes on from it. */
static void a_flipped_bit_is_refused(void **state) {
    (void)state;
    const char *path = "test_train.flipped";
    static char bytes[1 << 16];
    unlink(path);
    problem p = start(1);
    assert_int_equal(go_on(&p, path, "M=100\n"), N2CE_OK);
    finish(&p);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(n > 100 && n < sizeof bytes);
    for (size_t at = 0; at < n; at += 1 + n / 97) {
        bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
        write_bytes(path, bytes, n);
        bytes[at] = (char)(bytes[at] ^ (1 << at % 8));
        p = start(1);
        assert_int_not_equal(go_on(&p, path, "M=100\n"), N2CE_OK);
        finish(&p);
    }
    unlink(path);
}

/* ---- what goes wrong ---- */

/* ln(1 - t / 10) of the step's number t: bad from the tenth step on. */
static n2ce_status build_bad(void *user, n2_graph *g, n2_outputs *out) {
    problem *p = user;
    n2_tensor *count = n2_store_add(p->store, "count", n2_scalar_shape());
    const n2_node next = n2g_affine(g, n2g_read(g, count), 1, 1);
    const n2_node w = n2g_read(g, p->w[0]);
    const n2_node loss =
        n2g_add(g, n2g_log(g, n2g_affine(g, next, -0.1, 1)), n2g_total(g, n2g_mul(g, w, w)));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 0.05};
    n2_minimise(g, &adam, "adam", &p->parameters, loss, NULL);
    n2g_assign(g, count, next);
    n2_output(out, loss);
    return N2CE_OK;
}

static void nan_stops_at_the_last_good_step(void **state) {
    (void)state;
    problem bad = start(1), good = start(1);
    n2_phase phase = {.build = build_bad, .steps = 100, .seed = 1};
    n2_phase_record record;
    n2_trainer t = trainer_of(&bad, &phase, 1);
    t.checkpoint = "test_train.bad";
    unlink(t.checkpoint);
    assert_int_equal(n2_train(&t, &record), N2CE_ENAN);
    assert_non_null(strstr(n2ce_errmsg(bad.ctx), "Step 10: the op log"));
    assert_non_null(strstr(n2ce_errmsg(bad.ctx), "test_train.c"));
    assert_int_equal(record.steps, 9);
    assert_int_not_equal(access(t.checkpoint, F_OK), 0);
    phase.steps = 9;
    train(&good, &phase, &record);
    assert_memory_equal(bad.w[0]->data, good.w[0]->data, sizeof(float));
    finish(&bad);
    finish(&good);
}

static n2ce_status build_many(void *user, n2_graph *g, n2_outputs *out) {
    const n2ce_status status = build_step(user, g, out);
    while (out->n <= N2_TRAIN_OUTPUTS) n2_output(out, out->node[0]);
    return status;
}

static void a_phase_that_is_not_complete_is_refused(void **state) {
    (void)state;
    problem p = start(2);
    const n2_phase good = plain_phase(&p);
    n2_phase phases[6];
    n2_phase_record record;
    for (size_t i = 0; i < 6; i++) phases[i] = good;
    phases[0].build = NULL;
    phases[1].parameters = NULL;
    phases[1].average = 0.5;
    phases[2].check = check;
    phases[3].renew = renew;
    phases[4].members = N2_TRAIN_MEMBERS + 1;
    phases[5].build = build_many;
    for (size_t i = 0; i < 6; i++) {
        const n2_trainer t = trainer_of(&p, &phases[i], 1);
        assert_int_equal(n2_train(&t, &record), N2CE_EINVAL);
        assert_non_null(strstr(n2ce_errmsg(p.ctx), "Phase 1 of the training "));
    }
    finish(&p);
}

/* The whole life of a training on this allocator. */
static n2ce_status live(failing_alloc *memory) {
    static const double script[] = {5, 4, 3, 3, 6, 7, 8};
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2ce_ctx *ctx;
    problem p = {.store = NULL};
    n2_phase_record record;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status == N2CE_OK) status = make(ctx, 1, &p);
    n2_phase phase = plain_phase(&p);
    p.script = script;
    phase.check = check;
    phase.check_every = EVERY;
    phase.average = 0.9;
    const n2_trainer t = trainer_of(&p, &phase, 1);
    if (status == N2CE_OK) status = n2_train(&t, &record);
    n2_store_free(p.store);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory->live, 0);
    return status;
}

static void out_of_memory_is_an_error(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(NEVER, false);
    assert_int_equal(live(&memory), N2CE_OK);
    for (size_t n = 0, calls = memory.calls; n < calls; n++) {
        memory = failing_alloc_new(n, false);
        assert_int_equal(live(&memory), N2CE_ENOMEM);
    }
}

/* ---- the device ---- */

static n2ce_status note_ready(void *user, const n2_backend *backend) {
    ((problem *)user)->readied++;
    assert_non_null(backend);
    return N2CE_OK;
}

static n2_backend another;
static n2ce_status open_another(const n2_device_choice *choice, n2ce_ctx *ctx,
                                const n2_backend **out) {
    (void)choice;
    (void)ctx;
    another = *n2_cpu_backend();
    *out = &another;
    return N2CE_OK;
}

/* Steps that are made to measure leave no trace. */
static void a_trial_changes_nothing(void **state) {
    (void)state;
    problem plain = start(1), p = start(1);
    n2_device_choice choice = {.open = open_another, .optional = true};
    n2_phase phase = plain_phase(&plain);
    n2_phase_record record;
    train(&plain, &phase, &record);
    phase.parameters = &p.parameters;
    n2_trainer t = trainer_of(&p, &phase, 1);
    t.choice = &choice;
    t.measure_all = true;
    t.ready = note_ready;
    assert_int_equal(n2_train(&t, &record), N2CE_OK);
    assert_null(choice.open);
    assert_non_null(strstr(choice.reason, " ms in all, against "));
    assert_true(p.readied >= 2);
    assert_memory_equal(p.w[0]->data, plain.w[0]->data, sizeof(float));
    assert_memory_equal(p.noise->data, plain.noise->data, 8 * sizeof(float));
    finish(&plain);
    finish(&p);
}

static void a_little_work_is_not_measured(void **state) {
    (void)state;
    problem p = start(1);
    n2_device_choice choice = {.open = open_another, .optional = true};
    n2_phase phase = plain_phase(&p);
    n2_phase_record record;
    n2_trainer t = trainer_of(&p, &phase, 1);
    t.choice = &choice;
    assert_int_equal(n2_train(&t, &record), N2CE_OK);
    assert_string_equal(choice.reason, "too little work to look for a GPU");
    finish(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns),
        cmocka_unit_test(inner_loops_may_skip_steps),
        cmocka_unit_test(averages_become_the_parameters),
        cmocka_unit_test(the_best_is_kept_and_patience_ends),
        cmocka_unit_test(members_are_judged_one_by_one),
        cmocka_unit_test(what_learns_nothing_stays),
        cmocka_unit_test(data_may_be_renewed),
        cmocka_unit_test(a_deadline_ends_a_phase),
        cmocka_unit_test(stopped_and_resumed_is_the_same),
        cmocka_unit_test(a_checkpoint_of_something_else_is_refused),
        cmocka_unit_test(a_checkpoint_that_cannot_be_written_stops_nothing),
        cmocka_unit_test(a_checkpoint_of_other_options_is_refused),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(nan_stops_at_the_last_good_step),
        cmocka_unit_test(a_phase_that_is_not_complete_is_refused),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(a_trial_changes_nothing),
        cmocka_unit_test(a_little_work_is_not_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
