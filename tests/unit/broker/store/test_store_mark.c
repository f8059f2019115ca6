/* A database that was restored from an older copy: known by its mark, and by nothing that is no
 * such thing. */
#include "tests/unit/broker/store/store_fixture.h"

#include "broker/store/store_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct kept {
    char *bytes;
    size_t size;
};

static const char *mark_of(const struct fixture *f)
{
    static char path[SCRATCH_PATH_MAX + 64];

    snprintf(path, sizeof path, "%s.mark", f->db);
    return path;
}

static struct kept keep(const char *path)
{
    struct kept file = {0};

    file.bytes = scratch_read(path, &file.size);
    return file;
}

static void put_back(const char *path, struct kept *file)
{
    scratch_write(path, file->bytes, file->size);
    free(file->bytes);
}

static void start(struct fixture *f)
{
    fixture_write(f, sample_of(RECORD_BROKER));
}

static void end_a_checkpoint(struct fixture *f, enum wire_checkpoint_state state)
{
    struct record row = *sample_of(RECORD_CHECKPOINT);

    row.u.checkpoint.state = state;
    fixture_write(f, &row);
}

static void note_older(void *arg, const struct record *row)
{
    if (row->kind == RECORD_BROKER)
        *(bool *)arg = row->u.broker.older;
}

static bool is_older(struct fixture *f)
{
    bool older = false;

    assert_int_equal(store_load(f->store, note_older, &older, &f->err), MUSTER_OK);
    assert_int_equal(store_is_older(f->store), older);
    return older;
}

static void a_start_after_a_start_is_older_than_nothing(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        assert_false(is_older(f));
        start(f);
        fixture_write_samples(f);
        end_a_checkpoint(f, CHECKPOINT_FAILED);
        fixture_reopen(f);
    }
}

static void put_back_over(struct fixture *f, enum wire_checkpoint_state end)
{
    struct kept database;

    start(f);
    fixture_write_samples(f);
    store_close(&f->store);
    database = keep(f->db);
    fixture_reopen(f);
    start(f);
    end_a_checkpoint(f, end);
    store_close(&f->store);
    put_back(f->db, &database);
    fixture_reopen(f);
}

/* R10.4 */
static void a_copy_from_before_a_failed_or_deleted_checkpoint_is_older(void **state)
{
    static const enum wire_checkpoint_state ends[] = {CHECKPOINT_FAILED, CHECKPOINT_DELETING,
                                                      CHECKPOINT_DELETED};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        put_back_over(f, ends[i]);
        assert_true(is_older(f));
        fixture_reopen(f);
        assert_true(is_older(f)); /* until a start has dealt with it */
        start(f);
        fixture_reopen(f);
        assert_false(is_older(f));
    }
}

static void a_copy_that_misses_no_end_is_as_good_as_the_file(void **state)
{
    struct fixture *f = *state;

    put_back_over(f, CHECKPOINT_COMMITTED);
    assert_false(is_older(f));
}

static void a_crash_between_the_commit_and_the_mark_is_no_older_copy(void **state)
{
    struct fixture *f = *state;
    struct kept mark;

    start(f);
    fixture_write_samples(f);
    mark = keep(mark_of(f));
    end_a_checkpoint(f, CHECKPOINT_FAILED);
    put_back(mark_of(f), &mark); /* in place: the same file */
    fixture_reopen(f);
    assert_false(is_older(f));
    start(f);
    put_back_over(f, CHECKPOINT_FAILED); /* and what follows is counted on */
    assert_true(is_older(f));
}

/* Of a directory that was restored as a whole nobody can tell how old it is. */
static void a_mark_that_is_a_copy_itself_or_is_torn_makes_it_older(void **state)
{
    struct fixture *f = *state;
    char moved[SCRATCH_PATH_MAX + 80];

    start(f);
    store_close(&f->store);
    snprintf(moved, sizeof moved, "%s.old", mark_of(f));
    struct kept mark = keep(mark_of(f));
    assert_int_equal(rename(mark_of(f), moved), 0);
    put_back(mark_of(f), &mark);
    fixture_reopen(f);
    assert_true(is_older(f));
    start(f);
    fixture_reopen(f);
    assert_false(is_older(f));
    store_close(&f->store);
    scratch_cut(mark_of(f), 30);
    fixture_reopen(f);
    assert_true(is_older(f));
}

/* Its database was made by a musterd that knew no mark, or is all that was kept. */
static void without_a_mark_nothing_is_known(void **state)
{
    struct fixture *f = *state;

    start(f);
    fixture_write_samples(f);
    store_close(&f->store);
    assert_int_equal(unlink(mark_of(f)), 0);
    fixture_reopen(f);
    assert_false(is_older(f));
}

static void a_start_that_is_refused_leaves_the_mark_of_others(void **state)
{
    struct fixture *f = *state;

    start(f);
    fixture_reopen(f);
    store_discard(&f->store);
    assert_true(scratch_exists(mark_of(f)));
    assert_true(scratch_exists(f->db));
}

static void a_batch_that_is_not_committed_leaves_no_mark(void **state)
{
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_CHECKPOINT);

    start(f);
    fixture_write_samples(f);
    row.u.checkpoint.state = CHECKPOINT_FAILED;
    struct kept mark = keep(mark_of(f));
    fixture_limit_file_size(0);
    assert_int_equal(fixture_apply(f, &row, 1), MUSTER_E_STORAGE);
    fixture_limit_file_size(RLIM_INFINITY);
    struct kept now = keep(mark_of(f));
    assert_int_equal(now.size, mark.size);
    assert_memory_equal(now.bytes, mark.bytes, mark.size);
    free(mark.bytes);
    free(now.bytes);
}

#define T(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* What the mark does not say durably must not be told, though it is committed. */
static void fails_when_the_mark_is(struct fixture *f, const char *device)
{
    struct record row = *sample_of(RECORD_CHECKPOINT);
    int fd = open(device, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(dup2(fd, f->store->mark_fd) >= 0);
    close(fd);
    row.u.checkpoint.state = CHECKPOINT_FAILED;
    assert_int_equal(fixture_apply(f, &row, 1), MUSTER_E_IO);
}

static void a_mark_that_cannot_be_written_ends_the_broker(void **state)
{
    struct fixture *f = *state;

    fixture_write_samples(f);
    fails_when_the_mark_is(f, "/dev/full");
}

static void a_mark_that_cannot_be_synced_ends_the_broker(void **state)
{
    struct fixture *f = *state;

    fixture_write_samples(f);
    fails_when_the_mark_is(f, "/dev/null"); /* takes the bytes, and knows no fsync */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_start_after_a_start_is_older_than_nothing),
        T(a_copy_from_before_a_failed_or_deleted_checkpoint_is_older),
        T(a_copy_that_misses_no_end_is_as_good_as_the_file),
        T(a_crash_between_the_commit_and_the_mark_is_no_older_copy),
        T(a_mark_that_is_a_copy_itself_or_is_torn_makes_it_older),
        T(without_a_mark_nothing_is_known),
        T(a_start_that_is_refused_leaves_the_mark_of_others),
        T(a_batch_that_is_not_committed_leaves_no_mark),
        T(a_mark_that_cannot_be_written_ends_the_broker),
        T(a_mark_that_cannot_be_synced_ends_the_broker),
    };

    return cmocka_run_group_tests_name("store_mark", tests, NULL, NULL);
}
