/*
 * describe.h: what `weir plugins` says, made from the plugins' tables.
 */
#ifndef WEIR_DESCRIBE_H
#define WEIR_DESCRIBE_H

#include "loader.h"

/* One plugin: options, outputs, counters, example; NULL with an error: it was not found or is
 * refused. g_free(). */
char *weir_describe_plugin(struct weir_loader *loader, const char *name, GError **error);
/* A line for each plugin of the path, each inspected in a child process; g_free(). */
char *weir_describe_all(struct weir_loader *loader);

#endif
