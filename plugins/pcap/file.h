/*
 * file.h: one output file as the writer sees it: a stream that is handed over in stretches of
 * blocks, goes to disk, and is cut back to its last whole record where the disk refuses more.
 *
 * All functions here but file_new() are called by the writer's thread alone.
 */
#ifndef PCAP_FILE_H
#define PCAP_FILE_H

#include "format.h"
#include "name.h"
#include "options.h"

struct block;
struct commands;
struct keeper;
struct keys;

/* What the files of a node have in common. */
struct site {
	struct weir_self *self; /* of the node */
	const struct config *config;
	struct format format;
	unsigned folder_len; /* of the path, as far as nothing is filled in */
	struct access access;
	struct keeper *keeper;     /* NULL: files are kept for ever */
	struct commands *commands; /* NULL: none are run */
	struct keys *keys;         /* NULL: no key log is followed */
	bool full;                 /* the writer's: the disk was full at the last try */
};

/* A file header or interface block, kept so that it can be written again behind a gap. */
struct header {
	struct header *next;
	uint64_t at; /* in the stream */
	uint32_t len;
	uint8_t bytes[];
};

struct file {
	/* The lane's, until it hands over the last stretch. */
	char *path;
	int64_t first_ns, last_ns;
	uint8_t *tail; /* with which it shall end; NULL: nothing */
	size_t tail_len;

	/* The writer's. */
	char *part;               /* NULL: not opened yet */
	int cached_fd, direct_fd; /* direct_fd: -1 where the file system takes none */
	struct header *headers, **headers_end;
	uint64_t end;         /* bytes on disk */
	uint64_t whole;       /* of them up to the end of the last whole record */
	uint64_t whole_at;    /* where that is in the stream */
	uint64_t packets;     /* on disk */
	uint64_t counted;     /* bytes that the keeper knows of */
	bool gap;             /* something was left out: go on at the start of a record */
	enum outcome trouble; /* why */
	int64_t retry_ns;     /* CLOCK_MONOTONIC: nothing is tried before */
};

/* A stretch of a file's stream, in a block that the writer may read until it gives it back. */
struct stretch {
	struct stretch *next;
	struct weir_self *self; /* of the lane */
	struct namer *namer;
	struct file *file;
	struct block *block;
	const uint8_t *bytes;   /* the block's */
	uint32_t block_bytes;   /* its size */
	uint64_t block_at;      /* where the block starts in the stream */
	uint32_t from, to;      /* the stretch, in the block */
	uint32_t first;         /* where the first unit starts that starts in it, or to */
	uint32_t whole;         /* where the last unit ends that ends in it, or from */
	struct weir_extent sum; /* of units that end in it */
	struct header *headers; /* that start in it */
	bool gives_back;        /* the block is done with */
	bool ends_file;
};

struct file *file_new(char *path); /* takes path over; NULL: out of memory */
void file_free(struct file *file);

/* Writes a stretch and settles all its packets. */
void file_write(struct site *site, struct file *file, struct stretch *stretch);
/* Closes the file and gives it its name. */
void file_finish(struct site *site, struct file *file, struct namer *namer);

int64_t clock_mono_ns(void);

#endif
