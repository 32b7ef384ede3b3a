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

enum nic_group { NIC_MISSED, NIC_OVERRUNS, NIC_DROPPED, NIC_GROUPS, NIC_NO_GROUP = NIC_GROUPS };

/* What a counter of that name means. */
enum nic_group nic_group_of(const char *name);
/* Whether it is that of one queue, priority or the like. */
bool nic_name_is_numbered(const char *name);

struct nic_stat {
	enum nic_group group;
	bool numbered;
	uint64_t last, grown;
};

struct nic_driver {
	uint32_t n;
	struct nic_stat *stats;
	uint64_t before[NIC_GROUPS]; /* grown with names that the driver had earlier */
};

/* Asks the driver; the first time only takes the start. */
void nic_driver_read(struct nic_driver *driver, const char *interface);
void nic_driver_clear(struct nic_driver *driver);

/* By how much a group has grown; false: it has no counter. */
bool nic_driver_growth(const struct nic_driver *driver, enum nic_group group, uint64_t *ret);

/* A counter that has begun anew, as with an interface made again, counts from 0. */
static inline uint64_t nic_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

#endif
