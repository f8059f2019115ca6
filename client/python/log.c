/* log - sends lines of the library's log to Python's logging. Part of muster._native, as shield.c.
 * The library logs on threads of its own, on which no Python ever runs. So each line is a message
 * on a socket pair, and a Python thread reads it (muster/_log.py).
 * The pair is never closed, because a thread that outlives close may still write. No writer waits:
 * a line that finds the socket full is lost, and counted. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

static atomic_int log_socket = -1; /* this end of the pair */
static atomic_int log_lost;

static void muster_py_log(int level, const char *text, void *arg)
{
    char line[MUSTER_ERROR_TEXT_MAX + 1];
    size_t size = strnlen(text, sizeof line - 1);
    int saved_errno = errno;

    (void)arg;
    line[0] = (char)('0' + level);
    memcpy(line + 1, text, size);
    if (send(atomic_load(&log_socket), line, size + 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        atomic_fetch_add(&log_lost, 1);
    errno = saved_errno;
}

static void muster_py_log_to(int fd)
{
    atomic_store(&log_socket, fd);
}

/* Lines that were lost since the last call. */
static int muster_py_log_lost(void)
{
    return atomic_exchange(&log_lost, 0);
}
