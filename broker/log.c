/* log - see log.h. */
#include "broker/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define ESCAPE_MAX 5 /* a backslash in JSON: \\xNN */

static enum log_format chosen_format = LOG_FORMAT_TEXT;
static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_INFO] = "info"};

void broker_log_format(enum log_format format)
{
    chosen_format = format;
}

static size_t escape(char *out, unsigned char byte, bool json)
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
        used += escape(line + used, (unsigned char)*text, json);
    snprintf(line + used, capacity - used, "%s", json ? "\"}" : "");
}

void broker_log(enum log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES / 2];
    char line[LINE_MAX_BYTES];
    struct timespec now;
    size_t length;
    ssize_t written;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    clock_gettime(CLOCK_REALTIME, &now);
    broker_log_line(chosen_format, level, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000,
                    text, line, sizeof line - 1);
    length = strlen(line);
    line[length++] = '\n';
    written = write(STDERR_FILENO, line, length);
    (void)written; /* nobody is left to tell */
}
