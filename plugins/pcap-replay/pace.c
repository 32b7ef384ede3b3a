/*
 * pace.c: when each packet is due.
 *
 * Deadlines are absolute: each is computed from the start, so that lateness of one packet, of a
 * timer or of a slow sink is made up for and never adds up.
 */
#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool pace_parse(const char *text, struct pace *ret)
{
	struct weir_rate rate;
	*ret = (struct pace){.kind = PACE_MAX};
	if (strcmp(text, "max") == 0)
		return true;
	if (strcmp(text, "original") == 0 || *text == 'x') {
		char *end = NULL;
		ret->kind = PACE_SPEED;
		ret->speed = *text == 'x' ? strtod(text + 1, &end) : 1;
		return isnormal(ret->speed) && ret->speed > 0 && (!end || *end == '\0');
	}
	if (!weir_parse_rate(text, &rate) || !(rate.per_second > 0))
		return false;
	ret->kind = rate.packets ? PACE_PACKETS : PACE_BITS;
	ret->ns_per_unit = (double)NS_PER_S / rate.per_second;
	return true;
}

static int64_t after(int64_t start_ns, double ns)
{
	return ns < 4e18 ? start_ns + (int64_t)(ns < -4e18 ? -4e18 : ns) : INT64_MAX;
}

static int64_t due_by_time(struct pace *pace, const struct weir_packet *packet)
{
	/* Simple packet blocks of pcapng have no time; so subtraction cannot overflow either. */
	if (packet->ts_ns <= 0)
		return INT64_MIN;
	if (pace->origin_ns == 0)
		pace->origin_ns = packet->ts_ns;
	else if (pace->may_step_back && packet->ts_ns < pace->last_ns)
		pace->origin_ns -= pace->last_ns - packet->ts_ns;
	pace->may_step_back = false;
	return after(pace->start_ns, (double)(packet->ts_ns - pace->origin_ns) / pace->speed);
}

int64_t pace_due(struct pace *pace, const struct weir_packet *packet, int64_t now_ns)
{
	if (!pace->started)
		pace->start_ns = now_ns;
	pace->started = true;
	if (pace->kind == PACE_SPEED)
		return due_by_time(pace, packet);
	return after(pace->start_ns, (double)pace->units * pace->ns_per_unit);
}

void pace_sent(struct pace *pace, const struct weir_packet *packet)
{
	pace->units += pace->kind == PACE_BITS ? packet->wirelen * UINT64_C(8) : 1;
	if (packet->ts_ns > 0)
		pace->last_ns = packet->ts_ns;
}

int64_t pace_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void pace_sleep(int64_t until_ns)
{
	struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}
