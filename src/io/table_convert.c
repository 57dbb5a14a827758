/* Rows of a file as numbers, and what is wrong with them. */
#include "base/pool.h"
#include "base/text.h"
#include "reader_parts.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- what is wrong, and where ----------------------------------------------------------- */

/* The place of kept column k in a row, which is a line as editors count them or a row as NumPy
 * does. */
static n2ce_status fail_at(const n2_reader *r, size_t row, size_t k, n2ce_status status) {
    char where[160];
    const size_t column = r->columns[k];
    if (r->npy)
        snprintf(where, sizeof where, "row %zu, column %zu (zero-based)", row, column);
    else if (r->has_header)
        snprintf(where, sizeof where, "line %zu, column %zu (\"%s\")", row, column + 1,
                 n2_show_all(r->file_names[column]).text);
    else
        snprintf(where, sizeof where, "line %zu, column %zu (number %zu for --columns)", row,
                 column + 1, column);
    return n2_reader_fail_in(r, status, where);
}

/* Whether a text is a number once its comma is read as a decimal point. */
static bool has_decimal_comma(const char *text, size_t n) {
    char pointed[64];
    double x;
    const char *comma = n < sizeof pointed ? memchr(text, ',', n) : NULL;
    if (!comma) return false;
    memcpy(pointed, text, n);
    pointed[comma - text] = '.';
    return n2_value_parse(pointed, n, &x) == N2_VALUE_NUMBER;
}

/* Replacing all commas is a remedy where they do not separate columns. */
static const char *write_points(const n2_reader *r) {
    return r->csv && n2_csv_separator(r->csv) == ','
               ? "Write decimal points"
               : "Write decimal points, as with sed 's/,/./g'";
}

/* Unless most texts of kept column k are no such numbers. */
static n2ce_status refuse_commas(const n2_reader *r, size_t k) {
    const char *name = r->file_names[r->columns[k]], *example = "";
    const size_t n = n2_levels_count(r->levels, name);
    size_t found = 0;
    for (size_t code = n; code-- > 0;) {
        const char *text = n2_levels_text(r->levels, name, code);
        if (!has_decimal_comma(text, strlen(text))) continue;
        example = text;
        found++;
    }
    if (2 * found <= n) return N2CE_OK;
    return n2_fail(r->ctx, N2CE_EDATA,
                   "%s, column %zu (\"%s\"): %zu of its %zu texts are numbers with a decimal "
                   "comma, as \"%s\". %s, or name the column in --categorical if these are names.",
                   r->label, r->columns[k] + 1, n2_show_all(name).text, found, n,
                   n2_show_all(example).text, write_points(r));
}

static n2ce_status check_commas(const n2_reader *r) {
    for (size_t k = 0; k < r->cols; k++)
        if (r->found[k].first) N2_TRY(refuse_commas(r, k));
    return N2CE_OK;
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
    else if (has_decimal_comma(text, n))
        n2_fail(r->ctx, N2CE_EDATA,
                "\"%s\" has a decimal comma. %s, or name the column in --categorical if these "
                "are names.",
                shown.text, write_points(r));
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

/* ---- values ----------------------------------------------------------------------------- */

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
    const char *first = r->found[k].first;
    const n2_value value = n2_value_parse(f->text, f->n, &x);
    if (!first || value == N2_VALUE_TEXT) return N2CE_OK;
    if (value == N2_VALUE_MISSING && r->keep_missing) return N2CE_OK;
    return refuse_value(r, r->found[k].line, k, N2_VALUE_TEXT, first, strlen(first));
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
        const n2ce_status status = level_code(r, line, k, f->text, f->n, &x[k]);
        if (status == N2CE_EDATA && r->found[k].first) N2_TRY(refuse_commas(r, k));
        N2_TRY(status);
    }
    return N2CE_OK;
}

static n2_value kind_of(const n2_csv_field *f) {
    double x;
    return n2_value_parse(f->text, f->n, &x);
}

static n2ce_status keep_text(n2_reader *r, const n2_csv_field *f, char **out) {
    *out = n2_arena_alloc(&r->arena, f->n + 1, 1);
    if (!*out) return N2CE_ENOMEM;
    memcpy(*out, f->text, f->n);
    return N2CE_OK;
}

/* The first text of kept column k. What was missing before it is a level, too. */
static n2ce_status take_first_text(n2_reader *r, size_t k, const n2_csv_field *f) {
    n2_found_text *found = &r->found[k];
    found->line = n2_csv_line(r->csv);
    N2_TRY(keep_text(r, f, &found->first));
    N2_TRY(n2_reader_open_levels(r, k));
    if (!found->gap || n2_levels_frozen(r->levels)) return N2CE_OK;
    found->gap_has_one = true;
    return n2_levels_code(r->levels, r->level_columns[k], found->gap, strlen(found->gap),
                          &found->gap_code);
}

static n2ce_status look_at_value(n2_reader *r, size_t k, const n2_csv_field *f) {
    n2_found_text *found = &r->found[k];
    const n2_value kind = kind_of(f);
    found->told = kind != N2_VALUE_MISSING;
    if (kind == N2_VALUE_TEXT) return take_first_text(r, k, f);
    return found->told || found->gap ? N2CE_OK : keep_text(r, f, &found->gap);
}

/* If this row is kept, its values tell which columns are categorical; where one is missing, a later
 * row does. */
static n2ce_status find_texts(n2_reader *r, const n2_csv_field *fields) {
    for (size_t k = 0; r->drop_missing && k < r->cols; k++)
        if (kind_of(&fields[r->columns[k]]) == N2_VALUE_MISSING) return N2CE_OK;
    r->find_texts = false;
    for (size_t k = 0; k < r->first_cols; k++) {
        if (!r->categorical[k] && !r->found[k].told)
            N2_TRY(look_at_value(r, k, &fields[r->columns[k]]));
        r->find_texts |= !r->categorical[k] && !r->found[k].told;
    }
    return n2_reader_find_plain(r);
}

n2ce_status n2_reader_find_plain(n2_reader *r) {
    if (!r->csv || r->any_categorical || r->find_texts) return N2CE_OK;
    size_t *place = n2_arena_alloc(&r->arena, r->file_cols, sizeof *place);
    if (!place) return N2CE_ENOMEM;
    for (size_t k = 0; k < r->cols; k++) place[r->columns[k]] = k + 1;
    r->plain = (n2_plain_lines){n2_csv_separator(r->csv), r->file_cols, r->cols, place};
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
        if (kind_of(&fields[i]) != N2_VALUE_TEXT) return;
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
    const n2_plain_lines *plain = &job->r->plain;
    const n2_c_locale scope = n2_c_locale_enter();
    if (plain->fields > 0)
        rows.seen = rows.kept = n2_csv_plain_part(job->r->csv, part, plain, rows.room, rows.x);
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

/* Rows that are in memory, on this thread, up to one that needs a second look. */
static void next_plain(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    if (r->plain.fields == 0) return;
    const size_t n = n2_csv_plain_rows(r->csv, &r->plain, max_rows - *rows, x + *rows * r->cols);
    count_rows(r, n, n, rows);
}

static n2ce_status next_csv(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    for (bool ended = false; !ended && *rows < max_rows;) {
        if (n2_cancelled(r->ctx)) return N2CE_ECANCELED;
        N2_TRY(next_row(r, x, rows, &ended));
        if (ended || r->find_texts) continue;
        N2_TRY(next_parts(r, x, max_rows, rows));
        next_plain(r, x, max_rows, rows);
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

/* Whole numbers, all of them different. */
static bool is_like_index(const double *x, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        const double value = x[i * cols];
        if (!(value >= 0 && value == floor(value))) return false;
        for (size_t j = 0; j < i; j++)
            if (x[j * cols] == value) return false;
    }
    return true;
}

/* pandas writes the numbers of rows into a column without a name, unless it is told not to: they
 * tell samples apart that are alike. */
static void doubt_index(const n2_reader *r, const double *x, size_t rows) {
    enum { FEW = 3, MANY = 100 };
    if (!r->has_header || !r->takes_all || r->is_piece || rows < FEW) return;
    for (size_t k = 0; k < r->cols; k++) {
        if (!r->unnamed[r->columns[k]] || r->categorical[k]) continue;
        if (!is_like_index(x + k, rows < MANY ? rows : MANY, r->cols)) continue;
        n2_log(r->ctx, N2CE_LOG_WARNING,
               "%s: column %zu has no name, and whole numbers that are all different: it seems to "
               "count rows, which says nothing about them. Leave it out by naming the others in "
               "--columns.",
               r->label, r->columns[k] + 1);
    }
}

n2ce_status n2_reader_next_here(n2_reader *r, double *x, size_t max_rows, size_t *rows) {
    *rows = 0;
    if (max_rows == 0) return N2CE_OK;
    const bool first = r->seen == 0;
    const n2_c_locale scope = n2_c_locale_enter();
    n2ce_status status = r->csv ? next_csv(r, x, max_rows, rows) : next_npy(r, x, max_rows, rows);
    if (status == N2CE_OK && *rows == 0) status = check_commas(r);
    n2_c_locale_leave(scope);
    if (status == N2CE_OK && *rows == 0) status = check_some(r);
    if (status != N2CE_OK) *rows = 0;
    if (first) doubt_index(r, x, *rows);
    return status;
}
