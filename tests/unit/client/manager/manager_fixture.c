/* manager_fixture - see manager_fixture.h. */
#include "tests/unit/client/manager/manager_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct managed managed;

int managed_setup(void **state)
{
    (void)state;
    memset(&managed, 0, sizeof managed);
    managed.node = (struct muster_node_options)MUSTER_NODE_OPTIONS_INIT;
    managed.options = (struct muster_manager_options)MUSTER_MANAGER_OPTIONS_INIT;
    managed.policies = (struct muster_policies)MUSTER_POLICIES_INIT;
    scratch_make(managed.directory);
    if (muster_state_create(&managed.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(managed.state, "value", &managed.value, NULL) != MUSTER_OK)
        return -1;
    managed.node.broker = NO_BROKER;
    managed.node.offline_ok = true;
    managed.node.connect_timeout_ms = 1;
    managed.node.job = "manager";
    managed.node.rank = 0;
    managed.node.world_size = 1;
    managed.node.checkpoint_dir = managed.directory;
    managed.node.state = managed.state;
    managed.node.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    managed.node.termination.signals[0] = -1;
    managed.save = (struct muster_save_policy){.kind = MUSTER_SAVE_EVERY_STEPS, .number = 2};
    managed.policies.save = &managed.save;
    managed.policies.save_count = 1;
    managed.options.node = &managed.node;
    managed.options.policies = &managed.policies;
    managed.options.query_timeout_ms = 1;
    return 0;
}

int managed_teardown(void **state)
{
    (void)state;
    muster_manager_close(&managed.manager, 0, NULL);
    muster_state_destroy(&managed.state);
    scratch_remove(managed.directory);
    return 0;
}

void managed_open(void)
{
    if (muster_manager_open(&managed.options, &managed.manager, &managed.error) != MUSTER_OK)
        fail_msg("%s", managed.error.text);
}

int64_t managed_begin(void)
{
    struct muster_restored restored = {.step = -1};
    enum muster_status status;

    managed_open();
    status = muster_manager_restore(managed.manager, MUSTER_STEP_LATEST, &restored, sizeof restored,
                                    &managed.error);
    if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND)
        fail_msg("%s", managed.error.text);
    return restored.step;
}

bool managed_save(int64_t step)
{
    bool saved = false;

    managed.value = step;
    if (muster_manager_save(managed.manager, step, NULL, &saved, &managed.error) != MUSTER_OK)
        fail_msg("step %d: %s", (int)step, managed.error.text);
    return saved;
}

const char *managed_steps(void)
{
    static char text[256];
    const struct muster_checkpoint_info *all;
    size_t count, used = 0;

    assert_int_equal(
        muster_manager_all_steps(managed.manager, &all, &count, sizeof *all, &managed.error),
        MUSTER_OK);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i > 0 ? " " : "",
                                 (int)all[i].step);
    return text;
}

void managed_close(void)
{
    assert_int_equal(muster_manager_close(&managed.manager, 0, &managed.error), MUSTER_OK);
}

void managed_open_reader(void)
{
    managed.options.node = NULL;
    managed.options.policies = NULL;
    managed.options.checkpoint_dir = managed.directory;
    managed.options.state = managed.state;
    managed_open();
}
