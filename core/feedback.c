/* feedback.c: see feedback.h. */
#include "feedback.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where a stream goes: an address, or an interface by its name; neither: to whoever comes. */
struct target {
	char *host, *port;
	sa_family_t family;      /* AF_UNSPEC: host is no address */
	struct in6_addr address; /* or the in_addr at its start */
};

/* ---- Endpoints: tcp://[SOURCE;]HOST:PORT, or HOST:PORT ---- */

static bool parse_target(const char *endpoint, struct target *ret)
{
	const char *host = g_str_has_prefix(endpoint, "tcp://") ? endpoint + 6 : endpoint;
	const char *semicolon = strchr(host, ';'), *colon;
	g_autofree char *bare = NULL;

	host = semicolon ? semicolon + 1 : host;
	colon = strrchr(host, ':');
	if (!colon || strchr(host, '/'))
		return false;
	bare = g_strndup(host, (gsize)(colon - host));
	if (*bare == '[' && g_str_has_suffix(bare, "]")) {
		memmove(bare, bare + 1, strlen(bare));
		bare[strlen(bare) - 1] = '\0';
	}
	*ret = (struct target){.port = g_strdup(colon + 1)};
	ret->host = g_strdup(strcmp(bare, "localhost") == 0 ? "127.0.0.1" : bare);
	if (inet_pton(AF_INET, ret->host, &ret->address) == 1)
		ret->family = AF_INET;
	else if (inet_pton(AF_INET6, ret->host, &ret->address) == 1)
		ret->family = AF_INET6;
	return true;
}

static void clear_target(struct target *target)
{
	g_free(target->host);
	g_free(target->port);
}

static bool is_for_all(const struct target *target)
{
	return strcmp(target->host, "*") == 0 || strcmp(target->host, "0.0.0.0") == 0 ||
	       strcmp(target->host, "::") == 0;
}

/* ---- Addresses of this machine ---- */

static const void *bytes_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET
		       ? (const void *)&((const struct sockaddr_in *)(const void *)address)
				 ->sin_addr
		       : &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static bool is_link_local(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(
		       &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* bytes NULL: any address that others could know. */
static bool has_address(const char *interface, sa_family_t family, const void *bytes)
{
	size_t size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
		sa_family_t of = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;

		if (strcmp(at->ifa_name, interface) != 0 || (of != AF_INET && of != AF_INET6))
			continue;
		found = bytes ? of == family && memcmp(bytes_of(at->ifa_addr), bytes, size) == 0
			      : !is_link_local(at->ifa_addr);
	}
	freeifaddrs(all);
	return found;
}

/* Our own address on the way to another one; connecting a datagram socket sends nothing. */
static bool route_to(const struct target *target, struct in6_addr *ret_local)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	bool is_4 = target->family == AF_INET;
	struct sockaddr *address = is_4 ? (void *)&in : (void *)&in6;
	socklen_t size = is_4 ? sizeof(in) : sizeof(in6);
	int fd = socket(target->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	memcpy(&in.sin_addr, &target->address, sizeof(in.sin_addr));
	in6.sin6_addr = target->address;
	found = fd >= 0 && connect(fd, address, size) == 0 && getsockname(fd, address, &size) == 0;
	if (found)
		memcpy(ret_local, bytes_of(address),
		       is_4 ? sizeof(in.sin_addr) : sizeof(in6.sin6_addr));
	if (fd >= 0)
		close(fd);
	return found;
}

static bool is_loopback_address(const struct target *target)
{
	return target->family == AF_INET ? *(const uint8_t *)&target->address == 127
					 : IN6_IS_ADDR_LOOPBACK(&target->address);
}

static bool carries(const char *interface, const struct target *target)
{
	struct in6_addr local;

	if (is_for_all(target))
		return has_address(interface, AF_UNSPEC, NULL);
	if (target->family == AF_UNSPEC)
		return strcmp(target->host, interface) == 0;
	if (is_loopback_address(target))
		return strcmp(interface, "lo") == 0;
	return has_address(interface, target->family, &target->address) ||
	       (route_to(target, &local) && has_address(interface, target->family, &local));
}

/* ---- Pipelines ---- */

struct search {
	const struct weir_graph *graph;
	const struct weir_interfaces *interfaces;
	GPtrArray *warnings;
};

/* Whether packets come from one node to the other without a stage that names the port: such a one
 * is taken to keep them out.  seen: for each node of the graph, so that each is looked at once. */
static bool leads_unfiltered(const struct weir_node *from, const struct weir_node *to,
			     const char *port, bool *seen)
{
	if (from == to)
		return true;
	if (seen[to->index])
		return false;
	seen[to->index] = true;
	for (unsigned i = 0; i < to->n_options; i++) {
		const char *text = to->values[i].text;

		if (to->plugin->kind == WEIR_STAGE && text && strstr(text, port))
			return false;
	}
	for (unsigned i = 0; i < to->in->len; i++) {
		const struct weir_edge *edge = to->in->pdata[i];

		if (leads_unfiltered(from, edge->from, port, seen))
			return true;
	}
	return false;
}

static bool feeds_back(const struct weir_graph *graph, const struct weir_node *source,
		       const struct weir_node *sink, const char *port)
{
	g_autofree bool *seen = g_new0(bool, graph->nodes->len);

	return leads_unfiltered(source, sink, port, seen);
}

static void look_at(struct search *search, const struct weir_node *sink, const char *endpoint)
{
	const struct weir_interfaces *interfaces = search->interfaces;
	struct target target;

	if (!parse_target(endpoint, &target))
		return;
	for (unsigned id = 0; id < weir_interfaces_count(interfaces); id++) {
		const struct weir_node *source = weir_interfaces_node(interfaces, (uint16_t)id);
		const char *name = weir_interfaces_get(interfaces, (uint16_t)id)->name;

		if (source->plugin->flags & WEIR_LIVE && carries(name, &target) &&
		    feeds_back(search->graph, source, sink, target.port))
			g_ptr_array_add(
				search->warnings,
				g_strdup_printf("%s captures %s, over which %s sends its stream "
						"(%s): that is captured and sent again; bpf "
						"\"not tcp port %s\" before %s keeps it out",
						source->name, name, sink->name, endpoint,
						target.port, sink->name));
	}
	clear_target(&target);
}

static void look_at_option(struct search *search, const struct weir_node *sink, unsigned i)
{
	const struct weir_option *option = weir_plugin_option(sink->plugin, i);
	const void *at = (const char *)sink->config + option->offset;

	if (option->type == WEIR_ENDPOINT && *(const char *const *)at)
		look_at(search, sink, *(const char *const *)at);
	if (option->type != WEIR_ENDPOINTS)
		return;
	for (const char *const *each = *(const char *const *const *)at; each && *each; each++)
		look_at(search, sink, *each);
}

GPtrArray *weir_feedback_find(const struct weir_graph *graph,
			      const struct weir_interfaces *interfaces)
{
	struct search search = {graph, interfaces, g_ptr_array_new_with_free_func(g_free)};

	for (unsigned n = 0; n < graph->nodes->len; n++) {
		const struct weir_node *node = graph->nodes->pdata[n];

		for (unsigned i = 0; node->plugin->kind == WEIR_SINK && i < node->n_options; i++)
			look_at_option(&search, node, i);
	}
	return search.warnings;
}
