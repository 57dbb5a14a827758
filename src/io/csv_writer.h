/* Many numbers as CSV. */
#ifndef N2_CSV_WRITER_H
#define N2_CSV_WRITER_H

#include "base/ctx.h"

/* Writes a header, which is a line or more with their newlines, and x, of rows by cols,
 * as n2_format_number has its numbers: all of the file or nothing (n2_file_write).
 * They are formatted on all threads, and only some of the text is in memory at a
 * time. Fails with N2CE_EIO, N2CE_ENOMEM, and N2CE_EEXIST if it is there and may not be replaced.
 */
n2ce_status n2_csv_write(n2ce_ctx *ctx, const char *path, const char *header, const double *x,
                         size_t rows, size_t cols, bool replace);

#endif
