/*
 * link.c: see link.h.
 */
#include "link.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Link types whose frames a raw packet socket delivers as they are in files,
 * https://www.tcpdump.org/linktypes.html */
static const struct {
	unsigned short hardware;
	uint32_t linktype;
} linktypes[] = {
	{ARPHRD_ETHER, 1},   {ARPHRD_LOOPBACK, 1},    {ARPHRD_NONE, 101},
	{ARPHRD_RAWIP, 101}, {ARPHRD_TUNNEL, 101},    {ARPHRD_TUNNEL6, 101},
	{ARPHRD_SIT, 101},   {ARPHRD_IEEE80211, 105}, {ARPHRD_IEEE80211_RADIOTAP, 127},
};

static bool ask(int fd, unsigned long what, const char *name, struct ifreq *ret)
{
	*ret = (struct ifreq){0};
	snprintf(ret->ifr_name, sizeof(ret->ifr_name), "%s", name);
	return ioctl(fd, what, ret) == 0;
}

int link_index(int fd, const char *name)
{
	struct ifreq request;
	return ask(fd, SIOCGIFINDEX, name, &request) ? request.ifr_ifindex : 0;
}

bool link_name(int fd, int index, char *ret)
{
	struct ifreq request = {.ifr_ifindex = index};

	if (ioctl(fd, SIOCGIFNAME, &request))
		return false;
	memcpy(ret, request.ifr_name, sizeof(request.ifr_name));
	return true;
}

enum link_state link_state(int fd, int index)
{
	char name[IFNAMSIZ];
	struct ifreq request;

	if (!link_name(fd, index, name) || !ask(fd, SIOCGIFFLAGS, name, &request))
		return LINK_GONE;
	return request.ifr_flags & IFF_UP ? LINK_UP : LINK_DOWN;
}

bool link_type(int fd, const char *name, uint32_t *ret)
{
	struct ifreq request;

	if (!ask(fd, SIOCGIFHWADDR, name, &request))
		return false;
	for (size_t i = 0; i < sizeof(linktypes) / sizeof(linktypes[0]); i++) {
		if (linktypes[i].hardware == request.ifr_hwaddr.sa_family) {
			*ret = linktypes[i].linktype;
			return true;
		}
	}
	return false;
}

static bool find_linktype(struct weir_self *self, struct link *link, int fd)
{
	struct ifreq request;

	if (link_type(fd, link->name, &link->linktype))
		return true;
	if (!ask(fd, SIOCGIFHWADDR, link->name, &request))
		weir_error(self, "interface", "interface=%s: its hardware type: %s", link->name,
			   strerror(errno));
	else
		weir_error(self, "interface",
			   "interface=%s is of hardware type %u, whose frames no capture file "
			   "format here can hold; Ethernet, loopback, IP tunnels and 802.11 would "
			   "work",
			   link->name, request.ifr_hwaddr.sa_family);
	return false;
}

static bool find(struct weir_self *self, struct link *link, int fd)
{
	struct ifreq request;

	link->index = link_index(fd, link->name);
	if (!link->index && strcmp(link->name, "any") == 0) {
		weir_error(
			self, "interface",
			"interfaces are named, as in afpacket eth1,eth2; libpcap any has them all");
		return false;
	}
	if (!link->index) {
		weir_error(self, "interface",
			   "there is no interface '%s' in this network namespace; 'ip link' lists "
			   "those that are",
			   link->name);
		return false;
	}
	if (link_state(fd, link->index) != LINK_UP) {
		weir_error(self, "interface",
			   "interface=%s is down; 'ip link set %s up' would help", link->name,
			   link->name);
		return false;
	}
	if (!ask(fd, SIOCGIFFLAGS, link->name, &request))
		return false;
	link->is_loopback = request.ifr_flags & IFF_LOOPBACK;
	return find_linktype(self, link, fd);
}

bool link_find(struct weir_self *self, struct link *link)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		weir_error(self, NULL, "cannot open a socket: %s", strerror(errno));
		return false;
	}
	bool found = find(self, link, fd);
	close(fd);
	return found;
}
