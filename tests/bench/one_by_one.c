/*
 * one_by_one.c: the obvious way to put packets on ZeroMQ, one a message, for the benchmark to
 * compare with.
 *
 *   one_by_one FILE ENDPOINT
 *
 * A message is a time, a length on the wire, and the bytes; one without any is the end.
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

static int send_packet(void *socket, const struct pcap_pkthdr *header, const uint8_t *bytes)
{
	zmq_msg_t message;
	uint8_t *to;

	if (zmq_msg_init_size(&message, 12 + header->caplen))
		return -1;
	to = zmq_msg_data(&message);
	memcpy(to, &(uint32_t){(uint32_t)header->ts.tv_sec}, 4);
	memcpy(to + 4, &(uint32_t){(uint32_t)header->ts.tv_usec}, 4);
	memcpy(to + 8, &header->len, 4);
	memcpy(to + 12, bytes, header->caplen);
	return zmq_msg_send(&message, socket, 0);
}

static int send_file(pcap_t *file, void *socket)
{
	struct pcap_pkthdr *header;
	const uint8_t *bytes;

	while (pcap_next_ex(file, &header, &bytes) == 1)
		if (send_packet(socket, header, bytes) < 0)
			return -1;
	return zmq_send(socket, "", 0, 0);
}

int main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE] = "one_by_one FILE ENDPOINT";
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
	/* As much memory as a weir's hwm=64MiB is with frames of 340 bytes. */
	int hwm = 200000;
	pcap_t *file = argc == 3 ? pcap_open_offline_with_tstamp_precision(
					   argv[1], PCAP_TSTAMP_PRECISION_NANO, error)
				 : NULL;

	if (!file) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof(hwm));
	if (zmq_bind(socket, argv[2]) || send_file(file, socket) < 0) {
		fprintf(stderr, "%s: %s\n", argv[2], zmq_strerror(zmq_errno()));
		return 1;
	}
	pcap_close(file);
	zmq_close(socket);
	zmq_ctx_term(context);
	return 0;
}
