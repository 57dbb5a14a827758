#include "options.h"

#include "numerics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct n2ce_options {
    n2ce_ctx *ctx;
    const n2ce_option *table;
    size_t n;
    char *values[]; /* NULL: the default */
};

static size_t table_size(const n2ce_option *table) {
    size_t n = 0;
    while (table[n].name) n++;
    return n;
}

n2ce_status n2ce_options_new(n2ce_ctx *ctx, const n2ce_option *table, n2ce_options **out) {
    if (!ctx || !table || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    *out = NULL;
    const size_t n = table_size(table);
    n2ce_options *o = n2_alloc(ctx, 1, sizeof *o + n * sizeof o->values[0]);
    if (!o) return N2CE_ENOMEM;
    o->ctx = ctx;
    o->table = table;
    o->n = n;
    *out = o;
    return N2CE_OK;
}

void n2ce_options_free(n2ce_options *o) {
    if (!o) return;
    for (size_t i = 0; i < o->n; i++) n2_free(o->ctx, o->values[i]);
    n2_free(o->ctx, o);
}

const n2ce_option *n2ce_option_find(const n2ce_option *table, const char *name) {
    if (!table || !name) return NULL;
    const n2ce_option *by_letter = NULL;
    for (const n2ce_option *row = table; row->name; row++) {
        if (strcmp(row->name, name) == 0) return row;
        if (row->letter && name[0] == row->letter && name[1] == '\0') by_letter = row;
    }
    return by_letter;
}

/* ---- nearest word -------------------------------------------------------- */

/* Edits (insert, delete, replace, swap two neighbours) from a to b, for words of at
 * most 63 characters. Row i holds the distances of the first i characters of a. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LIMIT = 63 };
    const size_t n = strlen(a), m = strlen(b);
    if (n > LIMIT || m > LIMIT) return SIZE_MAX;
    size_t rows[LIMIT + 1][LIMIT + 1];
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        rows[i][0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (rows[i - 1][j] + 1 < best) best = rows[i - 1][j] + 1;
            if (rows[i][j - 1] + 1 < best) best = rows[i][j - 1] + 1;
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && rows[i - 2][j - 2] + 1 < best) best = rows[i - 2][j - 2] + 1;
            rows[i][j] = best;
        }
    }
    return rows[n][m];
}

const char *n2ce_nearest_word(const char *word, const char *const *words, size_t n) {
    if (!word || !words) return NULL;
    const char *nearest = NULL;
    size_t least = strlen(word) / 3;
    if (least < 1) least = 1;
    for (size_t i = 0; i < n; i++) {
        const size_t d = edit_distance(word, words[i]);
        if (d < least || (d == least && !nearest)) {
            least = d;
            nearest = words[i];
        }
    }
    return nearest;
}

static n2ce_status unknown_option(const n2ce_options *o, const char *name) {
    const char *names[64];
    size_t n = 0;
    for (; n < o->n && n < 64; n++) names[n] = o->table[n].name;
    const char *nearest = n2ce_nearest_word(name, names, n);
    if (nearest)
        return n2_fail(o->ctx, N2CE_EINVAL, "There is no option \"%s\"; did you mean \"%s\"?", name,
                       nearest);
    return n2_fail(o->ctx, N2CE_EINVAL, "There is no option \"%s\".", name);
}

/* ---- reading values ------------------------------------------------------ */

/* One number at *text, up to a comma or the end. False if it is not one. */
static bool read_number(const char **text, bool suffixes, double *value) {
    const char *start = *text;
    while (*start == ' ') start++;
    if (*start == '\0' || *start == ',') return false;
    char *end;
    const n2_c_locale scope = n2_c_locale_enter();
    *value = strtod(start, &end);
    n2_c_locale_leave(scope);
    if (end == start || strchr(start, 'x') || strchr(start, 'X')) return false;
    if (suffixes && (*end == 'K' || *end == 'k'))
        *value *= 1e3, end++;
    else if (suffixes && *end == 'M')
        *value *= 1e6, end++;
    if (suffixes && fabs(*value - round(*value)) < 1e-12 * fabs(*value)) *value = round(*value);
    while (*end == ' ') end++;
    if (*end != ',' && *end != '\0') return false;
    *text = end;
    return true;
}

static n2ce_status check_range(n2ce_ctx *ctx, const n2ce_option *row, double value) {
    if (!isfinite(value))
        return n2_fail(ctx, N2CE_EINVAL, "--%s: %g is not a finite number; give one that is.",
                       row->name, value);
    const bool any = row->min == 0 && row->max == 0 && row->type != N2CE_OPTION_COUNT;
    if (any || (value >= row->min && value <= row->max)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "--%s is %.15g; it must be between %.15g and %.15g.",
                   row->name, value, row->min, row->max);
}

static n2ce_status check_numbers(n2ce_ctx *ctx, const n2ce_option *row, const char *text) {
    const bool whole = row->type == N2CE_OPTION_COUNT, list = row->type == N2CE_OPTION_REALS;
    for (const char *at = text;; at++) {
        double value;
        if (!read_number(&at, whole, &value))
            return n2_fail(ctx, N2CE_EINVAL, "--%s: \"%s\" is not %s.", row->name, text,
                           list    ? "a list of numbers separated by commas"
                           : whole ? "a whole number (1000, 1e3 and 1K are)"
                                   : "a number");
        if (whole && value != floor(value))
            return n2_fail(ctx, N2CE_EINVAL, "--%s: %s is not a whole number.", row->name, text);
        N2_TRY(check_range(ctx, row, value));
        if (*at == '\0') return N2CE_OK;
        if (!list)
            return n2_fail(ctx, N2CE_EINVAL, "--%s takes one number, not the list \"%s\".",
                           row->name, text);
    }
}

/* True if the n characters at `word` are one of the words, which a character separates. */
static bool among(const char *words, char separator, const char *word, size_t n) {
    if (memchr(word, separator, n)) return false;
    for (const char *at = words; at; at = strchr(at, separator)) {
        at += *at == separator;
        if (strncmp(at, word, n) == 0 && (at[n] == '\0' || at[n] == separator)) return true;
    }
    return false;
}

static n2ce_status check_words(n2ce_ctx *ctx, const n2ce_option *row, const char *text) {
    const bool list = row->type == N2CE_OPTION_WORDS;
    for (const char *at = text;; at++) {
        const size_t n = list ? strcspn(at, ",") : strlen(at);
        if (n == 0 || !among(row->choices, '|', at, n))
            return n2_fail(ctx, N2CE_EINVAL, "--%s: \"%.*s\" is not one of %s.", row->name, (int)n,
                           at, row->choices);
        at += n;
        if (*at == '\0') return N2CE_OK;
    }
}

static n2ce_status check_value(n2ce_ctx *ctx, const n2ce_option *row, const char *text) {
    if (row->fallback && strcmp(row->fallback, "auto") == 0 && strcmp(text, "auto") == 0)
        return N2CE_OK;
    switch (row->type) {
    case N2CE_OPTION_COUNT:
    case N2CE_OPTION_REAL:
    case N2CE_OPTION_REALS:
        return check_numbers(ctx, row, text);
    case N2CE_OPTION_WORD:
    case N2CE_OPTION_WORDS:
        return check_words(ctx, row, text);
    case N2CE_OPTION_FLAG:
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return N2CE_OK;
        return n2_fail(ctx, N2CE_EINVAL, "--%s is a switch: true or false, not \"%s\".", row->name,
                       text);
    case N2CE_OPTION_TEXT:
        return N2CE_OK;
    case N2CE_OPTION_PATH:
        break;
    }
    return *text ? N2CE_OK : n2_fail(ctx, N2CE_EINVAL, "--%s needs a path.", row->name);
}

n2ce_status n2_options_check_table(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_option *table) {
    if (o->table == table) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "The options are those of another task.");
}

n2ce_status n2ce_options_set(n2ce_options *o, const char *name, const char *text) {
    if (!o || !name || !text) return n2_fail(o ? o->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    const n2ce_option *row = n2ce_option_find(o->table, name);
    if (!row) return unknown_option(o, name);
    N2_TRY(check_value(o->ctx, row, text));
    const size_t n = strlen(text) + 1;
    char *copy = n2_realloc(o->ctx, NULL, n, 1);
    if (!copy) return N2CE_ENOMEM;
    memcpy(copy, text, n);
    char **slot = &o->values[row - o->table];
    n2_free(o->ctx, *slot);
    *slot = copy;
    return N2CE_OK;
}

/* ---- typed access -------------------------------------------------------- */

const char *n2ce_options_get(const n2ce_options *o, const char *name) {
    if (!o || !name) return NULL;
    const n2ce_option *row = n2ce_option_find(o->table, name);
    if (!row) return NULL;
    const char *value = o->values[row - o->table];
    return value ? value : row->fallback;
}

const char *n2_options_given(const n2ce_options *o, const char *name) {
    return o->values[n2ce_option_find(o->table, name) - o->table];
}

static bool has_value(const n2ce_options *o, const char *name, const char *wanted) {
    const char *text = n2ce_options_get(o, name);
    return text && strcmp(text, wanted) == 0;
}

bool n2_options_is_auto(const n2ce_options *o, const char *name) {
    return has_value(o, name, "auto");
}

bool n2_options_flag(const n2ce_options *o, const char *name) { return has_value(o, name, "true"); }

double n2ce_options_number(const n2ce_options *o, const char *name) {
    if (!o || !name) return (double)NAN;
    const n2ce_option *row = n2ce_option_find(o->table, name);
    const char *text = n2ce_options_get(o, name);
    double value;
    const bool read = text && read_number(&text, row->type == N2CE_OPTION_COUNT, &value);
    return read && *text == '\0' ? value : N2_NAN;
}

uint64_t n2_options_count(const n2ce_options *o, const char *name) {
    return (uint64_t)n2ce_options_number(o, name);
}

bool n2_options_has_word(const n2ce_options *o, const char *name, const char *word) {
    return among(n2ce_options_get(o, name), ',', word, strlen(word));
}

n2ce_status n2_options_reals(const n2ce_options *o, const char *name, n2_arena *arena,
                             double **values, size_t *n) {
    const char *text = n2ce_options_get(o, name);
    *n = 0;
    *values = NULL;
    if (!text || strcmp(text, "auto") == 0) return N2CE_OK;
    size_t count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    *values = n2_arena_alloc(arena, count, sizeof **values);
    if (!*values) return N2CE_ENOMEM;
    while (*n < count) {
        read_number(&text, false, &(*values)[(*n)++]);
        text++;
    }
    return N2CE_OK;
}

static void json_value(const n2ce_option *row, const char *text, n2_text *out) {
    const bool number = row->type == N2CE_OPTION_COUNT || row->type == N2CE_OPTION_REAL;
    double value = N2_NAN;
    const char *at = text;
    if (!text)
        n2_text_add(out, "null");
    else if (number && read_number(&at, true, &value))
        n2_text_add_number(out, value);
    else if (row->type == N2CE_OPTION_FLAG)
        n2_text_add(out, "%s", text);
    else
        n2_text_add_json_string(out, text);
}

/* Whether a name stands in a list, with a space before and behind. */
static bool is_among(const char *name, const char *list) {
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at++)
        if (at > list && at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

void n2_options_lines(const n2ce_options *o, const char *apart, n2_text *out) {
    for (size_t i = 0; i < o->n; i++) {
        const n2ce_option *row = &o->table[i];
        const char *value = o->values[i] ? o->values[i] : row->fallback;
        if (value && !is_among(row->name, apart)) n2_text_add(out, "%s=%s\n", row->name, value);
    }
}

void n2_options_json(const n2ce_options *o, n2_text *out) {
    n2_text_add(out, "{");
    for (size_t i = 0; i < o->n; i++) {
        const n2ce_option *row = &o->table[i];
        n2_text_add(out, i ? ", " : "");
        n2_text_add_json_string(out, row->name);
        n2_text_add(out, ": ");
        json_value(row, o->values[i] ? o->values[i] : row->fallback, out);
    }
    n2_text_add(out, "}");
}
