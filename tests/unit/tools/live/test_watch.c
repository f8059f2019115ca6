/* --watch without a terminal: what it refuses, what it keeps of an answer, how it scrolls. */
#include "tools/live/watch.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static struct tool tool;
static int asked;
static bool broken;

static int run(struct tool *inner)
{
    asked++;
    assert_true(inner->kept); /* the answer goes to the picture, not to stdout */
    fprintf(inner->out, "half of it");
    if (broken)
        return tool_fail(TOOL_UNREACHABLE, "no broker answers");
    fprintf(inner->out, "\nanswer %d\n3\n4\n", asked);
    return TOOL_DONE;
}

static const struct tool_verb verb = {.name = "status", .run = run};

static int setup(void **state)
{
    (void)state;
    tool = (struct tool){.verb = "status"};
    asked = 0;
    broken = false;
    return 0;
}

static void an_answer_that_failed_leaves_the_one_before_it_and_tells_why(void **state)
{
    struct watch watch = {.tool = &tool, .verb = &verb};

    (void)state;
    assert_int_equal(watch_ask(&watch), TOOL_DONE);
    assert_string_equal(watch.text, "half of it\nanswer 1\n3\n4\n");
    broken = true;
    assert_int_equal(watch_ask(&watch), TOOL_UNREACHABLE);
    assert_string_equal(watch.text, "half of it\nanswer 1\n3\n4\n");
    assert_string_equal(watch.said, "no broker answers");
    broken = false;
    assert_int_equal(watch_ask(&watch), TOOL_DONE);
    assert_string_equal(watch.text, "half of it\nanswer 3\n3\n4\n");
    assert_string_equal(watch.said, "");
    free(watch.text);
}

static void it_scrolls_within_the_answer(void **state)
{
    char text[] = "1\n2\n3\n4\n";
    struct watch watch = {.tool = &tool, .text = text};

    (void)state;
    watch_scroll(&watch, SCREEN_UP);
    assert_int_equal(watch.first, 0);
    watch_scroll(&watch, SCREEN_DOWN);
    assert_int_equal(watch.first, 1);
    watch_scroll(&watch, SCREEN_PAGE_DOWN);
    assert_int_equal(watch.first, 4); /* the end of the last line */
    watch_scroll(&watch, SCREEN_UP);
    assert_int_equal(watch.first, 3);
    watch_scroll(&watch, SCREEN_PAGE_UP);
    assert_int_equal(watch.first, 0);
    watch.first = 4;
    watch.text = NULL; /* of an answer that was shorter, or of none */
    watch_scroll(&watch, SCREEN_NONE);
    assert_int_equal(watch.first, 0);
}

static void is_refused(const char *text)
{
    char said[1024] = "";

    tool_hear(said, sizeof said);
    assert_int_equal(tool_watch(&tool, &verb), TOOL_USAGE);
    tool_hear(NULL, 0);
    assert_non_null(strstr(said, text));
    assert_int_equal(asked, 0);
}

static void what_programs_read_is_not_watched(void **state)
{
    (void)state;
    tool.values[OPTION_EXIT_CODE] = "";
    is_refused("--exit-code is for programs");
    tool.values[OPTION_JSON] = "";
    is_refused("--json is for programs");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {
        T(an_answer_that_failed_leaves_the_one_before_it_and_tells_why),
        T(it_scrolls_within_the_answer),
        T(what_programs_read_is_not_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
