/* Facts about CSV on several threads: rows, counts, levels and messages are those of one thread,
 * wherever the bytes are cut. */
#include "contexts.h"
#include "failing_alloc.h"
#include "resident.h"

#include "base/text.h"
#include "io/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- all that can be known of a file ---------------------------------------------------- */

typedef struct outcome {
    n2ce_status status;
    char message[800];
    double *x; /* also of a file that is refused: what came before */
    size_t rows, cols, seen, dropped;
    char *levels; /* all texts, one a line */
} outcome;

static void outcome_free(outcome *o) {
    free(o->x);
    free(o->levels);
}

static char *list_levels(n2ce_ctx *ctx, const n2_levels *levels) {
    n2_text list = n2_text_new(ctx);
    n2_text_add(&list, "levels:\n");
    for (size_t c = 0; c < n2_levels_columns(levels); c++) {
        const char *column = n2_levels_column(levels, c);
        for (size_t i = 0; i < n2_levels_count(levels, column); i++)
            n2_text_add(&list, "%s: %s\n", column, n2_levels_text(levels, column, i));
    }
    char *copy = strdup(list.data);
    n2_text_free(&list);
    return copy;
}

static n2ce_status read_blocks(n2_reader *r, size_t block, outcome *out) {
    out->cols = n2_reader_cols(r);
    for (size_t n = 1; n > 0; out->rows += n) {
        out->x = realloc(out->x, (out->rows + block) * out->cols * sizeof *out->x);
        assert_non_null(out->x);
        N2_TRY(n2_reader_next(r, out->x + out->rows * out->cols, block, &n));
    }
    return N2CE_OK;
}

/* Reads a text with so many rows a call. */
static outcome outcome_of(n2ce_ctx *ctx, const char *text, n2_table_options o, size_t block) {
    outcome out = {.rows = 0};
    n2_reader *r;
    assert_int_equal(n2_levels_new(ctx, &o.levels), N2CE_OK);
    out.status = n2_reader_parse(ctx, "text", text, strlen(text), &o, &r);
    if (r) {
        out.status = read_blocks(r, block, &out);
        out.seen = n2_reader_seen(r);
        out.dropped = n2_reader_dropped(r);
    }
    snprintf(out.message, sizeof out.message, "%s", out.status ? n2ce_errmsg(ctx) : "");
    out.levels = list_levels(ctx, o.levels);
    n2_reader_close(r);
    n2_levels_free(o.levels);
    return out;
}

static void assert_same(const outcome *a, const outcome *b) {
    assert_string_equal(a->message, b->message);
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->levels, b->levels);
    assert_int_equal(a->seen, b->seen);
    assert_int_equal(a->dropped, b->dropped);
    if (a->status != N2CE_OK) return; /* which blocks came before depends on their size */
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_memory_equal(a->x, b->x, a->rows * a->cols * sizeof *a->x);
}

/* One thread against several, with parts and blocks of all sizes; returns how many rows. */
static size_t assert_like_one_thread(const char *text, n2_table_options o) {
    static const size_t parts[] = {1, 3, 7, 40}, blocks[] = {4, 1000};
    static const int threads[] = {2, 7};
    n2ce_ctx *one = new_ctx(1);
    outcome expected = outcome_of(one, text, o, 1000);
    for (size_t t = 0; t < COUNT_OF(threads); t++) {
        n2ce_ctx *ctx = new_ctx(threads[t]);
        for (size_t i = 0; i < COUNT_OF(parts) * COUNT_OF(blocks); i++) {
            o.csv_part = parts[i / COUNT_OF(blocks)];
            outcome found = outcome_of(ctx, text, o, blocks[i % COUNT_OF(blocks)]);
            assert_same(&expected, &found);
            outcome_free(&found);
        }
        n2ce_ctx_free(ctx);
    }
    const size_t rows = expected.rows;
    outcome_free(&expected);
    n2ce_ctx_free(one);
    return rows;
}

/* ---- texts ------------------------------------------------------------------------------ */

enum { LINES = 120 };

/* A header and lines of a number, a colour and another number, with something in the middle, or
 * NULL. */
static char *colours(const char *newline, const char *middle) {
    static const char *const names[] = {"red", "\"green\"", "blue ", " \"dark blue\" ", "7"};
    static char text[1 << 15];
    char *p = text + sprintf(text, "a,colour,b%s", newline);
    for (int i = 0; i < LINES; i++) {
        if (i == LINES / 2 && middle) p += sprintf(p, "%s", middle);
        p += sprintf(p, "%d.25,%s,%de-3%s", i, names[i * i % 11 % 5], i * i, newline);
    }
    return text;
}

static const n2_table_options numbers = {.columns = "b,a"}, all = {.columns = NULL};
static const n2_table_options dropping = {.columns = "a,b", .drop_missing = true};
static const n2_table_options categories = {.categorical = "colour", .drop_missing = true};

static void rows_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const newlines[] = {"\n", "\r\n", "\n\n", "\r\n \t\r\n"};
    for (size_t i = 0; i < COUNT_OF(newlines); i++) {
        assert_int_equal(assert_like_one_thread(colours(newlines[i], NULL), numbers), LINES);
        assert_int_equal(assert_like_one_thread(colours(newlines[i], NULL), categories), LINES);
    }
    char *text = colours("\n", NULL);
    text[strlen(text) - 1] = '\0'; /* the last line has no newline */
    assert_int_equal(assert_like_one_thread(text, categories), LINES);
    text = colours("\n", NULL);
    strcat(text, "\n\n \n");
    assert_int_equal(assert_like_one_thread(text, numbers), LINES);
}

static void a_file_without_a_header_does_not_either(void **state) {
    (void)state;
    const n2_table_options o = {.columns = "2,0"};
    assert_int_equal(assert_like_one_thread(strchr(colours("\n", NULL), '\n') + 1, o), LINES);
    assert_like_one_thread("1\n2\n\n3\n4\n5\n6\n7\n8", all);
    assert_like_one_thread("\xef\xbb\xbf# c\r\n\r\n1;2\r\n3;4\r\n5;6\r\n", all);
    assert_like_one_thread("a,b\n", all);
    assert_like_one_thread("", all);
}

/* Newlines inside quotes, and quotes that are none. */
static void quotes_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const middles[] = {
        "1,\"\n\n2,3,4\n5,6,7\n\",8\n",
        "1,\"two\nlines\",3\n4,\"\r\n\",5\n6,\"\n\n\n\",7\n",
        "1,\"say \"\"x\"\"\",2\n3,\"\"\"\n\"\"\",4\n",
        "1,5\" pipe,2\n3,a \"b\nc,4,5\n", /* a line too short */
        "1,5\" pipe,2\n3,a \"b,4\n5,\"x\",6\n7,\"\"\"\"\"\",8\n",
        "1,\"\",2\n",
        "1,\"\"\"\",2\n",
    };
    for (size_t i = 0; i < COUNT_OF(middles); i++) {
        assert_like_one_thread(colours("\n", middles[i]), numbers);
        assert_like_one_thread(colours("\n", middles[i]), categories);
        assert_like_one_thread(colours("\r\n", middles[i]), categories);
    }
    char many[LINES * 24] = "a,colour\n", *p = many + strlen(many);
    for (int i = 0; i < LINES; i++) p += sprintf(p, "%d,\"x\n%d,%d\ny\"\n", i, i, i);
    assert_int_equal(assert_like_one_thread(many, (n2_table_options){.columns = "a"}), LINES);
    p = strchr(many, '\n') + 1; /* the text of one level is that of another, halved */
    for (int i = 0; i < LINES; i++) p += sprintf(p, "%d,\"x%s\"\n", i, i % 3 ? "\"\"" : "\"\"\"\"");
    assert_int_equal(assert_like_one_thread(many, categories), LINES);
}

static void missing_values_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const middles[] = {",x,1\n", "NA,x,1\n1,,2\n3,x,?\n", "1,x,-\n\n2,x,.\n"};
    for (size_t i = 0; i < COUNT_OF(middles); i++) {
        assert_like_one_thread(colours("\n", middles[i]), dropping);
        assert_like_one_thread(colours("\n", middles[i]), categories);
        assert_like_one_thread(colours("\n", middles[i]), numbers); /* refused */
    }
    char some[LINES * 24] = "a,b\n", *p = some + strlen(some);
    for (int i = 0; i < LINES; i++) p += sprintf(p, i % 3 ? "NA,%d\n" : "%d,2\n", i);
    assert_int_equal(assert_like_one_thread(some, dropping), LINES / 3);
    assert_like_one_thread("a,b\n1,NA\nNA,2\n,\n?,?\n1,\n", dropping); /* none is left */
}

/* The first mistake in the file is the one that is reported, with its line. */
static void mistakes_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const middles[] = {"oops,x,1\n1,x,oops\n",
                                          "1,x,inf\n",
                                          "1,x,1e999\noops,x,1\n",
                                          "1,x\n",
                                          "1,x,2,3\n1,x\n",
                                          "1,x,2,3,4,5\n",
                                          "1,\"x\" y,2\n",
                                          "1,\"x,2\n",
                                          "1,\"\n\n\n\",1\n\n1,x,oops\n",
                                          "1,\"a\"\"b\",oops\n",
                                          "1,\"\xff\",1\n"};
    for (size_t i = 0; i < COUNT_OF(middles); i++) {
        assert_like_one_thread(colours("\n", middles[i]), numbers);
        assert_like_one_thread(colours("\r\n", middles[i]), dropping);
        assert_like_one_thread(colours("\n\n", middles[i]), categories);
        assert_like_one_thread(colours("\n", middles[i]), all); /* the first colour is no number */
    }
}

/* Every row has a level of its own. */
static void new_levels_are_numbered_as_they_come(void **state) {
    (void)state;
    char text[LINES * 24] = "colour,a\n", *p = text + strlen(text);
    for (int i = 0; i < LINES; i++) p += sprintf(p, "%d-%d,%d\n", i * 7919 % LINES, i % 2 * i, i);
    assert_int_equal(assert_like_one_thread(text, categories), LINES);
}

static void frozen_levels_refuse_on_any_thread(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        n2ce_ctx *ctx = new_ctx(threads);
        n2_levels *levels;
        n2_reader *r;
        size_t code, n;
        double x[2 * LINES];
        assert_int_equal(n2_levels_new(ctx, &levels), N2CE_OK);
        assert_int_equal(n2_levels_add(levels, "c", "x", &code), N2CE_OK);
        n2_levels_freeze(levels);
        const n2_table_options o = {.categorical = "c", .levels = levels, .csv_part = 4};
        const char *text = "a,c\n1,x\n2,x\n3,x\n4,y\n5,x\n6,z\n";
        assert_int_equal(n2_reader_parse(ctx, "text", text, strlen(text), &o, &r), N2CE_OK);
        assert_int_equal(n2_reader_next(r, x, LINES, &n), N2CE_EDATA);
        assert_non_null(strstr(n2ce_errmsg(ctx), "text, line 5, column 2 (\"c\"): \"y\""));
        n2_reader_close(r);
        n2_levels_free(levels);
        n2ce_ctx_free(ctx);
    }
}

static void many_threads_stop_when_asked(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(3);
    n2_reader *r;
    size_t n;
    double x[2 * LINES];
    const char *text = colours("\n", NULL);
    const n2_table_options o = {.columns = "a,b", .csv_part = 16};
    assert_int_equal(n2_reader_parse(ctx, "text", text, strlen(text), &o, &r), N2CE_OK);
    assert_int_equal(n2_reader_next(r, x, LINES / 3, &n), N2CE_OK);
    assert_int_equal(n, LINES / 3);
    n2ce_ctx_cancel(ctx);
    assert_int_equal(n2_reader_next(r, x, LINES, &n), N2CE_ECANCELED);
    n2_reader_close(r);
    n2ce_ctx_free(ctx);
}

/* ---- large files ------------------------------------------------------------------------ */

typedef struct large_file {
    char path[64];
    size_t bytes;
} large_file;

/* Many pieces of rows, a few of which lack a value or go over two lines. */
static large_file large_file_new(size_t rows) {
    large_file f = {.path = "/tmp/n2ce-test-XXXXXX"};
    const int descriptor = mkstemp(f.path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "wb");
    assert_non_null(file);
    fprintf(file, "a,b,t\n");
    for (size_t i = 0; i < rows; i++)
        fprintf(file, "%zu,%s,%s\n", i, i % 1009 ? "-12.5e-1" : "NA",
                i % 5003 ? "some text" : "\"two\n\"\"lines\"\"\"");
    f.bytes = (size_t)ftell(file);
    assert_int_equal(fclose(file), 0);
    return f;
}

static n2_table *read_path(n2ce_ctx *ctx, const char *path, size_t max_rows) {
    const n2_table_options o = {
        .columns = "a,b", .drop_missing = true, .max_rows = max_rows, .seed = 3};
    n2_table *t;
    assert_int_equal(n2_table_read(ctx, path, &o, &t), N2CE_OK);
    return t;
}

static n2_table *read_through_pipe(n2ce_ctx *ctx, const char *path, size_t max_rows) {
    char command[128], end[32];
    snprintf(command, sizeof command, "cat %s", path);
    FILE *cat = popen(command, "r");
    assert_non_null(cat);
    snprintf(end, sizeof end, "/dev/fd/%d", fileno(cat));
    n2_table *t = read_path(ctx, end, max_rows);
    assert_int_equal(pclose(cat), 0);
    return t;
}

static void assert_same_table(const n2_table *a, n2_table *b) {
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->seen, b->seen);
    assert_int_equal(a->dropped, b->dropped);
    assert_memory_equal(a->x, b->x, a->rows * a->cols * sizeof *a->x);
    n2_table_free(b);
}

static void large_files_do_not_depend_on_threads(void **state) {
    (void)state;
    enum { ROWS = 200000, SOME = 5000 };
    const large_file f = large_file_new(ROWS);
    n2ce_ctx *one = new_ctx(1), *many = new_ctx(5);
    for (size_t max_rows = 0; max_rows <= SOME; max_rows += SOME) {
        n2_table *expected = read_path(one, f.path, max_rows);
        assert_int_equal(expected->seen, ROWS);
        assert_int_equal(expected->rows, max_rows ? max_rows : ROWS - expected->dropped);
        assert_same_table(expected, read_path(many, f.path, max_rows));
        assert_same_table(expected, read_through_pipe(many, f.path, max_rows));
        n2_table_free(expected);
    }
    n2ce_ctx_free(one);
    n2ce_ctx_free(many);
    unlink(f.path);
}

static void memory_does_not_grow_with_the_file(void **state) {
    (void)state;
    enum { BLOCK = 8192 };
    static double x[2 * BLOCK];
    const large_file f = large_file_new(1000000);
    const n2_table_options o = {.columns = "a,b", .drop_missing = true, .csv_part = 1 << 10};
    n2ce_ctx *ctx = new_ctx(3);
    n2_reader *r;
    size_t n;
    assert_int_equal(n2_reader_open(ctx, f.path, &o, &r), N2CE_OK);
    assert_int_equal(n2_reader_next(r, x, BLOCK, &n), N2CE_OK); /* threads have started */
    const double before = resident_bytes();
    while (assert_int_equal(n2_reader_next(r, x, BLOCK, &n), N2CE_OK), n > 0) {}
    assert_true(resident_bytes() - before < (double)f.bytes / 4);
    n2_reader_close(r);
    n2ce_ctx_free(ctx);
    unlink(f.path);
}

static void running_out_of_memory_leaks_nothing(void **state) {
    (void)state;
    const n2_table_options o = {.categorical = "colour", .drop_missing = true, .csv_part = 3};
    const char *text = colours("\n", "1,\"a\nb\",NA\n");
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 1; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 3);
        n2ce_ctx *ctx;
        n2_levels *levels;
        n2_reader *r = NULL;
        size_t rows;
        double x[3 * LINES];
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        status = n2_levels_new(ctx, &levels);
        n2_table_options with = o;
        with.levels = levels;
        if (status == N2CE_OK) status = n2_reader_parse(ctx, "text", text, strlen(text), &with, &r);
        if (status == N2CE_OK) status = n2_reader_next(r, x, LINES, &rows);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        n2_reader_close(r);
        n2_levels_free(levels);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_do_not_depend_on_threads),
        cmocka_unit_test(a_file_without_a_header_does_not_either),
        cmocka_unit_test(quotes_do_not_depend_on_threads),
        cmocka_unit_test(missing_values_do_not_depend_on_threads),
        cmocka_unit_test(mistakes_do_not_depend_on_threads),
        cmocka_unit_test(new_levels_are_numbered_as_they_come),
        cmocka_unit_test(frozen_levels_refuse_on_any_thread),
        cmocka_unit_test(many_threads_stop_when_asked),
        cmocka_unit_test(large_files_do_not_depend_on_threads),
        cmocka_unit_test(memory_does_not_grow_with_the_file),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
