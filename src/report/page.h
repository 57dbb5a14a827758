/* The self-contained HTML report: one file, no external resources, no script but that of a table
 * that can be sorted, light or dark as the reader's system asks, fit for print and phone. */
#ifndef N2_PAGE_H
#define N2_PAGE_H

#include "bars.h"
#include "parallel.h"
#include "plot.h"

void n2_page_begin(n2_text *out, const char *title, const char *subtitle);
void n2_page_end(n2_text *out, const char *footer);

void n2_page_section(n2_text *out, const char *heading);

/* Plain text, escaped. */
void n2_page_paragraph(n2_text *out, const char *format, ...) N2_PRINTF(2, 3);

/* What the reader came for: a number in large type, between what it is and what to know with it,
 * such as its interval. Those that follow one another stand side by side. */
typedef struct n2_page_number {
    const char *what, *value, *unit, *note; /* unit, note: may be NULL */
} n2_page_number;
void n2_page_numbers(n2_text *out, const n2_page_number *numbers, size_t n);

/* A judgement in a word or a sentence, good or bad. */
void n2_page_verdict(n2_text *out, bool good, const char *text);

/* Names and what they are, in two columns; begin, any number of facts, end. */
void n2_page_facts_begin(n2_text *out);
void n2_page_fact(n2_text *out, const char *name, const char *format, ...) N2_PRINTF(3, 4);
void n2_page_facts_end(n2_text *out);

/* A plot with a caption. Figures that follow one another share a row where the
 * window is wide enough. */
void n2_page_figure(n2_text *out, const n2_plot *plot, const char *caption);

void n2_page_parallel(n2_text *out, const n2_parallel *p, const char *caption);

void n2_page_bars(n2_text *out, const n2_bars *bars, const char *caption);

/* A picture, the n bytes of a PNG, inside of the page; `alt` says what it shows to who cannot see
 * it. */
void n2_page_picture(n2_text *out, const void *png, size_t n, const char *alt, const char *caption);

/* A table of n_rows x n_columns cells, row by row; the first row is the header.
 * Cells are escaped; a cell that starts with "*" is emphasised (without the
 * star). The first column is aligned left, the others right. */
void n2_page_table(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                   const char *caption);

/* The same, in a box that scrolls; a click on a head sorts by its column. */
void n2_page_sortable(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                      const char *caption);

/* A block of text to paste, such as the command that made the report. */
void n2_page_code(n2_text *out, const char *code);

#endif
