/*
 * mktrace.c: traces for the benchmarks, the same on every machine.
 *
 *   mktrace imix|64|1514|mirror PACKETS FILE
 *
 * UDP and TCP over IPv4 in 4,096 flows, with times as on a full link of 10 Gbit/s.  imix: frames of
 * 60, 590 and 1,514 bytes, 7:4:1.  mirror: every frame of imix once more, 50 µs later.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS = 4096, LARGEST = 1514, COPIES = 1024 };
enum { MIRROR_DELAY_NS = 50000 };
enum { WIRE_OVERHEAD = 24 }; /* bytes: preamble, gap, frame check sequence */

struct frame {
	int64_t ts_ns;
	uint32_t len;
	uint8_t bytes[LARGEST];
};

static uint64_t random_state = 1;

/* xorshift64*, Vigna 2014 */
static uint64_t random_64(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static void put_16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static void make_headers(struct frame *frame, uint64_t number)
{
	static const uint8_t ethernet[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
	uint32_t flow = (uint32_t)(random_64() % FLOWS);
	uint8_t *ip = frame->bytes + sizeof(ethernet), *l4 = ip + 20;

	memcpy(frame->bytes, ethernet, sizeof(ethernet));
	memset(ip, 0, 40);
	ip[0] = 0x45;
	put_16(ip + 2, frame->len - (uint32_t)sizeof(ethernet));
	put_16(ip + 4, (uint32_t)number & 0xffff);
	ip[8] = 64;
	ip[9] = flow % 4 ? 6 : 17;
	put_16(ip + 12, 0x0a00);
	put_16(ip + 14, flow & 0xff);
	put_16(ip + 16, 0x0a01);
	put_16(ip + 18, flow >> 8);
	put_16(ip + 10, ip_checksum(ip));
	put_16(l4, 1024 + flow);
	put_16(l4 + 2, flow % 3 ? 443 : 53);
	if (ip[9] == 17)
		put_16(l4 + 4, frame->len - (uint32_t)(l4 - frame->bytes));
	else
		l4[12] = 0x50;
}

static void make_frame(struct frame *frame, uint32_t len, uint64_t number)
{
	frame->len = len;
	make_headers(frame, number);
	for (uint32_t at = 54; at < len; at += 8) {
		uint64_t bytes = random_64();
		memcpy(frame->bytes + at, &bytes, len - at < 8 ? len - at : 8);
	}
}

static uint32_t imix_length(void)
{
	uint64_t dice = random_64() % 12;

	return dice < 7 ? 60 : dice < 11 ? 590 : LARGEST;
}

static void write_frame(FILE *to, const struct frame *frame, int64_t ts_ns)
{
	uint32_t record[4] = {(uint32_t)(ts_ns / 1000000000), (uint32_t)(ts_ns % 1000000000),
			      frame->len, frame->len};

	fwrite(record, sizeof(record), 1, to);
	fwrite(frame->bytes, frame->len, 1, to);
}

/* Copies that are due, oldest first. */
static void write_copies(FILE *to, struct frame *copies, uint64_t *first, uint64_t end,
			 int64_t until_ns)
{
	for (; *first < end; (*first)++) {
		const struct frame *copy = &copies[*first % COPIES];
		int64_t due_ns = copy->ts_ns + MIRROR_DELAY_NS;

		if (due_ns > until_ns)
			return;
		write_frame(to, copy, due_ns);
	}
}

static void write_trace(FILE *to, const char *kind, uint64_t packets)
{
	static struct frame copies[COPIES];
	static struct frame frame = {.ts_ns = INT64_C(1700000000000000000)};
	uint32_t fixed = (uint32_t)strtoul(kind, NULL, 10);
	int mirror = strcmp(kind, "mirror") == 0;
	uint64_t first_copy = 0;

	for (uint64_t n = 0; n < packets; n++) {
		make_frame(&frame, fixed == 64 ? 60 : fixed ? fixed : imix_length(), n);
		write_copies(to, copies, &first_copy, mirror ? n : 0, frame.ts_ns);
		write_frame(to, &frame, frame.ts_ns);
		copies[n % COPIES] = frame;
		/* 0.8 ns a byte; a link that also carries copies is twice as slow for originals. */
		frame.ts_ns += (int64_t)(frame.len + WIRE_OVERHEAD) * 8 / 10 * (mirror ? 2 : 1);
	}
	write_copies(to, copies, &first_copy, mirror ? packets : 0, INT64_MAX);
}

int main(int argc, char **argv)
{
	static const uint32_t header[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1};
	FILE *to;

	if (argc != 4) {
		fputs("mktrace imix|64|1514|mirror PACKETS FILE\n", stderr);
		return 2;
	}
	to = fopen(argv[3], "wb");
	if (!to) {
		perror(argv[3]);
		return 1;
	}
	/* As a capture program writes: small writes leave a page cache that is slow to read. */
	setvbuf(to, NULL, _IOFBF, 1 << 20);
	fwrite(header, sizeof(header), 1, to);
	write_trace(to, argv[1], strtoull(argv[2], NULL, 10));
	if (ferror(to) | fclose(to)) {
		perror(argv[3]);
		return 1;
	}
	return 0;
}
