/* member_save - the state of this node's own save: captured, saved or failed, and written behind
 * the training thread. One round at a time is written behind; the thread that captures the next
 * waits for it (that is the driver's), so that `behind_round` is one number. Whoever trains on
 * beyond S may say SAVED for S nevertheless: the snapshot is of S. */
#include "node/core/member_state.h"

static void save_send_files(struct member *m, const struct member_input *in, int64_t step)
{
    for (size_t first = 0; first < in->files_count; first += FILES_FRAME_MAX) {
        struct wire_msg message = message_make(WIRE_FILES);
        size_t count = in->files_count - first;
        message.u.files.round = in->round;
        message.u.files.step = step;
        message.u.files.files.items = in->files + first;
        message.u.files.files.count = count < FILES_FRAME_MAX ? count : FILES_FRAME_MAX;
        request_put(m, &message);
    }
}

/* Of the round that the thread saves right now, or of the one that is written behind it? */
static bool save_counts(const struct member *m, const struct member_input *in, int64_t *ret_step)
{
    bool now = m->part == PART_CAPTURING && in->round == m->round;
    bool behind = in->round == m->behind_round && in->round != 0;

    *ret_step = now ? m->step : m->behind_step;
    return now || behind;
}

/* Training goes on; what is written behind is told of when it is durable. */
void round_captured(struct member *m, const struct member_input *in)
{
    struct wire_msg message = message_make(WIRE_AT_STEP);

    m->written_behind = in->round;
    if (m->part != PART_CAPTURING || in->round != m->round)
        return; /* the round ended while the snapshot was taken: what comes of it is dropped */
    m->behind_round = m->round;
    m->behind_step = m->step;
    message.u.at_step = (struct wire_at_step){.round = m->round, .step = m->step, .captured = true};
    request_put(m, &message);
    part_move(m, PART_CAPTURED);
    hold_or_go(m);
}

static void save_write_ended(struct member *m, const struct member_input *in)
{
    if (in->round == m->saving_round)
        member_set_saving(m, 0, 0);
    if (in->round != m->written_behind)
        return;
    m->written_behind = 0;
    if (m->part == PART_CAPTURING)
        m->give_up_at = NEVER; /* the thread waited for it, and saves the next one now */
}

const struct save_told *save_last(const struct member *m)
{
    static const struct save_told none;

    return m->saves_count == 0 ? &none : &m->saves[(m->saves_count - 1) % ROUNDS_ACTIVE_MAX];
}

bool save_was_told(const struct member *m, uint64_t round)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (m->saves[i].round == round && round != 0)
            return true;
    return false;
}

static void save_told(struct member *m, const struct member_input *in, int64_t step, unsigned code)
{
    m->saves[m->saves_count++ % ROUNDS_ACTIVE_MAX] =
        (struct save_told){.round = in->round, .step = step, .code = code};
    m->stays_until = m->now + GIVE_UP_MS;
    if (code == MUSTER_OK)
        outcome_saved(m, in->round);
    if (in->round == m->behind_round) {
        m->behind_round = 0;
        return;
    }
    part_move(m, PART_CAPTURED);
    hold_or_go(m);
}

void round_saved(struct member *m, const struct member_input *in)
{
    struct wire_msg message = message_make(WIRE_SAVED);
    int64_t step;

    save_write_ended(m, in);
    if (!save_counts(m, in, &step)) {
        report_if_quiet(m);
        return; /* the round ended while it was written */
    }
    save_send_files(m, in, step);
    message.u.saved =
        (struct wire_saved){.round = in->round,
                            .step = step,
                            .files_count = in->files_count,
                            .bytes = in->bytes,
                            .save_ms = in->save_ms > INT32_MAX ? INT32_MAX : in->save_ms,
                            .blocked_ms = in->blocked_ms > INT32_MAX ? INT32_MAX : in->blocked_ms,
                            .epoch = in->epoch,
                            .step_in_epoch = in->step_in_epoch,
                            .data_position = in->data_position,
                            .waited_ms = in->waited_ms > INT32_MAX ? INT32_MAX : in->waited_ms,
                            .metrics = in->metrics,
                            .custom = in->custom,
                            .held = in->held};
    request_put(m, &message);
    save_told(m, in, step, MUSTER_OK);
}

void round_save_failed(struct member *m, const struct member_input *in)
{
    struct wire_msg message = message_make(WIRE_SAVE_FAILED);
    int64_t step;

    save_write_ended(m, in);
    if (!save_counts(m, in, &step)) {
        report_if_quiet(m);
        return;
    }
    message.u.save_failed = (struct wire_save_failed){
        .round = in->round,
        .step = step,
        .code = (uint64_t)(in->code > 0 && in->code < 256 ? in->code : MUSTER_E_SAVE),
        .text = member_text(m, in->text)};
    request_put(m, &message);
    save_told(m, in, step, (unsigned)message.u.save_failed.code);
}
