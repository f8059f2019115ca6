/* sim_tasks_threads - several threads of a user's with one coordinator: real ones, of which one
 * runs at a time. Where one waits, on its condition or on the connection, the world's own thread
 * goes on; only a signal of that condition, or its time, wakes it again, so that a wake-up that is
 * lost is a call that does not return. */
#include "tests/sim/sim_tasks_private.h"

#include <errno.h>

#define THINKS_ONE_IN 12
#define ALSO_MS (CONFIRM_MS + 500) /* what a call may take beyond its time-out */
#define RETURN_MS 20000            /* when all has ended: all calls have returned by then */

/* --- turns ------------------------------------------------------------------------------------ */

static void take_turn(sem_t *turn)
{
    while (sem_wait(turn) != 0)
        continue;
}

/* The user's thread: until the world's gives it the next turn. */
static void leave_turn(enum user_state state)
{
    struct user *me = w.me;

    me->state = state;
    sem_post(&w.turn);
    take_turn(&me->turn);
}

static void give_turn(struct user *user)
{
    w.me = user;
    user->woken = false;
    sem_post(&user->turn);
    take_turn(&w.turn);
    w.me = &w.here;
}

static void *user_thread(void *arg)
{
    struct user *me = arg;

    take_turn(&me->turn);
    while (!w.ending) {
        w.all_ended |= sim_tasks_thread_passes();
        leave_turn(USER_THINKS);
    }
    sem_post(&w.turn);
    return NULL;
}

/* --- in place of the waits of client/tasks/coordinator.c -------------------------------------- */

/* The linker sends these calls here (tests/CMakeLists.txt). */
struct timespec __wrap_thread_time_after(int64_t ms);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

struct timespec __wrap_thread_time_after(int64_t ms)
{
    int64_t until_ms = w.now + ms;

    return (struct timespec){.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    INSIST(w.me->is_thread, "the only thread waits for another");
    w.stats->waits_beside++;
    w.me->condition = condition;
    w.me->until_ms = until->tv_sec * 1000 + until->tv_nsec / 1000000;
    pthread_mutex_unlock(mutex);
    leave_turn(USER_WAITS);
    pthread_mutex_lock(mutex);
    return w.me->woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    for (size_t i = 0; i < w.users_count && w.broken != SIM_TASKS_SLEEPS; i++)
        if (w.users[i].state == USER_WAITS && w.users[i].condition == condition)
            w.users[i].woken = true;
    return 0;
}

void sim_tasks_user_leads(void)
{
    if (w.me->is_thread)
        leave_turn(USER_LEADS);
    else if (w.me->waits)
        sim_tasks_time_passes();
}

/* --- calls ------------------------------------------------------------------------------------ */

void sim_tasks_call_begins(int64_t timeout_ms)
{
    struct user *me = w.me;

    me->timeout_ms = timeout_ms;
    me->waits = me->is_thread || timeout_ms < 0 || w.coordinator->unavailable[0] != '\0';
    me->began_ms = w.now;
    me->alives = w.coordinator->alives;
}

void sim_tasks_call_ended(void)
{
    INSIST(w.me->timeout_ms < 0 || w.now - w.me->began_ms <= w.me->timeout_ms + ALSO_MS,
           "a call of %lld ms took %lld", (long long)w.me->timeout_ms,
           (long long)(w.now - w.me->began_ms));
    w.me->waits = false;
}

/* --- the world's own thread ------------------------------------------------------------------- */

void sim_tasks_users_begin(void)
{
    sem_init(&w.turn, 0, 0);
    for (size_t i = 0; i < w.users_count; i++) {
        w.users[i].is_thread = true;
        sem_init(&w.users[i].turn, 0, 0);
        assert_int_equal(pthread_create(&w.users[i].thread, NULL, user_thread, &w.users[i]), 0);
    }
}

static bool is_ready(const struct user *user)
{
    if (user->state == USER_THINKS)
        return !w.ending && sim_tasks_below(THINKS_ONE_IN) == 0;
    return user->state == USER_LEADS || user->woken || w.now >= user->until_ms;
}

static bool all_think(void)
{
    for (size_t i = 0; i < w.users_count; i++)
        if (w.users[i].state != USER_THINKS)
            return false;
    return true;
}

bool sim_tasks_users_pass(void)
{
    w.all_ended = false;
    if (all_think())
        sim_tasks_coordinator_passes();
    for (size_t i = 0; i < w.users_count; i++)
        if (is_ready(&w.users[i]))
            give_turn(&w.users[i]);
    return w.all_ended;
}

void sim_tasks_users_end(void)
{
    int64_t since_ms = w.now;

    if (w.users_count == 0)
        return;
    w.ending = true;
    while (!all_think()) {
        INSIST(w.now - since_ms < RETURN_MS, "all has ended and a call has not returned");
        sim_tasks_time_passes();
        sim_tasks_users_pass();
    }
    for (size_t i = 0; i < w.users_count; i++) {
        give_turn(&w.users[i]);
        pthread_join(w.users[i].thread, NULL);
        sem_destroy(&w.users[i].turn);
    }
    sem_destroy(&w.turn);
    w.users_count = 0;
}
