/* Turns of a task_link, from several threads against an echoing broker: nobody waits for ever. The
 * module is compiled in here with a rest that never ends by itself, so that a call that is
 * overheard is a hang and not a pause. */
#define REST_MAX_MS 3600000
#include "node/thread.c" /* else the linker finds the simulator's */

#include "client/tasks/task_link.c"

#include "tests/proc/router_stage.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>

#define THREADS 4
#define ROUNDS 300
#define PATIENCE_S 60
#define FAR_MS 3600000

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct task_link *link;
    bool leading;
    int waiting;
    uint64_t asked, sent, answered;
    int64_t turn_ms; /* what a turn returns */
    uint64_t turns;
} owner;

static struct router_stage broker;

/* --- the broker: what it hears of a number it says of the number ------------------------------ */

static bool echo(const struct wire_msg *asked, struct wire_msg *answer)
{
    static unsigned dice = 1;

    answer->type = WIRE_QUEUE_ALIVE;
    answer->down.job = "train";
    answer->u.queue_alive.taken = asked->u.queue_beat.released;
    answer->u.queue_alive.unavailable = "";
    dice = dice * 1103515245 + 12345;
    if (dice >> 16 & 1)
        usleep(dice >> 20 & 255);
    return true;
}

/* --- the owner -------------------------------------------------------------------------------- */

static void take(void *arg, const struct wire_msg *message, int64_t now_ms)
{
    (void)arg, (void)now_ms;
    pthread_mutex_lock(&owner.mutex);
    if (message->u.queue_alive.taken > owner.answered)
        owner.answered = message->u.queue_alive.taken;
    pthread_cond_broadcast(&owner.changed);
    pthread_mutex_unlock(&owner.mutex);
}

static int64_t take_turn_of_owner(void *arg, int64_t now_ms)
{
    int64_t wait_ms;

    (void)arg, (void)now_ms;
    pthread_mutex_lock(&owner.mutex);
    wait_ms = owner.turn_ms;
    owner.turns++;
    if (owner.sent < owner.asked) {
        struct wire_msg message = {.type = WIRE_QUEUE_BEAT};

        message.u.queue_beat.released = owner.asked;
        if (task_link_send(owner.link, &message))
            owner.sent = owner.asked;
        else
            wait_ms = 20; /* not connected yet */
    }
    pthread_mutex_unlock(&owner.mutex);
    return wait_ms;
}

/* As coordinators wait. */
static void wait_for_change(void)
{
    uint64_t seen = task_link_seen(owner.link);

    if (owner.leading) {
        task_link_push(owner.link);
        owner.waiting++;
        pthread_cond_wait(&owner.changed, &owner.mutex);
        owner.waiting--;
        return;
    }
    owner.leading = true;
    pthread_mutex_unlock(&owner.mutex);
    task_link_lead(owner.link, seen, FAR_MS);
    pthread_mutex_lock(&owner.mutex);
    owner.leading = false;
}

static void leave(void)
{
    if (owner.waiting > 0 && !owner.leading)
        pthread_cond_broadcast(&owner.changed);
    pthread_mutex_unlock(&owner.mutex);
}

static void ask_once(unsigned dice)
{
    uint64_t mine;

    pthread_mutex_lock(&owner.mutex);
    mine = ++owner.asked;
    if (dice & 1)
        task_link_ask(owner.link);
    else
        task_link_wake(owner.link);
    if (dice & 2) {
        leave();
        task_link_drive(owner.link);
        pthread_mutex_lock(&owner.mutex);
    }
    while (owner.answered < mine)
        wait_for_change();
    leave();
    task_link_drive(owner.link);
}

static void *ask_often(void *arg)
{
    unsigned dice = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        dice = dice * 1103515245 + 12345;
        ask_once(dice >> 16);
        if ((dice >> 20 & 63) == 0)
            usleep(REST_MS * 1000 *
                   (dice >> 26 & 3)); /* the link's own thread comes back, or just not */
        else if (dice >> 20 & 1)
            usleep(dice >> 24 & 127);
    }
    return NULL;
}

/* --- tests ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    const struct task_link_owner who = {
        .take = take, .turn = take_turn_of_owner, .job = "train", .incarnation = 1};
    struct muster_error err;

    (void)state;
    alarm(PATIENCE_S); /* a hang ends so */
    memset(&owner, 0, sizeof owner);
    pthread_mutex_init(&owner.mutex, NULL);
    pthread_cond_init(&owner.changed, NULL);
    owner.turn_ms = FAR_MS;
    router_stage_begin(&broker, "tcp://127.0.0.1:*", echo);
    assert_int_equal(task_link_open(broker.endpoint, &who, &owner.link, &err), MUSTER_OK);
    assert_int_equal(task_link_start(owner.link, &err), MUSTER_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    task_link_close(&owner.link);
    router_stage_end(&broker);
    pthread_mutex_destroy(&owner.mutex);
    pthread_cond_destroy(&owner.changed);
    alarm(0);
    return 0;
}

static void one_thread_that_asks_and_waits_is_answered(void **state)
{
    (void)state;
    ask_often((void *)(uintptr_t)7);
    assert_int_equal(owner.answered, ROUNDS);
}

static void of_many_threads_each_is_answered(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, (void *)(i + 1)), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(owner.answered, THREADS * ROUNDS);
}

static uint64_t turns_so_far(void)
{
    uint64_t turns;

    pthread_mutex_lock(&owner.mutex);
    turns = owner.turns;
    pthread_mutex_unlock(&owner.mutex);
    return turns;
}

static void while_no_thread_waits_the_links_own_takes_its_turns(void **state)
{
    uint64_t turns;

    (void)state;
    ask_once(1); /* it led, and the link's thread kept away */
    pthread_mutex_lock(&owner.mutex);
    owner.turn_ms = 1;
    pthread_mutex_unlock(&owner.mutex);
    ask_once(1);
    turns = turns_so_far();
    while (turns_so_far() < turns + 20)
        usleep(1000);
}

/* A long lead, as an idle worker's: then its function runs for hours. */
static void behind_a_long_lead_the_links_own_thread_comes_back(void **state)
{
    uint64_t turns;

    (void)state;
    ask_once(1);
    task_link_lead(owner.link, task_link_seen(owner.link),
                   20 * REST_MS); /* so long that it parks */
    pthread_mutex_lock(&owner.mutex);
    owner.turn_ms = 1;
    pthread_mutex_unlock(&owner.mutex);
    turns = turns_so_far();
    task_link_lead(owner.link, task_link_seen(owner.link), 1);
    while (turns_so_far() < turns + 20)
        usleep(1000);
}

static atomic_bool is_leading;

static void *lead_for_ever(void *arg)
{
    uint64_t seen = task_link_seen(owner.link);

    atomic_store(&is_leading, true);
    task_link_lead(owner.link, seen, FAR_MS);
    return arg;
}

static void a_wake_ends_a_lead(void **state)
{
    pthread_t thread;

    (void)state;
    ask_once(1); /* connected, and nothing on its way */
    atomic_store(&is_leading, false);
    assert_int_equal(pthread_create(&thread, NULL, lead_for_ever, NULL), 0);
    while (!atomic_load(&is_leading))
        usleep(100);
    usleep(5000); /* most often it polls by now; it has to end either way */
    task_link_wake(owner.link);
    pthread_join(thread, NULL);
}

/* What came between the look and the wait, on another thread's turn, is not waited for again. */
static void what_came_before_a_lead_ends_it_at_once(void **state)
{
    uint64_t seen, mine;

    (void)state;
    ask_once(1);
    seen = task_link_seen(owner.link);
    pthread_mutex_lock(&owner.mutex);
    mine = ++owner.asked;
    pthread_mutex_unlock(&owner.mutex);
    task_link_wake(owner.link);
    pthread_mutex_lock(&owner.mutex);
    while (owner.answered < mine) /* the link's thread heard it */
        pthread_cond_wait(&owner.changed, &owner.mutex);
    pthread_mutex_unlock(&owner.mutex);
    task_link_lead(owner.link, seen, FAR_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_thread_that_asks_and_waits_is_answered),
        TEST(of_many_threads_each_is_answered),
        TEST(a_wake_ends_a_lead),
        TEST(what_came_before_a_lead_ends_it_at_once),
        TEST(while_no_thread_waits_the_links_own_takes_its_turns),
        TEST(behind_a_long_lead_the_links_own_thread_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
