#include <muster/node.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT; /* job, rank: environment */
    struct muster_error err = {0};
    muster_node_t *node = NULL;
    double model = 0;
    if (!muster_state_create(&options.state, &err) &&
        !muster_state_add_f64(options.state, "model", &model, &err)) /* what a checkpoint holds */
        muster_node_open(&options, &node, &err); /* joins the job, restores the checkpoint */
    while (!err.status && muster_node_total_run_calls(node) < 12000) {
        model -= 0.001 * (model - 3); /* your step: here gradient descent towards 3 */
        usleep(5000);
        muster_node_save_if_preempted(node, NULL, &err); /* saves and exits here, if preempted */
    }
    fprintf(stderr, "%s, model %.4f\n", err.status ? err.text : "finished", model);
    muster_node_close(&node, err.status != MUSTER_OK, NULL);
    muster_state_destroy(&options.state);
    return muster_status_exit_code(err.status); /* 0 finished, 1 failed, 93 do not restart */
}
