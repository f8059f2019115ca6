/* A manager of one process without a broker: what it saves, lists, restores and refuses. */
#include <muster/manager.h>

#include "tests/support/scratch.h"

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

#define NO_BROKER "ipc:///tmp/muster-manager-no-broker"

static struct {
    char directory[SCRATCH_PATH_MAX];
    muster_state_t *state;
    int64_t value; /* the step that was trained last */
    struct muster_node_options node;
    struct muster_manager_options options;
    struct muster_policies policies;
    struct muster_save_policy save;
    muster_manager_t *manager;
    struct muster_error error;
} f;

static int setup(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    f.node = (struct muster_node_options)MUSTER_NODE_OPTIONS_INIT;
    f.options = (struct muster_manager_options)MUSTER_MANAGER_OPTIONS_INIT;
    f.policies = (struct muster_policies)MUSTER_POLICIES_INIT;
    scratch_make(f.directory);
    if (muster_state_create(&f.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(f.state, "value", &f.value, NULL) != MUSTER_OK)
        return -1;
    f.node.broker = NO_BROKER;
    f.node.offline_ok = true;
    f.node.connect_timeout_ms = 1;
    f.node.job = "manager";
    f.node.rank = 0;
    f.node.world_size = 1;
    f.node.checkpoint_dir = f.directory;
    f.node.state = f.state;
    f.node.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    f.node.termination.signals[0] = -1;
    f.save = (struct muster_save_policy){.kind = MUSTER_SAVE_EVERY_STEPS, .number = 2};
    f.policies.save = &f.save;
    f.policies.save_count = 1;
    f.options.node = &f.node;
    f.options.policies = &f.policies;
    f.options.query_timeout_ms = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_manager_close(&f.manager, 0, NULL);
    muster_state_destroy(&f.state);
    scratch_remove(f.directory);
    return 0;
}

static void open_manager(void)
{
    if (muster_manager_open(&f.options, &f.manager, &f.error) != MUSTER_OK)
        fail_msg("%s", f.error.text);
}

/* Opens and restores; the index that training goes on behind, -1 = from the start. */
static int64_t begin(void)
{
    struct muster_restored restored = {.step = -1};
    enum muster_status status;

    open_manager();
    status = muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, &f.error);
    if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND)
        fail_msg("%s", f.error.text);
    return restored.step;
}

static bool save(int64_t step)
{
    bool saved = false;

    f.value = step;
    if (muster_manager_save(f.manager, step, NULL, &saved, &f.error) != MUSTER_OK)
        fail_msg("step %d: %s", (int)step, f.error.text);
    return saved;
}

static enum muster_status save_fails(int64_t step, bool force)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    request.force = force;
    return muster_manager_save(f.manager, step, &request, NULL, &f.error);
}

static const char *all_steps(void)
{
    static char text[256];
    const struct muster_checkpoint_info *all;
    size_t count, used = 0;

    assert_int_equal(muster_manager_all_steps(f.manager, &all, &count, &f.error), MUSTER_OK);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i > 0 ? " " : "",
                                 (int)all[i].step);
    return text;
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
    return access(scratch_path(f.directory, "%s/manifest.json", name), F_OK) == 0;
}

static void close_manager(void)
{
    assert_int_equal(muster_manager_close(&f.manager, 0, &f.error), MUSTER_OK);
}

/* --- saving and restoring ---------------------------------------------------------------------------- */

static void saves_by_interval_and_goes_on_behind_the_last(void **state)
{
    int64_t latest = 0;

    (void)state;
    assert_int_equal(begin(), -1);
    for (int step = 0; step < 6; step++)
        assert_int_equal(save(step), step % 2 == 0);
    assert_string_equal(all_steps(), "0 2 4");
    close_manager();
    f.value = -1;
    assert_int_equal(begin(), 4);
    assert_int_equal(f.value, 4);
    assert_int_equal(muster_manager_latest_step(f.manager, &latest, NULL), MUSTER_OK);
    assert_int_equal(latest, 4);
    assert_false(save(5));
    assert_true(save(6));
    assert_string_equal(all_steps(), "0 2 4 6");
}

static void where_nothing_is_there_is_no_latest_step(void **state)
{
    struct muster_restored restored;

    (void)state;
    open_manager();
    assert_int_equal(muster_manager_latest_step(f.manager, NULL, &f.error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_manager_restore(f.manager, 3, &restored, &f.error), MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(f.error.text, "no checkpoint of step 3"));
    assert_string_equal(all_steps(), "");
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, NULL, &f.error),
                     MUSTER_E_NOT_FOUND);
    assert_true(save(0)); /* and training begins all the same */
}

static void should_save_is_binding_and_the_same_when_asked_again(void **state)
{
    bool should = false;

    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_manager_should_save(f.manager, 0, &should, NULL), MUSTER_OK);
        assert_true(should);
    }
    assert_true(save(0));
    assert_int_equal(muster_manager_should_save(f.manager, 0, &should, NULL), MUSTER_OK);
    assert_false(should); /* it is the latest */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_manager_should_save(f.manager, 1, &should, NULL), MUSTER_OK);
        assert_false(should);
    }
    assert_false(save(1));
    assert_int_equal(muster_manager_should_save(f.manager, 0, &should, NULL), MUSTER_OK);
    assert_false(should);
    assert_string_equal(all_steps(), "0");
}

static void a_forced_save_needs_no_policy_also_after_a_no(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    bool should = true, saved = false;

    (void)state;
    f.options.policies = NULL;
    begin();
    assert_false(save(0));
    assert_int_equal(muster_manager_should_save(f.manager, 1, &should, NULL), MUSTER_OK);
    assert_false(should);
    request.force = true;
    assert_int_equal(muster_manager_save(f.manager, 1, &request, &saved, &f.error), MUSTER_OK);
    assert_true(saved);
    assert_string_equal(all_steps(), "1");
}

static void the_first_step_may_be_any(void **state)
{
    (void)state;
    f.save = (struct muster_save_policy){.kind = MUSTER_SAVE_FIRST};
    begin();
    assert_true(save(100));
    assert_false(save(101));
    assert_string_equal(all_steps(), "100");
}

static void names_have_prefix_and_digits(void **state)
{
    (void)state;
    f.options.name_prefix = "step_";
    begin();
    assert_true(save(0));
    assert_false(save(1));
    close_manager();
    assert_true(is_there("step_0"));
    f.options.name_prefix = NULL;
    f.options.name_digits = 4; /* another way to name: what was there is found all the same */
    assert_int_equal(begin(), 0);
    save(1);
    assert_true(save(2));
    assert_true(is_there("0002"));
    assert_string_equal(all_steps(), "0 2");
}

static void the_position_comes_back(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    struct muster_restored restored;

    (void)state;
    begin();
    request.epoch = 3;
    request.step_in_epoch = 7;
    request.data_position = 4711;
    assert_int_equal(muster_manager_save(f.manager, 0, &request, NULL, NULL), MUSTER_OK);
    close_manager();
    open_manager();
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, NULL),
                     MUSTER_OK);
    assert_int_equal(restored.epoch, 3);
    assert_int_equal(restored.step_in_epoch, 7);
    assert_int_equal(restored.data_position, 4711);
}

static void a_notice_saves_whatever_the_policies_say(void **state)
{
    bool saved = false;

    (void)state;
    f.save.number = 4;
    begin();
    assert_true(save(0));
    assert_false(save(1));
    assert_false(muster_manager_reached_preemption(f.manager, 2));
    assert_int_equal(
        muster_node_notify(muster_manager_node(f.manager), MUSTER_NOTICE_USER, -1, "x"), MUSTER_OK);
    assert_true(muster_manager_reached_preemption(f.manager, 2));
    assert_int_equal(muster_manager_save(f.manager, 2, NULL, &saved, &f.error), MUSTER_PREEMPTED);
    assert_true(saved);
    assert_string_equal(all_steps(), "0 2");
    assert_int_equal(muster_manager_close(&f.manager, 0, NULL), MUSTER_PREEMPTED);
}

/* --- reading ----------------------------------------------------------------------------------------- */

static void open_reader(void)
{
    f.options.node = NULL;
    f.options.policies = NULL;
    f.options.checkpoint_dir = f.directory;
    f.options.state = f.state;
    open_manager();
}

static void a_reader_lists_and_restores_any_step(void **state)
{
    struct muster_restored restored;

    (void)state;
    begin();
    for (int step = 0; step < 5; step++)
        save(step);
    close_manager();
    open_reader();
    assert_string_equal(all_steps(), "0 2 4");
    for (int step = 0; step < 5; step += 2) {
        assert_int_equal(muster_manager_restore(f.manager, step, &restored, &f.error), MUSTER_OK);
        assert_int_equal(f.value, step);
        assert_int_equal(restored.step, step);
    }
    assert_int_equal(muster_manager_restore(f.manager, 3, &restored, &f.error), MUSTER_E_NOT_FOUND);
    assert_int_equal(save_fails(5, false), MUSTER_E_UNSUPPORTED);
    assert_non_null(strstr(f.error.text, "read-only"));
}

static void damage(const char *name)
{
    char *path = strdup(scratch_path(f.directory, "%s", name));
    DIR *dir = opendir(path);
    const struct dirent *entry;
    bool done = false;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "shard-", 6) == 0) {
            FILE *file = fopen(scratch_path(path, "%s", entry->d_name), "r+be");

            assert_non_null(file);
            assert_int_equal(fseek(file, -1, SEEK_END), 0);
            fputc(0x5a, file);
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
    begin();
    for (int step = 0; step < 5; step++)
        save(step);
    close_manager();
    damage("4");
    open_manager();
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, &f.error),
                     MUSTER_E_RESTORE);
    assert_non_null(strstr(f.error.text, "/4"));
    close_manager();
    f.options.fallback = true;
    open_manager();
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, &f.error),
                     MUSTER_OK);
    assert_int_equal(restored.step, 2);
    assert_true(restored.fell_back);
    assert_int_equal(f.value, 2);
    close_manager();
    open_reader(); /* a reader too */
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, &f.error),
                     MUSTER_OK);
    assert_int_equal(restored.step, 2);
    assert_true(restored.fell_back);
    close_manager();
    f.options.fallback = false;
    open_reader();
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, &restored, &f.error),
                     MUSTER_E_CORRUPT);
}

static void leftovers_are_never_listed(void **state)
{
    (void)state;
    begin();
    save(0);
    assert_int_equal(mkdir(scratch_path(f.directory, "12"), 0777), 0); /* no manifest */
    assert_int_equal(mkdir(scratch_path(f.directory, "notes"), 0777), 0);
    assert_string_equal(all_steps(), "0");
    close_manager();
    assert_int_equal(begin(), 0);
}

/* --- bad input --------------------------------------------------------------------------------------- */

static void an_existing_step_is_an_error_also_forced_and_leaves_nothing(void **state)
{
    int before, before_inside;
    struct stat was, is;

    (void)state;
    begin();
    save(0);
    save(1);
    save(2);
    before = entries(f.directory);
    before_inside = entries(scratch_path(f.directory, ".muster"));
    assert_int_equal(stat(scratch_path(f.directory, "2/manifest.json"), &was), 0);
    for (int force = 0; force < 2; force++)
        for (int step = 0; step <= 2; step += 2) {
            assert_int_equal(save_fails(step, force != 0), MUSTER_E_EXISTS);
            assert_non_null(strstr(f.error.text, "saved already"));
        }
    assert_int_equal(entries(f.directory), before);
    assert_int_equal(entries(scratch_path(f.directory, ".muster")), before_inside);
    assert_int_equal(stat(scratch_path(f.directory, "2/manifest.json"), &is), 0);
    assert_int_equal(was.st_ino, is.st_ino);
    assert_false(save(3)); /* and training goes on */
    assert_true(save(4));
    close_manager();
    begin(); /* the same after a restart */
    assert_int_equal(save_fails(4, true), MUSTER_E_EXISTS);
    assert_int_equal(save_fails(2, false), MUSTER_E_EXISTS);
}

static void bad_steps_and_requests_are_refused(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    bool should;

    (void)state;
    open_manager();
    assert_int_equal(save_fails(0, false), MUSTER_E_ARGUMENT); /* before the restore */
    assert_non_null(strstr(f.error.text, "muster_manager_restore"));
    assert_int_equal(muster_manager_restore(f.manager, -2, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(f.manager, MUSTER_STEP_LATEST, NULL, NULL),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(save_fails(-1, true), MUSTER_E_ARGUMENT);
    assert_int_equal(save_fails(INT64_MAX, true), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_should_save(f.manager, -1, &should, NULL), MUSTER_E_ARGUMENT);
    save(0);
    save(1);
    save(2);
    save(3);
    assert_int_equal(save_fails(1, false), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f.error.text, "backwards"));
    assert_int_equal(save_fails(5, false), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f.error.text, "left out"));
    request.epoch = -2;
    assert_int_equal(muster_manager_save(f.manager, 4, &request, NULL, NULL), MUSTER_E_ARGUMENT);
    request.struct_size = 3;
    assert_int_equal(muster_manager_save(f.manager, 4, &request, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_wait_until_finished(f.manager, -2, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(f.manager, 0, NULL, &f.error), MUSTER_E_ARGUMENT);
    assert_true(save(4));
    assert_int_equal(muster_manager_save(NULL, 0, NULL, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_restore(NULL, 0, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_false(muster_manager_is_saving_in_progress(NULL));
    assert_null(muster_manager_node(NULL));
    assert_int_equal(muster_manager_close(NULL, 0, NULL), MUSTER_OK);
}

static void refused(const char *says)
{
    muster_manager_t *manager = NULL;

    assert_int_equal(muster_manager_open(&f.options, &manager, &f.error), MUSTER_E_ARGUMENT);
    assert_null(manager);
    if (strstr(f.error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f.error.text, says);
}

static void contradictory_options_are_refused(void **state)
{
    const struct muster_manager_options good = f.options;
    const struct muster_node_options good_node = f.node;
    static const char *const bad_prefixes[] = {
        ".x", "a/b", "..", "v1", "step 1 ", "_________________________________32"};

    (void)state;
#define REFUSED(change, says) \
    do {                      \
        f.options = good;     \
        f.node = good_node;   \
        change;               \
        refused(says);        \
    } while (0)
    REFUSED(f.options.struct_size = 1, "MUSTER_MANAGER_OPTIONS_INIT");
    REFUSED(f.options.name_digits = -1, "name_digits");
    REFUSED(f.options.name_digits = 19, "name_digits");
    REFUSED(f.options.save_timeout_ms = -1, "timeout");
    REFUSED(f.options.query_timeout_ms = -1, "timeout");
    REFUSED(f.options.node = NULL, "policies are given without a node");
    REFUSED((f.options.node = NULL, f.options.policies = NULL), "neither a node");
    REFUSED((f.options.node = NULL, f.options.policies = NULL, f.options.broker = NO_BROKER,
             f.options.checkpoint_dir = f.directory),
            "without a job");
    REFUSED(f.options.job = "other", "for a read-only manager");
    REFUSED(f.options.checkpoint_dir = "/tmp", "for a read-only manager");
    REFUSED(f.options.state = f.state, "for a read-only manager");
    REFUSED(f.node.save_every_steps = 3, "save_every_steps");
    REFUSED(f.node.restore_later = true, "restore_later");
    REFUSED(f.node.job = "a b", "cannot be a job's name");
    REFUSED(f.node.world_size = 0, "world_size");
    REFUSED(f.save.number = 0, "save[0]");
    f.save.number = 2;
    for (size_t i = 0; i < sizeof bad_prefixes / sizeof *bad_prefixes; i++)
        REFUSED(f.options.name_prefix = bad_prefixes[i], "name_prefix");
#undef REFUSED
    f.options = good;
    f.node = good_node;
    assert_int_equal(muster_manager_open(NULL, &f.manager, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_open(&f.options, NULL, NULL), MUSTER_E_ARGUMENT);
    f.options.node = NULL;
    f.options.policies = NULL;
    f.options.checkpoint_dir = scratch_path(f.directory, "nowhere");
    assert_int_equal(muster_manager_open(&f.options, &f.manager, NULL), MUSTER_E_NOT_FOUND);
}

static void going_back_without_a_broker_is_refused(void **state)
{
    (void)state;
    begin();
    for (int step = 0; step < 5; step++)
        save(step);
    close_manager();
    open_manager();
    assert_int_equal(muster_manager_restore(f.manager, 2, NULL, &f.error), MUSTER_E_UNSUPPORTED);
    close_manager();
    open_manager(); /* nothing was changed by it */
    assert_int_equal(muster_manager_restore(f.manager, 4, NULL, &f.error), MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(saves_by_interval_and_goes_on_behind_the_last),
        TEST(where_nothing_is_there_is_no_latest_step),
        TEST(should_save_is_binding_and_the_same_when_asked_again),
        TEST(a_forced_save_needs_no_policy_also_after_a_no),
        TEST(the_first_step_may_be_any),
        TEST(names_have_prefix_and_digits),
        TEST(the_position_comes_back),
        TEST(a_notice_saves_whatever_the_policies_say),
        TEST(a_reader_lists_and_restores_any_step),
        TEST(falls_back_only_when_asked_and_says_so),
        TEST(leftovers_are_never_listed),
        TEST(an_existing_step_is_an_error_also_forced_and_leaves_nothing),
        TEST(bad_steps_and_requests_are_refused),
        TEST(contradictory_options_are_refused),
        TEST(going_back_without_a_broker_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
