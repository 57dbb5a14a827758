/* Whether the first row of a CSV file has names of columns. */
#ifndef N2_HEADER_H
#define N2_HEADER_H

typedef enum n2_header {
    N2_HEADER_AUTO, /* it has if it has texts and no numbers; or if it numbers its columns */
    N2_HEADER_YES,
    N2_HEADER_NO
} n2_header;

#endif
