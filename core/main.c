/* main.c: the command line. */
#include <weir/plugin.h>

#include "describe.h"
#include "plan_text.h"
#include "run.h"
#include "variables.h"
#include "versions.h"

#include <stdio.h>
#include <string.h>

/* What the command line says, for all commands. */
struct arguments {
	char *text;         /* -e */
	char **variables;   /* --set */
	char **plugin_path; /* --plugin-path */
	char *duration, *stats;
	gboolean strict, quiet;
	struct weir_run_options run;
	char *source;   /* what messages call the text */
	char *pipeline; /* the text */
};

static int usage_error(const char *format, ...) G_GNUC_PRINTF(1, 2);

static int usage_error(const char *format, ...)
{
	va_list args;

	fputs("weir: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry 'weir help'.\n", stderr);
	return WEIR_EXIT_USAGE;
}

static struct weir_loader *loader_new(const struct arguments *arguments)
{
	g_auto(GStrv) path = weir_loader_default_path((const char *const *)arguments->plugin_path);

	return weir_loader_new((const char *const *)path);
}

static void print_errors(const struct weir_errors *errors)
{
	for (unsigned i = 0; i < errors->messages->len; i++)
		fprintf(stderr, "%s\n", (char *)errors->messages->pdata[i]);
}

/* ---- Commands on a pipeline text ---- */

typedef int (*graph_command)(const struct weir_graph *graph, const struct arguments *arguments,
			     struct weir_errors *errors);

static int command_run(const struct weir_graph *graph, const struct arguments *arguments,
		       struct weir_errors *errors)
{
	return weir_run(graph, &arguments->run, errors);
}

static void ignore_log(void *user, const struct weir_seat *seat, int level, const char *message)
{
	(void)user, (void)seat, (void)level, (void)message;
}

static void ignore_event(void *user, const struct weir_seat *seat, const char *event,
			 const char *detail)
{
	(void)user, (void)seat, (void)event, (void)detail;
}

static void ignore(void *user)
{
	(void)user;
}

/* Plans without opening anything, and prints either the warnings or the whole plan. */
static int plan_and_print(const struct weir_graph *graph, struct weir_errors *errors, bool whole)
{
	const struct weir_listener nobody = {ignore_log, ignore_event, ignore, ignore, NULL};
	struct weir_context *context = weir_context_new(errors, &nobody);
	struct weir_plan *plan = weir_plan_new(graph, context);
	g_autofree char *text = plan && whole ? weir_plan_text(plan) : NULL;

	for (unsigned i = 0; plan && i < plan->warnings->len; i++)
		fprintf(stderr, "%s: warning: %s\n", graph->source,
			(char *)plan->warnings->pdata[i]);
	if (text)
		fputs(text, stdout);
	weir_plan_close(plan);
	weir_plan_free(plan);
	weir_context_free(context);
	return plan ? WEIR_EXIT_DONE : WEIR_EXIT_USAGE;
}

static int command_check(const struct weir_graph *graph, const struct arguments *arguments,
			 struct weir_errors *errors)
{
	(void)arguments;
	return plan_and_print(graph, errors, false);
}

static int command_plan(const struct weir_graph *graph, const struct arguments *arguments,
			struct weir_errors *errors)
{
	(void)arguments;
	return plan_and_print(graph, errors, true);
}

static int command_graph(const struct weir_graph *graph, const struct arguments *arguments,
			 struct weir_errors *errors)
{
	g_autofree char *dot = weir_graph_dot(graph);

	(void)arguments, (void)errors;
	fputs(dot, stdout);
	return WEIR_EXIT_DONE;
}

static int with_graph(const struct arguments *arguments, graph_command command)
{
	struct weir_errors *errors = weir_errors_new(arguments->source);
	struct weir_loader *loader = loader_new(arguments);
	GHashTable *variables = weir_variables_new();
	struct weir_graph *graph = NULL;
	int status = WEIR_EXIT_USAGE;

	for (char **spec = arguments->variables; spec && *spec; spec++) {
		g_autoptr(GError) error = NULL;

		if (!weir_variables_add(variables, *spec, &error))
			weir_errors_add(errors, (struct weir_position){0}, "%s", error->message);
	}
	if (errors->messages->len == 0)
		graph = weir_graph_new(arguments->pipeline, variables, loader, errors);
	if (graph)
		status = command(graph, arguments, errors);
	if (status == WEIR_EXIT_USAGE)
		print_errors(errors);
	weir_graph_free(graph);
	g_hash_table_unref(variables);
	weir_loader_free(loader);
	weir_errors_free(errors);
	return status;
}

/* ---- Reading the command line ---- */

struct command {
	const char *name;
	graph_command on_graph; /* NULL: plugins */
};

static bool read_time(const char *option, const char *text, int64_t *ret_ns, GError **error)
{
	if (!text || (weir_parse_time(text, ret_ns) && *ret_ns > 0))
		return true;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
		    "--%s takes a time such as 10s or 5m, not '%s'", option, text);
	return false;
}

/* A folder of the environment may be absent, as in PATH; one that is given here is meant. */
static bool check_plugin_path(char *const *folders, GError **error)
{
	for (; folders && *folders; folders++) {
		if (g_file_test(*folders, G_FILE_TEST_IS_DIR))
			continue;
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			    "--plugin-path %s: there is no such folder%s", *folders,
			    strchr(*folders, ':') ? "; several are given one by one" : "");
		return false;
	}
	return true;
}

static bool read_stdin(char **ret_text, GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);
	char buffer[4096];
	size_t n;

	while ((n = fread(buffer, 1, sizeof(buffer), stdin)) > 0)
		g_string_append_len(text, buffer, (gssize)n);
	if (ferror(stdin)) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_IO, "cannot read standard input");
		return false;
	}
	*ret_text = g_string_free(g_steal_pointer(&text), FALSE);
	return true;
}

/* The text of -e, of FILE, or of standard input. */
static bool read_pipeline(struct arguments *arguments, int argc, char **argv, GError **error)
{
	if (argc > 2 || (argc == 2) == (arguments->text != NULL)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
			    "a pipeline is wanted, once: FILE, - or -e TEXT");
		return false;
	}
	arguments->source = g_strdup(arguments->text ? "-e" : argv[1]);
	if (arguments->text) {
		arguments->pipeline = g_strdup(arguments->text);
		return true;
	}
	if (strcmp(argv[1], "-") == 0)
		return read_stdin(&arguments->pipeline, error);
	return g_file_get_contents(argv[1], &arguments->pipeline, NULL, error);
}

/* What all commands take but `plugins`, which has no pipeline. */
static void add_pipeline_options(GOptionContext *options, struct arguments *arguments)
{
	const GOptionEntry entries[] = {
		{"execute", 'e', 0, G_OPTION_ARG_STRING, &arguments->text, "the pipeline itself",
		 "TEXT"},
		{"set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &arguments->variables,
		 "fill in ${NAME}; without a value, from the environment", "NAME[=VALUE]"},
		{0},
	};

	g_option_context_add_main_entries(options, entries, NULL);
}

static void add_run_options(GOptionContext *options, struct arguments *arguments)
{
	struct weir_run_options *run = &arguments->run;
	const GOptionEntry entries[] = {
		{"duration", 0, 0, G_OPTION_ARG_STRING, &arguments->duration,
		 "stop after that time", "TIME"},
		{"stats", 0, 0, G_OPTION_ARG_STRING, &arguments->stats,
		 "show rates and losses that often", "TIME"},
		{"report", 0, 0, G_OPTION_ARG_FILENAME, &run->report, "write the report as JSON",
		 "FILE"},
		{"ledger", 0, 0, G_OPTION_ARG_FILENAME, &run->ledger,
		 "append the ledger while it runs", "FILE"},
		{"metrics", 0, 0, G_OPTION_ARG_FILENAME, &run->metrics,
		 "write metrics for Prometheus", "FILE"},
		{"user", 0, 0, G_OPTION_ARG_STRING, &run->user, "become that user once all is open",
		 "NAME"},
		{"strict", 0, 0, G_OPTION_ARG_NONE, &arguments->strict,
		 "exit status 3 if any packet was lost", NULL},
		{"quiet", 0, 0, G_OPTION_ARG_NONE, &arguments->quiet, "say only what is wrong",
		 NULL},
		{0},
	};

	g_option_context_add_main_entries(options, entries, NULL);
}

static bool parse(struct arguments *arguments, const struct command *command, int *argc,
		  char ***argv, GError **error)
{
	const GOptionEntry common[] = {
		{"plugin-path", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &arguments->plugin_path,
		 "look for plugins there first", "DIR"},
		{0},
	};
	struct weir_run_options *run = &arguments->run;
	g_autoptr(GOptionContext)
		options = g_option_context_new(command->on_graph ? "FILE | - | -e TEXT" : "[NAME]");
	g_autofree char *name = g_strdup_printf("weir %s", command->name);

	g_set_prgname(name);
	if (command->on_graph)
		add_pipeline_options(options, arguments);
	if (command->on_graph == command_run)
		add_run_options(options, arguments);
	g_option_context_add_main_entries(options, common, NULL);
	if (!g_option_context_parse(options, argc, argv, error) ||
	    !read_time("duration", arguments->duration, &run->duration_ns, error) ||
	    !read_time("stats", arguments->stats, &run->stats_ns, error) ||
	    !check_plugin_path(arguments->plugin_path, error))
		return false;
	run->strict = arguments->strict;
	run->quiet = arguments->quiet;
	return true;
}

static void free_arguments(struct arguments *arguments)
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
}

/* ---- Commands on plugins, and the rest ---- */

static int command_plugins(const struct arguments *arguments, int argc, char **argv)
{
	struct weir_loader *loader = loader_new(arguments);
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL;

	if (argc > 2) {
		weir_loader_free(loader);
		return usage_error("plugins takes one NAME at most");
	}
	text = argc == 2 ? weir_describe_plugin(loader, argv[1], &error)
			 : weir_describe_all(loader);
	weir_loader_free(loader);
	if (!text)
		return usage_error("%s", error->message);
	fputs(text, stdout);
	return WEIR_EXIT_DONE;
}

static int command_help(void)
{
	fputs("weir run FILE      run the pipeline until its sources end, or a signal\n"
	      "weir check FILE    say all that is wrong with it, without opening a device\n"
	      "weir plan FILE     say how it would run: lanes, buffers, copies, privileges\n"
	      "weir graph FILE    its graph in Graphviz form\n"
	      "weir plugins       the plugins found; with a NAME its options, outputs and "
	      "counters\n"
	      "weir --version     versions, with those of the libraries\n"
	      "\n"
	      "FILE may be - for standard input, or -e TEXT. 'weir COMMAND --help' lists the "
	      "options.\n"
	      "Exit status: 0 done; 1 failed, or the ledger does not close; 2 wrong usage or "
	      "pipeline;\n"
	      "3 done, with loss, under --strict.\n",
	      stdout);
	return WEIR_EXIT_DONE;
}

static const struct command commands[] = {
	{"run", command_run},     {"check", command_check}, {"plan", command_plan},
	{"graph", command_graph}, {"plugins", NULL},
};

static int execute(const struct command *command, int argc, char **argv)
{
	struct arguments arguments = {0};
	g_autoptr(GError) error = NULL;
	int status;

	if (!parse(&arguments, command, &argc, &argv, &error) ||
	    (command->on_graph && !read_pipeline(&arguments, argc, argv, &error)))
		status = usage_error("%s: %s", command->name, error->message);
	else if (command->on_graph)
		status = with_graph(&arguments, command->on_graph);
	else
		status = command_plugins(&arguments, argc, argv);
	free_arguments(&arguments);
	return status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";

	if (strcmp(name, "--version") == 0) {
		weir_versions_print(stdout);
		return WEIR_EXIT_DONE;
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return command_help();
	for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
		if (strcmp(name, commands[i].name) == 0)
			return execute(&commands[i], argc - 1, argv + 1);
	}
	return usage_error("there is no command '%s'", name);
}
