/* The options --checkpoint and --resume of verbs that train for long, and what a run may do with
 * the file that they name. */
#ifndef N2_CHECKPOINT_OPTIONS_H
#define N2_CHECKPOINT_OPTIONS_H

#include "task.h"
#include "train/device_choice.h"

#include <limits.h>

/* clang-format off */
#define N2_CHECKPOINT_OPTIONS                                                                    \
    {"checkpoint", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",                                \
     "keep the state of training here; default: beside the output, until it is done"},           \
    {"resume", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,                                   \
     "continue from the checkpoint, if there is one"}
/* clang-format on */

typedef struct n2_checkpoint_use {
    char path[PATH_MAX]; /* "": nothing is kept */
    bool resume;         /* go on from it, if it is there */
    bool implied;        /* it lies beside the output, and goes when the work is done */
} n2_checkpoint_use;

/* The file of --checkpoint, or OUTPUT.checkpoint; output may be NULL. A file that is there is some
 * run's work: unless --resume goes on from it, it is replaced only with --force, and what is no
 * checkpoint never. Fails with N2CE_EEXIST then, with N2CE_EINVAL for --resume without a file's
 * name. */
n2ce_status n2_checkpoint_of_options(n2ce_ctx *ctx, const n2ce_options *o, const char *output,
                                     n2_checkpoint_use *out);

/* What goes on goes on where it began: nothing is measured then. */
n2ce_status n2_checkpoint_choose_device(n2ce_ctx *ctx, const n2_checkpoint_use *use,
                                        n2_device_choice *choice);

/* What a run that was stopped answers: where its state is. Returns N2CE_ECANCELED. */
n2ce_status n2_checkpoint_stopped(n2ce_ctx *ctx, const n2_checkpoint_use *use, n2ce_answer *answer);

/* The work is done and written. */
void n2_checkpoint_used_up(n2ce_ctx *ctx, const n2_checkpoint_use *use);

#endif
