/* Pictures of any size as floats of the size that features are made of. */
#ifndef N2_PICTURE_RGB_H
#define N2_PICTURE_RGB_H

#include "image/image.h"

enum { N2_RGB_SIDE = 32, N2_RGB_NUMBERS = N2_RGB_SIDE * N2_RGB_SIDE * 3, N2_RGB_SIDE_MAX = 512 };

/* Picture i as side x side RGB, [row][column][channel], 0 to 1: as it is if it has that size, else
 * by linear interpolation that averages over what a smaller picture leaves out. Grey is R = G = B.
 * side: N2_RGB_SIDE for features of ours, what a network wants, up to N2_RGB_SIDE_MAX. */
void n2_picture_rgb(const n2_images *pictures, size_t i, size_t side, float *out);

/* The same in two parts, for who enlarges pictures elsewhere: picture i as RGB in its own size, and
 * the n x side weights by which n pixels of a line make `side` of them. */
void n2_picture_rgb_plain(const n2_images *pictures, size_t i, float *out);
void n2_picture_line_weights(size_t n, size_t side, float *out);

#endif
