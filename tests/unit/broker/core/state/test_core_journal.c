/* Events and rows: each event has the next number and its row, texts fit the wire, and a job's row
 * is written when its save that is wanted has changed. */
#include "broker/core/state/state.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static int setup(void **state)
{
    struct core_fixture *f;

    core_run_three(state);
    f = *state;
    f->core->out = &f->out; /* as in a step */
    f->core->now = f->now;
    return 0;
}

static void an_event_has_the_next_number_its_row_and_its_job(void **state)
{
    struct core_fixture *f = *state;
    struct job *job = core_job(f);
    uint64_t seq = job->seq;
    struct wire_event event = event_make(job, EVENT_RESUME);

    assert_int_equal(event.rank, -1);
    assert_int_equal(event.step, -1);
    assert_int_equal(event.left_ms, -1);
    assert_int_equal(event.generation, job->gen.generation);
    event_emit(f->core, job, event, 77);
    event_emit(f->core, job, event, 77);
    assert_int_equal(job->seq, seq + 2);
    assert_int_equal(core_event(f, EVENT_RESUME)->seq, seq + 1); /* the first */
    assert_int_equal(core_row(f, RECORD_EVENT)->u.event.seq, seq + 2);
    assert_int_equal(core_row(f, RECORD_EVENT)->u.event.deadline_boot_ms, 77);
    assert_int_equal(core_row(f, RECORD_JOB)->u.job.seq, seq + 2);
}

/* The round that lent them may be gone before the batch is written. */
static void members_and_texts_of_an_event_are_its_own(void **state)
{
    struct core_fixture *f = *state;
    struct wire_member members[2] = {{.rank = 0}, {.rank = 2}};
    char text[] = "out of memory";
    struct wire_event event = event_make(core_job(f), EVENT_FREEZE);

    event.text = text;
    event.members.items = members;
    event.members.count = 2;
    event_emit(f->core, core_job(f), event, 0);
    memset(members, 0xff, sizeof members);
    memset(text, 'x', sizeof text - 1);
    assert_string_equal(core_event(f, EVENT_FREEZE)->text, "out of memory");
    assert_int_equal(core_event(f, EVENT_FREEZE)->members.items[1].rank, 2);
}

/* A burst of events must not put off the repeat for a node that lacks an earlier one. */
static void only_a_node_that_has_all_before_it_waits_afresh_for_a_repeat(void **state)
{
    struct core_fixture *f = *state;
    struct job *job = core_job(f);
    struct peer *late = job->peers[0], *even = job->peers[1];

    late->applied_seq = job->seq - 1;
    even->applied_seq = job->seq;
    late->repeat_boot_ms = even->repeat_boot_ms = f->core->now + 1;
    event_emit(f->core, job, event_make(job, EVENT_RESUME), 0);
    assert_int_equal(late->repeat_boot_ms, f->core->now + 1);
    assert_int_equal(even->repeat_boot_ms, f->core->now + REPEAT_MIN_MS);
    even->applied_seq = job->seq;
    job->fan_out_ms = HEARTBEAT_MS;
    event_emit(f->core, job, event_make(job, EVENT_RESUME), 0);
    assert_int_equal(even->repeat_every_ms, HEARTBEAT_MS); /* and never less often */
}

static void a_text_is_cut_between_two_characters(void **state)
{
    struct core_fixture *f = *state;
    char text[TEXT_MAX + 8] = "";
    const char *cut;

    memset(text, 'a', TEXT_MAX - 1);
    memcpy(text + TEXT_MAX - 1, "\xc3\xa4\xc3\xa4", 5); /* of two bytes each */
    cut = out_text(f->core, text);
    assert_int_equal(strlen(cut), TEXT_MAX - 1);
    assert_int_equal(strlen(out_long(f->core, text)), strlen(text));
    assert_string_equal(out_printf(f->core, "rank %d", 3), "rank 3");
}

static size_t job_rows(const struct core_fixture *f)
{
    size_t rows = 0;

    for (size_t i = 0; i < f->out.count; i++)
        rows += f->out.items[i].kind == ACTION_PERSIST && f->out.items[i].record.kind == RECORD_JOB;
    return rows;
}

static void a_jobs_row_is_written_when_the_save_that_is_wanted_has_changed(void **state)
{
    struct core_fixture *f = *state;
    struct job *job = core_job(f);

    persist_want(f->core, job);
    assert_int_equal(job_rows(f), 0);
    job->want.cause = CAUSE_OPERATOR;
    persist_want(f->core, job);
    assert_int_equal(job_rows(f), 1);
    assert_int_equal(core_row(f, RECORD_JOB)->u.job.want, CAUSE_OPERATOR);
    persist_want(f->core, job);
    assert_int_equal(job_rows(f), 1);
    job->plan.freeze_unix_ms = 5;
    persist_want(f->core, job);
    snprintf(job->plan.text, sizeof job->plan.text, "at the last moment");
    persist_want(f->core, job);
    job->want.attempt++;
    persist_want(f->core, job);
    assert_int_equal(job_rows(f), 4);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, core_close)
    const struct CMUnitTest tests[] = {
        T(an_event_has_the_next_number_its_row_and_its_job),
        T(members_and_texts_of_an_event_are_its_own),
        T(only_a_node_that_has_all_before_it_waits_afresh_for_a_repeat),
        T(a_text_is_cut_between_two_characters),
        T(a_jobs_row_is_written_when_the_save_that_is_wanted_has_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
