/* Pictures on their way into networks and out of them, for the files of this room. */
#ifndef N2_VAE_PICTURES_H
#define N2_VAE_PICTURES_H

#include "lebm.h"

/* Numbers of a picture inside the networks. */
static inline int64_t n2_lebm_numbers(const n2_image_spec *net) {
    return net->side * net->side * net->channels;
}

/* N2CE_EDATA, with a sentence, unless the pictures have the size of the frame. */
n2ce_status n2_lebm_check_frame(n2ce_ctx *ctx, const n2_lebm_spec *spec, const n2_images *pictures);

/* Picture i, framed, in [-1, 1]; and back into picture i, whose frame it is. */
void n2_lebm_picture_in(const n2_lebm_spec *spec, const n2_images *pictures, size_t i, float *out);
void n2_lebm_picture_out(const n2_lebm_spec *spec, const double *x, const n2_images *to, size_t i);

/* A tensor of this name and shape that a checkpoint leaves out: that of before, if there is one,
 * else a new one. NULL: out of memory. */
n2_tensor *n2_lebm_given(const n2_lebm *m, const char *name, n2_shape shape);

/* One for n pictures, [n x numbers]; and its rows from them, on the device of the plans that use
 * it. */
n2_tensor *n2_lebm_pictures_new(const n2_lebm *m, const char *name, size_t n);
n2ce_status n2_lebm_pictures_fill(const n2_lebm *m, n2_tensor *t, const n2_images *pictures);

/* Rows of that tensor as pictures [k x side x side x channels]; those whose coin [k] is 1 mirrored.
 * coin: N2_NONE, none is. */
n2_node n2_lebm_pick(n2_graph *g, const n2_image_spec *net, n2_tensor *pictures, n2_node index,
                     n2_node coin);

#endif
