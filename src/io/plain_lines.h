/* Lines of CSV that hold decimal numbers and nothing else, as most do: read in one go, without
 * fields. Whatever is not plain (quotes, blanks, missing values, names, blank lines) is left to
 * csv.h, which knows it all and says what is wrong. */
#ifndef N2_PLAIN_LINES_H
#define N2_PLAIN_LINES_H

#include "plain_kernel.h"

#include <stdbool.h>
#include <stddef.h>

/* What is seen of bytes that begin with a line, some after others. */
typedef struct n2_plain_sight {
    const n2_plain_lines *as;
    n2_line_findings found;
    size_t n; /* bytes */
    char last[2];
} n2_plain_sight;

/* n bytes more. */
void n2_plain_see(n2_plain_sight *sight, const char *text, size_t n);

/* *lines of them, of which the last may lack its end. False if a byte belongs to no number, if a
 * number is missing, or if there are not as many separators as lines of so many fields have. So
 * true says that nothing is missing and that lines are rows; not that every number is well formed.
 */
bool n2_plain_seen(const n2_plain_sight *sight, size_t *lines);

/* The line at `at`, in the bytes before `end`, as numbers; where the next one begins, or NULL if
 * something about it is not plain, or not finite. A line that has no end within the bytes has it
 * there. */
const char *n2_plain_read(const n2_plain_lines *p, const char *at, const char *end, double *x);

/* Such lines, one after the other, at most max_rows of them; how many. *at is where the next one
 * begins. */
size_t n2_plain_rows(const n2_plain_lines *p, const char **at, const char *end, size_t max_rows,
                     double *x);

/* Where the line after so many others begins. */
const char *n2_plain_skip(const char *at, const char *end, size_t lines);

#endif
