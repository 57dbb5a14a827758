/* PNG by libpng, from memory and into memory. */
#include "image_formats.h"
#include "io/file.h"
#include "io/input.h"

#include <string.h>

enum { PNG_MAGIC = 8 };

bool n2_is_png(const n2_image_file *f) {
    return f->n >= PNG_MAGIC && memcmp(f->bytes, "\x89PNG\r\n\x1a\n", PNG_MAGIC) == 0;
}

#ifdef N2CE_PNG

#include <png.h>

enum {
    SIDE_MAX = 1 << 20,  /* pixels */
    CHUNK_MAX = 8 << 20, /* bytes of a chunk that is kept, as a colour profile */
    DEFLATE_MAX = 1032   /* bytes that deflate can make of one */
};

/* libpng leaves by longjmp: what is needed after that is in here. */
typedef struct png_work {
    n2ce_ctx *ctx;
    const char *label;
    png_structp png;
    png_infop info;
    n2ce_status status; /* why it left */

    const n2_image_file *file; /* read: */
    size_t at;
    n2_images *images;

    n2_text *text; /* written: */
} png_work;

static png_voidp allocate(png_structp png, png_alloc_size_t n) {
    png_work *w = png_get_mem_ptr(png);
    void *p = n2_alloc(w->ctx, n, 1);
    if (!p) w->status = N2CE_ENOMEM;
    return p;
}

static void release(png_structp png, png_voidp p) {
    const png_work *w = png_get_mem_ptr(png);
    n2_free(w->ctx, p);
}

/* Does not return; the first reason stays. */
static void stop(png_structp png, png_const_charp message) {
    png_work *w = png_get_error_ptr(png);
    if (w->status == N2CE_OK)
        w->status = n2_fail(w->ctx, N2CE_EDATA,
                            "%s: this PNG is damaged or cut short (libpng: %s). Fetch or write it "
                            "again.",
                            w->label, n2_show(message, strlen(message)).text);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

/* ---- reading ---------------------------------------------------------------------------- */

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    png_work *w = png_get_io_ptr(png);
    if (n > w->file->n - w->at) png_error(png, "it ends too soon");
    memcpy(to, w->file->bytes + w->at, n);
    w->at += n;
}

/* Refuses sizes that the file cannot hold, before memory is asked for. */
static n2ce_status check_size(const png_work *w) {
    const size_t width = png_get_image_width(w->png, w->info);
    const size_t height = png_get_image_height(w->png, w->info);
    const size_t row = png_get_rowbytes(w->png, w->info); /* as packed */
    if (row > 0 && height > DEFLATE_MAX * w->file->n / row)
        return n2_fail(w->ctx, N2CE_EDATA,
                       "%s: this PNG says it is %zu x %zu, more than its %zu bytes can hold. It is "
                       "damaged or cut short: fetch it again.",
                       w->label, width, height, w->file->n);
    if (3 * width > N2_UNPACKED_MAX / height)
        return n2_fail(w->ctx, N2CE_EDATA,
                       "%s: this PNG is %zu x %zu, and more than %zu bytes are too many. Scale it.",
                       w->label, width, height, N2_UNPACKED_MAX);
    return N2CE_OK;
}

/* Everything to 8 bits, grey or RGB. */
static void set_transformations(const png_work *w) {
    const int colour = png_get_color_type(w->png, w->info);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(w->png);
    if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(w->png);
    png_set_scale_16(w->png);
    png_set_strip_alpha(w->png);
}

static void read_pixels(const png_work *w, int passes) {
    const n2_images *p = w->images;
    const size_t row = p->width * p->channels;
    if (png_get_rowbytes(w->png, w->info) != row) png_error(w->png, "rows of a strange size");
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < p->height; y++) png_read_row(w->png, p->pixels + y * row, NULL);
    png_read_end(w->png, NULL);
}

static void read_picture(png_work *w) {
    if (setjmp(png_jmpbuf(w->png))) return;
    png_set_read_fn(w->png, w, read_bytes);
    png_set_user_limits(w->png, SIDE_MAX, SIDE_MAX);
    png_set_chunk_malloc_max(w->png, CHUNK_MAX);
    png_read_info(w->png, w->info);
    if ((w->status = check_size(w)) != N2CE_OK) return;
    set_transformations(w);
    const int passes = png_set_interlace_handling(w->png);
    png_read_update_info(w->png, w->info);
    w->status = n2_images_new(w->ctx, 1, png_get_image_height(w->png, w->info),
                              png_get_image_width(w->png, w->info),
                              png_get_channels(w->png, w->info), &w->images);
    if (w->status == N2CE_OK) read_pixels(w, passes);
}

n2ce_status n2_png_parse(const n2_image_file *f, n2_images **out) {
    png_work w = {.ctx = f->ctx, .label = f->label, .file = f};
    w.png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &w, stop, ignore, &w, allocate, release);
    if (w.png) w.info = png_create_info_struct(w.png);
    if (w.info)
        read_picture(&w);
    else
        w.status = N2CE_ENOMEM;
    png_destroy_read_struct(&w.png, &w.info, NULL);
    if (w.status == N2CE_OK && w.at < f->n)
        w.status =
            n2_fail(f->ctx, N2CE_EDATA,
                    "%s: %zu bytes follow the end of this PNG. It is damaged: fetch it again.",
                    f->label, f->n - w.at);
    if (w.status == N2CE_OK)
        *out = w.images;
    else
        n2_images_free(w.images);
    return w.status;
}

/* ---- writing ---------------------------------------------------------------------------- */

static void write_bytes(png_structp png, png_bytep from, size_t n) {
    png_work *w = png_get_io_ptr(png);
    n2_text_add_raw(w->text, (const char *)from, n);
    if (!w->text->failed) return;
    w->status = N2CE_ENOMEM;
    png_error(png, "no memory");
}

static void flush_nothing(png_structp png) { (void)png; }

static void write_picture(png_work *w, const n2_images *p, size_t i) {
    const size_t row = p->width * p->channels;
    if (setjmp(png_jmpbuf(w->png))) return;
    png_set_write_fn(w->png, w, write_bytes, flush_nothing);
    png_set_user_limits(w->png, SIDE_MAX, SIDE_MAX);
    png_set_IHDR(w->png, w->info, (png_uint_32)p->width, (png_uint_32)p->height, 8,
                 p->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (size_t y = 0; y < p->height; y++)
        png_write_row(w->png, p->pixels + (i * p->height + y) * row);
    png_write_end(w->png, NULL);
}

n2ce_status n2_png_bytes(const n2_images *images, size_t i, const char *label, n2_text *out) {
    png_work w = {.ctx = images->ctx, .label = label, .text = out};
    if (images->width > SIDE_MAX || images->height > SIDE_MAX)
        return n2_fail(w.ctx, N2CE_EINVAL,
                       "%s: a picture of %zu x %zu is too large for a PNG; %d is the limit.", label,
                       images->height, images->width, SIDE_MAX);
    w.png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &w, stop, ignore, &w, allocate, release);
    if (w.png) w.info = png_create_info_struct(w.png);
    if (w.info)
        write_picture(&w, images, i);
    else
        w.status = N2CE_ENOMEM;
    png_destroy_write_struct(&w.png, &w.info);
    return w.status;
}

#else

n2ce_status n2_png_parse(const n2_image_file *f, n2_images **out) {
    *out = NULL;
    return n2_fail(f->ctx, N2CE_EDATA,
                   "%s is a PNG, and this n2ce was built without libpng. Install its headers "
                   "(Debian: libpng-dev) and build n2ce again, or convert the picture to NPY.",
                   f->label);
}

n2ce_status n2_png_bytes(const n2_images *images, size_t i, const char *label, n2_text *out) {
    (void)i;
    (void)out;
    return n2_fail(images->ctx, N2CE_EINVAL,
                   "%s is not written: this n2ce was built without libpng. Install its headers "
                   "(Debian: libpng-dev) and build n2ce again.",
                   label);
}

#endif

n2ce_status n2_images_write_png(const n2_images *images, size_t i, const char *path,
                                n2_file_writer *write) {
    if (i >= images->n)
        return n2_fail(images->ctx, N2CE_EINVAL, "%s: picture %zu is wanted, and there are %zu.",
                       path, i, images->n);
    n2_text png = n2_text_new(images->ctx);
    n2ce_status status = n2_png_bytes(images, i, path, &png);
    if (status == N2CE_OK) status = write(images->ctx, path, png.data, png.length);
    n2_text_free(&png);
    return status;
}
