/* Who may say what: each message of the wire, from each role, for its own job and for another, with
 * a key that counts and with one that does not. The expected cells are those of
 * tests/support/authority_cells.c. prog_cells says the same messages over real sockets. */
#include "broker/core/contract/authority.h"
#include "schema/sql/queries.h"
#include "tests/support/authority_cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NOW 1000
#define TAKEN_CELLS (5 * (44 + 12 + 2)) /* of nodes, operators, viewers */

static bool allows(const struct key_grant *grant, enum wire_type type, const char *job)
{
    struct wire_msg message = {.type = type, .up.job = job};
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = authority_check(grant, &message, NOW, &err);

    if (status != MUSTER_OK) {
        assert_int_equal(status, MUSTER_E_AUTH);
        assert_true(strlen(err.text) > 20);
    }
    return status == MUSTER_OK;
}

/* A column of the matrix: the key and the job that the message is about, as seen by a client that
 * is let in. Who is not (no key, or another broker's) gets no message to the broker: test_door. */
static const struct column {
    const char *name, *jobs, *job;
    int64_t from, expires, revoked;
    bool counts;
} columns[] = {
    {"its own job", "words", "words", 0, 0, 0, true},
    {"a job of its prefix", "wor*", "words", 0, 0, 0, true},
    {"any job, with a key for all", "*", "words", 0, 0, 0, true},
    {"no job, with a key for all", "*", "", 0, 0, 0, true},
    {"until the last moment", "words", "words", NOW, NOW + 1, 0, true},
    {"another job", "words", "other", 0, 0, 0, false},
    {"a job that is longer", "words", "words2", 0, 0, 0, false},
    {"a job that is shorter", "words", "word", 0, 0, 0, false},
    {"a job beside its prefix", "wor*", "wo", 0, 0, 0, false},
    {"no job", "words", "", 0, 0, 0, false},
    {"no job, which is not even there", "words", NULL, 0, 0, 0, false},
    {"an expired key", "*", "words", 0, NOW, 0, false},
    {"a revoked key", "*", "words", 0, 0, 1, false},
    {"a key that is not valid yet", "*", "words", NOW + 1, 0, 0, false},
};
#define COLUMNS (sizeof columns / sizeof *columns)

/* Message x role x column, each cell. */
static void every_cell_of_the_matrix_is_as_written(void **state)
{
    size_t cells = 0, taken = 0;

    (void)state;
    for (size_t i = 0; i < authority_message_count; i++)
        for (enum key_role role = KEY_NOBODY; role < KEY_ROLE_COUNT; role++)
            for (size_t c = 0; c < COLUMNS; c++, cells++) {
                struct key_grant grant = {.name = "k",
                                          .role = role,
                                          .from_unix_ms = columns[c].from,
                                          .expires_unix_ms = columns[c].expires,
                                          .revoked_unix_ms = columns[c].revoked};
                bool wanted = columns[c].counts && authority_cell(role, &authority_messages[i]);

                snprintf(grant.jobs, sizeof grant.jobs, "%s", columns[c].jobs);
                if (allows(&grant, authority_messages[i].type, columns[c].job) != wanted)
                    fail_msg("%s by a %s, for %s", wire_type_name(authority_messages[i].type),
                             key_role_name(role), columns[c].name);
                taken += wanted;
            }
    assert_int_equal(cells, authority_message_count * KEY_ROLE_COUNT * COLUMNS);
    assert_int_equal(taken, TAKEN_CELLS);
}

/* A key that is good may seem not to be: then it is the clock. */
static void a_key_that_time_refuses_is_told_of_the_clock(void **state)
{
    struct wire_msg message = {.type = WIRE_SAVE_NOW, .up.job = "words"};
    struct key_grant grant = {.name = "k", .jobs = "words", .role = KEY_OPERATOR};
    struct muster_error err = {.status = MUSTER_OK};

    (void)state;
    grant.expires_unix_ms = NOW;
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_E_AUTH);
    assert_non_null(strstr(err.text, "has expired: ask whoever runs the broker for a new one, or"));
    assert_non_null(strstr(err.text, "clock"));
    grant.from_unix_ms = NOW + 1;
    grant.expires_unix_ms = 0;
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_E_AUTH);
    assert_non_null(strstr(err.text, "clock"));
    grant.revoked_unix_ms = 1;
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_E_AUTH);
    assert_null(strstr(err.text, "clock"));
}

static void nothing_is_heard_with_a_key_that_does_not_count(void **state)
{
    (void)state;
    for (size_t c = 0; c < COLUMNS; c++) {
        struct key_grant grant = {.name = "k",
                                  .role = KEY_VIEWER,
                                  .from_unix_ms = columns[c].from,
                                  .expires_unix_ms = columns[c].expires,
                                  .revoked_unix_ms = columns[c].revoked};

        snprintf(grant.jobs, sizeof grant.jobs, "%s", columns[c].jobs);
        assert_int_equal(authority_hears(&grant, columns[c].job, NOW), columns[c].counts);
    }
}

static void events_are_heard_by_those_who_may_see_the_job(void **state)
{
    struct key_grant grant = {.name = "k", .jobs = "words*", .role = KEY_VIEWER};

    (void)state;
    assert_true(authority_hears(&grant, "words", NOW));
    assert_true(authority_hears(&grant, "words-2", NOW));
    assert_false(authority_hears(&grant, "word", NOW));
    assert_false(authority_hears(&grant, "", NOW));
}

static void the_brokers_own_state_is_for_keys_of_all_jobs(void **state)
{
    struct wire_msg message = {.type = WIRE_QUERY, .up.job = "words", .u.query.name = QUERY_BROKER};
    struct key_grant grant = {.name = "k", .jobs = "words", .role = KEY_OPERATOR};
    struct muster_error err = {.status = MUSTER_OK};

    (void)state;
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_E_AUTH);
    assert_non_null(strstr(err.text, "key for all jobs"));
    message.up.job = "";
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_E_AUTH);
    snprintf(grant.jobs, sizeof grant.jobs, "*");
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_OK);
    grant.role = KEY_VIEWER;
    assert_int_equal(authority_check(&grant, &message, NOW, &err), MUSTER_OK);
}

static void a_type_that_is_none_is_not_taken(void **state)
{
    struct key_grant grant = {.name = "k", .jobs = "*", .role = KEY_NODE};

    (void)state;
    assert_false(allows(&grant, WIRE_NONE, "words"));
    assert_false(allows(&grant, (enum wire_type)200, "words"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_of_the_matrix_is_as_written),
        cmocka_unit_test(a_key_that_time_refuses_is_told_of_the_clock),
        cmocka_unit_test(nothing_is_heard_with_a_key_that_does_not_count),
        cmocka_unit_test(events_are_heard_by_those_who_may_see_the_job),
        cmocka_unit_test(the_brokers_own_state_is_for_keys_of_all_jobs),
        cmocka_unit_test(a_type_that_is_none_is_not_taken),
    };

    return cmocka_run_group_tests_name("authority", tests, NULL, NULL);
}
