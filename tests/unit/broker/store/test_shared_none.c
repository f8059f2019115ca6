/* A musterd that is built without libpq: it refuses --shared with the way out, and the store's own
 * transactions go on without a word. */
#include "broker/store/shared_none.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void to_open_one_is_refused_with_the_way_out(void **state)
{
    const struct shared_options options = {.uri = "postgresql://db/muster"};
    struct shared *shared = (struct shared *)&shared;
    struct muster_error err = {.text = ""};

    (void)state;
    assert_int_equal(shared_open(&options, &shared, &err), MUSTER_E_UNSUPPORTED);
    assert_null(shared);
    assert_non_null(strstr(err.text, "built without --shared"));
    assert_non_null(strstr(err.text, "package"));
    assert_int_equal(shared_take(NULL, &err), MUSTER_E_UNSUPPORTED);
}

static void a_transaction_goes_on_and_is_never_written_elsewhere(void **state)
{
    bool written = true;
    struct muster_error err;

    (void)state;
    assert_int_equal(shared_begin(NULL, &err), MUSTER_OK);
    assert_int_equal(shared_watch(NULL, &err), MUSTER_OK);
    assert_int_equal(shared_write(NULL, &written, &err), MUSTER_OK);
    assert_false(written); /* else a COMMIT that fails would take this file for a copy behind */
    assert_int_equal(store_holds(NULL, &err), MUSTER_OK);
    shared_watch_end(NULL);
}

static void there_is_no_lease_and_no_snapshot_is_due(void **state)
{
    struct muster_error err;

    (void)state;
    assert_null(store_lease(NULL).name);
    assert_false(store_snapshot_is_due(NULL));
    assert_int_equal(store_snapshot_work(NULL, &err), MUSTER_OK);
    assert_int_equal(shared_refuse_copy("/var/lib/muster.db", &err), MUSTER_OK);
    assert_false(shared_is_empty(NULL));
    assert_false(shared_is_older(NULL));
    assert_null(shared_aside(NULL));
    assert_string_equal(shared_id(NULL), "");
    assert_string_equal(shared_name(NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_open_one_is_refused_with_the_way_out),
        cmocka_unit_test(a_transaction_goes_on_and_is_never_written_elsewhere),
        cmocka_unit_test(there_is_no_lease_and_no_snapshot_is_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
