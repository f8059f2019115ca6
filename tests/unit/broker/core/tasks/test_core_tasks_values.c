/* The broker's core: per-worker values, and one that ends the workers that make it. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- made by each worker before its tasks ----------------------------------------------------- */

/* The database was lost, the worker lives on: its values of the old queue were used for the new
 * one, silently. */
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

/* R22.4 */
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
    tasks_pass(f, 3000);
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
    size_t bytes;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome; w0:work r1");
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    bytes = tasks_queue(f)->value_bytes;
    assert_in_range(bytes, sizeof(struct task_resource), TASK_ARGS_MAX);
    tasks_restart(f);
    assert_int_equal(tasks_queue(f)->value_bytes, bytes);
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

/* A coordinator that attached names the values that it finds by their numbers (R22.6). */
static void a_number_that_means_another_value_is_refused(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_msg other;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    assert_sent(f, "c:resource 1; w0:work r1");
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    assert_sent(f, "c:resource 1"); /* that one: it is not made again */
    other = tasks_msg(f, -1, WIRE_RESOURCE_ADD);
    other.u.resource_add = (struct wire_resource_add){
        .queue = f->queue, .number = 1, .fn = "make", .args = {(const uint8_t *)"s", 1}};
    tasks_feed(f, tasks_route(f, -1), &other);
    assert_sent(f, "c:resource 1/MUSTER_E_EXISTS");
}

/* --- one that ends its workers ---------------------------------------------------------------- */

static void add_user(struct tasks_fixture *f, uint8_t value)
{
    tasks_add_one(f, (struct wire_task_entry){.number = ++f->number,
                                              .fn = "work",
                                              .uses = {(uint8_t[]){0, 0, 0, value}, 4}});
}

/* Worker w begins, is given what there is, and is not heard again. */
static void begin_and_end(struct tasks_fixture *f, int w)
{
    tasks_worker_begin(f, w, 1, 4);
    f->workers[w].silent = true;
    tasks_pass(f, 5000);
}

static void made(struct tasks_fixture *f, int w, uint64_t number)
{
    tasks_ended_as(f, w,
                   (struct wire_ended_entry){
                       .number = number, .kind = TASK_KIND_RESOURCE, .state = TASK_DONE});
}

/* R22.4, R22.5 */
static void a_value_that_ends_its_workers_fails_the_tasks_that_use_it(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    add_user(f, 1);
    begin_and_end(f, 0);
    begin_and_end(f, 1);
    assert_false(tasks_queue(f)->error_pending);
    tasks_worker_begin(f, 2, 1, 4);
    assert_sent(f, "w2:welcome; w2:work r1");
    f->workers[2].silent = true;
    tasks_pass(f, 5000);
    assert_sent(f, "c:ended @0 1.0=failed/MUSTER_E_INPUT");
    assert_non_null(strstr(tasks_queue(f)->error_text, "per-worker value 1 (make) of queue main"));
    assert_non_null(strstr(tasks_queue(f)->error_text, "worker 2 (process 4002 on h) was lost"));
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_INPUT to 1 1");
}

/* R22.4 */
static void tasks_that_do_not_use_it_go_on(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 2);
    for (int w = 0; w < 3; w++)
        begin_and_end(f, w);
    tasks_worker_begin(f, 3, 1, 4);
    assert_sent(f, "w3:welcome; w3:work r2"); /* its turn was never the second one's */
    made(f, 3, 2);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1; w3:work 1.1");
    add_user(f, 2);
    assert_sent(f, "c:taken 2; w3:work 2.1");
    add_user(f, 1);
    assert_sent(f, "c:taken 3; w3:alive -1.1 -2.1; c:ended @0 3.0=failed/MUSTER_E_INPUT");
}

/* R22.5 */
static void a_suspect_is_made_alone(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 1, 1, 4);
    tasks_add(f, 1);
    begin_and_end(f, 0);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    assert_sent(f, "c:resource 1; w1:work r1");
    f->workers[1].silent = true; /* the task is at its turn, not the value */
    tasks_pass(f, 5000);
    tasks_worker_begin(f, 2, 1, 4);
    assert_sent(f, "w2:welcome; w2:work r1");
    f->workers[2].silent = true;
    tasks_worker_begin(f, 3, 1, 4);
    assert_sent(f, "w3:welcome; w3:work r1");
    made(f, 3, 1);
    assert_sent(f, "w3:taken r1; w3:work 1.2");
    tasks_pass(f, 5000);
    tasks_worker_begin(f, 4, 1, 4);
    assert_int_equal(tasks_queue(f)->resources[0].losses, 1);
    assert_sent(f, "w4:welcome; w4:work r1");
    tasks_say(f, WIRE_RESOURCE_ADD, 2);
    assert_sent(f, "c:resource 2; w3:work r2"); /* not to 4, which makes one alone */
    tasks_done(f, 3, 1, 2);
    assert_sent(f, "w3:taken 1.2; c:ended @0 1.2=done");
}

/* R22.5 */
static void one_that_was_made_is_no_suspect(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    add_user(f, 1);
    begin_and_end(f, 0);
    begin_and_end(f, 1);
    tasks_worker_begin(f, 2, 1, 4);
    made(f, 2, 1);
    assert_sent(f, "w2:taken r1; w2:work 1.1");
    f->workers[2].silent = true;
    begin_and_end(f, 3);
    assert_false(tasks_queue(f)->resources[0].given_up);
}

/* R22.5 */
static void another_coordinator_has_it_tried_again(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    for (int w = 0; w < 3; w++)
        begin_and_end(f, w);
    tasks_worker_begin(f, 3, 1, 4);
    assert_sent(f, "w3:welcome");
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 0/0; w3:work r1");
}

/* Workers come and are lost as machines do: nothing says that the value ended them. */
static void workers_that_are_lost_together_are_one_loss(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    add_user(f, 1);
    for (int w = 0; w < 4; w++) {
        tasks_worker_begin(f, w, 1, 4);
        f->workers[w].silent = true;
    }
    tasks_pass(f, 5000);
    assert_int_equal(tasks_queue(f)->resources[0].losses, 1);
    for (int w = 4; w < 8; w++) { /* each alone, all at a time */
        tasks_worker_begin(f, w, 1, 4);
        f->workers[w].silent = true;
    }
    tasks_pass(f, 5000);
    assert_int_equal(tasks_queue(f)->resources[0].losses, 2);
    assert_false(tasks_queue(f)->resources[0].given_up);
    begin_and_end(f, 8);
    assert_true(tasks_queue(f)->resources[0].given_up);
}

static void what_a_living_worker_has_is_not_given_up(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_worker_begin(f, 0, 1, 4);
    made(f, 0, 1);
    for (int w = 1; w < 5; w++)
        begin_and_end(f, w);
    assert_int_equal(tasks_queue(f)->resources[0].losses, 4);
    assert_sent(f, "");
    add_user(f, 1);
    assert_sent(f, "c:taken 1; w0:work 1.1");
    tasks_done(f, 0, 1, 1);
    f->workers[0].silent = true;
    tasks_pass(f, 5000);
    begin_and_end(f, 5); /* nobody has it now */
    assert_true(tasks_queue(f)->resources[0].given_up);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_of_a_lost_database_is_none_of_a_new_queue),
        TEST(every_worker_makes_the_values_before_it_gets_tasks),
        TEST(a_number_that_means_another_value_is_refused),
        TEST(a_value_that_is_made_is_not_made_again_by_the_same_process),
        TEST(a_worker_lost_while_it_makes_a_value_costs_no_task),
        TEST(a_value_that_ends_its_workers_fails_the_tasks_that_use_it),
        TEST(tasks_that_do_not_use_it_go_on),
        TEST(a_suspect_is_made_alone),
        TEST(one_that_was_made_is_no_suspect),
        TEST(another_coordinator_has_it_tried_again),
        TEST(workers_that_are_lost_together_are_one_loss),
        TEST(what_a_living_worker_has_is_not_given_up),
    };

    return cmocka_run_group_tests_name("core_tasks_values", tests, tasks_open_file,
                                       tasks_close_file);
}
