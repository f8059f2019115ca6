#include "node/link_key.h"

#include "node/clock.h"
#include "schema/error.h"
#include "schema/keys/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

static enum muster_status link_key_text(const char *path, char ret_text[KEY_FILE_BYTES_MAX],
                                        struct muster_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum muster_status status = MUSTER_OK;
    struct stat info;
    ssize_t got = -1;

    if (fd < 0 || fstat(fd, &info) != 0 || (got = read(fd, ret_text, KEY_FILE_BYTES_MAX - 1)) < 0)
        status = error_set_code(err, MUSTER_E_IO, errno,
                                "cannot read key file %s: %s; correct " LINK_KEY_VARIABLE, path,
                                strerror(errno));
    else if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        status = error_set(err, MUSTER_E_AUTH,
                           "other users can read key file %s: `chmod 600 %s`, and make a new key "
                           "if one of them has",
                           path, path);
    if (fd >= 0)
        close(fd);
    ret_text[got > 0 ? got : 0] = '\0';
    return status;
}

enum muster_status link_key_read(const char *path, struct key_file *ret_file,
                                 struct muster_error *err)
{
    char text[KEY_FILE_BYTES_MAX];
    struct muster_error why;
    enum muster_status status = link_key_text(path, text, err);

    if (status == MUSTER_OK) {
        status = key_file_read(text, ret_file, &why);
        if (status != MUSTER_OK)
            error_set(err, status, "key file %s: %s; copy it again from where it was made", path,
                      why.text);
    }
    secret_wipe(text, sizeof text);
    return status;
}

static bool link_key_set(void *socket, const struct key_file *file)
{
    const size_t size = KEY_TEXT_BYTES + 1;

    return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, file->broker_key, size) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, file->public_key, size) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, file->secret_key, size) == 0;
}

const char *link_key_path(void)
{
    const char *path = getenv(LINK_KEY_VARIABLE);

    return path != NULL && path[0] != '\0' ? path : NULL;
}

enum muster_status link_key_signer(char ret_signer[SIGNER_MAX + 1], struct muster_error *err)
{
    const char *path = link_key_path();
    struct key_file file = {.signer = ""};
    enum muster_status status = path != NULL ? link_key_read(path, &file, err) : MUSTER_OK;

    if (status == MUSTER_OK)
        memcpy(ret_signer, file.signer, sizeof file.signer);
    secret_wipe(&file, sizeof file);
    return status;
}

enum muster_status link_key_use(void *socket, const char *endpoint, const char *path,
                                struct muster_error *err)
{
    enum muster_status status;
    struct key_file file;

    if (path == NULL || strncmp(endpoint, "tcp://", strlen("tcp://")) != 0)
        return MUSTER_OK;
    status = link_key_read(path, &file, err);
    if (status == MUSTER_OK && file.expires_unix_ms != 0 &&
        clock_ms(CLOCK_REALTIME) >= file.expires_unix_ms)
        status =
            error_set(err, MUSTER_E_AUTH,
                      "key %s in %s has expired: ask whoever runs the broker for a new one, or "
                      "set this host's clock if it is wrong",
                      file.name, path);
    if (status == MUSTER_OK && !link_key_set(socket, &file))
        status = error_set_code(err, MUSTER_E_UNSUPPORTED, zmq_errno(),
                                "this libzmq cannot use key file %s: %s; install one with CURVE, "
                                "as Debian's",
                                path, zmq_strerror(zmq_errno()));
    secret_wipe(&file, sizeof file);
    return status;
}
