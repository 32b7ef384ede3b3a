/*
 * harness.h: runs packets through one element of a pipeline, as core runs it, and keeps what came
 * out.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <weir/plugin.h>

#include <glib.h>

struct harness_output {
	char *name;
	GPtrArray *packets; /* struct weir_packet *, with bytes of their own */
};

struct harness {
	int status;          /* the run's exit status */
	GPtrArray *messages; /* char *: what refused the element */
	GPtrArray *outputs;  /* struct harness_output *, of a stage, in the order of its table */
};

/*
 * element: as in a pipeline text, such as "snaplen 64".  Its plugin is looked for beside
 * libweir.so.  The packets have linktype; polled in batches of `batch`, so that a test can say
 * where one ends.
 */
struct harness *harness_run(const char *element, uint32_t linktype,
			    const struct weir_packet *packets, unsigned n, unsigned batch);
void harness_free(struct harness *harness);

/* The packets of an output; fails the test if the element has none of that name. */
const GPtrArray *harness_output(const struct harness *harness, const char *name);

#endif
