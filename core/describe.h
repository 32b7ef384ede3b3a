/*
 * describe.h: what `weir plugins` and `weir plugins NAME` say, made from the plugins' tables.
 *
 * Both look at plugins in child processes: for programs with one thread.
 */
#ifndef WEIR_DESCRIBE_H
#define WEIR_DESCRIBE_H

#include "loader.h"

/* One plugin: options, outputs, counters, example; NULL with an error of WEIR_LOADER_ERROR: it was
 * not found or is refused. g_free(). */
char *weir_describe_plugin(struct weir_loader *loader, const char *name, GError **error);
/* A line for each plugin of the path, by kind, and for each that is refused; g_free(). */
char *weir_describe_all(struct weir_loader *loader);

#endif
