#include "table.h"

#include "base/arena.h"
#include "base/pool.h"
#include "base/text.h"
#include "csv.h"
#include "json.h"
#include "npy.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is read of a file: its header, and bytes [begin, stop); stop 0: all of it. */
typedef struct n2_cut {
    size_t head, begin, stop;
} n2_cut;

struct n2_reader {
    n2ce_ctx *ctx;
    n2_arena arena; /* label, names, and what is kept of the columns */
    const char *label;
    n2_input input;
    n2_csv *csv; /* one of the two */
    n2_npy *npy;
    bool drop_missing, keep_missing;
    n2_levels *levels;
    size_t csv_part;

    n2_header header;
    bool has_header;
    bool is_piece; /* of its file */
    n2_cut cut;
    size_t header_ends; /* bytes of the file */
    char **file_names;
    size_t file_cols;

    size_t *columns, cols; /* that are kept, by their numbers in the file */
    size_t first_cols;     /* of these, not from `then` */
    bool *categorical;     /* of those kept */
    size_t *level_columns; /* their numbers in `levels`, if categorical */
    bool any_categorical;
    bool find_texts;   /* the first row that is kept will tell which columns hold texts */
    char **first_text; /* of a column that was found so; NULL: it was not */
    size_t text_line;  /* where they are */

    const n2_csv_field *first; /* a row that was read to see that it is no header, or NULL */
    size_t seen, dropped;
};

size_t n2_reader_cols(const n2_reader *r) { return r->cols; }
size_t n2_reader_first_cols(const n2_reader *r) { return r->first_cols; }
size_t n2_reader_seen(const n2_reader *r) { return r->seen; }
size_t n2_reader_dropped(const n2_reader *r) { return r->dropped; }

const char *n2_reader_name(const n2_reader *r, size_t c) {
    return c < r->cols ? r->file_names[r->columns[c]] : NULL;
}

bool n2_reader_categorical(const n2_reader *r, size_t c) {
    return c < r->cols && r->categorical[c];
}

n2ce_ctx *n2_reader_ctx(const n2_reader *r) { return r->ctx; }

n2_header n2_reader_header(const n2_reader *r) {
    return r->has_header ? N2_HEADER_YES : N2_HEADER_NO;
}

size_t n2_reader_bytes(const n2_reader *r) {
    return r->csv && !r->any_categorical && !r->find_texts ? n2_input_bytes(&r->input) : 0;
}

/* ---- what is wrong, and where ----------------------------------------------------------- */

enum { SENTENCE = 800 };

static n2_shown show(const char *text) { return n2_show(text, strlen(text)); }

/* Says where the context's last message belongs. */
static n2ce_status fail_in(const n2_reader *r, n2ce_status status, const char *where) {
    char what[SENTENCE];
    snprintf(what, sizeof what, "%s", n2ce_errmsg(r->ctx));
    return n2_fail(r->ctx, status, "%s, %s: %s", r->label, where, what);
}

/* The place of kept column k in a row, which is a line as editors count them or a row as NumPy
 * does. */
static n2ce_status fail_at(const n2_reader *r, size_t row, size_t k, n2ce_status status) {
    char where[160];
    const size_t column = r->columns[k];
    if (r->npy)
        snprintf(where, sizeof where, "row %zu, column %zu (zero-based)", row, column);
    else if (r->has_header)
        snprintf(where, sizeof where, "line %zu, column %zu (\"%s\")", row, column + 1,
                 show(r->file_names[column]).text);
    else
        snprintf(where, sizeof where, "line %zu, column %zu (number %zu for --columns)", row,
                 column + 1, column);
    return fail_in(r, status, where);
}

static n2ce_status refuse_value(const n2_reader *r, size_t row, size_t k, n2_value value,
                                const char *text, size_t n) {
    const n2_shown shown = n2_show(text, n);
    if (value == N2_VALUE_MISSING)
        n2_fail(
            r->ctx, N2CE_EDATA,
            "the value is missing%s. Drop such rows with --drop-missing, or leave the column out "
            "with --columns.",
            r->csv ? "" : " (NaN)");
    else if (value == N2_VALUE_INFINITE)
        n2_fail(r->ctx, N2CE_EDATA,
                "\"%s\" is infinite. Remove the row, or leave the column out with --columns.",
                shown.text);
    else
        n2_fail(r->ctx, N2CE_EDATA,
                "\"%s\" is not a number. Leave the column out with --columns, or name it in "
                "--categorical%s.",
                shown.text,
                r->header == N2_HEADER_AUTO && r->seen == 0 && !r->has_header && r->csv
                    ? "; if the first line has names, say --header yes"
                    : "");
    return fail_at(r, row, k, N2CE_EDATA);
}

/* ---- names ------------------------------------------------------------------------------ */

/* Names of the file's columns: the header's, or their numbers where it has none. */
static n2ce_status make_names(n2_reader *r, const n2_csv_field *header, size_t n) {
    enum { DIGITS = 24 };
    size_t bytes = n * DIGITS;
    for (size_t i = 0; header && i < n; i++) bytes += header[i].n;
    char *text = n2_arena_alloc(&r->arena, bytes, 1);
    r->file_names = n2_arena_alloc(&r->arena, n, sizeof *r->file_names);
    r->file_cols = n;
    if (!text || !r->file_names) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        r->file_names[i] = text;
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
                       (size_t)(sorted[i] - r->file_names) + 1, show(*sorted[i]).text,
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
    return status == N2CE_EINVAL ? fail_in(r, status, option) : status;
}

static n2ce_status keep_all(n2_reader *r) {
    r->columns = n2_alloc(r->ctx, r->file_cols, sizeof *r->columns);
    if (!r->columns) return N2CE_ENOMEM;
    for (; r->cols < r->file_cols; r->cols++) r->columns[r->cols] = r->cols;
    return N2CE_OK;
}

/* Columns of both texts; the second is parsed with the first, so that a column in both
 * is found. */
static n2ce_status keep_groups(n2_reader *r, const char *text, const char *then) {
    n2_text both = n2_text_new(r->ctx);
    char *joined;
    N2_TRY(parse_columns(r, "--x", text, &r->columns, &r->first_cols));
    n2_free(r->ctx, r->columns);
    r->columns = NULL;
    n2_text_add(&both, "%s,%s", text, then);
    n2ce_status status = n2_text_take(&both, &joined);
    if (status == N2CE_OK) status = parse_columns(r, "--x, --y", joined, &r->columns, &r->cols);
    n2_free(r->ctx, joined);
    n2_text_free(&both);
    return status;
}

static n2ce_status keep_columns(n2_reader *r, const char *text, const char *then) {
    const bool some = text && *text, more = some && then && *then;
    if (more)
        N2_TRY(keep_groups(r, text, then));
    else
        N2_TRY(some ? parse_columns(r, "--columns", text, &r->columns, &r->cols) : keep_all(r));
    if (!more) r->first_cols = r->cols;
    r->categorical = n2_arena_alloc(&r->arena, r->cols, sizeof *r->categorical);
    r->level_columns = n2_arena_alloc(&r->arena, r->cols, sizeof *r->level_columns);
    r->first_text = n2_arena_alloc(&r->arena, r->cols, sizeof *r->first_text);
    return r->categorical && r->level_columns && r->first_text ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status open_levels(n2_reader *r, size_t k) {
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
                       r->label, show(name).text);
    const n2ce_status status = open_levels(r, kept[column] - 1);
    return status == N2CE_EDATA ? fail_in(r, status, "--categorical") : status;
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

static n2ce_status start_matrix(n2_reader *r, const char *label, const n2ce_matrix *m) {
    r->label = n2_arena_strdup(&r->arena, label);
    if (!r->label) return N2CE_ENOMEM;
    N2_TRY(n2_npy_of_matrix(r->ctx, m, r->label, &r->npy));
    return start_npy(r);
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
    if (status == N2CE_OK) status = keep_columns(r, o ? o->columns : NULL, o ? o->then : NULL);
    if (status == N2CE_OK) status = find_categorical(r, o ? o->categorical : NULL);
    *out = status == N2CE_OK ? r : NULL;
    if (status != N2CE_OK) n2_reader_close(r);
    return status;
}

n2ce_status n2_reader_open(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                           n2_reader **out) {
    if (o && o->to > 0) {
        n2_table_options whole = *o;
        whole.from = whole.to = 0;
        return n2_reader_open_piece(ctx, path, &whole, o->from, o->to, out);
    }
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_path(r, path), o, out) : N2CE_ENOMEM;
}

/* ---- pieces ---- */

n2ce_status n2_reader_can_cut(n2ce_ctx *ctx, const char *path, size_t *bytes, bool *can) {
    n2_input in;
    size_t n;
    N2_TRY(n2_input_open(ctx, path, &in));
    const unsigned char *head = n2_input_head(&in, &n);
    *bytes = n2_input_bytes(&in);
    *can = *bytes > 0 && !n2_is_npy(head, n);
    n2_input_close(&in);
    return N2CE_OK;
}

n2ce_status n2_reader_open_piece(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                                 size_t from, size_t to, n2_reader **out) {
    n2_reader *whole;
    *out = NULL;
    N2_TRY(n2_reader_open(ctx, path, o, &whole));
    n2_cut cut = {.head = whole->header_ends};
    const n2ce_status status = n2_input_find_lines(&whole->input, from, to, &cut.begin, &cut.stop);
    const size_t file_cols = whole->file_cols;
    n2_reader_close(whole);
    N2_TRY(status);
    if (cut.begin < cut.head) cut.begin = cut.head;
    if (cut.begin >= cut.stop) return N2CE_OK;
    n2_reader *r = *out = reader_new(ctx, o);
    if (!r) return N2CE_ENOMEM;
    r->cut = cut;
    n2ce_status started = start_path(r, path);
    if (started == N2CE_OK && r->file_cols != file_cols)
        started =
            n2_fail(ctx, N2CE_EDATA, "%s: rows have %zu columns, and the first of the file %zu.",
                    r->label, r->file_cols, file_cols);
    return finish(r, started, o, out);
}

n2ce_status n2_reader_parse(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n,
                            const n2_table_options *o, n2_reader **out) {
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_memory(r, label, bytes, n), o, out) : N2CE_ENOMEM;
}

n2ce_status n2_reader_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label,
                                const n2_table_options *o, n2_reader **out) {
    n2_reader *r = *out = reader_new(ctx, o);
    return r ? finish(r, start_matrix(r, label, m), o, out) : N2CE_ENOMEM;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* The code of a text in kept column k. */
static n2ce_status level_code(const n2_reader *r, size_t row, size_t k, const char *text, size_t n,
                              double *x) {
    size_t code;
    const n2ce_status status = n2_levels_code(r->levels, r->level_columns[k], text, n, &code);
    if (status == N2CE_EDATA) return fail_at(r, row, k, status);
    if (status == N2CE_OK) *x = (double)code;
    return status;
}

/* Whether a level that nobody knows is NaN, and not an error or a new one. */
static bool takes_unknown(const n2_reader *r) {
    return r->keep_missing && n2_levels_frozen(r->levels);
}

typedef enum verdict { KEPT, DROPPED, ODD } verdict;

/* One row of CSV. It is odd if kept column *odd has a value that is wrong or a level that is new:
 * who reads the rows in their order has to see it. */
static verdict convert_plain(const n2_reader *r, const n2_csv_field *fields, double *x,
                             size_t *odd) {
    for (size_t k = 0; k < r->cols; k++) {
        const n2_csv_field *f = &fields[r->columns[k]];
        const n2_value value = n2_value_parse(f->text, f->n, &x[k]);
        if (value == N2_VALUE_NUMBER) continue;
        if (value == N2_VALUE_MISSING && r->drop_missing) return DROPPED;
        *odd = k;
        const bool kept = value == N2_VALUE_MISSING && r->keep_missing;
        if (kept) x[k] = (double)NAN;
        if (!kept && (value == N2_VALUE_MISSING || !r->categorical[k])) return ODD;
    }
    for (size_t k = 0; r->any_categorical && k < r->cols; k++) {
        const n2_csv_field *f = &fields[r->columns[k]];
        size_t code;
        *odd = k;
        if (!r->categorical[k]) continue;
        const bool known = n2_levels_find(r->levels, r->level_columns[k], f->text, f->n, &code);
        if (!known && !takes_unknown(r)) return ODD;
        x[k] = known ? (double)code : (double)NAN;
    }
    return KEPT;
}

/* A column that was taken for texts and has a number is a column of numbers, and its first text is
 * what is wrong. */
static n2ce_status check_is_text(const n2_reader *r, size_t k, const n2_csv_field *f) {
    double x;
    const char *first = r->first_text[k];
    const n2_value value = n2_value_parse(f->text, f->n, &x);
    if (!first || value == N2_VALUE_TEXT) return N2CE_OK;
    if (value == N2_VALUE_MISSING && r->keep_missing) return N2CE_OK;
    return refuse_value(r, r->text_line, k, N2_VALUE_TEXT, first, strlen(first));
}

/* Says what is wrong with kept column k, or adds its level and those behind it: last, when the row
 * is sure to be kept. */
static n2ce_status convert_odd(n2_reader *r, const n2_csv_field *fields, double *x, size_t k) {
    const n2_csv_field *f = &fields[r->columns[k]];
    const size_t line = n2_csv_line(r->csv);
    const n2_value value = n2_value_parse(f->text, f->n, &x[k]);
    const bool refused = value == N2_VALUE_MISSING && !r->keep_missing;
    if (refused || !r->categorical[k]) return refuse_value(r, line, k, value, f->text, f->n);
    for (; k < r->cols; k++) {
        f = &fields[r->columns[k]];
        if (!r->categorical[k]) continue;
        N2_TRY(check_is_text(r, k, f));
        N2_TRY(level_code(r, line, k, f->text, f->n, &x[k]));
    }
    return N2CE_OK;
}

static bool is_of_kind(const n2_csv_field *f, n2_value kind) {
    double x;
    return n2_value_parse(f->text, f->n, &x) == kind;
}

/* If this row is kept, its texts tell which columns are categorical. */
static n2ce_status find_texts(n2_reader *r, const n2_csv_field *fields) {
    for (size_t k = 0; r->drop_missing && k < r->cols; k++)
        if (is_of_kind(&fields[r->columns[k]], N2_VALUE_MISSING)) return N2CE_OK;
    for (size_t k = 0; k < r->first_cols; k++) {
        const n2_csv_field *f = &fields[r->columns[k]];
        if (r->categorical[k] || !is_of_kind(f, N2_VALUE_TEXT)) continue;
        r->first_text[k] = n2_arena_alloc(&r->arena, f->n + 1, 1);
        if (!r->first_text[k]) return N2CE_ENOMEM;
        memcpy(r->first_text[k], f->text, f->n);
        N2_TRY(open_levels(r, k));
    }
    r->text_line = n2_csv_line(r->csv);
    r->find_texts = false;
    return N2CE_OK;
}

static n2ce_status next_fields(n2_reader *r, const n2_csv_field **fields) {
    size_t n;
    *fields = r->first;
    r->first = NULL;
    return *fields ? N2CE_OK : n2_csv_next(r->csv, fields, &n);
}

static void count_rows(n2_reader *r, size_t seen, size_t kept, size_t *rows) {
    r->seen += seen;
    r->dropped += seen - kept;
    *rows += kept;
}

/* Of a file of texts alone, the first line may be data as well as names. */
static void doubt_header(const n2_reader *r, const n2_csv_field *fields) {
    for (size_t i = 0; i < r->file_cols; i++)
        if (!is_of_kind(&fields[i], N2_VALUE_TEXT)) return;
    n2_log(r->ctx, N2CE_LOG_WARNING,
           "%s: the first line is taken for the names of columns, though the next one has texts "
           "alone, too. If it is data, say --header no.",
           r->label);
}

/* The next row, behind those that x has. */
static n2ce_status next_row(n2_reader *r, double *x, size_t *rows, bool *ended) {
    const n2_csv_field *fields;
    size_t odd;
    N2_TRY(next_fields(r, &fields));
    *ended = !fields;
    if (*ended) return N2CE_OK;
    if (r->seen == 0 && r->has_header && r->header == N2_HEADER_AUTO) doubt_header(r, fields);
    x += *rows * r->cols;
    if (r->find_texts) N2_TRY(find_texts(r, fields));
    const verdict found = convert_plain(r, fields, x, &odd);
    if (found == ODD) N2_TRY(convert_odd(r, fields, x, odd));
    count_rows(r, 1, found != DROPPED, rows);
    return N2CE_OK;
}

/* The rows of a part, with room for all that it may have. */
typedef struct part_rows {
    const n2_reader *r;
    double *x;
    size_t room, seen, kept;
} part_rows;

static bool convert_part_row(void *arg, const n2_csv_field *fields) {
    part_rows *p = arg;
    size_t odd;
    if (p->kept == p->room) return false;
    const verdict found = convert_plain(p->r, fields, p->x + p->kept * p->r->cols, &odd);
    p->seen += found != ODD;
    p->kept += found == KEPT;
    return found != ODD;
}

typedef struct parts_job {
    const n2_reader *r;
    double *x;
    n2_csv_part parts[N2_CSV_PARTS];
    part_rows rows[N2_CSV_PARTS];
    size_t n;
} parts_job;

static void convert_part(void *arg, size_t item, int worker) {
    parts_job *job = arg;
    n2_csv_part *part = &job->parts[item];
    part_rows rows = {job->r, job->x + part->row * job->r->cols, part->rows, 0, 0};
    const n2_c_locale scope = n2_c_locale_enter();
    n2_csv_read_part(job->r->csv, part, worker, convert_part_row, &rows);
    n2_c_locale_leave(scope);
    job->rows[item] = rows; /* at the end: neighbours share its cache line */
}

/* Closes the gaps that blank lines and dropped rows leave, and reads what was not. There are never
 * more rows than newlines, so nothing is overwritten that counts. */
static n2ce_status join_parts(n2_reader *r, const parts_job *job, double *x, size_t max_rows,
                              size_t *rows) {
    bool ended = false;
    for (size_t i = 0; i < job->n; i++) {
        const part_rows *p = &job->rows[i];
        double *to = x + *rows * r->cols;
        if (n2_csv_join(r->csv, &job->parts[i])) {
            if (to < p->x) memmove(to, p->x, p->kept * r->cols * sizeof *to);
            count_rows(r, p->seen, p->kept, rows);
        }
        while (!ended && *rows < max_rows && n2_csv_is_before(r->csv, job->parts[i].end))
            N2_TRY(next_row(r, x, rows, &ended));
    }
    return N2CE_OK;
}

/* Rows that are in memory, on all threads. */
static n2ce_status next_parts(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    parts_job job;
    N2_TRY(n2_csv_split(r->csv, max_rows - *rows, job.parts, &job.n));
    if (job.n == 0) return N2CE_OK;
    if (n2_cancelled(r->ctx)) return N2CE_ECANCELED;
    job.r = r;
    job.x = x + *rows * r->cols;
    N2_TRY(n2_parallel_for(r->ctx, job.n, convert_part, &job));
    return join_parts(r, &job, x, max_rows, rows);
}

static n2ce_status next_csv(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    enum { CANCEL_ROWS = 4096 };
    for (bool ended = false; !ended && *rows < max_rows;) {
        if (r->seen % CANCEL_ROWS == 0 && n2_cancelled(r->ctx)) return N2CE_ECANCELED;
        N2_TRY(next_row(r, x, rows, &ended));
        if (!ended && !r->find_texts) N2_TRY(next_parts(r, x, max_rows, rows));
    }
    return N2CE_OK;
}

/* One row of numbers, in place. */
static n2ce_status convert_numbers(n2_reader *r, double *x, bool *keep) {
    char text[32];
    for (size_t k = 0; k < r->cols; k++) {
        if (isfinite(x[k]) || (isnan(x[k]) && r->keep_missing)) continue;
        *keep = !isnan(x[k]) || !r->drop_missing;
        if (!*keep) return N2CE_OK;
        n2_format_number(x[k], text);
        return refuse_value(r, r->seen, k, isnan(x[k]) ? N2_VALUE_MISSING : N2_VALUE_INFINITE, text,
                            strlen(text));
    }
    for (size_t k = 0; r->any_categorical && k < r->cols; k++) {
        if (!r->categorical[k]) continue;
        n2_format_number(x[k], text);
        size_t code;
        if (!takes_unknown(r))
            N2_TRY(level_code(r, r->seen, k, text, strlen(text), &x[k]));
        else if (n2_levels_find(r->levels, r->level_columns[k], text, strlen(text), &code))
            x[k] = (double)code;
        else
            x[k] = (double)NAN;
    }
    *keep = true;
    return N2CE_OK;
}

/* Whether all of many numbers are finite. */
typedef struct finite_job {
    const double *x;
    size_t n;
    atomic_bool broken;
} finite_job;

enum { LOOK_AT = 1 << 15 };

static void look_at_some(void *arg, size_t item, int worker) {
    (void)worker;
    finite_job *job = arg;
    const double *x = job->x + item * LOOK_AT;
    const size_t left = job->n - item * LOOK_AT, n = left < LOOK_AT ? left : LOOK_AT;
    int64_t broken = 0;
    for (size_t i = 0; i < n; i++) broken |= !(fabs(x[i]) <= DBL_MAX);
    if (broken) atomic_store_explicit(&job->broken, true, memory_order_relaxed);
}

/* Rows that need no second look are the rule: they are told on all threads. */
static n2ce_status all_plain(const n2_reader *r, const double *x, size_t rows, bool *plain) {
    finite_job job = {.x = x, .n = rows * r->cols};
    atomic_init(&job.broken, false);
    *plain = !r->any_categorical;
    if (!*plain) return N2CE_OK;
    N2_TRY(n2_parallel_for(r->ctx, (job.n + LOOK_AT - 1) / LOOK_AT, look_at_some, &job));
    *plain = !atomic_load_explicit(&job.broken, memory_order_relaxed);
    return N2CE_OK;
}

static n2ce_status next_npy(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    for (size_t n = 1; n > 0 && *rows == 0;) {
        bool plain = false;
        N2_TRY(n2_npy_next(r->npy, r->columns, r->cols, x, max_rows, &n));
        N2_TRY(all_plain(r, x, n, &plain));
        if (plain) {
            r->seen += n;
            *rows = n;
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            bool keep = true;
            N2_TRY(convert_numbers(r, x + i * r->cols, &keep));
            if (keep && *rows < i)
                memcpy(x + *rows * r->cols, x + i * r->cols, r->cols * sizeof *x);
            r->seen++;
            r->dropped += !keep;
            *rows += keep;
        }
    }
    return N2CE_OK;
}

/* At the end there must have been something. */
static n2ce_status check_some(const n2_reader *r) {
    if (r->seen > r->dropped || r->is_piece) return N2CE_OK;
    if (r->seen == 0)
        return n2_fail(r->ctx, N2CE_EDATA, "%s has a header and no rows. Name a file with samples.",
                       r->label);
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s: %zu of %zu rows have missing values, and none is left. Leave columns with "
                   "many missing values out with --columns.",
                   r->label, r->dropped, r->seen);
}

n2ce_status n2_reader_next(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    *rows = 0;
    if (max_rows == 0) return N2CE_OK;
    const n2_c_locale scope = n2_c_locale_enter();
    n2ce_status status = r->csv ? next_csv(r, x, max_rows, rows) : next_npy(r, x, max_rows, rows);
    n2_c_locale_leave(scope);
    if (status == N2CE_OK && *rows == 0) status = check_some(r);
    if (status != N2CE_OK) *rows = 0;
    return status;
}
