/* Facts about how samples arrive: block by block, through pipes, from standard input, and with
 * little memory or none. */
#include "resident.h"
#include "tables.h"

#include "base/text.h"
#include "io/csv.h"
#include "io/json.h"
#include "io/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- streams ---------------------------------------------------------------------------- */

/* Blocks of any size give the rows of the table. */
static void a_reader_gives_the_rows_of_the_table(void **state) {
    const fixture *f = *state;
    const n2_table_options o = {.drop_missing = true};
    n2_table *t = read_text(f, "a,b\n1,2\nNA,3\n,4\n5,6\n7,8\n9,\n", &o);
    for (size_t block = 1; block < 5; block++) {
        n2_reader *r;
        size_t n, rows = 0;
        double x[8];
        assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, &o, &r));
        assert_int_equal(n2_reader_cols(r), 2);
        assert_string_equal(n2_reader_name(r, 1), "b");
        assert_null(n2_reader_name(r, 2));
        while (assert_ok(f->ctx, n2_reader_next(r, x, block, &n)), n > 0) {
            assert_memory_equal(x, t->x + rows * 2, n * 2 * sizeof *x);
            rows += n;
        }
        assert_ok(f->ctx, n2_reader_next(r, x, block, &n)); /* it stays at the end */
        assert_int_equal(n, 0);
        assert_int_equal(rows, t->rows);
        assert_int_equal(n2_reader_seen(r), t->seen);
        assert_int_equal(n2_reader_dropped(r), t->dropped);
        n2_reader_close(r);
    }
    n2_table_free(t);
    n2_reader_close(NULL);
}

/* A child writes the bytes, slowly if asked to; the descriptor to read them from. */
static int pipe_of(const void *bytes, size_t n, bool slowly) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* not forever, if nobody reads */
        const char *p = bytes;
        for (size_t step = slowly ? 5 : 1 << 16; n > 0;) {
            const ssize_t written = write(ends[1], p, step < n ? step : n);
            if (written <= 0) _exit(1);
            p += written;
            n -= (size_t)written;
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static n2ce_status read_pipe(const fixture *f, const void *bytes, size_t n, n2_table **t) {
    char path[32];
    const int end = pipe_of(bytes, n, true);
    snprintf(path, sizeof path, "/dev/fd/%d", end);
    const n2ce_status status = n2_table_read(f->ctx, path, NULL, t);
    close(end);
    wait(NULL);
    return status;
}

static void a_pipe_is_as_good_as_a_file(void **state) {
    const fixture *f = *state;
    unsigned char bytes[256];
    n2_table *t;
    assert_ok(f->ctx, read_pipe(f, "a,b\n1,2\n3,4\n5,6\n", 16, &t));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    size_t n = make_npy(bytes, 1, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    assert_ok(f->ctx, read_pipe(f, bytes, n, &t));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    assert_int_equal(read_pipe(f, bytes, n - 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "are 48 bytes, and 47 follow the header");
    assert_int_equal(read_pipe(f, bytes, n + 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "are 48 bytes, and at least 49 follow the header");
    n = make_npy(bytes, 1, HEADER("<f8", "True", "(3, 2)"), six, sizeof six);
    assert_ok(f->ctx, read_pipe(f, bytes, n, &t));
    assert_values(t, 3, 2, (double[]){1, 4, 2, 5, 3, 6});
    n2_table_free(t);
    assert_int_equal(read_pipe(f, bytes, n - 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "and 47 follow");
    assert_int_equal(read_pipe(f, bytes, n + 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "and at least 49 follow");
}

/* However the bytes of an array arrive. */
static void arrays_do_not_depend_on_how_bytes_arrive(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static const size_t columns[] = {1, 0};
    unsigned char bytes[256];
    for (size_t chunk = 0; chunk < 64; chunk++) {
        const char *header =
            chunk % 2 ? HEADER("<f8", "False", "(3, 2)") : HEADER("<f8", "True", "(3, 2)");
        const size_t n = make_npy(bytes, 1, header, six, sizeof six);
        n2_input in = n2_input_memory(ctx, "bytes", bytes, n);
        n2_npy *npy;
        double x[6];
        size_t rows;
        in.chunk = chunk;
        assert_ok(ctx, n2_npy_open(ctx, &in, &npy));
        assert_ok(ctx, n2_npy_next(npy, columns, 2, x, 2, &rows));
        assert_int_equal(rows, 2);
        assert_ok(ctx, n2_npy_next(npy, columns, 2, x + 4, 2, &rows));
        assert_int_equal(rows, 1);
        for (size_t i = 0; i < 6; i++) {
            const size_t row = i / 2, column = columns[i % 2];
            assert_true(x[i] == six[chunk % 2 ? 2 * row + column : row + 3 * column]);
        }
        n2_npy_close(npy);
        n2_input_close(&in);
    }
}

/* What a header promises is not allocated before it comes. */
static void a_pipe_that_promises_too_much_costs_nothing(void **state) {
    const fixture *f = *state;
    unsigned char bytes[256];
    n2_table *t;
    for (int fortran = 0; fortran < 2; fortran++) {
        const char *header = fortran ? HEADER("<f8", "True", "(9999999999999, 4)")
                                     : HEADER("<f8", "False", "(9999999999999, 4)");
        const size_t n = make_npy(bytes, 1, header, six, sizeof six);
        assert_int_equal(read_pipe(f, bytes, n, &t), N2CE_EDATA);
        assert_message(f->ctx, "and 48 follow the header");
    }
}

/* Standard input from a descriptor, for as long as the test takes. */
static n2_table *read_standard_input(const fixture *f, int from) {
    n2_table *t;
    const int saved = dup(STDIN_FILENO);
    assert_true(dup2(from, STDIN_FILENO) >= 0);
    const n2ce_status status = n2_table_read(f->ctx, "-", NULL, &t);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(from);
    assert_ok(f->ctx, status);
    return t;
}

static void a_minus_is_standard_input(void **state) {
    const fixture *f = *state;
    n2_table *t = read_standard_input(f, pipe_of("1,2\n3,4\n5,6\n", 12, false));
    wait(NULL);
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    write_npy(f->path, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    t = read_standard_input(f, open(f->path, O_RDONLY));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
}

static void problems_of_standard_input_are_called_so(void **state) {
    const fixture *f = *state;
    n2_table *t;
    const int saved = dup(STDIN_FILENO), empty = open("/dev/null", O_RDONLY);
    assert_true(dup2(empty, STDIN_FILENO) >= 0);
    assert_int_equal(n2_table_read(f->ctx, "-", NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "standard input is empty");
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(empty);
}

static void reading_stops_when_asked(void **state) {
    const fixture *f = *state;
    n2_table *t;
    n2_reader *r;
    double x[2];
    size_t n;
    write_text(f->path, "1,2\n3,4\n");
    assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, NULL, &r));
    n2ce_ctx_cancel(f->ctx);
    assert_int_equal(n2_reader_next(r, x, 1, &n), N2CE_ECANCELED);
    n2_reader_close(r);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_ECANCELED);
    assert_null(t);
    const n2ce_matrix m = {six, N2CE_F64, 3, 2, 0, 0};
    assert_int_equal(n2_table_of_matrix(f->ctx, &m, "m", NULL, &t), N2CE_ECANCELED);
    n2_cancel_reset(f->ctx);
}

/* ---- memory ----------------------------------------------------------------------------- */

/* The most memory that reading a file of zeros takes, above what was there before. */
static double memory_to_read(const fixture *f, const char *header, size_t data_bytes) {
    enum { ROWS = 512, COLS = 16 };
    static double x[ROWS * COLS];
    n2_reader *r;
    size_t n, rows = 0;
    write_npy(f->path, header, NULL, 0);
    assert_int_equal(truncate(f->path, (off_t)(10 + strlen(header) + data_bytes)), 0);
    const double before = resident_bytes();
    double most = before;
    assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, NULL, &r));
    while (assert_ok(f->ctx, n2_reader_next(r, x, ROWS, &n)), n > 0) {
        if (rows / 65536 < (rows + n) / 65536) most = fmax(most, resident_bytes());
        rows += n;
    }
    n2_reader_close(r);
    assert_int_equal(rows * COLS * 4, data_bytes);
    return most - before;
}

static void memory_does_not_grow_with_the_file(void **state) {
    const fixture *f = *state;
#ifdef __SANITIZE_THREAD__ /* its own memory grows with what is touched */
    skip();
#endif
    const size_t bytes = (size_t)1 << 26;
    assert_true(memory_to_read(f, HEADER("<f4", "False", "(1048576, 16)"), bytes) < 20 << 20);
    assert_true(memory_to_read(f, HEADER("<f4", "True", "(1048576, 16)"), bytes) < 20 << 20);
}

/* ---- out of memory ---------------------------------------------------------------------- */

typedef n2ce_status work_fn(n2ce_ctx *ctx, const char *path);

/* Everything a table can need. */
static n2ce_status read_everything(n2ce_ctx *ctx, const char *path) {
    n2_levels *levels;
    n2_table *t = NULL;
    N2_TRY(n2_levels_new(ctx, &levels));
    const n2_table_options o = {.columns = "y,\"c\",0",
                                .categorical = "c",
                                .levels = levels,
                                .drop_missing = true,
                                .max_rows = 4,
                                .seed = 1};
    const n2ce_status status = n2_table_read(ctx, path, &o, &t);
    assert_true((status == N2CE_OK) == (t != NULL));
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

static n2ce_status read_plainly(n2ce_ctx *ctx, const char *path) {
    n2_table *t;
    const n2ce_status status = n2_table_read(ctx, path, NULL, &t);
    assert_true((status == N2CE_OK) == (t != NULL));
    n2_table_free(t);
    return status;
}

/* A pipe: it has no place to map. */
static n2ce_status read_fifo(n2ce_ctx *ctx, const char *path) {
    char pipe_path[32];
    unsigned char bytes[256];
    size_t n = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const int end = pipe_of(bytes, n, false);
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", end);
    const n2ce_status status = read_plainly(ctx, pipe_path);
    close(end);
    wait(NULL);
    return status;
}

static n2ce_status read_matrix(n2ce_ctx *ctx, const char *path) {
    (void)path;
    const n2ce_matrix m = {six, N2CE_F64, 3, 2, 0, 0};
    n2_table *t;
    const n2ce_status status = n2_table_of_matrix(ctx, &m, "m", NULL, &t);
    n2_table_free(t);
    return status;
}

static n2ce_status write_array(n2ce_ctx *ctx, const char *path) {
    return n2_npy_write(ctx, path, six, 6, true);
}

/* Columns of texts are found while memory runs out. */
static n2ce_status read_texts(n2ce_ctx *ctx, const char *path) {
    n2_levels *levels;
    n2_table *t = NULL;
    N2_TRY(n2_levels_new(ctx, &levels));
    const n2_table_options o = {.find_texts = true, .levels = levels, .csv_part = 1};
    const n2ce_status status = n2_table_read(ctx, path, &o, &t);
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

/* The levels that are refused are listed, which takes memory, too. */
static n2ce_status refuse_a_level(n2ce_ctx *ctx, const char *path) {
    (void)path;
    n2_levels *levels;
    size_t code;
    N2_TRY(n2_levels_new(ctx, &levels));
    n2ce_status status = n2_levels_add(levels, "c", "red", &code);
    n2_levels_freeze(levels);
    if (status == N2CE_OK) status = n2_levels_add(levels, "c", "blue", &code);
    n2_levels_free(levels);
    return status == N2CE_EDATA ? N2CE_OK : status;
}

/* Fails the n-th allocation, for every n, until none fails. */
static void fail_everywhere(const fixture *f, work_fn *work, bool and_after) {
    for (size_t n = 1;; n++) {
        failing_alloc memory = failing_alloc_new(n, and_after); /* 0 is the context itself */
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        const n2ce_status status = work(ctx, f->path);
        if (status != N2CE_OK) {
            assert_int_equal(status, N2CE_ENOMEM);
            assert_message(ctx, "Out of memory");
        }
        assert_int_equal(memory.live, 1);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
        if (status != N2CE_OK) continue;
        assert_true(n > 2 || work == write_array);
        return;
    }
}

static void running_out_of_memory_leaks_nothing(void **state) {
    const fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    n2_text_add(&text, "x,y,c,");
    for (int i = 0; i < 80; i++) n2_text_add(&text, "column %d%s", i, i < 79 ? "," : "\n");
    for (int row = 0; row < 40; row++)
        for (int i = 0; i < 83; i++) n2_text_add(&text, "%d%s", row + i, i < 82 ? "," : "\n");
    n2_text_add(&text, "1,2,\"");
    for (int i = 0; i < 600000; i++) n2_text_add_raw(&text, "l", 1); /* longer than the buffer */
    n2_text_add(&text, "\"");
    for (int i = 0; i < 80; i++) n2_text_add(&text, ",1");
    write_text(f->path, text.data);
    n2_text_free(&text);
    fail_everywhere(f, read_everything, false);
    fail_everywhere(f, read_everything, true);
    write_npy(f->path, HEADER("<f8", "True", "(3, 2)"), six, sizeof six);
    fail_everywhere(f, read_plainly, false);
    fail_everywhere(f, read_fifo, false);
    write_npy(f->path, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    fail_everywhere(f, read_fifo, false);
    fail_everywhere(f, read_matrix, false);
    fail_everywhere(f, refuse_a_level, false);
    write_text(f->path, "a,b,c\n1,red,x\n2,blue,y\n3,red,z\n");
    fail_everywhere(f, read_texts, false);
    fail_everywhere(f, write_array, false);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_reader_gives_the_rows_of_the_table),
        TEST(a_pipe_is_as_good_as_a_file),
        TEST(arrays_do_not_depend_on_how_bytes_arrive),
        TEST(a_pipe_that_promises_too_much_costs_nothing),
        TEST(a_minus_is_standard_input),
        TEST(problems_of_standard_input_are_called_so),
        TEST(reading_stops_when_asked),
        TEST(memory_does_not_grow_with_the_file),
        TEST(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests_name("table streams", tests, NULL, NULL);
}
