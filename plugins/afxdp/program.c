/*
 * program.c: see program.h.
 */
#include "program.h"

#include "filter.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <afxdp/program.skel.h>

#define NAME "weir_xdp"

static int set_step(const struct program *program, uint32_t step, int fd)
{
	int map = bpf_map__fd(program->skeleton->maps.steps);

	return bpf_map_update_elem(map, &step, &fd, BPF_ANY);
}

static int load(struct program *program, const struct program_choice *choice)
{
	struct program_bpf *skeleton = program->skeleton;

	skeleton->rodata->drop_unwanted = choice->drop_unwanted;
	skeleton->rodata->stamp_frames = choice->stamp_frames;
	bpf_map__set_max_entries(skeleton->maps.sockets, choice->queue_count);
	bpf_map__set_max_entries(skeleton->maps.counts_of_queues, choice->queue_count);
	int failure = program_bpf__load(skeleton);
	if (!failure)
		failure = set_step(program, STEP_TAKE, bpf_program__fd(skeleton->progs.weir_take));
	if (!failure)
		failure = set_step(program, STEP_LEAVE,
				   bpf_program__fd(skeleton->progs.weir_leave));
	return failure;
}

int program_load(struct program *program, const struct program_choice *choice)
{
	*program = (struct program){
		.link_fd = -1, .filter_fd = -1, .queue_count = choice->queue_count};
	libbpf_set_print(NULL);
	program->skeleton = program_bpf__open();
	return program->skeleton ? load(program, choice) : -errno;
}

int program_set_filter(struct program *program, const struct weir_insn *filter, uint32_t len)
{
	int fd = filter_load(filter, len, bpf_map__fd(program->skeleton->maps.steps));

	if (fd < 0)
		return fd;
	program->filter_fd = fd;
	return set_step(program, STEP_FILTER, fd);
}

int program_attach(struct program *program, int ifindex, bool native)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int fd = bpf_link_create(bpf_program__fd(program->skeleton->progs.weir_xdp), ifindex,
				 BPF_XDP, &options);

	if (fd < 0)
		return fd;
	program->link_fd = fd;
	program->native = native;
	return 0;
}

void program_detach(struct program *program)
{
	if (program->link_fd < 0)
		return;
	/* The last close() would do it some time later. */
	bpf_link_detach(program->link_fd);
	close(program->link_fd);
	program->link_fd = -1;
}

bool program_is_attached(const struct program *program)
{
	return program->link_fd >= 0;
}

uint32_t program_present(int ifindex, bool *ret_ours)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	*ret_ours = false;
	if (bpf_xdp_query(ifindex, 0, &query) || query.attach_mode == XDP_ATTACHED_NONE)
		return 0;
	uint32_t id = query.prog_id       ? query.prog_id
		      : query.drv_prog_id ? query.drv_prog_id
		      : query.skb_prog_id ? query.skb_prog_id
					  : query.hw_prog_id;
	int fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return id;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size))
		*ret_ours = strcmp(info.name, NAME) == 0;
	close(fd);
	return id;
}

int program_serve(const struct program *program, uint32_t queue, int socket)
{
	return bpf_map_update_elem(bpf_map__fd(program->skeleton->maps.sockets), &queue, &socket,
				   BPF_ANY);
}

void program_leave(const struct program *program, uint32_t queue)
{
	bpf_map_delete_elem(bpf_map__fd(program->skeleton->maps.sockets), &queue);
}

struct counts program_counts(const struct program *program, uint32_t queue)
{
	struct counts sum = {0};
	int processors = libbpf_num_possible_cpus();
	struct counts *each = processors > 0 ? calloc((size_t)processors, sizeof(*each)) : NULL;
	int map = bpf_map__fd(program->skeleton->maps.counts_of_queues);

	if (each && bpf_map_lookup_elem(map, &queue, each) == 0) {
		for (int i = 0; i < processors; i++) {
			sum.redirected += each[i].redirected;
			sum.unwanted += each[i].unwanted;
			sum.unserved += each[i].unserved;
			sum.dropped += each[i].dropped;
		}
	}
	free(each);
	return sum;
}

bool program_stamps(const struct program *program)
{
	return program->skeleton->rodata->stamp_frames &&
	       !__atomic_load_n(&program->skeleton->bss->unstamped, __ATOMIC_RELAXED);
}

void program_close(struct program *program)
{
	if (!program->skeleton)
		return;
	program_detach(program);
	if (program->filter_fd >= 0)
		close(program->filter_fd);
	program_bpf__destroy(program->skeleton);
	program->skeleton = NULL;
}
