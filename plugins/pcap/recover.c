/*
 * recover.c: recovery of .part files.
 *
 * They are found by the pattern of the path, with digits where it has numbers, since a state file
 * would be needed even by those who keep their files for ever.  Who writes a file holds a lock on
 * it.
 */
#include "recover.h"
#include "command.h"
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGIT "[0-9]"

/* ---- The pattern of names ---- */

static const char *digits_of(char letter)
{
	switch (letter) {
	case 'Y':
		return DIGIT DIGIT DIGIT DIGIT;
	case 'j':
		return DIGIT DIGIT DIGIT;
	case 'm':
	case 'd':
	case 'y':
	case 'H':
	case 'M':
	case 'S':
		return DIGIT DIGIT;
	case 's':
		return DIGIT "*";
	case '%':
		return "%";
	default:
		return "*";
	}
}

static void put_literal(FILE *out, const char *text, size_t len)
{
	for (; len > 0; text++, len--) {
		if (strchr("*?[\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

/* Writes what matches the directive at `percent`; returns where it ends. */
static const char *put_directive(FILE *out, const char *percent, const char *node)
{
	if (percent[1] != '{') {
		fputs(digits_of(percent[1]), out);
		return percent + 2;
	}
	if (strncmp(percent, "%{node}", 7) == 0)
		put_literal(out, node, strlen(node));
	else if (strncmp(percent, "%{iface}", 8) == 0)
		fputc('*', out);
	else
		fputs(DIGIT "*", out);
	return strchr(percent, '}') + 1;
}

/* The pattern, which is known to be one, as glob() wants it; free(). */
static char *glob_of(const char *pattern, const char *node)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	while (*pattern) {
		size_t literal = strcspn(pattern, "%");

		put_literal(out, pattern, literal);
		pattern += literal;
		if (*pattern)
			pattern = put_directive(out, pattern, node);
	}
	fputs(PART_ENDING, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* The same for names that were numbered: "x.pcap" to "x-[0-9]*.pcap"; free(). */
static char *numbered(const char *pattern)
{
	char *zero = name_numbered(pattern, 1);
	char *number = zero ? strrchr(zero, '-') : NULL;
	char *text = NULL;

	if (number && asprintf(&text, "%.*s-%%{seq}%s", (int)(number - zero), zero, number + 2) < 0)
		text = NULL;
	free(zero);
	return text;
}

/* ---- One file ---- */

/* How long the part is that is whole; 0: it is no file of ours. */
static size_t whole_length(const uint8_t *bytes, size_t len, struct weir_extent *extent)
{
	static const uint8_t classic_ns[] = {0x4d, 0x3c, 0xb2, 0xa1};
	static const uint8_t classic_us[] = {0xd4, 0xc3, 0xb2, 0xa1};
	static const uint8_t section[] = {0x0a, 0x0d, 0x0d, 0x0a};

	if (len >= WEIR_PCAP_HEADER &&
	    (memcmp(bytes, classic_ns, 4) == 0 || memcmp(bytes, classic_us, 4) == 0))
		return weir_capfile_walk(bytes, WEIR_PCAP_HEADER, len, false, extent);
	if (len >= 4 && memcmp(bytes, section, 4) == 0)
		return weir_capfile_walk(bytes, 0, len, true, extent);
	return 0;
}

static size_t measure(int fd, size_t len, struct weir_extent *extent)
{
	uint8_t *bytes = len ? mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	size_t whole;

	if (bytes == MAP_FAILED)
		return 0;
	whole = whole_length(bytes, len, extent);
	munmap(bytes, len);
	return whole;
}

static void publish(struct site *site, const char *part, const struct weir_extent *extent,
		    size_t cut_off)
{
	char *wish = strndup(part, strlen(part) - strlen(PART_ENDING));
	struct namer namer = {0};
	char *name = wish ? name_publish(&namer, part, wish, false) : NULL;

	namer_clear(&namer);
	free(wish);
	if (!name) {
		weir_log(site->self, WEIR_WARN, "%s cannot be renamed: %s", part, strerror(errno));
		return;
	}
	weir_log(site->self, WEIR_INFORM,
		 "%s has been recovered: %llu packets; %zu bytes were cut off", name,
		 (unsigned long long)extent->packets, cut_off);
	weir_event(site->self, "file-recovered", "%s packets=%llu cut=%zu", name,
		   (unsigned long long)extent->packets, cut_off);
	weir_count(site->self, RECOVERED, 1);
	if (site->keeper)
		keeper_closed(site->keeper, name);
	if (site->commands)
		commands_run(site->commands, name);
	free(name);
}

static void recover(struct site *site, const char *part)
{
	int fd = open(part, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct weir_extent extent = {0};
	struct stat status;
	size_t whole;

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &status) == 0 &&
	    S_ISREG(status.st_mode)) {
		whole = measure(fd, (size_t)status.st_size, &extent);
		if (whole > 0 && ftruncate(fd, (off_t)whole) == 0)
			publish(site, part, &extent, (size_t)status.st_size - whole);
	}
	close(fd);
}

static void recover_matching(struct site *site, const char *pattern)
{
	char *names = pattern ? glob_of(pattern, site->self->name) : NULL;
	glob_t found = {0};

	if (names && glob(names, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			recover(site, found.gl_pathv[i]);
	}
	globfree(&found);
	free(names);
}

void recover_files(struct site *site)
{
	char *with_number = numbered(site->config->path);

	recover_matching(site, site->config->path);
	recover_matching(site, with_number);
	free(with_number);
}
