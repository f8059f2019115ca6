/* The end of a Slurm job's time: what the environment and squeue say, and every way not to say it.
 * The squeue and scontrol here are scripts that write what the test put down; clocks are the
 * test's. */
#include "node/notice/base/share.h"
#include "node/notice/ledger.h"
#include "node/notice/providers/slurm.h"
#include "tests/support/ledger_pending.h"
#include "tests/support/notice_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 30000
#define NOW_UNIX 1800000000LL

static struct {
    struct notice_fixture notice; /* for its directory, and for the one case with a watch */
    void *source;
    struct notice_now now;
    struct ledger ledger;
    struct ledger_out out;
    struct notice_record last;
    int records;
    char path[1024];
} f;

static void in_directory(const char *name, const char *content, int mode)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", f.notice.directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* What squeue does from now on, as a script. Each call leaves a line in "calls". */
static void squeue(const char *does)
{
    char script[512];

    snprintf(script, sizeof script, "#!/bin/sh\necho \"$* $SLURM_TIME_FORMAT\" >>%s/calls\n%s\n",
             f.notice.directory, does);
    in_directory("squeue.new", script, 0755);
    snprintf(script, sizeof script, "%s/squeue.new", f.notice.directory);
    snprintf(f.path, sizeof f.path, "%s/squeue", f.notice.directory);
    assert_int_equal(rename(script, f.path), 0);
}

static void squeue_says_end_in(int seconds)
{
    char does[64];

    snprintf(does, sizeof does, "echo %lld", (long long)(f.now.unix_ms / 1000 + seconds));
    squeue(does);
}

static int calls(char *ret_last, int size)
{
    char path[256];
    FILE *file;
    int count = 0;

    snprintf(path, sizeof path, "%s/calls", f.notice.directory);
    file = fopen(path, "r");
    while (file != NULL && fgets(ret_last, size, file) != NULL)
        count++;
    if (file != NULL)
        fclose(file);
    return count;
}

static void say(void *arg, unsigned topic, const struct notice_set *set)
{
    (void)arg;
    ledger_say(&f.ledger, "slurm", topic, set, f.now.boot_ms, &f.out);
    for (size_t i = 0; i < f.out.count; i++) {
        f.last = f.out.records[i];
        f.records++;
    }
}

static struct source_status look(void)
{
    struct source_status status;

    slurm_ops.run(f.source, &f.now, &(struct source_out){.say = say});
    slurm_ops.status(f.source, &status);
    return status;
}

/* Runs it, at one moment of the test's clock, until squeue has come back. */
static struct source_status settle(void)
{
    int64_t until = notice_clocks().boot_ms + LIMIT_MS;
    struct pollfd fds[SOURCE_FDS_MAX];
    struct source_status status = look();
    size_t count;

    while ((count = slurm_ops.fds(f.source, fds)) > 0) {
        if (notice_clocks().boot_ms > until)
            fail_msg("squeue did not come back");
        poll(fds, count, 1000);
        status = look();
    }
    return status;
}

static void begin(const char *argument, const char *end)
{
    struct source_config config = {.argument = argument};
    struct muster_error err;

    if (end != NULL)
        setenv("SLURM_JOB_END_TIME", end, 1);
    if (slurm_ops.open(&config, &f.source, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

static void later(int seconds)
{
    f.now.boot_ms += seconds * 1000LL;
    f.now.unix_ms += seconds * 1000LL;
}

static int set_up(void **state)
{
    char path[2048];

    (void)state;
    memset(&f, 0, sizeof f);
    notice_fixture_open(&f.notice, NULL);
    ledger_init(&f.ledger);
    f.now = (struct notice_now){.boot_ms = 5000000, .unix_ms = NOW_UNIX * 1000};
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", f.notice.directory);
    setenv("PATH", path, 1);
    setenv("SLURM_JOB_ID", "4711", 1);
    unsetenv("SLURM_JOB_END_TIME");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (f.source != NULL)
        slurm_ops.close(f.source);
    unsetenv("SLURM_JOB_ID");
    notice_fixture_close(&f.notice);
    return 0;
}

static void outside_of_a_job_it_is_absent_and_asks_nobody(void **state)
{
    static const char *const none[] = {"", "7;reboot", "12345678901234567890123456789012"};
    char line[256];

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        setenv("SLURM_JOB_ID", none[i], 1);
        squeue_says_end_in(10);
        begin("", NULL);
        assert_int_equal(settle().state, SOURCE_ABSENT);
        slurm_ops.close(f.source);
        f.source = NULL;
    }
    assert_int_equal(calls(line, sizeof line), 0);
    assert_int_equal(f.records, 0);
}

static void the_environment_says_it_and_nobody_is_asked_yet(void **state)
{
    char line[256];

    (void)state;
    squeue_says_end_in(5000);
    begin("", "1800005000");
    assert_int_equal(settle().state, SOURCE_HEALTHY);
    assert_int_equal(calls(line, sizeof line), 0);
    later(SLURM_PERIOD_MS / 1000 - 1);
    settle();
    assert_int_equal(calls(line, sizeof line), 0);
    later(1);
    settle();
    assert_int_equal(calls(line, sizeof line), 1);
    assert_string_equal(line, "-h -j 4711 -O EndTime %s\n");
    later(SLURM_PERIOD_MS / 1000 - 1); /* and not more often */
    settle();
    assert_int_equal(calls(line, sizeof line), 1);
    assert_int_equal(f.records, 0);
}

static void without_it_squeue_is_asked_and_the_end_is_told_when_it_is_near(void **state)
{
    (void)state;
    squeue_says_end_in(SLURM_LEAD_S + 10);
    begin("", NULL);
    assert_int_equal(settle().state, SOURCE_HEALTHY);
    later(9);
    settle();
    assert_int_equal(f.records, 0);
    later(1);
    settle();
    assert_int_equal(f.records, 1);
    assert_int_equal(f.last.item.kind, NOTICE_TIME_LIMIT);
    assert_true(f.last.item.hard);
    assert_true(f.last.item.cancellable);
    assert_int_equal(f.last.item.deadline_boot_ms, f.now.boot_ms + SLURM_LEAD_S * 1000);
    assert_string_equal(f.last.item.text,
                        "the time of Slurm job 4711 ends at 2027-01-15T08:05:10Z");
    later(1);
    settle();
    assert_int_equal(f.records, 1);
}

static void the_lead_is_an_option(void **state)
{
    struct source_config config = {.argument = "0"};
    static const char *const wrong[] = {"0", "-5", "86401", "9999999", "10m"};
    struct muster_error err;
    void *self = NULL;

    (void)state;
    squeue_says_end_in(20);
    begin("10", NULL);
    settle();
    assert_int_equal(f.records, 0);
    later(10);
    settle();
    assert_int_equal(f.records, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.argument = wrong[i];
        assert_int_equal(slurm_ops.open(&config, &self, &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, "slurm:SECONDS"));
    }
}

static void an_old_end_is_asked_for_again_before_it_is_told(void **state)
{
    char line[256];

    (void)state;
    begin("", "1800000400");
    settle();
    later(120);                /* within the lead by what the environment said */
    squeue_says_end_in(50000); /* the limit was raised meanwhile */
    assert_int_equal(settle().state, SOURCE_HEALTHY);
    assert_int_equal(calls(line, sizeof line), 1);
    assert_int_equal(f.records, 0);
}

static void an_end_that_moves_later_is_withdrawn_and_told_anew_when_near(void **state)
{
    uint64_t number;

    (void)state;
    squeue_says_end_in(100);
    begin("1000", NULL);
    settle();
    assert_int_equal(f.records, 1);
    number = f.last.number;
    squeue_says_end_in(5000);
    later(SLURM_PERIOD_MS / 1000);
    settle();
    assert_int_equal(f.records, 2);
    assert_true(f.last.withdrawn);
    assert_int_equal(f.last.number, number);
    later(4000);
    squeue_says_end_in(700);
    settle();
    assert_int_equal(f.records, 3);
    assert_false(f.last.withdrawn);
    assert_int_not_equal(f.last.number, number);
    assert_int_equal(f.last.item.deadline_boot_ms, f.now.boot_ms + 700000);
}

static void one_that_moves_later_within_the_lead_is_told_with_its_new_time(void **state)
{
    (void)state;
    squeue_says_end_in(400);
    begin("5000", NULL);
    settle();
    later(SLURM_PERIOD_MS / 1000);
    squeue_says_end_in(2000);
    settle();
    assert_false(ledger_pending(&f.ledger, "file"));
    assert_true(ledger_pending(&f.ledger, "slurm"));
    assert_int_equal(f.records, 3); /* told, withdrawn, told */
}

static void an_end_that_moves_earlier_is_told_again(void **state)
{
    (void)state;
    squeue_says_end_in(900);
    begin("1000", NULL);
    settle();
    later(SLURM_PERIOD_MS / 1000);
    squeue_says_end_in(15); /* preempted with a grace time */
    settle();
    assert_int_equal(f.records, 2);
    assert_false(f.last.withdrawn);
    assert_int_equal(f.last.item.deadline_boot_ms, f.now.boot_ms + 15000);
}

static void no_end_is_no_notice(void **state)
{
    (void)state;
    squeue("echo N/A");
    begin("", NULL);
    assert_int_equal(settle().state, SOURCE_HEALTHY);
    assert_int_equal(f.records, 0);
}

static void without_squeue_scontrol_is_asked(void **state)
{
    char script[256];

    (void)state;
    snprintf(script, sizeof script,
             "#!/bin/sh\necho 'JobId=4711 JobName=1800000001 StartTime=1799999999 EndTime=%lld "
             "Deadline=N/A'\n",
             NOW_UNIX + 60);
    in_directory("scontrol", script, 0755);
    begin("", NULL);
    assert_int_equal(settle().state, SOURCE_HEALTHY);
    assert_int_equal(f.records, 1);
    assert_int_equal(f.last.item.deadline_boot_ms, f.now.boot_ms + 60000);
}

static void a_squeue_that_fails_is_shown_and_what_was_known_counts(void **state)
{
    struct source_status status;

    (void)state;
    squeue("echo slurm_load_jobs error: Unable to contact slurm controller >&2; exit 1");
    in_directory("scontrol", "#!/bin/sh\nexit 1\n", 0755);
    begin("", "1800000400");
    settle();
    later(350);
    status = settle();
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_non_null(strstr(status.text, "Unable to contact slurm controller"));
    assert_non_null(strstr(status.text, "the one known before"));
    assert_int_equal(f.records, 1);
    assert_int_equal(f.last.item.deadline_boot_ms, f.now.boot_ms + 50000);
    squeue_says_end_in(40); /* and it goes on */
    later(SLURM_PERIOD_MS / 1000);
    assert_int_equal(settle().state, SOURCE_HEALTHY);
}

static void garbage_is_shown_and_no_notice(void **state)
{
    struct source_status status;

    (void)state;
    squeue("echo '<html>1800000001</html>'");
    begin("", NULL);
    status = settle();
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_non_null(strstr(status.text, "<html>"));
    assert_non_null(strstr(status.text, "not known"));
    assert_int_equal(f.records, 0);
}

static void a_squeue_that_hangs_is_killed_after_30_s(void **state)
{
    struct source_status status;

    (void)state;
    squeue("sleep 600");
    begin("", NULL);
    status = look();
    later(SLURM_LIMIT_MS / 1000 - 1);
    status = look();
    assert_int_equal(status.state, SOURCE_PROBING);
    later(1);
    status = look();
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_non_null(strstr(status.text, "did not end within 30 s"));
}

/* Another process of this host, that has the lock: it stamps what the test says, and else does
 * nothing. */
static pid_t other_asker(const char *runtime_dir, int ret_fds[2])
{
    int orders[2], answers[2];
    pid_t pid;

    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        struct share *share = share_open(runtime_dir, "slurm", "4711");
        struct share_state *state = calloc(1, sizeof *state);

        close(orders[1]);
        while (read(orders[0], &state->stamp_boot_ms, sizeof state->stamp_boot_ms) > 0) {
            if (share_is_asker(share, state->stamp_boot_ms))
                share_write(share, state);
            if (write(answers[1], "x", 1) != 1)
                break;
        }
        _exit(0);
    }
    close(orders[0]);
    close(answers[1]);
    ret_fds[0] = answers[0];
    ret_fds[1] = orders[1];
    return pid;
}

static void other_stamps(const int fds[2])
{
    char answer;

    assert_int_equal(write(fds[1], &f.now.boot_ms, sizeof f.now.boot_ms), sizeof f.now.boot_ms);
    assert_int_equal(read(fds[0], &answer, 1), 1);
}

/* It asked for one who was stopped and goes on: the squeue that runs is nobody's then. */
static void who_asks_no_more_ends_its_squeue(void **state)
{
    struct source_config config = {.argument = "", .runtime_dir = f.notice.directory};
    struct pollfd fds[SOURCE_FDS_MAX];
    struct muster_error err;
    int other[2];
    pid_t pid = other_asker(f.notice.directory, other);

    (void)state;
    squeue("sleep 600");
    other_stamps(other);
    assert_int_equal(slurm_ops.open(&config, &f.source, &err), MUSTER_OK);
    look();
    assert_int_equal(slurm_ops.fds(f.source, fds), 0);
    later(2); /* a while without a stamp */
    look();
    later(2);
    look();
    assert_true(slurm_ops.fds(f.source, fds) > 0);
    later(1);
    other_stamps(other);
    look();
    assert_int_equal(slurm_ops.fds(f.source, fds), 0);
    assert_true(slurm_ops.wakeup_boot_ms(f.source) > f.now.boot_ms);
    close(other[1]);
    close(other[0]);
    assert_int_equal(waitpid(-1, NULL, 0), pid); /* the only child that there is */
}

/* As a node has it: by its name, and by auto inside of a job. */
static void a_watch_runs_it_and_auto_finds_it(void **state)
{
    static const char *const lists[] = {"slurm", "auto", "auto,slurm:200"};

    char command[256];

    (void)state;
    snprintf(command, sizeof command, "mkdir -p '%s/sys/class/dmi/id'", f.notice.directory);
    assert_int_equal(system(command), 0); /* a machine of no cloud */
    setenv("MUSTER_SYS_PREFIX", f.notice.directory, 1);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char does[64];

        snprintf(does, sizeof does, "echo %lld", (long long)(notice_clocks().unix_ms / 1000 + 100));
        squeue(does);
        notice_fixture_watch(&f.notice, lists[i]);
        f.last = notice_await(&f.notice, LIMIT_MS);
        assert_string_equal(f.last.source, "slurm");
        assert_int_equal(f.last.item.kind, NOTICE_TIME_LIMIT);
        assert_in_range(f.last.item.deadline_boot_ms - notice_clocks().boot_ms, 1, 100000);
        notice_state(&f.notice, "slurm", SOURCE_HEALTHY, "", LIMIT_MS);
        watch_close(&f.notice.watch, 5000);
    }
    unsetenv("MUSTER_SYS_PREFIX");
}

static void what_is_an_end(void **state)
{
    static const struct {
        const char *text;
        bool read;
        long long end_s;
    } cases[] = {
        {"1800000000          \n", true, 1800000000},
        {"  1800000000", true, 1800000000},
        {"N/A\n", true, 0},
        {"UNLIMITED", true, 0},
        {"JobId=1 EndTime=1800000000 X=1", true, 1800000000},
        {"JobId=1 Comment=EndTime=1 EndTime=Unknown", true, 0},
        {"", false, 0},
        {"2027-01-15T08:05:10", false, 0}, /* in whatever zone */
        {"12", false, 0},
        {"1800000000000", false, 0},
        {"slurm_load_jobs error: 1800000000", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t end_unix_ms = -1;

        if (slurm_parse(cases[i].text, strlen(cases[i].text), &end_unix_ms) != cases[i].read)
            fail_msg("\"%s\"", cases[i].text);
        if (cases[i].read)
            assert_int_equal(end_unix_ms, cases[i].end_s * 1000);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(outside_of_a_job_it_is_absent_and_asks_nobody),
        CASE(the_environment_says_it_and_nobody_is_asked_yet),
        CASE(without_it_squeue_is_asked_and_the_end_is_told_when_it_is_near),
        CASE(the_lead_is_an_option),
        CASE(an_old_end_is_asked_for_again_before_it_is_told),
        CASE(an_end_that_moves_later_is_withdrawn_and_told_anew_when_near),
        CASE(one_that_moves_later_within_the_lead_is_told_with_its_new_time),
        CASE(an_end_that_moves_earlier_is_told_again),
        CASE(no_end_is_no_notice),
        CASE(without_squeue_scontrol_is_asked),
        CASE(a_squeue_that_fails_is_shown_and_what_was_known_counts),
        CASE(garbage_is_shown_and_no_notice),
        CASE(a_squeue_that_hangs_is_killed_after_30_s),
        CASE(who_asks_no_more_ends_its_squeue),
        CASE(a_watch_runs_it_and_auto_finds_it),
        CASE(what_is_an_end),
    };

    return cmocka_run_group_tests_name("notice_slurm", tests, NULL, NULL);
}
