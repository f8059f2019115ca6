/* What N nodes cost musterd while they only train: each says a heartbeat a second. usage:
 * bench_idle [ROUNDS [DIRECTORY [NODES ...]]]; one JSON object. Of each figure: the server's
 * processor time (cpu_ms) in IDLE_MS of a round, its memory (mib) then, and the memory that it had
 * before anybody came (empty_mib):
 *
 *   floor    a bare ROUTER and PUB that answer as many messages of the same size
 *   direct   musterd, and each node has its two connections
 *   relayed  musterd behind relays, as swarm.h says
 *   hosts    musterd behind one relay for SWARM_RELAY_RANKS nodes each; the relays are connections
 * of this process, not processes (swarm_hosts.c)
 *
 * BENCH_IDLE_MS in the environment stands for IDLE_MS. */
#include "tests/bench/swarm.h"

#include <stdlib.h>

#define IDLE_MS 3000

static double idle_ms(void)
{
    const char *told = getenv("BENCH_IDLE_MS");

    return told != NULL ? strtod(told, NULL) : IDLE_MS;
}

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    (void)swarm, (void)node, (void)event;
}

static double launch_once(struct swarm *swarm, uint64_t launch)
{
    double began_ms, took_ms;

    swarm_join(swarm, launch);
    began_ms = swarm_begin(swarm);
    while (bench_now_ms() < began_ms + idle_ms())
        swarm_pump(swarm, 10);
    swarm->decided_ms = bench_now_ms();
    took_ms = swarm_end(swarm, began_ms);
    swarm->ended = swarm->count;
    swarm_leave(swarm, LEAVE_PREEMPTED);
    return took_ms;
}

/* A heartbeat each second of all, which is answered, as musterd answers it. */
static double floor_once(struct swarm *swarm, uint64_t launch)
{
    double began_ms = swarm_begin(swarm), next_ms = began_ms;

    (void)launch;
    while (bench_now_ms() < began_ms + idle_ms()) {
        if (bench_now_ms() >= next_ms) {
            next_ms += HEARTBEAT_MS;
            for (size_t i = 0; i < swarm->count; i++)
                floor_say(&swarm->nodes[i], 'b');
        }
        swarm_pump(swarm, 10);
    }
    swarm->decided_ms = bench_now_ms();
    return swarm_end(swarm, began_ms);
}

static void floor_serve(void *pub, char kind, size_t count)
{
    (void)pub, (void)kind, (void)count;
}

static void floor_take(struct swarm *swarm, struct node *node, char kind)
{
    (void)swarm, (void)node, (void)kind;
}

int main(int argc, char **argv)
{
    static const struct bench bench = {.name = "idle",
                                       .musterd = MUSTERD_PATH,
                                       .directory = BUILD_DIR,
                                       .apply = apply,
                                       .once = launch_once,
                                       .floor_serve = floor_serve,
                                       .floor_take = floor_take,
                                       .floor_once = floor_once,
                                       .idle = true};

    return bench_main(&bench, argc, argv);
}
