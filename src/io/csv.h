/* CSV (RFC 4180 and what is found in the wild) row by row, and its values.
 *
 * Rows end with LF or CRLF, the last one also without; lines that are blank are
 * skipped, and before the first row those that start with '#'. A UTF-8 byte
 * order mark is skipped. Fields are separated by commas or, if the first line has
 * none, by tabs or semicolons. A field in double quotes may contain separators,
 * newlines and doubled quotes. All rows have as many fields as the first.
 *
 * The buffer grows with what comes to 16 MiB, and beyond only for a row that does not fit. What
 * is in it can be read on all threads: it is split into parts where rows seem to begin. */
#ifndef N2_CSV_H
#define N2_CSV_H

#include "header.h"
#include "input.h"
#include "plain_lines.h"

#define N2_CSV_ROW_MAX    ((size_t)64 << 20) /* bytes */
#define N2_CSV_FIELDS_MAX ((size_t)1 << 20)

typedef struct n2_csv_field {
    const char *text; /* without quotes, or without the blanks around it; no NUL at its end */
    size_t n;
    bool quoted, doubled;
} n2_csv_field;

typedef struct n2_csv n2_csv;

/* The input must outlive *out. `part` is how many bytes are worth a thread, 0: a number
 * that is; a small one is for tests. Fails with N2CE_ENOMEM. */
n2ce_status n2_csv_open(n2ce_ctx *ctx, n2_input *in, size_t part, n2_csv **out);
void n2_csv_close(n2_csv *csv); /* NULL is fine */

/* The fields of the next row, valid until the next call; *fields is NULL at the
 * end. Fails with N2CE_EDATA (a number of fields that differs from the first
 * row's, an open quote, a row that is too long, no text), N2CE_EIO, N2CE_ENOMEM,
 * N2CE_ECANCELED. */
n2ce_status n2_csv_next(n2_csv *csv, const n2_csv_field **fields, size_t *n);

/* The physical line in which the last row began, from 1. */
size_t n2_csv_line(const n2_csv *csv);

/* Bytes up to the end of that row. */
size_t n2_csv_place(const n2_csv *csv);

char n2_csv_separator(const n2_csv *csv);

/* The next rows that are in the buffer and plain, at most max_rows of them; how many. */
size_t n2_csv_plain_rows(n2_csv *csv, const n2_plain_lines *lines, size_t max_rows, double *x);

/* ---- many rows at once --------------------------------------------------- */

/* Rows that are in the buffer. A part begins behind a newline, which may turn out to be
 * inside quotes: so its rows count only if those before it end where it begins.
 *
 *     n2_csv_split(csv, max_rows, parts, &n);
 *     in parallel, for all parts:  n2_csv_read_part(csv, &parts[i], worker, fn, arg);
 *     for all parts, in order:
 *         if (n2_csv_join(csv, &parts[i])) what fn made of its rows counts;
 *         while (n2_csv_is_before(csv, parts[i].end)) n2_csv_next(csv, ...); */
enum { N2_CSV_PARTS = 128 };

typedef struct n2_csv_part {
    size_t begin, end; /* bytes of the input */
    size_t at, line;   /* how far it was read, and the physical line there */
    size_t row, rows;  /* of those that were split, at most so many are before it, and in it */
} n2_csv_part;

/* Splits rows that are there, max_rows of them or fewer, into at most N2_CSV_PARTS parts; *n
 * is 0 if that is not worth it. Not before the first row was read. Fails with N2CE_ENOMEM. */
n2ce_status n2_csv_split(n2_csv *csv, size_t max_rows, n2_csv_part *parts, size_t *n);

/* Gives the rows of a part to fn, until it says no to one. That row and those behind it are
 * for n2_csv_next, as is one that is wrong, has doubled quotes, or does not end in the part. For
 * several threads at once, each with its number and another part. */
typedef bool n2_csv_row_fn(void *arg, const n2_csv_field *fields);
void n2_csv_read_part(const n2_csv *csv, n2_csv_part *part, int worker, n2_csv_row_fn *fn,
                      void *arg);

/* The same for the rows at its beginning that are plain; the others are for n2_csv_read_part. */
size_t n2_csv_plain_part(const n2_csv *csv, n2_csv_part *part, const n2_plain_lines *lines,
                         size_t max_rows, double *x);

/* Goes on behind the rows of the part that fn took; false if the rows before the part do not
 * end where it begins. */
bool n2_csv_join(n2_csv *csv, const n2_csv_part *part);

/* Whether the next row begins before a byte of the input. */
bool n2_csv_is_before(const n2_csv *csv, size_t byte);

/* ---- values -------------------------------------------------------------- */

/* Whether a first row has names of columns. */
bool n2_csv_is_header(const n2_csv_field *fields, size_t n, n2_header header);

/* The first number of a row such as 0,1,2 or 2019,2020,2021, which counts its columns; -1: it does
 * not. From 0, of three columns and more, these are names as programs make them that have none. */
double n2_csv_counts_from(const n2_csv_field *fields, size_t n);

typedef enum n2_value {
    N2_VALUE_NUMBER,
    N2_VALUE_MISSING,  /* nothing, NA, N/A, NaN, null, None, ?, - or a point, in any case */
    N2_VALUE_INFINITE, /* inf, infinity, 1e999; with a sign or without */
    N2_VALUE_TEXT
} n2_value;

/* What n bytes of text are. A decimal number is rounded to the nearest double. Blanks
 * around it are fine; hexadecimal digits, or more than 500 characters, are not a
 * number. Call it inside n2_c_locale_enter() and leave(). */
n2_value n2_value_parse(const char *text, size_t n, double *number);

#endif
