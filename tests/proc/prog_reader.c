/* prog_reader - a read-only manager: reads the state that prog_manager saves. Its first argument
 * says what: list | best least|greatest | restore STEP | unlike missing|type|shape STEP | slowly
 * STEP FILE | metadata STEP | hold STEP LEASE-MS FILE | follow COUNT | latest | metric STEP NAME |
 * wait AFTER-STEP MS | twice STEP: pins, lists, lets go, reads again and lists | fork STEP: pins,
 * lets a forked child call in vain and close, and lists Where it looks: MUSTER_JOB with
 * MUSTER_BROKER, or MUSTER_CHECKPOINT_DIR alone if there is no job. */
#include "tests/support/storm.h"

#include <muster/manager.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLLOW_MS 30000

static muster_manager_t *manager;
static int64_t value;
static const char *go_file; /* slowly: reads on once it is there */

static void await_file(const char *file)
{
    while (access(file, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* What a save_fn wrote; says that it reads before it does. */
static int read_slowly(const struct muster_restore_context *context)
{
    char path[4096];
    FILE *file;
    int got;

    printf("reading\n");
    await_file(go_file);
    snprintf(path, sizeof path, "%s/value", context->directory);
    file = fopen(path, "rbe");
    if (file == NULL)
        return 6;
    got = fscanf(file, "%" SCNd64, &value);
    fclose(file);
    return got == 1 ? 0 : 6;
}

static int say(enum muster_status status, const struct muster_error *error)
{
    if (status == MUSTER_OK)
        return 0;
    printf("error: status=%s text=%s\n", muster_status_name(status), error->text);
    return 1;
}

static int list(struct muster_error *error)
{
    const struct muster_checkpoint_info *all = NULL;
    size_t count = 0;
    enum muster_status status = muster_manager_all_steps(manager, &all, &count, sizeof *all, error);

    for (size_t i = 0; i < count; i++)
        printf("%s%" PRId64 "%s", i > 0 ? " " : "", all[i].step, all[i].pinned ? "*" : "");
    printf("\n");
    return say(status, error);
}

static int restore(int64_t step, struct muster_error *error)
{
    struct muster_restored restored;
    enum muster_status status =
        muster_manager_restore(manager, step, &restored, sizeof restored, error);

    if (status == MUSTER_OK)
        printf("restored %" PRId64 " %s\n", restored.step,
               value == 3 * (restored.step + 1) + 1 ? "right" : "WRONG");
    return say(status, error);
}

static int metadata(int64_t step, struct muster_error *error)
{
    const struct muster_checkpoint_info *info = NULL;
    enum muster_status status = muster_manager_metadata(manager, step, &info, sizeof *info, error);

    if (status == MUSTER_OK)
        printf("%s %s epoch=%" PRId64 "\n", info->metrics, info->custom_metadata, info->epoch);
    return say(status, error);
}

/* Pins, says so, and stays until the file is there; with FILE "-" it dies at once, its pin stands.
 */
static int hold(int64_t step, int64_t lease_ms, const char *file, struct muster_error *error)
{
    enum muster_status status = muster_manager_pin(manager, step, lease_ms, &step, error);

    printf("held %" PRId64 "\n", step);
    fflush(stdout);
    if (strcmp(file, "-") == 0)
        _exit(status == MUSTER_OK ? 0 : 1);
    if (status == MUSTER_OK)
        await_file(file);
    return say(status, error);
}

static int follow(int64_t count, struct muster_error *error)
{
    enum muster_status status = MUSTER_OK;
    int64_t step;

    while (status == MUSTER_OK && count-- > 0) {
        status = muster_manager_next_checkpoint(manager, FOLLOW_MS, &step, error);
        if (status == MUSTER_OK)
            printf("new %" PRId64 "\n", step);
        if (status == MUSTER_OK &&
            restore(MUSTER_STEP_LATEST, error) != 0) /* that one may be gone */
            return 1;
    }
    return say(status, error);
}

/* Into a state that is not what was saved. The memory is to stay as it was. */
static int unlike(muster_state_t *state, const char *what, int64_t step, struct muster_error *error)
{
    static const int64_t two[1] = {2};
    static int64_t pair[2] = {-7, -7};
    static double other = -7;
    enum muster_status status;
    int code;

    value = -7;
    if (strcmp(what, "missing") == 0)
        status = muster_state_add_i64(state, "absent", &pair[0], error);
    else
        status = muster_state_remove(state, "value", error);
    if (status == MUSTER_OK && strcmp(what, "type") == 0)
        status = muster_state_add_f64(state, "value", &other, error);
    if (status == MUSTER_OK && strcmp(what, "shape") == 0)
        status = muster_state_add_tensor(state, "value", MUSTER_DTYPE_I64, two, 1, pair, error);
    if (status != MUSTER_OK)
        return say(status, error);
    code = restore(step, error);
    printf("memory %s\n",
           value == -7 && pair[0] == -7 && pair[1] == -7 && other == -7 ? "untouched" : "TOUCHED");
    return code;
}

static int metric(int64_t step, const char *name, struct muster_error *error)
{
    double found = -1;
    enum muster_status status = muster_manager_metrics(manager, step, name, &found, error);

    printf("%g\n", found);
    return say(status, error);
}

static int wait_for(int64_t after, int64_t ms, struct muster_error *error)
{
    int64_t step = -1;
    enum muster_status status =
        muster_manager_wait_for_new_checkpoint(manager, after, ms, &step, error);

    printf("%" PRId64 "\n", step);
    return say(status, error);
}

static int twice(int64_t step, struct muster_error *error)
{
    int code = say(muster_manager_pin(manager, step, 60000, NULL, error), error);

    if (code == 0)
        code = list(error);
    if (code == 0)
        code = say(muster_manager_unpin(manager, step, error), error);
    if (code == 0)
        code = say(muster_manager_reload(manager, error), error);
    return code == 0 ? list(error) : code;
}

/* A child's calls are refused, and take back nothing of its parent's. */
static int calls_in_vain(struct muster_error *error)
{
    const struct muster_checkpoint_info *all = NULL;
    struct muster_restored restored;
    size_t count = 0;
    int64_t step = -1;

    alarm(20);
    if (muster_manager_all_steps(manager, &all, &count, sizeof *all, error) != MUSTER_E_FORKED ||
        muster_manager_latest_step(manager, &step, error) != MUSTER_E_FORKED ||
        muster_manager_restore(manager, MUSTER_STEP_LATEST, &restored, sizeof restored, error) !=
            MUSTER_E_FORKED ||
        muster_manager_wait_for_new_checkpoint(manager, -1, -1, &step, error) != MUSTER_E_FORKED ||
        muster_manager_pin(manager, MUSTER_STEP_LATEST, 1000, &step, error) != MUSTER_E_FORKED ||
        muster_manager_unpin(manager, MUSTER_STEP_LATEST, error) != MUSTER_E_FORKED ||
        muster_manager_reload(manager, error) != MUSTER_E_FORKED)
        return 3;
    return muster_manager_close(&manager, 0, error) == MUSTER_E_FORKED && manager == NULL ? 0 : 4;
}

static int forked(int64_t step, struct muster_error *error)
{
    int code = say(muster_manager_pin(manager, step, 60000, NULL, error), error), status = -1;
    pid_t child;

    fflush(stdout);
    child = code == 0 ? fork() : -1;
    if (child == 0)
        _exit(calls_in_vain(error));
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        printf("child %d\n", WEXITSTATUS(status));
    if (code == 0)
        code = say(muster_manager_reload(manager, error), error);
    return code == 0 ? list(error) : code;
}

static int latest(struct muster_error *error)
{
    int64_t step = -1;
    enum muster_status status = muster_manager_latest_step(manager, &step, error);

    printf("%" PRId64 "\n", step);
    return say(status, error);
}

static int64_t number(const char *text)
{
    return text != NULL ? strtoll(text, NULL, 10) : MUSTER_STEP_LATEST;
}

int main(int argc, char **argv)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    struct muster_error error = {.status = MUSTER_OK};
    const char *what = argc > 1 ? argv[1] : "list";
    int64_t step = -1;
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    storm_from_environment();
    options.job = getenv("MUSTER_JOB");
    options.checkpoint_dir = getenv("MOVED_TO");
    if (options.job == NULL)
        options.checkpoint_dir = getenv("MUSTER_CHECKPOINT_DIR");
    if (muster_state_create(&options.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(options.state, "value", &value, NULL) != MUSTER_OK)
        return 2;
    if (strcmp(what, "slowly") == 0) {
        go_file = argv[3];
        muster_state_destroy(&options.state);
        options.restore_fn = read_slowly;
    }
    code = say(muster_manager_open(&options, &manager, &error), &error);
    if (code == 0 && strcmp(what, "list") == 0)
        code = list(&error);
    else if (code == 0 && strcmp(what, "best") == 0) {
        code = say(muster_manager_best_step(manager, "loss", strcmp(argv[2], "greatest") == 0,
                                            &step, &error),
                   &error);
        printf("%" PRId64 "\n", step);
    } else if (code == 0 && (strcmp(what, "restore") == 0 || strcmp(what, "slowly") == 0))
        code = restore(number(argv[2]), &error);
    else if (code == 0 && strcmp(what, "unlike") == 0 && argc > 3)
        code = unlike(options.state, argv[2], number(argv[3]), &error);
    else if (code == 0 && strcmp(what, "metadata") == 0)
        code = metadata(number(argv[2]), &error);
    else if (code == 0 && strcmp(what, "hold") == 0 && argc > 4)
        code = hold(number(argv[2]), number(argv[3]), argv[4], &error);
    else if (code == 0 && strcmp(what, "latest") == 0)
        code = latest(&error);
    else if (code == 0 && strcmp(what, "metric") == 0 && argc > 3)
        code = metric(number(argv[2]), argv[3], &error);
    else if (code == 0 && strcmp(what, "wait") == 0 && argc > 3)
        code = wait_for(number(argv[2]), number(argv[3]), &error);
    else if (code == 0 && strcmp(what, "twice") == 0)
        code = twice(number(argv[2]), &error);
    else if (code == 0 && strcmp(what, "fork") == 0)
        code = forked(number(argv[2]), &error);
    else if (code == 0 && strcmp(what, "follow") == 0)
        code = follow(number(argv[2]), &error);
    muster_manager_close(&manager, 0, NULL);
    muster_state_destroy(&options.state);
    return code;
}
