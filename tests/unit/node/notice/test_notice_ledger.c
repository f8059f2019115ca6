/* ledger and sets: what is told, told again, withdrawn. */
#include "node/notice/ledger.h"
#include "tests/support/ledger_pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000

static struct ledger ledger;
static struct ledger_out out;

static int set_up(void **state)
{
    (void)state;
    ledger_init(&ledger);
    return 0;
}

static struct notice_item item(const char *key, int64_t deadline, bool cancellable)
{
    struct notice_item made = {
        .kind = NOTICE_PREEMPT, .deadline_boot_ms = deadline, .cancellable = cancellable};

    snprintf(made.key, sizeof made.key, "%s", key);
    return made;
}

/* The topic says these, up to an empty key. Text of what was told: "+1 -1 ..." */
static const char *say_in(const char *source, unsigned topic, int64_t now, size_t count,
                          const struct notice_item *items)
{
    static char text[512];
    struct notice_set set = {.count = 0};
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        notice_set_add(&set, &items[i]);
    ledger_say(&ledger, source, topic, &set, now, &out);
    text[0] = '\0';
    for (size_t i = 0; i < out.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%c%d", i > 0 ? " " : "",
                                 out.records[i].withdrawn ? '-' : '+', (int)out.records[i].number);
    return text;
}
#define SAY(...)                                                                                  \
    say_in("s", 0, NOW, sizeof((struct notice_item[]){__VA_ARGS__}) / sizeof(struct notice_item), \
           (struct notice_item[]){__VA_ARGS__})
#define SAY_NOTHING() say_in("s", 0, NOW, 0, NULL)

static void a_notice_is_told_once(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 30000, false)), "+1");
    assert_string_equal(SAY(item("a", NOW + 30000, false)), "");
    assert_true(ledger_pending(&ledger, "s"));
    assert_false(ledger_pending(&ledger, "t"));
}

static void what_has_begun_is_not_taken_back_by_silence(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 300, true)), "+1");
    assert_string_equal(SAY(item("a", NOW, false)), ""); /* the same time */
    assert_string_equal(SAY_NOTHING(), "");
}

static void a_key_is_printable_whatever_its_source_sent(void **state)
{
    struct notice_set set = {.count = 0};
    struct notice_item made = item("a\x01\xc3\xa4", NOW, false);

    (void)state;
    snprintf(made.text, sizeof made.text, "text\n\x7f");
    notice_set_add(&set, &made);
    notice_set_add(&set, &made);
    assert_int_equal(set.count, 1);
    assert_string_equal(set.items[0].key, "a???");
    assert_string_equal(set.items[0].text, "text??");
}

static void a_later_time_is_no_news_and_never_returns(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 30000, false)), "+1");
    assert_string_equal(SAY(item("a", NOW + 60000, false)), "");
    assert_string_equal(SAY(item("a", NOW + 45000, false)),
                        ""); /* earlier than the last, not the first */
    assert_string_equal(SAY(item("a", -1, false)), "");
}

static void an_earlier_time_is_told_and_the_middle_one_withdrawn(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 30000, true)), "+1");
    assert_string_equal(SAY(item("a", NOW + 20000, true)), "+2");
    assert_string_equal(SAY(item("a", NOW + 10000, true)), "+3 -2");
    assert_string_equal(SAY_NOTHING(), "-1 -3");
}

static void a_time_that_becomes_known_is_told(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", -1, true)), "+1");
    assert_string_equal(SAY(item("a", NOW + 90000, true)), "+2");
    assert_int_equal(out.records[0].item.deadline_boot_ms, NOW + 90000);
}

static void only_the_cancellable_is_withdrawn_and_may_come_back(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("soft", NOW + 1, true), item("hard", NOW + 2, false)), "+1 +2");
    assert_string_equal(SAY_NOTHING(), "-1");
    assert_string_equal(SAY(item("soft", NOW + 1, true), item("hard", NOW + 2, false)), "+3");
}

static void another_topic_and_another_source_withdraw_nothing(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 1000, true)), "+1");
    assert_string_equal(say_in("s", 1, NOW, 0, NULL), "");
    assert_string_equal(say_in("t", 0, NOW, 0, NULL), "");
    assert_string_equal(SAY_NOTHING(), "-1");
}

static void what_is_far_away_is_told_when_it_comes_near(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + LEDGER_HORIZON_MS + 1000, true)), "");
    assert_false(ledger_pending(&ledger, "s"));
    ledger_tick(&ledger, NOW + 999, &out);
    assert_int_equal(out.count, 0);
    ledger_tick(&ledger, NOW + 1000, &out);
    assert_int_equal(out.count, 1);
    assert_int_equal(out.records[0].number, 1);
}

static void what_is_far_away_and_withdrawn_is_never_told(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + LEDGER_HORIZON_MS + 1000, true)), "");
    assert_string_equal(SAY_NOTHING(), "");
    ledger_tick(&ledger, NOW + 10000, &out);
    assert_int_equal(out.count, 0);
}

static void reports_take_no_place_from_ends(void **state)
{
    struct notice_item reports[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        char key[16];

        snprintf(key, sizeof key, "r%d", i);
        reports[i] = item(key, NOW + i, true);
        reports[i].kind = NOTICE_FREEZE;
    }
    assert_string_equal(say_in("s", 0, NOW, 4, reports), "+1");
    assert_false(ledger_pending(&ledger, "s"));
    assert_string_equal(say_in("s", 1, NOW, 1, (struct notice_item[]){item("end", NOW + 9, true)}),
                        "+2");
    assert_string_equal(say_in("s", 0, NOW, 3, reports + 1), "-1"); /* a place is free ... */
    ledger_tick(&ledger, NOW, &out);
    assert_int_equal(out.count, 1); /* ... for the next */
}

static void of_many_ends_a_sooner_one_is_told_still(void **state)
{
    struct notice_item items[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        char key[16];

        snprintf(key, sizeof key, "e%d", i);
        items[i] = item(key, NOW + 1000 + i, true);
    }
    assert_string_equal(say_in("s", 0, NOW, 8, items), "+1 +2 +3 +4");
    assert_string_equal(say_in("t", 0, NOW, 1, (struct notice_item[]){item("z", NOW + 500, true)}),
                        "+5");
    assert_string_equal(say_in("u", 0, NOW, 1, (struct notice_item[]){item("z", NOW + 100, true)}),
                        "");
}

/* An operator took it back: what its source says at every look is the same notice still. */
static void
what_was_cancelled_from_outside_stays_so_until_its_source_says_something_else(void **state)
{
    struct notice_item other = item("a", -1, true);

    (void)state;
    snprintf(other.text, sizeof other.text, "another reason");
    assert_string_equal(SAY(item("a", -1, true)), "+1");
    ledger_forget(&ledger, 1);
    assert_false(ledger_pending(&ledger, "s"));
    assert_string_equal(SAY(item("a", -1, true)), "");
    ledger_tick(&ledger, NOW, &out);
    assert_int_equal(out.count, 0);
    assert_string_equal(SAY(other), "+2");
    ledger_forget(&ledger, 2);
    assert_string_equal(SAY(other), "");
    assert_string_equal(SAY_NOTHING(), ""); /* there is nothing to withdraw */
    assert_string_equal(SAY(other), "+3");
}

static void what_was_cancelled_from_outside_comes_back_with_another_time(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 60000, false)), "+1");
    ledger_forget(&ledger, 1);
    assert_string_equal(SAY(item("a", NOW + 60400, false)), ""); /* clocks */
    assert_string_equal(say_in("s", 0, NOW + 5000, 1,            /* 60 s from each look on */
                               (struct notice_item[]){item("a", NOW + 65000, false)}),
                        "");
    assert_string_equal(SAY(item("a", NOW + 90000, false)), "+2"); /* later is another, too */
    ledger_forget(&ledger, 2);
    assert_string_equal(SAY(item("a", NOW + 60000, false)), "+3");
    ledger_forget(&ledger, 3);
    assert_string_equal(SAY(item("a", -1, false)), "+4");
}

/* A second SIGTERM is another event, whatever became of the first. */
static void a_cancelled_signal_is_told_when_it_comes_again(void **state)
{
    const struct notice_item term = item("signal", -1, false);

    (void)state;
    assert_string_equal(say_in("signal", 15, NOW, 1, &term), "+1");
    ledger_forget(&ledger, 1);
    assert_string_equal(say_in("signal", 15, NOW, 1, &term), "+2");
}

static void a_cancelled_record_leaves_the_other_of_its_notice(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 60000, true)), "+1");
    assert_string_equal(SAY(item("a", NOW + 30000, true)), "+2");
    ledger_forget(&ledger, 2);
    assert_true(ledger_pending(&ledger, "s"));
    assert_string_equal(SAY(item("a", NOW + 30000, true)), "");
    assert_string_equal(SAY_NOTHING(), "-1");
    assert_string_equal(SAY(item("a", NOW + 60000, true)), "+3");
    assert_string_equal(SAY(item("a", NOW + 30000, true)), "+4");
    ledger_forget(&ledger, 3);
    assert_string_equal(SAY_NOTHING(), "-4");
}

static struct notice_item report(const char *key, int64_t deadline)
{
    struct notice_item made = item(key, deadline, true);

    made.kind = NOTICE_FREEZE;
    return made;
}

static void a_report_that_becomes_an_end_is_told_whatever_its_time(void **state)
{
    (void)state;
    assert_string_equal(SAY(report("a", NOW + 60000)), "+1");
    assert_string_equal(SAY(item("a", NOW + 120000, true)), "+2 -1");
    assert_true(ledger_pending(&ledger, "s"));
    assert_string_equal(SAY_NOTHING(), "-2");
    assert_string_equal(SAY(report("a", -1)), "+3");
    assert_string_equal(SAY(item("a", -1, true)), "+4 -3");
}

static void an_end_is_not_replaced_by_a_report(void **state)
{
    (void)state;
    assert_string_equal(SAY(item("a", NOW + 60000, true)), "+1");
    assert_string_equal(SAY(report("a", NOW + 1000)), "");
    assert_true(ledger_pending(&ledger, "s"));
    assert_string_equal(SAY(item("a", NOW + 60000, true)), "");
    assert_string_equal(SAY_NOTHING(), "-1");
}

static void an_unknown_time_may_be_now(void **state)
{
    struct notice_item items[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        char key[16];

        snprintf(key, sizeof key, "e%d", i);
        items[i] = item(key, NOW + 1000 + i, true);
    }
    assert_string_equal(say_in("s", 0, NOW, 4, items), "+1 +2 +3 +4");
    assert_string_equal(say_in("t", 0, NOW, 1, (struct notice_item[]){item("z", -1, true)}), "+5");
    assert_string_equal(say_in("u", 0, NOW, 1, (struct notice_item[]){item("z", NOW, true)}), "");
}

static void of_too_many_notices_the_most_urgent_stay(void **state)
{
    struct notice_set set = {.count = 0};
    bool first = false;

    (void)state;
    for (int i = 0; i < NOTICE_SET_MAX + 4; i++) {
        char key[16];
        struct notice_item made;

        snprintf(key, sizeof key, "k%d", i);
        made = item(key, NOW + 1000 - i, true);
        notice_set_add(&set, &made);
    }
    assert_int_equal(set.count, NOTICE_SET_MAX);
    for (size_t i = 0; i < set.count; i++) {
        assert_true(set.items[i].deadline_boot_ms <= NOW + 1000 - 4);
        first = first || strcmp(set.items[i].key, "k19") == 0;
    }
    assert_true(first);
}

static void raw_text_is_made_printable(void **state)
{
    char text[NOTICE_TEXT_MAX + 1];
    static const char raw[] = " {\"a\":\r\n\t\x01\xff\"b\"} \n";

    (void)state;
    notice_text(text, raw, sizeof raw - 1);
    assert_string_equal(text, "{\"a\": ?"
                              "?\"b\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_notice_is_told_once, set_up),
        cmocka_unit_test_setup(what_has_begun_is_not_taken_back_by_silence, set_up),
        cmocka_unit_test_setup(a_key_is_printable_whatever_its_source_sent, set_up),
        cmocka_unit_test_setup(a_later_time_is_no_news_and_never_returns, set_up),
        cmocka_unit_test_setup(an_earlier_time_is_told_and_the_middle_one_withdrawn, set_up),
        cmocka_unit_test_setup(a_time_that_becomes_known_is_told, set_up),
        cmocka_unit_test_setup(only_the_cancellable_is_withdrawn_and_may_come_back, set_up),
        cmocka_unit_test_setup(another_topic_and_another_source_withdraw_nothing, set_up),
        cmocka_unit_test_setup(what_is_far_away_is_told_when_it_comes_near, set_up),
        cmocka_unit_test_setup(what_is_far_away_and_withdrawn_is_never_told, set_up),
        cmocka_unit_test_setup(reports_take_no_place_from_ends, set_up),
        cmocka_unit_test_setup(of_many_ends_a_sooner_one_is_told_still, set_up),
        cmocka_unit_test_setup(
            what_was_cancelled_from_outside_stays_so_until_its_source_says_something_else, set_up),
        cmocka_unit_test_setup(what_was_cancelled_from_outside_comes_back_with_another_time,
                               set_up),
        cmocka_unit_test_setup(a_cancelled_signal_is_told_when_it_comes_again, set_up),
        cmocka_unit_test_setup(a_cancelled_record_leaves_the_other_of_its_notice, set_up),
        cmocka_unit_test_setup(a_report_that_becomes_an_end_is_told_whatever_its_time, set_up),
        cmocka_unit_test_setup(an_end_is_not_replaced_by_a_report, set_up),
        cmocka_unit_test_setup(an_unknown_time_may_be_now, set_up),
        cmocka_unit_test(of_too_many_notices_the_most_urgent_stay),
        cmocka_unit_test(raw_text_is_made_printable),
    };

    return cmocka_run_group_tests_name("notice_ledger", tests, NULL, NULL);
}
