/* CSV (RFC 4180 and what is found in the wild) row by row, and its values.
 *
 * Rows end with LF or CRLF, the last one also without; lines that are blank are
 * skipped, and before the first row those that start with '#'. A UTF-8 byte
 * order mark is skipped. Fields are separated by commas or, if the first line has
 * none, by tabs or semicolons. A field in double quotes may contain separators,
 * newlines and doubled quotes. All rows have as many fields as the first.
 *
 * The buffer has a fixed size; it grows only for a row that does not fit. */
#ifndef N2_CSV_H
#define N2_CSV_H

#include "input.h"

#define N2_CSV_ROW_MAX    ((size_t)64 << 20) /* bytes */
#define N2_CSV_FIELDS_MAX ((size_t)1 << 20)

typedef struct n2_csv_field {
    const char *text; /* without quotes, or without the blanks around it; no NUL at its end */
    size_t n;
    bool quoted, doubled;
} n2_csv_field;

typedef struct n2_csv n2_csv;

/* The input must outlive *out. Fails with N2CE_ENOMEM. */
n2ce_status n2_csv_open(n2ce_ctx *ctx, n2_input *in, n2_csv **out);
void n2_csv_close(n2_csv *csv); /* NULL is fine */

/* The fields of the next row, valid until the next call; *fields is NULL at the
 * end. Fails with N2CE_EDATA (a number of fields that differs from the first
 * row's, an open quote, a row that is too long, no text), N2CE_EIO, N2CE_ENOMEM,
 * N2CE_ECANCELED. */
n2ce_status n2_csv_next(n2_csv *csv, const n2_csv_field **fields, size_t *n);

/* A header has texts and no numbers. */
bool n2_csv_is_header(const n2_csv_field *fields, size_t n);

/* The physical line in which the last row began, from 1. */
size_t n2_csv_line(const n2_csv *csv);

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
