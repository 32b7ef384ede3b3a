/*
 * inspect.h: looks at a plugin in a child process, so that one that crashes when it is loaded costs
 * a line, not the program.
 */
#ifndef WEIR_INSPECT_H
#define WEIR_INSPECT_H

#include "loader.h"

/* Runs in the child; what it returns, from g_malloc(), is handed to the parent. */
typedef char *(*weir_inspect_describe)(const struct weir_plugin *plugin, const char *file);

/* What describe() says of that plugin; NULL with an error of WEIR_LOADER_ERROR if it was not found,
 * was refused, crashed or did not come back.  Forks: for programs with one thread. */
char *weir_inspect(struct weir_loader *loader, const char *name, weir_inspect_describe describe,
		   GError **error);

#endif
