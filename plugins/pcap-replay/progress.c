/*
 * progress.c: how far a replay is, as one line on a terminal's standard error, redrawn in place.
 */
#include "replay.h"

#include <inttypes.h>
#include <stdio.h>

#define FIRST_NS (1 * NS_PER_S) /* a replay that is done by then shows none */
#define EVERY_NS (250 * NS_PER_MS)
#define MIB      1048576.0

static void draw_left(double seconds, double share)
{
	if (share > 0 && share < 1)
		fprintf(stderr, ", %.0f s left", seconds / share * (1 - share));
}

void progress_draw(struct progress *progress, const char *name, int64_t now_ns, uint64_t done,
		   uint64_t size, uint64_t packets)
{
	if (progress->started_ns == 0)
		progress->started_ns = now_ns;
	if (now_ns - progress->started_ns < FIRST_NS || now_ns - progress->drawn_ns < EVERY_NS)
		return;
	double seconds = (double)(now_ns - progress->started_ns) / (double)NS_PER_S;
	progress->drawn_ns = now_ns;
	progress->shown = true;
	flockfile(stderr);
	fprintf(stderr, "\r\033[K%s: %.0f MiB", name, (double)done / MIB);
	if (size > 0)
		fprintf(stderr, " of %.0f", (double)size / MIB);
	fprintf(stderr, ", %" PRIu64 " packets", packets);
	if (size > 0)
		draw_left(seconds, (double)done / (double)size);
	fflush(stderr);
	funlockfile(stderr);
}

void progress_clear(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
