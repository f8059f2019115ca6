/* cmd_run - `muster run`: starts the local ranks, passes signals and output on, restarts them.
 * Owns: the command line, the event loop, the signal mask of this process, the messages.
 * Never: decides (supervise.h does); talks to the broker but for the newest checkpoint's step.
 * Works as pid 1: it reaps orphans, and its signals are blocked and read from a descriptor, so that
 * the kernel does not drop them as it drops those that pid 1 has no handler for.
 * Every wait has a bound: orders have deadlines, queries a timeout, the end's flushes a limit. */
#include "node/notice/identity.h"
#include "schema/wire.h"
#include "tools/supervise.h"
#include "tools/supervise_guard.h"
#include "tools/supervise_output.h"
#include "tools/supervise_rank.h"
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 1024
#define CODE_NO_PROCESS 71 /* EX_OSERR: the system would not start the rank */
#define SWEEP_LIMIT_MS 2000
#define SWEEP_NAP_MS 5
#define DRAIN_LIMIT_MS 1000
#define FLUSH_LIMIT_MS 30000

struct run_options {
    int count; /* 0 = not given */
    const char *job;
    const char *broker;
    const char *directory; /* --output */
    int restart_code;
    bool code_given; /* --restart-code or --restart-preset */
    int max_failures;
    int max_preemptions;
    int grace_ms;
    int leave_ms;
    int stop_ms;
    int backoff_ms;
    char **argv; /* of the ranks */
};

struct run {
    struct supervise sup;
    struct output output;
    struct guard guard;
    struct rank_command command;
    struct rank_process *ranks;
    int rank_count;
    int restarts_before; /* that the launcher knows of */
    int signal_fd;
    char job[IDENTITY_JOB_MAX];
    struct pollfd *polls;
    struct output_stream **streams; /* beside polls; NULL = not a stream */
    int *owners;                    /* beside polls: the stream's rank */
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
#define FORWARDED_COUNT (sizeof forwarded / sizeof forwarded[0])

static int64_t clock_boot_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the command line ---- */

static const char usage_text[] =
    "usage: muster run [options] [--] COMMAND [ARGUMENT...]\n"
    "Starts the ranks of a job on this host and restarts them together.\n"
    "\n"
    "  -n, --ranks N            ranks to start here (default 1). Under a launcher that has given\n"
    "                           this process a rank (srun, mpirun, torchrun, ...) it is that one\n"
    "  -j, --job NAME           the job's name (MUSTER_JOB; default: the scheduler's job id, else\n"
    "                           the command's name)\n"
    "  -b, --broker ADDR        the broker (MUSTER_BROKER)\n"
    "      --output DIR         also write what rank R prints to DIR/R.log (appended)\n"
    "      --max-failures N     failed launches that are restarted (default 3, -1 = any number)\n"
    "      --max-preemptions N  preempted launches that are restarted (default -1 = any number)\n"
    "      --restart-code N     exit code that asks for a restart (MUSTER_RESTART_CODE; default "
    "42)\n"
    "      --restart-preset P   gcp (143), kubeflow (143) or slurm (75) instead\n"
    "      --grace-ms N         after a failure: until the other ranks get SIGTERM, and from "
    "there\n"
    "                           until SIGKILL (default 10000)\n"
    "      --leave-ms N         the same after the first rank left with the restart code\n"
    "                           (default 120000)\n"
    "      --stop-ms N          from a forwarded SIGTERM, SIGINT or SIGHUP until SIGKILL\n"
    "                           (default 600000, 0 = never)\n"
    "      --backoff-ms N       before the first restart after a failure; doubles up to 30 s\n"
    "                           (default 1000); a preemption is restarted at once\n"
    "\n"
    "What rank R prints is passed on line by line, with [R] before each. SIGTERM, SIGINT, SIGHUP,\n"
    "SIGUSR1 and SIGUSR2 are passed on to the ranks' processes (not to what these started); a\n"
    "second SIGINT kills. Exit codes of ranks: 0 finished, the restart code: restart me, 93: do\n"
    "not restart, anything else: failure. `muster run` exits with 0 when all ranks finished, with\n"
    "the restart code when it was told to end, with 130 at Ctrl-C, else with the code of the "
    "first\n"
    "rank that failed (128 + its signal); 2: the command line is wrong.\n";

enum {
    OPT_OUTPUT = 256,
    OPT_MAX_FAILURES,
    OPT_MAX_PREEMPTIONS,
    OPT_RESTART_CODE,
    OPT_RESTART_PRESET,
    OPT_GRACE,
    OPT_LEAVE,
    OPT_STOP,
    OPT_BACKOFF,
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"job", required_argument, NULL, 'j'},
    {"broker", required_argument, NULL, 'b'},
    {"help", no_argument, NULL, 'h'},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"max-failures", required_argument, NULL, OPT_MAX_FAILURES},
    {"max-preemptions", required_argument, NULL, OPT_MAX_PREEMPTIONS},
    {"restart-code", required_argument, NULL, OPT_RESTART_CODE},
    {"restart-preset", required_argument, NULL, OPT_RESTART_PRESET},
    {"grace-ms", required_argument, NULL, OPT_GRACE},
    {"leave-ms", required_argument, NULL, OPT_LEAVE},
    {"stop-ms", required_argument, NULL, OPT_STOP},
    {"backoff-ms", required_argument, NULL, OPT_BACKOFF},
    {NULL, 0, NULL, 0},
};

/* Both say what is wrong, and return false. */
static bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool fail(const char *format, ...)
{
    va_list args;

    fputs("muster run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

static bool usage_error(const char *format, ...)
{
    char text[1200];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail("%s; `muster run --help` lists the options", text);
}

static bool number_take(const char *name, const char *text, int min, int max, int *ret_value)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        return usage_error("%s must be a number from %d to %d, not \"%s\"", name, min, max, text);
    *ret_value = (int)value;
    return true;
}

static bool code_take(const char *name, const char *text, int *ret_code)
{
    if (!number_take(name, text, 1, 255, ret_code))
        return false;
    if (*ret_code == SUPERVISE_CODE_NO_RESTART)
        return usage_error("%s cannot be %d, which means \"do not restart\"", name,
                           SUPERVISE_CODE_NO_RESTART);
    return true;
}

static bool preset_take(const char *name, int *ret_code)
{
    static const struct {
        const char *name;
        int code;
    } presets[] = {{"gcp", 143}, {"kubeflow", 143}, {"slurm", 75}};

    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(name, presets[i].name) == 0) {
            *ret_code = presets[i].code;
            return true;
        }
    }
    return usage_error("--restart-preset must be gcp, kubeflow or slurm, not \"%s\"", name);
}

static bool job_take(const char *name)
{
    if (!wire_job_name_ok(name))
        return usage_error(
            "--job \"%.100s\" cannot be a job's name: use 1 to %d of A-Z a-z 0-9 . _ -, "
            "not beginning with . or -",
            name, JOB_NAME_MAX);
    return true;
}

static bool restart_code_take(struct run_options *o, int option, const char *value)
{
    if (o->code_given)
        return usage_error("--restart-code and --restart-preset can be given once, and not both");
    o->code_given = true;
    return option == OPT_RESTART_CODE ? code_take("--restart-code", value, &o->restart_code)
                                      : preset_take(value, &o->restart_code);
}

static bool option_take(struct run_options *o, int option, const char *value)
{
    switch (option) {
    case 'n':
        return number_take("-n", value, 1, RANKS_MAX, &o->count);
    case 'j':
        o->job = value;
        return job_take(value);
    case 'b':
        o->broker = value;
        return true;
    case OPT_OUTPUT:
        o->directory = value;
        return true;
    case OPT_MAX_FAILURES:
        return number_take("--max-failures", value, -1, INT_MAX, &o->max_failures);
    case OPT_MAX_PREEMPTIONS:
        return number_take("--max-preemptions", value, -1, INT_MAX, &o->max_preemptions);
    case OPT_RESTART_CODE:
    case OPT_RESTART_PRESET:
        return restart_code_take(o, option, value);
    case OPT_GRACE:
        return number_take("--grace-ms", value, 0, INT_MAX, &o->grace_ms);
    case OPT_LEAVE:
        return number_take("--leave-ms", value, 0, INT_MAX, &o->leave_ms);
    case OPT_STOP:
        return number_take("--stop-ms", value, 0, INT_MAX, &o->stop_ms);
    case OPT_BACKOFF:
        return number_take("--backoff-ms", value, 0, INT_MAX, &o->backoff_ms);
    default:
        return usage_error("the command line is wrong"); /* getopt said where */
    }
}

static const char *env_or_null(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* True: *o is filled. False: *ret_code is the exit code. */
static bool options_read(struct run_options *o, int argc, char **argv, int *ret_code)
{
    static char name[] = "muster run";
    const char *code = env_or_null("MUSTER_RESTART_CODE");
    struct supervise_policy policy;
    int option;

    supervise_defaults(&policy, 1);
    *o = (struct run_options){
        .broker = env_or_null("MUSTER_BROKER"),
        .restart_code = policy.restart_code,
        .max_failures = policy.max_failures,
        .max_preemptions = policy.max_preemptions,
        .grace_ms = (int)policy.grace_ms,
        .leave_ms = (int)policy.leave_ms,
        .stop_ms = (int)policy.stop_ms,
        .backoff_ms = (int)policy.backoff_ms,
    };
    *ret_code = TOOL_USAGE;
    optind = 0;     /* the main program may have used getopt */
    argv[0] = name; /* for getopt's own messages */
    while ((option = getopt_long(argc, argv, "+n:j:b:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            *ret_code = TOOL_DONE;
            return false;
        }
        if (!option_take(o, option, optarg))
            return false;
    }
    if (!o->code_given && code != NULL && !code_take("MUSTER_RESTART_CODE", code, &o->restart_code))
        return false;
    o->argv = argv + optind;
    if (o->argv[0] == NULL)
        return usage_error("no command was given");
    return true;
}

/* ---- who we are ---- */

/* The command's name, of letters, digits and "._-": better than no name at all. */
static void job_from_command(char *job, const char *command)
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

static bool ranks_plan(struct run *run, const struct run_options *o, const struct identity *id)
{
    bool launched = id->world_size > 1;

    if (launched && o->count > 1) {
        usage_error("-n %d contradicts %s, which made this process rank %d of %d: leave -n away",
                    o->count, id->family, id->rank, id->world_size);
        return false;
    }
    run->rank_count = o->count > 0 ? o->count : 1;
    run->command.world_size = launched ? id->world_size : run->rank_count;
    run->ranks = calloc((size_t)run->rank_count, sizeof *run->ranks);
    if (run->ranks == NULL) {
        fail("no memory for %d ranks", run->rank_count);
        return false;
    }
    for (int i = 0; i < run->rank_count; i++) {
        run->ranks[i].rank = launched ? id->rank : i;
        run->ranks[i].local_rank = launched ? id->local_rank : i;
        run->ranks[i].local_size = launched ? id->local_size : run->rank_count;
        run->ranks[i].start_fd = -1;
    }
    return true;
}

static bool identity_take(struct run *run, const struct run_options *o)
{
    struct muster_error err;
    struct identity id;

    if (identity_read((const char *const *)environ, &id, &err) != MUSTER_OK) {
        fail("%s", err.text);
        return false;
    }
    if (o->job != NULL)
        snprintf(run->job, sizeof run->job, "%s", o->job);
    else if (id.job[0] != '\0')
        snprintf(run->job, sizeof run->job, "%s", id.job);
    else
        job_from_command(run->job, o->argv[0]);
    if (strncmp(id.note, "single:", strlen("single:")) != 0 && id.note[0] != '\0')
        fprintf(stderr, "muster run: %s\n", id.note); /* a launcher's variables were not taken */
    run->restarts_before = id.restart_count;
    run->command.argv = o->argv;
    run->command.job = run->job;
    run->command.broker = o->broker;
    run->command.restart_code = o->restart_code;
    return ranks_plan(run, o, &id);
}

/* ---- opening ---- */

/* Signals are blocked here and read from signal_fd. The ranks get the mask of our start without
 * those that they must hear: a blocked or ignored SIGTERM would survive their exec. One that was
 * ignored on purpose (nohup, a shell's background job) stays so. */
static bool signals_open(struct run *run)
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
    sigprocmask(SIG_BLOCK, &ours, &run->command.mask);
    for (int signo = 1; signo < NSIG; signo++) {
        if (sigismember(&ours, signo) == 1)
            sigdelset(&run->command.mask, signo);
    }
    run->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_fd >= 0;
}

static bool run_open(struct run *run, const struct run_options *o)
{
    size_t polls = (size_t)run->rank_count * 2 + 3;
    struct supervise_policy policy;
    struct muster_error err;

    if (output_open(&run->output, run->rank_count, run->ranks[0].rank, o->directory, &err) !=
        MUSTER_OK)
        return fail("%s", err.text);
    run->polls = calloc(polls, sizeof *run->polls);
    run->streams = calloc(polls, sizeof *run->streams);
    run->owners = calloc(polls, sizeof *run->owners);
    if (run->polls == NULL || run->streams == NULL || run->owners == NULL)
        return fail("no memory for %d ranks", run->rank_count);
    if (!signals_open(run))
        return fail("no descriptor for signals: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what the ranks leave behind comes to us, not to init */
    if (!guard_start(&run->guard))
        output_say(&run->output,
                   "muster run: no guard process (%s): what the ranks start may "
                   "outlive a killed supervisor",
                   strerror(errno));
    supervise_defaults(&policy, run->rank_count);
    policy.restart_code = o->restart_code;
    policy.max_failures = o->max_failures;
    policy.max_preemptions = o->max_preemptions;
    policy.grace_ms = o->grace_ms;
    policy.leave_ms = o->leave_ms;
    policy.stop_ms = o->stop_ms;
    policy.backoff_ms = o->backoff_ms;
    supervise_init(&run->sup, &policy, (uint64_t)clock_boot_ms() ^ ((uint64_t)getpid() << 32));
    return true;
}

static void run_close(struct run *run)
{
    if (run->output.rank_count > 0)
        output_flush(&run->output, FLUSH_LIMIT_MS);
    guard_stop(&run->guard);
    if (run->signal_fd >= 0)
        close(run->signal_fd);
    output_close(&run->output);
    free(run->ranks);
    free(run->polls);
    free(run->streams);
    free(run->owners);
}

/* ---- one launch ---- */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void launch_start(struct run *run)
{
    struct muster_error err;
    int64_t now_ms = clock_boot_ms();

    supervise_begin(&run->sup, now_ms);
    run->command.restart_count = run->restarts_before + run->sup.launch_count - 1;
    for (int i = 0; i < run->rank_count; i++) {
        struct rank_process *rank = &run->ranks[i];
        int out_fd;
        int err_fd;

        if (rank_start(rank, &run->command, &out_fd, &err_fd, &err) == MUSTER_OK) {
            output_attach(&run->output, i, out_fd, err_fd);
            guard_add(&run->guard, rank->pid);
            continue;
        }
        output_say(&run->output, "muster run: %s", err.text);
        for (; i < run->rank_count; i++) { /* the rest would fare no better */
            struct supervise_exit exit = {.rank = run->ranks[i].rank, .code = CODE_NO_PROCESS};

            supervise_exited(&run->sup, &exit, now_ms);
        }
    }
}

/* Reads what came; forwards what is to be. True: a child ended. */
static bool signals_read(struct run *run)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int signo = (int)info.ssi_signo;
        int sent = 0;

        child = child || signo == SIGCHLD;
        if (!supervise_signal(&run->sup, signo, clock_boot_ms()))
            continue;
        for (int i = 0; i < run->rank_count; i++) {
            sent += run->ranks[i].pid > 0 && !run->ranks[i].ended;
            rank_signal(&run->ranks[i], signo);
        }
        output_say(&run->output, "muster run: signal %d (%s) forwarded to %d rank%s", signo,
                   strsignal(signo), sent, plural(sent));
    }
    return child;
}

static void exits_read(struct run *run)
{
    for (int i = 0; i < run->rank_count; i++) {
        struct supervise_exit exit;

        if (rank_ended(&run->ranks[i], &exit))
            supervise_exited(&run->sup, &exit, clock_boot_ms());
    }
    orphans_reap(run->ranks, run->rank_count, run->guard.pid, false);
}

static void order_obey(struct run *run)
{
    enum supervise_order order = supervise_due(&run->sup, clock_boot_ms());
    int alive = run->sup.now.alive;

    if (order == SUPERVISE_TERM || order == SUPERVISE_KILL)
        output_say(&run->output, "muster run: sending %s to %d rank%s that still run%s",
                   order == SUPERVISE_TERM ? "SIGTERM" : "SIGKILL", alive, plural(alive),
                   alive == 1 ? "s" : "");
    for (int i = 0; i < run->rank_count; i++) {
        if (order == SUPERVISE_TERM)
            rank_signal(&run->ranks[i], SIGTERM);
        else if (order == SUPERVISE_KILL && !run->ranks[i].ended)
            rank_kill_group(&run->ranks[i]);
    }
}

static nfds_t polls_fill(struct run *run)
{
    nfds_t count = 0;

    run->streams[count] = NULL;
    run->polls[count++] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
    for (int i = 0; i < 2; i++) {
        if (run->output.sinks[i].length == 0)
            continue;
        run->streams[count] = NULL;
        run->polls[count++] = (struct pollfd){.fd = run->output.sinks[i].fd, .events = POLLOUT};
    }
    for (int i = 0; i < run->rank_count; i++) {
        struct output_rank *rank = &run->output.ranks[i];
        struct output_stream *streams[2] = {&rank->out, &rank->err};

        for (int s = 0; s < 2; s++) {
            if (!output_wants(streams[s]))
                continue;
            run->streams[count] = streams[s];
            run->owners[count] = i;
            run->polls[count++] = (struct pollfd){.fd = streams[s]->fd, .events = POLLIN};
        }
    }
    return count;
}

static void launch_watch(struct run *run)
{
    while (run->sup.now.alive > 0 && !run->sup.now.abandoned) {
        int64_t wait_ms = supervise_wait_ms(&run->sup, clock_boot_ms());
        nfds_t count = polls_fill(run);

        poll(run->polls, count, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
        if (signals_read(run))
            exits_read(run);
        order_obey(run);
        for (nfds_t i = 0; i < count; i++) {
            if (run->streams[i] != NULL && run->polls[i].revents != 0)
                output_read(&run->output, &run->output.ranks[run->owners[i]], run->streams[i]);
        }
        output_write(&run->output.sinks[0]);
        output_write(&run->output.sinks[1]);
    }
}

/* Nothing that the launch started may live on: the next one needs its memory, files and devices. */
static void launch_clean(struct run *run)
{
    int64_t end_ms = clock_boot_ms() + SWEEP_LIMIT_MS;

    for (int i = 0; i < run->rank_count; i++)
        rank_kill_group(&run->ranks[i]);
    /* Orphans are ours now; the children of a killed one come to us in their turn. */
    while (orphans_reap(run->ranks, run->rank_count, run->guard.pid, true) > 0 &&
           clock_boot_ms() < end_ms)
        poll(NULL, 0, SWEEP_NAP_MS);
    output_drain(&run->output, DRAIN_LIMIT_MS);
    for (int i = 0; i < run->rank_count; i++) {
        if (run->ranks[i].pid > 0)
            guard_remove(&run->guard, run->ranks[i].pid);
        rank_reap(&run->ranks[i]);
    }
}

/* ---- between launches, and the end ---- */

/* False: told to end meanwhile. */
static bool restart_wait(struct run *run, int64_t delay_ms)
{
    int64_t end_ms = clock_boot_ms() + delay_ms;
    int64_t left_ms = delay_ms;

    do {
        struct pollfd ready = {.fd = run->signal_fd, .events = POLLIN};

        poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (signals_read(run))
            orphans_reap(NULL, 0, run->guard.pid, false);
        output_write(&run->output.sinks[0]);
        output_write(&run->output.sinks[1]);
        left_ms = end_ms - clock_boot_ms();
    } while (left_ms > 0 && run->sup.told_signo == 0);
    return run->sup.told_signo == 0;
}

static void counts_text(const struct run *run, char *text, size_t size)
{
    const struct supervise *sup = &run->sup;

    snprintf(text, size, "%d launch%s, %d preemption%s, %d failure%s", sup->launch_count,
             sup->launch_count == 1 ? "" : "es", sup->preemption_count,
             plural(sup->preemption_count), sup->failure_count, plural(sup->failure_count));
}

static void error_lines(struct run *run)
{
    const struct supervise_exit *cause = &run->sup.now.cause;
    int index = cause->rank - run->ranks[0].rank;
    const char *line = output_tail(&run->output, index, 0);

    if (line == NULL) {
        output_say(&run->output, "| rank %d wrote nothing to its stderr", cause->rank);
        return;
    }
    output_say(&run->output, "| the last lines of rank %d's stderr:", cause->rank);
    for (int i = 0; (line = output_tail(&run->output, index, i)) != NULL; i++)
        output_say(&run->output, "|   %s", line);
}

/* One box, at the very end, with what happened first: the rest are consequences. */
static void error_box(struct run *run, const char *why, int exit_code)
{
    enum supervise_kind kind = run->sup.now.cause_kind;
    char counts[96];

    counts_text(run, counts, sizeof counts);
    output_say(&run->output, "+---- muster run: job %s stopped ----", run->job);
    output_say(&run->output, "| first error: %s", why);
    if (kind == SUPERVISE_UNSTARTED)
        output_say(&run->output, "| %s: %s", run->command.argv[0],
                   run->sup.now.cause.code == 127 ? "no such program" : "it cannot be executed");
    else if (kind != SUPERVISE_NONE && kind != SUPERVISE_RESTART)
        error_lines(run);
    output_say(&run->output, "| %s; exit code %d", counts, exit_code);
    output_say(&run->output, "+----");
}

static int end_say(struct run *run, const struct supervise_verdict *verdict, const char *why)
{
    enum supervise_kind kind = run->sup.now.cause_kind;
    char counts[96];

    counts_text(run, counts, sizeof counts);
    if (verdict->reason == SUPERVISE_BY_FINISH)
        output_say(&run->output, "muster run: job %s finished (%s)", run->job, counts);
    else if (verdict->reason == SUPERVISE_BY_SIGNAL &&
             (kind == SUPERVISE_RESTART || run->sup.now.cause.signo == run->sup.told_signo))
        output_say(&run->output, "muster run: job %s ended (%s; %s), exit code %d", run->job, why,
                   counts, verdict->exit_code);
    else
        error_box(run, why, verdict->exit_code);
    return verdict->exit_code;
}

static struct supervise_verdict launch_judge(struct run *run)
{
    int64_t step;
    /* Asked only where a restart hangs on it: a job that finished needs no broker. */
    bool known = run->sup.now.cause_kind != SUPERVISE_NONE && run->sup.told_signo == 0 &&
                 tool_latest_step(run->command.broker, run->job, &step) == 0;

    return supervise_end(&run->sup, known ? &step : NULL, clock_boot_ms());
}

static int run_loop(struct run *run)
{
    struct supervise_verdict verdict;
    char why[384];

    output_say(&run->output, "muster run: launch 1: starting %d rank%s of job %s", run->rank_count,
               plural(run->rank_count), run->job);
    for (;;) {
        launch_start(run);
        launch_watch(run);
        launch_clean(run);
        verdict = launch_judge(run);
        supervise_describe(&run->sup, &verdict, why, sizeof why);
        if (!verdict.restart)
            return end_say(run, &verdict, why);
        if (verdict.delay_ms > 0)
            output_say(&run->output, "muster run: launch %d begins in %.1f s",
                       run->sup.launch_count + 1, (double)verdict.delay_ms / 1000.0);
        if (!restart_wait(run, verdict.delay_ms)) {
            output_say(&run->output, "muster run: told to end before launch %d, exit code %d",
                       run->sup.launch_count + 1, run->command.restart_code);
            return run->command.restart_code;
        }
        output_say(&run->output, "muster run: launch %d: restarting %d rank%s (%s)",
                   run->sup.launch_count + 1, run->rank_count, plural(run->rank_count), why);
    }
}

int cmd_run(int argc, char **argv)
{
    struct run run = {.signal_fd = -1};
    struct run_options options;
    int code;

    if (!options_read(&options, argc, argv, &code))
        return code;
    code = TOOL_USAGE;
    if (identity_take(&run, &options) && run_open(&run, &options))
        code = run_loop(&run);
    run_close(&run);
    return code;
}
