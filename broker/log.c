/* log - see log.h.
 *
 * O_NONBLOCK belongs to the open file, which stderr shares with the shell and with others. So a
 * pipe or terminal is opened once more for ourselves, and a socket is asked at each send. Lines are
 * at most PIPE_BUF bytes, so a pipe takes a line whole or not at all. */
#include "broker/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a pipe takes a line whole or not at all");
#define ESCAPE_MAX 5 /* a backslash in JSON: \\xNN */

static enum log_format chosen_format = LOG_FORMAT_TEXT;
static int log_fd = STDERR_FILENO;
static enum { MODE_WRITE, MODE_POLL, MODE_SEND } log_mode = MODE_WRITE;
static unsigned long dropped; /* lines, since the last one that was written */
static const char *const level_names[] = {[LOG_LEVEL_ERROR] = "error",
                                          [LOG_LEVEL_WARNING] = "warning",
                                          [LOG_LEVEL_INFO] = "info",
                                          [LOG_LEVEL_DEBUG] = "debug"};
static enum log_level least = LOG_LEVEL_INFO;

void broker_log_format(enum log_format format)
{
    chosen_format = format;
}

void broker_log_least(enum log_level level)
{
    least = level;
}

bool broker_log_level_named(const char *name, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    return false;
}

static size_t log_escape(char *out, unsigned char byte, bool json)
{
    if (byte < 0x20 || byte > 0x7e)
        return (size_t)sprintf(out, json ? "\\\\x%02x" : "\\x%02x", byte);
    if (byte == '\\' || (json && byte == '"')) {
        out[0] = '\\';
        out[1] = (char)byte;
        return 2;
    }
    out[0] = (char)byte;
    return 1;
}

void broker_log_line(enum log_format format, enum log_level level, long long unix_ms,
                     const char *text, char *line, size_t capacity)
{
    const bool json = format == LOG_FORMAT_JSON;
    const time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    char stamp[32];
    size_t used;

    gmtime_r(&seconds, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    used = (size_t)snprintf(
        line, capacity,
        json ? "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"text\":\"" : "%s.%03dZ %s: ", stamp,
        (int)(unix_ms % 1000), level_names[level]);
    for (; *text != '\0' && used + ESCAPE_MAX + sizeof "\"}" <= capacity; text++)
        used += log_escape(line + used, (unsigned char)*text, json);
    snprintf(line + used, capacity - used, "%s", json ? "\"}" : "");
}

void broker_log_never_waits(void)
{
    struct stat info;
    int fd;

    if (fstat(STDERR_FILENO, &info) != 0 || S_ISREG(info.st_mode))
        return;
    if (S_ISSOCK(info.st_mode)) {
        log_mode = MODE_SEND;
        return;
    }
    fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0)
        log_fd = fd;
    else /* another user's pipe, or no /proc: another writer could still make us wait, a missing
            reader not */
        log_mode = MODE_POLL;
}

/* False: it would have waited. Any other failure is for good, and nobody is left to tell. */
static bool log_write_line(const char *line, size_t length)
{
    struct pollfd item = {.fd = log_fd, .events = POLLOUT};
    ssize_t written;

    if (log_mode == MODE_POLL && poll(&item, 1, 0) == 0)
        return false;
    if (log_mode == MODE_SEND)
        written = send(log_fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    else
        written = write(log_fd, line, length);
    return written >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool log_write_text(enum log_level level, const char *text)
{
    char line[LINE_MAX_BYTES];
    struct timespec now;
    size_t length;

    clock_gettime(CLOCK_REALTIME, &now);
    broker_log_line(chosen_format, level, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000,
                    text, line, sizeof line - 1);
    length = strlen(line);
    line[length++] = '\n';
    return log_write_line(line, length);
}

static bool log_tell_dropped(void)
{
    char text[128];

    snprintf(text, sizeof text, "%lu lines of this log were dropped: nobody read them in time",
             dropped);
    if (dropped > 0 && !log_write_text(LOG_LEVEL_WARNING, text))
        return false;
    dropped = 0;
    return true;
}

void broker_log(enum log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES / 2];
    va_list args;

    if (level > least)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!log_tell_dropped() || !log_write_text(level, text))
        dropped++;
}
