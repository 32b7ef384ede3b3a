/*
 * The dissection beside tshark's: layers.tsv of the shared captures names every layer of packets in
 * tunnels, with its offset.  The outermost IP header must be ours, and what directly follows it.
 */
#include <weir/dissect.h>

#include <criterion/criterion.h>
#include <pcap/pcap.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layer {
	char name[32];
	unsigned at;
};

static char folder[4096];

static FILE *open_table(void)
{
	char path[4200];
	const char *shared = getenv("WEIR_SHARED");
	snprintf(folder, sizeof(folder), "%s/captures", shared ? shared : "../shared");
	snprintf(path, sizeof(path), "%s/layers.tsv", folder);
	return fopen(path, "r");
}

/* The next "name@offset" of *text; false at the end. */
static bool next_layer(char **text, struct layer *ret)
{
	int used = 0;
	if (sscanf(*text, " %31[^@]@%u%n", ret->name, &ret->at, &used) != 2)
		return false;
	*text += used;
	return true;
}

static bool is_ip(const struct layer *layer)
{
	return !strcmp(layer->name, "ip") || !strcmp(layer->name, "ipv6");
}

static bool is_transport(const struct layer *layer)
{
	static const char *const names[] = {"tcp", "udp", "sctp", "icmp", "icmpv6"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(layer->name, names[i]))
			return true;
	return false;
}

/* Layers that this dissector does not look behind, though tshark does. */
static bool is_beyond_us(const struct layer *layer)
{
	static const char *const names[] = {"pwethcw", "ieee8021ah", "vntag", "nsh"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(layer->name, names[i]))
			return true;
	return false;
}

/* False where the row says nothing about us. */
static bool check_row(struct weir_packet *packet, const char *where, char *layers)
{
	struct layer layer;
	do {
		if (!next_layer(&layers, &layer) || is_beyond_us(&layer))
			return false;
	} while (!is_ip(&layer));
	cr_expect_eq(packet->l3, layer.at, "%s: l3 is %u, not %u", where, packet->l3, layer.at);
	uint16_t flag = strcmp(layer.name, "ip") ? WEIR_F_IP6 : WEIR_F_IP4;
	cr_expect(packet->flags & flag, "%s: flags are %x", where, packet->flags);
	if (next_layer(&layers, &layer) && is_transport(&layer))
		cr_expect_eq(packet->l4, layer.at, "%s: l4 is %u, not %u", where, packet->l4,
			     layer.at);
	return true;
}

static pcap_t *pcap; /* the file that is open */

static void close_file(void)
{
	if (pcap)
		pcap_close(pcap);
	pcap = NULL;
}

/* Packet `number` (from 1) of the file; rows come in the order of the files. */
static pcap_t *seek(const char *file, unsigned number, struct weir_packet *ret)
{
	static char open_name[256];
	static unsigned at;
	char path[4500], why[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const u_char *data;

	if (strcmp(file, open_name) != 0) {
		close_file();
		snprintf(open_name, sizeof(open_name), "%s", file);
		snprintf(path, sizeof(path), "%s/%s", folder, file);
		pcap = pcap_open_offline(path, why);
		at = 0;
	}
	for (; pcap && at < number; at++) {
		if (pcap_next_ex(pcap, &header, &data) != 1)
			return NULL;
		*ret = (struct weir_packet){
			.data = data, .caplen = header->caplen, .wirelen = header->len};
	}
	return pcap;
}

/* libpcap has link types of its own; of those here only raw IP has another number in files. */
static uint32_t linktype_of_file(void)
{
	int dlt = pcap_datalink(pcap);
	return dlt == DLT_RAW ? 101 : (uint32_t)dlt;
}

Test(layers, are_where_tshark_finds_them)
{
	char line[2000], file[256], layers[1500], where[300];
	unsigned frame, compared = 0;
	FILE *table = open_table();
	if (!table)
		cr_skip_test("layers.tsv is not there");

	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%255[^\t]\t%u\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%1499[^\n]",
			   file, &frame, layers) != 3)
			continue;
		struct weir_packet packet;
		if (!seek(file, frame, &packet))
			continue;
		weir_dissect(&packet, linktype_of_file());
		snprintf(where, sizeof(where), "%s frame %u", file, frame);
		compared += check_row(&packet, where, layers);
	}
	fclose(table);
	close_file();
	cr_assert_gt(compared, 800, "only %u rows were compared", compared);
}
