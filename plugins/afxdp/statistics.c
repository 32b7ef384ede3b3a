/*
 * statistics.c: what the kernel and the XDP program have counted.
 */
#include "afxdp.h"

static struct xdp_statistics sum_of(const struct xdp_statistics *a, const struct xdp_statistics *b)
{
	return (struct xdp_statistics){
		.rx_dropped = a->rx_dropped + b->rx_dropped,
		.rx_ring_full = a->rx_ring_full + b->rx_ring_full,
		.rx_invalid_descs = a->rx_invalid_descs + b->rx_invalid_descs,
		.rx_fill_ring_empty_descs = a->rx_fill_ring_empty_descs +
					    b->rx_fill_ring_empty_descs,
	};
}

struct xdp_statistics afxdp_statistics(const struct afxdp_lane *lane)
{
	struct xdp_statistics now = ring_statistics(&lane->ring);
	return sum_of(&lane->closed, &now);
}

static void witness_counts(struct weir_self *self, const struct counts *counts)
{
	weir_witness(self, AFXDP_REDIRECTED, counts->redirected);
	weir_witness(self, AFXDP_PASSED, counts->unwanted);
	weir_witness(self, AFXDP_PASSED_UNSERVED, counts->unserved);
	weir_witness(self, AFXDP_PROGRAM_DROPPED, counts->dropped);
}

static bool has_lane(const struct queues *queues, unsigned queue)
{
	for (unsigned i = 0; i < queues->count; i++) {
		if (queues->numbers[i] == queue)
			return true;
	}
	return false;
}

/* Of queues that no lane has. */
static void witness_others(struct afxdp_node *node)
{
	struct counts sum = {0};

	for (unsigned queue = 0; queue < node->program.queue_count; queue++) {
		if (has_lane(&node->queues, queue))
			continue;
		struct counts counts = program_counts(&node->program, queue);
		sum.unwanted += counts.unwanted;
		sum.unserved += counts.unserved;
	}
	witness_counts(node->self, &sum);
}

void afxdp_witness(struct weir_self *self)
{
	struct afxdp_node *node = self->node;
	const struct afxdp_lane *lane = self->lane;
	struct counts counts = program_counts(&node->program, lane->ring.queue);
	struct xdp_statistics statistics = afxdp_statistics(lane);

	witness_counts(self, &counts);
	weir_witness(self, AFXDP_RX_DROPPED, statistics.rx_dropped);
	weir_witness(self, AFXDP_RX_RING_FULL, statistics.rx_ring_full);
	weir_witness(self, AFXDP_FILL_EMPTY, statistics.rx_fill_ring_empty_descs);
	weir_witness(self, AFXDP_INVALID_DESCS, statistics.rx_invalid_descs);
	weir_witness(self, AFXDP_JOINED, lane->joins_closed + lane->ring.joins);
	/* One lane speaks for the interface. */
	if (self->lane_index == 0)
		witness_others(node);
}
