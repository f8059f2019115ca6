/* doctor_host - what this host's own files and network tell, for `muster doctor`. */
#include "tools/setup/doctor.h"

#include "tools/render.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define DOCTOR_CONNECT_MS 2000

/* Does what a save does: a new directory, a synced file, its final name. Returns an errno, 0 = it
 * worked.
 */
static int doctor_try_writing(const char *place)
{
    char made[PATH_MAX], part[PATH_MAX + 8], final[PATH_MAX + 8];
    int fd, code = 0;

    if (snprintf(made, sizeof made, "%s/.muster-doctor-XXXXXX", place) >= (int)sizeof made)
        return ENAMETOOLONG;
    if (mkdtemp(made) == NULL)
        return errno;
    snprintf(part, sizeof part, "%s/part", made);
    snprintf(final, sizeof final, "%s/final", made);
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "muster", 6) != 6 || fsync(fd) != 0 || rename(part, final) != 0)
        code = errno;
    if (fd >= 0)
        close(fd);
    unlink(part);
    unlink(final);
    rmdir(made);
    return code;
}

/* The directory itself, or the nearest above it that is there. */
static void doctor_nearest(const char *directory, char ret_place[PATH_MAX])
{
    struct stat info;

    snprintf(ret_place, PATH_MAX, "%s", directory);
    while (stat(ret_place, &info) != 0 && strrchr(ret_place, '/') != NULL) {
        char *slash = strrchr(ret_place, '/');

        slash[slash == ret_place] = '\0';
        if (slash == ret_place)
            return;
    }
    if (strchr(ret_place, '/') == NULL && stat(ret_place, &info) != 0)
        snprintf(ret_place, PATH_MAX, ".");
}

/* NULL: a file system that other hosts may share. */
static const char *doctor_own_disk(const struct statfs *info)
{
    switch ((unsigned long)info->f_type) {
    case TMPFS_MAGIC:
        return "tmpfs";
    case EXT4_SUPER_MAGIC:
        return "ext4";
    case XFS_SUPER_MAGIC:
        return "xfs";
    case BTRFS_SUPER_MAGIC:
        return "btrfs";
    case OVERLAYFS_SUPER_MAGIC:
        return "overlay";
    default:
        return NULL;
    }
}

void doctor_directory(struct doctor *doctor, const char *directory, bool several_hosts)
{
    char place[PATH_MAX];
    struct statfs info;
    const char *own = NULL, *later;
    struct shown room = {"?"};
    int code;

    doctor_nearest(directory, place);
    code = doctor_try_writing(place);
    if (code != 0) {
        doctor_say(doctor, "directory", "give a directory that this user may write, with room",
                   "%s cannot hold a checkpoint: %s", place, strerror(code));
        return;
    }
    if (statfs(place, &info) == 0) {
        room = render_bytes((int64_t)info.f_bavail * (int64_t)info.f_bsize);
        own = doctor_own_disk(&info);
    }
    later = strcmp(place, directory) == 0 ? "" : "; it will be made";
    if (own != NULL && strcmp(own, "tmpfs") == 0)
        doctor_say(doctor, "directory", "choose a directory on a disk",
                   "%s is in memory (tmpfs): its checkpoints are gone with this machine",
                   directory);
    else if (own != NULL && several_hosts)
        doctor_say(doctor, "directory", "choose a directory on a file system that all hosts share",
                   "%s is on a disk of this host (%s), and the job has ranks on others", directory,
                   own);
    else
        doctor_say(doctor, "directory", "", "%s, %s free, %s%s", directory, room.text,
                   own == NULL ? "on a file system that hosts may share" : own, later);
}

/* --- the network ------------------------------------------------------------------------------ */

static int doctor_try_address(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int code = 0;

    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0)
        code = errno;
    if (code == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        socklen_t size = sizeof code;

        if (poll(&wait, 1, DOCTOR_CONNECT_MS) != 1)
            code = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
            code = errno;
    }
    close(fd);
    return code;
}

bool doctor_reaches(const char *host, const char *port, const char **ret_why)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, port, &want, &found), failed = 0;

    if (code != 0) {
        *ret_why = gai_strerror(code);
        return false;
    }
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        failed = doctor_try_address(at);
        if (failed == 0)
            break;
    }
    freeaddrinfo(found);
    *ret_why = strerror(failed);
    return failed == 0;
}
