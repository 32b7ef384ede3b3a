/*
 * drain.c: takes what a weir's zmq sink or one_by_one pushes, as fast as it comes, and prints the
 * number of packets.
 *
 *   drain ENDPOINT
 */
#include <stdio.h>
#include <weir/stream.h>
#include <zmq.h>

/* Of a weir the second frame of three says how many packets, and which message is the last. */
static bool take_batch(void *socket, zmq_msg_t *message, uint64_t *packets)
{
	struct weir_stream_header header = {.flags = WEIR_STREAM_END};

	zmq_msg_recv(message, socket, 0);
	weir_stream_decode(zmq_msg_data(message), zmq_msg_size(message), &header);
	zmq_msg_recv(message, socket, 0);
	*packets += header.count;
	return !(header.flags & WEIR_STREAM_END);
}

static bool take(void *socket, zmq_msg_t *message, uint64_t *packets)
{
	if (zmq_msg_recv(message, socket, 0) <= 0)
		return false;
	if (zmq_msg_more(message))
		return take_batch(socket, message, packets);
	++*packets;
	return true;
}

int main(int argc, char **argv)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PULL);
	int hwm = 200000, retry_ms = 1; /* not 100, which is a sixth of a run */
	uint64_t packets = 0;
	zmq_msg_t message;

	zmq_setsockopt(socket, ZMQ_RCVHWM, &hwm, sizeof(hwm));
	zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &retry_ms, sizeof(retry_ms));
	if (argc != 2 || zmq_connect(socket, argv[1])) {
		fputs("drain ENDPOINT\n", stderr);
		return 2;
	}
	zmq_msg_init(&message);
	while (take(socket, &message, &packets))
		;
	printf("%llu\n", (unsigned long long)packets);
	zmq_msg_close(&message);
	zmq_close(socket);
	zmq_ctx_term(context);
	return 0;
}
