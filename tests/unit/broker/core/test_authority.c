/* Who may say what: each message of the wire, from each role, for its own job and for another, with
 * a key that counts and with one that does not. The expected cells are written here once more, by
 * role, and not taken from the table. */
#include "broker/core/contract/authority.h"
#include "schema/sql/queries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NOW 1000

enum { UP, DOWN };

static const struct {
    enum wire_type type;
    int way;
} all[] = {
#define MSG(TYPE, number, way, ...) {WIRE_##TYPE, way},
#include "schema/wire/wire.def"
#undef MSG
};

static const enum wire_type viewers[] = {WIRE_HEARTBEAT, WIRE_QUERY};
static const enum wire_type operators[] = {WIRE_HEARTBEAT, WIRE_QUERY,  WIRE_NOTICE, WIRE_CANCEL,
                                           WIRE_PIN,       WIRE_UNPIN,  WIRE_DROP,   WIRE_GONE,
                                           WIRE_SAVE_NOW,  WIRE_FORGET, WIRE_IMPORT};
static const enum wire_type not_nodes[] = {WIRE_SAVE_NOW, WIRE_FORGET, WIRE_IMPORT};

static bool among(enum wire_type type, const enum wire_type *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == type)
            return true;
    return false;
}

static bool expected(enum key_role role, enum wire_type type, int way)
{
    if (way == DOWN)
        return false;
    if (role == KEY_NODE)
        return !among(type, not_nodes, sizeof not_nodes / sizeof *not_nodes);
    if (role == KEY_OPERATOR)
        return among(type, operators, sizeof operators / sizeof *operators);
    return role == KEY_VIEWER && among(type, viewers, sizeof viewers / sizeof *viewers);
}

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

static void every_message_has_the_roles_that_may_send_it(void **state)
{
    struct key_grant grant = {.name = "k", .jobs = "words"};
    size_t cells = 0;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (grant.role = KEY_NOBODY; grant.role < KEY_ROLE_COUNT; grant.role++, cells++)
            if (allows(&grant, all[i].type, "words") !=
                expected(grant.role, all[i].type, all[i].way))
                fail_msg("%s by a %s", wire_type_name(all[i].type), key_role_name(grant.role));
    assert_true(cells > 200);
}

static void no_message_of_another_job_or_of_none_is_taken(void **state)
{
    static const char *const jobs[] = {"other", "words2", "word", "", NULL};
    struct key_grant grant = {.name = "k", .jobs = "words"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (grant.role = KEY_NOBODY; grant.role < KEY_ROLE_COUNT; grant.role++)
            for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++)
                if (allows(&grant, all[i].type, jobs[j]))
                    fail_msg("%s by a %s of another job", wire_type_name(all[i].type),
                             key_role_name(grant.role));
}

static void no_message_is_taken_with_a_key_that_does_not_count(void **state)
{
    const struct key_grant grants[] = {
        {.name = "k", .jobs = "*", .revoked_unix_ms = 1},
        {.name = "k", .jobs = "*", .expires_unix_ms = NOW},
        {.name = "k", .jobs = "*", .from_unix_ms = NOW + 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t g = 0; g < sizeof grants / sizeof *grants; g++)
            for (enum key_role role = KEY_NODE; role < KEY_ROLE_COUNT; role++) {
                struct key_grant grant = grants[g];

                grant.role = role;
                assert_false(allows(&grant, all[i].type, "words"));
                assert_false(authority_hears(&grant, "words", NOW));
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
    assert_non_null(strstr(err.text, "keys for all jobs"));
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
        cmocka_unit_test(every_message_has_the_roles_that_may_send_it),
        cmocka_unit_test(no_message_of_another_job_or_of_none_is_taken),
        cmocka_unit_test(no_message_is_taken_with_a_key_that_does_not_count),
        cmocka_unit_test(events_are_heard_by_those_who_may_see_the_job),
        cmocka_unit_test(the_brokers_own_state_is_for_keys_of_all_jobs),
        cmocka_unit_test(a_type_that_is_none_is_not_taken),
    };

    return cmocka_run_group_tests_name("authority", tests, NULL, NULL);
}
