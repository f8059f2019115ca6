/* file - see file.h. */
#include "node/notice/file.h"

#include "node/notice/line.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* IN_CREATE is left out: a file that is created is written first, and then closed. */
#define CHANGES (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)
#define LINE_BYTES 4096

struct file {
    char path[SOURCE_ARGUMENT_MAX + 1];
    char directory[SOURCE_ARGUMENT_MAX + 1];
    int64_t period_ms, next_boot_ms, last_ok_boot_ms;
    int inotify; /* -1: none */
    enum source_state state;
    char text[SOURCE_TEXT_MAX + 1];
};

static enum muster_status file_open(const struct source_config *config, void **ret_self,
                                    struct muster_error *err)
{
    const char *slash = strrchr(config->argument, '/');
    struct file *file;

    if (config->argument[0] != '/' || strlen(config->argument) > SOURCE_ARGUMENT_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "notice source file: \"%.100s\" is no absolute path of at most %d bytes; "
                         "give file:/PATH",
                         config->argument, SOURCE_ARGUMENT_MAX);
    file = calloc(1, sizeof *file);
    if (file == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for notice source file; free some");
    snprintf(file->path, sizeof file->path, "%s", config->argument);
    memcpy(file->directory, file->path, (size_t)(slash - config->argument));
    if (slash == config->argument)
        file->directory[0] = '/';
    file->period_ms = config->period_ms > 0 ? config->period_ms : FILE_PERIOD_MS;
    file->inotify = -1;
    file->last_ok_boot_ms = -1;
    file->state = SOURCE_PROBING;
    *ret_self = file;
    return MUSTER_OK;
}

/* Called again at each look: the directory may come later, or be another one by now. */
static void file_watch_directory(struct file *file)
{
    char events[4096];

    if (file->inotify < 0)
        file->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file->inotify < 0)
        return; /* none left: there is the look each second */
    while (read(file->inotify, events, sizeof events) > 0)
        continue;
    (void)inotify_add_watch(file->inotify, file->directory, CHANGES | IN_ONLYDIR);
}

static void file_trouble(struct file *file, const char *what, int code)
{
    file->state = SOURCE_DEGRADED;
    snprintf(file->text, sizeof file->text, "%.80s: %s: %s", file->path, what, strerror(code));
}

static void file_say(const struct source_out *out, const struct notice_item *item)
{
    struct notice_set *set = calloc(1, sizeof *set);

    if (set == NULL)
        return;
    if (item != NULL)
        notice_set_add(set, item);
    out->say(out->arg, 0, set);
    free(set);
}

#define PATH_SHOWN 100

/* A person who reads the notice far from here has to find the file. */
static void file_name(const char *path, struct notice_item *item)
{
    char text[PATH_MAX + NOTICE_TEXT_MAX + 16];
    size_t length = strlen(path);
    bool says = item->text[0] != '\0';

    if (says && length > PATH_SHOWN) /* its words count more than the beginning of a long path */
        path += length - PATH_SHOWN;
    snprintf(text, sizeof text, "%s%s%s", path, says ? ": " : " is there", item->text);
    notice_text(item->text, text, strlen(text));
}

static void file_say_content(struct file *file, int fd, const struct stat *info,
                             const struct notice_now *now, const struct source_out *out)
{
    int64_t written_ms = (int64_t)info->st_mtim.tv_sec * 1000 + info->st_mtim.tv_nsec / 1000000;
    char bytes[LINE_BYTES];
    ssize_t size = S_ISREG(info->st_mode) ? read(fd, bytes, sizeof bytes) : 0;
    char word[LINE_WORD_MAX + 1];
    struct notice_item item;

    if (size < 0) {
        file_trouble(file, "cannot be read", errno);
        size = 0; /* the file exists nevertheless */
    }
    if (written_ms > now->unix_ms) /* another machine's clock */
        written_ms = now->unix_ms;
    enum line_sense sense = line_parse(bytes, (size_t)size, now, written_ms, &item, word);
    if (file->state == SOURCE_HEALTHY)
        line_describe(sense, file->path, word, file->text);
    if (sense >= LINE_NO_TIME) /* whoever wrote it shall see that it was not understood */
        file->state = SOURCE_DEGRADED;
    snprintf(item.key, sizeof item.key, "file");
    file_name(file->path, &item);
    file_say(out, &item);
}

static void file_look(struct file *file, const struct notice_now *now, const struct source_out *out)
{
    /* O_NONBLOCK: it may be a pipe, which nobody writes to */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code = errno;
    struct stat info;

    file->state = SOURCE_HEALTHY;
    file->text[0] = '\0';
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode))
        file_trouble(file, "is no notice file", EISDIR); /* a wrong path, and no end of anything */
    else if (fd >= 0 && fstat(fd, &info) == 0)
        file_say_content(file, fd, &info, now, out);
    else if (fd < 0 && code == EACCES && stat(file->path, &info) == 0)
        file_say_content(file, fd, &info, now, out);
    else if (fd < 0 && code == ENOENT && stat(file->directory, &info) == 0)
        file_say(out, NULL);
    else
        file_trouble(file, "cannot be looked at", code);
    if (file->state == SOURCE_HEALTHY)
        file->last_ok_boot_ms = now->boot_ms;
    if (fd >= 0)
        close(fd);
}

static void file_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct file *file = self;

    file_watch_directory(file); /* before the look: a change after it is told */
    file_look(file, now, out);
    file->next_boot_ms = now->boot_ms + file->period_ms;
}

static size_t file_fds(const void *self, struct pollfd ret_fds[SOURCE_FDS_MAX])
{
    const struct file *file = self;

    if (file->inotify < 0)
        return 0;
    ret_fds[0] = (struct pollfd){.fd = file->inotify, .events = POLLIN};
    return 1;
}

static int64_t file_wakeup_boot_ms(const void *self)
{
    return ((const struct file *)self)->next_boot_ms;
}

static void file_status(const void *self, struct source_status *ret_status)
{
    const struct file *file = self;

    ret_status->state = file->state;
    ret_status->last_ok_boot_ms = file->last_ok_boot_ms;
    ret_status->retry_boot_ms = file->next_boot_ms;
    memcpy(ret_status->text, file->text, sizeof file->text);
}

static void file_close(void *self)
{
    struct file *file = self;

    if (file->inotify >= 0)
        close(file->inotify);
    free(file);
}

const struct source_ops file_ops = {.open = file_open,
                                    .run = file_run,
                                    .fds = file_fds,
                                    .wakeup_boot_ms = file_wakeup_boot_ms,
                                    .status = file_status,
                                    .close = file_close};
