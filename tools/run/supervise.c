/* supervise - what `muster run` decides; see supervise.h. */
#include "tools/run/supervise.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define INTERRUPT_AGAIN_MS 500 /* two SIGINT closer than this are one, from two senders */
#define KILL_BOUND_MS 10000    /* from SIGKILL to giving up on a process stuck in the kernel */

void supervise_defaults(struct supervise_policy *policy, int rank_count)
{
    *policy = (struct supervise_policy){
        .rank_count = rank_count,
        .restart_code = 42,
        .max_failures = 3,
        .max_preemptions = SUPERVISE_UNBOUNDED,
        .max_stalls = 3,
        .grace_ms = 10000,
        .leave_ms = 120000, /* twice the time in which the library ends a stuck process itself */
        .stop_ms = 600000,
        .backoff_ms = 1000,
        .backoff_max_ms = 30000,
        .progress_ms = 60000,
    };
}

void supervise_init(struct supervise *sup, const struct supervise_policy *policy, uint64_t seed)
{
    memset(sup, 0, sizeof *sup);
    sup->policy = *policy;
    sup->random = seed;
    sup->now.deadline_ms = INT64_MAX;
}

void supervise_begin(struct supervise *sup, int64_t now_ms)
{
    sup->launch_count++;
    sup->now = (struct supervise_launch){
        .started_ms = now_ms,
        .alive = sup->policy.rank_count,
        .deadline_ms = INT64_MAX,
    };
}

static enum supervise_kind supervise_kind_of(const struct supervise *sup,
                                             const struct supervise_exit *exit)
{
    if (exit->unstarted)
        return SUPERVISE_UNSTARTED;
    if (exit->preempted)
        return SUPERVISE_RESTART;
    if (exit->signo != 0)
        return 128 + exit->signo == sup->policy.restart_code ? SUPERVISE_RESTART
                                                             : SUPERVISE_SIGNALLED;
    if (exit->code == 0)
        return SUPERVISE_FINISHED;
    if (exit->code == sup->policy.restart_code)
        return SUPERVISE_RESTART;
    return exit->code == SUPERVISE_CODE_NO_RESTART ? SUPERVISE_NO_RESTART : SUPERVISE_FAILED;
}

static void supervise_deadline_at_most(struct supervise_launch *now, int64_t at_ms)
{
    if (now->deadline_ms > at_ms)
        now->deadline_ms = at_ms;
}

void supervise_none_started(struct supervise *sup, int64_t now_ms)
{
    struct supervise_launch *now = &sup->now;

    if (now->cause_kind == SUPERVISE_RESTART && !now->term_sent && !now->kill_sent)
        supervise_deadline_at_most(now,
                                   sup->told_signo != 0 ? now_ms + sup->policy.grace_ms : now_ms);
}

static bool supervise_is_failure(enum supervise_kind kind)
{
    return kind == SUPERVISE_FAILED || kind == SUPERVISE_SIGNALLED;
}

void supervise_exited(struct supervise *sup, const struct supervise_exit *exit, int64_t now_ms)
{
    struct supervise_launch *now = &sup->now;
    enum supervise_kind kind = supervise_kind_of(sup, exit);
    int64_t wait_ms;

    now->alive--;
    now->exits[kind]++;
    if (kind == SUPERVISE_FINISHED ||
        (now->cause_kind != SUPERVISE_NONE && !supervise_is_failure(kind)))
        return;
    if (now->cause_kind == SUPERVISE_NONE) {
        now->cause_kind = kind;
        now->cause = *exit;
        now->cause_before_told = sup->told_signo == 0;
    }
    if (now->term_sent || now->kill_sent)
        return; /* its deadlines are running already */
    /* Told to end, the others may be in the middle of their save: a rank that died of the same
     * signal must not cost them the checkpoint. */
    wait_ms = kind == SUPERVISE_RESTART || sup->told_signo != 0 ? sup->policy.leave_ms
                                                                : sup->policy.grace_ms;
    if (kind == SUPERVISE_UNSTARTED)
        wait_ms = 0;
    supervise_deadline_at_most(now, now_ms + wait_ms);
}

static bool supervise_can_be_blamed(enum supervise_kind kind)
{
    return supervise_is_failure(kind) || kind == SUPERVISE_NO_RESTART;
}

void supervise_blame(struct supervise *sup, const struct supervise_exit *exit)
{
    enum supervise_kind kind = supervise_kind_of(sup, exit);

    if (!supervise_can_be_blamed(kind) || !supervise_can_be_blamed(sup->now.cause_kind))
        return;
    sup->now.cause_kind = kind;
    sup->now.cause = *exit;
}

void supervise_incurable(struct supervise *sup, const char *status)
{
    if (supervise_can_be_blamed(sup->now.cause_kind))
        sup->now.incurable = status;
}

static uint64_t supervise_bit_of(int signo)
{
    return UINT64_C(1) << signo;
}

static bool supervise_told_to_end(struct supervise *sup, int signo, int64_t now_ms)
{
    uint64_t bit = supervise_bit_of(signo);

    if ((sup->told_mask & bit) != 0) {
        if (signo == SIGINT && now_ms - sup->interrupt_ms >= INTERRUPT_AGAIN_MS)
            sup->kill_now = true;
        return false;
    }
    sup->told_mask |= bit;
    if (signo == SIGINT)
        sup->interrupt_ms = now_ms;
    if (sup->told_signo != 0)
        return true;
    sup->told_signo = signo;
    if (sup->policy.stop_ms > 0 && sup->now.deadline_ms - now_ms > sup->policy.stop_ms)
        sup->now.deadline_ms = now_ms + sup->policy.stop_ms;
    /* The next order is SIGKILL now: this signal must not come a moment before it. */
    if (sup->now.cause_kind != SUPERVISE_NONE && !sup->now.kill_sent &&
        sup->now.deadline_ms - now_ms < sup->policy.grace_ms)
        sup->now.deadline_ms = now_ms + sup->policy.grace_ms;
    return true;
}

bool supervise_signal(struct supervise *sup, int signo, int64_t now_ms)
{
    switch (signo) {
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
        return supervise_told_to_end(sup, signo, now_ms);
    case SIGUSR1:
    case SIGUSR2:
        sup->hint_signo = signo;
        sup->hint_ms = now_ms;
        return true;
    default:
        return false;
    }
}

int supervise_inherited(const struct supervise *sup, const struct supervise_exit *exit)
{
    bool hinted_now = sup->hint_signo != 0 && sup->hint_ms >= sup->now.started_ms;

    if (sup->kill_now || sup->now.kill_sent || exit->unstarted || exit->signo == SIGKILL)
        return 0;
    if (exit->signo == 0 && (exit->code == 0 || exit->code == sup->policy.restart_code ||
                             exit->code == SUPERVISE_CODE_NO_RESTART))
        return 0;
    if (exit->signo != 0 && ((sup->told_mask & supervise_bit_of(exit->signo)) != 0 ||
                             (hinted_now && exit->signo == sup->hint_signo)))
        return exit->signo;
    if (sup->told_signo != 0)
        return sup->told_signo;
    return sup->now.term_sent ? SIGTERM : 0;
}

enum supervise_order supervise_due(struct supervise *sup, int64_t now_ms)
{
    struct supervise_launch *now = &sup->now;

    if (now->alive <= 0 || now->abandoned)
        return SUPERVISE_WAIT;
    if (sup->kill_now && !now->kill_sent)
        now->deadline_ms = now_ms;
    if (now_ms < now->deadline_ms)
        return SUPERVISE_WAIT;
    if (now->kill_sent) {
        now->abandoned = true;
        now->deadline_ms = INT64_MAX;
        return SUPERVISE_ABANDON;
    }
    /* A rank that was told to end has had its SIGTERM: a second one would say nothing new. */
    if (now->term_sent || sup->told_signo != 0 || now->cause_kind == SUPERVISE_UNSTARTED) {
        now->kill_sent = true;
        now->deadline_ms = now_ms + KILL_BOUND_MS;
        return SUPERVISE_KILL;
    }
    now->term_sent = true;
    now->deadline_ms = now_ms + sup->policy.grace_ms;
    return SUPERVISE_TERM;
}

int64_t supervise_wait_ms(const struct supervise *sup, int64_t now_ms)
{
    const struct supervise_launch *now = &sup->now;

    if (now->alive <= 0 || now->abandoned)
        return -1;
    if (sup->kill_now && !now->kill_sent)
        return 0;
    if (now->deadline_ms == INT64_MAX)
        return -1;
    return now->deadline_ms > now_ms ? now->deadline_ms - now_ms : 0;
}

/* ---- the verdict ---- */

static bool supervise_within(int count, int max)
{
    return max < 0 || count <= max;
}

/* Is there a newer checkpoint than at the last verdict? The step may also go down, if an operator
 * chose an older checkpoint. Then what is newer than that counts again. */
static bool supervise_progressed(struct supervise *sup, const int64_t *latest_step, int64_t now_ms)
{
    bool newer;

    if (latest_step == NULL)
        return now_ms - sup->now.started_ms >= sup->policy.progress_ms;
    newer = sup->step_known ? *latest_step > sup->step : *latest_step >= 0;
    sup->step_known = true;
    sup->step = *latest_step;
    return newer;
}

/* splitmix64: one line of state, and the same delays for the same seed. */
static uint64_t supervise_random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Doubling, capped, then 75 to 100 % of it, so that the supervisors of many hosts do not all come
 * back in the same moment. */
static int64_t supervise_backoff_ms(struct supervise *sup, int in_row)
{
    int64_t delay_ms = sup->policy.backoff_ms;

    for (int i = 1; i < in_row && delay_ms < sup->policy.backoff_max_ms; i++)
        delay_ms *= 2;
    if (delay_ms > sup->policy.backoff_max_ms)
        delay_ms = sup->policy.backoff_max_ms;
    if (delay_ms <= 0 || in_row <= 0)
        return 0;
    return delay_ms - (int64_t)(supervise_random_next(&sup->random) % ((uint64_t)delay_ms / 4 + 1));
}

static int supervise_code_of(const struct supervise_exit *exit)
{
    return exit->signo != 0 ? 128 + exit->signo : exit->code;
}

static struct supervise_verdict supervise_stop(enum supervise_reason reason, int exit_code)
{
    return (struct supervise_verdict){.reason = reason, .exit_code = exit_code};
}

/* SIGTERM, SIGINT or SIGHUP came: this machine is going, so nothing is restarted here. */
static struct supervise_verdict supervise_end_told(const struct supervise *sup)
{
    const struct supervise_launch *now = &sup->now;
    bool failed_first = now->cause_before_told && (now->cause_kind == SUPERVISE_FAILED ||
                                                   now->cause_kind == SUPERVISE_SIGNALLED);

    if (now->cause_kind == SUPERVISE_NONE)
        return supervise_stop(SUPERVISE_BY_FINISH, 0);
    /* One rank that asks for the restart is enough. A rank that died of SIGTERM had no handler yet,
     * early in its start, and still counts as preempted. A failure that was going to be restarted
     * anyway asks for it too. */
    if (now->exits[SUPERVISE_RESTART] > 0 ||
        (sup->told_signo == SIGTERM && now->cause.signo == SIGTERM) ||
        (failed_first && supervise_within(sup->failure_count, sup->policy.max_failures)))
        return supervise_stop(SUPERVISE_BY_SIGNAL, sup->policy.restart_code);
    return supervise_stop(SUPERVISE_BY_SIGNAL, supervise_code_of(&now->cause));
}

/* A scheduler's SIGUSR1 came shortly before the restart code: the notice was for this machine. */
static bool supervise_hinted(const struct supervise *sup, int64_t now_ms)
{
    return sup->hint_signo != 0 && sup->hint_ms >= sup->now.started_ms &&
           (sup->policy.stop_ms == 0 || now_ms - sup->hint_ms <= sup->policy.stop_ms);
}

static struct supervise_verdict supervise_end_preempted(struct supervise *sup, int64_t now_ms)
{
    if (supervise_hinted(sup, now_ms))
        return supervise_stop(SUPERVISE_BY_SIGNAL, sup->policy.restart_code);
    if (!supervise_within(sup->preemption_count, sup->policy.max_preemptions))
        return supervise_stop(SUPERVISE_BY_MAX_PREEMPTIONS, sup->policy.restart_code);
    /* A host that is taken away stays so for whoever starts the job here: elsewhere it may go on.
     * With a failure among the idle launches it would fail there too. */
    if (sup->stall_count > sup->policy.max_stalls)
        return supervise_stop(SUPERVISE_BY_STALL,
                              sup->failures_in_row == 0 ? sup->policy.restart_code : 1);
    return (struct supervise_verdict){.reason = SUPERVISE_BY_PREEMPTION,
                                      .restart = true,
                                      .delay_ms = supervise_backoff_ms(sup, sup->idle_in_row)};
}

static struct supervise_verdict supervise_end_failed(struct supervise *sup)
{
    int code = supervise_code_of(&sup->now.cause);

    if (!supervise_within(sup->failure_count, sup->policy.max_failures))
        return supervise_stop(SUPERVISE_BY_MAX_FAILURES, code);
    if (sup->stall_count > sup->policy.max_stalls)
        return supervise_stop(SUPERVISE_BY_STALL, code);
    return (struct supervise_verdict){.reason = SUPERVISE_BY_FAILURE,
                                      .restart = true,
                                      .delay_ms = supervise_backoff_ms(sup, sup->failures_in_row)};
}

struct supervise_verdict supervise_end(struct supervise *sup, const int64_t *latest_step,
                                       int64_t now_ms)
{
    const struct supervise_launch *now = &sup->now;
    bool preempted = now->cause_kind == SUPERVISE_RESTART;

    if (supervise_progressed(sup, latest_step, now_ms)) {
        sup->stall_count = 0;
        sup->failures_in_row = 0;
        sup->idle_in_row = 0;
    } else {
        sup->stall_count++;
        sup->idle_in_row += preempted;
    }
    if (preempted) {
        sup->preemption_count++;
    } else if (now->cause_kind != SUPERVISE_NONE || now->abandoned) {
        sup->failure_count++;
        sup->failures_in_row++;
    }
    if (now->abandoned)
        return supervise_stop(SUPERVISE_BY_UNKILLABLE, 1);
    if (now->exits[SUPERVISE_NO_RESTART] > 0)
        return supervise_stop(SUPERVISE_BY_NO_RESTART, SUPERVISE_CODE_NO_RESTART);
    if (now->exits[SUPERVISE_UNSTARTED] > 0)
        return supervise_stop(SUPERVISE_BY_UNSTARTED, supervise_code_of(&now->cause));
    if (sup->told_signo != 0)
        return supervise_end_told(sup);
    if (now->cause_kind == SUPERVISE_NONE)
        return supervise_stop(SUPERVISE_BY_FINISH, 0);
    if (now->incurable != NULL)
        return supervise_stop(SUPERVISE_BY_INCURABLE, SUPERVISE_CODE_NO_RESTART);
    return preempted ? supervise_end_preempted(sup, now_ms) : supervise_end_failed(sup);
}

/* ---- sentences ---- */

struct supervise_name supervise_name(int rank)
{
    struct supervise_name name;

    if (rank == SUPERVISE_LAUNCHER)
        snprintf(name.text, sizeof name.text, "the launcher");
    else
        snprintf(name.text, sizeof name.text, "rank %d", rank);
    return name;
}

/* "rank 2 exited with code 1", "rank 0 was killed by signal 9 (Killed)". */
static void supervise_describe_exit(const struct supervise_exit *exit, char *text, size_t size)
{
    const struct supervise_name who = supervise_name(exit->rank);

    if (exit->unstarted)
        snprintf(text, size, "%s could not be started", who.text);
    else if (exit->signo == SIGKILL)
        snprintf(text, size, "%s was killed by signal 9 (Killed; often the kernel, out of memory)",
                 who.text);
    else if (exit->signo != 0)
        snprintf(text, size, "%s was killed by signal %d (%s)", who.text, exit->signo,
                 strsignal(exit->signo));
    else
        snprintf(text, size, "%s exited with code %d", who.text, exit->code);
}

static void supervise_describe_preemption(const struct supervise *sup, char *text, size_t size)
{
    int count = sup->now.exits[SUPERVISE_RESTART];
    int ranks = sup->policy.rank_count;
    char exit[128];

    if (sup->now.cause.preempted) {
        supervise_describe_exit(&sup->now.cause, exit, sizeof exit);
        snprintf(text, size, "preempted, %s", exit);
        return;
    }
    if (count == ranks && ranks > 1)
        snprintf(text, size, "preempted, restart code %d from all %d ranks",
                 sup->policy.restart_code, ranks);
    else if (count == ranks)
        snprintf(text, size, "preempted, restart code %d", sup->policy.restart_code);
    else
        snprintf(text, size, "preempted, restart code %d from %d of %d ranks",
                 sup->policy.restart_code, count, ranks);
}

/* The limit that was reached, as a text that follows what happened. */
static void supervise_describe_limit(const struct supervise *sup, enum supervise_reason reason,
                                     char *text, size_t size)
{
    switch (reason) {
    case SUPERVISE_BY_MAX_FAILURES:
        snprintf(text, size, "; %d failure%s, --max-failures is %d", sup->failure_count,
                 sup->failure_count == 1 ? "" : "s", sup->policy.max_failures);
        break;
    case SUPERVISE_BY_MAX_PREEMPTIONS:
        snprintf(text, size, "; %d preemption%s, --max-preemptions is %d", sup->preemption_count,
                 sup->preemption_count == 1 ? "" : "s", sup->policy.max_preemptions);
        break;
    case SUPERVISE_BY_STALL:
        snprintf(text, size, "; %d restarts in a row brought no newer checkpoint",
                 sup->stall_count - 1);
        break;
    case SUPERVISE_BY_SIGNAL:
        snprintf(text, size, "; signal %d (%s) was forwarded to the ranks",
                 sup->told_signo != 0 ? sup->told_signo : sup->hint_signo,
                 strsignal(sup->told_signo != 0 ? sup->told_signo : sup->hint_signo));
        break;
    case SUPERVISE_BY_NO_RESTART:
        snprintf(text, size, "; code %d asks not to be restarted", SUPERVISE_CODE_NO_RESTART);
        break;
    case SUPERVISE_BY_INCURABLE:
        snprintf(text, size, "; with %s the same start would fail again", sup->now.incurable);
        break;
    case SUPERVISE_BY_UNKILLABLE:
        snprintf(text, size, "; %d ranks did not end after SIGKILL and were left behind",
                 sup->now.alive);
        break;
    default:
        snprintf(text, size, "%s", "");
        break;
    }
}

void supervise_describe(const struct supervise *sup, const struct supervise_verdict *verdict,
                        char *text, size_t size)
{
    char what[160];
    char limit[160];
    char exit[128];

    if (sup->now.cause_kind == SUPERVISE_NONE) {
        snprintf(what, sizeof what, "%s", sup->now.abandoned ? "stuck" : "finished");
    } else if (sup->now.cause_kind == SUPERVISE_RESTART) {
        supervise_describe_preemption(sup, what, sizeof what);
    } else {
        supervise_describe_exit(&sup->now.cause, exit, sizeof exit);
        snprintf(what, sizeof what, "failed, %s", exit);
    }
    supervise_describe_limit(sup, verdict->reason, limit, sizeof limit);
    snprintf(text, size, "%s%s", what, limit);
}
