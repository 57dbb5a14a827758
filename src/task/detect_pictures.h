/* detect, of pictures: which are not like the normal ones (lebm/oddity.h)? */
#ifndef N2_DETECT_PICTURES_H
#define N2_DETECT_PICTURES_H

#include "task.h"

/* Whether --normal names pictures, a folder or a file of a format of image/image.h, or --model what
 * was learnt from some; without either, the rows. An NPY file is one of pictures if it holds
 * unsigned bytes. */
bool n2_detects_pictures(n2ce_ctx *ctx, const n2ce_options *o);

/* Learns from --normal or loads --model, judges the pictures of ROWS, writes --output, and answers.
 * Fails with N2CE_EINVAL for options that are for rows only, N2CE_EDATA for pictures that are not
 * in order, or of another size, and as n2_oddity_learn. */
n2ce_status n2_detect_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer);

/* Whether a file is what --save wrote of pictures; false also for what cannot be read. What it is,
 * for info. */
bool n2_is_detector_of_pictures(n2ce_ctx *ctx, const char *path);
n2ce_status n2_info_of_odd_pictures(n2ce_ctx *ctx, const char *path, n2ce_answer *answer);

#endif
