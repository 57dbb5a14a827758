/* Fuzzes the option parser: the input is cut at NUL and newline into names and
 * values, which are set and read back, with the table of "study gaussian" and
 * with one that has the types the study lacks.
 *
 * libFuzzer: -max_len=256
 * traced: base
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "one_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const n2ce_option other_types[] = {
    {"flag", 'f', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "a switch"},
    {"word", 'w', N2CE_OPTION_WORD, "red", 0, 0, "red|green|blue", "WORD", "one word"},
    {"words", 0, N2CE_OPTION_WORDS, "auto", 0, 0, "red|green|blue", "LIST", "some words"},
    {"count", 'c', N2CE_OPTION_COUNT, "0", 0, 0, NULL, "N", "any whole number"},
    {"real", 'r', N2CE_OPTION_REAL, "0", -1, 1, NULL, "X", "a number"},
    {"path", 'p', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "a file"},
    {"text", 't', N2CE_OPTION_TEXT, NULL, 0, 0, NULL, "TEXT", "any text"},
    {0},
};

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A copy that the caller frees; NULL for NULL. */
static char *copy_text(const char *text) {
    if (!text) return NULL;
    const size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    REQUIRE(copy);
    return memcpy(copy, text, n);
}

static void set_one(n2ce_ctx *ctx, n2ce_options *options, const n2ce_option *table,
                    const char *name, const char *value) {
    const n2ce_option *row = n2ce_option_find(table, name);
    char *before = copy_text(n2ce_options_get(options, name));
    const n2ce_status status = n2ce_options_set(options, name, value);
    const char *after = n2ce_options_get(options, name);
    REQUIRE(status == N2CE_OK || status == N2CE_EINVAL || status == N2CE_ENOMEM);
    if (status == N2CE_OK) {
        REQUIRE(row && same_text(after, value));
    } else {
        REQUIRE(same_text(after, before));
        REQUIRE(n2ce_errmsg(ctx)[0] != '\0');
    }
    if (!row) REQUIRE(status == N2CE_EINVAL && !after);
    if (row && row->type == N2CE_OPTION_TEXT) REQUIRE(status != N2CE_EINVAL);
    free(before);
}

/* Whatever is held can be set again, and an option with a default has a value. */
static void read_back(n2ce_ctx *ctx, n2ce_options *options, const n2ce_option *table) {
    for (const n2ce_option *row = table; row->name; row++) {
        char *value = copy_text(n2ce_options_get(options, row->name));
        REQUIRE(value || !row->fallback);
        if (value) {
            set_one(ctx, options, table, row->name, value);
            REQUIRE(same_text(n2ce_options_get(options, row->name), value));
        }
        free(value);
    }
}

/* The end of the piece of text at `at`: a NUL or a newline, or the end of all. */
static char *piece_end(char *at, const char *end) {
    while (at < end && *at != '\0' && *at != '\n') at++;
    return at;
}

static void set_all(n2ce_ctx *ctx, const n2ce_option *table, const uint8_t *data, size_t size) {
    n2ce_options *options;
    REQUIRE(n2ce_options_new(ctx, table, &options) == N2CE_OK);
    char *text = malloc(size + 1);
    REQUIRE(text);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    char *const end = text + size;
    for (char *name = text; name < end;) {
        char *name_end = piece_end(name, end);
        char *value = name_end < end ? name_end + 1 : end, *value_end = piece_end(value, end);
        *name_end = *value_end = '\0';
        set_one(ctx, options, table, name, value);
        name = value_end < end ? value_end + 1 : end;
    }
    read_back(ctx, options, table);
    free(text);
    n2ce_options_free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    n2ce_ctx *ctx = one_thread();
    set_all(ctx, n2ce_task_options(n2ce_task_find("study gaussian")), data, size);
    set_all(ctx, other_types, data, size);
    n2ce_ctx_free(ctx);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Pieces of valid input, and random characters. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    static const char *const pieces[] = {
        "dim",  "n",    "target", "magnitudes", "families", "runs",  "step-size",
        "seed", "flag", "word",   "path",       "words",    "count", "real",
        "auto", "n2ce", "nwj",    "true",       "red",      "nan",   "1e9",
        "-1.5", "1K",   "0x1",    "blue",       "inf",      "2M",    "text"};
    const size_t n_pieces = sizeof pieces / sizeof pieces[0];
    size_t n = 0;
    for (uint32_t left = next_random(state) % 40; left > 0; left--) {
        const char *piece = pieces[next_random(state) % n_pieces];
        const char letter[2] = {(char)(next_random(state) % 96 + 32), '\0'};
        static const char *const marks[] = {"\n", "\n", "\n", ",", "|", " "};
        const char *parts[] = {next_random(state) % 8 ? piece : letter,
                               marks[next_random(state) % 6]};
        for (int k = 0; k < 2; k++)
            for (const char *c = parts[k]; *c && n < room; c++) buffer[n++] = (uint8_t)*c;
    }
    return n;
}

#endif
