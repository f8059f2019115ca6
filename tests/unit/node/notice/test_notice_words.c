/* What people and machines write about notices: the list of sources, dates, a file's line, DMI. */
#include "node/notice/base/times.h"
#include "node/notice/line.h"
#include "node/notice/providers/platform.h"
#include "node/notice/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIX INT64_C(1587748304000) /* 2020-04-24T17:11:44Z */
#define BOOT INT64_C(7000000)

static const struct notice_now now = {.boot_ms = BOOT, .unix_ms = UNIX};

static void a_list_has_names_arguments_and_escaped_commas(void **state)
{
    struct source_list list;

    (void)state;
    assert_int_equal(sources_parse(" signal, ec2,,file:/run/x:y,command:a\\,b c", &list, NULL),
                     MUSTER_OK);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.items[1].name, "ec2");
    assert_string_equal(list.items[2].name, "file");
    assert_string_equal(list.items[2].argument, "/run/x:y");
    assert_string_equal(list.items[3].argument, "a,b c");
    assert_int_equal(sources_parse(NULL, &list, NULL), MUSTER_OK);
    assert_int_equal(list.count, 0);
}

static void a_wrong_list_says_what_there_is(void **state)
{
    struct source_list list;
    struct muster_error err;

    (void)state;
    assert_int_equal(sources_parse("ec3", &list, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"ec3\""));
    assert_non_null(strstr(err.text, "file:ARGUMENT"));
    assert_non_null(strstr(err.text, "ec2"));
    assert_int_equal(sources_parse("file", &list, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "file:..."));
    assert_int_equal(
        sources_parse("ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2,ec2", &list, &err),
        MUSTER_E_ARGUMENT);
    assert_int_equal(sources_parse("a-name-of-more-than-thirty-one-bytes", &list, &err),
                     MUSTER_E_ARGUMENT);
}

static void a_variable_that_says_neither_yes_nor_no_is_named(void **state)
{
    static const char *const fine[] = {"", "0", "1", "true", "False"};
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        setenv("MUSTER_AZURE_ACKNOWLEDGE", fine[i], 1);
        assert_int_equal(sources_check_environment(&err), MUSTER_OK);
    }
    setenv("MUSTER_AZURE_ACKNOWLEDGE", "yes", 1);
    assert_int_equal(sources_check_environment(&err), MUSTER_E_ARGUMENT);
    assert_string_equal(err.text, "MUSTER_AZURE_ACKNOWLEDGE is \"yes\"; give 0 or 1");
    unsetenv("MUSTER_AZURE_ACKNOWLEDGE");
    assert_int_equal(sources_check_environment(&err), MUSTER_OK);
}

static int64_t read_by(bool (*reader)(const char *text, int64_t *ret), const char *text)
{
    int64_t unix_ms = -7;

    return reader(text, &unix_ms) ? unix_ms : -1;
}

static void dates_are_read_in_each_form(void **state)
{
    int64_t unix_ms;

    (void)state;
    assert_int_equal(read_by(times_rfc3339, "2020-04-24T17:11:44Z"), UNIX);
    assert_int_equal(read_by(times_rfc3339, "2020-04-24T19:11:44.250+02:00"), UNIX + 250);
    assert_int_equal(read_by(times_rfc3339, "1970-01-01T00:00:00Z"), 0);
    assert_int_equal(read_by(times_rfc3339, "2000-02-29T00:00:00Z"), INT64_C(951782400000));
    assert_int_equal(read_by(times_rfc1123, "24 Apr 2020 17:11:44 GMT"), UNIX);
    assert_int_equal(read_by(times_rfc1123, "Fri, 24 Apr 2020 17:11:44 GMT"), UNIX);
    assert_int_equal(read_by(times_rfc1123, "1 Jan 1970 00:00:01 GMT"), 1000);
    assert_true(times_plain("2020-04-25 01:11:44", 8 * 3600, &unix_ms));
    assert_int_equal(unix_ms, UNIX);
}

static void what_is_no_date_is_none(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "2020-04-24",
                                        "2020-04-24T17:11:44",
                                        "2020-02-30T17:11:44Z",
                                        "2021-02-29T17:11:44Z",
                                        "2020-13-01T17:11:44Z",
                                        "2020-04-24T24:11:44Z",
                                        "2020-04-24T17:11:44Zx",
                                        "2020-04-24T17:11:44.Z",
                                        "1969-04-24T17:11:44Z",
                                        "32 Apr 2020 17:11:44 GMT",
                                        "24 Foo 2020 17:11:44 GMT",
                                        "24 Apr 2020 17:11:44 CET",
                                        "24 Apr 2020 17:11:44 "};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(read_by(times_rfc3339, texts[i]), -1);
        assert_int_equal(read_by(times_rfc1123, texts[i]), -1);
    }
}

static struct notice_item line(const char *text, int64_t written_ms_ago)
{
    struct notice_item item;

    (void)line_parse(text, strlen(text), &now, UNIX - written_ms_ago, &item, NULL);
    return item;
}

static void a_line_may_say_time_kind_and_that_it_stands(void **state)
{
    struct notice_item item = line("", 0);

    (void)state;
    assert_int_equal(item.kind, NOTICE_TERMINATE);
    assert_int_equal(item.deadline_boot_ms, -1);
    assert_true(item.cancellable);
    assert_int_equal(line("+30", 10000).deadline_boot_ms, BOOT + 20000);
    assert_int_equal(line("+30s\nsecond line +1", 0).deadline_boot_ms, BOOT + 30000);
    assert_int_equal(line("+30", 60000).deadline_boot_ms, BOOT); /* it has passed */
    assert_int_equal(line("1587748334", 0).deadline_boot_ms, BOOT + 30000);
    assert_int_equal(line("2020-04-24T17:12:44Z", 0).deadline_boot_ms, BOOT + 60000);
    assert_int_equal(line("time_limit  +5", 0).kind, NOTICE_TIME_LIMIT);
    assert_int_equal(line("freeze", 0).kind, NOTICE_FREEZE);
    assert_false(line("preempt final", 0).cancellable);
    item = line("please stop in 30 minutes, \x01\xff", 0);
    assert_int_equal(item.kind, NOTICE_STOP);
    assert_int_equal(item.deadline_boot_ms, -1); /* 30 is a number of people's */
    assert_string_equal(item.text, "please stop in 30 minutes, ?"
                                   "?");
}

struct odd_line {
    const char *text;
    enum line_sense sense;
    const char *word;
};

/* Who meant a time and is not understood is told so; a reason in plain words is none of that. */
static void what_a_line_means_for_a_time_and_is_none_is_named(void **state)
{
    static const struct odd_line lines[] = {
        {"", LINE_UNDERSTOOD, ""},
        {"preempt", LINE_UNDERSTOOD, ""},
        {"please stop in 30 minutes", LINE_UNDERSTOOD, ""},
        {"final", LINE_UNDERSTOOD, ""},
        {"+30\nabc +x", LINE_UNDERSTOOD, ""},
        {"the host needs 2 new disks", LINE_WORDS_ONLY, "the host needs 2 new disks"},
        {"asdf", LINE_WORDS_ONLY, "asdf"},
        {"+5m", LINE_NO_TIME, "+5m"},
        {"preempt + 30", LINE_NO_TIME, "+"},
        {"stop +-3", LINE_NO_TIME, "+-3"},
        {"30", LINE_NO_TIME, "30"}, /* alone: nothing else can be meant */
        {"-5", LINE_NO_TIME, "-5"},
        {"terminate 12:30", LINE_NO_TIME, "12:30"},
        {"2026-11-21", LINE_NO_TIME, "2026-11-21"},
        {"2026-11-21T12:00:00 preempt", LINE_NO_TIME, "2026-11-21T12:00:00"},
        {"1587748334567x", LINE_NO_TIME, "1587748334567x"},
        {"\x7f"
         "ELF\x02\x01\x01",
         LINE_NO_TEXT, ""},
        {"+30 \xff", LINE_NO_TEXT, ""},
    };
    struct notice_item item;
    char word[LINE_WORD_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        enum line_sense sense =
            line_parse(lines[i].text, strlen(lines[i].text), &now, UNIX, &item, word);
        if (sense != lines[i].sense)
            fail_msg("%s: %d", lines[i].text, sense);
        assert_string_equal(word, lines[i].word);
    }
    assert_int_equal(item.deadline_boot_ms, BOOT + 30000); /* what is understood counts */
}

static void platforms_are_known_by_their_dmi(void **state)
{
    struct platform_facts facts = {.dmi = true};

    (void)state;
    assert_null(platform_source(&facts));
    snprintf(facts.sys_vendor, sizeof facts.sys_vendor, "%s", "QEMU");
    assert_null(platform_source(&facts));
    snprintf(facts.sys_vendor, sizeof facts.sys_vendor, "%s", "Amazon EC2");
    assert_string_equal(platform_source(&facts), "ec2");
    facts = (struct platform_facts){.bios_version = "4.11.amazon"};
    assert_string_equal(platform_source(&facts), "ec2");
    facts = (struct platform_facts){.hypervisor_uuid = "EC2E1916-9099-7CAF-FD21-012345ABCDEF"};
    assert_string_equal(platform_source(&facts), "ec2");
    facts = (struct platform_facts){.product_name = "Google Compute Engine"};
    assert_string_equal(platform_source(&facts), "gce");
    facts = (struct platform_facts){.chassis_asset_tag = "7783-7084-3265-9085-8269-3286-77"};
    assert_string_equal(platform_source(&facts), "azure");
    facts = (struct platform_facts){.product_name = "Alibaba Cloud ECS"};
    assert_string_equal(platform_source(&facts), "alibaba");
    facts = (struct platform_facts){.sys_vendor = "Tencent Cloud"};
    assert_string_equal(platform_source(&facts), "tencent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_names_arguments_and_escaped_commas),
        cmocka_unit_test(a_wrong_list_says_what_there_is),
        cmocka_unit_test(a_variable_that_says_neither_yes_nor_no_is_named),
        cmocka_unit_test(dates_are_read_in_each_form),
        cmocka_unit_test(what_is_no_date_is_none),
        cmocka_unit_test(a_line_may_say_time_kind_and_that_it_stands),
        cmocka_unit_test(what_a_line_means_for_a_time_and_is_none_is_named),
        cmocka_unit_test(platforms_are_known_by_their_dmi),
    };

    return cmocka_run_group_tests_name("notice_words", tests, NULL, NULL);
}
