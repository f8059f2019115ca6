/* member_retell - what the broker had answered, and its database, restored from an older copy, does
 * not hold any more: what others wait for is said again. Notices go with HELLO, and what was never
 * answered is repeated anyway. */
#include "node/core/member_state.h"

/* A database that does not know of it waits for this rank until the join timeout. */
static void restored_again(struct member *m)
{
    struct wire_msg message = message_make(WIRE_RESTORED);

    if (!m->restored || m->view.started || m->view.mode == VIEW_END ||
        !role_is_trainer(m->options.role))
        return;
    message.u.restored = m->restored_is;
    request_put(m, &message);
}

static void at_step_again(struct member *m, uint64_t round, int64_t step, bool captured)
{
    struct wire_msg message = message_make(WIRE_AT_STEP);

    message.u.at_step = (struct wire_at_step){.round = round, .step = step, .captured = captured};
    request_put(m, &message);
}

/* The names of its files are told once: a shard that is not known there stays so, and the round is
 * to end. What failed then failed for the same reason. */
static void saved_is_lost(struct member *m, struct save_told *save)
{
    struct wire_msg message = message_make(WIRE_SAVE_FAILED);

    save->retold = true;
    message.u.save_failed = (struct wire_save_failed){
        .round = save->round,
        .step = save->step,
        .code = save->code == MUSTER_OK ? MUSTER_E_SAVE : save->code,
        .text = save->code == MUSTER_OK ? "what came of its save was told to a broker whose "
                                          "database was restored from an older copy since"
                                        : "that it failed was told to a broker whose database was "
                                          "restored from an older copy since"};
    request_put(m, &message);
}

/* All that the broker can still wait for, the oldest first. */
static void saves_are_lost(struct member *m)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        struct save_told *save = &m->saves[(m->saves_count + i) % ROUNDS_ACTIVE_MAX];

        if (save->round != 0)
            saved_is_lost(m, save);
    }
}

void requests_retell(struct member *m)
{
    struct wire_msg past = message_make(WIRE_PAST);

    restored_again(m);
    if (m->behind_round != 0)
        at_step_again(m, m->behind_round, m->behind_step, true);
    if (m->part == PART_CAPTURING || (m->part == PART_CAPTURED && !m->writer))
        at_step_again(m, m->round, m->step, m->part == PART_CAPTURED);
    saves_are_lost(m);
    past.u.past = (struct wire_past){.round = m->past_round, .begun = m->begun};
    if (m->past_round != 0)
        request_put(m, &past);
}
