/* Pictures in memory, and the files they come from and go to.
 *
 * A file is recognised by what it holds, not by its name:
 *
 *     PNG        one picture; palettes become RGB, 16 bits 8, transparency is dropped
 *     a folder   its files *.png in the order of their names, all of one size
 *     IDX        MNIST's format: bytes, [n][h][w] or [n][h][w][c]
 *     CIFAR-10   binary batches: records of a label, then the planes of 32 x 32 RGB
 *     NPY        unsigned bytes, [n,h,w], [n,h,w,c] or [n,c,h,w]; where both fit, [n,h,w,c]
 *
 * each but a folder also packed by gzip or xz. libpng, zlib and liblzma do that where n2ce was
 * built with them; else a file that needs one of them is refused with a sentence that says which.
 */
#ifndef N2_IMAGE_H
#define N2_IMAGE_H

#include "io/bundle.h"
#include "io/file.h"

/* What one packed file, gzip, xz or PNG, may become in memory, in bytes. */
#define N2_UNPACKED_MAX ((size_t)1 << 31)

typedef struct n2ce_images n2_images; /* under the name of n2ce.h */
struct n2ce_images {
    n2ce_ctx *ctx;
    size_t n, height, width, channels; /* at least 1 each; channels: 1 (grey) or 3 (RGB) */
    unsigned char *pixels;             /* [n][height][width][channels] */
    unsigned char *labels;             /* [n], or NULL where the file has none */
    const char *format;                /* of the file they came from: "PNG"; NULL: none */
    const char *packed;                /* "gzip", "xz", NULL: it was not */
};

/* n black pictures. Fails with N2CE_EINVAL for sizes that are not such, N2CE_ENOMEM. */
n2ce_status n2_images_new(n2ce_ctx *ctx, size_t n, size_t height, size_t width, size_t channels,
                          n2_images **out);

void n2_images_free(n2_images *images); /* NULL is fine */

/* Whether this is a folder, or a file that begins as those above do, plain or packed, or is as long
 * as CIFAR-10's; what is read tells whether it holds pictures. False also for what cannot be read.
 */
bool n2_may_be_images(n2ce_ctx *ctx, const char *path);

/* All pictures of a file, of standard input ("-"), or of a folder. Fails with N2CE_EDATA (not
 * pictures, damaged, cut short, too large, of several sizes, or packed in a way that this build
 * does not know), N2CE_EIO, N2CE_ENOMEM, N2CE_ECANCELED; *out is NULL then. */
n2ce_status n2_images_read(n2ce_ctx *ctx, const char *path, n2_images **out);

/* Of several files or folders, separated by commas; with labels if all of them have some. */
n2ce_status n2_images_read_list(n2ce_ctx *ctx, const char *paths, n2_images **out);

/* The same from n bytes of a file in memory, which messages call `label`. */
n2ce_status n2_images_parse(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n,
                            n2_images **out);

/* Replaces the labels by those of an IDX file (MNIST's labels), which must be as many as the
 * pictures. Fails as n2_images_read; the old labels then stay. */
n2ce_status n2_images_read_labels(n2_images *images, const char *path);

/* Writes picture i as a PNG, whole or not at all, as `write` does (io/file.h). Fails with
 * N2CE_EINVAL (there is no such picture, it is too large for a PNG, this build has no libpng),
 * N2CE_EEXIST, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_images_write_png(const n2_images *images, size_t i, const char *path,
                                n2_file_writer *write);

/* Writes all pictures as NPY, unsigned bytes [n,h,w], or [n,h,w,3] where they have colours; or into
 * a folder, made if need be, as 00000.png and so on: all of them or, unless some are replaced,
 * none. Nothing is replaced unless asked for, and no picture is there afterwards that would seem
 * one more of them. Fails as n2_images_write_png. */
n2ce_status n2_images_write_npy(const n2_images *images, const char *path, bool overwrite);
n2ce_status n2_images_write_folder(const n2_images *images, const char *path, bool overwrite);

/* Before the work: whether n pictures can be written there. */
n2ce_status n2_images_check_folder(n2ce_ctx *ctx, const char *path, size_t n, bool overwrite);

/* Writes a contact sheet: pictures 0 .. n-1 in rows of `columns` (0: as many as make it nearly
 * square), on white with a gap of N2_SHEET_GAP pixels between them and around them. n = 0 means
 * all. Fails as n2_images_write_png. */
enum { N2_SHEET_GAP = 2 };
n2ce_status n2_images_write_sheet(const n2_images *images, size_t n, size_t columns,
                                  const char *path, n2_file_writer *write);

/* The same as the bytes of a PNG, added to a text: for reports. Fails likewise. */
n2ce_status n2_images_sheet_bytes(const n2_images *images, size_t n, size_t columns, n2_text *out);

/* A check sum of the pixels, and of the labels if there are any: other pictures, another sum. */
void n2_images_sum(const n2_images *images, char sum[N2_CHECKSUM_ROOM]);

/* Halves both sides, which must be even: means of 2 x 2 pixels, rounded. */
n2ce_status n2_images_halve(n2_images *images);

/* The pictures with these numbers, which there are, in this order; without labels. Fails with
 * N2CE_EINVAL for n = 0, N2CE_ENOMEM. */
n2ce_status n2_images_pick(const n2_images *images, const size_t *numbers, size_t n,
                           n2_images **out);

#endif
