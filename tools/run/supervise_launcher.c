/* supervise_launcher - the job of a launcher's ranks, as the broker knows it; see the header. */
#include "tools/run/supervise_launcher.h"

#include "node/clock.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

#define RECORD_LIMIT_MS 10000 /* ranks that died in silence are lost by then */
#define RECORD_NAP_MS 100

static bool launcher_ask(struct launcher *launcher)
{
    launcher->answered = tool_job_end(launcher->broker, launcher->job, &launcher->last);
    return launcher->answered;
}

void launcher_begin(struct launcher *launcher)
{
    const struct tool_end *last = &launcher->last;

    launcher->since_unix_ms = clock_ms(CLOCK_REALTIME);
    if (!launcher_ask(launcher))
        return;
    launcher->since_unix_ms = 0;
    if (last->generation - !last->ended > launcher->before)
        launcher->before = last->generation - !last->ended;
}

/* Has a rank of this launch joined the job? */
static bool launcher_joined(const struct launcher *launcher)
{
    return launcher->answered && launcher->last.generation > launcher->before &&
           launcher->last.opened_unix_ms >= launcher->since_unix_ms;
}

/* After a signal, launchers die of it or exit with 1, whatever their ranks do. */
static bool launcher_was_told(int told_signo, const struct supervise_exit *exit)
{
    return told_signo != 0 || exit->signo == SIGTERM || exit->signo == SIGINT ||
           exit->signo == SIGHUP;
}

void launcher_ended(struct launcher *launcher, int told_signo, struct supervise_exit *exit)
{
    const struct tool_end *last = &launcher->last;
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + RECORD_LIMIT_MS;

    if (exit->unstarted)
        return;
    while (launcher_ask(launcher) && launcher_joined(launcher) && !last->ended &&
           !last->preempted && clock_ms(CLOCK_BOOTTIME) < end_ms)
        poll(NULL, 0, RECORD_NAP_MS);
    if (!launcher_joined(launcher)) {
        exit->preempted = launcher->answered && told_signo == SIGTERM && exit->code != 0;
        return; /* told while it started: nothing has begun */
    }
    exit->preempted = last->preempted;
    if (last->finished && launcher_was_told(told_signo, exit))
        exit->code = exit->signo = 0;
}

bool launcher_error(const struct launcher *launcher, struct files_error *ret_error)
{
    const struct tool_end *last = &launcher->last;

    if (!launcher_joined(launcher) || last->preempted || last->status == MUSTER_OK)
        return false;
    *ret_error = (struct files_error){.rank = last->error_rank,
                                      .error_rank = last->error_rank,
                                      .code = last->error_code,
                                      .step = -1,
                                      .unix_ms = last->ended_unix_ms};
    if (last->status != MUSTER_E_PEER) /* what the others ended with, not that rank */
        snprintf(ret_error->status, sizeof ret_error->status, "%s",
                 muster_status_name(last->status));
    snprintf(ret_error->host, sizeof ret_error->host, "%s", last->host);
    snprintf(ret_error->text, sizeof ret_error->text, "%s", last->text);
    return true;
}
