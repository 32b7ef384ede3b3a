/*
 * weir/plugin.h: all that a source, stage or sink needs to know of Weir.
 *
 * A plugin is a shared object <name>.so that exports one constant, `weir_plugin`.  Core allocates,
 * zeroes and frees all of its state, calls its callbacks, counts both ends of every edge, and
 * proves at the end of a run that nothing is missing.
 *
 * One rule of lifetime: what you hand out (poll, emit) stays valid and unchanged until you are
 * called again in that lane.  What you are handed is borrowed until you return: who wants bytes
 * later copies them.
 *
 * Plain C11, usable from C++.  Fields are only ever appended; what never moves is said at its
 * place.
 */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ABI   1u
#define WEIR_BATCH 256u /* the most packets that poll() may return and judge() is handed */

#if defined(__GNUC__)
#define WEIR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define WEIR_EXPORT              __attribute__((visibility("default")))
#else
#define WEIR_PRINTF(text, first)
#define WEIR_EXPORT
#endif

/* ---- Packets ---- */

/* 64 bytes on every 64-bit machine: the size is in every plugin, and a batch fits a level-1 cache.
 */
struct weir_packet {
	const uint8_t *data; /* borrowed and read-only: to change bytes see weir_writable() */
	int64_t ts_ns;       /* nanoseconds since the Unix epoch, UTC */
	uint32_t caplen;     /* bytes at data, at most 262,144 */
	uint32_t wirelen;    /* bytes on the wire; never below caplen */
	uint32_t flow;       /* symmetric flow hash; 0: not computed yet, see weir_flow() */
	uint32_t key;     /* outer key that a decapsulating stage took off (VNI, TEID); 0: none */
	uint32_t mark;    /* for plugins that classify, written into pcapng as a comment; 0: none */
	uint32_t dropped; /* packets that the source knows it lost just before this one */
	uint16_t iface;   /* see weir_interface() */
	uint16_t queue;   /* receive queue of the NIC; UINT16_MAX: unknown */
	uint16_t flags;   /* WEIR_F_* */
	uint16_t l3, l4;  /* offsets from data, valid with WEIR_F_DISSECTED: see weir_dissect();
			     who moves data clears that flag */
	uint8_t proto;    /* IP protocol behind all extension headers, with WEIR_F_DISSECTED */
	uint8_t verdict;  /* 0 when judge() is called; judge() sets an output, or WEIR_PENDING */
	uint16_t order;   /* core's: position in the batch of the source */
	uint8_t reserved[10]; /* 0; copied with the packet */
};

enum {
	WEIR_F_IN = 1,           /* received by the interface */
	WEIR_F_OUT = 2,          /* sent by it */
	WEIR_F_CSUM_PARTIAL = 4, /* checksum left to the NIC: looks wrong, is not */
	WEIR_F_CSUM_GOOD = 8,    /* the NIC has verified it */
	WEIR_F_HW_TIME = 16,     /* ts_ns is from the clock of the NIC */
	WEIR_F_DISSECTED = 32,
	WEIR_F_FRAGMENT = 64, /* any fragment of an IP packet, the first one too */
	WEIR_F_IP4 = 128,     /* with WEIR_F_DISSECTED: l3 is the offset of an IPv4 header */
	WEIR_F_IP6 = 256,     /* the same of an IPv6 header */
};

/* A sink has accepted the packet; the outcome follows by weir_settle(). */
#define WEIR_PENDING 0xffu

/* An interface that packets came from.  Strings live as long as the run. */
struct weir_interface {
	const char *name;
	const char *description; /* NULL: none */
	uint32_t linktype;       /* LINKTYPE_*, https://www.tcpdump.org/linktypes.html */
	uint32_t snaplen;        /* 0: unlimited */
	uint64_t reserved[4];
};

/* ---- A plugin's view of a run ---- */

/* Handed to every callback. `lane` is NULL in callbacks of the whole node. */
struct weir_self {
	const void *config; /* the options, laid out as the option table says */
	void *node;         /* node_size bytes, shared by the lanes */
	void *lane;         /* lane_size bytes, this lane's own */
	uint32_t lane_index, lane_count;
	const char *name; /* of the node, as the pipeline text or its report calls it */
};

struct weir_now {
	int64_t stream_ns; /* no packet that comes here later is older. Packet time behind files,
			      the clock behind live sources; INT64_MIN before the first packet */
	int64_t mono_ns;   /* CLOCK_MONOTONIC, read once a batch */
};

enum { WEIR_SOURCE = 1, WEIR_STAGE, WEIR_SINK };

/* What an edge carries. WEIR_FLOWS is reserved. */
enum { WEIR_PACKETS = 0, WEIR_FLOWS };

/* What an output that leads nowhere, or an outcome of a sink, means. */
enum { WEIR_PASS = 0, WEIR_DISCARD, WEIR_LOSS };

/* How a source splits its packets among its lanes; what a stage or sink needs of its lanes. */
enum {
	WEIR_LANES_ANY = 0, /* split anyhow; needs nothing */
	WEIR_LANES_FLOW,    /* all packets of a flow, both directions, are in one lane */
	WEIR_LANES_ONE,     /* one lane has all the packets */
};

/* Why tick() is called. */
enum { WEIR_TICK_TIME = 1, WEIR_TICK_IDLE = 2, WEIR_TICK_REOPEN = 4, WEIR_TICK_END = 8 };

/* What poll() returns besides a number of packets. */
enum { WEIR_END = -1, WEIR_FAILED = -2 };

/* Flags of a plugin. */
enum {
	WEIR_CHANGES_BYTES = 1, /* calls weir_writable() */
	WEIR_CHANGES_FLOW = 2,  /* packets of one flow before it may be of several after it */
	WEIR_LIVE = 4,          /* a source that cannot wait: a full buffer behind it means loss */
	WEIR_MEMORY_WRITABLE = 8, /* a source whose packet memory may be changed in place */
};

/* ---- Tables: the only places where options, outputs and counters are written ---- */

struct weir_output {
	const char *name;     /* a-z { a-z | 0-9 | - } */
	uint32_t unconnected; /* WEIR_PASS, WEIR_DISCARD or WEIR_LOSS */
	uint32_t carries;
	const char *help;
};

/*
 * A number that only the plugin knows.  With a role it is a term of an equation that proves the
 * node.  The packet terms of a source sum up to the packets it sent on, those of a sink to its
 * outcome 0.  The byte terms of either sum up to 0.
 *
 * Terms must come from outside the data path: kernel statistics, file sizes, sequence numbers.  An
 * equation of which the table has no term is not checked.
 */
enum {
	WEIR_INFO = 0,
	WEIR_PLUS_PACKETS,
	WEIR_MINUS_PACKETS,
	WEIR_PLUS_BYTES,
	WEIR_MINUS_BYTES,
	WEIR_ROLE = 0xff,         /* mask */
	WEIR_IS_LOSS = 0x100,     /* packets that the node has lost: part of the run's `lost` */
	WEIR_IS_NIC = 0x200,      /* packets that the NIC has lost: part of the run's `nic` */
	WEIR_IS_KEPT_OUT = 0x400, /* packets that the program of want() kept out of the source */
};

struct weir_counter {
	const char *name;
	uint32_t role;
	const char *help;
};

/* The C type at `offset` in the config, and what `range` says. */
enum {
	WEIR_STRING = 1, /* const char *; NULL if the fallback is "" and nothing was given */
	WEIR_INFILE,     /* const char *: a file to be read */
	WEIR_OUTFILE,    /* const char *: a name or pattern that no other node may write, see
			    weir_expand() */
	WEIR_ENDPOINT,   /* const char *: an endpoint that no other node may bind */
	WEIR_NUMBER,     /* int64_t; range "1..256" */
	WEIR_SIZE,       /* uint64_t, bytes; range "4KiB..4GiB" */
	WEIR_TIME,       /* int64_t, nanoseconds; range "1ms..1h" */
	WEIR_RATE,       /* struct weir_rate */
	WEIR_AMOUNT,     /* struct weir_amount: bytes or percent */
	WEIR_BOOL,       /* bool; yes or no */
	WEIR_CHOICE,     /* uint32_t, the index in range "a|b|c" */
	WEIR_SET,  /* uint32_t, bit i for the i-th word of range "a|b|c"; given as a list; "none" is
		      0 */
	WEIR_LIST, /* const char *const *, NULL-terminated; NULL if empty */
	WEIR_INFILES,   /* a list of files to be read */
	WEIR_ENDPOINTS, /* a list of endpoints that no other node may bind */
};

struct weir_rate {
	double per_second;
	uint32_t packets; /* 1: packets per second; 0: bits */
	uint32_t reserved;
};

/* Bytes, or percent of the whole; the other one is 0. */
struct weir_amount {
	uint64_t bytes;
	double percent;
};

struct weir_option {
	const char *name; /* a-z { a-z | 0-9 | - } */
	uint32_t type;
	uint32_t offset;
	const char *fallback; /* as a user writes it; NULL: must be given; "": absent is zero */
	const char *range;    /* NULL: any */
	const char *help;     /* one sentence */
};

/* ---- Pushdown ---- */

/* Classic BPF on the bytes of the wire, as libpcap compiles it (struct bpf_insn). */
struct weir_insn {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

/* What an output leaves of a packet: at most max_bytes (UINT32_MAX: all) of those that filter
 * accepts. */
struct weir_reduction {
	const struct weir_insn *filter; /* owned by the plugin until close(); NULL: all packets */
	uint32_t filter_len;
	uint32_t negate; /* those that filter rejects instead */
	uint32_t max_bytes;
	uint32_t skip_vlan; /* filter is about the packet without its tags, see weir_vlan_tags() */
};

/* ---- The plugin ---- */

struct weir_plugin {
	uint32_t abi;  /* WEIR_ABI; never moves */
	uint32_t size; /* sizeof(struct weir_plugin); never moves */
	uint16_t packet_size, option_size, output_size, counter_size;
	uint32_t kind;
	uint32_t lanes_kind; /* WEIR_LANES_*, see affinity() */
	uint32_t flags;
	const char *name, *version, *summary;
	const char *example; /* one pipeline statement or flow that uses it */
	/* A NULL name ends each table.  Option 0 is the main one; output 0 the default, or the
	 * outcome that is success. */
	const struct weir_option *options;
	const struct weir_output *outputs;
	const struct weir_counter *counters;
	size_t config_size, node_size, lane_size;

	/* ---- Main thread, in this order; false after weir_error(): the run is refused, and what
	 * is open or half open is closed.  `weir check` and `weir plan` go no further than lanes(),
	 * reduce() and want(), and then call close(). ---- */

	/* What can be known without opening anything: values that do not fit together. */
	bool (*check)(struct weir_self *self);
	/* The WEIR_LANES_* of this node as it is configured; NULL: lanes_kind. */
	uint32_t (*affinity)(struct weir_self *self);
	/* Of a source: its number of lanes; NULL: 1. */
	uint32_t (*lanes)(struct weir_self *self);
	/* Sources first, which declare their interfaces, then downstream.  Must not wait for a
	 * peer. */
	bool (*open)(struct weir_self *self);
	/* Of a stage: what `output` leaves of packets of that link type; false without an error:
	 * that cannot be said. */
	bool (*reduce)(struct weir_self *self, unsigned output, uint32_t linktype,
		       struct weir_reduction *ret);
	/* Of a source: a program that returns how many bytes of a packet anybody wants, 0 for none;
	 * not called where somebody wants everything.  It is about the bytes of the wire, tags
	 * included, and all its returns are constants.  A hint: pass more, never less.  program is
	 * borrowed.  NULL if it will be used, else why not, which stays valid until close().
	 * `weir plan` calls it without open(). */
	const char *(*want)(struct weir_self *self, const struct weir_insn *program, uint32_t len);
	/* Once a lane; privileged things are opened here at the latest. */
	bool (*lane_open)(struct weir_self *self);
	/* After privileges are dropped, sinks first; a live source lets packets in here. */
	bool (*start)(struct weir_self *self);

	/* ---- The lane's thread.  None may block, except poll() up to its timeout, and whoever
	 * calls weir_wait(). ---- */

	/* Of a source: sets up to max descriptors, each whole, and returns how many, 0, WEIR_END,
	 * or WEIR_FAILED after weir_error().  *ret_mark_ns: no later packet will be older; also set
	 * when there was no packet; untouched: unknown. */
	int (*poll)(struct weir_self *self, struct weir_packet *packets, unsigned max,
		    int timeout_ms, int64_t *ret_mark_ns);
	/* Of a source: takes no more in; poll() is called until it has returned what was taken, and
	 * WEIR_END.  NULL: the source is not polled again. */
	void (*stop)(struct weir_self *self);
	/* One packet in, one out: sets verdict; may lower caplen, move data, set key or mark. Sinks
	 * have only this. */
	void (*judge)(struct weir_self *self, struct weir_packet *packets, unsigned n);
	/* Stages that make, merge or hold packets: what shall go on is emitted, in order. */
	void (*transform)(struct weir_self *self, struct weir_packet *packets, unsigned n);
	/* Every 10 ms of a busy lane, every 100 ms of an idle one, when weir_wake_at() and
	 * weir_wake_in() asked for it, on HUP, and at the end (upstream first).  May emit. */
	void (*tick)(struct weir_self *self, const struct weir_now *now, unsigned why);
	/* Once a second, when a sink in that lane asks for the counts of its source, and after the
	 * last batch: sets counters from outside the data path. */
	void (*witness)(struct weir_self *self);

	/* ---- Main thread, after the lanes have ended; on state that may be half open. ---- */

	/* Settles what is still pending, and sets the last counters. */
	void (*lane_close)(struct weir_self *self);
	void (*close)(struct weir_self *self);

	/* ---- Words for `weir plan`; NULL: none ---- */

	const char *needs;  /* the capabilities that it opens with, such as "CAP_NET_RAW" */
	const char *memory; /* names of its options of type WEIR_SIZE, parted by blanks, that are
			       memory which its lanes divide among them */

	/* ---- Main thread, after check(); NULL: as said ---- */

	/* Of a source: the processor that its lane of that index shall run on; NULL, or -1: any. */
	int (*processor)(struct weir_self *self, uint32_t lane);
	/* For `weir plan`: lines on what of this machine the node depends on, for free(), without
	 * opening anything that needs privileges; NULL: none. */
	char *(*describe)(struct weir_self *self);
	/* Of a source, after want() has returned NULL: how much of the program is done where, and
	 * what is not, such as "31 instructions; ...".  Stays valid until close(). */
	const char *(*pushed)(struct weir_self *self);

	/* 1.x appends here; what lies beyond `size` is NULL. */
};

/* How every plugin's constant begins: ABI and sizes. */
#define WEIR_HEAD                                                                                  \
	.abi = WEIR_ABI, .size = sizeof(struct weir_plugin),                                       \
	.packet_size = sizeof(struct weir_packet), .option_size = sizeof(struct weir_option),      \
	.output_size = sizeof(struct weir_output), .counter_size = sizeof(struct weir_counter)

extern WEIR_EXPORT const struct weir_plugin weir_plugin;

/*
 * ---- What core does for a plugin ----
 *
 * A call that cannot be right, since an output, outcome or counter is not in the table or the call
 * belongs into another callback, is not carried out: core says which plugin has that fault, the run
 * goes on, and its ledger does not close.  So it is with what callbacks return and set: verdicts,
 * numbers of packets (that ends the run), lanes (that refuses it).  Pointers are believed.
 */

/* Says why a callback of the main thread returns false, or poll() WEIR_FAILED.  option: the name of
 * the option at fault, so that the message can point at it, or NULL.  Several may be said. Any
 * thread. */
void weir_error(struct weir_self *self, const char *option, const char *format, ...)
	WEIR_PRINTF(3, 4);

/* To standard error, with the node's name, at most once a second for each format. Any thread. */
enum { WEIR_INFORM, WEIR_WARN };
void weir_log(struct weir_self *self, int level, const char *format, ...) WEIR_PRINTF(3, 4);

/* A line in the ledger file.  event: a short fixed word such as "file-closed". Any thread. */
void weir_event(struct weir_self *self, const char *event, const char *format, ...)
	WEIR_PRINTF(3, 4);

/* Interfaces.  add: the id of an interface of this node that equals it, else a new one; strings are
 * copied; UINT16_MAX if there are too many. Any thread.  weir_interface: NULL for an id that nobody
 * added. */
uint16_t weir_interface_add(struct weir_self *self, const struct weir_interface *interface);
const struct weir_interface *weir_interface(struct weir_self *self, uint16_t iface);
/* The ids that sources upstream of this node have declared so far; returns how many there are, of
 * which the first max are stored. */
unsigned weir_interfaces_upstream(struct weir_self *self, uint16_t *ret_ids, unsigned max);

/* emit, of transform() and tick(): copies the descriptor; may run everything downstream before it
 * returns. made, absorbed: packets that this node created, and that became part of a created one.
 */
void weir_emit(struct weir_self *self, unsigned output, const struct weir_packet *packet);
void weir_made(struct weir_self *self, uint64_t packets);
void weir_absorbed(struct weir_self *self, uint64_t packets);

/* What transform() or tick() leaves held: the time of the oldest packet, INT64_MAX if there is
 * none. Until that is said anew nobody behind this stage is told that nothing older follows; but a
 * lane that is stuck for a second does so, and what is emitted then may count as late. */
void weir_hold(struct weir_self *self, int64_t oldest_ns);

/* Memory that lives as long as the batch, aligned to 16.  writable: packet->data as memory that may
 * be changed, moved first if others see it. NULL: out of memory. Lane callbacks. */
uint8_t *weir_scratch(struct weir_self *self, size_t size);
uint8_t *weir_writable(struct weir_self *self, struct weir_packet *packet);

/* tick() shall be called once the lane's stream has reached that time; the earliest request holds,
 * and is forgotten when it is met. Lane callbacks. */
void weir_wake_at(struct weir_self *self, int64_t stream_ns);

/* The same by the clock, so long after the batch or the tick that runs, to a millisecond where the
 * lane is not busy.  Returns what now->mono_ns will be then at least.  Lane callbacks. */
int64_t weir_wake_in(struct weir_self *self, int64_t delay_ns);

/*
 * For a judge() that has no room.  Behind a live source returns false at once: give the packet its
 * outcome of loss.  Behind files waits for weir_notify() on this lane or timeout_ms, and returns
 * true: try again; false when the run is being abandoned.
 */
bool weir_wait(struct weir_self *self, int timeout_ms);
void weir_notify(struct weir_self *self); /* any thread */

/* The user has asked for the end a second time: whoever waits for peers, at close() too, gives up
 * what they have not taken. Any thread. */
bool weir_abandoned(const struct weir_self *self);

/* A sink wants no more, for good: its reader has gone, a limit is reached. Any thread. */
void weir_finish(struct weir_self *self);

/* Packets that judge() left WEIR_PENDING have this outcome.  bytes: captured. Any thread; once a
 * buffer, not once a packet. */
void weir_settle(struct weir_self *self, unsigned outcome, uint64_t packets, uint64_t bytes);

/* count adds to a counter, witness sets it. Any thread; lane is NULL: the node's own row. */
void weir_count(struct weir_self *self, unsigned counter, uint64_t n);
void weir_witness(struct weir_self *self, unsigned counter, uint64_t value);

/*
 * The pattern with strftime's letters and %{iface}, %{lane}, %{seq}, %{node} filled in; a string
 * for free(), NULL if the pattern is not one.  ts_ns: the time to print. local: in local time, else
 * UTC.
 */
char *weir_expand(struct weir_self *self, const char *pattern, int64_t ts_ns, bool local,
		  const char *iface, uint64_t seq);
/* Whether the pattern contains %{name}; "time" stands for any of strftime's letters. */
bool weir_pattern_has(const char *pattern, const char *name);

/* The text of the pipeline, and its SHA-256 in hexadecimal; both live as long as the run. */
const char *weir_pipeline(struct weir_self *self);
const char *weir_pipeline_sha256(struct weir_self *self);
/*
 * What packets of an interface have passed on their way to this node, as one filter in libpcap's
 * language; a string for free(), NULL: everything, or it cannot be said.  Stages are understood
 * whose main option is called `filter`, and is the only one given: output 0 is what it matches, 1
 * the rest.
 */
char *weir_filter_upstream(struct weir_self *self, uint16_t iface);

/* Packets of an interface as its source has counted them by now, in all lanes. UINT64_MAX: not
 * known, as where one source has several interfaces. */
struct weir_counted {
	uint64_t received; /* with those that were dropped */
	uint64_t dropped;  /* by the kernel, or by the source */
	uint64_t missed;   /* by the NIC */
};
void weir_interface_counted(struct weir_self *self, uint16_t iface, struct weir_counted *ret);

/* Values as option tables know them, for options of a mixed kind; false: not of this kind. */
bool weir_parse_size(const char *text, uint64_t *ret_bytes);
bool weir_parse_time(const char *text, int64_t *ret_ns);
bool weir_parse_rate(const char *text, struct weir_rate *ret);

#ifdef __cplusplus
}
#endif
#endif
