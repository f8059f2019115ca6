/* options_init - the defaults of each options structure, for languages that cannot use the macros.
 * Holds: no byte behind the caller's struct_size is written, so a program may be older than this library. */
#include <muster/coordinator.h>
#include <muster/manager.h>
#include <muster/node.h>
#include <muster/policy.h>
#include <muster/training.h>
#include <muster/worker.h>

#include <string.h>

static void options_fill(void *options, size_t struct_size, const void *defaults, size_t size)
{
    if (options == NULL || struct_size < sizeof struct_size)
        return;
    memset(options, 0, struct_size);
    memcpy(options, defaults, struct_size < size ? struct_size : size);
    memcpy(options, &struct_size, sizeof struct_size); /* the first member of each */
}

#define DEFINE_INIT(name, defaults)                                              \
    void muster_##name##_init(struct muster_##name *options, size_t struct_size) \
    {                                                                            \
        static const struct muster_##name values = defaults;                     \
                                                                                 \
        options_fill(options, struct_size, &values, sizeof values);              \
    }

DEFINE_INIT(node_options, MUSTER_NODE_OPTIONS_INIT)
DEFINE_INIT(manager_options, MUSTER_MANAGER_OPTIONS_INIT)
DEFINE_INIT(save_request, MUSTER_SAVE_REQUEST_INIT)
DEFINE_INIT(policies, MUSTER_POLICIES_INIT)
DEFINE_INIT(training_state_options, MUSTER_TRAINING_STATE_OPTIONS_INIT)
DEFINE_INIT(coordinator_options, MUSTER_COORDINATOR_OPTIONS_INIT)
DEFINE_INIT(call, MUSTER_CALL_INIT)
DEFINE_INIT(worker_options, MUSTER_WORKER_OPTIONS_INIT)
