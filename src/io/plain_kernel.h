/* How bytes of plain lines are looked at and become numbers, in files that are compiled for several
 * instruction sets. */
#ifndef N2_PLAIN_KERNEL_H
#define N2_PLAIN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct n2_plain_lines {
    char separator;
    size_t fields;       /* of a line, at least 1 */
    size_t cols;         /* that are kept */
    const size_t *place; /* of each field among those kept, from 1; 0: it is not */
} n2_plain_lines;

typedef struct n2_line_findings {
    size_t lines, separators;
    bool odd; /* a byte belongs to no number, or there is no digit between two delimiters */
} n2_line_findings;

/* Adds what n bytes have, unless something is odd already. The two bytes before them are there. */
typedef void n2_look_fn(const unsigned char *text, size_t n, unsigned char separator,
                        n2_line_findings *f);

enum { N2_PLAIN_FIELDS_MAX = 2048 };

/* The lines in n bytes of text, up to one that is not plain or does not end there, as numbers; at
 * most max_rows of them, and how many. *used: their bytes. None if lines have more fields than
 * N2_PLAIN_FIELDS_MAX. */
typedef size_t n2_read_rows_fn(const n2_plain_lines *l, const char *text, size_t n, size_t max_rows,
                               double *x, size_t *used);

/* Bytes up to the end of the line after so many others, n if there is none. */
typedef size_t n2_skip_lines_fn(const char *text, size_t n, size_t lines);

/* 0, a point less 0, and 9: what kernels take off bytes and compare them with. Of constants
 * compilers make vectors anew for each number. */
extern const unsigned char n2_plain_marks[3][16];

/* The number at p, of at most 19 digits; where it ends, or NULL: whatever it looks like. */
const char *n2_plain_number(const char *p, const char *end, double *x);

#endif
