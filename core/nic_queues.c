/* nic_queues.c: the receive queues of an interface, and whether both directions of a flow meet in
 * one. */
#include <weir/nic.h>

#include "ethtool.h"
#include "nic_queues.h"

#include <glib.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

/* RXH_XFRM_*, since Linux 6.8: the byte after hfunc in struct ethtool_rxfh. */
enum { XFRM_SYMMETRIC_XOR = 1, XFRM_SYMMETRIC_OR_XOR = 2 };

bool weir_nic_key_is_symmetric(const uint8_t *key, uint32_t size)
{
	for (uint32_t i = 2; i < size; i++) {
		if (key[i] != key[i - 2])
			return false;
	}
	return size > 1;
}

static bool has_function(const char *interface, const struct ethtool_rxfh *rss,
			 const char *function)
{
	uint32_t n = weir_ethtool_count(interface, ETH_SS_RSS_HASH_FUNCS);
	g_auto(GStrv) names = weir_ethtool_strings(interface, ETH_SS_RSS_HASH_FUNCS, n);

	for (uint32_t i = 0; names && i < MIN(n, 8u); i++) {
		if (rss->hfunc >> i & 1 && strcmp(names[i], function) == 0)
			return true;
	}
	return false;
}

/* Its settings with the key; NULL: the driver does not tell; g_free(). */
static struct ethtool_rxfh *ask_rss(const char *interface)
{
	struct ethtool_rxfh sizes = {.cmd = ETHTOOL_GRSSH};
	struct ethtool_rxfh *rss;

	if (!weir_ethtool_ask(interface, &sizes))
		return NULL;
	rss = g_malloc0(sizeof(*rss) + sizes.indir_size * sizeof(uint32_t) + sizes.key_size);
	rss->cmd = ETHTOOL_GRSSH;
	rss->indir_size = sizes.indir_size;
	rss->key_size = sizes.key_size;
	if (weir_ethtool_ask(interface, rss))
		return rss;
	g_free(rss);
	return NULL;
}

static bool hashes_ports(const char *interface, uint32_t flow_type)
{
	struct ethtool_rxnfc request = {.cmd = ETHTOOL_GRXFH, .flow_type = flow_type};

	return weir_ethtool_ask(interface, &request) && request.data & RXH_L4_B_0_1;
}

static bool is_symmetric(const char *interface, const struct ethtool_rxfh *rss)
{
	const uint8_t *key = (const uint8_t *)(rss->rss_config + rss->indir_size);

	return has_function(interface, rss, "xor") ||
	       rss->rsvd8[0] & (XFRM_SYMMETRIC_XOR | XFRM_SYMMETRIC_OR_XOR) ||
	       weir_nic_key_is_symmetric(key, rss->key_size);
}

static void add_rss(GString *to, const char *interface)
{
	g_autofree struct ethtool_rxfh *rss = ask_rss(interface);

	if (!rss) {
		g_string_append(to, "; the driver does not tell how it spreads flows over them");
		return;
	}
	g_string_append_printf(
		to, "; RSS by addresses%s, %s",
		hashes_ports(interface, TCP_V4_FLOW) ? hashes_ports(interface, UDP_V4_FLOW)
							       ? " and ports"
							       : " and, of TCP, ports"
						     : "",
		is_symmetric(interface, rss)
			? "symmetric: both directions of a flow come to one queue"
			: "not symmetric: the directions of a flow come to different "
			  "queues");
}

static unsigned count_queues(const char *interface)
{
	g_autofree char *path = g_strdup_printf("/sys/class/net/%s/queues", interface);
	struct ethtool_rxnfc rings = {.cmd = ETHTOOL_GRXRINGS};
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	g_autoptr(GDir) folder = NULL;
	const char *name;
	unsigned n = 0;

	if (weir_ethtool_ask(interface, &rings))
		return (unsigned)rings.data;
	if (weir_ethtool_ask(interface, &channels))
		return channels.rx_count + channels.combined_count;
	folder = g_dir_open(path, 0, NULL);
	while (folder && (name = g_dir_read_name(folder)))
		n += g_str_has_prefix(name, "rx-") ? 1 : 0;
	return n;
}

char *weir_nic_queues(const char *interface)
{
	GString *text;
	unsigned n;

	if (!if_nametoindex(interface))
		return NULL;
	n = count_queues(interface);
	text = g_string_new(NULL);
	if (n)
		g_string_printf(text, "%u receive queue%s", n, n == 1 ? "" : "s");
	else
		g_string_assign(text, "an unknown number of receive queues");
	if (n > 1)
		add_rss(text, interface);
	return g_string_free(text, FALSE);
}
