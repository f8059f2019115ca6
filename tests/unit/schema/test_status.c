/* Status codes: every one has name, sentence and advice; numbers never move; errors are filled. */
#include "schema/error.h"
#include "schema/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_its_texts(void **state)
{
    (void)state;
    for (int i = 0; i < MUSTER_STATUS_COUNT; i++) {
        enum muster_status status = (enum muster_status)i;

        assert_non_null(muster_status_name(status)); /* a hole in the numbers would be NULL */
        assert_memory_equal(muster_status_name(status), "MUSTER_", 7);
        assert_true(strlen(muster_status_sentence(status)) > 0);
        assert_true(strlen(muster_status_advice(status)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(muster_status_name((enum muster_status)j),
                                    muster_status_name(status));
    }
}

static void count_is_one_more_than_the_highest_number(void **state)
{
    static const int values[] = {
#define X(name, value, sentence, advice) value,
#include "schema/status.def"
#undef X
    };

    (void)state;
    assert_int_equal(sizeof values / sizeof *values, MUSTER_STATUS_COUNT);
    for (int i = 0; i < MUSTER_STATUS_COUNT; i++)
        assert_int_equal(values[i], i);
}

/* Programs are compiled against these, and databases hold them. */
static void published_numbers_stay(void **state)
{
    (void)state;
    assert_int_equal(MUSTER_OK, 0);
    assert_int_equal(MUSTER_PREEMPTED, 1);
    assert_int_equal(MUSTER_E_ARGUMENT, 2);
    assert_int_equal(MUSTER_E_VERSION, 5);
    assert_int_equal(MUSTER_E_RANK_TAKEN, 9);
    assert_int_equal(MUSTER_E_STALE, 12);
    assert_int_equal(MUSTER_E_PEER, 15);
    assert_int_equal(MUSTER_E_SAVE, 19);
    assert_int_equal(MUSTER_E_PROTOCOL, 29);
    assert_int_equal(MUSTER_E_NOT_SAVED, 36);
    assert_int_equal(MUSTER_E_TASK_TIMEOUT, 42);
    assert_int_equal(MUSTER_E_INTERRUPTED, 43);
    assert_int_equal(MUSTER_E_SIGNATURE, 44);
    assert_string_equal(muster_status_name(MUSTER_E_PROTOCOL), "MUSTER_E_PROTOCOL");
}

static void an_exit_code_says_whether_a_restart_can_help(void **state)
{
    static const enum muster_status never[] = {
        MUSTER_E_ARGUMENT,   MUSTER_E_VERSION,     MUSTER_E_AUTH,
        MUSTER_E_WORLD_SIZE, MUSTER_E_RANK,        MUSTER_E_LAYOUT,
        MUSTER_E_JOB,        MUSTER_E_UNSUPPORTED, MUSTER_E_SIGNATURE};
    size_t none = 0;

    (void)state;
    assert_int_equal(muster_status_exit_code(MUSTER_OK), 0);
    assert_int_equal(muster_status_exit_code(MUSTER_PREEMPTED), 42);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_int_equal(muster_status_exit_code(never[i]), 93);
    for (int i = MUSTER_E_ARGUMENT; i < MUSTER_STATUS_COUNT; i++)
        none += muster_status_exit_code((enum muster_status)i) == 1;
    assert_int_equal(none + sizeof never / sizeof *never, MUSTER_STATUS_COUNT - 2);
}

/* As the wire does: a text that is too long loses whole characters. */
static void a_long_text_is_cut_between_characters(void **state)
{
    static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    char text[MUSTER_ERROR_TEXT_MAX + 64];
    struct muster_error err;

    (void)state;
    for (size_t c = 0; c < sizeof characters / sizeof *characters; c++) {
        size_t wide = strlen(characters[c]);

        for (size_t shift = 0; shift < wide; shift++) { /* the cut falls on each of its bytes */
            size_t at = shift, kept;

            memset(text, 'x', sizeof text);
            for (; at + wide < sizeof text; at += wide)
                memcpy(text + at, characters[c], wide);
            text[at] = '\0';
            error_set(&err, MUSTER_E_STEP, "%s", text);
            kept = strlen(err.text);
            assert_true(kept >= MUSTER_ERROR_TEXT_MAX - wide && kept < MUSTER_ERROR_TEXT_MAX);
            assert_int_equal((kept - shift) % wide, 0);
            assert_memory_equal(err.text, text, kept);
        }
    }
}

static void an_unknown_status_has_texts_too(void **state)
{
    static const int unknown[] = {MUSTER_STATUS_COUNT, 255, 100000, -1};

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_string_equal(muster_status_name((enum muster_status)unknown[i]), "unknown status");
        assert_string_equal(muster_status_sentence((enum muster_status)unknown[i]),
                            "unknown status");
        assert_string_equal(muster_status_advice((enum muster_status)unknown[i]), "unknown status");
    }
}

static void error_set_fills_everything(void **state)
{
    struct muster_error err;

    (void)state;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(error_set(&err, MUSTER_E_RANK, "rank %d of %d", 7, 4), MUSTER_E_RANK);
    assert_int_equal(err.status, MUSTER_E_RANK);
    assert_int_equal(err.rank, -1);
    assert_int_equal(err.code, 0);
    assert_int_equal(err.step, -1);
    assert_int_equal(err.task, 0);
    assert_string_equal(err.text, "rank 7 of 4");
}

static void a_text_commands_no_terminal(void **state)
{
    struct muster_error err;

    (void)state;
    error_set(&err, MUSTER_E_TASK, "%s", "a\x1b[31mb\nc\td\x7f \xc2\x9bm \xc3\xa4\xc2\xb5");
    assert_string_equal(err.text, "a?[31mb c d? ??m \xc3\xa4\xc2\xb5");
}

static void error_set_code_keeps_errno_and_leaves_the_text_alone(void **state)
{
    struct muster_error err;

    (void)state;
    assert_int_equal(error_set_code(&err, MUSTER_E_IO, ENOSPC, "%s is full", "/data"), MUSTER_E_IO);
    assert_int_equal(err.code, ENOSPC);
    assert_int_equal(err.rank, -1);
    assert_int_equal(err.step, -1);
    assert_string_equal(err.text, "/data is full");
}

static void a_long_text_is_cut_and_no_error_is_needed(void **state)
{
    static char long_text[4096];
    struct {
        struct muster_error err;
        char behind[8];
    } guarded;

    (void)state;
    memset(long_text, 'e', sizeof long_text - 1);
    memset(&guarded, 0x5a, sizeof guarded);
    error_set(&guarded.err, MUSTER_E_IO, "%s", long_text);
    assert_int_equal(strlen(guarded.err.text), MUSTER_ERROR_TEXT_MAX - 1);
    for (size_t i = 0; i < sizeof guarded.behind; i++)
        assert_int_equal(guarded.behind[i], 0x5a);
    assert_int_equal(error_set(NULL, MUSTER_E_IO, "%s", "x"), MUSTER_E_IO);
    assert_int_equal(error_set_code(NULL, MUSTER_E_IO, EIO, "%s", "x"), MUSTER_E_IO);
}

static void a_text_that_names_the_rank_is_known(void **state)
{
    (void)state;
    assert_true(error_names_rank("rank 1 was lost", 1));
    assert_true(error_names_rank("rank 1", 1));
    assert_false(error_names_rank("rank 12 was lost", 1));
    assert_false(error_names_rank("loss is NaN", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_texts),
        cmocka_unit_test(a_text_that_names_the_rank_is_known),
        cmocka_unit_test(count_is_one_more_than_the_highest_number),
        cmocka_unit_test(published_numbers_stay),
        cmocka_unit_test(an_exit_code_says_whether_a_restart_can_help),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(an_unknown_status_has_texts_too),
        cmocka_unit_test(error_set_fills_everything),
        cmocka_unit_test(a_text_commands_no_terminal),
        cmocka_unit_test(error_set_code_keeps_errno_and_leaves_the_text_alone),
        cmocka_unit_test(a_long_text_is_cut_and_no_error_is_needed),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
