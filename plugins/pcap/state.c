/*
 * state.c: the journal of a node's files.
 *
 * A line "+ CLOSED INODE BYTES CHANGED NAME" for each file that was made, "- NAME" for each one
 * that is gone; a start writes it anew without the pairs.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

/* ---- The list ---- */

static void remember(struct state *state, const struct kept *is, const char *name)
{
	struct kept *kept = malloc(sizeof(*kept) + strlen(name) + 1);

	if (!kept)
		return;
	*kept = *is;
	kept->next = NULL;
	strcpy(kept->name, name);
	*state->newest_end = kept;
	state->newest_end = &kept->next;
	state->n_files++;
	state->bytes += kept->bytes;
}

/* Takes the entry out of the list that *at leads to. */
static void forget(struct state *state, struct kept **at)
{
	struct kept *kept = *at;

	*at = kept->next;
	if (!kept->next)
		state->newest_end = at;
	state->n_files--;
	state->bytes -= kept->bytes;
	free(kept);
}

static void forget_name(struct state *state, const char *name)
{
	for (struct kept **at = &state->oldest; *at; at = &(*at)->next) {
		if (strcmp((*at)->name, name) == 0) {
			forget(state, at);
			return;
		}
	}
}

static int64_t changed_ns(const struct stat *status)
{
	return status->st_mtim.tv_sec * NS_PER_S + status->st_mtim.tv_nsec;
}

bool state_is_ours(const struct state *state, const struct kept *kept, struct stat *ret_status)
{
	return fstatat(state->folder_fd, kept->name, ret_status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(ret_status->st_mode) && ret_status->st_ino == kept->inode &&
	       (uint64_t)ret_status->st_size == kept->bytes &&
	       changed_ns(ret_status) == kept->changed_ns;
}

/* ---- The journal ---- */

/* false: it is none of ours. */
static bool load_line(struct state *state, char *line)
{
	struct kept kept = {0};
	int name_at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "+ %" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %n", &kept.closed_s,
		   &kept.inode, &kept.bytes, &kept.changed_ns, &name_at) == 4 &&
	    name_at > 0 && line[name_at])
		remember(state, &kept, line + name_at);
	else if (line[0] == '-' && line[1] == ' ')
		forget_name(state, line + 2);
	else
		return false;
	return true;
}

static void load(struct state *state, struct weir_self *self)
{
	unsigned damaged = 0;
	FILE *old = fopen(state->path, "re");
	char *line = NULL;
	size_t room = 0;

	while (old && getline(&line, &room, old) > 0)
		damaged += !load_line(state, line);
	if (damaged > 0)
		weir_log(self, WEIR_WARN,
			 "%s: %u damaged lines; files that they named are kept for ever",
			 state->path, damaged);
	free(line);
	if (old)
		fclose(old);
}

static void write_down(FILE *journal, const struct kept *kept, const char *name)
{
	fprintf(journal, "+ %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s\n", kept->closed_s,
		kept->inode, kept->bytes, kept->changed_ns, name);
}

/* Writes the journal anew, and locks it before anybody else sees it. */
static bool write_anew(struct state *state)
{
	FILE *journal;
	char *path;
	int failure;
	bool ok;

	if (asprintf(&path, "%s.new", state->path) < 0)
		return false;
	journal = fopen(path, "we");
	if (journal)
		flock(fileno(journal), LOCK_EX | LOCK_NB);
	for (const struct kept *kept = state->oldest; kept && journal; kept = kept->next)
		write_down(journal, kept, kept->name);
	ok = journal && fflush(journal) == 0 && rename(path, state->path) == 0;
	failure = errno;
	if (journal && !ok)
		unlink(path);
	free(path);
	if (ok) {
		FILE *old = state->journal;

		state->journal = journal;
		journal = old;
	}
	if (journal)
		fclose(journal);
	errno = failure;
	return ok;
}

/* Whether another process has the journal; else it stays locked by the descriptor. */
static bool is_taken(const char *path, int *ret_fd)
{
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) != 0;
}

static bool open_journal(struct state *state, struct weir_self *self)
{
	int old_fd;
	bool taken = is_taken(state->path, &old_fd);
	bool ok = false;

	if (taken) {
		weir_error(self, "path",
			   "another run keeps its files in %s by the name %s; give this node "
			   "another name",
			   state->folder, self->name);
	} else {
		load(state, self);
		state_sweep(state);
		ok = write_anew(state);
		if (!ok)
			weir_error(self, "path", "%s: %s", state->path, strerror(errno));
	}
	if (old_fd >= 0)
		close(old_fd);
	return ok;
}

bool state_open(struct state *state, struct weir_self *self, const char *folder)
{
	*state = (struct state){.newest_end = &state->oldest};
	state->folder = strdup(folder);
	state->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (state->folder_fd < 0) {
		weir_error(self, "path", "%s: %s", folder, strerror(errno));
		return false;
	}
	if (asprintf(&state->path, "%s/.weir-%s", folder, self->name) < 0) {
		state->path = NULL;
		weir_error(self, "path", "out of memory");
		return false;
	}
	return open_journal(state, self);
}

void state_clear(struct state *state)
{
	while (state->oldest)
		forget(state, &state->oldest);
	if (state->journal)
		fclose(state->journal);
	if (state->folder_fd >= 0)
		close(state->folder_fd);
	free(state->folder);
	free(state->path);
}

/* ---- Changes ---- */

static void flush(struct state *state)
{
	if (state->journal && fflush(state->journal) != 0)
		state->is_behind = true;
}

void state_mend(struct state *state)
{
	if (state->is_behind && write_anew(state))
		state->is_behind = false;
}

void state_add(struct state *state, const char *name)
{
	struct kept kept = {.closed_s = (int64_t)time(NULL)};
	struct stat status;

	/* A name that would break the journal's lines is kept for ever. */
	if (strchr(name, '\n') || fstatat(state->folder_fd, name, &status, 0) != 0)
		return;
	kept.inode = status.st_ino;
	kept.bytes = (uint64_t)status.st_size;
	kept.changed_ns = changed_ns(&status);
	remember(state, &kept, name);
	write_down(state->journal, &kept, name);
	flush(state);
}

static void strike(struct state *state, struct kept **at)
{
	if (state->journal)
		fprintf(state->journal, "- %s\n", (*at)->name);
	forget(state, at);
}

void state_remove_oldest(struct state *state)
{
	strike(state, &state->oldest);
	flush(state);
}

/* A file system that does not answer has not lost its files. */
static bool is_gone(const struct state *state, const struct kept *kept)
{
	struct stat status;

	errno = 0;
	return !state_is_ours(state, kept, &status) && (errno == 0 || errno == ENOENT);
}

void state_sweep(struct state *state)
{
	struct kept **at = &state->oldest;

	while (*at) {
		if (is_gone(state, *at))
			strike(state, at);
		else
			at = &(*at)->next;
	}
	flush(state);
}
