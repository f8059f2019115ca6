#include "broker/core/contract/authority.h"

#include "schema/error.h"
#include "schema/sql/queries.h"

#include <string.h>

#define NODE (1U << KEY_NODE)
#define OPERATOR (1U << KEY_OPERATOR)
#define VIEWER (1U << KEY_VIEWER)
#define ALL (NODE | OPERATOR | VIEWER)

/* A client with a key may not send a message that is not in the table. */
static const uint8_t may[] = {
    /* of a rank */
    [WIRE_HELLO] = NODE,
    [WIRE_PROBE_GET] = NODE,
    [WIRE_LEAVE] = NODE,
    [WIRE_NOOP] = NODE,
    [WIRE_REPORT] = NODE,
    [WIRE_AT_STEP] = NODE,
    [WIRE_FILES] = NODE,
    [WIRE_SAVED] = NODE,
    [WIRE_SAVE_FAILED] = NODE,
    [WIRE_PAST] = NODE,
    [WIRE_SAVE_AT] = NODE,
    [WIRE_SAVE_WISH] = NODE,
    [WIRE_ERROR] = NODE,
    [WIRE_RESTORED] = NODE,
    [WIRE_RESTORE_FAILED] = NODE,
    [WIRE_MANIFEST_DONE] = NODE,
    [WIRE_MANIFEST_GET] = NODE,
    [WIRE_POLICIES] = NODE,
    [WIRE_SWEEP] = NODE,
    [WIRE_DELETED] = NODE,
    [WIRE_EVENTS_GET] = NODE,

    /* of a coordinator or a worker */
    [WIRE_QUEUE_OPEN] = NODE,
    [WIRE_QUEUE_BEAT] = NODE,
    [WIRE_TASKS_ADD] = NODE,
    [WIRE_TASKS_GET] = NODE,
    [WIRE_TASK_CANCEL] = NODE,
    [WIRE_RAISE] = NODE,
    [WIRE_RESULT_GET] = NODE,
    [WIRE_RESOURCE_ADD] = NODE,
    [WIRE_WORK_HELLO] = NODE,
    [WIRE_WORK_DONE] = NODE,
    [WIRE_WORK_PART] = NODE,
    [WIRE_WORK_BEAT] = NODE,
    [WIRE_WORK_LEAVE] = NODE,

    /* of a rank, of `muster run` beside it, or of an operator */
    [WIRE_NOTICE] = NODE | OPERATOR,
    [WIRE_CANCEL] = NODE | OPERATOR,
    [WIRE_PIN] = NODE | OPERATOR,
    [WIRE_UNPIN] = NODE | OPERATOR,
    [WIRE_DROP] = NODE | OPERATOR,
    [WIRE_GONE] = NODE | OPERATOR,
    [WIRE_HOST] = NODE | OPERATOR,
    [WIRE_IMPORT] = NODE | OPERATOR,

    /* of tools */
    [WIRE_SAVE_NOW] = OPERATOR,
    [WIRE_FORGET] = OPERATOR,
    [WIRE_HEARTBEAT] = ALL,
    [WIRE_QUERY] = ALL,
};

static bool authority_role_may(enum key_role role, enum wire_type type)
{
    return type < sizeof may / sizeof may[0] && (may[type] & 1U << role) != 0;
}

/* The broker's own state concerns all jobs, whatever job the question names. */
static bool authority_asks_for_broker(const struct wire_msg *message)
{
    return message->type == WIRE_QUERY && message->u.query.name != NULL &&
           strcmp(message->u.query.name, QUERY_BROKER) == 0;
}

enum muster_status authority_check(const struct key_grant *grant, const struct wire_msg *message,
                                   int64_t now_unix_ms, struct muster_error *err)
{
    const char *job = message->up.job, *trouble = key_trouble(grant, now_unix_ms);

    if (trouble != NULL)
        return error_set(
            err, MUSTER_E_AUTH, "key %s %s: ask whoever runs the broker for a new one%s",
            grant->name, trouble,
            grant->revoked_unix_ms != 0 ? "" : ", or to set its host's clock if that is wrong");
    if (!authority_role_may(grant->role, message->type))
        return error_set(err, MUSTER_E_AUTH, "key %s is for a%s %s, who may not send %s",
                         grant->name, grant->role == KEY_OPERATOR ? "n" : "",
                         key_role_name(grant->role), wire_type_name(message->type));
    if (authority_asks_for_broker(message) && !key_covers(grant->jobs, ""))
        return error_set(err, MUSTER_E_AUTH,
                         "key %s is for jobs %s only: only a key for all jobs may ask about the "
                         "broker itself",
                         grant->name, grant->jobs);
    if (key_covers(grant->jobs, job))
        return MUSTER_OK;
    if (job == NULL || job[0] == '\0')
        return error_set(err, MUSTER_E_AUTH, "key %s is for jobs %s only: name one with --job",
                         grant->name, grant->jobs);
    return error_set(err, MUSTER_E_AUTH, "key %s is for jobs %s, not for job %s", grant->name,
                     grant->jobs, job);
}

bool authority_hears(const struct key_grant *grant, const char *job, int64_t now_unix_ms)
{
    return key_trouble(grant, now_unix_ms) == NULL && key_covers(grant->jobs, job);
}
