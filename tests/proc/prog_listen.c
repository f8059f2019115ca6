/* prog_listen EVENTS_ENDPOINT KEY_FILE TOPIC - subscribes as a node does, or to any other topic (""
 * is all of them), and prints a line for each message. KEY_FILE "-": none. Ends with its standard
 * input. */
#include "schema/keys/keys.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static int use_key(void *socket, const char *path)
{
    char text[KEY_FILE_BYTES_MAX] = "";
    FILE *stream = fopen(path, "re");
    struct muster_error err;
    struct key_file file;
    int failed;

    if (stream == NULL || fread(text, 1, sizeof text - 1, stream) == 0 ||
        key_file_read(text, &file, &err) != MUSTER_OK)
        return -1;
    fclose(stream);
    failed = zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, file.broker_key, sizeof file.broker_key) |
             zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, file.public_key, sizeof file.public_key) |
             zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, file.secret_key, sizeof file.secret_key);
    return failed;
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
    size_t topic_size = argc > 3 && argv[3][0] != '\0' ? strlen(argv[3]) + 1 : 0;
    char byte[65536];

    if (argc != 4 || (strcmp(argv[2], "-") != 0 && use_key(socket, argv[2]) != 0) ||
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, argv[3], topic_size) != 0 ||
        zmq_connect(socket, argv[1]) != 0) {
        fprintf(stderr, "prog_listen ENDPOINT KEY_FILE TOPIC: %s\n", zmq_strerror(zmq_errno()));
        return 1;
    }
    for (;;) {
        zmq_pollitem_t items[] = {{.socket = socket, .events = ZMQ_POLLIN},
                                  {.fd = STDIN_FILENO, .events = ZMQ_POLLIN}};

        zmq_poll(items, 2, -1);
        if (items[1].revents != 0 && read(STDIN_FILENO, byte, sizeof byte) <= 0)
            break;
        if (items[0].revents == 0 || zmq_recv(socket, byte, sizeof byte, 0) < 0)
            continue;
        printf("heard %s\n", byte);
        fflush(stdout);
        while (zmq_recv(socket, byte, sizeof byte, ZMQ_DONTWAIT) >= 0) {
        }
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
