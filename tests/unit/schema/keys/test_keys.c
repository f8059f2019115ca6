/* Keys as text: the broker's list, a client's file, and which jobs a key covers. */
#include "schema/error.h"
#include "schema/keys/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNER "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY_A "LJf0#!$20U^64Pw)UVTfM9Sj6vQK$8j]rU2]ZsFn"
#define KEY_B "zr#&])MJ6/7dRUz(5iK)Tp1^-o5c4fq#uE/SbogL"

static void a_key_covers_its_jobs_and_no_other(void **state)
{
    static const struct {
        const char *jobs, *job;
        bool covers;
    } cases[] = {
        {"words", "words", true},   {"words", "words2", false}, {"words", "word", false},
        {"words", "", false},       {"words", NULL, false},     {"words*", "words", true},
        {"words*", "words2", true}, {"words*", "word", false},  {"words*", "", false},
        {"words*", NULL, false},    {"*", "words", true},       {"*", "", true},
        {"*", NULL, true},          {"", "words", false},       {"words", "WORDS", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (key_covers(cases[i].jobs, cases[i].job) != cases[i].covers)
            fail_msg("%s and %s", cases[i].jobs, cases[i].job != NULL ? cases[i].job : "no job");
}

static void what_is_no_set_of_jobs_is_refused(void **state)
{
    static const char *const good[] = {"*", "words", "words*", "a.b_c-1*"};
    static const char *const bad[] = {"",    "**",  "w*s", "*s",  "-w",
                                      ".w*", "a b", "a/b", "a\n", "\xc3\xa4*"};
    char long_one[JOB_NAME_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!key_jobs_ok(good[i]))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (key_jobs_ok(bad[i]))
            fail_msg("%s", bad[i]);
    memset(long_one, 'a', sizeof long_one - 1);
    long_one[JOB_NAME_MAX + 1] = '\0';
    assert_false(key_jobs_ok(long_one));
}

static void a_key_counts_from_its_begin_until_its_end(void **state)
{
    struct key_grant grant = {.from_unix_ms = 1000, .expires_unix_ms = 2000};

    (void)state;
    assert_string_equal(key_trouble(&grant, 999), "is not valid yet");
    assert_null(key_trouble(&grant, 1000));
    assert_null(key_trouble(&grant, 1999));
    assert_string_equal(key_trouble(&grant, 2000), "has expired");
    grant.revoked_unix_ms = 1;
    assert_string_equal(key_trouble(&grant, 1500), "was revoked");
    grant = (struct key_grant){.from_unix_ms = 0};
    assert_null(key_trouble(&grant, INT64_MAX));
}

static void a_list_is_read_as_it_was_written(void **state)
{
    const struct key_grant keys[] = {
        {"words", KEY_NODE, "words*", KEY_A, 0, 1893456000000, 0},
        {"boss", KEY_OPERATOR, "*", KEY_B, 5, 0, 1793456000000},
    };
    char text[2 * KEY_LINE_BYTES_MAX + 64] = "# a comment\n\n";
    struct key_grant *read = NULL;
    struct muster_error err;
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        key_grant_write(&keys[i], text + strlen(text));
    assert_int_equal(key_list_read(text, &read, &count, &err), MUSTER_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(read[i].name, keys[i].name);
        assert_string_equal(read[i].jobs, keys[i].jobs);
        assert_string_equal(read[i].public_key, keys[i].public_key);
        assert_int_equal(read[i].role, keys[i].role);
        assert_int_equal(read[i].from_unix_ms, keys[i].from_unix_ms);
        assert_int_equal(read[i].expires_unix_ms, keys[i].expires_unix_ms);
        assert_int_equal(read[i].revoked_unix_ms, keys[i].revoked_unix_ms);
    }
    free(read);
    assert_int_equal(key_list_read("", &read, &count, &err), MUSTER_OK);
    assert_int_equal(count, 0);
    free(read);
}

static void a_damaged_list_is_refused_whole_with_its_line(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a node * " KEY_A " - -\n", "line 1: a key has 7 words, this one 6"},
        {"a node * " KEY_A " - - - more\n", "line 1: a key has 7 words, this one 8"},
        {"\na b node * " KEY_A " - -\n", "line 2: \"b\" is not a role"},
        {"a root * " KEY_A " - - -\n", "\"root\" is not a role"},
        {"a nobody * " KEY_A " - - -\n", "\"nobody\" is not a role"},
        {"-a node * " KEY_A " - - -\n", "\"-a\" is not a key's name"},
        {"a node w*s " KEY_A " - - -\n", "\"w*s\" is not a job's name"},
        {"a node * short - - -\n", "\"short\" is not a public key"},
        {"a node * " KEY_A " x - -\n", "\"x\" is not a time"},
        {"a node * " KEY_A " - -5 -\n", "\"-5\" is not a time"},
        {"a node * " KEY_A " - 99999999999999999999 -\n", "is not a time"},
        {"a node * " KEY_A " - - -\na viewer * " KEY_B " - - -\n",
         "line 2: there are two keys with the name a"},
        {"a node * " KEY_A " - - -\nb viewer * " KEY_A " - - -\n",
         "line 2: a and b have the same public key"},
    };
    struct key_grant *read = NULL;
    struct muster_error err;
    size_t count = 7;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(key_list_read(cases[i].text, &read, &count, &err), MUSTER_E_CORRUPT);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
    }
    assert_null(read);
    assert_int_equal(count, 7);
}

static void a_clients_file_is_read_as_it_was_written(void **state)
{
    const struct key_file file = {"words", KEY_NODE, "words*", 1893456000000,
                                  KEY_A,   KEY_B,    KEY_A,    SIGNER};
    char text[KEY_FILE_BYTES_MAX];
    struct muster_error err;
    struct key_file read;

    (void)state;
    assert_true(key_file_write(&file, text) < sizeof text);
    assert_int_equal(key_file_read(text, &read, &err), MUSTER_OK);
    assert_string_equal(read.name, file.name);
    assert_string_equal(read.jobs, file.jobs);
    assert_string_equal(read.broker_key, file.broker_key);
    assert_string_equal(read.public_key, file.public_key);
    assert_string_equal(read.secret_key, file.secret_key);
    assert_string_equal(read.signer, file.signer);
    assert_int_equal(read.role, file.role);
    assert_int_equal(read.expires_unix_ms, file.expires_unix_ms);
}

/* Without the line nobody has to sign; with a damaged one nothing is taken for that. */
static void a_line_signer_may_be_missing_and_must_not_be_damaged(void **state)
{
    struct key_file file = {"words", KEY_NODE, "words*", 0, KEY_A, KEY_B, KEY_A, ""};
    char text[KEY_FILE_BYTES_MAX];
    struct muster_error err;
    struct key_file read;

    (void)state;
    key_file_write(&file, text);
    assert_null(strstr(text, "signer"));
    assert_int_equal(key_file_read(text, &read, &err), MUSTER_OK);
    assert_string_equal(read.signer, "");
    snprintf(file.signer, sizeof file.signer, "%s", SIGNER);
    key_file_write(&file, text);
    text[strlen(text) - 2] = '\0';
    assert_int_equal(key_file_read(text, &read, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "signer"));
}

/* Cut anywhere, it is whole or it is refused; and no error shows the secret. */
static void a_clients_file_that_is_cut_is_refused(void **state)
{
    const struct key_file file = {"words", KEY_NODE, "words*", 0, KEY_A, KEY_A, KEY_B, ""};
    char text[KEY_FILE_BYTES_MAX], cut[KEY_FILE_BYTES_MAX];
    struct muster_error err;
    struct key_file read;
    size_t size = key_file_write(&file, text);

    (void)state;
    for (size_t length = 0; length < size - 1; length++) {
        snprintf(cut, sizeof cut, "%.*s", (int)length, text);
        assert_int_equal(key_file_read(cut, &read, &err), MUSTER_E_CORRUPT);
        for (size_t at = 4; at <= KEY_TEXT_BYTES; at += 4) {
            char part[KEY_TEXT_BYTES + 1];

            snprintf(part, sizeof part, "%.*s", (int)at, KEY_B);
            assert_null(strstr(err.text, part));
        }
    }
    assert_int_equal(key_file_read("secret " KEY_B, &read, &err), MUSTER_E_CORRUPT);
    assert_null(strstr(err.text, KEY_B));
    memset(cut, 'x', sizeof cut - 1);
    cut[sizeof cut - 1] = '\0';
    assert_int_equal(key_file_read(cut, &read, &err), MUSTER_E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_covers_its_jobs_and_no_other),
        cmocka_unit_test(what_is_no_set_of_jobs_is_refused),
        cmocka_unit_test(a_key_counts_from_its_begin_until_its_end),
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(a_damaged_list_is_refused_whole_with_its_line),
        cmocka_unit_test(a_clients_file_is_read_as_it_was_written),
        cmocka_unit_test(a_line_signer_may_be_missing_and_must_not_be_damaged),
        cmocka_unit_test(a_clients_file_that_is_cut_is_refused),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
