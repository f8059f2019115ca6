/* The words for the wire's numbers, and job names. */
#include "schema/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- words ------------------------------------------------------------------------------------ */

static void every_number_has_a_word_and_no_other(void **state)
{
    static const struct {
        const char *(*name)(unsigned);
        unsigned count;
        const char *second;
        const char *last;
    } rows[] = {
        {wire_role_name, ROLE_COUNT, "chief", "tool"},
        {wire_layout_name, LAYOUT_COUNT, "replicated", "sharded"},
        {wire_cause_name, CAUSE_COUNT, "termination", "notice"},
        {wire_round_state_name, ROUND_STATE_COUNT, "freezing", "unchanged"},
        {wire_generation_state_name, GENERATION_STATE_COUNT, "joining", "ended"},
        {wire_node_state_name, NODE_STATE_COUNT, "joined", "fenced"},
        {wire_phase_name, PHASE_COUNT, "joining", "ended"},
        {wire_notice_kind_name, NOTICE_KIND_COUNT, "preempt", "migrate"},
        {wire_leave_why_name, LEAVE_WHY_COUNT, "finished", "error"},
        {wire_checkpoint_state_name, CHECKPOINT_STATE_COUNT, "writing", "deleting"},
        {wire_task_state_name, TASK_STATE_COUNT, "queued", "cancelled"},
        {wire_event_kind_name, EVENT_KIND_COUNT, "generation opened", "order"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(rows[i].name(0), "none");
        assert_string_equal(rows[i].name(1), rows[i].second);
        assert_string_equal(rows[i].name(rows[i].count - 1), rows[i].last);
        assert_string_equal(rows[i].name(rows[i].count), "unknown");
        assert_string_equal(rows[i].name(UINT32_MAX), "unknown");
        for (unsigned a = 0; a < rows[i].count; a++)
            for (unsigned b = a + 1; b < rows[i].count; b++)
                assert_string_not_equal(rows[i].name(a), rows[i].name(b));
    }
    assert_string_equal(wire_event_kind_name(EVENT_NODE_LOST), "node lost");
    assert_string_equal(wire_phase_name(PHASE_HOLD_SCOPE), "hold");
}

static void notice_kinds_are_found_by_their_words(void **state)
{
    (void)state;
    for (unsigned kind = 1; kind < NOTICE_KIND_COUNT; kind++)
        assert_int_equal(wire_notice_kind_from_name(wire_notice_kind_name(kind)), kind);
    assert_int_equal(wire_notice_kind_from_name("none"), NOTICE_NONE);
    assert_int_equal(wire_notice_kind_from_name("PREEMPT"), NOTICE_NONE);
    assert_int_equal(wire_notice_kind_from_name(""), NOTICE_NONE);
    assert_int_equal(wire_notice_kind_from_name(NULL), NOTICE_NONE);
}

static void job_names_are_safe_as_topic_and_path(void **state)
{
    static const struct {
        const char *name;
        bool ok;
    } rows[] = {
        {"resnet-50_v1.2", true},
        {"A", true},
        {"0", true},
        {"_x", true},
        {"", false},
        {".", false},
        {"..", false},
        {".hidden", false},
        {"-option", false},
        {"a/b", false},
        {"a b", false},
        {"a\n", false},
        {"caf\xc3\xa9", false},
        {"a%00", false},
        {NULL, false},
        {"a:b", false},
        {"123456789012345678901234567890123456789012345678901234567890123", true},
        {"1234567890123456789012345678901234567890123456789012345678901234", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(wire_job_name_ok(rows[i].name), rows[i].ok);
}

static void any_text_can_be_made_a_job_name(void **state)
{
    static const char *const rows[][2] = {
        {"words", "words"},     {"a b/c", "a-b-c"},       {"-x", "_x"},    {"=x", "_x"},
        {".hidden", "_hidden"}, {"caf\xc3\xa9", "caf--"}, {"\xe9t", "_t"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[JOB_NAME_MAX + 1];

        snprintf(name, sizeof name, "%s", rows[i][0]);
        wire_job_name_clean(name);
        assert_string_equal(name, rows[i][1]);
        assert_true(wire_job_name_ok(name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_a_word_and_no_other),
        cmocka_unit_test(notice_kinds_are_found_by_their_words),
        cmocka_unit_test(job_names_are_safe_as_topic_and_path),
        cmocka_unit_test(any_text_can_be_made_a_job_name),
    };

    return cmocka_run_group_tests_name("wire_names", tests, NULL, NULL);
}
