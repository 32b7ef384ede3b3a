/* align.c: where the intervals of rotate-time end. */
#include "align.h"

#include <time.h>

#define NS_PER_S 1000000000LL

/* How far the clock on the wall is ahead of UTC at that time. */
static int64_t shift_ns(int64_t ts_ns)
{
	time_t seconds = (time_t)(ts_ns / NS_PER_S);
	struct tm tm = {0};

	localtime_r(&seconds, &tm);
	return tm.tm_gmtoff * NS_PER_S;
}

int64_t align_later(int64_t ts_ns, int64_t ns)
{
	return ts_ns > INT64_MAX - ns ? INT64_MAX : ts_ns + ns;
}

int64_t align_after(int64_t ts_ns, int64_t period_ns, bool local)
{
	int64_t before_ns = local ? shift_ns(ts_ns) : 0, change_ns;
	int64_t phase_ns = (ts_ns % period_ns + before_ns) % period_ns;
	int64_t next_ns;

	if (phase_ns < 0)
		phase_ns += period_ns;
	if (__builtin_add_overflow(ts_ns, period_ns - phase_ns, &next_ns))
		return INT64_MAX;
	if (!local)
		return next_ns;
	/* The day on which summer time begins has 23 hours. */
	change_ns = shift_ns(next_ns) - before_ns;
	return change_ns % period_ns && next_ns - change_ns > ts_ns ? next_ns - change_ns : next_ns;
}
