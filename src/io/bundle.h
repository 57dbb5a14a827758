/* Models as files: named arrays and texts in one safetensors file, with a check sum over all of
 * it, written whole or not at all. */
#ifndef N2_BUNDLE_H
#define N2_BUNDLE_H

#include "base/arena.h"
#include "safetensors.h"

enum { N2_BUNDLE_NOTES = 8 };

/* What is to be written. A failure is remembered until then. */
typedef struct n2_bundle {
    n2_arena arena;
    n2_st_tensor *tensors;
    size_t n, room;
    n2_st_pair notes[N2_BUNDLE_NOTES];
    size_t n_notes;
    bool failed; /* out of memory */
} n2_bundle;

n2_bundle n2_bundle_new(n2ce_ctx *ctx);
void n2_bundle_free(n2_bundle *b);

/* An array; the name is copied, the data must stay until the bundle is written. */
void n2_bundle_put(n2_bundle *b, const char *name, n2_st_dtype type, int rank, const int64_t *shape,
                   const void *data);
/* The same for a matrix or, if cols is 0, a vector. */
void n2_bundle_put_doubles(n2_bundle *b, const char *name, size_t rows, size_t cols,
                           const double *x);

/* Numbers that live as long as the bundle; NULL, and the bundle has failed, if there is no memory.
 */
double *n2_bundle_room(n2_bundle *b, size_t n);

/* A text under a key, copied. */
void n2_bundle_note(n2_bundle *b, const char *key, const char *value);

/* Adds format, version and check sum. Fails with N2CE_EEXIST unless `overwrite`, N2CE_EIO,
 * N2CE_ENOMEM. */
n2ce_status n2_bundle_write(n2_bundle *b, const char *format, const char *path, bool overwrite);

/* N2CE_EDATA, with a sentence, unless the file has this format and its check sum fits. `wanted`:
 * what it should have been, and how to make one. */
n2ce_status n2_bundle_check(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                            const char *format, const char *wanted);

/* The check sum of tensors and texts, as it is written: other bits, another sum. The order of
 * tensors, and the text under the key "checksum", do not count. */
enum { N2_CHECKSUM_ROOM = 17 };
void n2_checksum(const n2_st_tensor *tensors, size_t n, const n2_st_pair *pairs, size_t n_pairs,
                 char out[N2_CHECKSUM_ROOM]);
bool n2_checksum_fits(const n2_st_file *f);

/* N2CE_EDATA with a sentence: the file is damaged. */
n2ce_status n2_bundle_damaged(n2ce_ctx *ctx, const char *path, const char *what);

/* Whether a file can hold so many numbers, in 16 bits at least. What does not fit must not even be
 * begun: the sizes that a file states may be any. */
bool n2_bundle_can_hold(const n2_st_file *f, double numbers);

/* A new array with the n doubles of a tensor; N2CE_EDATA, without a sentence, if that is missing
 * or has others. Whoever owns *out frees it, also after a failure. */
n2ce_status n2_bundle_take(n2ce_ctx *ctx, const n2_st_file *f, const char *name, size_t n,
                           double **out);

#endif
