/*
 * inspect.c: a plugin's constructors run in a child, whose words come back through a pipe.
 */
#include "inspect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

/* How the child ends, besides 0 for a description: its words are then the message of an error. */
enum { STATUS_REFUSED = 10, STATUS_NOT_FOUND };

static void write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			text += n;
			left -= (size_t)n;
		}
	}
}

/* Ends by _exit(): what is buffered or registered belongs to the parent. */
G_NORETURN static void child(struct weir_loader *loader, const char *name,
			     weir_inspect_describe describe, int fd)
{
	const struct weir_plugin *plugin;
	GError *error = NULL;

	dup2(STDERR_FILENO, STDOUT_FILENO);
	plugin = weir_loader_find(loader, name, &error);
	if (plugin) {
		write_all(fd, describe(plugin, weir_loader_file(loader, name)));
		_exit(0);
	}
	write_all(fd, error->message);
	_exit(error->code == WEIR_LOADER_NOT_FOUND ? STATUS_NOT_FOUND : STATUS_REFUSED);
}

/* Everything up to the end of the pipe; false: it did not come in time. */
static bool read_all(int fd, GString *text)
{
	gint64 deadline_us = g_get_monotonic_time() + PATIENCE_MS * 1000;

	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		gint64 left_ms = (deadline_us - g_get_monotonic_time()) / 1000;
		char bytes[4096];
		ssize_t n;

		if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0)
			return false;
		n = read(fd, bytes, sizeof(bytes));
		if (n == 0)
			return true;
		if (n > 0)
			g_string_append_len(text, bytes, n);
		else if (errno != EINTR)
			return false;
	}
}

static int end_child(pid_t pid, bool came_back)
{
	int status = 0;

	if (!came_back)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void explain(GError **error, const char *name, int status, bool came_back, const char *said)
{
	if (!came_back)
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "plugin '%s' did not come back from being loaded within %d s", name,
			    PATIENCE_MS / 1000);
	else if (WIFSIGNALED(status))
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "plugin '%s' crashed when it was loaded: %s", name,
			    strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == STATUS_REFUSED || WEXITSTATUS(status) == STATUS_NOT_FOUND)
		g_set_error(error, WEIR_LOADER_ERROR,
			    WEXITSTATUS(status) == STATUS_NOT_FOUND ? WEIR_LOADER_NOT_FOUND
								    : WEIR_LOADER_REFUSED,
			    "%s", said);
	else
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "plugin '%s' ended the process when it was loaded (status %d)", name,
			    WEXITSTATUS(status));
}

char *weir_inspect(struct weir_loader *loader, const char *name, weir_inspect_describe describe,
		   GError **error)
{
	g_autoptr(GString) text = g_string_new(NULL);
	bool came_back;
	int ends[2], status;
	pid_t pid;

	if (pipe(ends) < 0 || (pid = fork()) < 0) {
		g_set_error(error, WEIR_LOADER_ERROR, WEIR_LOADER_REFUSED,
			    "plugin '%s' cannot be looked at: %s", name, g_strerror(errno));
		return NULL;
	}
	if (pid == 0) {
		close(ends[0]);
		child(loader, name, describe, ends[1]);
	}
	close(ends[1]);
	came_back = read_all(ends[0], text);
	close(ends[0]);
	status = end_child(pid, came_back);
	/* A constructor that calls exit(0) has said nothing. */
	if (came_back && WIFEXITED(status) && WEXITSTATUS(status) == 0 && text->len)
		return g_strdup(text->str);
	explain(error, name, status, came_back, text->str);
	return NULL;
}
