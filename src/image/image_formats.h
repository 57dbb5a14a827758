/* The formats of files of pictures, one function each; n2_images_parse (image.h) chooses. All fail
 * with N2CE_EDATA or N2CE_ENOMEM, and leave nothing behind then. */
#ifndef N2_IMAGE_FORMATS_H
#define N2_IMAGE_FORMATS_H

#include "base/text.h"
#include "image.h"

/* A file in memory. */
typedef struct n2_image_file {
    n2ce_ctx *ctx;
    const char *label; /* what messages call it */
    const unsigned char *bytes;
    size_t n;
    const char *packed; /* what it was packed by, NULL: by nothing */
} n2_image_file;

bool n2_is_png(const n2_image_file *f);
n2ce_status n2_png_parse(const n2_image_file *f, n2_images **out);

/* Picture i of `images` as the bytes of a PNG, added to a text; messages call it `label`. i has
 * been checked. */
n2ce_status n2_png_bytes(const n2_images *images, size_t i, const char *label, n2_text *out);

/* IDX of bytes: of pictures, or of labels. */
bool n2_is_idx(const n2_image_file *f);
n2ce_status n2_idx_parse(const n2_image_file *f, n2_images **out);
n2ce_status n2_idx_labels(const n2_image_file *f, n2_images *images);

/* There is no magic: whole records, every label is 0 to 9, and it is no IDX that is in order. */
bool n2_is_cifar10(const n2_image_file *f);
n2ce_status n2_cifar10_parse(const n2_image_file *f, n2_images **out);

n2ce_status n2_npy_images(const n2_image_file *f, n2_images **out);

/* Whether it begins as files of pictures do (n2_may_be_images). */
bool n2_image_file_may_be(n2ce_ctx *ctx, const char *path);

/* Pictures of a file, not of a folder. */
n2ce_status n2_image_file_read(n2ce_ctx *ctx, const char *path, n2_images **out);

/* gzip or xz: the file that was packed, in memory that n2_free frees. */
const char *n2_packing_of(const n2_image_file *f); /* "gzip", "xz", NULL: it is not packed */
n2ce_status n2_unpack(const n2_image_file *f, unsigned char **bytes, size_t *n);

#endif
