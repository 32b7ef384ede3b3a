/*
 * bare.c: what libzmq can do with messages of that size, for the benchmark to compare with: nothing
 * is read, parsed or packed.
 *
 *   bare BYTES ENDPOINT
 *
 * Messages of 256 KiB, until there were so many bytes; an empty one is the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

#define MESSAGE_BYTES (256u << 10)
#define HWM_MESSAGES  256 /* 64 MiB, as in Weir */

int main(int argc, char **argv)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
	long long left = argc == 3 ? atoll(argv[1]) : 0;
	int hwm = HWM_MESSAGES;
	char *bytes = calloc(1, MESSAGE_BYTES);

	if (left <= 0 || !bytes) {
		fputs("bare BYTES ENDPOINT\n", stderr);
		return 2;
	}
	zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof(hwm));
	if (zmq_bind(socket, argv[2])) {
		fprintf(stderr, "%s: %s\n", argv[2], zmq_strerror(zmq_errno()));
		return 1;
	}
	for (; left > 0; left -= MESSAGE_BYTES)
		zmq_send(socket, bytes, MESSAGE_BYTES, 0);
	zmq_send(socket, "", 0, 0);
	zmq_close(socket);
	zmq_ctx_term(context);
	free(bytes);
	return 0;
}
