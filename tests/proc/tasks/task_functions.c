/* task_functions - see task_functions.h. */
#include "tests/proc/tasks/task_functions.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* TASKS_LOG, or a file beside it. */
static const char *path_of(const char *suffix, char path[1024])
{
    snprintf(path, 1024, "%s%s", getenv("TASKS_LOG"), suffix);
    return path;
}

static void note_in(const char *suffix, const muster_task_t *task)
{
    char line[64], path[1024];
    int fd = getenv("TASKS_LOG") != NULL
                 ? open(path_of(suffix, path), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
                 : -1;
    int n = snprintf(line, sizeof line, "%" PRIu64 " %d\n", muster_task_id(task),
                     muster_task_attempt(task));

    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void note(const muster_task_t *task)
{
    note_in("", task);
}

bool task_nap(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
    return true;
}

static int64_t number_of(const muster_task_t *task)
{
    char text[32] = "";
    size_t size;
    const void *args = muster_task_args(task, &size);

    memcpy(text, args, size < sizeof text ? size : sizeof text - 1);
    return strtoll(text, NULL, 10);
}

static int echo(muster_task_t *task, void *arg)
{
    size_t size;
    const void *args = muster_task_args(task, &size);

    (void)arg;
    note(task);
    return muster_task_set_result(task, args, size) == MUSTER_OK ? 0 : 1;
}

static int fail(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    return muster_task_fail(task, (int)number_of(task), "as it was asked to");
}

/* For so many ms, or until it is cancelled. */
static int slow(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    for (int64_t ms = 0; ms < number_of(task); ms += 5) {
        if (muster_task_cancelled(task))
            return 1;
        task_nap(5);
    }
    return 0;
}

void task_gate(bool open)
{
    char path[1024];
    int fd;

    path_of(".go", path);
    if (!open) {
        unlink(path);
        return;
    }
    fd = creat(path, 0600);
    if (fd < 0)
        abort();
    close(fd);
}

static bool gate_is_open(void)
{
    char path[1024];

    return access(path_of(".go", path), F_OK) == 0;
}

static int gated(muster_task_t *task, void *arg)
{
    size_t size;
    const void *args = muster_task_args(task, &size);

    (void)arg;
    note(task);
    while (!gate_is_open()) {
        if (muster_task_cancelled(task))
            return 1;
        task_nap(5);
    }
    return muster_task_set_result(task, args, size) == MUSTER_OK ? 0 : 1;
}

/* Whose result is told apart from another attempt's by each byte of it. */
static int mark(muster_task_t *task, void *arg)
{
    size_t size = (size_t)number_of(task);
    char *marks = malloc(size);
    enum muster_status status;

    (void)arg;
    note(task);
    if (marks == NULL)
        return 1;
    while (!gate_is_open())
        task_nap(5);
    memset(marks, '0' + muster_task_attempt(task), size);
    status = muster_task_set_result(task, marks, size);
    free(marks);
    return status == MUSTER_OK ? 0 : 1;
}

static int linger(muster_task_t *task, void *arg)
{
    (void)arg;
    note_in(".begun", task);
    while (!muster_task_cancelled(task))
        task_nap(5);
    task_nap(300);
    note_in(".ended", task);
    return 1;
}

static size_t lines_in(const char *suffix)
{
    char path[1024];
    FILE *file = fopen(path_of(suffix, path), "re");
    size_t lines = 0;

    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

void task_lingerers(size_t *ret_begun, size_t *ret_ended)
{
    *ret_begun = lines_in(".begun");
    *ret_ended = lines_in(".ended");
}

/* Ends its process in its first so many attempts. */
static int die(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    if (muster_task_attempt(task) <= number_of(task))
        raise(SIGKILL);
    return 0;
}

static int big(muster_task_t *task, void *arg)
{
    size_t size = (size_t)number_of(task);
    uint8_t *bytes = malloc(size);
    enum muster_status status;

    (void)arg;
    note(task);
    if (bytes == NULL)
        return 1;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 977);
    status = muster_task_set_result(task, bytes, size);
    free(bytes);
    return status == MUSTER_OK ? 0 : 1;
}

static int make(muster_task_t *task, void *arg)
{
    int *value = malloc(sizeof *value);

    (void)arg;
    if (value == NULL)
        return 1;
    *value = 100 * (int)number_of(task) + muster_task_worker_index(task);
    muster_task_set_value(task, value, free);
    return 0;
}

/* It says twice which one it made. */
static int make_again(muster_task_t *task, void *arg)
{
    int *value = malloc(sizeof *value);

    (void)arg;
    if (value == NULL)
        return 1;
    *value = 100 * (int)number_of(task) + muster_task_worker_index(task);
    muster_task_set_value(task, value, free);
    muster_task_set_value(task, value, free);
    return 0;
}

static int make_slowly(muster_task_t *task, void *arg)
{
    note(task); /* as 1 0: the first value, no attempt */
    task_nap(2000);
    return make(task, arg);
}

/* Says every 20 ms for 3 s that it goes on. */
static int renew(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    for (int i = 0; i < 150; i++) {
        if (muster_task_cancelled(task))
            return muster_task_fail(task, 8, "it was taken away though it renewed");
        muster_task_renew(task);
        task_nap(20);
    }
    return 0;
}

/* A result that is one byte too long; whoever does not look at the answer fails anyway. */
static int too_big(muster_task_t *task, void *arg)
{
    size_t size = ((size_t)16 << 20) + 1;
    uint8_t *bytes = calloc(1, size);
    bool refused;

    (void)arg;
    if (bytes == NULL)
        return 1;
    refused = muster_task_set_result(task, bytes, size) == MUSTER_E_ARGUMENT;
    free(bytes);
    return refused ? 0 : 2;
}

static int make_bad(muster_task_t *task, void *arg)
{
    (void)arg;
    return muster_task_fail(task, 5, "the file of numbers is not there");
}

static int use(muster_task_t *task, void *arg)
{
    const int *value = muster_task_value(task, 0);
    char text[32];

    (void)arg;
    note(task);
    if (value == NULL || *value % 100 != muster_task_worker_index(task))
        return muster_task_fail(task, 9, "that is another worker's value");
    snprintf(text, sizeof text, "%d", *value / 100);
    return muster_task_set_result(task, text, strlen(text)) == MUSTER_OK ? 0 : 1;
}

enum muster_status task_functions_register(muster_worker_t *worker, struct muster_error *err)
{
    static const struct {
        const char *name;
        muster_task_fn *fn;
    } functions[] = {{"echo", echo},         {"fail", fail},       {"slow", slow},
                     {"die", die},           {"big", big},         {"make", make},
                     {"make_bad", make_bad}, {"use", use},         {"make_slowly", make_slowly},
                     {"renew", renew},       {"too_big", too_big}, {"gated", gated},
                     {"linger", linger},     {"mark", mark},       {"make_again", make_again}};
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < sizeof functions / sizeof *functions && status == MUSTER_OK; i++)
        status = muster_worker_register(worker, functions[i].name, functions[i].fn, NULL, err);
    return status;
}
