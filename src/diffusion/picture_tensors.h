/* Pictures and what belongs to them as tensors of a store, for the files of this room. */
#ifndef N2_PICTURE_TENSORS_H
#define N2_PICTURE_TENSORS_H

#include "denoiser.h"

/* A tensor of this name and shape that a checkpoint leaves out: that of before, if there is one,
 * else a new one. NULL: out of memory, or the name is taken by another shape. */
n2_tensor *n2_given_tensor(n2_store *store, const char *name, n2_shape shape);

/* Real pictures, and their classes where the network is told them. */
typedef struct n2_picture_data {
    const n2_images *pictures;
    n2_tensor *x;       /* [n x numbers] */
    n2_tensor *labels;  /* [n]; NULL: none */
    n2_tensor *classes; /* [k x k], the unit matrix; NULL: none */
} n2_picture_data;

/* N2CE_EDATA: classes are wanted, and the pictures have none, or more. */
n2ce_status n2_picture_data_new(n2_store *store, const n2_denoiser_spec *spec,
                                const n2_images *pictures, n2_picture_data *out);
/* Again for each device that plans run on. */
n2ce_status n2_picture_data_fill(n2_store *store, const n2_picture_data *d);

/* A batch of n pictures, each or its mirror image by chance if `flips`; *labels [n, classes], or
 * N2_NONE. */
n2_node n2_draw_pictures(n2_graph *g, const n2_denoiser_spec *spec, const n2_picture_data *d,
                         int64_t n, bool flips, n2_node *labels);

/* n classes by chance, as rows of one 1; N2_NONE: the network is told none. */
n2_node n2_draw_classes(n2_graph *g, const n2_denoiser_spec *spec, const n2_picture_data *d,
                        int64_t n);

/* Pictures as they are made: numbers in [-1, 1], cut off beyond, as bytes of picture i. */
void n2_picture_of_numbers(const float *x, const n2_images *to, size_t i);

/* ---- running means of what is learnt ---- */

/* Sums that forget 1 % a step, and their weight: mean k is tensor[k] / tensor[n]. */
n2_tensor *n2_running_new(n2_store *store, const char *name, size_t n);
void n2_running_note(n2_graph *g, n2_tensor *running, const n2_node *numbers, size_t n);
void n2_running_read(const n2_store *store, const n2_tensor *running, size_t n, double *means);

/* ---- rates ---- */

/* Up over the first `ramp` of the steps, down to 0 over the last `fall` of them. */
typedef struct n2_rate_course {
    double steps, ramp, fall;
} n2_rate_course;

/* The factor of a step, as n2_optimiser's `schedule` with a course as its argument. */
n2_node n2_rate_factor(n2_graph *g, n2_node step, const void *course);

/* ---- the average of weights ---- */

/* average <- what it was, of which half is forgotten in `half_life` pictures, or in 5 % of those
 * seen where that is less; `steps` is a tensor that counts steps of `batch` pictures, this one
 * among them. */
void n2_average_weights(n2_graph *g, const n2_score_net *average, const n2_score_net *of,
                        n2_node steps, int64_t batch, double half_life);

/* Adds one to a tensor that counts; the value is the count with this step. */
n2_node n2_count_step(n2_graph *g, n2_tensor *count);

#endif
