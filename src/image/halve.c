/* Pictures of half the size. */
#include "image.h"

n2ce_status n2_images_halve(n2_images *p) {
    const size_t h = p->height / 2, w = p->width / 2, c = p->channels, row = p->width * c;
    if (p->height % 2 || p->width % 2)
        return n2_fail(p->ctx, N2CE_EDATA,
                       "The pictures are %zu x %zu: sides that are odd cannot be halved.",
                       p->height, p->width);
    unsigned char *to = p->pixels; /* never ahead of what is read */
    for (size_t i = 0; i < p->n * h; i++)
        for (size_t k = 0; k < w * c; k++) {
            const unsigned char *a = p->pixels + 2 * i * row + 2 * (k / c) * c + k % c;
            *to++ = (unsigned char)((a[0] + a[c] + a[row] + a[row + c] + 2) / 4);
        }
    p->height = h;
    p->width = w;
    return N2CE_OK;
}
