/* sim_tasks_servers - parameter servers of the training: they are killed, are preempted, fail or
 * finish, and come back as another process. While one is missing the coordinator's calls name it,
 * and at no other time. */
#include "tests/sim/sim_tasks_private.h"

#include "broker/core/dispatch.h"

#include <string.h>

#define LEAVES_MS 1000   /* then its process is gone, heard or not */
#define ON_ITS_WAY_MS 60 /* word of it, when nothing is lost */
#define HEARD_MS 5000    /* by then it is, whatever was lost */
#define AWAY_LONG_MS 60000

static uint64_t rank_of(const struct server *server)
{
    return (uint64_t)(server - w.servers);
}

static void process_begins(struct server *server)
{
    sim_tasks_node_begins(&server->node, ROLE_PS, rank_of(server));
    server->there = true;
    server->leaves_ms = 0;
}

static void process_ends(struct server *server, bool heard)
{
    if (server->joined) {
        server->missed = !heard || server->why != LEAVE_FINISHED;
        server->heard = heard;
        server->ended_ms = w.now;
    }
    server->there = server->joined = false;
    server->back_ms = w.now + (int64_t)sim_tasks_below(6000);
}

static void look_whether_it_joined(struct server *server)
{
    const struct peer *peer = sim_tasks_node_peer(&server->node);

    if (server->joined || peer == NULL || !peer_is_live(peer))
        return;
    w.stats->servers_back += server->missed;
    server->before = server->was;
    server->was = server->node.incarnation;
    server->joined = true;
    server->joined_ms = w.now;
    server->missed = false;
}

static void leaves(struct server *server)
{
    const struct peer *peer;

    if (w.core != NULL)
        sim_tasks_node_says(&server->node, WIRE_LEAVE, server->why);
    peer = sim_tasks_node_peer(&server->node);
    if (peer != NULL && peer->state == NODE_LEFT)
        process_ends(server, true);
    else if (w.now - server->leaves_ms >= LEAVES_MS)
        process_ends(server, false);
}

/* Controls have no other faults. */
static bool one_in(uint64_t count)
{
    return w.broken == SIM_TASKS_SOUND ? sim_tasks_one_in(count) : sim_tasks_below(count) == 0;
}

static void something_happens(struct server *server)
{
    static const enum wire_leave_why why[] = {LEAVE_PREEMPTED, LEAVE_FAILED, LEAVE_FINISHED};
    uint64_t what = sim_tasks_below(7) / 2;

    w.stats->servers_killed += what == 0;
    w.stats->servers_preempted += what == 1;
    w.stats->servers_failed += what == 2;
    w.stats->servers_finished += what == 3;
    if (what == 0) {
        process_ends(server, false);
        return;
    }
    server->why = why[what - 1];
    server->leaves_ms = w.now;
}

static void server_passes(struct server *server)
{
    if (!server->there) {
        if (w.now >= server->back_ms)
            process_begins(server);
        return;
    }
    if (server->leaves_ms > 0) {
        leaves(server);
        return;
    }
    if (!sim_tasks_node_passes(&server->node)) { /* with its launch */
        process_ends(server, false);
        return;
    }
    look_whether_it_joined(server);
    if (server->joined && one_in(300))
        something_happens(server);
}

/* When nothing else fails any more: so that it is known when it must be missed. */
static void one_stays_away(void)
{
    struct server *server = &w.servers[0];

    if (w.one_stays_away || !server->joined || w.now < FAULTS_UNTIL_MS || w.seed % 2 == 0)
        return;
    w.one_stays_away = true;
    w.stats->servers_killed++;
    process_ends(server, false);
    server->back_ms = w.now + AWAY_LONG_MS;
}

void sim_tasks_servers_pass(void)
{
    for (size_t i = 0; i < SERVERS && w.has_servers; i++)
        server_passes(&w.servers[i]);
    if (w.has_servers && w.broken == SIM_TASKS_SOUND)
        one_stays_away();
}

/* --- what calls say --------------------------------------------------------------------------- */

/* What was said before the next one of its rank had joined, maybe. */
static bool is_on_its_way(const struct server *server)
{
    return server->joined_ms >= w.me->began_ms - ON_ITS_WAY_MS;
}

void sim_tasks_check_unavailable(const struct muster_error *err)
{
    unsigned long long rank = SERVERS, process = 0;
    const struct server *server;

    sscanf(err->text, "parameter server %llu of job train (process %llu on h) ", &rank, &process);
    INSIST(rank < SERVERS && process > 0 && err->task == 0, "unavailable: %.200s", err->text);
    server = &w.servers[rank];
    if (w.coordinator->alives == w.me->alives)
        return; /* no broker was heard in this call */
    INSIST((server->missed && process == server->was) ||
               (is_on_its_way(server) && process == server->before),
           "a call named a server that is not missing: %.150s", err->text);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When a call must have known that it is missing. */
static int64_t known_ms(const struct server *server)
{
    int64_t lost_ms = later(server->ended_ms + LOST_MS, w.broker_since_ms + START_GRACE_MS);
    int64_t ms = server->heard ? server->ended_ms : lost_ms;

    return later(later(ms, w.broker_since_ms), w.coordinator_since_ms) + HEARD_MS;
}

void sim_tasks_check_available(void)
{
    for (size_t i = 0; i < SERVERS && w.core != NULL; i++)
        INSIST(!w.servers[i].missed || w.now < known_ms(&w.servers[i]),
               "a call named nobody and server %zu is missing since %lld ms", i,
               (long long)w.servers[i].ended_ms);
}
