#include "text_columns.h"

#include "base/arena.h"
#include "csv.h"
#include "table.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct scan {
    n2_arena arena;
    char **names; /* of the header, else numbers */
    size_t n;
    bool *text, *number; /* a value of the kind was seen */
    bool has_header;
} scan;

static n2ce_status name_columns(scan *s, const n2_csv_field *fields, size_t n) {
    s->n = n;
    s->names = n2_arena_alloc(&s->arena, n, sizeof *s->names);
    s->text = n2_arena_alloc(&s->arena, n, sizeof *s->text);
    s->number = n2_arena_alloc(&s->arena, n, sizeof *s->number);
    if (!s->names || !s->text || !s->number) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = fields[i].n + 24;
        s->names[i] = n2_arena_alloc(&s->arena, bytes, 1);
        if (!s->names[i]) return N2CE_ENOMEM;
        if (s->has_header && fields[i].n > 0)
            memcpy(s->names[i], fields[i].text, fields[i].n); /* zeros follow */
        else
            snprintf(s->names[i], bytes, "%zu", i);
    }
    return N2CE_OK;
}

static void note_row(scan *s, const n2_csv_field *fields) {
    double x;
    for (size_t i = 0; i < s->n; i++) {
        const n2_value v = n2_value_parse(fields[i].text, fields[i].n, &x);
        s->text[i] |= v == N2_VALUE_TEXT;
        s->number[i] |= v == N2_VALUE_NUMBER || v == N2_VALUE_INFINITE;
    }
}

static n2ce_status scan_rows(scan *s, n2_csv *csv) {
    const n2_csv_field *fields;
    size_t n;
    N2_TRY(n2_csv_next(csv, &fields, &n));
    if (!fields) return N2CE_OK;
    s->has_header = n2_csv_is_header(fields, n);
    N2_TRY(name_columns(s, fields, n));
    if (!s->has_header) note_row(s, fields);
    for (;;) {
        N2_TRY(n2_csv_next(csv, &fields, &n));
        if (!fields) return N2CE_OK;
        note_row(s, fields);
    }
}

static n2ce_status scan_file(n2ce_ctx *ctx, const char *path, scan *s) {
    n2_input in;
    n2_csv *csv = NULL;
    N2_TRY(n2_input_open(ctx, path, &in));
    n2ce_status status = n2_csv_open(ctx, &in, 0, &csv);
    const n2_c_locale scope = n2_c_locale_enter();
    if (status == N2CE_OK) status = scan_rows(s, csv);
    n2_c_locale_leave(scope);
    n2_csv_close(csv);
    n2_input_close(&in);
    return status;
}

/* A flag a column of those that a list names; all, if it is empty and that means all. */
static n2ce_status flags_of(n2ce_ctx *ctx, const scan *s, const char *list, bool all, bool *flag) {
    size_t *at = NULL, n = 0;
    for (size_t i = 0; i < s->n; i++) flag[i] = all && !*list;
    N2_TRY(n2_columns_parse(ctx, list, s->names, s->n, &at, &n));
    for (size_t i = 0; i < n; i++) flag[at[i]] = true;
    n2_free(ctx, at);
    return N2CE_OK;
}

static void add_name(n2_text *out, const char *name, bool first) {
    n2_text_add(out, first ? "\"" : ",\"");
    for (; *name; name++) {
        if (*name == '"') n2_text_add_raw(out, name, 1); /* doubled */
        n2_text_add_raw(out, name, 1);
    }
    n2_text_add(out, "\"");
}

static n2ce_status write_list(n2ce_ctx *ctx, scan *s, const char *columns, const char *given,
                              n2_text *out) {
    bool *kept = n2_arena_alloc(&s->arena, s->n, sizeof *kept), first = true;
    bool *named = n2_arena_alloc(&s->arena, s->n, sizeof *named);
    if (!kept || !named) return N2CE_ENOMEM;
    N2_TRY(flags_of(ctx, s, columns, true, kept));
    N2_TRY(flags_of(ctx, s, given, false, named));
    for (size_t i = 0; i < s->n; i++) {
        if (!named[i] && !(kept[i] && s->text[i] && !s->number[i])) continue;
        if (s->has_header)
            add_name(out, s->names[i], first);
        else
            n2_text_add(out, first ? "%zu" : ",%zu", i);
        first = false;
    }
    return out->failed ? N2CE_ENOMEM : N2CE_OK;
}

static bool is_plain_file(const char *path) {
    struct stat info;
    return path && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

n2ce_status n2_text_columns(n2ce_ctx *ctx, const char *path, const char *columns, const char *given,
                            n2_text *out) {
    scan s = {.arena = n2_arena_new(ctx)};
    n2ce_status status = is_plain_file(path) ? scan_file(ctx, path, &s) : N2CE_EIO;
    const bool known = status == N2CE_OK && s.n > 0;
    if (known) status = write_list(ctx, &s, columns, given, out);
    if (!known && status != N2CE_ENOMEM && status != N2CE_ECANCELED) {
        n2_text_add(out, "%s", given); /* the reader will say what is wrong */
        status = out->failed ? N2CE_ENOMEM : N2CE_OK;
    }
    n2_arena_free(&s.arena);
    return status;
}
