#include <muster/manager.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    const struct muster_save_policy save = {.kind = MUSTER_SAVE_EVERY_STEPS, .number = 100};
    const struct muster_keep_policy keep[] = {
        {.kind = MUSTER_KEEP_LATEST, .number = 2},
        {.kind = MUSTER_KEEP_BEST, .number = 1, .metric = "loss"}};
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct muster_node_options node = MUSTER_NODE_OPTIONS_INIT; /* job, rank, ...: environment */
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    struct muster_metric loss = {.name = "loss"};
    struct muster_restored restored = {.step = -1};
    struct muster_error err = {0};
    muster_manager_t *manager = NULL;
    double model = 0;

    policies.save = &save, policies.save_count = 1;
    policies.keep = keep, policies.keep_count = 2;
    options.node = &node, options.policies = &policies;
    request.metrics = &loss, request.metrics_count = 1;
    if (!muster_state_create(&node.state, &err) &&
        !muster_state_add_tensor(node.state, "m", MUSTER_DTYPE_F64, NULL, 0, &model, &err) &&
        !muster_manager_open(&options, &manager, &err) &&
        muster_manager_restore(manager, MUSTER_STEP_LATEST, &restored, sizeof restored, &err) ==
            MUSTER_E_NOT_FOUND)
        err.status = MUSTER_OK; /* the first launch: nothing is saved, restored.step is -1 */
    for (int64_t step = restored.step + 1; !err.status && step < 500; step++) {
        model -= 0.01 * (model - 3); /* gradient descent towards 3 */
        usleep(5000);                /* stands for the rest of a real step */
        loss.value = (model - 3) * (model - 3);
        muster_manager_save(manager, step, &request, NULL,
                            &err); /* saves, and exits, where agreed */
    }
    fprintf(stderr, "%s, model %.4f, begun at step %lld\n", err.status ? err.text : "finished",
            model, (long long)restored.step + 1);
    muster_manager_close(&manager, err.status != MUSTER_OK, NULL);
    muster_state_destroy(&node.state);
    return muster_status_exit_code(err.status); /* 0; 1 a failure; 93 do not restart */
}
