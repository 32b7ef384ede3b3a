/* cells.c: text in columns. */
#include "cells.h"

#include <string.h>

struct weir_cells {
	char *align;
	unsigned n_columns;
	GPtrArray *texts; /* row after row */
};

struct weir_cells *weir_cells_new(const char *align)
{
	struct weir_cells *cells = g_new0(struct weir_cells, 1);

	cells->align = g_strdup(align);
	cells->n_columns = (unsigned)strlen(align);
	cells->texts = g_ptr_array_new_with_free_func(g_free);
	return cells;
}

void weir_cells_free(struct weir_cells *cells)
{
	if (!cells)
		return;
	g_ptr_array_unref(cells->texts);
	g_free(cells->align);
	g_free(cells);
}

void weir_cells_take(struct weir_cells *cells, char *text)
{
	g_ptr_array_add(cells->texts, text ? text : g_strdup(""));
}

void weir_cells_add(struct weir_cells *cells, const char *text)
{
	weir_cells_take(cells, g_strdup(text));
}

static int width_of(const char *text)
{
	return (int)g_utf8_strlen(text, -1);
}

static int column_width(const struct weir_cells *cells, unsigned column)
{
	int width = 0;

	for (unsigned i = column; i < cells->texts->len; i += cells->n_columns)
		width = MAX(width, width_of(cells->texts->pdata[i]));
	return width;
}

static void add_blanks(GString *to, int n)
{
	for (int i = 0; i < n; i++)
		g_string_append_c(to, ' ');
}

static void end_row(GString *to)
{
	while (to->len && to->str[to->len - 1] == ' ')
		g_string_truncate(to, to->len - 1);
	g_string_append_c(to, '\n');
}

char *weir_cells_text(const struct weir_cells *cells, const char *indent)
{
	g_autofree int *widths = g_new(int, cells->n_columns);
	GString *to = g_string_new(NULL);

	for (unsigned c = 0; c < cells->n_columns; c++)
		widths[c] = column_width(cells, c);
	for (unsigned i = 0; i < cells->texts->len; i++) {
		const char *text = cells->texts->pdata[i];
		unsigned column = i % cells->n_columns;
		int blanks = widths[column] - width_of(text);

		g_string_append(to, column ? "  " : indent);
		add_blanks(to, cells->align[column] == '>' ? blanks : 0);
		g_string_append(to, text);
		add_blanks(to, cells->align[column] == '<' ? blanks : 0);
		if (column + 1 == cells->n_columns)
			end_row(to);
	}
	return g_string_free(to, FALSE);
}
