/* member_keep - what the program asks the broker for (policies, pins, deletions: one question at a
 * time), and the checkpoints that this node's hand removes. A deletion is decided and on record
 * before it is heard of here, so it is carried out whenever it is heard, and telling of it twice
 * harms nobody. */
#include "node/core/member_state.h"

#include <stdio.h>

/* --- questions -------------------------------------------------------------------------------- */

static void keep_answer(struct member *m, unsigned code, const char *text, uint64_t value)
{
    m->ask_request = 0;
    m->view.asks_answered++;
    m->view.ask_code = code;
    m->view.ask_value = value;
    char *fit = wire_text_fit(&m->out->arena, text, sizeof m->view.ask_text - 1);
    snprintf(m->view.ask_text, sizeof m->view.ask_text, "%s", fit != NULL ? fit : "");
    m->view_changed = true;
}

void ask_put(struct member *m, const struct member_input *in)
{
    request_withdraw(m, m->ask_request); /* nobody waits for it any more */
    m->ask_request = request_put(m, in->ask);
    if (m->ask_request == 0)
        keep_answer(m, MUSTER_E_BUSY, "too many requests wait for the broker already", 0);
}

void ask_answered(struct member *m, const struct wire_ack *ack)
{
    if (m->ask_request > 0 && ack->request == m->ask_request)
        keep_answer(m, (unsigned)ack->code, ack->text, ack->value);
}

/* The broker took it before the connection broke, so the answer is not known. */
void ask_lost(struct member *m)
{
    if (m->ask_request > 0 && !request_waits(m, m->ask_request))
        keep_answer(m, MUSTER_E_HELLO, "the answer was lost with the connection; ask again", 0);
}

bool member_view_ends(const struct member_view *view)
{
    return view->mode == VIEW_END || view->termination_seen;
}

/* --- deletion --------------------------------------------------------------------------------- */

void delete_take(struct member *m, const struct wire_delete *told)
{
    struct member_action *action;
    const char *path, *trash;

    if (m->link != LINK_JOINED || m->closing || m->deletes_count == DELETES_MAX)
        return; /* it is told again, here or elsewhere */
    for (size_t i = 0; i < m->deletes_count; i++)
        if (m->deletes[i] == told->checkpoint)
            return;
    path = wire_text_fit(&m->out->arena, told->path, TEXT_MAX);
    trash = wire_text_fit(&m->out->arena, told->trash, TEXT_MAX);
    if (path == NULL || trash == NULL)
        return; /* no memory: it is told again. Without `trash` what is to be kept there would be
                   gone */
    action = member_add(m, MEMBER_DELETE);
    if (action->kind == MEMBER_DELETE) /* else there is no memory: it is told again */
        m->deletes[m->deletes_count++] = told->checkpoint;
    action->round = told->checkpoint;
    action->generation = told->round_generation;
    action->step = told->step;
    action->text = path;
    action->trash = trash;
}

void member_deletion_lost(struct member *m, uint64_t checkpoint)
{
    for (size_t i = 0; i < m->deletes_count; i++)
        if (m->deletes[i] == checkpoint) {
            m->deletes[i] = m->deletes[--m->deletes_count];
            return;
        }
}

void delete_done(struct member *m, const struct member_input *in)
{
    struct wire_msg message = message_make(WIRE_DELETED);

    member_deletion_lost(m, in->checkpoint);
    if (in->code != MUSTER_OK)
        member_log(m, 1, "checkpoint %llu is not deleted yet, and will be tried again: %s",
                   (unsigned long long)in->checkpoint, in->text != NULL ? in->text : "no memory");
    message.u.deleted =
        (struct wire_deleted){.checkpoint = in->checkpoint,
                              .code = (uint64_t)(in->code >= 0 && in->code < 256 ? in->code : 0),
                              .text = member_text(m, in->text)};
    if (m->pending_count < PENDING_POLICY_MAX) /* else the broker asks again */
        request_put(m, &message);
}
