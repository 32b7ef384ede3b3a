/*
 * queues.h: which queues of an interface a node takes, one in each lane.
 */
#ifndef AFXDP_QUEUES_H
#define AFXDP_QUEUES_H

#include <weir/plugin.h>

#define QUEUES_MAX 256

struct queues {
	uint16_t numbers[QUEUES_MAX]; /* of lane 0, 1, … */
	unsigned count;
};

/* Reads the words of the option: "all" of the `there` that the interface has, or numbers and ranges
 * such as 2-5, each once.  NULL, or what is wrong with them, in *ret up to there. */
const char *queues_choose(const char *const *words, unsigned there, struct queues *ret);

#endif
