/* The self-contained HTML report: one file, no scripts, no external resources,
 * light or dark as the reader's system asks, fit for print and phone. */
#ifndef N2_PAGE_H
#define N2_PAGE_H

#include "plot.h"

void n2_page_begin(n2_text *out, const char *title, const char *subtitle);
void n2_page_end(n2_text *out, const char *footer);

void n2_page_section(n2_text *out, const char *heading);

/* Plain text, escaped. */
void n2_page_paragraph(n2_text *out, const char *format, ...) N2_PRINTF(2, 3);

/* A plot with a caption. Figures that follow one another share a row where the
 * window is wide enough. */
void n2_page_figure(n2_text *out, const n2_plot *plot, const char *caption);

/* A table of n_rows x n_columns cells, row by row; the first row is the header.
 * Cells are escaped; a cell that starts with "*" is emphasised (without the
 * star). The first column is aligned left, the others right. */
void n2_page_table(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                   const char *caption);

/* A block of text to paste, such as the command that made the report. */
void n2_page_code(n2_text *out, const char *code);

#endif
