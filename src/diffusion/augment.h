/* EDM's augmentation: pictures are mirrored, and with a probability each turned upside down,
 * scaled, rotated, stretched and moved; the network is told how, so that what it makes is not. */
#ifndef N2_AUGMENT_H
#define N2_AUGMENT_H

#include "nn/picture_layers.h"

/* What the network is told of a picture: mirrored, upside down, ln2 of the scale, cos - 1 and sin
 * of the angle, the stretch along and across its direction, the way in eighths of a side. */
enum { N2_AUGMENT_NUMBERS = 9 };

/* Pictures [n, h, w, c], each changed by chance: mirrored with probability 1/2, the rest with
 * probability p each. *told: [n x N2_AUGMENT_NUMBERS]. One affine map, sampled between four pixels
 * and mirrored at the borders; EDM's wavelet filter around it is left out. */
n2_node n2_augment_pictures(n2_graph *g, n2_node x, double p, n2_node *told);

#endif
