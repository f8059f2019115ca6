/* The broker's core: hosts that form a job's launches by themselves (R15). */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define WAIT_MS 30000

struct told { /* what a host is answered */
    unsigned code;
    uint64_t launch;
    const char *text;
};

static struct wire_host host(uint64_t id, uint64_t min, uint64_t max)
{
    static char names[16][8];

    snprintf(names[id], sizeof names[id], "host-%d", (int)id);
    return (struct wire_host){.id = id,
                              .name = names[id],
                              .address = "192.0.2.1",
                              .port = 7000 + id,
                              .ranks = 4,
                              .min = min,
                              .max = max,
                              .wait_ms = WAIT_MS,
                              .node_rank = -1};
}

static struct told say(struct core_fixture *f, struct wire_host said)
{
    struct wire_msg message = {.type = WIRE_HOST, .u.host = said};

    core_tool(f, message, 1);
    for (size_t i = 0; i < f->out.count; i++) {
        const struct wire_ack *ack = &f->out.items[i].message.u.ack;

        if (f->out.items[i].kind == ACTION_SEND && f->out.items[i].message.type == WIRE_ACK)
            return (struct told){(unsigned)ack->code, ack->value, ack->text};
    }
    fail_msg("no answer in: %s", core_text(f));
    return (struct told){.code = 0};
}

static struct told hears(struct core_fixture *f, uint64_t id, uint64_t min, uint64_t max)
{
    return say(f, host(id, min, max));
}

static struct told ended(struct core_fixture *f, uint64_t id, uint64_t min, uint64_t max,
                         uint64_t launch)
{
    struct wire_host said = host(id, min, max);

    said.ended = launch;
    return say(f, said);
}

/* Time passes, and these hosts speak in each second of it. */
static void pass(struct core_fixture *f, int64_t ms, uint64_t ids[], size_t count, uint64_t min,
                 uint64_t max)
{
    for (int64_t at = 0; at < ms; at += 1000) {
        f->now += 1000;
        core_tick(f);
        for (size_t i = 0; i < count; i++)
            hears(f, ids[i], min, max);
    }
}

static const struct record_host *row_of(const struct core_fixture *f, uint64_t launch,
                                        uint64_t place)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_HOST && f->rows[i].u.host.launch == launch &&
            f->rows[i].u.host.place == (int64_t)place)
            return &f->rows[i].u.host;
    return NULL;
}

static void assert_place(const struct core_fixture *f, uint64_t launch, uint64_t place, uint64_t id)
{
    const struct record_host *row = row_of(f, launch, place);

    assert_non_null(row);
    assert_int_equal(row->id, id);
    assert_int_equal(row->first_rank, 4 * place);
    assert_int_equal(row->port, 7000 + id);
}

static const struct record_host *assert_row(const struct core_fixture *f, uint64_t launch,
                                            uint64_t id, enum host_state expected)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_HOST && f->rows[i].u.host.launch == launch &&
            f->rows[i].u.host.id == id) {
            assert_int_equal(f->rows[i].u.host.state, expected);
            return &f->rows[i].u.host;
        }
    fail_msg("no row of host %d in launch %d", (int)id, (int)launch);
    return NULL;
}

static void later(struct core_fixture *f, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 500) {
        f->now += 500;
        core_tick(f);
    }
}

static int setup(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 1, LAYOUT_REPLICATED);
    later(&f, LOST_MS); /* whoever is there was heard since the start */
    *state = &f;
    return 0;
}

/* R15.1 */
static void a_launch_begins_when_all_hosts_are_there(void **state)
{
    struct core_fixture *f = *state;
    struct told told = hears(f, 1, 2, 2);

    assert_int_equal(told.code, MUSTER_E_BUSY);
    assert_string_equal(told.text, "1 of 2 is here");
    told = hears(f, 2, 2, 2);
    assert_int_equal(told.code, MUSTER_OK);
    assert_int_equal(told.launch, 1);
    assert_int_equal(hears(f, 1, 2, 2).launch, 1);
    assert_place(f, 1, 0, 1);
    assert_place(f, 1, 1, 2);
}

/* R15.1 */
static void the_least_number_of_hosts_waits_for_one_more(void **state)
{
    struct core_fixture *f = *state;
    uint64_t ids[] = {1, 2};

    hears(f, 1, 2, 3);
    pass(f, 10000, ids, 2, 2, 3);
    assert_int_equal(hears(f, 1, 2, 3).code, MUSTER_E_BUSY);
    pass(f, WAIT_MS - 10000, ids, 2, 2, 3);
    assert_null(row_of(f, 1, 0));
    pass(f, 2000, ids, 2, 2, 3);
    assert_int_equal(hears(f, 1, 2, 3).launch, 1);
    assert_place(f, 1, 1, 2);
    assert_null(row_of(f, 1, 2));
}

/* R15.1: too few are no launch, however long they wait */
static void too_few_hosts_form_no_launch(void **state)
{
    struct core_fixture *f = *state;
    uint64_t ids[] = {1};

    pass(f, 4 * WAIT_MS, ids, 1, 2, 3);
    assert_int_equal(hears(f, 1, 2, 3).code, MUSTER_E_BUSY);
}

/* R15.2 */
static void no_launch_is_formed_while_one_runs(void **state)
{
    struct core_fixture *f = *state;
    struct told told;

    hears(f, 1, 1, 2);
    hears(f, 2, 1, 2);
    told = ended(f, 1, 1, 2, 1);
    assert_int_equal(told.code, MUSTER_E_BUSY);
    assert_string_equal(told.text, "launch 1 of this job runs on 1 host, and 1 waits for the next");
    told = ended(f, 2, 1, 2, 1);
    assert_int_equal(told.launch, 2);
    assert_int_equal(ended(f, 1, 1, 2, 1).launch, 2);
    assert_place(f, 2, 0, 1);
    assert_place(f, 2, 1, 2);
}

/* R15.2: those that were in the launch before need not wait for others */
static void a_host_that_vanished_is_not_waited_for(void **state)
{
    struct core_fixture *f = *state;
    uint64_t stays[] = {2};
    struct told told;

    hears(f, 1, 1, 2);
    hears(f, 2, 1, 2);
    pass(f, LOST_MS + 1000, stays, 1, 1, 2);
    told = hears(f, 2, 1, 2);
    assert_int_equal(told.code, MUSTER_E_PEER);
    assert_string_equal(told.text, "host host-1 of launch 1 is gone");
    assert_int_equal(ended(f, 2, 1, 2, 1).code, MUSTER_E_BUSY);
    for (int i = 0; i < WAIT_MS / 1000 + 1; i++) {
        later(f, 1000);
        ended(f, 2, 1, 2, 1);
    }
    assert_int_equal(ended(f, 2, 1, 2, 1).launch, 2);
    assert_place(f, 2, 0, 2);
    assert_null(row_of(f, 2, 1));
}

/* R15.2: also to one that was not told of the launch before */
static void a_launch_that_is_over_on_one_host_is_told_to_the_others(void **state)
{
    struct core_fixture *f = *state;
    struct told told;

    hears(f, 1, 2, 4);
    for (int i = 0; i < WAIT_MS / 1000 + 1; i++) {
        later(f, 1000);
        hears(f, 1, 2, 4);
        hears(f, 2, 2, 4);
    }
    assert_int_equal(hears(f, 1, 2, 4).launch, 1);
    assert_int_equal(ended(f, 2, 2, 4, 1).code, MUSTER_E_BUSY);
    told = hears(f, 1, 2, 4); /* it is not asked to make room for the other, either */
    assert_int_equal(told.code, MUSTER_E_PEER);
    assert_int_equal(told.launch, 1);
    assert_string_equal(told.text, "launch 1 is over on host host-2");
    assert_int_equal(ended(f, 1, 2, 4, 1).launch, 2);
    assert_int_equal(ended(f, 2, 2, 4, 1).code, MUSTER_OK);
}

/* R15.2 */
static void a_host_that_finished_first_leaves_no_gap(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host quick = host(2, 2, 2);

    hears(f, 1, 2, 2);
    hears(f, 2, 2, 2);
    quick.ended = 1;
    quick.leaving = true;
    say(f, quick);
    assert_int_equal(hears(f, 1, 2, 2).launch, 1); /* which was not told of it before */
    quick.id = 3;
    quick.ended = 0;
    say(f, quick); /* of another launch, and before its end */
    assert_int_equal(hears(f, 1, 2, 2).launch, 1);
}

/* R15.3 */
static void hosts_keep_their_places_and_newcomers_fill_the_gap(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host gone = host(2, 3, 3);

    hears(f, 1, 3, 3);
    hears(f, 2, 3, 3);
    hears(f, 3, 3, 3);
    gone.leaving = true;
    assert_int_equal(say(f, gone).code, MUSTER_OK);
    ended(f, 3, 3, 3, 1);
    hears(f, 9, 3, 3);
    assert_int_equal(ended(f, 1, 3, 3, 1).launch, 2);
    assert_place(f, 2, 0, 1);
    assert_place(f, 2, 1, 9);
    assert_place(f, 2, 2, 3);
}

/* R15.3 */
static void a_host_gets_the_place_that_it_asks_for(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host first = host(1, 2, 2), second = host(2, 2, 2);

    first.node_rank = 1;
    second.node_rank = 0;
    say(f, first);
    say(f, second);
    assert_place(f, 1, 0, 2);
    assert_place(f, 1, 1, 1);
}

static void hosts_that_contradict_each_other_are_named(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host first = host(1, 2, 4), second = host(2, 2, 4);
    struct told told;

    first.node_rank = second.node_rank = 1;
    say(f, first);
    told = say(f, second);
    assert_int_equal(told.code, MUSTER_E_BUSY); /* who of them is wrong is not known */
    assert_non_null(strstr(told.text, "host host-1 has --node-rank 1 already"));
    told = hears(f, 3, 2, 3);
    assert_int_equal(told.code, MUSTER_E_BUSY);
    assert_non_null(strstr(told.text, "host host-1 runs this job with --nodes 2:4"));
    assert_int_equal(hears(f, 4, 3, 2).code, MUSTER_E_ARGUMENT); /* least above most */
    assert_int_equal(hears(f, 5, 0, 2).code, MUSTER_E_ARGUMENT);
    assert_int_equal(ended(f, 1, 2, 4, UINT64_MAX).code, MUSTER_E_ARGUMENT); /* none follows it */
    assert_null(row_of(f, 1, 0));
    later(f, LOST_MS); /* the first one is gone */
    assert_string_equal(hears(f, 3, 2, 3).text, "1 is here, a launch has 2 to 3");
    assert_string_equal(hears(f, 4, 2, 3).text, "2 are here, a launch has 2 to 3: it begins when "
                                                "no other has come for 30.0 s");
}

/* R15.4 */
static void a_host_that_comes_later_makes_the_launch_grow(void **state)
{
    struct core_fixture *f = *state;
    uint64_t one[] = {1}, both[] = {1, 2};
    struct told told;

    hears(f, 1, 1, 2);
    pass(f, WAIT_MS + 1000, one, 1, 1, 2);
    assert_int_equal(hears(f, 1, 1, 2).launch, 1);
    assert_int_equal(hears(f, 2, 1, 2).code, MUSTER_E_BUSY);
    told = hears(f, 1, 1, 2);
    assert_int_equal(told.code, MUSTER_PREEMPTED);
    assert_string_equal(told.text, "1 more host is there for the job");
    pass(f, 3000, both, 2, 1, 2);
    assert_int_equal(ended(f, 1, 1, 2, 1).launch, 2);
    assert_place(f, 2, 0, 1);
    assert_place(f, 2, 1, 2);
}

/* R15.5 */
static void a_broker_that_starts_again_tells_the_same_places(void **state)
{
    struct core_fixture *f = *state;

    hears(f, 1, 1, 2);
    hears(f, 2, 1, 2); /* host 1 was not told of the launch */
    core_restart(f, false);
    assert_int_equal(hears(f, 1, 1, 2).launch, 1);
    assert_int_equal(hears(f, 2, 1, 2).launch, 1);
    assert_null(row_of(f, 2, 0));
}

/* R15.5: who waits forms none before those of the running launch could be heard */
static void a_start_does_not_form_a_launch_beside_one_that_runs(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host late = host(3, 1, 1), running = host(1, 1, 1);

    late.wait_ms = running.wait_ms = 0;
    assert_int_equal(say(f, running).launch, 1);
    assert_int_equal(say(f, late).code, MUSTER_E_BUSY);
    core_restart(f, false);
    assert_int_equal(say(f, late).code, MUSTER_E_BUSY);
    later(f, LOST_MS - 1000);
    assert_int_equal(say(f, late).code, MUSTER_E_BUSY);
    assert_int_equal(say(f, running).launch, 1);
    later(f, 2000);
    assert_int_equal(say(f, late).code, MUSTER_E_BUSY);
    assert_null(row_of(f, 2, 0));
}

/* R15.5 */
static void who_comes_behind_a_start_shuts_no_host_of_the_launch_out(void **state)
{
    struct core_fixture *f = *state;

    hears(f, 1, 1, 1);
    core_restart(f, false);
    assert_non_null(strstr(hears(f, 2, 2, 3).text, "host host-1 runs this job with --nodes 1:1"));
    assert_int_equal(hears(f, 1, 1, 1).launch, 1);
    assert_int_equal(hears(f, 2, 2, 3).code, MUSTER_E_BUSY);
    assert_int_equal(ended(f, 1, 1, 1, 1).code, MUSTER_E_BUSY); /* the start was just now */
    later(f, LOST_MS - 1000);
    assert_int_equal(ended(f, 1, 1, 1, 1).code, MUSTER_E_BUSY);
    later(f, 1000);
    assert_int_equal(ended(f, 1, 1, 1, 1).launch, 2);
}

/* R15.5 */
static void no_number_of_a_launch_is_used_twice(void **state)
{
    struct core_fixture *f = *state;

    assert_int_equal(ended(f, 1, 1, 1, 7).launch, 8); /* the database is of before launch 7 */
    assert_place(f, 8, 0, 1);
}

static void hosts_keep_their_job_awake_until_they_are_silent(void **state)
{
    struct core_fixture *f = *state;
    uint64_t ids[] = {1};

    f->options.ended_held = -1;
    core_restart(f, false);
    pass(f, 20000, ids, 1, 2, 2);
    assert_non_null(core_job(f));
    for (int i = 0; i < 10; i++) {
        f->now += 1000;
        core_tick(f);
    }
    assert_null(core_job(f));
    assert_row(f, 0, 1, HOST_LOST);
}

/* R15.5: what `muster status` shows */
static void rows_tell_who_is_there(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host leaves = host(2, 1, 2);
    uint64_t stays[] = {3};

    hears(f, 1, 1, 2);
    assert_row(f, 0, 1, HOST_WAITING);
    hears(f, 2, 1, 2);
    assert_row(f, 0, 1, HOST_RUNNING); /* no more of one that waits */
    assert_row(f, 1, 1, HOST_RUNNING);
    assert_row(f, 1, 2, HOST_RUNNING);
    hears(f, 3, 1, 2);
    assert_row(f, 0, 3, HOST_WAITING);
    ended(f, 1, 1, 2, 1);
    assert_row(f, 1, 1, HOST_WAITING);
    leaves.leaving = true;
    say(f, leaves);
    assert_row(f, 1, 2, HOST_LEFT);
    assert_row(f, 2, 1, HOST_RUNNING);
    assert_row(f, 2, 3, HOST_RUNNING);
    int64_t heard = 1700000000000 + f->now;
    pass(f, LOST_MS, stays, 1, 1, 2);
    assert_int_equal(assert_row(f, 2, 1, HOST_LOST)->state_unix_ms, heard);
    hears(f, 1, 1, 2);
    assert_row(f, 2, 1, HOST_RUNNING); /* its network was cut, and is there again */
}

/* R15.5: a launch that has no room for one */
static void a_host_beyond_the_most_waits_on(void **state)
{
    struct core_fixture *f = *state;

    hears(f, 1, 2, 2);
    hears(f, 2, 2, 2);
    hears(f, 3, 2, 2);
    ended(f, 1, 2, 2, 1);
    ended(f, 2, 2, 2, 1);
    assert_row(f, 2, 1, HOST_RUNNING);
    assert_row(f, 0, 3, HOST_WAITING);
    assert_int_equal(hears(f, 3, 2, 2).code, MUSTER_E_BUSY);
}

/* R15.5 */
static void a_host_that_finished_first_is_not_gone_behind_a_start(void **state)
{
    struct core_fixture *f = *state;
    struct wire_host quick = host(2, 2, 2);
    uint64_t stays[] = {1};

    hears(f, 1, 2, 2);
    hears(f, 2, 2, 2);
    quick.ended = 1;
    quick.leaving = true;
    say(f, quick);
    core_restart(f, false);
    pass(f, 2 * LOST_MS, stays, 1, 2, 2);
    assert_int_equal(hears(f, 1, 2, 2).code, MUSTER_OK);
}

/* R15.5: whoever died with the broker makes no launch grow */
static void a_start_asks_no_launch_to_grow_for_a_row(void **state)
{
    struct core_fixture *f = *state;
    uint64_t one[] = {1};

    pass(f, WAIT_MS + 1000, one, 1, 1, 2);
    assert_int_equal(hears(f, 2, 1, 2).code, MUSTER_E_BUSY);
    core_restart(f, false);
    assert_int_equal(hears(f, 1, 1, 2).code, MUSTER_OK);
    pass(f, 2 * LOST_MS, one, 1, 1, 2);
    assert_int_equal(hears(f, 1, 1, 2).code, MUSTER_OK);
    assert_row(f, 0, 2, HOST_LOST);
}

/* R15.5 */
static void hosts_of_an_older_database_are_in_no_launch(void **state)
{
    struct core_fixture *f = *state;

    hears(f, 1, 1, 2);
    hears(f, 2, 1, 2);
    assert_int_equal(ended(f, 2, 1, 2, 7).code, MUSTER_E_BUSY);
    assert_row(f, 1, 1, HOST_LOST);
    assert_row(f, 1, 2, HOST_LOST);
    assert_row(f, 0, 2, HOST_WAITING);
    assert_int_equal(ended(f, 1, 1, 2, 7).launch, 8);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, core_close)
    const struct CMUnitTest tests[] = {
        TEST(a_launch_begins_when_all_hosts_are_there),
        TEST(the_least_number_of_hosts_waits_for_one_more),
        TEST(too_few_hosts_form_no_launch),
        TEST(no_launch_is_formed_while_one_runs),
        TEST(a_host_that_vanished_is_not_waited_for),
        TEST(a_launch_that_is_over_on_one_host_is_told_to_the_others),
        TEST(a_host_that_finished_first_leaves_no_gap),
        TEST(hosts_keep_their_places_and_newcomers_fill_the_gap),
        TEST(a_host_gets_the_place_that_it_asks_for),
        TEST(hosts_that_contradict_each_other_are_named),
        TEST(a_host_that_comes_later_makes_the_launch_grow),
        TEST(a_broker_that_starts_again_tells_the_same_places),
        TEST(a_start_does_not_form_a_launch_beside_one_that_runs),
        TEST(who_comes_behind_a_start_shuts_no_host_of_the_launch_out),
        TEST(no_number_of_a_launch_is_used_twice),
        TEST(hosts_keep_their_job_awake_until_they_are_silent),
        TEST(rows_tell_who_is_there),
        TEST(a_host_beyond_the_most_waits_on),
        TEST(a_host_that_finished_first_is_not_gone_behind_a_start),
        TEST(a_start_asks_no_launch_to_grow_for_a_row),
        TEST(hosts_of_an_older_database_are_in_no_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
