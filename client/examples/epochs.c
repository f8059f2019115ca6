#include <muster/training.h>
#include <stdio.h>
#include <unistd.h>

enum { EPOCHS = 10, BATCHES = 50 };

int main(void)
{
    struct muster_node_options node = MUSTER_NODE_OPTIONS_INIT; /* job, rank, ...: environment */
    struct muster_training_state_options options = MUSTER_TRAINING_STATE_OPTIONS_INIT;
    struct muster_error err = {0};
    muster_training_state_t *training = NULL;
    int64_t epoch = 0, batch = 0, samples = -1;
    double model = 0;

    options.node = &node;
    options.backup_dir = "backup"; /* one directory for all ranks */
    options.batches_per_epoch = BATCHES;
    if (!muster_state_create(&node.state, &err) &&
        !muster_state_add_tensor(node.state, "m", MUSTER_DTYPE_F64, NULL, 0, &model, &err) &&
        !muster_training_state_open(&options, &training, &err))
        muster_training_state_restore(training, NULL, &err); /* every rank gets the same back-up */
    muster_training_state_initial_position(training, &epoch, &batch, &samples);
    fprintf(stderr, "begins with epoch %d, batch %d, sample %d\n", (int)epoch, (int)batch,
            (int)(samples < 0 ? 0 : samples));
    samples = samples < 0 ? 0 : samples; /* nothing saved: from the first one on */
    for (; !err.status && epoch < EPOCHS; epoch++, batch = 0) {
        for (; !err.status && batch < BATCHES; batch++) {
            model -= 0.01 * (model - 3); /* gradient descent towards 3 */
            usleep(5000);                /* stands for the rest of a real batch */
            samples += 32;
            muster_training_state_set_data_position(training, samples);
            muster_training_state_batch_end(training, epoch, batch, NULL, &err);
        }
        if (!err.status)
            muster_training_state_epoch_end(training, epoch, NULL, &err); /* backs up */
    }
    if (!err.status)
        muster_training_state_delete_backup(training, &err); /* nothing is left to go on with */
    fprintf(stderr, "%s, model %.4f\n", err.status ? err.text : "finished", model);
    muster_training_state_close(&training, err.status != MUSTER_OK, NULL);
    muster_state_destroy(&node.state);
    return muster_status_exit_code(err.status); /* 0; 1 a failure; 93 do not restart */
}
