/* Several files of pictures as one set. */
#include "image.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Of pictures whose labels are not all known, none is. */
static n2ce_status append_labels(n2ce_ctx *ctx, const n2_images *more, n2_images *a) {
    unsigned char *labels = NULL;
    if (a->labels && more->labels) {
        labels = n2_realloc(ctx, a->labels, a->n + more->n, 1);
        if (!labels) return N2CE_ENOMEM;
        memcpy(labels + a->n, more->labels, more->n);
    } else {
        n2_free(ctx, a->labels);
    }
    a->labels = labels;
    return N2CE_OK;
}

/* Adds pictures behind those of *all, which takes them over if it has none yet. */
static n2ce_status append(n2ce_ctx *ctx, const char *path, n2_images *more, n2_images **all) {
    n2_images *a = *all;
    if (!a) {
        *all = more;
        return N2CE_OK;
    }
    if (more->height != a->height || more->width != a->width || more->channels != a->channels)
        return n2_fail(ctx, N2CE_EDATA,
                       "%s has pictures of %zu x %zu with %zu channels, and the files before it of "
                       "%zu x %zu with %zu. Pictures of a list must be of one size.",
                       path, more->height, more->width, more->channels, a->height, a->width,
                       a->channels);
    const size_t bytes = a->height * a->width * a->channels, n = a->n + more->n;
    unsigned char *pixels = n2_realloc(ctx, a->pixels, n * bytes, 1);
    if (!pixels) return N2CE_ENOMEM;
    memcpy(pixels + a->n * bytes, more->pixels, more->n * bytes);
    a->pixels = pixels;
    N2_TRY(append_labels(ctx, more, a));
    a->n = n;
    n2_images_free(more);
    return N2CE_OK;
}

static n2ce_status read_part(n2ce_ctx *ctx, const char *at, size_t n, n2_images **all) {
    char path[PATH_MAX];
    n2_images *more;
    if (n == 0 || n >= sizeof path)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A list of files has one without a name, or with too long a name.");
    memcpy(path, at, n);
    path[n] = '\0';
    N2_TRY(n2_images_read(ctx, path, &more));
    const n2ce_status status = append(ctx, path, more, all);
    if (status != N2CE_OK) n2_images_free(more);
    return status;
}

n2ce_status n2_images_read_list(n2ce_ctx *ctx, const char *paths, n2_images **out) {
    struct stat info;
    *out = NULL;
    if (stat(paths, &info) == 0) return n2_images_read(ctx, paths, out);
    n2ce_status status = N2CE_OK;
    for (const char *at = paths; status == N2CE_OK; at++) {
        const size_t n = strcspn(at, ",");
        status = read_part(ctx, at, n, out);
        at += n;
        if (!*at) break;
    }
    if (status == N2CE_OK) return N2CE_OK;
    n2_images_free(*out);
    *out = NULL;
    return status;
}
