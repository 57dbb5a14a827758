/* Which columns of a CSV file hold categories: what nobody has to be told. */
#ifndef N2_TEXT_COLUMNS_H
#define N2_TEXT_COLUMNS_H

#include "base/text.h"

/* Appends to `out`, as a list that n2_table_options.categorical understands, the columns of the
 * CSV file that `given` names and those that hold texts and not a single number; of these, those
 * that are among `columns` ("": all). A column with both is left to the reader, which will say
 * where its first text is. A file that is no CSV, or cannot be read twice (a pipe), has none but
 * the given ones. Fails as n2_columns_parse does, or with N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_text_columns(n2ce_ctx *ctx, const char *path, const char *columns, const char *given,
                            n2_text *out);

#endif
