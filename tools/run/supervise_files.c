/* supervise_files - error files and life files of the ranks; see supervise_files.h. */
#include "tools/run/supervise_files.h"

#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERROR_BYTES_MAX 65536
#define LIFE_BYTES_MAX 8192

static bool supervise_files_is_set(const char *value)
{
    return value != NULL && value[0] == '/';
}

enum muster_status files_open(struct files *ret, const char *output, struct muster_error *err)
{
    const char *parent = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");
    char template[FILES_PATH_MAX];

    *ret = (struct files){.own = ""};
    if (!supervise_files_is_set(parent) || access(parent, W_OK) != 0)
        parent = supervise_files_is_set(temporary) ? temporary : "/tmp";
    if (snprintf(template, sizeof template, "%s/muster-run.XXXXXX", parent) >=
            (int)sizeof template ||
        (output != NULL && strlen(output) >= FILES_PATH_MAX))
        return error_set(err, MUSTER_E_ARGUMENT, "the path %.200s... is too long", parent);
    if (mkdtemp(template) == NULL)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot make a directory in %s: %s", parent,
                              strerror(errno));
    memcpy(ret->own, template, sizeof template);
    if (output == NULL)
        memcpy(ret->errors, template, sizeof template);
    else if (realpath(output, ret->errors) == NULL)
        ret->errors[0] = '\0';
    return MUSTER_OK;
}

static void supervise_files_path_of(const char *directory, int rank, const char *ending,
                                    char ret_path[FILES_PATH_MAX])
{
    if (directory[0] == '\0' ||
        snprintf(ret_path, FILES_PATH_MAX, "%s/%d.%s", directory, rank, ending) >= FILES_PATH_MAX)
        ret_path[0] = '\0';
}

void files_error_path(const struct files *files, int rank, char ret_path[FILES_PATH_MAX])
{
    supervise_files_path_of(files->errors, rank, "error.json", ret_path);
}

void files_life_path(const struct files *files, int rank, char ret_path[FILES_PATH_MAX])
{
    supervise_files_path_of(files->own, rank, "life", ret_path);
}

void files_forget(const struct files *files, int rank)
{
    char path[FILES_PATH_MAX];

    files_error_path(files, rank, path);
    unlink(path);
    files_life_path(files, rank, path);
    unlink(path);
}

void files_close(struct files *files, int first_rank, int rank_count)
{
    char path[FILES_PATH_MAX];

    if (files->own[0] == '\0')
        return;
    for (int i = 0; i < rank_count; i++) {
        files_life_path(files, first_rank + i, path);
        unlink(path);
        supervise_files_path_of(files->own, first_rank + i, "error.json",
                                path); /* that of --output stays */
        unlink(path);
    }
    rmdir(files->own);
    files->own[0] = '\0';
}

/* The whole file, at most max bytes; a NUL follows. NULL: it is not there, not a file, or too long.
 * Owned. */
static char *supervise_files_small_file(int fd, size_t max, size_t *ret_size)
{
    struct stat info;
    char *bytes;
    ssize_t got;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        (size_t)info.st_size > max)
        return NULL;
    bytes = malloc((size_t)info.st_size + 1);
    if (bytes == NULL)
        return NULL;
    got = pread(fd, bytes, (size_t)info.st_size, 0);
    if (got != info.st_size) {
        free(bytes);
        return NULL;
    }
    bytes[got] = '\0';
    *ret_size = (size_t)got;
    return bytes;
}

/* --- error files ------------------------------------------------------------------------------ */

static int64_t supervise_files_number_of(const json_t *document, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(document, key);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* One line for a terminal. */
static void supervise_files_text_clean(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

static void supervise_files_text_of(const json_t *document, const char *key, char *text,
                                    size_t size)
{
    const char *value = json_string_value(json_object_get(document, key));

    snprintf(text, size, "%s", value != NULL ? value : "");
    supervise_files_text_clean(text);
}

static bool supervise_files_error_parse(const char *bytes, size_t size, int rank,
                                        struct files_error *ret)
{
    json_t *document = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL);

    if (!json_is_object(document)) {
        json_decref(document);
        return false;
    }
    *ret = (struct files_error){
        .rank = rank,
        .error_rank = (int)supervise_files_number_of(document, "error_rank", rank),
        .code = (int)supervise_files_number_of(document, "code", 0),
        .step = supervise_files_number_of(document, "step", -1),
        .unix_ms = supervise_files_number_of(document, "unix_ms", 0),
    };
    supervise_files_text_of(document, "status", ret->status, sizeof ret->status);
    supervise_files_text_of(document, "host", ret->host, sizeof ret->host);
    supervise_files_text_of(document, "text", ret->text, sizeof ret->text);
    json_decref(document);
    return ret->status[0] != '\0';
}

bool files_error_read(const struct files *files, int rank, struct files_error *ret)
{
    char path[FILES_PATH_MAX];
    bool known = false;
    size_t size;
    char *bytes;
    int fd;

    files_error_path(files, rank, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bytes = supervise_files_small_file(fd, ERROR_BYTES_MAX, &size);
    close(fd);
    if (bytes != NULL)
        known = supervise_files_error_parse(bytes, size, rank, ret);
    free(bytes);
    return known;
}

/* --- life files ------------------------------------------------------------------------------- */

static bool supervise_files_line_take(char **at, char *text, size_t size)
{
    char *line = *at, *end = strchr(line, '\n');

    if (end == NULL || (size_t)(end - line) >= size)
        return false;
    memcpy(text, line, (size_t)(end - line));
    text[end - line] = '\0';
    *at = end + 1;
    return text[0] != '\0';
}

static bool supervise_files_life_parse(char *bytes, struct files_life *ret)
{
    char head[32], rank[16];
    char *end;

    if (!supervise_files_line_take(&bytes, head, sizeof head) ||
        strcmp(head, "muster-life 1") != 0 ||
        !supervise_files_line_take(&bytes, ret->incarnation, sizeof ret->incarnation) ||
        !supervise_files_line_take(&bytes, rank, sizeof rank) ||
        !supervise_files_line_take(&bytes, ret->job, sizeof ret->job) ||
        !supervise_files_line_take(&bytes, ret->broker, sizeof ret->broker))
        return false;
    ret->rank = (int)strtol(rank, &end, 10);
    return *end == '\0';
}

/* The lock is the process's: nobody holds it when the process is gone, and not before. */
static bool supervise_files_lock_is_free(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* The text of a life file whose process is gone; owned. NULL: there is none, or the process
 * lives. */
static char *supervise_files_life_bytes(const struct files *files, int rank)
{
    char path[FILES_PATH_MAX];
    char *bytes = NULL;
    size_t size;
    int fd;

    files_life_path(files, rank, path);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    if (supervise_files_lock_is_free(fd))
        bytes = supervise_files_small_file(fd, LIFE_BYTES_MAX, &size);
    close(fd);
    return bytes;
}

bool files_not_started(const struct files *files, int rank)
{
    char path[FILES_PATH_MAX];
    struct files_life life;
    char *bytes;
    size_t size;
    bool waits;
    int fd;

    files_life_path(files, rank, path);
    fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0)
        return path[0] != '\0' && errno == ENOENT;
    bytes = supervise_files_small_file(fd, LIFE_BYTES_MAX, &size);
    close(fd);
    waits = bytes != NULL && strstr(bytes, "\nstarted\n") == NULL &&
            supervise_files_life_parse(bytes, &life);
    free(bytes);
    return waits;
}

bool files_life_ended(const struct files *files, int rank, struct files_life *ret)
{
    char *bytes = supervise_files_life_bytes(files, rank);
    bool ended = bytes != NULL && supervise_files_life_parse(bytes, ret);

    free(bytes);
    return ended;
}

#define FINISHED "muster-finished 1\n"
#define LEFT "muster-left 1\n"

bool files_finished(const struct files *files, int rank)
{
    char *bytes = supervise_files_life_bytes(files, rank);
    bool finished = bytes != NULL && strncmp(bytes, FINISHED, strlen(FINISHED)) == 0;

    free(bytes);
    return finished;
}

bool files_left_read(const struct files *files, int rank, char *ret_text, size_t size)
{
    char *bytes = supervise_files_life_bytes(files, rank);
    const char *head =
        bytes != NULL && strncmp(bytes, FINISHED, strlen(FINISHED)) == 0 ? FINISHED : LEFT;
    bool left =
        bytes != NULL && strncmp(bytes, head, strlen(head)) == 0 && bytes[strlen(head)] != '\0';

    if (left) {
        snprintf(ret_text, size, "%.*s", (int)strcspn(bytes + strlen(head), "\n"),
                 bytes + strlen(head));
        supervise_files_text_clean(ret_text);
    }
    free(bytes);
    return left;
}
