/* What N nodes cost musterd while they only train: each says a heartbeat a second. usage:
 * bench_idle [ROUNDS [DIRECTORY [NODES ...]]]; of swarm.h's figures cpu_ms counts, of IDLE_MS each.
 */
#include "tests/bench/swarm.h"

#define IDLE_MS 3000

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    (void)swarm, (void)node, (void)event;
}

static double launch_once(struct swarm *swarm, uint64_t launch)
{
    double began_ms, took_ms;

    swarm_join(swarm, launch);
    began_ms = swarm_begin(swarm);
    while (bench_now_ms() < began_ms + IDLE_MS)
        swarm_pump(swarm, 10);
    swarm->decided_ms = bench_now_ms();
    took_ms = swarm_end(swarm, began_ms);
    swarm->ended = swarm->count;
    swarm_leave(swarm, LEAVE_PREEMPTED);
    return took_ms;
}

/* Nothing is to be answered: the floor says how fast its echo is, and no more. */
static void floor_serve(void *pub, char kind, size_t count)
{
    (void)pub, (void)kind, (void)count;
}

static void floor_take(struct swarm *swarm, struct node *node, char kind)
{
    (void)node, (void)kind;
    swarm->decided_ms = bench_now_ms();
    swarm->decided = swarm->count;
}

int main(int argc, char **argv)
{
    static const struct bench bench = {"idle",      MUSTERD_PATH, BUILD_DIR,  apply,
                                       launch_once, floor_serve,  floor_take, false};

    return bench_main(&bench, argc, argv);
}
