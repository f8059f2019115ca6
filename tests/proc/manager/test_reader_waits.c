/* A reader that starts before its job waits for the checkpoint directory, if it was told to. */
#include <muster/manager.h>

#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LONG_MS 60000

static char directory[SCRATCH_PATH_MAX], root[SCRATCH_PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    scratch_make(directory);
    snprintf(root, sizeof root, "%s", scratch_path(directory, "checkpoints"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(directory);
    return 0;
}

struct reader {
    int64_t wait_ms;
    enum muster_status status;
    struct muster_error err;
};

static void *open_reader(void *arg)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    struct reader *reader = arg;
    muster_manager_t *manager = NULL;

    options.checkpoint_dir = root;
    options.directory_timeout_ms = reader->wait_ms;
    reader->status = muster_manager_open(&options, &manager, &reader->err);
    if (reader->status == MUSTER_OK)
        muster_manager_close(&manager, 0, NULL);
    return NULL;
}

static void a_reader_waits_for_its_directory(void **state)
{
    struct reader reader = {.wait_ms = LONG_MS};
    struct timespec soon;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, open_reader, &reader), 0);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &soon), ETIMEDOUT); /* it waits */
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (reader.status != MUSTER_OK)
        fail_msg("%s", reader.err.text);
}

static void it_waits_no_longer_than_it_was_told(void **state)
{
    static const int64_t waits_ms[] = {0, 1, 150};

    (void)state;
    for (size_t i = 0; i < sizeof waits_ms / sizeof *waits_ms; i++) {
        struct reader reader = {.wait_ms = waits_ms[i]};

        open_reader(&reader);
        assert_int_equal(reader.status, MUSTER_E_NOT_FOUND);
        assert_non_null(strstr(reader.err.text, root));
    }
    struct reader wrong = {.wait_ms = -1};
    open_reader(&wrong);
    assert_int_equal(wrong.status, MUSTER_E_ARGUMENT);
    assert_non_null(strstr(wrong.err.text, "directory_timeout_ms is -1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_waits_for_its_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_waits_no_longer_than_it_was_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
