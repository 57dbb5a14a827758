#include "image.h"

#include "image_formats.h"
#include "io/input.h"
#include "io/npy.h"

#include "base/text.h"

#include <string.h>

/* ---- in memory -------------------------------------------------------------------------- */

n2ce_status n2_images_new(n2ce_ctx *ctx, size_t n, size_t height, size_t width, size_t channels,
                          n2_images **out) {
    size_t bytes;
    *out = NULL;
    if (n == 0 || height == 0 || width == 0 || (channels != 1 && channels != 3))
        return n2_fail(ctx, N2CE_EINVAL,
                       "%zu pictures of %zu x %zu with %zu channels: there must be at least one, "
                       "not empty, with 1 or 3 channels.",
                       n, height, width, channels);
    if (__builtin_mul_overflow(n, height, &bytes) || __builtin_mul_overflow(bytes, width, &bytes) ||
        __builtin_mul_overflow(bytes, channels, &bytes) || bytes > PTRDIFF_MAX)
        return n2_fail(ctx, N2CE_EINVAL,
                       "%zu pictures of %zu x %zu are more than memory can hold. Use fewer.", n,
                       height, width);
    n2_images *images = n2_alloc(ctx, 1, sizeof *images);
    if (!images) return N2CE_ENOMEM;
    *images =
        (n2_images){.ctx = ctx, .n = n, .height = height, .width = width, .channels = channels};
    images->pixels = n2_alloc(ctx, bytes, 1);
    if (!images->pixels) {
        n2_images_free(images);
        return N2CE_ENOMEM;
    }
    *out = images;
    return N2CE_OK;
}

void n2_images_sum(const n2_images *images, char sum[N2_CHECKSUM_ROOM]) {
    const size_t n = images->n, of_one = images->height * images->width * images->channels;
    const n2_st_tensor data[] = {
        {.name = "x", .dtype = N2_ST_U8, .data = images->pixels, .bytes = n * of_one},
        {.name = "labels", .dtype = N2_ST_U8, .data = images->labels, .bytes = n}};
    n2_checksum(data, images->labels ? 2 : 1, NULL, 0, sum);
}

void n2_images_free(n2_images *images) {
    if (!images) return;
    n2_free(images->ctx, images->pixels);
    n2_free(images->ctx, images->labels);
    n2_free(images->ctx, images);
}

/* ---- files ------------------------------------------------------------------------------ */

static n2ce_status unknown(const n2_image_file *f) {
    return n2_fail(
        f->ctx, N2CE_EDATA,
        "%s: its %zu bytes begin with \"%s\": that is no PNG, no IDX, no NPY and no "
        "CIFAR-10 batch, plain or packed once by gzip or xz. Convert it to one of these.",
        f->label, f->n, n2_show((const char *)f->bytes, f->n < 8 ? f->n : 8).text);
}

static bool is_npy(const n2_image_file *f) { return n2_is_npy(f->bytes, f->n); }

/* The first that a file is. */
static const struct format {
    const char *name;
    bool (*is)(const n2_image_file *f);
    n2ce_status (*parse)(const n2_image_file *f, n2_images **out);
} formats[] = {{"PNG", n2_is_png, n2_png_parse},
               {"NPY", is_npy, n2_npy_images},
               {"CIFAR-10", n2_is_cifar10, n2_cifar10_parse},
               {"IDX", n2_is_idx, n2_idx_parse}};

enum { N_FORMATS = sizeof formats / sizeof *formats };

static const struct format *format_of(const n2_image_file *f) {
    for (size_t k = 0; k < N_FORMATS; k++)
        if (formats[k].is(f)) return &formats[k];
    return NULL;
}

static n2ce_status parse_plain(const n2_image_file *f, n2_images **out) {
    if (f->n == 0)
        return n2_fail(f->ctx, N2CE_EDATA, "%s is empty. Name a file of pictures.", f->label);
    const struct format *format = format_of(f);
    if (!format) return unknown(f);
    N2_TRY(format->parse(f, out));
    (*out)->format = format->name;
    (*out)->packed = f->packed;
    return N2CE_OK;
}

/* A use of what a file holds, unpacked. */
typedef n2ce_status use_fn(const n2_image_file *f, void *arg);

static n2ce_status use_unpacked(const n2_image_file *f, use_fn *use, void *arg) {
    unsigned char *bytes;
    n2_image_file plain = *f;
    plain.packed = n2_packing_of(f);
    if (!plain.packed) return use(f, arg);
    N2_TRY(n2_unpack(f, &bytes, &plain.n));
    plain.bytes = bytes;
    const n2ce_status status = use(&plain, arg);
    n2_free(f->ctx, bytes);
    return status;
}

/* All that comes out of a pipe, which may have no end. */
static n2ce_status read_pipe(n2_input *in, n2_text *text) {
    char buffer[1 << 14];
    for (size_t n = 1; n > 0 && !text->failed;) {
        N2_TRY(n2_input_read(in, buffer, sizeof buffer, &n));
        if (text->length + n > N2_UNPACKED_MAX)
            return n2_fail(in->ctx, N2CE_EDATA,
                           "%s has more than %zu bytes, which is the limit of what is no plain "
                           "file. Write it to a file.",
                           in->label, N2_UNPACKED_MAX);
        n2_text_add_raw(text, buffer, n);
    }
    return text->failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2ce_status use_input(n2_input *in, use_fn *use, void *arg) {
    n2_image_file f = {.ctx = in->ctx, .label = in->label};
    if (n2_input_map(in, &f.bytes, &f.n)) return use_unpacked(&f, use, arg);
    n2_text text = n2_text_new(in->ctx);
    n2ce_status status = read_pipe(in, &text);
    f.bytes = (const unsigned char *)text.data;
    f.n = text.length;
    if (status == N2CE_OK) status = use_unpacked(&f, use, arg);
    n2_text_free(&text);
    return status;
}

static n2ce_status use_file(n2ce_ctx *ctx, const char *path, use_fn *use, void *arg) {
    n2_input in;
    N2_TRY(n2_input_open(ctx, path, &in));
    const n2ce_status status = use_input(&in, use, arg);
    n2_input_close(&in);
    return status;
}

static n2ce_status to_images(const n2_image_file *f, void *arg) { return parse_plain(f, arg); }

static n2ce_status to_labels(const n2_image_file *f, void *arg) { return n2_idx_labels(f, arg); }

n2ce_status n2_images_parse(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n,
                            n2_images **out) {
    *out = NULL;
    const n2_image_file f = {.ctx = ctx, .label = label, .bytes = bytes, .n = n};
    return use_unpacked(&f, to_images, out);
}

bool n2_image_file_may_be(n2ce_ctx *ctx, const char *path) {
    enum { BRACE = 8 }; /* where the header of a safetensors file begins, behind its length */
    n2_input in;
    n2_image_file f = {.ctx = ctx, .label = path};
    if (n2_input_open(ctx, path, &in) != N2CE_OK) return false;
    bool may_be = n2_input_map(&in, &f.bytes, &f.n) && f.n > 0;
    if (may_be && f.n > BRACE && f.bytes[BRACE] == '{') may_be = n2_is_png(&f) || is_npy(&f);
    may_be = may_be && (n2_packing_of(&f) || format_of(&f));
    n2_input_close(&in);
    return may_be;
}

n2ce_status n2_image_file_read(n2ce_ctx *ctx, const char *path, n2_images **out) {
    *out = NULL;
    return use_file(ctx, path, to_images, out);
}

n2ce_status n2_images_read_labels(n2_images *images, const char *path) {
    return use_file(images->ctx, path, to_labels, images);
}
