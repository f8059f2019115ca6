/* The notice file, as preStops, prologs and administrators make and take it. */
#include "tests/support/notice_fixture.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 20000

static struct notice_fixture fixture;
static char path[128], sources[200];

static int set_up(void **state)
{
    *state = &fixture;
    notice_fixture_open(&fixture, NULL);
    snprintf(path, sizeof path, "%s/terminate", fixture.directory);
    snprintf(sources, sizeof sources, "file:%s", path);
    return 0;
}

static int tear_down(void **state)
{
    notice_fixture_close(*state);
    return 0;
}

/* In one piece: written in place it could be read while it is empty, which is a notice of its own.
 */
static void put_by_rename(const char *text)
{
    char other[sizeof path + 8];
    FILE *file;

    snprintf(other, sizeof other, "%s.new", path);
    file = fopen(other, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(other, path), 0);
}

static void put(const char *text)
{
    if (text[0] != '\0') {
        put_by_rename(text);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void assert_left(const struct notice_record *record, int64_t most_ms)
{
    int64_t left = record->item.deadline_boot_ms - notice_clocks().boot_ms;

    if (left < most_ms - LIMIT_MS || left > most_ms)
        fail_msg("%lld ms are left", (long long)left);
}

static void an_empty_file_is_a_notice_of_unknown_time(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_fixture_watch(f, sources);
    notice_state(f, "file", SOURCE_HEALTHY, "", LIMIT_MS);
    notice_none(f);
    put("");
    record = notice_await(f, LIMIT_MS);
    assert_string_equal(record.source, "file");
    assert_int_equal(record.item.kind, NOTICE_TERMINATE);
    assert_int_equal(record.item.deadline_boot_ms, -1);
    assert_non_null(strstr(record.item.text, "terminate is there"));
}

static void a_file_that_is_there_before_is_a_notice(void **state)
{
    struct notice_fixture *f = *state;

    put("reboot\n");
    notice_fixture_watch(f, sources);
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_REBOOT);
}

static void a_look_leaves_no_file_open(void **state)
{
    struct notice_fixture *f = *state;
    int64_t until_ms = notice_clocks().boot_ms + LIMIT_MS;

    notice_fixture_watch(f, sources);
    notice_state(f, "file", SOURCE_HEALTHY, "", LIMIT_MS);
    size_t before = scratch_count("/proc/self/fd");
    for (int left = 900; left > 600; left -= 100) {
        char text[32];

        snprintf(text, sizeof text, "preempt +%d\n", left);
        put(text);
        notice_await(f, LIMIT_MS);
    }
    while (scratch_count("/proc/self/fd") > before) /* the last look may still be under way */
        assert_true(notice_clocks().boot_ms < until_ms);
}

static void it_may_say_how_long_and_then_a_shorter_time(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_fixture_watch(f, sources);
    put("preempt +120\n");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_PREEMPT);
    assert_left(&record, 120000);
    put_by_rename("preempt +60 because of the weather\n");
    record = notice_await(f, LIMIT_MS);
    assert_false(record.withdrawn);
    assert_left(&record, 60000);
    assert_non_null(strstr(record.item.text, "/terminate: preempt +60 because of the weather"));
}

static void what_is_not_understood_is_a_notice_all_the_same_and_is_said(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, sources);
    put("+5m\n");
    assert_int_equal(notice_await(f, LIMIT_MS).item.deadline_boot_ms, -1);
    notice_state(f, "file", SOURCE_DEGRADED, "\"+5m\" is no +SECONDS, Unix time or 2", LIMIT_MS);
    put("host needs a new disk\n");
    notice_state(f, "file", SOURCE_HEALTHY, "\"host needs a new disk\" names no kind and no time",
                 LIMIT_MS);
    put("\x01\xfe\n");
    notice_state(f, "file", SOURCE_DEGRADED, "bytes that are no text", LIMIT_MS);
    put("+30\n");
    notice_state(f, "file", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void taking_it_away_withdraws_it_and_it_may_come_again(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record first, gone, again;

    notice_fixture_watch(f, sources);
    put("+120");
    first = notice_await(f, LIMIT_MS);
    assert_int_equal(unlink(path), 0);
    gone = notice_await(f, LIMIT_MS);
    assert_true(gone.withdrawn);
    assert_int_equal(gone.number, first.number);
    put("+120");
    again = notice_await(f, LIMIT_MS);
    assert_false(again.withdrawn);
    assert_int_not_equal(again.number, first.number);
}

static void a_final_one_stands(void **state)
{
    struct notice_fixture *f = *state;

    notice_fixture_watch(f, sources);
    put("final +30");
    assert_false(notice_await(f, LIMIT_MS).item.cancellable);
    assert_int_equal(unlink(path), 0);
    put("final +500"); /* later: no news */
    assert_int_equal(unlink(path), 0);
    put("final +1");
    assert_false(notice_await(f, LIMIT_MS).withdrawn);
}

static void a_directory_that_comes_later_is_watched_then(void **state)
{
    struct notice_fixture *f = *state;
    char directory[100];

    snprintf(directory, sizeof directory, "%s/later", f->directory);
    snprintf(path, sizeof path, "%s/x", directory);
    snprintf(sources, sizeof sources, "file:%s", path);
    notice_fixture_watch(f, sources);
    notice_state(f, "file", SOURCE_DEGRADED, "No such file", LIMIT_MS);
    assert_int_equal(mkdir(directory, 0700), 0);
    notice_state(f, "file", SOURCE_HEALTHY, "", LIMIT_MS);
    put("");
    notice_await(f, LIMIT_MS);
}

static void a_pipe_that_nobody_writes_to_stops_nobody(void **state)
{
    struct notice_fixture *f = *state;

    assert_int_equal(mkfifo(path, 0600), 0);
    notice_fixture_watch(f, sources);
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_TERMINATE);
}

static void a_directory_is_a_wrong_path_and_no_notice(void **state)
{
    struct notice_fixture *f = *state;

    snprintf(sources, sizeof sources, "file:%s", f->directory);
    notice_fixture_watch(f, sources);
    notice_state(f, "file", SOURCE_DEGRADED, "Is a directory", LIMIT_MS);
    notice_none(f);
    snprintf(sources, sizeof sources, "file:%s", path);
}

static void a_symbolic_link_that_is_turned_is_noticed(void **state)
{
    struct notice_fixture *f =
        *state; /* as in a mounted config map: inotify is silent about the target */
    char target[256];

    snprintf(target, sizeof target, "%s/data/x", f->directory);
    assert_int_equal(symlink(target, path), 0);
    notice_fixture_watch(f, sources);
    notice_state(f, "file", SOURCE_HEALTHY, "", LIMIT_MS);
    snprintf(target, sizeof target, "mkdir '%s/data' && echo stop >'%s/data/x'", f->directory,
             f->directory);
    assert_int_equal(system(target), 0);
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_STOP);
}

static void two_files_are_two_notices(void **state)
{
    struct notice_fixture *f = *state;
    char both[400], first[128];

    snprintf(first, sizeof first, "%s", path);
    snprintf(both, sizeof both, "file:%s,file:%s/second", path, f->directory);
    notice_fixture_watch(f, both);
    put("");
    assert_false(notice_await(f, LIMIT_MS).withdrawn);
    snprintf(path, sizeof path, "%s/second", f->directory);
    put("");
    assert_false(notice_await(f, LIMIT_MS).withdrawn);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(notice_await(f, LIMIT_MS).number, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_empty_file_is_a_notice_of_unknown_time),
        CASE(a_file_that_is_there_before_is_a_notice),
        CASE(a_look_leaves_no_file_open),
        CASE(it_may_say_how_long_and_then_a_shorter_time),
        CASE(what_is_not_understood_is_a_notice_all_the_same_and_is_said),
        CASE(taking_it_away_withdraws_it_and_it_may_come_again),
        CASE(a_final_one_stands),
        CASE(a_directory_that_comes_later_is_watched_then),
        CASE(a_pipe_that_nobody_writes_to_stops_nobody),
        CASE(a_directory_is_a_wrong_path_and_no_notice),
        CASE(a_symbolic_link_that_is_turned_is_noticed),
        CASE(two_files_are_two_notices),
    };

    return cmocka_run_group_tests_name("notice_file", tests, NULL, NULL);
}
