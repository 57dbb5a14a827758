/* What the tests of tables share: a file of their own, texts and arrays in it, and what is said of
 * them. */
#ifndef TABLES_H
#define TABLES_H

#include "close.h"
#include "failing_alloc.h"
#include "files.h"

#include "io/json.h"
#include "io/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- fixture ---------------------------------------------------------------------------- */

typedef struct fixture {
    n2ce_ctx *ctx;
    n2_levels *levels;
    char folder[64], path[128];
} fixture;

static inline int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/x.csv", f.folder);
    if (n2ce_ctx_new(&f.ctx, NULL) != N2CE_OK) return -1;
    return n2_levels_new(f.ctx, &f.levels) == N2CE_OK ? 0 : -1;
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    n2_levels_free(f->levels);
    n2ce_ctx_free(f->ctx);
    unlink(f->path);
    return rmdir(f->folder); /* fails if anything else was left */
}

static inline void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

static inline void assert_ok(const n2ce_ctx *ctx, n2ce_status status) {
    if (status != N2CE_OK) print_error("%s: %s\n", n2ce_status_name(status), n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
}

/* The table of a text. */
static inline n2_table *read_text(const fixture *f, const char *text, const n2_table_options *o) {
    n2_table *t;
    write_text(f->path, text);
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, o, &t));
    return t;
}

/* The text is refused, and the message contains the fragments, which are separated by '|'. */
static inline void assert_refused_as(const fixture *f, const char *text, const n2_table_options *o,
                                     n2ce_status status, const char *fragments) {
    n2_table *t;
    char copy[400];
    write_text(f->path, text);
    assert_int_equal(n2_table_read(f->ctx, f->path, o, &t), status);
    assert_null(t);
    assert_true(n2_is_utf8(n2ce_errmsg(f->ctx)));
    snprintf(copy, sizeof copy, "%s", fragments);
    for (char *part = strtok(copy, "|"); part; part = strtok(NULL, "|"))
        assert_message(f->ctx, part);
}

static inline void assert_refused(const fixture *f, const char *text, const char *fragments) {
    assert_refused_as(f, text, NULL, N2CE_EDATA, fragments);
}

static inline void assert_values(const n2_table *t, size_t rows, size_t cols, const double *x) {
    assert_int_equal(t->rows, rows);
    assert_int_equal(t->cols, cols);
    for (size_t i = 0; i < rows * cols; i++) assert_close(t->x[i], x[i], 0, 0);
}

/* ---- NPY -------------------------------------------------------------------------------- */

/* A file of version `major` with a header and n bytes. */
static inline size_t make_npy(unsigned char *out, int major, const char *header, const void *data,
                              size_t n) {
    const size_t length = strlen(header), fixed = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    for (size_t i = 8; i < fixed; i++) out[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(out + fixed, header, length);
    if (n > 0) memcpy(out + fixed + length, data, n);
    return fixed + length + n;
}

static inline void write_npy(const char *path, const char *header, const void *data, size_t n) {
    unsigned char bytes[2048];
    assert_true(strlen(header) + n < sizeof bytes - 16);
    write_bytes(path, bytes, make_npy(bytes, 1, header, data, n));
}

#define HEADER(descr, fortran, shape) \
    "{'descr': '" descr "', 'fortran_order': " fortran ", 'shape': " shape ", }  \n"

static inline n2_table *read_npy(const fixture *f, const char *header, const void *data, size_t n) {
    n2_table *t;
    write_npy(f->path, header, data, n);
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, NULL, &t));
    return t;
}

static const double six[] = {1, 2, 3, 4, 5, 6};

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
