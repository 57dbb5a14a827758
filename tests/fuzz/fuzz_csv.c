/* Fuzzes the CSV reader. The input is tried as a file that arrives at once or in pieces, with
 * different options, on one thread or several, and its first line as a list of columns. What is
 * accepted must be finite, must not depend on how it is read, and must survive writing and reading;
 * what is refused is so for the same reason.
 *
 * libFuzzer: -max_len=256
 * traced: io
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "one_thread.h"

#include "io/csv.h"
#include "io/json.h"
#include "io/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of fields --------------------------------------------------------------------- */

/* A hash of all fields and line numbers, or of the message. */
static uint64_t hash_fields(n2ce_ctx *ctx, const uint8_t *data, size_t size, size_t chunk) {
    n2_input in = n2_input_memory(ctx, "fuzz", data, size);
    n2_csv *csv;
    const n2_csv_field *fields;
    size_t n;
    uint64_t hash = 1;
    in.chunk = chunk;
    REQUIRE(n2_csv_open(ctx, &in, 0, &csv) == N2CE_OK);
    n2ce_status status;
    while ((status = n2_csv_next(csv, &fields, &n)) == N2CE_OK && fields) {
        REQUIRE(n > 0 && n2_csv_line(csv) > 0);
        hash = hash * 31 + n2_csv_line(csv);
        for (size_t i = 0; i < n; i++) {
            hash = hash * 31 + fields[i].n;
            for (size_t k = 0; k < fields[i].n; k++)
                hash = hash * 31 + (unsigned char)fields[i].text[k];
        }
    }
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    for (const char *p = status == N2CE_OK ? "" : n2ce_errmsg(ctx); *p; p++)
        hash = hash * 31 + (unsigned char)*p;
    n2_csv_close(csv);
    n2_input_close(&in);
    return hash;
}

/* ---- tables ----------------------------------------------------------------------------- */

typedef struct rows {
    double *x;
    size_t n, cols;
} rows;

/* Reads all rows in blocks; false if the file is refused. */
static bool read_rows(n2ce_ctx *ctx, const void *data, size_t size, const n2_table_options *o,
                      size_t block, rows *out) {
    n2_reader *r;
    size_t n = 1;
    *out = (rows){.x = NULL};
    n2ce_status status = n2_reader_parse(ctx, "fuzz", data, size, o, &r);
    if (status == N2CE_OK) out->cols = n2_reader_cols(r);
    for (; status == N2CE_OK && n > 0; out->n += n) {
        out->x = realloc(out->x, (out->n + block) * out->cols * sizeof *out->x);
        REQUIRE(out->x);
        status = n2_reader_next(r, out->x + out->n * out->cols, block, &n);
    }
    if (status == N2CE_OK) {
        REQUIRE(out->n > 0 && n2_reader_seen(r) == n2_reader_dropped(r) + out->n);
        for (size_t i = 0; i < out->n * out->cols; i++) REQUIRE(isfinite(out->x[i]));
    } else {
        REQUIRE(status == N2CE_EDATA || (status == N2CE_EINVAL && o && o->columns));
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz", 4) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    }
    n2_reader_close(r);
    return status == N2CE_OK;
}

static void check_same(const rows *a, const rows *b) {
    REQUIRE(a->n == b->n && a->cols == b->cols);
    REQUIRE(memcmp(a->x, b->x, a->n * a->cols * sizeof *a->x) == 0);
}

static void check_same_levels(const n2_levels *a, const n2_levels *b) {
    REQUIRE(n2_levels_columns(a) == n2_levels_columns(b));
    for (size_t c = 0; c < n2_levels_columns(a); c++) {
        const char *column = n2_levels_column(a, c);
        REQUIRE(n2_levels_count(a, column) == n2_levels_count(b, column));
        for (size_t i = 0; i < n2_levels_count(a, column); i++)
            REQUIRE(strcmp(n2_levels_text(a, column, i), n2_levels_text(b, column, i)) == 0);
    }
}

/* Several threads, for all inputs: they take longer to start than to read. */
static n2ce_ctx *threads(void) {
    static n2ce_ctx *ctx;
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 3;
    if (!ctx) REQUIRE(n2ce_ctx_new(&ctx, &options) == N2CE_OK);
    return ctx;
}

/* Blocks of many rows, and of one; and in parts of so many bytes on several threads. */
static void try_options(n2ce_ctx *ctx, const uint8_t *data, size_t size, n2_table_options o,
                        size_t part, rows *out) {
    enum { WAYS = 3 };
    n2_levels *levels[WAYS];
    bool accepted = false;
    for (size_t i = 0; i < WAYS; i++) {
        n2ce_ctx *reading = i < 2 ? ctx : threads();
        rows again;
        REQUIRE(n2_levels_new(reading, &levels[i]) == N2CE_OK);
        o.levels = levels[i];
        o.csv_part = i < 2 ? 0 : part;
        const bool ok = read_rows(reading, data, size, &o, i == 1 ? 1 : 64, i ? &again : out);
        if (i == 0) accepted = ok;
        REQUIRE(ok == accepted);
        if (i == 0) continue;
        check_same_levels(levels[0], levels[i]);
        if (ok) check_same(out, &again);
        if (!ok) REQUIRE(strcmp(n2ce_errmsg(ctx), n2ce_errmsg(reading)) == 0);
        free(again.x);
    }
    if (!accepted) out->n = 0;
    for (int i = 0; i < WAYS; i++) n2_levels_free(levels[i]);
}

/* Numbers printed with 17 digits are the same numbers; names first, since a line of 0, 1, 2 would
 * be taken for them. */
static void round_trip(n2ce_ctx *ctx, const rows *a) {
    enum { WIDTH = 26 };
    char *text = malloc((a->n + 1) * a->cols * WIDTH + 1), *p = text;
    rows again;
    REQUIRE(text);
    for (size_t c = 0; c < a->cols; c++)
        p += snprintf(p, WIDTH, "x%zu%c", c, c + 1 < a->cols ? ',' : '\n');
    for (size_t i = 0; i < a->n * a->cols; i++)
        p += snprintf(p, WIDTH, "%.17g%c", a->x[i], (i + 1) % a->cols ? ',' : '\n');
    REQUIRE(read_rows(ctx, text, (size_t)(p - text), NULL, 64, &again));
    check_same(a, &again);
    free(again.x);
    free(text);
}

static void try_columns(n2ce_ctx *ctx, const uint8_t *data, size_t size) {
    static char *const names[] = {"a", "bb", "1", "c,d", "0-2"};
    char text[64];
    size_t *columns, n, length = size < sizeof text - 1 ? size : sizeof text - 1;
    if (length > 0) memcpy(text, data, length);
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    const n2ce_status status = n2_columns_parse(ctx, text, names, 5, &columns, &n);
    REQUIRE(status == N2CE_OK || status == N2CE_EINVAL);
    REQUIRE(n <= 5 && (status == N2CE_OK) == (columns != NULL));
    for (size_t i = 0; i < n; i++) REQUIRE(columns[i] < 5);
    n2_free(ctx, columns);
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const n2_table_options options[] = {
        {.drop_missing = false},
        {.drop_missing = true},
        {.columns = "0"},
        {.columns = "1,a", .drop_missing = true, .categorical = "a"},
        {.columns = "0", .drop_missing = true, .categorical = "0"},
        {.find_texts = true},
        {.find_texts = true, .drop_missing = true},
    };
    if (size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0) return 0;
    n2ce_ctx *ctx = one_thread();
    const uint64_t hash = hash_fields(ctx, data, size, 0);
    for (size_t chunk = 1; chunk <= 3; chunk++)
        REQUIRE(hash_fields(ctx, data, size, chunk) == hash);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        rows read;
        try_options(ctx, data, size, options[i], (size_t)1 << (size + i) % 4, &read);
        if (read.n > 0) round_trip(ctx, &read);
        free(read.x);
    }
    try_columns(ctx, data, size);
    n2ce_ctx_free(ctx);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Pieces of CSV one after the other. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    static const char *const pieces[] = {
        "1",  "2.5", "-3e4", ",", ",", ",",   "\n",  "\n",   "\r\n", "\"",    "\"\"",  "a",
        "NA", " ",   "\t",   ";", "#", "inf", "0x1", "\xc3", "?",    "a,b\n", "1,2\n", "3,\n"};
    const uint32_t n_pieces = next_random(state) % 24;
    size_t n = 0;
    for (uint32_t i = 0; i < n_pieces; i++) {
        const char *piece = pieces[next_random(state) % (sizeof pieces / sizeof pieces[0])];
        REQUIRE(n + strlen(piece) <= room);
        memcpy(buffer + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

#endif
