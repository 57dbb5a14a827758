/* Facts about safetensors files: what is written is read back, others read it too, and memory
 * may run out.
 *
 *     test_safetensors                  all the tests
 *     test_safetensors --write PATH     writes the known file
 *     test_safetensors --read PATH      exits with 0 if PATH holds what the known file does
 *
 * tests/check_safetensors.py describes the same known file in Python. */
#include "failing_alloc.h"
#include "known_tensors.h"

#include "io/json.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* ---- round trips ------------------------------------------------------------------------ */

static void what_is_written_is_read_back(void **state) {
    const fixture *f = *state;
    n2_st_file *file;
    assert_int_equal(write_known(f->ctx, f->path), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_true(holds_known(file));
    assert_null(n2_st_find(file, "no such tensor"));
    assert_null(n2_st_at(file, n2_st_count(file)));
    assert_null(n2_st_metadata(file, "no such key"));
    assert_null(n2_st_metadata_at(file, n2_st_metadata_count(file)));
    assert_string_equal(n2_st_metadata_at(file, 1)->key, "format");
    n2_st_close(file);
    n2_st_close(NULL);
}

static void a_file_without_tensors_is_a_file(void **state) {
    const fixture *f = *state;
    n2_st_file *file;
    assert_int_equal(n2_st_write(f->ctx, f->path, NULL, 0, NULL, 0), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_int_equal(n2_st_count(file) + n2_st_metadata_count(file), 0);
    assert_null(n2_st_find(file, ""));
    assert_null(n2_st_metadata(file, ""));
    n2_st_close(file);
    assert_int_equal(n2_st_write(f->ctx, f->path, NULL, 0, known_metadata, 2), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_string_equal(n2_st_metadata(file, "format"), "pt");
    n2_st_close(file);
}

/* A pipe cannot be mapped; it is read. */
static void a_pipe_is_read_to_its_end(void **state) {
    const fixture *f = *state;
    char *bytes;
    size_t n;
    n2_st_file *file;
    assert_int_equal(encode_known(f->ctx, &bytes, &n), N2CE_OK);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* not forever, if nobody reads */
        FILE *pipe = fopen(f->path, "wb");
        _exit(pipe && fwrite(bytes, 1, n, pipe) == n && fclose(pipe) == 0 ? 0 : 1);
    }
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_true(holds_known(file));
    n2_st_close(file);
    n2_free(f->ctx, bytes);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* The same tensors in any order give the same bytes, and reading and writing again too. */
static void the_same_input_gives_the_same_bytes(void **state) {
    const fixture *f = *state;
    const known *k = the_known();
    char *bytes[3];
    size_t n[3];
    n2_st_tensor reversed[MAX_TENSORS], again[MAX_TENSORS];
    n2_st_file *file;
    const n2_st_pair metadata[] = {known_metadata[1], known_metadata[2], known_metadata[0]};
    for (size_t i = 0; i < k->n; i++) reversed[i] = k->tensors[k->n - 1 - i];
    assert_int_equal(encode_known(f->ctx, &bytes[0], &n[0]), N2CE_OK);
    assert_int_equal(n2_st_encode(f->ctx, reversed, k->n, metadata, 3, &bytes[1], &n[1]), N2CE_OK);
    assert_int_equal(n2_st_parse(f->ctx, "bytes", bytes[0], n[0], &file), N2CE_OK);
    for (size_t i = 0; i < k->n; i++) again[i] = *n2_st_at(file, i);
    assert_int_equal(n2_st_encode(f->ctx, again, k->n, metadata, 3, &bytes[2], &n[2]), N2CE_OK);
    n2_st_close(file);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(n[i], n[0]);
        assert_memory_equal(bytes[i], bytes[0], n[0]);
    }
    for (int i = 0; i < 3; i++) n2_free(f->ctx, bytes[i]);
}

/* The buffer starts at a multiple of 64; tensors come by element size, then by name, and so each
 * is aligned for its elements. */
static void written_tensors_are_ordered_and_aligned(void **state) {
    const fixture *f = *state;
    char *bytes;
    size_t n;
    n2_st_file *file;
    assert_int_equal(encode_known(f->ctx, &bytes, &n), N2CE_OK);
    assert_int_equal(n2_st_parse(f->ctx, "bytes", bytes, n, &file), N2CE_OK);
    const char *start = n2_st_at(file, 0)->data;
    assert_int_equal((start - bytes) % 64, 0);
    assert_int_equal(start[-1] == '}' || start[-1] == ' ', 1);
    size_t offset = 0;
    for (size_t i = 0; i < n2_st_count(file); i++) {
        const n2_st_tensor *t = n2_st_at(file, i), *next = n2_st_at(file, i + 1);
        assert_ptr_equal(t->data, start + offset);
        assert_int_equal(offset % n2_st_dtype_bytes(t->dtype), 0);
        offset += t->bytes;
        if (!next) break;
        const size_t size = n2_st_dtype_bytes(t->dtype), next_size = n2_st_dtype_bytes(next->dtype);
        assert_true(size > next_size || (size == next_size && strcmp(t->name, next->name) < 0));
    }
    n2_st_close(file);
    n2_free(f->ctx, bytes);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static void every_number_converts(void **state) {
    const fixture *f = *state;
    const known *k = the_known();
    for (size_t j = 0; j < k->n; j++) {
        const n2_st_tensor *t = &k->tensors[j];
        const size_t n = n2_st_elements(t);
        double wide[ROOM];
        float narrow[ROOM];
        if (t->dtype == N2_ST_BOOL) continue;
        assert_int_equal(n2_st_to_f64(f->ctx, t, wide, n), N2CE_OK);
        assert_int_equal(n2_st_to_f32(f->ctx, t, narrow, n), N2CE_OK);
        for (size_t i = 0; i < n; i++) {
            assert_close(wide[i], known_value(t->dtype, i), 0, 0);
            assert_close((double)narrow[i], known_value(t->dtype, i), 0, 0);
        }
    }
}

/* One number from its bits. */
static double convert(n2ce_ctx *ctx, n2_st_dtype dtype, uint64_t bits) {
    unsigned char bytes[9];
    double value;
    put_bytes(bytes + 1, bits, 8); /* not aligned, as in a stranger's file */
    const n2_st_tensor t = {.dtype = dtype, .data = bytes + 1, .bytes = n2_st_dtype_bytes(dtype)};
    assert_int_equal(n2_st_to_f64(ctx, &t, &value, 1), N2CE_OK);
    return value;
}

static void the_ends_of_each_type_convert(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    assert_close(convert(ctx, N2_ST_F16, 0x7bff), 65504, 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x0001), ldexp(1, -24), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x83ff), -1023 * ldexp(1, -24), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x0400), ldexp(1, -14), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0xfc00), -HUGE_VAL, 0, 0);
    assert_true(isnan(convert(ctx, N2_ST_F16, 0x7e00)));
    assert_true(signbit(convert(ctx, N2_ST_F16, 0x8000)));
    assert_close(convert(ctx, N2_ST_BF16, 0x3f80), 1, 0, 0);
    assert_close(convert(ctx, N2_ST_BF16, 0x7f80), HUGE_VAL, 0, 0);
    assert_true(isnan(convert(ctx, N2_ST_BF16, 0x7fc0)));
    assert_close(convert(ctx, N2_ST_BF16, 0x0001), ldexp(1, -133), 0, 0);
    assert_close(convert(ctx, N2_ST_I64, (uint64_t)INT64_MIN), -ldexp(1, 63), 0, 0);
    assert_close(convert(ctx, N2_ST_U64, UINT64_MAX), ldexp(1, 64), 0, 0);
    assert_close(convert(ctx, N2_ST_I32, 0x80000000), -ldexp(1, 31), 0, 0);
    assert_close(convert(ctx, N2_ST_U32, 0xffffffff), 4294967295.0, 0, 0);
    assert_close(convert(ctx, N2_ST_I16, 0x8000), -32768, 0, 0);
    assert_close(convert(ctx, N2_ST_U16, 0xffff), 65535, 0, 0);
    assert_close(convert(ctx, N2_ST_I8, 0x80), -128, 0, 0);
    assert_close(convert(ctx, N2_ST_U8, 0xff), 255, 0, 0);
}

static void what_is_no_number_does_not_convert(void **state) {
    const fixture *f = *state;
    float out[4];
    double wide[4];
    const unsigned char data[4] = {0, 1, 1, 0};
    n2_st_tensor t = {"mask", N2_ST_BOOL, 1, {4}, data, 4};
    assert_int_equal(n2_st_to_f32(f->ctx, &t, out, 4), N2CE_EDATA);
    assert_int_equal(n2_st_to_f64(f->ctx, &t, wide, 4), N2CE_EDATA);
    assert_message(f->ctx, "\"mask\" has dtype BOOL");
    t.dtype = N2_ST_U8;
    assert_int_equal(n2_st_to_f32(f->ctx, &t, out, 3), N2CE_EDATA);
    assert_message(f->ctx, "has 4 elements, and 3 are needed");
}

/* ---- the writer's own input ------------------------------------------------------------- */

static void what_cannot_be_read_is_not_written(void **state) {
    const fixture *f = *state;
    const float data[2] = {1, 2};
    const n2_st_tensor good = {"a", N2_ST_F32, 1, {2}, data, sizeof data};
    n2_st_tensor bad[10];
    for (size_t i = 0; i < COUNT_OF(bad); i++) bad[i] = good;
    bad[0].name = NULL;
    bad[1].name = "\xff";
    bad[2].name = "__metadata__";
    bad[3].dtype = N2_ST_DTYPES;
    bad[4].rank = -1;
    bad[5].rank = 9;
    bad[6].shape[0] = -2;
    bad[7].shape[0] = INT64_MAX;
    bad[8].bytes = 4;
    bad[9].data = NULL;
    const n2_st_tensor twice[2] = {good, good};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(n2_st_write(f->ctx, f->path, &bad[i], 1, NULL, 0), N2CE_EINVAL);
        assert_true(n2_is_utf8(n2ce_errmsg(f->ctx)));
    }
    assert_int_equal(n2_st_write(f->ctx, f->path, twice, 2, NULL, 0), N2CE_EINVAL);
    assert_message(f->ctx, "\"a\" occurs twice");
    n2_st_tensor huge[3]; /* each can be counted, all of them cannot; nobody looks at the data */
    for (int i = 0; i < 3; i++)
        huge[i] = (n2_st_tensor){&"abc" [i], N2_ST_I8, 1, {INT64_MAX }, data, INT64_MAX};
    assert_int_equal(n2_st_write(f->ctx, f->path, huge, 3, NULL, 0), N2CE_EINVAL);
    assert_message(f->ctx, "too large");
    const n2_st_pair pairs[][2] = {
        {{"k", "1"}, {"k", "2"}},   {{"k", NULL}, {"l", ""}},  {{NULL, ""}, {"l", ""}},
        {{"k", "\xff"}, {"l", ""}}, {{"\xff", ""}, {"l", ""}},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        assert_int_equal(n2_st_write(f->ctx, f->path, &good, 1, pairs[i], 2), N2CE_EINVAL);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(n2_st_write(f->ctx, "/nowhere/a", &good, 1, NULL, 0), N2CE_EIO);
}

/* ---- out of memory ---------------------------------------------------------------------- */

typedef n2ce_status action(n2ce_ctx *ctx, const fixture *f);

static n2ce_status action_open(n2ce_ctx *ctx, const fixture *f) {
    n2_st_file *file;
    const n2ce_status status = n2_st_open(ctx, f->path, &file);
    assert_true((status == N2CE_OK) == (file != NULL));
    n2_st_close(file);
    return status;
}

static n2ce_status action_parse(n2ce_ctx *ctx, const fixture *f) {
    static char bytes[8192];
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    const size_t n = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    n2_st_file *file;
    const n2ce_status status = n2_st_parse(ctx, "bytes", bytes, n, &file);
    assert_true((status == N2CE_OK) == (file != NULL));
    n2_st_close(file);
    return status;
}

static n2ce_status action_write(n2ce_ctx *ctx, const fixture *f) {
    return write_known(ctx, f->path);
}

/* The action with its n-th allocation failing, for every n until it succeeds. */
static void survive(const fixture *f, action *act, bool and_after) {
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 1; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, and_after); /* 0 is the context itself */
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        status = act(ctx, f);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        if (status != N2CE_OK) assert_message(ctx, "Out of memory");
        assert_int_equal(memory.live, 1);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
        assert_true(n < 1000);
    }
}

static void running_out_of_memory_leaks_nothing(void **state) {
    const fixture *f = *state;
    action *const actions[] = {action_open, action_parse, action_write};
    assert_int_equal(write_known(f->ctx, f->path), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        survive(f, actions[i], false);
        survive(f, actions[i], true);
    }
    write_bytes(f->path, "", 0); /* an empty file is read, not mapped */
    failing_alloc memory = failing_alloc_new(2, true);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
    n2ce_ctx *ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(action_open(ctx, f), N2CE_ENOMEM);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
}

/* ---- main ------------------------------------------------------------------------------- */

static n2ce_status read_known(n2ce_ctx *ctx, const char *path, bool *same) {
    n2_st_file *file;
    const n2ce_status status = n2_st_open(ctx, path, &file);
    *same = status == N2CE_OK && holds_known(file);
    n2_st_close(file);
    return status;
}

/* --write PATH or --read PATH; the exit code. */
static int serve(const char *what, const char *path) {
    n2ce_ctx *ctx;
    bool same = true;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    const n2ce_status status =
        strcmp(what, "--write") == 0 ? write_known(ctx, path) : read_known(ctx, path, &same);
    if (status != N2CE_OK) fprintf(stderr, "%s\n", n2ce_errmsg(ctx));
    n2ce_ctx_free(ctx);
    return status == N2CE_OK && same ? 0 : 1;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(a_file_without_tensors_is_a_file),
        TEST(a_pipe_is_read_to_its_end),
        TEST(the_same_input_gives_the_same_bytes),
        TEST(written_tensors_are_ordered_and_aligned),
        TEST(every_number_converts),
        TEST(the_ends_of_each_type_convert),
        TEST(what_is_no_number_does_not_convert),
        TEST(what_cannot_be_read_is_not_written),
        TEST(running_out_of_memory_leaks_nothing),
    };
    if (argc == 3 && (strcmp(argv[1], "--write") == 0 || strcmp(argv[1], "--read") == 0))
        return serve(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
