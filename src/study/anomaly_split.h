/* Which pictures of MNIST the study of anomalies learns from, and which it judges.
 *
 * All 70,000 pictures are one list: the first 50,000 of the training set, the test set, the last
 * 10,000 of the training set. Pictures of the held-out digit are odd, the others normal. The normal
 * ones are shuffled by NumPy's RandomState(42).permutation; the first four fifths, rounded down,
 * are learnt from, the rest and all odd ones are judged. So some 35 of 100 judged pictures are odd.
 */
#ifndef N2_ANOMALY_SPLIT_H
#define N2_ANOMALY_SPLIT_H

#include "base/arena.h"
#include "image/image.h"
#include "metric/metric.h"

/* The list, with labels, from the four files of MNIST in FOLDER/images/mnist, packed by gzip or
 * not. Fails with N2CE_EINVAL without a folder, and as n2_images_read. */
n2ce_status n2_anomaly_read(n2ce_ctx *ctx, const char *folder, n2_images **out);

/* numpy.random.RandomState(seed).permutation(n), for n below 2^32: Mersenne Twister, and for every
 * place from the last to the second a draw below it by rejection. */
void n2_legacy_permutation(uint32_t seed, size_t n, size_t *out);

typedef struct n2_anomaly_split {
    const n2_images *pictures;
    int digit;            /* held out */
    size_t *train, *test; /* numbers of pictures */
    size_t n_train, n_test;
    size_t n_normal;       /* the first of the test pictures are normal, the others odd */
    unsigned char *is_odd; /* [n_test] */
} n2_anomaly_split;

/* Memory of the arena. Fails with N2CE_EINVAL if no picture is odd or none normal; N2CE_ENOMEM. */
n2ce_status n2_anomaly_split_of(n2_arena *arena, const n2_images *pictures, int digit,
                                n2_anomaly_split *out);

/* Leaves n pictures to learn from, if there are more, and n / 4 to judge, normal and odd ones in
 * the same proportion: for a quick look. */
void n2_anomaly_split_thin(n2_anomaly_split *s, size_t n);

/* Pictures as rows of pixels in [-1, 1]; into memory that is there. */
void n2_anomaly_pixels(const n2_images *pictures, const size_t *numbers, size_t n, float *out);
n2ce_status n2_anomaly_rows(n2_arena *arena, const n2_images *pictures, const size_t *numbers,
                            size_t n, n2_feature_rows *out);

#endif
