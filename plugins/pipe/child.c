/*
 * child.c: starts a program without a shell, and again when it has ended.
 *
 * Capabilities belong to threads: the one that starts children has none, so that nothing has to be
 * done between fork and exec, where hardly anything may be.
 */
#include "child.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS      1000000LL
#define DELAY_FIRST_NS (100 * NS_PER_MS)
#define DELAY_MAX_NS   (10000 * NS_PER_MS)
#define LEFT_NS        (1000 * NS_PER_MS) /* at most, for what a program has left to heed TERM */
#define PIPE_BYTES     (1 << 20)
#define LOOK_MS        100  /* for whether the run is abandoned */
#define KILLED_MS      1000 /* only a process that sits in the kernel outlives KILL */

/* What is left of a longer grace once the run is abandoned. */
#define ABANDONED_NS (500 * NS_PER_MS)

extern char **environ;

static int64_t clock_mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

/* ---- The command ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Where PATH has it; NULL: nowhere. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");
	char *found = NULL;

	if (strchr(name, '/'))
		return is_program(name) ? strdup(name) : NULL;
	for (path = path ? path : "/usr/bin:/bin"; !found && *path;) {
		int len = (int)strcspn(path, ":");

		if (len > 0 && asprintf(&found, "%.*s/%s", len, path, name) < 0)
			return NULL;
		if (found && !is_program(found)) {
			free(found);
			found = NULL;
		}
		path += len + (path[len] == ':');
	}
	return found;
}

/* The words with what stands for %{lane} and the like in them, and the program's path. */
static bool fill_in(struct weir_self *self, char **words)
{
	char *path;

	for (char **word = words; *word; word++) {
		char *filled = weir_expand(self, *word, time(NULL) * 1000 * NS_PER_MS, true, NULL,
					   0);

		if (!filled) {
			weir_error(self, "exec", "'%s' is no pattern; a percent sign is %%%%",
				   *word);
			return false;
		}
		free(*word);
		*word = filled;
	}
	path = find_program(words[0]);
	if (!path) {
		weir_error(self, "exec", "there is no program '%s'", words[0]);
		return false;
	}
	free(words[0]);
	words[0] = path;
	return true;
}

bool child_check(struct weir_self *self, const char *command)
{
	const char *wrong;
	char **words = words_split(command, &wrong);

	if (wrong)
		weir_error(self, "exec", "%s", wrong);
	words_free(words);
	return !wrong;
}

bool child_prepare(struct child *child, struct weir_self *self, const char *command)
{
	const char *wrong;

	child->self = self;
	child->delay_ns = DELAY_FIRST_NS;
	child->words = words_split(command, &wrong);
	return child->words && fill_in(self, child->words);
}

/* ---- Its life ---- */

/* Until then its group is nobody else's. */
static void bury(struct child *child)
{
	if (child->ended)
		waitpid(child->ended, NULL, 0);
	child->ended = 0;
}

void child_free(struct child *child)
{
	bury(child);
	words_free(child->words);
	child->words = NULL;
}

void child_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* Without the right to do so each of these changes nothing that a child could use. */
	for (unsigned long i = 0; i < 64; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(SYS_capset, &header, none);
}

static int spawn(struct child *child, int input)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	/* A group of its own: the terminal's ^C is for Weir, which then ends it in order. */
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	error = posix_spawn(&child->pid, child->words[0], &files, &attributes, child->words,
			    environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

static void put_off(struct child *child, int64_t now_ns)
{
	child->next_ns = now_ns + child->delay_ns;
	child->delay_ns *= 2;
	if (child->delay_ns > DELAY_MAX_NS)
		child->delay_ns = DELAY_MAX_NS;
}

int child_start(struct child *child, int64_t now_ns)
{
	int ends[2], error;

	if (child->ended && now_ns >= child->bury_ns) {
		kill(-child->ended, SIGKILL);
		bury(child);
	}
	if (child->pid || child->ended || now_ns < child->next_ns)
		return -1;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		weir_log(child->self, WEIR_WARN, "no pipe to a program: %s", strerror(errno));
		put_off(child, now_ns);
		return -1;
	}
	error = spawn(child, ends[0]);
	close(ends[0]);
	if (error) {
		weir_log(child->self, WEIR_WARN, "%s cannot be started: %s", child->words[0],
			 strerror(error));
		child->pid = 0;
		close(ends[1]);
		put_off(child, now_ns);
		return -1;
	}
	child->pidfd = pidfd_open(child->pid, 0);
	child->started_ns = now_ns;
	/* A refusal of a larger pipe only means more waiting. */
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	(void)fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK);
	weir_event(child->self, "consumer-came", "%s, process %d", child->words[0],
		   (int)child->pid);
	return ends[1];
}

static void tell_end(struct child *child, const siginfo_t *info)
{
	char words[64];

	snprintf(words, sizeof(words), "%s %d",
		 info->si_code == CLD_EXITED ? "has ended with status" : "was ended by signal",
		 info->si_status);
	weir_log(child->self, info->si_status ? WEIR_WARN : WEIR_INFORM, "%s, process %d, %s",
		 child->words[0], (int)child->pid, words);
	weir_event(child->self, "consumer-went", "%s, process %d, %s", child->words[0],
		   (int)child->pid, words);
}

bool child_wait(struct child *child, int timeout_ms)
{
	struct pollfd end = {.fd = child->pidfd, .events = POLLIN};
	siginfo_t info = {0};
	int64_t now_ns;

	if (!child->pid)
		return true;
	if (timeout_ms > 0)
		poll(&end, 1, timeout_ms);
	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == 0)
		return false;
	/* What it has started itself has nothing to read any more. */
	kill(-child->pid, SIGTERM);
	tell_end(child, &info);
	if (child->pidfd >= 0)
		close(child->pidfd);
	child->pidfd = -1;
	child->ended = child->pid;
	child->pid = 0;
	now_ns = clock_mono_ns();
	if (now_ns - child->started_ns > DELAY_MAX_NS)
		child->delay_ns = DELAY_FIRST_NS;
	put_off(child, now_ns);
	child->bury_ns = child->next_ns < now_ns + LEFT_NS ? child->next_ns : now_ns + LEFT_NS;
	return true;
}

static bool has_ended_within(struct child *child, int64_t grace_ns)
{
	int64_t started_ns = clock_mono_ns();
	bool ended = child_wait(child, 0);

	while (!ended && clock_mono_ns() - started_ns < grace_ns) {
		if (weir_abandoned(child->self) && grace_ns > ABANDONED_NS)
			grace_ns = ABANDONED_NS;
		ended = child_wait(child, LOOK_MS);
	}
	return ended;
}

void child_end(struct child *child, int64_t grace_ns)
{
	static const int signals[] = {SIGTERM, SIGKILL};

	for (unsigned i = 0; !has_ended_within(child, grace_ns) && i < 2; i++)
		kill(-child->pid, signals[i]);
	child_wait(child, KILLED_MS);
}
