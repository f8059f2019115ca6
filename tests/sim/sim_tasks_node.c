/* sim_tasks_node - the training that worker 0 lives in: one rank, whose node is preempted and comes back with it. What
 * it says is heard at once, or not at all while the broker is dead. */
#include "tests/sim/sim_tasks_private.h"

#include "broker/core/state.h"

#define ROUTE 1000000 /* nobody's who hears answers */
#define HELLO_EVERY_MS 500
#define BEAT_EVERY_MS 1000

static void say(enum wire_type type, enum wire_leave_why why)
{
    struct wire_msg message = {.type = type};

    message.up = (struct wire_up){.job = "train",
                                  .role = ROLE_CHIEF,
                                  .incarnation = w.node.incarnation,
                                  .generation = w.node.generation};
    if (type == WIRE_HELLO)
        message.u.hello = (struct wire_hello){.nonce = 1,
                                              .world_size = 1,
                                              .host = "h",
                                              .pid = 1,
                                              .layout = LAYOUT_REPLICATED,
                                              .checkpoint_dir = "/c",
                                              .join_timeout_ms = INT32_MAX};
    if (type == WIRE_HEARTBEAT)
        message.u.heartbeat.sources = "";
    if (type == WIRE_LEAVE) {
        message.up.request = 1;
        message.u.leave.why = why;
    }
    sim_tasks_broker_hears(ROUTE + w.node.incarnation, &message);
}

uint64_t sim_tasks_node_begins(void)
{
    w.node.incarnation = 500000 + ++w.incarnations;
    w.node.generation = 0;
    w.node.next_ms = w.now;
    return w.node.incarnation;
}

void sim_tasks_node_leaves(enum wire_leave_why why)
{
    if (w.core == NULL)
        return;
    w.stats->preempted++;
    say(WIRE_LEAVE, why);
}

static const struct peer *peer_of_node(void)
{
    return w.core != NULL ? peer_find(w.core, w.node.incarnation) : NULL;
}

/* False: its launch goes on without it, and so its process ends. */
bool sim_tasks_node_passes(void)
{
    const struct peer *peer = peer_of_node();
    bool heard = peer != NULL && peer->mapped;

    if (w.core == NULL)
        return true;
    if (peer != NULL ? !peer_is_live(peer) : w.node.generation > 0)
        return false;
    if (w.now < w.node.next_ms)
        return true;
    w.node.next_ms = w.now + (heard ? BEAT_EVERY_MS : HELLO_EVERY_MS);
    say(heard ? WIRE_HEARTBEAT : WIRE_HELLO, LEAVE_FINISHED);
    peer = peer_of_node();
    if (peer != NULL)
        w.node.generation = peer->job->gen.generation;
    return true;
}
