#include "table.h"

#include "base/text.h"
#include "input.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

/* The text as read so far, and the columns found in it. */
typedef struct parser {
    n2ce_ctx *ctx;
    char *const *names;
    size_t n_names;
    const char *at;
    char *word; /* the item, without blanks around it and without quotes */
    bool quoted;
    bool *taken; /* of each column */
    size_t *found, n;
} parser;

static n2ce_status refuse(const parser *p, const char *why) {
    return n2_fail(p->ctx, N2CE_EINVAL, "\"%s\" %s", n2_show(p->word, strlen(p->word)).text, why);
}

/* ---- items ------------------------------------------------------------------------------ */

static void skip_blanks(parser *p) {
    while (*p->at == ' ' || *p->at == '\t') p->at++;
}

static void read_plain(parser *p) {
    size_t n = strcspn(p->at, ",");
    memcpy(p->word, p->at, n);
    p->at += n;
    while (n > 0 && (p->word[n - 1] == ' ' || p->word[n - 1] == '\t')) n--;
    p->word[n] = '\0';
}

static n2ce_status read_quoted(parser *p) {
    size_t n = 0;
    for (p->at++; *p->at && (*p->at != '"' || p->at[1] == '"'); p->at++) {
        p->at += *p->at == '"';
        p->word[n++] = *p->at;
    }
    p->word[n] = '\0';
    if (*p->at != '"') return refuse(p, "has an opening quote, and no closing one.");
    p->at++;
    skip_blanks(p);
    if (*p->at == ',' || *p->at == '\0') return N2CE_OK;
    return refuse(p, "is in quotes, and neither a comma nor the end follows.");
}

static n2ce_status read_item(parser *p) {
    skip_blanks(p);
    p->quoted = *p->at == '"';
    if (p->quoted) return read_quoted(p);
    read_plain(p);
    if (p->word[0] != '\0') return N2CE_OK;
    return n2_fail(p->ctx, N2CE_EINVAL,
                   "a name or number is missing between commas, or at an end.");
}

/* ---- what they mean --------------------------------------------------------------------- */

static n2ce_status take(parser *p, size_t column) {
    if (p->taken[column]) return refuse(p, "names a column that was named already.");
    p->taken[column] = true;
    p->found[p->n++] = column;
    return N2CE_OK;
}

static bool take_name(parser *p, n2ce_status *status) {
    for (size_t i = 0; p->names && i < p->n_names; i++) {
        if (strcmp(p->names[i], p->word) != 0) continue;
        *status = take(p, i);
        return true;
    }
    return false;
}

/* A whole number, or one beyond any column if it is huge; NULL if there is none. */
static const char *read_number(const char *text, size_t *number) {
    const char *p = text;
    for (*number = 0; *p >= '0' && *p <= '9'; p++)
        if (*number < SIZE_MAX / 256) *number = *number * 10 + (size_t)(*p - '0');
    return p > text ? p : NULL;
}

/* "3", or "3-5". */
static bool is_range(const char *word, size_t *first, size_t *last) {
    const char *p = read_number(word, first);
    *last = *first;
    if (p && *p == '-') p = read_number(p + 1, last);
    return p && *p == '\0';
}

static n2ce_status take_range(parser *p, size_t first, size_t last) {
    if (first > last) return refuse(p, "ends before it begins.");
    if (last >= p->n_names)
        return n2_fail(p->ctx, N2CE_EINVAL, "\"%s\" is beyond the last column: they are 0 to %zu.",
                       n2_show(p->word, strlen(p->word)).text, p->n_names - 1);
    for (size_t i = first; i <= last; i++) N2_TRY(take(p, i));
    return N2CE_OK;
}

static n2ce_status unknown_column(const parser *p) {
    const char *const *names = (const char *const *)p->names;
    const char *nearest = names ? n2ce_nearest_word(p->word, names, p->n_names) : NULL;
    const n2_shown word = n2_show(p->word, strlen(p->word));
    if (nearest)
        return n2_fail(p->ctx, N2CE_EINVAL,
                       "\"%s\" is not the name of a column; did you mean \"%s\"?", word.text,
                       n2_show(nearest, strlen(nearest)).text);
    return n2_fail(p->ctx, N2CE_EINVAL,
                   "\"%s\" is not the name of a column, nor a number or a range like 0-9.",
                   word.text);
}

static n2ce_status take_item(parser *p) {
    n2ce_status status;
    size_t first, last;
    if (take_name(p, &status)) return status;
    if (!p->quoted && p->n_names > 0 && is_range(p->word, &first, &last))
        return take_range(p, first, last);
    return unknown_column(p);
}

static n2ce_status parse(parser *p) {
    if (!p->word || !p->taken || !p->found) return N2CE_ENOMEM;
    for (bool more = *p->at != '\0'; more; p->at += more) {
        N2_TRY(read_item(p));
        N2_TRY(take_item(p));
        more = *p->at == ',';
    }
    return N2CE_OK;
}

n2ce_status n2_columns_parse(n2ce_ctx *ctx, const char *text, char *const *names, size_t n_names,
                             size_t **out, size_t *n_out) {
    parser p = {.ctx = ctx, .names = names, .n_names = n_names, .at = text ? text : ""};
    p.word = n2_alloc(ctx, strlen(p.at) + 1, 1);
    p.taken = n2_alloc(ctx, n_names, sizeof *p.taken);
    p.found = n2_alloc(ctx, n_names, sizeof *p.found);
    const n2ce_status status = parse(&p);
    n2_free(ctx, p.word);
    n2_free(ctx, p.taken);
    if (status != N2CE_OK) n2_free(ctx, p.found);
    *out = status == N2CE_OK ? p.found : NULL;
    *n_out = status == N2CE_OK ? p.n : 0;
    return status;
}

static bool is_number(const char *name) {
    return *name && strspn(name, "0123456789") == strlen(name);
}

/* In quotes unless it is a number: a file without a header knows its columns by those. */
static void quote(n2_text *text, const char *name) {
    if (is_number(name)) {
        n2_text_add(text, "%s", name);
        return;
    }
    n2_text_add(text, "\"");
    for (; *name; name++) n2_text_add(text, *name == '"' ? "\"%c" : "%c", *name);
    n2_text_add(text, "\"");
}

void n2_columns_add(n2_text *text, const char *column) {
    if (text->length) n2_text_add(text, ",");
    if (*column == '"')
        n2_text_add(text, "%s", column);
    else
        quote(text, column);
}

n2ce_status n2_columns_quote(n2ce_ctx *ctx, char *const *names, const bool *which, size_t n,
                             char **out) {
    n2_text text = n2_text_new(ctx);
    n2_text_add_raw(&text, "", 0);
    for (size_t c = 0; c < n; c++) {
        if (which && !which[c]) continue;
        if (text.length) n2_text_add(&text, ",");
        quote(&text, names[c]);
    }
    return n2_text_take(&text, out);
}

/* ---- other names ------------------------------------------------------------------------ */

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static n2ce_status check_unique(n2ce_ctx *ctx, const char *const *names, size_t n) {
    const char **sorted = n2_alloc(ctx, n, sizeof *sorted);
    n2ce_status status = sorted ? N2CE_OK : N2CE_ENOMEM;
    if (sorted) memcpy(sorted, names, n * sizeof *sorted);
    if (sorted) qsort(sorted, n, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < n && status == N2CE_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = n2_fail(ctx, N2CE_EINVAL, "Two columns are called \"%s\". Rename one.",
                             n2_show_all(sorted[i]).text);
    n2_free(ctx, sorted);
    return status;
}

static n2ce_status check_names(n2ce_ctx *ctx, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!names[i] || !*names[i] || !n2_is_utf8(names[i]))
            return n2_fail(ctx, N2CE_EINVAL, "Column %zu has no name in UTF-8. Give it one.", i);
    return check_unique(ctx, names, n);
}

static n2ce_status copy_names(n2ce_ctx *ctx, const char *const *names, size_t n, char **out) {
    for (size_t i = 0; i < n; i++) {
        if (!(out[i] = n2_alloc(ctx, strlen(names[i]) + 1, 1))) return N2CE_ENOMEM;
        strcpy(out[i], names[i]);
    }
    return N2CE_OK;
}

static n2ce_status copy_levels(const n2_levels *from, char *const *names, const char *const *to,
                               size_t n, n2_levels *out) {
    size_t code;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n2_levels_count(from, names[i]); k++)
            N2_TRY(n2_levels_add(out, to[i], n2_levels_text(from, names[i], k), &code));
    n2_levels_freeze(out);
    return N2CE_OK;
}

/* The old ones, and what became of the new ones if something failed. */
static void free_names(n2ce_ctx *ctx, char **names, size_t n) {
    for (size_t i = 0; i < n; i++) n2_free(ctx, names[i]);
}

n2ce_status n2_columns_rename(n2ce_ctx *ctx, const char *const *to, size_t n, char **names,
                              n2_levels **levels) {
    n2_levels *renamed = NULL;
    N2_TRY(check_names(ctx, to, n));
    char **own = n2_alloc(ctx, n, sizeof *own);
    n2ce_status status = own ? copy_names(ctx, to, n, own) : N2CE_ENOMEM;
    if (status == N2CE_OK && *levels) status = n2_levels_new(ctx, &renamed);
    if (status == N2CE_OK && *levels) status = copy_levels(*levels, names, to, n, renamed);
    const bool done = status == N2CE_OK;
    if (own) free_names(ctx, done ? names : own, n);
    if (done) memcpy(names, own, n * sizeof *own);
    n2_levels_free(done ? *levels : renamed);
    if (done) *levels = renamed;
    n2_free(ctx, own);
    return status;
}
