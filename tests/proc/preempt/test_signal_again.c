/* A signal that comes again once its burst is over: told again, or joined to the notice that
 * stands.
 */
#include "node/notice/signal.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void a_signal_that_comes_later_is_told_anew(void **state)
{
    int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct signal_watch *watch = NULL;
    struct signal_seen first, second;
    int raised = 0;

    (void)state;
    assert_int_equal(signal_watch((const int[]){SIGTERM}, 1, wake_fd, &watch, NULL), MUSTER_OK);
    raise(SIGTERM);
    assert_true(signal_take(watch, &first));
    do {
        poll(NULL, 0, 50);
        raise(SIGTERM);
    } while (!signal_take(watch, &second) && ++raised < 200);
    assert_true(second.at_boot_ms - first.at_boot_ms >= SIGNAL_BURST_MS);
    raise(SIGTERM); /* of the second burst */
    assert_false(signal_take(watch, &first));
    signal_unwatch(&watch);
    assert_int_equal(close(wake_fd), 0);
}

static _Atomic bool again_said; /* the log said that a signal came again */

static void note_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level == 3 && strstr(text, "SIGUSR1") != NULL && strstr(text, "again") != NULL)
        atomic_store(&again_said, true);
}

static void withdraw_by_event(const char *id)
{
    lone_say((struct wire_event){.kind = EVENT_NOTICE_CANCELLED, .rank = 0, .text = id});
}

/* The event is heard no more: the journal does not reach back that far. */
static void withdraw_by_snapshot(const char *id)
{
    const struct wire_notice_id withdrawn = {.id = id};
    struct wire_msg message = {.type = WIRE_SNAPSHOT};

    message.u.snapshot = (struct wire_snapshot){.seq = ++lone.seq,
                                                .generation = 1,
                                                .generation_state = GENERATION_RUNNING,
                                                .resume_step = -1,
                                                .resume_path = "",
                                                .round_step = -1,
                                                .newest_step = -1,
                                                .named_step = -1,
                                                .error_rank = -1,
                                                .error_text = "",
                                                .end_text = "",
                                                .left_ms = -1,
                                                .withdrawn = {&withdrawn, 1}};
    lone_transmit(&message, false);
}

static void signal_is_a_new_notice_after(void (*withdraw)(const char *id))
{
    char first[NOTICE_ID_MAX + 1];
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS;

    atomic_store(&again_said, false);
    lone.options.log = note_line;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    snprintf(first, sizeof first, "%s", lone_await(WIRE_NOTICE)->u.notice.id);
    lone.nag = SIGUSR1;
    while (!atomic_load(&again_said)) { /* it stands: another signal says nothing new */
        assert_true(lone_now_ms() < until);
        lone_await(WIRE_HEARTBEAT);
    }
    withdraw(first);
    lone_await(WIRE_NOTICE);
    lone.nag = 0;
    assert_string_not_equal(lone.heard.u.notice.id, first);
    assert_string_equal(lone.heard.u.notice.source, "signal");
    lone_await_leave();
}

static void a_signal_after_its_notice_was_cancelled_is_a_new_notice(void **state)
{
    (void)state;
    signal_is_a_new_notice_after(withdraw_by_event);
}

static void also_when_only_a_snapshot_told_of_that(void **state)
{
    (void)state;
    signal_is_a_new_notice_after(withdraw_by_snapshot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_that_comes_later_is_told_anew),
        TEST(a_signal_after_its_notice_was_cancelled_is_a_new_notice),
        TEST(also_when_only_a_snapshot_told_of_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
