/* places - where programs are; see setup.h. */
#include "tools/setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool places_try(const char *folder, size_t length, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name) < PATH_MAX &&
           access(path, X_OK) == 0;
}

void setup_self(char ret_path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);

    ret_path[length > 0 ? length : 0] = '\0';
}

/* In the folder of this program. */
static bool places_beside(const char *name, char path[PATH_MAX])
{
    char own[PATH_MAX];
    const char *slash;

    setup_self(own);
    slash = strrchr(own, '/');
    return slash != NULL && places_try(own, (size_t)(slash - own), name, path);
}

bool setup_find(const char *name, char ret_path[PATH_MAX])
{
    const char *at = getenv("PATH");

    if (places_beside(name, ret_path))
        return true;
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");

        if (length > 0 && places_try(at, length, name, ret_path))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}
