/* The latent model of designs: the code, training that can be stopped, proposals. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/numerics.h"
#include "base/random.h"
#include "optimize/latent_code.h"
#include "optimize/latent_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 240, COLUMNS = 4 };

/* A number, a number that is mostly 0, a whole number, a category. */
typedef struct sample {
    n2_factor factor[COLUMNS];
    double x[ROWS * COLUMNS], y[ROWS];
    n2_designs designs;
} sample;

static void fill(sample *s) {
    const n2_factor factor[COLUMNS] = {{N2_CONTINUOUS, -2, 2, 0},
                                       {N2_CONTINUOUS, 0, 5, 0},
                                       {N2_WHOLE, 1, 9, 0},
                                       {N2_CATEGORY, 0, 0, 3}};
    float u[ROWS * COLUMNS];
    n2_fill_uniform((n2_stream){5, 1, 0}, 0, ROWS * COLUMNS, u);
    memcpy(s->factor, factor, sizeof factor);
    for (size_t i = 0; i < ROWS; i++) {
        double *x = s->x + i * COLUMNS;
        const float *v = u + i * COLUMNS;
        x[0] = -1.9 + 3.8 * (double)v[0];
        x[1] = v[1] < 0.5f ? 0 : 5 * (double)v[1];
        x[2] = 1 + floor(8.999 * (double)v[2]);
        x[3] = floor(2.999 * (double)v[3]);
        s->y[i] = -x[0] * x[0] - 0.1 * x[1] - 0.05 * (x[2] - 4) * (x[2] - 4) + (x[3] == 1);
    }
    s->designs = (n2_designs){{s->factor, COLUMNS}, ROWS, s->x, s->y};
}

static n2_latent_options small(void) {
    n2_latent_options o = n2_latent_defaults();
    o.width = o.code_width = 32;
    o.ratio_width = 16;
    o.blocks = 1;
    o.latent = 5;
    o.value_steps = 400;
    o.code_steps = 400;
    o.prior_steps = 100;
    o.rounds = 6;
    o.seed = 3;
    return o;
}

/* ---- the code ------------------------------------------------------------ */

/* Numbers are in [-1, 1], the frequent zero has an indicator, a category one 1. */
static void a_design_has_a_code(void **state) {
    (void)state;
    static sample s;
    n2ce_ctx *ctx = new_ctx(1);
    n2_latent_code *code;
    float row[16];
    fill(&s);
    assert_int_equal(n2_latent_code_new(ctx, &s.designs, &code), N2CE_OK);
    assert_int_equal(code->width, 3 + 1 + 3 + (code->layout.atoms - 1)); /* whole: maybe an atom */
    for (size_t i = 0; i < ROWS; i++) {
        n2_latent_code_write(code, s.x + i * COLUMNS, row);
        float levels = 0;
        for (int64_t k = 0; k < code->layout.numbers; k++) assert_true(row[k] >= -1 && row[k] <= 1);
        for (size_t k = code->width - 3; k < code->width; k++) levels += row[k];
        assert_true(levels == 1);
        assert_true((row[code->column[1].atom_at] == 1) == (s.x[i * COLUMNS + 1] == 0));
    }
    n2_latent_code_free(code);
    n2ce_ctx_free(ctx);
}

/* Where the decoder says the same of both, a design comes back to the bit. */
static void a_design_that_does_not_move_comes_back(void **state) {
    (void)state;
    static sample s;
    n2ce_ctx *ctx = new_ctx(1);
    n2_latent_code *code;
    fill(&s);
    assert_int_equal(n2_latent_code_new(ctx, &s.designs, &code), N2CE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        const double *x = s.x + i * COLUMNS;
        double decoded[16] = {0}, back[COLUMNS];
        float uniform[2 * COLUMNS];
        for (size_t k = 0; k < 2 * COLUMNS; k++) uniform[k] = 0.5f;
        decoded[code->column[3].at + (size_t)x[3]] = 10;
        const n2_latent_move move = {decoded, decoded, x, uniform};
        n2_latent_code_read(code, &move, 1, back);
        assert_memory_equal(back, x, sizeof back);
        n2_latent_code_read_part(code, &move, back); /* a category may change by chance */
        assert_memory_equal(back, x, 3 * sizeof *x);
    }
    n2_latent_code_free(code);
    n2ce_ctx_free(ctx);
}

/* However far the decoder goes, designs stay within the bounds and whole numbers whole. */
static void designs_stay_within_the_bounds(void **state) {
    (void)state;
    static sample s;
    n2ce_ctx *ctx = new_ctx(1);
    n2_latent_code *code;
    fill(&s);
    assert_int_equal(n2_latent_code_new(ctx, &s.designs, &code), N2CE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        double decoded[16], from[16] = {0}, out[COLUMNS];
        float uniform[2 * COLUMNS];
        for (size_t k = 0; k < 16; k++) decoded[k] = (i + k) % 2 ? 3 : -3;
        n2_fill_uniform((n2_stream){1, (uint32_t)i, 0}, 0, 2 * COLUMNS, uniform);
        const n2_latent_move move = {decoded, from, s.x + i * COLUMNS, uniform};
        if (i % 2)
            n2_latent_code_read(code, &move, 1, out);
        else
            n2_latent_code_read_part(code, &move, out);
        for (size_t j = 0; j < 3; j++)
            assert_true(out[j] >= s.factor[j].low && out[j] <= s.factor[j].high);
        assert_true(out[2] == floor(out[2]));
        assert_true(out[3] >= 0 && out[3] < 3);
    }
    n2_latent_code_free(code);
    n2ce_ctx_free(ctx);
}

/* ---- training and proposals ---------------------------------------------- */

enum { WANTED = 24 };
typedef struct proposed {
    double x[WANTED * COLUMNS], predicted[WANTED], prior[WANTED];
    size_t rows;
} proposed;

static void propose(int threads, const n2_designs *d, const n2_latent_options *o, proposed *out) {
    n2ce_ctx *ctx = new_ctx(threads);
    n2_latent *m;
    n2_proposals p = {
        .rows = WANTED, .x = out->x, .predicted = out->predicted, .log_prior = out->prior};
    assert_int_equal(n2_latent_fit(ctx, d, o, &m), N2CE_OK);
    assert_int_equal(n2_latent_propose(m, &p), N2CE_OK);
    out->rows = p.rows;
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
}

/* New, distinct, within the bounds, and better than what was there on the whole. */
static void proposals_are_new_and_better(void **state) {
    (void)state;
    static sample s;
    static proposed p;
    const n2_latent_options o = small();
    double mean = 0, before = 0;
    fill(&s);
    propose(2, &s.designs, &o, &p);
    assert_int_equal(p.rows, WANTED);
    for (size_t i = 0; i < WANTED; i++) {
        const double *x = p.x + i * COLUMNS;
        for (size_t k = 0; k < ROWS; k++)
            assert_memory_not_equal(x, s.x + k * COLUMNS, COLUMNS * sizeof *x);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(x, p.x + k * COLUMNS, COLUMNS * sizeof *x);
        assert_true(i == 0 || p.predicted[i] <= p.predicted[i - 1]);
        mean += (-x[0] * x[0] - 0.1 * x[1] - 0.05 * (x[2] - 4) * (x[2] - 4) + (x[3] == 1)) / WANTED;
    }
    for (size_t i = 0; i < ROWS; i++) before += s.y[i] / ROWS;
    assert_true(mean > before + 0.8);
}

static void the_same_for_any_number_of_threads(void **state) {
    (void)state;
    static sample s;
    static proposed one, three;
    const n2_latent_options o = small();
    fill(&s);
    propose(1, &s.designs, &o, &one);
    propose(3, &s.designs, &o, &three);
    assert_memory_equal(&one, &three, sizeof one);
}

static n2_latent_record learn(const n2_designs *d) {
    n2ce_ctx *ctx = new_ctx(2);
    n2_latent *m;
    const n2_latent_options o = small();
    assert_int_equal(n2_latent_fit(ctx, d, &o, &m), N2CE_OK);
    const n2_latent_record r = *n2_latent_seen(m);
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
    return r;
}

/* A step is for trees, a slope for networks. */
static void forests_help_where_there_are_steps(void **state) {
    (void)state;
    static sample s;
    fill(&s);
    for (size_t i = 0; i < ROWS; i++) s.y[i] = s.x[i * COLUMNS] + 0.1 * s.x[i * COLUMNS + 2];
    assert_true(learn(&s.designs).forest_share < 0.2);
    for (size_t i = 0; i < ROWS; i++) s.y[i] = (double)(fmod(s.x[i * COLUMNS] + 2, 0.8) > 0.4);
    const n2_latent_record steps = learn(&s.designs);
    assert_true(steps.forest_share > 0.5);
    assert_true(steps.r2 > 0.5);
}

/* The first column decides about all others. */
static void tie_columns(sample *s) {
    for (size_t i = 0; i < ROWS; i++) {
        double *x = s->x + i * COLUMNS;
        x[1] = x[0] + 2;
        x[2] = 1 + floor(2 * x[1]);
        x[3] = x[0] < -0.5 ? 0 : x[0] < 0.5 ? 1 : 2;
    }
}

/* Columns that depend on one another are told from columns that do not, and designs that fill the
 * bounds from ones that do not. */
static void structure_is_seen(void **state) {
    (void)state;
    static sample s;
    fill(&s);
    const n2_latent_record free = learn(&s.designs);
    assert_true(free.structure < 0.2);
    assert_true(free.narrow < 0.2);
    tie_columns(&s);
    const n2_latent_record tied = learn(&s.designs);
    assert_true(tied.structure > 0.5);
    assert_true(tied.narrow > 0.5);
}

/* Where designs are a small part of what there could be, and nothing tells them apart, most
 * proposals are like them. */
static void chains_stay_where_nothing_is_explained(void **state) {
    (void)state;
    static sample s;
    static proposed p;
    const n2_latent_options o = small();
    float noise[ROWS];
    size_t like = 0;
    fill(&s);
    tie_columns(&s);
    n2_fill_uniform((n2_stream){6, 1, 0}, 0, ROWS, noise);
    for (size_t i = 0; i < ROWS; i++) s.y[i] = (double)noise[i];
    propose(2, &s.designs, &o, &p);
    for (size_t i = 0; i < WANTED; i++)
        like += fabs(p.x[i * COLUMNS + 1] - p.x[i * COLUMNS] - 2) < 0.5;
    assert_true(2 * like > WANTED);
}

/* Beyond what was seen a product goes on as its logarithm does, and a sum as it is. */
static void products_are_learnt_as_logarithms(void **state) {
    (void)state;
    static sample s;
    fill(&s);
    for (size_t i = 0; i < ROWS; i++) {
        const double *x = s.x + i * COLUMNS;
        s.y[i] = exp(x[0] + 0.4 * x[1] + 0.2 * x[2]);
    }
    assert_true(learn(&s.designs).y_log);
    for (size_t i = 0; i < ROWS; i++) s.y[i] = log(s.y[i]);
    assert_false(learn(&s.designs).y_log);
}

/* Values that end at once, as if the best had been cut off, are told from values that thin out. */
static void a_cut_is_seen(void **state) {
    (void)state;
    static sample s;
    fill(&s);
    for (size_t i = 0; i < ROWS; i++) s.y[i] = s.x[i * COLUMNS];
    assert_true(learn(&s.designs).cut > 0.9);
    for (size_t i = 0; i < ROWS; i++)
        s.y[i] = n2_normal_quantile((s.x[i * COLUMNS] + 1.9001) / 3.8002);
    assert_true(learn(&s.designs).cut < 0.1);
}

/* What is promised of two proposals, of which a model says 300 and 1.5, where the best seen is 1,
 * the best that a trial left was 0.5, and that trial was off by so much. */
static n2_proposals promised(double off, double predicted[2]) {
    static sample s;
    fill(&s);
    n2_latent m = {.ctx = new_ctx(1), .designs = &s.designs, .scale = {.deviation = 1}};
    m.record = (n2_latent_record){.y_sd = 1, .y_best = 1, .ambition = 2, .trials = 1};
    m.record.trial[0] =
        (n2_latent_trial){.hidden = 0.15, .best = 0.5, .ambition = 2, .judged = off, .n = 1};
    n2_proposals p = {.rows = 2, .predicted = predicted};
    const double said[] = {300, 1.5};
    memcpy(predicted, said, sizeof said);
    assert_int_equal(n2_latent_learn_shift(&m), N2CE_OK);
    n2_latent_expect(&m, said, 0, &p);
    n2ce_ctx_free(m.ctx);
    return p;
}

/* Models that disagree by a hundred standard deviations promise some steps above the best alone. */
static void unstable_models_promise_little(void **state) {
    (void)state;
    double predicted[2];
    const n2_proposals wild = promised(100, predicted);
    assert_close(predicted[0], 2.5, 1e-12, 0);
    assert_close(predicted[1], 1.5, 1e-12, 0);
    assert_true(wild.low > 0 && wild.high < 5);
    const n2_proposals calm = promised(0.1, predicted);
    assert_true(predicted[0] > 300 && calm.high > 150);
}

static n2ce_ctx *to_cancel;
static void cancel_half_way(void *user, double done, double total) {
    if (done > *(double *)user * total) n2ce_ctx_cancel(to_cancel);
}

/* Stopped in each of the phases and gone on: the same proposals. */
static void stopped_and_resumed_is_uninterrupted(void **state) {
    (void)state;
    static sample s;
    static proposed whole, again;
    n2_latent_options o = small();
    const char *path = "test_latent.checkpoint";
    fill(&s);
    propose(2, &s.designs, &o, &whole);
    o.checkpoint = path;
    for (double share = 0.2; share < 1; share += 0.35) {
        n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
        n2_latent *m;
        options.threads = 1;
        options.progress = cancel_half_way;
        options.progress_user = &share;
        unlink(path);
        o.resume = false;
        assert_int_equal(n2ce_ctx_new(&to_cancel, &options), N2CE_OK);
        assert_int_equal(n2_latent_fit(to_cancel, &s.designs, &o, &m), N2CE_ECANCELED);
        n2ce_ctx_free(to_cancel);
        o.resume = true;
        propose(2, &s.designs, &o, &again);
        assert_memory_equal(&whole, &again, sizeof whole);
    }
    unlink(path);
}

/* Each variant for the ablations runs and proposes. */
static void the_ablations_run(void **state) {
    (void)state;
    static sample s;
    static proposed p;
    fill(&s);
    for (int k = 0; k < 5; k++) {
        n2_latent_options o = small();
        o.rounds = 2;
        if (k == 0) o.prior = N2_LATENT_MLE;
        if (k == 1) o.prior = N2_LATENT_GAUSSIAN;
        if (k == 2) o.sampler = N2_LATENT_LANGEVIN;
        if (k == 3) {
            o.magnitude = 1;
            o.stages = 1;
            o.joint_steps = 50;
        }
        if (k == 4) o.stages = N2_LATENT_STAGES_MAX;
        propose(2, &s.designs, &o, &p);
        assert_true(p.rows > WANTED / 2);
    }
}

/* As the paper prints them for K = 3 and K = 6, both ends exact; they rise for every K. */
static void the_waymarks_are_those_of_the_paper(void **state) {
    (void)state;
    static const double six[] = {0, 0.3237, 0.5165, 0.6322, 0.7132, 0.7734, 1};
    static const double three[] = {0, 0.6918, 0.9224, 1};
    double v[N2_LATENT_STAGES_MAX + 1];
    n2_waymarks_of_stages(6, v);
    assert_memory_equal(v, six, sizeof six);
    n2_waymarks_of_stages(3, v);
    assert_memory_equal(v, three, sizeof three);
    for (size_t stages = 1; stages <= N2_LATENT_STAGES_MAX; stages++) {
        n2_waymarks_of_stages(stages, v);
        assert_close(v[0], 0, 0, 0);
        assert_close(v[stages], 1, 0, 0);
        for (size_t k = 0; k < stages; k++) assert_true(v[k] < v[k + 1]);
    }
}

enum { DRAWN = 300 }; /* more than a group of particles */

static double mean_drawn(n2_latent *m, double target, double *x) {
    double predicted[DRAWN], mean = 0;
    assert_int_equal(n2_latent_draw(m, target, DRAWN, x), N2CE_OK);
    assert_int_equal(n2_latent_appraise(m, x, DRAWN, predicted, NULL, NULL), N2CE_OK);
    for (size_t i = 0; i < DRAWN; i++) {
        const double *d = x + i * COLUMNS;
        assert_true(fabs(d[0]) <= 2 && d[1] >= 0 && d[1] <= 5 && d[3] >= 0 && d[3] < 3);
        assert_close(d[2], floor(d[2]), 0, 0);
        mean += predicted[i] / DRAWN;
    }
    return mean;
}

/* Draws for a value are near it, by either sampler, and the same again. */
static void designs_are_drawn_for_a_value(void **state) {
    (void)state;
    static sample s;
    static double x[DRAWN * COLUMNS], again[DRAWN * COLUMNS];
    fill(&s);
    for (int k = 0; k < 2; k++) {
        n2ce_ctx *ctx = new_ctx(2);
        n2_latent_options o = small();
        n2_latent *m;
        if (k == 1) o.sampler = N2_LATENT_LANGEVIN;
        assert_int_equal(n2_latent_fit(ctx, &s.designs, &o, &m), N2CE_OK);
        assert_close(mean_drawn(m, -3, x), -3, 0, 1);
        assert_close(mean_drawn(m, 0, x), 0, 0, 1);
        mean_drawn(m, 0, again);
        if (k == 0) assert_memory_equal(x, again, sizeof x);
        n2_latent_free(m);
        n2ce_ctx_free(ctx);
    }
}

/* ---- what cannot be learnt ----------------------------------------------- */

static void refused(const n2_designs *d, const char *words) {
    n2ce_ctx *ctx = new_ctx(1);
    const n2_latent_options o = small();
    n2_latent *m;
    assert_int_equal(n2_latent_fit(ctx, d, &o, &m), N2CE_EDATA);
    assert_null(m);
    assert_non_null(strstr(n2ce_errmsg(ctx), words));
    n2ce_ctx_free(ctx);
}

static void designs_without_anything_to_learn(void **state) {
    (void)state;
    static sample s;
    fill(&s);
    s.designs.rows = 3;
    refused(&s.designs, "at least 8");
    s.designs.rows = ROWS;
    for (size_t i = 0; i < ROWS; i++) s.y[i] = 7;
    refused(&s.designs, "the same value");
    fill(&s);
    s.factor[3].levels = 10000;
    refused(&s.designs, "10000 levels");
    fill(&s);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) s.x[i] = 1;
    s.factor[3].levels = 1;
    s.factor[3].kind = N2_CONTINUOUS;
    refused(&s.designs, "nothing to vary");
}

static void bounds_that_exclude_everything(void **state) {
    (void)state;
    static sample s;
    double x[COLUMNS];
    n2ce_ctx *ctx = new_ctx(1);
    n2_latent_options o = small();
    n2_latent *m;
    n2_proposals p = {.rows = 1, .x = x};
    o.value_steps = o.code_steps = o.prior_steps = 10;
    fill(&s);
    s.factor[0].low = 50;
    s.factor[0].high = 60;
    assert_int_equal(n2_latent_fit(ctx, &s.designs, &o, &m), N2CE_OK);
    assert_int_equal(n2_latent_propose(m, &p), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "exclude all"));
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
}

/* ---- short memory -------------------------------------------------------- */

static n2ce_status whole_life(failing_alloc *memory, const n2_designs *d) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2_latent_options o = small();
    double x[4 * COLUMNS];
    n2_proposals p = {.rows = 4, .x = x};
    n2ce_ctx *ctx;
    n2_latent *m = NULL;
    o.value_steps = o.code_steps = o.prior_steps = o.rounds = 1;
    o.members = 2;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2_latent_fit(ctx, d, &o, &m);
    if (status == N2CE_OK) status = n2_latent_propose(m, &p);
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
    return status;
}

/* Every so-manieth allocation fails in turn: a status, and nothing is left behind. */
static void nothing_leaks_when_memory_is_short(void **state) {
    (void)state;
    static sample s;
    failing_alloc all = failing_alloc_new(NEVER, false);
    fill(&s);
    s.designs.rows = 80; /* enough for all that is done, and soon done */
    assert_int_equal(whole_life(&all, &s.designs), N2CE_OK);
    assert_int_equal(all.live, 0);
    for (size_t n = 0; n < all.calls; n += 1 + all.calls / 150) {
        failing_alloc memory = failing_alloc_new(n, n % 2);
        assert_int_equal(whole_life(&memory, &s.designs), N2CE_ENOMEM);
        assert_int_equal(memory.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_design_has_a_code),
        cmocka_unit_test(a_design_that_does_not_move_comes_back),
        cmocka_unit_test(designs_stay_within_the_bounds),
        cmocka_unit_test(proposals_are_new_and_better),
        cmocka_unit_test(forests_help_where_there_are_steps),
        cmocka_unit_test(structure_is_seen),
        cmocka_unit_test(chains_stay_where_nothing_is_explained),
        cmocka_unit_test(products_are_learnt_as_logarithms),
        cmocka_unit_test(a_cut_is_seen),
        cmocka_unit_test(unstable_models_promise_little),
        cmocka_unit_test(the_same_for_any_number_of_threads),
        cmocka_unit_test(stopped_and_resumed_is_uninterrupted),
        cmocka_unit_test(the_ablations_run),
        cmocka_unit_test(the_waymarks_are_those_of_the_paper),
        cmocka_unit_test(designs_are_drawn_for_a_value),
        cmocka_unit_test(designs_without_anything_to_learn),
        cmocka_unit_test(bounds_that_exclude_everything),
        cmocka_unit_test(nothing_leaks_when_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
