/* train_words_ps - the same model as train_words, trained with a parameter server: a coordinator
 * schedules the gradients of each step, any free worker computes them, and the parameter server
 * makes the step.
 *
 *   train_words_ps coordinator SOCKET [options]  rank 0 of the job; ends when all steps are made
 *   train_words_ps ps SOCKET [options]           has the weights; role ps of the job
 *   train_words_ps worker SOCKET [options]       as many as there are; MUSTER_RANK is its index
 *
 * The options are those of train_words, the same for all. Any worker may be killed at any moment:
 * its task goes to another one, and the parameter server counts each gradient once. So the weights
 * at the end are the same bits, whoever was killed. The coordinator saves them every --report-every
 * steps and when its job is terminated. When it begins it gives what it restored to the parameter
 * server, so the two go on from the newest checkpoint. That holds for a coordinator that was killed
 * or preempted, and for one that ended because the parameter server was lost. */
#include "words_data.h"
#include "words_model.h"
#include "words_options.h"
#include "words_ps.h"

#include <muster/muster.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define PARTS 3         /* gradients of a step, each of a batch of its own */
#define EVALUATION 2048 /* examples that a loss is measured on, always the same */

struct training {
    struct words_options options;
    const char *socket;
    struct words_data data;
    struct words_model model;
    uint8_t *contexts, *targets;
    float *gradient;
};

struct coordination {
    struct training *t;
    muster_node_t *node;
    muster_coordinator_t *coordinator;
    uint64_t step;             /* made */
    struct muster_error error; /* of the step that failed */
};

struct work { /* the arguments of both functions */
    uint64_t step;
    uint32_t part;
};

static int complain(const char *what, int code)
{
    fprintf(stderr, "train_words_ps: %s: %s\n", what, strerror(code));
    return EXIT_FAILURE;
}

static int complain_muster(const struct muster_error *error)
{
    fprintf(stderr, "train_words_ps: %s\n", error->text);
    return muster_status_exit_code(error->status);
}

/* --- the worker's functions ------------------------------------------------------------------- */

static void examples(struct training *t, struct work work, uint32_t count, uint32_t parts)
{
    const struct words_place place = {.step = work.step,
                                      .rank = work.part,
                                      .world_size = parts,
                                      .batch = count,
                                      .context = t->options.shape.context};

    words_data_batch(&t->data, &place, t->contexts, t->targets);
}

/* Pull the weights, push the gradient of one part of one step. */
static int gradient(muster_task_t *task, void *arg)
{
    struct training *t = arg;
    const struct words_options *o = &t->options;
    struct timespec pause = {.tv_sec = o->step_sleep_ms / 1000,
                             .tv_nsec = o->step_sleep_ms % 1000 * 1000000L};
    struct work work;
    uint64_t step;
    size_t size;
    int code;

    memcpy(&work, muster_task_args(task, &size), sizeof work);
    code = words_ps_pull(t->socket, o->timeout_ms, &t->model, &step);
    if (code == 0 && step > work.step)
        return 0; /* a former attempt was lost when it had done its work */
    if (code == 0 && step < work.step)
        code = -ERANGE; /* of a server that started again and was given no weights yet: these are
                           others */
    if (code == 0) {
        if (o->step_sleep_ms > 0)
            nanosleep(&pause, NULL); /* stands for a larger model */
        examples(t, work, o->batch, PARTS);
        words_model_loss(&t->model, t->contexts, t->targets, o->batch, t->gradient);
        code = words_ps_push(t->socket, o->timeout_ms, work.step, work.part, t->gradient,
                             t->model.count);
    }
    return code == 0 ? 0 : muster_task_fail(task, -code, strerror(-code));
}

/* The loss of the weights as they are, over examples that are always the same. */
static int evaluate(muster_task_t *task, void *arg)
{
    struct training *t = arg;
    uint64_t step;
    double loss;
    int code = words_ps_pull(t->socket, t->options.timeout_ms, &t->model, &step);

    if (code != 0)
        return muster_task_fail(task, -code, strerror(-code));
    examples(t, (struct work){0}, EVALUATION, 1);
    loss = words_model_loss(&t->model, t->contexts, t->targets, EVALUATION, NULL);
    return muster_task_set_result(task, &loss, sizeof loss) == MUSTER_OK ? 0 : ENOMEM;
}

/* Makes a descriptor that can be read once SIGTERM (or our own SIGUSR1) came. Call it before there
 * is any other thread. */
static int stop_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int work(struct training *t)
{
    int stop_fd = stop_signal();
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT; /* environment */
    struct muster_error error = {0};
    struct signalfd_siginfo signal;
    muster_worker_t *worker = NULL;

    if (stop_fd < 0)
        return complain("signalfd", errno);
    options.job = t->options.job;
    if (muster_worker_open(&options, &worker, &error) == MUSTER_OK &&
        muster_worker_register(worker, "gradient", gradient, t, &error) == MUSTER_OK &&
        muster_worker_register(worker, "evaluate", evaluate, t, &error) == MUSTER_OK &&
        muster_worker_start(worker, &error) == MUSTER_OK)
        while (read(stop_fd, &signal, sizeof signal) < 0 && errno == EINTR)
            continue;
    muster_worker_close(&worker, NULL);
    close(stop_fd);
    return error.status == MUSTER_OK ? 0 : complain_muster(&error);
}

/* --- the coordinator -------------------------------------------------------------------------- */

static enum muster_status schedule(struct coordination *c, const char *function, struct work work,
                                   muster_remote_value_t **ret_value)
{
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = function;
    call.args = &work;
    call.args_size = sizeof work;
    return muster_coordinator_schedule(c->coordinator, &call, -1, ret_value, &c->error);
}

/* When this returns, all gradients of this step are computed, and the step is made. */
static int one_step(void *arg)
{
    struct coordination *c = arg;
    struct training *t = c->t;
    enum muster_status status = MUSTER_OK;
    int code;

    for (uint32_t part = 0; part < PARTS && status == MUSTER_OK; part++)
        status = schedule(c, "gradient", (struct work){c->step, part}, NULL);
    if (status == MUSTER_OK)
        status = muster_coordinator_join(c->coordinator, -1, &c->error);
    if (status != MUSTER_OK)
        return EXIT_FAILURE;
    code = words_ps_pull(t->socket, t->options.timeout_ms, &t->model, &c->step);
    if (code != 0)
        return complain("cannot ask the parameter server", -code);
    return 0;
}

static enum muster_status report(struct coordination *c)
{
    muster_remote_value_t *value = NULL;
    enum muster_status status = schedule(c, "evaluate", (struct work){0}, &value);
    const void *data;
    double loss;
    size_t size;

    if (status == MUSTER_OK)
        status = muster_remote_value_fetch(value, -1, &data, &size, &c->error);
    if (status == MUSTER_OK) {
        memcpy(&loss, data, sizeof loss);
        printf("step %" PRIu64 " of %" PRIu64 "  loss %.4f\n", c->step, c->t->options.steps, loss);
        fflush(stdout);
    }
    muster_remote_value_free(&value);
    return status;
}

/* Step by step to the end, or to a notice's; c->error says what went wrong. */
static enum muster_status train(struct coordination *c)
{
    const struct words_options *o = &c->t->options;
    enum muster_status status = MUSTER_OK;
    struct muster_error error;

    while (status == MUSTER_OK && c->step < o->steps) {
        status = muster_node_run(c->node, one_step, c, &error);
        if (status != MUSTER_OK && status != MUSTER_PREEMPTED && c->error.status == MUSTER_OK)
            c->error = error;
        if (status == MUSTER_OK && (c->step % o->report_every == 0 || c->step == o->steps))
            status = report(c);
    }
    return status;
}

/* Joins the job as its only rank and restores; no other process has steps. */
static enum muster_status join_job(struct coordination *c, muster_state_t **ret_state)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT; /* environment */
    const struct words_options *o = &c->t->options;
    int64_t count = (int64_t)c->t->model.count;
    enum muster_status status = muster_state_create(ret_state, &c->error);

    if (status == MUSTER_OK)
        status = muster_state_add_tensor(*ret_state, "weights", MUSTER_DTYPE_F32, &count, 1,
                                         c->t->model.weights, &c->error);
    if (status == MUSTER_OK)
        status = muster_state_add_tensor(*ret_state, "velocity", MUSTER_DTYPE_F32, &count, 1,
                                         c->t->model.velocity, &c->error);
    options.job = o->job;
    options.checkpoint_dir = o->checkpoint_dir;
    options.state = *ret_state;
    options.save_every_steps = o->report_every;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    if (status == MUSTER_OK)
        status = muster_node_open(&options, &c->node, &c->error);
    if (status == MUSTER_OK)
        c->step = (uint64_t)muster_node_total_run_calls(c->node);
    return status;
}

static enum muster_status open_queue(struct coordination *c)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    options.job = c->t->options.job;
    options.fresh = true; /* the checkpoint says where to go on, not the queue */
    return muster_coordinator_open(&options, &c->coordinator, &c->error);
}

static int coordinate(struct training *t)
{
    struct coordination c = {.t = t};
    muster_state_t *state = NULL;
    enum muster_status status = join_job(&c, &state);
    int code = EXIT_SUCCESS, restart_code = EXIT_FAILURE;

    if (status == MUSTER_OK)
        status = open_queue(&c);
    if (status == MUSTER_OK) {
        code = words_ps_set(t->socket, t->options.timeout_ms, &t->model, c.step);
        code = code == 0 ? 0 : complain("cannot give the weights to the parameter server", -code);
    }
    if (status == MUSTER_OK && code == 0)
        status = train(&c);
    if (status != MUSTER_OK && status != MUSTER_PREEMPTED)
        code = complain_muster(&c.error);
    else if (code == 0)
        printf("step %" PRIu64 " weights %016" PRIx64 "\n", c.step, words_model_hash(&t->model));
    muster_coordinator_close(&c.coordinator, NULL);
    if (c.node != NULL) {
        restart_code = muster_node_restart_code(c.node);
        if (muster_node_close(&c.node, code, NULL) == MUSTER_PREEMPTED && code == 0)
            code = restart_code;
    } else if (code == 0 && status == MUSTER_PREEMPTED) { /* it came into a launch that was over */
        code = muster_node_restart_code(NULL);
    }
    muster_state_destroy(&state);
    return code;
}

/* --- the parameter server --------------------------------------------------------------------- */

/* This launch of the job is over; the server joins the next one. */
static void launch_ended(const struct muster_error *error, void *arg)
{
    (void)error, (void)arg;
    kill(getpid(), SIGUSR1);
}

/* While a member of role ps is lost the coordinator's calls say so. It saves and restores nothing
 * here: the coordinator does. Blocks until the coordinator has begun the launch. */
static enum muster_status join_as_ps(const struct words_options *o, muster_state_t *state,
                                     muster_node_t **ret_node, struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;

    options.job = o->job;
    options.checkpoint_dir = o->checkpoint_dir;
    options.role = MUSTER_ROLE_PS;
    options.rank = 0;
    options.world_size = 1;
    options.state = state;
    options.restore_later = true;
    options.termination.signals[0] = -1; /* SIGTERM is the user's, here */
    options.on_error = launch_ended;
    options.open_timeout_ms = 3600000;
    return muster_node_open(&options, ret_node, error);
}

/* From launch to launch, until SIGTERM; the weights are kept between, though the next coordinator
 * brings its own. */
static int serve_launches(struct training *t, struct words_ps *ps, muster_state_t *state,
                          int stop_fd)
{
    struct signalfd_siginfo signal = {0};
    struct muster_error error = {0};
    int code = words_ps_open(ps);

    while (code == 0 && signal.ssi_signo != SIGTERM) {
        muster_node_t *node = NULL;

        if (join_as_ps(&t->options, state, &node, &error) != MUSTER_OK)
            return complain_muster(&error);
        code = words_ps_serve(ps, t->socket, stop_fd);
        if (code == 0 && read(stop_fd, &signal, sizeof signal) < 0)
            code = -errno;
        muster_node_close(&node, code != 0, NULL);
    }
    return code == 0 ? 0 : complain("cannot serve the weights", -code);
}

static int serve(struct training *t)
{
    struct words_ps ps = {.model = &t->model,
                          .rate = t->options.rate,
                          .momentum = t->options.momentum,
                          .parts = PARTS,
                          .timeout_ms = t->options.timeout_ms};
    struct muster_error error = {0};
    muster_state_t *state = NULL;
    int64_t none = 0; /* a member has a state */
    int code, stop_fd = stop_signal();

    if (stop_fd < 0)
        return complain("signalfd", errno);
    if (muster_state_create(&state, &error) != MUSTER_OK ||
        muster_state_add_i64(state, "none", &none, &error) != MUSTER_OK)
        code = complain_muster(&error);
    else
        code = serve_launches(t, &ps, state, stop_fd);
    words_ps_close(&ps);
    muster_state_destroy(&state);
    close(stop_fd);
    return code;
}

/* --- all -------------------------------------------------------------------------------------- */

static int prepare(struct training *t)
{
    const struct words_options *o = &t->options;
    size_t most = o->batch > EVALUATION ? o->batch : EVALUATION;
    int code = words_data_open(&t->data, o->words, o->seed);

    if (code == 0)
        code = words_model_open(&t->model, &o->shape, o->seed);
    if (code != 0)
        return complain(o->words, -code);
    t->contexts = malloc(most * o->shape.context);
    t->targets = malloc(most);
    t->gradient = malloc(t->model.count * sizeof(float));
    return t->contexts && t->targets && t->gradient ? 0 : complain("the batch", ENOMEM);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(struct training *t);
    } roles[] = {{"ps", serve}, {"worker", work}, {"coordinator", coordinate}};
    static struct training t;
    size_t i = 0;
    int code;

    while (argc > 2 && i < 3 && strcmp(argv[1], roles[i].name) != 0)
        i++;
    if (argc < 3 || i == 3) {
        fputs("usage: train_words_ps ps|worker|coordinator SOCKET [options of train_words]\n",
              stderr);
        return 2;
    }
    t.socket = argv[2];
    code = words_options_parse(&t.options, argc - 2, argv + 2);
    if (code >= 0)
        return code;
    code = prepare(&t);
    if (code == 0)
        code = roles[i].fn(&t);
    words_model_close(&t.model);
    words_data_close(&t.data);
    free(t.contexts);
    free(t.targets);
    free(t.gradient);
    return code;
}
