/* The pictures of n2ce.h. */
#include "image/image.h"
#include "io/file.h"

#include <string.h>

n2ce_status n2ce_images_read(n2ce_ctx *ctx, const char *path, n2ce_images **out) {
    if (!ctx || !path || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    *out = NULL;
    if (ctx && path) return n2_images_read(ctx, path, out);
    return n2_fail(ctx, N2CE_EINVAL, "The path of the pictures is NULL.");
}

void n2ce_images_free(n2ce_images *images) { n2_images_free(images); }

void n2ce_images_size(const n2ce_images *images, size_t size[4]) {
    if (!images) {
        memset(size, 0, 4 * sizeof *size);
        return;
    }
    size[0] = images->n;
    size[1] = images->height;
    size[2] = images->width;
    size[3] = images->channels;
}

const uint8_t *n2ce_images_pixels(const n2ce_images *images) {
    return images ? images->pixels : NULL;
}
const uint8_t *n2ce_images_labels(const n2ce_images *images) {
    return images ? images->labels : NULL;
}

n2ce_status n2ce_images_write_sheet(const n2ce_images *images, size_t n, size_t columns,
                                    const char *path, bool overwrite) {
    if (!images || !path)
        return n2_fail(images ? images->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    N2_TRY(n2_file_check_output(images->ctx, path, overwrite));
    return n2_images_write_sheet(images, n, columns, path,
                                 overwrite ? n2_file_write : n2_file_create);
}
