/* options_init - the defaults of each structure that has a struct_size, and how a caller's is read.
 * Holds: no byte beyond the caller's struct_size is written or read, so a program may be older than
 * this library. */
#include "client/node/options_take.h"

#include "schema/error.h"

#include <stddef.h>
#include <string.h>

static void options_fill(void *options, size_t struct_size, const void *defaults, size_t size)
{
    if (options == NULL || struct_size < sizeof struct_size)
        return;
    memset(options, 0, struct_size);
    memcpy(options, defaults, struct_size < size ? struct_size : size);
    memcpy(options, &struct_size, sizeof struct_size); /* the first member of each */
}

struct form {
    const char *call, *init;
    const void *defaults;
    size_t size, least;
};

static enum muster_status options_take(const struct form *form, const void *given, void *ret_own,
                                       struct muster_error *err)
{
    size_t size = 0;

    if (given != NULL)
        memcpy(&size, given, sizeof size);
    if (size < form->least)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: its structure is NULL or not initialized; begin it with %s",
                         form->call, form->init);
    for (size_t i = form->size; i < size; i++)
        if (((const char *)given)[i] != 0)
            return error_set(err, MUSTER_E_VERSION,
                             "%s: a field is set that libmuster " MUSTER_VERSION " is too old for; "
                             "install the one that the program was built with",
                             form->call);
    memcpy(ret_own, form->defaults, form->size);
    memcpy(ret_own, given, size < form->size ? size : form->size);
    memcpy(ret_own, &form->size, sizeof form->size);
    return MUSTER_OK;
}

/* LEAST is the first field that callers of the first release did not have. */
#define DEFINE(name, defaults_, least_, call_)                                              \
    void muster_##name##_init(struct muster_##name *options, size_t struct_size)            \
    {                                                                                       \
        static const struct muster_##name values = defaults_;                               \
                                                                                            \
        options_fill(options, struct_size, &values, sizeof values);                         \
    }                                                                                       \
    enum muster_status name##_take(const struct muster_##name *given,                       \
                                   struct muster_##name *ret_own, struct muster_error *err) \
    {                                                                                       \
        static const struct muster_##name values = defaults_;                               \
        static const struct form form = {.call = call_,                                     \
                                         .init = #defaults_,                                \
                                         .defaults = &values,                               \
                                         .size = sizeof values,                             \
                                         .least = offsetof(struct muster_##name, least_)};  \
                                                                                            \
        return options_take(&form, given, ret_own, err);                                    \
    }

DEFINE(node_options, MUSTER_NODE_OPTIONS_INIT, restore_later, "muster_node_open")
DEFINE(manager_options, MUSTER_MANAGER_OPTIONS_INIT, name_prefix, "muster_manager_open")
DEFINE(save_request, MUSTER_SAVE_REQUEST_INIT, custom_metadata, "muster_manager_save")
DEFINE(policies, MUSTER_POLICIES_INIT, trash, "muster_manager_open")
DEFINE(training_state_options, MUSTER_TRAINING_STATE_OPTIONS_INIT, fallback,
       "muster_training_state_open")
DEFINE(coordinator_options, MUSTER_COORDINATOR_OPTIONS_INIT, max_queued, "muster_coordinator_open")
DEFINE(call, MUSTER_CALL_INIT, per_worker, "muster_coordinator_schedule")
DEFINE(worker_options, MUSTER_WORKER_OPTIONS_INIT, prefetch, "muster_worker_open")
DEFINE(read_options, MUSTER_READ_OPTIONS_INIT, rank, "muster_checkpoint_read")
