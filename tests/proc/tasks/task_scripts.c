/* task_scripts - the coordinators of prog_tasks that take part in what a script does to the others;
 * see prog_tasks.c. */
#include "tests/proc/check.h"
#include "tests/proc/tasks/task_calls.h"
#include "tests/proc/tasks/task_functions.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run(int count, const char *word)
{
    const char *function = word != NULL ? word : "echo";
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values);
    char text[32];

    CHECK(values != NULL);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", strcmp(function, "die") == 0 ? i % 10 == 3 : i);
        values[i] = task_schedule(function, text);
    }
    CHECK(task_join() == MUSTER_OK);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        task_expect(&values[i], strcmp(function, "echo") == 0 ? text : "");
    }
    free(values);
}

static void attach(int count)
{
    CHECK(muster_coordinator_scheduled(task_coordinator) == (uint64_t)count);
    CHECK(task_join() == MUSTER_OK);
    for (int i = 0; i < count; i++) {
        muster_remote_value_t *value = NULL;
        char text[32];

        snprintf(text, sizeof text, "%d", i);
        CHECK(muster_coordinator_value(task_coordinator, (uint64_t)i + 1, &value, &err) ==
              MUSTER_OK);
        task_expect(&value, text);
    }
}

/* The values are held to the end: what nobody holds is forgotten. */
static void begin(int count)
{
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values);
    char text[32];

    CHECK(values != NULL);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        values[i] = task_schedule("echo", text);
    }
    muster_coordinator_close(&task_coordinator, NULL);
    for (int i = 0; i < count; i++)
        muster_remote_value_free(&values[i]);
    free(values);
}

/* Until it is killed. The script opens the gate. */
static void leave(int count)
{
    char text[32];

    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        task_schedule("gated", text);
    }
    for (;;)
        pause();
}

static void leave_an_error(void)
{
    task_schedule("fail", "9");
    leave(20);
}

/* Of the coordinator that was killed before any call returned it. */
static void attach_error(void)
{
    CHECK(muster_coordinator_scheduled(task_coordinator) == 21);
    CHECK(task_join() == MUSTER_E_TASK && err.code == 9 && err.task == 1);
    CHECK(task_join() == MUSTER_OK);
}

static void hold(void)
{
    muster_remote_value_t *values[3];

    for (int i = 0; i < 3; i++)
        values[i] = task_schedule("gated", "");
    CHECK(task_join() == MUSTER_OK);
    muster_coordinator_close(&task_coordinator, NULL); /* nothing was released */
    for (int i = 0; i < 3; i++)
        muster_remote_value_free(&values[i]);
}

static void stay(void)
{
    muster_remote_value_t *value = task_schedule("echo", "x");
    const char *text;

    CHECK(task_fetch(value, &text) == MUSTER_OK);
    task_schedule("slow", "600000");
    task_schedule("echo", "y");
    for (;;)
        pause();
}

/* SIGUSR1: main has blocked it. */
static void await_signal(void)
{
    sigset_t set;
    int signo;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigwait(&set, &signo) == 0);
}

static void values(void)
{
    muster_remote_value_t *tasks[24];
    muster_per_worker_t *made;

    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make_slowly", "7", 1, &made,
                                               &err) == MUSTER_OK);
    for (int i = 0; i < 24; i++)
        tasks[i] = task_schedule_use(made);
    for (int i = 0; i < 24; i++)
        task_expect(&tasks[i], "7");
    CHECK(task_join() == MUSTER_OK);
    await_signal();
    for (int i = 0; i < 6; i++)
        tasks[i] = task_schedule_use(made);
    for (int i = 0; i < 6; i++)
        task_expect(&tasks[i], "7");
    CHECK(task_join() == MUSTER_OK);
}

static void expect_marks(muster_remote_value_t *value, size_t size, char mark)
{
    const void *data;
    size_t got;

    CHECK(muster_remote_value_fetch(value, PATIENCE_MS, &data, &got, &err) == MUSTER_OK);
    CHECK(got == size);
    for (size_t i = 0; i < size; i++)
        CHECK(((const char *)data)[i] == mark);
}

static void stopped(void)
{
    static const size_t sizes[] = {10, 200000};
    muster_remote_value_t *values[2];

    values[0] = task_schedule("mark", "10");
    values[1] = task_schedule("mark", "200000");
    CHECK(task_join() == MUSTER_OK);
    for (int i = 0; i < 2; i++)
        expect_marks(values[i], sizes[i], '2');
    await_signal();
    muster_coordinator_close(&task_coordinator, NULL);
    for (int i = 0; i < 2; i++)
        muster_remote_value_free(&values[i]);
    task_open_queue("main", false, 0);
    CHECK(muster_coordinator_scheduled(task_coordinator) == 2);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK(muster_coordinator_value(task_coordinator, i + 1, &values[i], &err) == MUSTER_OK);
        expect_marks(values[i], sizes[i], '2');
        muster_remote_value_free(&values[i]);
    }
}

static void beside(int count)
{
    muster_remote_value_t *first = task_schedule("number", ""), *value = NULL;
    long long from, to;
    const char *text;

    CHECK(task_fetch(first, &text) == MUSTER_OK);
    from = atoll(text);
    for (int i = 1; i < count; i++) {
        muster_remote_value_free(&value);
        value = task_schedule("number", "");
    }
    CHECK(task_fetch(value, &text) == MUSTER_OK);
    to = atoll(text);
    CHECK(task_join() == MUSTER_OK);
    CHECK(from >= 0 &&
          to > from + count / 4); /* a task takes 20 ms and two run at a time, a step 10 */
    muster_remote_value_free(&first);
    muster_remote_value_free(&value);
}

static bool is_unavailable(enum muster_status status, const char *why)
{
    return status == MUSTER_E_UNAVAILABLE &&
           strstr(err.text, "parameter server 0 of job job (process ") != NULL &&
           strstr(err.text, why) != NULL && strstr(err.text, "start it again") != NULL;
}

/* By all calls in turn: once one does not say so, none does. */
static void await_its_return(const char *why)
{
    muster_remote_value_t *value = NULL;
    enum muster_status status = MUSTER_E_UNAVAILABLE;
    bool back = false, done;

    for (int i = 0; i < PATIENCE_MS && value == NULL; i++) {
        status = i % 3 == 0   ? muster_coordinator_done(task_coordinator, &done, &err)
                 : i % 3 == 1 ? muster_coordinator_join(task_coordinator, 0, &err)
                              : task_try_schedule("echo", "", &value);
        CHECK(is_unavailable(status, why) ? !back
                                          : status == MUSTER_OK || status == MUSTER_E_TIMEOUT);
        back = status != MUSTER_E_UNAVAILABLE;
        task_nap(1);
    }
    CHECK(value != NULL && status == MUSTER_OK);
    task_expect(&value, "");
}

static void lost_ps(int count, const char *word)
{
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values), *none = NULL;
    const char *why = word != NULL ? word : "was lost";
    bool done;

    CHECK(values != NULL);
    for (int i = 0; i < count; i++)
        values[i] = word == NULL ? task_schedule("slow", "100") : task_schedule("gated", "");
    CHECK(is_unavailable(task_join(), why));
    CHECK(is_unavailable(muster_coordinator_done(task_coordinator, &done, &err), why));
    CHECK(is_unavailable(task_try_schedule("echo", "x", &none), why) && none == NULL);
    printf("unavailable: %s\n", err.text);
    fflush(stdout);
    if (word != NULL)
        task_gate(true);
    await_its_return(why);
    CHECK(task_join() == MUSTER_OK);
    for (int i = 0; i < count; i++)
        task_expect(&values[i], "");
    if (word != NULL)
        task_gate(false);
    free(values);
}

static void silent(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "slow";
    call.args = "600000";
    call.args_size = 6;
    call.timeout_ms = 12000;
    CHECK(muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, &value, &err) ==
          MUSTER_OK);
    for (;;)
        pause();
}

void task_script(const char *name, int count, const char *word)
{
    static const struct {
        const char *name;
        void (*fn)(void);
        void (*count_fn)(int count);
        void (*word_fn)(int count, const char *word);
    } scripts[] = {{"run", .word_fn = run},
                   {"hold", .fn = hold},
                   {"stay", .fn = stay},
                   {"silent", .fn = silent},
                   {"beside", .count_fn = beside},
                   {"values", .fn = values},
                   {"stopped", .fn = stopped},
                   {"lost_ps", .word_fn = lost_ps},
                   {"leave", .count_fn = leave},
                   {"leave_an_error", .fn = leave_an_error},
                   {"attach_error", .fn = attach_error},
                   {"begin", .count_fn = begin},
                   {"attach", .count_fn = attach}};

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(name, scripts[i].name) != 0)
            continue;
        else if (scripts[i].fn != NULL)
            scripts[i].fn();
        else if (scripts[i].count_fn != NULL)
            scripts[i].count_fn(count);
        else
            scripts[i].word_fn(count, word);
}
