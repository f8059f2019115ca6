/* prog_tap - between one worker and its broker: passes each frame on, and tells what the worker
 * hears of its ends.
 *
 *   prog_tap FRONT BACK    addresses: bound for the worker, and the broker's. Says "ready" first,
 * then for each entry "work_taken TASK ATTEMPT STATUS" or "part_taken TASK ATTEMPT STATUS"; until
 * it is killed */
#include "schema/wire/wire.h"
#include "tests/proc/check.h"

#include <muster/muster.h>

#include <inttypes.h>
#include <zmq.h>

static struct muster_error err;
static uint8_t frame[WIRE_FRAME_MAX];

static void told(const char *what, uint64_t number, uint64_t attempt, uint64_t status)
{
    printf("%s %" PRIu64 " %" PRIu64 " %s\n", what, number, attempt,
           muster_status_name((enum muster_status)status));
    fflush(stdout);
}

static void tell(struct arena *arena, size_t size)
{
    struct wire_msg message;

    arena_reset(arena);
    CHECK(wire_decode(frame, size, arena, &message, NULL) == MUSTER_OK);
    if (message.type == WIRE_PART_TAKEN)
        told("part_taken", message.u.part_taken.number, message.u.part_taken.attempt,
             message.u.part_taken.code);
    for (size_t i = 0; message.type == WIRE_WORK_TAKEN && i < message.u.work_taken.tasks.count;
         i++) {
        const struct wire_lease_entry *entry = &message.u.work_taken.tasks.items[i];

        told("work_taken", entry->number, entry->attempt, entry->code);
    }
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    void *front = zmq_socket(context, ZMQ_ROUTER), *back = zmq_socket(context, ZMQ_DEALER);
    zmq_pollitem_t items[2] = {{front, 0, ZMQ_POLLIN, 0}, {back, 0, ZMQ_POLLIN, 0}};
    uint8_t id[64];
    int id_size = 0;
    struct arena arena;

    CHECK(argc == 3);
    arena_init(&arena, (size_t)1 << 21);
    CHECK(zmq_bind(front, argv[1]) == 0 && zmq_connect(back, argv[2]) == 0);
    printf("ready\n");
    fflush(stdout);
    while (zmq_poll(items, 2, -1) > 0) {
        int size;

        if (items[0].revents != 0) {
            id_size = zmq_recv(front, id, sizeof id, 0);
            size = zmq_recv(front, frame, sizeof frame, 0);
            CHECK(id_size > 0 && size > 0);
            CHECK(zmq_send(back, frame, (size_t)size, 0) == size);
        }
        if (items[1].revents == 0)
            continue;
        size = zmq_recv(back, frame, sizeof frame, 0);
        CHECK(size > 0 && id_size > 0);
        tell(&arena, (size_t)size);
        zmq_send(front, id, (size_t)id_size, ZMQ_SNDMORE);
        zmq_send(front, frame, (size_t)size, 0);
    }
    return 0;
}
