/* What is kept of launches that ended long ago: the answers stay, and the ranks' rows go. */
#include "schema/sql/queries.h"
#include "tests/unit/broker/store/store_fixture.h"

#include "schema/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES (ROUNDS_KEPT_MIN + 30)
#define RANKS 3
#define MANY_RANKS WORLD_SIZE_MAX /* the fewest launches are kept: ROUNDS_KEPT_MIN */
#define ROUNDS_EACH 2
#define OF_LAUNCH(n) "job = '" SAMPLE_JOB "' AND generation = " #n

static uint32_t dice_state;

static int64_t dice(int64_t sides) /* 0 .. sides - 1 */
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (int64_t)(dice_state >> 8) % sides;
}

static void write_ranks(struct fixture *f, uint64_t launch)
{
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        struct record node = *sample_of(RECORD_NODE), progress = *sample_of(RECORD_PROGRESS);

        node.u.node.generation = launch;
        node.u.node.incarnation = launch * 100 + rank;
        node.u.node.role = dice(4) > 0 ? ROLE_WORKER : ROLE_EVALUATOR;
        node.u.node.rank = rank;
        node.u.node.state = dice(2) > 0 ? NODE_LEFT : NODE_LOST;
        fixture_write(f, &node);
        progress.u.progress.incarnation = node.u.node.incarnation;
        progress.u.progress.begun = progress.u.progress.done = dice(50);
        progress.u.progress.heard_unix_ms = 1000 + dice(1000);
        if (dice(5) > 0)
            fixture_write(f, &progress);
    }
}

/* Some with a checkpoint, and with ranks that stand at it. */
static void write_rounds(struct fixture *f, uint64_t launch)
{
    for (uint64_t i = 0; i < ROUNDS_EACH && dice(2) > 0; i++) {
        struct record round = *sample_of(RECORD_ROUND), member = *sample_of(RECORD_PARTICIPANT);
        struct record checkpoint = *sample_of(RECORD_CHECKPOINT);

        round.u.round.round = checkpoint.u.checkpoint.round = launch * ROUNDS_EACH + i;
        round.u.round.generation = checkpoint.u.checkpoint.generation = launch;
        round.u.round.state = ROUND_COMMITTED;
        round.u.round.cause = dice(2) > 0 ? CAUSE_TERMINATION : CAUSE_OPERATOR;
        round.u.round.reason = "";
        fixture_write(f, &round);
        member.u.participant.round = round.u.round.round;
        member.u.participant.rank = (uint64_t)dice(RANKS);
        member.u.participant.incarnation = launch * 100 + member.u.participant.rank;
        fixture_write(f, &member);
        checkpoint.u.checkpoint.step = dice(60);
        checkpoint.u.checkpoint.state = dice(2) > 0 ? CHECKPOINT_COMMITTED : CHECKPOINT_DELETED;
        fixture_write(f, &checkpoint);
    }
}

/* The sample's job again, with launches that ended; the newest runs. */
static void fill(struct fixture *f, uint32_t seed, uint64_t ranks)
{
    struct record job = *sample_of(RECORD_JOB), launch = *sample_of(RECORD_GENERATION);

    dice_state = seed;
    job.u.job.generation = LAUNCHES;
    job.u.job.round = LAUNCHES * ROUNDS_EACH + ROUNDS_EACH;
    fixture_write(f, &job);
    for (uint64_t i = 1; i <= LAUNCHES; i++) {
        launch.u.generation.generation = i;
        launch.u.generation.state = i < LAUNCHES ? GENERATION_ENDED : GENERATION_RUNNING;
        launch.u.generation.world_size = ranks;
        launch.u.generation.resume_step = dice(20);
        launch.u.generation.end_status = (enum muster_status)dice(2);
        fixture_write(f, &launch);
        write_ranks(f, i);
        write_rounds(f, i);
    }
}

static int trim(struct fixture *f)
{
    int64_t now = NOW;
    int slices = 0;

    for (; store_wakeup_boot_ms(f->store) != INT64_MAX; slices++)
        assert_int_equal(store_tidy(f->store, now += 10000, &f->err), MUSTER_OK);
    return slices;
}

/* One number of all that a question answers about the job; ?3 and ?4 are 0. */
static int64_t answer(const struct fixture *f, const char *columns, const char *question)
{
    size_t room = strlen(query_sql(question)) + 512;
    char *sql = calloc(1, room);
    int64_t number;

    assert_non_null(sql);
    snprintf(sql, room, "SELECT %s FROM (%s)", columns, query_sql(question));
    for (char *at; (at = strstr(sql, "?3")) != NULL || (at = strstr(sql, "?4")) != NULL;)
        memcpy(at, " 0", 2);
    for (char *at; (at = strstr(sql, "?1")) != NULL;) {
        memmove(at + strlen("'" SAMPLE_JOB "'"), at + 2, strlen(at + 2) + 1);
        memcpy(at, "'" SAMPLE_JOB "'", strlen("'" SAMPLE_JOB "'"));
    }
    number = fixture_look(f, sql);
    free(sql);
    return number;
}

static int64_t answer_of_launches(const struct fixture *f)
{
    return answer(f,
                  "sum(generation * generation * (nodes + 11 * step + 1009 * unknown_ranks"
                  " + 100003 * unknown_unix_ms))",
                  "generations");
}

static int64_t answer_of_job(const struct fixture *f)
{
    return answer(f, "100003 * steps_executed + 1009 * unknown_ranks + step", "job");
}

static void answers_stay_when_the_rows_of_ranks_go(void **state)
{
    struct fixture *f = *state;

    for (uint32_t seed = 1; seed <= 5; seed++) {
        int64_t launches, job;

        fill(f, seed, MANY_RANKS);
        launches = answer_of_launches(f);
        job = answer_of_job(f);
        fixture_reopen(f); /* a start looks at all jobs */
        trim(f);
        assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation_past"), LAUNCHES - 2);
        assert_true(fixture_look(f, "SELECT count(*) FROM node") < (LAUNCHES - 1) * RANKS);
        assert_int_equal(answer_of_launches(f), launches);
        assert_int_equal(answer_of_job(f), job);
        fixture_teardown(state);
        fixture_setup(state);
        f = *state;
    }
}

/* An import may find what a launch saved when nobody remembered it. */
static void a_checkpoint_that_comes_later_counts(void **state)
{
    struct fixture *f = *state;
    struct record round = *sample_of(RECORD_ROUND), checkpoint = *sample_of(RECORD_CHECKPOINT);
    int64_t steps;

    fill(f, 7, MANY_RANKS);
    fixture_reopen(f);
    trim(f);
    steps = answer(f, "step", "generations");
    round.u.round.round = checkpoint.u.checkpoint.round = LAUNCHES * ROUNDS_EACH + 2;
    round.u.round.generation = checkpoint.u.checkpoint.generation = 1;
    round.u.round.state = ROUND_COMMITTED;
    checkpoint.u.checkpoint.state = CHECKPOINT_COMMITTED;
    checkpoint.u.checkpoint.step = 1000;
    fixture_write(f, &round);
    fixture_write(f, &checkpoint);
    assert_true(steps < 1000);
    assert_int_equal(answer(f, "step", "generations"), 1000);
}

static void ranks_stay_of_new_launches_and_of_rounds_on_record(void **state)
{
    struct fixture *f = *state;

    fill(f, 7, MANY_RANKS);
    fixture_reopen(f);
    trim(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM node WHERE generation > 30"),
                     ROUNDS_KEPT_MIN * RANKS);
    assert_int_equal(
        fixture_look(f, "SELECT count(*) FROM node n WHERE n.generation <= 30 AND NOT EXISTS"
                        " (SELECT 1 FROM round r JOIN participant USING (job, round)"
                        " WHERE r.generation = n.generation)"),
        0);
    assert_int_equal(
        fixture_look(f, "SELECT count(*) FROM participant m WHERE NOT EXISTS (SELECT 1 FROM node n"
                        " WHERE n.job = m.job AND n.incarnation = m.incarnation)"),
        0);
    assert_true(fixture_look(f, "SELECT count(*) FROM node WHERE generation <= 30") > 0);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM progress p WHERE NOT EXISTS (SELECT 1"
                                     " FROM node n WHERE n.incarnation = p.incarnation)"),
                     0);
    fixture_reopen(f); /* the rows fit together */
}

static void a_job_of_few_ranks_keeps_them_all(void **state)
{
    struct fixture *f = *state;

    fill(f, 7, 1);
    fixture_reopen(f);
    trim(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM node"), LAUNCHES * RANKS);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation_past"), LAUNCHES - 2);
}

/* One that runs, or ended just now, may still change. */
static void a_launch_that_has_not_ended_is_read_from_its_ranks(void **state)
{
    struct fixture *f = *state;
    struct record launch = *sample_of(RECORD_GENERATION);

    fill(f, 7, 1);
    launch.u.generation.generation = LAUNCHES - 5;
    launch.u.generation.state = GENERATION_ENDING;
    fixture_write(f, &launch);
    fixture_reopen(f);
    trim(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation_past"), LAUNCHES - 3);
    assert_int_equal(fixture_look(f, "SELECT max(generation) FROM generation_past"), LAUNCHES - 2);
}

/* Without a start: each few launches. */
static void a_look_begins_as_launches_come(void **state)
{
    struct fixture *f = *state;

    fill(f, 7, 1);
    assert_true(trim(f) > LAUNCHES / 2);
    assert_true(fixture_look(f, "SELECT count(*) FROM generation_past") > LAUNCHES / 2);
    assert_int_equal(trim(f), 0);
}

static void a_job_that_is_forgotten_takes_its_past_along(void **state)
{
    struct fixture *f = *state;
    struct record row = {.kind = RECORD_FORGET, .u.forget.job = SAMPLE_JOB};

    fill(f, 7, 1);
    trim(f);
    fixture_write(f, &row);
    trim(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM generation_past"), 0);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_stay_when_the_rows_of_ranks_go, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_that_comes_later_counts, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(ranks_stay_of_new_launches_and_of_rounds_on_record,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_job_of_few_ranks_keeps_them_all, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_launch_that_has_not_ended_is_read_from_its_ranks,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_look_begins_as_launches_come, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_is_forgotten_takes_its_past_along, fixture_setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
