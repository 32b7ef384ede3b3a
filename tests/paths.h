/*
 * paths.h: random paths out of a source, and whether what is kept of a frame is right for them:
 * judged by running the stages, with libpcap's interpreter, on the frame as it is on the wire.
 */
#ifndef TESTS_PATHS_H
#define TESTS_PATHS_H

#include "pushdown.h"
#include "wire.h"

#include <pcap/pcap.h>
#include <weir/dissect.h>

_Static_assert(sizeof(struct weir_insn) == sizeof(struct bpf_insn), "layout");

static const char *const path_filters[] = {
	"ip",
	"arp",
	"not ip",
	"tcp port 80",
	"udp and not port 53",
	"host 10.0.0.1 or host 10.0.0.2",
	"src net 192.168.0.0/16",
	"ip6 and tcp",
	"ip6[6] = 0 and ip6[40] = 6",
	"icmp or (ip6 proto 58)",
	"ip[6:2] & 0x1fff != 0",
	"ip[ip[1]] = 1",
	"tcp[tcpflags] & tcp-syn != 0",
	"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
	"net 10.0.0.0/8 and portrange 1-1000",
	"mpls and ip",
	"len > 60",
	"len <= 64",
	"greater 1",
	"ether[100] = 0",
	"ether src 02:00:00:00:00:02",
	"ether[len - 1] = 0",
	"ether[ether[12]:2] = 0x0800",
	"ether[ether[13] & 15:4] & 0xff != 0",
	"ether[(ether[15] & 3) + 9:4] != 0",
	"ether[10:4] = 0x00028100",
	"ether[11] + ether[12] = 0x83",
	"ether[13:2] = 0",
	"ether[14:4] = 0x001d0800",
	"ether[15:4] & 0xffff = 0x0045",
	"vlan",
	"not vlan",
	"vlan 29",
	"vlan 29 and tcp",
	"vlan 0",
	"vlan and vlan",
	"vlan 5 and vlan 29 and tcp port 80",
	"tcp or (vlan and tcp)",
	"host 10.0.0.1 or (vlan and host 10.0.0.1)",
	"ether[12:2] = 0x8100",
	"ether proto 0x8100 or ether[12:2] = 0x88a8",
	"ether proto 0x88a8 and ether[16:2] = 0x8100",
	"ether[14:2] & 0xe000 = 0xe000",
};
enum { PATH_FILTERS = G_N_ELEMENTS(path_filters) };

struct path_programs {
	struct bpf_program programs[2 * PATH_FILTERS]; /* optimized, and as they are written */
};

static inline void path_programs_init(struct path_programs *all)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);

	for (unsigned i = 0; i < 2 * PATH_FILTERS; i++)
		if (pcap_compile(pcap, &all->programs[i], path_filters[i / 2], i % 2 == 0,
				 PCAP_NETMASK_UNKNOWN))
			g_error("%s: %s", path_filters[i / 2], pcap_geterr(pcap));
	pcap_close(pcap);
}

static inline void path_programs_clear(struct path_programs *all)
{
	for (unsigned i = 0; i < 2 * PATH_FILTERS; i++)
		pcap_freecode(&all->programs[i]);
}

/* ---- Plans ---- */

enum { PLAN_PATHS = 5, PLAN_STEPS = 3 };

struct plan {
	struct weir_reduction reductions[PLAN_PATHS][PLAN_STEPS];
	const struct weir_step *steps[PLAN_PATHS][PLAN_STEPS];
	struct weir_path paths[PLAN_PATHS];
	unsigned n_paths;
	bool skips; /* some filter looks behind tags */
};

static inline struct weir_reduction plan_reduction(const struct bpf_program *program)
{
	return (struct weir_reduction){.filter = (const struct weir_insn *)program->bf_insns,
				       .filter_len = program->bf_len,
				       .max_bytes = UINT32_MAX};
}

static inline void plan_add_path(struct plan *plan)
{
	unsigned p = plan->n_paths++;

	plan->paths[p] = (struct weir_path){plan->steps[p], 0, UINT32_MAX};
}

/* To the last path. */
static inline void plan_add(struct plan *plan, struct weir_reduction reduction)
{
	struct weir_path *path = &plan->paths[plan->n_paths - 1];
	const char *why_not = NULL;
	struct weir_step *step = weir_step_new(&reduction, &why_not);

	if (!step)
		g_error("%s", why_not);
	plan->reductions[plan->n_paths - 1][path->n_steps] = reduction;
	plan->steps[plan->n_paths - 1][path->n_steps++] = step;
	plan->skips |= reduction.skip_vlan;
}

static inline struct weir_reduction plan_random_step(const struct path_programs *all, GRand *random)
{
	struct weir_reduction cut = {.max_bytes = (uint32_t)g_rand_int_range(random, 1, 100)};
	int n = g_rand_int_range(random, 0, 2 * PATH_FILTERS);
	struct weir_reduction filter = plan_reduction(&all->programs[n]);

	filter.negate = g_rand_int_range(random, 0, 3) == 0;
	filter.skip_vlan = g_rand_int_range(random, 0, 4) == 0;
	return g_rand_int_range(random, 0, 3) == 0 ? cut : filter;
}

static inline void plan_random(struct plan *plan, const struct path_programs *all, GRand *random)
{
	int n_paths = g_rand_int_range(random, 1, PLAN_PATHS + 1);

	*plan = (struct plan){0};
	for (int p = 0; p < n_paths; p++) {
		int n_steps = g_rand_int_range(random, 1, PLAN_STEPS + 1);

		plan_add_path(plan);
		for (int s = 0; s < n_steps; s++)
			plan_add(plan, plan_random_step(all, random));
	}
}

static inline void plan_clear(struct plan *plan)
{
	for (unsigned p = 0; p < plan->n_paths; p++)
		for (unsigned s = 0; s < plan->paths[p].n_steps; s++)
			weir_step_free((struct weir_step *)plan->steps[p][s]);
}

/* NULL: it cannot be. */
static inline struct weir_insn *plan_compose(const struct plan *plan, uint32_t *ret_len)
{
	g_autofree char *why_not = NULL;

	return weir_pushdown_compose(plan->paths, plan->n_paths, ret_len, &why_not);
}

/* ---- Judging ---- */

static inline bool plan_accepts(const struct weir_reduction *step, const struct wire_frame *frame,
				uint32_t caplen)
{
	const struct bpf_insn *filter = (const struct bpf_insn *)step->filter;
	struct weir_packet packet = {.data = frame->bytes, .caplen = caplen, .wirelen = frame->len};
	uint32_t at = 0, tags = step->skip_vlan ? weir_vlan_tags(&packet, 1, &at) : 0;
	uint8_t bytes[sizeof(frame->bytes)];

	if (!filter)
		return !step->negate;
	memcpy(bytes, frame->bytes, at);
	memcpy(bytes + at, frame->bytes + at + tags, caplen - at - tags);
	return (bpf_filter(filter, bytes, frame->len - tags, caplen - tags) != 0) !=
	       (step->negate != 0);
}

/* What arrives at the end of a path of a frame of which caplen bytes are there. */
static inline uint32_t plan_delivers(const struct plan *plan, unsigned p,
				     const struct wire_frame *frame, uint32_t caplen)
{
	for (unsigned i = 0; i < plan->paths[p].n_steps; i++) {
		if (!plan_accepts(&plan->reductions[p][i], frame, caplen))
			return 0;
		caplen = MIN(caplen, plan->reductions[p][i].max_bytes);
	}
	return caplen;
}

/* Whether the filters of some path accept it, those before its first step that cuts. */
static inline bool plan_wants(const struct plan *plan, const struct wire_frame *frame)
{
	for (unsigned p = 0; p < plan->n_paths; p++) {
		bool wanted = true, cut = false;

		for (unsigned i = 0; i < plan->paths[p].n_steps && !cut; i++) {
			wanted &= plan_accepts(&plan->reductions[p][i], frame, frame->len);
			cut = plan->reductions[p][i].max_bytes != UINT32_MAX;
		}
		if (wanted)
			return true;
	}
	return false;
}

/* More tags than vlan=skip is exact for. */
static inline bool wire_has_many_tags(const struct wire_frame *frame)
{
	struct weir_packet packet = {
		.data = frame->bytes, .caplen = frame->len, .wirelen = frame->len};
	uint32_t at;

	return weir_vlan_tags(&packet, 1, &at) > 8;
}

/* Whether behind something that keeps so many bytes of a frame the stages do what they do without
 * it, and nothing is kept that nobody wants. */
static inline bool plan_is_served(const struct plan *plan, const struct wire_frame *frame,
				  uint32_t kept)
{
	for (unsigned p = 0; p < plan->n_paths; p++) {
		uint32_t right = plan_delivers(plan, p, frame, frame->len);

		if ((kept ? plan_delivers(plan, p, frame, MIN(kept, frame->len)) : 0) != right)
			return false;
	}
	return !kept || plan_wants(plan, frame) || (plan->skips && wire_has_many_tags(frame));
}

/* For a message; g_free(). */
static inline char *wire_text(const struct wire_frame *frame)
{
	GString *text = g_string_new(NULL);

	for (uint32_t i = 0; i < frame->len; i++)
		g_string_append_printf(text, "%02x%s", frame->bytes[i], i % 2 ? " " : "");
	return g_string_free(text, FALSE);
}

#endif
