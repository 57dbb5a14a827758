/* Facts about the methods that propose designs. */
#include "bbo_data.h"
#include "cpu/cpu.h"
#include "design/design_space.h"
#include "engine/kernel.h"
#include "failing_alloc.h"
#include "optimize/cma.h"
#include "optimize/design_code.h"
#include "optimize/methods.h"

#include <string.h>

/* ---- a small problem: sequences of four levels whose value counts the threes, and a bowl ---- */

typedef struct problem {
    n2_factor factor[6];
    n2_designs designs;
    double x[6 * 400], y[400];
} problem;

static double value_of(const n2_space *space, const double *x) {
    double y = 0;
    for (size_t c = 0; c < space->n; c++)
        y += space->factor[c].kind == N2_CATEGORY ? x[c] == 3 : -(x[c] - 0.3) * (x[c] - 0.3);
    return y;
}

static problem *new_problem(n2_factor_kind kind, size_t columns, size_t rows) {
    problem *p = test_calloc(1, sizeof *p);
    for (size_t c = 0; c < columns; c++)
        p->factor[c] = (n2_factor){kind, -1, 1, kind == N2_CATEGORY ? 4 : 0};
    p->designs = (n2_designs){{p->factor, columns}, rows, p->x, p->y};
    n2_space_uniform(&p->designs.space, (n2_stream){3, 1, 0}, rows, p->x);
    for (size_t i = 0; i < rows; i++) p->y[i] = value_of(&p->designs.space, p->x + i * columns);
    return p;
}

/* Enough to learn something; enough to run. */
typedef enum amount { SOME, LITTLE } amount;

static n2_effort effort_of(amount a) {
    const n2_effort some = {32, N2_LEAST_WIDTH, N2_LEAST_STEPS, NULL};
    const n2_effort little = {1000, 16, 30, NULL};
    return a == SOME ? some : little;
}

static void propose(const n2_listed_method *m, const problem *p, amount a, int threads, size_t rows,
                    double *x) {
    n2ce_ctx *ctx = new_ctx(threads);
    const n2_effort effort = effort_of(a);
    n2_proposals out = {.rows = rows, .x = x};
    const n2ce_status status = n2_method_run(ctx, m, &p->designs, 5, &effort, NULL, &out);
    if (status != N2CE_OK) print_error("%s: %s\n", m->method->name, n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
    assert_true(out.inside >= 0 && out.inside <= 1);
    n2ce_ctx_free(ctx);
}

static double mean_value(const problem *p, const double *x, size_t rows) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += value_of(&p->designs.space, x + i * p->designs.space.n) / (double)rows;
    return sum;
}

static void assert_inside(const problem *p, const double *x, size_t rows) {
    for (size_t i = 0; i < rows; i++) {
        double copy[6];
        memcpy(copy, x + i * p->designs.space.n, p->designs.space.n * sizeof *x);
        assert_true(n2_space_move_inside(&p->designs.space, copy));
        assert_memory_equal(copy, x + i * p->designs.space.n, p->designs.space.n * sizeof *x);
    }
}

enum { ROWS = 16 };

/* Known at one size only, which takes minutes: test_latent.c has it. */
static bool is_large(const n2_listed_method *m) { return !m->with && !m->trivial; }

static void proposals_can_be_tried(void **state) {
    (void)state;
    problem *p = new_problem(N2_CATEGORY, 3, 60), *numbers = new_problem(N2_WHOLE, 2, 60);
    for (size_t i = 0; i < n2_method_count; i++) {
        if (is_large(&n2_methods[i])) continue;
        double x[ROWS * 3];
        propose(&n2_methods[i], p, LITTLE, 1, ROWS, x);
        assert_inside(p, x, ROWS);
        propose(&n2_methods[i], numbers, LITTLE, 1, ROWS, x);
        assert_inside(numbers, x, ROWS);
    }
    test_free(p);
    test_free(numbers);
}

/* The engine sees to that in general; here are some that have code of their own beside it. */
static void proposals_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const names[] = {"random", "gradient-ascent", "cma-es", "reinforce"};
    problem *p = new_problem(N2_CATEGORY, 3, 60);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        double a[ROWS * 3], b[ROWS * 3];
        propose(n2_method_find(names[i]), p, LITTLE, 1, ROWS, a);
        propose(n2_method_find(names[i]), p, LITTLE, 2, ROWS, b);
        assert_memory_equal(a, b, sizeof a);
    }
    test_free(p);
}

/* Under a sanitizer networks of this size take many minutes. */
static bool is_slow(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("Whether methods learn is not tested under a sanitizer.\n");
    return true;
#else
    return false;
#endif
}

/* Methods that learn propose designs that are better than chance, on a task where that is easy. */
static void learning_beats_chance(void **state) {
    (void)state;
    if (is_slow()) skip();
    const n2_factor_kind kinds[] = {N2_CONTINUOUS, N2_CATEGORY};
    for (size_t k = 0; k < 2; k++) {
        problem *p = new_problem(kinds[k], kinds[k] == N2_CATEGORY ? 4 : 2, 200);
        double x[ROWS * 6];
        propose(n2_method_find("random"), p, SOME, 2, ROWS, x);
        const double chance = mean_value(p, x, ROWS);
        for (size_t i = 0; i < n2_method_count; i++) {
            if (is_large(&n2_methods[i])) continue;
            if (n2_methods[i].trivial || is_large(&n2_methods[i])) continue;
            propose(&n2_methods[i], p, SOME, 1, ROWS, x);
            const double value = mean_value(p, x, ROWS);
            print_message("%s %s: %.3f, chance %.3f\n", k ? "sequences" : "numbers",
                          n2_methods[i].method->name, value, chance);
            assert_true(value > chance);
        }
        test_free(p);
    }
}

static double best_value(const problem *p, const double *x, size_t rows) {
    double best = -1e300;
    for (size_t i = 0; i < rows; i++)
        best = fmax(best, value_of(&p->designs.space, x + i * p->designs.space.n));
    return best;
}

/* Rows above a limit are hidden: the best of some proposals is better than any that was seen. */
static void some_go_beyond_the_data(void **state) {
    (void)state;
    if (is_slow()) skip();
    static const char *const names[] = {"mins", "gp-qei", "auto-cbas", "bonet"};
    enum { MANY = 64 };
    const struct {
        n2_factor_kind kind;
        size_t columns;
        double limit;
    } cases[] = {{N2_CONTINUOUS, 2, -0.1}, {N2_CATEGORY, 5, 2}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        problem *p = new_problem(cases[k].kind, cases[k].columns, 400);
        double x[MANY * 6];
        p->designs.rows = n2_keep_up_to(cases[k].limit, cases[k].columns, p->x, p->y, 400);
        const double seen = best_value(p, p->x, p->designs.rows);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            propose(n2_method_find(names[i]), p, SOME, 1, MANY, x);
            const double value = best_value(p, x, MANY);
            print_message("%s %s: %.3f, seen %.3f\n", k ? "sequences" : "numbers", names[i], value,
                          seen);
            assert_true(value > seen);
        }
        test_free(p);
    }
}

/* The best offline designs come back as they were, best first. */
static void top_offline_repeats_the_best(void **state) {
    (void)state;
    problem *p = new_problem(N2_CONTINUOUS, 2, 400);
    n2ce_ctx *ctx = new_ctx(1);
    double x[ROWS * 2];
    size_t row[ROWS];
    propose(n2_method_find("top-offline"), p, LITTLE, 1, ROWS, x);
    assert_int_equal(n2_designs_best(ctx, &p->designs, ROWS, row), N2CE_OK);
    for (size_t i = 0; i < ROWS; i++)
        assert_memory_equal(x + 2 * i, p->x + 2 * row[i], 2 * sizeof *x);
    n2ce_ctx_free(ctx);
    test_free(p);
}

/* A cube of a hundredth of the ranges around the best. */
static void a_cube_is_as_wide_as_it_says(void **state) {
    (void)state;
    problem *p = new_problem(N2_CONTINUOUS, 2, 400);
    double x[ROWS * 2], top[2];
    propose(n2_method_find("top-offline"), p, LITTLE, 1, 1, top);
    propose(n2_method_find("cube-0.01"), p, LITTLE, 1, ROWS, x);
    for (size_t i = 0; i < ROWS * 2; i++) assert_true(fabs(x[i] - top[i % 2]) <= 0.01 + 1e-12);
    test_free(p);
}

/* ---- CMA-ES ---- */

/* A bowl a thousand times as steep along one direction as along another, and Rosenbrock's valley.
 */
static n2ce_status bowl(void *user, const double *x, size_t rows, double *value) {
    (void)user;
    for (size_t i = 0; i < rows; i++) {
        value[i] = 0;
        for (size_t c = 0; c < 6; c++)
            value[i] -= pow(1000, (double)c / 5) * (x[6 * i + c] - 1) * (x[6 * i + c] - 1);
    }
    return N2CE_OK;
}

static n2ce_status valley(void *user, const double *x, size_t rows, double *value) {
    (void)user;
    for (size_t i = 0; i < rows; i++) {
        const double *p = x + 6 * i;
        value[i] = 0;
        for (size_t c = 0; c + 1 < 6; c++)
            value[i] -= 100 * pow(p[c + 1] - p[c] * p[c], 2) + pow(1 - p[c], 2);
    }
    return N2CE_OK;
}

/* Every search of a few ends at the optimum (1, ..., 1); the valley has a local one at x0 = -1. */
static void cma_finds_optima(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double x[5 * 6] = {0}, y[5];
    n2_cma o = {.dim = 6, .generations = 400, .sigma = 0.5, .seed = 1, .ask = bowl};
    assert_int_equal(n2_cma_maximise(ctx, &o, 5, x), N2CE_OK);
    bowl(NULL, x, 5, y);
    for (size_t i = 0; i < 5; i++) assert_true(y[i] > -1e-12);
    memset(x, 0, sizeof x);
    o.ask = valley;
    assert_int_equal(n2_cma_maximise(ctx, &o, 5, x), N2CE_OK);
    valley(NULL, x, 5, y);
    assert_true(largest(y, 5) > -1e-9);
    n2ce_ctx_free(ctx);
}

enum { WIDE = 300 };
static n2ce_status wide_bowl(void *user, const double *x, size_t rows, double *value) {
    (void)user;
    for (size_t i = 0; i < rows; i++) {
        value[i] = 0;
        for (size_t c = 0; c < WIDE; c++)
            value[i] -= pow(100, (double)c / (WIDE - 1)) * pow(x[WIDE * i + c] - 1, 2);
    }
    return N2CE_OK;
}

/* Variances alone lead there as well, of so many numbers as a whole covariance is not learnt of. */
static void cma_of_many_numbers_learns_variances(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double x[2 * WIDE] = {0}, before[2], after[2];
    const n2_cma o = {.dim = WIDE, .generations = 800, .sigma = 0.5, .seed = 1, .ask = wide_bowl};
    wide_bowl(NULL, x, 2, before);
    assert_int_equal(n2_cma_maximise(ctx, &o, 2, x), N2CE_OK);
    wide_bowl(NULL, x, 2, after);
    for (size_t i = 0; i < 2; i++) assert_true(after[i] > 1e-3 * before[i]);
    n2ce_ctx_free(ctx);
}

/* ---- codes ---- */

/* With four levels the own one stands out by ln 7 = 1.9459 before standardising. */
static void logits_are_those_of_design_bench(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    problem *p = new_problem(N2_CATEGORY, 6, 400);
    n2_code code;
    double coded[18], level[6] = {0, 1, 2, 3, 0, 2};
    assert_int_equal(n2_code_new(&arena, &p->designs, N2_CODE_LOGITS, &code), N2CE_OK);
    assert_int_equal(code.width, 18);
    n2_code_encode(&code, level, coded);
    const double expected[] = {-1, -1, -1, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    for (size_t k = 0; k < 12; k++)
        assert_close(coded[k] * code.deviation[k] + code.mean[k], expected[k] * log(7), 0, 1e-12);
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
    test_free(p);
}

static void designs_come_back_from_their_code(void **state) {
    (void)state;
    const n2_code_kind kinds[] = {N2_CODE_LOGITS, N2_CODE_ONE_HOT};
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    problem *p = new_problem(N2_CATEGORY, 6, 400);
    p->factor[2] = (n2_factor){N2_CONTINUOUS, -1, 5, 0};
    for (size_t k = 0; k < 2; k++) {
        n2_code code;
        assert_int_equal(n2_code_new(&arena, &p->designs, kinds[k], &code), N2CE_OK);
        for (size_t i = 0; i < 400; i++) {
            double back[6];
            n2_code_decode(&code, code.x + i * code.width, back);
            for (size_t c = 0; c < 6; c++) assert_close(back[c], p->x[i * 6 + c], 0, 1e-12);
        }
    }
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
    test_free(p);
}

/* ---- memory ---- */

/* The whole life of a method on this allocator. */
static n2ce_status live(const n2_listed_method *m, const problem *p, failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    double x[ROWS * 2];
    const n2_effort effort = effort_of(LITTLE);
    n2_proposals out = {.rows = ROWS, .x = x};
    n2ce_ctx *ctx;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status == N2CE_OK) status = n2_method_run(ctx, m, &p->designs, 1, &effort, NULL, &out);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory->live, 0);
    return status;
}

/* One failed allocation, wherever it is (here: a dozen places), is an error, and nothing leaks. */
static void out_of_memory_is_an_error(void **state) {
    (void)state;
    problem *p = new_problem(N2_CONTINUOUS, 2, 20);
    for (size_t i = 0; i < n2_method_count; i++) {
        if (is_large(&n2_methods[i])) continue;
        failing_alloc memory = failing_alloc_new(NEVER, false);
        assert_int_equal(live(&n2_methods[i], p, &memory), N2CE_OK);
        const size_t calls = memory.calls, stride = calls / 12 + 1;
        for (size_t n = 0; n < calls; n += stride) {
            memory = failing_alloc_new(n, false);
            assert_int_equal(live(&n2_methods[i], p, &memory), N2CE_ENOMEM);
        }
    }
    test_free(p);
}

/* ---- places ---- */

static n2ce_status open_another(const n2_device_choice *choice, n2ce_ctx *ctx,
                                const n2_backend **out) {
    (void)choice;
    (void)ctx;
    *out = n2_cpu_backend();
    return N2CE_OK;
}

/* Measuring where a method is faster changes nothing of what it proposes. */
static void measuring_leaves_no_trace(void **state) {
    (void)state;
    const n2_method *const methods[] = {&n2_gradient_method, &n2_coms_method, &n2_cbas_method,
                                        &n2_mins_method};
    problem *p = new_problem(N2_CONTINUOUS, 2, 60);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        const n2_listed_method *m = n2_method_find(methods[i]->name);
        n2_device_choice choice = {.open = open_another, .optional = true};
        n2_effort effort = effort_of(LITTLE);
        double plain[ROWS * 2], measured[ROWS * 2];
        n2_proposals out = {.rows = ROWS, .x = measured};
        n2ce_ctx *ctx = new_ctx(1);
        propose(m, p, LITTLE, 1, ROWS, plain);
        effort.choice = &choice;
        assert_int_equal(n2_method_run(ctx, m, &p->designs, 5, &effort, NULL, &out), N2CE_OK);
        assert_null(choice.open);
        assert_non_null(strstr(choice.reason, " ms in all, against "));
        assert_memory_equal(measured, plain, sizeof plain);
        n2ce_ctx_free(ctx);
    }
    test_free(p);
}

/* ---- effort ---- */

static void effort_divides_but_not_to_nothing(void **state) {
    (void)state;
    const n2_effort whole = {1, 256, 500, NULL}, eighth = {8, 256, 500, NULL};
    const n2_effort least = {1000000, 256, 500, NULL};
    assert_int_equal(n2_effort_width(&whole, 2048), 2048);
    assert_int_equal(n2_effort_width(&eighth, 2048), 256);
    assert_int_equal(n2_effort_width(&eighth, 1024), 256);
    assert_int_equal(n2_effort_width(&least, 32), 32);
    assert_int_equal(n2_effort_steps(&eighth, 8000), 1000);
    assert_int_equal(n2_effort_steps(&least, 8000), 500);
    assert_int_equal(n2_effort_steps(&least, 100), 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_offline_repeats_the_best),
        cmocka_unit_test(a_cube_is_as_wide_as_it_says),
        cmocka_unit_test(cma_finds_optima),
        cmocka_unit_test(cma_of_many_numbers_learns_variances),
        cmocka_unit_test(logits_are_those_of_design_bench),
        cmocka_unit_test(designs_come_back_from_their_code),
        cmocka_unit_test(measuring_leaves_no_trace),
        cmocka_unit_test(effort_divides_but_not_to_nothing),
        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(learning_beats_chance),
        cmocka_unit_test(some_go_beyond_the_data),
        cmocka_unit_test(proposals_can_be_tried),
        cmocka_unit_test(proposals_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
