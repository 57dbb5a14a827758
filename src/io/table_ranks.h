/* A file that several ranks read together, each some pieces of it, and none of them all. */
#ifndef N2_TABLE_RANKS_H
#define N2_TABLE_RANKS_H

#include "table.h"

/* What becomes of rows, by their number among those that were not left out. All ranks want the
 * same ones, whatever came before, and get them in their order. */
typedef struct n2_row_taker {
    void *user;
    /* Which of rows first .. first + n - 1, into wanted; how many. Several threads ask at once. */
    size_t (*choose)(void *user, uint64_t first, size_t n, uint64_t *wanted);
    n2ce_status (*take)(void *user, const double *row, size_t origin);
} n2_row_taker;

/* Of the file that `whole`, from which nothing was read, has open. *done is false, on all ranks, if
 * that is not possible, or if something is wrong with the file: who reads it alone will say what;
 * some rows may have been taken then. *seen and *dropped: rows of the file, and those left out. */
n2ce_status n2_table_read_together(n2_reader *whole, const char *path, const n2_table_options *o,
                                   const n2_row_taker *taker, size_t *seen, size_t *dropped,
                                   bool *done);

#endif
