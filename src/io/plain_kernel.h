/* How bytes of plain lines are looked at, in a file that is compiled for several instruction sets.
 */
#ifndef N2_PLAIN_KERNEL_H
#define N2_PLAIN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct n2_line_findings {
    size_t lines, separators;
    bool odd; /* a byte belongs to no number, or there is no digit between two delimiters */
} n2_line_findings;

/* Adds what n bytes have, unless something is odd already. The two bytes before them are there. */
typedef void n2_look_fn(const unsigned char *text, size_t n, unsigned char separator,
                        n2_line_findings *f);

#endif
