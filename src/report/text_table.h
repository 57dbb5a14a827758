/* Tables as text: cells, and how they look in a terminal. */
#ifndef N2_TEXT_TABLE_H
#define N2_TEXT_TABLE_H

#include "base/arena.h"
#include "base/text.h"

/* A table as rows of cells, the header first; a cell that begins with "*" is the best of its
 * row. */
typedef struct n2_text_table {
    const char **cells;
    size_t n_rows, n_columns;
} n2_text_table;

/* Cells of a table while they are added, row by row; memory of the arena. Errors are sticky: a cell
 * for which there is no room, or no memory, is left out. */
typedef struct n2_cells {
    n2_arena *arena;
    const char **cells;
    size_t n, room;
    bool failed;
} n2_cells;
n2_cells n2_cells_new(n2_arena *arena, size_t room);
void n2_cells_put(n2_cells *c, const char *text); /* a copy */
void n2_cells_put_all(n2_cells *c, const char *const *texts, size_t n);

/* The table, of whole rows; without rows if there is nothing below the header. N2CE_ENOMEM if a
 * cell was left out. */
n2ce_status n2_cells_table(const n2_cells *c, size_t columns, n2_text_table *out);

/* Columns side by side: the first, and one that is called "published too", aligned left, the
 * others right. A mark "!" at the end of a cell does not move it. */
void n2_text_table_add(n2_text *out, const n2_text_table *table);

/* Four digits or so, and no more than three decimals; "" for what is not finite. */
const char *n2_text_table_number(double x, char buffer[32]);

/* A paragraph in lines of at most 96 characters. */
void n2_text_wrapped(n2_text *out, const char *text);

#endif
