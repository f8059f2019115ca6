/* prog_other_version ENDPOINT - a broker of another version of the protocol: it answers whatever
 * comes with a frame of that version, until it is killed. */
#include "schema/wire/wire.h"

#include <stdio.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    const uint8_t frame[] = {0x92, WIRE_VERSION + 1, WIRE_ACK};
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER);
    char route[256], byte[65536];

    if (argc != 2 || zmq_bind(router, argv[1]) != 0) {
        fprintf(stderr, "prog_other_version ENDPOINT: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int size = zmq_recv(router, route, sizeof route, 0), more = 1;
        size_t more_size = sizeof more;

        while (zmq_getsockopt(router, ZMQ_RCVMORE, &more, &more_size) == 0 && more != 0)
            zmq_recv(router, byte, sizeof byte, 0);
        if (size > 0 && zmq_send(router, route, (size_t)size, ZMQ_SNDMORE) >= 0)
            zmq_send(router, frame, sizeof frame, 0);
    }
}
