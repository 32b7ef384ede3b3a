/*
 * program.bpf.c: the XDP program: decides for each frame whether Weir takes it or the host's stack
 * gets it, and counts both.
 *
 * The filter of the graph is only known when a pipeline opens.  It is a program of its own, which
 * goes on to one of the two ends here: so counting and redirecting are written once, in C.
 */
#include "shared.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* Both get their sizes when they are loaded: as many as the interface can have queues. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts_of_queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STEPS);
	__type(key, __u32);
	__type(value, __u32);
} steps SEC(".maps");

const volatile bool drop_unwanted = false;
const volatile bool stamp_frames = true;

bool unstamped = false; /* the driver has no room for stamps */

static __always_inline void write_stamp(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct stamp))) {
		unstamped = true;
		return;
	}
	struct stamp *stamp = (void *)(long)ctx->data_meta;
	if ((void *)(stamp + 1) <= (void *)(long)ctx->data)
		stamp->mono_ns = bpf_ktime_get_ns();
}

static __always_inline int take(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct counts *counts = bpf_map_lookup_elem(&counts_of_queues, &queue);

	if (!counts)
		return XDP_PASS;
	/* Frames that go on to the stack shall not carry stamps: GRO would keep them apart. */
	if (!bpf_map_lookup_elem(&sockets, &queue)) {
		counts->unserved++;
		return XDP_PASS;
	}
	if (stamp_frames)
		write_stamp(ctx);
	int action = bpf_redirect_map(&sockets, queue, XDP_PASS);
	if (action == XDP_REDIRECT)
		counts->redirected++;
	else
		counts->unserved++;
	return action;
}

static __always_inline int leave(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	struct counts *counts = bpf_map_lookup_elem(&counts_of_queues, &queue);

	if (!counts)
		return XDP_PASS;
	if (!drop_unwanted || !bpf_map_lookup_elem(&sockets, &queue)) {
		counts->unwanted++;
		return XDP_PASS;
	}
	counts->dropped++;
	return XDP_DROP;
}

SEC("xdp.frags")
int weir_xdp(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &steps, STEP_FILTER);
	return take(ctx);
}

SEC("xdp.frags")
int weir_take(struct xdp_md *ctx)
{
	return take(ctx);
}

SEC("xdp.frags")
int weir_leave(struct xdp_md *ctx)
{
	return leave(ctx);
}

/* Weir itself is BSD-2-Clause alone; kernels know no such word. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
