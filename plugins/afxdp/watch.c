/*
 * watch.c: a link that goes and comes back.
 *
 * An interface that only went down keeps its sockets.  One that was removed takes them and the
 * program's attachment with it: each lane opens its ring again, once lane 0 has attached the
 * program again.
 */
#include "afxdp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define LOOK_NS 100000000LL

/* A format of its own each, since a log line of one format is held back for a second.  One that is
 * removed may be seen to go down before, which is one event. */
static void say(struct weir_self *self, enum link_state before, enum link_state state)
{
	const struct afxdp_node *node = self->node;
	const char *name = node->link.name;

	if (state == LINK_UP)
		weir_log(self, WEIR_INFORM, "%s is up again", name);
	else if (state == LINK_DOWN)
		weir_log(self, WEIR_WARN, "%s went down; waiting for it to come up", name);
	else
		weir_log(self, WEIR_WARN, "%s was removed; waiting for one of that name", name);
	if (state == LINK_UP || before == LINK_UP)
		weir_event(self, state == LINK_UP ? "link-up" : "link-down", "%s", name);
}

void afxdp_watch_error(struct weir_self *self)
{
	struct afxdp_lane *lane = self->lane;
	int failure = 0;
	socklen_t size = sizeof(failure);

	/* Reading the error clears it; else poll() would return at once from now on. */
	getsockopt(ring_fd(&lane->ring), SOL_SOCKET, SO_ERROR, &failure, &size);
	if (failure == ENETDOWN)
		lane->away = true;
}

/* ---- The interface, by lane 0 ---- */

/* The run ends, but not before all that came was read. */
static void leave(struct weir_self *self, enum link_state state)
{
	const struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;

	weir_error(self, "on-lost", "%s %s, and on-lost=exit ends the run", node->link.name,
		   state == LINK_GONE ? "was removed" : "went down");
	weir_event(self, "link-down", "%s", node->link.name);
	lane->lost = true;
	afxdp_stop(self);
}

/* What comes next shall not go to sockets that have lost their interface: they take nothing, and
 * nobody would count it. */
static void detach(struct afxdp_node *node)
{
	program_detach(&node->program);
	for (unsigned i = 0; i < node->queues.count; i++)
		program_leave(&node->program, node->queues.numbers[i]);
}

/* Again, while it was being opened: nothing to be said, since its next return is waited for. */
static bool is_gone(const struct afxdp_node *node)
{
	return link_state(node->fd, node->link.index) == LINK_GONE;
}

/* On an interface that has the name now. */
static void attach_again(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	int index = link_index(node->fd, node->link.name);

	if (index == node->tried)
		return;
	node->tried = index;
	if (!index)
		return;
	detach(node);
	node->link.index = index;
	node->returned = 0;
	if (config->promisc)
		afxdp_add_promiscuity(node->fd, index);
	int failure = afxdp_attach(config, node);
	if (failure && !is_gone(node))
		weir_log(self, WEIR_WARN, "%s came back, but takes no XDP program: %s",
			 node->link.name, strerror(-failure));
}

static bool is_back(const struct afxdp_node *node)
{
	return node->returned == node->queues.count;
}

/* One that was moved to another network namespace and back is the same, but has lost the sockets.
 */
static enum link_state link_now(struct weir_self *self)
{
	const struct afxdp_node *node = self->node;
	const struct afxdp_lane *lane = self->lane;

	if (lane->away || !program_is_attached(&node->program))
		return LINK_GONE;
	return link_state(node->fd, node->link.index);
}

static void watch_link(struct weir_self *self)
{
	const struct afxdp_config *config = self->config;
	struct afxdp_node *node = self->node;
	enum link_state before = node->state, state = link_now(self);

	if (state == LINK_GONE && before == LINK_GONE)
		attach_again(self);
	if (state == before)
		return;
	/* A new one is down at first, which is nothing to be said again. */
	if (before == LINK_GONE && (state != LINK_UP || !is_back(node)))
		return;
	node->state = state;
	if (state == LINK_GONE) {
		detach(node);
		node->tried = 0;
	}
	if (config->on_lost == AFXDP_EXIT)
		leave(self, state);
	else
		say(self, before, state);
}

/* ---- A lane's ring ---- */

static void say_not_opened(struct weir_self *self, uint32_t queue, int failure)
{
	const struct afxdp_node *node = self->node;

	if (failure == -EPERM)
		weir_log(self, WEIR_WARN,
			 "%s is back, but queue %u needs a new socket, and so CAP_NET_RAW, which "
			 "this run has given up (--user): it gets nothing from it any more",
			 node->link.name, queue);
	else
		weir_log(self, WEIR_WARN,
			 "%s is back, but queue %u cannot be opened again: %s: it gets nothing "
			 "from it any more",
			 node->link.name, queue, strerror(-failure));
}

static void open_again(struct weir_self *self)
{
	struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;
	uint32_t queue = lane->ring.queue;
	int failure;

	lane->closed = afxdp_statistics(lane);
	lane->joins_closed += lane->ring.joins;
	ring_close(&lane->ring);
	failure = afxdp_open_ring(self->config, node, &lane->ring, queue);
	if (!failure)
		failure = program_serve(&node->program, queue, ring_fd(&lane->ring));
	lane->away = failure;
	lane->bound = node->attached;
	node->returned++;
	if (failure && !is_gone(node))
		say_not_opened(self, queue, failure);
}

void afxdp_watch(struct weir_self *self, int64_t mono_ns)
{
	struct afxdp_node *node = self->node;
	struct afxdp_lane *lane = self->lane;

	if (mono_ns < lane->next_look_ns || lane->stopping)
		return;
	lane->next_look_ns = mono_ns + LOOK_NS;
	pthread_mutex_lock(&node->lock);
	if (self->lane_index == 0)
		watch_link(self);
	if (node->attached != lane->bound && !ring_ready(&lane->ring))
		open_again(self);
	pthread_mutex_unlock(&node->lock);
}
