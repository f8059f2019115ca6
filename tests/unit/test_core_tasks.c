/* The broker's core and its rows: queues of tasks, from schedule to the one end of each. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

/* --- from schedule to result ---------------------------------------------------------------------- */

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

/* --- credit --------------------------------------------------------------------------------------- */

static void a_worker_gets_what_it_takes_and_no_more(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 3);
    tasks_add(f, 9);
    assert_sent(f, "c:taken 9; w0:work 1.1 2.1 3.1");
    tasks_done(f, 0, 2, 1);
    assert_sent(f, "w0:taken 2.1; c:ended @0 2.1=done; w0:work 4.1");
}

static void few_tasks_spread_over_many_workers(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 8);
    tasks_worker_begin(f, 1, 1, 8);
    tasks_worker_begin(f, 2, 1, 8);
    tasks_add(f, 3);
    assert_sent(f, "c:taken 3; w2:work 1.1; w1:work 2.1; w0:work 3.1");
}

static void work_is_sent_again_until_it_was_received(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 2);
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

/* --- lost workers --------------------------------------------------------------------------------- */

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
    tasks_hello(f, 0, "");
    assert_sent(f, "w0:welcome; w0:work 1.2");
}

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

/* --- time ----------------------------------------------------------------------------------------- */

static void a_task_without_a_word_for_too_long_goes_to_another(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    f->number = 1;
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    assert_sent(f, "c:taken 1; w1:work 1.1");
    tasks_pass(f, 2500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "w1:alive -1.1; w0:work 1.2"); /* it may run on: nothing else for it */
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1/MUSTER_E_STALE; w1:work 2.1");
    tasks_done(f, 0, 1, 2);
    assert_int_equal(tasks_queue(f)->ended, 1);
}

static void a_renewed_lease_stands(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_lease_entry entry = {.queue = f->queue, .number = 1, .attempt = 1};
    struct wire_msg beat;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    for (int i = 0; i < 3; i++) {
        tasks_pass(f, 2000);
        beat = tasks_msg(f, 0, WIRE_WORK_BEAT);
        beat.u.work_beat.received = 1;
        beat.u.work_beat.renewed.items = &entry;
        beat.u.work_beat.renewed.count = 1;
        tasks_feed(f, 600, &beat);
        assert_sent(f, "w0:alive");
    }
    tasks_pass(f, 3000);
    assert_sent(f, "w0:alive -1.1");
}

static void a_pause_of_the_broker_takes_no_lease_away(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    tasks_beat(f, 0, 1);
    f->now += 60000;
    tasks_tick_at(f);
    assert_sent(f, "");
    assert_int_equal(tasks_queue(f)->leases, 1);
}

/* --- errors --------------------------------------------------------------------------------------- */

static void the_first_error_stops_the_queue_until_it_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 5);
    assert_sent(f, "c:taken 5; w1:work 1.1; w0:work 2.1");
    tasks_fail(f, 1, 1, 1, MUSTER_E_TASK);
    assert_sent(f, "w1:taken 1.1; w0:alive -2.1; c:ended @0 1.1=failed/MUSTER_E_TASK");
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, ""); /* the other still runs */
    tasks_fail(f, 0, 2, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 2.1; c:ended @1 2.1=cancelled; c:raised 1 #1 MUSTER_E_TASK to 5 5");
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 4);
    tasks_say(f, WIRE_RAISE, 1); /* its answer was lost */
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 5 5");
    tasks_add(f, 1); /* and everything goes on */
    assert_sent(f, "c:taken 6; w1:work 6.1");
    tasks_done(f, 1, 6, 1);
    assert_sent(f, "w1:taken 6.1; c:ended @5 6.1=done");
}

/* With a queue that was full by bytes, hundreds of tasks ran after join had raised. */
static void what_was_scheduled_before_an_error_was_raised_never_runs(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    f->scheduled = 4;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 4 2");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 3; c:ended @2 3.0=cancelled");
    tasks_restart(f);
    tasks_open_queue(f, false, 100);
    tasks_hello(f, 0, "");
    tasks_add(f, 2);
    assert_sent(f, "c:taken 5; c:ended @3 4.0=cancelled; w0:work 5.1");
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 3);
}

static void the_next_coordinators_numbers_are_its_own(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    f->scheduled = 9;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 9 1");
    f->coordinator++;
    tasks_open_queue(f, false, 100);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2; w0:work 2.1");
}

/* The whole broker stood still for as long as it took to write them all. */
static void many_are_cancelled_in_slices(void **state)
{
    static const uint8_t args[TASK_ARGS_MAX];
    struct tasks_fixture *f = *state;
    int64_t before = 0, slices = 0, cancelled;

    tasks_worker_begin(f, 0, 1, 1);
    for (uint64_t number = 1; number <= 100; number++)
        tasks_add_one(f, (struct wire_task_entry){
                             .number = number, .fn = "work", .args = {args, sizeof args}});
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    for (; f->text[0] == '\0'; slices++, tasks_tick_at(f)) {
        cancelled = tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'");
        assert_in_range(cancelled - before, 1, 2 * (TASKS_CANCEL_BYTES / TASK_ARGS_MAX + 1));
        assert_int_equal(tasks_queue(f)->ended, cancelled + 1);
        assert_int_equal(tasks_wakeup_boot_ms(f->core), f->now); /* and nobody waits for the next */
        if (slices == 0) {                                       /* who died meanwhile asks again */
            tasks_restart(f);
            tasks_hello(f, 0, "");
            tasks_open_queue(f, false, 0);
            tasks_say(f, WIRE_RAISE, 1);
        }
        before = tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'");
    }
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 100 100");
    assert_in_range(slices, 3, 10);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 99);
    assert_int_equal(tasks_look(f, "SELECT sum(length(args)) FROM task WHERE state = 'cancelled'"),
                     0); /* nobody runs it */
}

static void of_many_errors_the_first_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 3, 3);
    tasks_add(f, 3);
    tasks_fail(f, 0, 2, 1, MUSTER_E_TASK);
    tasks_fail(f, 0, 1, 1, MUSTER_E_INPUT);
    tasks_fail(f, 0, 3, 1, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #2 MUSTER_E_TASK to 3 3");
    tasks_say(f, WIRE_RAISE, 2);
    assert_sent(f, "c:raised 2 #0 3");
}

static void a_cancelled_task_is_no_error(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 3);
    tasks_say(f, WIRE_TASK_CANCEL, 2);
    assert_sent(f, "c:ended @0 2.0=cancelled");
    tasks_say(f, WIRE_TASK_CANCEL, 1);
    assert_sent(f, "w0:alive -1.1");
    tasks_fail(f, 0, 1, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 1.1; c:ended @1 1.1=cancelled; w0:work 3.1");
    tasks_say(f, WIRE_TASK_CANCEL, 1); /* it has ended */
    assert_sent(f, "");
    assert_false(tasks_queue(f)->error_pending);
}

/* A broker that was started in between made a failure of it, and cancelled the whole queue. */
static void a_cancelled_task_is_no_error_after_a_start_either(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_say(f, WIRE_TASK_CANCEL, 1);
    assert_sent(f, "w0:alive -1.1");
    tasks_restart(f);
    tasks_hello(f, 0, "1.1");
    tasks_fail(f, 0, 1, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 1.1; w0:work 2.1");
    assert_false(tasks_queue(f)->error_pending);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 1);
}

/* It was written as it came, and the next start called the file damaged: the broker of all jobs. */
static void a_status_that_is_not_known_can_be_read_again(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_fail(f, 0, 1, 1, 255);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=failed/MUSTER_E_TASK");
    tasks_restart(f);
    assert_non_null(tasks_queue(f));
    assert_int_equal(tasks_queue(f)->error_status, MUSTER_E_TASK);
}

static void hold(struct tasks_fixture *f, const char *job, uint64_t kind, uint64_t first)
{
    struct wire_msg message = tasks_msg(f, 0, WIRE_WORK_HELLO);
    struct wire_lease_entry entries[100];

    for (uint64_t i = 0; i < 100; i++)
        entries[i] = (struct wire_lease_entry){f->queue, first + i, 1, kind, 0};
    message.up.job = job;
    message.u.work_hello =
        (struct wire_work_hello){.nonce = 3, .host = "h", .pid = 4, .slots = 1, .takes = 1};
    message.u.work_hello.held.items = entries;
    message.u.work_hello.held.count = 100;
    tasks_feed(f, tasks_route(f, 0), &message);
}

/* Each HELLO of such a worker took more memory, and no error of that queue was raised any more. */
static void what_no_worker_can_hold_is_passed_over(void **state)
{
    struct tasks_fixture *f = *state;

    f->workers[0] = (struct tasks_worker){.incarnation = 77, .route = 77, .slots = 1, .takes = 1};
    hold(f, "another", TASK_KIND_TASK, 1);
    f->workers[0].incarnation = 78;
    hold(f, "train", 77, 1);
    assert_int_equal(tasks_queue(f)->leases, 0);
    for (uint64_t i = 0; i < 20; i++)
        hold(f, "train", TASK_KIND_TASK, 1000 + 100 * i);
    assert_int_equal(tasks_queue(f)->leases, 100); /* what it named last */
}

static void a_lost_worker_is_waited_for_before_an_error_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 1, 1, 1, MUSTER_E_TASK);
    f->workers[0].silent = true;
    tasks_say(f, WIRE_RAISE, 1);
    tasks_pass(f, 4500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 2 2");
}

static void nothing_runs_when_an_error_is_raised_after_a_false_loss(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1; w1:work 1.1");
    f->workers[1].silent = true;
    tasks_pass(f, 5000);
    assert_sent(f, "w0:work 1.2");
    tasks_hello(f, 1, "1.1"); /* it still runs there */
    assert_sent(f, "w1:welcome; w1:alive -1.1");
    tasks_fail(f, 0, 1, 2, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1/MUSTER_E_STALE; c:raised 1 #1 MUSTER_E_TASK to 1 1");
}

/* --- per-worker values ---------------------------------------------------------------------------- */

/* The database was lost, the worker lives on: its values of the old queue were used for the new one, silently. */
static void a_value_of_a_lost_database_is_none_of_a_new_queue(void **state)
{
    struct tasks_fixture *f = *state;
    uint64_t lost = f->queue;
    struct tasks_worker worker;

    tasks_worker_begin(f, 0, 1, 1);
    worker = f->workers[0];
    tasks_without_core(state);
    f->start_high = 76;
    tasks_begin(f);
    f->start_high = 0;
    f->workers[0] = worker;
    tasks_open_queue(f, true, 100);
    assert_int_equal(f->queue, 77);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    f->queue = lost;
    tasks_hello(f, 0, "r1!");
    assert_sent(f, "w0:welcome; w0:alive gone q1; w0:work r1");
}

static void every_worker_makes_the_values_before_it_gets_tasks(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    assert_sent(f, "c:resource 1; w0:work r1");
    tasks_say(f, WIRE_RESOURCE_ADD, 1); /* its answer was lost */
    assert_sent(f, "c:resource 1");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1");
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    assert_sent(f, "w0:taken r1; w0:work 1.1");
    tasks_done(f, 0, 1, 1);
    f->workers[0].silent = true;
    f->now += 3000;
    tasks_worker_begin(f, 0, 1, 1); /* a new process makes it again */
    assert_sent(f, "w0:welcome; w0:work r1");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2");
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    assert_sent(f, "w0:taken r1; w0:work 2.1");
}

static void a_value_that_is_made_is_not_made_again_by_the_same_process(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome; w0:work r1");
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    tasks_restart(f);
    tasks_hello(f, 0, "r1!");
    assert_sent(f, "w0:welcome");
    tasks_open_queue(f, false, 0);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1; w0:work 1.1");
}

static void a_worker_lost_while_it_makes_a_value_costs_no_task(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_add(f, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_worker_begin(f, 0, 1, 1);
    f->workers[0].silent = true;
    tasks_pass(f, 5000);
    tasks_worker_begin(f, 1, 1, 1);
    assert_sent(f, "w1:welcome; w1:work r1");
    tasks_ended_as(f, 1, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    assert_sent(f, "w1:taken r1; w1:work 1.1");
}

/* --- restarts ------------------------------------------------------------------------------------- */

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

/* --- coordinators --------------------------------------------------------------------------------- */

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

/* --- long results --------------------------------------------------------------------------------- */

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
        TEST(a_task_without_a_word_for_too_long_goes_to_another),
        TEST(a_renewed_lease_stands),
        TEST(a_pause_of_the_broker_takes_no_lease_away),
        TEST(the_first_error_stops_the_queue_until_it_is_raised),
        TEST(what_was_scheduled_before_an_error_was_raised_never_runs),
        TEST(the_next_coordinators_numbers_are_its_own),
        TEST(many_are_cancelled_in_slices),
        TEST(of_many_errors_the_first_is_raised),
        TEST(a_cancelled_task_is_no_error),
        TEST(a_cancelled_task_is_no_error_after_a_start_either),
        TEST(a_status_that_is_not_known_can_be_read_again),
        TEST(what_no_worker_can_hold_is_passed_over),
        TEST(a_lost_worker_is_waited_for_before_an_error_is_raised),
        TEST(nothing_runs_when_an_error_is_raised_after_a_false_loss),
        TEST(a_value_of_a_lost_database_is_none_of_a_new_queue),
        TEST(every_worker_makes_the_values_before_it_gets_tasks),
        TEST(a_value_that_is_made_is_not_made_again_by_the_same_process),
        TEST(a_worker_lost_while_it_makes_a_value_costs_no_task),
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
