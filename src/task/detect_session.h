/* What n2ce detect does: normal rows in, rows judged one block after the other, flagged rows out.
 */
#ifndef N2_DETECT_SESSION_H
#define N2_DETECT_SESSION_H

#include "detect/blame.h"
#include "device_options.h"
#include "io/file.h"
#include "report/histogram.h"
#include "task.h"
#include "vocabulary.h"

enum { N2_WORST_ROWS = 100 };

/* One of the worst rows. */
typedef struct n2_odd_row {
    uint64_t row; /* zero-based */
    double score, p;
    double *values; /* of its columns */
    n2_blame blame;
} n2_odd_row;

/* How the p-values of all rows are distributed: p is rank / ranks. */
typedef struct n2_rank_counts {
    size_t ranks;
    uint64_t *count; /* ranks + 1 */
    size_t flagged;  /* rows of this rank or a lower one are flagged; 0: none */
} n2_rank_counts;

typedef struct n2_detect_session {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2_device_choice choice;
    n2_opening opening;
    n2_detector *detector;
    size_t normal_seen; /* rows of the file of normal rows */
    const char *rows;   /* path of the rows to judge, or NULL */
    bool own;           /* there are no normal rows: the rows are judged by one another */
    n2_tail bulk;       /* p-values where the rows are judged by one another */
    uint64_t judged, n_flagged;
    n2_rank_counts ranks;
    n2_odd_row *worst; /* n_worst of them, the worst first */
    size_t n_worst, most_worst;
    n2_bins bins;
    n2_histogram histogram[2]; /* of scores: normal rows held out, rows that were judged */
    n2_new_file spool;         /* score and rank of each row, without a name, until all is known */
    bool spooling;
    int spooled; /* a descriptor to read it by */
} n2_detect_session;

/* What options say of learning, and of reading normal rows. */
n2_detect_options n2_detect_options_of(const n2ce_options *options, n2_device_choice *choice);
n2_table_options n2_detect_table_options(const n2ce_options *o, n2_levels *levels);

void n2_detect_close(n2_detect_session *s);

/* Learns from --normal, or from the rows themselves, or loads --model. */
n2ce_status n2_detect_learn(n2_detect_session *s);

/* Judges the rows; writes --output, if it is asked for. */
n2ce_status n2_detect_judge(n2_detect_session *s);

/* Text, JSON and page of the answer. */
n2ce_status n2_detect_say(const n2_detect_session *s, n2ce_answer *answer);
n2ce_status n2_detect_page(const n2_detect_session *s, n2ce_answer *answer);

/* What n2ce info says of a detector's file. */
n2ce_status n2_info_of_detector(n2ce_ctx *ctx, const char *path, n2ce_answer *answer);

/* A value of a column as it was read: a number, a level, or "missing". */
void n2_detect_value(const n2_detector *d, size_t column, double x, n2_text *out);

#endif
