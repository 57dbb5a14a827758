/* Safetensors: named arrays in one file, as Hugging Face's library writes them.
 *
 *     8 bytes    N, the size of the header, little-endian; at most 100 MB
 *     N bytes    JSON: {"__metadata__": {"key": "text", ...},
 *                       "name": {"dtype": "F32", "shape": [2, 3],
 *                                "data_offsets": [begin, end]}, ...}
 *     the rest   the arrays, row-major and little-endian; every byte belongs
 *                to exactly one of them
 *
 * Reading copies nothing: the file is mapped, and a tensor points into it.
 * Everything is checked before a file counts as open. Fields of a tensor other
 * than these three are skipped, as the reference library does; stricter than
 * it, a name or key that occurs twice or contains a NUL is refused.
 *
 * Writing gives the same bytes for the same tensors in any order: element size
 * descending, then name. The header ends at a multiple of 64 bytes, so the
 * first tensor starts at one and each is aligned for its elements. */
#ifndef N2_SAFETENSORS_H
#define N2_SAFETENSORS_H

#include "base/ctx.h"
#include "file.h"

#define N2_ST_RANK_MAX   8
#define N2_ST_HEADER_MAX 100000000

typedef enum n2_st_dtype {
    N2_ST_F64,
    N2_ST_F32,
    N2_ST_F16,  /* IEEE 754 half precision */
    N2_ST_BF16, /* the upper half of an F32 */
    N2_ST_I64,
    N2_ST_I32,
    N2_ST_I16,
    N2_ST_I8,
    N2_ST_U64,
    N2_ST_U32,
    N2_ST_U16,
    N2_ST_U8,
    N2_ST_BOOL,  /* a byte, 0 or 1 */
    N2_ST_DTYPES /* how many there are */
} n2_st_dtype;

const char *n2_st_dtype_name(n2_st_dtype dtype); /* "F32"; "?" if unknown */
size_t n2_st_dtype_bytes(n2_st_dtype dtype);     /* of an element; 0 if unknown */

/* An array. From a file: owned by it, and `data` is aligned for its elements
 * only if whoever wrote the file took care, as n2_st_write does. */
typedef struct n2_st_tensor {
    const char *name; /* UTF-8, may be "" */
    n2_st_dtype dtype;
    int rank;                      /* 0 (one element) to 8 */
    int64_t shape[N2_ST_RANK_MAX]; /* the first `rank` count; 0 is allowed */
    const void *data;
    size_t bytes; /* elements times their size */
} n2_st_tensor;

size_t n2_st_elements(const n2_st_tensor *tensor);

typedef struct n2_st_pair {
    const char *key, *value; /* UTF-8 */
} n2_st_pair;

/* ---- reading ------------------------------------------------------------- */

typedef struct n2_st_file n2_st_file;

/* Opens a file, or a pipe, which is then read to its end. The file may be
 * replaced while open, but not cut short in place.
 * Fails with N2CE_EIO, N2CE_EDATA or N2CE_ENOMEM; *out is then NULL. */
n2ce_status n2_st_open(n2ce_ctx *ctx, const char *path, n2_st_file **out);

/* The same for n bytes in memory, which must outlive *out. `source` is what
 * messages call them. Fails with N2CE_EDATA or N2CE_ENOMEM. */
n2ce_status n2_st_parse(n2ce_ctx *ctx, const char *source, const void *bytes, size_t n,
                        n2_st_file **out);

void n2_st_close(n2_st_file *file); /* NULL is fine */

/* Tensors in the order of their bytes, NULL beyond the last; and by name, NULL
 * if there is none. */
size_t n2_st_count(const n2_st_file *file);
const n2_st_tensor *n2_st_at(const n2_st_file *file, size_t index);
const n2_st_tensor *n2_st_find(const n2_st_file *file, const char *name);

/* Metadata in the order of the keys, NULL beyond the last; and the value of a
 * key, NULL if there is none. */
size_t n2_st_metadata_count(const n2_st_file *file);
const n2_st_pair *n2_st_metadata_at(const n2_st_file *file, size_t index);
const char *n2_st_metadata(const n2_st_file *file, const char *key);

/* Copies the elements of a tensor, row-major, to n numbers. Any dtype but BOOL;
 * exact where the result can hold the number, else rounded (by way of double),
 * or infinite beyond its range. Fails with N2CE_EDATA if the tensor does not
 * have n elements, or has no numbers. */
n2ce_status n2_st_to_f32(n2ce_ctx *ctx, const n2_st_tensor *tensor, float *out, size_t n);
n2ce_status n2_st_to_f64(n2ce_ctx *ctx, const n2_st_tensor *tensor, double *out, size_t n);

/* ---- writing ------------------------------------------------------------- */

/* Writes a file, whole or not at all (n2_file_write); one that exists is
 * replaced. The file's bytes are built in memory.
 * Fails with N2CE_EINVAL (a name or key twice, not UTF-8, or the name
 * "__metadata__"; a shape that does not fit `bytes`; ...), N2CE_EIO or
 * N2CE_ENOMEM. */
n2ce_status n2_st_write(n2ce_ctx *ctx, const char *path, const n2_st_tensor *tensors, size_t n,
                        const n2_st_pair *metadata, size_t n_metadata);

/* The same, written as `write` does, and failing as that does. */
n2ce_status n2_st_put(n2ce_ctx *ctx, const char *path, const n2_st_tensor *tensors, size_t n,
                      const n2_st_pair *metadata, size_t n_metadata, n2_file_writer *write);

/* The bytes of that file; free them with n2_free. *out is NULL on failure. */
n2ce_status n2_st_encode(n2ce_ctx *ctx, const n2_st_tensor *tensors, size_t n,
                         const n2_st_pair *metadata, size_t n_metadata, char **out,
                         size_t *out_bytes);

#endif
