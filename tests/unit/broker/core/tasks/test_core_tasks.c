/* The broker's core and its rows: queues of tasks, from schedule to the one end of each. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- from schedule to result ------------------------------------------------------------------ */

static void a_task_goes_to_a_worker_and_its_end_back(void **state)
{
    struct tasks_fixture *f = *state;

    assert_sent(f, "c:opened q1 0/0");
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome");
    tasks_add(f, 2);
    assert_sent(f, "c:taken 2; w0:work 1.1");
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=done; w0:work 2.1");
    tasks_done(f, 0, 2, 1);
    assert_sent(f, "w0:taken 2.1; c:ended @1 2.1=done");
    assert_int_equal(tasks_queue(f)->live, 0);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'done'"), 2);
    tasks_say(f, WIRE_RESULT_GET, 2);
    assert_sent(f, "c:chunk 2 0+2/2");
}

/* R20.1, R22.7 */
static void a_repeated_message_changes_nothing(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_add(f, 3);
    f->number = 0;
    tasks_add(f, 3);
    assert_sent(f, "c:taken 3");
    assert_int_equal(tasks_queue(f)->live, 3);
    tasks_worker_begin(f, 0, 1, 1);
    tasks_done(f, 0, 1, 1);
    tasks_done(f, 0, 1, 1); /* its answer was lost: it still counts */
    assert_sent(f, "w0:taken 1.1");
    assert_int_equal(tasks_queue(f)->ended, 1);
}

/* R20.1 */
static void a_gap_in_the_numbers_is_left_for_later(void **state)
{
    struct tasks_fixture *f = *state;

    f->number = 1;
    tasks_add(f, 2);
    assert_sent(f, "c:taken 0");
    f->number = 0;
    tasks_add(f, 3);
    assert_sent(f, "c:taken 3");
}

static void a_full_queue_takes_no_more(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_open_queue(f, true, 2);
    tasks_add(f, 3);
    assert_sent(f, "c:taken 2/MUSTER_E_BUSY");
    tasks_worker_begin(f, 0, 1, 1);
    tasks_done(f, 0, 1, 1);
    f->number = 2;
    tasks_add(f, 1);
    assert_sent(f, "c:taken 3");
}

/* --- credit ----------------------------------------------------------------------------------- */

/* R20.3 */
static void a_worker_gets_what_it_takes_and_no_more(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 3);
    tasks_add(f, 9);
    assert_sent(f, "c:taken 9; w0:work 1.1 2.1 3.1");
    tasks_done(f, 0, 2, 1);
    assert_sent(f, "w0:taken 2.1; c:ended @0 2.1=done; w0:work 4.1");
}

/* R20.4 */
static void few_tasks_spread_over_many_workers(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 8);
    tasks_worker_begin(f, 1, 1, 8);
    tasks_worker_begin(f, 2, 1, 8);
    tasks_add(f, 3);
    assert_sent(f, "c:taken 3; w2:work 1.1; w1:work 2.1; w0:work 3.1");
}

/* R20.3 */
static void work_is_sent_again_until_it_was_received(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 2);
    f->workers[0].unconfirmed = true;
    tasks_add(f, 2);
    f->now += 199;
    tasks_tick_at(f);
    assert_sent(f, "");
    f->now += 1;
    tasks_tick_at(f);
    assert_sent(f, "w0:work 1.1 2.1");
    tasks_beat(f, 0, 1);
    f->now += 400;
    tasks_tick_at(f);
    assert_sent(f, "w0:work 2.1");
    tasks_beat(f, 0, 2);
    f->now += 2000;
    tasks_tick_at(f);
    assert_sent(f, "");
    assert_int_equal(tasks_queue(f)->leases, 2);
}

static void workers_of_another_job_get_nothing(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_msg hello;

    f->workers[0] = (struct tasks_worker){.incarnation = 2000, .route = 600, .slots = 1};
    hello = tasks_msg(f, 0, WIRE_WORK_HELLO);
    hello.up.job = "other";
    hello.u.work_hello.host = "h";
    tasks_feed(f, 600, &hello);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1");
}

/* --- lost workers ----------------------------------------------------------------------------- */

/* R21.1 */
static void a_lost_workers_task_goes_to_another_at_once(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_worker_begin(f, 1, 1, 1);
    f->workers[0].silent = true;
    tasks_pass(f, 4500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "w1:work 1.2");
    tasks_done(f, 1, 1, 2);
    assert_sent(f, "w1:taken 1.2; c:ended @0 1.2=done");
    assert_int_equal(tasks_look(f, "SELECT losses FROM task"), 1);
}

/* R21.2 */
static void a_result_of_a_lease_that_was_taken_away_is_stale(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_worker_begin(f, 1, 1, 1);
    f->workers[0].silent = true;
    tasks_pass(f, 5000);
    assert_sent(f, "w1:work 1.2");
    tasks_done(f, 0, 1, 1); /* it lives after all */
    assert_sent(f, "w0:alive/MUSTER_E_HELLO");
    tasks_hello(f, 0, "1.1!");
    assert_sent(f, "w0:welcome");
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1/MUSTER_E_STALE");
    assert_int_equal(tasks_queue(f)->ended, 0);
    tasks_done(f, 1, 1, 2);
    assert_sent(f, "w1:taken 1.2; c:ended @0 1.2=done");
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1/MUSTER_E_STALE");
    assert_int_equal(tasks_queue(f)->ended, 1);
}

/* R21.4 */
static void a_task_that_ends_its_workers_is_named_and_given_up(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_add(f, 1);
    for (int w = 0; w < 3; w++) {
        tasks_worker_begin(f, w, 1, 1);
        tasks_pass(f, 2000);
        f->workers[w].silent = true;
        tasks_pass(f, 6000);
    }
    assert_sent(f, "c:ended @0 1.3=failed/MUSTER_E_LOST");
    assert_non_null(strstr(tasks_queue(f)->error_text, "task 1 (work) of queue main"));
    assert_non_null(strstr(tasks_queue(f)->error_text, "worker 2 (process 4002 on h) was lost"));
    assert_true(tasks_queue(f)->error_pending);
}

/* R21.1 */
static void a_new_process_takes_a_dead_ones_index_after_two_seconds(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_beat(f, 0, 1);
    f->now += 1000;
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome/MUSTER_E_RANK_TAKEN");
    f->now += 1000;
    tasks_tick_at(f);
    tasks_hello(f, 0, "");
    assert_sent(f, "w0:welcome; w0:work 1.2");
}

/* R20.5 */
static void a_worker_that_leaves_gives_back_what_it_did_not_begin(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_msg leave;

    tasks_worker_begin(f, 0, 1, 3);
    tasks_add(f, 3);
    tasks_done(f, 0, 1, 1);
    tasks_ended_as(f, 0,
                   (struct wire_ended_entry){.number = 2, .attempt = 1, .state = TASK_QUEUED});
    leave = tasks_msg(f, 0, WIRE_WORK_LEAVE);
    tasks_feed(f, 600, &leave);
    assert_sent(f, "w0:left");
    tasks_feed(f, 600, &leave); /* its answer was lost */
    assert_sent(f, "w0:left");
    tasks_worker_begin(f, 1, 1, 3);
    assert_sent(f, "w1:welcome; w1:work 2.1 3.1"); /* the same attempts: nobody had begun them */
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 0);
}

static void a_worker_that_is_leaving_is_given_no_more(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_msg beat;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 5);
    beat = tasks_msg(f, 0, WIRE_WORK_BEAT);
    beat.u.work_beat.received = 2;
    beat.u.work_beat.leaving = true;
    tasks_feed(f, 600, &beat);
    tasks_ended_as(f, 0,
                   (struct wire_ended_entry){.number = 2, .attempt = 1, .state = TASK_QUEUED});
    assert_sent(f, "w0:taken 2.1");
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=done");
    tasks_worker_begin(f, 1, 1, 1);
    assert_sent(f, "w1:welcome; w1:work 2.1");
}

/* --- restarts --------------------------------------------------------------------------------- */

/* R20.7 */
static void a_restarted_broker_knows_every_task(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 4);
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=done; w0:work 3.1");
    tasks_restart(f);
    tasks_hello(f, 0, "2.1"); /* the frame with 3 never came */
    assert_sent(f, "w0:welcome; w0:alive; w0:work 3.1");
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    assert_sent(f, "c:alive 0/0/MUSTER_E_HELLO");
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 1/4");
    tasks_say(f, WIRE_TASKS_GET, 1);
    assert_sent(f, "c:page 1-5 1.1=done");
    tasks_done(f, 0, 2, 1);
    assert_sent(f, "w0:taken 2.1; c:ended @1 2.1=done; w0:work 4.1");
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 0);
}

static void an_end_that_was_taken_before_a_restart_counts_once(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_done(f, 0, 1, 1);
    tasks_restart(f);
    tasks_hello(f, 0, "1.1!");
    tasks_done(f, 0, 1, 1);
    assert_int_equal(tasks_queue(f)->ended, 1);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'done'"), 1);
}

/* R20.7 */
static void a_worker_that_does_not_come_back_after_a_restart_is_lost(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_restart(f);
    f->workers[0].there = false;
    tasks_worker_begin(f, 1, 1, 1);
    tasks_pass(f, 9500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "w1:work 1.2");
}

static void an_error_that_is_pending_survives_a_restart(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_restart(f);
    tasks_hello(f, 0, "");
    assert_sent(f, "w0:welcome"); /* nothing is given */
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 1/2 error 1");
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 2 2");
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 2/2 error 1"); /* no call has returned it yet, as far as is known */
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 2 2");
}

/* --- coordinators ----------------------------------------------------------------------------- */

/* R20.2 */
static void another_coordinator_attaches_and_the_former_is_stale(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_done(f, 0, 1, 1);
    f->coordinator = 1001;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 1/2");
    tasks_done(f, 0, 2, 1); /* is told to the new one */
    assert_sent(f, "w0:taken 2.1; c:ended @1 2.1=done");
    f->coordinator = 1000;
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    assert_sent(f, "c:alive 0/0/MUSTER_E_STALE");
}

static void a_queue_that_is_begun_anew_forgets_all(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    tasks_add(f, 2);
    assert_sent(f, "c:taken 2; w0:work 1.1");
    f->coordinator = 1001;
    tasks_open_queue(f, true, 0);
    assert_sent(f, "w0:alive -1.1 gone q1; c:opened q2 0/0");
    tasks_open_queue(f, true, 0); /* its answer was lost */
    assert_sent(f, "c:opened q2 0/0");
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 0);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task_resource"), 0);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1"); /* the worker still has the old one */
    f->queue = 1;
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1/MUSTER_E_STALE; w0:work 1.1");
}

/* R22.7 */
static void what_is_released_is_forgotten(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 3);
    tasks_done(f, 0, 1, 1);
    tasks_done(f, 0, 2, 1);
    tasks_say(f, WIRE_QUEUE_BEAT, 1);
    assert_sent(f, "c:alive 2/3");
    tasks_say(f, WIRE_TASKS_GET, 1);
    assert_sent(f, "c:page 1-4 2.1=done");
    tasks_say(f, WIRE_RESULT_GET, 1);
    assert_sent(f, "c:chunk 1 0+0/0/MUSTER_E_NOT_FOUND");
}

/* --- long results ----------------------------------------------------------------------------- */

static void send_part(struct tasks_fixture *f, uint64_t offset, size_t size)
{
    static const uint8_t bytes[TASK_PART_MAX];
    struct wire_msg part = tasks_msg(f, 0, WIRE_WORK_PART);

    part.u.work_part = (struct wire_work_part){.queue = f->queue,
                                               .number = 1,
                                               .attempt = 1,
                                               .offset = offset,
                                               .total = 60000,
                                               .bytes = {bytes, size}};
    tasks_feed(f, 600, &part);
}

/* R22.8 */
static void a_long_result_comes_in_parts_before_its_end(void **state)
{
    struct tasks_fixture *f = *state;
    const struct wire_ended_entry end = {
        .number = 1, .attempt = 1, .state = TASK_DONE, .bytes = 60000};
    struct wire_msg get;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_ended_as(f, 0, end);
    assert_sent(f, "w0:taken 1.1/MUSTER_E_NOT_FOUND");
    send_part(f, 0, TASK_PART_MAX);
    assert_sent(f, "w0:part 49152");
    send_part(f, 0, TASK_PART_MAX); /* its answer was lost */
    assert_sent(f, "w0:part 49152");
    send_part(f, TASK_PART_MAX, 60000 - TASK_PART_MAX);
    assert_sent(f, "w0:part 60000");
    tasks_ended_as(f, 0, end);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=done");
    tasks_say(f, WIRE_RESULT_GET, 1);
    assert_sent(f, "c:chunk 1 0+49152/60000");
    get = tasks_msg(f, -1, WIRE_RESULT_GET);
    get.u.result_get = (struct wire_result_get){f->queue, 1, TASK_PART_MAX};
    tasks_feed(f, tasks_route(f, -1), &get);
    assert_sent(f, "c:chunk 1 49152+10848/60000");
}

static void after_a_restart_the_parts_come_again(void **state)
{
    struct tasks_fixture *f = *state;
    const struct wire_ended_entry end = {
        .number = 1, .attempt = 1, .state = TASK_DONE, .bytes = 60000};

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    send_part(f, 0, TASK_PART_MAX);
    tasks_restart(f);
    tasks_hello(f, 0, "1.1!");
    send_part(f, TASK_PART_MAX, 60000 - TASK_PART_MAX);
    assert_sent(f, "w0:part 0"); /* from the beginning */
    send_part(f, 0, TASK_PART_MAX);
    send_part(f, TASK_PART_MAX, 60000 - TASK_PART_MAX);
    tasks_ended_as(f, 0, end);
    assert_sent(f, "w0:taken 1.1");
    assert_int_equal(tasks_look(f, "SELECT sum(length(bytes)) FROM task_part"), 60000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_goes_to_a_worker_and_its_end_back),
        TEST(a_repeated_message_changes_nothing),
        TEST(a_gap_in_the_numbers_is_left_for_later),
        TEST(a_full_queue_takes_no_more),
        TEST(a_worker_gets_what_it_takes_and_no_more),
        TEST(few_tasks_spread_over_many_workers),
        TEST(work_is_sent_again_until_it_was_received),
        TEST(workers_of_another_job_get_nothing),
        TEST(a_lost_workers_task_goes_to_another_at_once),
        TEST(a_result_of_a_lease_that_was_taken_away_is_stale),
        TEST(a_task_that_ends_its_workers_is_named_and_given_up),
        TEST(a_new_process_takes_a_dead_ones_index_after_two_seconds),
        TEST(a_worker_that_leaves_gives_back_what_it_did_not_begin),
        TEST(a_worker_that_is_leaving_is_given_no_more),
        TEST(a_restarted_broker_knows_every_task),
        TEST(an_end_that_was_taken_before_a_restart_counts_once),
        TEST(a_worker_that_does_not_come_back_after_a_restart_is_lost),
        TEST(an_error_that_is_pending_survives_a_restart),
        TEST(another_coordinator_attaches_and_the_former_is_stale),
        TEST(a_queue_that_is_begun_anew_forgets_all),
        TEST(what_is_released_is_forgotten),
        TEST(a_long_result_comes_in_parts_before_its_end),
        TEST(after_a_restart_the_parts_come_again),
    };

    return cmocka_run_group_tests_name("core_tasks", tests, tasks_open_file, tasks_close_file);
}
