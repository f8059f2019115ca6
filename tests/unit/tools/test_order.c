/* Which round tells what became of an operator's save, and which rounds are attempts of one cause:
 * others may lie between them. */
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"
#include "tools/order.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PROMISED "state = 'aborted', final = 0"
#define GIVEN_UP "state = 'aborted', final = 1"

struct fixture {
    char directory[SCRATCH_PATH_MAX];
    const char *path;
    struct db_fixture db;
};

static int set_up(void **state)
{
    static struct fixture f;

    scratch_make(f.directory);
    f.path = scratch_path(f.directory, "jobs.db");
    db_open(&f.db, f.path);
    db_job(&f.db, NULL);
    db_generation(&f.db, 1, NULL);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    scratch_remove(f->directory);
    return 0;
}

/* One second after the other: round n is open from n to n + 1/2, if nothing else is set. */
#define SECOND(n) (DB_T0 + (n)*1000LL)
#define add_round(f, number, attempt, cause, set)                    \
    db_round(&(f)->db, number,                                       \
             "attempt = %d, cause = '" cause                         \
             "', opened_unix_ms = %lld, ended_unix_ms = %lld, " set, \
             attempt, SECOND(number), SECOND(number) + 500)

/* r4 was captured and is written behind when r5 is opened beside it; r4's save fails, and r6 is its
 * next attempt. */
static void make_between(struct fixture *f, const char *of_5, const char *of_6)
{
    add_round(f, 4, 1, "operator", PROMISED);
    add_round(f, 5, 1, "period", "state = 'freezing'");
    db_sql(&f->db, "UPDATE round SET ended_unix_ms = %lld WHERE round = 4", SECOND(5) + 200);
    db_sql(&f->db, "UPDATE round SET %s WHERE round = 5", of_5);
    if (of_6 == NULL)
        return;
    add_round(f, 6, 2, "operator", "state = 'freezing'");
    db_sql(&f->db, "UPDATE round SET %s WHERE round = 6", of_6);
}

/* What is seen of the save that round 4 was to make: its state, and the round that tells it. */
static void seen(struct fixture *f, enum order_state state, int64_t round)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    size_t index = 99;

    db_close(&f->db);
    assert_int_equal(muster_client_open(f->path, 0, &client, NULL), MUSTER_OK);
    assert_int_equal(muster_client_rounds(client, "words", 3, &rows, NULL), MUSTER_OK);
    assert_int_equal(order_look(rows, 4, &index), state);
    if (state != ORDER_UNKNOWN)
        assert_int_equal(muster_rows_rounds(rows)[index].round, round);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static void round_that_is_open_is_waited_for(void **state)
{
    add_round((struct fixture *)*state, 4, 1, "operator", "state = 'writing'");
    add_round((struct fixture *)*state, 5, 1, "period", "state = 'committed'");
    seen(*state, ORDER_WAITS, 4);
}

static void round_that_is_over_tells_its_own_outcome(void **state)
{
    add_round((struct fixture *)*state, 4, 1, "operator", GIVEN_UP);
    add_round((struct fixture *)*state, 5, 1, "operator", "state = 'committed'");
    seen(*state, ORDER_OVER, 4);
}

static void next_attempt_is_found_behind_anothers_failure(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'committed'");
    seen(*state, ORDER_OVER, 6);
}

static void next_attempt_is_awaited_behind_anothers_failure(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'decided'");
    seen(*state, ORDER_WAITS, 6);
}

static void anothers_failure_leaves_the_promise(void **state)
{
    make_between(*state, GIVEN_UP, NULL);
    seen(*state, ORDER_PROMISED, 4);
}

static void anothers_checkpoint_is_the_one_that_was_asked_for(void **state)
{
    make_between(*state, "state = 'committed'", GIVEN_UP);
    seen(*state, ORDER_OVER, 5);
}

static void policys_checkpoint_is_no_answer(void **state)
{
    make_between(*state, "state = 'committed', cause = 'policy'", NULL);
    seen(*state, ORDER_PROMISED, 4);
}

static void last_attempt_tells_that_it_was_given_up(void **state)
{
    make_between(*state, GIVEN_UP, PROMISED);
    add_round((struct fixture *)*state, 7, 3, "termination", GIVEN_UP);
    seen(*state, ORDER_OVER, 7);
}

static void open_attempt_counts_before_the_end_of_one_beside(void **state)
{
    make_between(*state, GIVEN_UP ", cause = 'operator'", "state = 'freezing'");
    seen(*state, ORDER_WAITS, 6);
}

static void later_launchs_round_is_none_of_it(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'committed', generation = 2");
    seen(*state, ORDER_PROMISED, 4);
}

static void round_that_is_gone_is_unknown(void **state)
{
    add_round((struct fixture *)*state, 5, 1, "operator", "state = 'committed'");
    seen(*state, ORDER_UNKNOWN, 0);
}

/* --- the query -------------------------------------------------------------------------------- */

/* Asked for any of them, the attempts are these: at most four rounds, then 0. */
static void attempts_are(struct fixture *f, const int64_t expected[4])
{
    muster_client_t *client = NULL;

    db_close(&f->db);
    assert_int_equal(muster_client_open(f->path, 0, &client, NULL), MUSTER_OK);
    for (size_t asked = 0; asked < 4 && expected[asked] != 0; asked++) {
        muster_rows_t *rows = NULL;
        size_t i = 0;

        assert_int_equal(muster_client_attempts(client, "words", expected[asked], &rows, NULL),
                         MUSTER_OK);
        for (; i < 4 && expected[i] != 0; i++) {
            assert_true(i < muster_rows_count(rows));
            assert_int_equal(muster_rows_rounds(rows)[i].round, expected[i]);
        }
        assert_int_equal(muster_rows_count(rows), i);
        muster_rows_destroy(&rows);
    }
    muster_client_close(&client, NULL);
}

static void attempts_have_another_causes_round_between(void **state)
{
    make_between(*state, GIVEN_UP, PROMISED);
    add_round((struct fixture *)*state, 7, 3, "operator", "state = 'committed'");
    add_round((struct fixture *)*state, 8, 1, "operator", "state = 'committed'");
    attempts_are(*state, (const int64_t[4]){4, 6, 7, 0});
}

static void round_between_is_alone(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'committed'");
    attempts_are(*state, (const int64_t[4]){5, 0});
}

/* Another operator's, opened while round 4 was being written: it is no attempt at that save. */
static void round_beside_is_no_attempt(void **state)
{
    make_between(*state, "state = 'committed', cause = 'operator'", "state = 'committed'");
    attempts_are(*state, (const int64_t[4]){4, 6, 0});
}

static void attempt_that_a_notice_joined_is_one(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'committed', cause = 'termination'");
    attempts_are(*state, (const int64_t[4]){4, 6, 0});
}

static void what_was_given_up_has_no_further_attempt(void **state)
{
    make_between(*state, GIVEN_UP, "state = 'committed'");
    db_sql(&((struct fixture *)*state)->db, "UPDATE round SET final = 1 WHERE round = 4");
    attempts_are(*state, (const int64_t[4]){4, 0});
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(round_that_is_open_is_waited_for),
        TEST(round_that_is_over_tells_its_own_outcome),
        TEST(next_attempt_is_found_behind_anothers_failure),
        TEST(next_attempt_is_awaited_behind_anothers_failure),
        TEST(anothers_failure_leaves_the_promise),
        TEST(anothers_checkpoint_is_the_one_that_was_asked_for),
        TEST(policys_checkpoint_is_no_answer),
        TEST(last_attempt_tells_that_it_was_given_up),
        TEST(open_attempt_counts_before_the_end_of_one_beside),
        TEST(later_launchs_round_is_none_of_it),
        TEST(round_that_is_gone_is_unknown),
        TEST(attempts_have_another_causes_round_between),
        TEST(round_between_is_alone),
        TEST(round_beside_is_no_attempt),
        TEST(attempt_that_a_notice_joined_is_one),
        TEST(what_was_given_up_has_no_further_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
