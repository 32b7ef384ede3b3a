/* main.c: the commands. */
#include "arguments.h"
#include "describe.h"
#include "keygen.h"
#include "plan_text.h"
#include "variables.h"
#include "versions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

static struct weir_loader *loader_new(const struct weir_arguments *arguments)
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

typedef int (*graph_command)(const struct weir_graph *graph, const struct weir_arguments *arguments,
			     struct weir_errors *errors);

static int command_run(const struct weir_graph *graph, const struct weir_arguments *arguments,
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

static int command_check(const struct weir_graph *graph, const struct weir_arguments *arguments,
			 struct weir_errors *errors)
{
	(void)arguments;
	return plan_and_print(graph, errors, false);
}

static int command_plan(const struct weir_graph *graph, const struct weir_arguments *arguments,
			struct weir_errors *errors)
{
	(void)arguments;
	return plan_and_print(graph, errors, true);
}

static int command_graph(const struct weir_graph *graph, const struct weir_arguments *arguments,
			 struct weir_errors *errors)
{
	g_autofree char *dot = weir_graph_dot(graph);

	(void)arguments, (void)errors;
	fputs(dot, stdout);
	return WEIR_EXIT_DONE;
}

static int with_graph(const struct weir_arguments *arguments, graph_command command)
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

/* ---- Commands on plugins, and the rest ---- */

static int command_plugins(const struct weir_arguments *arguments)
{
	struct weir_loader *loader = loader_new(arguments);
	g_autoptr(GError) error = NULL;
	g_autofree char *text = arguments->name
					? weir_describe_plugin(loader, arguments->name, &error)
					: weir_describe_all(loader);

	weir_loader_free(loader);
	if (!text)
		return usage_error("%s", error->message);
	fputs(text, stdout);
	return WEIR_EXIT_DONE;
}

static int command_keygen(const struct weir_arguments *arguments)
{
	g_autoptr(GError) error = NULL;

	if (!arguments->name)
		return usage_error("keygen takes the name of the file for the secret key");
	if (weir_keygen(arguments->name, &error))
		return WEIR_EXIT_DONE;
	fprintf(stderr, "weir: keygen: %s\n", error->message);
	return WEIR_EXIT_FAILED;
}

static int command_help(void)
{
	fputs("weir run FILE      run the pipeline until its sources end, or a signal\n"
	      "weir check FILE    say all that is wrong with it, without opening devices or "
	      "captures\n"
	      "weir plan FILE     say how it would run: lanes, buffers, copies, privileges\n"
	      "weir graph FILE    its graph in Graphviz form\n"
	      "weir plugins       the plugins found; with a NAME its options, outputs and "
	      "counters\n"
	      "weir keygen FILE   write a key pair to FILE and FILE.pub, for encrypted streams\n"
	      "weir --version     versions, with those of the libraries\n"
	      "\n"
	      "FILE may be - for standard input, or -e TEXT. 'weir help COMMAND' lists the "
	      "options.\n"
	      "Exit status: 0 done; 1 failed, or the ledger does not close; 2 wrong usage or "
	      "pipeline;\n"
	      "3 done, with loss, under --strict.\n",
	      stdout);
	return WEIR_EXIT_DONE;
}

static const struct command {
	const char *name;
	enum weir_command_kind kind;
	graph_command on_graph; /* NULL: it has no pipeline */
	int (*on_name)(const struct weir_arguments *arguments);
} commands[] = {
	{"run", WEIR_ON_RUN, command_run, NULL},
	{"check", WEIR_ON_PIPELINE, command_check, NULL},
	{"plan", WEIR_ON_PIPELINE, command_plan, NULL},
	{"graph", WEIR_ON_PIPELINE, command_graph, NULL},
	{"plugins", WEIR_ON_PLUGINS, NULL, command_plugins},
	{"keygen", WEIR_ON_KEYS, NULL, command_keygen},
};

static int execute(const struct command *command, int argc, char **argv)
{
	struct weir_arguments arguments = {0};
	g_autoptr(GError) error = NULL;
	int status = WEIR_EXIT_DONE;

	if (!weir_arguments_read(&arguments, command->name, command->kind, argc, argv, &error))
		status = usage_error("%s: %s", command->name, error->message);
	else if (arguments.help)
		fputs(arguments.help, stdout);
	else if (command->on_graph)
		status = with_graph(&arguments, command->on_graph);
	else
		status = command->on_name(&arguments);
	weir_arguments_clear(&arguments);
	return status;
}

static const struct command *find_command(const char *name)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	const char *known[G_N_ELEMENTS(commands) + 3] = {"help", "--version"};
	g_autofree char *suggestion = NULL;

	for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++)
		known[i + 2] = commands[i].name;
	suggestion = weir_suggestion(name, known);
	return usage_error("there is no command '%s'%s", name, suggestion);
}

static int help(const char *name)
{
	char *words[] = {(char *)name, (char *)"--help", NULL};

	if (!name || strcmp(name, "help") == 0)
		return command_help();
	return find_command(name) ? execute(find_command(name), 2, words) : unknown_command(name);
}

static int dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";

	if (strcmp(name, "--version") == 0) {
		weir_versions_print(stdout);
		return WEIR_EXIT_DONE;
	}
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (find_command(name))
		return execute(find_command(name), argc - 1, argv + 1);
	return unknown_command(name);
}

/* A file must not be opened in the place of a stream that is closed: messages would go into it.
 * What is there instead fails as a closed one does. */
static void fill_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Interfaces, lanes and peers take many, and nothing here uses select(), for which the lower limit
 * is kept. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	int status;

	fill_standard_streams();
	raise_descriptor_limit();
	status = dispatch(argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "weir: standard output cannot be written: %s\n", g_strerror(errno));
	return status == WEIR_EXIT_DONE ? WEIR_EXIT_FAILED : status;
}
