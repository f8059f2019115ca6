/* What the broker's log tells of what was committed: one line an event that a person wants. */
#include "broker/announce.h"

#include "broker/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENTS_MAX 80

static char logged[1 << 16]; /* what came to stderr during the last capture */

struct capture {
    int file, stderr_copy;
};

static struct capture begin_capture(void)
{
    struct capture c = {.file = memfd_create("log", MFD_CLOEXEC),
                        .stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};

    fflush(stderr);
    assert_true(c.file >= 0 && c.stderr_copy >= 0);
    assert_int_equal(dup2(c.file, STDERR_FILENO), STDERR_FILENO);
    return c;
}

static void end_capture(struct capture c)
{
    ssize_t size;

    assert_int_equal(dup2(c.stderr_copy, STDERR_FILENO), STDERR_FILENO);
    size = pread(c.file, logged, sizeof logged - 1, 0);
    assert_true(size >= 0);
    logged[size] = '\0';
    close(c.file);
    close(c.stderr_copy);
}

static size_t lines_logged(void)
{
    size_t lines = 0;

    for (const char *at = logged; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

static struct action committed(struct wire_event body)
{
    if (body.text == NULL)
        body.text = "";
    return (struct action){.kind = ACTION_PERSIST,
                           .record = {.kind = RECORD_EVENT,
                                      .u.event = {.job = "words", .generation = 3, .body = body}}};
}

static void announce(const struct action *items, size_t count)
{
    struct action copies[EVENTS_MAX];
    const struct actions batch = {.items = copies, .count = count};
    struct core *core = core_create(&(struct core_options){.start_id = 1, .events_endpoint = ""});
    struct capture c;

    assert_true(count <= EVENTS_MAX);
    memcpy(copies, items, count * sizeof *items);
    c = begin_capture();
    announce_batch(&batch, core);
    end_capture(c);
    core_destroy(&core);
}

static void each_event_of_a_launch_a_node_or_a_round_is_one_line(void **state)
{
    static const struct {
        struct wire_event body;
        const char *line; /* after the time, the level and the job */
        const char *level;
    } cases[] = {
        {{.kind = EVENT_GENERATION_OPENED}, "generation 3 opened, from the start", "info"},
        {{.kind = EVENT_GENERATION_OPENED, .checkpoint = 5, .step = 40},
         "generation 3 opened, resumes after 40 steps from checkpoint 5",
         "info"},
        {{.kind = EVENT_GENERATION_ENDED, .text = "all left"},
         "generation 3 ended: all left",
         "info"},
        {{.kind = EVENT_COMMIT, .round = 7, .cause = CAUSE_OPERATOR, .checkpoint = 7, .step = 90},
         "round 7 (operator) committed: checkpoint 7 after 90 steps",
         "info"},
        {{.kind = EVENT_UNCHANGED, .round = 8, .cause = CAUSE_TERMINATION, .step = 90},
         "round 8 (termination) ended: nothing to save, the newest is after 90 steps",
         "info"},
        {{.kind = EVENT_ABORT, .round = 8, .cause = CAUSE_TERMINATION, .text = "rank 2 is lost"},
         "round 8 (termination) aborted: rank 2 is lost",
         "warning"},
        {{.kind = EVENT_ABORT,
          .round = 8,
          .cause = CAUSE_TERMINATION,
          .text = "rank 2 is lost",
          .flags = EVENT_FLAG_RETRY},
         "round 8 (termination) aborted: rank 2 is lost; it is tried again",
         "info"},
        {{.kind = EVENT_NOT_SAVED, .round = 9, .cause = CAUSE_TERMINATION, .text = "too late"},
         "round 9 (termination): the job ends without a new checkpoint: too late",
         "warning"},
        {{.kind = EVENT_NODE_LOST, .rank = 2, .text = "rank 2 was silent", "warning"},
         "rank 2 was silent",
         "warning"},
        {{.kind = EVENT_JOIN_FAILED, .text = "rank 1 is missing", "warning"},
         "rank 1 is missing",
         "warning"},
        {{.kind = EVENT_PEER_ERROR, .rank = 1, .text = "no memory"},
         "rank 1 failed its step: no memory",
         "warning"},
        {{.kind = EVENT_RESTORE_FAILED, .rank = 1, .text = "it is damaged"},
         "rank 1 could not restore: it is damaged",
         "warning"},
        {{.kind = EVENT_SAVE_SKIPPED,
          .step = 40,
          .code = MUSTER_E_BUSY,
          .text = "rank 2 is missing"},
         "no save after 40 steps: rank 2 is missing",
         "warning"},
        {{.kind = EVENT_TERMINATION, .rank = 2, .code = NOTICE_SIGNAL, .text = "SIGTERM"},
         "rank 2 has a notice (signal): SIGTERM",
         "info"},
    };
    char expected[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct action action = committed(cases[i].body);

        announce(&action, 1);
        snprintf(expected, sizeof expected, "Z %s: job words: %s\n", cases[i].level, cases[i].line);
        assert_int_equal(lines_logged(), 1);
        if (strstr(logged, expected) == NULL)
            fail_msg("\"%s\" is not \"%s\"", logged, expected);
    }
}

/* Its journal is gone with it. What the broker forgets to make room is no order. */
static void an_order_that_forgot_a_job_is_a_line(void **state)
{
    struct action action = {.kind = ACTION_PERSIST,
                            .record = {.kind = RECORD_FORGET, .u.forget = {"words", "key ops"}}};

    (void)state;
    announce(&action, 1);
    assert_int_equal(lines_logged(), 1);
    assert_non_null(strstr(logged, " info: job words: key ops: forget\n"));
    action.record.u.forget.by = "";
    announce(&action, 1);
    assert_string_equal(logged, "");
}

static void a_level_says_what_is_told(void **state)
{
    const struct action lost =
        committed((struct wire_event){.kind = EVENT_NODE_LOST, .text = "silent"});
    const struct action opened = committed((struct wire_event){.kind = EVENT_GENERATION_OPENED});

    (void)state;
    broker_log_least(LOG_LEVEL_WARNING);
    announce(&opened, 1);
    assert_string_equal(logged, "");
    announce(&lost, 1);
    assert_int_equal(lines_logged(), 1);
    broker_log_least(LOG_LEVEL_ERROR);
    announce(&lost, 1);
    assert_string_equal(logged, "");
    broker_log_least(LOG_LEVEL_INFO);
}

static void what_happens_all_the_time_is_no_line(void **state)
{
    static const enum wire_event_kind quiet[] = {EVENT_RESUME,   EVENT_STARTED,
                                                 EVENT_FREEZE,   EVENT_DECISION,
                                                 EVENT_MANIFEST, EVENT_NOTICE_CANCELLED};
    struct action other = committed((struct wire_event){.kind = EVENT_COMMIT});

    (void)state;
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        const struct action action = committed((struct wire_event){.kind = quiet[i]});

        announce(&action, 1);
        assert_string_equal(logged, "");
    }
    other.kind = ACTION_PUBLISH; /* said, but the row is what counts */
    announce(&other, 1);
    assert_string_equal(logged, "");
    other.kind = ACTION_PERSIST;
    other.record.kind = RECORD_JOB;
    announce(&other, 1);
    assert_string_equal(logged, "");
}

static void the_loss_of_a_whole_cluster_is_64_lines_and_a_count(void **state)
{
    struct action lost[EVENTS_MAX];

    (void)state;
    for (size_t i = 0; i < EVENTS_MAX; i++)
        lost[i] = committed((struct wire_event){.kind = EVENT_NODE_LOST, .text = "silent"});
    announce(lost, 64);
    assert_int_equal(lines_logged(), 64);
    announce(lost, EVENTS_MAX);
    assert_int_equal(lines_logged(), 64 + 1);
    assert_non_null(strstr(logged, "and 16 more events at once; see muster events\n"));
}

static void text_from_a_node_stays_on_its_line(void **state)
{
    const struct action action = committed((struct wire_event){
        .kind = EVENT_PEER_ERROR, .rank = 1, .text = "a\n2000-01-01 error: b\033[2J"});

    (void)state;
    announce(&action, 1);
    assert_int_equal(lines_logged(), 1);
    assert_non_null(strstr(logged, "a\\x0a2000"));
    assert_null(strchr(logged, '\033'));
}

static void a_start_tells_of_the_jobs_that_are_not_over(void **state)
{
    static const struct {
        struct record row;
        const char *line; /* NULL: none */
    } cases[] = {
        {{.kind = RECORD_JOB,
          .u.job = {.job = "words", .generation = 3, .state = GENERATION_RUNNING}},
         "job words: recovered in generation 3, which was running; its nodes may come back\n"},
        {{.kind = RECORD_JOB, .u.job = {.job = "words", .state = GENERATION_NONE}}, NULL},
        {{.kind = RECORD_JOB,
          .u.job = {.job = "words", .generation = 3, .state = GENERATION_ENDED}},
         NULL},
        {{.kind = RECORD_BROKER, .u.broker.epoch = 9}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct capture c = begin_capture();

        announce_loaded(&cases[i].row);
        end_capture(c);
        assert_int_equal(lines_logged(), cases[i].line != NULL);
        if (cases[i].line != NULL)
            assert_non_null(strstr(logged, cases[i].line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_of_a_launch_a_node_or_a_round_is_one_line),
        cmocka_unit_test(an_order_that_forgot_a_job_is_a_line),
        cmocka_unit_test(a_level_says_what_is_told),
        cmocka_unit_test(what_happens_all_the_time_is_no_line),
        cmocka_unit_test(the_loss_of_a_whole_cluster_is_64_lines_and_a_count),
        cmocka_unit_test(text_from_a_node_stays_on_its_line),
        cmocka_unit_test(a_start_tells_of_the_jobs_that_are_not_over),
    };

    return cmocka_run_group_tests_name("announce", tests, NULL, NULL);
}
