/* prog_trainer - a training program whose result can be computed: what the scripts beside it run.
 *
 * What it trains is model.h: a step that is lost, repeated or taken twice shows.
 * With --barrier the ranks meet in every step in a shared-memory collective, which also proves that
 * all are at the same step.
 *
 * Identity (MUSTER_RANK or what a launcher says), and TRAINER_GROUP (a name for the collective that
 * nobody else uses), come from the environment, everything else from options (--name NUMBER).
 * Ranks: -1 none, -2 all. At each exit one line says what this life did: trainer: rank= world=
 * resumed= computed= done= sum= expected= weights= handler= errors= held= status=
 * held: milliseconds, the longest time between two steps. */
#include "client/examples/words_allreduce.h"
#include "tests/proc/manager/model.h"

#include <muster/node.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NOBODY (-1)
#define EVERYBODY (-2)
#define COLLECTIVE_MS 60000

enum mode { MODE_RUN, MODE_CHECK, MODE_SCOPE };

struct trainer {
    /* options */
    int64_t steps, step_ms, slow_rank, slow_step, slow_ms, barrier, mode, sharded;
    int64_t save_fn, save_every, save_fails_rank, save_late_rank, save_late_ms;
    int64_t fail_rank, fail_step, kill_rank, kill_step, early_rank, early_steps;
    int64_t signal_rank, signal_step, signal_again_step, exit_policy, offline, fallback, grace_ms;
    int64_t evaluator_rank, connect_ms, open_ms, join_ms, limit_rank, limit_bytes, own_log,
        host_handler, say_every, fail_text, usr1, behind, ballast_bytes;
    const char *watch_file, *until_file, *save_gate;
    /* the life */
    muster_node_t *node;
    muster_state_t *state;
    char *ballast; /* of the state, beside the model */
    struct words_allreduce all;
    int rank, world_size;
    int64_t stepped_ms, held_ms; /* boot: the end of the last step; the longest time behind one */
    int64_t resumed, computed;
    bool signalled; /* its steps are long from here: the signal is heard before the job is over */
    enum muster_status status;
    _Atomic int errors; /* calls of on_error */
    struct model model;
};

#define SIGNALLED_MS 40

static struct trainer trainer = {
    .steps = 100,
    .step_ms = 5,
    .model.cells = 64,
    .slow_rank = NOBODY,
    .save_fails_rank = NOBODY,
    .save_late_rank = NOBODY,
    .fail_rank = NOBODY,
    .kill_rank = NOBODY,
    .early_rank = NOBODY,
    .signal_rank = NOBODY,
    .limit_rank = NOBODY,
    .own_log = 1,
    .evaluator_rank = NOBODY,
    .grace_ms = -1,
    .rank = -1,
};
static volatile sig_atomic_t handler_calls;

static const struct {
    const char *name;
    int64_t *value;
} numbers[] = {
    {"--steps", &trainer.steps},
    {"--step-ms", &trainer.step_ms},
    {"--slow-rank", &trainer.slow_rank},
    {"--slow-step", &trainer.slow_step}, /* 0 = each */
    {"--slow-ms", &trainer.slow_ms},
    {"--barrier", &trainer.barrier},
    {"--mode", &trainer.mode}, /* 0 run, 1 check, 2 scope */
    {"--sharded", &trainer.sharded},
    {"--cells", &trainer.model.cells},
    {"--save-fn", &trainer.save_fn},
    {"--save-every", &trainer.save_every},
    {"--save-fails-rank", &trainer.save_fails_rank},
    {"--save-late-rank", &trainer.save_late_rank},
    {"--save-late-ms", &trainer.save_late_ms},
    {"--fail-rank", &trainer.fail_rank},
    {"--fail-step", &trainer.fail_step},
    {"--kill-rank", &trainer.kill_rank},
    {"--kill-step", &trainer.kill_step},
    {"--early-rank", &trainer.early_rank},
    {"--early-steps", &trainer.early_steps},
    {"--signal-rank", &trainer.signal_rank},
    {"--signal-step", &trainer.signal_step},
    {"--signal-again-step", &trainer.signal_again_step},
    {"--exit-policy", &trainer.exit_policy}, /* 0 return, 1 exit */
    {"--fallback", &trainer.fallback},
    {"--offline", &trainer.offline},
    {"--grace-ms", &trainer.grace_ms},
    {"--connect-ms", &trainer.connect_ms},
    {"--open-ms", &trainer.open_ms},
    {"--join-ms", &trainer.join_ms},
    {"--limit-rank", &trainer.limit_rank},
    {"--own-log", &trainer.own_log},
    {"--limit-bytes", &trainer.limit_bytes},
    {"--host-handler", &trainer.host_handler},
    {"--evaluator-rank", &trainer.evaluator_rank}, /* it hears events, and takes no step */
    {"--say-every", &trainer.say_every},
    {"--fail-text", &trainer.fail_text},         /* with --mode 1: bytes of the failure's text */
    {"--usr1", &trainer.usr1},                   /* SIGUSR1 is a notice too */
    {"--behind", &trainer.behind},               /* saves are written while training goes on */
    {"--ballast-bytes", &trainer.ballast_bytes}, /* makes the state so much larger */
};

static const struct {
    const char *name;
    const char **value;
} paths[] = {
    {"--watch-file", &trainer.watch_file}, /* a notice when it is there */
    {"--until-file",
     &trainer.until_file}, /* the last step was done when it is there, or the one behind */
    {"--save-gate",
     &trainer.save_gate}, /* save_fn has written a half, and waits until it is gone */
};

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) { /* NAME VALUE */
        bool known = false;

        for (size_t n = 0; i + 1 < argc && n < sizeof paths / sizeof *paths; n++)
            if (strcmp(argv[i], paths[n].name) == 0) {
                *paths[n].value = argv[i + 1];
                known = true;
            }
        for (size_t n = 0; !known && i + 1 < argc && n < sizeof numbers / sizeof *numbers; n++)
            if (strcmp(argv[i], numbers[n].name) == 0) {
                *numbers[n].value = strtoll(argv[i + 1], NULL, 10);
                known = true;
            }
        if (!known) {
            fprintf(stderr, "prog_trainer: no such option, or no value: %s\n", argv[i]);
            return false;
        }
    }
    return trainer.model.cells >= 1 && trainer.model.cells <= MODEL_CELLS_MAX;
}

/* --- the training ----------------------------------------------------------------------------- */

static void pause_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static bool concerns(int64_t whom, const struct trainer *t)
{
    return whom == t->rank || whom == EVERYBODY;
}

/* All ranks meet, and all mean the same step. */
static int meet(struct trainer *t, int64_t next)
{
    float mean = (float)next;
    int code = words_allreduce_mean(&t->all, &mean);

    if (code != 0)
        return -code;
    if (mean < (float)next - 0.1F || mean > (float)next + 0.1F) {
        fprintf(stderr, "trainer: rank %d is at step %" PRId64 ", but the mean is %g\n", t->rank,
                next, (double)mean);
        return EPROTO;
    }
    return 0;
}

static int64_t boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note_held(struct trainer *t)
{
    int64_t held_ms = t->stepped_ms > 0 ? boot_ms() - t->stepped_ms : 0;

    t->held_ms = held_ms > t->held_ms ? held_ms : t->held_ms;
}

static int train_step(void *arg)
{
    struct trainer *t = arg;
    int64_t next = t->model.step + 1;
    bool slow = concerns(t->slow_rank, t) && (t->slow_step == 0 || t->slow_step == next);
    int code;

    note_held(t);
    if (concerns(t->signal_rank, t) && (next == t->signal_step || next == t->signal_again_step)) {
        t->signalled = true;
        kill(getpid(), SIGTERM);
    }
    pause_ms(slow ? t->slow_ms : t->signalled ? t->step_ms + SIGNALLED_MS : t->step_ms);
    if (concerns(t->kill_rank, t) && next == t->kill_step)
        kill(getpid(), SIGKILL);
    if (concerns(t->fail_rank, t) && next == t->fail_step)
        return 7;
    code = t->barrier ? meet(t, next) : 0;
    if (code != 0)
        return code;
    model_step(&t->model);
    t->computed++;
    muster_node_set_position(t->node, next / 1000, next % 1000, next);
    if (t->say_every > 0 && next % t->say_every == 0)
        printf("at step %" PRId64 "\n", next);
    t->stepped_ms = boot_ms();
    return 0;
}

/* --- the user's own way to save --------------------------------------------------------------- */

/* What is saved: the trainer itself, or a copy of it that was taken at the save step. */
static int take(const struct muster_save_context *context, void **ret_snapshot)
{
    struct trainer *copy = malloc(sizeof *copy);

    if (copy == NULL)
        return ENOMEM;
    memcpy(copy, context->arg, sizeof *copy);
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
    const struct trainer *t = context->snapshot != NULL ? context->snapshot : context->arg;
    int code;

    if (context->step != t->model.step) {
        fprintf(stderr, "trainer: save_fn is told step %" PRId64 ", the state is of %" PRId64 "\n",
                context->step, t->model.step);
        return EPROTO;
    }
    if (concerns(t->save_late_rank, t))
        pause_ms(t->save_late_ms);
    if (concerns(t->save_fails_rank, t))
        return muster_node_save_fail(t->node, 5, "CUDA \xff out of\nmemory");
    if (t->save_gate != NULL) {
        code = model_write_half(&t->model, context->directory);
        printf("in the save of step %" PRId64 "\n", context->step);
        while (code == 0 && access(t->save_gate, F_OK) == 0)
            pause_ms(5);
        if (code != 0)
            return code;
    }
    return model_write(&t->model, context->directory);
}

static int restore(const struct muster_restore_context *context)
{
    struct trainer *t = context->arg;

    return model_read(&t->model, context->directory);
}

/* --- joining ---------------------------------------------------------------------------------- */

static void free_collective(const struct muster_error *error, void *arg)
{
    struct trainer *t = arg;

    (void)error;
    t->errors++;
    words_allreduce_abort(&t->all);
}

static void print_log(int level, const char *text, void *arg)
{
    (void)arg;
    printf("log %d: %s\n", level, text);
}

static bool watch(void *arg)
{
    const struct trainer *t = arg;

    return access(t->watch_file, F_OK) == 0;
}

static enum muster_status register_state(struct trainer *t, struct muster_error *error)
{
    int64_t cells = t->model.cells;
    enum muster_status status = muster_state_create(&t->state, error);

    if (status == MUSTER_OK)
        status = muster_state_add_i64(t->state, "step", &t->model.step, error);
    if (status == MUSTER_OK)
        status = muster_state_add_tensor(t->state, "vector", MUSTER_DTYPE_I64, &cells, 1,
                                         t->model.vector, error);
    if (status == MUSTER_OK && t->ballast_bytes > 0)
        t->ballast = calloc(1, (size_t)t->ballast_bytes);
    if (status == MUSTER_OK && t->ballast != NULL)
        status = muster_state_add_tensor(t->state, "ballast", MUSTER_DTYPE_U8, &t->ballast_bytes, 1,
                                         t->ballast, error);
    return status;
}

static enum muster_status join_job(struct trainer *t, struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    enum muster_status status = register_state(t, error);

    if (status != MUSTER_OK)
        return status;
    if (t->rank == t->evaluator_rank)
        options.role = MUSTER_ROLE_EVALUATOR;
    t->model.sharded = t->sharded != 0;
    options.layout = t->sharded ? MUSTER_LAYOUT_SHARDED : MUSTER_LAYOUT_REPLICATED;
    options.state = t->save_fn ? NULL : t->state;
    options.termination.save_fn = t->save_fn ? save : NULL;
    options.termination.restore_fn = t->save_fn ? restore : NULL;
    options.termination.on_preempted =
        t->exit_policy ? MUSTER_PREEMPTED_EXIT : MUSTER_PREEMPTED_RETURN;
    options.termination.grace_period_ms = t->grace_ms;
    if (t->watch_file != NULL) {
        options.termination.termination_watcher_fn = watch;
        options.termination.watcher_period_ms = 20;
    }
    options.save_behind = t->behind != 0;
    options.snapshot_fn = t->behind && t->save_fn ? take : NULL;
    options.snapshot_release_fn = t->behind && t->save_fn ? release : NULL;
    options.save_every_steps = t->save_every;
    options.offline_ok = t->offline != 0;
    options.restore_fallback = t->fallback != 0;
    options.connect_timeout_ms = t->connect_ms;
    options.open_timeout_ms = t->open_ms;
    options.join_timeout_ms = t->join_ms;
    if (t->usr1) {
        options.termination.signals[0] = SIGTERM;
        options.termination.signals[1] = SIGUSR1;
    }
    options.on_error = free_collective;
    options.log = trainer.own_log != 0 ? print_log : NULL;
    options.arg = t;
    status = muster_node_open(&options, &t->node, error);
    if (status != MUSTER_OK)
        return status;
    t->rank = t->model.rank = muster_node_rank(t->node);
    t->world_size = t->model.world_size = muster_node_world_size(t->node);
    t->resumed = muster_node_total_run_calls(t->node);
    printf("opened at step %" PRId64 "\n", t->resumed);
    return status;
}

/* The state must be that of the step at which muster says that it resumes. */
static int check_restored(const struct trainer *t)
{
    if (t->model.step == t->resumed && model_is_right(&t->model))
        return 0;
    fprintf(stderr, "trainer: rank %d was restored to step %" PRId64 ", muster says %" PRId64 "\n",
            t->rank, t->model.step, t->resumed);
    return EXIT_FAILURE;
}

static int meet_first(struct trainer *t)
{
    struct words_group group = {.name = getenv("TRAINER_GROUP"),
                                .nonce = muster_node_generation(t->node),
                                .rank = t->rank,
                                .world_size = t->world_size};
    int code = words_allreduce_open(&t->all, &group, 1, COLLECTIVE_MS);

    if (code != 0)
        fprintf(stderr, "trainer: rank %d could not meet the others: %s\n", t->rank,
                strerror(-code));
    return code != 0 ? EXIT_FAILURE : 0;
}

/* --- one life --------------------------------------------------------------------------------- */

/* What the loop says of its own failure: a sentence, or characters of three bytes after one of one.
 */
static void tell_failure(struct trainer *t, int code)
{
    static char text[65536] = "x";

    while (strlen(text) + 3 <= (size_t)t->fail_text && t->fail_text < (int64_t)sizeof text)
        strcat(text, "\xe2\x82\xac");
    muster_node_fail(t->node, code, t->fail_text > 0 ? text : "the loop's own step failed");
}

static enum muster_status one_call(struct trainer *t, struct muster_error *error)
{
    enum muster_status status;
    int code;

    if (t->mode == MODE_RUN)
        return muster_node_run(t->node, train_step, t, error);
    if (t->mode == MODE_CHECK) {
        code = train_step(t);
        if (code != 0)
            tell_failure(t, code);
        return muster_node_save_if_preempted(t->node, t, error);
    }
    status = muster_node_scope_enter(t->node, error);
    if (status != MUSTER_OK)
        return status;
    code = train_step(t);
    return muster_node_scope_leave(t->node, code, error);
}

static int complain(const struct trainer *t, const struct muster_error *error)
{
    printf("error: rank=%d status=%s peer=%d code=%d step=%lld text=%s\n", t->rank,
           muster_status_name(error->status), error->rank, error->code, error->step, error->text);
    return EXIT_FAILURE;
}

/* A save that failed is told at the next boundary, once. */
static void look_behind(struct trainer *t)
{
    struct muster_error error;
    enum muster_status status = muster_node_wait_until_finished(t->node, 0, &error);

    if (status != MUSTER_OK && status != MUSTER_E_TIMEOUT)
        printf("save failed: rank=%d step=%lld %s: %s\n", error.rank, error.step,
               muster_status_name(status), error.text);
}

/* Ranks that meet in every step end at one: rank 0 says which, before it goes into the next, so
 * that the others know before they go into the one behind. Who looked for himself left the others
 * waiting in the collective. */
static bool is_told_to_end(const struct trainer *t)
{
    char path[4096], part[4096];
    long long last = -1;
    FILE *file;

    if (!t->barrier || t->world_size == 1)
        return access(t->until_file, F_OK) == 0;
    snprintf(path, sizeof path, "%.4000s.step", t->until_file);
    snprintf(part, sizeof part, "%.4000s.part", t->until_file);
    if (t->rank == 0 && access(t->until_file, F_OK) == 0 && access(path, F_OK) != 0) {
        file = fopen(part, "w");
        if (file == NULL || fprintf(file, "%lld\n", (long long)t->model.step + 2) < 0 ||
            fclose(file) != 0 || rename(part, path) != 0)
            abort();
    }
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%lld", &last) != 1)
        abort();
    fclose(file);
    return t->model.step >= last;
}

static bool is_over(const struct trainer *t, int64_t limit)
{
    return t->model.step >= limit || (t->until_file != NULL && is_told_to_end(t));
}

static int train(struct trainer *t)
{
    int64_t limit = concerns(t->early_rank, t) ? t->early_steps : t->steps;
    struct muster_error error = {.status = MUSTER_OK};
    int restart_code, code = 0;

    t->status = join_job(t, &error);
    if (t->status == MUSTER_OK)
        code = check_restored(t);
    if (t->status == MUSTER_OK && code == 0 && t->barrier)
        code = meet_first(t);
    while (t->status == MUSTER_OK && code == 0 && !is_over(t, limit)) {
        t->status = one_call(t, &error);
        if (t->behind && t->status == MUSTER_OK)
            look_behind(t);
    }
    if (t->status != MUSTER_OK) {
        code = complain(t, &error);
        if (t->status == MUSTER_PREEMPTED)
            code = 0;
    }
    if (t->node == NULL)
        return t->status == MUSTER_PREEMPTED ? muster_status_exit_code(t->status) : code;
    restart_code = muster_node_restart_code(t->node);
    if (muster_node_close(&t->node, code, &error) == MUSTER_PREEMPTED && code == 0) {
        t->status = MUSTER_PREEMPTED;
        return restart_code;
    }
    return code;
}

static void conclude(void)
{
    const struct trainer *t = &trainer;

    printf("trainer: rank=%d world=%d resumed=%" PRId64 " computed=%" PRId64 " done=%" PRId64
           " sum=%" PRId64 " expected=%" PRId64 " weights=%s handler=%d errors=%d held=%" PRId64
           " status=%s\n",
           t->rank, t->world_size, t->resumed, t->computed, t->model.step, model_sum(&t->model),
           model_expected_sum(&t->model), model_is_right(&t->model) ? "right" : "WRONG",
           (int)handler_calls, (int)t->errors, t->held_ms, muster_status_name(t->status));
    fflush(stdout);
}

static void host_handler(int signo)
{
    (void)signo;
    handler_calls++;
}

static void prepare_process(struct trainer *t)
{
    struct sigaction action = {.sa_handler = host_handler, .sa_flags = SA_RESTART};
    struct rlimit limit = {.rlim_cur = (rlim_t)t->limit_bytes, .rlim_max = RLIM_INFINITY};

    if (t->host_handler)
        sigaction(SIGTERM, &action, NULL);
    if (concerns(t->limit_rank, t)) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
}

int main(int argc, char **argv)
{
    const char *rank = getenv("MUSTER_RANK"), *size = getenv("MUSTER_WORLD_SIZE");
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv) || getenv("TRAINER_GROUP") == NULL)
        return 2;
    trainer.rank = rank != NULL ? atoi(rank) : -100; /* nobody, until the launcher says */
    trainer.world_size = size != NULL ? atoi(size) : 0;
    atexit(conclude);
    prepare_process(&trainer);
    code = train(&trainer);
    muster_state_destroy(&trainer.state);
    words_allreduce_close(&trainer.all);
    return code;
}
