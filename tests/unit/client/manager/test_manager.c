/* A manager of one process without a broker: what it saves, lists, restores and refuses. */
#include "tests/unit/client/manager/manager_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum muster_status save_fails(int64_t step, bool force)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    request.force = force;
    return muster_manager_save(managed.manager, step, &request, NULL, &managed.error);
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

static bool is_there(const char *name)
{
    return access(scratch_path(managed.directory, "%s/manifest.json", name), F_OK) == 0;
}

/* --- saving and restoring --------------------------------------------------------------------- */

static void saves_by_interval_and_goes_on_behind_the_last(void **state)
{
    int64_t latest = 0;

    (void)state;
    assert_int_equal(managed_begin(), -1);
    for (int step = 0; step < 6; step++)
        assert_int_equal(managed_save(step), step % 2 == 0);
    assert_string_equal(managed_steps(), "0 2 4");
    managed_close();
    managed.value = -1;
    assert_int_equal(managed_begin(), 4);
    assert_int_equal(managed.value, 4);
    assert_int_equal(muster_manager_latest_step(managed.manager, &latest, NULL), MUSTER_OK);
    assert_int_equal(latest, 4);
    assert_false(managed_save(5));
    assert_true(managed_save(6));
    assert_string_equal(managed_steps(), "0 2 4 6");
}

static void where_nothing_is_there_is_no_latest_step(void **state)
{
    struct muster_restored restored = {.step = 7};

    (void)state;
    managed_open();
    assert_int_equal(muster_manager_latest_step(managed.manager, NULL, &managed.error),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(
        muster_manager_restore(managed.manager, 3, &restored, sizeof restored, &managed.error),
        MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(managed.error.text, "no checkpoint of step 3"));
    assert_string_equal(managed_steps(), "");
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, &managed.error),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(restored.step, -1); /* the first one is restored.step + 1 */
    assert_true(managed_save(0));        /* and training begins anyway */
}

/* --- programs of another muster --------------------------------------------------------------- */

struct sized_restored {
    struct muster_restored own;
    unsigned char behind[16];
};

static void check_filled(const unsigned char *bytes, size_t from, size_t to, int value)
{
    for (size_t i = from; i < to; i++)
        assert_int_equal(bytes[i], value);
}

static struct sized_restored restore_with(size_t struct_size)
{
    struct sized_restored given;

    memset(&given, 0x5a, sizeof given);
    managed_open();
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &given.own,
                                            struct_size, &managed.error),
                     MUSTER_OK);
    assert_int_equal(given.own.step, 1);
    check_filled((const void *)&given, struct_size, sizeof given, 0x5a);
    assert_int_equal(muster_manager_close(&managed.manager, 1, NULL), MUSTER_OK);
    return given;
}

static void what_was_restored_has_the_size_that_the_program_knows(void **state)
{
    struct sized_restored given;

    (void)state;
    managed.save.number = 1;
    managed_begin();
    managed_save(0);
    managed_save(1);
    assert_int_equal(muster_manager_close(&managed.manager, 1, NULL), MUSTER_OK);
    restore_with(offsetof(struct muster_restored, epoch)); /* an older program */
    given = restore_with(sizeof given);                    /* a newer one */
    assert_int_equal(given.own.epoch, -1);
    check_filled(given.behind, 0, sizeof given.behind, 0);
}

static void checkpoints_have_the_size_that_the_program_knows(void **state)
{
    enum {
        OLD = offsetof(struct muster_checkpoint_info, bytes),
        NEW = sizeof(struct muster_checkpoint_info) + 16
    };
    const struct muster_checkpoint_info *all = NULL, *info = NULL;
    struct muster_checkpoint_info last;
    size_t count = 0;

    (void)state;
    managed.save.number = 1;
    managed_begin();
    managed_save(0);
    managed_save(1);
    assert_int_equal(muster_manager_all_steps(managed.manager, &all, &count, OLD, NULL), MUSTER_OK);
    assert_int_equal(count, 2);
    memcpy(&last, (const char *)all + OLD, OLD);
    assert_int_equal(last.step, 1);
    assert_int_equal(muster_manager_all_steps(managed.manager, &all, &count, NEW, NULL), MUSTER_OK);
    memcpy(&last, (const char *)all + NEW, sizeof last);
    assert_int_equal(last.step, 1);
    assert_true(last.bytes > 0);
    check_filled((const unsigned char *)all + NEW, sizeof last, NEW, 0);
    assert_int_equal(muster_manager_metadata(managed.manager, 1, &info, OLD, NULL), MUSTER_OK);
    assert_int_equal(info->step, 1);
    assert_int_equal(muster_manager_metadata(managed.manager, 1, &info, NEW, NULL), MUSTER_OK);
    assert_string_equal(info->custom_metadata, "");
    check_filled((const unsigned char *)info, sizeof *info, NEW, 0);
    assert_int_equal(muster_manager_metadata(managed.manager, 1, &info, 0, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "sizeof"));
    assert_int_equal(muster_manager_all_steps(managed.manager, &all, &count, 0, &managed.error),
                     MUSTER_E_ARGUMENT);
}

static void should_save_is_binding_and_the_same_when_asked_again(void **state)
{
    bool should = false;

    (void)state;
    managed_begin();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_manager_should_save(managed.manager, 0, &should, NULL), MUSTER_OK);
        assert_true(should);
    }
    assert_true(managed_save(0));
    assert_int_equal(muster_manager_should_save(managed.manager, 0, &should, NULL), MUSTER_OK);
    assert_false(should); /* it is the latest */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_manager_should_save(managed.manager, 1, &should, NULL), MUSTER_OK);
        assert_false(should);
    }
    assert_false(managed_save(1));
    assert_int_equal(muster_manager_should_save(managed.manager, 0, &should, NULL), MUSTER_OK);
    assert_false(should);
    assert_string_equal(managed_steps(), "0");
}

static void a_forced_save_needs_no_policy_also_after_a_no(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    bool should = true, saved = false;

    (void)state;
    managed.options.policies = NULL;
    managed_begin();
    assert_false(managed_save(0));
    assert_int_equal(muster_manager_should_save(managed.manager, 1, &should, NULL), MUSTER_OK);
    assert_false(should);
    request.force = true;
    assert_int_equal(muster_manager_save(managed.manager, 1, &request, &saved, &managed.error),
                     MUSTER_OK);
    assert_true(saved);
    assert_string_equal(managed_steps(), "1");
}

static void a_save_that_the_program_decides_begins_whatever_the_policies_say(void **state)
{
    bool begun = false;

    (void)state;
    managed.options.policies = NULL;
    managed_begin();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_manager_begin_save(managed.manager, 0, &begun, NULL), MUSTER_OK);
        assert_true(begun);
    }
    assert_true(managed_save(0));
    assert_int_equal(muster_manager_begin_save(managed.manager, 0, &begun, NULL), MUSTER_OK);
    assert_false(begun);
    assert_int_equal(muster_manager_should_save(managed.manager, 1, &begun, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_begin_save(managed.manager, 1, &begun, NULL), MUSTER_OK);
    assert_false(begun); /* that step was over */
    begun = true;
    assert_int_equal(muster_manager_begin_save(managed.manager, 3, &begun, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_true(begun); /* untouched */
    assert_non_null(strstr(managed.error.text, "muster_manager_begin_save: step 3 comes after 1"));
    assert_string_equal(managed_steps(), "0");
}

static void the_first_step_may_be_any(void **state)
{
    (void)state;
    managed.save = (struct muster_save_policy){.kind = MUSTER_SAVE_FIRST};
    managed_begin();
    assert_true(managed_save(100));
    assert_false(managed_save(101));
    assert_string_equal(managed_steps(), "100");
}

static void names_have_prefix_and_digits(void **state)
{
    (void)state;
    managed.options.name_prefix = "step_";
    managed_begin();
    assert_true(managed_save(0));
    assert_false(managed_save(1));
    managed_close();
    assert_true(is_there("step_0"));
    managed.options.name_prefix = NULL;
    managed.options.name_digits = 4; /* another way to name: what was there is found anyway */
    assert_int_equal(managed_begin(), 0);
    managed_save(1);
    assert_true(managed_save(2));
    assert_true(is_there("0002"));
    assert_string_equal(managed_steps(), "0 2");
}

static void the_position_comes_back(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    struct muster_restored restored;

    (void)state;
    managed_begin();
    request.epoch = 3;
    request.step_in_epoch = 7;
    request.data_position = 4711;
    assert_int_equal(muster_manager_save(managed.manager, 0, &request, NULL, NULL), MUSTER_OK);
    managed_close();
    managed_open();
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, NULL),
                     MUSTER_OK);
    assert_int_equal(restored.epoch, 3);
    assert_int_equal(restored.step_in_epoch, 7);
    assert_int_equal(restored.data_position, 4711);
}

static void a_notice_saves_whatever_the_policies_say(void **state)
{
    bool saved = false;

    (void)state;
    managed.save.number = 4;
    managed_begin();
    assert_true(managed_save(0));
    assert_false(managed_save(1));
    assert_false(muster_manager_reached_preemption(managed.manager, 2));
    assert_int_equal(
        muster_node_notify(muster_manager_node(managed.manager), MUSTER_NOTICE_USER, -1, "x"),
        MUSTER_OK);
    assert_true(muster_manager_reached_preemption(managed.manager, 2));
    assert_int_equal(muster_manager_save(managed.manager, 2, NULL, &saved, &managed.error),
                     MUSTER_PREEMPTED);
    assert_true(saved);
    assert_string_equal(managed_steps(), "0 2");
    assert_int_equal(muster_manager_close(&managed.manager, 0, NULL), MUSTER_PREEMPTED);
}

static int save_but_2(const struct muster_save_context *context)
{
    FILE *file = fopen(scratch_path(context->directory, "value"), "we");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    return context->step == 3 ? 5 : 0;
}

static int restore_nothing(const struct muster_restore_context *context)
{
    return context->step < 0;
}

/* Directories of rounds in .muster. */
static int rounds_left(void)
{
    DIR *dir = opendir(scratch_path(managed.directory, ".muster"));
    const struct dirent *entry;
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
    closedir(dir);
    return count;
}

static void a_save_that_fails_leaves_nothing_and_training_goes_on(void **state)
{
    bool saved = true;

    (void)state;
    managed.node.state = NULL;
    managed.node.termination.save_fn = save_but_2;
    managed.node.termination.restore_fn = restore_nothing;
    managed_begin();
    managed_save(0);
    managed_save(1);
    assert_int_equal(muster_manager_save(managed.manager, 2, NULL, &saved, &managed.error),
                     MUSTER_E_SAVE);
    assert_false(saved);
    assert_non_null(strstr(managed.error.text, "save_fn returned 5"));
    assert_false(scratch_exists(scratch_path(managed.directory, "2")));
    assert_int_equal(rounds_left(), 0);
    assert_false(managed_save(3));
    assert_true(managed_save(4));
    assert_string_equal(managed_steps(), "0 4");
}

static void the_first_save_is_not_lost_when_it_fails(void **state)
{
    (void)state;
    managed.save = (struct muster_save_policy){.kind = MUSTER_SAVE_FIRST};
    managed.node.state = NULL;
    managed.node.termination.save_fn = save_but_2;
    managed.node.termination.restore_fn = restore_nothing;
    managed_begin();
    assert_int_equal(save_fails(2, false), MUSTER_E_SAVE);
    assert_true(managed_save(3));
    assert_false(managed_save(4));
    assert_string_equal(managed_steps(), "3");
}

/* --- reading ---------------------------------------------------------------------------------- */

static void a_reader_lists_and_restores_any_step(void **state)
{
    struct muster_restored restored;

    (void)state;
    managed_begin();
    for (int step = 0; step < 5; step++)
        managed_save(step);
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), "0 2 4");
    for (int step = 0; step < 5; step += 2) {
        assert_int_equal(muster_manager_restore(managed.manager, step, &restored, sizeof restored,
                                                &managed.error),
                         MUSTER_OK);
        assert_int_equal(managed.value, step);
        assert_int_equal(restored.step, step);
    }
    assert_int_equal(
        muster_manager_restore(managed.manager, 3, &restored, sizeof restored, &managed.error),
        MUSTER_E_NOT_FOUND);
    assert_int_equal(save_fails(5, false), MUSTER_E_UNSUPPORTED);
    assert_non_null(strstr(managed.error.text, "read-only"));
}

static void reload_reads_anew_and_what_was_read_is_only_borrowed(void **state)
{
    muster_manager_t *writer;
    int64_t latest = -1;

    (void)state;
    managed_begin();
    managed_save(0);
    writer = managed.manager;
    managed_open_reader();
    assert_string_equal(managed_steps(), "0");
    for (int64_t step = 1; step < 3; step++)
        assert_int_equal(muster_manager_save(writer, step, NULL, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_reload(managed.manager, &managed.error), MUSTER_OK);
    assert_int_equal(muster_manager_latest_step(managed.manager, &latest, NULL), MUSTER_OK);
    assert_int_equal(latest, 2);
    assert_int_equal(muster_manager_close(&writer, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_reload(NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_check_for_errors(managed.manager, NULL), MUSTER_OK);
}

static void damage(const char *name)
{
    char *path = strdup(scratch_path(managed.directory, "%s", name));
    DIR *dir = opendir(path);
    const struct dirent *entry;
    bool done = false;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "shard-", 6) == 0) {
            FILE *file = fopen(scratch_path(path, "%s", entry->d_name), "r+be");

            assert_non_null(file);
            assert_int_equal(fseek(file, -1, SEEK_END), 0);
            int last = fgetc(file);
            assert_int_equal(fseek(file, -1, SEEK_END), 0);
            fputc(last ^ 0x5a, file); /* another one, whatever it was */
            assert_int_equal(fclose(file), 0);
            done = true;
        }
    closedir(dir);
    free(path);
    assert_true(done);
}

static void falls_back_only_when_asked_and_says_so(void **state)
{
    struct muster_restored restored;

    (void)state;
    managed_begin();
    for (int step = 0; step < 5; step++)
        managed_save(step);
    managed_close();
    damage("4");
    managed_open();
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, &managed.error),
                     MUSTER_E_RESTORE);
    assert_non_null(strstr(managed.error.text, "/4"));
    managed_close();
    managed.options.fallback = true;
    managed_open();
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, &managed.error),
                     MUSTER_OK);
    assert_int_equal(restored.step, 2);
    assert_true(restored.fell_back);
    assert_int_equal(managed.value, 2);
    managed_close();
    managed_open_reader(); /* a reader too */
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, &managed.error),
                     MUSTER_OK);
    assert_int_equal(restored.step, 2);
    assert_true(restored.fell_back);
    managed_close();
    managed.options.fallback = false;
    managed_open_reader();
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored,
                                            sizeof restored, &managed.error),
                     MUSTER_E_CORRUPT);
}

static void leftovers_are_never_listed(void **state)
{
    (void)state;
    managed_begin();
    managed_save(0);
    assert_int_equal(mkdir(scratch_path(managed.directory, "12"), 0777), 0); /* no manifest */
    assert_int_equal(mkdir(scratch_path(managed.directory, "notes"), 0777), 0);
    assert_string_equal(managed_steps(), "0");
    managed_close();
    assert_int_equal(managed_begin(), 0);
}

/* --- bad input -------------------------------------------------------------------------------- */

static void an_existing_step_is_an_error_also_forced_and_leaves_nothing(void **state)
{
    int before, before_inside;
    struct stat was, is;

    (void)state;
    managed_begin();
    managed_save(0);
    managed_save(1);
    managed_save(2);
    before = entries(managed.directory);
    before_inside = entries(scratch_path(managed.directory, ".muster"));
    assert_int_equal(stat(scratch_path(managed.directory, "2/manifest.json"), &was), 0);
    for (int force = 0; force < 2; force++)
        for (int step = 0; step <= 2; step += 2) {
            assert_int_equal(save_fails(step, force != 0), MUSTER_E_EXISTS);
            assert_non_null(strstr(managed.error.text, "saved already"));
        }
    assert_int_equal(entries(managed.directory), before);
    assert_int_equal(entries(scratch_path(managed.directory, ".muster")), before_inside);
    assert_int_equal(stat(scratch_path(managed.directory, "2/manifest.json"), &is), 0);
    assert_int_equal(was.st_ino, is.st_ino);
    assert_false(managed_save(3)); /* and training goes on */
    assert_true(managed_save(4));
    managed_close();
    managed_begin(); /* the same after a restart */
    assert_int_equal(save_fails(4, true), MUSTER_E_EXISTS);
    assert_int_equal(save_fails(2, false), MUSTER_E_EXISTS);
}

static void bad_steps_and_requests_are_refused(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    bool should;

    (void)state;
    managed_open();
    assert_int_equal(save_fails(0, false), MUSTER_E_ARGUMENT); /* before the restore */
    assert_non_null(strstr(managed.error.text, "muster_manager_restore"));
    assert_int_equal(muster_manager_restore(managed.manager, -2, NULL, 0, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, NULL, 0, NULL),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(save_fails(-1, true), MUSTER_E_ARGUMENT);
    assert_int_equal(save_fails(INT64_MAX, true), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_should_save(managed.manager, -1, &should, NULL),
                     MUSTER_E_ARGUMENT);
    managed_save(0);
    managed_save(1);
    managed_save(2);
    managed_save(3);
    assert_int_equal(save_fails(1, false), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "backwards"));
    assert_int_equal(save_fails(5, false), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "left out"));
    request.epoch = -2;
    assert_int_equal(muster_manager_save(managed.manager, 4, &request, NULL, NULL),
                     MUSTER_E_ARGUMENT);
    request.struct_size = 3;
    assert_int_equal(muster_manager_save(managed.manager, 4, &request, NULL, NULL),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_wait_until_finished(managed.manager, -2, NULL),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(managed.manager, 0, NULL, 0, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_true(managed_save(4));
    assert_int_equal(muster_manager_save(NULL, 0, NULL, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(NULL, 0, NULL, 0, NULL), MUSTER_E_ARGUMENT);
    assert_false(muster_manager_is_saving_in_progress(NULL));
    assert_null(muster_manager_node(NULL));
    assert_int_equal(muster_manager_close(NULL, 0, NULL), MUSTER_OK);
}

static void refused(const char *says)
{
    muster_manager_t *manager = NULL;

    assert_int_equal(muster_manager_open(&managed.options, &manager, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_null(manager);
    if (strstr(managed.error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", managed.error.text, says);
}

static void contradictory_options_are_refused(void **state)
{
    const struct muster_manager_options good = managed.options;
    const struct muster_node_options good_node = managed.node;
    static const char *const bad_trash[] = {
        "",  ".old", "../x", "a/b",    "old ",      "manifest.json",
        "3", "3x",   "x3",   "step_3", "step_3.1-4"}; /* could be a checkpoint's name */
    static const char *const bad_prefixes[] = {
        ".x", "a/b", "..", "v1", "step 1 ", "_________________________________32"};

    (void)state;
#define REFUSED(change, says)     \
    do {                          \
        managed.options = good;   \
        managed.node = good_node; \
        change;                   \
        refused(says);            \
    } while (0)
    REFUSED(managed.options.struct_size = 1, "MUSTER_MANAGER_OPTIONS_INIT");
    REFUSED(managed.options.name_digits = -1, "name_digits");
    REFUSED(managed.options.name_digits = 19, "name_digits");
    REFUSED(managed.options.save_timeout_ms = -1, "save_timeout_ms is -1");
    REFUSED(managed.options.query_timeout_ms = -1, "query_timeout_ms is -1");
    REFUSED(managed.options.node = NULL, "policies are given without a node");
    REFUSED((managed.options.node = NULL, managed.options.policies = NULL), "neither a node");
    REFUSED((managed.options.node = NULL, managed.options.policies = NULL,
             managed.options.broker = NO_BROKER,
             managed.options.checkpoint_dir = managed.directory),
            "without a job");
    REFUSED(managed.options.job = "other", "for a read-only manager");
    REFUSED(managed.options.checkpoint_dir = "/tmp", "for a read-only manager");
    REFUSED(managed.options.state = managed.state, "for a read-only manager");
    REFUSED(managed.node.save_every_steps = 3, "save_every_steps");
    REFUSED(managed.node.restore_later = true, "restore_later");
    REFUSED(managed.node.role = MUSTER_ROLE_PS, "takes no part in steps");
    REFUSED(managed.policies.struct_size = 3, "MUSTER_POLICIES_INIT");
    managed.policies.struct_size = sizeof managed.policies;
    REFUSED(managed.policies.trash = "old", "policies.trash is given, but no keep policy");
    managed.policies.keep = &(struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 1};
    managed.policies.keep_count = 1;
    for (size_t i = 0; i < sizeof bad_trash / sizeof *bad_trash; i++)
        REFUSED(managed.policies.trash = bad_trash[i], "policies.trash is \"");
    managed.policies.trash = NULL;
    REFUSED(managed.node.job = "a b", "cannot be a job's name");
    REFUSED(managed.node.world_size = 0, "world_size");
    REFUSED(managed.save.number = 0, "save[0]");
    managed.save.number = 2;
    for (size_t i = 0; i < sizeof bad_prefixes / sizeof *bad_prefixes; i++)
        REFUSED(managed.options.name_prefix = bad_prefixes[i], "name_prefix");
#undef REFUSED
    managed.options = good;
    managed.node = good_node;
    assert_int_equal(muster_manager_open(NULL, &managed.manager, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_open(&managed.options, NULL, NULL), MUSTER_E_ARGUMENT);
    managed.options.node = NULL;
    managed.options.policies = NULL;
    managed.options.checkpoint_dir = scratch_path(managed.directory, "nowhere");
    assert_int_equal(muster_manager_open(&managed.options, &managed.manager, NULL),
                     MUSTER_E_NOT_FOUND);
}

static void going_back_without_a_broker_is_refused(void **state)
{
    (void)state;
    managed_begin();
    for (int step = 0; step < 5; step++)
        managed_save(step);
    managed_close();
    managed_open();
    assert_int_equal(muster_manager_restore(managed.manager, 2, NULL, 0, &managed.error),
                     MUSTER_E_UNSUPPORTED);
    managed_close();
    managed_open(); /* nothing was changed by it */
    assert_int_equal(muster_manager_restore(managed.manager, 4, NULL, 0, &managed.error),
                     MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, managed_setup, managed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(saves_by_interval_and_goes_on_behind_the_last),
        TEST(where_nothing_is_there_is_no_latest_step),
        TEST(what_was_restored_has_the_size_that_the_program_knows),
        TEST(checkpoints_have_the_size_that_the_program_knows),
        TEST(should_save_is_binding_and_the_same_when_asked_again),
        TEST(a_forced_save_needs_no_policy_also_after_a_no),
        TEST(a_save_that_the_program_decides_begins_whatever_the_policies_say),
        TEST(the_first_step_may_be_any),
        TEST(names_have_prefix_and_digits),
        TEST(the_position_comes_back),
        TEST(a_notice_saves_whatever_the_policies_say),
        TEST(a_save_that_fails_leaves_nothing_and_training_goes_on),
        TEST(the_first_save_is_not_lost_when_it_fails),
        TEST(a_reader_lists_and_restores_any_step),
        TEST(reload_reads_anew_and_what_was_read_is_only_borrowed),
        TEST(falls_back_only_when_asked_and_says_so),
        TEST(leftovers_are_never_listed),
        TEST(an_existing_step_is_an_error_also_forced_and_leaves_nothing),
        TEST(bad_steps_and_requests_are_refused),
        TEST(contradictory_options_are_refused),
        TEST(going_back_without_a_broker_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
