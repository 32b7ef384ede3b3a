/*
 * pcap-over-ip-source.c: reads the capture stream that a TCP port serves, and connects again when
 * that has ended.
 *
 * Each connection brings a capture file of its own, pcap or pcapng.  Packets are handed out as they
 * lie in the buffer, which is read into again at the next call of poll().
 */
#include "connection.h"

#include <weir/capfile.h>

#include <stdlib.h>

#define BUFFER_BYTES (1u << 20)
#define STOP_READS   64u /* that may still be made while stopping: what has arrived is taken */

/* In the order of the table of counters. */
enum counter {
	BYTES_READ,
	HEADER_BYTES,
	RECORD_BYTES,
	SKIPPED_BYTES,
	LEFT_BYTES,
	CONNECTIONS,
	BAD_STREAMS,
	PACKETS_SKIPPED,
};

struct config {
	const char *endpoint;
	int64_t retry_ns;
	bool until_end, insecure;
};

struct lane {
	struct connection connection;
	struct weir_reader *reader; /* of this connection; NULL: none */
	uint8_t *bytes;
	size_t size, at, end;             /* at..end is not parsed yet */
	struct weir_reader_totals totals; /* of the connections before */
	uint64_t bytes_read, left_bytes;
	bool has_said; /* why it cannot connect */
	bool stopping, is_over;
	unsigned reads_left; /* while stopping */
};

/* ---- The reader ---- */

static uint16_t declare(void *user, const struct weir_interface *interface)
{
	struct weir_self *self = user;
	struct weir_interface named = *interface;

	if (!*named.name)
		named.name = ((const struct config *)self->config)->endpoint;
	return weir_interface_add(self, &named);
}

static void warn(void *user, uint64_t offset, const char *message)
{
	weir_log(user, WEIR_WARN, "at byte %llu of the stream: %s", (unsigned long long)offset,
		 message);
}

static void add_totals(struct weir_reader_totals *sum, const struct weir_reader_totals *more)
{
	sum->header_bytes += more->header_bytes;
	sum->record_bytes += more->record_bytes;
	sum->skipped_bytes += more->skipped_bytes;
	sum->skipped_packets += more->skipped_packets;
}

/* The stream is over; what is left of it is no whole record. */
static void end_stream(struct weir_self *self, const char *why)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	connection_close(&lane->connection);
	if (!lane->reader)
		return;
	weir_log(self, WEIR_INFORM, "the stream from %s ended: %s", config->endpoint, why);
	weir_event(self, "publisher-went", "%s: %s", config->endpoint, why);
	add_totals(&lane->totals, weir_reader_totals(lane->reader));
	weir_reader_free(lane->reader);
	lane->reader = NULL;
	lane->left_bytes += lane->end - lane->at;
	lane->at = lane->end = 0;
	lane->is_over = config->until_end;
}

static bool begin_stream(struct weir_self *self)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	lane->reader = weir_reader_new(declare, warn, self);
	if (!lane->reader) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	lane->has_said = false;
	weir_count(self, CONNECTIONS, 1);
	weir_log(self, WEIR_INFORM, "connected to %s", config->endpoint);
	weir_event(self, "publisher-came", "%s", config->endpoint);
	return true;
}

/* ---- The buffer ---- */

/* Room for `need` bytes from what is not parsed yet, and at least some behind it. */
static bool make_room(struct lane *lane, size_t need)
{
	size_t left = lane->end - lane->at;

	if (left > 0 && lane->at > 0)
		memmove(lane->bytes, lane->bytes + lane->at, left);
	lane->at = 0;
	lane->end = left;
	if (need < lane->size)
		return true;
	uint8_t *grown = realloc(lane->bytes, 2 * need);
	if (!grown)
		return false;
	lane->bytes = grown;
	lane->size = 2 * need;
	return true;
}

/* The packets of what has been read; *ret_need: bytes that the next one needs. */
static unsigned parse(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      size_t *ret_need)
{
	struct lane *lane = self->lane;
	unsigned n;
	size_t used;
	enum weir_reader_status status = weir_reader_read(lane->reader, lane->bytes + lane->at,
							  lane->end - lane->at, packets, max, &n,
							  &used, ret_need);
	lane->at += used;
	if (status == WEIR_READER_BAD && n == 0) {
		weir_log(self, WEIR_WARN, "the stream is no capture any more: %s",
			 weir_reader_error(lane->reader));
		weir_count(self, BAD_STREAMS, 1);
		end_stream(self, "it cannot be read");
	}
	return n;
}

/* False: nothing new. */
static bool refill(struct weir_self *self)
{
	struct lane *lane = self->lane;
	ssize_t n = connection_read(&lane->connection, lane->bytes + lane->end,
				    lane->size - lane->end);

	if (n > 0) {
		lane->end += (size_t)n;
		lane->bytes_read += (uint64_t)n;
	} else if (n == 0) {
		end_stream(self, "the other side closed it");
	} else if (n < -1) {
		end_stream(self, lane->connection.why);
	}
	return n > 0;
}

/* ---- Callbacks ---- */

static bool source_check(struct weir_self *self)
{
	const struct config *config = self->config;

	return tcp_endpoint_check(self, config->endpoint, config->insecure);
}

static bool source_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	lane->connection.fd = -1;
	lane->connection.retry_ns = config->retry_ns;
	tcp_endpoint_parse(config->endpoint, &lane->connection.endpoint);
	lane->bytes = malloc(BUFFER_BYTES);
	lane->size = BUFFER_BYTES;
	if (!lane->bytes)
		weir_error(self, NULL, "out of memory");
	return lane->bytes != NULL;
}

/* 1: there is something to read; 0: not now; WEIR_FAILED. */
static int wait_for_bytes(struct weir_self *self, int timeout_ms)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;
	bool came;
	bool is_ready = connection_wait(&lane->connection, timeout_ms, &came);

	if (came && !begin_stream(self))
		return WEIR_FAILED;
	if (lane->connection.fd < 0 && !lane->has_said && *lane->connection.why) {
		lane->has_said = true;
		weir_log(self, WEIR_WARN, "cannot connect to %s: %s; trying again",
			 config->endpoint, lane->connection.why);
	}
	return is_ready;
}

static bool may_read(struct lane *lane)
{
	if (!lane->stopping)
		return true;
	if (!lane->connection.is_up || lane->reads_left == 0)
		return false;
	lane->reads_left--;
	return true;
}

static int source_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		       int timeout_ms, int64_t *ret_mark_ns)
{
	struct lane *lane = self->lane;
	size_t need = 0;
	unsigned n = lane->reader ? parse(self, packets, max, &need) : 0;

	if (n == 0 && !lane->is_over) {
		int ready = may_read(lane) ? wait_for_bytes(self, timeout_ms) : WEIR_END;
		if (ready < 0)
			return ready;
		if (!make_room(lane, need)) {
			weir_error(self, NULL, "out of memory");
			return WEIR_FAILED;
		}
		if (ready && refill(self))
			n = parse(self, packets, max, &need);
		else if (lane->stopping)
			return WEIR_END;
	}
	if (n > 0)
		*ret_mark_ns = packets[n - 1].ts_ns;
	return n == 0 && lane->is_over ? WEIR_END : (int)n;
}

static void source_stop(struct weir_self *self)
{
	struct lane *lane = self->lane;

	lane->stopping = true;
	lane->reads_left = STOP_READS;
}

static void source_witness(struct weir_self *self)
{
	const struct lane *lane = self->lane;
	struct weir_reader_totals totals = lane->totals;

	if (lane->reader)
		add_totals(&totals, weir_reader_totals(lane->reader));
	weir_witness(self, BYTES_READ, lane->bytes_read);
	weir_witness(self, HEADER_BYTES, totals.header_bytes);
	weir_witness(self, RECORD_BYTES, totals.record_bytes);
	weir_witness(self, SKIPPED_BYTES, totals.skipped_bytes);
	weir_witness(self, LEFT_BYTES, lane->left_bytes + (lane->end - lane->at));
	weir_witness(self, PACKETS_SKIPPED, totals.skipped_packets);
}

static void source_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	connection_close(&lane->connection);
	weir_reader_free(lane->reader);
	free(lane->bytes);
}

/* ---- Tables ---- */

static const struct weir_option options[] = {
	{"endpoint", WEIR_STRING, offsetof(struct config, endpoint), NULL, NULL,
	 "HOST:PORT to connect to, as 127.0.0.1:57012."},
	{"retry", WEIR_TIME, offsetof(struct config, retry_ns), "1s", "10ms..1h",
	 "How long to wait before connecting again."},
	{"until-end", WEIR_BOOL, offsetof(struct config, until_end), "no", NULL,
	 "End with the first stream, instead of connecting again."},
	{"insecure", WEIR_BOOL, offsetof(struct config, insecure), "no", NULL,
	 "Connect to another machine, though nothing is encrypted or authenticated: 'ssh -L' or "
	 "stunnel to a loopback address is better."},
	{0},
};

static const struct weir_output outputs[] = {
	{"out", WEIR_DISCARD, WEIR_PACKETS, "all packets"},
	{0},
};

static const struct weir_counter counters[] = {
	[BYTES_READ] = {"bytes-read", WEIR_PLUS_BYTES, "what came over TCP"},
	[HEADER_BYTES] = {"header-bytes", WEIR_MINUS_BYTES, "file headers, interface blocks"},
	[RECORD_BYTES] = {"record-bytes", WEIR_MINUS_BYTES, "packets with their headers"},
	[SKIPPED_BYTES] = {"skipped-bytes", WEIR_MINUS_BYTES,
			   "blocks without packets, and packets that were skipped"},
	[LEFT_BYTES] = {"left-bytes", WEIR_MINUS_BYTES,
			"within a record, or unreadable, when a stream ended"},
	[CONNECTIONS] = {"connections", WEIR_INFO, "streams begun"},
	[BAD_STREAMS] = {"bad-streams", WEIR_INFO, "streams given up that are no capture"},
	[PACKETS_SKIPPED] = {"packets-skipped", WEIR_INFO | WEIR_IS_LOSS,
			     "packets whose interface's clock cannot be read"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_SOURCE,
	.lanes_kind = WEIR_LANES_ONE,
	.flags = WEIR_LIVE | WEIR_MEMORY_WRITABLE,
	.name = "pcap-over-ip-source",
	.version = WEIR_VERSION,
	.summary = "reads the capture stream that a TCP port serves (pcap-over-IP)",
	.example = "pcap-over-ip-source 127.0.0.1:57012 -> pcap copy.pcap",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.lane_size = sizeof(struct lane),
	.check = source_check,
	.lane_open = source_lane_open,
	.poll = source_poll,
	.stop = source_stop,
	.witness = source_witness,
	.lane_close = source_lane_close,
};
