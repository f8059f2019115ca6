/* Every verb over scripted databases, compared with what is written in tests/cli/golden/.
 * MUSTER_GOLDEN_UPDATE=1 rewrites the files; read the difference before it is kept. */
#include "tests/cli/stories.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct golden {
    const char *name;    /* of the file; NULL: that of the database, "why_<db>" */
    const char *command; /* behind `muster`, run in the directory of the databases */
};

static const struct golden goldens[] = {
    {"status_several", "status --db several.db"},
    {"status_many_ended", "status --db many_ended.db"},
    {"status_many_ended_all", "status --all --db many_ended.db"},
    {"checkpoints_deleted", "checkpoints --job words --db many_ended.db"},
    {"checkpoints_deleted_all", "checkpoints --all --job words --db many_ended.db"},
    {"status_several_json", "status --db several.db --json"},
    {"status_running", "status words --db running.db"},
    {"status_open", "status --job words --db open.db"},
    {"status_open_json", "status --job words --db open.db --json"},
    {"status_waiting", "status words --db waiting.db"},
    {"status_assumed", "status words --db assumed_waiting.db"},
    {"status_grace_period", "status words --db grace_period.db"},
    {"status_planned", "status words --db planned.db"},
    {"status_resumed", "status words --db resumed.db"},
    {"status_retried", "status words --db retried.db"},
    {"status_not_saved", "status words --db not_saved.db"},
    {"status_goodput", "status words --db not_saved_restarted.db"},
    {"status_empty", "status --db empty.db"},
    {"status_empty_json", "status --db empty.db --json"},
    {"nodes_open", "nodes --db open.db"},
    {"nodes_open_json", "nodes --db open.db --json"},
    {"nodes_resumed", "nodes --db resumed.db"},
    {"nodes_of_generation", "nodes --db resumed.db --generation 1"},
    {"nodes_unknown_generation", "nodes --db resumed.db --generation 3"},
    {"rounds_retried", "rounds --db retried.db"},
    {"rounds_retried_json", "rounds --db retried.db --json"},
    {"rounds_none", "rounds --db running.db"},
    {"round_committed", "round 4 --db committed.db"},
    {"round_committed_json", "round 4 --db committed.db --json"},
    {"round_open", "round 4 --db open.db"},
    {"round_unknown", "round 9 --db committed.db"},
    {"checkpoints", "checkpoints --db not_saved.db"},
    {"checkpoints_json", "checkpoints --db not_saved.db --json"},
    {"checkpoint_not_in_place", "checkpoints --db retried.db"},
    {"latest", "latest --db committed.db"},
    {"latest_json", "latest --db committed.db --json"},
    {"latest_after_failure", "latest --db not_saved.db"},
    {"latest_none", "latest --db running.db"},
    {"latest_none_json", "latest --db running.db --json"},
    {"events", "events --db committed.db"},
    {"events_since_json", "events --since 10 --db committed.db --json"},
    {"why_committed_json", "why --db committed.db --json"},
    {"why_planned_json", "why --db planned.db --json"},
    {"why_round_of_retries", "why round 4 --db retried.db"},
    {"why_operator_retried_round", "why round 4 --db operator_retried.db"},
    {"why_operator_between_round", "why round 4 --db operator_between.db"},
    {"why_termination_retried_round", "why round 5 --db termination_retried.db"},
    {"why_notice", "why notice signal-1 --db committed.db"},
    {"why_notice_cancelled_late", "why notice signal-1 --db cancelled_late.db"},
    {"why_notice_late", "why notice signal-2 --db late_notice.db"},
    {"status_killed", "status words --db killed.db"},
    {"status_hung", "status words --db hung.db"},
    {"nodes_hung", "nodes --db hung.db"},
    {"status_beside", "status words --db beside.db"},
    {"status_hosts", "status words --db hosts.db"},
    {"status_hosts_json", "status words --db hosts.db --json"},
    {"status_hosts_first", "status words --db hosts_first.db"},
    {"events_fallen", "events --db fallen.db"},
    {"events_frozen_host", "events --db frozen_host.db"},
    {"status_frozen_host", "status words --db frozen_host.db"},
    {"why_frozen_host", "why --db frozen_host.db"},
    {"why_frozen_host_notice", "why notice ec2-3 --db frozen_host.db"},
    {"why_frozen_host_later", "why --db frozen_host_later.db"},
    {"why_fallen_notice", "why notice operator-7 --db fallen.db"},
    {"status_stuck", "status words --db stuck_later.db"},
    {"status_stuck_json", "status words --db stuck_later.db --json"},
    {"status_stuck_all", "status words --db stuck_all.db"},
    {"status_stuck_no_more", "status words --db stuck_no_more.db"},
    {"status_stuck_in_save", "status words --db stuck_in_save.db"},
    {"nodes_stuck", "nodes --db stuck_later.db"},
    {"nodes_stuck_no_more", "nodes --db stuck_no_more.db"},
    {"nodes_stuck_in_save", "nodes --db stuck_in_save.db"},
    {"why_stuck_json", "why --db stuck_later.db --json"},
    {"status_late_notice", "status words --db late_notice.db"},
    {"status_late_notice_table", "status --db late_notice.db"},
    {"status_broker_away", "status words --db broker_away.db"},
    {"status_broker_away_table", "status --db broker_away.db"},
    {"status_joining", "status words --db killed_later.db"},
    {"status_unrestored", "status words --db unrestored.db"},
    {"status_unrestored_noticed", "status words --db unrestored_noticed.db"},
    {"latest_unrestored", "latest --db unrestored_unknown.db"},
    {"why_unrestored_old_round", "why round 4 --db unrestored.db"},
    {"why_unrestored_noticed_round", "why round 4 --db unrestored_noticed.db"},
    {"why_unrestored_put_right_notice", "why notice signal-9 --db unrestored_put_right.db"},
    {"why_unrestored_imported_round", "why round 4 --db unrestored_imported.db"},
    {"why_unrestored_twice_round", "why round 4 --db unrestored_twice.db"},
    {"why_unrestored_then_older_round", "why round 4 --db unrestored_then_older.db"},
    {"status_finished", "status --db finished.db"},
    {"why_fell_back", "why --db fell_back.db"},
    {"why_finished_unsaved", "why round 4 --db finished_unsaved.db"},
    {"status_not_saved_ended", "status --db not_saved_ended.db"},
    {"status_saved_behind", "status --db saved_behind.db"},
    {"status_finished_without", "status words --db finished_without.db"},
    {"latest_finished_without", "latest --db finished_without.db"},
    {"nodes_finished", "nodes --db finished_without.db"},
    {"checkpoints_kept", "checkpoints --db kept.db"},
    {"checkpoints_kept_before", "checkpoints --db kept_before.db"},
    {"checkpoints_pinned_json", "checkpoints --db pinned.db --json"},
    {"latest_pinned_json", "latest --db pinned.db --json"},
    {"checkpoints_written", "checkpoints --db written.db"},
    {"latest_written", "latest --db written.db"},
    {"latest_written_json", "latest --db written.db --json"},
    {"why_pinned_json", "why --db pinned.db --json"},
    {"why_one_of_four_notices", "why notice ec2-2 --db four_notices.db"},
    {"tasks_none", "tasks --db running.db"},
    {"tasks_none_json", "tasks --db running.db --json"},
    {"tasks_all_none_json", "tasks all --db running.db --json"},
    {"version", "version"},
    {"version_json", "version --json"},
    {"help_help", "help help"},
    {"why_policy", "why round 3 --db committed.db"},
    {"why_empty_json", "why --db running.db --json"},
    {"bad_verb", "stauts"},
    {"bad_no_verb", ""},
    {"bad_option_first", "--job words nodes --db open.db"},
    {"bad_option_first_short", "-j"},
    {"bad_init_directory", "init /proc/none/muster"},
    {"exit_code_finished", "status words --exit-code --db finished.db"},
    {"exit_code_preempted", "status words --exit-code --db committed.db"},
    {"exit_code_not_saved", "status words --exit-code --db not_saved_ended.db"},
    {"exit_code_lost", "status words --exit-code --db broker_away.db"},
    {"exit_code_unstarted", "status words --exit-code --db unstarted.db"},
    {"exit_code_unstarted_preempted", "status words --exit-code --db unstarted_preempted.db"},
    {"exit_code_unstarted_finished", "status words --exit-code --db unstarted_finished.db"},
    {"exit_code_failed", "status words --exit-code --db step_failed.db"},
    {"exit_code_runs", "status words --exit-code --db running.db"},
    {"bad_exit_code", "status --exit-code --db running.db"},
    {"bad_option", "status --jbo words"},
    {"bad_option_of_other_verb", "status --grace 3"},
    {"bad_flag_value", "status --json=yes"},
    {"bad_missing_value", "status --job"},
    {"bad_many_words", "status a b"},
    {"bad_few_words", "round --db committed.db"},
    {"bad_number", "round x1 --db committed.db"},
    {"bad_timeout", "status --timeout soon --db committed.db"},
    {"bad_two_places", "status --db committed.db --broker tcp://127.0.0.1:9"},
    {"bad_address", "status --broker 127.0.0.1:9"},
    {"bad_scheme", "status --broker http://127.0.0.1:9"},
    {"bad_job", "status wrods --db several.db"},
    {"bad_job_option", "rounds --job wrods --db several.db"},
    {"bad_job_unclear", "rounds --db several.db"},
    {"bad_job_none", "rounds --db empty.db"},
    {"bad_tasks_word", "tasks foo --db committed.db"},
    {"bad_version_word", "version 1"},
    {"bad_why_words", "why the --db committed.db"},
    {"bad_why_round", "why round 77 --db committed.db"},
    {"bad_why_notice", "why notice signal-9 --db committed.db"},
    {"bad_db_missing", "status --db missing.db"},
    {"bad_db_other", "status --db text.db"},
    {"bad_db_folder", "status --db folder.db"},
    {"bad_db_foreign", "status --db foreign.db"},
    {"bad_db_newer", "status --db newer.db"},
    {"bad_db_older", "status --db older.db"},
    {"bad_db_wal", "status --db wal.db"},
    {"bad_db_cut", "status --db cut.db"},
    {"bad_broker_tcp", "status --broker tcp://127.0.0.1:9 --timeout 0.3"},
    {"bad_broker_port", "status --broker tcp://localhost"},
    {"bad_timeout_zero", "status --timeout 0 --db committed.db"},
    {"bad_help_verb", "help stauts"},
    {"latest_short_option", "latest -j words --db committed.db"},
    {"bad_broker_ipc", "latest --job words --broker ipc://nowhere.sock --timeout 0.3"},
    {"bad_broker_order", "notify 2 --job words --broker tcp://127.0.0.1:9 --timeout 0.3"},
    {"bad_order_db", "notify 2 --db committed.db"},
    {"bad_save_db", "save --db committed.db"},
    {"bad_rank", "notify two --db committed.db"},
    {"bad_grace", "notify 2 --grace -3 --db committed.db"},
    {"bad_cancel_rank", "notify 2 --cancel signal-1 --db committed.db"},
    {"terminal_commands", "why --db hostile.db"},
    {NULL, NULL},
};

static char directory[SCRATCH_PATH_MAX];

/* --- databases -------------------------------------------------------------------------------- */

static void make(const char *name, void (*fill)(struct db_fixture *db))
{
    struct db_fixture db;

    db_open(&db, scratch_path(directory, "%s.db", name));
    fill(&db);
    db_close(&db);
}

static const struct cli_story *story_named(const char *name)
{
    const struct cli_story *story = cli_stories;

    while (strcmp(story->name, name) != 0)
        story++;
    return story;
}

static void make_newer(struct db_fixture *db)
{
    db_sql(db, "PRAGMA user_version = 9001");
}

static void make_older(struct db_fixture *db)
{
    db_sql(db, "PRAGMA user_version = 0; PRAGMA application_id = 0");
}

static void make_hostile(struct db_fixture *db)
{
    story_named("operator")->make(db);
    db_sql(db, "UPDATE round SET reason = 'text' || char(27) || '[2J' || char(10) || 'more'");
}

static int make_all(void **state)
{
    struct db_fixture db;
    char foreign[] = "CREATE TABLE job (job TEXT)";

    (void)state;
    scratch_make(directory);
    for (const struct cli_story *story = cli_stories; story->name != NULL; story++)
        make(story->name, story->make);
    for (const struct cli_abort *each = cli_aborts; each->name != NULL; each++) {
        db_open(&db, scratch_path(directory, "abort_%s.db", each->name));
        cli_abort_make(&db, each);
        db_close(&db);
    }
    make("newer", make_newer);
    make("older", make_older);
    make("hostile", make_hostile);
    make("cut", story_named("committed")->make);
    scratch_cut(scratch_path(directory, "cut.db"), 5 * 4096);
    make("wal", story_named("committed")->make);
    assert_int_equal(mkdir(scratch_path(directory, "wal.db-wal"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(directory, "folder.db"), 0700), 0);
    scratch_write(scratch_path(directory, "text.db"), "this is no database at all\n", 27);
    assert_int_equal(sqlite3_open(scratch_path(directory, "foreign.db"), &db.sqlite), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db.sqlite, foreign, NULL, NULL, NULL), SQLITE_OK);
    db_close(&db);
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    scratch_remove(directory);
    return 0;
}

/* --- running and comparing -------------------------------------------------------------------- */

/* stdout, then stderr's lines marked, then the exit code. Returned owned. */
static char *run_muster(const char *command)
{
    char line[2 * SCRATCH_PATH_MAX];
    const char *output = scratch_path(directory, "output");
    size_t size;

    snprintf(line, sizeof line,
             "cd '%s' && env -i TZ=UTC MUSTER_TEST_NOW=%lld ASAN_OPTIONS=\"$ASAN_OPTIONS\" '%s' %s "
             ">output 2>errors; code=$?; sed 's/^/stderr: /' errors >>output; echo \"exit $code\" "
             ">>output",
             directory, DB_NOW, MUSTER_PATH, command);
    assert_int_equal(system(line), 0);
    return scratch_read(output, &size);
}

static void compare(const char *name, const char *command)
{
    char path[1024];
    char *actual = run_muster(command);
    char *expected;
    size_t size;

    snprintf(path, sizeof path, "%s/tests/cli/golden/%s.txt", SOURCE_DIR, name);
    if (getenv("MUSTER_GOLDEN_UPDATE") != NULL)
        scratch_write(path, actual, strlen(actual));
    if (!scratch_exists(path))
        fail_msg("there is no %s; MUSTER_GOLDEN_UPDATE=1 writes it. muster %s gives:\n%s", path,
                 command, actual);
    expected = scratch_read(path, &size);
    if (strcmp(expected, actual) != 0)
        fail_msg("muster %s differs from %s. Expected:\n%s\nActual:\n%s", command, path, expected,
                 actual);
    free(expected);
    free(actual);
}

static void answer_is_as_written(void **state)
{
    const struct golden *golden = *state;

    compare(golden->name, golden->command);
}

static void story_is_as_written(void **state)
{
    const char *database = *state;
    char name[128];
    char command[256];

    snprintf(name, sizeof name, "why_%s", database);
    snprintf(command, sizeof command, "why --db %s.db", database);
    compare(name, command);
}

#define TESTS_MAX 512

int main(void)
{
    static struct CMUnitTest tests[TESTS_MAX];
    static char names[TESTS_MAX][64];
    static struct golden copies[TESTS_MAX];
    size_t count = 0;

    for (const struct golden *golden = goldens; golden->name != NULL; golden++, count++) {
        copies[count] = *golden;
        tests[count] = (struct CMUnitTest){.name = golden->name,
                                           .test_func = answer_is_as_written,
                                           .initial_state = &copies[count]};
    }
    for (const struct cli_story *story = cli_stories; story->name != NULL; story++, count++) {
        snprintf(names[count], sizeof names[count], "%s", story->name);
        tests[count] = (struct CMUnitTest){
            .name = names[count], .test_func = story_is_as_written, .initial_state = names[count]};
    }
    for (const struct cli_abort *each = cli_aborts; each->name != NULL; each++, count++) {
        snprintf(names[count], sizeof names[count], "abort_%s", each->name);
        tests[count] = (struct CMUnitTest){
            .name = names[count], .test_func = story_is_as_written, .initial_state = names[count]};
    }
    return _cmocka_run_group_tests("golden", tests, count, make_all, remove_all);
}
