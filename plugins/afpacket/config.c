/*
 * config.c: options of the afpacket source: values that do not fit together, and what follows from
 * them.
 */
#include "afpacket.h"

#include "processors.h"

#include <net/if.h>
#include <string.h>
#include <unistd.h>

/* One is being walked while the kernel fills the other. */
#define BLOCKS_MIN 2u

struct ring_geometry afpacket_geometry(const struct afpacket_config *config, unsigned link_count)
{
	uint64_t rings = (uint64_t)config->lanes * link_count;

	return (struct ring_geometry){
		.block_bytes = (uint32_t)config->block_bytes,
		.block_count = (uint32_t)(config->ring_bytes / rings / config->block_bytes),
		.retire_ns = config->retire_ns,
	};
}

static bool check_interfaces(struct weir_self *self, unsigned *ret_count)
{
	const struct afpacket_config *config = self->config;
	const char *const *names = config->interfaces;
	unsigned n = 0;
	bool good = true;

	for (; names && names[n]; n++) {
		if (strlen(names[n]) >= IFNAMSIZ) {
			weir_error(self, "interface", "'%s' is too long for an interface's name",
				   names[n]);
			good = false;
		}
		for (unsigned i = 0; i < n; i++) {
			if (strcmp(names[i], names[n]) != 0)
				continue;
			weir_error(self, "interface", "interface %s is given twice", names[n]);
			good = false;
		}
	}
	if (n == 0 || n > AFPACKET_LINKS_MAX) {
		weir_error(self, "interface", "interface= takes one to %d interfaces, not %u",
			   AFPACKET_LINKS_MAX, n);
		good = false;
	}
	*ret_count = n;
	return good;
}

static bool check_blocks(struct weir_self *self, unsigned link_count)
{
	const struct afpacket_config *config = self->config;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t rings = (uint64_t)config->lanes * link_count;

	if (config->block_bytes % page) {
		weir_error(self, "block-size",
			   "block-size=%llu is no multiple of the page size, %llu; %llu would work",
			   (unsigned long long)config->block_bytes, (unsigned long long)page,
			   (unsigned long long)((config->block_bytes / page + 1) * page));
		return false;
	}
	if (config->ring_bytes / rings / config->block_bytes < BLOCKS_MIN) {
		weir_error(self, "ring",
			   "ring=%lluKiB for %llu rings (lanes x interfaces) gives each less than "
			   "%u blocks of block-size=%lluKiB; ring=%lluKiB would work",
			   (unsigned long long)config->ring_bytes / 1024, (unsigned long long)rings,
			   BLOCKS_MIN, (unsigned long long)config->block_bytes / 1024,
			   (unsigned long long)(rings * BLOCKS_MIN * config->block_bytes) / 1024);
		return false;
	}
	return true;
}

/* Packets of several links come out in the order of their stamps, and a clock that is behind would
 * hold up all the others. */
static bool check_clocks(struct weir_self *self, unsigned link_count)
{
	const struct afpacket_config *config = self->config;

	if (config->timestamps != AFPACKET_HARDWARE || link_count <= 1)
		return true;
	weir_error(self, "timestamps",
		   "timestamps=hardware takes one interface, since each has a clock of its own; an "
		   "afpacket for each would work");
	return false;
}

/* ---- Callbacks ---- */

bool afpacket_check(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	unsigned link_count;
	bool good = check_interfaces(self, &link_count);

	if (link_count)
		good &= check_blocks(self, link_count);
	good &= check_clocks(self, link_count);
	return processors_check(self, config->cpus, (unsigned)config->lanes) && good;
}

int afpacket_processor(struct weir_self *self, uint32_t lane)
{
	const struct afpacket_config *config = self->config;
	return processors_of(config->cpus, lane);
}

uint32_t afpacket_affinity(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;

	if (config->lanes == 1)
		return WEIR_LANES_ONE;
	return config->fanout == AFPACKET_FANOUT_HASH ? WEIR_LANES_FLOW : WEIR_LANES_ANY;
}

uint32_t afpacket_lanes(struct weir_self *self)
{
	const struct afpacket_config *config = self->config;
	return (uint32_t)config->lanes;
}
