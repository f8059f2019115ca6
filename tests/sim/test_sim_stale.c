/* Must-fail controls: a broker that lets processes in again that it has given up, or says that it
 * took their requests; that takes a request again which it took; whose answers to heartbeats do not
 * tell of events. The mutated files stand in for those of the archive. */
#include "broker/core/dispatch.h"

static bool lets_in, takes, takes_again, is_silent;

#define NODE_LOST (lets_in ? NODE_STATE_COUNT : NODE_LOST)
#define NODE_FENCED (lets_in ? NODE_STATE_COUNT : NODE_FENCED)
#include "broker/core/members/hello.c" /* NOLINT(bugprone-suspicious-include) */
#undef NODE_LOST
#undef NODE_FENCED

/* Deduplication removed: what a repeated request asks for is done once more. */
struct said;
static struct answer dispatch_take(struct core *core, const struct said *s, enum wire_role role);

static enum wire_type taken_anew(struct core *core, struct peer *peer, const struct said *s,
                                 const struct wire_msg *m)
{
    if (takes_again && m->up.request > 0 && m->up.request <= peer->last_request)
        dispatch_take(core, s, peer->role);
    return m->type;
}

#define wire_is_request(type) wire_is_request(taken_anew(core, peer, &said, m))
#define MUSTER_E_STALE (takes ? MUSTER_OK : MUSTER_E_STALE)
#include "broker/core/dispatch.c" /* NOLINT(bugprone-suspicious-include) */
#undef MUSTER_E_STALE
#undef wire_is_request

static struct wire_msg *without_seq(struct wire_msg *message)
{
    if (is_silent && message->type == WIRE_ALIVE)
        message->down.last_seq = 0;
    return message;
}

#define send_to(core, route, job, type) without_seq(send_to(core, route, job, type))
#include "broker/core/members/roster.c" /* NOLINT(bugprone-suspicious-include) */
#undef send_to

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int nothing_is_mutated(void **state)
{
    (void)state;
    lets_in = takes = takes_again = is_silent = false;
    return 0;
}

static const struct sim_options chance = {.async = -1};

static void a_process_that_was_given_up_and_is_welcomed_is_seen(void **state)
{
    (void)state;
    lets_in = true;
    assert_true(sim_find_broken(&chance, 300, "I6"));
}

static void a_request_of_who_was_given_up_that_is_taken_is_seen(void **state)
{
    (void)state;
    takes = true;
    assert_true(sim_find_broken(&chance, 300, "I6"));
}

static void a_request_that_is_taken_twice_is_seen(void **state)
{
    (void)state;
    takes_again = true;
    assert_true(sim_find_said(&chance, 50, "I12", "is taken again"));
}

static void heartbeats_without_seq_are_seen(void **state)
{
    (void)state;
    is_silent = true;
    assert_true(sim_find_said(&chance, 10, "I8", "an ALIVE tells of event 0"));
}

static void without_that_the_same_worlds_break_nothing(void **state)
{
    (void)state;
    assert_false(sim_find_broken(&chance, 60, "I6"));
    assert_false(sim_find_broken(&chance, 60, "I8"));
    assert_false(sim_find_broken(&chance, 60, "I12"));
}

#define BUGS_MIN 4 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_process_that_was_given_up_and_is_welcomed_is_seen,
                               nothing_is_mutated),
        cmocka_unit_test_setup(a_request_of_who_was_given_up_that_is_taken_is_seen,
                               nothing_is_mutated),
        cmocka_unit_test_setup(a_request_that_is_taken_twice_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(heartbeats_without_seq_are_seen, nothing_is_mutated),
        cmocka_unit_test_setup(without_that_the_same_worlds_break_nothing, nothing_is_mutated),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
