/*
 * name.h: names of files: of the one being written, and the final one, which is never another's.
 */
#ifndef PCAP_NAME_H
#define PCAP_NAME_H

#include "access.h"

#define PART_ENDING ".part" /* of files that are not complete yet */

/*
 * Of one lane's files; the writer's.  Names that many files share (a second of a fast rotation) go
 * on from the last number that was given, or finding a free one would take longer and longer.
 */
struct namer {
	char *last;    /* the wish of the file before */
	unsigned next; /* the number to try first */
};

void namer_clear(struct namer *namer);

/* "a/b.pcap" and 2 give "a/b-2.pcap", 0 the path itself; free().  NULL: out of memory. */
char *name_numbered(const char *path, unsigned number);

/*
 * Opens path.part for writing, or that of the first numbered name that is free.  -1 with errno;
 * else *ret_part is for free().  Folders that the pattern's letters name are made: those behind the
 * first fixed_len bytes of path.
 */
int name_open_part(struct namer *namer, const char *path, unsigned fixed_len,
		   const struct access *access, char **ret_part);

/*
 * Gives a complete file its name: path, or a numbered one if that is taken, but with overwrite the
 * path itself in place of an older file.  Returns the name for free(), NULL with errno.
 */
char *name_publish(struct namer *namer, const char *part, const char *path, bool overwrite);

#endif
