/* The broker's core: what becomes of tasks whose worker was lost. The one that ends its workers is
 * failed by name; its neighbours are not, and go on at once. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static int64_t losses_of(struct tasks_fixture *f, uint64_t number)
{
    return (int64_t)tasks_find(f->core, f->queue, number)->losses;
}

/* So long that the broker takes it for lost. */
static void is_lost(struct tasks_fixture *f, int w)
{
    f->workers[w].silent = true;
    tasks_pass(f, 5000);
}

/* --- together --------------------------------------------------------------------------------- */

static void they_go_on_at_once_and_together(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 6, 6);
    tasks_add(f, 6);
    assert_sent(f, "c:taken 6; w0:work 1.1 2.1 3.1 4.1 5.1 6.1");
    tasks_worker_begin(f, 1, 4, 4);
    tasks_worker_begin(f, 2, 4, 4);
    is_lost(f, 0);
    assert_sent(f, "w2:work 1.2 3.2 5.2; w1:work 2.2 4.2 6.2");
}

/* Three idle workers end, each just before its task is given to it. The task never began, so
 * nothing is lost (R20.5). */
static void a_task_that_no_worker_confirmed_was_never_tried(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    f->workers[0].unconfirmed = true;
    tasks_add(f, 1);
    for (int w = 0; w < 5; w++) {
        is_lost(f, w);
        f->workers[w + 1].unconfirmed = w < 4;
        tasks_worker_begin(f, w + 1, 1, 1);
        assert_non_null(strstr(f->text, "work 1.1"));
    }
    assert_int_equal(losses_of(f, 1), 0);
    tasks_done(f, 5, 1, 1);
    assert_non_null(strstr(f->text, "1.1=done"));
}

static void also_beside_others_that_run(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 2);
    tasks_add(f, 2);
    tasks_worker_begin(f, 1, 3, 3);
    tasks_add(f, 2);
    assert_sent(f, "c:taken 4; w1:work 3.1 4.1");
    is_lost(f, 0);
    assert_sent(f, "w1:work 1.2");
    tasks_done(f, 1, 4, 1);
    assert_sent(f, "w1:taken 4.1; c:ended @0 4.1=done; w1:work 2.2");
}

/* It is counted when its turn came: what waits behind others did nothing (R21.5). */
static void one_that_waited_behind_another_is_not_counted(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 2);
    assert_sent(f, "c:taken 2; w0:work 1.1 2.1");
    is_lost(f, 0);
    assert_int_equal(losses_of(f, 1), 1);
    assert_int_equal(losses_of(f, 2), 0);
    tasks_worker_begin(f, 1, 2, 2);
    assert_sent(f, "w1:welcome; w1:work 1.2 2.2"); /* it may have begun anyway: another number */
    tasks_done(f, 1, 1, 2);
    for (int w = 1; w < 4; w++) {
        is_lost(f, w);
        tasks_pass(f, 1000);
        assert_int_equal(tasks_queue(f)->error_pending, w == 3);
        if (w < 3)
            tasks_worker_begin(f, w + 1, 1, 1);
        tasks_pass(f, 1000);
    }
    assert_non_null(strstr(tasks_queue(f)->error_text,
                           "it was tried 3 times, besides 1 that do not count, and is not tried"));
    assert_int_equal(
        tasks_look(f, "SELECT attempt * 100 + losses * 10 + excused FROM task WHERE id & 255 = 2"),
        431);
}

/* A worker that ended what is before it, and could not say so, has begun it: nobody would
 * know (R21.3). */
static void none_of_them_is_given_ahead_again(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 3);
    tasks_add(f, 3);
    is_lost(f, 0);
    tasks_worker_begin(f, 1, 1, 3);
    assert_sent(f, "w1:welcome; w1:work 1.2");
    tasks_done(f, 1, 1, 2);
    assert_sent(f, "w1:taken 1.2; c:ended @0 1.2=done; w1:work 2.2");
    tasks_add(f, 2);
    assert_sent(f, "c:taken 5"); /* nor another ahead of one that waits */
    tasks_done(f, 1, 2, 2);
    assert_sent(f, "w1:taken 2.2; c:ended @1 2.2=done; w1:work 3.2 4.1 5.1");
}

static void nor_is_one_of_another_queue_given_ahead_of_it(void **state)
{
    struct tasks_fixture *f = *state;
    const uint64_t first = f->queue;
    struct wire_msg open;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    f->coordinator++;
    open = tasks_msg(f, -1, WIRE_QUEUE_OPEN);
    open.u.queue_open = (struct wire_queue_open){.nonce = 1, .name = "other"};
    tasks_feed(f, tasks_route(f, -1), &open);
    f->queue = tasks_queue_named(f->core, "train", "other")->queue;
    f->number = 0;
    tasks_worker_begin(f, 1, 1, 2);
    tasks_add(f, 4);
    assert_sent(f, "c:taken 4; w1:work 1.1 2.1");
    is_lost(f, 0);
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1; c:ended @0 1.1=done");
    tasks_done(f, 1, 2, 1);
    assert_sent(f, "w1:taken 2.1; c:ended @1 2.1=done; w1:work 1.2 3.1");
    assert_non_null(tasks_find(f->core, first, 1)->lease);
}

static void a_suspect_is_given_ahead_of_nothing_after_a_start_either(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 2);
    is_lost(f, 0);
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    tasks_worker_begin(f, 1, 1, 2);
    assert_sent(f, "w1:welcome; w1:work 1.2");
}

/* --- alone ------------------------------------------------------------------------------------ */

/* R21.3 */
static void the_one_that_does_it_is_failed_and_no_other(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 4, 4);
    tasks_add(f, 4);
    tasks_worker_begin(f, 1, 4, 4);
    is_lost(f, 0);
    assert_sent(f, "w1:work 1.2 2.2 3.2 4.2");
    is_lost(f, 1); /* 2 does it */
    tasks_worker_begin(f, 2, 4, 4);
    tasks_pass(f, 500);
    assert_sent(f, "w2:work 1.3"); /* alone, though four are taken */
    tasks_done(f, 2, 1, 3);
    assert_sent(f, "w2:taken 1.3; c:ended @0 1.3=done; w2:work 2.3");
    tasks_worker_begin(f, 3, 4, 4);
    assert_sent(f, "w3:welcome; w3:work 3.3");
    is_lost(f, 2);
    assert_sent(f, "w3:alive -3.3; c:ended @1 2.3=failed/MUSTER_E_LOST");
    tasks_done(f, 3, 3, 3);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #2 MUSTER_E_LOST to 4 4");
}

static void it_waits_for_a_worker_that_drains_for_it(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_worker_begin(f, 1, 2, 2);
    tasks_queue(f)->max_attempts = 2; /* one more would be the last */
    tasks_add(f, 10);
    assert_sent(f, "c:taken 10; w1:work 1.1 3.1; w0:work 2.1 4.1");
    f->workers[1].silent = true;
    tasks_pass(f, 5000);
    assert_sent(f, "");
    tasks_done(f, 0, 2, 1);
    assert_sent(f, "w0:taken 2.1; c:ended @0 2.1=done"); /* nothing new */
    tasks_done(f, 0, 4, 1);
    assert_sent(f, "w0:taken 4.1; c:ended @1 4.1=done; w0:work 1.2");
    tasks_done(f, 0, 1, 2);
    assert_sent(f, "w0:taken 1.2; c:ended @2 1.2=done; w0:work 3.2");
    tasks_done(f, 0, 3, 2);
    assert_sent(f, "w0:taken 3.2; c:ended @3 3.2=done; w0:work 5.1 6.1");
}

static void it_runs_alone_after_a_start_too(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 4);
    tasks_add(f, 1);
    is_lost(f, 0);
    tasks_worker_begin(f, 1, 1, 4);
    is_lost(f, 1);
    tasks_worker_begin(f, 2, 1, 4);
    tasks_pass(f, 500);
    assert_sent(f, "w2:work 1.3");
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    tasks_hello(f, 2, "1.3");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2");
    tasks_done(f, 2, 1, 3);
    assert_sent(f, "w2:taken 1.3; c:ended @0 1.3=done; w2:work 2.1");
}

/* Who attaches may want fewer: what was to run beside others is to run alone (R21.3). */
static void another_cap_counts_for_what_is_queued(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 3, 3);
    tasks_add(f, 3);
    is_lost(f, 0);
    assert_int_equal(tasks_queue(f)->first->number, 1);
    tasks_queue(f)->max_attempts = 2;
    tasks_list_again(tasks_queue(f));
    assert_null(tasks_queue(f)->first);
    assert_int_equal(tasks_queue(f)->suspects_first->number, 1);
    assert_int_equal(tasks_queue(f)->suspects_last->number, 3);
    tasks_worker_begin(f, 1, 3, 3);
    assert_sent(f, "w1:welcome; w1:work 1.2");
    tasks_open_queue(f, false, 0); /* three again */
    assert_sent(f, "c:opened q1 0/3");
    tasks_done(f, 1, 1, 2);
    assert_sent(f, "w1:taken 1.2; c:ended @0 1.2=done; w1:work 2.2 3.2");
}

/* --- pauses and the end ----------------------------------------------------------------------- */

/* 500 ms from the second loss on, doubling (R21.4). */
static void it_waits_longer_each_time(void **state)
{
    struct tasks_fixture *f = *state;
    static const int64_t pauses[] = {0, 500, 1000, 2000};

    tasks_queue(f)->max_attempts = 5;
    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    for (int w = 0; w < 4; w++) {
        f->workers[w].silent = true;
        while (tasks_find(f->core, f->queue, 1)->lease != NULL)
            tasks_pass(f, 500);
        tasks_worker_begin(f, w + 1, 1, 1);
        if (pauses[w] == 0)
            continue;
        assert_sent(f, w == 1 ? "w2:welcome" : w == 2 ? "w3:welcome" : "w4:welcome");
        tasks_pass(f, pauses[w] - 1);
        assert_sent(f, "");
        tasks_pass(f, 1);
        assert_sent(f, w == 1 ? "w2:work 1.3" : w == 2 ? "w3:work 1.4" : "w4:work 1.5");
    }
}

/* An attempt's number is a byte: of those that do not count there may be no more (R21.5). */
static void no_task_is_tried_for_ever(void **state)
{
    struct tasks_fixture *f = *state;
    struct task *task;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    task = tasks_find(f->core, f->queue, 1);
    task->attempt = task->lease->attempt = TASK_TRIES_MAX - 1;
    task->excused = TASK_TRIES_MAX - 2;
    tasks_worker_find(f->core, f->workers[0].incarnation)->node_left = true;
    is_lost(f, 0);
    assert_int_equal(task->excused, TASK_TRIES_MAX - 1);
    tasks_worker_begin(f, 1, 1, 1);
    assert_sent(f, "w1:welcome; w1:work 1.255");
    tasks_worker_find(f->core, f->workers[1].incarnation)->node_left = true;
    is_lost(f, 1);
    assert_sent(f, "c:ended @0 1.255=failed/MUSTER_E_LOST");
}

/* A coordinator that attaches may want fewer: only one more loss makes them too many. */
static void what_is_merely_given_back_does_not_fail(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    is_lost(f, 0);
    tasks_worker_begin(f, 1, 1, 1);
    assert_sent(f, "w1:welcome; w1:work 1.2");
    tasks_queue(f)->max_attempts = 1;
    tasks_list_again(tasks_queue(f));
    tasks_ended_as(f, 1,
                   (struct wire_ended_entry){.number = 1, .attempt = 2, .state = TASK_QUEUED});
    assert_sent(f, "w1:taken 1.2; w1:work 1.2");
    tasks_worker_find(f->core, f->workers[1].incarnation)->node_left = true;
    is_lost(f, 1);
    assert_sent(f, "");
    tasks_worker_begin(f, 2, 1, 1);
    assert_sent(f, "w2:welcome; w2:work 1.3");
    is_lost(f, 2);
    assert_sent(f, "c:ended @0 1.3=failed/MUSTER_E_LOST");
}

/* What came of its result in part says that it had begun, and that was its last number. */
static void one_that_is_given_back_for_the_last_time_says_why_it_failed(void **state)
{
    struct tasks_fixture *f = *state;
    struct task *task;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    task = tasks_find(f->core, f->queue, 1);
    task->attempt = task->lease->attempt = TASK_TRIES_MAX;
    task->excused = TASK_TRIES_MAX - 1;
    task->parts_have = 1;
    task->parts_attempt = task->attempt;
    tasks_ended_as(
        f, 0,
        (struct wire_ended_entry){.number = 1, .attempt = TASK_TRIES_MAX, .state = TASK_QUEUED});
    assert_sent(f, "w0:taken 1.255; c:ended @0 1.255=failed/MUSTER_E_LOST");
    assert_non_null(strstr(tasks_queue(f)->error_text, "its worker gave it back; it was tried"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_go_on_at_once_and_together),
        TEST(a_task_that_no_worker_confirmed_was_never_tried),
        TEST(also_beside_others_that_run),
        TEST(one_that_waited_behind_another_is_not_counted),
        TEST(none_of_them_is_given_ahead_again),
        TEST(nor_is_one_of_another_queue_given_ahead_of_it),
        TEST(a_suspect_is_given_ahead_of_nothing_after_a_start_either),
        TEST(the_one_that_does_it_is_failed_and_no_other),
        TEST(it_waits_for_a_worker_that_drains_for_it),
        TEST(it_runs_alone_after_a_start_too),
        TEST(another_cap_counts_for_what_is_queued),
        TEST(it_waits_longer_each_time),
        TEST(no_task_is_tried_for_ever),
        TEST(what_is_merely_given_back_does_not_fail),
        TEST(one_that_is_given_back_for_the_last_time_says_why_it_failed),
    };

    return cmocka_run_group_tests_name("core_tasks_suspects", tests, tasks_open_file,
                                       tasks_close_file);
}
