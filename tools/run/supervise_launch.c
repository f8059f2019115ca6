/* supervise_launch - one launch of `muster run`: its ranks started, watched, their output and
 * signals passed on, and whatever they left behind ended. See supervise_launch.h. */
#include "tools/run/supervise_launch.h"

#include "node/clock.h"
#include "tools/run/supervise_tell.h"

#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_NO_PROCESS 71 /* EX_OSERR: the system would not start the rank */
#define WAIT_SAY_MS 5000   /* ranks that still run so long after SIGTERM are named */
#define SWEEP_LIMIT_MS 2000
#define SWEEP_NAP_MS 5
#define DRAIN_LIMIT_MS 1000

const char *run_plural(int count)
{
    return count == 1 ? "" : "s";
}

struct run_whom run_whom(const struct run *run, int count)
{
    struct run_whom whom = {"the launcher"};

    if (!run->launcher.given)
        snprintf(whom.text, sizeof whom.text, "%d rank%s", count, run_plural(count));
    return whom;
}

static void launch_start(struct run *run)
{
    struct muster_error err;
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME);

    supervise_begin(&run->sup, now_ms);
    run->command.restart_count =
        run->launcher.given ? -1 : run->restarts_before + run->sup.launch_count - 1;
    if (run->hosts.pid == 0)
        run->command.master_port =
            run->rank_count == run->command.world_size ? rank_free_port(INADDR_LOOPBACK) : 0;
    else
        run->command.restart_count = (int)run->place.launch - 1;
    run->host_gone = false;
    if (run->launcher.given)
        launcher_begin(&run->launcher);
    for (int i = 0; i < run->rank_count; i++) {
        struct rank_process *rank = &run->ranks[i];
        int out_fd;
        int err_fd;

        run->ends[i] = (struct rank_end){.ended = false};
        files_forget(&run->files, rank->rank);
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
bool run_signals_read(struct run *run)
{
    struct signalfd_siginfo info;
    bool child = false;

    while (read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int signo = (int)info.ssi_signo;
        int sent = 0;

        child = child || signo == SIGCHLD;
        if (!supervise_signal(&run->sup, signo, clock_ms(CLOCK_BOOTTIME)))
            continue;
        for (int i = 0; i < run->rank_count; i++) {
            sent += run->ranks[i].pid > 0 && (!run->ranks[i].ended || run->ranks[i].heirs_left > 0);
            rank_signal(&run->ranks[i], signo);
        }
        output_note(&run->output, "muster run: signal %d (%s) %s%s", signo, strsignal(signo),
                    sent > 0 ? "forwarded to " : "came while no rank ran",
                    sent > 0 ? run_whom(run, sent).text : "");
        if (signo == SIGTERM && sent > 0)
            run->wait_say_boot_ms = clock_ms(CLOCK_BOOTTIME) + WAIT_SAY_MS;
    }
    return child;
}

/* A rank ended without leaving the job: tells the broker, so that the other ranks need not wait
 * until the broker notices the silence. */
static void launch_deaths_tell(struct run *run)
{
    for (int i = 0; i < run->rank_count; i++) {
        struct files_life life;

        if (!run->ends[i].ended || run->ends[i].told ||
            !files_life_ended(&run->files, run->ranks[i].rank, &life))
            continue;
        run->ends[i].told = true;
        run->tellers[i] = tell_gone(&life, &run->ends[i].exit);
    }
}

static void launch_tellers_await(struct run *run)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + TELL_LIMIT_MS;

    for (int i = 0; i < run->rank_count; i++) {
        while (run->tellers[i] > 0 && waitpid(run->tellers[i], NULL, WNOHANG) == 0 &&
               clock_ms(CLOCK_BOOTTIME) < end_ms)
            poll(NULL, 0, SWEEP_NAP_MS);
        run->tellers[i] = 0;
    }
}

/* If a shell is told to end, its program stays. It has not got the signal, and has to save */
static void launch_heirs_tell(struct run *run, struct rank_process *rank,
                              const struct supervise_exit *exit)
{
    int signo = supervise_inherited(&run->sup, exit);
    int count = signo != 0 ? rank_heirs_find(rank, exit) : 0;

    if (count == 0)
        return;
    /* A process that the signal did not end had its say: what it leaves is more likely a helper. */
    rank->heirs_until_boot_ms =
        exit->signo != 0 ? INT64_MAX : clock_ms(CLOCK_BOOTTIME) + run->sup.policy.grace_ms;
    rank_signal(rank, signo);
    output_say(&run->output,
               "muster run: %s's process ended and left %d of its own running; signal %d (%s) "
               "forwarded to %s",
               supervise_name(rank->rank).text, count, signo, strsignal(signo),
               count == 1 ? "it" : "them");
}

/* Milliseconds until heirs are to be killed, at most wait_ms (-1: for ever). */
static int64_t launch_heirs_wait_ms(const struct run *run, int64_t wait_ms)
{
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME);

    for (int i = 0; i < run->rank_count; i++) {
        const struct rank_process *rank = &run->ranks[i];
        int64_t left_ms = rank->heirs_until_boot_ms - now_ms;

        if (rank->heirs_left > 0 && (wait_ms < 0 || left_ms < wait_ms))
            wait_ms = left_ms > 0 ? left_ms : 0;
    }
    return wait_ms;
}

static void launch_heirs_end(struct run *run)
{
    for (int i = 0; i < run->rank_count; i++) {
        struct rank_process *rank = &run->ranks[i];

        if (rank->heirs_left == 0 || clock_ms(CLOCK_BOOTTIME) < rank->heirs_until_boot_ms)
            continue;
        rank->heirs_until_boot_ms = INT64_MAX; /* once */
        output_say(&run->output, "muster run: sending SIGKILL to what %s left running",
                   supervise_name(rank->rank).text);
        rank_kill_group(rank);
    }
}

/* " 1 3 8", and " ..." after as many as fit. */
static void launch_ranks_left(const struct run *run, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < run->rank_count; i++) {
        char rank[16];

        if (run->ranks[i].pid <= 0 || run->ranks[i].ended)
            continue;
        snprintf(rank, sizeof rank, " %d", run->ranks[i].rank);
        if (used + strlen(rank) + sizeof " ..." > size) {
            snprintf(text + used, size - used, " ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", rank);
    }
}

/* The launch is over, and nobody waits for ranks that have not begun a step. Only ranks with a node
 * tell whether they have. */
static void launch_unstarted_end(struct run *run)
{
    const struct supervise_launch *now = &run->sup.now;
    char ranks[128], why[128];

    if (now->cause_kind != SUPERVISE_RESTART || now->alive == 0 || now->term_sent ||
        now->kill_sent || run->unstarted_said ||
        !files_left_read(&run->files, now->cause.rank, why, sizeof why))
        return;
    for (int i = 0; i < run->rank_count; i++)
        if (!run->ends[i].ended && !files_not_started(&run->files, run->ranks[i].rank))
            return;
    run->unstarted_said = true;
    launch_ranks_left(run, ranks, sizeof ranks);
    output_note(&run->output,
                "muster run: rank %d left with the restart code; ranks%s have not begun a step and "
                "end with their launch",
                now->cause.rank, ranks);
    supervise_none_started(&run->sup, clock_ms(CLOCK_BOOTTIME));
}

/* A signal that asks a process to end, and comes when it has finished on record, has changed
 * nothing. */
static void launch_finished_believe(struct run *run, const struct rank_process *rank,
                                    struct supervise_exit *exit)
{
    if ((exit->signo != SIGTERM && exit->signo != SIGINT && exit->signo != SIGHUP) ||
        !files_finished(&run->files, rank->rank))
        return;
    output_say(&run->output, "muster run: rank %d had finished when signal %d (%s) ended it",
               rank->rank, exit->signo, strsignal(exit->signo));
    exit->signo = exit->code = 0;
}

/* A launcher's own exit code tells little: torchrun exits with 1 after a preemption. */
static void launch_launcher_believe(struct run *run, struct supervise_exit *exit)
{
    launcher_ended(&run->launcher, run->sup.told_signo, exit);
    if (!run->launcher.answered && !exit->unstarted && (exit->code != 0 || exit->signo != 0))
        output_say(&run->output,
                   "muster run: no broker answers, so whether job %s was preempted is not known: "
                   "the launcher's exit code alone counts",
                   run->job);
}

int run_orphans_reap(const struct run *run, bool kill_too)
{
    const pid_t keep[2] = {run->guard.pid, run->hosts.pid};

    return orphans_reap(run->ranks, run->rank_count, keep, kill_too);
}

static void launch_exits_read(struct run *run)
{
    for (int i = 0; i < run->rank_count; i++) {
        struct rank_process *rank = &run->ranks[i];
        struct rank_end *end = &run->ends[i];

        if (rank_ended(rank, &end->exit))
            launch_heirs_tell(run, rank, &end->exit);
        else if (rank->heirs_left == 0)
            continue;
        if (rank_heirs_look(rank, run->command.restart_code, &end->exit) > 0)
            continue;
        if (run->launcher.given)
            launch_launcher_believe(run, &end->exit);
        else
            launch_finished_believe(run, rank, &end->exit);
        if (run->host_gone && !files_finished(&run->files, rank->rank))
            end->exit.preempted = true; /* also with code 0, as many programs exit at SIGTERM */
        end->ended = true;
        end->unix_ms = clock_ms(CLOCK_REALTIME);
        supervise_exited(&run->sup, &end->exit, clock_ms(CLOCK_BOOTTIME));
    }
    launch_deaths_tell(run);
    launch_unstarted_end(run);
    run_orphans_reap(run, false);
}

/* A host of this launch is gone. If ranks took steps, the broker ends the launch. If none did, the
 * ranks here are ended at once, because the others would only give up later. */
static void launch_hosts_look(struct run *run)
{
    struct hosts_message message;

    if (run->hosts.fd < 0 || hosts_read(&run->hosts, &message) != HOSTS_GONE)
        return;
    for (int i = 0; i < run->rank_count; i++)
        if (!run->ends[i].ended && !files_not_started(&run->files, run->ranks[i].rank))
            return;
    run->host_gone = true;
    output_say(&run->output, "muster run: %s before a step was begun: launch %lld ends",
               message.text, (long long)run->place.launch);
    for (int i = 0; i < run->rank_count; i++)
        rank_signal(&run->ranks[i], SIGTERM);
}

static void launch_order_obey(struct run *run)
{
    enum supervise_order order = supervise_due(&run->sup, clock_ms(CLOCK_BOOTTIME));
    int alive = run->sup.now.alive;

    bool as_told = order == SUPERVISE_TERM && run->unstarted_said; /* see launch_unstarted_end */

    if ((order == SUPERVISE_TERM || order == SUPERVISE_KILL) && !as_told)
        output_say(&run->output, "muster run: sending %s to %s that still run%s",
                   order == SUPERVISE_TERM ? "SIGTERM" : "SIGKILL", run_whom(run, alive).text,
                   alive == 1 ? "s" : "");
    for (int i = 0; i < run->rank_count; i++) {
        if (order == SUPERVISE_TERM)
            rank_signal(&run->ranks[i], SIGTERM);
        else if (order == SUPERVISE_KILL && (!run->ranks[i].ended || run->ranks[i].heirs_left > 0))
            rank_kill_group(&run->ranks[i]);
    }
}

static nfds_t launch_polls_fill(struct run *run)
{
    nfds_t count = 0;

    run->streams[count] = NULL;
    run->polls[count++] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
    run->streams[count] = NULL;
    run->polls[count++] = (struct pollfd){.fd = run->hosts.fd, .events = POLLIN}; /* -1: nothing */
    run->streams[count] = NULL;
    run->polls[count++] = (struct pollfd){.fd = run->saves.fd, .events = POLLIN};
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

/* A rank that should leave and does not is mostly in a long step, or its broker is away. */
static void launch_wait_say(struct run *run)
{
    char ranks[128];

    if (run->wait_say_boot_ms == 0 || clock_ms(CLOCK_BOOTTIME) < run->wait_say_boot_ms)
        return;
    run->wait_say_boot_ms = 0; /* once */
    run->stuck_said = true;
    if (run->launcher.given) {
        output_say(&run->output,
                   "muster run: %d s after SIGTERM the launcher still runs; `muster nodes --job "
                   "%s` shows what its ranks do, if a broker runs",
                   WAIT_SAY_MS / 1000, run->job);
        return;
    }
    launch_ranks_left(run, ranks, sizeof ranks);
    output_say(
        &run->output,
        "muster run: %d s after SIGTERM these ranks still run:%s. One that waits for a save "
        "leaves "
        "once it is committed or given up; one that starts or is in a step leaves when that ends, "
        "or is ended --leave-ms after the first left; `muster nodes --job %s` shows which, if a "
        "broker runs. If none "
        "answers, they leave 1 s before their time is over, which is 30 s after the signal unless "
        "they know better",
        WAIT_SAY_MS / 1000, ranks, run->job);
}

/* When to say that some do not follow those that left; INT64_MAX = not. */
static int64_t launch_stuck_boot_ms(const struct run *run)
{
    const struct supervise_launch *now = &run->sup.now;
    int64_t leave_ms = run->sup.policy.leave_ms;

    if (run->stuck_said || now->term_sent || now->alive == 0 ||
        now->cause_kind != SUPERVISE_RESTART || now->deadline_ms == INT64_MAX)
        return INT64_MAX;
    return now->deadline_ms - leave_ms + (leave_ms / 2 < WAIT_SAY_MS ? leave_ms / 2 : WAIT_SAY_MS);
}

static void launch_stuck_say(struct run *run)
{
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME);
    char ranks[128];

    if (now_ms < launch_stuck_boot_ms(run))
        return;
    run->stuck_said = true;
    launch_ranks_left(run, ranks, sizeof ranks);
    output_say(&run->output,
               "muster run: rank %d left with the restart code, these ranks still run:%s. One "
               "that starts or is in a step leaves when that ends; muster run ends what still runs "
               "in %.1f s (--leave-ms)",
               run->sup.now.cause.rank, ranks, (double)(run->sup.now.deadline_ms - now_ms) / 1000);
}

/* It does not sleep while there is something to say. */
static int64_t launch_wait_say_ms(const struct run *run, int64_t wait_ms)
{
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME), next_ms = launch_stuck_boot_ms(run);

    if (run->wait_say_boot_ms != 0 && run->wait_say_boot_ms < next_ms)
        next_ms = run->wait_say_boot_ms;
    if (next_ms == INT64_MAX || (wait_ms >= 0 && wait_ms < next_ms - now_ms))
        return wait_ms;
    return next_ms > now_ms ? next_ms - now_ms : 0;
}

/* Only one of the `muster run`s of this job prints its saves. */
static bool launch_saves_are_ours(const struct run *run)
{
    if (run->output.quiet)
        return false;
    return run->launcher.given ? run->command.node_rank <= 0 : run->ranks[0].rank == 0;
}

static void launch_saves_look(struct run *run)
{
    struct save_watch *saves = &run->saves;
    const int width = output_bar_width(&run->output);
    char text[320];

    if (!save_watch_read(saves))
        return;
    if (saves->news.writes && save_watch_due(saves, width > 0)) {
        if (width > 0)
            save_watch_bar(&saves->news, text, sizeof text, width);
        else
            save_watch_text(&saves->news, text, sizeof text);
        if (width > 0)
            output_bar(&run->output, text);
        else
            output_note(&run->output, "muster run: %s", text);
    }
    if (saves->news.writes || !saves->told)
        return;
    output_bar(&run->output, NULL);
    output_note(&run->output, "muster run: save at step %lld: %s after %.1f s",
                (long long)saves->news.step, saves->news.state,
                (double)saves->news.passed_ms / 1000);
    saves->told = false;
}

static void launch_watch(struct run *run)
{
    while (run->sup.now.alive > 0 && !run->sup.now.abandoned) {
        int64_t wait_ms = launch_wait_say_ms(
            run, launch_heirs_wait_ms(run, supervise_wait_ms(&run->sup, clock_ms(CLOCK_BOOTTIME))));
        nfds_t count = launch_polls_fill(run);

        poll(run->polls, count, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
        if (run_signals_read(run))
            launch_exits_read(run);
        launch_hosts_look(run);
        launch_saves_look(run);
        launch_order_obey(run);
        launch_heirs_end(run);
        launch_wait_say(run);
        launch_stuck_say(run);
        for (nfds_t i = 0; i < count; i++) {
            if (run->streams[i] != NULL && run->polls[i].revents != 0)
                output_read(&run->output, &run->output.ranks[run->owners[i]], run->streams[i]);
        }
        output_write(&run->output.sinks[0]);
        output_write(&run->output.sinks[1]);
    }
    run->wait_say_boot_ms = 0;
    run->stuck_said = run->unstarted_said = false;
}

/* Nothing that the launch started may live on: the next one needs its memory, files and devices. */
static void launch_clean(struct run *run)
{
    int64_t end_ms;

    launch_tellers_await(run);
    end_ms = clock_ms(CLOCK_BOOTTIME) + SWEEP_LIMIT_MS;
    for (int i = 0; i < run->rank_count; i++)
        rank_kill_group(&run->ranks[i]);
    /* Orphans are ours now; the children of a killed one come to us in their turn. */
    while (run_orphans_reap(run, true) > 0 && clock_ms(CLOCK_BOOTTIME) < end_ms)
        poll(NULL, 0, SWEEP_NAP_MS);
    launch_deaths_tell(
        run); /* nodes that were no longer the rank's own process, but something it started */
    launch_tellers_await(run);
    output_drain(&run->output, DRAIN_LIMIT_MS);
    for (int i = 0; i < run->rank_count; i++) {
        if (run->ranks[i].pid > 0)
            guard_remove(&run->guard, run->ranks[i].pid);
        rank_reap(&run->ranks[i]);
    }
}

void run_launch(struct run *run)
{
    if (launch_saves_are_ours(run)) /* before there are pipes that it would hold */
        save_watch_start(&run->saves, run->command.broker, run->job);
    launch_start(run);
    launch_watch(run);
    output_bar(&run->output, NULL);
    save_watch_stop(&run->saves);
    launch_clean(run);
}
