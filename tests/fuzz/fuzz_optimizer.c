/* Fuzzes the reader of optimisers: spaces with their bounds, designs, rules, names, weights; as
 * files and as changes to a valid one (trained_file.h). What is accepted is worked out, as
 * loading does, for one of 4096 inputs; others are stopped behind the reader, which takes a
 * thousandth of the time.
 *
 * libFuzzer: -max_len=64
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "trained_file.h"

#include "io/bundle.h"
#include "optimize/latent.h"

enum { ROWS = 9, COLS = 3, FACTOR_NUMBERS = 4, SELDOM = 4096 };

/* A number, a whole number, and a category of three levels. */
static const double space[COLS * FACTOR_NUMBERS] = {N2_CONTINUOUS, -1, 1, 0, N2_WHOLE, 0, 9, 0,
                                                    N2_CATEGORY,   0,  0, 3};

static void fill(double x[ROWS * COLS], double y[ROWS]) {
    for (size_t i = 0; i < ROWS; i++) {
        x[i * COLS] = (double)(i * 5 % 9) / 4 - 1;
        x[i * COLS + 1] = (double)(i * 7 % 9);
        x[i * COLS + 2] = (double)(i % 3);
        y[i] = x[i * COLS] * x[i * COLS] + x[i * COLS + 1] - x[i * COLS + 2];
    }
}

/* The smallest networks, which were not trained. */
static n2_latent_options small(void) {
    n2_latent_options o = n2_latent_defaults();
    o.members = 2;
    o.stages = o.rounds = o.moves = o.noise = 1;
    o.width = o.code_width = o.ratio_width = o.latent = 2;
    o.blocks = 0;
    o.batch = 2;
    o.value_steps = 1;
    o.code_steps = o.prior_steps = o.joint_steps = 1;
    o.ambition = 1;
    return o;
}

static void put_texts(n2_bundle *b) {
    n2_bundle_note(b, "columns", "[[\"u\"], [\"n\"], [\"c\", \"red\", \"green\", \"blue\"]]");
    n2_bundle_note(b, "target", "y");
    n2_bundle_note(b, "direction", "maximize");
    n2_bundle_note(b, "device", "cpu");
}

static void save(n2ce_ctx *ctx, const char *path) {
    static const double fixed[COLS] = {(double)NAN, (double)NAN, (double)NAN};
    static const double sums[COLS + 1] = {1, 1, 0, 4};
    double x[ROWS * COLS], y[ROWS];
    n2_factor factors[COLS];
    for (size_t j = 0; j < COLS; j++) {
        const double *f = space + j * FACTOR_NUMBERS;
        factors[j] = (n2_factor){(n2_factor_kind)f[0], f[1], f[2], (size_t)f[3]};
    }
    fill(x, y);
    const n2_designs designs = {.rows = ROWS, .x = x, .y = y, .space = {factors, COLS}};
    const n2_latent_options o = small();
    n2_latent *m;
    n2_bundle b = n2_bundle_new(ctx);
    REQUIRE(n2_latent_fit(ctx, &designs, &o, &m) == N2CE_OK);
    n2_bundle_put_doubles(&b, "space", COLS, FACTOR_NUMBERS, space);
    n2_bundle_put_doubles(&b, "designs", ROWS, COLS, x);
    n2_bundle_put_doubles(&b, "values", ROWS, 0, y);
    n2_bundle_put_doubles(&b, "rules.fixed", COLS, 0, fixed);
    n2_bundle_put_doubles(&b, "rules.sums", 1, COLS + 1, sums);
    put_texts(&b);
    REQUIRE(n2_latent_put(m, &b) == N2CE_OK);
    REQUIRE(n2_bundle_write(&b, "n2ce optimizer 1", path, true) == N2CE_OK);
    n2_bundle_free(&b);
    n2_latent_free(m);
}

/* Of a context that is told to stop: what is worked out after reading is not begun. */
static n2ce_status load_only(n2ce_ctx *ctx, const char *path) {
    n2ce_optimizer *o;
    n2ce_ctx_cancel(ctx);
    const n2ce_status status = n2ce_optimizer_load(ctx, path, &o);
    REQUIRE(status != N2CE_OK && !o);
    return status == N2CE_ECANCELED ? N2CE_OK : status;
}

static n2ce_status load_whole(n2ce_ctx *ctx, const char *path) {
    n2ce_optimizer *o;
    const n2ce_status status = n2ce_optimizer_load(ctx, path, &o);
    REQUIRE((status == N2CE_OK) == (o != NULL));
    if (o) REQUIRE(n2_is_utf8(n2ce_optimizer_json(o)));
    n2ce_optimizer_free(o);
    return status;
}

static bool whole;

static n2ce_status load_some(n2ce_ctx *ctx, const char *path) {
    return whole ? load_whole(ctx, path) : load_only(ctx, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static kind one = {save, load_some, NULL, NULL};
    whole = mix(START, bytes, n) % SELDOM == 0; /* inputs like it are not */
    try_input(&one, 1, bytes, n);
    return 0;
}
