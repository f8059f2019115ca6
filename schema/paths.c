/* paths - see paths.h. */
#include "schema/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool paths_is_absolute(const char *directory)
{
    return directory != NULL && directory[0] == '/'; /* XDG: a relative one is ignored */
}

bool paths_is_postgres(const char *place)
{
    return strncmp(place, "postgresql://", 13) == 0 || strncmp(place, "postgres://", 11) == 0;
}

bool paths_default_endpoint(unsigned uid, const char *xdg_runtime_dir,
                            char ret_endpoint[ENDPOINT_MAX + 1])
{
    char endpoint[ENDPOINT_MAX + 1];
    int size;

    if (uid == 0)
        size = snprintf(endpoint, sizeof endpoint, "ipc:///run/muster/broker.sock");
    else if (paths_is_absolute(xdg_runtime_dir))
        size = snprintf(endpoint, sizeof endpoint, "ipc://%s/muster/broker.sock", xdg_runtime_dir);
    else
        size = snprintf(endpoint, sizeof endpoint, "ipc:///tmp/muster-%u/broker.sock", uid);
    if (size < 0 || size > ENDPOINT_MAX)
        return false;
    for (int i = 0; i <= size; i++)
        ret_endpoint[i] = endpoint[i];
    return true;
}

bool paths_default_db(unsigned uid, const char *xdg_state_home, const char *home,
                      char ret_path[PATH_BYTES_MAX + 1])
{
    char path[PATH_BYTES_MAX + 1];
    int size;

    if (uid == 0)
        size = snprintf(path, sizeof path, "/var/lib/muster/muster.db");
    else if (paths_is_absolute(xdg_state_home))
        size = snprintf(path, sizeof path, "%s/muster/muster.db", xdg_state_home);
    else if (paths_is_absolute(home))
        size = snprintf(path, sizeof path, "%s/.local/state/muster/muster.db", home);
    else
        return false;
    if (size < 0 || size > PATH_BYTES_MAX)
        return false;
    for (int i = 0; i <= size; i++)
        ret_path[i] = path[i];
    return true;
}

const char *paths_under_way(const char *path)
{
    static const char folder[] = "/.muster";
    const size_t length = sizeof folder - 1;
    const char *name = strrchr(path, '/');

    if (name == NULL || (size_t)(name - path) < length ||
        strncmp(name - length, folder, length) != 0)
        return NULL;
    return name - length;
}

int64_t paths_step_offset(const char *path, int64_t step)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    size_t end = strcspn(name, "."), from = end;

    if (paths_under_way(path) != NULL)
        return 0;
    while (from > 0 && name[from - 1] >= '0' && name[from - 1] <= '9')
        from--;
    if (from == end || end - from > 18)
        return 0;
    return strtoll(name + from, NULL, 10) == step - 1 ? -1 : 0;
}

int64_t paths_connect_ms(const char *brokers)
{
    return strchr(brokers, ',') != NULL ? START_GRACE_MS : CONNECT_TIMEOUT_MS;
}
