/* What the broker makes beside its database is on the disk before anything is told of it: the
 * directories on the way, and the copy that a migration leaves. */
#include "broker/base/dirs.h"
#include "broker/store/store.h"
#include "node/shard/fs.h"
#include "tests/faults/file_calls.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MAX 64

struct fixture {
    char dir[SCRATCH_PATH_MAX];
    char seen[SEEN_MAX][256]; /* "mkdir a", with what follows the scratch directory */
    int count;
    struct muster_error err;
};

static void see(void *arg, const struct file_calls_seen *call)
{
    struct fixture *f = arg;
    size_t length = strlen(f->dir);
    bool inside = strncmp(call->path, f->dir, length) == 0;

    assert_true(f->count < SEEN_MAX);
    snprintf(f->seen[f->count++], sizeof f->seen[0], "%s %s", call->name,
             inside ? call->path + length : call->path);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    scratch_make(f->dir);
    file_calls_plan(FILE_CALL_ANY, 0, 0, false);
    file_calls_watch(see, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    file_calls_end();
    file_calls_watch(NULL, NULL);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

/* Index of the first such line at or after `from`; fails the test without one. */
static int find(const struct fixture *f, const char *line, int from)
{
    for (int i = from; i < f->count; i++)
        if (strcmp(f->seen[i], line) == 0)
            return i;
    for (int i = 0; i < f->count; i++)
        print_message("%d: %s\n", i, f->seen[i]);
    fail_msg("\"%s\" is not there after line %d", line, from);
    return -1;
}

static void each_new_directory_is_synced_into_its_parent(void **state)
{
    struct fixture *f = *state;

    file_calls_begin();
    assert_int_equal(dirs_make_parent(scratch_path(f->dir, "a/b/muster.db"), &f->err), MUSTER_OK);
    file_calls_end();
    find(f, "fsync ", find(f, "mkdir /a", 0));
    find(f, "fsync /a", find(f, "mkdir /a/b", 0));
    f->count = 0;
    file_calls_begin(); /* what is there costs nothing */
    assert_int_equal(dirs_make_parent(scratch_path(f->dir, "a/b/muster.db"), &f->err), MUSTER_OK);
    file_calls_end();
    assert_int_equal(f->count, 0);
}

static void a_directory_that_cannot_be_synced_is_an_error_and_not_kept(void **state)
{
    struct fixture *f = *state;

    file_calls_plan(FILE_CALL_SYNC, EIO, 2, false);
    file_calls_begin();
    assert_int_equal(dirs_make_parent(scratch_path(f->dir, "a/b/muster.db"), &f->err), MUSTER_E_IO);
    file_calls_end();
    assert_int_equal(f->err.code, EIO);
    assert_non_null(strstr(f->err.text, "/a"));
    assert_true(scratch_exists(scratch_path(f->dir, "a")));
    assert_false(scratch_exists(scratch_path(f->dir, "a/b"))); /* so the next try syncs it */
}

/* The checkpoint directory's way: whoever finds a directory syncs it, too. The rest is in
 * test_power_cut. */
static void a_checkpoint_directory_that_cannot_be_synced_is_synced_by_the_next_try(void **state)
{
    struct fixture *f = *state;

    file_calls_plan(FILE_CALL_SYNC, EIO, 3, false);
    file_calls_begin();
    assert_int_equal(fs_make_dirs(scratch_path(f->dir, "a/b"), &f->err), MUSTER_E_IO);
    file_calls_end();
    assert_int_equal(f->err.code, EIO);
    assert_true(scratch_exists(scratch_path(f->dir, "a/b")));
    f->count = 0;
    file_calls_plan(FILE_CALL_ANY, 0, 0, false);
    file_calls_begin();
    assert_int_equal(fs_make_dirs(scratch_path(f->dir, "a/b"), &f->err), MUSTER_OK);
    file_calls_end();
    find(f, "fsync /a", 0);
}

static void the_copy_before_a_migration_is_whole_before_it_has_its_name(void **state)
{
    struct fixture *f = *state;
    struct sql_migration newer[32] = {{0, NULL, NULL}};
    struct store_options options = {.allow_network_fs = true};
    struct store *store = NULL;
    const char *path = scratch_path(f->dir, "muster.db");
    const int next = (int)sql_migrations_count + 1;
    char named[64];
    int synced;

    assert_in_range(next, 2, 31);
    memcpy(newer, sql_migrations, sql_migrations_count * sizeof newer[0]);
    newer[next - 1] =
        (struct sql_migration){next, "extra", "CREATE TABLE extra (n INTEGER PRIMARY KEY) STRICT"};
    assert_int_equal(store_open(path, &options, &store, &f->err), MUSTER_OK);
    store_close(&store);
    options.migrations = newer;
    file_calls_begin();
    assert_int_equal(store_open(path, &options, &store, &f->err), MUSTER_OK);
    file_calls_end();
    store_close(&store);
    synced = find(f, "fsync /muster.db.part", 0);
    snprintf(named, sizeof named, "rename /muster.db.before-v%d", next);
    find(f, "fsync ", find(f, named, synced));
}

/* The first batch that is told: later ones write over a name that is there. */
static void the_mark_of_a_new_database_has_a_durable_name(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {.allow_network_fs = true};
    struct action item = {.kind = ACTION_PERSIST, .record = {RECORD_BROKER, .u.broker.epoch = 1}};
    const struct actions batch = {.items = &item, .count = 1};
    struct store *store = NULL;

    assert_int_equal(store_open(scratch_path(f->dir, "muster.db"), &options, &store, &f->err),
                     MUSTER_OK);
    file_calls_begin();
    assert_int_equal(store_apply(store, &batch, 1000000, &f->err), MUSTER_OK);
    file_calls_end();
    store_close(&store);
    find(f, "fsync ", find(f, "fsync /muster.db.mark", 0));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_new_directory_is_synced_into_its_parent),
        TEST(a_directory_that_cannot_be_synced_is_an_error_and_not_kept),
        TEST(a_checkpoint_directory_that_cannot_be_synced_is_synced_by_the_next_try),
        TEST(the_copy_before_a_migration_is_whole_before_it_has_its_name),
        TEST(the_mark_of_a_new_database_has_a_durable_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
