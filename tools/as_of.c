/* as_of - if a database's musterd is dead, its records are as old as that death; this says so. */
#include "tools/as_of.h"
#include "tools/render.h"
#include "tools/tool.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is a pid of this pid namespace one of ours? If that is not known, the answer is yes. */
static bool as_of_is_our_space(const char *space)
{
    char ours[64] = "";
    size_t length = strcspn(space, "\n");

    return length == 0 || readlink("/proc/self/ns/pid", ours, sizeof ours - 1) <= 0 ||
           (strlen(ours) == length && memcmp(ours, space, length) == 0);
}

/* A musterd writes its pid and whose pids these are beside its database; a lock on that is not
 * tried, for it would keep one from starting. */
static bool as_of_is_dead(const char *database)
{
    char path[PATH_MAX], text[128] = "", *end;
    FILE *file;
    long pid;

    if (snprintf(path, sizeof path, "%s.lock", database) >= (int)sizeof path)
        return false;
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    fclose(file);
    pid = strtol(text, &end, 10);
    return pid > 0 && as_of_is_our_space(end + (*end == ' ')) && kill((pid_t)pid, 0) != 0 &&
           errno == ESRCH;
}

bool tool_broker_is_dead(const struct tool *tool)
{
    return muster_client_is_database(tool->client) && as_of_is_dead(tool->address);
}

static int64_t as_of_written_unix_ms(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0
               ? (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000
               : 0;
}

/* Of a dead broker's database: what stands there as running may have ended long ago. */
void tool_print_as_of(struct tool *tool)
{
    char wal[PATH_MAX];
    int64_t last_ms = as_of_written_unix_ms(tool->address), wal_ms;

    if (!tool_broker_is_dead(tool) ||
        snprintf(wal, sizeof wal, "%s-wal", tool->address) >= (int)sizeof wal)
        return;
    wal_ms = as_of_written_unix_ms(wal);
    fprintf(tool->out, "as of %s: no musterd runs on %s now, and what is running may have ended\n",
            render_age(wal_ms > last_ms ? wal_ms : last_ms, tool->now_unix_ms).text, tool->address);
}
