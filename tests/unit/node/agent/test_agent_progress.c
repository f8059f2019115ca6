/* How far a save came, as heartbeats tell it: of this save, also while its snapshot is taken. */
#include "client/node/node_private.h"
#include "node/agent/agent_state.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>

#define ROUNDS 3
#define TOLD_BYTES 1000 /* by the program in its snapshot; in its save it counts again */

struct seen { /* what a heartbeat would have told */
    uint64_t round, bytes;
};

static struct seen at_snapshot[ROUNDS], told_there[ROUNDS], at_save[ROUNDS];
static char content[4096];

static struct seen look(void)
{
    struct agent *agent = lone.node->agent;
    struct seen seen;

    pthread_mutex_lock(&agent->mutex);
    seen = (struct seen){agent->saving_round, agent_saving_bytes(agent)};
    pthread_mutex_unlock(&agent->mutex);
    return seen;
}

static int takes;

/* The first one fails: what round 1 saves is written by the training thread itself. */
static int take(const struct muster_save_context *context, void **ret_snapshot)
{
    assert_int_equal(context->struct_size, sizeof *context);
    if (takes++ == 0)
        return 1;
    at_snapshot[context->round - 1] = look();
    muster_node_save_progress(lone.node, TOLD_BYTES);
    told_there[context->round - 1] = look();
    *ret_snapshot = content;
    return 0;
}

static int write_it(const struct muster_save_context *context)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/content", context->directory);
    file = fopen(path, "w");
    if (file == NULL || fwrite(context->snapshot, 1, sizeof content, file) != sizeof content ||
        fclose(file) != 0)
        return 1;
    muster_node_save_progress(lone.node, TOLD_BYTES / 2);
    at_save[context->round - 1] = look();
    return 0;
}

static int restore_nothing(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

static void say(enum wire_event_kind kind, uint64_t round, int64_t step)
{
    const struct wire_member me = {.incarnation = lone.incarnation, .flags = MEMBER_FLAG_WRITER};

    lone_say((struct wire_event){.kind = kind,
                                 .round = round,
                                 .cause = CAUSE_OPERATOR,
                                 .step = step,
                                 .rank = -1,
                                 .members = {&me, 1}});
}

static void save_in_round(uint64_t round)
{
    int64_t step;

    say(EVENT_FREEZE, round, -1);
    step = lone_await(WIRE_REPORT)->u.report.begun + 1;
    say(EVENT_DECISION, round, step);
    lone_await(WIRE_SAVED);
    assert_int_equal(lone.heard.u.saved.round, round);
    say(EVENT_ABORT, round, step); /* no manifest to be written */
}

static void start_saving_behind(muster_snapshot_fn *snapshot_fn, muster_save_fn *save_fn)
{
    lone.options.state = NULL;
    lone.options.save_behind = true;
    lone.options.snapshot_fn = snapshot_fn;
    lone.options.termination.save_fn = save_fn;
    lone.options.termination.restore_fn = restore_nothing;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
}

static void progress_is_of_this_save_and_grows_from_its_snapshot_on(void **state)
{
    (void)state;
    start_saving_behind(take, write_it);
    for (uint64_t round = 1; round <= ROUNDS; round++)
        save_in_round(round);
    lone_await_leave();
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(at_snapshot[i].round, i + 1);
        assert_int_equal(at_snapshot[i].bytes, 0); /* not what the one before came to */
        assert_int_equal(told_there[i].bytes, TOLD_BYTES);
        assert_int_equal(at_save[i].round, i + 1);
        assert_true(at_save[i].bytes > told_there[i].bytes);
    }
}

static struct agent *own;
static uint64_t told_in_close;

static int take_first(const struct muster_save_context *context, void **ret_snapshot)
{
    (void)context;
    own = lone.node->agent;
    *ret_snapshot = content;
    return 0;
}

static bool close_waits(void)
{
    bool leaving;

    pthread_mutex_lock(&own->mutex);
    leaving = own->leaving;
    pthread_mutex_unlock(&own->mutex);
    return leaving;
}

static int write_in_close(const struct muster_save_context *context)
{
    while (!close_waits())
        poll(NULL, 0, 1);
    muster_node_save_progress(lone.node, TOLD_BYTES);
    told_in_close = agent_saving_bytes(own);
    return write_it(context);
}

/* A program has its node in one variable: what is written behind training tells by it how far it
 * came. */
static void a_save_that_close_waits_for_still_tells_its_progress(void **state)
{
    (void)state;
    start_saving_behind(take_first, write_in_close);
    say(EVENT_FREEZE, 1, -1);
    say(EVENT_DECISION, 1, lone_await(WIRE_REPORT)->u.report.begun + 1);
    lone_await(WIRE_AT_STEP);
    atomic_store(&lone.stop, true);
    lone_await(WIRE_SAVED);
    say(EVENT_ABORT, 1, -1);
    lone_await_leave();
    assert_true(told_in_close >= TOLD_BYTES);
    assert_null(lone.node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(progress_is_of_this_save_and_grows_from_its_snapshot_on,
                                        lone_setup, lone_teardown),
        cmocka_unit_test_setup_teardown(a_save_that_close_waits_for_still_tells_its_progress,
                                        lone_setup, lone_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
