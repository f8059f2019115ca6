/* task_calls - see task_calls.h. */
#include "tests/proc/tasks/task_calls.h"

#include "tests/proc/check.h"

#include <string.h>

struct muster_error task_error;
muster_coordinator_t *task_coordinator;

void task_open_queue(const char *name, bool fresh, int64_t max_queued)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    options.name = name;
    options.fresh = fresh;
    options.max_queued = max_queued;
    options.connect_timeout_ms = PATIENCE_MS;
    CHECK(muster_coordinator_open(&options, &task_coordinator, &err) == MUSTER_OK);
}

enum muster_status task_try_schedule(const char *function, const char *args,
                                     muster_remote_value_t **ret_value)
{
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = function;
    call.args = args;
    call.args_size = strlen(args);
    return muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, ret_value, &err);
}

muster_remote_value_t *task_schedule(const char *function, const char *args)
{
    muster_remote_value_t *value = NULL;

    CHECK(task_try_schedule(function, args, &value) == MUSTER_OK);
    return value;
}

enum muster_status task_join(void)
{
    return muster_coordinator_join(task_coordinator, PATIENCE_MS, &err);
}

enum muster_status task_fetch(muster_remote_value_t *value, const char **ret_text)
{
    static char text[64];
    const void *data;
    size_t size;
    enum muster_status status = muster_remote_value_fetch(value, PATIENCE_MS, &data, &size, &err);

    if (status == MUSTER_OK)
        snprintf(text, sizeof text, "%.*s", (int)size, size > 0 ? (const char *)data : "");
    *ret_text = text;
    return status;
}

void task_expect(muster_remote_value_t **value, const char *expected)
{
    const char *text;

    CHECK(task_fetch(*value, &text) == MUSTER_OK);
    CHECK(strcmp(text, expected) == 0);
    muster_remote_value_free(value);
}

void task_expect_error(muster_remote_value_t **value, enum muster_status status)
{
    const char *text;

    CHECK(task_fetch(*value, &text) == status);
    muster_remote_value_free(value);
}

void task_await_failure(muster_remote_value_t *value)
{
    const char *text;

    CHECK(task_fetch(value, &text) == MUSTER_E_TASK);
}

muster_remote_value_t *task_schedule_use(muster_per_worker_t *made)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "use";
    call.per_worker = &made;
    call.per_worker_count = 1;
    CHECK(muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, &value, &err) ==
          MUSTER_OK);
    return value;
}
