/*
 * nic_driver.h: the counters of a driver's own (ethtool -S) that mean loss.
 *
 * Each driver has names of its own, so they are told by what the names have in common, and put into
 * groups.  Where a driver has totals, counters of single queues are left out.  Totals of one group
 * may be the same packets seen at several places: the largest stands for the group.  So a group is
 * what was lost at least.
 */
#ifndef WEIR_NIC_DRIVER_H
#define WEIR_NIC_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

enum weir_nic_group {
	WEIR_NIC_GROUP_MISSED,
	WEIR_NIC_GROUP_OVERRUNS,
	WEIR_NIC_GROUP_DROPPED,
	WEIR_NIC_GROUPS,
	WEIR_NIC_GROUP_NONE = WEIR_NIC_GROUPS
};

/* What a counter of that name means. */
enum weir_nic_group weir_nic_group_of(const char *name);
/* Whether it is that of one queue, priority or the like. */
bool weir_nic_name_is_numbered(const char *name);

struct weir_nic_stat {
	enum weir_nic_group group;
	bool numbered;
	uint64_t last, grown;
};

struct weir_nic_driver {
	uint32_t n;
	struct weir_nic_stat *stats;
	uint64_t before[WEIR_NIC_GROUPS]; /* grown with names that the driver had earlier */
};

/* Asks the driver; the first time only takes the start. */
void weir_nic_driver_read(struct weir_nic_driver *driver, const char *interface);
void weir_nic_driver_clear(struct weir_nic_driver *driver);

/* By how much a group has grown; false: it has no counter. */
bool weir_nic_driver_growth(const struct weir_nic_driver *driver, enum weir_nic_group group,
			    uint64_t *ret);

/* A counter that has begun anew, as with an interface made again, counts from 0. */
static inline uint64_t weir_nic_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

#endif
