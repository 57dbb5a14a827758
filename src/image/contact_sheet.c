#include "image_formats.h"

#include <string.h>

/* The smallest number whose square is at least n: the sheet is nearly square. */
static size_t side_of(size_t n) {
    size_t side = 1;
    while (side * side < n) side++;
    return side;
}

/* count pictures of a size with gaps between them and around them; false if that overflows. */
static bool sheet_side(size_t count, size_t size, size_t *out) {
    return !__builtin_add_overflow(size, (size_t)N2_SHEET_GAP, &size) &&
           !__builtin_mul_overflow(count, size, &size) &&
           !__builtin_add_overflow(size, (size_t)N2_SHEET_GAP, out);
}

static void paste(const n2_images *from, size_t i, size_t columns, const n2_images *sheet) {
    const size_t row = from->width * from->channels;
    const size_t top = N2_SHEET_GAP + i / columns * (from->height + N2_SHEET_GAP);
    const size_t left = N2_SHEET_GAP + i % columns * (from->width + N2_SHEET_GAP);
    for (size_t y = 0; y < from->height; y++)
        memcpy(sheet->pixels + ((top + y) * sheet->width + left) * from->channels,
               from->pixels + (i * from->height + y) * row, row);
}

/* The sheet as one picture; messages call it `label`. */
static n2ce_status new_sheet(const n2_images *images, size_t n, size_t columns, const char *label,
                             n2_images **out) {
    size_t height, width;
    if (n == 0) n = images->n;
    if (n > images->n)
        return n2_fail(images->ctx, N2CE_EINVAL, "%s: %zu pictures are wanted, and there are %zu.",
                       label, n, images->n);
    if (columns == 0) columns = side_of(n);
    if (columns > n) columns = n;
    if (!sheet_side((n - 1) / columns + 1, images->height, &height) ||
        !sheet_side(columns, images->width, &width))
        return n2_fail(images->ctx, N2CE_EINVAL, "%s: %zu pictures are too many for one sheet.",
                       label, n);
    N2_TRY(n2_images_new(images->ctx, 1, height, width, images->channels, out));
    memset((*out)->pixels, 0xff, height * width * images->channels);
    for (size_t i = 0; i < n; i++) paste(images, i, columns, *out);
    return N2CE_OK;
}

n2ce_status n2_images_write_sheet(const n2_images *images, size_t n, size_t columns,
                                  const char *path, n2_file_writer *write) {
    n2_images *sheet;
    N2_TRY(new_sheet(images, n, columns, path, &sheet));
    const n2ce_status status = n2_images_write_png(sheet, 0, path, write);
    n2_images_free(sheet);
    return status;
}

n2ce_status n2_images_sheet_bytes(const n2_images *images, size_t n, size_t columns, n2_text *out) {
    n2_images *sheet;
    N2_TRY(new_sheet(images, n, columns, "A contact sheet", &sheet));
    const n2ce_status status = n2_png_bytes(sheet, 0, "A contact sheet", out);
    n2_images_free(sheet);
    return status;
}

n2ce_status n2_images_pick(const n2_images *images, const size_t *numbers, size_t n,
                           n2_images **out) {
    const size_t size = images->height * images->width * images->channels;
    N2_TRY(n2_images_new(images->ctx, n, images->height, images->width, images->channels, out));
    for (size_t i = 0; i < n; i++)
        memcpy((*out)->pixels + i * size, images->pixels + numbers[i] * size, size);
    return N2CE_OK;
}
