/* command - see command.h. */
#include "node/notice/command.h"

#include "node/notice/line.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The command sees neither the descriptor nor the variable; its exit code goes where nobody else reads. */
static const char script[] = "sh -c \"$0\" 3>&- </dev/null; echo $? >&3";

struct pipe_end {
    int fd; /* -1: closed */
    char bytes[COMMAND_OUTPUT_MAX];
    size_t size;
};

struct command {
    char text[SOURCE_ARGUMENT_MAX + 1];
    int64_t period_ms, started_boot_ms, next_boot_ms, last_ok_boot_ms;
    pid_t group; /* 0: does not run */
    struct pipe_end output, code;
    enum source_state state;
    char why[SOURCE_TEXT_MAX + 1];
};

static enum muster_status open_command(const struct source_config *config, void **ret_self,
                                       struct muster_error *err)
{
    struct command *command;

    if (config->argument[0] == '\0' || strlen(config->argument) > SOURCE_ARGUMENT_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "notice source command: give command:COMMAND of at most %d bytes",
                         SOURCE_ARGUMENT_MAX);
    command = calloc(1, sizeof *command);
    if (command == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for notice source command; free some");
    snprintf(command->text, sizeof command->text, "%s", config->argument);
    command->period_ms = config->period_ms > 0 ? config->period_ms : COMMAND_PERIOD_MS;
    command->output.fd = command->code.fd = -1;
    command->last_ok_boot_ms = -1;
    command->state = SOURCE_PROBING;
    *ret_self = command;
    return MUSTER_OK;
}

static void trouble(struct command *command, const char *format, long number)
{
    command->state = SOURCE_DEGRADED;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command->why, sizeof command->why, format, number);
#pragma GCC diagnostic pop
}

static void close_end(struct pipe_end *end)
{
    if (end->fd >= 0)
        close(end->fd);
    end->fd = -1;
}

/* The child: default dispositions, nothing blocked, no descriptor of the host's. */
static int spawn(struct command *command, int output, int code)
{
    char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, command->text, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int failed;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, code, 3);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    failed = posix_spawn(&command->group, "/bin/sh", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0)
        command->group = 0;
    return failed;
}

/* A descriptor that is not below 4: what the child's are put on must not be one that is yet to be put. */
static bool make_pipe(int ret_ends[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC) != 0)
        return false;
    ret_ends[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 10);
    ret_ends[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 10);
    close(low[0]);
    close(low[1]);
    if (ret_ends[0] >= 0 && ret_ends[1] >= 0 && fcntl(ret_ends[0], F_SETFL, O_NONBLOCK) == 0)
        return true;
    close(ret_ends[0]);
    close(ret_ends[1]);
    return false;
}

static void start(struct command *command, int64_t now_boot_ms)
{
    int output[2] = {-1, -1}, code[2] = {-1, -1}, failed = EMFILE;

    command->started_boot_ms = now_boot_ms;
    command->next_boot_ms = now_boot_ms + command->period_ms;
    if (make_pipe(output) && make_pipe(code))
        failed = spawn(command, output[1], code[1]);
    if (output[1] >= 0)
        close(output[1]);
    if (code[1] >= 0)
        close(code[1]);
    command->output = (struct pipe_end){.fd = output[0]};
    command->code = (struct pipe_end){.fd = code[0]};
    if (failed == 0)
        return;
    close_end(&command->output);
    close_end(&command->code);
    trouble(command, "the command could not be started: errno %ld", failed);
}

/* False: no more will come. What is beyond the cap is read and left out. */
static bool take(struct pipe_end *end)
{
    char spare[512];

    for (;;) {
        size_t room = sizeof end->bytes - end->size;
        ssize_t got = read(end->fd, room > 0 ? end->bytes + end->size : spare,
                           room > 0 ? room : sizeof spare);

        if (got > 0 && room > 0)
            end->size += (size_t)got;
        if (got == 0)
            return false;
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
    }
}

/* The leader is our child until it is waited for, so that the group's number is nobody else's. */
static void end_group(struct command *command)
{
    kill(-command->group, SIGKILL);
    waitpid(command->group, NULL, 0); /* killed: at once; or the host has done it */
    command->group = 0;
    close_end(&command->output);
    close_end(&command->code);
}

static void say(struct command *command, const struct notice_now *now, const struct source_out *out)
{
    struct notice_set *set = calloc(1, sizeof *set);
    struct notice_item item;

    if (set == NULL)
        return;
    line_parse(command->output.bytes, command->output.size, now, now->unix_ms, &item);
    snprintf(item.key, sizeof item.key, "command");
    if (item.text[0] != '\0')
        notice_set_add(set, &item);
    out->say(out->arg, 0, set);
    free(set);
}

static void finish(struct command *command, const struct notice_now *now,
                   const struct source_out *out)
{
    long code = -1;

    if (command->code.size > 0 && command->code.size < 8) {
        command->code.bytes[command->code.size] = '\0';
        code = strtol(command->code.bytes, NULL, 10);
    }
    if (code == 0) {
        command->state = SOURCE_HEALTHY;
        command->why[0] = '\0';
        command->last_ok_boot_ms = now->boot_ms;
        say(command, now, out);
    } else if (code > 0)
        trouble(command, "the command exited with %ld", code);
    else
        trouble(command, "the command was killed", 0);
}

static void run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct command *command = self;
    bool ended;

    if (command->group == 0 && now->boot_ms >= command->next_boot_ms)
        start(command, now->boot_ms);
    if (command->group == 0)
        return;
    ended = !take(&command->code) ||
            (command->code.size > 0 && command->code.bytes[command->code.size - 1] == '\n');
    if (command->output.fd >= 0 && !take(&command->output)) /* what was written before the code */
        close_end(&command->output);
    if (ended) {
        finish(command, now, out);
        end_group(command);
    } else if (now->boot_ms >= command->started_boot_ms + COMMAND_LIMIT_MS) {
        trouble(command, "the command did not end within %ld s and was killed",
                COMMAND_LIMIT_MS / 1000);
        end_group(command);
    }
}

static size_t fds(const void *self, struct pollfd ret_fds[SOURCE_FDS_MAX])
{
    const struct command *command = self;

    if (command->group == 0)
        return 0;
    ret_fds[0] = (struct pollfd){.fd = command->code.fd, .events = POLLIN};
    if (command->output.fd < 0)
        return 1;
    ret_fds[1] = (struct pollfd){.fd = command->output.fd, .events = POLLIN};
    return 2;
}

static int64_t wakeup_boot_ms(const void *self)
{
    const struct command *command = self;

    return command->group == 0 ? command->next_boot_ms
                               : command->started_boot_ms + COMMAND_LIMIT_MS;
}

static void status(const void *self, struct source_status *ret_status)
{
    const struct command *command = self;

    ret_status->state = command->state;
    ret_status->last_ok_boot_ms = command->last_ok_boot_ms;
    ret_status->retry_boot_ms = command->next_boot_ms;
    memcpy(ret_status->text, command->why, sizeof command->why);
}

static void close_command(void *self)
{
    struct command *command = self;

    if (command->group != 0)
        end_group(command);
    free(command);
}

const struct source_ops command_ops = {.open = open_command,
                                       .run = run,
                                       .fds = fds,
                                       .wakeup_boot_ms = wakeup_boot_ms,
                                       .status = status,
                                       .close = close_command,
                                       .own_thread = true};
