/* Latent energy-based models of pictures: training, its interruption, files, sampling. */
#include "contexts.h"
#include "failing_alloc.h"
#include "files.h"

#include "lebm/lebm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 12, PICTURES = 160 };

/* Eight kinds of shapes, bright on black: bars, crosses, frames, discs and so on, moved about. */
static bool is_inside(size_t kind, int y, int x) {
    switch (kind) {
    case 0:
        return abs(x) < 2;
    case 1:
        return abs(y) < 2;
    case 2:
        return abs(x) < 2 || abs(y) < 2;
    case 3:
        return abs(x - y) < 2;
    case 4:
        return abs(x + y) < 2;
    case 5:
        return x * x + y * y < 12;
    case 6:
        return abs(abs(x) - 3) < 1 || abs(abs(y) - 3) < 1;
    default:
        return x > 0 && y > 0;
    }
}

static n2_images *shapes(n2ce_ctx *ctx, size_t n, size_t side, size_t channels) {
    n2_images *p;
    assert_int_equal(n2_images_new(ctx, n, side, side, channels, &p), N2CE_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t y = 0; y < side; y++)
            for (size_t x = 0; x < side; x++)
                for (size_t c = 0; c < channels; c++) {
                    const int half = (int)side / 2, move = (int)(i / 8 % 3) - 1;
                    const bool in = is_inside(i % 8, (int)y - half + move, (int)x - half - move);
                    p->pixels[((i * side + y) * side + x) * channels + c] =
                        in ? (unsigned char)(255 - 60 * c) : 0;
                }
    return p;
}

static n2_lebm_spec small_spec(const n2_images *p, n2_prior_kind kind) {
    n2_lebm_spec s = n2_lebm_defaults(n2_image_spec_named(p->channels == 1 ? "mnist" : "svhn"));
    s.frame = (n2_lebm_frame){p->height, p->width, p->channels};
    s.nz = 4;
    s.encoder_width = s.decoder_width = 4;
    s.embedding = 16;
    s.prior.kind = kind;
    s.prior.fitted = kind == N2_PRIOR_N2CE;
    s.prior.noise = 4;
    s.prior.width = 16;
    s.prior.moves = 5;
    if (kind == N2_PRIOR_MLE) s.prior.stages = 1;
    return s;
}

static n2_lebm_run small_run(const n2_lebm_spec *spec, uint64_t vae, uint64_t prior,
                             uint64_t joint) {
    n2_lebm_run r = {.schedule = n2_lebm_schedule_for(spec)};
    r.schedule.seed = 5;
    r.schedule.batch = 16;
    r.schedule.vae_rate = r.schedule.prior_rate = 2e-3;
    r.schedule.steps[N2_LEBM_VAE] = vae;
    r.schedule.steps[N2_LEBM_PRIOR] = prior;
    r.schedule.steps[N2_LEBM_JOINT] = joint;
    r.schedule.steps[N2_LEBM_SETTLE] = joint;
    return r;
}

static n2_lebm *new_lebm(n2ce_ctx *ctx, const n2_lebm_spec *spec) {
    n2_lebm *m;
    assert_int_equal(n2_lebm_new(ctx, spec, 5, &m), N2CE_OK);
    return m;
}

static void train(n2_lebm *m, const n2_images *p, const n2_lebm_run *run, n2_lebm_record *record) {
    n2_lebm_record unread;
    if (n2_lebm_train(m, p, run, record ? record : &unread) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(m->ctx));
}

static const char PATH[] = "test_lebm.model", STATE[] = "test_lebm.checkpoint";

/* The bytes of the model as a file; free them. */
static char *bytes_of(const n2_lebm *m, size_t *n) {
    assert_int_equal(n2_lebm_save(m, NULL, PATH, true), N2CE_OK);
    FILE *file = fopen(PATH, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 22);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    unlink(PATH);
    return bytes;
}

static void assert_same_models(const n2_lebm *a, const n2_lebm *b) {
    size_t n, k;
    char *x = bytes_of(a, &n), *y = bytes_of(b, &k);
    assert_int_equal(n, k);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

/* The misfit falls, and what is told of the end is what a look at the start of another phase would
 * tell. */
static void a_model_learns_pictures(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = shapes(ctx, PICTURES, SIDE, 1);
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_N2CE);
    n2_lebm *m = new_lebm(ctx, &spec);
    n2_lebm_record r;
    const n2_lebm_run run = small_run(&spec, 150, 60, 30);
    train(m, p, &run, &r);
    assert_true(r.looks > 15 && r.steps[N2_LEBM_JOINT] == 30);
    const n2_lebm_look *first = &r.look[0], *last = &r.look[r.looks - 1];
    assert_int_equal(first->phase, N2_LEBM_VAE);
    assert_int_equal(last->phase, N2_LEBM_SETTLE);
    assert_int_equal(last->step, 30);
    assert_true(last->misfit < 0.5 * first->misfit);
    n2_lebm_free(m);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

static double ratio_at_the_end(const n2_lebm_record *r) {
    double sum = 0;
    for (size_t k = 0; k < N2_PRIOR_STAGES_MAX; k++) sum += r->look[r->looks - 1].ratio[k];
    return sum;
}

/* The last phase makes codes as they are more likely, and codes pictures as before. */
static void the_prior_settles_on_codes_that_stand_still(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = shapes(ctx, PICTURES, SIDE, 1);
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_N2CE);
    n2_lebm *m[2];
    n2_lebm_record r[2];
    for (int i = 0; i < 2; i++) {
        n2_lebm_run run = small_run(&spec, 100, 5, 30);
        run.schedule.steps[N2_LEBM_SETTLE] = i ? 150 : 0;
        m[i] = new_lebm(ctx, &spec);
        train(m[i], p, &run, &r[i]);
    }
    const n2_parameters *a = &m[0]->nets.vae, *b = &m[1]->nets.vae;
    for (size_t i = 0; i < a->n; i++)
        assert_memory_equal(a->list[i]->data, b->list[i]->data,
                            n2_tensor_bytes(m[0]->store, a->list[i]));
    assert_true(ratio_at_the_end(&r[1]) > ratio_at_the_end(&r[0]) + 0.05);
    for (int i = 0; i < 2; i++) n2_lebm_free(m[i]);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* All kinds of priors: 1 and 2 threads give the same file, and so does a run that was stopped by
 * Ctrl-C in any phase and went on. */
static n2ce_ctx *to_cancel;
static void stop_soon(void *user, double done, double total) {
    (void)total;
    if (done >= *(const double *)user) n2ce_ctx_cancel(to_cancel);
}

static n2_lebm *trained(int threads, n2_prior_kind kind, bool colour, double stop_at) {
    static double until;
    until = stop_at > 0 ? stop_at : 1e9;
    unlink(STATE);
    n2ce_ctx_options o = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    o.threads = threads;
    o.progress = stop_soon;
    o.progress_user = &until;
    assert_int_equal(n2ce_ctx_new(&ctx, &o), N2CE_OK);
    to_cancel = ctx;
    n2_images *p = shapes(ctx, 40, SIDE, colour ? 3 : 1);
    const n2_lebm_spec spec = small_spec(p, kind);
    n2_lebm_run run = small_run(&spec, 12, 12, 8);
    n2_lebm_record record;
    run.checkpoint = STATE;
    run.resume = true;
    n2_lebm *m = new_lebm(ctx, &spec);
    if (stop_at > 0) {
        assert_int_equal(n2_lebm_train(m, p, &run, &record), N2CE_ECANCELED);
        n2_lebm_free(m);
        m = new_lebm(ctx, &spec);
        until = 1e9;
        n2_cancel_reset(ctx);
    }
    train(m, p, &run, &record);
    assert_int_equal(record.resumed, stop_at > 0);
    n2_images_free(p);
    unlink(STATE);
    return m;
}

static void drop(n2_lebm *m) {
    n2ce_ctx *ctx = m->ctx;
    n2_lebm_free(m);
    n2ce_ctx_free(ctx);
}

static void any_number_of_threads_and_any_stop_give_the_same_file(void **state) {
    (void)state;
    const n2_prior_kind kinds[] = {N2_PRIOR_GAUSSIAN, N2_PRIOR_N2CE, N2_PRIOR_MLE};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        n2_lebm *plain = trained(1, kinds[i], false, 0);
        n2_lebm *other = trained(3, kinds[i], false, 0);
        assert_same_models(plain, other);
        drop(other);
        for (double at = 5; at < (i ? 40 : 12); at += 13) {
            other = trained(2, kinds[i], false, at);
            assert_same_models(plain, other);
            drop(other);
        }
        drop(plain);
    }
}

/* Mirror images are drawn too, and a stop changes nothing. */
static void pictures_with_colours_are_mirrored(void **state) {
    (void)state;
    n2_lebm *plain = trained(2, N2_PRIOR_N2CE, true, 0),
            *other = trained(2, N2_PRIOR_N2CE, true, 18);
    assert_same_models(plain, other);
    drop(other);
    drop(plain);
}

/* Codes of mirror images are those of pictures that are mirrored by hand. */
static void codes_of_mirror_images(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = shapes(ctx, 20, SIDE, 3), *q = shapes(ctx, 20, SIDE, 3);
    const size_t row = SIDE * 3;
    for (size_t i = 0; i < 20 * SIDE; i++)
        for (size_t x = 0; x < SIDE; x++)
            memcpy(q->pixels + i * row + 3 * x, p->pixels + i * row + 3 * (SIDE - 1 - x), 3);
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_GAUSSIAN);
    n2_lebm *m = new_lebm(ctx, &spec);
    float a[20 * 8], b[20 * 8];
    assert_int_equal(n2_lebm_codes(m, p, true, a), N2CE_OK);
    assert_int_equal(n2_lebm_codes(m, q, false, b), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(a); i++) assert_close((double)a[i], (double)b[i], 1e-5, 1e-6);
    n2_lebm_free(m);
    n2_images_free(p);
    n2_images_free(q);
    n2ce_ctx_free(ctx);
}

/* What is in the file is the model: the same pictures to the byte; more of them begin with them. */
static void a_file_is_the_model(void **state) {
    (void)state;
    n2_lebm *m = trained(2, N2_PRIOR_N2CE, false, 0), *again;
    n2_images *a, *b, *more;
    const n2_lebm_sampling how = {.rows = 32};
    assert_int_equal(n2_lebm_save(m, "a note", PATH, false), N2CE_OK);
    assert_int_equal(n2_lebm_save(m, "a note", PATH, false), N2CE_EEXIST);
    assert_int_equal(n2_lebm_load(m->ctx, PATH, &again), N2CE_OK);
    assert_int_equal(n2_lebm_sample(m, &how, 40, 10, 3, &a), N2CE_OK);
    assert_int_equal(n2_lebm_sample(again, &how, 40, 10, 3, &b), N2CE_OK);
    assert_int_equal(n2_lebm_sample(again, &how, 70, 10, 3, &more), N2CE_OK);
    const size_t bytes = 40 * SIDE * SIDE;
    assert_memory_equal(a->pixels, b->pixels, bytes);
    assert_memory_equal(a->pixels, more->pixels, bytes);
    n2_images_free(a);
    n2_images_free(b);
    n2_images_free(more);
    n2_lebm_free(again);
    drop(m);
    unlink(PATH);
}

/* Ratios are a density, which exact chains draw from; what was learnt for plain chains is drawn by
 * plain chains. */
static void chains_are_those_that_suit_the_prior(void **state) {
    (void)state;
    const n2_prior_kind kinds[] = {N2_PRIOR_N2CE, N2_PRIOR_MLE};
    const size_t bytes = 40 * SIDE * SIDE;
    for (size_t i = 0; i < 2; i++) {
        n2_lebm *m = trained(2, kinds[i], false, 0);
        n2_images *made[3];
        for (int chains = N2_LEBM_AUTO; chains <= N2_LEBM_ADJUSTED; chains++) {
            const n2_lebm_sampling how = {.rows = 40, .chains = (n2_lebm_chains)chains};
            assert_int_equal(n2_lebm_sample(m, &how, 40, 20, 3, &made[chains]), N2CE_OK);
        }
        const int suits = kinds[i] == N2_PRIOR_N2CE ? N2_LEBM_ADJUSTED : N2_LEBM_PLAIN;
        assert_memory_equal(made[N2_LEBM_AUTO]->pixels, made[suits]->pixels, bytes);
        assert_memory_not_equal(made[N2_LEBM_PLAIN]->pixels, made[N2_LEBM_ADJUSTED]->pixels, bytes);
        for (size_t k = 0; k < 3; k++) n2_images_free(made[k]);
        drop(m);
    }
}

/* A damaged file, one of something else, and one that ends too soon. */
static void files_that_are_no_models(void **state) {
    (void)state;
    size_t n;
    n2_lebm *m = trained(1, N2_PRIOR_N2CE, false, 0), *again;
    n2ce_ctx *ctx = m->ctx;
    char *bytes = bytes_of(m, &n);
    bytes[n - 5] ^= 1;
    write_bytes(PATH, bytes, n);
    assert_int_equal(n2_lebm_load(ctx, PATH, &again), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "check sum"));
    write_bytes(PATH, bytes, n / 2);
    assert_int_equal(n2_lebm_load(ctx, PATH, &again), N2CE_EDATA);
    write_bytes(PATH, "no model at all", 15);
    assert_int_equal(n2_lebm_load(ctx, PATH, &again), N2CE_EDATA);
    assert_null(again);
    free(bytes);
    unlink(PATH);
    drop(m);
}

/* Its check sum fits, its sizes are those of networks of terabytes: none of them is begun. */
static void a_file_that_says_more_than_it_holds(void **state) {
    (void)state;
    n2_lebm *m = trained(1, N2_PRIOR_N2CE, false, 0), *again;
    n2ce_ctx *ctx = m->ctx;
    n2_lebm_spec *s = &m->nets.spec;
    int64_t *const sizes[] = {&s->encoder_width, &s->embedding, &s->decoder_width, &s->nz,
                              &s->prior.width};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const int64_t right = *sizes[i];
        *sizes[i] = 65536;
        assert_int_equal(n2_lebm_save(m, NULL, PATH, true), N2CE_OK);
        assert_int_equal(n2_lebm_load(ctx, PATH, &again), N2CE_EDATA);
        assert_non_null(strstr(n2ce_errmsg(ctx), "does not fit"));
        *sizes[i] = right;
    }
    unlink(PATH);
    drop(m);
}

static void a_checkpoint_of_other_pictures_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p = shapes(ctx, 40, SIDE, 1);
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_N2CE);
    n2_lebm_run run = small_run(&spec, 4, 4, 0);
    n2_lebm_record record;
    run.checkpoint = STATE;
    n2_lebm *m = new_lebm(ctx, &spec);
    train(m, p, &run, NULL);
    n2_lebm_free(m);
    p->pixels[77] ^= 1;
    run.resume = true;
    m = new_lebm(ctx, &spec);
    assert_int_equal(n2_lebm_train(m, p, &run, &record), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "other pictures"));
    n2_lebm_free(m);
    n2_images_free(p);
    unlink(STATE);
    n2ce_ctx_free(ctx);
}

/* Pictures of another size than the model's; too large for any net; coloured ones for a grey net.
 */
static void sizes_are_checked(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p = shapes(ctx, 16, SIDE, 1), *wide = shapes(ctx, 16, 30, 1);
    n2_images *huge = shapes(ctx, 1, 300, 1), *red = shapes(ctx, 16, 20, 3);
    const n2_image_spec *net;
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_GAUSSIAN);
    const n2_lebm_run run = small_run(&spec, 2, 0, 0);
    n2_lebm *m = new_lebm(ctx, &spec);
    n2_lebm_record record;
    assert_int_equal(n2_lebm_train(m, wide, &run, &record), N2CE_EDATA);
    assert_int_equal(n2_lebm_net_for(ctx, wide, "auto", &net), N2CE_OK);
    assert_string_equal(net->name, "svhn");
    assert_int_equal(n2_lebm_net_for(ctx, p, "auto", &net), N2CE_OK);
    assert_string_equal(net->name, "mnist");
    assert_int_equal(n2_lebm_net_for(ctx, red, "auto", &net), N2CE_OK);
    assert_string_equal(net->name, "svhn");
    assert_int_equal(n2_lebm_net_for(ctx, red, "mnist", &net), N2CE_EDATA);
    assert_int_equal(n2_lebm_net_for(ctx, huge, "auto", &net), N2CE_EDATA);
    n2_lebm_free(m);
    n2_images *const all[] = {p, wide, huge, red};
    for (size_t i = 0; i < COUNT_OF(all); i++) n2_images_free(all[i]);
    n2ce_ctx_free(ctx);
}

/* Pictures and reconstructions in turns; the ends of a line are the reconstructions. */
static void lines_begin_and_end_at_the_codes(void **state) {
    (void)state;
    n2_lebm *m = trained(2, N2_PRIOR_GAUSSIAN, true, 0);
    n2_images *p = shapes(m->ctx, 5, SIDE, 3), *pairs, *line;
    const size_t bytes = SIDE * SIDE * 3;
    assert_int_equal(n2_lebm_reconstruct(m, p, &pairs), N2CE_OK);
    assert_int_equal(n2_lebm_interpolate(m, p, 6, &line), N2CE_OK);
    assert_int_equal(pairs->n, 10);
    assert_int_equal(line->n, 12);
    assert_memory_equal(pairs->pixels + 2 * bytes, p->pixels + bytes, bytes);
    assert_memory_equal(line->pixels, pairs->pixels + bytes, bytes);
    assert_memory_equal(line->pixels + 5 * bytes, pairs->pixels + 3 * bytes, bytes);
    assert_memory_equal(line->pixels + 11 * bytes, pairs->pixels + 7 * bytes, bytes);
    n2_images_free(p);
    n2_images_free(pairs);
    n2_images_free(line);
    drop(m);
}

/* A prior over N(0, I) that has learnt nothing but a constant gains nothing, whatever the constant.
 */
static void a_gain_does_not_depend_on_constants(void **state) {
    (void)state;
    n2_lebm *m = trained(2, N2_PRIOR_N2CE, false, 0);
    double z[40 * 4];
    n2_lebm_gain gain;
    static const double origin[4], unit[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    assert_int_equal(n2_prior_set_base(m->store, &m->nets.prior, origin, unit), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(z); i++) z[i] = sin((double)i);
    const n2_layer *out = &m->nets.prior.net.out;
    memset(out->weight->data, 0, (size_t)n2_elements(out->weight->shape) * sizeof(float));
    *(float *)out->bias->data = 2;
    assert_int_equal(n2_lebm_prior_gain(m, z, 40, 1, &gain), N2CE_OK);
    assert_close(gain.nats, 0, 0, 1e-5);
    assert_close(gain.draws, 50000, 1e-6, 0);
    drop(m);
}

/* Trained, saved, loaded, sampled, on this allocator. */
static n2ce_status whole_life(n2ce_ctx *ctx, const n2_images *p) {
    const n2_lebm_spec spec = small_spec(p, N2_PRIOR_N2CE);
    const n2_lebm_run run = small_run(&spec, 1, 1, 1);
    n2_lebm *m = NULL, *again = NULL;
    n2_lebm_record record;
    n2_images *made = NULL, *pairs = NULL;
    n2ce_status status = n2_lebm_new(ctx, &spec, 1, &m);
    if (status == N2CE_OK) status = n2_lebm_train(m, p, &run, &record);
    if (status == N2CE_OK) status = n2_lebm_save(m, "note", PATH, true);
    if (status == N2CE_OK) status = n2_lebm_load(ctx, PATH, &again);
    const n2_lebm_sampling how = {.rows = 4};
    if (status == N2CE_OK) status = n2_lebm_sample(again, &how, 6, 2, 1, &made);
    if (status == N2CE_OK) status = n2_lebm_reconstruct(again, p, &pairs);
    n2_images_free(made);
    n2_images_free(pairs);
    n2_lebm_free(m);
    n2_lebm_free(again);
    return status;
}

/* Out of memory at many an allocation: an error that says so, and nothing leaks. */
static void no_memory_is_an_error(void **state) {
    (void)state;
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 0; status != N2CE_OK; n += 1 + n / 12) {
        failing_alloc memory = failing_alloc_new(n, true);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        status = n2ce_ctx_new(&ctx, &options);
        n2_images *p = NULL;
        if (status == N2CE_OK) status = n2_images_new(ctx, 4, SIDE, SIDE, 1, &p);
        if (status == N2CE_OK) status = whole_life(ctx, p);
        if (status != N2CE_OK) assert_int_equal(status, N2CE_ENOMEM);
        n2_images_free(p);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
    unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_learns_pictures),
        cmocka_unit_test(the_prior_settles_on_codes_that_stand_still),
        cmocka_unit_test(any_number_of_threads_and_any_stop_give_the_same_file),
        cmocka_unit_test(pictures_with_colours_are_mirrored),
        cmocka_unit_test(codes_of_mirror_images),
        cmocka_unit_test(a_file_is_the_model),
        cmocka_unit_test(chains_are_those_that_suit_the_prior),
        cmocka_unit_test(files_that_are_no_models),
        cmocka_unit_test(a_file_that_says_more_than_it_holds),
        cmocka_unit_test(a_checkpoint_of_other_pictures_is_refused),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(lines_begin_and_end_at_the_codes),
        cmocka_unit_test(a_gain_does_not_depend_on_constants),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
