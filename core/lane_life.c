/* lane_life.c: lanes from their making to their end, as the main thread sees them. */
#include "lane_state.h"

#include <weir/dissect.h>

#include "marks.h"
#include "queue.h"

#include <signal.h>
#include <string.h>

struct weir_lane *weir_lane_new(struct weir_context *context, const struct weir_domain *domain,
				unsigned index)
{
	struct weir_lane *lane = g_new0(struct weir_lane, 1);
	pthread_condattr_t monotonic;

	lane->context = context;
	lane->domain = domain;
	lane->name = g_strdup_printf("%s/%u", domain->head->node->name, index);
	lane->posts = g_ptr_array_new_with_free_func((GDestroyNotify)weir_post_free);
	lane->poll_max = WEIR_BATCH;
	lane->mark_ns = lane->oldest_ns = INT64_MIN;
	weir_arena_init(&lane->arena);
	pthread_mutex_init(&lane->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->woken, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return lane;
}

void weir_lane_free(struct weir_lane *lane)
{
	if (!lane)
		return;
	weir_post_free(lane->head);
	g_ptr_array_unref(lane->posts);
	weir_arena_clear(&lane->arena);
	pthread_cond_destroy(&lane->woken);
	pthread_mutex_destroy(&lane->lock);
	g_free(lane->name);
	g_free(lane);
}

void weir_lane_add(struct weir_lane *lane, struct weir_post *post)
{
	if (!lane->head) {
		lane->head = post;
		return;
	}
	g_ptr_array_add(lane->posts, post);
}

void weir_lane_ready(struct weir_lane *lane)
{
	weir_post_ready(lane->head);
	for (unsigned i = 0; i < lane->posts->len; i++) {
		struct weir_post *post = lane->posts->pdata[i];

		weir_post_ready(post);
		lane->has_merges |= post->n_feeders > 1;
		lane->has_queues |= post->plugin == &weir_queue_plugin;
	}
}

void weir_lane_limit_batch(struct weir_lane *lane, unsigned packets)
{
	lane->poll_max = CLAMP(packets, 1, lane->poll_max);
}

unsigned weir_lane_n_posts(const struct weir_lane *lane)
{
	return lane->posts->len + 1;
}

struct weir_post *weir_lane_nth_post(const struct weir_lane *lane, unsigned n)
{
	return n ? lane->posts->pdata[n - 1] : lane->head;
}

struct weir_post *weir_lane_post(const struct weir_lane *lane, const struct weir_instance *instance)
{
	for (unsigned i = 0; i < weir_lane_n_posts(lane); i++) {
		struct weir_post *post = weir_lane_nth_post(lane, i);

		if (post->seat.instance == instance)
			return post;
	}
	return NULL;
}

/* The attributes for a thread on the processor that the source wants for this lane. */
static int choose_processor(const struct weir_lane *lane, pthread_attr_t *attributes)
{
	struct weir_self *self = &lane->head->seat.self;
	const struct weir_plugin *plugin = lane->head->plugin;
	int processor = plugin->processor ? plugin->processor(self, self->lane_index) : -1;
	cpu_set_t set;

	if (processor < 0 || processor >= CPU_SETSIZE)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	return pthread_attr_setaffinity_np(attributes, sizeof(set), &set);
}

bool weir_lane_start(struct weir_lane *lane, GError **error)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int failure;

	pthread_attr_init(&attributes);
	failure = choose_processor(lane, &attributes);
	/* Signals are the main thread's: none shall interrupt a lane's system calls. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (!failure)
		failure = pthread_create(&lane->thread, &attributes, weir_lane_main, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (failure) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(failure),
			    "cannot start the thread of lane %s: %s", lane->name,
			    g_strerror(failure));
		return false;
	}
	lane->started = true;
	pthread_setname_np(lane->thread, strlen(lane->name) < 16 ? lane->name : "weir-lane");
	return true;
}

void weir_lane_skip(struct weir_lane *lane)
{
	weir_marks_end(lane->posts);
}

void weir_lane_reopen(struct weir_lane *lane)
{
	__atomic_store_n(&lane->reopen, true, __ATOMIC_RELAXED);
	weir_lane_wake(lane);
}

bool weir_lane_ended(const struct weir_lane *lane)
{
	return __atomic_load_n(&lane->ended, __ATOMIC_ACQUIRE);
}

void weir_lane_join(struct weir_lane *lane)
{
	if (lane->started)
		pthread_join(lane->thread, NULL);
	lane->started = false;
}

const char *weir_lane_name(const struct weir_lane *lane)
{
	return lane->name;
}

double weir_lane_cpu_seconds(const struct weir_lane *lane)
{
	return (double)__atomic_load_n(&lane->cpu_ns, __ATOMIC_RELAXED) / 1e9;
}

uint32_t weir_lane_flow(struct weir_lane *lane, struct weir_packet *packet)
{
	const struct weir_interface *interface = weir_interfaces_get(lane->context->interfaces,
								     packet->iface);

	return packet->flow ? packet->flow : weir_flow(packet, interface ? interface->linktype : 1);
}
