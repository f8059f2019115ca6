/* words_ps - see words_ps.h. An exchange: the client sends a head; after the head of a push comes
 * the gradient, after that of a set weights and velocity. The server sends a head; for a pull,
 * weights and velocity follow. Numbers are in the host's order: a Unix socket leads to no other. */
#include "words_ps.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum exchange { PULL = 1, PUSH, SET };

struct head {
    uint64_t step;
    uint64_t count; /* floats of the model: both sides were given the same shape */
    uint32_t part;
    int32_t what; /* of a request an enum exchange, of an answer 0 or a negative errno */
};

/* --- the socket ------------------------------------------------------------------------------- */

static int address_of(const char *path, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof ret_address->sun_path)
        return -ENAMETOOLONG;
    memcpy(ret_address->sun_path, path, strlen(path) + 1);
    return 0;
}

static void bound(int fd, unsigned timeout_ms)
{
    struct timeval limit = {.tv_sec = timeout_ms / 1000,
                            .tv_usec = (int)(timeout_ms % 1000) * 1000};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static int send_all(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t size)
{
    char *at = data;

    while (size > 0) {
        ssize_t got = recv(fd, at, size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

/* --- the server ------------------------------------------------------------------------------- */

int words_ps_open(struct words_ps *ps)
{
    if (ps->parts < 1 || ps->parts > WORDS_PS_PARTS_MAX)
        return -EINVAL;
    ps->gradients = calloc((size_t)ps->parts * ps->model->count, sizeof(float));
    ps->have = 0;
    return ps->gradients != NULL ? 0 : -ENOMEM;
}

void words_ps_close(struct words_ps *ps)
{
    free(ps->gradients);
    ps->gradients = NULL;
}

/* The mean in the parts' order, then the step. */
static void make_step(struct words_ps *ps)
{
    float *mean = ps->gradients;

    for (size_t i = 0; i < ps->model->count; i++) {
        for (uint32_t part = 1; part < ps->parts; part++)
            mean[i] += ps->gradients[part * ps->model->count + i];
        mean[i] /= (float)ps->parts;
    }
    words_model_update(ps->model, mean, ps->rate, ps->momentum);
    ps->step++;
    ps->have = 0;
}

/* A gradient counts only once all of it is here: its sender may die in the middle. */
static int take_push(struct words_ps *ps, int fd, const struct head *head)
{
    size_t size = ps->model->count * sizeof(float);
    float *gradient = malloc(size);
    int code = gradient != NULL ? receive_all(fd, gradient, size) : -ENOMEM;

    if (code == 0 && (head->step > ps->step || head->part >= ps->parts))
        code = -ERANGE;
    if (code == 0 && head->step == ps->step && !(ps->have >> head->part & 1)) {
        memcpy(ps->gradients + head->part * ps->model->count, gradient, size);
        ps->have |= UINT64_C(1) << head->part;
        if (ps->have == UINT64_MAX >> (64 - ps->parts))
            make_step(ps);
    }
    free(gradient);
    return code;
}

static int take_set(struct words_ps *ps, int fd, uint64_t step)
{
    size_t size = ps->model->count * sizeof(float);
    int code = receive_all(fd, ps->model->weights, size);

    if (code == 0)
        code = receive_all(fd, ps->model->velocity, size);
    ps->step = step;
    ps->have = 0;
    return code;
}

static void serve_one(struct words_ps *ps, int fd)
{
    size_t size = ps->model->count * sizeof(float);
    struct head head;
    int what, code;

    bound(fd, ps->timeout_ms);
    if (receive_all(fd, &head, sizeof head) != 0)
        return; /* it died, and comes again if it is still wanted */
    what = head.what;
    code = head.count != ps->model->count ? -EINVAL
           : what == PUSH                 ? take_push(ps, fd, &head)
           : what == SET                  ? take_set(ps, fd, head.step)
                                          : 0;
    head = (struct head){.step = ps->step, .count = ps->model->count, .what = code};
    if (send_all(fd, &head, sizeof head) == 0 && code == 0 && what == PULL &&
        send_all(fd, ps->model->weights, size) == 0)
        send_all(fd, ps->model->velocity, size);
}

int words_ps_serve(struct words_ps *ps, const char *path, int stop_fd)
{
    struct sockaddr_un address;
    struct pollfd wait[2] = {
        {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN},
        {.fd = stop_fd, .events = POLLIN}};
    int code = wait[0].fd < 0 ? -errno : address_of(path, &address);

    if (code == 0) {
        unlink(path); /* a former server's */
        if (bind(wait[0].fd, (struct sockaddr *)&address, sizeof address) != 0 ||
            listen(wait[0].fd, 128) != 0)
            code = -errno;
    }
    while (code == 0 && wait[1].revents == 0) {
        int fd = -1;

        if (poll(wait, 2, -1) > 0 && wait[0].revents != 0)
            fd = accept4(wait[0].fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            serve_one(ps, fd);
            close(fd);
        }
    }
    if (wait[0].fd >= 0)
        close(wait[0].fd);
    return code;
}

/* --- those who ask ---------------------------------------------------------------------------- */

/* If the server is being started, or is busy with others, waits as long as one exchange may
 * take. */
static int connect_to(const char *path, unsigned timeout_ms)
{
    struct sockaddr_un address;
    int code = address_of(path, &address);
    int fd = code == 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

    if (code != 0)
        return code;
    if (fd < 0)
        return -errno;
    bound(fd, timeout_ms);
    for (unsigned waited_ms = 0; connect(fd, (struct sockaddr *)&address, sizeof address) != 0;
         waited_ms += 20) {
        code = -errno;
        if (waited_ms >= timeout_ms || (code != -ENOENT && code != -ECONNREFUSED)) {
            close(fd);
            return code;
        }
        poll(NULL, 0, 20);
    }
    return fd;
}

/* Sends a question with one or two arrays. Returns the connection if the server's answer, which is
 * in head, was good; else a negative errno. */
static int ask(const char *path, unsigned timeout_ms, struct head *head, const float *first,
               const float *second)
{
    size_t size = head->count * sizeof(float);
    int fd = connect_to(path, timeout_ms);
    int code = fd < 0 ? fd : send_all(fd, head, sizeof *head);

    if (code == 0 && first != NULL)
        code = send_all(fd, first, size);
    if (code == 0 && second != NULL)
        code = send_all(fd, second, size);
    if (code == 0)
        code = receive_all(fd, head, sizeof *head);
    if (code == 0)
        code = head->what;
    if (code != 0 && fd >= 0)
        close(fd);
    return code != 0 ? code : fd;
}

static int ask_only(const char *path, unsigned timeout_ms, struct head *head, const float *first,
                    const float *second)
{
    int fd = ask(path, timeout_ms, head, first, second);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

int words_ps_pull(const char *path, unsigned timeout_ms, struct words_model *model,
                  uint64_t *ret_step)
{
    struct head head = {.count = model->count, .what = PULL};
    int fd = ask(path, timeout_ms, &head, NULL, NULL);
    int code;

    if (fd < 0)
        return fd;
    code = receive_all(fd, model->weights, model->count * sizeof(float));
    if (code == 0)
        code = receive_all(fd, model->velocity, model->count * sizeof(float));
    close(fd);
    if (code == 0)
        *ret_step = head.step;
    return code;
}

int words_ps_set(const char *path, unsigned timeout_ms, const struct words_model *model,
                 uint64_t step)
{
    struct head head = {.step = step, .count = model->count, .what = SET};

    return ask_only(path, timeout_ms, &head, model->weights, model->velocity);
}

int words_ps_push(const char *path, unsigned timeout_ms, uint64_t step, uint32_t part,
                  const float *gradient, size_t count)
{
    struct head head = {.step = step, .count = count, .part = part, .what = PUSH};

    return ask_only(path, timeout_ms, &head, gradient, NULL);
}
