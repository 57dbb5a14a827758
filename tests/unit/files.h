/* Files that a test writes, and what a context says of them. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include "n2ce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static inline void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* The last error has this in its sentence. */
static inline void assert_message(const n2ce_ctx *ctx, const char *fragment) {
    if (strstr(n2ce_errmsg(ctx), fragment)) return;
    print_error("\"%s\" is not in \"%s\"\n", fragment, n2ce_errmsg(ctx));
    fail();
}

#endif
