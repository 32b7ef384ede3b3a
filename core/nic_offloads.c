/* nic_offloads.c: offloads that make a capture differ from the wire. */
#include <weir/nic.h>

#include "ethtool.h"

#include <glib.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* When a feature matters. */
enum { ALWAYS, WHEN_SENT, WHEN_NOT_PROMISCUOUS };

/*
 * Features as the kernel calls them, and the word by which ethtool -K takes them.  Segmentation by
 * the kernel itself (gso) is done before a capture sees a packet, and a VLAN tag that the NIC took
 * off (rxvlan) is put back by the sources: neither changes anything.
 */
static const struct {
	const char *feature, *word;
	int when;
} offloads[] = {
	{"rx-gro", "gro", ALWAYS},
	{"rx-gro-hw", "rx-gro-hw", ALWAYS},
	{"rx-lro", "lro", ALWAYS},
	{"tx-tcp-segmentation", "tso", WHEN_SENT},
	{"tx-tcp6-segmentation", "tso", WHEN_SENT},
	{"tx-udp-segmentation", "tx-udp-segmentation", WHEN_SENT},
	{"rx-vlan-filter", "rx-vlan-filter", WHEN_NOT_PROMISCUOUS},
};

static bool is_loopback(const char *interface)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool loopback = false;

	g_strlcpy(request.ifr_name, interface, sizeof(request.ifr_name));
	if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0)
		loopback = request.ifr_flags & IFF_LOOPBACK;
	if (fd >= 0)
		close(fd);
	return loopback;
}

static struct ethtool_gfeatures *ask(const char *interface, uint32_t n)
{
	uint32_t blocks = (n + 31) / 32;
	struct ethtool_gfeatures *request = g_malloc0(sizeof(*request) +
						      blocks * sizeof(request->features[0]));

	request->cmd = ETHTOOL_GFEATURES;
	request->size = blocks;
	if (weir_ethtool_ask(interface, request) && request->size == blocks)
		return request;
	g_free(request);
	return NULL;
}

/* Names of the features that are on and could be off; g_ptr_array_unref(). */
static GPtrArray *switchable(const char *interface)
{
	uint32_t n = weir_ethtool_count(interface, ETH_SS_FEATURES);
	g_auto(GStrv) names = weir_ethtool_strings(interface, ETH_SS_FEATURES, n);
	g_autofree struct ethtool_gfeatures *state = ask(interface, n);
	GPtrArray *found = g_ptr_array_new_with_free_func(g_free);

	for (uint32_t i = 0; names && state && i < n; i++) {
		const struct ethtool_get_features_block *block = &state->features[i / 32];
		uint32_t bit = UINT32_C(1) << i % 32;

		if (block->active & block->available & ~block->never_changed & bit)
			g_ptr_array_add(found, g_strdup(names[i]));
	}
	return found;
}

static bool applies(int when, bool sent, bool promiscuous)
{
	return when == ALWAYS || (when == WHEN_SENT && sent) ||
	       (when == WHEN_NOT_PROMISCUOUS && !promiscuous);
}

/* The end of the command that switches off what is on and matters; g_free(). */
static char *words_of(const char *interface, bool sent, bool promiscuous)
{
	g_autoptr(GPtrArray) on = switchable(interface);
	GString *words = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(offloads); i++) {
		g_autofree char *word = g_strdup_printf(" %s off", offloads[i].word);

		if (applies(offloads[i].when, sent, promiscuous) &&
		    g_ptr_array_find_with_equal_func(on, offloads[i].feature, g_str_equal, NULL) &&
		    !strstr(words->str, word))
			g_string_append(words, word);
	}
	return g_string_free(words, FALSE);
}

void weir_nic_warn_offloads(struct weir_self *self, const char *const *interfaces, bool sent,
			    bool promiscuous)
{
	g_autoptr(GString) commands = g_string_new(NULL);

	for (; *interfaces; interfaces++) {
		g_autofree char *words = words_of(*interfaces, sent, promiscuous);

		if (*words && !is_loopback(*interfaces))
			g_string_append_printf(commands, "%s'ethtool -K %s%s'",
					       commands->len ? ", " : "", *interfaces, words);
	}
	if (commands->len)
		weir_log(self, WEIR_WARN,
			 "what is captured may differ from what is on the wire, by offloads; "
			 "to switch them off: %s",
			 commands->str);
}
