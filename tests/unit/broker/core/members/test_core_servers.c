/* Parameter servers of a job with tasks: who is lost is missing until it is back, through launches
 * and starts. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { CHIEF, PS, PS_AGAIN, PS_THIRD, OTHER_PS, CHIEF_AGAIN };

static const struct {
    enum wire_role role;
    uint64_t rank, pid;
} nodes[] = {
    [CHIEF] = {ROLE_CHIEF, 0, 100}, [PS] = {ROLE_PS, 0, 101},
    [PS_AGAIN] = {ROLE_PS, 0, 102}, [PS_THIRD] = {ROLE_PS, 0, 103},
    [OTHER_PS] = {ROLE_PS, 1, 104}, [CHIEF_AGAIN] = {ROLE_CHIEF, 0, 105},
};

static struct wire_msg says(const struct tasks_fixture *f, int who, enum wire_type type)
{
    struct wire_msg message = tasks_msg(f, -1, type);

    message.up.role = nodes[who].role;
    message.up.rank = nodes[who].rank;
    message.up.incarnation = (uint64_t)who + 1;
    return message;
}

static void joins(struct tasks_fixture *f, int who)
{
    struct wire_msg message = says(f, who, WIRE_HELLO);

    message.u.hello = (struct wire_hello){.speaks = WIRE_SPEAKS,
                                          .nonce = 1,
                                          .world_size = 1,
                                          .host = "h",
                                          .pid = nodes[who].pid,
                                          .layout = LAYOUT_REPLICATED,
                                          .checkpoint_dir = "/c"};
    tasks_feed(f, 400 + (uint64_t)who, &message);
}

static void leaves(struct tasks_fixture *f, int who, enum wire_leave_why why)
{
    struct wire_msg message = says(f, who, WIRE_LEAVE);

    message.up.generation = 1;
    message.up.request = 1;
    message.u.leave.why = why;
    tasks_feed(f, 400 + (uint64_t)who, &message);
}

/* So long that whoever says nothing is lost; `who` lives. */
static void time_passes(struct tasks_fixture *f, int who)
{
    for (int i = 0; i < 40; i++) {
        struct wire_msg beat = says(f, who, WIRE_HEARTBEAT);

        f->now += 1000;
        tasks_feed(f, 400 + (uint64_t)who, &beat);
    }
}

/* What the coordinator is told: no server is missing, or the one of that process. */
static void assert_missing(struct tasks_fixture *f, int who)
{
    char named[64] = "";

    if (who >= 0)
        snprintf(named, sizeof named, "parameter server %d of job train (process %d on h)",
                 (int)nodes[who].rank, (int)nodes[who].pid);
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    if (who < 0)
        assert_string_equal(f->unavailable, "");
    else if (strncmp(f->unavailable, named, strlen(named)) != 0)
        fail_msg("\"%s\" names not %s", f->unavailable, named);
}

/* R23.1 */
static void a_lost_server_is_named_until_it_is_back(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    assert_missing(f, -1);
    time_passes(f, CHIEF);
    assert_missing(f, PS);
    joins(f, PS_AGAIN);
    assert_missing(f, -1);
}

static void the_one_that_was_lost_last_is_named(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    time_passes(f, CHIEF);
    joins(f, PS_AGAIN);
    time_passes(f, CHIEF);
    assert_missing(f, PS_AGAIN);
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    assert_missing(f, PS_AGAIN);
    joins(f, CHIEF_AGAIN); /* the chief's process is another, and so the launch */
    time_passes(f, CHIEF_AGAIN);
    joins(f, CHIEF_AGAIN);
    assert_missing(f, PS_AGAIN);
    joins(f, PS_THIRD);
    assert_missing(f, -1);
}

/* R23.2 */
static void the_next_launch_misses_it_too(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    joins(f, OTHER_PS);
    time_passes(f, CHIEF);
    leaves(f, CHIEF, LEAVE_FAILED);
    joins(f, CHIEF_AGAIN);
    assert_int_equal(job_find(f->core, "train")->gen.generation, 2);
    assert_missing(f, PS);
    joins(f, PS_AGAIN);
    assert_missing(f, OTHER_PS);
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    assert_missing(f, OTHER_PS);
}

static void who_left_in_good_order_is_not_missed(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    leaves(f, PS, LEAVE_FINISHED);
    leaves(f, CHIEF, LEAVE_FAILED);
    joins(f, CHIEF_AGAIN);
    assert_missing(f, -1);
}

/* Its weights are gone as with one that was killed (R23.1). */
static void who_left_otherwise_is(void **state)
{
    static const struct {
        enum wire_leave_why why;
        const char *words;
    } ways[] = {{LEAVE_PREEMPTED, "was preempted and is not back"},
                {LEAVE_FAILED, "failed and is not back"},
                {LEAVE_ERROR, "failed and is not back"}};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tasks_fixture *f = *state;

        if (i > 0) {
            tasks_without_core(state);
            tasks_with_queue(state);
        }
        joins(f, CHIEF);
        joins(f, PS);
        leaves(f, PS, ways[i].why);
        assert_missing(f, PS);
        assert_non_null(strstr(f->unavailable, ways[i].words));
        leaves(f, CHIEF, LEAVE_FAILED);
        joins(f, CHIEF_AGAIN); /* the next launch misses it too */
        tasks_restart(f);
        tasks_open_queue(f, false, 0);
        assert_missing(f, PS);
        joins(f, CHIEF_AGAIN); /* ranks come first, to a start of the broker too */
        joins(f, PS_AGAIN);
        assert_missing(f, -1);
    }
}

/* The launch that it was in is over before its silence is long enough: with its host went the
 * chief, maybe (R23.3). */
static void who_does_not_follow_into_the_next_launch_is_missed(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    leaves(f, CHIEF, LEAVE_FAILED);
    joins(f, CHIEF_AGAIN);
    assert_missing(f, -1); /* it may be on its way */
    time_passes(f, CHIEF_AGAIN);
    assert_missing(f, PS);
    assert_non_null(strstr(f->unavailable, "did not follow the job into its next launch"));
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    joins(f, CHIEF_AGAIN);
    assert_missing(f, -1);
    time_passes(f, CHIEF_AGAIN);
    assert_missing(f, PS);
    joins(f, PS_AGAIN);
    assert_missing(f, -1);
}

static void the_brokers_own_absence_is_no_time_to_follow(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    leaves(f, CHIEF, LEAVE_FAILED);
    joins(f, CHIEF_AGAIN);
    f->now += 60000;
    assert_missing(f, -1); /* its word may be in the same pass */
    assert_missing(f, -1);
    time_passes(f, CHIEF_AGAIN);
    assert_missing(f, PS);
}

static void who_follows_is_not(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    leaves(f, CHIEF, LEAVE_FAILED);
    joins(f, CHIEF_AGAIN);
    joins(f, PS_AGAIN);
    for (int i = 0; i < 40; i++) {
        struct wire_msg beats[] = {says(f, CHIEF_AGAIN, WIRE_HEARTBEAT),
                                   says(f, PS_AGAIN, WIRE_HEARTBEAT)};

        f->now += 1000;
        tasks_feed(f, 400 + CHIEF_AGAIN, &beats[0]);
        tasks_feed(f, 400 + PS_AGAIN, &beats[1]);
        assert_missing(f, -1);
    }
}

/* R23.2 */
static void a_job_that_finished_misses_nobody_when_it_begins_again(void **state)
{
    struct tasks_fixture *f = *state;

    joins(f, CHIEF);
    joins(f, PS);
    time_passes(f, CHIEF);
    leaves(f, CHIEF, LEAVE_FINISHED);
    assert_missing(f, PS);
    joins(f, CHIEF_AGAIN);
    assert_missing(f, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_server_is_named_until_it_is_back),
        TEST(the_one_that_was_lost_last_is_named),
        TEST(the_next_launch_misses_it_too),
        TEST(who_left_in_good_order_is_not_missed),
        TEST(who_left_otherwise_is),
        TEST(who_does_not_follow_into_the_next_launch_is_missed),
        TEST(who_follows_is_not),
        TEST(the_brokers_own_absence_is_no_time_to_follow),
        TEST(a_job_that_finished_misses_nobody_when_it_begins_again),
    };

    return cmocka_run_group_tests_name("core_servers", tests, tasks_open_file, tasks_close_file);
}
