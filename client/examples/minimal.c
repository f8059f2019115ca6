#include <muster/node.h>
#include <stdio.h>
#include <unistd.h>
static int train_step(void *model) /* gradient descent towards 3 */
{
    *(double *)model -= 0.01 * (*(double *)model - 3);
    usleep(5000); /* stands for the rest of a real step */
    return 0;
}
int main(void)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT; /* job, rank, ...: environment */
    struct muster_error err = {0};
    muster_node_t *node = NULL;
    double model = 0;
    if (!muster_state_create(&options.state, &err) &&
        !muster_state_add_tensor(options.state, "m", MUSTER_DTYPE_F64, NULL, 0, &model, &err))
        muster_node_open(&options, &node, &err); /* joins the job, restores its checkpoint */
    while (!err.status && muster_node_total_run_calls(node) < 1000)
        muster_node_run(node, train_step, &model, &err); /* saves, and exits, where agreed */
    fprintf(stderr, "%s, model %.4f\n", err.status ? err.text : "finished", model);
    muster_node_close(&node, err.status != MUSTER_OK, NULL);
    muster_state_destroy(&options.state);
    return muster_status_exit_code(err.status); /* 0; 1 a failure; 93 do not restart */
}
