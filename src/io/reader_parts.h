/* What a reader of tables is made of: it is opened in table_reader.c, and what it reads becomes
 * numbers in table_convert.c. */
#ifndef N2_READER_PARTS_H
#define N2_READER_PARTS_H

#include "base/arena.h"
#include "csv.h"
#include "file_set.h"
#include "npy.h"
#include "plain_lines.h"
#include "table.h"

/* What is read of a file: its header, and bytes [begin, stop); stop 0: all of it. */
typedef struct n2_cut {
    size_t head, begin, stop;
} n2_cut;

/* Whether a column holds texts is told by the first value of its kept rows that is not missing. */
typedef struct n2_found_text {
    bool told;
    char *first;      /* text of a column that was found to hold texts; NULL: it was not, */
    size_t line;      /* and where it is */
    char *gap;        /* how the first missing value before it is spelled; NULL: there is none */
    size_t gap_code;  /* its level, */
    bool gap_has_one; /* if there is one */
} n2_found_text;

struct n2_reader {
    n2ce_ctx *ctx;
    n2_arena arena; /* label, names, and what is kept of the columns */
    const char *label;
    n2_input input;
    n2_csv *csv; /* one of the two */
    n2_npy *npy;
    bool drop_missing, keep_missing;
    n2_levels *levels;
    size_t csv_part;

    n2_header header;
    bool has_header;
    bool is_piece; /* of its file */
    n2_cut cut;
    size_t header_ends; /* bytes of the file */
    char **file_names;
    size_t file_cols;
    bool *unnamed;  /* of the file's columns: the header has no name for it */
    bool takes_all; /* columns were not chosen */

    size_t *columns, cols; /* that are kept, by their numbers in the file */
    size_t first_cols;     /* of these, not from `then` */
    bool *categorical;     /* of those kept */
    size_t *level_columns; /* their numbers in `levels`, if categorical */
    bool any_categorical;
    n2_plain_lines plain; /* how lines of numbers are read; none: it has texts */
    bool find_texts;      /* it is not known yet of all columns whether they hold texts: */
    n2_found_text *found; /* of those kept, what their rows have told so far */

    const n2_csv_field *first; /* a row that was read to see that it is no header, or NULL */
    size_t seen, dropped;

    n2_file_set files;   /* of a pattern; none: there is this file alone */
    size_t file;         /* that is being read: the first is this one, */
    n2_reader *later;    /* and others have a reader of their own, */
    n2_table_options as; /* which is opened as this one was */
};

/* One file; and its rows alone, of n2_reader_next. */
n2ce_status n2_reader_open_file(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                                n2_reader **out);
n2ce_status n2_reader_next_here(n2_reader *r, double *x, size_t max_rows, size_t *rows);

/* Says where the context's last message belongs. */
n2ce_status n2_reader_fail_in(const n2_reader *r, n2ce_status status, const char *where);

/* Kept column k is categorical from now on. */
n2ce_status n2_reader_open_levels(n2_reader *r, size_t k);

/* When it is known which columns hold numbers: how lines of them are read. */
n2ce_status n2_reader_find_plain(n2_reader *r);

#endif
