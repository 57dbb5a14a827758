/* How odd pictures are: bars that lie are normal, bars that stand are not. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/random.h"
#include "lebm/oddity_parts.h"
#include "metric/ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST = 100, SIDE = 28, BAR = 4, LYING = 400, JUDGED = 60 };

/* A white bar at a place of its own, which lies or stands. */
static void paint(n2_images *p, size_t i, bool stands) {
    unsigned char *x = p->pixels + i * SIDE * SIDE;
    const size_t from = 2 + i * 7 % 20, along = 2 + i * 3 % 8;
    for (size_t a = 0; a < BAR; a++)
        for (size_t b = along; b < along + 16; b++)
            x[stands ? b * SIDE + from + a : (from + a) * SIDE + b] = 255;
}

/* The first are normal. */
static n2_images *bars(n2ce_ctx *ctx, size_t lying, size_t standing) {
    n2_images *p;
    assert_int_equal(n2_images_new(ctx, lying + standing, SIDE, SIDE, 1, &p), N2CE_OK);
    for (size_t i = 0; i < p->n; i++) paint(p, i, i >= lying);
    return p;
}

static n2_oddity_spec small(uint64_t steps) {
    n2_oddity_spec s = n2_oddity_defaults(n2_image_spec_named("mnist"));
    s.width = 2;
    s.nz = 4;
    s.batch = 32;
    s.vae_steps = steps;
    s.steps = steps / 2;
    s.members = 2;
    s.vae_rate = s.rate = 3e-3;
    return s;
}

static double *nats_of(n2ce_ctx *ctx, uint64_t steps, const n2_images *normal,
                       const n2_images *judged) {
    const n2_oddity_spec spec = small(steps);
    n2_oddity *o;
    double *nats = calloc(judged->n * N2_ODDITY_PARTS, sizeof *nats);
    assert_non_null(nats);
    assert_int_equal(n2_oddity_learn(ctx, &spec, normal, 1, NULL, &o), N2CE_OK);
    assert_int_equal(n2_oddity_nats(o, judged, nats, NULL), N2CE_OK);
    n2_oddity_free(o);
    return nats;
}

static void standing_bars_are_odd(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *normal = bars(ctx, LYING, 0), *judged = bars(ctx, JUDGED, JUDGED);
    double *nats = nats_of(ctx, 60, normal, judged), scores[2 * JUDGED];
    unsigned char is_odd[2 * JUDGED];
    n2_rank_areas r;
    for (size_t i = 0; i < 2 * JUDGED; i++) {
        is_odd[i] = i >= JUDGED;
        scores[i] = n2_oddity_score(nats + i * N2_ODDITY_PARTS);
        assert_true(isfinite(scores[i]));
    }
    assert_int_equal(n2_rank_scores(ctx, scores, is_odd, 2 * JUDGED, &r), N2CE_OK);
    assert_true(r.auroc > 0.95);
    free(nats);
    n2_images_free(judged);
    n2_images_free(normal);
    n2ce_ctx_free(ctx);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    double *nats[2];
    for (int k = 0; k < 2; k++) {
        n2ce_ctx *ctx = new_ctx(1 + 2 * k);
        n2_images *normal = bars(ctx, 200, 0), *judged = bars(ctx, 5, 5);
        nats[k] = nats_of(ctx, 6, normal, judged);
        n2_images_free(judged);
        n2_images_free(normal);
        n2ce_ctx_free(ctx);
    }
    assert_memory_equal(nats[0], nats[1], 10 * N2_ODDITY_PARTS * sizeof(double));
    free(nats[0]);
    free(nats[1]);
}

static void pictures_must_be_enough_and_of_the_size(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const n2_oddity_spec spec = small(1);
    n2_images *few = bars(ctx, 99, 0), *wide;
    n2_oddity *o;
    assert_int_equal(n2_images_new(ctx, 200, 32, 32, 3, &wide), N2CE_OK);
    assert_int_equal(n2_oddity_learn(ctx, &spec, few, 1, NULL, &o), N2CE_EDATA);
    assert_null(o);
    assert_int_equal(n2_oddity_learn(ctx, &spec, wide, 1, NULL, &o), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "32 x 32"));
    n2_images_free(few);
    n2_images_free(wide);
    n2ce_ctx_free(ctx);
}

/* Whatever the networks have learnt, a normal picture has every rank with the same probability. */
static void p_values_of_normal_pictures_are_uniform(void **state) {
    (void)state;
    enum { SEEDS = 6, NEW = 40 };
    double sum = 0, squares = 0;
    for (size_t seed = 0; seed < SEEDS; seed++) {
        n2ce_ctx *ctx = new_ctx(2);
        n2_images *normal, *new;
        n2_oddity *o;
        n2_oddity_spec spec = small(4);
        double nats[NEW * N2_ODDITY_PARTS], scores[NEW];
        size_t n;
        spec.members = 1;
        assert_int_equal(n2_images_new(ctx, 400, SIDE, SIDE, 1, &normal), N2CE_OK);
        assert_int_equal(n2_images_new(ctx, NEW, SIDE, SIDE, 1, &new), N2CE_OK);
        for (size_t i = 0; i < 400 + NEW; i++) { /* any of 160 bars */
            n2_images *p = i < 400 ? normal : new;
            unsigned char *x = p->pixels + (i < 400 ? i : i - 400) * SIDE * SIDE;
            const size_t k = n2_random_below((n2_stream){seed, 3, 0}, i, 160);
            for (size_t a = 0; a < BAR * 16; a++)
                x[(2 + k % 20 + a / 16) * SIDE + 2 + k / 20 + a % 16] = 255;
        }
        assert_int_equal(n2_oddity_learn(ctx, &spec, normal, seed, NULL, &o), N2CE_OK);
        assert_int_equal(n2_oddity_nats(o, new, nats, scores), N2CE_OK);
        const double *ranked = n2_oddity_ranked(o, &n);
        for (size_t i = 0; i < NEW; i++) {
            const double p = (double)n2_conformal_rank(ranked, n, scores[i], 0.5) / (double)(n + 1);
            sum += p / (SEEDS * NEW);
            squares += p * p / (SEEDS * NEW);
        }
        n2_oddity_free(o);
        n2_images_free(normal);
        n2_images_free(new);
        n2ce_ctx_free(ctx);
    }
    assert_true(fabs(sum - 0.5) < 0.12); /* three standard deviations, nearly all by 6 x 20 ranks */
    assert_true(fabs(squares - 1.0 / 3) < 0.12);
}

/* Nothing is to be learnt from pictures that are all the same, and nothing goes wrong. */
static void black_pictures_are_survived(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *normal, *judged = bars(ctx, 1, 1);
    n2_oddity *o;
    const n2_oddity_spec spec = small(2);
    double nats[2 * N2_ODDITY_PARTS];
    assert_int_equal(n2_images_new(ctx, 120, SIDE, SIDE, 1, &normal), N2CE_OK);
    assert_int_equal(n2_oddity_learn(ctx, &spec, normal, 1, NULL, &o), N2CE_OK);
    assert_int_equal(n2_oddity_nats(o, judged, nats, NULL), N2CE_OK);
    for (size_t i = 0; i < 2 * N2_ODDITY_PARTS; i++) assert_true(isfinite(nats[i]));
    assert_true(n2_oddity_score(nats) > 3);
    n2_oddity_free(o);
    n2_images_free(normal);
    n2_images_free(judged);
    n2ce_ctx_free(ctx);
}

/* What is loaded says the same of pictures, to the byte; a file that is cut says so. */
static void models_can_be_saved(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const n2_oddity_spec spec = small(2);
    n2_images *normal = bars(ctx, 120, 0), *judged = bars(ctx, 6, 6);
    double before[12 * N2_ODDITY_PARTS], after[12 * N2_ODDITY_PARTS], scores[2][24];
    const char *path = "test_oddity.n2ce";
    n2_oddity *o, *loaded;
    size_t n, m;
    assert_int_equal(n2_oddity_learn(ctx, &spec, normal, 1, NULL, &o), N2CE_OK);
    assert_int_equal(n2_oddity_nats(o, judged, before, scores[0]), N2CE_OK);
    assert_int_equal(n2_oddity_save(o, path, true), N2CE_OK);
    assert_int_equal(n2_oddity_save(o, path, false), N2CE_EEXIST);
    assert_int_equal(n2_oddity_load(ctx, path, NULL, &loaded), N2CE_OK);
    assert_int_equal(n2_oddity_nats(loaded, judged, after, scores[1]), N2CE_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    const double *x = n2_oddity_ranked(o, &n), *y = n2_oddity_ranked(loaded, &m);
    assert_int_equal(n, m);
    assert_int_equal(n, 12); /* a tenth of 120 by each member, every second of them */
    assert_memory_equal(x, y, n * sizeof *x);
    n2_oddity_free(loaded);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(n2_oddity_load(ctx, path, NULL, &loaded), N2CE_EDATA);
    o->members[0].spec.width = 4096; /* gigabytes, as the file has it, which are not begun */
    assert_int_equal(n2_oddity_save(o, path, true), N2CE_OK);
    assert_int_equal(n2_oddity_load(ctx, path, NULL, &loaded), N2CE_EDATA);
    o->members[0].spec.width = spec.width;
    o->members[0].held_out[7] = (double)NAN;
    assert_int_equal(n2_oddity_save(o, path, true), N2CE_OK);
    assert_int_equal(n2_oddity_load(ctx, path, NULL, &loaded), N2CE_EDATA);
    o->members[0].held_out[7] = 1;
    o->members[1].codes[3] = INFINITY;
    assert_int_equal(n2_oddity_save(o, path, true), N2CE_OK);
    assert_int_equal(n2_oddity_load(ctx, path, NULL, &loaded), N2CE_EDATA);
    n2_oddity_free(o);
    assert_null(loaded);
    remove(path);
    n2_images_free(judged);
    n2_images_free(normal);
    n2ce_ctx_free(ctx);
}

/* Networks as they are drawn: memory is asked for all the same. */
static n2ce_status whole_life(failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2_oddity_spec spec = small(0);
    n2_images *p = NULL;
    n2_oddity *o = NULL;
    double nats[LEAST * N2_ODDITY_PARTS];
    n2ce_ctx *ctx;
    if (n2ce_ctx_new(&ctx, &options) != N2CE_OK) return N2CE_ENOMEM;
    spec.members = 1;
    n2ce_status status = n2_images_new(ctx, LEAST, SIDE, SIDE, 1, &p);
    for (size_t i = 0; p && i < LEAST; i++) paint(p, i, i % 2);
    if (status == N2CE_OK) status = n2_oddity_learn(ctx, &spec, p, 1, NULL, &o);
    if (status == N2CE_OK) status = n2_oddity_nats(o, p, nats, NULL);
    n2_oddity_free(o);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
    return status;
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 12) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standing_bars_are_odd),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(pictures_must_be_enough_and_of_the_size),
        cmocka_unit_test(p_values_of_normal_pictures_are_uniform),
        cmocka_unit_test(black_pictures_are_survived),
        cmocka_unit_test(models_can_be_saved),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
