/*
 * Fuzzer of the capture file reader: whatever the bytes, packets lie within them, the sums add up,
 * and the same packets, warnings and end come out whether the stream arrives whole or in pieces.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude \
 *         $(pkg-config --cflags --libs glib-2.0) tests/fuzz_capfile.c core/capfile_read.c \
 *         core/pcap*_*.c -o fuzz_capfile
 *
 * The first byte of an input chooses the size of the pieces.
 */
#include <weir/capfile.h>

#include <stdlib.h>
#include <string.h>

#define MAX_NEED (17u << 20)
#define FEW      5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	uint64_t packets, said; /* digests: of packets; of interfaces and warnings, which come
				   earlier where more of the stream is there */
	struct weir_reader_totals totals;
	bool torn, failed;
};

static void demand(bool condition)
{
	if (!condition)
		abort();
}

static void mix(uint64_t *digest, uint64_t value)
{
	*digest = (*digest ^ value) * UINT64_C(0x100000001b3);
}

static uint16_t on_interface(void *user, const struct weir_interface *interface)
{
	struct outcome *outcome = user;

	mix(&outcome->said, interface->linktype);
	mix(&outcome->said, strlen(interface->name));
	return (uint16_t)interface->linktype;
}

static void on_warning(void *user, uint64_t offset, const char *message)
{
	struct outcome *outcome = user;

	mix(&outcome->said, offset);
	mix(&outcome->said, strlen(message));
}

static void check_packet(struct outcome *outcome, const struct weir_packet *packet,
			 const uint8_t *bytes, size_t len)
{
	demand(packet->caplen <= WEIR_MAX_CAPLEN && packet->wirelen >= packet->caplen);
	demand(packet->data >= bytes && packet->data + packet->caplen <= bytes + len);
	mix(&outcome->packets, (uint64_t)packet->ts_ns);
	mix(&outcome->packets, packet->caplen);
	mix(&outcome->packets, packet->wirelen);
	mix(&outcome->packets,
	    packet->iface | (uint64_t)packet->queue << 16 | (uint64_t)packet->flags << 32);
	for (uint32_t i = 0; i < packet->caplen; i++)
		mix(&outcome->packets, packet->data[i]);
}

static struct outcome read_all(const uint8_t *data, size_t size, size_t piece)
{
	struct outcome outcome = {0};
	struct weir_reader *reader = weir_reader_new(on_interface, on_warning, &outcome);
	struct weir_packet packets[FEW];
	enum weir_reader_status status = WEIR_READER_OK;
	size_t at = 0, end = 0, used, need = 0;
	unsigned n = 0;

	while (status != WEIR_READER_BAD && at < size && at + need <= size) {
		if (n < FEW)
			end = end + piece > at + need ? end + piece : at + need;
		if (end > size)
			end = size;
		status = weir_reader_read(reader, data + at, end - at, packets, FEW, &n, &used,
					  &need);
		demand(used <= end - at && n <= FEW && need <= MAX_NEED);
		demand((status == WEIR_READER_MORE) == (need > end - at - used));
		for (unsigned i = 0; i < n; i++)
			check_packet(&outcome, &packets[i], data + at, used);
		at += used;
	}
	outcome.totals = *weir_reader_totals(reader);
	demand(at == outcome.totals.header_bytes + outcome.totals.record_bytes +
			     outcome.totals.skipped_bytes);
	outcome.torn = weir_reader_end(reader, size - at);
	outcome.failed = weir_reader_error(reader) != NULL;
	demand(!outcome.torn || !outcome.failed);
	weir_reader_free(reader);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct outcome whole = read_all(data + 1, size - 1, size);
	struct outcome pieces = read_all(data + 1, size - 1, 1 + data[0]);
	demand(whole.packets == pieces.packets && whole.said == pieces.said &&
	       whole.torn == pieces.torn && whole.failed == pieces.failed);
	demand(memcmp(&whole.totals, &pieces.totals, sizeof(whole.totals)) == 0);
	return 0;
}
