/* node - muster_node_*: checks the arguments, then calls down to node/agent or node/local. Also the
 * exit policy, the only way in which this library ends a process from the training thread. */
#include "client/node/node_private.h"
#include "node/clock.h"

#include "node/notice/signal.h"
#include "schema/error.h"
#include "schema/sized.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define INLINED __attribute__((always_inline))
#define COLD \
    __attribute__((noinline, cold)) /* keeps its stack and its checks out of the hot path */

/* --- refusals --------------------------------------------------------------------------------- */

static enum muster_status node_null(const char *call, struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT, "%s: node is NULL; open one with muster_node_open",
                     call);
}

static enum muster_status node_forked(const char *call, struct muster_error *err)
{
    return error_set(err, MUSTER_E_FORKED, "%s: this process was forked from the node's; %s", call,
                     muster_status_advice(MUSTER_E_FORKED));
}

/* Is this call refused at once? `in_scope`: this call may come inside a scope. */
static bool node_refused(const struct muster_node *node, bool in_scope)
{
    return node == NULL || gate_forked(node->gate) || node->hold_depth > 0 ||
           node->scope_open != in_scope;
}

/* Nothing is to be looked at before a step but the gate. Calls nothing: what a call saves on the
 * stack is written before the gate's locked instruction, which waits for it. */
static inline INLINED bool node_is_plain(const struct muster_node *node)
{
    return node != NULL && gate_asks_nobody(node->gate) && node->hold_depth <= 0 &&
           !node->scope_open;
}

static COLD enum muster_status node_refuse(const struct muster_node *node, const char *call,
                                           struct muster_error *err)
{
    if (node == NULL)
        return node_null(call, err);
    if (gate_forked(node->gate))
        return node_forked(call, err);
    if (node->hold_depth > 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: called between muster_node_hold and release; release first", call);
    if (node->scope_open)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: called inside a scope; call muster_node_scope_leave first", call);
    return error_set(err, MUSTER_E_ARGUMENT, "%s: no scope is open; call muster_node_scope_enter",
                     call);
}

/* --- the exit policy -------------------------------------------------------------------------- */

static bool node_must_leave(struct muster_node *node, enum muster_status status)
{
    struct member_view view;

    if (node->local != NULL) {
        node->told |= status == MUSTER_PREEMPTED;
        return status == MUSTER_PREEMPTED;
    }
    agent_view(node->agent, &view);
    node->told |= view.leave_restart;
    return view.leave_restart;
}

static void node_tell_words_alone(struct muster_node *node)
{
    char words[LOCAL_SAYS_SIZE + 64];

    if (node->local == NULL)
        return;
    local_words(node->local, words);
    supervised_says(&node->supervised, words);
}

/* The termination is settled. Policy RETURN: the status goes to the caller. EXIT: LEAVE, then
 * exit_fn, once; if that returns, as RETURN. */
void node_leave_process(struct muster_node *node)
{
    const struct muster_termination_config *t = &node->options.termination;
    struct member_view view = {.joined = false};

    if (t->on_preempted != MUSTER_PREEMPTED_EXIT || node->exited)
        return;
    node->exited = true;
    if (node->agent != NULL) {
        agent_leave(node->agent, LEAVE_PREEMPTED, t->restart_code);
        agent_view(node->agent, &view);
        if (view.leave_restart) /* the supervisor may have to say why its restarts lead nowhere */
            supervised_says(&node->supervised, view.end.text);
        agent_drain(node->agent);
    }
    node_tell_words_alone(node);
    supervised_leaves(&node->supervised);
    const char *why = node->local != NULL        ? "" /* it has said that */
                      : view.end.text[0] != '\0' ? view.end.text
                                                 : node->supervised.why;
    node_log(node, view.end.code == MUSTER_E_NOT_SAVED && node->rank == 0 ? 1 : 2,
             "rank %d leaves with the restart code %d%s%s", node->rank, t->restart_code,
             why[0] != '\0' ? ": " : "", why);
    if (t->exit_fn != NULL)
        t->exit_fn(t->restart_code, node->options.arg);
    else
        exit(t->restart_code);
}

void node_note_interrupt(struct muster_node *node, enum muster_status status)
{
    if (status != MUSTER_E_INTERRUPTED)
        return;
    node->interrupted = true;
    muster_node_fail(node, 0, "the program was interrupted (Ctrl-C) in a call of muster's");
}

static COLD enum muster_status node_ends_with(struct muster_node *node,
                                              const struct muster_error *why,
                                              enum muster_status status,
                                              struct muster_error *ret_error)
{
    if (ret_error != NULL)
        *ret_error = *why;
    node_note_interrupt(node, status);
    if (node_must_leave(node, status))
        node_leave_process(node);
    else
        node_tell_error(node, why);
    return status;
}

/* --- boundaries ------------------------------------------------------------------------------- */

static COLD enum muster_status node_slow_boundary(struct muster_node *node, bool begin,
                                                  void *call_arg, struct muster_error *err)
{
    struct muster_error why;
    enum muster_status status;

    if (!node->restored)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "nothing was restored yet (option restore_later); call "
                         "muster_node_restore before the first step");
    if (node->agent != NULL)
        status = agent_boundary(node->agent, begin, call_arg, &why);
    else
        status = local_boundary(node->local, begin, call_arg, &why);
    return status == MUSTER_OK ? MUSTER_OK : node_ends_with(node, &why, status, err);
}

static enum muster_status node_boundary(struct muster_node *node, void *call_arg,
                                        struct muster_error *err)
{
    return gate_begin(node->gate) ? MUSTER_OK : node_slow_boundary(node, true, call_arg, err);
}

static COLD enum muster_status node_step_failed(struct muster_node *node, int code,
                                                struct muster_error *err)
{
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status = node->agent != NULL ? agent_step_failed(node->agent, code, &why)
                                                    : local_step_failed(node->local, code, &why);

    if (err != NULL)
        *err = why;
    if (node_must_leave(node, status))
        node_leave_process(node);
    else
        node_tell_error(node, &why);
    return status;
}

/* The step begins, or the status says why it does not. */
static COLD enum muster_status node_run_slowly(struct muster_node *node, muster_step_fn *step_fn,
                                               void *arg, struct muster_error *err)
{
    if (node_refused(node, false))
        return node_refuse(node, "muster_node_run", err);
    if (step_fn == NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "muster_node_run: step_fn is NULL");
    return node_boundary(node, arg, err);
}

enum muster_status muster_node_run(muster_node_t *node, muster_step_fn *step_fn, void *arg,
                                   struct muster_error *ret_error)
{
    enum muster_status status;
    int code;

    if (UNLIKELY(!node_is_plain(node) || step_fn == NULL || !gate_begin(node->gate))) {
        status = node_run_slowly(node, step_fn, arg, ret_error);
        if (status != MUSTER_OK)
            return status;
    }
    code = step_fn(arg);
    if (UNLIKELY(code != 0))
        return node_step_failed(node, code, ret_error);
    gate_finish(node->gate);
    return MUSTER_OK;
}

static void node_count_step(struct muster_node *node)
{
    if (gate_begun(node->gate) > gate_done(node->gate))
        gate_finish(node->gate); /* the boundary before it has begun it */
    else if (node->agent != NULL)
        agent_count_step(node->agent);
    else
        local_count_step(node->local);
}

/* The step that ends here failed: muster_node_fail said so. It is not counted, and no other begins.
 */
static COLD enum muster_status node_after_failure(struct muster_node *node,
                                                  struct muster_error *err)
{
    enum muster_status status = node->agent != NULL ? agent_after_failure(node->agent, err)
                                                    : local_after_failure(node->local, err);

    if (node_must_leave(node, status))
        node_leave_process(node);
    return status;
}

enum muster_status muster_node_save_if_preempted(muster_node_t *node, void *arg,
                                                 struct muster_error *ret_error)
{
    if (UNLIKELY(node_refused(node, false)))
        return node_refuse(node, "muster_node_save_if_preempted", ret_error);
    if (UNLIKELY(!node->restored))
        return node_slow_boundary(node, true, arg, ret_error);
    if (UNLIKELY(atomic_load_explicit(&node->failed, memory_order_relaxed)))
        return node_after_failure(node, ret_error);
    node_count_step(node);
    return node_boundary(node, arg, ret_error);
}

static enum muster_status node_end_step_slowly(struct muster_node *node,
                                               const struct agent_end *end,
                                               struct agent_ended *ret_ended,
                                               struct muster_error *err)
{
    const struct local_end alone = {end->done, end->want, end->ask, end->call_arg};
    enum muster_status status;

    if (atomic_load_explicit(&node->failed, memory_order_relaxed))
        return node_after_failure(node, err);
    if (node->agent != NULL)
        status = agent_end_step(node->agent, end, ret_ended, err);
    else {
        node->save_error[0] = '\0'; /* of the step before */
        status = local_end_step(node->local, &alone, &ret_ended->saves, err);
    }
    if (status == MUSTER_OK)
        return MUSTER_OK;
    node_note_interrupt(node, status);
    if (node_must_leave(node, status))
        node_leave_process(node);
    else if (status != MUSTER_E_SAVE)
        node_tell_error(node, err);
    return status;
}

enum muster_status node_end_step(struct muster_node *node, const struct agent_end *end,
                                 struct agent_ended *ret_ended, struct muster_error *err)
{
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status;

    *ret_ended = (struct agent_ended){.saves = false};
    if (node_refused(node, false))
        return node_refuse(node, "muster_manager_save", err);
    if (!end->want && !gate_is_closed(node->gate) && gate_done(node->gate) + 1 == end->done &&
        gate_begun(node->gate) == end->done &&
        (node->agent == NULL || agent_outcome_step(node->agent) < end->done) &&
        !atomic_load_explicit(&node->failed, memory_order_relaxed)) {
        gate_finish(node->gate);
        if (gate_begin(node->gate))
            return MUSTER_OK;
    }
    status = node_end_step_slowly(node, end, ret_ended, &why);
    if (status != MUSTER_OK && err != NULL)
        *err = why;
    return status;
}

enum muster_status muster_node_scope_enter(muster_node_t *node, struct muster_error *ret_error)
{
    enum muster_status status;

    if (node_refused(node, false))
        return node_refuse(node, "muster_node_scope_enter", ret_error);
    status = node_boundary(node, NULL, ret_error);
    node->scope_open = status == MUSTER_OK;
    return status;
}

enum muster_status muster_node_scope_leave(muster_node_t *node, int code,
                                           struct muster_error *ret_error)
{
    if (node_refused(node, true))
        return node_refuse(node, "muster_node_scope_leave", ret_error);
    node->scope_open = false;
    if (code != 0)
        return node_step_failed(node, code, ret_error);
    gate_finish(node->gate);
    if (!gate_is_closed(node->gate))
        return MUSTER_OK;
    return node_slow_boundary(node, false, NULL, ret_error);
}

enum muster_status muster_node_restore(muster_node_t *node, struct muster_error *ret_error)
{
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status;

    if (node_refused(node, false))
        return node_refuse(node, "muster_node_restore", ret_error);
    status = node_restore(node, &why);
    return status == MUSTER_OK ? MUSTER_OK : node_ends_with(node, &why, status, ret_error);
}

/* --- reads ------------------------------------------------------------------------------------ */

static bool node_gone(const struct muster_node *node)
{
    return node == NULL || gate_forked(node->gate);
}

int64_t muster_node_total_run_calls(const muster_node_t *node)
{
    return node_gone(node) ? 0 : gate_done(node->gate);
}

bool muster_node_reached_preemption(const muster_node_t *node, int64_t step)
{
    int64_t save_step;

    if (node_gone(node))
        return false;
    save_step = node->agent != NULL ? agent_save_step(node->agent) : local_save_step(node->local);
    return save_step >= 0 && save_step == step + 1;
}

void muster_node_position(const muster_node_t *node, int64_t *ret_epoch, int64_t *ret_step_in_epoch,
                          int64_t *ret_data_position)
{
    if (ret_epoch != NULL)
        *ret_epoch = node != NULL ? node->epoch : -1;
    if (ret_step_in_epoch != NULL)
        *ret_step_in_epoch = node != NULL ? node->step_in_epoch : -1;
    if (ret_data_position != NULL)
        *ret_data_position = node != NULL ? node->data_position : -1;
}

int muster_node_rank(const muster_node_t *node)
{
    return node == NULL ? -1 : node->rank;
}

int muster_node_world_size(const muster_node_t *node)
{
    return node == NULL ? 0 : node->world_size;
}

uint64_t muster_node_generation(const muster_node_t *node)
{
    struct member_view view;

    if (node_gone(node) || node->agent == NULL)
        return 0;
    agent_view(node->agent, &view);
    return view.generation;
}

static int64_t node_left_until(int64_t boot_ms)
{
    int64_t left = boot_ms - clock_ms(CLOCK_BOOTTIME);

    return boot_ms == 0 ? -1 : left > 0 ? left : 0;
}

static struct muster_announced node_announced_of(const struct muster_node *node)
{
    struct muster_announced announced = {.rank = -1, .left_ms = -1, .save_ms = -1};
    struct member_view view;
    int64_t deadline = 0;

    if (node_gone(node))
        return announced;
    if (node->agent == NULL) {
        announced.kind = (enum muster_notice_kind)local_announced(node->local, &deadline);
        announced.left_ms = node_left_until(deadline);
        announced.rank = announced.kind == MUSTER_NOTICE_NONE ? -1 : node->rank;
        return announced;
    }
    agent_view(node->agent, &view);
    if (view.announced.kind == NOTICE_NONE)
        return announced;
    announced.kind = view.announced.kind <= MUSTER_NOTICE_USER
                         ? (enum muster_notice_kind)view.announced.kind
                         : MUSTER_NOTICE_USER; /* of a newer muster's */
    announced.rank = (int)view.announced.rank;
    announced.left_ms = node_left_until(view.announced.deadline_boot_ms);
    announced.save_ms = node_left_until(view.announced.save_boot_ms);
    return announced;
}

bool muster_node_announced(const muster_node_t *node, struct muster_announced *ret_announced,
                           size_t struct_size)
{
    const struct muster_announced announced = node_announced_of(node);

    sized_give(ret_announced, struct_size, &announced, sizeof announced);
    return announced.kind != MUSTER_NOTICE_NONE;
}

int muster_node_restart_code(const muster_node_t *node)
{
    return node == NULL ? node_options_restart_code() : node->options.termination.restart_code;
}

int64_t muster_node_resumed_step(const muster_node_t *node)
{
    return node == NULL ? 0 : node->resumed_step;
}

/* --- telling ---------------------------------------------------------------------------------- */

void muster_node_set_position(muster_node_t *node, int64_t epoch, int64_t step_in_epoch,
                              int64_t data_position)
{
    if (node_gone(node))
        return;
    if (node->agent != NULL)
        agent_set_position(node->agent, epoch, step_in_epoch, data_position);
    else
        local_set_position(node->local, epoch, step_in_epoch, data_position);
}

void muster_node_save_progress(muster_node_t *node, uint64_t bytes)
{
    if (!node_gone(node) && node->agent != NULL)
        agent_set_save_progress(node->agent, bytes);
}

int muster_node_save_fail(muster_node_t *node, int code, const char *text)
{
    if (!node_gone(node))
        snprintf(node->save_error, sizeof node->save_error, "%s", text != NULL ? text : "");
    return code;
}

enum muster_status muster_node_fail(muster_node_t *node, int code, const char *text)
{
    struct muster_error why;

    if (node == NULL)
        return MUSTER_E_ARGUMENT;
    if (gate_forked(node->gate))
        return MUSTER_E_FORKED;
    if (text == NULL)
        text = "the program reported a failure of its own";
    error_set_code(&why, MUSTER_E_STEP, code, "%s", text);
    why.step = gate_done(node->gate);
    node_tell_error(node, &why);
    atomic_store(&node->failed, true);
    if (node->agent != NULL)
        return agent_fail(node->agent, code, text, NULL);
    local_fail(node->local, code, text);
    return MUSTER_OK;
}

/* By then a rank that is gone is known to be lost, even if the broker is slow. If no rank is gone,
 * the answer comes long before. */
#define SUSPECT_MS (2 * LOST_MS)

enum muster_status muster_node_fail_suspecting(muster_node_t *node, int code, const char *text,
                                               int64_t wait_ms, struct muster_error *ret_error)
{
    enum muster_status status = MUSTER_OK;

    if (node_refused(node, false))
        return node_refuse(node, "muster_node_fail_suspecting", ret_error);
    if (node->agent != NULL && !atomic_load(&node->failed))
        status = agent_suspects(node->agent, wait_ms > 0 ? wait_ms : SUSPECT_MS, ret_error);
    if (status == MUSTER_OK) {
        muster_node_fail(node, code, text);
        return node_after_failure(node, ret_error);
    }
    node_note_interrupt(node, status);
    if (node_must_leave(node, status))
        node_leave_process(node);
    return status;
}

bool muster_node_is_saving_in_progress(const muster_node_t *node)
{
    return !node_gone(node) && node->agent != NULL && agent_is_saving(node->agent);
}

enum muster_status muster_node_wait_until_finished(muster_node_t *node, int64_t timeout_ms,
                                                   struct muster_error *ret_error)
{
    const char *call = "muster_node_wait_until_finished";

    if (node == NULL)
        return node_null(call, ret_error);
    if (gate_forked(node->gate))
        return node_forked(call, ret_error);
    if (timeout_ms < 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT, "%s: timeout_ms is negative", call);
    if (node->agent == NULL)
        return MUSTER_OK;
    enum muster_status status = agent_wait_saved(node->agent, timeout_ms, ret_error);
    node_note_interrupt(node, status);
    return status;
}

void muster_node_hold(muster_node_t *node)
{
    if (node_gone(node))
        return;
    node->hold_depth++;
    if (node->agent != NULL)
        agent_hold(node->agent, 1);
}

void muster_node_release(muster_node_t *node)
{
    if (node_gone(node) || node->hold_depth == 0)
        return;
    node->hold_depth--;
    if (node->agent != NULL)
        agent_hold(node->agent, -1);
}

enum muster_status muster_node_notify(muster_node_t *node, enum muster_notice_kind kind,
                                      int64_t left_ms, const char *text)
{
    static const enum wire_notice_kind kinds[] = {
        [MUSTER_NOTICE_PREEMPT] = NOTICE_PREEMPT,
        [MUSTER_NOTICE_TERMINATE] = NOTICE_TERMINATE,
        [MUSTER_NOTICE_STOP] = NOTICE_STOP,
        [MUSTER_NOTICE_REBOOT] = NOTICE_REBOOT,
        [MUSTER_NOTICE_TIME_LIMIT] = NOTICE_TIME_LIMIT,
        [MUSTER_NOTICE_SIGNAL] = NOTICE_SIGNAL,
        [MUSTER_NOTICE_USER] = NOTICE_USER,
    };

    if (node == NULL || kind <= MUSTER_NOTICE_NONE || kind > MUSTER_NOTICE_USER || left_ms < -1)
        return MUSTER_E_ARGUMENT;
    if (gate_forked(node->gate))
        return MUSTER_E_FORKED;
    if (text == NULL)
        text = "the program said so";
    if (node->agent != NULL)
        return agent_notify(node->agent, kinds[kind], left_ms, text, NULL);
    local_notify(node->local, kinds[kind], left_ms, text);
    return MUSTER_OK;
}

void muster_notify_signal(int signo)
{
    signal_report(signo);
}

void muster_signals_put_back(void)
{
    signal_put_all_back();
}

/* --- closing ---------------------------------------------------------------------------------- */

/* Has the program done all that it wanted? A close inside a scope or a hold did not finish it */
static bool node_has_finished(const struct muster_node *node, int code)
{
    return code == 0 && !node->told && !node->scope_open && node->hold_depth == 0;
}

/* Is the process to leave with the restart code? If a termination ended without a save, a program
 * that has finished need not begin again from an older checkpoint. */
static bool node_is_preempted(const struct member_view *view, bool finished)
{
    return view->leave_restart && !(finished && view->end.code == MUSTER_E_NOT_SAVED);
}

static enum wire_leave_why node_why_leaving(const struct member_view *view, bool finished)
{
    if (node_is_preempted(view, finished))
        return LEAVE_PREEMPTED;
    if (view->mode != VIEW_END || view->leave_restart)
        return finished ? LEAVE_FINISHED : LEAVE_FAILED;
    return view->end.status == MUSTER_E_STEP ? LEAVE_FAILED : LEAVE_ERROR;
}

/* A job may finish with saves that failed: then only this tells of them. */
static void node_tell_supervisor(struct muster_node *node, const struct member_view *view,
                                 bool leaves)
{
    char text[sizeof view->save_failed + 64];

    if (leaves) {
        supervised_says(&node->supervised, view->end.text);
    } else if (view->saves_failed > 0) {
        snprintf(text, sizeof text, "%u save%s of this launch failed, the last of %s",
                 view->saves_failed, view->saves_failed == 1 ? "" : "s", view->save_failed);
        supervised_says(&node->supervised, text);
    }
}

/* Returns MUSTER_OK or MUSTER_PREEMPTED. */
static enum muster_status node_close_with_broker(struct muster_node *node, int code,
                                                 struct muster_error *err)
{
    bool finished = node_has_finished(node, code);
    struct member_view view;

    agent_view(node->agent, &view);
    if (node_is_preempted(&view, finished))
        code = node->options.termination.restart_code;
    enum wire_leave_why why = node_why_leaving(&view, finished);
    agent_leave(node->agent, why, code);
    agent_view(node->agent, &view);
    node_tell_supervisor(node, &view, node_is_preempted(&view, finished));
    if (why == LEAVE_FINISHED && !node_is_preempted(&view, finished))
        supervised_finished(&node->supervised);
    supervised_leaves(&node->supervised);
    if (!node_is_preempted(&view, finished))
        return MUSTER_OK;
    if (err != NULL)
        *err = view.end;
    return MUSTER_PREEMPTED;
}

/* close is a boundary, too: with a notice it saves what is newer than the last save. */
static enum muster_status node_close_alone(struct muster_node *node, int code,
                                           struct muster_error *err)
{
    struct muster_error why;

    if (!node->restored || code != 0 || node->scope_open ||
        node->hold_depth > 0 || /* inside a step, or what is to be saved whole: no state to save */
        (node->save_error[0] != '\0' && local_is_turn(node->local)) || /* its own save failed */
        local_boundary(node->local, false, NULL, &why) != MUSTER_PREEMPTED ||
        (node_has_finished(node, code) && why.code == MUSTER_E_NOT_SAVED))
        return MUSTER_OK;
    if (err != NULL)
        *err = why;
    return MUSTER_PREEMPTED;
}

enum muster_status muster_node_close(muster_node_t **node, int code, struct muster_error *ret_error)
{
    struct muster_node *n = node != NULL ? *node : NULL;
    enum muster_status status;

    if (n == NULL)
        return MUSTER_OK;
    /* threads, sockets and locks are the parent's: nothing is freed. In its close the gate may be
     * gone already */
    if (n->closing != 0 ? n->closing != getpid() : gate_forked(n->gate)) {
        *node = NULL;
        return node_forked("muster_node_close", ret_error);
    }
    if (n->closing != 0) /* by an atexit handler of a process that leaves in here */
        return MUSTER_OK;
    n->closing = getpid();
    status = n->agent != NULL ? node_close_with_broker(n, code, ret_error)
                              : node_close_alone(n, code, ret_error);
    if (n->local != NULL) {
        node_tell_words_alone(n);
        if (status == MUSTER_OK && node_has_finished(n, code))
            supervised_finished(&n->supervised);
        supervised_leaves(&n->supervised);
    }
    if (status == MUSTER_PREEMPTED)
        node_leave_process(n);
    node_end_agent(n);
    local_destroy(&n->local);
    *node = NULL; /* not before: a save that is written behind tells its progress by the caller's
                     variable */
    node_free(n);
    return status;
}
