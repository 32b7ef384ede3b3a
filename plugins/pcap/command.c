/*
 * command.c: starting commands and waiting for them.
 *
 * A command gets a process group of its own, so that an interrupt from the terminal ends the
 * capture and not the compression of its last file.
 */
#include "command.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLANKS  " \t\n"
#define POLL_NS 10000000L

struct job {
	struct job *next;
	pid_t pid;
	char path[];
};

struct commands {
	struct weir_self *self;
	const struct config *config;
	char *text;   /* that the words lie in */
	char **words; /* with room for the path and NULL behind n_words */
	unsigned n_words, n_running;
	struct job *running, *waiting, **waiting_end;
	int64_t ended_ns; /* when the last one ended; CLOCK_MONOTONIC */
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
};

/* ---- The program ---- */

bool command_check(struct weir_self *self)
{
	const char *text = ((const struct config *)self->config)->on_close;

	if (!text || text[strspn(text, BLANKS)] != '\0')
		return true;
	weir_error(self, "on-close", "on-close names no program");
	return false;
}

static bool split(struct commands *commands)
{
	char *rest, *word;

	commands->text = strdup(commands->config->on_close);
	if (!commands->text)
		return false;
	commands->words = calloc(strlen(commands->text) + 3, sizeof(*commands->words));
	if (!commands->words)
		return false;
	for (word = strtok_r(commands->text, BLANKS, &rest); word;
	     word = strtok_r(NULL, BLANKS, &rest))
		commands->words[commands->n_words++] = word;
	return true;
}

/* Whether posix_spawnp() will find it. */
static bool is_program(const char *name)
{
	const char *path = getenv("PATH");
	bool found = false;
	size_t len;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0;
	for (path = path ? path : "/bin:/usr/bin"; *path && !found;
	     path += len + (path[len] == ':')) {
		char *whole;

		len = strcspn(path, ":");
		if (asprintf(&whole, "%.*s/%s", (int)len, path, name) < 0)
			return false;
		found = access(whole, X_OK) == 0;
		free(whole);
	}
	return found;
}

/* The signals that Weir ignores or blocks are none of the command's, nor is anything that it has
 * open: standard output carries what a sink writes there. */
static void prepare(struct commands *commands)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&commands->attributes);
	posix_spawnattr_setflags(&commands->attributes, POSIX_SPAWN_SETPGROUP |
								POSIX_SPAWN_SETSIGMASK |
								POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&commands->attributes, 0);
	posix_spawnattr_setsigmask(&commands->attributes, &none);
	posix_spawnattr_setsigdefault(&commands->attributes, &all);
	posix_spawn_file_actions_init(&commands->actions);
	posix_spawn_file_actions_addopen(&commands->actions, STDIN_FILENO, "/dev/null", O_RDONLY,
					 0);
	posix_spawn_file_actions_adddup2(&commands->actions, STDERR_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&commands->actions, STDERR_FILENO + 1);
}

struct commands *commands_new(struct weir_self *self)
{
	struct commands *commands = calloc(1, sizeof(*commands));

	if (!commands) {
		weir_error(self, NULL, "out of memory");
		return NULL;
	}
	commands->self = self;
	commands->config = self->config;
	commands->waiting_end = &commands->waiting;
	prepare(commands);
	if (!split(commands))
		weir_error(self, NULL, "out of memory");
	else if (!is_program(commands->words[0]))
		weir_error(self, "on-close", "on-close: there is no program '%s' that may be run",
			   commands->words[0]);
	else
		return commands;
	commands_free(commands);
	return NULL;
}

static void free_jobs(struct job *jobs)
{
	for (struct job *next; jobs; jobs = next) {
		next = jobs->next;
		free(jobs);
	}
}

void commands_free(struct commands *commands)
{
	if (!commands)
		return;
	free_jobs(commands->running);
	free_jobs(commands->waiting);
	posix_spawnattr_destroy(&commands->attributes);
	posix_spawn_file_actions_destroy(&commands->actions);
	free(commands->words);
	free(commands->text);
	free(commands);
}

/* ---- Jobs ---- */

static void note_failed(struct commands *commands, const char *path, const char *how)
{
	weir_count(commands->self, COMMANDS_FAILED, 1);
	weir_event(commands->self, "command-failed", "%s %s %s", commands->words[0], path, how);
}

static void tell_failed(struct commands *commands, const char *path, const char *how)
{
	note_failed(commands, path, how);
	weir_log(commands->self, WEIR_WARN, "on-close: %s %s %s", commands->words[0], path, how);
}

/* false: it could not be started. */
static bool start(struct commands *commands, struct job *job)
{
	int error;

	commands->words[commands->n_words] = job->path;
	error = posix_spawnp(&job->pid, commands->words[0], &commands->actions,
			     &commands->attributes, commands->words, environ);
	if (error) {
		tell_failed(commands, job->path, strerror(error));
		return false;
	}
	weir_count(commands->self, COMMANDS, 1);
	job->next = commands->running;
	commands->running = job;
	commands->n_running++;
	return true;
}

/* Each is started once, also if that fails. */
static void start_waiting(struct commands *commands)
{
	while (commands->waiting && commands->n_running < commands->config->on_close_jobs) {
		struct job *job = commands->waiting;

		commands->waiting = job->next;
		if (!commands->waiting)
			commands->waiting_end = &commands->waiting;
		if (!start(commands, job))
			free(job);
	}
}

void commands_run(struct commands *commands, const char *path)
{
	/* A name that starts with "-" must not be taken for an option. */
	const char *here = *path == '-' ? "./" : "";
	struct job *job = malloc(sizeof(*job) + strlen(here) + strlen(path) + 1);

	if (!job) {
		tell_failed(commands, path, "was not run: out of memory");
		return;
	}
	job->next = NULL;
	strcpy(stpcpy(job->path, here), path);
	*commands->waiting_end = job;
	commands->waiting_end = &job->next;
	commands_work(commands);
}

static void tell_ended(struct commands *commands, const struct job *job, int status)
{
	char how[64];

	if (status == 0)
		return;
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(status));
	tell_failed(commands, job->path, how);
}

static bool has_ended(const struct job *job, int *ret_status)
{
	pid_t pid;

	*ret_status = 0;
	do
		pid = waitpid(job->pid, ret_status, WNOHANG);
	while (pid < 0 && errno == EINTR);
	return pid != 0;
}

void commands_work(struct commands *commands)
{
	struct job **at = &commands->running;
	int status;

	while (*at) {
		struct job *job = *at;

		if (!has_ended(job, &status)) {
			at = &job->next;
			continue;
		}
		tell_ended(commands, job, status);
		*at = job->next;
		commands->n_running--;
		commands->ended_ns = clock_mono_ns();
		free(job);
	}
	start_waiting(commands);
}

bool commands_pending(const struct commands *commands)
{
	return commands->running || commands->waiting;
}

static void give_up(struct commands *commands)
{
	unsigned n_waiting = 0;

	for (const struct job *job = commands->running; job; job = job->next)
		tell_failed(commands, job->path, "still runs, and is left alone");
	for (const struct job *job = commands->waiting; job; job = job->next, n_waiting++)
		note_failed(commands, job->path, "was not run: those before it did not end");
	if (n_waiting > 0)
		weir_log(commands->self, WEIR_WARN,
			 "on-close: not run for the last %u files, since commands before did not "
			 "end",
			 n_waiting);
}

void commands_finish(struct commands *commands)
{
	const struct timespec while_they_run = {.tv_nsec = POLL_NS};

	commands->ended_ns = clock_mono_ns();
	commands_work(commands);
	while (commands_pending(commands) && !weir_abandoned(commands->self) &&
	       clock_mono_ns() - commands->ended_ns < commands->config->on_close_wait_ns) {
		nanosleep(&while_they_run, NULL);
		commands_work(commands);
	}
	give_up(commands);
}
