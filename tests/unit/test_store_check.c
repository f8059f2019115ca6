/* What is damage and what is not: a call to the disk that failed once is not. */
#include "tests/support/fault_vfs.h"
#include "tests/unit/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void a_read_that_fails_once_is_not_called_damage(void **state)
{
    struct fixture *f = *state;
    struct fault_vfs *faults;
    uint64_t at = 0, hits, refused = 0;

    fixture_write_samples(f);
    store_close(&f->store);
    faults = fault_vfs_create(sqlite3_vfs_find(NULL), NULL);
    do {
        fault_vfs_plan(faults, FAULT_CALL_READ, FAULT_IO, ++at, false);
        enum muster_status status = store_open(f->db, &f->options, &f->store, &f->err);
        hits = fault_vfs_hits(faults);
        if (status != MUSTER_OK && status != MUSTER_E_IO)
            fail_msg("read %llu: %s", (unsigned long long)at, f->err.text);
        refused += status != MUSTER_OK;
        fault_vfs_plan(faults, FAULT_CALL_READ, FAULT_NONE, 0, false);
        store_close(&f->store);
    } while (hits > 0);
    fault_vfs_destroy(&faults);
    assert_true(at > 20);
    assert_true(refused > 0);
    fixture_reopen(f); /* the fixture closes it */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_that_fails_once_is_not_called_damage),
    };

    return cmocka_run_group_tests_name("store_check", tests, NULL, NULL);
}
