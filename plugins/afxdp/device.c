/*
 * device.c: see device.h.
 */
#include "device.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool ask(int fd, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static void ask_queues(int fd, const char *name, struct device *device)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (!ask(fd, name, &channels))
		return;
	device->queues = channels.rx_count + channels.combined_count;
	device->queues_max = channels.max_rx + channels.max_combined;
	if (device->queues == 0)
		device->queues = 1;
	if (device->queues_max < device->queues)
		device->queues_max = device->queues;
}

static void ask_mtu(int fd, const char *name, struct device *device)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFMTU, &request) == 0)
		device->mtu = (unsigned)request.ifr_mtu;
}

static void ask_tags(int fd, const char *name, struct device *device)
{
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};

	if (ask(fd, name, &driver) && strcmp(driver.driver, "veth") == 0)
		device->tags = DEVICE_PEER_STRIPS;
	else if (ask(fd, name, &flags) && flags.data & ETH_FLAG_RXVLAN)
		device->tags = DEVICE_STRIPS_TAGS;
}

struct device device_ask(const char *name)
{
	struct device device = {.queues = 1, .queues_max = 1};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return device;
	ask_queues(fd, name, &device);
	ask_mtu(fd, name, &device);
	ask_tags(fd, name, &device);
	close(fd);
	return device;
}
