/* Diffusion models: training and its interruption, students, files, sampling, bad input. */
#include "contexts.h"
#include "failing_alloc.h"
#include "files.h"

#include "diffusion/augment.h"
#include "diffusion/distill.h"
#include "ref/ref.h"
#include "rewrite/rewrites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 8 };
static const char STATE[] = "denoiser.state", FILE_NAME[] = "denoiser.model";

/* Bright bars on black at several places, of several colours. */
static n2_images *bars(n2ce_ctx *ctx, size_t n, size_t side, size_t channels) {
    n2_images *p;
    if (n2_images_new(ctx, n, side, side, channels, &p) != N2CE_OK) return NULL;
    for (size_t i = 0; i < n * side * side * channels; i++) {
        const size_t x = i / channels % side, picture = i / (channels * side * side);
        if ((x + picture) % side < 3) p->pixels[i] = (unsigned char)(255 - 40 * (i % channels));
    }
    return p;
}

static n2_denoiser_spec small_spec(n2ce_ctx *ctx, const n2_images *p) {
    n2_denoiser_spec s;
    assert_int_equal(n2_denoiser_spec_for(ctx, "s", p, 8, 0, &s), N2CE_OK);
    s.net.levels = 2;
    s.net.blocks = 1;
    return s;
}

static n2_denoiser_schedule small_schedule(void) {
    n2_denoiser_schedule s = n2_denoiser_schedule_default();
    s.steps = 10;
    s.batch = 4;
    s.seed = 3;
    s.ramp = 8;
    return s;
}

static void assert_same_networks(const n2_denoiser *a, const n2_denoiser *b) {
    for (size_t i = 0; i < a->net.parameters.n; i++) {
        const n2_tensor *x = a->net.parameters.list[i], *y = b->net.parameters.list[i];
        assert_memory_equal(x->data, y->data, n2_tensor_bytes(a->store, x));
    }
    if (a->log_sigma)
        assert_memory_equal(a->log_sigma->data, b->log_sigma->data,
                            n2_tensor_bytes(a->store, a->log_sigma));
}

/* ---- training, stopped and gone on with ---- */

static n2ce_ctx *to_cancel;
static void stop_soon(void *user, double done, double total) {
    (void)total;
    if (done >= *(const double *)user) n2ce_ctx_cancel(to_cancel);
}

typedef struct trained {
    n2ce_ctx *ctx;
    n2_images *pictures;
    n2_denoiser *teacher, *student; /* of a teacher: student NULL */
    n2_denoiser_record record;
} trained;

static void drop(trained *t) {
    n2_denoiser_free(t->teacher);
    n2_denoiser_free(t->student);
    n2_images_free(t->pictures);
    n2ce_ctx_free(t->ctx);
}

static n2_distill_plan small_plan(n2_distill_method method) {
    n2_distill_plan p = n2_distill_defaults(method);
    p.steps = 8;
    p.batch = 4;
    p.seed = 2;
    p.alone = 8;
    p.by_score = 12;
    p.fall = 0.5;
    p.sampler_steps = 3;
    p.value_width = 4;
    return p;
}

static n2ce_status run_once(trained *t, int method, const n2_denoiser_run *run) {
    const n2_denoiser_schedule schedule = small_schedule();
    const n2_denoiser_spec spec = small_spec(t->ctx, t->pictures);
    n2_denoiser_free(t->teacher);
    assert_int_equal(n2_denoiser_new(t->ctx, &spec, 7, &t->teacher), N2CE_OK);
    if (method < 0) return n2_denoiser_train(t->teacher, t->pictures, &schedule, run, &t->record);
    const n2_distillation task = {.teacher = t->teacher,
                                  .pictures = t->pictures,
                                  .plan = small_plan((n2_distill_method)method)};
    return n2_distill(t->ctx, &task, run, &t->student, &t->record);
}

/* A teacher (method -1) or a student; stopped once after so many steps, and gone on with. */
static trained train(int threads, int method, double stop_at) {
    static double until;
    trained t = {.ctx = NULL};
    n2ce_ctx_options o = N2CE_CTX_OPTIONS_INIT;
    n2_distance_watch *watch;
    n2_device_choice cpu = {.backend = NULL};
    unlink(STATE);
    until = stop_at > 0 ? stop_at : 1e9;
    o.threads = threads;
    o.progress = stop_soon;
    o.progress_user = &until;
    assert_int_equal(n2ce_ctx_new(&t.ctx, &o), N2CE_OK);
    to_cancel = t.ctx;
    t.pictures = bars(t.ctx, 40, SIDE, 3);
    assert_int_equal(n2_distance_watch_open(t.ctx, NULL, t.pictures, &cpu, &watch), N2CE_OK);
    const n2_denoiser_run run = {.looks = 4,
                                 .watch = watch,
                                 .watched = 64,
                                 .checkpoint = STATE,
                                 .resume = true,
                                 .quiet = true};
    if (stop_at > 0) {
        assert_int_equal(run_once(&t, method, &run), N2CE_ECANCELED);
        until = 1e9;
        n2_cancel_reset(t.ctx);
    }
    if (run_once(&t, method, &run) != N2CE_OK) fail_msg("%s", n2ce_errmsg(t.ctx));
    assert_int_equal(t.record.resumed, stop_at > 0);
    n2_distance_watch_close(watch);
    unlink(STATE);
    return t;
}

static void assert_same_curves(const n2_curve *a, const n2_curve *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_true(a->point[i].seen == b->point[i].seen);
        assert_true(a->point[i].distance == b->point[i].distance);
        for (size_t k = 0; k < 4; k++) assert_true(a->point[i].number[k] == b->point[i].number[k]);
    }
}

/* Teachers and students of all methods: any number of threads and any stop give the same weights
 * and the same curve. */
static void stopped_and_resumed_is_the_same(void **state) {
    (void)state;
    const int methods[] = {-1, N2_DISTILL_SID, N2_DISTILL_SIDA, N2_DISTILL_DXMI};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        trained plain = train(1, methods[i], 0);
        for (int stop = 0; stop < 3; stop++) {
            trained other = train(2, methods[i], stop ? 3 * stop : 0);
            if (plain.student)
                assert_same_networks(plain.student, other.student);
            else
                assert_same_networks(plain.teacher, other.teacher);
            assert_same_curves(&plain.record.curve, &other.record.curve);
            drop(&other);
        }
        drop(&plain);
    }
}

static void a_teacher_learns(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = bars(ctx, 40, SIDE, 1);
    const n2_denoiser_spec spec = small_spec(ctx, p);
    n2_denoiser_schedule schedule = small_schedule();
    const n2_denoiser_run run = {.looks = 10, .quiet = true};
    n2_denoiser_record record;
    n2_denoiser *m;
    schedule.steps = 300;
    schedule.batch = 16;
    schedule.rate = 3e-3;
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    assert_int_equal(n2_denoiser_train(m, p, &schedule, &run, &record), N2CE_OK);
    const n2_curve *c = &record.curve;
    assert_int_equal(record.steps, 300);
    assert_close(c->point[c->n - 1].seen, 4800, 0, 0);
    assert_true(c->point[c->n - 1].number[0] < 0.5 * c->point[1].number[0]);
    n2_denoiser_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* Brightness of pictures of two classes. */
static void brightness_of_classes(n2_denoiser *m, n2_sampling how, double mean[2]) {
    for (int k = 0; k < 2; k++) {
        n2_images *made;
        assert_int_equal(n2_denoiser_sample(m, &how, k, 4, 1, &made), N2CE_OK);
        mean[k] = 0;
        for (size_t i = 0; i < 4 * SIDE * SIDE; i++)
            mean[k] += made->pixels[i] / (4.0 * SIDE * SIDE);
        n2_images_free(made);
    }
}

/* Of one step, as a line: without the class at -1, with it at 0. */
static void guidance_goes_on_from_untold_to_told(n2_denoiser *m) {
    n2_sampling how = {.kind = N2_SAMPLER_ONE_STEP, .steps = 1, .sigma = 1};
    double told[2], untold[2], half[2];
    brightness_of_classes(m, how, told);
    how.guide = -1;
    brightness_of_classes(m, how, untold);
    how.guide = -0.5;
    brightness_of_classes(m, how, half);
    assert_close(untold[0], untold[1], 0, 0.1);
    assert_true(told[1] > told[0] + 5);
    for (int k = 0; k < 2; k++) assert_close(half[k], (told[k] + untold[k]) / 2, 0, 0.5);
}

/* Those who are told the class make a picture of it. */
static void classes_are_told_apart(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = bars(ctx, 40, SIDE, 1);
    n2_denoiser_spec spec = small_spec(ctx, p);
    n2_denoiser_schedule schedule = small_schedule();
    const n2_denoiser_run run = {.looks = 1, .quiet = true};
    n2_denoiser_record record;
    n2_denoiser *m;
    double mean[2];
    p->labels = n2_alloc(ctx, p->n, 1);
    assert_non_null(p->labels);
    for (size_t i = 0; i < p->n; i++) { /* black or white */
        p->labels[i] = i % 2;
        memset(p->pixels + i * SIDE * SIDE, i % 2 ? 255 : 0, SIDE * SIDE);
    }
    spec.net.labels = 2;
    schedule.steps = 150;
    schedule.batch = 8;
    schedule.rate = 3e-3;
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    assert_int_equal(n2_denoiser_train(m, p, &schedule, &run, &record), N2CE_OK);
    brightness_of_classes(m, (n2_sampling){.kind = N2_SAMPLER_HEUN, .steps = 6}, mean);
    assert_true(mean[1] > 2 * mean[0]);
    guidance_goes_on_from_untold_to_told(m);
    n2_denoiser_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* ---- augmentation ---- */

typedef struct augmented {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    double x[64 * SIDE * SIDE], told[64 * N2_AUGMENT_NUMBERS];
} augmented;

/* 64 pictures whose pixel (y, x) is a + b x. */
static void augment(augmented *a, double p, double b) {
    enum { N = 64 };
    const n2_shape shape = n2_dims(N, SIDE, SIDE, 1);
    a->ctx = new_ctx(1);
    assert_int_equal(n2_store_new(a->ctx, sizeof(double), &a->store), N2CE_OK);
    n2_tensor *x = n2_store_add(a->store, "x", shape);
    for (int i = 0; i < N * SIDE * SIDE; i++) ((double *)x->data)[i] = 0.5 + b * (i % SIDE);
    a->g = n2_graph_new(a->store);
    n2_node out[2];
    out[0] = n2_augment_pictures(a->g, n2g_read(a->g, x), p, &out[1]);
    assert_int_equal(n2_plan_compile(a->g, n2_ref_backend(), out, 2, &a->plan), N2CE_OK);
    n2_plan_seed(a->plan, 3, 0);
    assert_int_equal(n2_plan_run(a->plan), N2CE_OK);
    n2_plan_get(a->plan, 0, a->x);
    n2_plan_get(a->plan, 1, a->told);
    n2_plan_free(a->plan);
    n2_graph_free(a->g);
    n2_store_free(a->store);
    n2ce_ctx_free(a->ctx);
}

/* With probability 0 there are pictures and mirror images, and what is told says which. */
static void without_augmentation_there_are_mirror_images(void **state) {
    (void)state;
    augmented *a = calloc(1, sizeof *a);
    int mirrored = 0;
    augment(a, 0, 0.1);
    for (int i = 0; i < 64; i++) {
        const double *told = a->told + i * N2_AUGMENT_NUMBERS;
        mirrored += told[0] > 0.5;
        for (int k = 1; k < N2_AUGMENT_NUMBERS; k++) assert_true(told[k] == 0);
        for (int k = 0; k < SIDE * SIDE; k++) {
            const int x = told[0] > 0.5 ? SIDE - 1 - k % SIDE : k % SIDE;
            assert_close(a->x[i * SIDE * SIDE + k], 0.5 + 0.1 * x, 1e-9, 0);
        }
    }
    assert_true(mirrored > 15 && mirrored < 49);
    free(a);
}

/* Means of four pixels: what is all the same stays, and nothing is brighter than the picture. */
static void augmented_pictures_stay_between_their_pixels(void **state) {
    (void)state;
    augmented *a = calloc(1, sizeof *a);
    augment(a, 1, 0);
    for (int i = 0; i < 64 * SIDE * SIDE; i++) assert_close(a->x[i], 0.5, 1e-12, 0);
    augment(a, 1, 0.1);
    for (int i = 0; i < 64 * SIDE * SIDE; i++)
        assert_true(a->x[i] > 0.5 - 1e-9 && a->x[i] < 0.5 + 0.1 * (SIDE - 1) + 1e-9);
    double square = 0; /* of cos - 1 and sin: on the unit circle */
    for (int i = 0; i < 64; i++) {
        const double *told = a->told + i * N2_AUGMENT_NUMBERS;
        square += (told[3] + 1) * (told[3] + 1) + told[4] * told[4];
    }
    assert_close(square, 64, 1e-9, 0);
    free(a);
}

/* And what it was told is no part of what it makes, nor lost in its file. */
static void a_network_that_is_told_samples_without(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = bars(ctx, 40, SIDE, 3), *made;
    n2_denoiser_spec spec = small_spec(ctx, p);
    n2_denoiser_schedule schedule = small_schedule();
    const n2_denoiser_run run = {.looks = 1, .quiet = true};
    n2_denoiser_record record;
    n2_denoiser *m, *back;
    spec.net.augment = N2_AUGMENT_NUMBERS;
    schedule.augment = 0.12;
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    assert_int_equal(n2_denoiser_train(m, p, &schedule, &run, &record), N2CE_OK);
    assert_int_equal(n2_denoiser_save(m, NULL, FILE_NAME, true), N2CE_OK);
    assert_int_equal(n2_denoiser_load(ctx, FILE_NAME, &back), N2CE_OK);
    assert_same_networks(m, back);
    const n2_sampling how = {.kind = N2_SAMPLER_HEUN, .steps = 3};
    assert_int_equal(n2_denoiser_sample(back, &how, -1, 2, 1, &made), N2CE_OK);
    n2_images_free(made);
    n2_denoiser_free(m);
    n2_denoiser_free(back);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
    unlink(FILE_NAME);
}

/* ---- samples ---- */

/* Whatever is made beside it, and in whatever batches. */
static void picture_i_is_always_the_same(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = bars(ctx, 4, SIDE, 3), *few, *many;
    const n2_denoiser_spec spec = small_spec(ctx, p);
    n2_denoiser *m;
    const n2_sampler_kind kinds[] = {N2_SAMPLER_HEUN, N2_SAMPLER_ANCESTRAL, N2_SAMPLER_FASTDPM};
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const n2_sampling how = {.kind = kinds[i], .steps = 4, .churn = 1};
        assert_int_equal(n2_denoiser_sample(m, &how, -1, 3, 5, &few), N2CE_OK);
        assert_int_equal(n2_denoiser_sample(m, &how, -1, 40, 5, &many), N2CE_OK);
        assert_memory_equal(few->pixels, many->pixels, 3 * SIDE * SIDE * 3);
        assert_memory_not_equal(few->pixels, few->pixels + SIDE * SIDE * 3, SIDE * SIDE * 3);
        n2_images_free(few);
        n2_images_free(many);
    }
    n2_denoiser_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* Pixels of one file by those of another, where neither is cut off. */
static double mean_ratio(const n2_images *a, const n2_images *b) {
    double of_a = 0, of_b = 0;
    for (size_t i = 0; i < a->n * SIDE * SIDE * 3; i++) {
        const double x = a->pixels[i] - 127.5, y = b->pixels[i] - 127.5;
        if (fabs(x) < 20 || fabs(x) > 100) continue;
        of_a += fabs(x);
        of_b += fabs(y);
    }
    return of_a / of_b;
}

/* A network that has learnt nothing says D = x / (1 + 4 sigma^2), as if pictures were N(0, 1/4):
 * every rule makes multiples of the noise, of which test_noise_levels.c knows the squares. */
static void an_early_second_look_makes_less_variance(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p = bars(ctx, 4, SIDE, 3), *by_heun, *by_early;
    const n2_denoiser_spec spec = small_spec(ctx, p);
    n2_sampling how = {.kind = N2_SAMPLER_HEUN, .steps = 18};
    n2_denoiser *m;
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    assert_int_equal(n2_denoiser_sample(m, &how, -1, 8, 5, &by_heun), N2CE_OK);
    how.early = 0.4;
    assert_int_equal(n2_denoiser_sample(m, &how, -1, 8, 5, &by_early), N2CE_OK);
    assert_close(mean_ratio(by_heun, by_early), sqrt(1.1136 / 1.0104), 0, 0.005);
    n2_images_free(by_heun);
    n2_images_free(by_early);
    n2_denoiser_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* ---- files ---- */

/* A student needs nothing but its file. */
static void students_come_back_from_files(void **state) {
    (void)state;
    const int methods[] = {N2_DISTILL_SIDA, N2_DISTILL_DXMI};
    for (size_t i = 0; i < 2; i++) {
        trained t = train(1, methods[i], 0);
        n2_denoiser *back;
        n2_images *before, *after;
        const n2_sampling how = n2_denoiser_sampling(&t.student->spec);
        assert_int_equal(n2_denoiser_save(t.student, "{}", FILE_NAME, true), N2CE_OK);
        assert_int_equal(n2_denoiser_save(t.student, NULL, FILE_NAME, false), N2CE_EEXIST);
        assert_int_equal(n2_denoiser_sample(t.student, &how, -1, 5, 1, &before), N2CE_OK);
        n2_denoiser_free(t.teacher);
        t.teacher = NULL;
        assert_true(n2_denoiser_is_model(t.ctx, FILE_NAME));
        assert_int_equal(n2_denoiser_load(t.ctx, FILE_NAME, &back), N2CE_OK);
        assert_same_networks(t.student, back);
        assert_int_equal(n2_denoiser_sample(back, &how, -1, 5, 1, &after), N2CE_OK);
        assert_memory_equal(before->pixels, after->pixels, 5 * SIDE * SIDE * 3);
        n2_images_free(before);
        n2_images_free(after);
        n2_denoiser_free(back);
        drop(&t);
        unlink(FILE_NAME);
    }
}

/* ---- bad input ---- */

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p = bars(ctx, 8, SIDE, 3), *grey = bars(ctx, 8, SIDE, 1), *odd = bars(ctx, 4, 10, 3);
    const n2_denoiser_spec spec = small_spec(ctx, p);
    const n2_denoiser_run run = {.quiet = true};
    n2_denoiser_record record;
    n2_denoiser_spec other;
    n2_denoiser *m, *student;
    assert_int_equal(n2_denoiser_new(ctx, &spec, 1, &m), N2CE_OK);
    n2_distillation task = {.teacher = m, .pictures = grey, .plan = small_plan(N2_DISTILL_SID)};
    assert_int_equal(n2_denoiser_spec_for(ctx, "s", odd, 0, 0, &other), N2CE_EDATA);
    assert_message(ctx, "divisible by 4");
    assert_int_equal(n2_denoiser_spec_for(ctx, "x", p, 0, 0, &other), N2CE_EINVAL);
    assert_int_equal(n2_distill(ctx, &task, &run, &student, &record), N2CE_EDATA);
    assert_message(ctx, "with 1 channel");
    m->spec.kind = N2_DENOISER_ONE_STEP;
    task.pictures = p;
    assert_int_equal(n2_distill(ctx, &task, &run, &student, &record), N2CE_EDATA);
    assert_message(ctx, "distilled already");
    n2_denoiser_free(m);
    n2_images_free(p);
    n2_images_free(grey);
    n2_images_free(odd);
    n2ce_ctx_free(ctx);
}

/* ---- memory ---- */

static n2ce_status whole_life(failing_alloc *memory) {
    const n2ce_ctx_options o = failing_alloc_options(memory, 1);
    n2ce_ctx *ctx;
    n2_images *p = NULL;
    n2_denoiser *m = NULL, *student = NULL;
    n2_denoiser_record record;
    const n2_denoiser_run run = {.looks = 1, .quiet = true};
    n2_denoiser_spec spec;
    N2_TRY(n2ce_ctx_new(&ctx, &o));
    p = bars(ctx, 4, SIDE, 1);
    n2ce_status status = p ? n2_denoiser_spec_for(ctx, "s", p, 4, 0, &spec) : N2CE_ENOMEM;
    spec.net.levels = spec.net.blocks = 1;
    if (status == N2CE_OK) status = n2_denoiser_new(ctx, &spec, 1, &m);
    if (status == N2CE_OK) {
        n2_distillation task = {.teacher = m, .pictures = p, .plan = small_plan(N2_DISTILL_SIDA)};
        task.plan.steps = 3;
        task.plan.batch = 1;
        task.plan.alone = 1;
        status = n2_distill(ctx, &task, &run, &student, &record);
    }
    n2_denoiser_free(student);
    n2_denoiser_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
    return status;
}

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 20) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_and_resumed_is_the_same),
        cmocka_unit_test(a_teacher_learns),
        cmocka_unit_test(classes_are_told_apart),
        cmocka_unit_test(without_augmentation_there_are_mirror_images),
        cmocka_unit_test(augmented_pictures_stay_between_their_pixels),
        cmocka_unit_test(a_network_that_is_told_samples_without),
        cmocka_unit_test(picture_i_is_always_the_same),
        cmocka_unit_test(an_early_second_look_makes_less_variance),
        cmocka_unit_test(students_come_back_from_files),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
