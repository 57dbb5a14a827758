/* Formats that are plain arrays of bytes: IDX, CIFAR-10 batches, NPY. */
#include "image_formats.h"
#include "io/file.h"
#include "io/npy.h"

#include <string.h>

/* n pictures whose channels are planes, `stride` bytes apart, to pixels. */
static void planes_to_pixels(const unsigned char *from, size_t stride, const n2_images *to) {
    const size_t area = to->height * to->width, channels = to->channels;
    unsigned char *pixel = to->pixels;
    for (size_t i = 0; i < to->n; i++, from += stride)
        for (size_t p = 0; p < area; p++)
            for (size_t c = 0; c < channels; c++) *pixel++ = from[c * area + p];
}

/* ---- IDX: 0, 0, type, rank, sizes of 4 bytes, big-endian, then the elements ---------------- */

enum { IDX_BYTE = 8, IDX_HEADER = 4 };

bool n2_is_idx(const n2_image_file *f) {
    return f->n >= IDX_HEADER && f->bytes[0] == 0 && f->bytes[1] == 0 && f->bytes[3] >= 1 &&
           f->bytes[3] <= 4 && f->bytes[2] >= 8 && f->bytes[2] <= 14;
}

/* The sizes, 1 for what is not there; whether the file is as long as they say. */
static bool read_sizes(const n2_image_file *f, size_t sizes[4]) {
    const size_t rank = f->bytes[3], header = IDX_HEADER + 4 * rank;
    size_t bytes = 1;
    for (size_t k = 0; k < 4; k++) sizes[k] = 1;
    if (f->n < header) return false;
    for (size_t k = 0; k < rank; k++) {
        const unsigned char *at = f->bytes + IDX_HEADER + 4 * k;
        sizes[k] = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        if (__builtin_mul_overflow(bytes, sizes[k], &bytes)) return false;
    }
    return f->n - header == bytes;
}

static const unsigned char *elements(const n2_image_file *f) {
    return f->bytes + IDX_HEADER + 4 * (size_t)f->bytes[3];
}

static n2ce_status check_idx(const n2_image_file *f, size_t sizes[4]) {
    const bool fits = read_sizes(f, sizes);
    if (f->bytes[2] != IDX_BYTE)
        return n2_fail(f->ctx, N2CE_EDATA,
                       "%s: the elements of this IDX file are of type %d, and unsigned bytes (8) "
                       "are needed. Convert it.",
                       f->label, f->bytes[2]);
    if (fits) return N2CE_OK;
    return n2_fail(f->ctx, N2CE_EDATA,
                   "%s: the header of this IDX file says %zu x %zu x %zu x %zu bytes, and the file "
                   "has %zu with its header. It is damaged or cut short: fetch it again.",
                   f->label, sizes[0], sizes[1], sizes[2], sizes[3], f->n);
}

/* Whether these can be sizes of pictures; n2_images_new would blame the caller. */
static n2ce_status check_sizes(const n2_image_file *f, const size_t sizes[4]) {
    const bool empty = sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0;
    if (!empty && (sizes[3] == 1 || sizes[3] == 3)) return N2CE_OK;
    return n2_fail(f->ctx, N2CE_EDATA,
                   "%s holds %zu pictures of %zu x %zu with %zu channels: at least one is needed, "
                   "not empty, with 1 or 3 channels.",
                   f->label, sizes[0], sizes[1], sizes[2], sizes[3]);
}

static n2ce_status images_of(const n2_image_file *f, const size_t sizes[4], n2_images **out) {
    N2_TRY(check_sizes(f, sizes));
    return n2_images_new(f->ctx, sizes[0], sizes[1], sizes[2], sizes[3], out);
}

n2ce_status n2_idx_parse(const n2_image_file *f, n2_images **out) {
    size_t sizes[4];
    N2_TRY(check_idx(f, sizes));
    if (f->bytes[3] < 3)
        return n2_fail(f->ctx, N2CE_EDATA,
                       "%s is an IDX file of %s, not of pictures. Name the file of pictures, as "
                       "train-images-idx3-ubyte.",
                       f->label, f->bytes[3] == 1 ? "labels" : "two dimensions");
    N2_TRY(images_of(f, sizes, out));
    memcpy((*out)->pixels, elements(f), sizes[0] * sizes[1] * sizes[2] * sizes[3]);
    return N2CE_OK;
}

n2ce_status n2_idx_labels(const n2_image_file *f, n2_images *images) {
    size_t sizes[4];
    if (!n2_is_idx(f) || f->bytes[3] != 1)
        return n2_fail(f->ctx, N2CE_EDATA,
                       "%s is no IDX file of labels. Name one, as train-labels-idx1-ubyte.",
                       f->label);
    N2_TRY(check_idx(f, sizes));
    if (sizes[0] != images->n)
        return n2_fail(f->ctx, N2CE_EDATA,
                       "%s has %zu labels, and there are %zu pictures. Name the labels that belong "
                       "to them.",
                       f->label, sizes[0], images->n);
    unsigned char *labels = n2_alloc(f->ctx, sizes[0], 1);
    if (!labels) return N2CE_ENOMEM;
    n2_free(f->ctx, images->labels);
    images->labels = memcpy(labels, elements(f), sizes[0]);
    return N2CE_OK;
}

/* ---- CIFAR-10 --------------------------------------------------------------------------- */

enum { CIFAR_SIDE = 32, CIFAR_RECORD = 1 + 3 * CIFAR_SIDE * CIFAR_SIDE, CIFAR_CLASSES = 10 };

bool n2_is_cifar10(const n2_image_file *f) {
    size_t sizes[4];
    if (n2_is_idx(f) && f->bytes[2] == IDX_BYTE && read_sizes(f, sizes)) return false;
    if (f->n == 0 || f->n % CIFAR_RECORD != 0) return false;
    for (size_t at = 0; at < f->n; at += CIFAR_RECORD)
        if (f->bytes[at] >= CIFAR_CLASSES) return false;
    return true;
}

n2ce_status n2_cifar10_parse(const n2_image_file *f, n2_images **out) {
    n2_images *images;
    N2_TRY(n2_images_new(f->ctx, f->n / CIFAR_RECORD, CIFAR_SIDE, CIFAR_SIDE, 3, &images));
    images->labels = n2_alloc(f->ctx, images->n, 1);
    if (!images->labels) {
        n2_images_free(images);
        return N2CE_ENOMEM;
    }
    for (size_t i = 0; i < images->n; i++) images->labels[i] = f->bytes[i * CIFAR_RECORD];
    planes_to_pixels(f->bytes + 1, CIFAR_RECORD, images);
    *out = images;
    return N2CE_OK;
}

/* ---- NPY -------------------------------------------------------------------------------- */

n2ce_status n2_npy_images(const n2_image_file *f, n2_images **out) {
    n2_input in = n2_input_memory(f->ctx, f->label, f->bytes, f->n);
    n2_npy_bytes a;
    N2_TRY(n2_npy_read_bytes(f->ctx, &in, &a));
    if (a.rank < 3)
        return n2_fail(
            f->ctx, N2CE_EDATA,
            "%s: the array has %zu dimensions, and pictures have three or four: [n,h,w], "
            "[n,h,w,c] or [n,c,h,w]. Reshape it before it is saved.",
            f->label, a.rank);
    const bool planes =
        a.rank == 4 && a.dims[3] != 1 && a.dims[3] != 3 && (a.dims[1] == 1 || a.dims[1] == 3);
    const size_t sizes[4] = {a.dims[0], a.dims[planes ? 2 : 1], a.dims[planes ? 3 : 2],
                             a.rank == 3 ? 1 : a.dims[planes ? 1 : 3]};
    N2_TRY(images_of(f, sizes, out));
    if (planes)
        planes_to_pixels(a.bytes, sizes[1] * sizes[2] * sizes[3], *out);
    else
        memcpy((*out)->pixels, a.bytes, a.n);
    return N2CE_OK;
}

n2ce_status n2_images_write_npy(const n2_images *p, const char *path, bool overwrite) {
    const n2_npy_bytes a = {.rank = p->channels == 1 ? 3 : 4,
                            .dims = {p->n, p->height, p->width, p->channels},
                            .bytes = p->pixels,
                            .n = p->n * p->height * p->width * p->channels};
    N2_TRY(n2_file_check_output(p->ctx, path, overwrite));
    return n2_npy_write_bytes(p->ctx, path, &a, overwrite);
}
