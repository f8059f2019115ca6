/* command - see command.h. */
#include "node/notice/command.h"

#include "node/notice/base/child.h"
#include "node/notice/line.h"
#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
    char text[SOURCE_ARGUMENT_MAX + 1];
    int64_t period_ms, next_boot_ms, last_ok_boot_ms;
    struct child child;
    enum source_state state;
    char why[SOURCE_TEXT_MAX + 1];
};

static enum muster_status command_open(const struct source_config *config, void **ret_self,
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
    child_init(&command->child, COMMAND_LIMIT_MS);
    command->last_ok_boot_ms = -1;
    command->state = SOURCE_PROBING;
    *ret_self = command;
    return MUSTER_OK;
}

static void command_trouble(struct command *command, const char *format, long number)
{
    command->state = SOURCE_DEGRADED;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command->why, sizeof command->why, format, number);
#pragma GCC diagnostic pop
}

static void command_start(struct command *command, int64_t now_boot_ms)
{
    int failed = child_start(&command->child, command->text, now_boot_ms);

    command->next_boot_ms = now_boot_ms + command->period_ms;
    if (failed != 0)
        command_trouble(command, "the command could not be started: errno %ld", failed);
}

static void command_say(struct command *command, const struct notice_now *now,
                        const struct source_out *out)
{
    struct notice_set *set = calloc(1, sizeof *set);
    char word[LINE_WORD_MAX + 1];
    struct notice_item item;
    enum line_sense sense;

    if (set == NULL)
        return;
    sense = line_parse(command->child.output.bytes, command->child.output.size, now, now->unix_ms,
                       &item, word);
    line_describe(sense, "it said", word, command->why);
    if (sense >= LINE_NO_TIME)
        command->state = SOURCE_DEGRADED;
    snprintf(item.key, sizeof item.key, "command");
    if (item.text[0] != '\0')
        notice_set_add(set, &item);
    out->say(out->arg, 0, set);
    free(set);
}

static void command_finish(struct command *command, long code, const struct notice_now *now,
                           const struct source_out *out)
{
    if (code == 0) {
        command->state = SOURCE_HEALTHY;
        command->why[0] = '\0';
        command->last_ok_boot_ms = now->boot_ms;
        command_say(command, now, out);
    } else if (code > 0)
        command_trouble(command,
                        "the command exited with %ld (to say that there is none: exit with 0 and "
                        "print nothing)",
                        code);
    else
        command_trouble(command, "the command was killed", 0);
}

static void command_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct command *command = self;
    long code;

    if (command->child.group == 0 && now->boot_ms >= command->next_boot_ms)
        command_start(command, now->boot_ms);
    switch (child_look(&command->child, now->boot_ms, &code)) {
    case CHILD_ENDED:
        command_finish(command, code, now, out);
        break;
    case CHILD_LATE:
        command_trouble(command, "the command did not end within %ld s and was killed",
                        COMMAND_LIMIT_MS / 1000);
        break;
    case CHILD_NONE:
    case CHILD_RUNS:
        break;
    }
}

static size_t command_fds(const void *self, struct pollfd ret_fds[SOURCE_FDS_MAX])
{
    return child_fds(&((const struct command *)self)->child, ret_fds);
}

static int64_t command_wakeup_boot_ms(const void *self)
{
    const struct command *command = self;

    return command->child.group == 0 ? command->next_boot_ms
                                     : child_wakeup_boot_ms(&command->child);
}

static void command_status(const void *self, struct source_status *ret_status)
{
    const struct command *command = self;

    ret_status->state = command->state;
    ret_status->last_ok_boot_ms = command->last_ok_boot_ms;
    ret_status->retry_boot_ms = command->next_boot_ms;
    memcpy(ret_status->text, command->why, sizeof command->why);
}

static void command_close(void *self)
{
    struct command *command = self;

    child_end(&command->child);
    free(command);
}

const struct source_ops command_ops = {.open = command_open,
                                       .run = command_run,
                                       .fds = command_fds,
                                       .wakeup_boot_ms = command_wakeup_boot_ms,
                                       .status = command_status,
                                       .close = command_close};
