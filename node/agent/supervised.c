/* supervised - the error file and the life file; see supervised.h. */
#include "node/agent/supervised.h"
#include "node/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The process whose node took the life file; 0: none. Another than this one: its parent, before it
 * forked. */
static _Atomic int life_pid;

static void supervised_path_read(char path[FS_PATH_MAX], const char *name)
{
    const char *value = getenv(name);

    path[0] = '\0';
    if (value != NULL && strlen(value) < FS_PATH_MAX)
        strcpy(path, value); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): it fits */
}

void supervised_init(struct supervised *supervised)
{
    supervised_path_read(supervised->error_path, "MUSTER_ERROR_FILE");
    supervised_path_read(supervised->torch_path, "TORCHELASTIC_ERROR_FILE");
    supervised_path_read(supervised->life_path, "MUSTER_LIFE_FILE");
    supervised->life_fd = -1;
    supervised->why[0] = '\0';
    supervised->started = false;
    atomic_init(&supervised->told, false);
}

/* --- the life file ---------------------------------------------------------------------------- */

/* A record lock: it belongs to the process, so a forked child neither has it nor keeps it. */
static bool supervised_lock_take(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &lock) == 0;
}

void supervised_joins(struct supervised *supervised, const struct supervised_facts *facts)
{
    char text[FS_PATH_MAX];
    int size, fd, taken_by = atomic_load(&life_pid), self = (int)getpid();

    if (supervised->life_path[0] == '\0' || taken_by == self ||
        !atomic_compare_exchange_strong(&life_pid, &taken_by, self))
        return;
    size = snprintf(text, sizeof text, "muster-life 1\n%016" PRIx64 "\n%d\n%s\n%s\n",
                    facts->incarnation, facts->rank, facts->job, facts->broker);
    fd = open(supervised->life_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* Locked by another: a process beside us, of the same rank's program, is the node. */
    if (fd >= 0 && size > 0 && size < (int)sizeof text && supervised_lock_take(fd) &&
        ftruncate(fd, 0) == 0 && fs_write_all(fd, text, (size_t)size) == 0) {
        supervised->life_fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
    atomic_store(&life_pid, 0);
}

void supervised_starts(struct supervised *supervised)
{
    static const char line[] = "started\n";

    if (supervised->started || supervised->life_fd < 0)
        return;
    supervised->started = true;
    if (fs_write_all(supervised->life_fd, line, sizeof line - 1) != 0)
        return; /* it is done without */
}

void supervised_says(struct supervised *supervised, const char *why)
{
    snprintf(supervised->why, sizeof supervised->why, "%s", why);
    for (char *c = supervised->why; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

void supervised_finished(struct supervised *supervised)
{
    supervised->finished = true;
}

static void supervised_write_why(const struct supervised *supervised)
{
    char text[sizeof supervised->why + 32];
    const char *head = supervised->finished ? "muster-finished 1" : "muster-left 1";
    const char *end = supervised->why[0] != '\0' ? "\n" : "";
    int size = snprintf(text, sizeof text, "%s\n%s%s", head, supervised->why, end);

    if ((supervised->why[0] == '\0' && !supervised->finished) ||
        lseek(supervised->life_fd, 0, SEEK_SET) != 0)
        return;
    if (fs_write_all(supervised->life_fd, text, (size_t)size) != 0 &&
        ftruncate(supervised->life_fd, 0) != 0)
        return; /* it is done without */
}

void supervised_alone(struct supervised *supervised)
{
    if (supervised->life_fd < 0)
        return;
    supervised->started = true; /* no line more: unlocked and without a life in it is "left" */
    if (ftruncate(supervised->life_fd, 0) != 0)
        supervised_leaves(supervised);
}

void supervised_leaves(struct supervised *supervised)
{
    if (supervised == NULL || supervised->life_path[0] == '\0' || supervised->life_fd < 0)
        return;
    /* Emptied first: unlocked and without a life in it is "left". */
    if (ftruncate(supervised->life_fd, 0) == 0) {
        supervised_write_why(supervised);
        close(supervised->life_fd);
    }
    supervised->life_fd = -1;
    atomic_store(&life_pid, 0);
}

/* --- the error file --------------------------------------------------------------------------- */

static json_t *supervised_error_json(const struct supervised_facts *facts,
                                     const struct muster_error *error, int64_t unix_ms)
{
    char incarnation[17], seconds[24];
    const char *text = error->text;

    snprintf(incarnation, sizeof incarnation, "%016" PRIx64, facts->incarnation);
    snprintf(seconds, sizeof seconds, "%" PRId64, unix_ms / 1000);
    return json_pack("{s:i, s:s, s:s, s:i, s:i, s:s, s:i, s:I, s:s, s:s, s:i, s:I, s:i, s:s, s:I, "
                     "s:{s:s, s:i, s:{s:s, s:s}}}",
                     "schema_version", 1, "job", facts->job, "role", facts->role, "rank",
                     facts->rank, "world_size", facts->world_size, "host", facts->host, "pid",
                     (int)getpid(), "generation", (json_int_t)facts->generation, "incarnation",
                     incarnation, "status", muster_status_name(error->status), "code", error->code,
                     "step", (json_int_t)error->step, "error_rank",
                     error->rank >= 0 ? error->rank : facts->rank, "text", text, "unix_ms",
                     (json_int_t)unix_ms, "message", "message", text, "errorCode", error->code,
                     "extraInfo", "py_callstack", text, "timestamp", seconds);
}

/* Writes the file whole or not at all. `replace` false: an existing file stays as it is. */
static void supervised_put(const char *path, const char *text, size_t size, bool replace)
{
    char temporary[FS_PATH_MAX];
    int fd, length;

    if (path[0] == '\0')
        return;
    length = snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    if (length >= (int)sizeof temporary)
        return;
    unlink(temporary); /* of a process that had our number and died here */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (fs_write_all(fd, text, size) == 0) { /* no fsync: it is for a reader on this host, now */
        int failed = replace ? rename(temporary, path) : link(temporary, path);

        (void)failed; /* it is done without */
    }
    close(fd);
    unlink(temporary);
}

void supervised_error(struct supervised *supervised, const struct supervised_facts *facts,
                      const struct muster_error *error)
{
    json_t *document;
    char *text;

    if (supervised->error_path[0] == '\0' && supervised->torch_path[0] == '\0')
        return;
    if (atomic_exchange(&supervised->told, true))
        return;
    document = supervised_error_json(facts, error, clock_ms(CLOCK_REALTIME));
    text = document != NULL ? json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(document);
    if (text == NULL)
        return;
    supervised_put(supervised->error_path, text, strlen(text), true);
    supervised_put(supervised->torch_path, text, strlen(text), false);
    free(text);
}
