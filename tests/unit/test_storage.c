/* Storage in 16 bits: rounding, graphs with casts on every backend, memory, float32 masters, files.
 *
 * N2CE_TEST_DEVICE puts a GPU in the processor's place: fast_backend.h. */
#include "close.h"
#include "contexts.h"
#include "cpu/cpu.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "nn/nn.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const n2_dtype types[] = {N2_BF16, N2_F16};

/* ---- rounding --------------------------------------------------------------- */

static bool is_nan16(n2_dtype type, uint16_t x) { return isnan(n2_widen(type, x)); }

/* Every number of 16 bits is itself again. */
static void widening_loses_nothing(void **state) {
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (uint32_t x = 0; x < 65536; x++) {
            const uint16_t again = n2_narrow(types[t], n2_widen(types[t], (uint16_t)x));
            if (is_nan16(types[t], (uint16_t)x))
                assert_true(is_nan16(types[t], again));
            else
                assert_int_equal(again, x);
        }
}

/* Between two neighbours the nearer is taken, in the middle the even one. */
static void narrowing_takes_the_nearest(void **state) {
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (uint32_t x = 0; x < 0x7fff; x++) {
            const double low = (double)n2_widen(types[t], (uint16_t)x);
            const double high = (double)n2_widen(types[t], (uint16_t)(x + 1));
            if (!isfinite(low) || !isfinite(high)) continue;
            const float middle = (float)((low + high) / 2);
            assert_int_equal(n2_narrow(types[t], middle), x % 2 ? x + 1 : x);
            assert_int_equal(n2_narrow(types[t], nextafterf(middle, INFINITY)), x + 1);
            assert_int_equal(n2_narrow(types[t], nextafterf(middle, 0)), x);
            assert_int_equal(n2_narrow(types[t], -middle), (x % 2 ? x + 1 : x) | 0x8000);
        }
}

/* Known numbers. */
static void the_ends_are_where_they_should_be(void **state) {
    (void)state;
    assert_int_equal(n2_to_bf16(1.0f), 0x3f80);
    assert_int_equal(n2_to_f16(1.0f), 0x3c00);
    assert_int_equal(n2_to_f16(65504.0f), 0x7bff);
    assert_int_equal(n2_to_f16(65519.0f), 0x7bff);
    assert_int_equal(n2_to_f16(65520.0f), 0x7c00);
    assert_int_equal(n2_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(n2_to_f16(5.9604645e-8f), 1);
    assert_int_equal(n2_to_bf16(3.4e38f), 0x7f80);
    assert_true(isnan(n2_widen(N2_BF16, n2_to_bf16(NAN))));
    assert_true(isnan(n2_widen(N2_F16, n2_to_f16(NAN))));
}

/* ---- graphs ----------------------------------------------------------------- */

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static const n2_backend *backend_at(int k) { return k ? fast_backend() : n2_ref_backend(); }

static bench open_bench(const n2_backend *backend) {
    bench b = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    return b;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static double value_at(size_t i) {
    return (double)(float)(sin(0.7 * (double)i) * exp2((double)(i % 40) - 24));
}

static n2_tensor *add_tensor(bench *b, const char *name, n2_shape shape) {
    const size_t n = (size_t)n2_elements(shape);
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = value_at(i);
    n2_tensor *t = n2_store_add(b->store, name, shape);
    assert_non_null(t);
    n2_tensor_set(b->store, t, x);
    free(x);
    return t;
}

static void compile(bench *b, const n2_backend *backend, const n2_node *outputs, size_t n) {
    assert_int_equal(n2_plan_compile(b->g, backend, outputs, n, &b->plan), N2CE_OK);
}

/* A value that went through 16 bits has them and no more, on every backend; also as an output
 * that is stored so, and in rows of odd width, tile by tile. */
static void check_cast(const n2_backend *backend, n2_dtype type, n2_shape shape) {
    bench b = open_bench(backend);
    const size_t n = (size_t)n2_elements(shape);
    double *values = calloc(n + 1, sizeof *values);
    assert_non_null(values);
    const n2_node x = n2g_read(b.g, add_tensor(&b, "x", shape));
    const n2_node narrow = n2g_cast(b.g, n2g_neg(b.g, x), type);
    const n2_node outputs[] = {narrow, n2g_scale(b.g, n2g_cast(b.g, narrow, N2_NUMBER), 2),
                               n2g_reshape(b.g, narrow, n2_dims((int64_t)n))};
    assert_int_equal(n2_at(b.g, outputs[0])->dtype, type);
    assert_int_equal(n2_at(b.g, outputs[1])->dtype, N2_NUMBER);
    compile(&b, backend, outputs, 3);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    for (size_t k = 0; k < 3; k++) {
        n2_plan_get(b.plan, k, values);
        for (size_t i = 0; i < n; i++) {
            const double once = (double)n2_widen(type, n2_narrow(type, (float)-value_at(i)));
            assert_true(values[i] == (k == 1 ? 2 * once : once));
        }
    }
    free(values);
    close_bench(&b);
}

static void casts_round_alike_everywhere(void **state) {
    (void)state;
    const n2_shape shapes[] = {n2_scalar_shape(), n2_dims(7), n2_dims(33, 17), n2_dims(1000, 3),
                               n2_dims(20, 3, 5)};
    for (int k = 0; k < 2; k++)
        for (size_t t = 0; t < 2; t++)
            for (size_t s = 0; s < COUNT_OF(shapes); s++)
                check_cast(backend_at(k), types[t], shapes[s]);
}

/* d/dx sum(w round(x)) = w. */
static void gradients_go_through_casts(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        const n2_node x = n2g_read(b.g, add_tensor(&b, "x", n2_dims(40, 5)));
        const n2_node w = n2g_read(b.g, add_tensor(&b, "w", n2_dims(40, 5)));
        const n2_node y = n2g_cast(b.g, n2g_cast(b.g, x, N2_F16), N2_NUMBER);
        n2_node dx;
        double values[200];
        n2g_grad(b.g, n2g_total(b.g, n2g_mul(b.g, w, y)), &x, 1, &dx);
        compile(&b, backend_at(k), &dx, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2_plan_get(b.plan, 0, values);
        for (size_t i = 0; i < 200; i++) assert_true(values[i] == value_at(i));
        close_bench(&b);
    }
}

/* What is kept in 16 bits takes two bytes a number. */
static void two_bytes_are_two_bytes(void **state) {
    (void)state;
    size_t bytes[2];
    const n2_shape shape = n2_dims(100000, 4);
    for (int narrow = 0; narrow < 2; narrow++) {
        bench b = open_bench(n2_cpu_backend());
        n2_node y = n2g_exp(b.g, n2g_randn(b.g, shape));
        if (narrow) y = n2g_cast(b.g, y, N2_BF16);
        compile(&b, n2_cpu_backend(), &y, 1);
        bytes[narrow] = n2_plan_measure(b.plan).bytes;
        close_bench(&b);
    }
    assert_in_range(bytes[0] - bytes[1], 750000, 850000);
}

/* ---- masters ---------------------------------------------------------------- */

/* y = w x by a copy of w in 16 bits; Adam changes the master, and the copy follows. */
static void build_training(bench *b, n2_parameters *p) {
    *p = n2_parameters_new(b->store, 5);
    n2_tensor *w = n2_parameter(p, "w", n2_dims(3, 5), 1);
    n2_tensor *copy = n2_store_add_as(b->store, "w.bf16", n2_dims(3, 5), N2_BF16);
    assert_non_null(w);
    assert_non_null(copy);
    double initial[15];
    n2_tensor_get(b->store, w, initial);
    n2_tensor_set(b->store, copy, initial);
    const n2_node x = n2g_randn(b->g, n2_dims(64, 5));
    const n2_node used = n2g_cast(b->g, n2g_read(b->g, copy), N2_NUMBER);
    /* the gradient is that of the copy, which stands for its master */
    const n2_node error = n2g_matmul(b->g, x, used, false, true);
    const n2_node loss = n2g_mean(b->g, n2g_mul(b->g, error, error), N2_ALL_AXES);
    n2_node dw;
    n2g_grad(b->g, n2g_total(b->g, loss), &used, 1, &dw);
    n2_tensor *const tensors[] = {w, n2_store_add(b->store, "m", n2_dims(3, 5)),
                                  n2_store_add(b->store, "v", n2_dims(3, 5))};
    const n2_adam adam = {0.9, 0.999, 1e-8, 0};
    const n2_node one = n2g_constant(b->g, 1), rate = n2g_constant(b->g, 0.01);
    const n2_node master = n2g_adam_update(b->g, &adam, tensors, dw, rate, one, one);
    n2g_assign(b->g, copy, n2g_cast(b->g, master, N2_BF16));
}

static void assert_copy_follows(const bench *b, double *copy) {
    double master[15];
    n2_tensor_get(b->store, n2_store_find(b->store, "w"), master);
    n2_tensor_get(b->store, n2_store_find(b->store, "w.bf16"), copy);
    for (size_t i = 0; i < 15; i++)
        assert_true(copy[i] == (double)n2_widen(N2_BF16, n2_to_bf16((float)master[i])));
}

static double sum_of_squares(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

static void a_copy_follows_its_master(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_parameters p;
        double copy[15];
        build_training(&b, &p);
        compile(&b, backend_at(k), NULL, 0);
        assert_copy_follows(&b, copy);
        const double before = sum_of_squares(copy, 15);
        assert_int_equal(n2_plan_run_many(b.plan, 20), N2CE_OK);
        assert_copy_follows(&b, copy);
        assert_true(sum_of_squares(copy, 15) < before);
        close_bench(&b);
    }
}

/* A checkpoint holds the very bits. */
static void files_hold_16_bits(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "test_storage.%ld.safetensors", (long)getpid());
    double copies[2][15];
    for (int again = 0; again < 2; again++) {
        bench b = open_bench(n2_cpu_backend());
        n2_parameters p;
        build_training(&b, &p);
        compile(&b, n2_cpu_backend(), NULL, 0);
        if (again) {
            assert_int_equal(n2_checkpoint_load(b.store, b.plan, path), N2CE_OK);
        } else {
            assert_int_equal(n2_plan_run_many(b.plan, 3), N2CE_OK);
            assert_int_equal(n2_checkpoint_save(b.store, b.plan, path), N2CE_OK);
        }
        assert_copy_follows(&b, copies[again]);
        close_bench(&b);
    }
    unlink(path);
    assert_memory_equal(copies[0], copies[1], sizeof copies[0]);
}

/* ---- mistakes --------------------------------------------------------------- */

static void assert_mistake(bench *b, const char *word) {
    assert_int_equal(n2_graph_status(b->g), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b->ctx), word));
    close_bench(b);
}

static void mistakes_are_named(void **state) {
    (void)state;
    bench b = open_bench(n2_cpu_backend());
    n2_node x = n2g_cast(b.g, n2g_read(b.g, add_tensor(&b, "x", n2_dims(4))), N2_F16);
    n2g_add(b.g, x, x);
    assert_mistake(&b, "add: input 0 is stored as f16");
    b = open_bench(n2_cpu_backend());
    n2_tensor *t = n2_store_add_as(b.store, "t", n2_dims(4), N2_BF16);
    n2g_assign(b.g, t, n2g_read(b.g, add_tensor(&b, "x", n2_dims(4))));
    assert_mistake(&b, "\"t\" of bf16");
    b = open_bench(n2_cpu_backend());
    n2_tensor *w = n2_store_add_as(b.store, "w", n2_dims(4), N2_BF16);
    n2_tensor *m = add_tensor(&b, "m", n2_dims(4)), *const all[] = {w, m, m};
    const n2_node one = n2g_constant(b.g, 1), grad = n2g_read(b.g, m);
    n2g_adam_update(b.g, &(n2_adam){0.9, 0.999, 1e-8, 0}, all, grad, one, one, one);
    assert_mistake(&b, "update its master");
}

/* 1e6 is more than half precision holds: a checked run says where. */
static void a_checked_run_finds_an_overflow(void **state) {
    (void)state;
    bench b = open_bench(fast_backend());
    const n2_node x = n2g_read(b.g, add_tensor(&b, "x", n2_dims(100, 3)));
    const n2_node y = n2g_cast(b.g, n2g_affine(b.g, x, 1, 1e6), N2_F16);
    compile(&b, fast_backend(), &y, 1);
    assert_int_equal(n2_plan_run_checked(b.plan), N2CE_ENAN);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "cast"));
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widening_loses_nothing),
        cmocka_unit_test(narrowing_takes_the_nearest),
        cmocka_unit_test(the_ends_are_where_they_should_be),
        cmocka_unit_test(casts_round_alike_everywhere),
        cmocka_unit_test(gradients_go_through_casts),
        cmocka_unit_test(two_bytes_are_two_bytes),
        cmocka_unit_test(a_copy_follows_its_master),
        cmocka_unit_test(files_hold_16_bits),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_checked_run_finds_an_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
