/*
 * watch.c: links that go and come back.
 *
 * One that was down is heard again by itself.  One that was removed is another interface when it
 * comes back, under the same name at best: a socket by itself is bound anew, without privileges.
 * One that is a member of a fanout group cannot be: each lane makes a new one, in a group of their
 * own.
 */
#include "afpacket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

static void say_up(struct weir_self *self, const struct link *link, const struct ring *ring)
{
	char name[IFNAMSIZ];

	if (link_name(ring->fd, ring->index, name) && strcmp(name, link->name) != 0)
		weir_log(self, WEIR_INFORM, "%s is up again, named %s now", link->name, name);
	else
		weir_log(self, WEIR_INFORM, "%s is up again", link->name);
}

/* A format of its own each, since a log line of one format is held back for a second.  One that is
 * removed may be seen to go down before, which is one event. */
static void say(struct weir_self *self, unsigned at, enum link_state state)
{
	const struct afpacket_node *node = self->node;
	const struct afpacket_lane *lane = self->lane;
	struct link *link = &node->links[at];
	enum link_state before = (enum link_state)atomic_exchange(&link->said, (int)state);

	if (state == LINK_UP)
		say_up(self, link, &lane->rings[at]);
	else if (state == LINK_DOWN)
		weir_log(self, WEIR_WARN, "%s went down; waiting for it to come up", link->name);
	else
		weir_log(self, WEIR_WARN, "%s was removed; waiting for one of that name",
			 link->name);
	if (state == LINK_UP || before == LINK_UP)
		weir_event(self, state == LINK_UP ? "link-up" : "link-down", "%s", link->name);
}

/* The run ends, but not before all that came from other links, and from this one, was read. */
static void leave(struct weir_self *self, struct link *link, enum link_state state)
{
	struct afpacket_lane *lane = self->lane;

	lane->lost = true;
	if (!atomic_exchange(&link->lost, true)) { /* by the first lane that sees it */
		weir_error(self, "on-lost", "%s %s, and on-lost=exit ends the run", link->name,
			   state == LINK_GONE ? "was removed" : "went down");
		weir_event(self, "link-down", "%s", link->name);
	}
	afpacket_stop(self);
}

/* An interface that was moved to another network namespace and back is the same, but has lost the
 * socket. */
static bool is_bound(const struct ring *ring)
{
	struct sockaddr_ll at = {0};
	socklen_t size = sizeof(at);

	return getsockname(ring->fd, (struct sockaddr *)&at, &size) == 0 &&
	       at.sll_ifindex == ring->index;
}

static enum link_state state_of(const struct ring *ring)
{
	return is_bound(ring) ? link_state(ring->fd, ring->index) : LINK_GONE;
}

void afpacket_watch_error(struct weir_self *self, unsigned at)
{
	const struct afpacket_config *config = self->config;
	const struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct link *link = &node->links[at];
	struct ring *ring = &lane->rings[at];
	int failure = 0;
	socklen_t size = sizeof(failure);

	/* Reading the error clears it; else poll() would return at once from now on. */
	getsockopt(ring->fd, SOL_SOCKET, SO_ERROR, &failure, &size);
	if (failure != ENETDOWN || ring->away)
		return;
	ring->away = true;
	enum link_state state = state_of(ring);
	if (config->on_lost == AFPACKET_EXIT)
		leave(self, link, state);
	else if (self->lane_index == 0) /* which speaks for all */
		say(self, at, state == LINK_GONE ? LINK_GONE : LINK_DOWN);
}

/* ---- Coming back ---- */

static void give_up(struct weir_self *self, const struct link *link, struct ring *ring,
		    const char *why)
{
	ring->given_up = true;
	weir_log(self, WEIR_WARN, "%s is back, but %s: lane %u gets nothing from it any more",
		 link->name, why, self->lane_index);
}

static bool bind_again(struct weir_self *self, struct ring *ring, int index)
{
	if (afpacket_bind(ring->fd, index))
		return false;
	ring->index = index;
	afpacket_add_promiscuity(self->config, ring->fd, index);
	return true;
}

/* Lets packets in once the last lane has joined: until then a flow's lane would change with each.
 */
static int let_in(struct weir_self *self, struct link *link, unsigned at)
{
	const struct afpacket_node *node = self->node;
	int failure = 0;

	if (++link->joined < self->lane_count)
		return 0;
	for (unsigned l = 0; l < self->lane_count && !failure; l++) {
		if (!node->lanes[l]->stopping)
			failure = afpacket_socket_start(self, link, &node->lanes[l]->rings[at]);
	}
	if (!failure)
		say(self, at, LINK_UP);
	return failure;
}

/* A new socket in the place of one whose ring is empty.  0 or -errno; then the old one stays. */
static int replace(struct weir_self *self, struct link *link, struct ring *ring)
{
	struct ring fresh;
	enum socket_step step;
	int failure = afpacket_socket_make(self, link, &fresh, &step);

	if (failure) {
		afpacket_socket_close(&fresh);
		return failure;
	}
	ring_statistics(ring);
	ring_inherit(&fresh, ring);
	afpacket_socket_close(ring);
	*ring = fresh;
	return 0;
}

/* With the node's lock: the first lane that comes begins a new group. */
static int join_anew(struct weir_self *self, unsigned at, int index)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct link *link = &node->links[at];

	if (link->index != index || link->joined >= self->lane_count) {
		link->index = index;
		link->group = -1;
		link->joined = 0;
	}
	int failure = replace(self, link, &lane->rings[at]);
	return failure ? failure : let_in(self, link, at);
}

static bool open_anew(struct weir_self *self, unsigned at, int index)
{
	struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct ring *ring = &lane->rings[at];

	/* The kernel closes the open block within two retire times; until then what it holds would
	 * be lost. */
	if (!ring_is_empty(ring))
		return false;
	pthread_mutex_lock(&node->lock);
	int failure = join_anew(self, at, index);
	pthread_mutex_unlock(&node->lock);
	if (failure == -EPERM)
		give_up(self, &node->links[at], ring,
			"lanes of a fanout group need new sockets, and so CAP_NET_RAW, which this "
			"run has given up (--user)");
	else if (failure)
		weir_log(self, WEIR_WARN, "%s is back, but cannot be opened again: %s",
			 node->links[at].name, strerror(-failure));
	return failure == 0;
}

static bool follow(struct weir_self *self, unsigned at)
{
	const struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	const struct link *link = &node->links[at];
	struct ring *ring = &lane->rings[at];
	int index = link_index(ring->fd, link->name);
	uint32_t linktype;

	if (!index || link_state(ring->fd, index) != LINK_UP)
		return false;
	if (!link_type(ring->fd, link->name, &linktype) || linktype != link->linktype) {
		give_up(self, link, ring, "as an interface of another kind");
		return false;
	}
	return afpacket_is_grouped(self->config) ? open_anew(self, at, index)
						 : bind_again(self, ring, index);
}

void afpacket_watch_return(struct weir_self *self, unsigned at)
{
	const struct afpacket_node *node = self->node;
	struct afpacket_lane *lane = self->lane;
	struct ring *ring = &lane->rings[at];
	enum link_state state;

	if (!ring->away || ring->given_up || lane->stopping)
		return;
	state = state_of(ring);
	if (state == LINK_GONE && self->lane_index == 0 && node->links[at].said == LINK_DOWN)
		say(self, at, LINK_GONE);
	if (state == LINK_DOWN || (state == LINK_GONE && !follow(self, at)))
		return;
	ring->away = false;
	/* Of a new group, whoever completed it has said so. */
	if (self->lane_index == 0 && !(state == LINK_GONE && afpacket_is_grouped(self->config)))
		say(self, at, LINK_UP);
}
