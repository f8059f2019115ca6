/* The tables of a job's page: newest first, and nothing that came from outside is markup. */
#include "tools/web/page_lists.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/unit/tools/blank_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW 1700000100000

static struct tool tool;
static char *text;
static size_t size;
static muster_rows_t *rows;

static int setup(void **state)
{
    (void)state;
    tool = (struct tool){.now_unix_ms = NOW, .job = "train", .out = open_memstream(&text, &size)};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fclose(tool.out);
    free(text);
    muster_rows_destroy(&rows);
    return 0;
}

static void list(lists_put_fn *put, size_t first, size_t end)
{
    put(&tool, rows, first, end);
    fflush(tool.out);
}

static void rounds_stand_newest_first_and_only_those_of_the_page(void **state)
{
    struct muster_round_row *round;

    (void)state;
    rows = blank_rows("rounds", 3);
    round = BLANK(round, rows);
    for (int i = 0; i < 3; i++) {
        round[i].round = i + 1;
        round[i].state = i == 1 ? "aborted" : "committed";
        round[i].cause = "operator";
        round[i].plan = "planned for the last moment";
    }
    round[1].reason_code = MUSTER_E_STORAGE;
    round[2].reason = "<script>";
    list(web_list_rounds, 0, 2);
    assert_non_null(strstr(text, "rounds/3\">"));
    assert_true(strstr(text, "rounds/3\">") < strstr(text, "rounds/2\">"));
    assert_null(strstr(text, "rounds/1\">"));
    assert_null(strstr(text, "<script>"));
    assert_non_null(strstr(text, "&lt;script&gt;"));
    /* One that was aborted tells why, if not in its own words. */
    assert_non_null(strstr(text, muster_status_sentence(MUSTER_E_STORAGE)));
    assert_null(strstr(text, "planned"));
}

static void a_duration_that_is_not_known_is_a_dash(void **state)
{
    (void)state;
    assert_int_equal(lists_between(0, 500), -1);
    assert_int_equal(lists_between(500, 400), -1);
    assert_int_equal(lists_between(400, 500), 100);
}

static void launches_tell_how_they_ended(void **state)
{
    static const struct muster_generation_row values[] = {
        {.state = "running", .end_text = ""},
        {.state = "ended", .end_text = "found on disk"},
        {.state = "ended", .end_text = "", .end_status = MUSTER_OK},
        {.state = "ended", .end_text = "", .end_status = MUSTER_PREEMPTED},
        {.state = "ended", .end_text = "", .end_status = MUSTER_E_STEP}};
    static const char *const expected[] = {"running", "imported", "finished", "preempted",
                                           "failed"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_string_equal(lists_launch_end(&values[i]), expected[i]);
}

static void events_of_a_page_behind_the_last_are_none(void **state)
{
    (void)state;
    rows = blank_rows("events", 2);
    for (int i = 0; i < 2; i++) {
        BLANK(event, rows)[i].seq = i + 1;
        BLANK(event, rows)[i].kind = "freeze";
        BLANK(event, rows)[i].round = 7 * i;
    }
    list(web_list_events, 0, 100);
    assert_true(strstr(text, "id=\"event-2\"") < strstr(text, "id=\"event-1\""));
    assert_non_null(strstr(text, "/jobs/train/rounds/7\">"));
    fclose(tool.out);
    free(text);
    tool.out = open_memstream(&text, &size);
    list(web_list_events, 100, 200);
    assert_null(strstr(text, "event-"));
}

static void a_rank_that_is_stuck_or_left_tells_more(void **state)
{
    const struct muster_node_row *nodes[1];

    (void)state;
    rows = blank_rows("nodes", 1);
    BLANK(node, rows)[0].state = "left";
    BLANK(node, rows)[0].role = "worker";
    BLANK(node, rows)[0].leave_why = "preempted";
    nodes[0] = muster_rows_nodes(rows);
    web_list_ranks(&tool, nodes, 1);
    fflush(tool.out);
    assert_non_null(strstr(text, "<span class=\"aside\">preempted</span>"));
}

static void an_empty_list_says_so(void **state)
{
    (void)state;
    rows = blank_rows("rounds", 0);
    list(web_list_rounds, 0, 0);
    assert_non_null(strstr(text, "No round yet"));
    web_list_ranks(&tool, NULL, 0);
    fflush(tool.out);
    assert_non_null(strstr(text, "No rank has joined."));
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rounds_stand_newest_first_and_only_those_of_the_page),
        T(a_duration_that_is_not_known_is_a_dash),
        T(launches_tell_how_they_ended),
        T(events_of_a_page_behind_the_last_are_none),
        T(a_rank_that_is_stuck_or_left_tells_more),
        T(an_empty_list_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
