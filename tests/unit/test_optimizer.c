/* Facts about n2ce_optimizer: it proposes what the verb does, again and again, also after it was
 * saved and loaded; files that are not whole are refused. */
#include "failing_alloc.h"
#include "samples.h"

#include "io/bundle.h"

#include <stdio.h>
#include <unistd.h>

enum { ROWS = 60, COLS = 3, WANTED = 8 };
static const char *const PATH = "test_optimizer.safetensors";

typedef struct problem {
    double x[ROWS * COLS], y[ROWS];
    n2ce_matrix data[2];
} problem;

/* A number, a whole number, and a category of the levels 3, 4 and 5: smaller is better. */
static void fill(problem *p) {
    double *u = uniforms(ROWS * COLS, 9);
    for (size_t i = 0; i < ROWS; i++) {
        double *x = p->x + i * COLS;
        x[0] = 2 * u[i * COLS] - 1;
        x[1] = floor(10 * u[i * COLS + 1]);
        x[2] = 3 + floor(3 * u[i * COLS + 2]);
        p->y[i] = x[0] * x[0] + 0.1 * fabs(x[1] - 4) + (x[2] == 5);
    }
    p->data[0] = matrix(p->x, ROWS, COLS);
    p->data[1] = matrix(p->y, ROWS, 1);
    free(u);
}

static n2ce_options *quick_options(n2ce_ctx *ctx) {
    static const char *const pairs[][2] = {{"minimize", "y"},  {"categorical", "2"},
                                           {"effort", "0.02"}, {"rounds", "2"},
                                           {"count", "8"},     {"device", "cpu"}};
    n2ce_options *o;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(n2ce_task_find("optimize")), &o),
                     N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        assert_int_equal(n2ce_options_set(o, pairs[i][0], pairs[i][1]), N2CE_OK);
    return o;
}

static n2ce_optimizer *new_optimizer(n2ce_ctx *ctx) {
    static problem p;
    n2ce_optimizer *optimizer;
    n2ce_options *o = quick_options(ctx);
    fill(&p);
    if (n2ce_optimizer_fit(ctx, o, &p.data[0], &p.data[1], &optimizer) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    n2ce_options_free(o);
    return optimizer;
}

/* A copy of the numbers of proposals. */
typedef struct numbers {
    double designs[WANTED * COLS], predicted[WANTED], spread[WANTED], log_prior[WANTED],
        distance[WANTED];
} numbers;

static numbers copy(const n2ce_proposals *p) {
    numbers n;
    assert_non_null(p);
    assert_int_equal(p->rows, WANTED);
    assert_int_equal(p->cols, COLS);
    memcpy(n.designs, p->designs, sizeof n.designs);
    memcpy(n.predicted, p->predicted, sizeof n.predicted);
    memcpy(n.spread, p->spread, sizeof n.spread);
    memcpy(n.log_prior, p->log_prior, sizeof n.log_prior);
    memcpy(n.distance, p->distance, sizeof n.distance);
    return n;
}

static numbers propose(n2ce_ctx *ctx, n2ce_optimizer *optimizer) {
    const n2ce_proposals *p;
    if (n2ce_optimizer_propose(optimizer, WANTED, &p) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    assert_int_equal(p->n_levels[2], 3);
    for (size_t i = 0; i < 3; i++) assert_true(strchr("345", p->levels[2][i][0]) != NULL);
    return copy(p);
}

/* ---- proposing ------------------------------------------------------------- */

static void it_proposes_what_the_verb_does(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    static problem p;
    n2ce_answer *answer;
    n2ce_options *o = quick_options(ctx);
    fill(&p);
    assert_int_equal(n2ce_task_run_on(ctx, n2ce_task_find("optimize"), o, p.data, 2, &answer),
                     N2CE_OK);
    const numbers verb = copy(n2ce_answer_proposals(answer));
    n2ce_optimizer *optimizer = new_optimizer(ctx);
    const numbers once = propose(ctx, optimizer), again = propose(ctx, optimizer);
    assert_memory_equal(&once, &verb, sizeof verb);
    assert_memory_equal(&once, &again, sizeof verb);
    assert_non_null(strstr(n2ce_optimizer_json(optimizer), "\"direction\": \"minimize\""));
    n2ce_optimizer_free(optimizer);
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
}

static void mistakes_are_told(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    static problem p;
    n2ce_optimizer *optimizer = (n2ce_optimizer *)1;
    const n2ce_proposals *none;
    fill(&p);
    n2ce_matrix few = p.data[1];
    few.rows = 5;
    assert_int_equal(n2ce_optimizer_fit(ctx, NULL, &p.data[0], &few, &optimizer), N2CE_EINVAL);
    assert_null(optimizer);
    for (size_t i = 0; i < ROWS; i++) p.y[i] = 1;
    assert_int_equal(n2ce_optimizer_fit(ctx, NULL, &p.data[0], &p.data[1], &optimizer), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "same value"));
    optimizer = new_optimizer(ctx);
    assert_int_equal(n2ce_optimizer_propose(optimizer, 0, &none), N2CE_EINVAL);
    assert_null(none);
    n2ce_optimizer_free(optimizer);
    n2ce_optimizer_free(NULL);
    n2ce_ctx_free(ctx);
}

/* Names and the texts of levels come with the proposals, and with the file. */
static void columns_have_names(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2ce_optimizer *optimizer = new_optimizer(ctx), *loaded;
    const char *const colours[] = {"-", "-", "-", "red", "green, or so", "blue"};
    const char *const *const levels[] = {NULL, NULL, colours};
    static const char *const names[] = {"2", "cars", "colour"}, *const twice[] = {"a", "b", "a"};
    const size_t n_levels[] = {0, 0, 6}, too_few[] = {0, 0, 5};
    const n2ce_proposals *p;
    assert_int_equal(n2ce_optimizer_name(optimizer, twice, NULL, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_optimizer_name(optimizer, names, levels, too_few), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(ctx), "\"colour\" holds the level 5"));
    propose(ctx, optimizer); /* as before */
    assert_int_equal(n2ce_optimizer_name(optimizer, NULL, NULL, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_optimizer_name(optimizer, names, NULL, n_levels), N2CE_EINVAL);
    assert_int_equal(n2ce_optimizer_name(optimizer, names, levels, n_levels), N2CE_OK);
    assert_int_equal(n2ce_optimizer_name(optimizer, names, levels, n_levels), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(ctx), "has no text among 6"));
    assert_int_equal(n2ce_optimizer_load(ctx, NULL, &loaded), N2CE_EINVAL);
    unlink(PATH);
    assert_int_equal(n2ce_optimizer_save(optimizer, PATH, false), N2CE_OK);
    if (n2ce_optimizer_load(ctx, PATH, &loaded) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    n2ce_optimizer *const both[] = {optimizer, loaded};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(n2ce_optimizer_propose(both[i], WANTED, &p), N2CE_OK);
        for (size_t j = 0; j < COLS; j++) assert_string_equal(p->names[j], names[j]);
        for (size_t k = 0; k < 3; k++)
            assert_true(!strcmp(p->levels[2][k], "red") + !strcmp(p->levels[2][k], "blue") +
                            !strcmp(p->levels[2][k], "green, or so") ==
                        1);
        assert_non_null(strstr(n2ce_optimizer_json(both[i]), "\"cars\""));
        n2ce_optimizer_free(both[i]);
    }
    n2ce_ctx_free(ctx);
}

/* ---- files ----------------------------------------------------------------- */

static void one_that_was_loaded_proposes_the_same_bytes(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2), *other = new_ctx(1);
    n2ce_optimizer *optimizer = new_optimizer(ctx), *loaded;
    unlink(PATH);
    assert_int_equal(n2ce_optimizer_save(optimizer, PATH, false), N2CE_OK);
    assert_int_equal(n2ce_optimizer_save(optimizer, PATH, false), N2CE_EEXIST);
    const numbers before = propose(ctx, optimizer);
    assert_int_equal(n2ce_optimizer_save(optimizer, PATH, true),
                     N2CE_OK); /* proposing left no mark */
    if (n2ce_optimizer_load(other, PATH, &loaded) != N2CE_OK) fail_msg("%s", n2ce_errmsg(other));
    const numbers after = propose(other, loaded);
    assert_memory_equal(&before, &after, sizeof before);
    assert_string_equal(n2ce_optimizer_json(optimizer), n2ce_optimizer_json(loaded));
    n2ce_optimizer_free(loaded);
    n2ce_optimizer_free(optimizer);
    n2ce_ctx_free(other);
    n2ce_ctx_free(ctx);
}

static char *read_all(size_t *n) {
    FILE *f = fopen(PATH, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void assert_refused(n2ce_ctx *ctx, const char *bytes, size_t n) {
    const char *path = "test_optimizer.damaged";
    n2ce_optimizer *none = (n2ce_optimizer *)1;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(n2ce_optimizer_load(ctx, path, &none), N2CE_EDATA);
    assert_null(none);
    unlink(path);
}

/* A flipped bit anywhere, or a file that was cut. */
static void a_damaged_file_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    size_t n;
    char *bytes = read_all(&n);
    for (size_t i = 0; i < 40; i++) {
        const size_t at = i < 20 ? 8 + i * 97 : i * (n / 40);
        bytes[at] ^= 4;
        assert_refused(ctx, bytes, n);
        bytes[at] ^= 4;
    }
    assert_refused(ctx, bytes, n - 1);
    assert_refused(ctx, bytes, n / 2);
    assert_refused(ctx, bytes, 0);
    free(bytes);
    n2ce_ctx_free(ctx);
}

/* Another number in an array, under a check sum that fits. */
static void forge(n2ce_ctx *ctx, char *bytes, size_t n, const char *array, size_t which, double x) {
    enum { MOST = 256 };
    n2_st_tensor list[MOST];
    n2_st_file *f;
    char sum[N2_CHECKSUM_ROOM], *place = bytes;
    assert_int_equal(n2_st_parse(ctx, "forged", bytes, n, &f), N2CE_OK);
    const size_t count = n2_st_count(f);
    assert_in_range(count, 1, MOST);
    for (size_t i = 0; i < count; i++) list[i] = *n2_st_at(f, i);
    const char *doubles = n2_st_find(f, array)->data, *before = n2_st_metadata(f, "checksum");
    memcpy(bytes + (doubles - bytes) + which * sizeof x, &x, sizeof x);
    n2_checksum(list, count, n2_st_metadata_at(f, 0), n2_st_metadata_count(f), sum);
    while (memcmp(place, before, sizeof sum - 1) != 0) place++;
    memcpy(place, sum, sizeof sum - 1);
    n2_st_close(f);
}

/* Networks of gigabytes are not begun, nor taken for those of the file. */
static void a_file_that_says_more_than_it_holds(void **state) {
    enum { WIDTH = 6, LATENT, CODE_WIDTH, RATIO_WIDTH };
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t which = WIDTH; which <= RATIO_WIDTH; which++) {
        size_t n;
        char *bytes = read_all(&n);
        forge(ctx, bytes, n, "options", which, 65536);
        assert_refused(ctx, bytes, n);
        free(bytes);
    }
    n2ce_ctx_free(ctx);
}

/* Rules that no options can say: a level that there is not, a number beyond the bounds. */
static void rules_that_cannot_be_met(void **state) {
    static const double fixed[COLS][3] = {
        {2, -2, (double)INFINITY}, {1e300, -1, 10}, {65536, -1, 0.5}};
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t j = 0; j < COLS; j++)
        for (size_t k = 0; k < COUNT_OF(fixed[j]); k++) {
            size_t n;
            char *bytes = read_all(&n);
            forge(ctx, bytes, n, "rules.fixed", j, fixed[j][k]);
            assert_refused(ctx, bytes, n);
            free(bytes);
        }
    n2ce_ctx_free(ctx);
}

/* Designs and values that no fit would take: such a file is refused, or read. */
static void numbers_beyond_computing(void **state) {
    static const char *const arrays[] = {"designs", "values", "space"};
    static const double extremes[] = {1e300, -1e300, 1e-310};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(arrays) * COUNT_OF(extremes) * 2; i++) {
        n2ce_ctx *ctx = new_ctx(1);
        const char *path = "test_optimizer.beyond", *array = arrays[i / 6];
        n2ce_optimizer *loaded;
        size_t n;
        char *bytes = read_all(&n);
        forge(ctx, bytes, n, array, i / 3 % 2 * 2, extremes[i % 3]);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fclose(f);
        const n2ce_status status = n2ce_optimizer_load(ctx, path, &loaded);
        assert_true(status == N2CE_OK || status == N2CE_EDATA);
        n2ce_optimizer_free(loaded);
        free(bytes);
        unlink(path);
        n2ce_ctx_free(ctx);
    }
}

/* The other kind of model is not taken for this one. */
static void a_ratio_is_no_optimizer(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2ce_model *none = (n2ce_model *)1;
    assert_int_equal(n2ce_model_load(ctx, PATH, &none), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "n2ce optimizer 1"));
    assert_null(none);
    n2ce_ctx_free(ctx);
}

/* Every so-manieth allocation of loading fails: an error, and nothing is left behind. */
static void loading_survives_a_lack_of_memory(void **state) {
    (void)state;
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 0; status != N2CE_OK; n += 1 + n / 4) {
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        n2ce_optimizer *optimizer = NULL;
        status = n2ce_ctx_new(&ctx, &options);
        if (status == N2CE_OK) status = n2ce_optimizer_load(ctx, PATH, &optimizer);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        assert_true((status == N2CE_OK) == (memory.calls <= n));
        n2ce_optimizer_free(optimizer);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
    unlink(PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_proposes_what_the_verb_does),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(columns_have_names),
        cmocka_unit_test(one_that_was_loaded_proposes_the_same_bytes), /* leaves its file */
        cmocka_unit_test(a_damaged_file_is_refused),
        cmocka_unit_test(a_file_that_says_more_than_it_holds),
        cmocka_unit_test(rules_that_cannot_be_met),
        cmocka_unit_test(numbers_beyond_computing),
        cmocka_unit_test(a_ratio_is_no_optimizer),
        cmocka_unit_test(loading_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
