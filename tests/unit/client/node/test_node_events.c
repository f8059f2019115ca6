/* The queue of events: order, bound, kinds, end, and which news of a node become events. */
#include "client/node/node_private.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000 /* none of these waits is to end by itself */

static struct muster_event event; /* of the last next() */
static struct muster_error err;

static muster_events_t *created(unsigned kinds)
{
    muster_events_t *events = NULL;

    assert_int_equal(muster_events_create(kinds, &events, &err), MUSTER_OK);
    return events;
}

static enum muster_status next(muster_events_t *events, unsigned kinds, int64_t timeout_ms)
{
    memset(&event, 0x5a, sizeof event);
    return muster_events_next(events, kinds, timeout_ms, &event, sizeof event, &err);
}

static void put_commit(muster_events_t *events, int64_t step)
{
    events_put(events, &(struct muster_event){.kind = MUSTER_EVENT_COMMIT, .step = step});
}

/* --- the queue -------------------------------------------------------------------------------- */

static void events_come_in_order_and_by_their_kinds(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);

    (void)state;
    events_put_line(events, 2, "one");
    put_commit(events, 1);
    events_put_line(events, 0, "two");
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT), 0), MUSTER_OK);
    assert_int_equal(event.step, 1);
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT), 0), MUSTER_E_TIMEOUT);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_EVENT_LOG);
    assert_int_equal(event.level, 2);
    assert_string_equal(event.text, "one");
    assert_int_equal(event.rank, -1);
    put_commit(events, 2);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_string_equal(event.text, "two");
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.step, 2);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 1), MUSTER_E_TIMEOUT);
    muster_events_destroy(&events);
    assert_null(events);
}

static void the_oldest_of_a_kind_is_dropped_and_counted_once(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);

    (void)state;
    events_put_line(events, 1, "the oldest of all");
    for (int i = 0; i < EVENTS_MAX + 4; i++)
        put_commit(events, i);
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT), 0), MUSTER_OK);
    assert_int_equal(event.step, 4);
    assert_int_equal(event.lost, 4);
    for (int i = 5; i < EVENTS_MAX + 4; i++) {
        assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT), 0), MUSTER_OK);
        assert_int_equal(event.step, i);
        assert_int_equal(event.lost, 0);
    }
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_string_equal(event.text, "the oldest of all");
    assert_int_equal(event.lost, 0);
    muster_events_destroy(&events);
}

static void a_program_of_another_muster_gets_the_size_that_it_knows(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);
    struct {
        struct muster_event own;
        unsigned char behind[16];
    } given;

    (void)state;
    memset(&given, 0x5a, sizeof given);
    put_commit(events, 3);
    put_commit(events, 4);
    assert_int_equal(muster_events_next(events, MUSTER_EVENTS_ALL, 0, &given.own,
                                        offsetof(struct muster_event, lost), NULL),
                     MUSTER_OK);
    assert_int_equal(given.own.step, 3);
    assert_int_equal(((unsigned char *)&given)[offsetof(struct muster_event, lost)], 0x5a);
    assert_int_equal(
        muster_events_next(events, MUSTER_EVENTS_ALL, 0, &given.own, sizeof given, NULL),
        MUSTER_OK);
    assert_int_equal(given.own.step, 4);
    for (size_t i = 0; i < sizeof given.behind; i++)
        assert_int_equal(given.behind[i], 0);
    muster_events_destroy(&events);
}

static void *read_one(void *events)
{
    return next(events, MUSTER_EVENTS_ALL, PATIENCE_MS) == MUSTER_OK ? &event : NULL;
}

static void a_reader_waits_for_an_event_or_the_end(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);
    pthread_t thread;
    void *got;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, read_one, events), 0);
    put_commit(events, 5);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_ptr_equal(got, &event);
    assert_int_equal(event.step, 5);
    assert_int_equal(pthread_create(&thread, NULL, read_one, events), 0);
    muster_events_end(events);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_null(got);
    assert_int_equal(err.status, MUSTER_E_CLOSED);
    put_commit(events, 6); /* what comes nevertheless can be read */
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, PATIENCE_MS), MUSTER_OK);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, PATIENCE_MS), MUSTER_E_CLOSED);
    muster_events_destroy(&events);
}

static void wrong_calls_are_refused_and_a_child_touches_nothing(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL), *none = NULL;
    int code = 0;
    pid_t child;

    (void)state;
    assert_int_equal(muster_events_create(0, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(next(NULL, MUSTER_EVENTS_ALL, 0), MUSTER_E_ARGUMENT);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, -1), MUSTER_E_ARGUMENT);
    put_commit(events, 9);
    assert_int_equal(muster_events_next(events, MUSTER_EVENTS_ALL, 0, NULL, sizeof event, &err),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK); /* it is still there */
    muster_events_destroy(NULL);
    muster_events_destroy(&none);
    muster_events_end(NULL);
    child = fork();
    if (child == 0) {
        put_commit(events, 1);
        muster_events_end(events);
        code = next(events, MUSTER_EVENTS_ALL, PATIENCE_MS) == MUSTER_E_FORKED;
        muster_events_destroy(&events);
        _exit(code == 1 && events == NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_E_TIMEOUT);
    muster_events_destroy(&events);
}

/* --- what becomes an event -------------------------------------------------------------------- */

static void lines_go_to_the_queue_or_to_stderr(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);
    struct muster_node node = {.options = {.events = events}};

    (void)state;
    unsetenv("MUSTER_LOG");
    assert_int_equal(node_log_configure(&node, NULL), MUSTER_OK);
    node_log(&node, 3, "a detail of %d", 7);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_string_equal(event.text, "a detail of 7");
    assert_int_equal(event.level, 3);
    muster_events_destroy(&events);

    node.options.events = events = created(MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT));
    assert_int_equal(node_log_configure(&node, NULL), MUSTER_OK);
    assert_int_equal(node.log_level, 1); /* errors and warnings, on stderr */
    node_log(&node, 2, "nobody's");
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_E_TIMEOUT);
    muster_events_destroy(&events);
}

static int errors_taken;

static void take_error(const struct muster_error *error, void *arg)
{
    errors_taken += error->rank == 1 && error->step == 6 && arg == &errors_taken;
}

static void an_error_of_a_peer_is_an_event_beside_the_callback(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);
    struct muster_node node = {
        .options = {.events = events, .on_error = take_error, .arg = &errors_taken},
        .wish = {.names = {.offset = -1}}};
    const struct muster_error error = {
        .status = MUSTER_E_PEER, .rank = 1, .code = 5, .step = 7, .text = "no memory"};

    (void)state;
    node_events_error(&error, &node);
    assert_int_equal(errors_taken, 1);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_EVENT_ERROR);
    assert_int_equal(event.status, MUSTER_E_PEER);
    assert_int_equal(event.rank, 1);
    assert_int_equal(event.code, 5);
    assert_int_equal(event.step, 6); /* as a manager's program counts */
    assert_string_equal(event.text, "no memory");
    muster_events_destroy(&events);
}

static void changes_of_the_view_are_told_once(void **state)
{
    muster_events_t *events = created(MUSTER_EVENTS_ALL);
    struct muster_node node = {.options = {.events = events}, .wish = {.names = {.offset = -1}}};
    struct member_view view = {
        .announced = {.kind = NOTICE_PREEMPT, .rank = 3, .deadline_boot_ms = INT64_MAX / 2}};

    (void)state;
    node_events_view(&view, &node);
    view.announced.deadline_boot_ms += 5; /* the clocks' */
    node_events_view(&view, &node);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_EVENT_NOTICE);
    assert_int_equal(event.notice, MUSTER_NOTICE_PREEMPT);
    assert_int_equal(event.rank, 3);
    assert_true(event.left_ms > 0);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_E_TIMEOUT);

    view.announced = (struct member_announced){.kind = NOTICE_NONE};
    view.committed[1] = 8;
    node_events_view(&view, &node);
    view.committed[2] = 8; /* heard twice */
    node_events_view(&view, &node);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.notice, MUSTER_NOTICE_NONE);
    assert_int_equal(event.rank, -1);
    assert_int_equal(event.left_ms, -1);
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_EVENT_COMMIT);
    assert_int_equal(event.step, 7); /* as a manager's program counts */
    assert_int_equal(next(events, MUSTER_EVENTS_ALL, 0), MUSTER_E_TIMEOUT);
    muster_events_destroy(&events);
}

/* --- a node ----------------------------------------------------------------------------------- */

static void a_node_alone_tells_its_notice_and_its_checkpoint(void **state)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    muster_events_t *events = created(MUSTER_EVENTS_ALL), *ours = events;
    char directory[SCRATCH_PATH_MAX];
    muster_node_t *node = NULL;

    (void)state;
    scratch_make(directory);
    options.broker = "ipc:///tmp/muster-events-no-broker";
    options.offline_ok = true;
    options.connect_timeout_ms = 1;
    options.job = "events";
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = directory;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    options.termination.signals[0] = -1;
    options.events = events;
    assert_int_equal(muster_state_create(&options.state, NULL), MUSTER_OK);
    assert_int_equal(muster_node_open(&options, &node, &err), MUSTER_OK);
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_LOG), 0), MUSTER_OK);
    assert_non_null(strstr(event.text, "goes on alone"));
    assert_int_equal(muster_node_save_if_preempted(node, NULL, &err), MUSTER_OK);
    muster_node_notify(node, MUSTER_NOTICE_USER, 60000, "maintenance");
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_NOTICE), PATIENCE_MS), MUSTER_OK);
    assert_int_equal(event.notice, MUSTER_NOTICE_USER);
    assert_int_equal(event.rank, 0);
    assert_in_range(event.left_ms, 1, 60000);
    muster_node_notify(node, MUSTER_NOTICE_USER, 0, "now");
    while (muster_node_save_if_preempted(node, NULL, &err) == MUSTER_OK)
        continue;
    assert_int_equal(next(events, MUSTER_EVENTS_OF(MUSTER_EVENT_COMMIT), 0), MUSTER_OK);
    assert_true(event.step > 0);
    muster_events_destroy(&events); /* it lives as long as the node */
    assert_true(events_keeps(ours, MUSTER_EVENT_LOG));
    muster_node_close(&node, 0, NULL);
    muster_state_destroy(&options.state);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_order_and_by_their_kinds),
        cmocka_unit_test(the_oldest_of_a_kind_is_dropped_and_counted_once),
        cmocka_unit_test(a_program_of_another_muster_gets_the_size_that_it_knows),
        cmocka_unit_test(a_reader_waits_for_an_event_or_the_end),
        cmocka_unit_test(wrong_calls_are_refused_and_a_child_touches_nothing),
        cmocka_unit_test(lines_go_to_the_queue_or_to_stderr),
        cmocka_unit_test(an_error_of_a_peer_is_an_event_beside_the_callback),
        cmocka_unit_test(changes_of_the_view_are_told_once),
        cmocka_unit_test(a_node_alone_tells_its_notice_and_its_checkpoint),
    };

    return cmocka_run_group_tests_name("node_events", tests, NULL, NULL);
}
