/*
 * replay.h: the parts of pcap-replay.
 *
 * A run reads the inputs one after another, each through a stream, which holds the bytes of its
 * packets until it is read again.
 */
#ifndef PCAP_REPLAY_H
#define PCAP_REPLAY_H

#include <weir/capfile.h>

#include <sys/types.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* ---- stream.c: an open file, pipe or FIFO ---- */

struct stream {
	struct weir_self *self; /* of the callback that is using it */
	const char *path;       /* borrowed; for messages */
	int fd;
	uint64_t size;   /* of a regular file; else 0 */
	size_t chunk;    /* bytes read at a time */
	uint8_t *memory; /* head bytes for what was left of the last chunk, then a chunk */
	size_t head;
	uint8_t *at, *end; /* not parsed yet */
	bool may_block;    /* no regular file: wait for bytes before reading */
	bool ended;        /* all of it has been read */
	bool quiet;        /* gives no warnings: it is only looked at */
	struct weir_reader *reader;
	unsigned interfaces;
	uint64_t bytes_read, torn_bytes, warnings;
};

enum { STREAM_CHUNK = 256 << 10, STREAM_PROBE = 64 << 10 };
enum { STREAM_END = -1, STREAM_FAILED = -2 };

/* path "-" is standard input.  NULL after weir_error(). */
struct stream *stream_open(struct weir_self *self, const char *path, size_t chunk);
void stream_free(struct stream *stream); /* takes NULL */

/* Looks at the first chunk: declares the interfaces that are in it, and finds out what it is. */
void stream_probe(struct stream *stream);
/* Of a pipe: reads until the first packet is next or an interface is known; waits for that, but
 * only as long as a writer takes that starts together with us. */
void stream_read_header(struct stream *stream);
/* After these two: why it is no capture file at all, or NULL; whether it is of another kind. */
const char *stream_refusal(const struct stream *stream);
bool stream_is_foreign(const struct stream *stream);

/*
 * Up to max packets, whose bytes stay where they are until the next call; 0 if there were none in
 * the next chunk or within timeout_ms; STREAM_END; STREAM_FAILED after weir_error().
 */
int stream_read(struct stream *stream, struct weir_packet *packets, unsigned max, int timeout_ms);

/* ---- inputs.c: which files those are ---- */

struct input {
	char *path;
	uint64_t size;         /* 0: unknown */
	struct stream *stream; /* of what cannot be opened again: a pipe, standard input */
};

struct inputs {
	struct input *list;
	unsigned n, room;
	unsigned left_out; /* files in folders that are no captures */
	uint64_t size;     /* of all of them */
};

/* Finds the files that the words mean, opens each, and declares its first interfaces.  False after
 * weir_error(), with as many errors as there are. */
bool inputs_open(struct weir_self *self, struct inputs *inputs, const char *const *words);
void inputs_close(struct inputs *inputs);

/* ---- pace.c: when each packet is due ---- */

enum pace_kind { PACE_MAX, PACE_SPEED, PACE_PACKETS, PACE_BITS };

struct pace {
	enum pace_kind kind;
	double speed;       /* PACE_SPEED: 2 is twice as fast */
	double ns_per_unit; /* of the other two: of a packet, of a bit */
	bool started;
	bool may_step_back;         /* a new file may be older than the last one */
	int64_t start_ns;           /* CLOCK_MONOTONIC */
	int64_t origin_ns, last_ns; /* packet time */
	uint64_t units;
};

bool pace_parse(const char *text, struct pace *ret);
/* When the packet is due, on CLOCK_MONOTONIC; the first one now.  now_ns is that clock. */
int64_t pace_due(struct pace *pace, const struct weir_packet *packet, int64_t now_ns);
void pace_sent(struct pace *pace, const struct weir_packet *packet);
int64_t pace_clock(void);
void pace_sleep(int64_t until_ns);

/* ---- times.c ---- */

/* RFC 3339, local time ("2026-01-02 03:04:05", also without seconds or time), "-2h" before now. */
bool times_parse(const char *text, int64_t *ret_ns);

/* ---- progress.c: a line on the terminal ---- */

struct progress {
	bool shown;
	int64_t started_ns, drawn_ns;
};

/* done, size: bytes; size 0: unknown. */
void progress_draw(struct progress *progress, const char *name, int64_t now_ns, uint64_t done,
		   uint64_t size, uint64_t packets);
void progress_clear(struct progress *progress);

/* ---- player.c: the packets of all the inputs ---- */

struct config {
	const char *const *files;
	const char *pace, *from, *to;
	int64_t loop, limit;
	uint32_t progress;
};

struct node {
	struct inputs inputs;
	int64_t from_ns, to_ns; /* from <= time < to */
	struct pace pace;
	bool progress;
};

/* The span of the packets of this pass over the inputs, before they are shifted. */
struct pass {
	uint64_t packets;
	int64_t first_ns, last_ns;
};

struct lane {
	struct stream *stream; /* of the input before `next`; NULL: none is open */
	unsigned next;         /* input */
	int64_t passes;        /* completed */
	struct pass pass;
	int64_t shift_ns; /* added to times */
	uint64_t packets; /* handed out */
	bool over;        /* stopped, or limit reached, or all read */
	struct pace pace;
	struct weir_packet held[WEIR_BATCH]; /* read, and not due yet */
	unsigned held_at, held_n;
	uint64_t outside;
	/* Of the streams that are closed. */
	struct weir_reader_totals totals;
	uint64_t bytes_read, torn_bytes, unread_bytes, truncated, warnings, files;
	struct progress progress;
};

/* Opens the first input, while privileges for that are there.  False after weir_error(). */
bool player_open(struct weir_self *self);
/* Up to max packets, not more than the limit leaves; 0: none within timeout_ms; WEIR_END;
 * WEIR_FAILED after weir_error(). */
int player_read(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms);
/* The same, but only packets that are due. */
int player_read_paced(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      int timeout_ms);
void player_close(struct lane *lane);

#endif
