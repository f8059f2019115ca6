/* paths - see paths.h. */
#include "schema/paths.h"

#include <stdio.h>

bool paths_default_endpoint(unsigned uid, const char *xdg_runtime_dir,
                            char ret_endpoint[ENDPOINT_MAX + 1])
{
    char endpoint[ENDPOINT_MAX + 1];
    int size;

    if (uid == 0)
        size = snprintf(endpoint, sizeof endpoint, "ipc:///run/muster/broker.sock");
    else if (xdg_runtime_dir != NULL && xdg_runtime_dir[0] == '/')
        size = snprintf(endpoint, sizeof endpoint, "ipc://%s/muster/broker.sock", xdg_runtime_dir);
    else
        size = snprintf(endpoint, sizeof endpoint, "ipc:///tmp/muster-%u/broker.sock", uid);
    if (size < 0 || size > ENDPOINT_MAX)
        return false;
    for (int i = 0; i <= size; i++)
        ret_endpoint[i] = endpoint[i];
    return true;
}
