/* prog_setup ABORT_MS GRACE_MS - joins the job that the environment names, says so, and never comes
 * to a boundary: a set-up that hangs. What ends it is not its own doing. */
#include <muster/muster.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error err = {.text = ""};
    muster_state_t *state = NULL;
    muster_node_t *node = NULL;
    int64_t weight = 0;

    if (argc != 3 || muster_state_create(&state, NULL) != MUSTER_OK ||
        muster_state_add_i64(state, "weight", &weight, NULL) != MUSTER_OK)
        return 2;
    options.state = state;
    options.abort_timeout_ms = strtol(argv[1], NULL, 10);
    options.termination.grace_period_ms = strtol(argv[2], NULL, 10);
    if (muster_node_open(&options, &node, &err) != MUSTER_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    puts("it hangs");
    fflush(stdout);
    alarm(120); /* should nothing end it */
    for (;;)
        pause();
}
