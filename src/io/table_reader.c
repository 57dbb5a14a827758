#include "base/text.h"
#include "json.h"
#include "reader_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t n2_reader_cols(const n2_reader *r) { return r->cols; }
size_t n2_reader_first_cols(const n2_reader *r) { return r->first_cols; }

const char *n2_reader_name(const n2_reader *r, size_t c) {
    return c < r->cols ? r->file_names[r->columns[c]] : NULL;
}

bool n2_reader_categorical(const n2_reader *r, size_t c) {
    return c < r->cols && r->categorical[c];
}

bool n2_reader_gap_level(const n2_reader *r, size_t c, size_t *code) {
    if (c >= r->cols || !r->found[c].gap_has_one) return false;
    *code = r->found[c].gap_code;
    return true;
}

n2ce_ctx *n2_reader_ctx(const n2_reader *r) { return r->ctx; }

n2_header n2_reader_header(const n2_reader *r) {
    return r->has_header ? N2_HEADER_YES : N2_HEADER_NO;
}

size_t n2_reader_bytes(const n2_reader *r) {
    if (r->any_categorical || r->find_texts) return 0;
    return r->csv || n2_npy_can_cut(r->npy) ? n2_input_bytes(&r->input) : 0;
}

/* ---- what is wrong, and where ----------------------------------------------------------- */

enum { SENTENCE = 800 };

n2ce_status n2_reader_fail_in(const n2_reader *r, n2ce_status status, const char *where) {
    char what[SENTENCE];
    snprintf(what, sizeof what, "%s", n2ce_errmsg(r->ctx));
    return n2_fail(r->ctx, status, "%s, %s: %s", r->label, where, what);
}

/* ---- names ------------------------------------------------------------------------------ */

/* Names of the file's columns: the header's, or their numbers where it has none. */
static n2ce_status make_names(n2_reader *r, const n2_csv_field *header, size_t n) {
    enum { DIGITS = 24 };
    size_t bytes = n * DIGITS;
    for (size_t i = 0; header && i < n; i++) bytes += header[i].n;
    char *text = n2_arena_alloc(&r->arena, bytes, 1);
    r->file_names = n2_arena_alloc(&r->arena, n, sizeof *r->file_names);
    r->unnamed = n2_arena_alloc(&r->arena, n, sizeof *r->unnamed);
    r->file_cols = n;
    if (!text || !r->file_names || !r->unnamed) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r->file_names[i] = text;
        r->unnamed[i] = header && header[i].n == 0;
        if (header && header[i].n > 0)
            memcpy(text, header[i].text, header[i].n); /* zeros follow */
        else
            snprintf(text, DIGITS, "%zu", i);
        text += (header ? header[i].n : 0) + DIGITS;
    }
    return N2CE_OK;
}

static int compare_names(const void *a, const void *b) {
    char *const *const *x = a, *const *const *y = b;
    const int order = strcmp(**x, **y);
    return order ? order : (*x > *y) - (*x < *y);
}

static n2ce_status check_unique(n2_reader *r) {
    char ***sorted = n2_arena_alloc(&r->arena, r->file_cols, sizeof *sorted);
    if (!sorted) return N2CE_ENOMEM;
    for (size_t i = 0; i < r->file_cols; i++) sorted[i] = &r->file_names[i];
    qsort(sorted, r->file_cols, sizeof *sorted, compare_names);
    for (size_t i = 1; i < r->file_cols; i++) {
        if (strcmp(*sorted[i - 1], *sorted[i]) != 0) continue;
        return n2_fail(r->ctx, N2CE_EDATA,
                       "%s, line %zu: columns %zu and %zu are both named \"%s\". Rename one%s.",
                       r->label, n2_csv_line(r->csv), (size_t)(sorted[i - 1] - r->file_names) + 1,
                       (size_t)(sorted[i] - r->file_names) + 1, n2_show_all(*sorted[i]).text,
                       r->header == N2_HEADER_AUTO ? ", or say --header no if the line is data"
                                                   : "");
    }
    return N2CE_OK;
}

static n2ce_status check_header(n2_reader *r, const n2_csv_field *header) {
    for (size_t i = 0; i < r->file_cols; i++)
        if (!n2_is_utf8(r->file_names[i]) || memchr(header[i].text, '\0', header[i].n))
            return n2_fail(r->ctx, N2CE_EDATA,
                           "%s, line %zu, column %zu: the name is not UTF-8. Convert the file to "
                           "UTF-8.",
                           r->label, n2_csv_line(r->csv), i + 1);
    return check_unique(r);
}

/* ---- columns ---------------------------------------------------------------------------- */

static n2ce_status parse_columns(const n2_reader *r, const char *option, const char *text,
                                 size_t **out, size_t *n) {
    const n2ce_status status = n2_columns_parse(r->ctx, text, r->file_names, r->file_cols, out, n);
    return status == N2CE_EINVAL ? n2_reader_fail_in(r, status, option) : status;
}

static n2ce_status keep_all(n2_reader *r) {
    r->columns = n2_alloc(r->ctx, r->file_cols, sizeof *r->columns);
    if (!r->columns) return N2CE_ENOMEM;
    for (; r->cols < r->file_cols; r->cols++) r->columns[r->cols] = r->cols;
    return N2CE_OK;
}

static n2ce_status count_columns(const n2_reader *r, const char *option, const char *text,
                                 size_t *n) {
    size_t *columns = NULL;
    const n2ce_status status = parse_columns(r, option, text, &columns, n);
    n2_free(r->ctx, columns);
    return status;
}

/* Columns of both texts, which are parsed alone, so that messages know whose they are, and then
 * together, so that a column in both is found. */
static n2ce_status keep_groups(n2_reader *r, const n2_table_options *o) {
    const char *x = o->columns_by ? o->columns_by : "--x", *y = o->then_by ? o->then_by : "--y";
    n2_text both = n2_text_new(r->ctx), label = n2_text_new(r->ctx);
    size_t others;
    N2_TRY(count_columns(r, x, o->columns, &r->first_cols));
    N2_TRY(count_columns(r, y, o->then, &others));
    n2_text_add(&both, "%s,%s", o->columns, o->then);
    n2_text_add(&label, "%s, %s", x, y);
    n2ce_status status = both.failed || label.failed ? N2CE_ENOMEM : N2CE_OK;
    if (status == N2CE_OK) status = parse_columns(r, label.data, both.data, &r->columns, &r->cols);
    n2_text_free(&both);
    n2_text_free(&label);
    return status;
}

static n2ce_status keep_columns(n2_reader *r, const n2_table_options *o) {
    const char *text = o ? o->columns : NULL;
    const bool some = text && *text, more = some && o->then && *o->then;
    r->takes_all = !some;
    if (more)
        N2_TRY(keep_groups(r, o));
    else
        N2_TRY(some ? parse_columns(r, "--columns", text, &r->columns, &r->cols) : keep_all(r));
    if (!more) r->first_cols = r->cols;
    r->categorical = n2_arena_alloc(&r->arena, r->cols, sizeof *r->categorical);
    r->level_columns = n2_arena_alloc(&r->arena, r->cols, sizeof *r->level_columns);
    r->found = n2_arena_alloc(&r->arena, r->cols, sizeof *r->found);
    return r->categorical && r->level_columns && r->found ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_reader_open_levels(n2_reader *r, size_t k) {
    r->categorical[k] = r->any_categorical = true;
    return n2_levels_open(r->levels, r->file_names[r->columns[k]], &r->level_columns[k]);
}

/* Makes column `column` of the file categorical; kept[] has its place among those kept, from 1. */
static n2ce_status make_categorical(n2_reader *r, size_t column, const size_t *kept) {
    const char *name = r->file_names[column];
    if (kept[column] == 0)
        return n2_fail(r->ctx, N2CE_EINVAL,
                       "%s, --categorical: column \"%s\" is not among --columns. Add it there, or "
                       "leave it out here.",
                       r->label, n2_show_all(name).text);
    const n2ce_status status = n2_reader_open_levels(r, kept[column] - 1);
    return status == N2CE_EDATA ? n2_reader_fail_in(r, status, "--categorical") : status;
}

static n2ce_status find_categorical(n2_reader *r, const char *text) {
    size_t *columns, n;
    if (!r->levels && (r->find_texts || (text && *text)))
        return n2_fail(r->ctx, N2CE_EINVAL, "%s: categorical columns need levels.", r->label);
    if (!text || !*text) return N2CE_OK;
    size_t *kept = n2_arena_alloc(&r->arena, r->file_cols, sizeof *kept);
    if (!kept) return N2CE_ENOMEM;
    for (size_t k = 0; k < r->cols; k++) kept[r->columns[k]] = k + 1;
    N2_TRY(parse_columns(r, "--categorical", text, &columns, &n));
    n2ce_status status = N2CE_OK;
    for (size_t i = 0; i < n && status == N2CE_OK; i++)
        status = make_categorical(r, columns[i], kept);
    n2_free(r->ctx, columns);
    return status;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Files that are often met and cannot be read, by their first bytes. */
static const struct {
    const char *bytes, *what, *remedy;
} foreign[] = {
    {"\x1f\x8b", "compressed with gzip", "Pipe it in: gzip -dc FILE | n2ce ... -"},
    {"\x28\xb5\x2f\xfd", "compressed with zstd", "Pipe it in: zstd -dc FILE | n2ce ... -"},
    {"\xfd\x37zXZ", "compressed with xz", "Pipe it in: xz -dc FILE | n2ce ... -"},
    {"PK\x03\x04", "a zip archive, as NPZ and Excel files are", "Save one table as CSV or NPY."},
    {"PAR1\x15", "a Parquet file", "Save it as CSV or NPY."},
    {"\x89HDF\r\n", "an HDF5 file", "Save one table as CSV or NPY."},
    {"\xff\xfe", "text in UTF-16", "Convert it to UTF-8."},
    {"\xfe\xff", "text in UTF-16", "Convert it to UTF-8."},
};

static n2ce_status check_foreign(const n2_reader *r, const unsigned char *head, size_t n) {
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const size_t length = strlen(foreign[i].bytes);
        if (n < length || memcmp(head, foreign[i].bytes, length) != 0) continue;
        return n2_fail(r->ctx, N2CE_EDATA, "%s is %s, not CSV or NPY. %s", r->label,
                       foreign[i].what, foreign[i].remedy);
    }
    return N2CE_OK;
}

static n2ce_status start_npy(n2_reader *r) {
    if (n2_npy_rows(r->npy) > 0 && n2_npy_cols(r->npy) > 0)
        return make_names(r, NULL, n2_npy_cols(r->npy));
    return n2_fail(r->ctx, N2CE_EDATA, "%s has no values: %zu rows of %zu columns.", r->label,
                   n2_npy_rows(r->npy), n2_npy_cols(r->npy));
}

/* A first line of whole numbers that count may be names or data. */
static void tell_assumed(const n2_reader *r, const n2_csv_field *fields, size_t n) {
    const double from = n2_csv_counts_from(fields, n);
    if (from < 0 || (from > 0 && (n == 1 || (n == 2 && from < 1000)))) return;
    char line[80];
    int at = 0;
    for (size_t i = 0; i < n && i < 3; i++)
        at +=
            snprintf(line + at, sizeof line - (size_t)at, "%s%.0f", i ? "," : "", from + (double)i);
    n2_log(r->ctx, N2CE_LOG_WARNING,
           "%s: the first line, %s%s, is taken for %s. If it is %s, say --header %s.", r->label,
           line, n > 3 ? ".." : "", r->has_header ? "the names of columns" : "data",
           r->has_header ? "data" : "names", r->has_header ? "no" : "yes");
}

static n2ce_status start_csv(n2_reader *r) {
    const n2_csv_field *fields;
    size_t n;
    N2_TRY(n2_csv_open(r->ctx, &r->input, r->csv_part, &r->csv));
    N2_TRY(n2_csv_next(r->csv, &fields, &n));
    if (!fields)
        return n2_fail(r->ctx, N2CE_EDATA, "%s is empty. Name a CSV or NPY file.", r->label);
    r->has_header = n2_csv_is_header(fields, n, r->header);
    r->header_ends = r->has_header ? n2_csv_place(r->csv) : 0;
    if (!r->has_header) r->first = fields;
    if (r->header == N2_HEADER_AUTO) tell_assumed(r, fields, n);
    N2_TRY(make_names(r, r->has_header ? fields : NULL, n));
    return r->has_header ? check_header(r, fields) : N2CE_OK;
}

static n2ce_status start_input(n2_reader *r) {
    size_t n;
    const unsigned char *head = n2_input_head(&r->input, &n);
    N2_TRY(check_foreign(r, head, n));
    if (!n2_is_npy(head, n)) return start_csv(r);
    N2_TRY(n2_npy_open(r->ctx, &r->input, &r->npy));
    return start_npy(r);
}

/* Lines are counted from the cut on, and messages say so. */
static n2ce_status use_cut(n2_reader *r) {
    const size_t room = strlen(r->label) + 64;
    char *label = n2_arena_alloc(&r->arena, room, 1);
    if (!label) return N2CE_ENOMEM;
    snprintf(label, room, r->cut.begin > r->cut.head ? "%s from byte %zu on" : "%s", r->label,
             r->cut.begin);
    r->label = r->input.label = label;
    n2_input_cut(&r->input, r->cut.head, r->cut.begin, r->cut.stop);
    return N2CE_OK;
}

static n2ce_status start_path(n2_reader *r, const char *path) {
    const char *copy = n2_arena_strdup(&r->arena, path);
    if (!copy) return N2CE_ENOMEM;
    N2_TRY(n2_input_open(r->ctx, copy, &r->input));
    r->label = r->input.label;
    r->is_piece = r->cut.stop > 0;
    if (r->is_piece) N2_TRY(use_cut(r));
    return start_input(r);
}

static n2ce_status start_memory(n2_reader *r, const char *label, const void *bytes, size_t n) {
    r->label = n2_arena_strdup(&r->arena, label);
    if (!r->label) return N2CE_ENOMEM;
    r->input = n2_input_memory(r->ctx, r->label, bytes, n);
    return start_input(r);
}

static n2ce_status start_matrix(n2_reader *r, const char *label, const n2ce_matrix *m,
                                char *const *names) {
    r->label = n2_arena_strdup(&r->arena, label);
    if (!r->label) return N2CE_ENOMEM;
    N2_TRY(n2_npy_of_matrix(r->ctx, m, r->label, &r->npy));
    N2_TRY(start_npy(r));
    for (size_t i = 0; names && i < r->file_cols; i++) r->file_names[i] = names[i];
    return N2CE_OK;
}

static n2_reader *reader_new(n2ce_ctx *ctx, const n2_table_options *o) {
    n2_reader *r = n2_alloc(ctx, 1, sizeof *r);
    if (!r) return NULL;
    r->ctx = ctx;
    r->arena = n2_arena_new(ctx);
    r->input = n2_input_memory(ctx, "", NULL, 0);
    r->drop_missing = o && o->drop_missing;
    r->keep_missing = o && o->keep_missing;
    r->find_texts = o && o->find_texts;
    r->header = o ? o->header : N2_HEADER_AUTO;
    r->levels = o ? o->levels : NULL;
    r->csv_part = o ? o->csv_part : 0;
    return r;
}

void n2_reader_close(n2_reader *r) {
    if (!r) return;
    n2_reader_close(r->later);
    n2_file_set_free(&r->files);
    n2_csv_close(r->csv);
    n2_npy_close(r->npy);
    n2_input_close(&r->input);
    n2_free(r->ctx, r->columns);
    n2_arena_free(&r->arena);
    n2_free(r->ctx, r);
}

/* What is left to do once names are known: the reader if all went well, else NULL. */
static n2ce_status finish(n2_reader *r, n2ce_status status, const n2_table_options *o,
                          n2_reader **out) {
    if (status == N2CE_OK) status = keep_columns(r, o);
    if (status == N2CE_OK) status = find_categorical(r, o ? o->categorical : NULL);
    if (status == N2CE_OK) status = n2_reader_find_plain(r);
    *out = status == N2CE_OK ? r : NULL;
    if (status != N2CE_OK) n2_reader_close(r);
    return status;
}

n2ce_status n2_reader_open_file(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                                n2_reader **out) {
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_path(r, path), o, out) : N2CE_ENOMEM;
}

/* ---- pieces ---- */

n2ce_status n2_reader_can_cut(n2ce_ctx *ctx, const char *path, size_t *bytes, bool *can) {
    n2_input in;
    n2_npy *npy = NULL;
    size_t n;
    N2_TRY(n2_input_open(ctx, path, &in));
    const unsigned char *head = n2_input_head(&in, &n);
    const bool is_npy = n2_is_npy(head, n);
    *bytes = n2_input_bytes(&in);
    const n2ce_status status = is_npy ? n2_npy_open(ctx, &in, &npy) : N2CE_OK;
    *can = *bytes > 0 && (!is_npy || (npy && n2_npy_can_cut(npy)));
    n2_npy_close(npy);
    n2_input_close(&in);
    return status;
}

/* Lines that begin in [from, to), to a reader of their own. */
static n2ce_status cut_csv(const n2_reader *whole, const char *path, const n2_table_options *o,
                           size_t from, size_t to, n2_reader **out) {
    n2_cut cut = {.head = whole->header_ends};
    N2_TRY(n2_input_find_lines(&whole->input, from, to, &cut.begin, &cut.stop));
    if (cut.begin < cut.head) cut.begin = cut.head;
    if (cut.begin >= cut.stop) return N2CE_OK;
    n2_reader *r = *out = reader_new(whole->ctx, o);
    if (!r) return N2CE_ENOMEM;
    r->cut = cut;
    n2ce_status started = start_path(r, path);
    if (started == N2CE_OK && r->file_cols != whole->file_cols)
        started =
            n2_fail(r->ctx, N2CE_EDATA, "%s: rows have %zu columns, and the first of the file %zu.",
                    r->label, r->file_cols, whole->file_cols);
    return finish(r, started, o, out);
}

/* Rows that begin there, as if they lay one behind the other; the reader of the whole is theirs
 * from now on. */
static n2ce_status cut_npy(n2_reader *r, size_t from, size_t to, bool *some) {
    const size_t rows = n2_npy_rows(r->npy), bytes = n2_npy_bytes_of(r->npy), row = bytes / rows;
    const size_t header = n2_input_bytes(&r->input) - bytes;
    const size_t first = from > header ? (from - header + row - 1) / row : 0;
    const size_t end = to > header ? (to - header + row - 1) / row : 0;
    const size_t room = strlen(r->label) + 64;
    char *label = n2_arena_alloc(&r->arena, room, 1);
    if (!label) return N2CE_ENOMEM;
    snprintf(label, room, first > 0 ? "%s from row %zu on" : "%s", r->label, first);
    r->label = label;
    r->is_piece = true;
    *some = first < end;
    if (*some) n2_npy_cut(r->npy, first, end);
    return N2CE_OK;
}

n2ce_status n2_reader_open_piece(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                                 size_t from, size_t to, n2_reader **out) {
    n2_reader *whole;
    bool some = false;
    *out = NULL;
    N2_TRY(n2_reader_open_file(ctx, path, o, &whole));
    const n2ce_status status =
        whole->npy ? cut_npy(whole, from, to, &some) : cut_csv(whole, path, o, from, to, out);
    if (status == N2CE_OK && some)
        *out = whole;
    else
        n2_reader_close(whole);
    return status;
}

n2ce_status n2_reader_parse(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n,
                            const n2_table_options *o, n2_reader **out) {
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_memory(r, label, bytes, n), o, out) : N2CE_ENOMEM;
}

n2ce_status n2_reader_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label,
                                const n2_table_options *o, n2_reader **out) {
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_matrix(r, label, m, o ? o->names : NULL), o, out) : N2CE_ENOMEM;
}
