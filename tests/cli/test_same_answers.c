/* A real broker and its database give the same answers; and what a broker refuses is refused
 * clearly. */
#include "tests/cli/stories.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_ROUNDS 450 /* more than two pages */
#define LONG_EVENTS 700

struct fixture {
    char directory[SCRATCH_PATH_MAX];
    pid_t broker;
};

/* An ended job with more of everything than a page holds, and texts that fill a page by their
 * bytes. */
static void make_long(struct db_fixture *db)
{
    db_sql(db, "BEGIN");
    db->job = "long";
    db_job(db, "state = 'ended'");
    db_generation(db, 1, "state = 'ended'");
    for (int round = 1; round <= LONG_ROUNDS; round++)
        db_round(db, round, "state = 'aborted', final = 1, reason = printf('%%.500c', 'r')");
    for (int seq = 1; seq <= LONG_EVENTS; seq++)
        db_event(db, seq, "text = printf('%%.2000c', 'e')");
    db_sql(db, "COMMIT");
    db->job = "words";
}

static void kill_broker(struct fixture *f)
{
    if (f->broker <= 0)
        return;
    kill(f->broker, SIGKILL);
    waitpid(f->broker, NULL, 0);
    f->broker = 0;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct db_fixture db;

    scratch_make(fixture.directory);
    db_open(&db, scratch_path(fixture.directory, "muster.db"));
    for (const struct cli_story *story = cli_stories; story->name != NULL; story++)
        if (strcmp(story->name, "committed") == 0)
            story->make(&db);
    make_long(&db);
    db_close(&db);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kill_broker(f);
    scratch_remove(f->directory);
    return 0;
}

/* What `muster COMMAND PLACE` prints, with its exit code behind it. Returned owned. */
static char *ask(const struct fixture *f, const char *command, const char *place)
{
    char line[2 * SCRATCH_PATH_MAX];
    size_t size;

    snprintf(line, sizeof line,
             "cd '%s' && env -i TZ=UTC MUSTER_TEST_NOW=%lld ASAN_OPTIONS=\"$ASAN_OPTIONS\" '%s' %s "
             "%s >output 2>&1; echo \"exit $?\" >>output",
             f->directory, DB_NOW, MUSTER_PATH, command, place);
    assert_int_equal(system(line), 0);
    return scratch_read(scratch_path(f->directory, "output"), &size);
}

#define BROKER "--broker ipc://s --timeout 15" /* relative: the commands run in the directory */
#define DATABASE "--db muster.db"

static const char *const questions[] = {
    "status",
    "status --json",
    "status words",
    "nodes --job words --json",
    "rounds --job words",
    "rounds --job long --since 0 --json",
    "rounds --job long",
    "round 4 --job words --json",
    "checkpoints --job words --json",
    "latest --job words",
    "latest --job long",
    "events --job words --json",
    "events --job long --since 0 --json",
    "why --job words",
    "why --job words --json",
    "why notice signal-1 --job words",
    "why round 450 --job long",
};
#define QUESTIONS_COUNT (sizeof questions / sizeof questions[0])

static void broker_and_database_tell_the_same(void **state)
{
    struct fixture *f = *state;

    f->broker = db_broker(MUSTERD_PATH, f->directory);
    for (size_t i = 0; i < QUESTIONS_COUNT; i++) {
        char *by_file = ask(f, questions[i], DATABASE); /* while the broker has it open */
        char *by_broker = ask(f, questions[i], BROKER);

        assert_string_equal(by_broker, by_file);
        if (strcmp(questions[i], "events --job long --since 0 --json") == 0)
            assert_non_null(strstr(by_broker, "\"seq\": 700"));
        free(by_file);
        free(by_broker);
    }
    kill_broker(f);
}

static void a_story_survives_its_broker(void **state)
{
    struct fixture *f = *state;
    char *alive;
    char *dead;

    f->broker = db_broker(MUSTERD_PATH, f->directory);
    alive = ask(f, "why --job words", BROKER);
    kill_broker(f);
    dead = ask(f, "why --job words", DATABASE);
    assert_non_null(strstr(alive, "saved at step 47"));
    assert_int_equal(strncmp(dead, "as of ", 6), 0); /* one line more, that dates it */
    assert_string_equal(strchr(dead, '\n') + 1, alive);
    free(alive);
    free(dead);
}

static void the_newest_200_rounds_are_shown(void **state)
{
    struct fixture *f = *state;
    char *newest = ask(f, "rounds --job long", DATABASE);
    char *all = ask(f, "rounds --job long --since 0", DATABASE);
    size_t lines = 0;

    for (const char *at = newest; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_in_range(lines, 200, 204); /* a title, what is left out, and ask's own */
    assert_non_null(strstr(newest, "rounds up to 250 are not shown: --since 0\n"));
    assert_null(strstr(all, "are not shown"));
    assert_true(strlen(all) > 2 * strlen(newest));
    free(newest);
    free(all);
}

static void refused_orders_exit_with_4(void **state)
{
    static const char *const orders[] = {"notify 2 --job words", "save --job words",
                                         "save --wait --job words",
                                         "notify --cancel nothing --job words"};
    struct fixture *f = *state;

    f->broker = db_broker(MUSTERD_PATH, f->directory);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        char *answer = ask(f, orders[i], BROKER);

        assert_non_null(strstr(answer, "muster: "));
        assert_non_null(strstr(answer, "exit 4"));
        free(answer);
    }
    kill_broker(f);
}

static void order_to_an_unknown_job_exits_with_1(void **state)
{
    struct fixture *f = *state;
    char *answer;

    f->broker = db_broker(MUSTERD_PATH, f->directory);
    answer = ask(f, "notify 2 --job wrods", BROKER);
    assert_non_null(strstr(answer, "its jobs are: long, words"));
    assert_non_null(strstr(answer, "exit 1"));
    free(answer);
    kill_broker(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broker_and_database_tell_the_same),
        cmocka_unit_test(a_story_survives_its_broker),
        cmocka_unit_test(the_newest_200_rounds_are_shown),
        cmocka_unit_test(refused_orders_exit_with_4),
        cmocka_unit_test(order_to_an_unknown_job_exits_with_1),
    };

    return cmocka_run_group_tests_name("same_answers", tests, set_up, tear_down);
}
