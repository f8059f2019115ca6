/* member_requests - messages that change something at the broker: numbered, in order, sent again
 * until they are answered. */
#include "node/core/member_state.h"

uint64_t request_put(struct member *m, const struct wire_msg *message)
{
    struct pending *pending;

    if (m->pending_count == PENDING_MAX)
        return 0;
    pending = calloc(1, sizeof *pending);
    if (pending != NULL)
        arena_init(&pending->arena, 0);
    if (pending == NULL || !wire_copy(&pending->message, message, &pending->arena)) {
        m->starved = true;
        if (pending != NULL)
            arena_free(&pending->arena);
        free(pending);
        return 0;
    }
    pending->message.up.request = m->next_request++;
    m->pending[m->pending_count++] = pending;
    if (m->link == LINK_JOINED)
        message_send(m, &pending->message, pending->message.up.request);
    if (m->resend_at == NEVER) {
        m->resend_every = RESEND_MIN_MS;
        m->resend_at = m->now + m->resend_every;
    }
    return pending->message.up.request;
}

/* The greatest request number whose answer is known. */
uint64_t requests_answered(const struct member *m)
{
    return (m->pending_count > 0 ? m->pending[0]->message.up.request : m->next_request) - 1;
}

bool request_waits(const struct member *m, uint64_t request)
{
    return request > 0 && m->pending_count > 0 && request >= m->pending[0]->message.up.request &&
           request <= m->pending[m->pending_count - 1]->message.up.request;
}

/* Its number still has to be taken: the broker takes requests in order. */
void request_withdraw(struct member *m, uint64_t request)
{
    if (!request_waits(m, request))
        return;
    struct pending *pending = m->pending[request - m->pending[0]->message.up.request];
    pending->message.type = WIRE_NOOP;
    memset(&pending->message.u, 0, sizeof pending->message.u);
}

void requests_pop(struct member *m, uint64_t request)
{
    size_t popped = 0;

    while (popped < m->pending_count && m->pending[popped]->message.up.request <= request) {
        arena_free(&m->pending[popped]->arena);
        free(m->pending[popped]);
        popped++;
    }
    m->pending_count -= popped;
    memmove(m->pending, m->pending + popped, m->pending_count * sizeof m->pending[0]);
    if (popped > 0)
        m->resend_every = RESEND_MIN_MS;
    m->resend_at = m->pending_count > 0 ? m->now + m->resend_every : NEVER;
}

void requests_send(struct member *m)
{
    for (size_t i = 0; i < m->pending_count; i++)
        message_send(m, &m->pending[i]->message, m->pending[i]->message.up.request);
}

/* Is there a failed restore among what was taken, and no answer to it? */
static bool request_restore_failed_unheard(const struct member *m, uint64_t last_request)
{
    for (size_t i = 0; i < m->pending_count; i++)
        if (m->pending[i]->message.up.request <= last_request &&
            m->pending[i]->message.type == WIRE_RESTORE_FAILED)
            return !role_is_trainer(m->options.role); /* ranks hear of another choice, or the end */
    return false;
}

/* A launch that lets this incarnation in after another one had answered it counts from 1 again. */
void requests_renumber(struct member *m, uint64_t last_request)
{
    uint64_t first = m->pending_count > 0 ? m->pending[0]->message.up.request : m->next_request;
    bool restore = request_restore_failed_unheard(m, last_request);

    requests_pop(m, last_request);
    if (restore)
        restore_refused(m, "this process could not restore its checkpoint");
    ask_lost(m);
    if (first <= last_request || first - last_request == 1)
        return;
    uint64_t shift = first - last_request - 1;
    for (size_t i = 0; i < m->pending_count; i++)
        m->pending[i]->message.up.request -= shift;
    m->next_request -= shift;
    m->policy_request -= m->policy_request >= shift ? shift : m->policy_request;
    m->leave_request -= m->leave_request >= shift ? shift : m->leave_request;
    m->ask_request -= m->ask_request >= shift ? shift : m->ask_request;
}
