/* alone_options - see alone_options.h. */
#include "tests/unit/node/local/alone_options.h"

struct muster_node_options alone_options(const char *directory, muster_state_t *state)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;

    options.broker = "ipc:///tmp/muster-local-no-broker";
    options.offline_ok = true;
    options.connect_timeout_ms = 1;
    options.job = "local";
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = directory;
    options.state = state;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    options.termination.signals[0] = -1;
    return options;
}
