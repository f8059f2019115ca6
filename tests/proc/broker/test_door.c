/* The door of a broker with keys, with real sockets: who is let in by CURVE and ZAP, and that
 * nobody is while ZAP is dead or not served. The same guard and list as musterd's, without its
 * loop. */
#include "broker/bus_zap.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define NOW 1000000
#define DEADLINE_MS 10000 /* of what has to happen */
#define UNSERVED_MS 300   /* for so long nobody answers: nothing may happen */

enum who { GOOD, EXPIRED, REVOKED, LATER, UNLISTED, WHO_COUNT };

struct door {
    char dir[SCRATCH_PATH_MAX];
    char db[SCRATCH_PATH_MAX];
    char broker_public[KEY_TEXT_BYTES + 1], foreign_public[KEY_TEXT_BYTES + 1];
    struct {
        char public_key[KEY_TEXT_BYTES + 1], secret[KEY_TEXT_BYTES + 1];
    } clients[WHO_COUNT];
    struct bus_keys *keys;
    struct bus_zap *zap;
    void *context, *clients_context, *router, *monitor;
    char endpoint[128];
};

static void write_private(const char *db, const char *ending, const char *text)
{
    char path[SCRATCH_PATH_MAX + 16];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", db, ending);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void write_list(struct door *d)
{
    char list[WHO_COUNT * KEY_LINE_BYTES_MAX], secret[KEY_TEXT_BYTES + 1];
    size_t size = 0;

    for (int who = 0; who < WHO_COUNT; who++) {
        struct key_grant grant = {.role = KEY_NODE, .jobs = "job"};

        assert_int_equal(zmq_curve_keypair(d->clients[who].public_key, d->clients[who].secret), 0);
        if (who == UNLISTED)
            continue;
        snprintf(grant.name, sizeof grant.name, "k%d", who);
        memcpy(grant.public_key, d->clients[who].public_key, sizeof grant.public_key);
        grant.expires_unix_ms = who == EXPIRED ? NOW - 1 : 0;
        grant.revoked_unix_ms = who == REVOKED ? NOW - 1 : 0;
        grant.from_unix_ms = who == LATER ? NOW + 1 : 0;
        size += key_grant_write(&grant, list + size);
    }
    write_private(d->db, ".keys", list);
    assert_int_equal(zmq_curve_keypair(d->foreign_public, secret), 0);
    assert_int_equal(zmq_curve_keypair(d->broker_public, secret), 0);
    write_private(d->db, ".key", secret);
}

static int door_open(void **state)
{
    static struct door d;
    struct muster_error err;
    size_t size = sizeof d.endpoint;
    int none = 0;

    memset(&d, 0, sizeof d);
    scratch_make(d.dir);
    snprintf(d.db, sizeof d.db, "%s", scratch_path(d.dir, "db"));
    write_list(&d);
    assert_int_equal(bus_keys_open(d.db, &d.keys, &err), MUSTER_OK);
    d.context = zmq_ctx_new();
    d.clients_context = zmq_ctx_new();
    assert_int_equal(bus_zap_open(d.context, d.keys, &d.zap, &err), MUSTER_OK);
    d.router = zmq_socket(d.context, ZMQ_ROUTER);
    assert_true(bus_zap_guard(d.zap, d.router, &err));
    assert_int_equal(zmq_setsockopt(d.router, ZMQ_LINGER, &none, sizeof none), 0);
    assert_int_equal(zmq_socket_monitor(d.router, "inproc://door", ZMQ_EVENT_ALL), 0);
    d.monitor = zmq_socket(d.context, ZMQ_PAIR);
    assert_int_equal(zmq_setsockopt(d.monitor, ZMQ_LINGER, &none, sizeof none), 0);
    assert_int_equal(zmq_connect(d.monitor, "inproc://door"), 0);
    assert_int_equal(zmq_bind(d.router, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(d.router, ZMQ_LAST_ENDPOINT, d.endpoint, &size), 0);
    *state = &d;
    return 0;
}

static int door_close(void **state)
{
    struct door *d = *state;

    /* first: an event that nobody takes would hold a thread of ZeroMQ's for ever */
    assert_int_equal(zmq_socket_monitor(d->router, NULL, 0), 0);
    zmq_close(d->monitor);
    zmq_close(d->router);
    bus_zap_close(&d->zap);
    zmq_ctx_term(d->clients_context);
    zmq_ctx_term(d->context);
    bus_keys_close(&d->keys);
    scratch_remove(d->dir);
    return 0;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* server: NULL, and it does not encrypt at all. */
static void *client_new(struct door *d, enum who who, const char *server)
{
    void *client = zmq_socket(d->clients_context, ZMQ_DEALER);
    const size_t size = KEY_TEXT_BYTES + 1;
    int none = 0;

    assert_int_equal(zmq_setsockopt(client, ZMQ_LINGER, &none, sizeof none), 0);
    if (server != NULL) {
        assert_int_equal(zmq_setsockopt(client, ZMQ_CURVE_SERVERKEY, server, size), 0);
        assert_int_equal(
            zmq_setsockopt(client, ZMQ_CURVE_PUBLICKEY, d->clients[who].public_key, size), 0);
        assert_int_equal(zmq_setsockopt(client, ZMQ_CURVE_SECRETKEY, d->clients[who].secret, size),
                         0);
    }
    assert_int_equal(zmq_connect(client, d->endpoint), 0);
    zmq_send(client, "hello", 5, ZMQ_DONTWAIT);
    return client;
}

/* The next event of the router; 0: none within wait_ms. */
static uint16_t event_next(struct door *d, long wait_ms)
{
    zmq_pollitem_t item = {.socket = d->monitor, .events = ZMQ_POLLIN};
    uint8_t event[6] = {0}, address[256];
    uint16_t number;

    if (zmq_poll(&item, 1, wait_ms) <= 0)
        return 0;
    assert_int_equal(zmq_recv(d->monitor, event, sizeof event, 0), sizeof event);
    zmq_recv(d->monitor, address, sizeof address, 0);
    memcpy(&number, event, sizeof number);
    return number;
}

enum outcome { NOTHING, LET_IN, SHUT_OUT };

/* How a handshake ends. serve: ZAP's questions are answered meanwhile. */
static enum outcome door_outcome(struct door *d, bool serve, long wait_ms)
{
    for (long waited = 0; waited < wait_ms; waited += 10) {
        uint16_t event;

        if (serve)
            bus_zap_serve(d->zap, NOW);
        while ((event = event_next(d, 10)) != 0) {
            if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
                return LET_IN;
            if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL ||
                event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
                event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
                return SHUT_OUT;
        }
    }
    return NOTHING;
}

static bool router_has(struct door *d, long wait_ms)
{
    zmq_pollitem_t item = {.socket = d->router, .events = ZMQ_POLLIN};

    return zmq_poll(&item, 1, wait_ms) > 0;
}

/* --- who is let in ---------------------------------------------------------------------------- */

static void a_key_on_the_list_is_let_in_and_heard(void **state)
{
    struct door *d = *state;
    void *client = client_new(d, GOOD, d->broker_public);

    assert_int_equal(door_outcome(d, true, DEADLINE_MS), LET_IN);
    assert_true(router_has(d, DEADLINE_MS));
    assert_int_equal(bus_zap_refused(d->zap), 0);
    zmq_close(client);
}

/* The column of keys, of one message. */
static void every_other_key_is_shut_out_and_nothing_of_it_is_heard(void **state)
{
    struct door *d = *state;

    for (enum who who = GOOD + 1; who < WHO_COUNT; who++) {
        void *client = client_new(d, who, d->broker_public);

        assert_int_equal(door_outcome(d, true, DEADLINE_MS), SHUT_OUT);
        assert_false(router_has(d, 0));
        assert_true(bus_zap_refused(d->zap) >= who);
        zmq_close(client);
    }
}

static void who_has_another_brokers_key_is_shut_out_before_anybody_is_asked(void **state)
{
    struct door *d = *state;
    void *client = client_new(d, GOOD, d->foreign_public);

    assert_int_equal(door_outcome(d, true, DEADLINE_MS), SHUT_OUT);
    assert_false(router_has(d, 0));
    assert_int_equal(bus_zap_refused(d->zap), 0);
    zmq_close(client);
}

/* Downgrade: no mechanism but CURVE is spoken. */
static void who_does_not_encrypt_is_shut_out(void **state)
{
    struct door *d = *state;
    void *client = client_new(d, GOOD, NULL);

    assert_int_equal(door_outcome(d, true, DEADLINE_MS), SHUT_OUT);
    assert_false(router_has(d, 0));
    zmq_close(client);
}

/* --- ZAP that is not there -------------------------------------------------------------------- */

static void nobody_is_let_in_when_zap_is_dead(void **state)
{
    struct door *d = *state;
    void *client;

    bus_zap_close(&d->zap);
    client = client_new(d, GOOD, d->broker_public);
    assert_int_equal(door_outcome(d, false, DEADLINE_MS), SHUT_OUT);
    assert_false(router_has(d, 0));
    zmq_close(client);
}

/* As while the broker's loop hangs. The same client is let in once it goes on. */
static void nobody_is_let_in_while_zap_is_not_served(void **state)
{
    struct door *d = *state;
    void *client = client_new(d, GOOD, d->broker_public);

    assert_int_equal(door_outcome(d, false, UNSERVED_MS), NOTHING);
    assert_false(router_has(d, 0));
    assert_int_equal(door_outcome(d, true, DEADLINE_MS), LET_IN);
    assert_true(router_has(d, DEADLINE_MS));
    zmq_close(client);
}

/* It dies while a client waits for its answer. */
static void nobody_is_let_in_by_a_zap_that_dies_before_it_answers(void **state)
{
    struct door *d = *state;
    void *client = client_new(d, GOOD, d->broker_public);

    assert_int_equal(door_outcome(d, false, UNSERVED_MS), NOTHING);
    bus_zap_close(&d->zap);
    assert_int_not_equal(door_outcome(d, false, UNSERVED_MS), LET_IN);
    assert_false(router_has(d, 0));
    zmq_close(client);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, door_open, door_close)
    const struct CMUnitTest tests[] = {
        T(a_key_on_the_list_is_let_in_and_heard),
        T(every_other_key_is_shut_out_and_nothing_of_it_is_heard),
        T(who_has_another_brokers_key_is_shut_out_before_anybody_is_asked),
        T(who_does_not_encrypt_is_shut_out),
        T(nobody_is_let_in_when_zap_is_dead),
        T(nobody_is_let_in_while_zap_is_not_served),
        T(nobody_is_let_in_by_a_zap_that_dies_before_it_answers),
    };

    return cmocka_run_group_tests_name("door", tests, NULL, NULL);
}
