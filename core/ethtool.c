/* ethtool.c: see ethtool.h. */
#include "ethtool.h"

#include <glib.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool weir_ethtool_ask(const char *interface, void *request)
{
	struct ifreq ifreq = {.ifr_data = request};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool answered;

	if (fd < 0)
		return false;
	g_strlcpy(ifreq.ifr_name, interface, sizeof(ifreq.ifr_name));
	answered = ioctl(fd, SIOCETHTOOL, &ifreq) == 0;
	close(fd);
	return answered;
}

uint32_t weir_ethtool_count(const char *interface, uint32_t set)
{
	g_autofree struct ethtool_sset_info *request = g_malloc0(sizeof(*request) +
								 sizeof(request->data[0]));

	request->cmd = ETHTOOL_GSSET_INFO;
	request->sset_mask = UINT64_C(1) << set;
	return weir_ethtool_ask(interface, request) && request->sset_mask ? request->data[0] : 0;
}

char **weir_ethtool_strings(const char *interface, uint32_t set, uint32_t n)
{
	g_autofree struct ethtool_gstrings *request = g_malloc0(sizeof(*request) +
								(size_t)n * ETH_GSTRING_LEN);
	char **strings;

	request->cmd = ETHTOOL_GSTRINGS;
	request->string_set = set;
	request->len = n;
	if (!weir_ethtool_ask(interface, request) || request->len != n)
		return NULL;
	strings = g_new0(char *, n + 1);
	for (uint32_t i = 0; i < n; i++)
		strings[i] = g_strndup((char *)request->data + (size_t)i * ETH_GSTRING_LEN,
				       ETH_GSTRING_LEN);
	return strings;
}
