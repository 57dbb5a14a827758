/* NPY, NumPy's file of one array, and matrices in memory: rows as doubles.
 *
 *     6 bytes     \x93NUMPY
 *     2 bytes     version: 1.0, 2.0 or 3.0
 *     2 or 4      H, the size of the header, little-endian
 *     H bytes     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }
 *     the rest    the elements
 *
 * Elements are floats of 4 or 8 bytes, integers or booleans, of either byte
 * order. One dimension is one column. The header is read by a parser that knows
 * this form only. A file is mapped and its pages are given back, so that memory does not grow
 * with it; a pipe is streamed, or read whole if it is in Fortran order. */
#ifndef N2_NPY_H
#define N2_NPY_H

#include "input.h"

#define N2_NPY_HEADER_MAX  ((size_t)1 << 20) /* bytes */
#define N2_NPY_COLUMNS_MAX ((size_t)1 << 20)

/* Whether a file that starts with these n bytes says it is NPY. */
bool n2_is_npy(const unsigned char *head, size_t n);

typedef struct n2_npy n2_npy;

/* Reads the header. The input must outlive *out. Fails with N2CE_EDATA,
 * N2CE_EIO, N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_npy_open(n2ce_ctx *ctx, n2_input *in, n2_npy **out);

/* The same for a matrix that outlives *out, as does the label. Fails with
 * N2CE_EINVAL or N2CE_ENOMEM. */
n2ce_status n2_npy_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label, n2_npy **out);

void n2_npy_close(n2_npy *npy); /* NULL is fine */

size_t n2_npy_rows(const n2_npy *npy);
size_t n2_npy_cols(const n2_npy *npy);
size_t n2_npy_bytes_of(const n2_npy *npy); /* all elements */

/* Rows from .. to - 1 are all that there is, of a file that is in memory or mapped. */
bool n2_npy_can_cut(const n2_npy *npy);
void n2_npy_cut(n2_npy *npy, size_t from, size_t to);

/* The next rows, at most max_rows of them; of each the n columns, in this order, to x, row-major.
 * NaN and infinity come as they are. *rows is 0 only at the end. Fails with N2CE_EDATA if a
 * pipe has too few bytes, or more than it should, N2CE_EIO, N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_npy_next(n2_npy *npy, const size_t *columns, size_t n, double *x, size_t max_rows,
                        size_t *rows);

/* An array of unsigned bytes as it stands: pictures, say. */
typedef struct n2_npy_bytes {
    size_t rank, dims[4];
    const unsigned char *bytes; /* in the input's memory, the last dimension fastest */
    size_t n;                   /* the product of dims[0 .. rank-1] */
} n2_npy_bytes;

/* Reads all of an input in memory or of a file (not a pipe), which must outlive *out. Fails as
 * n2_npy_open, also for other elements, Fortran order and more than four dimensions. */
n2ce_status n2_npy_read_bytes(n2ce_ctx *ctx, n2_input *in, n2_npy_bytes *out);

/* Writes n doubles as a file of one dimension, whole or not at all (n2_new_file); and unsigned
 * bytes of any. N2CE_EEXIST if it is there and may not be replaced. */
n2ce_status n2_npy_write(n2ce_ctx *ctx, const char *path, const double *x, size_t n, bool replace);
n2ce_status n2_npy_write_bytes(n2ce_ctx *ctx, const char *path, const n2_npy_bytes *array,
                               bool replace);

#endif
