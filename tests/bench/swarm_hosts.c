/* swarm_hosts - a swarm whose nodes are behind relays that this process stands for: a host is one
 * DEALER and one SUB, as a relay's, and says what its nodes say in bundles. So the broker has the
 * work of so many relays, which take no processor from it as 1,250 processes would. See swarm.h. */
#include "tests/bench/swarm.h"

#include "schema/wire/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct host { /* of the nodes first to first + each - 1, as far as there are so many */
    void *dealer, *sub;
    size_t first;
};

struct hosts {
    size_t count, each;
    struct host *hosts;
    struct host *filling; /* whose nodes' words are in `out`; NULL: nobody's */
    struct bundle out;
};

static void host_send(const struct host *host, const struct bundle *bundle)
{
    if (zmq_send(host->dealer, bundle->bytes, bundle->size, ZMQ_DONTWAIT) < 0)
        bench_die("a host cannot send: %s", zmq_strerror(errno));
}

void swarm_hosts_flush(struct swarm *swarm)
{
    struct hosts *hosts = swarm->hosts;

    if (hosts == NULL || hosts->filling == NULL)
        return;
    host_send(hosts->filling, &hosts->out);
    hosts->filling = NULL;
}

static struct host *host_of(struct hosts *hosts, size_t place)
{
    return &hosts->hosts[place / hosts->each];
}

void swarm_hosts_put(struct swarm *swarm, const struct node *node, const void *bytes, size_t size)
{
    const size_t place = (size_t)(node - swarm->nodes);
    struct hosts *hosts = swarm->hosts;
    struct host *host = host_of(hosts, place);
    const uint32_t number = (uint32_t)(BUNDLE_PEER_MIN + place - host->first);

    if (hosts->filling != host)
        swarm_hosts_flush(swarm);
    if (hosts->filling == NULL)
        bundle_begin(&hosts->out, WIRE_FRAME_MAX);
    if (!bundle_add(&hosts->out, number, bytes, size)) {
        host_send(host, &hosts->out);
        bundle_begin(&hosts->out, WIRE_FRAME_MAX);
        if (!bundle_add(&hosts->out, number, bytes, size))
            bench_die("a frame of %zu bytes fits into no bundle", size);
    }
    hosts->filling = host;
}

/* As each relay, once a second. */
void swarm_hosts_hello(struct swarm *swarm)
{
    struct hosts *hosts = swarm->hosts;

    if (hosts == NULL)
        return;
    swarm_hosts_flush(swarm);
    for (size_t i = 0; i < hosts->count; i++) {
        const struct bundle_hello hello = {.sender = i + 1};
        uint8_t bytes[BUNDLE_HELLO_MAX];
        size_t size = bundle_hello_write(&hello, bytes);

        bundle_begin(&hosts->out, WIRE_FRAME_MAX);
        (void)bundle_add(&hosts->out, BUNDLE_CONTROL, bytes, size);
        host_send(&hosts->hosts[i], &hosts->out);
    }
}

/* --- down ------------------------------------------------------------------------------------- */

static void host_take_bundle(struct swarm *swarm, const struct host *host, const uint8_t *bytes,
                             size_t size)
{
    struct bundle_reader reader;
    struct bundle_entry entry;

    if (bundle_open(bytes, size, &reader) != BUNDLE_WHOLE)
        bench_die("the broker answered a relay with no bundle");
    while (bundle_next(&reader, &entry)) {
        const size_t place = host->first + entry.peer - BUNDLE_PEER_MIN;

        if (entry.peer >= BUNDLE_PEER_MIN && place < swarm->count)
            swarm_take(swarm, &swarm->nodes[place], false, entry.frame, entry.size);
    }
}

static void host_take_event(struct swarm *swarm, const struct host *host, const uint8_t *bytes,
                            size_t size)
{
    for (size_t i = host->first; i < host->first + swarm->hosts->each && i < swarm->count; i++)
        swarm_take(swarm, &swarm->nodes[i], true, bytes, size);
}

void swarm_hosts_take(struct swarm *swarm, size_t item)
{
    const struct host *host = &swarm->hosts->hosts[item / 2];
    const bool event = item % 2 != 0;
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, event ? host->sub : host->dealer, ZMQ_DONTWAIT) >= 0) {
        if (zmq_msg_more(&part))
            continue; /* the topic; the frame follows */
        if (event)
            host_take_event(swarm, host, zmq_msg_data(&part), zmq_msg_size(&part));
        else
            host_take_bundle(swarm, host, zmq_msg_data(&part), zmq_msg_size(&part));
    }
    zmq_msg_close(&part);
}

/* --- life ------------------------------------------------------------------------------------- */

void swarm_hosts_open(struct swarm *swarm, const struct door *door, size_t each)
{
    struct hosts *hosts = calloc(1, sizeof *hosts);

    if (hosts == NULL)
        bench_die("no memory");
    hosts->each = each;
    hosts->count = (swarm->count + each - 1) / each;
    hosts->hosts = calloc(hosts->count, sizeof *hosts->hosts);
    if (hosts->hosts == NULL)
        bench_die("no memory");
    swarm->hosts = hosts;
    for (size_t i = 0; i < hosts->count; i++) {
        struct host *host = &hosts->hosts[i];

        host->first = i * each;
        host->dealer = swarm_connect(swarm, ZMQ_DEALER, door->commands, NULL);
        host->sub = swarm_connect(swarm, ZMQ_SUB, door->events, NULL);
        if (zmq_setsockopt(host->sub, ZMQ_SUBSCRIBE, "bench", sizeof "bench") != 0)
            bench_die("cannot subscribe: %s", zmq_strerror(errno));
        swarm->items[2 * i] = (zmq_pollitem_t){.socket = host->dealer, .events = ZMQ_POLLIN};
        swarm->items[2 * i + 1] = (zmq_pollitem_t){.socket = host->sub, .events = ZMQ_POLLIN};
    }
    swarm->items_count = 2 * hosts->count;
    swarm_hosts_hello(swarm);
}

void swarm_hosts_close(struct swarm *swarm)
{
    struct hosts *hosts = swarm->hosts;

    if (hosts == NULL)
        return;
    for (size_t i = 0; i < hosts->count; i++) {
        zmq_close(hosts->hosts[i].dealer);
        zmq_close(hosts->hosts[i].sub);
    }
    free(hosts->hosts);
    free(hosts);
}
