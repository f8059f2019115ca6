/* A node that gave its broker up: what it hears after all, late. */
#include "node/agent/agent_state.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct agent *agent;
static char why[256];
static bool told, ended;

static void open_agent(void)
{
    static const int signals[] = {SIGUSR1};
    const struct agent_options options = {.member = {.job = "agent",
                                                     .role = ROLE_CHIEF,
                                                     .world_size = 1,
                                                     .incarnation = 7,
                                                     .host = "h",
                                                     .pid = (uint64_t)getpid(),
                                                     .layout = LAYOUT_REPLICATED,
                                                     .checkpoint_dir = lone.directory,
                                                     .join_timeout_ms = JOIN_TIMEOUT_MS,
                                                     .abort_timeout_ms = STUCK_MS,
                                                     .grace_period_ms = -1},
                                          .broker = lone.command,
                                          .save = {.root = lone.directory, .job = "agent"},
                                          .signals = signals,
                                          .signal_count = 1};

    assert_int_equal(agent_open(&options, &agent, NULL), MUSTER_OK);
}

/* The broker answers when nobody waits for it any more. */
static void join_late(void)
{
    struct member_view view = {.joined = false};
    int64_t began_ms = lone_now_ms();

    lone_welcome();
    while (!view.joined) {
        assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
        agent_view(agent, &view);
        poll(NULL, 0, 1);
    }
}

/* As agent_dismiss does: between its last pass and its end a notice can come. */
static void end_thread(void)
{
    uint64_t wakes;

    pthread_mutex_lock(&agent->mutex);
    agent->stop = true;
    agent_wake(agent);
    pthread_mutex_unlock(&agent->mutex);
    assert_int_equal(pthread_join(agent->thread, NULL), 0);
    agent->thread_started = false;
    while (read(agent->wake_fd, &wakes, sizeof wakes) > 0)
        continue;
}

static void a_notice_after_a_late_join_is_told_and_not_sent(void **state)
{
    struct pollfd wake;

    (void)state;
    open_agent();
    join_late();
    end_thread();
    assert_null(agent->link);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    wake = (struct pollfd){.fd = agent->wake_fd, .events = POLLIN};
    assert_int_equal(poll(&wake, 1, LONE_DEADLINE_MS), 1);
    assert_true(agent_dismiss(&agent, why, sizeof why, &ended));
    assert_non_null(strstr(why, "SIGUSR1"));
    assert_null(agent);
}

static void *dismiss(void *arg)
{
    told = agent_dismiss(&agent, why, sizeof why, &ended);
    return arg;
}

static void who_joined_late_says_good_bye(void **state)
{
    pthread_t thread;

    (void)state;
    open_agent();
    join_late();
    assert_int_equal(pthread_create(&thread, NULL, dismiss, NULL), 0);
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_ERROR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(told);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_notice_after_a_late_join_is_told_and_not_sent),
        TEST(who_joined_late_says_good_bye),
    };

    return cmocka_run_group_tests_name("agent_dismiss", tests, NULL, NULL);
}
