/*
 * sender.c: see sender.h.
 */
#include "sender.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S    1000000000LL
#define NS_PER_MS   1000000LL
#define BATCH       64u
#define NAP_NS      (200 * 1000) /* before the kernel is asked again that had no room */
#define STUCK_NS    (100 * NS_PER_MS)
#define LOOK_NS     (100 * NS_PER_MS)
#define SLEEP_NS    (10 * NS_PER_MS) /* at most, so that closing is noticed */
#define LATENESS_NS (5 * NS_PER_MS)  /* that a pace makes up for */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
	struct timespec time = {.tv_nsec = ns};

	nanosleep(&time, NULL);
}

static bool is_set(const int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0;
}

/* ---- Opening ---- */

bool sender_open(struct sender *sender, struct weir_self *self, uint64_t ring_bytes)
{
	sender->self = self;
	sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* With protocol 0 it receives nothing. */
	sender->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sender->fd < 0 && errno == EPERM)
		weir_error(self, NULL,
			   "a packet socket needs the capability CAP_NET_RAW: run as root, or "
			   "'setcap cap_net_raw=ep' on the program");
	else if (sender->fd < 0 || sender->wake_fd < 0)
		weir_error(self, NULL, "cannot open a packet socket: %s", strerror(errno));
	else if (!ring_new(&sender->ring, ring_bytes))
		weir_error(self, "ring", "out of memory");
	sender->to = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(sender->interface),
	};
	return sender->ring.bytes != NULL;
}

/* ---- Pace ---- */

static void charge(struct pace *pace, const struct ring_frame *frame)
{
	pace->units += pace->counts_bits ? 8.0 * frame->len : 1.0;
}

static int64_t due_ns(const struct pace *pace)
{
	double after_ns = pace->units * pace->ns_per_unit;

	return after_ns < 4e18 ? pace->start_ns + (int64_t)after_ns : INT64_MAX;
}

/* How many of the frames are due.  Deadlines are absolute, so that lateness is made up for; but not
 * the time in which there was nothing to send. */
static unsigned count_due(struct pace *pace, const struct ring_frame *frames, unsigned n)
{
	int64_t now = now_ns();
	unsigned due = 0;

	if (pace->ns_per_unit == 0)
		return n;
	if (due_ns(pace) < now - LATENESS_NS) {
		pace->start_ns = now;
		pace->units = 0;
	}
	for (struct pace after = *pace; due < n && due_ns(&after) <= now; due++)
		charge(&after, &frames[due]);
	return due;
}

static void sleep_until_due(const struct pace *pace)
{
	int64_t left_ns = due_ns(pace) - now_ns();

	if (left_ns > 0)
		sleep_ns(left_ns < SLEEP_NS ? left_ns : SLEEP_NS);
}

/* ---- What became of frames ---- */

static void settle(struct sender *sender, enum outcome outcome, const struct ring_frame *frames,
		   unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++) {
		bytes += frames[i].len;
		charge(&sender->pace, &frames[i]);
	}
	weir_settle(sender->self, outcome, n, bytes);
	ring_release(&sender->ring, &frames[n - 1]);
	weir_notify(sender->self);
}

static void note_link(struct sender *sender, bool is_down)
{
	if (sender->is_down == is_down)
		return;
	sender->is_down = is_down;
	if (is_down)
		weir_log(sender->self, WEIR_WARN,
			 "%s is down or gone: packets are lost until it is back",
			 sender->interface);
	else
		weir_log(sender->self, WEIR_INFORM, "%s is up again", sender->interface);
	weir_event(sender->self, is_down ? "link-down" : "link-up", "%s", sender->interface);
}

/* One that was made anew under the name has another index. */
static void look_for_link(struct sender *sender)
{
	int64_t now = now_ns();

	if (now - sender->looked_ns < LOOK_NS)
		return;
	sender->looked_ns = now;
	unsigned index = if_nametoindex(sender->interface);
	if (index)
		sender->to.sll_ifindex = (int)index;
}

/* Whether the frame is to be tried again. */
static bool has_no_room(struct sender *sender)
{
	int64_t now = now_ns();

	if (!sender->stuck_ns)
		sender->stuck_ns = now;
	if (now - sender->stuck_ns > STUCK_NS)
		return false;
	weir_count(sender->self, RETRIES, 1);
	sleep_ns(NAP_NS);
	return true;
}

/* The kernel did not take the frame. */
static void look_into_refusal(struct sender *sender, const struct ring_frame *frame, int error)
{
	enum outcome outcome = REFUSED;

	if (error == ENOBUFS || error == EAGAIN || error == EINTR) {
		if (has_no_room(sender))
			return;
		outcome = CONGESTED;
	} else if (error == EMSGSIZE) {
		outcome = TOO_LONG;
		weir_log(sender->self, WEIR_WARN,
			 "a packet of %u bytes is longer than %s takes: a larger MTU there, or "
			 "no offloads (GRO, TSO) where it was captured, would help",
			 frame->len, sender->interface);
	} else if (error == ENETDOWN || error == ENXIO || error == ENODEV) {
		outcome = LINK_DOWN;
		note_link(sender, true);
		look_for_link(sender);
	} else {
		weir_log(sender->self, WEIR_WARN, "%s does not take a packet of %u bytes: %s",
			 sender->interface, frame->len, strerror(error));
	}
	settle(sender, outcome, frame, 1);
}

static void send_frames(struct sender *sender, const struct ring_frame *frames, unsigned n)
{
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];

	for (unsigned i = 0; i < n; i++) {
		parts[i] = (struct iovec){(void *)(uintptr_t)frames[i].bytes, frames[i].len};
		messages[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &sender->to,
							   .msg_namelen = sizeof(sender->to),
							   .msg_iov = &parts[i],
							   .msg_iovlen = 1}};
	}
	int taken = sendmmsg(sender->fd, messages, n, MSG_DONTWAIT);
	if (taken <= 0) {
		look_into_refusal(sender, frames, errno);
		return;
	}
	sender->stuck_ns = 0;
	note_link(sender, false);
	weir_count(sender->self, KERNEL_TOOK, (uint64_t)taken);
	settle(sender, SENT, frames, (unsigned)taken);
}

/* ---- The thread ---- */

static void sleep_until_woken(struct sender *sender)
{
	struct pollfd wake = {.fd = sender->wake_fd, .events = POLLIN};
	uint64_t count;

	/* Of this exchange and the lane's the later one sees what came before the earlier. */
	__atomic_exchange_n(&sender->asleep, 1, __ATOMIC_ACQ_REL);
	if (ring_is_empty(&sender->ring) && !is_set(&sender->closing))
		poll(&wake, 1, -1);
	__atomic_store_n(&sender->asleep, 0, __ATOMIC_RELAXED);
	(void)!read(sender->wake_fd, &count, sizeof(count));
}

static bool is_over(struct sender *sender)
{
	int64_t now = now_ns();

	if (!is_set(&sender->closing))
		return false;
	if (!sender->closing_ns)
		sender->closing_ns = now;
	return ring_is_empty(&sender->ring) || weir_abandoned(sender->self) ||
	       now - sender->closing_ns > sender->linger_ns;
}

static void give_up(struct sender *sender)
{
	struct ring_frame frames[BATCH];
	unsigned n;

	while ((n = ring_peek(&sender->ring, frames, BATCH)) > 0)
		settle(sender, UNSENT, frames, n);
}

static void *run(void *user)
{
	struct sender *sender = user;
	struct ring_frame frames[BATCH];

	do {
		unsigned n = ring_peek(&sender->ring, frames, BATCH);
		unsigned due = count_due(&sender->pace, frames, n);
		if (due > 0)
			send_frames(sender, frames, due);
		else if (n > 0)
			sleep_until_due(&sender->pace);
		else
			sleep_until_woken(sender);
	} while (!is_over(sender));
	give_up(sender);
	return NULL;
}

bool sender_start(struct sender *sender, struct weir_self *self)
{
	sigset_t all, before;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sender->started = pthread_create(&sender->thread, NULL, run, sender) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (sender->started)
		pthread_setname_np(sender->thread, "weir-inject");
	else
		weir_error(self, NULL, "its thread cannot be started");
	return sender->started;
}

static void wake(struct sender *sender)
{
	uint64_t one = 1;

	(void)!write(sender->wake_fd, &one, sizeof(one));
}

void sender_publish(struct sender *sender)
{
	ring_publish(&sender->ring);
	if (__atomic_exchange_n(&sender->asleep, 0, __ATOMIC_ACQ_REL))
		wake(sender);
}

void sender_close(struct sender *sender)
{
	if (sender->started) {
		__atomic_store_n(&sender->closing, 1, __ATOMIC_RELEASE);
		wake(sender);
		pthread_join(sender->thread, NULL);
		sender->started = false;
	}
	if (sender->fd >= 0)
		close(sender->fd);
	if (sender->wake_fd >= 0)
		close(sender->wake_fd);
	sender->fd = sender->wake_fd = -1;
	ring_free(&sender->ring);
}
