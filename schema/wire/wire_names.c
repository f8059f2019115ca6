/* wire_names - the words for the numbers of wire.h's enums, as shown and stored.
 * Never: allocation, locale. A number that has no word here is "unknown". */
#include "schema/wire/wire.h"

#include <string.h>

/* A table has one text for each number of its enum: an enum that grows without it does not compile.
 */
#define NAMES(function, parameter, count, ...)                                                \
    const char *function(unsigned parameter)                                                  \
    {                                                                                         \
        static const char *const names[] = {__VA_ARGS__};                                     \
                                                                                              \
        _Static_assert(sizeof names / sizeof *names == (count), "one name for each " #count); \
        return parameter < (count) ? names[parameter] : "unknown";                            \
    }

NAMES(wire_role_name, role, ROLE_COUNT, "none", "chief", "worker", "ps", "evaluator", "tool")
NAMES(wire_layout_name, layout, LAYOUT_COUNT, "none", "replicated", "sharded")
NAMES(wire_cause_name, cause, CAUSE_COUNT, "none", "termination", "operator", "period", "policy",
      "error", "notice")
NAMES(wire_round_state_name, state, ROUND_STATE_COUNT, "none", "freezing", "decided", "writing",
      "committed", "aborted", "unchanged")
NAMES(wire_generation_state_name, state, GENERATION_STATE_COUNT, "none", "joining", "running",
      "ending", "ended")
NAMES(wire_node_state_name, state, NODE_STATE_COUNT, "none", "joined", "restored", "left", "lost",
      "fenced")
NAMES(wire_phase_name, phase, PHASE_COUNT, "none", "joining", "restoring", "stepping", "frozen",
      "to step", "saving", "holding", "hold", "closing", "ended")
NAMES(wire_notice_kind_name, kind, NOTICE_KIND_COUNT, "none", "preempt", "terminate", "stop",
      "reboot", "time limit", "signal", "user", "freeze", "migrate")
NAMES(wire_leave_why_name, why, LEAVE_WHY_COUNT, "none", "finished", "preempted", "failed", "error")
NAMES(wire_checkpoint_state_name, state, CHECKPOINT_STATE_COUNT, "none", "writing", "committed",
      "failed", "superseded", "deleted", "deleting")
NAMES(wire_task_state_name, state, TASK_STATE_COUNT, "none", "queued", "leased", "done", "failed",
      "cancelled")
NAMES(wire_event_kind_name, kind, EVENT_KIND_COUNT, "none", "generation opened", "resume",
      "started", "termination", "notice cancelled", "freeze", "decision", "commit", "manifest",
      "abort", "unchanged", "not saved", "peer error", "node lost", "rank restarted", "join failed",
      "restore failed", "stuck", "save skipped", "generation ended", "observer failed", "order")

unsigned wire_notice_kind_from_name(const char *name)
{
    for (unsigned kind = NOTICE_NONE + 1; kind < NOTICE_KIND_COUNT; kind++)
        if (name != NULL && strcmp(name, wire_notice_kind_name(kind)) == 0)
            return kind;
    return NOTICE_NONE;
}

/* Not isalnum: what that takes for a letter hangs on the host's locale. */
static const char job_name_bytes[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool wire_job_name_ok(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, JOB_NAME_MAX + 1);

    return length > 0 && length <= JOB_NAME_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, job_name_bytes) == length;
}

void wire_job_name_clean(char *name)
{
    for (char *c = name; *c != '\0'; c++) {
        if (strchr(job_name_bytes, *c) == NULL)
            *c = '-';
    }
    if (name[0] == '.' || name[0] == '-')
        name[0] = '_';
}

static uint64_t wire_mix(uint64_t x) /* splitmix64's finisher */
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t wire_round_nonce_add(uint64_t sum, const struct wire_member *member)
{
    return sum + wire_mix(wire_mix(member->rank + 1) ^ member->incarnation);
}

uint64_t wire_round_nonce(const struct wire_member *members, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum = wire_round_nonce_add(sum, &members[i]);
    return sum == 0 ? 1 : sum;
}

bool wire_notice_ends(uint64_t kind)
{
    return kind != NOTICE_NONE && kind != NOTICE_FREEZE && kind != NOTICE_MIGRATE;
}
