/* A task that its own batch gives to a worker: two rows of the batch, one write. */
#include "broker/store/store_internal.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define QUEUE 3

static const struct record queue = {.kind = RECORD_TASK_QUEUE,
                                    .u.task_queue = {.queue = QUEUE,
                                                     .job = "job",
                                                     .name = "main",
                                                     .taken = 1,
                                                     .max_queued = 9,
                                                     .max_attempts = 3,
                                                     .error_text = ""}};

static struct record added(uint64_t number)
{
    return (struct record){.kind = RECORD_TASK,
                           .u.task = {.queue = QUEUE,
                                      .number = number,
                                      .state = TASK_QUEUED,
                                      .fn = "train",
                                      .args = {(const uint8_t *)"arguments", 9},
                                      .uses = {(const uint8_t *)"uses", 4},
                                      .timeout_ms = 1500,
                                      .unix_ms = 111,
                                      .text = ""}};
}

static struct record given(uint64_t number)
{
    return (struct record){.kind = RECORD_TASK_STATE,
                           .u.task = {.queue = QUEUE,
                                      .number = number,
                                      .state = TASK_LEASED,
                                      .attempt = 2,
                                      .losses = 1,
                                      .excused = 4,
                                      .worker = SAMPLE_INCARNATION,
                                      .worker_index = 5,
                                      .unix_ms = 222,
                                      .fn = "",
                                      .text = ""}};
}

static struct record ended(uint64_t number)
{
    return (struct record){.kind = RECORD_TASK_END,
                           .u.task = {.queue = QUEUE,
                                      .number = number,
                                      .state = TASK_DONE,
                                      .attempt = 2,
                                      .fn = "",
                                      .text = "",
                                      .unix_ms = 333}};
}

#define ALL                                                                          \
    "state, attempt, losses, worker, worker_index, status, code, bytes, timeout_ms," \
    " scheduled_unix_ms, leased_unix_ms, ended_unix_ms, fn, text, uses, args, result, excused"
#define KINDS_OF_TASKS "SELECT count(*) FROM (SELECT 1 FROM task GROUP BY " ALL ")"

static void together_it_is_what_one_after_the_other_is(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_apply(f, (struct record[]){added(1), queue, given(1)}, 3), MUSTER_OK);
    fixture_write(f, &(struct record[]){added(2)}[0]);
    assert_int_equal(fixture_look(f, KINDS_OF_TASKS), 2);
    fixture_write(f, &(struct record[]){given(2)}[0]);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM task"), 2);
    assert_int_equal(fixture_look(f, KINDS_OF_TASKS), 1);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM task WHERE leased_unix_ms = 222"
                                     " AND scheduled_unix_ms = 111 AND state = 'leased'"),
                     2);
}

static void written_twice_it_is_written_once(void **state)
{
    struct fixture *f = *state;
    const struct record batch[] = {added(1), queue, given(1)};

    fixture_write(f, &(struct record[]){added(1)}[0]);
    assert_int_equal(fixture_apply(f, batch, 3), MUSTER_OK);
    assert_int_equal(fixture_apply(f, batch, 3), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM task WHERE state = 'leased'"), 1);
    fixture_write(f, &(struct record[]){ended(1)}[0]);
    assert_int_equal(fixture_apply(f, batch, 3), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM task WHERE state = 'done'"), 1);
}

/* Each row behind it counts, too. */
static void all_of_a_batch_is_written(void **state)
{
    struct fixture *f = *state;
    const struct record batch[] = {added(1), given(1), given(1), added(2), added(3),
                                   given(2), given(3), added(4), queue,    given(4),
                                   ended(4), added(5), given(4), given(5)};

    assert_int_equal(fixture_apply(f, batch, sizeof batch / sizeof *batch), MUSTER_OK);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM task WHERE state = 'leased'"), 4);
    assert_int_equal(fixture_look(f, "SELECT id & 255 FROM task WHERE state = 'done'"), 4);
}

static const struct record *given_at(const struct record *rows, size_t count, size_t at)
{
    static struct action items[8];
    struct actions batch = batch_of(rows, count, false, items);
    const struct record *found = store_task_given(&batch, at);

    for (size_t i = 0; i < count; i++)
        if (found == &items[i].record)
            return &rows[i];
    assert_null(found);
    return NULL;
}

static void only_what_follows_goes_along(void **state)
{
    const struct record other_queue = {
        .kind = RECORD_TASK_STATE,
        .u.task = {.queue = QUEUE + 1, .number = 1, .state = TASK_LEASED}};
    const struct record direct[] = {added(1), queue, given(1)};
    const struct record late[] = {added(1), added(2), given(1)};
    const struct record none[] = {added(1), queue};

    (void)state;
    assert_ptr_equal(given_at(direct, 3, 0), &direct[2]);
    assert_null(given_at(direct, 3, 1));
    assert_null(given_at(direct, 3, 2));
    assert_null(given_at(late, 3, 0));
    assert_null(given_at(late, 3, 1));
    assert_null(given_at(none, 2, 0));
    assert_null(given_at((struct record[]){added(1), ended(1), given(1)}, 3, 0));
    assert_null(given_at((struct record[]){added(1), other_queue}, 2, 0));
    assert_null(given_at((struct record[]){added(1), given(2)}, 2, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(together_it_is_what_one_after_the_other_is, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(written_twice_it_is_written_once, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(all_of_a_batch_is_written, fixture_setup, fixture_teardown),
        cmocka_unit_test(only_what_follows_goes_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
