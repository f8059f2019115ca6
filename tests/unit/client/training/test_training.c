/* Back-ups in epochs and batches, of one process without a broker. */
#include <muster/training.h>

#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define BATCHES 4

static struct {
    char directory[SCRATCH_PATH_MAX];
    muster_state_t *state;
    int64_t value; /* batches trained */
    struct muster_node_options node;
    struct muster_training_state_options options;
    muster_training_state_t *training;
    struct muster_error error;
} f;

static int setup(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    f.node = (struct muster_node_options)MUSTER_NODE_OPTIONS_INIT;
    f.options = (struct muster_training_state_options)MUSTER_TRAINING_STATE_OPTIONS_INIT;
    scratch_make(f.directory);
    if (muster_state_create(&f.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(f.state, "value", &f.value, NULL) != MUSTER_OK)
        return -1;
    f.node.broker = "ipc:///tmp/muster-training-no-broker";
    f.node.offline_ok = true;
    f.node.connect_timeout_ms = 1;
    f.node.job = "training";
    f.node.rank = 0;
    f.node.world_size = 1;
    f.node.state = f.state;
    f.node.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    f.node.termination.signals[0] = -1;
    f.options.node = &f.node;
    f.options.backup_dir = f.directory;
    f.options.batches_per_epoch = BATCHES;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_training_state_close(&f.training, 0, NULL);
    muster_state_destroy(&f.state);
    scratch_remove(f.directory);
    return 0;
}

/* A new life; true: there was a back-up. */
static bool begin(void)
{
    bool found = false;

    muster_training_state_close(&f.training, 0, NULL);
    f.value = -1;
    f.error = (struct muster_error){.status = MUSTER_OK};
    if (muster_training_state_open(&f.options, &f.training, &f.error) != MUSTER_OK ||
        muster_training_state_restore(f.training, &found, &f.error) != MUSTER_OK)
        fail_msg("%s", f.error.text);
    assert_int_equal(f.error.status, MUSTER_OK); /* untouched, also where nothing was found */
    if (!found)
        f.value = 0;
    return found;
}

static bool batch(int64_t epoch, int64_t number)
{
    bool saved = false;

    f.value++;
    muster_training_state_set_data_position(f.training, 1000 + f.value);
    if (muster_training_state_batch_end(f.training, epoch, number, &saved, &f.error) != MUSTER_OK)
        fail_msg("%s", f.error.text);
    return saved;
}

static bool epoch_end(int64_t epoch)
{
    bool saved = false;

    if (muster_training_state_epoch_end(f.training, epoch, &saved, &f.error) != MUSTER_OK)
        fail_msg("%s", f.error.text);
    return saved;
}

/* A whole epoch; how many back-ups were made. */
static int train(int64_t epoch)
{
    int saves = 0;

    for (int64_t i = 0; i < BATCHES; i++)
        saves += batch(epoch, i);
    return saves + epoch_end(epoch);
}

static void stands_at(int64_t epoch, int64_t number, int64_t data)
{
    int64_t got_epoch, got_batch, got_data;

    muster_training_state_initial_position(f.training, &got_epoch, &got_batch, &got_data);
    assert_int_equal(got_epoch, epoch);
    assert_int_equal(got_batch, number);
    assert_int_equal(got_data, data);
}

static void nothing_saved_is_minus_one_and_begins_at_the_start(void **state)
{
    int64_t epoch, number;

    (void)state;
    assert_false(begin());
    muster_training_state_saved_position(f.training, &epoch, &number);
    assert_int_equal(epoch, -1);
    assert_int_equal(number, -1);
    stands_at(0, 0, -1);
    assert_int_equal(muster_training_state_initial_epoch(f.training, 7, MUSTER_MODE_TRAIN), 7);
}

static void an_epoch_is_backed_up_once_and_training_goes_on_with_the_next(void **state)
{
    int64_t epoch;

    (void)state;
    begin();
    assert_int_equal(train(0), 2); /* its last batch, and the epoch's end that it stands for */
    assert_int_equal(train(1), 2);
    assert_int_equal(scratch_count(scratch_path(f.directory, "chief")),
                     2); /* 7 and .muster: one is kept */
    batch(2, 0);
    assert_true(begin());
    assert_int_equal(f.value, 2 * BATCHES);
    muster_training_state_saved_position(f.training, &epoch, NULL);
    assert_int_equal(epoch, 1);
    stands_at(2, 0, 1000 + 2 * BATCHES);
    assert_int_equal(muster_training_state_initial_epoch(f.training, 0, MUSTER_MODE_TRAIN), 2);
    assert_int_equal(muster_training_state_initial_epoch(f.training, 5, MUSTER_MODE_TEST), 5);
    assert_int_equal(muster_training_state_initial_epoch(f.training, 5, MUSTER_MODE_PREDICT), 5);
    assert_int_equal(train(2), 2);
}

static void an_epoch_without_known_batches_is_backed_up_at_its_end(void **state)
{
    (void)state;
    f.options.batches_per_epoch = 0;
    begin();
    assert_int_equal(train(0), 1);
    assert_true(begin());
    stands_at(1, 0, 1000 + BATCHES);
    assert_true(epoch_end(1)); /* and one without any batches */
    assert_true(epoch_end(2));
    begin();
    stands_at(3, 0, 1000 + BATCHES);
}

static void every_so_many_batches_go_on_behind_the_batch(void **state)
{
    (void)state;
    f.options.save_freq = MUSTER_SAVE_FREQ_BATCHES;
    f.options.save_freq_batches = 3;
    begin();
    assert_false(batch(0, 0));
    assert_false(batch(0, 1));
    assert_true(batch(0, 2));
    begin();
    assert_int_equal(f.value, 3);
    stands_at(0, 3, 1003);
    assert_int_equal(muster_training_state_initial_epoch(f.training, 0, MUSTER_MODE_TRAIN), 0);
    assert_false(batch(0, 3));
    assert_false(epoch_end(0));
    assert_false(batch(1, 0));
    assert_true(batch(1, 1)); /* the sixth, counted on over epochs and lives */
    assert_false(batch(1, 2));
    assert_false(batch(1, 3));
    assert_false(epoch_end(1));
    assert_true(batch(2, 0));
    for (int64_t i = 1; i < 4; i++)
        assert_int_equal(batch(2, i), i == 3); /* the twelfth ends the epoch */
    begin();
    stands_at(3, 0, 1012);
}

static void a_preempted_job_backs_up_its_batch_also_with_never(void **state)
{
    bool saved = false;

    (void)state;
    f.options.save_freq = MUSTER_SAVE_FREQ_NEVER;
    begin();
    assert_int_equal(train(0), 0);
    batch(1, 0);
    f.value++;
    assert_int_equal(
        muster_node_notify(muster_training_state_node(f.training), MUSTER_NOTICE_USER, -1, "x"),
        MUSTER_OK);
    assert_int_equal(muster_training_state_batch_end(f.training, 1, 1, &saved, &f.error),
                     MUSTER_PREEMPTED);
    assert_true(saved);
    assert_int_equal(muster_training_state_close(&f.training, 0, NULL), MUSTER_PREEMPTED);
    assert_true(begin());
    assert_int_equal(f.value, BATCHES + 2);
    stands_at(1, 2, 1005);
}

static void back_up_saves_whatever_the_frequency(void **state)
{
    (void)state;
    f.options.save_freq = MUSTER_SAVE_FREQ_NEVER;
    begin();
    batch(0, 0);
    assert_int_equal(muster_training_state_back_up(f.training, 0, 0, NULL), MUSTER_OK);
    begin();
    stands_at(0, 1, 1001);
    f.value++; /* without batch_end: it ends what was trained */
    assert_int_equal(muster_training_state_back_up(f.training, 0, 1, NULL), MUSTER_OK);
    f.value++;
    assert_int_equal(muster_training_state_back_up(f.training, 0, -1, NULL), MUSTER_OK);
    begin();
    assert_int_equal(f.value, 3);
    stands_at(1, 0, 1001);
}

/* Of a call behind delete_backup. */
static void over(enum muster_status status)
{
    assert_int_equal(status, MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f.error.text, "the training is over"));
}

static void a_training_that_succeeded_deletes_its_back_up(void **state)
{
    (void)state;
    begin();
    train(0);
    train(1);
    assert_int_equal(muster_training_state_delete_backup(f.training, &f.error), MUSTER_OK);
    assert_int_equal(muster_training_state_delete_backup(f.training, &f.error), MUSTER_OK);
    assert_int_equal(scratch_count(scratch_path(f.directory, "chief")), 1);
    over(muster_training_state_batch_end(f.training, 2, 0, NULL, &f.error));
    over(muster_training_state_epoch_end(f.training, 2, NULL, &f.error));
    over(muster_training_state_back_up(f.training, 1, -1, &f.error));
    over(muster_training_state_back_up(f.training, 2, 0, &f.error));
    assert_int_equal(scratch_count(scratch_path(f.directory, "chief")), 1);
    assert_false(begin());
    stands_at(0, 0, -1);
    assert_int_equal(muster_training_state_delete_backup(NULL, NULL), MUSTER_E_ARGUMENT);
}

static void the_chief_writes_beside_its_back_ups(void **state)
{
    const char *path = NULL;

    (void)state;
    begin();
    assert_int_equal(muster_training_state_write_directory(f.training, &path, NULL), MUSTER_OK);
    assert_string_equal(path, scratch_path(f.directory, "chief"));
    train(0);
    assert_true(scratch_exists(scratch_path(f.directory, "chief/3/manifest.json")));
}

static void positions_go_forward_only(void **state)
{
    static const struct {
        int64_t epoch, batch;
    } bad[] = {{-1, 0}, {0, -2}, {0, BATCHES}, {0, 1}, {0, 0}, {INT64_MAX, 0}};

    (void)state;
    begin();
    batch(0, 0);
    batch(0, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            muster_training_state_batch_end(f.training, bad[i].epoch, bad[i].batch, NULL, &f.error),
            MUSTER_E_ARGUMENT);
    assert_int_equal(muster_training_state_batch_end(f.training, 0, -1, NULL, &f.error),
                     MUSTER_E_ARGUMENT);
    assert_non_null(strstr(f.error.text, "epoch_end"));
    epoch_end(0);
    assert_int_equal(muster_training_state_epoch_end(f.training, 0, NULL, &f.error),
                     MUSTER_E_ARGUMENT);
    assert_non_null(
        strstr(f.error.text, "the end of epoch 0 does not come after the end of epoch 0"));
    assert_int_equal(muster_training_state_batch_end(f.training, 0, 3, NULL, &f.error),
                     MUSTER_E_ARGUMENT);
    batch(1, 0);
    begin(); /* also behind what was restored */
    assert_int_equal(muster_training_state_batch_end(f.training, 0, 3, NULL, &f.error),
                     MUSTER_E_ARGUMENT);
    batch(1, 0);
    assert_int_equal(muster_training_state_back_up(NULL, 0, 0, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_training_state_restore(NULL, NULL, NULL), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_training_state_close(NULL, 0, NULL), MUSTER_OK);
}

static void contradictory_options_are_refused(void **state)
{
    const struct muster_training_state_options good = f.options;
    const struct muster_node_options good_node = f.node;

    (void)state;
#define REFUSED(change, says)                                                         \
    do {                                                                              \
        muster_training_state_t *training = NULL;                                     \
        f.options = good;                                                             \
        f.node = good_node;                                                           \
        change;                                                                       \
        assert_int_equal(muster_training_state_open(&f.options, &training, &f.error), \
                         MUSTER_E_ARGUMENT);                                          \
        assert_null(training);                                                        \
        if (strstr(f.error.text, says) == NULL)                                       \
            fail_msg("\"%s\" does not say \"%s\"", f.error.text, says);               \
    } while (0)
    REFUSED(f.options.struct_size = 0, "OPTIONS_INIT");
    REFUSED(f.options.node = NULL, "node");
    REFUSED(f.options.backup_dir = NULL, "backup_dir");
    REFUSED(f.options.backup_dir = "", "backup_dir");
    REFUSED(f.node.checkpoint_dir = "/tmp", "checkpoint_dir");
    REFUSED(f.options.save_freq = (enum muster_save_freq)9, "save_freq");
    REFUSED(f.options.save_freq = MUSTER_SAVE_FREQ_BATCHES, "save_freq_batches");
    REFUSED(f.options.save_freq_batches = 3, "save_freq_batches");
    REFUSED(f.options.batches_per_epoch = -1, "batches_per_epoch");
    REFUSED(f.node.save_every_steps = 5, "save_every_steps");
    REFUSED(f.options.save_timeout_ms = -1, "timeout");
#undef REFUSED
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_saved_is_minus_one_and_begins_at_the_start),
        TEST(an_epoch_is_backed_up_once_and_training_goes_on_with_the_next),
        TEST(an_epoch_without_known_batches_is_backed_up_at_its_end),
        TEST(every_so_many_batches_go_on_behind_the_batch),
        TEST(a_preempted_job_backs_up_its_batch_also_with_never),
        TEST(back_up_saves_whatever_the_frequency),
        TEST(a_training_that_succeeded_deletes_its_back_up),
        TEST(the_chief_writes_beside_its_back_ups),
        TEST(positions_go_forward_only),
        TEST(contradictory_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
