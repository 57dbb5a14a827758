/* Log ratios of rows that come block by block, on the device that is chosen for them. */
#ifndef N2_SCORE_ROWS_H
#define N2_SCORE_ROWS_H

#include "model_file.h"
#include "train/device_choice.h"

/* Takes n log ratios, which it may change, in the order of the rows. */
typedef n2ce_status n2_scores_fn(void *user, double *log_ratios, size_t n);

/* Scores all rows of a reader that was opened by n2_model_open_rows. A choice that is open is
 * settled by measuring, once there is enough to do; a device that nobody insists on may fail. Fails
 * as the reader, scoring and `take` do. */
n2ce_status n2_model_score_rows(n2ce_model *m, n2_reader *r, n2_device_choice *choice,
                                n2_scores_fn *take, void *user);

#endif
