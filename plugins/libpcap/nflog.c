/*
 * nflog.c: see nflog.h; the messages are those of linux/netfilter/nfnetlink_log.h.
 */
#include "nflog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define UNIT_NS 10000000 /* of the kernel's timeout */

struct message {
	struct nlmsghdr head;
	struct nfgenmsg group;
	struct nlattr attribute;
	uint32_t timeout;
};

static int set_timeout(int fd, unsigned long group, uint32_t units)
{
	struct message message = {
		.head = {.nlmsg_len = sizeof(message),
			 .nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG,
			 .nlmsg_flags = NLM_F_REQUEST},
		.group = {.version = NFNETLINK_V0, .res_id = htons((uint16_t)group)},
		.attribute = {.nla_len = sizeof(message.attribute) + sizeof(message.timeout),
			      .nla_type = NFULA_CFG_TIMEOUT},
		.timeout = htonl(units),
	};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t sent = sendto(fd, &message, sizeof(message), 0, (const struct sockaddr *)&kernel,
			      sizeof(kernel));

	return sent < 0 ? -errno : 0;
}

int nflog_set_timeout(int fd, const char *device, int64_t timeout_ns)
{
	const char *groups = strchr(device, ':');
	int64_t units = timeout_ns / UNIT_NS;
	int failure = 0;
	char *end;

	for (groups = groups ? groups + 1 : "0"; !failure; groups = end + 1) {
		unsigned long group = strtoul(groups, &end, 10);

		failure = set_timeout(fd, group, units > 0 ? (uint32_t)units : 1);
		if (*end != ',')
			break;
	}
	return failure;
}
