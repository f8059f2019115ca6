/* The broker's list of keys while it changes, and while the clock does. */
#include "broker/bus_keys.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_A "LJf0#!$20U^64Pw)UVTfM9Sj6vQK$8j]rU2]ZsFn"
#define KEY_B "zr#&])MJ6/7dRUz(5iK)Tp1^-o5c4fq#uE/SbogL"
#define NOW INT64_C(1795000000000)
#define DAY INT64_C(86400000)
#define YEAR (365 * DAY)

static char dir[SCRATCH_PATH_MAX];
static const char *db;

/* As `muster key` does: another file of that name. */
static void write_file(const char *suffix, const char *text)
{
    const char *path = scratch_path(dir, "muster.db%s", suffix);
    const char *part = scratch_path(dir, "part");

    scratch_write(part, text, strlen(text));
    assert_int_equal(chmod(part, 0600), 0);
    assert_int_equal(rename(part, path), 0);
}

static struct bus_keys *opened(const char *list)
{
    struct bus_keys *keys;
    struct muster_error err;

    write_file(".key", KEY_B "\n");
    write_file(".keys", list);
    if (bus_keys_open(db, &keys, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    return keys;
}

/* Is a key less than it was at the last look? */
static bool loses(struct bus_keys *keys, int64_t now_unix_ms)
{
    struct muster_error err;
    bool lost;

    assert_int_equal(bus_keys_look(keys, now_unix_ms, &lost, &err), MUSTER_OK);
    return lost;
}

static const char *trouble(const struct bus_keys *keys, int64_t now_unix_ms)
{
    return key_trouble(bus_keys_public(keys, KEY_A), now_unix_ms);
}

static void a_clock_that_jumps_a_year_ends_keys_and_back_lets_them_in(void **state)
{
    char list[512];
    struct bus_keys *keys;

    (void)state;
    snprintf(list, sizeof list, "words node words " KEY_A " %lld %lld -\n", (long long)(NOW - DAY),
             (long long)(NOW + 30 * DAY));
    keys = opened(list);
    assert_false(loses(keys, NOW));
    assert_null(trouble(keys, NOW));
    assert_true(loses(keys, NOW + YEAR));
    assert_string_equal(trouble(keys, NOW + YEAR), "has expired");
    assert_false(loses(keys, NOW + YEAR + 1));
    assert_false(loses(keys, NOW));
    assert_null(trouble(keys, NOW));
    assert_true(loses(keys, NOW - YEAR));
    assert_string_equal(trouble(keys, NOW - YEAR), "is not valid yet");
    assert_false(loses(keys, NOW + 1));
    bus_keys_close(&keys);
}

static void a_key_loses_by_a_change_of_the_list(void **state)
{
    static const struct {
        const char *list;
        bool loses;
    } steps[] = {
        {"words node words " KEY_A " - - -\nmore viewer * " KEY_B " - - -\n", false}, /* one more */
        {"words node words " KEY_A " - - -\n", true},                                 /* one less */
        {"words node words " KEY_A " - 1995000000000 -\n", false},  /* a later end */
        {"words viewer words " KEY_A " - - -\n", true},             /* a role */
        {"words viewer word* " KEY_A " - - -\n", true},             /* its jobs */
        {"words viewer word* " KEY_A " - - 1794999999999\n", true}, /* revoked */
        {"words viewer word* " KEY_A " - - 1794999999999\n# nothing else\n", false},
    };
    struct bus_keys *keys = opened("words node words " KEY_A " - - -\n");

    (void)state;
    assert_false(loses(keys, NOW));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_false(bus_keys_changed(keys));
        write_file(".keys", steps[i].list);
        assert_true(bus_keys_changed(keys));
        if (loses(keys, NOW) != steps[i].loses)
            fail_msg("step %zu", i);
    }
    assert_string_equal(trouble(keys, NOW), "was revoked");
    bus_keys_close(&keys);
}

static int in_scratch(void **state)
{
    static char path[SCRATCH_PATH_MAX + 16];

    (void)state;
    scratch_make(dir);
    snprintf(path, sizeof path, "%s/muster.db", dir);
    db = path;
    return 0;
}

static int scratch_is_over(void **state)
{
    (void)state;
    scratch_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_jumps_a_year_ends_keys_and_back_lets_them_in),
        cmocka_unit_test(a_key_loses_by_a_change_of_the_list),
    };

    return cmocka_run_group_tests(tests, in_scratch, scratch_is_over);
}
