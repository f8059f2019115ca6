/* test_direct - large files written past the page cache: every byte, the first error, breaking off.
 */
#include "node/shard/direct.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SIZE (5 * DIRECT_PIECE_BYTES + 12345) /* its end is on no sector's boundary */
#define NEVER UINT64_MAX

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char path[SCRATCH_PATH_MAX];
    int fd;
    unsigned char *data;
    _Atomic uint64_t went_bytes;
    uint64_t stop_bytes; /* NEVER, or the watcher breaks off when so many are written */
};

static bool went(uint64_t bytes, void *arg)
{
    struct fixture *f = arg;

    return atomic_fetch_add(&f->went_bytes, bytes) + bytes < f->stop_bytes;
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    scratch_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s", scratch_path(f->dir, "file"));
    f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(f->fd >= 0);
    f->data = malloc(SIZE);
    assert_non_null(f->data);
    for (size_t i = 0; i < SIZE; i++)
        f->data[i] = (unsigned char)(i * 2654435761u >> 13);
    f->stop_bytes = NEVER;
    *state = f;
    return 0;
}

static int drop(void **state)
{
    struct fixture *f = *state;

    close(f->fd);
    scratch_remove(f->dir);
    free(f->data);
    free(f);
    return 0;
}

static struct direct *begin(struct fixture *f)
{
    struct direct *direct = direct_begin(f->fd, &(struct fs_watcher){went, f});

    assert_non_null(direct);
    return direct;
}

/* Until the first error. */
static int put_in_parts(struct direct *direct, const unsigned char *data, size_t size, size_t part)
{
    int code = 0;

    for (size_t at = 0; at < size && code == 0; at += part)
        code = direct_put(direct, data + at, size - at < part ? size - at : part);
    return code;
}

static void assert_file_has(struct fixture *f, size_t size)
{
    size_t there = 0;
    char *bytes = scratch_read(f->path, &there);

    assert_int_equal(there, size);
    assert_memory_equal(bytes, f->data, size);
    free(bytes);
}

static void every_byte_is_in_the_file_in_whatever_parts_it_came(void **state)
{
    static const size_t parts[] = {SIZE, 1000003, DIRECT_PIECE_BYTES, 4096};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct direct *direct;

        assert_int_equal(ftruncate(f->fd, 0), 0);
        atomic_store(&f->went_bytes, 0);
        direct = begin(f);
        assert_int_equal(put_in_parts(direct, f->data, SIZE, parts[i]), 0);
        assert_int_equal(direct_end(&direct), 0);
        assert_null(direct);
        assert_int_equal(f->went_bytes, SIZE);
        assert_file_has(f, SIZE);
    }
}

static void a_file_may_end_with_a_piece_within_one_or_be_empty(void **state)
{
    static const size_t sizes[] = {2 * DIRECT_PIECE_BYTES, 512, 1, 0};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct direct *direct;

        assert_int_equal(ftruncate(f->fd, 0), 0);
        direct = begin(f);
        assert_int_equal(direct_put(direct, f->data, sizes[i]), 0);
        assert_int_equal(direct_end(&direct), 0);
        assert_file_has(f, sizes[i]);
    }
}

/* The limit ends the third piece in its middle: its first half is a short write, and what is left
 * is not aligned any more. SIGXFSZ would end this process. */
static void the_first_error_is_told(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, limit;
    struct direct *direct = begin(f);
    int code;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 2 * DIRECT_PIECE_BYTES + 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)put_in_parts(direct, f->data, SIZE, 100000);
    code = direct_end(&direct);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, EFBIG);
    /* The first lane wrote the first piece, and failed with the third. The second lane may have had
     * no time for its own before that: then it leaves it. */
    assert_true(f->went_bytes == DIRECT_PIECE_BYTES || f->went_bytes == 2 * DIRECT_PIECE_BYTES);
}

static void who_breaks_off_waits_for_no_further_piece(void **state)
{
    struct fixture *f = *state;
    struct direct *direct;

    f->stop_bytes = DIRECT_PIECE_BYTES;
    direct = begin(f);
    assert_int_equal(put_in_parts(direct, f->data, SIZE, 4096), ECANCELED);
    assert_int_equal(direct_end(&direct), ECANCELED);
    assert_true(f->went_bytes <= 2 * DIRECT_PIECE_BYTES); /* the other was on its way */
}

/* As on a file system that has no direct writes at all. */
static void a_disk_that_takes_nothing_direct_gets_it_through_the_page_cache(void **state)
{
    struct fixture *f = *state;
    struct direct *direct = begin(f);
    int flags = fcntl(f->fd, F_GETFL);

    assert_int_equal(fcntl(f->fd, F_SETFL, flags & ~O_DIRECT), 0);
    assert_int_equal(direct_put(direct, f->data, SIZE), 0);
    assert_int_equal(direct_end(&direct), 0);
    assert_file_has(f, SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_byte_is_in_the_file_in_whatever_parts_it_came, make,
                                        drop),
        cmocka_unit_test_setup_teardown(a_file_may_end_with_a_piece_within_one_or_be_empty, make,
                                        drop),
        cmocka_unit_test_setup_teardown(the_first_error_is_told, make, drop),
        cmocka_unit_test_setup_teardown(who_breaks_off_waits_for_no_further_piece, make, drop),
        cmocka_unit_test_setup_teardown(
            a_disk_that_takes_nothing_direct_gets_it_through_the_page_cache, make, drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
