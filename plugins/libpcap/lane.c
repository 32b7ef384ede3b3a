/*
 * lane.c: the lane of the libpcap source as it runs.
 *
 * libpcap gives a block back to the kernel as soon as the last packet of it was handed over, so
 * packets are copied: the price of this source.
 */
#include "libpcap.h"

#include <weir/capfile.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S      1000000000LL
#define NS_PER_MS     1000000LL
#define FIRST_BYTES   (1u << 20)
#define NAP_MS        10 /* between looks where there is nothing to wait on */
#define DRAIN_NS      (300 * NS_PER_MS)
#define STEP_BACK_NS  50000
#define LINKTYPE_SLL  113u
#define LINKTYPE_SLL2 276u
#define SLL2_TYPE_AT  10u
#define SLL_TYPE_AT   1u
#define SLL_IS_OUT    4u

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---- Packets ---- */

/* What pcap_dispatch() is filling. */
struct taker {
	struct libpcap_lane *lane;
	struct handle *handle;
	struct weir_packet *packets;
	uint16_t iface;
	unsigned n;
	size_t at[WEIR_BATCH]; /* of the bytes, which may move meanwhile */
	size_t used;
	bool out_of_memory;
};

static bool reserve(struct libpcap_lane *lane, size_t need)
{
	size_t size = lane->size ? lane->size : FIRST_BYTES;

	while (size < need)
		size *= 2;
	if (size == lane->size)
		return true;
	uint8_t *grown = realloc(lane->bytes, size);
	if (!grown)
		return false;
	lane->bytes = grown;
	lane->size = size;
	return true;
}

/* Only the header that libpcap makes itself tells. */
static uint16_t flags_of(uint32_t linktype, const uint8_t *bytes, uint32_t caplen)
{
	size_t at = linktype == LINKTYPE_SLL2 ? SLL2_TYPE_AT : SLL_TYPE_AT;

	if ((linktype != LINKTYPE_SLL && linktype != LINKTYPE_SLL2) || caplen <= at)
		return 0;
	return bytes[at] == SLL_IS_OUT ? WEIR_F_OUT : WEIR_F_IN;
}

static bool is_early(struct handle *handle, int64_t ts_ns)
{
	if (handle->early == 0)
		return false;
	handle->early = ts_ns < handle->start_ns ? handle->early - 1 : 0;
	return ts_ns < handle->start_ns;
}

static void take(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
	struct taker *taker = (struct taker *)(void *)user;
	const struct handle *handle = taker->handle;
	int64_t ts_ns = header->ts.tv_sec * NS_PER_S + header->ts.tv_usec * handle->fraction_ns;
	uint32_t caplen = header->caplen < WEIR_MAX_CAPLEN ? header->caplen : WEIR_MAX_CAPLEN;

	if (is_early(taker->handle, ts_ns))
		return;
	if (!reserve(taker->lane, taker->used + caplen)) {
		taker->out_of_memory = true;
		return;
	}
	memcpy(taker->lane->bytes + taker->used, bytes, caplen);
	taker->packets[taker->n] = (struct weir_packet){
		.ts_ns = ts_ns,
		.caplen = caplen,
		.wirelen = header->len > caplen ? header->len : caplen,
		.iface = taker->iface,
		.queue = UINT16_MAX,
		.flags = flags_of(handle->linktype, bytes, caplen),
	};
	taker->lane->cut += caplen < header->len;
	taker->at[taker->n++] = taker->used;
	taker->used += caplen;
}

/* The packets that are there: how many, or WEIR_FAILED after weir_error(); *ret_status is what
 * pcap_dispatch() returned. */
static int read_packets(struct weir_self *self, struct weir_packet *packets, unsigned max,
			int *ret_status)
{
	struct libpcap_node *node = self->node;
	struct libpcap_lane *lane = self->lane;
	struct taker taker = {
		.lane = lane, .handle = &node->handle, .packets = packets, .iface = node->iface};

	/* libpcap looks for ENOBUFS in it without having failed. */
	errno = 0;
	*ret_status = pcap_dispatch(node->handle.pcap, (int)max, take, (u_char *)&taker);
	if (taker.out_of_memory) {
		weir_error(self, NULL, "out of memory");
		return WEIR_FAILED;
	}
	for (unsigned i = 0; i < taker.n; i++)
		packets[i].data = lane->bytes + taker.at[i];
	lane->taken += taker.n;
	return (int)taker.n;
}

/* ---- A link that goes and comes back ---- */

static void begin_draining(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_lane *lane = self->lane;

	lane->drain_until_ns = clock_ns(CLOCK_MONOTONIC) + 2 * config->retire_ns + DRAIN_NS;
}

static void note_state(struct weir_self *self, enum link_state state)
{
	const char *device = ((const struct libpcap_config *)self->config)->interface;
	struct libpcap_lane *lane = self->lane;

	if (state == lane->state)
		return;
	lane->state = state;
	if (state == LINK_UP)
		weir_log(self, WEIR_INFORM, "%s is up again", device);
	else if (state == LINK_DOWN)
		weir_log(self, WEIR_WARN, "%s went down; waiting for it to come up", device);
	else
		weir_log(self, WEIR_WARN, "%s was removed; waiting for one of that name", device);
	weir_event(self, state == LINK_UP ? "link-up" : "link-down", "%s", device);
}

static bool is_gone(const struct libpcap_config *config, const struct handle *handle)
{
	return handle->index > 0 && if_nametoindex(config->interface) != handle->index;
}

/* pcap_dispatch() has failed and handed over nothing: 0 if that is no reason to end the run. */
static int look_into_failure(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	struct libpcap_lane *lane = self->lane;
	int error = errno;

	if (lane->state == LINK_GONE || error == EAGAIN)
		return 0;
	if (!is_gone(config, &node->handle)) {
		weir_error(self, NULL, "interface=%s: %s", config->interface,
			   pcap_geterr(node->handle.pcap));
		return WEIR_FAILED;
	}
	note_state(self, LINK_GONE);
	handle_stop(&node->handle);
	begin_draining(self);
	return 0;
}

static void open_again(struct weir_self *self)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	struct libpcap_lane *lane = self->lane;
	struct handle *handle = &node->handle;
	struct refusal why = {0};

	if (lane->refused || !if_nametoindex(config->interface))
		return;
	if (handle_open(handle, self, &why) &&
	    handle_start(handle, config->direction, node->wanted, node->wanted_len) == 0) {
		node->iface = weir_interface_add(
			self, &(struct weir_interface){.name = config->interface,
						       .linktype = handle->linktype});
		note_state(self, LINK_UP);
		return;
	}
	handle_close(handle);
	lane->refused = why.is_final;
	if (why.is_final)
		weir_log(self, WEIR_WARN, "cannot be opened again: %s", why.text);
}

/* ---- Callbacks ---- */

/* Waits until there may be something to read; false: there is not. */
static bool wait_for_packets(const struct libpcap_lane *lane, const struct handle *handle,
			     int timeout_ms)
{
	struct pollfd ready = {.fd = handle->fd, .events = POLLIN};

	/* Until a block retires nothing says that there is something in it. */
	if (lane->drain_until_ns && timeout_ms == 0)
		timeout_ms = 1;
	if (handle->fd < 0 && timeout_ms > NAP_MS)
		timeout_ms = NAP_MS;
	/* A link that is down comes up without a word. */
	return poll(&ready, 1, timeout_ms) > 0 || handle->fd < 0 || lane->state != LINK_UP;
}

/* Nothing came, and nothing will. */
static bool is_drained(struct libpcap_lane *lane, struct handle *handle)
{
	if (!lane->drain_until_ns)
		return false;
	if (!handle->pcap)
		return true;
	handle_statistics(handle);
	if (handle->kind == HANDLE_PACKET && lane->taken >= handle->packets - handle->drops)
		return true;
	/* Of the others only nflog has more that it has not shown. */
	bool may_hold = handle->kind == HANDLE_PACKET || handle->kind == HANDLE_NETLINK;
	return !may_hold || clock_ns(CLOCK_MONOTONIC) > lane->drain_until_ns;
}

static int next_packets(struct weir_self *self, struct weir_packet *packets, unsigned max,
			int timeout_ms)
{
	struct libpcap_node *node = self->node;
	const struct libpcap_lane *lane = self->lane;
	struct handle *handle = &node->handle;
	int status;

	if (!wait_for_packets(lane, handle, timeout_ms) || !handle->pcap)
		return 0;
	int n = read_packets(self, packets, max, &status);
	if (status < 0 && n == 0)
		return look_into_failure(self);
	/* libpcap asks to be called often while it does not know what became of a link.  One that
	 * has another name now still delivers, until it is closed. */
	if (status >= 0 && handle->kind == HANDLE_PACKET && lane->state != LINK_GONE)
		note_state(self,
			   pcap_get_required_select_timeout(handle->pcap) ? LINK_DOWN : LINK_UP);
	return n;
}

int libpcap_poll(struct weir_self *self, struct weir_packet *packets, unsigned max, int timeout_ms,
		 int64_t *ret_mark_ns)
{
	const struct libpcap_config *config = self->config;
	struct libpcap_node *node = self->node;
	struct libpcap_lane *lane = self->lane;
	int64_t now_ns = clock_ns(CLOCK_REALTIME);
	int n = next_packets(self, packets, max, timeout_ms);

	if (n < 0)
		return n;
	if (n == 0 && is_drained(lane, &node->handle)) {
		if (lane->stopping)
			return WEIR_END;
		handle_close(&node->handle);
		lane->drain_until_ns = 0;
	}
	int64_t mark_ns = n > 0 ? packets[n - 1].ts_ns - STEP_BACK_NS
				: now_ns - 2 * config->retire_ns - NS_PER_MS;
	if (mark_ns > lane->mark_ns)
		lane->mark_ns = mark_ns;
	*ret_mark_ns = lane->mark_ns;
	return n;
}

void libpcap_stop(struct weir_self *self)
{
	struct libpcap_node *node = self->node;
	struct libpcap_lane *lane = self->lane;

	handle_stop(&node->handle);
	lane->stopping = true;
	begin_draining(self);
}

void libpcap_tick(struct weir_self *self, const struct weir_now *now, unsigned why)
{
	const struct libpcap_node *node = self->node;
	const struct libpcap_lane *lane = self->lane;

	(void)now;
	if (!node->handle.pcap && !lane->stopping && !(why & WEIR_TICK_END))
		open_again(self);
}

void libpcap_witness(struct weir_self *self)
{
	struct libpcap_node *node = self->node;
	const struct libpcap_lane *lane = self->lane;
	struct handle *handle = &node->handle;

	handle_statistics(handle);
	weir_witness(self, LIBPCAP_PACKETS, handle->packets);
	weir_witness(self, LIBPCAP_DROPS, handle->drops);
	weir_witness(self, LIBPCAP_UNWITNESSED, handle->kind == HANDLE_PACKET ? 0 : lane->taken);
	weir_witness(self, LIBPCAP_CUT, lane->cut);
	if (handle->index > 0)
		weir_witness(self, LIBPCAP_NIC, handle->nic);
}
