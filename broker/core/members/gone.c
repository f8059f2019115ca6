/* gone - a supervisor says that a node's process ended without leaving. Usually it is right: it saw
 * the kernel release the process's lock. But the broker does not rely on that word alone: it pings
 * the process, and any answer disproves the death. So the others learn of a killed rank in a tenth
 * of a second instead of LOST_MS, and a lie costs one ping. The last words of the process may still
 * be on their way. They are let in first, and are no answer. */
#include "broker/core/members/members.h"
#include "broker/core/state/orders.h"

#include <stdio.h>

struct answer gone_take(struct core *core, struct job *job, const struct input *in)
{
    const struct wire_gone *told = &in->message->u.gone;
    struct peer *peer = peer_find(core, told->incarnation);

    /* The incarnation is random and of that one process: a number of a process used again, or a
     * supervisor of an older launch, names nobody who lives. */
    if (peer == NULL || peer->job != job || peer->rank != told->rank || !peer_is_live(peer))
        return (struct answer){MUSTER_OK, "", 0};
    if (peer->gone_state == GONE_NONE) {
        peer->gone_state = GONE_TOLD;
        peer->gone_boot_ms = core->now;
        peer->gone_code = told->code;
        peer->gone_signo = (unsigned)told->signo;
        job_timer(job, core->now + FLIGHT_MS);
        order_gone(core, job, in);
    }
    return (struct answer){MUSTER_OK, "", 1};
}

void gone_heard(struct peer *peer)
{
    if (peer->gone_state == GONE_PINGED)
        peer->gone_state = GONE_NONE; /* it lives */
}

void gone_tick(struct core *core, struct peer *peer)
{
    int64_t bound_ms = peer->gone_state == GONE_TOLD ? FLIGHT_MS : GONE_PING_MS;
    int64_t age = core->now - peer->heard_boot_ms;
    char how[64], why[160];

    if (peer->gone_state == GONE_NONE)
        return;
    if (core->now - peer->gone_boot_ms < bound_ms) {
        job_timer(peer->job, peer->gone_boot_ms + bound_ms);
        return;
    }
    if (peer->gone_state == GONE_TOLD) {
        peer->gone_state = GONE_PINGED;
        peer->gone_boot_ms = core->now;
        if (peer->mapped)
            send_to(core, peer->route, peer->job->name, WIRE_PING);
        job_timer(peer->job, core->now + GONE_PING_MS);
        return;
    }
    if (peer->gone_signo != 0)
        snprintf(how, sizeof how, "killed by signal %u", peer->gone_signo);
    else
        snprintf(how, sizeof how, "end with exit code %lld, without leaving",
                 (long long)peer->gone_code);
    if (peer->mapped)
        snprintf(why, sizeof why, "its supervisor saw it %s; it was last heard %lld.%01lld s ago",
                 how, (long long)(age / 1000), (long long)(age % 1000 / 100));
    else
        snprintf(why, sizeof why,
                 "its supervisor saw it %s; it was not heard since the broker was restarted", how);
    roster_lost(core, peer, why);
}
