/*
 * bpf.c: lets through what a libpcap filter matches.
 *
 * The filter means what it means for a capture file: it sees the bytes of the wire, VLAN tags
 * included, wherever they come from.  Behind a tag `host 10.0.0.5` therefore matches nothing, as in
 * tcpdump -r; vlan=skip takes the tags off before the filter looks, and a hint says who may need
 * it.
 */
#include <weir/dissect.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fits.h"
#include "program.h"
#include "text.h"

_Static_assert(sizeof(struct weir_insn) == sizeof(struct bpf_insn) &&
		       offsetof(struct weir_insn, k) == offsetof(struct bpf_insn, k),
	       "core reads libpcap's programs as they are");

enum { VLAN_EXACT, VLAN_SKIP };
enum { MATCH, REST, UNFIT };
enum { MAX_PACKET = 262144 };

struct config {
	const char *filter, *filter_file;
	uint32_t vlan;
};

struct node {
	struct fits fits;
	atomic_bool hinted;
};

/* What an interface's packets are filtered with. */
struct known {
	const struct fit *fit;
	uint16_t iface;
};

enum { KNOWN = 64 }; /* interface ids that are equal modulo this take each other's place */

struct lane {
	struct known known[KNOWN];
	uint8_t *untagged; /* with vlan=skip: MAX_PACKET bytes */
	uint64_t seen, tagged_rest;
};

static const struct weir_option options[] = {
	{"filter", WEIR_STRING, offsetof(struct config, filter), "", NULL,
	 "A filter in the language of pcap-filter(7)."},
	{"filter-file", WEIR_INFILE, offsetof(struct config, filter_file), "", NULL,
	 "A file that holds the filter; # starts a comment."},
	{"vlan", WEIR_CHOICE, offsetof(struct config, vlan), "exact", "exact|skip",
	 "skip: the filter sees packets without their VLAN tags; exact: with them, and then `host` "
	 "and `port` do not look behind a tag."},
	{0},
};

static const struct weir_output outputs[] = {
	[MATCH] = {"match", WEIR_PASS, WEIR_PACKETS, "packets that the filter matches"},
	[REST] = {"rest", WEIR_DISCARD, WEIR_PACKETS, "packets that it does not match"},
	[UNFIT] = {"unfit", WEIR_LOSS, WEIR_PACKETS,
		   "packets of a link type for which it does not compile"},
	{0},
};

enum { TAGGED_REST };

static const struct weir_counter counters[] = {
	[TAGGED_REST] = {"tagged-rest", WEIR_INFO,
			 "packets with VLAN tags that went to rest, where the filter does not look "
			 "at tags"},
	{0},
};

/* ---- Setting up ---- */

static const char *option_at_fault(const struct weir_self *self)
{
	const struct config *config = self->config;
	return config->filter_file ? "filter-file" : "filter";
}

/* For free(); NULL after weir_error(). */
static char *filter_text(struct weir_self *self)
{
	const struct config *config = self->config;
	char why[PCAP_ERRBUF_SIZE] = "out of memory";

	char *text = config->filter_file ? text_read(config->filter_file, why, sizeof(why))
					 : strdup(config->filter);
	if (!text)
		weir_error(self, option_at_fault(self), "%s", why);
	return text;
}

static bool bpf_check(struct weir_self *self)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	char why[PCAP_ERRBUF_SIZE];

	if (config->filter && config->filter_file) {
		weir_error(self, "filter-file", "there is a filter already: give one of the two");
		return false;
	}
	if (!config->filter && !config->filter_file) {
		weir_error(self, NULL, "bpf needs a filter, such as bpf \"tcp port 80\"");
		return false;
	}
	char *text = filter_text(self);
	if (!text)
		return false;
	fits_init(&node->fits, text, config->vlan == VLAN_SKIP);
	if (program_makes_sense(text, why, sizeof(why)))
		return true;
	weir_error(self, option_at_fault(self), "libpcap says: %s", why);
	return false;
}

static bool compile_for(struct weir_self *self, uint16_t iface)
{
	struct node *node = self->node;
	const struct weir_interface *interface = weir_interface(self, iface);
	bool new;

	const struct fit *fit = fits_find(&node->fits, interface->linktype, &new);
	if (fit && fit->compiled)
		return true;
	if (!fit || new)
		weir_error(self, option_at_fault(self), "%s (link type %u): %s", interface->name,
			   interface->linktype, fit ? fit->why : "out of memory");
	return false;
}

static bool bpf_open(struct weir_self *self)
{
	unsigned n = weir_interfaces_upstream(self, NULL, 0);
	uint16_t *ids = calloc(n + 1, sizeof(*ids));
	if (!ids) {
		weir_error(self, NULL, "out of memory");
		return false;
	}
	weir_interfaces_upstream(self, ids, n);
	bool ok = true;
	for (unsigned i = 0; i < n; i++)
		ok &= compile_for(self, ids[i]);
	free(ids);
	return ok;
}

static bool bpf_lane_open(struct weir_self *self)
{
	const struct config *config = self->config;
	struct lane *lane = self->lane;

	if (config->vlan != VLAN_SKIP)
		return true;
	lane->untagged = malloc(MAX_PACKET);
	if (!lane->untagged)
		weir_error(self, NULL, "out of memory");
	return lane->untagged;
}

static bool bpf_reduce(struct weir_self *self, unsigned output, uint32_t linktype,
		       struct weir_reduction *ret)
{
	const struct config *config = self->config;
	struct node *node = self->node;
	bool new;

	const struct fit *fit = fits_find(&node->fits, linktype, &new);
	if (!fit || !fit->compiled)
		return false;
	if (output == UNFIT) {
		*ret = (struct weir_reduction){.max_bytes = 0};
		return true;
	}
	*ret = (struct weir_reduction){
		.filter = (const struct weir_insn *)fit->program.bf_insns,
		.filter_len = fit->program.bf_len,
		.negate = output == REST,
		.max_bytes = UINT32_MAX,
		.skip_vlan = config->vlan == VLAN_SKIP,
	};
	return true;
}

/* ---- The lane ---- */

/* NULL: an interface that nobody has declared, or out of memory. */
static const struct fit *look_up(struct weir_self *self, uint16_t iface)
{
	struct node *node = self->node;
	const struct weir_interface *interface = weir_interface(self, iface);
	bool new;

	if (!interface)
		return NULL;
	const struct fit *fit = fits_find(&node->fits, interface->linktype, &new);
	if (fit && new && !fit->compiled)
		weir_log(self, WEIR_WARN, "packets of link type %u (%s) go to `unfit`: %s",
			 interface->linktype, interface->name, fit->why);
	return fit;
}

static const struct fit *fit_of(struct weir_self *self, uint16_t iface)
{
	struct lane *lane = self->lane;
	struct known *known = &lane->known[iface % KNOWN];

	if (!known->fit || known->iface != iface)
		*known = (struct known){.fit = look_up(self, iface), .iface = iface};
	return known->fit;
}

static bool matches(const struct fit *fit, const uint8_t *data, uint32_t wirelen, uint32_t caplen)
{
	return bpf_filter(fit->program.bf_insns, data, wirelen, caplen);
}

/* All of the packet is copied, since a filter may look anywhere. */
static bool matches_without_tags(const struct fit *fit, const struct weir_packet *packet,
				 uint8_t *untagged)
{
	uint32_t at, size = weir_vlan_tags(packet, fit->linktype, &at);

	if (size == 0 || packet->caplen > MAX_PACKET)
		return matches(fit, packet->data, packet->wirelen, packet->caplen);
	uint32_t caplen = packet->caplen - size;
	memcpy(untagged, packet->data, at);
	memcpy(untagged + at, packet->data + at + size, caplen - at);
	return matches(fit, untagged, packet->wirelen - size, caplen);
}

static bool has_unseen_tags(const struct fit *fit, const struct weir_packet *packet)
{
	uint32_t at;
	return !fit->sees_tags && weir_vlan_tags(packet, fit->linktype, &at);
}

static uint8_t verdict_of(struct weir_self *self, const struct weir_packet *packet)
{
	struct lane *lane = self->lane;
	const struct fit *fit = fit_of(self, packet->iface);

	if (!fit || !fit->compiled)
		return UNFIT;
	if (lane->untagged)
		return matches_without_tags(fit, packet, lane->untagged) ? MATCH : REST;
	if (matches(fit, packet->data, packet->wirelen, packet->caplen))
		return MATCH;
	lane->tagged_rest += has_unseen_tags(fit, packet);
	return REST;
}

/* Once a run, if one in ten packets was missed in this way. */
static void hint(struct weir_self *self)
{
	struct node *node = self->node;
	const struct lane *lane = self->lane;

	if (!lane->tagged_rest || lane->tagged_rest * 10 < lane->seen ||
	    atomic_exchange(&node->hinted, true))
		return;
	weir_log(self, WEIR_INFORM,
		 "%llu of %llu packets have VLAN tags and went to `rest`, since the filter does "
		 "not look behind tags; vlan=skip does",
		 (unsigned long long)lane->tagged_rest, (unsigned long long)lane->seen);
	weir_event(self, "hint", "tagged packets went to rest: vlan=skip looks behind tags");
}

static void bpf_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	enum { ENOUGH = 1000 }; /* packets to judge a filter by before the end */
	struct lane *lane = self->lane;
	uint64_t tagged_before = lane->tagged_rest;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = verdict_of(self, &packets[i]);
	lane->seen += n;
	if (lane->tagged_rest == tagged_before)
		return;
	weir_count(self, TAGGED_REST, lane->tagged_rest - tagged_before);
	if (tagged_before < ENOUGH && lane->tagged_rest >= ENOUGH)
		hint(self);
}

static void bpf_lane_close(struct weir_self *self)
{
	struct lane *lane = self->lane;

	hint(self);
	free(lane->untagged);
}

static void bpf_close(struct weir_self *self)
{
	struct node *node = self->node;
	fits_clear(&node->fits);
}

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "bpf",
	.version = WEIR_VERSION,
	.summary = "lets through what a libpcap filter matches",
	.example = "tap -> bpf \"tcp port 443\" vlan=skip -> disk",
	.options = options,
	.outputs = outputs,
	.counters = counters,
	.config_size = sizeof(struct config),
	.node_size = sizeof(struct node),
	.lane_size = sizeof(struct lane),
	.check = bpf_check,
	.open = bpf_open,
	.reduce = bpf_reduce,
	.lane_open = bpf_lane_open,
	.judge = bpf_judge,
	.lane_close = bpf_lane_close,
	.close = bpf_close,
};
