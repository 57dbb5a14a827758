/* A detector as a file: its normal rows, their scores, and the networks. What follows from these,
 * scaling, neighbours and Gaussians, is worked out again when it is loaded. */
#ifndef N2_DETECTOR_FILE_H
#define N2_DETECTOR_FILE_H

#include "detector.h"

/* Written whole or not at all. Fails with N2CE_EEXIST unless `overwrite`, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_detector_save(const n2_detector *d, const char *path, bool overwrite);

/* choice: where its networks run; NULL: the processor. Fails with N2CE_EDATA for a file that is
 * damaged or not ours. */
n2ce_status n2_detector_load(n2ce_ctx *ctx, const char *path, n2_device_choice *choice,
                             n2_detector **out);

/* Whether a file says it is a detector. Not: it is something else, or cannot be read, which is for
 * whoever reads it to complain about. */
bool n2_is_detector_file(n2ce_ctx *ctx, const char *path);

#endif
