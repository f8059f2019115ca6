#include "broker/bus_zap.h"

#include "broker/bus_guard.h"
#include "broker/log.h"
#include "schema/error.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_DOMAIN "muster"
#define ZAP_VERSION "1.0"
#define ZAP_FRAMES 7
#define ZAP_FRAME_BYTES 255
#define CURVE_KEY_BYTES 32
#define LOG_EVERY_MS 1000 /* a client that is refused tries again for ever */

/* Of libzmq 4.3, which has it but does not declare it: without a handler refuse, not accept. */
#ifndef ZMQ_ZAP_ENFORCE_DOMAIN
#define ZMQ_ZAP_ENFORCE_DOMAIN 93
#endif

struct bus_zap {
    void *socket;
    int fd;
    const struct bus_keys *keys;
    uint64_t refused;
    int64_t logged_unix_ms;
};

enum zap_frame {
    FRAME_VERSION,
    FRAME_REQUEST,
    FRAME_DOMAIN,
    FRAME_ADDRESS,
    FRAME_IDENTITY,
    FRAME_MECHANISM,
    FRAME_KEY
};

struct question {
    uint8_t bytes[ZAP_FRAMES][ZAP_FRAME_BYTES + 1];
    size_t sizes[ZAP_FRAMES];
    size_t count; /* may be more than ZAP_FRAMES: then it is none of ours */
};

enum muster_status bus_zap_open(void *context, const struct bus_keys *keys,
                                struct bus_zap **ret_zap, struct muster_error *err)
{
    struct bus_zap *zap = calloc(1, sizeof *zap);
    size_t size = sizeof zap->fd;
    int linger = 0;

    if (zap == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to ask for keys");
    zap->keys = keys;
    zap->socket = zmq_socket(context, ZMQ_REP);
    if (zap->socket == NULL || zmq_setsockopt(zap->socket, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_bind(zap->socket, ZAP_ENDPOINT) != 0 ||
        zmq_getsockopt(zap->socket, ZMQ_FD, &zap->fd, &size) != 0) {
        error_set_code(err, MUSTER_E_IO, zmq_errno(), "cannot make the socket for keys: %s",
                       zmq_strerror(zmq_errno()));
        bus_zap_close(&zap);
        return MUSTER_E_IO;
    }
    *ret_zap = zap;
    return MUSTER_OK;
}

void bus_zap_close(struct bus_zap **zap)
{
    if (*zap == NULL)
        return;
    if ((*zap)->socket != NULL)
        zmq_close((*zap)->socket);
    free(*zap);
    *zap = NULL;
}

bool bus_zap_guard(const struct bus_zap *zap, void *socket, struct muster_error *err)
{
    const char *secret = bus_keys_secret(zap->keys);
    int on = 1;

    if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &on, sizeof on) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, KEY_TEXT_BYTES + 1) == 0 &&
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) == 0 &&
        zmq_setsockopt(socket, ZMQ_ZAP_ENFORCE_DOMAIN, &on, sizeof on) == 0)
        return true;
    error_set_code(err, MUSTER_E_UNSUPPORTED, zmq_errno(),
                   "this libzmq cannot ask clients for keys: %s; install one with CURVE, as "
                   "Debian's",
                   zmq_strerror(zmq_errno()));
    return false;
}

int bus_zap_fd(const struct bus_zap *zap)
{
    return zap->fd;
}

uint64_t bus_zap_refused(const struct bus_zap *zap)
{
    return zap->refused;
}

/* --- questions -------------------------------------------------------------------------------- */

static bool zap_question_read(struct bus_zap *zap, struct question *q)
{
    int more = 1;
    size_t size = sizeof more;

    for (q->count = 0; more != 0; q->count++) {
        size_t at = q->count < ZAP_FRAMES ? q->count : ZAP_FRAMES - 1;
        int got = zmq_recv(zap->socket, q->bytes[at], ZAP_FRAME_BYTES, ZMQ_DONTWAIT);

        if (got < 0)
            return false;
        q->sizes[at] = (size_t)got < ZAP_FRAME_BYTES ? (size_t)got : ZAP_FRAME_BYTES;
        q->bytes[at][q->sizes[at]] = '\0';
        zmq_getsockopt(zap->socket, ZMQ_RCVMORE, &more, &size);
    }
    return true;
}

static bool zap_frame_is(const struct question *q, enum zap_frame frame, const char *text)
{
    return strcmp((const char *)q->bytes[frame], text) == 0;
}

static void zap_refuse_key(struct bus_zap *zap, const struct question *q, const char *what,
                           const char *name, int64_t now_unix_ms)
{
    zap->refused++;
    if (now_unix_ms - zap->logged_unix_ms < LOG_EVERY_MS)
        return;
    zap->logged_unix_ms = now_unix_ms;
    broker_log(LOG_LEVEL_WARNING, "a client at %.100s was not let in: its key%s%s %s",
               (const char *)q->bytes[FRAME_ADDRESS], name[0] != '\0' ? " " : "", name, what);
}

/* The owner of the key, or NULL. */
static const struct key_grant *zap_question_judge(struct bus_zap *zap, const struct question *q,
                                                  int64_t now_unix_ms)
{
    const struct key_grant *grant;
    char text[KEY_TEXT_BYTES + 1];
    const char *trouble;

    if (q->count != ZAP_FRAMES || !zap_frame_is(q, FRAME_VERSION, ZAP_VERSION) ||
        !zap_frame_is(q, FRAME_DOMAIN, ZAP_DOMAIN) || !zap_frame_is(q, FRAME_MECHANISM, "CURVE") ||
        q->sizes[FRAME_KEY] != CURVE_KEY_BYTES) {
        zap->refused++;
        return NULL;
    }
    zmq_z85_encode(text, q->bytes[FRAME_KEY], CURVE_KEY_BYTES);
    grant = bus_keys_public(zap->keys, text);
    trouble = grant == NULL            ? "is not on the list"
              : bus_guard_sees_names() ? key_trouble(grant, now_unix_ms)
                                       : "cannot be checked: this broker's libzmq is not one that "
                                         "musterd knows; use that of Debian 12";
    if (trouble == NULL)
        return grant;
    zap_refuse_key(zap, q, trouble, grant != NULL ? grant->name : "", now_unix_ms);
    return NULL;
}

static void zap_question_answer(struct bus_zap *zap, const struct question *q,
                                const struct key_grant *grant)
{
    const char *code = grant != NULL ? "200" : "400", *text = grant != NULL ? "OK" : "refused";
    const char *user = grant != NULL ? grant->public_key : ""; /* a name may get another key */

    zmq_send(zap->socket, ZAP_VERSION, strlen(ZAP_VERSION), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(zap->socket, q->bytes[FRAME_REQUEST], q->sizes[FRAME_REQUEST],
             ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(zap->socket, code, strlen(code), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(zap->socket, text, strlen(text), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(zap->socket, user, strlen(user), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(zap->socket, "", 0, ZMQ_DONTWAIT);
}

bool bus_zap_serve(struct bus_zap *zap, int64_t now_unix_ms)
{
    struct question q;
    bool any = false;

    for (; zap_question_read(zap, &q); any = true)
        zap_question_answer(zap, &q, zap_question_judge(zap, &q, now_unix_ms));
    return any;
}
