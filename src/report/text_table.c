#include "text_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Four digits or so, and no more than three decimals. */
const char *n2_text_table_number(double x, char buffer[32]) {
    const double size = fabs(x);
    if (!isfinite(x)) return "";
    if (size >= 1e5)
        snprintf(buffer, 32, "%.2g", x);
    else
        snprintf(buffer, 32, "%.*f", size < 100 ? 3 : size < 1000 ? 2 : 0, x);
    return buffer;
}

enum { GAP = 3 }; /* blanks between columns; a mark stands in the first of them */

/* Length without the mark. */
static size_t body_length(const char *cell) {
    const size_t n = strlen(cell);
    return n > 0 && cell[n - 1] == '!' ? n - 1 : n;
}

static size_t column_width(const n2_text_table *table, size_t column) {
    size_t width = 0;
    for (size_t i = 0; i < table->n_rows; i++) {
        const size_t n = body_length(table->cells[i * table->n_columns + column]);
        width = n > width ? n : width;
    }
    return width;
}

/* Blanks wait until something follows them. */
static void add_cell(n2_text *out, const char *cell, size_t width, bool left, size_t *waiting) {
    const size_t body = body_length(cell);
    if (!*cell) {
        *waiting += width + GAP;
        return;
    }
    n2_text_pad(out, *waiting + (left ? 0 : width - body));
    n2_text_add(out, "%s", cell);
    *waiting = GAP - (strlen(cell) - body) + (left ? width - body : 0);
}

/* The first column and what is published too are aligned left, the others right. */
void n2_text_table_add(n2_text *out, const n2_text_table *table) {
    for (size_t i = 0; i < table->n_rows; i++) {
        size_t waiting = 2;
        for (size_t c = 0; c < table->n_columns; c++) {
            const bool left = c == 0 || strcmp(table->cells[c], "published too") == 0;
            add_cell(out, table->cells[i * table->n_columns + c], column_width(table, c), left,
                     &waiting);
        }
        n2_text_add(out, "\n");
    }
}

/* A paragraph in lines of at most 96 characters. */
void n2_text_wrapped(n2_text *out, const char *text) {
    enum { WIDTH = 96 };
    while (strlen(text) > WIDTH) {
        size_t n = WIDTH;
        while (n > 0 && text[n] != ' ') n--;
        n2_text_add(out, "%.*s\n", (int)n, text);
        text += n + 1;
    }
    n2_text_add(out, "%s\n", text);
}

/* ---- cells ---- */

n2_cells n2_cells_new(n2_arena *arena, size_t room) {
    n2_cells c = {.arena = arena, .room = room};
    c.cells = n2_arena_alloc(arena, room, sizeof *c.cells);
    c.failed = !c.cells;
    return c;
}

void n2_cells_put(n2_cells *c, const char *text) {
    const char *copy = c->failed || c->n == c->room ? NULL : n2_arena_strdup(c->arena, text);
    if (copy)
        c->cells[c->n++] = copy;
    else
        c->failed = true;
}

void n2_cells_put_all(n2_cells *c, const char *const *texts, size_t n) {
    for (size_t i = 0; i < n; i++) n2_cells_put(c, texts[i]);
}

n2ce_status n2_cells_table(const n2_cells *c, size_t columns, n2_text_table *out) {
    *out = (n2_text_table){NULL, 0, 0};
    if (c->failed) return N2CE_ENOMEM;
    if (c->n > columns) *out = (n2_text_table){c->cells, c->n / columns, columns};
    return N2CE_OK;
}
