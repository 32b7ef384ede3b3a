/*
 * inputs.c: which files a replay reads, and that they are captures, before anything else is opened.
 */
#include "replay.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Takes over the path, and the stream on success. */
static bool add(struct inputs *inputs, char *path, uint64_t size, struct stream *stream)
{
	if (inputs->n == inputs->room) {
		unsigned room = inputs->room ? 2 * inputs->room : 16;
		struct input *list = reallocarray(inputs->list, room, sizeof(*list));
		if (!list) {
			free(path);
			return false;
		}
		inputs->list = list;
		inputs->room = room;
	}
	inputs->list[inputs->n++] = (struct input){path, size, stream};
	inputs->size += size;
	return true;
}

/* A file that can be read again when its turn comes: looked into, and closed. */
static bool add_file(struct weir_self *self, struct inputs *inputs, const char *name,
		     bool in_folder)
{
	char *path = strdup(name);
	struct stream *stream = path ? stream_open(self, path, STREAM_PROBE) : NULL;
	if (!stream) {
		free(path);
		return false;
	}
	stream_probe(stream);
	const char *refusal = stream_refusal(stream);
	bool left_out = refusal && in_folder && stream_is_foreign(stream);
	bool ok = !refusal || left_out;
	if (left_out)
		inputs->left_out++;
	else if (refusal)
		weir_error(self, "files", "%s: %s", path, refusal);
	uint64_t size = stream->size;
	stream_free(stream);
	if (ok && !left_out)
		return add(inputs, path, size, NULL);
	free(path);
	return ok;
}

/* A pipe or standard input: stays open, since what was read for its header cannot be read again. */
static bool add_pipe(struct weir_self *self, struct inputs *inputs, const char *name)
{
	char *path = strdup(name);
	struct stream *stream = path ? stream_open(self, path, STREAM_CHUNK) : NULL;
	if (!stream) {
		free(path);
		return false;
	}
	stream_read_header(stream);
	const char *refusal = stream_refusal(stream);
	if (refusal) {
		weir_error(self, "files", "%s: %s", path, refusal);
		free(path);
	}
	if (!refusal && add(inputs, path, stream->size, stream))
		return true;
	stream_free(stream);
	return false;
}

/* A hidden file, or one that its writer has not completed yet. */
static bool is_unfinished(const char *name)
{
	size_t len = strlen(name);
	return *name == '.' || (len > 5 && strcmp(name + len - 5, ".part") == 0);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_entry(struct weir_self *self, struct inputs *inputs, const char *folder,
		      const char *name)
{
	struct stat about;
	char *path;
	if (is_unfinished(name) || asprintf(&path, "%s/%s", folder, name) < 0)
		return true;
	bool ok = stat(path, &about) != 0 || !S_ISREG(about.st_mode) ||
		  add_file(self, inputs, path, true);
	free(path);
	return ok;
}

static bool add_folder(struct weir_self *self, struct inputs *inputs, const char *folder)
{
	struct dirent **entries;
	unsigned before = inputs->n;
	bool ok = true;
	int n = scandir(folder, &entries, NULL, by_name);
	if (n < 0) {
		weir_error(self, "files", "%s: %s", folder, strerror(errno));
		return false;
	}
	for (int i = 0; i < n; i++) {
		ok = add_entry(self, inputs, folder, entries[i]->d_name) && ok;
		free(entries[i]);
	}
	free(entries);
	if (ok && inputs->n == before) {
		weir_error(self, "files", "%s: no capture file is in this folder", folder);
		return false;
	}
	return ok;
}

static bool add_path(struct weir_self *self, struct inputs *inputs, const char *path)
{
	struct stat about;
	if (strcmp(path, "-") == 0)
		return add_pipe(self, inputs, path);
	if (stat(path, &about) != 0) {
		weir_error(self, "files", "%s: %s", path, strerror(errno));
		return false;
	}
	if (S_ISDIR(about.st_mode))
		return add_folder(self, inputs, path);
	return S_ISREG(about.st_mode) ? add_file(self, inputs, path, false)
				      : add_pipe(self, inputs, path);
}

static bool add_glob(struct weir_self *self, struct inputs *inputs, const char *pattern)
{
	glob_t found;
	bool ok = true;
	if (glob(pattern, 0, NULL, &found) != 0) {
		weir_error(self, "files", "%s: no file has such a name", pattern);
		return false;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		ok = add_path(self, inputs, found.gl_pathv[i]) && ok;
	globfree(&found);
	return ok;
}

/* A name may hold a star: what is there under exactly that name is meant first. */
static bool is_pattern(const char *word)
{
	struct stat about;
	return strpbrk(word, "*?[") && lstat(word, &about) != 0;
}

bool inputs_open(struct weir_self *self, struct inputs *inputs, const char *const *words)
{
	bool ok = true;
	for (; words && *words; words++)
		ok = (is_pattern(*words) ? add_glob(self, inputs, *words)
					 : add_path(self, inputs, *words)) &&
		     ok;
	if (ok && inputs->left_out > 0)
		weir_log(self, WEIR_INFORM, "%u files in folders are no captures, and left out",
			 inputs->left_out);
	return ok;
}

void inputs_close(struct inputs *inputs)
{
	for (unsigned i = 0; i < inputs->n; i++) {
		stream_free(inputs->list[i].stream);
		free(inputs->list[i].path);
	}
	free(inputs->list);
	*inputs = (struct inputs){0};
}
