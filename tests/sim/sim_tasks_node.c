/* sim_tasks_node - the training that worker 0 lives in, and its parameter servers: one rank, whose
 * node is preempted and comes back with it. What nodes say is heard at once, or not at all while
 * the broker is dead. */
#include "tests/sim/sim_tasks_private.h"

#include "broker/core/dispatch.h"

#define ROUTE 1000000 /* nobody's who hears answers */
#define HELLO_EVERY_MS 500
#define BEAT_EVERY_MS 1000

void sim_tasks_node_says(struct node *node, enum wire_type type, enum wire_leave_why why)
{
    struct wire_msg message = {.type = type};

    message.up = (struct wire_up){.job = "train",
                                  .role = node->role,
                                  .rank = node->rank,
                                  .incarnation = node->incarnation,
                                  .generation = node->generation};
    if (type == WIRE_HELLO)
        message.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                              .nonce = 1,
                                              .world_size = 1,
                                              .host = "h",
                                              .pid = node->incarnation,
                                              .layout = LAYOUT_REPLICATED,
                                              .checkpoint_dir = "/c",
                                              .join_timeout_ms = INT32_MAX};
    if (type == WIRE_HEARTBEAT)
        message.u.heartbeat.sources = "";
    if (type == WIRE_LEAVE) {
        message.up.request = 1;
        message.u.leave.why = why;
    }
    sim_tasks_broker_hears(ROUTE + node->incarnation, &message);
}

uint64_t sim_tasks_node_begins(struct node *node, enum wire_role role, uint64_t rank)
{
    *node = (struct node){
        .role = role, .rank = rank, .incarnation = 500000 + ++w.incarnations, .next_ms = w.now};
    return node->incarnation;
}

const struct peer *sim_tasks_node_peer(const struct node *node)
{
    return w.core != NULL ? peer_find(w.core, node->incarnation) : NULL;
}

bool sim_tasks_node_passes(struct node *node)
{
    const struct peer *peer = sim_tasks_node_peer(node);
    bool heard = peer != NULL && peer->mapped;

    if (w.core == NULL)
        return true;
    if (peer != NULL ? !peer_is_live(peer) : node->generation > 0)
        return false;
    if (w.now < node->next_ms)
        return true;
    node->next_ms = w.now + (heard ? BEAT_EVERY_MS : HELLO_EVERY_MS);
    sim_tasks_node_says(node, heard ? WIRE_HEARTBEAT : WIRE_HELLO, LEAVE_FINISHED);
    peer = sim_tasks_node_peer(node);
    if (peer != NULL)
        node->generation = peer->job->gen.generation;
    return true;
}
