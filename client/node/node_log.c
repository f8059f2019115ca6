/* node_log - the lines of a node's log: which ones are told, and to whom.
 * Owns: the meaning of MUSTER_LOG, the form of a line on stderr.
 * Never: a line on stderr of a program that takes the log itself. Nothing else of the library
 * prints. */
#include "client/node/node_private.h"

#include "schema/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};
#define LEVEL_NONE (-1)
#define LEVEL_WARNING 1
#define LEVEL_ALL 3

enum muster_status node_log_configure(struct muster_node *node, struct muster_error *err)
{
    const char *wanted = getenv("MUSTER_LOG");

    node->log_level =
        node->options.log != NULL || events_keeps(node->options.events, MUSTER_EVENT_LOG)
            ? LEVEL_ALL
            : LEVEL_WARNING;
    if (wanted == NULL || wanted[0] == '\0')
        return MUSTER_OK;
    node->log_level = LEVEL_NONE;
    for (int i = 0; i <= LEVEL_ALL; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            node->log_level = i;
    if (node->log_level != LEVEL_NONE || strcmp(wanted, "none") == 0)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "MUSTER_LOG is \"%.60s\"; it takes none, error, warning, info or debug",
                     wanted);
}

/* If the reader of stderr is gone, training goes on: a SIGPIPE that our write caused is removed. */
static void node_log_write_line(const char *line, size_t size)
{
    const struct timespec now = {0};
    sigset_t pipe, before, pending;
    bool was_pending;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    if (write(STDERR_FILENO, line, size) < 0 && errno == EPIPE && !was_pending)
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* One write of one line: the ranks of a host share their stderr. */
static void node_log_print_line(const struct muster_node *node, int level, const char *text)
{
    char line[MUSTER_ERROR_TEXT_MAX + 64];
    int used;

    used = snprintf(line, sizeof line - 1, "muster: %s: rank %d: %s", level_names[level],
                    node->rank, text);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    line[used] = '\n';
    node_log_write_line(line, (size_t)used + 1);
}

static void node_log_tell_line(const struct muster_node *node, int level, const char *text)
{
    if (level < 0 || level > node->log_level || level > LEVEL_ALL)
        return;
    if (events_keeps(node->options.events, MUSTER_EVENT_LOG))
        events_put_line(node->options.events, level, text);
    if (node->options.log != NULL)
        node->options.log(level, text, node->options.arg);
    else if (!events_keeps(node->options.events, MUSTER_EVENT_LOG))
        node_log_print_line(node, level, text);
}

void node_log_line(int level, const char *text, void *node)
{
    node_log_tell_line(node, level, text);
}

bool node_logs(const struct muster_node *node)
{
    return node->log_level != LEVEL_NONE;
}

void node_log(const struct muster_node *node, int level, const char *format, ...)
{
    char text[MUSTER_ERROR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    node_log_tell_line(node, level, text);
}
