/* Facts about where plans run: the faster one wins, by measurement; a device that is not there, or
 * fails, is done without unless somebody asked for it. No GPU is needed: devices are made up. */
#include "close.h"
#include "cpu/cpu.h"

#include "base/numerics.h"
#include "engine/kernel.h"
#include "train/device_choice.h"

#include <string.h>

static n2_device some_device;
static const n2_backend gpu = {.name = "gpu", .device = &some_device};

/* What happens in a test. */
typedef struct story {
    double here, there;  /* seconds of a step */
    n2ce_status failure; /* of the device's steps */
    int timed[2];        /* how often, here and there */
} story;

static n2ce_ctx *new_ctx(void) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    return ctx;
}

static n2ce_status open_it(const n2_device_choice *choice, n2ce_ctx *ctx, const n2_backend **out) {
    (void)choice;
    (void)ctx;
    *out = &gpu;
    return N2CE_OK;
}

static n2ce_status open_none(const n2_device_choice *choice, n2ce_ctx *ctx,
                             const n2_backend **out) {
    (void)choice;
    *out = NULL;
    return n2_fail(ctx, N2CE_EDEVICE, "There is no GPU.");
}

static n2ce_status time_it(void *user, const n2_backend *backend, double *seconds) {
    story *s = user;
    const bool there = backend == &gpu;
    s->timed[there]++;
    *seconds = there ? s->there : s->here;
    return there ? s->failure : N2CE_OK;
}

static n2_device_choice settle(n2_device_open *open, double flops, story *s) {
    n2_device_choice choice = {.open = open, .optional = true};
    n2ce_ctx *ctx = new_ctx();
    assert_int_equal(n2_choice_settle(&choice, ctx, flops, time_it, s), N2CE_OK);
    assert_null(choice.open);
    n2ce_ctx_free(ctx);
    return choice;
}

static void the_faster_one_wins(void **state) {
    (void)state;
    story slow = {.here = 0.1, .there = 0.01}, quick = {.here = 0.01, .there = 0.1};
    const n2_device_choice a = settle(open_it, N2_INFINITY, &slow);
    assert_ptr_equal(n2_choice_backend(&a), &gpu);
    assert_non_null(strstr(a.reason, "10 ms a step, against 100 ms on the processor"));
    const n2_device_choice b = settle(open_it, N2_INFINITY, &quick);
    assert_ptr_equal(n2_choice_backend(&b), n2_cpu_backend());
    assert_non_null(strstr(b.reason, "10 ms a step, against 100 ms on gpu"));
}

/* It is opened and used, however little the work is and whatever it costs, or the task fails. */
static void what_was_asked_for_is_not_compared(void **state) {
    (void)state;
    story s = {.here = 0.01, .there = 0.1};
    n2ce_ctx *ctx = new_ctx();
    n2_device_choice choice = {.open = open_it, .asked_for = true};
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(n2_choice_settle(&choice, ctx, 0, time_it, &s), N2CE_OK);
        assert_ptr_equal(n2_choice_backend(&choice), &gpu);
    }
    choice = (n2_device_choice){.open = open_none, .asked_for = true};
    assert_int_equal(n2_choice_settle(&choice, ctx, 0, time_it, &s), N2CE_EDEVICE);
    assert_string_equal(n2ce_errmsg(ctx), "There is no GPU.");
    assert_int_equal(s.timed[0] + s.timed[1], 0);
    n2ce_ctx_free(ctx);
}

static void without_a_device_nothing_is_timed(void **state) {
    (void)state;
    story s = {.here = 1};
    const n2_device_choice choice = settle(open_none, N2_INFINITY, &s);
    assert_ptr_equal(n2_choice_backend(&choice), n2_cpu_backend());
    assert_string_equal(choice.reason, "There is no GPU.");
    assert_int_equal(s.timed[0] + s.timed[1], 0);
}

static void a_little_work_does_not_open_a_device(void **state) {
    (void)state;
    story s = {.here = 1, .there = 0.1};
    const n2_device_choice choice = settle(open_it, 1e6, &s);
    assert_ptr_equal(n2_choice_backend(&choice), n2_cpu_backend());
    assert_int_equal(s.timed[0] + s.timed[1], 0);
}

static void what_is_settled_stays(void **state) {
    (void)state;
    story s = {.here = 0.01, .there = 1};
    n2_device_choice choice = {.backend = &gpu};
    assert_int_equal(n2_choice_settle(&choice, NULL, N2_INFINITY, time_it, &s), N2CE_OK);
    assert_int_equal(n2_choice_settle(NULL, NULL, N2_INFINITY, time_it, &s), N2CE_OK);
    assert_ptr_equal(n2_choice_backend(&choice), &gpu);
    assert_ptr_equal(n2_choice_backend(NULL), n2_cpu_backend());
    assert_int_equal(s.timed[0] + s.timed[1], 0);
}

static void a_device_that_fails_loses(void **state) {
    (void)state;
    story s = {.here = 1, .there = 0.1, .failure = N2CE_EDEVICE};
    const n2_device_choice choice = settle(open_it, N2_INFINITY, &s);
    assert_ptr_equal(n2_choice_backend(&choice), n2_cpu_backend());
}

/* Only a device's failure, and only where nobody asked for it. */
static void when_to_retreat(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx();
    n2_device_choice choice = {.backend = &gpu};
    assert_false(n2_choice_retreat(&choice, ctx, N2CE_EDEVICE));
    assert_false(n2_choice_retreat(NULL, ctx, N2CE_EDEVICE));
    choice.optional = true;
    assert_false(n2_choice_retreat(&choice, ctx, N2CE_ENAN));
    assert_false(n2_choice_retreat(&choice, ctx, N2CE_OK));
    assert_true(n2_choice_retreat(&choice, ctx, N2CE_EDEVICE));
    assert_false(n2_choice_retreat(&choice, ctx, N2CE_EDEVICE)); /* it is on the processor now */
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_one_wins),
        cmocka_unit_test(what_was_asked_for_is_not_compared),
        cmocka_unit_test(without_a_device_nothing_is_timed),
        cmocka_unit_test(a_little_work_does_not_open_a_device),
        cmocka_unit_test(what_is_settled_stays),
        cmocka_unit_test(a_device_that_fails_loses),
        cmocka_unit_test(when_to_retreat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
