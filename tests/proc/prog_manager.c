/* prog_manager - one rank of a job that saves through a manager; driven by the scripts of
 * manager_*.sh. Its state is a number that tells the step, so a wrong restore shows. What it did it
 * says on stdout: should STEP 0|1, saved STEP, error STATUS text, and at its end one line `trainer:
 * ...`. */
#include <muster/manager.h>

#include "client/examples/words_allreduce.h"
#include "tests/support/storm.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIGNALLED_MS 300 /* a notice is agreed on in this time */
#define COLLECTIVE_MS 20000
#define GATE_MS 60000
#define INSIST_MS 20000
#define GIVEN_MAX 32
#define KEEPS_MAX 8
#define SAVES_MAX 8

struct program {
    int rank, world_size;
    int64_t value; /* the state: 3 x the number of steps done + 1 */
    int64_t own;   /* the same, in the state that save is given */
    muster_state_t *state, *own_state;
    muster_manager_t *manager;
    struct words_allreduce all;
    enum muster_status status;
    int64_t resumed, last;
    int64_t trained_ms, stood_ms, longest_ms; /* of that in calls of save that saved, in one call */

    int64_t steps, every, first, force, signal_rank, signal_step, digits, ask, own_ms, any_world,
        restore, offline;
    int64_t fallback, function_every, sharded, fail_rank, fail_step, exit_policy;
    int64_t keep_latest, keep_every, keep_near, keep_best, delete_step, step_ms, period_ms;
    int64_t keep_every_ms, keep_last_ms, best_greatest, best_unmeasured, no_loss, insist, bad;
    int64_t continuous_ms, overhead_ppm, young_daly, skew_ms, check;
    int64_t behind, save_ms, slow_rank, save_timeout_ms, give_state, look, progress, apart;
    int64_t close_only, cells;
    double *ballast;
    int64_t given[GIVEN_MAX], keep_given[GIVEN_MAX];
    size_t given_count, keep_given_count;
    const char *prefix, *gate, *trash;
};

static struct program program = {.steps = 10,
                                 .force = -1,
                                 .signal_rank = -1,
                                 .restore = MUSTER_STEP_LATEST,
                                 .fail_rank = -1,
                                 .keep_latest = -1,
                                 .delete_step = -1,
                                 .slow_rank = -1,
                                 .continuous_ms = -1,
                                 .resumed = -1,
                                 .last = -1};

static const struct {
    const char *name;
    int64_t *value;
} numbers[] = {
    {"--steps", &program.steps},
    {"--every", &program.every},
    {"--first", &program.first},
    {"--force", &program.force},
    {"--signal-rank", &program.signal_rank},
    {"--signal-step", &program.signal_step},
    {"--digits", &program.digits},
    {"--ask", &program.ask},             /* should_save or begin_save before it */
    {"--any-world", &program.any_world}, /* save_fn and restore_fn, for any number of ranks */
    {"--own-ms", &program.own_ms},       /* ... and if so the program saves by itself, so long */
    {"--restore", &program.restore},
    {"--offline", &program.offline},
    {"--fallback", &program.fallback},
    {"--function-every", &program.function_every},
    {"--sharded", &program.sharded},
    {"--fail-rank", &program.fail_rank}, /* its save_fn fails ... */
    {"--fail-step", &program.fail_step}, /* ... at this step */
    {"--exit-policy", &program.exit_policy},
    {"--keep-latest", &program.keep_latest},
    {"--keep-every", &program.keep_every},
    {"--keep-near", &program.keep_near},
    {"--keep-best", &program.keep_best}, /* by the least loss, which is (step - 3) squared */
    {"--best-greatest", &program.best_greatest},
    {"--best-unmeasured", &program.best_unmeasured},
    {"--no-loss", &program.no_loss}, /* every third step has none */
    {"--keep-every-ms", &program.keep_every_ms},
    {"--keep-last-ms", &program.keep_last_ms},
    {"--insist", &program.insist}, /* each step is saved, as soon as there is a broker to agree */
    {"--bad", &program.bad},       /* tries saves that are refused, behind the last step */
    {"--delete", &program.delete_step}, /* rank 0, after the last step */
    {"--step-ms", &program.step_ms},
    {"--period-ms", &program.period_ms},
    {"--continuous-ms", &program.continuous_ms},
    {"--overhead-ppm", &program.overhead_ppm},
    {"--young-daly", &program.young_daly},
    {"--check", &program.check},         /* check_for_errors, once nothing is being saved */
    {"--skew-ms", &program.skew_ms},     /* rank N comes N times as late to each save */
    {"--behind", &program.behind},       /* saves go on behind the training */
    {"--save-ms", &program.save_ms},     /* how long a save takes ... */
    {"--slow-rank", &program.slow_rank}, /* ... of this rank alone */
    {"--save-timeout-ms", &program.save_timeout_ms},
    {"--close",
     &program.close_only}, /* as soon as the last step is over: waits for nothing, lists nothing */
    {"--cells", &program.cells},       /* beside the value, so that a shard is as large as that */
    {"--progress", &program.progress}, /* a save tells each second how far it came */
    {"--apart", &program.apart},       /* ranks do not meet in each step */
    {"--look", &program.look}, /* at each step that was saved, as soon as save has told it */
    {"--give-state", &program.give_state}, /* save is given a state; the node's own is wrong */
};

static bool take_given(const char *text, int64_t *steps, size_t *ret_count)
{
    char *end = NULL;

    for (*ret_count = 0; *text != '\0' && *ret_count < GIVEN_MAX; text = end) {
        steps[(*ret_count)++] = strtoll(text, &end, 10);
        end += *end == ',';
    }
    return *text == '\0';
}

static const struct {
    const char *name;
    const char **value;
} texts[] = {
    {"--prefix", &program.prefix},
    {"--gate", &program.gate}, /* step N is trained once there is a file of this name and N */
    {"--trash", &program.trash},
};

static bool take(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].value = value;
            return true;
        }
    if (strcmp(name, "--given") == 0)
        return take_given(value, program.given, &program.given_count);
    if (strcmp(name, "--keep-given") == 0)
        return take_given(value, program.keep_given, &program.keep_given_count);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].value = strtoll(value, NULL, 10);
            return true;
        }
    fprintf(stderr, "prog_manager: no such option: %s\n", name);
    return false;
}

/* --- training --------------------------------------------------------------------------------- */

static void pause_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void await_gate(const struct program *p, int64_t step)
{
    char path[4096];

    if (p->gate == NULL)
        return;
    snprintf(path, sizeof path, "%s%" PRId64, p->gate, step);
    for (int64_t waited = 0; access(path, F_OK) != 0 && waited < GATE_MS; waited += 5)
        pause_ms(5);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int train(struct program *p, int64_t step)
{
    float mean = (float)step;

    await_gate(p, step);
    pause_ms(p->step_ms);
    if (p->rank == p->signal_rank && step == p->signal_step) {
        kill(getpid(), SIGTERM);
        pause_ms(SIGNALLED_MS);
    }
    if (p->world_size > 1 && !p->apart && words_allreduce_mean(&p->all, &mean) != 0)
        return 1;
    pause_ms(p->rank * p->skew_ms);
    p->own = 3 * (step + 1) + 1;
    p->value = p->give_state ? -1 : p->own;
    return 0;
}

static void take_time(struct program *p, int64_t ms)
{
    for (int64_t done = 0; done < ms; done += 1000) {
        if (p->progress)
            muster_node_save_progress(muster_manager_node(p->manager), (uint64_t)done + 1);
        pause_ms(ms - done < 1000 ? ms - done : 1000);
    }
}

static int write_value(const struct muster_save_context *context)
{
    struct program *p = context->arg;
    const int64_t *value = context->snapshot != NULL ? context->snapshot : &p->value;
    char path[4096];
    FILE *file;

    if (p->slow_rank < 0 || p->rank == p->slow_rank)
        take_time(p, p->save_ms);
    if (p->rank == p->fail_rank && context->step == p->fail_step + 1)
        return 5;
    snprintf(path, sizeof path, "%s/value", context->directory);
    file = fopen(path, "wbe");
    if (file == NULL)
        return 6;
    fprintf(file, "%" PRId64, *value);
    return fclose(file) == 0 ? 0 : 6;
}

static int take_value(const struct muster_save_context *context, void **ret_snapshot)
{
    int64_t *copy = malloc(sizeof *copy);

    if (copy == NULL)
        return 7;
    *copy = ((struct program *)context->arg)->value;
    *ret_snapshot = copy;
    return 0;
}

static void release_value(void *snapshot, void *arg)
{
    (void)arg;
    free(snapshot);
}

/* Any rank's. */
static bool find_value(const char *checkpoint, char *ret_path, size_t size)
{
    char pattern[4096];
    glob_t found;
    bool one;

    snprintf(pattern, sizeof pattern, "%s/shard-*/value", checkpoint);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    one = found.gl_pathc > 0;
    if (one)
        snprintf(ret_path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    return one;
}

static int read_value(const struct muster_restore_context *context)
{
    struct program *p = context->arg;
    char path[4096];
    FILE *file;
    int got;

    if (p->any_world)
        printf("saved by %d ranks\n", context->saved_world_size);
    if (context->directory != NULL)
        snprintf(path, sizeof path, "%s/value", context->directory);
    else if (!find_value(context->checkpoint_directory, path, sizeof path))
        return 6;
    file = fopen(path, "rbe");
    if (file == NULL)
        return 6;
    got = fscanf(file, "%" SCNd64, &p->value);
    fclose(file);
    return got == 1 ? 0 : 6;
}

static bool every_so_many(int64_t step, void *arg)
{
    printf("function asked of %" PRId64 "\n", step);
    return step % *(int64_t *)arg == 0;
}

static void print_log(int level, const char *text, void *arg)
{
    (void)arg;
    printf("log %d: %s\n", level, text);
}

static void free_collective(const struct muster_error *error, void *arg)
{
    (void)error;
    words_allreduce_abort(&((struct program *)arg)->all);
}

/* --- the manager ------------------------------------------------------------------------------ */

static size_t keeps_of(const struct program *p, struct muster_keep_policy out[KEEPS_MAX])
{
    size_t count = 0;

    if (p->keep_latest >= 0)
        out[count++] =
            (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = p->keep_latest};
    if (p->keep_every > 0)
        out[count++] =
            (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS, .number = p->keep_every};
    if (p->keep_near > 0)
        out[count++] = (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS_NEAR,
                                                   .number = p->keep_near};
    if (p->keep_best > 0)
        out[count++] = (struct muster_keep_policy){.kind = MUSTER_KEEP_BEST,
                                                   .number = p->keep_best,
                                                   .metric = "loss",
                                                   .greatest = p->best_greatest != 0,
                                                   .keep_unmeasured = p->best_unmeasured != 0};
    if (p->keep_every_ms > 0)
        out[count++] =
            (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_MS, .number = p->keep_every_ms};
    if (p->keep_last_ms > 0)
        out[count++] =
            (struct muster_keep_policy){.kind = MUSTER_KEEP_LAST_MS, .number = p->keep_last_ms};
    if (p->keep_given_count > 0)
        out[count++] = (struct muster_keep_policy){
            .kind = MUSTER_KEEP_STEPS, .steps = p->keep_given, .steps_count = p->keep_given_count};
    return count;
}

static size_t policies_of(struct program *p, struct muster_save_policy out[SAVES_MAX])
{
    size_t count = 0;

    if (p->period_ms > 0)
        out[count++] =
            (struct muster_save_policy){.kind = MUSTER_SAVE_PERIOD_MS, .number = p->period_ms};
    if (p->continuous_ms >= 0)
        out[count++] = (struct muster_save_policy){.kind = MUSTER_SAVE_CONTINUOUS_MS,
                                                   .number = p->continuous_ms};
    if (p->overhead_ppm > 0)
        out[count++] = (struct muster_save_policy){.kind = MUSTER_SAVE_OVERHEAD,
                                                   .share = (double)p->overhead_ppm / 1e6};
    if (p->young_daly)
        out[count++] = (struct muster_save_policy){.kind = MUSTER_SAVE_YOUNG_DALY};
    if (p->every > 0)
        out[count++] =
            (struct muster_save_policy){.kind = MUSTER_SAVE_EVERY_STEPS, .number = p->every};
    if (p->first > 0)
        out[count++] = (struct muster_save_policy){.kind = MUSTER_SAVE_FIRST};
    if (p->given_count > 0)
        out[count++] = (struct muster_save_policy){
            .kind = MUSTER_SAVE_STEPS, .steps = p->given, .steps_count = p->given_count};
    if (p->function_every > 0)
        out[count++] = (struct muster_save_policy){.kind = MUSTER_SAVE_FUNCTION,
                                                   .should_save_fn = every_so_many,
                                                   .arg = &p->function_every};
    return count;
}

static enum muster_status open_manager(struct program *p, struct muster_error *error)
{
    struct muster_node_options node = MUSTER_NODE_OPTIONS_INIT;
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct muster_save_policy save[SAVES_MAX];
    struct muster_keep_policy keep[KEEPS_MAX];

    policies.save = save;
    policies.save_count = policies_of(p, save);
    policies.keep = keep;
    policies.keep_count = keeps_of(p, keep);
    policies.trash = p->trash;
    node.layout = p->sharded ? MUSTER_LAYOUT_SHARDED : MUSTER_LAYOUT_REPLICATED;
    node.restore_any_world_size = p->any_world;
    if (p->fail_rank >= 0 || p->save_ms > 0 || p->any_world) {
        node.termination.save_fn = write_value;
        node.termination.restore_fn = read_value;
        node.snapshot_fn = p->behind ? take_value : NULL;
        node.snapshot_release_fn = p->behind ? release_value : NULL;
    } else {
        node.state = p->state;
    }
    node.termination.on_preempted =
        p->exit_policy ? MUSTER_PREEMPTED_EXIT : MUSTER_PREEMPTED_RETURN;
    node.save_behind = p->behind != 0;
    node.offline_ok = p->offline != 0;
    if (p->offline)
        node.connect_timeout_ms = 100;
    node.log = print_log;
    node.on_error = free_collective;
    node.arg = p;
    options.node = &node;
    options.policies = &policies;
    options.name_prefix = p->prefix;
    options.name_digits = (int)p->digits;
    options.fallback = p->fallback != 0;
    options.save_timeout_ms = p->save_timeout_ms;
    options.query_timeout_ms = p->offline ? 100 : 0;
    return muster_manager_open(&options, &p->manager, error);
}

static enum muster_status restore(struct program *p, struct muster_error *error)
{
    struct muster_restored restored;
    enum muster_status status =
        muster_manager_restore(p->manager, p->restore, &restored, sizeof restored, error);

    if (status == MUSTER_E_NOT_FOUND && p->restore == MUSTER_STEP_LATEST) {
        printf("restored nothing: %s\n", error->text);
        return MUSTER_OK;
    }
    if (status != MUSTER_OK)
        return status;
    printf("restored %" PRId64 " epoch=%" PRId64 " batch=%" PRId64 " data=%" PRId64
           " fell_back=%d\n",
           restored.step, restored.epoch, restored.step_in_epoch, restored.data_position,
           restored.fell_back);
    p->resumed = p->last = restored.step;
    if (restored.checkpoint == 0)
        printf("WRONG: checkpoint 0 was restored\n");
    if (p->value != 3 * (restored.step + 1) + 1) {
        printf("WRONG STATE %" PRId64 " of step %" PRId64 "\n", p->value, restored.step);
        return MUSTER_E_FAULT;
    }
    return MUSTER_OK;
}

static void complain(const struct program *p, const struct muster_error *error)
{
    printf("error: rank=%d status=%s peer=%d text=%s\n", p->rank, muster_status_name(error->status),
           error->rank, error->text);
}

/* What is told of a step that was saved holds: it is there, under its name. */
static void look_at(struct program *p, int64_t step)
{
    const struct muster_checkpoint_info *info = NULL, *all = NULL;
    struct muster_error error;
    char custom[64], manifest[4200];
    size_t count = 0;

    if (muster_manager_metadata(p->manager, step, &info, sizeof *info, &error) != MUSTER_OK) {
        printf("WRONG: no metadata of step %" PRId64 ": %s\n", step, error.text);
        return;
    }
    snprintf(custom, sizeof custom, "step %" PRId64, step);
    if (strstr(info->custom_metadata, custom) == NULL)
        printf("WRONG: step %" PRId64 " has %s\n", step, info->custom_metadata);
    if (muster_manager_all_steps(p->manager, &all, &count, sizeof *all, &error) != MUSTER_OK ||
        count == 0) {
        printf("WRONG: no list with step %" PRId64 ": %s\n", step, error.text);
        return;
    }
    snprintf(manifest, sizeof manifest, "%s/manifest.json", all[count - 1].path);
    if (strstr(manifest, "/.muster/") != NULL || access(manifest, F_OK) != 0)
        printf("WRONG: step %" PRId64 " is not at %s\n", all[count - 1].step, manifest);
}

static enum muster_status one_step(struct program *p, int64_t step, struct muster_error *error)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT, insisting;
    const struct muster_metric loss = {"loss", (double)((step - 3) * (step - 3))};
    char custom[64];
    bool should = false, saved = false;
    int64_t began_ms, took_ms;
    enum muster_status status;

    if (train(p, step) != 0)
        muster_node_fail(muster_manager_node(p->manager), 9, "the collective broke");
    snprintf(custom, sizeof custom, "{\"made at\": \"step %" PRId64 "\"}", step);
    request.metrics = &loss;
    request.metrics_count = p->no_loss && step % 3 == 2 ? 0 : 1;
    request.custom_metadata = custom;
    request.force = step == p->force;
    request.state = p->give_state ? p->own_state : NULL;
    request.epoch = step / 4;
    request.step_in_epoch = step % 4;
    request.data_position = step * 100;
    if (p->ask) {
        status = request.force ? muster_manager_begin_save(p->manager, step, &should, error)
                               : muster_manager_should_save(p->manager, step, &should, error);
        if (status != MUSTER_OK)
            return status;
        printf("should %" PRId64 " %d\n", step, should);
        if (should)
            take_time(p, p->own_ms);
    }
    began_ms = now_ms();
    status = muster_manager_save(p->manager, step, &request, &saved, error);
    took_ms = now_ms() - began_ms;
    p->stood_ms += saved ? took_ms : 0;
    if (saved && took_ms > p->longest_ms)
        p->longest_ms = took_ms;
    insisting = request;
    insisting.force = true;
    for (int64_t waited = 0; p->insist && !saved && waited < INSIST_MS; waited += 20) {
        pause_ms(20);
        status = muster_manager_save(p->manager, step, &insisting, &saved, error);
    }
    if (saved)
        printf("saved %" PRId64 "\n", step);
    if (saved && p->look && status == MUSTER_OK)
        look_at(p, step);
    else if (p->behind && muster_manager_is_saving_in_progress(p->manager))
        printf("goes on at %" PRId64 "\n", step);
    if (p->ask && (status == MUSTER_OK || status == MUSTER_PREEMPTED) && saved != should &&
        !request.force && !p->insist)
        printf("WRONG ANSWER %d of step %" PRId64 "\n", should, step);
    if (status == MUSTER_PREEMPTED && !muster_manager_reached_preemption(p->manager, step))
        printf("WRONG: preemption was not reached\n");
    p->last = step;
    if (p->check && status == MUSTER_OK) {
        for (int64_t waited = 0; waited < INSIST_MS; waited += 5) {
            if (!muster_manager_is_saving_in_progress(p->manager))
                break;
            pause_ms(5);
        }
        status = muster_manager_check_for_errors(p->manager, error);
    }
    if (status == MUSTER_E_ABORTED || status == MUSTER_E_SAVE || status == MUSTER_E_STORAGE ||
        status == MUSTER_E_TIMEOUT ||
        (p->check && status == MUSTER_E_CORRUPT)) { /* training goes on */
        complain(p, error);
        return MUSTER_OK;
    }
    return status;
}

static int meet(struct program *p)
{
    struct words_group group = {.name = getenv("TRAINER_GROUP"),
                                .nonce = muster_node_generation(muster_manager_node(p->manager)),
                                .rank = p->rank,
                                .world_size = p->world_size};

    return p->world_size > 1 ? words_allreduce_open(&p->all, &group, 1, COLLECTIVE_MS) : 0;
}

static void save_badly(struct program *p)
{
    const struct {
        const char *what;
        int64_t step;
        bool force;
    } tries[] = {{"existing", p->last, false}, {"existing forced", p->last, true},
                 {"first", 0, false},          {"first forced", 0, true},
                 {"backwards", 1, false},      {"backwards forced", 1, true},
                 {"negative", -1, true},       {"gap", p->last + 5, true}};

    for (size_t i = 0; p->bad && i < sizeof tries / sizeof *tries; i++) {
        struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
        struct muster_error error;
        bool saved = true;
        enum muster_status status;

        request.force = tries[i].force;
        status = muster_manager_save(p->manager, tries[i].step, &request, &saved, &error);
        printf("bad %s: %s %d\n", tries[i].what, muster_status_name(status), saved);
    }
}

static void delete_one(struct program *p)
{
    struct muster_error error;

    if (p->rank != 0 || p->delete_step < 0)
        return;
    if (muster_manager_delete(p->manager, p->delete_step, &error) != MUSTER_OK)
        complain(p, &error);
}

static void list(struct program *p)
{
    const struct muster_checkpoint_info *all = NULL;
    struct muster_error error;
    size_t count = 0;

    if (muster_manager_all_steps(p->manager, &all, &count, sizeof *all, &error) != MUSTER_OK) {
        complain(p, &error);
        return;
    }
    printf("all:");
    for (size_t i = 0; i < count; i++)
        printf(" %" PRId64, all[i].step);
    printf("\n");
}

static int run(struct program *p)
{
    struct muster_error error = {.status = MUSTER_OK};
    enum muster_status status;
    int code = 0, restart_code;

    p->status = open_manager(p, &error);
    if (p->status == MUSTER_OK)
        p->status = restore(p, &error);
    if (p->status == MUSTER_OK && meet(p) != 0)
        p->status = MUSTER_E_FAULT;
    p->trained_ms = -now_ms();
    while (p->status == MUSTER_OK && p->last + 1 < p->steps)
        p->status = one_step(p, p->last + 1, &error);
    p->trained_ms += now_ms();
    printf("stood %" PRId64 " %" PRId64 " %" PRId64 "\n", p->stood_ms, p->trained_ms,
           p->longest_ms);
    if (p->status != MUSTER_OK)
        complain(p, &error);
    if (p->status != MUSTER_OK && p->status != MUSTER_PREEMPTED)
        code = 1;
    if (p->manager == NULL)
        return code;
    save_badly(p);
    delete_one(p);
    if (p->behind && !p->close_only &&
        muster_manager_wait_until_finished(p->manager, -1, &error) != MUSTER_OK)
        complain(p, &error);
    if (p->close_only)
        printf("closing\n");
    else
        list(p);
    restart_code = muster_node_restart_code(muster_manager_node(p->manager));
    status = muster_manager_close(&p->manager, code, &error);
    printf("closed %s\n", muster_status_name(status));
    return status == MUSTER_PREEMPTED && code == 0 ? restart_code : code;
}

static bool add_ballast(struct program *p)
{
    p->ballast = calloc((size_t)p->cells, sizeof *p->ballast);
    return p->ballast != NULL &&
           muster_state_add_tensor(p->state, "ballast", MUSTER_DTYPE_F64, &p->cells, 1, p->ballast,
                                   NULL) == MUSTER_OK;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("MUSTER_RANK"), *size = getenv("MUSTER_WORLD_SIZE");
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    storm_from_environment();
    for (int i = 1; i + 1 < argc; i += 2)
        if (!take(argv[i], argv[i + 1]))
            return 2;
    program.rank = rank != NULL ? atoi(rank) : 0;
    program.world_size = size != NULL ? atoi(size) : 1;
    if (muster_state_create(&program.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(program.state, "value", &program.value, NULL) != MUSTER_OK ||
        muster_state_create(&program.own_state, NULL) != MUSTER_OK ||
        muster_state_add_i64(program.own_state, "value", &program.own, NULL) != MUSTER_OK ||
        (program.cells > 0 && !add_ballast(&program)))
        return 2;
    code = run(&program);
    printf("trainer: rank=%d resumed=%" PRId64 " last=%" PRId64 " status=%s\n", program.rank,
           program.resumed, program.last, muster_status_name(program.status));
    muster_state_destroy(&program.state);
    muster_state_destroy(&program.own_state);
    free(program.ballast);
    words_allreduce_close(&program.all);
    return code;
}
