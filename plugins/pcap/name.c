/*
 * name.c: names of files.
 *
 * A file has its final name only when it is complete, and takes it without ever replacing another:
 * renameat2(RENAME_NOREPLACE), or link() where a file system has not got that.
 */
#include "name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS_MAX 1000000u

void namer_clear(struct namer *namer)
{
	free(namer->last);
	*namer = (struct namer){0};
}

char *name_numbered(const char *path, unsigned number)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *ending = strrchr(base, '.');
	char *name;
	int stem;

	if (number == 0)
		return strdup(path);
	if (!ending || ending == base)
		ending = base + strlen(base);
	stem = (int)(ending - path);
	return asprintf(&name, "%.*s-%u%s", stem, path, number, ending) < 0 ? NULL : name;
}

/* The number at which the search for a free name of that path starts. */
static unsigned first_number(const struct namer *namer, const char *path)
{
	return namer->last && strcmp(namer->last, path) == 0 ? namer->next : 0;
}

/* true: it is there, made now or before. */
static bool make_folder(const char *path, const struct access *access)
{
	bool ok;
	int fd;

	if (mkdir(path, access->folder_mode) != 0)
		return errno == EEXIST;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ok = fd >= 0 && access_apply(access, fd, true);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool make_folders(char *path, unsigned fixed_len, const struct access *access)
{
	for (char *slash = path + fixed_len; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		bool made = make_folder(path, access);
		*slash = '/';
		if (!made)
			return false;
	}
	return true;
}

static int create(const char *part, const struct access *access)
{
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, access->file_mode);
	int error;

	if (fd < 0 || access_apply(access, fd, false))
		return fd;
	error = errno;
	close(fd);
	unlink(part);
	errno = error;
	return -1;
}

static int open_part(const char *name, unsigned fixed_len, const struct access *access,
		     char **ret_part)
{
	char *part;
	int fd;

	if (asprintf(&part, "%s" PART_ENDING, name) < 0) {
		errno = ENOMEM;
		return -1;
	}
	fd = create(part, access);
	if (fd < 0 && errno == ENOENT && make_folders(part, fixed_len, access))
		fd = create(part, access);
	if (fd < 0)
		free(part);
	else
		*ret_part = part;
	return fd;
}

int name_open_part(struct namer *namer, const char *path, unsigned fixed_len,
		   const struct access *access, char **ret_part)
{
	unsigned number = first_number(namer, path);
	int fd = -1;

	for (unsigned tries = 0; tries < NUMBERS_MAX; tries++) {
		char *name = name_numbered(path, number + tries);

		fd = name ? open_part(name, fixed_len, access, ret_part) : -1;
		free(name);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

static bool move_if_free(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	if (link(from, to) != 0)
		return false;
	unlink(from);
	return true;
}

static void remember(struct namer *namer, const char *path, unsigned next)
{
	if (!namer->last || strcmp(namer->last, path) != 0) {
		free(namer->last);
		namer->last = strdup(path);
	}
	namer->next = next;
}

char *name_publish(struct namer *namer, const char *part, const char *path, bool overwrite)
{
	unsigned number = first_number(namer, path);

	/* A second file of the same name in a row is not an older one. */
	overwrite = overwrite && number == 0;
	for (unsigned tries = 0; tries < NUMBERS_MAX; tries++, number++) {
		char *name = name_numbered(path, number);
		bool moved = name &&
			     (overwrite ? rename(part, name) == 0 : move_if_free(part, name));

		if (moved) {
			remember(namer, path, number + 1);
			return name;
		}
		free(name);
		if (errno != EEXIST)
			break;
	}
	return NULL;
}
