/* prog_conform - what the preemption handlers of other systems are tested with: a model that adds 1
 * a step at every rank, trained for EPOCHS x STEPS. In the end it must hold ranks x EPOCHS x STEPS,
 * however often the job was preempted.
 *
 * usage: prog_conform [--form run|check|scope] [--notice signal|callback|notify] [--fail]
 *        [--notices N] [--offline] [--grace-ms N] [--two-saves] [--step-ms N]
 *        [--children N [--mortal]]
 * A random rank is told to end at a random step of each of the first N lives (or fails, with
 * --fail): both are drawn alike by all ranks from CONFORM_SEED and MUSTER_RESTART_COUNT. Epoch and
 * step come from muster_node_total_run_calls alone. CONFORM_GROUP names the collective. Each life
 * ends with one line: conform: rank= life= resumed= done= sum= status= */
#include "client/examples/words_allreduce.h"

#include <muster/node.h>

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EPOCHS 8
#define STEPS 15
#define COLLECTIVE_MS 60000
#define CHILDREN_MAX 16
#define HEARD_MS 40
#define MEASURED_MS 2500 /* two looks of a heartbeat each, and to spare */

enum form { FORM_RUN, FORM_CHECK, FORM_SCOPE };
enum notice { BY_SIGNAL, BY_CALLBACK, BY_NOTIFY };

struct conform {
    enum form form;
    enum notice notice;
    bool fail, offline, mortal, two_saves;
    int notices, children;
    int64_t grace_ms, step_ms;
    int rank, world_size, life;
    int64_t event_step; /* of this life; -1: none */
    bool happened; /* its steps are long from here: the notice is heard before the job is over */
    int event_rank;
    _Atomic bool told; /* by the callback */
    muster_node_t *node;
    struct words_allreduce all;
    pid_t child[CHILDREN_MAX];
    /* the model */
    int64_t sum;
};

static struct conform conform = {.notices = 1, .grace_ms = -1, .step_ms = 4, .event_step = -1};
static volatile sig_atomic_t handler_calls;

static void count_call(int signo)
{
    (void)signo;
    handler_calls++;
}

static int64_t calls(const struct conform *c)
{
    return muster_node_total_run_calls(c->node);
}

/* --- the event -------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The same at all ranks: some time after where this life began, and well before the end. With a
 * grace the first life's steps are measured by then, so that the next one's notice can be planned.
 */
static void plan_event(struct conform *c)
{
    const char *seed = getenv("CONFORM_SEED");
    uint64_t state = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    int64_t left = EPOCHS * STEPS - calls(c), first;

    state = state * 1000 + (uint64_t)c->life;
    if (c->life >= c->notices || left < 20 || c->world_size < 1)
        return;
    c->event_rank = (int)(draw(&state) % (uint64_t)c->world_size);
    first = c->grace_ms > 0 && c->life == 0 ? MEASURED_MS / c->step_ms : 5;
    c->event_step = calls(c) + first + (int64_t)(draw(&state) % (uint64_t)(left / 2 - first + 5));
}

static int event_now(struct conform *c)
{
    if (c->fail)
        return 9;
    if (c->notice == BY_CALLBACK)
        c->told = true;
    else if (c->notice == BY_NOTIFY)
        muster_node_notify(c->node, MUSTER_NOTICE_PREEMPT, -1, "as planned");
    else
        kill(c->children > 0 ? 0 : getpid(),
             SIGTERM); /* with children: the whole group, as schedulers do */
    return 0;
}

static bool watch(void *arg)
{
    struct conform *c = arg;

    return c->told;
}

/* --- the children, as a data loader's --------------------------------------------------------- */

static void child_main(struct conform *c, int number) __attribute__((noreturn));

static void child_main(struct conform *c, int number)
{
    struct muster_error error;
    struct timespec nap = {.tv_nsec = 1000000};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!c->mortal) /* as loaders do; the odd ones note it */
        signal(SIGTERM, number % 2 == 0 ? SIG_IGN : count_call);
    if (muster_node_save_if_preempted(c->node, NULL, &error) != MUSTER_E_FORKED ||
        muster_node_notify(c->node, MUSTER_NOTICE_USER, 0, "a child's") != MUSTER_E_FORKED)
        _exit(3);
    while (handler_calls == 0) /* the mortal end here: the default action, as before the library */
        nanosleep(&nap, NULL);
    muster_notify_signal(SIGTERM); /* in a child: nobody's notice */
    muster_node_close(&c->node, 1, NULL);
    for (;;)
        pause();
}

static void children_start(struct conform *c)
{
    for (int i = 0; i < c->children; i++) {
        c->child[i] = fork();
        if (c->child[i] == 0)
            child_main(c, i);
    }
}

/* A loader whose workers are gone breaks the step that needs them. */
static bool children_live(const struct conform *c)
{
    int status;

    for (int i = 0; i < c->children; i++) {
        if (!c->mortal && waitpid(c->child[i], &status, WNOHANG) != 0) {
            fprintf(stderr, "conform: rank %d: child %d ended, status %d\n", c->rank, i, status);
            return false;
        }
    }
    return true;
}

static void children_stop(const struct conform *c)
{
    for (int i = 0; i < c->children; i++) {
        kill(c->child[i], SIGKILL);
        waitpid(c->child[i], NULL, 0);
    }
}

/* --- the training ----------------------------------------------------------------------------- */

/* Long enough that what was told is heard before the job is over, and a grace is over before the
 * steps are. */
static int64_t after_event_ms(const struct conform *c)
{
    int64_t ms = c->grace_ms > 0 ? c->grace_ms / 25 : HEARD_MS;

    return c->step_ms > ms ? c->step_ms : ms;
}

static int train_step(void *arg)
{
    struct conform *c = arg;
    struct timespec nap = {.tv_nsec = c->step_ms * 1000000L};
    float one = 1;
    int code = 0;

    if (calls(c) == c->event_step && c->rank == c->event_rank) {
        c->happened = true;
        code = event_now(c);
    }
    if (code != 0)
        return code;
    if (c->happened)
        nap.tv_nsec = after_event_ms(c) * 1000000L;
    nanosleep(&nap, NULL);
    if (!children_live(c))
        return 5;
    code = words_allreduce_mean(&c->all, &one); /* every rank adds its 1 */
    if (code != 0)
        return -code;
    c->sum += (int64_t)(one * (float)c->world_size);
    return 0;
}

static enum muster_status one_call(struct conform *c, struct muster_error *error)
{
    enum muster_status status;
    int code;

    if (c->form == FORM_RUN)
        return muster_node_run(c->node, train_step, c, error);
    if (c->form == FORM_CHECK) {
        code = train_step(c);
        if (code != 0)
            muster_node_fail(c->node, code, "the step failed");
        return muster_node_save_if_preempted(c->node, NULL, error);
    }
    status = muster_node_scope_enter(c->node, error);
    if (status != MUSTER_OK)
        return status;
    return muster_node_scope_leave(c->node, train_step(c), error);
}

/* As the users of total_run_calls write it. */
static enum muster_status train(struct conform *c, struct muster_error *error)
{
    enum muster_status status = MUSTER_OK;

    for (int64_t epoch = calls(c) / STEPS; epoch < EPOCHS && status == MUSTER_OK; epoch++)
        for (int64_t step = calls(c) % STEPS; step < STEPS && status == MUSTER_OK; step++)
            status = one_call(c, error);
    return status;
}

static void free_collective(const struct muster_error *error, void *arg)
{
    struct conform *c = arg;

    (void)error;
    words_allreduce_abort(&c->all);
}

static void print_log(int level, const char *text, void *arg)
{
    (void)arg;
    printf("log %d: %s\n", level, text);
}

static enum muster_status join_job(struct conform *c, muster_state_t **state,
                                   struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    enum muster_status status = muster_state_create(state, error);

    if (status == MUSTER_OK)
        status = muster_state_add_i64(*state, "sum", &c->sum, error);
    options.state = *state;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    options.termination.grace_period_ms = c->grace_ms;
    options.termination.save_on_notice = c->two_saves;
    if (c->notice == BY_CALLBACK) {
        options.termination.termination_watcher_fn = watch;
        options.termination.watcher_period_ms = 10;
    }
    options.offline_ok = c->offline;
    options.connect_timeout_ms = c->offline ? 100 : 0;
    options.on_error = free_collective;
    options.log = print_log;
    options.arg = c;
    return status == MUSTER_OK ? muster_node_open(&options, &c->node, error) : status;
}

static int live(struct conform *c)
{
    struct words_group group = {
        .name = getenv("CONFORM_GROUP"), .rank = c->rank, .world_size = c->world_size};
    struct muster_error error = {.status = MUSTER_OK};
    muster_state_t *state = NULL;
    enum muster_status status = join_job(c, &state, &error);
    int64_t resumed = 0, done = 0;
    int code = 0;

    if (status == MUSTER_OK) {
        resumed = calls(c);
        plan_event(c);
        children_start(c);
        group.nonce = muster_node_generation(c->node) + 1;
        code = words_allreduce_open(&c->all, &group, 1, COLLECTIVE_MS);
        status = code == 0 ? train(c, &error) : MUSTER_E_STEP;
        done = calls(c);
        children_stop(c);
    }
    if (status == MUSTER_PREEMPTED)
        code = muster_node_restart_code(c->node);
    else if (status != MUSTER_OK)
        code = 1;
    if (muster_node_close(&c->node, status == MUSTER_PREEMPTED ? 0 : code, NULL) ==
            MUSTER_PREEMPTED &&
        code == 0) {
        status = MUSTER_PREEMPTED; /* the notice came in the last step */
        code = 42;
    }
    printf("conform: rank=%d life=%d resumed=%" PRId64 " done=%" PRId64 " sum=%" PRId64
           " status=%s text=%s\n",
           c->rank, c->life, resumed, done, c->sum, muster_status_name(status), error.text);
    muster_state_destroy(&state);
    words_allreduce_close(&c->all);
    return code;
}

static bool parse(struct conform *c, int argc, char **argv)
{
    static const char *const forms[] = {"run", "check", "scope"};
    static const char *const notices[] = {"signal", "callback", "notify"};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--fail") == 0)
            c->fail = true;
        else if (strcmp(argv[i], "--offline") == 0)
            c->offline = true;
        else if (strcmp(argv[i], "--mortal") == 0)
            c->mortal = true;
        else if (strcmp(argv[i], "--two-saves") == 0)
            c->two_saves = true;
        else if (strcmp(argv[i], "--form") == 0 || strcmp(argv[i], "--notice") == 0) {
            const char *const *words = argv[i][2] == 'f' ? forms : notices;
            int which = 0;

            while (which < 3 && strcmp(words[which], value) != 0)
                which++;
            if (which == 3)
                return false;
            if (argv[i++][2] == 'f')
                c->form = (enum form)which;
            else
                c->notice = (enum notice)which;
        } else if (strcmp(argv[i], "--notices") == 0)
            c->notices = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--grace-ms") == 0)
            c->grace_ms = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--step-ms") == 0)
            c->step_ms = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--children") == 0)
            c->children = (int)strtol(argv[++i], NULL, 10);
        else
            return false;
    }
    return c->children <= CHILDREN_MAX && c->step_ms > 0 && after_event_ms(c) < 1000 &&
           (c->grace_ms <= 0 || MEASURED_MS / c->step_ms < EPOCHS * STEPS / 2) && c->world_size > 0;
}

static int number_of(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value != NULL ? (int)strtol(value, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct conform *c = &conform;

    setvbuf(stdout, NULL, _IOLBF, 0);
    c->rank = number_of("MUSTER_RANK", 0);
    c->world_size = number_of("MUSTER_WORLD_SIZE", 1);
    c->life = number_of("MUSTER_RESTART_COUNT", 0);
    if (!parse(c, argc, argv) || getenv("CONFORM_GROUP") == NULL) {
        fprintf(stderr, "prog_conform: the command line is wrong\n");
        return 2;
    }
    return live(c);
}
