/* observer - ps and evaluators: they hear events, restore and may leave notices, and nobody waits
 * for them. The end of one is journaled, and the job goes on. */
#include "broker/core/members/members.h"

static void observer_tell(struct core *core, const struct peer *peer, unsigned code, int64_t step,
                          const char *text)
{
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_OBSERVER);

    if (job->gen.state != GENERATION_JOINING && job->gen.state != GENERATION_RUNNING)
        return;                            /* it goes with the others */
    event.incarnation = peer->incarnation; /* no rank: that of a trainer could be meant */
    event.code = code;
    event.step = step;
    event.text = text;
    event_emit(core, job, event, 0);
}

#define NAMED "%s %llu (process %llu on %s) "
#define NAME_OF(peer)                                               \
    wire_role_name((peer)->role), (unsigned long long)(peer)->rank, \
        (unsigned long long)(peer)->pid, (peer)->host

void observer_lost(struct core *core, struct peer *peer, const char *why)
{
    observer_tell(core, peer, MUSTER_E_PEER, peer->done,
                  out_printf(core, NAMED "was lost: %s; the job goes on", NAME_OF(peer), why));
}

void observer_failed(struct core *core, struct peer *peer, int64_t step, const char *why)
{
    peer->failed = true;
    if (peer_is_live(peer))
        peer->leave_why = LEAVE_FAILED;
    observer_tell(core, peer, MUSTER_E_STEP, step,
                  out_printf(core, NAMED "failed: %s; the job goes on", NAME_OF(peer), why));
}

/* It hears this too, and ends. */
struct answer observer_restore_failed(struct core *core, struct peer *peer, int64_t step,
                                      const char *why)
{
    const char *text =
        out_printf(core, NAMED "could not restore: %s; the job goes on", NAME_OF(peer), why);

    observer_tell(core, peer, MUSTER_E_RESTORE, step, text);
    return (struct answer){MUSTER_E_RESTORE, text, 0};
}
