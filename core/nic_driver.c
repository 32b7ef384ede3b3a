/* nic_driver.c: see nic_driver.h. */
#include "nic_driver.h"

#include "ethtool.h"

#include <glib.h>
#include <string.h>

/* ---- Names ---- */

static bool has_any(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(name, *words))
			return true;
	}
	return false;
}

enum weir_nic_group weir_nic_group_of(const char *name)
{
	/* Not received; not lost, since what a full ring has stopped for may still come; no
	 * packets; meant, by somebody's XDP program or filter. */
	static const char *const others[] = {"tx",    "no_buffer_count",
					     "bytes", "octets",
					     "pause", "cache",
					     "fcoe",  "ptp",
					     "tls",   "xdp",
					     "steer", "filter",
					     NULL};
	static const char *const missed[] = {"missed", "no_buf",  "nobuf",  "out_of_buf",
					     "no_dma", "no_desc", "nodesc", NULL};
	static const char *const overruns[] = {"fifo", "overrun", "overflow", "over_err", NULL};
	static const char *const dropped[] = {"drop", "discard", NULL};

	if (!strstr(name, "rx") || has_any(name, others))
		return WEIR_NIC_GROUP_NONE;
	if (has_any(name, missed))
		return WEIR_NIC_GROUP_MISSED;
	if (has_any(name, overruns))
		return WEIR_NIC_GROUP_OVERRUNS;
	return has_any(name, dropped) ? WEIR_NIC_GROUP_DROPPED : WEIR_NIC_GROUP_NONE;
}

bool weir_nic_name_is_numbered(const char *name)
{
	return strpbrk(name, "0123456789") != NULL;
}

/* ---- Values ---- */

static struct ethtool_stats *ask(const char *interface, uint32_t n)
{
	/* The kernel writes as many as there are by then, whatever the request has room for. */
	const uint32_t spare = 256;
	struct ethtool_stats *request = g_malloc0(sizeof(*request) +
						  ((size_t)n + spare) * sizeof(uint64_t));

	request->cmd = ETHTOOL_GSTATS;
	request->n_stats = n;
	if (weir_ethtool_ask(interface, request) && request->n_stats == n)
		return request;
	g_free(request);
	return NULL;
}

/* The values of one kind in a group: the sum of single queues, the largest of totals. */
static bool combine(const struct weir_nic_driver *driver, enum weir_nic_group group, bool numbered,
		    uint64_t *ret)
{
	bool any = false;

	*ret = 0;
	for (uint32_t i = 0; i < driver->n; i++) {
		const struct weir_nic_stat *stat = &driver->stats[i];

		if (stat->group != group || stat->numbered != numbered)
			continue;
		any = true;
		*ret = numbered ? *ret + stat->grown : MAX(*ret, stat->grown);
	}
	return any;
}

bool weir_nic_driver_growth(const struct weir_nic_driver *driver, enum weir_nic_group group,
			    uint64_t *ret)
{
	if (!combine(driver, group, false, ret) && !combine(driver, group, true, ret))
		return false;
	*ret += driver->before[group];
	return true;
}

/* A driver that was reconfigured, or an interface that is another one now, has other names. */
static void learn(struct weir_nic_driver *driver, const char *interface, uint32_t n)
{
	g_auto(GStrv) names = weir_ethtool_strings(interface, ETH_SS_STATS, n);
	g_autofree struct ethtool_stats *values = names ? ask(interface, n) : NULL;

	for (unsigned group = 0; group < WEIR_NIC_GROUPS; group++) {
		uint64_t grown;

		if (weir_nic_driver_growth(driver, group, &grown))
			driver->before[group] = grown;
	}
	g_free(driver->stats);
	driver->n = values ? n : 0;
	driver->stats = g_new0(struct weir_nic_stat, driver->n);
	for (uint32_t i = 0; i < driver->n; i++) {
		g_autofree char *name = g_ascii_strdown(names[i], -1);

		driver->stats[i] = (struct weir_nic_stat){
			.group = weir_nic_group_of(name),
			.numbered = weir_nic_name_is_numbered(name),
			.last = values->data[i],
		};
	}
}

void weir_nic_driver_read(struct weir_nic_driver *driver, const char *interface)
{
	uint32_t n = weir_ethtool_count(interface, ETH_SS_STATS);
	g_autofree struct ethtool_stats *values = NULL;

	/* Nothing while an interface is away. */
	if (n == 0)
		return;
	if (n != driver->n) {
		learn(driver, interface, n);
		return;
	}
	values = ask(interface, n);
	for (uint32_t i = 0; values && i < n; i++) {
		struct weir_nic_stat *stat = &driver->stats[i];

		stat->grown += weir_nic_growth(stat->last, values->data[i]);
		stat->last = values->data[i];
	}
}

void weir_nic_driver_clear(struct weir_nic_driver *driver)
{
	g_free(driver->stats);
	*driver = (struct weir_nic_driver){0};
}
