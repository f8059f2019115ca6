/* cmd_run - `muster run`: starts the local ranks, passes signals and output on, restarts them.
 * Owns: the command line, the signal mask of this process, what is said between launches and at the
 * end. Never: decides (supervise.h does); asks the broker for anything but the newest checkpoint's
 * step and whether the job runs already; does what belongs to one launch (supervise_launch.h).
 * Works as pid 1: it reaps orphans, and its signals are blocked and read from a descriptor. Else
 * the kernel would drop them, as it drops those that pid 1 has no handler for. Every wait has a
 * bound: orders have deadlines, queries a timeout, the end's flushes a limit. */
#include "node/clock.h"
#include "schema/wire/wire.h"
#include "tools/run/host_relay.h"
#include "tools/run/run_hosts.h"
#include "tools/run/supervise_launch.h"
#include "tools/run/supervise_options.h"
#include "tools/run/supervise_progress.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FLUSH_LIMIT_MS 30000

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
#define FORWARDED_COUNT (sizeof forwarded / sizeof forwarded[0])

/* ---- who we are ---- */

/* The command's name, of letters, digits and "._-": better than no name at all. */
static void run_job_from_command(char *job, const char *command)
{
    const char *slash = strrchr(command, '/');
    size_t used = 0;

    for (const char *c = slash != NULL ? slash + 1 : command;
         *c != '\0' && used < IDENTITY_JOB_MAX - 1; c++)
        job[used++] = *c;
    job[used] = '\0';
    if (used == 0)
        snprintf(job, IDENTITY_JOB_MAX, "job");
    wire_job_name_clean(job);
}

static bool run_places_make(struct run *run, int count)
{
    run->rank_count = count;
    run->ranks = calloc((size_t)count, sizeof *run->ranks);
    run->ends = calloc((size_t)count, sizeof *run->ends);
    run->tellers = calloc((size_t)count, sizeof *run->tellers);
    if (run->ranks == NULL || run->ends == NULL || run->tellers == NULL) {
        run_fail("no memory for %d ranks", count);
        return false;
    }
    for (int i = 0; i < count; i++)
        run->ranks[i].start_fd = -1;
    return true;
}

/* The launcher says which rank we are, and how many ranks there are. */
static bool run_launcher_plan(struct run *run, const struct run_options *o)
{
    if (!run_places_make(run, 1))
        return false;
    run->ranks[0].rank = SUPERVISE_LAUNCHER;
    run->ranks[0].local_rank = run->ranks[0].local_size = run->command.world_size = -1;
    run->launcher = (struct launcher){.given = true, .broker = o->broker, .job = run->job};
    return true;
}

static bool run_ranks_plan(struct run *run, const struct run_options *o, const struct identity *id)
{
    bool launched = id->world_size > 1;

    if (launched && o->count > 1) {
        run_usage_error(
            "-n %d contradicts %s, which made this process rank %d of %d: leave -n away", o->count,
            id->family, id->rank, id->world_size);
        return false;
    }
    if (!run_places_make(run, o->count > 0 ? o->count : 1))
        return false;
    run->command.world_size = launched ? id->world_size : run->rank_count;
    for (int i = 0; i < run->rank_count; i++) {
        run->ranks[i].rank = launched ? id->rank : i;
        run->ranks[i].local_rank = launched ? id->local_rank : i;
        run->ranks[i].local_size = launched ? id->local_size : run->rank_count;
    }
    return true;
}

static bool run_identity_take(struct run *run, const struct run_options *o)
{
    const char *const *around = (const char *const *)environ;
    struct identity id = {.note = ""};
    struct muster_error err;

    if ((o->launcher || o->nodes_max > 0 ? identity_job(around, id.job, &err)
                                         : identity_read(around, &id, &err)) != MUSTER_OK) {
        run_fail("%s", err.text);
        return false;
    }
    if (o->job != NULL)
        snprintf(run->job, sizeof run->job, "%s", o->job);
    else if (id.job[0] != '\0')
        snprintf(run->job, sizeof run->job, "%s", id.job);
    else
        run_job_from_command(run->job, o->argv[0]);
    if (strncmp(id.note, "single:", strlen("single:")) != 0 && id.note[0] != '\0')
        fprintf(stderr, "muster run: %s\n", id.note); /* a launcher's variables were not taken */
    run->restarts_before = id.restart_count;
    run->command.argv = o->argv;
    run->command.job = run->job;
    run->command.broker = o->broker;
    run->command.restart_code = o->restart_code;
    run->command.fallback = o->fallback;
    run->command.node_rank = -1;
    run->directory = o->directory;
    if (o->nodes_max > 0)
        id.world_size = 1; /* who starts the hosts tells this one nothing of its ranks */
    return o->launcher ? run_launcher_plan(run, o) : run_ranks_plan(run, o, &id);
}

/* Only the ranks speak through it. */
static bool run_relay_take(struct run *run, const struct run_options *o, struct host_relay *relay)
{
    if (!o->relay)
        return true;
    if (!host_relay_start(relay, o->broker))
        return false;
    run->command.broker = relay->broker;
    return true;
}

/* ---- opening ---- */

/* Signals are blocked here and read from signal_fd. The ranks get the mask of our start without
 * those that they must hear: a blocked or ignored SIGTERM would survive their exec. One that was
 * ignored on purpose (nohup, a shell's background job) stays so. */
static bool run_signals_open(struct run *run)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    struct sigaction old;
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (size_t i = 0; i < FORWARDED_COUNT; i++) {
        int signo = forwarded[i];

        sigaction(signo, NULL, &old);
        if (old.sa_handler == SIG_IGN && (signo == SIGHUP || signo == SIGINT))
            continue;
        sigaction(signo, &action, NULL);
        sigaddset(&ours, signo);
    }
    sigaction(SIGCHLD, &action, NULL); /* ignored, it would take the exit codes away */
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &old);
    run->command.on_sigpipe = old.sa_handler;
    sigaction(SIGXFSZ, &action, &old); /* a log at the limit of file sizes is a log that ends */
    run->command.on_sigxfsz = old.sa_handler;
    sigprocmask(SIG_BLOCK, &ours, &run->command.mask);
    for (int signo = 1; signo < NSIG; signo++) {
        if (sigismember(&ours, signo) == 1)
            sigdelset(&run->command.mask, signo);
    }
    run->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_fd >= 0;
}

static bool run_hosts_open(struct run *run, const struct run_options *o)
{
    const struct hosts_options options = {.broker = o->broker,
                                          .job = run->job,
                                          .address = o->host_address,
                                          .ranks = run->rank_count,
                                          .min = o->nodes_min,
                                          .max = o->nodes_max,
                                          .node_rank = o->node_rank,
                                          .wait_ms = o->join_wait_ms};

    return hosts_start(&run->hosts, &options) ||
           run_fail("no process to tell the broker of this host: %s", strerror(errno));
}

static bool run_open(struct run *run, const struct run_options *o)
{
    size_t polls = (size_t)run->rank_count * 2 + 5;
    struct supervise_policy policy;
    struct muster_error err;

    if (output_open(&run->output, run->rank_count, run->ranks[0].rank, o->directory, &err) !=
        MUSTER_OK) {
        run_fail("%s", err.text);
        return false;
    }
    run->polls = calloc(polls, sizeof *run->polls);
    run->streams = calloc(polls, sizeof *run->streams);
    run->owners = calloc(polls, sizeof *run->owners);
    if (run->polls == NULL || run->streams == NULL || run->owners == NULL)
        return run_fail("no memory for %d ranks", run->rank_count);
    if (!run_signals_open(run))
        return run_fail("no descriptor for signals: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what the ranks leave behind comes to us, not to init */
    if (!guard_start(&run->guard))
        output_say(&run->output,
                   "muster run: no guard process (%s): what the ranks start may "
                   "outlive a killed supervisor",
                   strerror(errno));
    run->output.quiet = o->quiet;
    if (files_open(&run->files, o->directory, &err) != MUSTER_OK)
        output_say(&run->output, "muster run: %s: the ranks leave no error files", err.text);
    run->command.files = &run->files;
    supervise_defaults(&policy, run->rank_count);
    policy.restart_code = o->restart_code;
    policy.max_failures = o->max_failures;
    policy.max_preemptions = o->max_preemptions;
    policy.grace_ms = o->grace_ms;
    policy.leave_ms = o->leave_ms;
    policy.stop_ms = o->stop_ms;
    policy.backoff_ms = o->backoff_ms;
    supervise_init(&run->sup, &policy,
                   (uint64_t)clock_ms(CLOCK_BOOTTIME) ^ ((uint64_t)getpid() << 32));
    return o->nodes_max == 0 || run_hosts_open(run, o);
}

static void run_close(struct run *run)
{
    if (run->output.rank_count > 0)
        output_flush(&run->output, FLUSH_LIMIT_MS);
    hosts_stop(&run->hosts);
    guard_stop(&run->guard);
    if (run->signal_fd >= 0)
        close(run->signal_fd);
    output_close(&run->output);
    if (run->ranks != NULL)
        files_close(&run->files, run->ranks[0].rank, run->rank_count);
    free(run->ranks);
    free(run->ends);
    free(run->tellers);
    free(run->polls);
    free(run->streams);
    free(run->owners);
}

/* ---- between launches, and the end ---- */

/* False: we were told to end meanwhile. */
static bool run_restart_wait(struct run *run, int64_t delay_ms)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + delay_ms;
    int64_t left_ms = delay_ms;

    do {
        struct pollfd ready = {.fd = run->signal_fd, .events = POLLIN};

        poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (run_signals_read(run))
            run_orphans_reap(run, false);
        output_write(&run->output.sinks[0]);
        output_write(&run->output.sinks[1]);
        left_ms = end_ms - clock_ms(CLOCK_BOOTTIME);
    } while (left_ms > 0 && run->sup.told_signo == 0);
    return run->sup.told_signo == 0;
}

static void run_counts_text(const struct run *run, char *text, size_t size)
{
    const struct supervise *sup = &run->sup;

    snprintf(text, size, "%d launch%s, %d preemption%s, %d failure%s", sup->launch_count,
             sup->launch_count == 1 ? "" : "es", sup->preemption_count,
             run_plural(sup->preemption_count), sup->failure_count, run_plural(sup->failure_count));
}

/* A failed save is printed first, and then where the job resumes. All ranks say the same, so one
 * rank's word is enough. */
static bool run_is_bad_news(const char *text)
{
    return strncmp(text, "NOT saved", strlen("NOT saved")) == 0 || strstr(text, " failed") != NULL;
}

/* Prints the causes that the ranks left in their files. False: there are none. */
static bool run_saves_say(struct run *run)
{
    char text[1200], said[1200] = "";
    int rank = 0;

    for (int i = 0; i < run->rank_count && !run_is_bad_news(said); i++)
        if (files_left_read(&run->files, run->ranks[i].rank, text, sizeof text) &&
            (said[0] == '\0' || run_is_bad_news(text))) {
            memcpy(said, text, sizeof said);
            rank = run->ranks[i].rank;
        }
    if (run_is_bad_news(said))
        output_say(&run->output, "muster run: rank %d: %s", rank, said);
    else if (said[0] != '\0')
        output_note(&run->output, "muster run: rank %d: %s", rank, said);
    return said[0] != '\0';
}

static void run_resume_say(struct run *run)
{
    int next = run->sup.launch_count + 1;

    if (run_saves_say(run) || !run->sup.step_known)
        return;
    if (run->sup.step >= 0)
        output_note(&run->output,
                    "muster run: launch %d resumes at step %lld, the newest checkpoint", next,
                    (long long)run->sup.step);
    else
        output_note(&run->output,
                    "muster run: launch %d begins from the start: the broker has no checkpoint",
                    next);
}

/* Was anything saved? The rank knows. */
static void run_ended_say(struct run *run, const struct supervise_verdict *verdict, const char *why,
                          const char *counts, const struct files_error *error)
{
    output_say(&run->output, "muster run: job %s ended (%s; %s), exit code %d", run->job, why,
               counts, verdict->exit_code);
    if (error != NULL)
        output_say(&run->output, "muster run: rank %d left with: %s", error->rank, error->text);
    run_saves_say(run);
}

static int run_end_say(struct run *run, const struct supervise_verdict *verdict, const char *why,
                       const struct files_error *error)
{
    enum supervise_kind kind = run->sup.now.cause_kind;
    int index = run->sup.now.cause.rank - run->ranks[0].rank;
    char counts[96];
    const struct box box = {.job = run->job,
                            .program = run->command.argv[0],
                            .why = why,
                            .counts = counts,
                            .sup = &run->sup,
                            .error = error,
                            .files = &run->files,
                            .unix_ms = kind == SUPERVISE_NONE ? 0 : run->ends[index].unix_ms,
                            .first_rank = run->ranks[0].rank,
                            .exit_code = verdict->exit_code,
                            .stalled = verdict->reason == SUPERVISE_BY_STALL};

    run_counts_text(run, counts, sizeof counts);
    if (verdict->reason == SUPERVISE_BY_FINISH)
        (void)run_saves_say(run);
    if (verdict->reason == SUPERVISE_BY_FINISH)
        output_note(&run->output, "muster run: job %s finished (%s)", run->job, counts);
    else if (verdict->reason == SUPERVISE_BY_SIGNAL &&
             (kind == SUPERVISE_RESTART || run->sup.now.cause.signo == run->sup.told_signo))
        run_ended_say(run, verdict, why, counts, error);
    else
        box_say(&run->output, &box);
    return verdict->exit_code;
}

static struct supervise_verdict run_launch_judge(struct run *run)
{
    int64_t step;
    /* Asked only where a restart hangs on it: a job that finished needs no broker. */
    bool known = run->sup.now.cause_kind != SUPERVISE_NONE && run->sup.told_signo == 0 &&
                 progress_step(run->command.broker, run->job, &step);

    return supervise_end(&run->sup, known ? &step : NULL, clock_ms(CLOCK_BOOTTIME));
}

/* 0: it can be executed, as far as one can tell; else the exit code of a shell that could not. */
static int run_program_look(const char *program)
{
    const char *path = getenv("PATH") != NULL ? getenv("PATH") : "/bin:/usr/bin"; /* execvp's own */
    int code = 127;

    if (strchr(program, '/') != NULL)
        return access(program, X_OK) == 0 ? 0 : errno == ENOENT || errno == ENOTDIR ? 127 : 0;
    while (path != NULL && code != 0) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];

        snprintf(file, sizeof file, "%.*s%s%s", (int)length, path, length > 0 ? "/" : "", program);
        if (access(file, X_OK) == 0)
            code = 0;
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return code;
}

/* As muster_status_exit_code has it, also where the program exits with a code of its own; and a
 * directory in which this user may not write: no restart changes its rights. */
static bool run_is_incurable(const struct files_error *error)
{
    if (strcmp(error->status, "MUSTER_E_IO") == 0 && error->step < 0 &&
        (error->code == EACCES || error->code == EPERM || error->code == EROFS))
        return true;
    for (int i = 0; i < MUSTER_STATUS_COUNT; i++)
        if (strcmp(muster_status_name((enum muster_status)i), error->status) == 0)
            return muster_status_exit_code((enum muster_status)i) == EXIT_CODE_NO_RESTART;
    return false;
}

static int run_loop(struct run *run)
{
    struct supervise_verdict verdict;
    struct files_error error;
    char why[384];
    bool told;
    int code;

    int missing = run_program_look(run->command.argv[0]);
    if (missing != 0) {
        output_say(
            &run->output,
            "muster run: cannot start %s: no such program that this user may execute; give its "
            "path behind --",
            run->command.argv[0]);
        return missing;
    }
    /* whoever starts a job twice by mistake would wait without a word */
    if (run->hosts.pid == 0 && tool_running_job(run->command.broker, run->job, why, sizeof why))
        output_say(
            &run->output,
            "muster run: job %s is running already (%s): a rank started here waits while a "
            "process holds its number; where that one has finished or is gone, it ends the "
            "launch for all, and all begin again from the newest checkpoint. `muster nodes --job "
            "%s` shows its hosts and pids; another job needs a --job of its own",
            run->job, why, run->job);
    if (run->hosts.pid == 0) /* else its hosts are told first */
        output_note(&run->output, "muster run: launch 1: starting %s of job %s",
                    run_whom(run, run->rank_count).text, run->job);
    while ((code = run_hosts_await(run)) < 0) {
        run_launch(run);
        told = run->launcher.given
                   ? launcher_error(&run->launcher, &error)
                   : cause_find(&run->sup, &run->files, run->ends, run->rank_count, &error);
        if (told && run_is_incurable(&error))
            supervise_incurable(&run->sup, error.status);
        verdict = run_launch_judge(run);
        supervise_describe(&run->sup, &verdict, why, sizeof why);
        if (verdict.reason == SUPERVISE_BY_FINISH)
            hosts_ended(&run->hosts, run->place.launch,
                        true); /* no other host waits for this one */
        if (!verdict.restart)
            return run_end_say(run, &verdict, why, told ? &error : NULL);
        if (run_hosts_is_taken(run))
            return run->command.restart_code;
        run_resume_say(run);
        if (verdict.delay_ms > 0)
            output_note(&run->output, "muster run: launch %d begins in %.1f s",
                        run->sup.launch_count + 1, (double)verdict.delay_ms / 1000.0);
        if (!run_restart_wait(run, verdict.delay_ms)) {
            output_say(&run->output, "muster run: told to end before launch %d, exit code %d",
                       run->sup.launch_count + 1, run->command.restart_code);
            return run->command.restart_code;
        }
        output_note(&run->output, "muster run: launch %d: restarting %s (%s)",
                    run->sup.launch_count + 1, run_whom(run, run->rank_count).text, why);
    }
    return code;
}

/* For supervisors that restart a process which a signal ended, and that look at the wait status. */
static void run_die_of(int signo)
{
    sigset_t one;

    signal(signo, SIG_DFL);
    raise(signo); /* still blocked: it waits until the next line */
    sigemptyset(&one);
    sigaddset(&one, signo);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int cmd_run(int argc, char **argv)
{
    struct run run = {.signal_fd = -1, .hosts.fd = -1, .saves.fd = -1};
    struct host_relay relay = {.pid = 0};
    struct run_options options;
    int code;

    if (!run_options_read(&options, argc, argv, &code))
        return code;
    code = TOOL_USAGE;
    if (run_identity_take(&run, &options) && run_relay_take(&run, &options, &relay) &&
        run_open(&run, &options))
        code = run_loop(&run);
    run_close(&run);
    host_relay_stop(&relay);
    if (options.reraise && code == options.restart_code)
        run_die_of(run.sup.told_signo != 0 ? run.sup.told_signo : SIGTERM);
    return code; /* also where the signal did not end us: pid 1 */
}
