/*
 * samples.h: plugins of every kind that do nothing, for tests of the language.
 */
#ifndef WEIR_SAMPLES_H
#define WEIR_SAMPLES_H

#include "loader.h"

struct gen_config {
	const char *iface;
	int64_t lanes;
	uint32_t fanout;
	int64_t timeout_ns;
	bool promisc;
};

struct sift_config {
	const char *filter;
	uint32_t vlan;
};

struct cut_config {
	uint64_t bytes;
};

struct file_config {
	const char *path;
	uint64_t rotate_bytes;
	struct weir_amount keep_free;
	struct weir_rate rate;
	uint32_t extras;
};

struct pub_config {
	const char *endpoint;
	const char *const *topics;
};

static inline int sample_poll(struct weir_self *self, struct weir_packet *packets, unsigned max,
			      int timeout_ms, int64_t *ret_mark_ns)
{
	(void)self, (void)packets, (void)max, (void)timeout_ms, (void)ret_mark_ns;
	return WEIR_END;
}

static inline void sample_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	(void)self, (void)packets, (void)n;
}

static const struct weir_option gen_options[] = {
	{"iface", WEIR_STRING, offsetof(struct gen_config, iface), NULL, NULL, "the interface"},
	{"lanes", WEIR_NUMBER, offsetof(struct gen_config, lanes), "1", "1..64", "threads"},
	{"fanout", WEIR_CHOICE, offsetof(struct gen_config, fanout), "hash", "hash|rnd|lb", "how"},
	{"timeout", WEIR_TIME, offsetof(struct gen_config, timeout_ns), "100ms", "1ms..1h", "when"},
	{"promisc", WEIR_BOOL, offsetof(struct gen_config, promisc), "yes", NULL, "whether"},
	{0},
};
static const struct weir_option sift_options[] = {
	{"filter", WEIR_STRING, offsetof(struct sift_config, filter), NULL, NULL, "the filter"},
	{"vlan", WEIR_CHOICE, offsetof(struct sift_config, vlan), "exact", "exact|skip", "tags"},
	{0},
};
static const struct weir_option cut_options[] = {
	{"bytes", WEIR_SIZE, offsetof(struct cut_config, bytes), NULL, "1..262144", "how many"},
	{0},
};
static const struct weir_option file_options[] = {
	{"path", WEIR_OUTFILE, offsetof(struct file_config, path), NULL, NULL, "the file"},
	{"rotate-size", WEIR_SIZE, offsetof(struct file_config, rotate_bytes), "", "64KiB..",
	 "max"},
	{"keep-free", WEIR_AMOUNT, offsetof(struct file_config, keep_free), "", NULL, "how much"},
	{"rate", WEIR_RATE, offsetof(struct file_config, rate), "", NULL, "how fast"},
	{"extras", WEIR_SET, offsetof(struct file_config, extras), "none", "mac|vlan|ttl", "what"},
	{0},
};
static const struct weir_option pub_options[] = {
	{"endpoint", WEIR_ENDPOINT, offsetof(struct pub_config, endpoint), NULL, NULL, "where"},
	{"topics", WEIR_LIST, offsetof(struct pub_config, topics), "", NULL, "which"},
	{0},
};

static const struct weir_output one_output[] = {{"out", WEIR_PASS, WEIR_PACKETS, "all"}, {0}};
static const struct weir_output two_outputs[] = {{"match", WEIR_PASS, WEIR_PACKETS, "these"},
						 {"rest", WEIR_DISCARD, WEIR_PACKETS, "others"},
						 {0}};
static const struct weir_output outcomes[] = {{"written", WEIR_PASS, WEIR_PACKETS, "done"},
					      {"full", WEIR_LOSS, WEIR_PACKETS, "no room"},
					      {0}};

#define SAMPLE(sample_kind, sample_name, sample_options, sample_outputs, sample_config, ...)       \
	{                                                                                          \
		WEIR_HEAD, .kind = sample_kind, .name = sample_name, .version = "1",               \
			   .summary = "a sample", .example = "an example",                         \
			   .options = sample_options, .outputs = sample_outputs,                   \
			   .config_size = sizeof(struct sample_config), __VA_ARGS__                \
	}

static const struct weir_plugin samples[] = {
	SAMPLE(WEIR_SOURCE, "gen", gen_options, one_output, gen_config, .poll = sample_poll),
	SAMPLE(WEIR_STAGE, "sift", sift_options, two_outputs, sift_config, .judge = sample_judge),
	SAMPLE(WEIR_STAGE, "cut", cut_options, one_output, cut_config, .judge = sample_judge),
	SAMPLE(WEIR_SINK, "file", file_options, outcomes, file_config, .judge = sample_judge),
	SAMPLE(WEIR_SINK, "pub", pub_options, outcomes, pub_config, .judge = sample_judge),
	SAMPLE(WEIR_SINK, "void", NULL, outcomes, pub_config, .judge = sample_judge),
};

/* A loader that knows only these, and what is part of the core. */
static inline struct weir_loader *sample_loader(void)
{
	struct weir_loader *loader = weir_loader_new(NULL);

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		weir_loader_add(loader, &samples[i]);
	return loader;
}

#endif
