/* agent - see agent.h. Opening, the thread's loop, closing. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "node/thread.h"
#include "schema/error.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A decision with WORLD_SIZE_MAX members takes 384 KiB. */
#define FRAME_ARENA_BYTES (4U << 20)
#define CONNECT_PATIENCE_MS 50
#define WRITER_LOOK_MS 20

/* Mutex free. The training thread's step does not return, so only this thread can end the
 * process. */
static void agent_exit_if_wanted(struct agent *agent)
{
    if (!agent->exit_wanted)
        return;
    if (agent->options.ending != NULL && !agent->exit_restart) {
        struct member_view view;

        agent_view(agent, &view);
        agent->options.ending(&view.end, agent->options.ending_arg);
    }
    link_close(&agent->link); /* what was said to the broker gets its time to leave */
    tell_stop(&agent->tell, AGENT_CLOSE_MS);
    watch_settle(agent->watch, AGENT_SETTLE_MS);
    _exit(agent->exit_restart ? agent->options.member.restart_code : EXIT_FAILURE);
}

static int64_t agent_sleep_ms(const struct agent *agent)
{
    int64_t until = agent->now_boot_ms + AGENT_POLL_MS;
    int64_t wakeup = agent->faulted ? until : member_wakeup_boot_ms(agent->core);

    if (wakeup < until)
        until = wakeup;
    return until > agent->now_boot_ms ? until - agent->now_boot_ms : 1;
}

/* This comes before the frames, because they may be of that connection. */
static void agent_feed_connection(struct agent *agent)
{
    uint64_t connections = link_connections(agent->link);

    if (connections == agent->connections)
        return;
    agent->connections = connections;
    agent_feed(agent, &(struct member_input){.kind = MEMBER_CONNECTED});
}

/* One pass, mutex held. Posts first: a training thread waits for them. The state before the frames:
 * one of them may be its end. Frames before the tick: silence is judged only after the sockets were
 * drained. Returns how long to sleep. */
static int64_t agent_pass(struct agent *agent)
{
    bool more = false;

    agent->now_boot_ms = clock_ms(CLOCK_BOOTTIME);
    agent_feed_posts(agent);
    agent_tell_saving(agent);
    if (!agent->faulted) {
        agent_feed_connection(agent);
        more = agent_feed_frames(agent);
    }
    agent_feed_notices(agent);
    if (!agent->faulted && !more && agent->now_boot_ms >= member_wakeup_boot_ms(agent->core))
        agent_feed(agent, &(struct member_input){.kind = MEMBER_TICK});
    agent->passes++;
    pthread_cond_broadcast(&agent->changed);
    return more || agent->first_post != NULL ? 0 : agent_sleep_ms(agent);
}

static bool agent_is_stopped(struct agent *agent)
{
    bool stop;

    pthread_mutex_lock(&agent->mutex);
    stop = agent->stop;
    pthread_mutex_unlock(&agent->mutex);
    return stop;
}

static void agent_sleep_until_woken(struct agent *agent, int64_t timeout_ms)
{
    uint64_t wakes;

    link_wait(agent->link, agent->wake_fd, timeout_ms);
    if (read(agent->wake_fd, &wakes, sizeof wakes) < 0)
        wakes = 0; /* nobody woke us */
}

/* A HELLO that is sent before the connection is there is lost until its resending. */
static void agent_await_connection(struct agent *agent)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + CONNECT_PATIENCE_MS, left_ms;

    while (!link_is_up(agent->link) && !agent_is_stopped(agent) &&
           (left_ms = until_ms - clock_ms(CLOCK_MONOTONIC)) > 0)
        agent_sleep_until_woken(agent, left_ms);
}

static void *agent_run(void *arg)
{
    struct agent *agent = arg;
    int64_t timeout_ms;

    agent_await_connection(agent);
    agent->connections = link_connections(agent->link);
    pthread_mutex_lock(&agent->mutex);
    agent->now_boot_ms = clock_ms(CLOCK_BOOTTIME);
    agent_feed(agent, &(struct member_input){.kind = MEMBER_TICK});
    while (!agent->stop) {
        timeout_ms = agent_pass(agent);
        pthread_mutex_unlock(&agent->mutex);
        agent_exit_if_wanted(agent);
        agent_sleep_until_woken(agent, timeout_ms);
        pthread_mutex_lock(&agent->mutex);
    }
    agent_feed_posts(agent); /* what the writer did last */
    pthread_mutex_unlock(&agent->mutex);
    agent_exit_if_wanted(agent);
    link_close(&agent->link);
    return NULL;
}

static void agent_init_sync(struct agent *agent)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&agent->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&agent->mutex, NULL);
}

static enum muster_status agent_allocate(struct agent *agent, const struct agent_options *options,
                                         struct muster_error *err)
{
    agent->broker = strdup(options->broker);
    agent->options.broker = agent->broker;
    agent->frame = malloc(WIRE_FRAME_MAX);
    agent->core = member_create(&options->member);
    agent->farewell = post_new(MEMBER_CLOSE);
    if (agent->broker == NULL || agent->frame == NULL || agent->core == NULL ||
        agent->farewell == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    agent->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (agent->wake_fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "no file descriptor for the node: %s; raise the limit (ulimit -n)",
                              strerror(errno));
    return gate_create(&agent->gate, err);
}

/* All signals are blocked in the threads that start here, ZeroMQ's too. */
static enum muster_status agent_start(struct agent *agent, struct muster_error *err)
{
    sigset_t all, before;
    enum muster_status status;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = link_open(agent->broker, agent->options.member.job, &agent->link, err);
    if (status == MUSTER_OK) {
        int code = pthread_create(&agent->thread, NULL, agent_run, agent);

        agent->thread_started = code == 0;
        if (code != 0)
            status = error_set_code(err, MUSTER_E_BUSY, code,
                                    "the node's thread could not be started: %s; raise the limit "
                                    "of processes (ulimit -u)",
                                    strerror(code));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static void agent_set_up(struct agent *agent, const struct agent_options *options)
{
    agent->options = *options;
    if (!role_is_trainer(options->member.role)) /* the ranks say when to save, nobody else */
        agent->options.save_every_steps = 0;
    agent->wake_fd = -1;
    agent->epoch = agent->step_in_epoch = agent->data_position = -1;
    atomic_store(&agent->save_step, -1);
    arena_init(&agent->frame_arena, FRAME_ARENA_BYTES);
    member_actions_init(&agent->actions);
    agent_init_sync(agent);
}

/* The threads that give notices, and those that call the user. */
static enum muster_status agent_start_sources(struct agent *agent, struct muster_error *err)
{
    const struct agent_options *o = &agent->options;
    const struct tell_hooks hooks = {
        .on_error = o->hooks.on_error, .log = o->hooks.log, .arg = o->hooks.log_arg};
    const struct watch_options watch = {.signals = o->signals,
                                        .signal_count = o->signal_count,
                                        .usual_grace = o->member.grace_period_ms < 0,
                                        .ask = o->hooks.watch,
                                        .arg = o->hooks.arg,
                                        .ask_period_ms = o->watch_period_ms,
                                        .sources = o->sources,
                                        .seed = o->member.incarnation,
                                        .wake_fd = agent->wake_fd};
    enum muster_status status = tell_start(&hooks, &agent->tell, err);

    if (status == MUSTER_OK)
        status = watch_open(&watch, &agent->watch, err);
    agent->options.sources = NULL; /* it was borrowed for the call */
    return status;
}

enum muster_status agent_open(const struct agent_options *options, struct agent **ret_agent,
                              struct muster_error *err)
{
    struct agent *agent = calloc(1, sizeof *agent);
    enum muster_status status;

    if (agent == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    agent_set_up(agent, options);
    status = agent_allocate(agent, options, err);
    if (status == MUSTER_OK) {
        agent->view = *member_get_view(agent->core);
        if (agent->options.save_every_steps > 0)
            agent->gate->due = agent->options.save_every_steps;
        status = writer_create(options->save.root, options->save.job, agent_writer_done, agent,
                               &agent->writer, err);
    }
    if (status == MUSTER_OK && options->save_behind)
        status = behind_create(&agent->options.save, agent_behind_done, agent, &agent->behind, err);
    if (status == MUSTER_OK)
        writer_set_names(agent->writer, &options->save.names);
    if (status == MUSTER_OK)
        status = agent_start_sources(agent, err);
    if (status == MUSTER_OK)
        status = agent_start(agent, err);
    if (status == MUSTER_OK)
        *ret_agent = agent;
    else
        agent_destroy(&agent);
    return status;
}

int64_t agent_last_wait_ms(const struct agent *agent, int64_t most_ms)
{
    int64_t now_ms = clock_ms(CLOCK_BOOTTIME);
    int64_t until_ms = agent->core != NULL ? member_give_up_boot_ms(agent->core) : INT64_MAX;
    int64_t left_ms = until_ms - now_ms; /* all waits end at one moment, however many there are */

    if (left_ms >= most_ms - AGENT_MARGIN_MS)
        return most_ms;
    left_ms += AGENT_MARGIN_MS;
    return left_ms > AGENT_LEAST_MS ? left_ms : AGENT_LEAST_MS;
}

static int64_t agent_wait_left_ms(struct agent *agent)
{
    int64_t wait_ms;

    pthread_mutex_lock(&agent->mutex);
    wait_ms = agent_last_wait_ms(agent, AGENT_CLOSE_MS);
    pthread_mutex_unlock(&agent->mutex);
    return wait_ms;
}

/* Its last outcome is to reach the broker while the agent's thread is there. False: it does not
 * end. */
static bool agent_await_writer(struct agent *agent)
{
    struct agent_patience patience = {0};
    int64_t until_ms;
    bool busy;

    writer_end_deletions(agent->writer);
    pthread_mutex_lock(&agent->mutex);
    until_ms = clock_ms(CLOCK_MONOTONIC) + agent_last_wait_ms(agent, ENDING_MS);
    while ((busy = writer_is_busy(agent->writer)) && agent->thread_started &&
           clock_ms(CLOCK_MONOTONIC) < until_ms &&
           agent_wait(agent, &patience, WRITER_LOOK_MS, NULL) == MUSTER_OK)
        continue;
    pthread_mutex_unlock(&agent->mutex);
    return !busy;
}

/* agent_leave has waited for what is written. */
static bool agent_end_writer_behind(struct agent *agent)
{
    int64_t limit_ms = agent->behind_left ? 0 : agent_wait_left_ms(agent);

    return behind_destroy(&agent->behind, limit_ms);
}

/* False: the thread runs on, and is joined no more. */
static bool agent_stop_thread(struct agent *agent)
{
    if (agent->thread_left)
        return false;
    if (!agent->thread_started)
        return true;
    pthread_mutex_lock(&agent->mutex);
    agent->stop = true;
    agent_wake(agent);
    pthread_mutex_unlock(&agent->mutex);
    agent->thread_left = !thread_join(agent->thread, AGENT_CLOSE_MS);
    agent->thread_started = agent->thread_left;
    return !agent->thread_left;
}

/* From here on, messages of a thread that was left running are dropped, because their receiver is
 * freed. */
static void agent_fall_silent(struct agent *agent)
{
    pthread_mutex_lock(&agent->mutex);
    agent->over = true;
    pthread_mutex_unlock(&agent->mutex);
}

static void agent_free_all(struct agent *agent)
{
    while (agent->first_post != NULL) {
        struct post *next = agent->first_post->next;

        post_free(agent->first_post);
        agent->first_post = next;
    }
    post_free(agent->farewell);
    member_destroy(&agent->core);
    member_actions_free(&agent->actions);
    arena_free(&agent->frame_arena);
    gate_destroy(&agent->gate);
    if (agent->wake_fd >= 0)
        close(agent->wake_fd);
    pthread_cond_destroy(&agent->changed);
    pthread_mutex_destroy(&agent->mutex);
    free(agent->saving_metrics);
    free(agent->saving_custom);
    free(agent->metrics);
    free(agent->custom);
    free(agent->frame);
    free(agent->broker);
    free(agent);
}

/* The writer goes after the agent's thread, which hands it work, and may post until it is gone. A
 * callback that does not return keeps its own thread and nothing of the agent's; a write, a
 * deletion or a save_fn that does not end keeps the agent's memory. */
bool agent_destroy(struct agent **agent)
{
    struct agent *a = *agent;
    bool ended;

    if (a == NULL)
        return true;
    *agent = NULL;
    ended = agent_end_writer_behind(a); /* it posts until its end */
    if (a->writer != NULL && !agent_await_writer(a))
        ended = false;
    if (!agent_stop_thread(a)) { /* it uses all of this; nothing but memory is lost */
        watch_silence(a->watch);
        return false;
    }
    agent_fall_silent(a);
    watch_settle(a->watch, AGENT_SETTLE_MS);
    if (!writer_destroy(&a->writer, ended ? agent_wait_left_ms(a) : 0))
        ended = false;
    link_close(&a->link);
    tell_stop(&a->tell, AGENT_CLOSE_MS);
    watch_close(&a->watch, AGENT_CLOSE_MS); /* last: until here a signal ends nobody */
    if (ended)
        agent_free_all(a);
    return ended;
}

void agent_drain(struct agent *agent)
{
    tell_drain(agent->tell, AGENT_DRAIN_MS);
}

/* It may have been let in just now, and says good-bye then. A node that is let in later still is
 * lost by silence. */
static bool agent_is_answered_late(struct agent *agent)
{
    bool heard;

    pthread_mutex_lock(&agent->mutex);
    heard = agent->thread_started && agent->frames_heard > 0;
    pthread_mutex_unlock(&agent->mutex);
    return heard;
}

bool agent_dismiss(struct agent **agent, char *ret_why, size_t size, bool *ret_ended)
{
    struct agent *a = *agent;
    bool told;

    *ret_ended = true;
    if (a == NULL)
        return false;
    if (agent_is_answered_late(a))
        agent_leave(a, LEAVE_ERROR, EXIT_FAILURE);
    bool stopped = agent_stop_thread(a);
    pthread_mutex_lock(&a->mutex);
    if (stopped)
        agent_feed_notices(a); /* what came since it last looked */
    told = member_ends_soon(a->core, clock_ms(CLOCK_BOOTTIME), ret_why, size);
    pthread_mutex_unlock(&a->mutex);
    *ret_ended = agent_destroy(agent);
    return told;
}

struct gate *agent_gate(struct agent *agent)
{
    return agent->gate;
}
