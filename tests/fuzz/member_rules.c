#include "tests/fuzz/member_rules.h"

#include "tests/fuzz/fuzz.h"

#define ACTIONS_MAX 1024 /* of one input: all pending requests, and some */

static bool is_among(const uint64_t *rounds, size_t count, uint64_t round)
{
    for (size_t i = 0; i < count; i++)
        if (rounds[i] == round)
            return true;
    return count == RULES_SAVED_MAX;
}

static void add(uint64_t *rounds, size_t *count, uint64_t round)
{
    if (!is_among(rounds, *count, round))
        rounds[(*count)++] = round;
}

void member_rules_saved(struct member_rules *rules, uint64_t round)
{
    add(rules->saved, &rules->saved_count, round);
}

/* I2: who says SAVED has saved, and who is beyond S never says it. I8: events in order. */
static void check_sent(struct member_rules *rules, const struct wire_msg *message)
{
    static uint8_t frame[WIRE_FRAME_MAX];

    must(wire_is_up(message->type) && wire_encode(message, frame, sizeof frame) > 0);
    must(wire_is_request(message->type) == (message->up.request > 0));
    must(message->up.applied_seq >= rules->applied_seq);
    rules->applied_seq = message->up.applied_seq;
    if (message->type == WIRE_SAVED) {
        must(is_among(rules->saved, rules->saved_count, message->u.saved.round));
        must(!is_among(rules->past, rules->past_count, message->u.saved.round) ||
             rules->past_count == RULES_SAVED_MAX);
    }
    if (message->type == WIRE_PAST)
        add(rules->past, &rules->past_count, message->u.past.round);
    if (message->type == WIRE_REPORT)
        must(message->u.report.done <= message->u.report.begun);
}

void member_rules_told(struct member_rules *rules, uint64_t checkpoint)
{
    if (checkpoint < RULES_DELETES_MAX)
        rules->told[checkpoint] = true;
}

void member_rules_deleted(struct member_rules *rules, uint64_t checkpoint)
{
    if (checkpoint < RULES_DELETES_MAX)
        rules->deleting[checkpoint] = false;
}

/* Nothing is removed of which nobody told, nor twice at a time. */
static void check_delete(struct member_rules *rules, uint64_t checkpoint)
{
    if (checkpoint >= RULES_DELETES_MAX)
        return;
    must(rules->told[checkpoint] && !rules->deleting[checkpoint]);
    rules->deleting[checkpoint] = true;
}

static void check_requests(const struct member *m)
{
    must(m->pending_count <= PENDING_MAX && m->next_request > 0);
    for (size_t i = 0; i < m->pending_count; i++)
        must(m->pending[i]->message.up.request == m->next_request - m->pending_count + i);
}

static void check_view(struct member_rules *rules, const struct member_fixture *f)
{
    const struct member_view *view = member_seen(f);

    must(!rules->ended || view->mode == VIEW_END);
    rules->ended = view->mode == VIEW_END;
    must(view->mode != VIEW_END || view->end.status != MUSTER_OK);
    must(view->mode == VIEW_OPEN || f->gate_closed);
    must(view->mode != VIEW_OPEN || view->started);
    must(view->mode != VIEW_STEP_TO || f->begun <= view->step);
    must(view->mode != VIEW_CAPTURE || (f->begun == view->step && f->done == view->step));
}

void member_rules_check(struct member_rules *rules, const struct member_fixture *f)
{
    must(f->out.count <= ACTIONS_MAX);
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == MEMBER_SEND)
            check_sent(rules, &f->out.items[i].message);
        else if (f->out.items[i].kind == MEMBER_DELETE)
            check_delete(rules, f->out.items[i].round);
    check_requests(f->m);
    check_view(rules, f);
}
