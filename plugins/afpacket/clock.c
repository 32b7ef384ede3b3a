/*
 * clock.c: see clock.h.
 */
#include "clock.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>

static int ask(int fd, unsigned long what, const char *interface, void *data)
{
	struct ifreq request = {.ifr_data = data};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	return ioctl(fd, what, &request) ? -errno : 0;
}

static bool stamps_all(int fd, const char *interface)
{
	struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
	const unsigned needed = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;

	return ask(fd, SIOCETHTOOL, interface, &info) == 0 &&
	       (info.so_timestamping & needed) == needed &&
	       info.rx_filters & 1u << HWTSTAMP_FILTER_ALL;
}

int clock_switch_on(int fd, const char *interface)
{
	struct hwtstamp_config config = {0};

	if (!stamps_all(fd, interface))
		return -EOPNOTSUPP;
	if (ask(fd, SIOCGHWTSTAMP, interface, &config) == 0 &&
	    config.rx_filter == HWTSTAMP_FILTER_ALL)
		return 0;
	/* What it stamps of packets that are sent is not ours to change. */
	config.rx_filter = HWTSTAMP_FILTER_ALL;
	int failure = ask(fd, SIOCSHWTSTAMP, interface, &config);
	if (!failure && config.rx_filter != HWTSTAMP_FILTER_ALL)
		failure = -EOPNOTSUPP;
	return failure;
}
