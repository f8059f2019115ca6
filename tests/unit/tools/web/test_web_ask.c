/* How `muster web` asks: answers are kept for a moment, orders never, and after a failure nobody
 * waits for the broker again. */
#include "tools/web/ask.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct web web;
static struct tool tool;
static int made;

static int make(struct web *of, struct tool *inner, const struct web_request *request)
{
    (void)of;
    assert_true(inner->kept);
    fprintf(inner->out, "%d of %s", ++made,
            inner->values[OPTION_JOB] == NULL ? "all" : inner->values[OPTION_JOB]);
    return request->number > 0 ? (int)request->number : TOOL_DONE;
}

static int make_failing(struct web *of, struct tool *inner, const struct web_request *request)
{
    (void)of, (void)request;
    fprintf(inner->out, "half of it");
    made++;
    return tool_fail(TOOL_UNREACHABLE, "no broker answers");
}

static int setup(void **state)
{
    (void)state;
    /* A broker, and a client that is open: ask_check_place has nothing to do. */
    tool = (struct tool){.place = "tcp://127.0.0.1:1", .client = (muster_client_t *)&made};
    web = (struct web){.tool = &tool};
    made = 0;
    return pthread_mutex_init(&web.lock, NULL);
}

static int teardown(void **state)
{
    (void)state;
    web_forget_all(&web);
    assert_int_equal(web.kept_bytes, 0);
    return pthread_mutex_destroy(&web.lock);
}

static void is_answered(const char *key, const char *expected)
{
    const struct web_request request = {.job = "train"};
    struct web_answer *answer = web_ask(&web, key, make, &request);

    assert_int_equal(answer->code, TOOL_DONE);
    assert_string_equal(answer->body, expected);
    assert_int_equal(answer->size, strlen(expected));
    web_release(answer);
}

/* As if so many ms had passed. */
static void age(int64_t ms)
{
    for (size_t i = 0; i < WEB_KEPT_MAX; i++)
        if (web.kept[i].answer != NULL)
            web.kept[i].answer->made_ms -= ms;
    web.trouble_ms -= ms;
}

static void an_answer_is_given_again_for_a_moment_and_to_its_own_key(void **state)
{
    (void)state;
    is_answered("a", "1 of train");
    is_answered("a", "1 of train");
    is_answered("b", "2 of train");
    age(WEB_FRESH_MS);
    is_answered("a", "3 of train");
}

static void an_answer_that_took_long_is_kept_ten_times_as_long(void **state)
{
    (void)state;
    is_answered("a", "1 of train");
    ask_find(&web, "a")->answer->cost_ms = WEB_FRESH_MS;
    age(9 * WEB_FRESH_MS);
    is_answered("a", "1 of train");
    age(WEB_FRESH_MS);
    is_answered("a", "2 of train");
}

static void each_order_is_carried_out(void **state)
{
    const struct web_request request = {.job = "train"};

    (void)state;
    for (int i = 1; i <= 2; i++) {
        web_release(web_order(&web, make, &request));
        assert_int_equal(made, i);
    }
    assert_int_equal(web.kept_bytes, 0);
}

static void after_a_failure_nobody_waits_for_the_broker_again(void **state)
{
    const struct web_request request = {.job = ""};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct web_answer *answer = web_ask(&web, "a", make_failing, &request);

        assert_int_equal(answer->code, TOOL_UNREACHABLE);
        assert_string_equal(answer->body, "no broker answers");
        web_release(answer);
        assert_int_equal(made, 1);
    }
    assert_string_equal(web.trouble, "no broker answers");
    age(WEB_BROKEN_MS);
    is_answered("a", "2 of train");
    assert_string_equal(web.trouble, "");
}

static void an_answer_of_no_is_an_answer(void **state)
{
    const struct web_request request = {.number = TOOL_NO};
    struct web_answer *answer;

    (void)state;
    answer = web_ask(&web, "a", make, &request);
    assert_int_equal(answer->code, TOOL_DONE);
    assert_string_equal(answer->body, "1 of all");
    web_release(answer);
}

static void the_answer_that_was_not_used_for_longest_makes_room(void **state)
{
    (void)state;
    for (int i = 0; i < WEB_KEPT_MAX; i++) {
        char key[16];

        snprintf(key, sizeof key, "%d", i);
        web_release(web_ask(&web, key, make, &(struct web_request){.job = "train"}));
        ask_find(&web, key)->used_ms = i == 5 ? 1 : 1000;
    }
    is_answered("one more", "33 of train");
    assert_null(ask_find(&web, "5"));
    assert_non_null(ask_find(&web, "0"));
}

static void an_answer_that_is_read_outlives_its_place(void **state)
{
    struct web_answer *answer;

    (void)state;
    answer = web_ask(&web, "a", make, &(struct web_request){.job = "train"});
    web_forget_all(&web);
    assert_string_equal(answer->body, "1 of train");
    web_release(answer);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_is_given_again_for_a_moment_and_to_its_own_key),
        T(an_answer_that_took_long_is_kept_ten_times_as_long),
        T(each_order_is_carried_out),
        T(after_a_failure_nobody_waits_for_the_broker_again),
        T(an_answer_of_no_is_an_answer),
        T(the_answer_that_was_not_used_for_longest_makes_room),
        T(an_answer_that_is_read_outlives_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
