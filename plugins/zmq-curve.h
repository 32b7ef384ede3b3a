/*
 * zmq-curve.h: files of keys for CURVE, as `weir keygen` writes them.
 *
 * A line holds a key, 40 characters of Z85, and behind a blank whatever says whose it is. Other
 * lines are empty or begin with "#", which may also be the first character of a key.
 */
#ifndef WEIR_ZMQ_CURVE_H
#define WEIR_ZMQ_CURVE_H

#include <weir/plugin.h>
#include <zmq.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CURVE_TEXT  40 /* characters of a key */
#define CURVE_BYTES 32

struct curve_file {
	struct weir_self *self;
	const char *option, *path;
	FILE *stream;
	unsigned line;
};

static inline bool curve_refuse(const struct curve_file *file, const char *why)
{
	if (file->line)
		weir_error(file->self, file->option, "%s:%u: %s", file->path, file->line, why);
	else
		weir_error(file->self, file->option, "%s: %s", file->path, why);
	return false;
}

/* False after weir_error(). secret: refuses what others than the owner can read. */
static inline bool curve_open(struct curve_file *file, bool secret)
{
	struct stat status;

	file->stream = fopen(file->path, "re");
	if (!file->stream || fstat(fileno(file->stream), &status) != 0)
		return curve_refuse(file, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return curve_refuse(file, strerror(EISDIR));
	if (!secret || (status.st_mode & (S_IRGRP | S_IROTH)) == 0)
		return true;
	return curve_refuse(file, "others can read this secret key: chmod 600");
}

static inline void curve_close(struct curve_file *file)
{
	if (file->stream)
		fclose(file->stream);
	file->stream = NULL;
}

/* The next key, as bytes; false at the end, or after weir_error() with *ret_bad set. */
static inline bool curve_next(struct curve_file *file, uint8_t key[CURVE_BYTES], bool *ret_bad)
{
	char line[256], text[CURVE_TEXT + 1];

	while (fgets(line, sizeof(line), file->stream)) {
		file->line++;
		if (strcspn(line, " \t\r\n") == CURVE_TEXT) {
			memcpy(text, line, CURVE_TEXT);
			text[CURVE_TEXT] = '\0';
			if (zmq_z85_decode(key, text))
				return true;
		}
		if (strcspn(line, " \t\r\n") > 0 && line[0] != '#') {
			*ret_bad = true;
			return curve_refuse(file, "no key, which is 40 characters of Z85");
		}
	}
	return false;
}

/* The first key of a file. False after weir_error(). */
static inline bool curve_read(struct weir_self *self, const char *option, const char *path,
			      bool secret, uint8_t key[CURVE_BYTES])
{
	struct curve_file file = {.self = self, .option = option, .path = path};
	bool bad = false, found = false;

	if (!curve_open(&file, secret))
		bad = true;
	else
		found = curve_next(&file, key, &bad);
	if (!found && !bad)
		curve_refuse(&file, "no key in it");
	curve_close(&file);
	return found;
}

/* The public key that belongs to a secret one. */
static inline bool curve_public(const uint8_t secret[CURVE_BYTES], char ret[CURVE_TEXT + 1])
{
	char text[CURVE_TEXT + 1];

	return zmq_z85_encode(text, secret, CURVE_BYTES) && zmq_curve_public(ret, text) == 0;
}

#endif
