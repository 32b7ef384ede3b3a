/*
 * cells.h: text in columns, each as wide as its widest cell.
 */
#ifndef WEIR_CELLS_H
#define WEIR_CELLS_H

#include <glib.h>

struct weir_cells;

/* align: one character a column, '<' or '>'; copied. */
struct weir_cells *weir_cells_new(const char *align);
void weir_cells_free(struct weir_cells *cells); /* takes NULL */

/* The next cell, row by row; the text is taken, NULL is an empty one. */
void weir_cells_take(struct weir_cells *cells, char *text);
/* The same with a copy. */
void weir_cells_add(struct weir_cells *cells, const char *text);

/* The rows, each with `indent` before it and no blanks at its end; g_free(). */
char *weir_cells_text(const struct weir_cells *cells, const char *indent);

#endif
