/* Which rounds a database keeps, and that the others go in slices. */
#include "tests/unit/broker/store/store_fixture.h"

#include "schema/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define BATCH 256
#define ROUNDS 300
#define MANY_RANKS WORLD_SIZE_MAX /* the fewest rounds are kept: ROUNDS_KEPT_MIN */
#define OLD (ROUNDS - ROUNDS_KEPT_MIN)
#define COUNT(table) "SELECT count(*) FROM " table

struct rows {
    struct fixture *f;
    struct record items[BATCH];
    size_t count;
};

static void rows_flush(struct rows *rows)
{
    assert_int_equal(fixture_apply(rows->f, rows->items, rows->count), MUSTER_OK);
    rows->count = 0;
}

static struct record *rows_add(struct rows *rows, enum record_kind kind)
{
    if (rows->count == BATCH)
        rows_flush(rows);
    rows->items[rows->count] = *sample_of(kind);
    return &rows->items[rows->count++];
}

/* The sample's job again, with so many ranks and rounds. Each round has one rank's row. */
static void fill(struct fixture *f, uint64_t ranks, uint64_t rounds)
{
    struct rows rows = {.f = f};

    rows_add(&rows, RECORD_JOB)->u.job.round = rounds;
    rows_add(&rows, RECORD_GENERATION)->u.generation.world_size = ranks;
    for (uint64_t i = 1; i <= rounds; i++) {
        struct record *round = rows_add(&rows, RECORD_ROUND);

        round->u.round.round = i;
        round->u.round.state = ROUND_COMMITTED;
        round->u.round.reason = "";
        rows_add(&rows, RECORD_PARTICIPANT)->u.participant.round = i;
    }
    rows_flush(&rows);
}

static void save(struct fixture *f, uint64_t round, enum wire_checkpoint_state state, int64_t step)
{
    struct rows rows = {.f = f};
    struct record *checkpoint = rows_add(&rows, RECORD_CHECKPOINT);

    checkpoint->u.checkpoint.round = round;
    checkpoint->u.checkpoint.state = state;
    checkpoint->u.checkpoint.step = step;
    rows_add(&rows, RECORD_SHARD)->u.shard.round = round;
    rows_add(&rows, RECORD_FILE)->u.file.round = round;
    rows_add(&rows, RECORD_CUSTOM)->u.custom.round = round;
    rows_flush(&rows);
}

/* Returns how many slices it took. */
static int trim(struct fixture *f)
{
    int64_t now = NOW;
    int slices = 0;

    for (; store_wakeup_boot_ms(f->store) != INT64_MAX; slices++)
        assert_int_equal(store_tidy(f->store, now += 10000, &f->err), MUSTER_OK);
    return slices;
}

static void the_newest_rounds_stay_and_older_ones_go_with_their_ranks(void **state)
{
    struct fixture *f = *state;

    fill(f, MANY_RANKS, ROUNDS);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN);
    assert_int_equal(fixture_look(f, "SELECT min(round) FROM round"), OLD + 1);
    assert_int_equal(fixture_look(f, COUNT("participant")), ROUNDS_KEPT_MIN);
    assert_int_equal(fixture_look(f, "SELECT min(round) FROM participant"), OLD + 1);
    fixture_reopen(f);
}

static void a_job_of_few_ranks_keeps_more_rounds(void **state)
{
    struct fixture *f = *state;

    fill(f, 1, ROUNDS_KEPT_MAX + 2 * BATCH);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MAX);
    fill(f, ROUND_ROWS_KEPT / 200, ROUNDS_KEPT_MAX + 2 * BATCH);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round")), 200);
}

static void a_round_stays_while_its_checkpoint_is_on_the_disk(void **state)
{
    struct fixture *f = *state;

    fill(f, MANY_RANKS, ROUNDS);
    save(f, 10, CHECKPOINT_COMMITTED, 10);
    save(f, 11, CHECKPOINT_DELETING, 11);
    save(f, 12, CHECKPOINT_FAILED, 12);
    save(f, 13, CHECKPOINT_DELETED, 13);
    save(f, 14, CHECKPOINT_WRITING, 14);
    save(f, ROUNDS, CHECKPOINT_COMMITTED, ROUNDS);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round WHERE round IN (10, 11, 14)")), 3);
    assert_int_equal(fixture_look(f, COUNT("participant WHERE round IN (10, 11, 14)")), 3);
    assert_int_equal(fixture_look(f, COUNT("checkpoint")), 4);
    assert_int_equal(fixture_look(f, COUNT("shard")), 4);
    assert_int_equal(fixture_look(f, COUNT("shard_file")), 4);
    assert_int_equal(fixture_look(f, COUNT("checkpoint_custom")), 4);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN + 3);
}

/* Else the steps that the launch took would be told as fewer. */
static void the_furthest_of_a_launch_stays_when_it_was_deleted(void **state)
{
    struct fixture *f = *state;

    fill(f, MANY_RANKS, ROUNDS);
    save(f, 10, CHECKPOINT_DELETED, 10);
    save(f, 11, CHECKPOINT_DELETED, 11);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("checkpoint")), 1);
    assert_int_equal(fixture_look(f, "SELECT step FROM checkpoint"), 11);
}

static void what_is_open_or_was_imported_stays(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {.f = f};
    struct record *round;

    fill(f, MANY_RANKS, ROUNDS);
    round = rows_add(&rows, RECORD_ROUND);
    round->u.round.round = 5;
    round->u.round.state = ROUND_FREEZING;
    round = rows_add(&rows, RECORD_ROUND);
    round->u.round.round = 6;
    round->u.round.state = ROUND_ABORTED;
    round->u.round.reason = ROUND_FOUND_IN_PART;
    round = rows_add(&rows, RECORD_ROUND);
    round->u.round.round = 7;
    round->u.round.state = ROUND_COMMITTED;
    round->u.round.reason = "found on disk";
    rows_flush(&rows);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round WHERE round IN (5, 6, 7)")), 3);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN + 3);
}

/* The chief asks for such a round before it clears what its save left on the disk. */
static void of_a_save_that_came_to_nothing_the_round_itself_stays(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {.f = f};

    fill(f, MANY_RANKS, ROUNDS);
    for (uint64_t i = 20; i <= 22; i++) {
        struct record *round = rows_add(&rows, RECORD_ROUND);

        round->u.round.round = i;
        round->u.round.state = ROUND_ABORTED;
        round->u.round.step = i == 22 ? -1 : 7; /* the last was never decided */
        round->u.round.reason = "";
    }
    rows_flush(&rows);
    save(f, 20, CHECKPOINT_FAILED, 7);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round WHERE round IN (20, 21)")), 2);
    assert_int_equal(fixture_look(f, COUNT("checkpoint")), 1);
    assert_int_equal(fixture_look(f, COUNT("shard")), 0);
    assert_int_equal(fixture_look(f, COUNT("participant")), ROUNDS_KEPT_MIN);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN + 2);
}

/* As an import of what was saved without a broker may leave it. */
static void the_newest_are_counted_not_their_numbers(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {.f = f};

    fill(f, MANY_RANKS, ROUNDS);
    rows_add(&rows, RECORD_JOB)->u.job.round = UINT64_C(1) << 40;
    rows_flush(&rows);
    fixture_reopen(f);
    trim(f);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN);
    assert_int_equal(fixture_look(f, "SELECT min(round) FROM round"), OLD + 1);
}

static void many_go_in_slices_and_a_start_goes_on(void **state)
{
    struct fixture *f = *state;
    int64_t left;

    fill(f, MANY_RANKS, 2000);
    assert_int_equal(store_tidy(f->store, NOW, &f->err), MUSTER_OK);
    assert_int_equal(store_tidy(f->store, NOW + 10000, &f->err), MUSTER_OK);
    left = fixture_look(f, COUNT("round"));
    assert_in_range(left, 1400, 1999);
    fixture_reopen(f);
    assert_in_range(trim(f), 5, 20);
    assert_int_equal(fixture_look(f, COUNT("round")), ROUNDS_KEPT_MIN);
}

static void a_short_job_costs_nothing(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {.f = f};

    fill(f, MANY_RANKS, 60);
    assert_true(store_wakeup_boot_ms(f->store) == INT64_MAX);
    fixture_reopen(f);
    assert_true(store_wakeup_boot_ms(f->store) == INT64_MAX);
    rows_add(&rows, RECORD_ROUND)->u.round.round = 64;
    rows_flush(&rows);
    assert_int_equal(trim(f), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_newest_rounds_stay_and_older_ones_go_with_their_ranks),
        TEST(a_job_of_few_ranks_keeps_more_rounds),
        TEST(a_round_stays_while_its_checkpoint_is_on_the_disk),
        TEST(the_furthest_of_a_launch_stays_when_it_was_deleted),
        TEST(what_is_open_or_was_imported_stays),
        TEST(of_a_save_that_came_to_nothing_the_round_itself_stays),
        TEST(the_newest_are_counted_not_their_numbers),
        TEST(many_go_in_slices_and_a_start_goes_on),
        TEST(a_short_job_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
