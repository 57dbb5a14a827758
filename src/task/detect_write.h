/* The rows that were judged, once more, with what was found. */
#ifndef N2_DETECT_WRITE_H
#define N2_DETECT_WRITE_H

#include "detect_session.h"

/* What is kept of a row until flags are known. */
typedef struct n2_spooled {
    double score;
    uint64_t rank;
} n2_spooled;

/* Before anything is learnt: rows that are read twice come from files and, if there are several,
 * those have the same columns. Fails with N2CE_EINVAL, N2CE_EDATA, or as reading does. */
n2ce_status n2_detect_check_rows(n2_detect_session *s);

/* A file without a name in the folder of `path`, for n2_spooled: memory does not grow with the
 * rows. Ending it twice is fine. */
n2ce_status n2_spool_begin(n2_detect_session *s, const char *path);
void n2_spool_end(n2_detect_session *s);

/* Writes the columns of the file that was judged, and then score, p_value and flag, as CSV, whole
 * or not at all. Fails with N2CE_EIO, N2CE_EDATA (the file is another one now), N2CE_ENOMEM. */
n2ce_status n2_detect_write(n2_detect_session *s, const char *path);

#endif
