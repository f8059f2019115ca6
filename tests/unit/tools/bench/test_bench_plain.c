/* The files that `muster bench` compares with: written whole by each rank, read whole. */
#include "tests/support/scratch.h"
#include "tools/bench/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 2500000 /* no whole number of pieces */

static char dir[SCRATCH_PATH_MAX];

static int setup(void **state)
{
    (void)state;
    scratch_make(dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(dir);
    return 0;
}

static void each_rank_writes_a_file_of_its_own_and_of_that_size(void **state)
{
    (void)state;
    assert_true(bench_plain_write(dir, 3, BYTES) >= 0);
    assert_int_equal(scratch_count(dir), 3);
    for (int rank = 0; rank < 3; rank++) {
        size_t size;
        char *bytes = scratch_read(scratch_path(dir, "plain.%d", rank), &size);

        assert_int_equal(size, BYTES);
        assert_int_equal(bytes[0], 1 + rank);
        assert_int_equal(bytes[size - 1], 1 + rank);
        free(bytes);
    }
    assert_true(bench_plain_read(dir, 3, BYTES) >= 0);
}

static void a_file_that_one_rank_lacks_fails_all(void **state)
{
    (void)state;
    assert_true(bench_plain_write(dir, 2, BYTES) >= 0);
    unlink(scratch_path(dir, "plain.0"));
    errno = 0;
    assert_true(bench_plain_read(dir, 2, BYTES) < 0);
    assert_int_equal(errno, ENOENT);
}

static void a_folder_that_is_not_there_fails_with_its_reason(void **state)
{
    (void)state;
    errno = 0;
    assert_true(bench_plain_write(scratch_path(dir, "nowhere"), 1, BYTES) < 0);
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_rank_writes_a_file_of_its_own_and_of_that_size),
        T(a_file_that_one_rank_lacks_fails_all),
        T(a_folder_that_is_not_there_fails_with_its_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
