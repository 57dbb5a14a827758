/* Samples: a CSV or NPY file, or a matrix in memory, as rows of doubles.
 *
 * Only the columns that are kept are looked at. Their values must be finite
 * numbers, or texts in a categorical column. A missing value (empty, NA, N/A,
 * NaN, null, None, ?, -, or a point, in any case) is refused, or its row is left
 * out. A categorical column of numbers (NPY, matrix) has their shortest decimals
 * as texts: 2.0 is "2".
 *
 * All functions fail with N2CE_EIO (a file cannot be read), N2CE_EDATA (its
 * contents), N2CE_EINVAL (options), N2CE_ENOMEM or N2CE_ECANCELED; *out is then
 * NULL. Messages name file, line or row, and column. */
#ifndef N2_TABLE_H
#define N2_TABLE_H

#include "base/text.h"
#include "header.h"

/* ---- levels -------------------------------------------------------------- */

/* The distinct texts of categorical columns, numbered in the order in which they
 * were first seen. Shared by all files of one analysis, so that "red" has the
 * same code everywhere. Columns are known by their names. Texts and names are
 * UTF-8. Errors go to the context that the levels were made with. */
typedef struct n2_levels n2_levels;

/* A column with more levels than this is refused: it is no category. */
#define N2_LEVELS_MAX 65536

n2ce_status n2_levels_new(n2ce_ctx *ctx, n2_levels **out);
void n2_levels_free(n2_levels *levels); /* NULL is fine */

/* From now on an unknown text, or column, is an error, N2CE_EDATA, that names it and the
 * known ones. */
void n2_levels_freeze(n2_levels *levels);
bool n2_levels_frozen(const n2_levels *levels);

/* A copy of them, in another context or the same, that is frozen; from NULL: of none. */
n2ce_status n2_levels_copy(n2ce_ctx *ctx, const n2_levels *from, n2_levels **out);

/* Columns that have levels, in the order in which they came; NULL beyond the last. */
size_t n2_levels_columns(const n2_levels *levels);
const char *n2_levels_column(const n2_levels *levels, size_t c);

/* Levels of a column, 0 if it has none; and the text of a code, NULL if there
 * is none. */
size_t n2_levels_count(const n2_levels *levels, const char *column);
const char *n2_levels_text(const n2_levels *levels, const char *column, size_t code);

/* The code of a text, which is added if it is new. */
n2ce_status n2_levels_add(n2_levels *levels, const char *column, const char *text, size_t *code);

/* The same in two steps, for many texts of one column: the number of a column, which is
 * added if it is new, and the code of n bytes of text. */
n2ce_status n2_levels_open(n2_levels *levels, const char *column, size_t *number);
n2ce_status n2_levels_code(n2_levels *levels, size_t number, const char *text, size_t n,
                           size_t *code);

/* The code of a text that is known already, else false. Several threads may ask at once. */
bool n2_levels_find(const n2_levels *levels, size_t number, const char *text, size_t n,
                    size_t *code);

/* ---- columns ------------------------------------------------------------- */

/* Zero-based columns of a text of names, numbers and ranges of numbers, separated
 * by commas: "0-9,12" or "temp,pressure". A name wins over a number or a range. A
 * name in double quotes may contain commas, and quotes doubled. The order is
 * kept; a column that comes twice is an error, N2CE_EINVAL, as is an unknown one
 * (the message suggests the nearest name). *out is freed with n2_free; an empty
 * text has no columns. `names` may be NULL if the columns have none. */
n2ce_status n2_columns_parse(n2ce_ctx *ctx, const char *text, char *const *names, size_t n_names,
                             size_t **out, size_t *n_out);

/* Adds a column to such a text, in quotes unless it is a number or is in quotes already. */
void n2_columns_add(n2_text *text, const char *column);

/* The other way round: a text of those of the n names for which `which` is true, NULL: of all. */
n2ce_status n2_columns_quote(n2ce_ctx *ctx, char *const *names, const bool *which, size_t n,
                             char **out);

/* Gives n columns other names, and their levels with them. names[] and its texts, and *levels
 * (NULL: none), are replaced. Fails with N2CE_EINVAL (a name is missing, empty, no UTF-8 or comes
 * twice) or N2CE_ENOMEM, and changes nothing then. */
n2ce_status n2_columns_rename(n2ce_ctx *ctx, const char *const *to, size_t n, char **names,
                              n2_levels **levels);

/* ---- tables -------------------------------------------------------------- */

enum { N2_TABLE_ROWS = 131072 };

typedef struct n2_table_options {
    n2_header header;    /* of a CSV file; where it is told by the first line, and that may be
                          * either, what was assumed is logged */
    char *const *names;  /* of a matrix's columns, which outlive the reader; NULL: numbers */
    const char *columns; /* which to keep, and their order; NULL or "": all */
    const char *then;    /* more of them, kept after those; NULL or "": none */
    const char *columns_by, *then_by; /* where there are both: the options that name them, for
                                       * messages; NULL: --x and --y */
    const char *categorical;          /* which of them are categories; NULL or "": none */
    bool find_texts;   /* so are those of `columns` that hold texts, and not a number: of the
                        * rows that are kept the first that has a value there tells, and the
                        * others must be alike */
    n2_levels *levels; /* needed for categorical columns */
    bool drop_missing; /* leave out rows with missing values, and count them */
    bool keep_missing; /* a missing number is NaN, a missing category a level of its own; and
                        * where levels are frozen an unknown one is NaN */
    size_t max_rows; /* keep a uniform random subset of so many rows, in the file's order; 0: all */
    size_t max_bytes; /* the same as a limit on memory, but never fewer than N2_TABLE_ROWS rows */
    uint64_t seed;    /* decides which; the same seed keeps the same rows */
    size_t csv_part;  /* n2_csv_open; nothing depends on it but time */
    size_t from, to;  /* of a reader: n2_reader_open_piece; to 0: the whole file */
} n2_table_options;

typedef struct n2_table {
    n2ce_ctx *ctx;
    double *x;         /* rows x cols, row-major; a categorical column holds level codes 0, 1, 2 */
    size_t rows, cols; /* at least 1 */
    size_t first_cols; /* how many of the columns are not from `then` */
    size_t seen, dropped; /* rows in the file; rows left out for missing values */
    char **names;      /* of the columns: from the header, else the zero-based number in the file */
    bool *categorical; /* of the columns */
    size_t *origin;    /* of a subset: the number of each row, as it was read, among all that were
                        * not left out; NULL: there are no others */
} n2_table;

/* Reads a file, a pipe or, if the path is "-", standard input; or the files of a pattern
 * (file_set.h), one behind the other, which have the same columns. Whether it is NPY or CSV is told
 * by its first bytes. `o` may be NULL: everything. */
n2ce_status n2_table_read(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                          n2_table **out);

/* The same from memory; columns are known by their numbers, unless `names` are given. Messages call
 * it `label`. */
n2ce_status n2_table_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label,
                               const n2_table_options *o, n2_table **out);

/* Two matrices with as many rows, side by side. Labels: of the first, the second, and both. */
n2ce_status n2_table_of_matrices(n2ce_ctx *ctx, const n2ce_matrix m[2], const char *const labels[3],
                                 const n2_table_options *o, n2_table **out);

void n2_table_free(n2_table *t); /* NULL is fine */

/* The least and the largest value of every column; *out is freed with n2_free, also after a
 * failure. */
typedef struct n2_extent {
    double min, max;
} n2_extent;
n2ce_status n2_table_ranges(const n2_table *t, n2_extent **out);

/* Puts the rows into an order that depends on the seed, the stream and their number only. */
n2ce_status n2_table_shuffle(n2_table *t, uint64_t seed, uint32_t stream);

/* Keeps the first rows; the *n others are in *rest, which is freed with n2_free. */
n2ce_status n2_table_cut(n2_table *t, size_t rows, double **rest, size_t *n);

/* ---- streams ------------------------------------------------------------- */

/* Rows one block after the other, with memory that does not grow with the file
 * (a pipe with an NPY array in Fortran order excepted). max_rows is ignored. */
typedef struct n2_reader n2_reader;

n2ce_status n2_reader_open(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                           n2_reader **out);

/* The same for the n bytes of such a file, or for a matrix, in memory that must outlive *out. */
n2ce_status n2_reader_parse(n2ce_ctx *ctx, const char *label, const void *bytes, size_t n,
                            const n2_table_options *o, n2_reader **out);
n2ce_status n2_reader_of_matrix(n2ce_ctx *ctx, const n2ce_matrix *m, const char *label,
                                const n2_table_options *o, n2_reader **out);

void n2_reader_close(n2_reader *r); /* NULL is fine */

size_t n2_reader_cols(const n2_reader *r);
size_t n2_reader_first_cols(const n2_reader *r);          /* those not from `then` */
const char *n2_reader_name(const n2_reader *r, size_t c); /* NULL beyond the last */
bool n2_reader_categorical(const n2_reader *r, size_t c);

/* With find_texts a column may begin with missing values, which are NaN since nobody knows yet that
 * it holds texts. If it does, this is their level: that of the first of them. */
bool n2_reader_gap_level(const n2_reader *r, size_t c, size_t *code);
n2_header n2_reader_header(const n2_reader *r); /* whether its file has one: yes or no */
n2ce_ctx *n2_reader_ctx(const n2_reader *r);

/* N2CE_EDATA, and what is not alike, unless the columns are the same. */
n2ce_status n2_reader_check_alike(const n2_reader *first, const n2_reader *other);

/* Of a file that can be cut into pieces whose rows are numbers alone; 0: it is none. Of a pattern,
 * the first file's. */
size_t n2_reader_bytes(const n2_reader *r);

/* Pieces of a file, one after the other, that can be read apart from one another: rows that
 * begin in bytes [from, to). *can is false for a file that cannot be cut: a pipe, standard
 * input. */
n2ce_status n2_reader_can_cut(n2ce_ctx *ctx, const char *path, size_t *bytes, bool *can);

/* *out is NULL if no row begins there. Lines are counted from the piece's first, which is said. A
 * line that ends inside quotes is an error: such a file cannot be cut. So are rows with another
 * number of columns than the file's first. A piece whose rows were all
 * dropped is none. */
n2ce_status n2_reader_open_piece(n2ce_ctx *ctx, const char *path, const n2_table_options *o,
                                 size_t from, size_t to, n2_reader **out);

/* The next rows, at most max_rows of them, into x; *rows is 0 only at the end. A file without
 * rows, or all of whose rows were dropped, is an error. After an error only close. */
n2ce_status n2_reader_next(n2_reader *r, double *x, size_t max_rows, size_t *rows);

/* Rows read so far, and those of them that were left out for missing values. */
size_t n2_reader_seen(const n2_reader *r);
size_t n2_reader_dropped(const n2_reader *r);

#endif
