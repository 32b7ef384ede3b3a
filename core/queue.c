/* queue.c: rings, their merge, and the plugin that puts them between lanes. */
#include "queue.h"

#include <weir/dissect.h>

#include "lane.h"

#include <string.h>
#include <sys/mman.h>

#define ALIGN 16u

struct record {
	uint32_t size; /* of this record with its bytes; 0: the rest of the ring is unused, go on at
			  its start */
	uint32_t pad;
	int64_t key_ns; /* the latest time in this ring so far */
	struct weir_packet packet;
};

_Static_assert(sizeof(struct record) % ALIGN == 0, "packet bytes start aligned");

#define RECORD_MAX (sizeof(struct record) + 262144)
_Static_assert(WEIR_RING_MIN >= 2 * RECORD_MAX, "any record fits beside a gap");

/* Positions only grow; the place is position modulo bytes.  Each side keeps the other's last known
 * position. */
struct weir_ring {
	uint8_t *memory;
	uint64_t bytes;
	weir_ring_wake wake;
	void *producer, *consumer;

	__attribute__((aligned(64))) uint64_t head; /* producer's, published */
	int64_t mark_ns;                            /* published */
	bool done;                                  /* published */
	int64_t key_ns;
	uint64_t tail_seen;

	__attribute__((aligned(64))) uint64_t tail; /* consumer's, published */
	uint64_t read;                              /* handed out up to here */
	uint64_t head_seen;

	/* Exchanged to true before a side's last look, and to false after each change of the
	 * other's: the later of two exchanges sees all that came before the earlier, so no sleeper
	 * is missed. */
	__attribute__((aligned(64))) bool consumer_sleeps;
	bool producer_waits;
};

struct weir_ring *weir_ring_new(uint64_t bytes, weir_ring_wake wake, void *producer, void *consumer)
{
	struct weir_ring *ring = aligned_alloc(64, sizeof(*ring));

	g_assert(ring);
	*ring = (struct weir_ring){.bytes = bytes / ALIGN * ALIGN,
				   .wake = wake,
				   .producer = producer,
				   .consumer = consumer,
				   .mark_ns = INT64_MIN,
				   .key_ns = INT64_MIN};
	ring->memory = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring->memory == MAP_FAILED) {
		free(ring);
		return NULL;
	}
	return ring;
}

void weir_ring_free(struct weir_ring *ring)
{
	if (!ring)
		return;
	munmap(ring->memory, ring->bytes);
	free(ring);
}

unsigned weir_ring_records(const struct weir_ring *ring)
{
	return (unsigned)MIN(ring->bytes / RECORD_MAX - 1, UINT_MAX);
}

/* ---- Producer ---- */

static bool room(struct weir_ring *ring, uint64_t need)
{
	if (ring->head + need - ring->tail_seen <= ring->bytes)
		return true;
	ring->tail_seen = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	return ring->head + need - ring->tail_seen <= ring->bytes;
}

bool weir_ring_push(struct weir_ring *ring, const struct weir_packet *packet)
{
	uint64_t size = (sizeof(struct record) + packet->caplen + ALIGN - 1) / ALIGN * ALIGN;
	uint64_t place = ring->head % ring->bytes;
	uint64_t gap = place + size > ring->bytes ? ring->bytes - place : 0;
	struct record *record = (struct record *)(void *)(ring->memory + place);

	if (!room(ring, gap + size))
		return false;
	if (gap) {
		record->size = 0;
		record = (struct record *)(void *)ring->memory;
	}
	ring->key_ns = packet->ts_ns > ring->key_ns ? packet->ts_ns : ring->key_ns;
	record->size = (uint32_t)size;
	record->key_ns = ring->key_ns;
	record->packet = *packet;
	record->packet.data = (const uint8_t *)(record + 1);
	record->packet.verdict = 0;
	memcpy(record + 1, packet->data, packet->caplen);
	__atomic_store_n(&ring->head, ring->head + gap + size, __ATOMIC_RELEASE);
	return true;
}

void weir_ring_mark(struct weir_ring *ring, int64_t mark_ns, bool done)
{
	/* INT64_MAX is kept for the end: a packet can claim to be of that time. */
	mark_ns = MIN(mark_ns, INT64_MAX - 1);
	if (mark_ns > ring->mark_ns)
		__atomic_store_n(&ring->mark_ns, mark_ns, __ATOMIC_RELEASE);
	if (done)
		__atomic_store_n(&ring->done, true, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&ring->consumer_sleeps, false, __ATOMIC_ACQ_REL))
		ring->wake(ring->consumer);
}

int64_t weir_ring_key(const struct weir_ring *ring)
{
	return ring->key_ns;
}

void weir_ring_await_room(struct weir_ring *ring)
{
	(void)__atomic_exchange_n(&ring->producer_waits, true, __ATOMIC_ACQ_REL);
}

/* ---- Consumer ---- */

/* What a ring offers: its next record, or NULL and the key below which nothing will come. */
static const struct record *peek(struct weir_ring *ring, int64_t *ret_bound_ns)
{
	/* The mark before the head: if the ring is then found empty, all that the mark covers has
	 * been seen. */
	bool done = __atomic_load_n(&ring->done, __ATOMIC_ACQUIRE);
	int64_t mark_ns = __atomic_load_n(&ring->mark_ns, __ATOMIC_ACQUIRE);
	const struct record *record;

	if (ring->read == ring->head_seen)
		ring->head_seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	if (ring->read == ring->head_seen) {
		*ret_bound_ns = done ? INT64_MAX : mark_ns;
		return NULL;
	}
	record = (const struct record *)(void *)(ring->memory + ring->read % ring->bytes);
	if (record->size == 0) {
		ring->read += ring->bytes - ring->read % ring->bytes;
		record = (const struct record *)(void *)ring->memory;
	}
	*ret_bound_ns = record->key_ns;
	return record;
}

static void give_back(struct weir_ring *ring)
{
	if (ring->tail == ring->read)
		return;
	__atomic_store_n(&ring->tail, ring->read, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&ring->producer_waits, false, __ATOMIC_ACQ_REL))
		ring->wake(ring->producer);
}

/* Whether the window for silent rings has passed since the merge began to wait for them. */
static bool waited_enough(struct weir_merge *merge, int64_t now_ns)
{
	if (!merge->waiting_since_ns)
		merge->waiting_since_ns = now_ns;
	return now_ns - merge->waiting_since_ns >= merge->window_ns;
}

/* The ring whose record is next; NULL: none may be taken.  *ret_bound_ns: nothing older will come.
 */
static struct weir_ring *choose(struct weir_merge *merge, int64_t now_ns,
				const struct record **ret_record, int64_t *ret_bound_ns)
{
	struct weir_ring *chosen = NULL;
	int64_t best_ns = INT64_MAX, silent_ns = INT64_MAX;

	for (unsigned i = 0; i < merge->n; i++) {
		int64_t bound_ns;
		const struct record *record = peek(merge->rings[i], &bound_ns);

		if (!record) {
			silent_ns = MIN(silent_ns, bound_ns);
		} else if (!chosen || bound_ns < best_ns) {
			chosen = merge->rings[i];
			best_ns = bound_ns;
			*ret_record = record;
		}
	}
	*ret_bound_ns = MIN(best_ns, silent_ns);
	if (chosen && best_ns > silent_ns && !waited_enough(merge, now_ns))
		return NULL;
	return chosen;
}

void weir_merge_init(struct weir_merge *merge, unsigned n, int64_t window_ns)
{
	*merge = (struct weir_merge){.rings = g_new0(struct weir_ring *, n),
				     .window_ns = window_ns,
				     .last_key_ns = INT64_MIN};
}

int weir_merge_take(struct weir_merge *merge, struct weir_packet *packets, unsigned max,
		    int64_t now_ns, int64_t *ret_mark_ns)
{
	const struct record *record = NULL;
	struct weir_ring *ring;
	int64_t bound_ns;
	unsigned n = 0;

	for (unsigned i = 0; i < merge->n; i++)
		give_back(merge->rings[i]);
	while ((ring = choose(merge, now_ns, &record, &bound_ns)) && n < max) {
		if (record->key_ns < merge->last_key_ns)
			merge->late++;
		merge->last_key_ns = MAX(merge->last_key_ns, record->key_ns);
		if (bound_ns == record->key_ns)
			merge->waiting_since_ns = 0;
		packets[n++] = record->packet;
		ring->read += record->size;
	}
	*ret_mark_ns = bound_ns;
	return n == 0 && !ring && bound_ns == INT64_MAX ? WEIR_END : (int)n;
}

void weir_merge_await(struct weir_merge *merge)
{
	for (unsigned i = 0; i < merge->n; i++)
		(void)__atomic_exchange_n(&merge->rings[i]->consumer_sleeps, true,
					  __ATOMIC_ACQ_REL);
}

/* ---- The plugin ---- */

bool weir_queue_waits(struct weir_self *self)
{
	const struct weir_queue_config *config = self->config;

	if (config->on_full == WEIR_ON_FULL_AUTO)
		return weir_lane_domain(weir_seat_of(self)->lane)->waits;
	return config->on_full == WEIR_ON_FULL_BLOCK;
}

/* False: there is no room, and no use in waiting for it. */
static bool push(struct weir_self *self, struct weir_ring *ring, const struct weir_packet *packet)
{
	if (packet->caplen > RECORD_MAX - sizeof(struct record))
		return false;
	while (!weir_ring_push(ring, packet)) {
		weir_ring_await_room(ring);
		if (weir_ring_push(ring, packet))
			return true;
		if (!weir_queue_waits(self) || !weir_lane_wait(weir_seat_of(self)->lane, 100))
			return false;
	}
	return true;
}

static void queue_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	struct weir_queue_seat *seat = self->lane;
	struct weir_lane *lane = weir_seat_of(self)->lane;

	for (unsigned i = 0; i < n; i++) {
		unsigned to = 0;

		if (seat->n_out > 1)
			to = weir_lane_flow(lane, &packets[i]) % seat->n_out;
		/* `out` is counted where packets leave: in the consuming lane. */
		packets[i].verdict = push(self, seat->out[to], &packets[i]) ? WEIR_PENDING
									    : WEIR_QUEUE_FULL;
	}
}

static int queue_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
		      int timeout_ms, int64_t *ret_mark_ns)
{
	struct weir_queue_seat *seat = self->lane;
	struct weir_lane *lane = weir_seat_of(self)->lane;
	uint64_t late = seat->merge.late;
	int n = weir_merge_take(&seat->merge, packets, max, weir_lane_now(lane), ret_mark_ns);

	if (n == 0 && timeout_ms > 0) {
		weir_merge_await(&seat->merge);
		n = weir_merge_take(&seat->merge, packets, max, weir_lane_now(lane), ret_mark_ns);
		if (n == 0) {
			weir_lane_sleep(lane, timeout_ms);
			n = weir_merge_take(&seat->merge, packets, max, weir_lane_clock(lane),
					    ret_mark_ns);
		}
	}
	if (seat->merge.late != late)
		weir_count(self, 0, seat->merge.late - late);
	return n;
}

static void queue_lane_close(struct weir_self *self)
{
	struct weir_queue_seat *seat = self->lane;

	for (unsigned i = 0; i < seat->merge.n; i++)
		weir_ring_free(seat->merge.rings[i]);
	g_free(seat->merge.rings);
	g_free(seat->out);
}

static const struct weir_option options[] = {
	{"size", WEIR_SIZE, offsetof(struct weir_queue_config, size), "64MiB", "640KiB..1TiB",
	 "Memory for all of its rings together, divided among producing and consuming lanes."},
	{"lanes", WEIR_NUMBER, offsetof(struct weir_queue_config, lanes), "1", "1..256",
	 "Lanes behind it; packets are spread by symmetric flow hash, so that a flow stays "
	 "together."},
	{"on-full", WEIR_CHOICE, offsetof(struct weir_queue_config, on_full), "auto",
	 "auto|drop|block",
	 "What a full queue does: auto drops behind live sources and waits behind files."},
	{"window", WEIR_TIME, offsetof(struct weir_queue_config, window_ns), "1s", "0s..1h",
	 "How long to wait for packets of a silent live lane, to deliver in order of time."},
	{0},
};

static const struct weir_output outputs[] = {
	[WEIR_QUEUE_OUT] = {"out", WEIR_PASS, WEIR_PACKETS, "packets, in order of time"},
	[WEIR_QUEUE_FULL] = {"full", WEIR_LOSS, WEIR_PACKETS,
			     "packets for which there was no room"},
	[WEIR_QUEUE_ABANDONED] = {"abandoned", WEIR_LOSS, WEIR_PACKETS,
				  "packets that a second signal left in it"},
	{0},
};

static const struct weir_counter counters[] = {
	{"late", WEIR_INFO,
	 "packets delivered after younger ones: their lane was silent for a window, or stuck"},
	{0},
};

const struct weir_plugin weir_queue_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "queue",
	.version = WEIR_VERSION,
	.summary =
		"hands packets over to lanes of their own, so that a slow branch stalls no other",
	.example = "tap -> queue 256MiB lanes=4 -> zmq tcp://127.0.0.1:5555",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct weir_queue_config),
	.lane_size = sizeof(struct weir_queue_seat),
	.flags = WEIR_MEMORY_WRITABLE,
	.poll = queue_poll,
	.judge = queue_judge,
	.lane_close = queue_lane_close,
	.memory = "size",
};
