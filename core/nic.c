/*
 * nic.c: what NICs lost, asked once a second by a thread of its own: a driver may take milliseconds
 * to answer, and waits for whoever changes any interface of the machine.
 */
#include <weir/nic.h>

#include "nic_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct nic {
	const char *interface;
	bool has[WEIR_NIC_KERNEL_ROWS];
	uint64_t last[WEIR_NIC_KERNEL_ROWS], grown[WEIR_NIC_KERNEL_ROWS];
	struct weir_nic_driver driver;
};

struct weir_nics {
	struct weir_self *self;
	unsigned first;
	struct nic *nics;
	unsigned n;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	bool ending; /* under lock */
};

/* ---- The kernel's counters ---- */

static bool read_number(const char *interface, const char *file, uint64_t *ret)
{
	char path[128], text[32];
	ssize_t got;
	int fd;

	g_snprintf(path, sizeof(path), "/sys/class/net/%s/%s", interface, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	*ret = strtoull(text, NULL, 10);
	return true;
}

/* A mounted sysfs may be that of another network namespace. */
static bool is_ours(const char *interface)
{
	uint64_t index;

	return read_number(interface, "ifindex", &index) && index == if_nametoindex(interface);
}

static void read_kernel(struct nic *nic)
{
	static const char *const files[] = {
		[WEIR_NIC_MISSED] = "statistics/rx_missed_errors",
		[WEIR_NIC_FIFO] = "statistics/rx_fifo_errors",
		[WEIR_NIC_DROPPED] = "statistics/rx_dropped",
		[WEIR_NIC_ERRORS] = "statistics/rx_errors",
	};
	uint64_t now;

	if (!is_ours(nic->interface))
		return;
	for (unsigned i = 0; i < WEIR_NIC_KERNEL_ROWS; i++) {
		if (!read_number(nic->interface, files[i], &now))
			continue;
		if (nic->has[i])
			nic->grown[i] += weir_nic_growth(nic->last[i], now);
		nic->last[i] = now;
		nic->has[i] = true;
	}
}

/* ---- All of them ---- */

struct sums {
	bool has[WEIR_NIC_COUNTERS];
	uint64_t packets[WEIR_NIC_COUNTERS];
};

static void add(struct sums *sums, unsigned row, uint64_t packets)
{
	sums->has[row] = true;
	sums->packets[row] += packets;
}

static void add_nic(struct sums *sums, const struct nic *nic)
{
	uint64_t kernel = 0, largest = 0, grown;
	bool any = false;

	for (unsigned i = 0; i < WEIR_NIC_KERNEL_ROWS; i++) {
		kernel += nic->grown[i];
		if (nic->has[i])
			add(sums, i, nic->grown[i]);
	}
	for (unsigned group = 0; group < WEIR_NIC_GROUPS; group++) {
		if (!weir_nic_driver_growth(&nic->driver, group, &grown))
			continue;
		any = true;
		largest = MAX(largest, grown);
		add(sums, WEIR_NIC_DRIVER_MISSED + group, grown);
	}
	if (any)
		add(sums, WEIR_NIC_BEYOND, largest > kernel ? largest - kernel : 0);
}

static void read_all(struct weir_nics *nics)
{
	struct sums sums = {0};

	for (unsigned i = 0; i < nics->n; i++) {
		read_kernel(&nics->nics[i]);
		weir_nic_driver_read(&nics->nics[i].driver, nics->nics[i].interface);
		add_nic(&sums, &nics->nics[i]);
	}
	for (unsigned row = 0; row < WEIR_NIC_COUNTERS; row++) {
		if (sums.has[row])
			weir_witness(nics->self, nics->first + row, sums.packets[row]);
	}
}

/* ---- The thread ---- */

static bool sleep_a_second(struct weir_nics *nics)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_mutex_lock(&nics->lock);
	while (!nics->ending &&
	       pthread_cond_timedwait(&nics->woken, &nics->lock, &until) != ETIMEDOUT)
		;
	ending = nics->ending;
	pthread_mutex_unlock(&nics->lock);
	return !ending;
}

static void *run(void *user)
{
	while (sleep_a_second(user))
		read_all(user);
	return NULL;
}

static int start_thread(struct weir_nics *nics)
{
	sigset_t all, before;
	int failure;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&nics->thread, NULL, run, nics);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failure)
		pthread_setname_np(nics->thread, "weir-nic");
	return failure;
}

static void free_nics(struct weir_nics *nics)
{
	for (unsigned i = 0; i < nics->n; i++)
		weir_nic_driver_clear(&nics->nics[i].driver);
	pthread_cond_destroy(&nics->woken);
	pthread_mutex_destroy(&nics->lock);
	g_free(nics->nics);
	g_free(nics);
}

struct weir_nics *weir_nics_start(struct weir_self *self, unsigned first,
				  const char *const *interfaces)
{
	struct weir_nics *nics = g_new0(struct weir_nics, 1);
	pthread_condattr_t monotonic;
	int failure;

	nics->self = self;
	nics->first = first;
	nics->n = g_strv_length((char **)interfaces);
	nics->nics = g_new0(struct nic, nics->n);
	for (unsigned i = 0; i < nics->n; i++)
		nics->nics[i].interface = interfaces[i];
	pthread_mutex_init(&nics->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&nics->woken, &monotonic);
	pthread_condattr_destroy(&monotonic);
	read_all(nics);
	failure = start_thread(nics);
	if (!failure)
		return nics;
	weir_error(self, NULL, "cannot start the thread that asks NICs: %s", g_strerror(failure));
	free_nics(nics);
	return NULL;
}

void weir_nics_end(struct weir_nics *nics)
{
	if (!nics)
		return;
	pthread_mutex_lock(&nics->lock);
	nics->ending = true;
	pthread_cond_signal(&nics->woken);
	pthread_mutex_unlock(&nics->lock);
	pthread_join(nics->thread, NULL);
	read_all(nics);
	free_nics(nics);
}
