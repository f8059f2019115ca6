/* prog_phases - all forms of a training loop in one program, which can be stopped at every place in
 * it.
 *
 * usage: prog_phases [--NAME NUMBER]... --gates DIRECTORY
 * --mode: 0 run, 1 the check call, 2 scope, 3 explicit (asks whether it will save, gives save_fn an
 * argument), -1 another one at each rank. --stride: steps of the model in one call. What it trains
 * is model.h. At the places open, step, eval (between two calls), hold (the same, held) and save it
 * waits while there is a file PLACE-CALLS or PLACE-CALLS.RANK in the directory, CALLS being those
 * begun or, between calls, done; it says "at PLACE-CALLS" then, and in the explicit mode "will
 * save" once it would. Rank and collective as in prog_trainer, and so is the line at each exit. */
#include "client/examples/words_allreduce.h"
#include "tests/proc/manager/model.h"

#include <muster/node.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COLLECTIVE_MS 60000
#define PATH_MAX_BYTES 4096

enum mode { MODE_RUN, MODE_CHECK, MODE_SCOPE, MODE_EXPLICIT, MODES };

struct phases {
    /* options */
    int64_t mode, sharded, steps, stride, step_ms, save_every, exit_policy, grace_ms, offline,
        save_on_notice, behind;
    const char *gates;
    /* the life */
    muster_node_t *node;
    struct words_allreduce all;
    int64_t resumed;
    int saves, errors_wrong;
    bool closing;
    _Atomic int errors; /* calls of on_error */
    enum muster_status status;
    struct model model;
};

static struct phases phases = {
    .steps = 20, .stride = 1, .step_ms = 2, .grace_ms = -1, .model.cells = 64};

static const struct {
    const char *name;
    int64_t *value;
} numbers[] = {
    {"--mode", &phases.mode},
    {"--sharded", &phases.sharded},
    {"--steps", &phases.steps}, /* calls */
    {"--stride", &phases.stride},
    {"--step-ms", &phases.step_ms},
    {"--save-every", &phases.save_every},
    {"--exit-policy", &phases.exit_policy}, /* 0 return, 1 exit */
    {"--grace-ms", &phases.grace_ms},
    {"--offline", &phases.offline},
    {"--save-on-notice", &phases.save_on_notice},
    {"--behind", &phases.behind}, /* saves are written while training goes on */
};

static bool parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        bool known = strcmp(argv[i], "--gates") == 0;

        if (known)
            phases.gates = argv[i + 1];
        for (size_t n = 0; !known && n < sizeof numbers / sizeof *numbers; n++)
            if (strcmp(argv[i], numbers[n].name) == 0) {
                *numbers[n].value = strtoll(argv[i + 1], NULL, 10);
                known = true;
            }
        if (!known)
            return false;
    }
    return argc % 2 == 1 && phases.gates != NULL && phases.mode < MODES && phases.stride > 0;
}

static void wrong(struct phases *t, const char *what, int64_t got, int64_t expected)
{
    t->errors_wrong++;
    fprintf(stderr, "phases: rank %d: %s: got %" PRId64 ", expected %" PRId64 "\n", t->model.rank,
            what, got, expected);
}

static int64_t calls(const struct phases *t)
{
    return muster_node_total_run_calls(t->node);
}

static void pause_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* --- places ----------------------------------------------------------------------------------- */

static bool gate_is_there(const struct phases *t, const char *place, int64_t number)
{
    char path[PATH_MAX_BYTES];
    int length =
        snprintf(path, sizeof path, "%s/%s-%" PRId64 ".%d", t->gates, place, number, t->model.rank);

    if (access(path, F_OK) == 0)
        return true;
    while (path[--length] != '.')
        continue;
    path[length] = '\0';
    return access(path, F_OK) == 0;
}

static void wait_at(struct phases *t, const char *place, int64_t number)
{
    bool told = false, told_save = false;

    for (; gate_is_there(t, place, number); pause_ms(5)) {
        if (!told)
            printf("at %s-%" PRId64 "\n", place, number);
        told = true;
        if (t->mode == MODE_EXPLICIT && !told_save &&
            muster_node_reached_preemption(t->node, calls(t))) {
            printf("will save %" PRId64 "\n", calls(t) + 1);
            told_save = true;
        }
    }
}

/* --- the training ----------------------------------------------------------------------------- */

/* All ranks meet, and all mean the same step. */
static int meet(struct phases *t, int64_t next)
{
    float mean = (float)next;
    int code = t->model.world_size > 1 ? words_allreduce_mean(&t->all, &mean) : 0;

    if (code == 0 && (mean < (float)next - 0.1F || mean > (float)next + 0.1F)) {
        wrong(t, "mean of the ranks' steps", (int64_t)mean, next);
        return EPROTO;
    }
    return -code;
}

static int train_step(void *arg)
{
    struct phases *t = arg;

    wait_at(t, "step", calls(t) + 1);
    for (int64_t i = 0; i < t->stride; i++) {
        int code = meet(t, t->model.step + 1);

        if (code != 0)
            return code;
        pause_ms(t->step_ms);
        model_step(&t->model);
    }
    return 0;
}

static enum muster_status check_call(struct phases *t, void *arg, struct muster_error *error)
{
    int64_t step = calls(t);
    int code = train_step(t);
    bool foretold;
    int saves = t->saves;
    enum muster_status status;

    if (code != 0)
        muster_node_fail(t->node, code, "the loop's own step failed");
    foretold = t->mode == MODE_EXPLICIT && muster_node_reached_preemption(t->node, step);
    status = muster_node_save_if_preempted(t->node, arg, error);
    if (foretold && code == 0 && (t->sharded || t->model.rank == 0) && t->saves != saves + 1)
        wrong(t, "saves in a call that was told to save", t->saves - saves, 1);
    return status;
}

static enum muster_status one_call(struct phases *t, struct muster_error *error)
{
    enum muster_status status;

    if (t->mode == MODE_RUN)
        return muster_node_run(t->node, train_step, t, error);
    if (t->mode == MODE_CHECK)
        return check_call(t, NULL, error);
    if (t->mode == MODE_EXPLICIT)
        return check_call(t, &t->saves, error);
    status = muster_node_scope_enter(t->node, error);
    return status != MUSTER_OK ? status : muster_node_scope_leave(t->node, train_step(t), error);
}

/* Training thread: the state is that of the save step. */
static void look_at_save(struct phases *t, const struct muster_save_context *context)
{
    void *arg = t->closing                 ? NULL
                : t->mode == MODE_RUN      ? (void *)t
                : t->mode == MODE_EXPLICIT ? (void *)&t->saves
                                           : NULL;

    if (context->call_arg != arg)
        wrong(t, "argument of the save", context->call_arg != NULL, arg != NULL);
    if (context->step * t->stride != t->model.step)
        wrong(t, "step of the save", context->step * t->stride, t->model.step);
    t->saves++;
}

static int take(const struct muster_save_context *context, void **ret_snapshot)
{
    struct phases *t = context->arg;
    struct model *copy = malloc(sizeof *copy);

    if (copy == NULL)
        return ENOMEM;
    look_at_save(t, context);
    *copy = t->model;
    *ret_snapshot = copy;
    return 0;
}

static void release(void *snapshot, void *arg)
{
    (void)arg;
    free(snapshot);
}

static int save(const struct muster_save_context *context)
{
    struct phases *t = context->arg;

    if (context->snapshot == NULL)
        look_at_save(t, context);
    wait_at(t, "save", context->step);
    return model_write(context->snapshot != NULL ? context->snapshot : &t->model,
                       context->directory);
}

static int restore(const struct muster_restore_context *context)
{
    struct phases *t = context->arg;

    return model_read(&t->model, context->directory);
}

static void free_collective(const struct muster_error *error, void *arg)
{
    struct phases *t = arg;

    (void)error;
    t->errors++;
    words_allreduce_abort(&t->all);
}

static void print_log(int level, const char *text, void *arg)
{
    (void)arg;
    printf("log %d: %s\n", level, text);
}

static enum muster_status join_job(struct phases *t, struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    enum muster_status status;

    options.layout = t->sharded ? MUSTER_LAYOUT_SHARDED : MUSTER_LAYOUT_REPLICATED;
    options.termination.save_fn = save;
    options.termination.restore_fn = restore;
    options.termination.on_preempted =
        t->exit_policy ? MUSTER_PREEMPTED_EXIT : MUSTER_PREEMPTED_RETURN;
    options.termination.grace_period_ms = t->grace_ms;
    options.termination.save_on_notice = t->save_on_notice != 0;
    options.save_behind = t->behind != 0;
    options.snapshot_fn = t->behind ? take : NULL;
    options.snapshot_release_fn = t->behind ? release : NULL;
    options.save_every_steps = t->save_every;
    options.offline_ok = t->offline != 0;
    options.connect_timeout_ms = t->offline ? 50 : 0;
    options.on_error = free_collective;
    options.log = print_log;
    options.arg = t;
    t->model.sharded = t->sharded != 0;
    status = muster_node_open(&options, &t->node, error);
    if (status != MUSTER_OK)
        return status;
    t->model.rank = muster_node_rank(t->node);
    t->model.world_size = muster_node_world_size(t->node);
    t->resumed = calls(t);
    if (t->mode < 0)
        t->mode = t->model.rank % MODES;
    if (t->model.step != t->resumed * t->stride || !model_is_right(&t->model))
        wrong(t, "restored step", t->model.step, t->resumed * t->stride);
    printf("opened at step %" PRId64 "\n", t->resumed);
    return status;
}

static int train(struct phases *t)
{
    struct muster_error error = {.status = MUSTER_OK};
    struct words_group group = {.name = getenv("TRAINER_GROUP")};
    int restart_code, code = 0;

    t->status = join_job(t, &error);
    if (t->status == MUSTER_OK) {
        group.rank = t->model.rank;
        group.world_size = t->model.world_size;
        group.nonce = muster_node_generation(t->node) + 1;
        if (group.world_size > 1)
            code = -words_allreduce_open(&t->all, &group, 1, COLLECTIVE_MS);
        wait_at(t, "open", t->resumed);
    }
    while (t->status == MUSTER_OK && code == 0 && calls(t) < t->steps) {
        t->status = one_call(t, &error);
        if (t->status != MUSTER_OK)
            break;
        wait_at(t, "eval", calls(t));
        muster_node_hold(t->node);
        wait_at(t, "hold", calls(t));
        muster_node_release(t->node);
    }
    if (t->status != MUSTER_OK)
        printf("error: rank=%d status=%s peer=%d code=%d step=%lld text=%s\n", t->model.rank,
               muster_status_name(error.status), error.rank, error.code, error.step, error.text);
    if (t->status != MUSTER_OK && t->status != MUSTER_PREEMPTED)
        code = EXIT_FAILURE;
    restart_code = muster_node_restart_code(t->node);
    t->closing = true;
    if (muster_node_close(&t->node, code, &error) == MUSTER_PREEMPTED && code == 0) {
        t->status = MUSTER_PREEMPTED;
        return restart_code;
    }
    return code;
}

static void conclude(void)
{
    const struct phases *t = &phases;

    printf("trainer: rank=%d world=%d resumed=%" PRId64 " computed=%" PRId64 " done=%" PRId64
           " sum=%" PRId64 " expected=%" PRId64
           " weights=%s saves=%d wrong=%d errors=%d status=%s\n",
           t->model.rank, t->model.world_size, t->resumed, t->model.step / t->stride - t->resumed,
           t->model.step / t->stride, model_sum(&t->model), model_expected_sum(&t->model),
           model_is_right(&t->model) ? "right" : "WRONG", t->saves, t->errors_wrong, (int)t->errors,
           muster_status_name(t->status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv) || getenv("TRAINER_GROUP") == NULL) {
        fprintf(stderr, "prog_phases: the command line is wrong\n");
        return 2;
    }
    atexit(conclude);
    code = train(&phases);
    words_allreduce_close(&phases.all);
    return code;
}
