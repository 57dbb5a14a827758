/* Answers of earlier studies, whose runs a study takes over. */
#ifndef N2_KEPT_ANSWERS_H
#define N2_KEPT_ANSWERS_H

#include "io/json.h"

/* Reads all of one answer. Strings of it do not outlive the call. */
typedef n2ce_status n2_answer_reader(n2_json *json, void *user);

/* Reads JSON of answers one after the other: paths of files, or of folders with the file `name` or
 * what was kept of it (study_runner.h) in them, separated by commas. Fails with N2CE_EINVAL for a
 * list that is none, N2CE_EIO, N2CE_ENOMEM, and as `read` does. */
n2ce_status n2_answers_read(n2ce_ctx *ctx, const char *paths, const char *name,
                            n2_answer_reader *read, void *user);

#endif
