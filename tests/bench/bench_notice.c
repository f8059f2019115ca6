/* How fast the job agrees: from the sending of one node's notice until the last of N nodes has the
 * decision. usage: bench_notice [ROUNDS [DIRECTORY [NODES ...]]]; figures as swarm.h says.
 *
 * Each round is a whole launch of a job: all nodes say HELLO and RESTORED, one gives a notice, all
 * answer the freeze, all hear the decision (here the clock stops), the writer fails its save so
 * that the next launch begins at step 0, all leave. */
#include "tests/bench/swarm.h"

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    struct wire_msg message = swarm_message(WIRE_REPORT);

    switch (event->kind) {
    case EVENT_FREEZE: /* some are a step ahead, as ranks are */
        message.u.report.round = swarm->round = event->round;
        message.u.report.begun = 10 + (int64_t)node->rank % 3;
        message.u.report.done = message.u.report.begun - 1;
        swarm_say(swarm, node, &message);
        break;
    case EVENT_DECISION:
        swarm->decided_ms = bench_now_ms();
        swarm->decided++;
        break;
    case EVENT_NOT_SAVED:
        swarm->ended++;
        break;
    default:
        break;
    }
}

static double launch_once(struct swarm *swarm, uint64_t launch)
{
    struct wire_msg notice = swarm_message(WIRE_NOTICE), failed = swarm_message(WIRE_SAVE_FAILED);
    double began_ms, took_ms;

    swarm_join(swarm, launch);
    notice.u.notice.id = "bench";
    notice.u.notice.kind = NOTICE_PREEMPT;
    notice.u.notice.source = "bench";
    notice.u.notice.left_ms = 60000;
    notice.u.notice.flags = NOTICE_FLAG_AT_ONCE;
    notice.u.notice.rank = (int64_t)(launch % swarm->count);
    began_ms = swarm_begin(swarm);
    if (swarm->mine == 0)
        swarm_say(swarm, &swarm->nodes[launch % swarm->count], &notice);
    swarm_await(swarm, &swarm->decided, "for the decision");
    took_ms = swarm_end(swarm, began_ms);

    failed.u.save_failed.round = swarm->round;
    failed.u.save_failed.step = 10 + (swarm->total > 2 ? 2 : (int64_t)swarm->total - 1);
    failed.u.save_failed.code = MUSTER_E_STORAGE; /* is not tried again */
    failed.u.save_failed.text = "as planned";
    if (swarm->mine == 0)
        swarm_say(swarm, &swarm->nodes[0], &failed);
    swarm_await(swarm, &swarm->ended, "for the end of the launch");
    swarm_leave(swarm, LEAVE_PREEMPTED);
    return took_ms;
}

/* What musterd sends for a notice and for all reports, at once, without knowing why. */
static void floor_serve(void *pub, char kind, size_t count)
{
    static size_t reports;

    if (kind == 'n') {
        floor_publish(pub, 'h', HEAD_BYTES);
        floor_commit_told();
        floor_publish(pub, 't', HEAD_BYTES);
        floor_publish(pub, 'f', HEAD_BYTES);
    } else if (kind == 'r' && ++reports == count) {
        reports = 0;
        floor_commit();
        floor_publish(pub, 'd', HEAD_BYTES);
    }
}

static void floor_take(struct swarm *swarm, struct node *node, char kind)
{
    if (kind == 'f') {
        floor_say(node, 'r');
    } else if (kind == 'd') {
        swarm->decided_ms = bench_now_ms();
        swarm->decided++;
    }
}

int main(int argc, char **argv)
{
    static const struct bench bench = {.name = "notice",
                                       .musterd = MUSTERD_PATH,
                                       .directory = BUILD_DIR,
                                       .apply = apply,
                                       .once = launch_once,
                                       .floor_serve = floor_serve,
                                       .floor_take = floor_take,
                                       .floor_writes_twice = true,
                                       .beside_redis = true};

    return bench_main(&bench, argc, argv);
}
