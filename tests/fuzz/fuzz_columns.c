/* Fuzzes lists of columns. The input is tried as a list, and as changes to a valid one. What is
 * accepted names columns that are there, each once; their names, quoted, are the same list.
 *
 * libFuzzer: -max_len=256
 * traced: io
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "require.h"

#include "io/json.h"
#include "io/table.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 12 };
static char *names[COLUMNS] = {
    "temp", "pressure", "a,b", "say \"so\"", "5-9", "7", "\xc3\xa9t\xc3\xa9",
    "x y",  "",         "0",   "-",          "3-"};

/* The names of what was found, as a list, are found again. */
static void check_quoted(n2ce_ctx *ctx, const size_t *found, size_t n) {
    bool which[COLUMNS] = {false};
    char *quoted;
    size_t *again, m;
    for (size_t i = 0; i < n; i++) which[found[i]] = true;
    if (which[8]) return; /* nobody can name what has no name */
    REQUIRE(n2_columns_quote(ctx, names, which, COLUMNS, &quoted) == N2CE_OK);
    REQUIRE(n2_columns_parse(ctx, quoted, names, COLUMNS, &again, &m) == N2CE_OK && m == n);
    for (size_t i = 0; i < m; i++) REQUIRE(which[again[i]]);
    n2_free(ctx, again);
    n2_free(ctx, quoted);
}

static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n) {
    char *text = malloc(n + 1);
    size_t *found = NULL, count = 0;
    bool seen[COLUMNS] = {false};
    REQUIRE(text);
    if (n) memcpy(text, bytes, n);
    text[n] = '\0';
    const n2ce_status status = n2_columns_parse(ctx, text, names, COLUMNS, &found, &count);
    REQUIRE(status == N2CE_OK || status == N2CE_EINVAL);
    for (size_t i = 0; status == N2CE_OK && i < count; i++) {
        REQUIRE(found[i] < COLUMNS && !seen[found[i]]);
        seen[found[i]] = true;
    }
    if (status == N2CE_OK && count > 0) check_quoted(ctx, found, count);
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
    if (status == N2CE_OK) n2_free(ctx, found);
    free(text);
}

static const char valid[] = "temp,\"a,b\",\"say \"\"so\"\"\",7,0,10-11, x y";

static const char *const pieces[] = {",", "\"",   "\"\"",     "-",  "0-", "9999999999999999999",
                                     " ", "\xc3", "pressure", "5-9"};

#include "fuzz_list.h"
