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

n2ce_status n2_images_write_sheet(const n2_images *images, size_t n, size_t columns,
                                  const char *path) {
    size_t height, width;
    n2_images *sheet;
    if (n == 0) n = images->n;
    if (n > images->n)
        return n2_fail(images->ctx, N2CE_EINVAL, "%s: %zu pictures are wanted, and there are %zu.",
                       path, n, images->n);
    if (columns == 0) columns = side_of(n);
    if (columns > n) columns = n;
    if (!sheet_side((n - 1) / columns + 1, images->height, &height) ||
        !sheet_side(columns, images->width, &width))
        return n2_fail(images->ctx, N2CE_EINVAL, "%s: %zu pictures are too many for one sheet.",
                       path, n);
    N2_TRY(n2_images_new(images->ctx, 1, height, width, images->channels, &sheet));
    memset(sheet->pixels, 0xff, height * width * images->channels);
    for (size_t i = 0; i < n; i++) paste(images, i, columns, sheet);
    const n2ce_status status = n2_images_write_png(sheet, 0, path);
    n2_images_free(sheet);
    return status;
}
