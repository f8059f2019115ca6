/* The public calls as other languages make them: defaults by function, the version, and NULL for
 * each handle. */
#include <muster/muster.h>

#include "client/node/options_take.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct muster_error err;

static void refused(enum muster_status status, const char *text)
{
    assert_int_equal(status, MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, text));
}

#define SAME_AS_THE_MACRO(name, macro)                                                       \
    do {                                                                                     \
        static const struct muster_##name expected = macro;                                  \
        struct {                                                                             \
            struct muster_##name options;                                                    \
            unsigned char behind[16];                                                        \
        } given;                                                                             \
                                                                                             \
        memset(&given, 0x5a, sizeof given);                                                  \
        muster_##name##_init(&given.options, sizeof given.options);                          \
        check_same(&given.options, &expected, sizeof expected, given.behind);                \
        memset(&given, 0x5a, sizeof given);                                                  \
        muster_##name##_init(&given.options, sizeof given.options - 8);                      \
        assert_int_equal(given.options.struct_size, sizeof given.options - 8);               \
        assert_int_equal(((unsigned char *)&given.options)[sizeof given.options - 8], 0x5a); \
        muster_##name##_init(NULL, sizeof given.options);                                    \
    } while (0)

static void check_same(const void *given, const void *expected, size_t size,
                       const unsigned char *behind)
{
    const unsigned char *a = given, *b = expected;
    size_t other = 0;

    for (size_t i = 0; i < size; i++)
        other += a[i] != b[i];
    assert_int_equal(other, 0);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(behind[i], 0x5a);
}

static void an_init_function_gives_what_the_macro_gives_and_no_more_bytes(void **state)
{
    (void)state;
    SAME_AS_THE_MACRO(node_options, MUSTER_NODE_OPTIONS_INIT);
    SAME_AS_THE_MACRO(manager_options, MUSTER_MANAGER_OPTIONS_INIT);
    SAME_AS_THE_MACRO(save_request, MUSTER_SAVE_REQUEST_INIT);
    SAME_AS_THE_MACRO(policies, MUSTER_POLICIES_INIT);
    SAME_AS_THE_MACRO(training_state_options, MUSTER_TRAINING_STATE_OPTIONS_INIT);
    SAME_AS_THE_MACRO(coordinator_options, MUSTER_COORDINATOR_OPTIONS_INIT);
    SAME_AS_THE_MACRO(call, MUSTER_CALL_INIT);
    SAME_AS_THE_MACRO(worker_options, MUSTER_WORKER_OPTIONS_INIT);
    SAME_AS_THE_MACRO(read_options, MUSTER_READ_OPTIONS_INIT);
}

/* --- taking ----------------------------------------------------------------------------------- */

/* An older caller's structure ends before `last`; a newer one's has bytes behind ours. */
#define TAKES_EVERY_SIZE(name, macro, last)                                          \
    do {                                                                             \
        const struct muster_##name fresh = macro;                                    \
        struct {                                                                     \
            struct muster_##name options;                                            \
            unsigned char behind[16];                                                \
        } given;                                                                     \
        struct muster_##name own;                                                    \
                                                                                     \
        memset(&given, 0x5a, sizeof given);                                          \
        muster_##name##_init(&given.options, offsetof(struct muster_##name, last));  \
        assert_int_equal(name##_take(&given.options, &own, &err), MUSTER_OK);        \
        assert_memory_equal(&own, &fresh, sizeof own);                               \
        given.options.struct_size--;                                                 \
        refused(name##_take(&given.options, &own, &err), #macro);                    \
        refused(name##_take(NULL, &own, &err), #macro);                              \
        muster_##name##_init(&given.options, sizeof given);                          \
        assert_int_equal(name##_take(&given.options, &own, &err), MUSTER_OK);        \
        assert_memory_equal(&own, &fresh, sizeof own);                               \
        given.behind[15] = 1;                                                        \
        assert_int_equal(name##_take(&given.options, &own, &err), MUSTER_E_VERSION); \
        assert_non_null(strstr(err.text, "too old"));                                \
    } while (0)

static void a_structure_of_an_older_or_newer_caller_is_taken(void **state)
{
    (void)state;
    TAKES_EVERY_SIZE(node_options, MUSTER_NODE_OPTIONS_INIT, restore_later);
    TAKES_EVERY_SIZE(manager_options, MUSTER_MANAGER_OPTIONS_INIT, name_prefix);
    TAKES_EVERY_SIZE(save_request, MUSTER_SAVE_REQUEST_INIT, custom_metadata);
    TAKES_EVERY_SIZE(policies, MUSTER_POLICIES_INIT, trash);
    TAKES_EVERY_SIZE(training_state_options, MUSTER_TRAINING_STATE_OPTIONS_INIT, fallback);
    TAKES_EVERY_SIZE(coordinator_options, MUSTER_COORDINATOR_OPTIONS_INIT, max_queued);
    TAKES_EVERY_SIZE(call, MUSTER_CALL_INIT, per_worker);
    TAKES_EVERY_SIZE(worker_options, MUSTER_WORKER_OPTIONS_INIT, prefetch);
    TAKES_EVERY_SIZE(read_options, MUSTER_READ_OPTIONS_INIT, rank);
}

static void the_library_tells_its_version(void **state)
{
    (void)state;
    assert_string_equal(muster_version(), MUSTER_VERSION);
}

/* --- NULL ------------------------------------------------------------------------------------- */

static void a_coordinators_call_with_null_is_refused(void **state)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_call call = MUSTER_CALL_INIT;
    muster_coordinator_t *none = NULL;
    muster_per_worker_t *made = NULL;
    muster_remote_value_t *value = NULL;
    bool done;

    (void)state;
    refused(muster_coordinator_open(NULL, &none, &err), "options is NULL");
    refused(muster_coordinator_open(&options, NULL, &err), "ret_coordinator is NULL");
    refused(muster_coordinator_flush(NULL, 0, &err), "coordinator is NULL");
    refused(muster_coordinator_schedule(NULL, &call, 0, &value, &err), "coordinator is NULL");
    refused(muster_coordinator_join(NULL, 0, &err), "coordinator is NULL");
    refused(muster_coordinator_done(NULL, &done, &err), "coordinator is NULL");
    refused(muster_coordinator_create_per_worker(NULL, "f", NULL, 0, &made, &err),
            "coordinator is NULL");
    refused(muster_coordinator_fetch(NULL, NULL, 0, &err), "coordinator is NULL");
    refused(muster_coordinator_value(NULL, 1, &value, &err), "coordinator is NULL");
    assert_int_equal(muster_coordinator_scheduled(NULL), 0);
    muster_coordinator_release(NULL);
    assert_int_equal(muster_coordinator_close(NULL, &err), MUSTER_OK);
    assert_int_equal(muster_coordinator_close(&none, &err), MUSTER_OK);
}

static void a_remote_values_call_with_null_is_refused(void **state)
{
    muster_remote_value_t *none = NULL;
    const void *data;
    size_t size;

    (void)state;
    refused(muster_remote_value_fetch(NULL, 0, &data, &size, &err), "value is NULL");
    refused(muster_remote_value_cancel(NULL, &err), "value is NULL");
    assert_int_equal(muster_remote_value_id(NULL), 0);
    muster_remote_value_free(NULL);
    muster_remote_value_free(&none);
}

static int run_nothing(muster_task_t *task, void *arg)
{
    (void)task, (void)arg;
    return 0;
}

static void a_workers_call_with_null_is_refused(void **state)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    muster_worker_t *none = NULL;

    (void)state;
    refused(muster_worker_open(NULL, &none, &err), "options is NULL");
    refused(muster_worker_open(&options, NULL, &err), "ret_worker is NULL");
    refused(muster_worker_register(NULL, "f", run_nothing, NULL, &err), "worker is NULL");
    refused(muster_worker_serve(NULL, &err), "worker is NULL");
    refused(muster_worker_start(NULL, &err), "worker is NULL");
    muster_worker_stop(NULL);
    assert_int_equal(muster_worker_close(NULL, &err), MUSTER_OK);
    assert_int_equal(muster_worker_close(&none, &err), MUSTER_OK);
}

static void a_functions_call_without_its_task_does_nothing(void **state)
{
    size_t size = 3;

    (void)state;
    assert_int_equal(muster_task_id(NULL), 0);
    assert_int_equal(muster_task_attempt(NULL), 0);
    assert_int_equal(muster_task_worker_index(NULL), -1);
    assert_null(muster_task_args(NULL, &size));
    assert_int_equal(size, 0);
    assert_null(muster_task_args(NULL, NULL));
    assert_null(muster_task_value(NULL, 0));
    assert_false(muster_task_cancelled(NULL));
    muster_task_renew(NULL);
    assert_int_equal(muster_task_set_result(NULL, "x", 1), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_task_fail(NULL, 7, "text"), 7);
    muster_task_set_value(NULL, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_init_function_gives_what_the_macro_gives_and_no_more_bytes),
        cmocka_unit_test(a_structure_of_an_older_or_newer_caller_is_taken),
        cmocka_unit_test(the_library_tells_its_version),
        cmocka_unit_test(a_coordinators_call_with_null_is_refused),
        cmocka_unit_test(a_remote_values_call_with_null_is_refused),
        cmocka_unit_test(a_workers_call_with_null_is_refused),
        cmocka_unit_test(a_functions_call_without_its_task_does_nothing),
    };

    return cmocka_run_group_tests_name("options_init", tests, NULL, NULL);
}
