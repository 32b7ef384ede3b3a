/* arguments.c: the command line, read by GLib's option parser. */
#include "arguments.h"

#include <stdio.h>
#include <string.h>

/* ---- Options ---- */

static void add_pipeline_options(GOptionContext *options, struct weir_arguments *arguments)
{
	/* Texts are said to be names of files, since GLib takes these as they are: others it wants
	 * in the encoding of the locale. */
	const GOptionEntry entries[] = {
		{"execute", 'e', 0, G_OPTION_ARG_FILENAME, &arguments->text, "the pipeline itself",
		 "TEXT"},
		{"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &arguments->variables,
		 "fill in ${NAME}; without a value, from the environment", "NAME[=VALUE]"},
		{0},
	};

	g_option_context_add_main_entries(options, entries, NULL);
}

static void add_run_options(GOptionContext *options, struct weir_arguments *arguments)
{
	struct weir_run_options *run = &arguments->run;
	const GOptionEntry entries[] = {
		{"duration", 0, 0, G_OPTION_ARG_STRING, &arguments->duration,
		 "stop after that time, such as 10m", "TIME"},
		{"stats", 0, 0, G_OPTION_ARG_STRING, &arguments->stats,
		 "show rates and losses that often", "TIME"},
		{"report", 0, 0, G_OPTION_ARG_FILENAME, &run->report, "write the report as JSON",
		 "FILE"},
		{"ledger", 0, 0, G_OPTION_ARG_FILENAME, &run->ledger,
		 "append the ledger while it runs", "FILE"},
		{"metrics", 0, 0, G_OPTION_ARG_FILENAME, &run->metrics,
		 "write metrics for Prometheus", "FILE"},
		{"user", 0, 0, G_OPTION_ARG_FILENAME, &run->user,
		 "become that user once all is open", "NAME"},
		{"strict", 0, 0, G_OPTION_ARG_NONE, &arguments->strict,
		 "exit status 3 if any packet was lost", NULL},
		{"quiet", 0, 0, G_OPTION_ARG_NONE, &arguments->quiet, "say only what is wrong",
		 NULL},
		{0},
	};

	g_option_context_add_main_entries(options, entries, NULL);
}

static void add_common_options(GOptionContext *options, struct weir_arguments *arguments,
			       gboolean *help)
{
	const GOptionEntry entries[] = {
		{"plugin-path", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &arguments->plugin_path,
		 "look for plugins there first", "DIR"},
		{"help", 'h', 0, G_OPTION_ARG_NONE, help, "say this", NULL},
		{0},
	};

	g_option_context_add_main_entries(options, entries, NULL);
}

/* ---- Values ---- */

static bool refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool refuse(GError **error, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	*error = g_error_new_valist(G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, values);
	va_end(values);
	return false;
}

static bool read_time(const char *option, const char *text, int64_t *ret_ns, GError **error)
{
	if (!text || (weir_parse_time(text, ret_ns) && *ret_ns > 0))
		return true;
	return refuse(error, "--%s takes a time such as 10s or 5m, not '%s'", option, text);
}

/* A folder of the environment may be absent, as in PATH; one that is given here is meant. */
static bool check_plugin_path(char *const *folders, GError **error)
{
	for (; folders && *folders; folders++) {
		if (!g_file_test(*folders, G_FILE_TEST_IS_DIR))
			return refuse(
				error, "--plugin-path %s: there is no such folder%s", *folders,
				strchr(*folders, ':') ? "; several are given one by one" : "");
	}
	return true;
}

/* The views of a run would replace each other. */
static bool check_views(const struct weir_run_options *run, GError **error)
{
	const char *const names[] = {"report", "ledger", "metrics"};
	const char *const paths[] = {run->report, run->ledger, run->metrics};

	for (unsigned i = 0; i < G_N_ELEMENTS(paths); i++) {
		if (g_strcmp0(paths[i], "-") == 0)
			return refuse(error,
				      "--%s -: standard output is for sinks; /dev/stderr would do",
				      names[i]);
		for (unsigned j = 0; j < i; j++)
			if (g_strcmp0(paths[i], paths[j]) == 0 && paths[i] &&
			    !g_str_has_prefix(paths[i], "/dev/"))
				return refuse(error, "--%s and --%s have the same file %s",
					      names[j], names[i], paths[i]);
	}
	return true;
}

static bool take_values(struct weir_arguments *arguments, GError **error)
{
	struct weir_run_options *run = &arguments->run;

	run->strict = arguments->strict;
	run->quiet = arguments->quiet;
	return read_time("duration", arguments->duration, &run->duration_ns, error) &&
	       read_time("stats", arguments->stats, &run->stats_ns, error) &&
	       check_plugin_path(arguments->plugin_path, error) && check_views(run, error);
}

/* ---- The pipeline ---- */

/* A text ends at its first NUL byte, of which captures are full. */
static bool check_is_text(const char *path, const char *text, size_t len, GError **error)
{
	if (!memchr(text, '\0', len))
		return true;
	return refuse(error,
		      "%s is no text; if it is a capture file, it is read by -e 'pcap-replay %s -> "
		      "…'",
		      path, path);
}

static bool read_stdin(char **ret_text, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);
	char buffer[4096];
	size_t n;

	while ((n = fread(buffer, 1, sizeof(buffer), stdin)) > 0)
		g_string_append_len(text, buffer, (gssize)n);
	if (ferror(stdin))
		return refuse(error, "cannot read standard input");
	if (!check_is_text("-", text->str, text->len, error))
		return false;
	*ret_text = g_string_free(g_steal_pointer(&text), FALSE);
	return true;
}

static bool read_file(const char *path, char **ret_text, GError **error)
{
	g_autoptr(GError) why = NULL;
	const char *colon;
	gsize len;

	if (g_file_get_contents(path, ret_text, &len, &why))
		return check_is_text(path, *ret_text, len, error);
	/* GLib says more than the reason, in quotes of its own. */
	colon = strrchr(why->message, ':');
	return refuse(error, "cannot read %s:%s%s", path, colon ? colon + 1 : " failed",
		      strpbrk(path, " >") ? "; a text is given by -e" : "");
}

/* The text of -e, of FILE, or of standard input. */
static bool read_pipeline(struct weir_arguments *arguments, int argc, char **argv, GError **error)
{
	if (arguments->text && argc > 1)
		return refuse(error, "there is a pipeline already, by -e: '%s' is one too many",
			      argv[1]);
	if (argc > 2)
		return refuse(error,
			      "'%s' is one word too many: a text of several is put in "
			      "quotes, -e 'TEXT'",
			      argv[2]);
	if (!arguments->text && argc < 2)
		return refuse(error, "a pipeline is wanted: FILE, - or -e TEXT");
	arguments->source = g_strdup(arguments->text ? "-e" : argv[1]);
	if (arguments->text) {
		arguments->pipeline = g_strdup(arguments->text);
		return true;
	}
	if (strcmp(argv[1], "-") == 0)
		return read_stdin(&arguments->pipeline, error);
	return read_file(argv[1], &arguments->pipeline, error);
}

static bool read_name(struct weir_arguments *arguments, int argc, char **argv, GError **error)
{
	if (argc > 2)
		return refuse(error, "it takes one NAME at most");
	arguments->name = argc == 2 ? g_strdup(argv[1]) : NULL;
	return true;
}

/* ---- All of it ---- */

bool weir_arguments_read(struct weir_arguments *arguments, const char *command,
			 enum weir_command_kind kind, int argc, char **argv, GError **error)
{
	static const char *const takes[] = {
		[WEIR_ON_KEYS] = "FILE",
		[WEIR_ON_PLUGINS] = "[NAME]",
		[WEIR_ON_PIPELINE] = "FILE | - | -e TEXT",
		[WEIR_ON_RUN] = "FILE | - | -e TEXT",
	};
	g_autoptr(GOptionContext) options = g_option_context_new(takes[kind]);
	g_autofree char *name = g_strdup_printf("weir %s", command);
	gboolean help = FALSE;

	g_set_prgname(name);
	/* GLib's own --help passes through the character set of the locale. */
	g_option_context_set_help_enabled(options, FALSE);
	if (kind >= WEIR_ON_PIPELINE)
		add_pipeline_options(options, arguments);
	if (kind == WEIR_ON_RUN)
		add_run_options(options, arguments);
	add_common_options(options, arguments, &help);
	if (!g_option_context_parse(options, &argc, &argv, error))
		return false;
	if (help) {
		arguments->help = g_option_context_get_help(options, TRUE, NULL);
		return true;
	}
	return take_values(arguments, error) &&
	       (kind < WEIR_ON_PIPELINE ? read_name : read_pipeline)(arguments, argc, argv, error);
}

void weir_arguments_clear(struct weir_arguments *arguments)
{
	g_free(arguments->text);
	g_strfreev(arguments->variables);
	g_strfreev(arguments->plugin_path);
	g_free(arguments->duration);
	g_free(arguments->stats);
	g_free((char *)arguments->run.report);
	g_free((char *)arguments->run.ledger);
	g_free((char *)arguments->run.metrics);
	g_free((char *)arguments->run.user);
	g_free(arguments->source);
	g_free(arguments->pipeline);
	g_free(arguments->name);
	g_free(arguments->help);
}
