/* Weights of a network as a flat file with a list beside it: NAME.f32 has little-endian floats, and
 * NAME_manifest.txt a line for each array, in PyTorch's order of axes,
 *
 *     # name shape offset_bytes count
 *     conv1.weight 16x3x3x3 0 432
 *
 * Everything is checked before a file counts as read. */
#ifndef N2_WEIGHTS_FILE_H
#define N2_WEIGHTS_FILE_H

#include "base/text.h"

enum { N2_WEIGHTS_RANK = 4, N2_WEIGHTS_NAME = 64, N2_WEIGHTS_MAX = 4096 };

typedef struct n2_weights_array {
    char name[N2_WEIGHTS_NAME];
    int rank;
    size_t dim[N2_WEIGHTS_RANK], count, offset; /* count: the product; offset: in bytes */
} n2_weights_array;

typedef struct n2_weights {
    n2ce_ctx *ctx;
    const char *label; /* the path, which outlives them */
    n2_text numbers;
    n2_weights_array *array;
    size_t n;
} n2_weights;

/* Reads NAME.f32 and the list beside it. Fails with N2CE_EDATA for a name that does not end in
 * .f32, a list that is not as above, arrays that are not inside the file, numbers that are not
 * finite; N2CE_EIO, N2CE_ENOMEM. n2_weights_free is due after success only. */
n2ce_status n2_weights_read(n2ce_ctx *ctx, const char *path, n2_weights *out);

/* The arrays that a list names, of a file of `bytes` bytes; *array is memory of the context. */
n2ce_status n2_weights_parse_list(n2ce_ctx *ctx, const char *label, const n2_text *list,
                                  size_t bytes, n2_weights_array **array, size_t *n);

void n2_weights_free(n2_weights *w);

const n2_weights_array *n2_weights_find(const n2_weights *w, const char *name); /* NULL: none */
double n2_weights_number(const n2_weights *w, const n2_weights_array *a, size_t i);

#endif
