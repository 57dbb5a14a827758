#include "picture_rgb.h"

#include <math.h>

/* The pixels of a line of n that make one of `side`: a triangle around its middle, as wide as
 * the pixels of whichever line has the larger ones. */
typedef struct window {
    double middle, reach;
    size_t first, end;
} window;

static window window_of(size_t at, size_t n, size_t side) {
    const double scale = (double)n / (double)side;
    window w = {.middle = ((double)at + 0.5) * scale, .reach = fmax(scale, 1)};
    const double low = floor(w.middle - w.reach), high = ceil(w.middle + w.reach);
    w.first = low > 0 ? (size_t)low : 0;
    w.end = high < (double)n ? (size_t)high : n;
    return w;
}

static double weight_of(const window *w, size_t at) {
    return fmax(0, 1 - fabs((double)at + 0.5 - w->middle) / w->reach);
}

static void mix_pixel(const n2_images *p, const unsigned char *from, const window *y,
                      const window *x, float out[3]) {
    double sum[3] = {0}, total = 0;
    for (size_t r = y->first; r < y->end; r++)
        for (size_t s = x->first; s < x->end; s++) {
            const double weight = weight_of(y, r) * weight_of(x, s);
            total += weight;
            for (size_t c = 0; c < 3; c++)
                sum[c] += weight * from[(r * p->width + s) * p->channels + c % p->channels];
        }
    for (size_t c = 0; c < 3; c++) out[c] = (float)(sum[c] / (total * 255));
}

void n2_picture_rgb(const n2_images *pictures, size_t i, size_t side, float *out) {
    const size_t size = pictures->height * pictures->width * pictures->channels;
    const unsigned char *from = pictures->pixels + i * size;
    window x[N2_RGB_SIDE_MAX];
    for (size_t s = 0; s < side; s++) x[s] = window_of(s, pictures->width, side);
    for (size_t r = 0; r < side; r++) {
        const window y = window_of(r, pictures->height, side);
        for (size_t s = 0; s < side; s++)
            mix_pixel(pictures, from, &y, &x[s], out + (r * side + s) * 3);
    }
}

void n2_picture_rgb_plain(const n2_images *pictures, size_t i, float *out) {
    const size_t pixels = pictures->height * pictures->width, channels = pictures->channels;
    const unsigned char *from = pictures->pixels + i * pixels * channels;
    for (size_t k = 0; k < 3 * pixels; k++)
        out[k] = (float)from[k / 3 * channels + k % 3 % channels] / 255;
}

void n2_picture_line_weights(size_t n, size_t side, float *out) {
    for (size_t s = 0; s < side; s++) {
        const window w = window_of(s, n, side);
        double total = 0;
        for (size_t at = 0; at < n; at++) total += weight_of(&w, at);
        for (size_t at = 0; at < n; at++) out[at * side + s] = (float)(weight_of(&w, at) / total);
    }
}
