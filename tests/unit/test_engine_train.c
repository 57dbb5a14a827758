/* Facts about the trainer of n2ce_engine.h: what it minimises, keeps, saves, and how it stops. */
#include "close.h"

#include "n2ce_engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A line y = w x + b through 2 x - 1 with noise; held-out points lie on `truth` x - 1. */
typedef struct problem {
    n2ce_ctx *ctx;
    n2ce_store *store;
    n2ce_parameters *weights;
    n2ce_mlp *line;
    n2ce_tensor *held_out;
    bool averaged, bad;
    int built;
} problem;

static double cancel_at = 2; /* share of the steps */

static void maybe_cancel(void *user, double done, double total) {
    n2ce_ctx *const *ctx = user;
    if (done >= cancel_at * total) n2ce_ctx_cancel(*ctx);
}

static problem open_problem(void) {
    static n2ce_ctx *ctx;
    problem p = {0};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.progress = maybe_cancel;
    options.progress_user = &ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    p.ctx = ctx;
    assert_int_equal(n2ce_store_new(p.ctx, &p.store), N2CE_OK);
    p.weights = n2ce_parameters_new(p.store, 3);
    p.line = n2ce_mlp_new(p.weights, "line", (int64_t[]){1, 1}, 2, 0);
    p.held_out = n2ce_store_add(p.store, "held_out", n2ce_dims(4, 2));
    const double rows[] = {-1, -3, 0, -1, 1, 1, 2, 3};
    assert_int_equal(n2ce_tensor_set(p.store, p.held_out, rows), N2CE_OK);
    return p;
}

static void close_problem(problem *p) {
    n2ce_store_free(p->store);
    n2ce_ctx_free(p->ctx);
}

static n2ce_node squared(n2ce_graph *g, n2ce_node a, n2ce_node b) {
    const n2ce_node miss = n2ce_sub(g, a, b);
    return n2ce_mean(g, n2ce_mul(g, miss, miss), N2CE_ALL_AXES);
}

static n2ce_node step(n2ce_graph *g, void *user) {
    problem *p = user;
    const n2ce_node x = n2ce_normal(g, n2ce_dims(16, 1));
    const n2ce_node noise = n2ce_scale(g, n2ce_normal(g, n2ce_dims(16, 1)), 0.3);
    const n2ce_node y = n2ce_add(g, n2ce_affine(g, x, 2, -1), noise);
    n2ce_node loss = squared(g, n2ce_mlp_apply(g, p->line, x), y);
    if (p->bad) loss = n2ce_log(g, n2ce_scale(g, loss, 0));
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 0.05;
    n2ce_minimise(g, &adam, "adam", p->weights, loss, NULL);
    p->built++;
    return loss;
}

static n2ce_node held_out(n2ce_graph *g, void *user) {
    problem *p = user;
    const n2ce_node rows = n2ce_read(g, p->held_out);
    const n2ce_node x = n2ce_slice(g, rows, 1, 0, 1), y = n2ce_slice(g, rows, 1, 1, 1);
    const n2ce_mlp *line = p->averaged ? n2ce_mlp_averaged(p->line) : p->line;
    return squared(g, n2ce_mlp_apply(g, line, x), y);
}

static n2ce_trainer trainer_of(problem *p) {
    n2ce_trainer t = N2CE_TRAINER_INIT;
    t.store = p->store;
    t.step = step;
    t.user = p;
    t.steps = 600;
    t.seed = 1;
    return t;
}

static void train(problem *p, const n2ce_trainer *t, n2ce_training *out) {
    if (n2ce_train(t, out) != N2CE_OK) fail_msg("%s", n2ce_errmsg(p->ctx));
}

/* Slope and offset. */
static void get_line(const problem *p, double line[2]) {
    n2ce_tensor_get(p->store, n2ce_store_find(p->store, "line.0.weight"), line);
    n2ce_tensor_get(p->store, n2ce_store_find(p->store, "line.0.bias"), line + 1);
}

/* ---- what is learnt -------------------------------------------------------- */

static void a_line_is_learnt(void **state) {
    (void)state;
    problem p = open_problem();
    n2ce_trainer t = trainer_of(&p);
    n2ce_training result;
    double line[2];
    train(&p, &t, &result);
    get_line(&p, line);
    assert_close(line[0], 2, 0, 0.15);
    assert_close(line[1], -1, 0, 0.15);
    assert_int_equal(result.steps, 600);
    assert_close(result.loss, 0.09, 0, 0.1); /* the noise's variance */
    assert_true(isnan(result.best_loss) && !result.stopped_early && !result.out_of_time);
    assert_string_equal(result.device, "cpu");
    assert_int_equal(p.built, 1);
    close_problem(&p);
}

/* Averages are nearer to the truth than the last step's weights. */
static void averages_are_calmer(void **state) {
    (void)state;
    double miss[2];
    for (int averaged = 0; averaged < 2; averaged++) {
        problem p = open_problem();
        n2ce_trainer t = trainer_of(&p);
        n2ce_training result;
        double line[2];
        t.parameters = p.weights;
        t.average = averaged ? 0.99 : 0;
        train(&p, &t, &result);
        get_line(&p, line);
        miss[averaged] = fabs(line[0] - 2) + fabs(line[1] + 1);
        close_problem(&p);
    }
    assert_true(miss[1] < miss[0] && miss[1] < 0.05);
}

/* What the best check saw is what is left, and patience ends what gets no better. */
static void the_best_is_kept(void **state) {
    (void)state;
    for (int averaged = 0; averaged < 2; averaged++) {
        problem p = open_problem();
        n2ce_trainer t = trainer_of(&p);
        n2ce_training result;
        double line[2], loss = 0;
        p.averaged = averaged;
        t.parameters = p.weights;
        t.average = averaged ? 0.9 : 0;
        t.check = held_out;
        t.check_every = 10;
        t.patience = 8;
        t.steps = 1000000;
        train(&p, &t, &result);
        get_line(&p, line);
        for (int x = -1; x <= 2; x++) loss += pow(line[0] * x + line[1] - (2 * x - 1), 2) / 4;
        assert_close(result.best_loss, loss, 1e-3, 1e-9);
        assert_true(result.stopped_early && result.steps < 100000);
        assert_int_equal(result.best_step + 80, result.steps);
        close_problem(&p);
    }
}

/* ---- stopping and going on ------------------------------------------------- */

static void resumed_is_as_if_never_stopped(void **state) {
    (void)state;
    const char *path = "test_engine_train.safetensors";
    double once[2], twice[2];
    n2ce_training result;
    unlink(path);
    problem p = open_problem();
    n2ce_trainer t = trainer_of(&p);
    train(&p, &t, &result);
    get_line(&p, once);
    close_problem(&p);
    for (int part = 0; part < 2; part++) {
        p = open_problem();
        t = trainer_of(&p);
        t.checkpoint = path;
        t.resume = true;
        cancel_at = part ? 2 : 0.4;
        assert_int_equal(n2ce_train(&t, &result), part ? N2CE_OK : N2CE_ECANCELED);
        assert_true(part ? result.steps == 600 : result.steps > 200 && result.steps < 300);
        get_line(&p, twice);
        close_problem(&p);
    }
    assert_memory_equal(once, twice, sizeof once);
    unlink(path);
}

static void a_bad_loss_is_told_by_line(void **state) {
    (void)state;
    problem p = open_problem();
    n2ce_trainer t = trainer_of(&p);
    n2ce_training result;
    double before[2], after[2];
    p.bad = true;
    get_line(&p, before);
    assert_int_equal(n2ce_train(&t, &result), N2CE_ENAN);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "test_engine_train.c:"));
    get_line(&p, after);
    assert_memory_equal(before, after, sizeof before);
    close_problem(&p);
}

static n2ce_node wrong_step(n2ce_graph *g, void *user) {
    (void)user;
    return n2ce_normal(g, n2ce_dims(3));
}

static void mistakes_are_told(void **state) {
    (void)state;
    problem p = open_problem();
    n2ce_training result;
    n2ce_trainer t = trainer_of(&p);
    t.struct_size = 3;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    t = trainer_of(&p);
    t.steps = 0;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    t = trainer_of(&p);
    t.average = 0.9;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "parameters is NULL"));
    t = trainer_of(&p);
    t.store = NULL;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    problem other = open_problem();
    t = trainer_of(&p);
    t.average = 0.9;
    t.parameters = other.weights;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "another store"));
    close_problem(&other);
    assert_non_null(n2ce_store_add(p.store, "average.line.0.weight", n2ce_dims(1)));
    t.parameters = p.weights;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "in the way"));
    t = trainer_of(&p);
    t.device = "gpu";
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "\"gpu\""));
    t = trainer_of(&p);
    t.step = wrong_step;
    assert_int_equal(n2ce_train(&t, &result), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(p.ctx), "one number, not [3]"));
    close_problem(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_learnt),
        cmocka_unit_test(averages_are_calmer),
        cmocka_unit_test(the_best_is_kept),
        cmocka_unit_test(resumed_is_as_if_never_stopped),
        cmocka_unit_test(a_bad_loss_is_told_by_line),
        cmocka_unit_test(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
