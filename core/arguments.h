/*
 * arguments.h: what the command line says.
 */
#ifndef WEIR_ARGUMENTS_H
#define WEIR_ARGUMENTS_H

#include "run.h"

/* Which options a command has. */
enum weir_command_kind { WEIR_ON_KEYS, WEIR_ON_PLUGINS, WEIR_ON_PIPELINE, WEIR_ON_RUN };

struct weir_arguments {
	char *text;         /* -e */
	char **variables;   /* --set */
	char **plugin_path; /* --plugin-path */
	char *duration, *stats;
	gboolean strict, quiet;
	struct weir_run_options run;
	char *source;   /* what messages call the text */
	char *pipeline; /* the text */
	char *name;     /* of a plugin, or NULL: all; of the file for a key */
	char *help;     /* --help: what to print instead of all else */
};

/* Reads the words behind `weir COMMAND` and, where it has a pipeline, its text; false with an error
 * for the user.  The arguments are zero before, and to be cleared in either case. */
bool weir_arguments_read(struct weir_arguments *arguments, const char *command,
			 enum weir_command_kind kind, int argc, char **argv, GError **error);
void weir_arguments_clear(struct weir_arguments *arguments);

#endif
