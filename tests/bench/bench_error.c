/* How fast a failure reaches everybody: from the sending of one node's ERROR until the last of N
 * nodes has the journaled event. usage: bench_error [ROUNDS [DIRECTORY [NODES ...]]]; figures as
 * swarm.h says.
 *
 * Each round is a whole launch of a job: all nodes say HELLO and RESTORED, one fails its step, all
 * hear of it (here the clock stops) and leave, so that the next launch begins. */
#include "tests/bench/swarm.h"

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    (void)node;
    if (event->kind != EVENT_PEER_ERROR)
        return;
    swarm->decided_ms = bench_now_ms();
    swarm->decided++;
    swarm->ended++;
}

static double launch_once(struct swarm *swarm, uint64_t launch)
{
    struct wire_msg error = swarm_message(WIRE_ERROR);
    double began_ms, took_ms;

    swarm_join(swarm, launch);
    error.u.error.code = 7;
    error.u.error.step = 1;
    error.u.error.text = "as planned";
    began_ms = swarm_begin(swarm);
    if (swarm->mine == 0)
        swarm_say(swarm, &swarm->nodes[launch % swarm->count], &error);
    swarm_await(swarm, &swarm->decided, "for the error");
    took_ms = swarm_end(swarm, began_ms);
    swarm_leave(swarm, LEAVE_ERROR);
    return took_ms;
}

static void floor_serve(void *pub, char kind, size_t count)
{
    (void)count;
    if (kind != 'n')
        return;
    floor_commit();
    floor_publish(pub, 'd', HEAD_BYTES);
}

static void floor_take(struct swarm *swarm, struct node *node, char kind)
{
    (void)node;
    if (kind != 'd')
        return;
    swarm->decided_ms = bench_now_ms();
    swarm->decided++;
}

int main(int argc, char **argv)
{
    static const struct bench bench = {.name = "error",
                                       .musterd = MUSTERD_PATH,
                                       .directory = BUILD_DIR,
                                       .apply = apply,
                                       .once = launch_once,
                                       .floor_serve = floor_serve,
                                       .floor_take = floor_take};

    return bench_main(&bench, argc, argv);
}
