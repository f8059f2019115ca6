#include "client/query/query_link.h"

#include "client/query/query_address.h"
#include "client/query/query_door.h"
#include "client/query/query_place.h"
#include "node/clock.h"
#include "node/link_key.h"
#include "node/link_socket.h"
#include "schema/brokers.h"
#include "schema/error.h"
#include "schema/sql/queries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

#define OVER_LOOK_MS 100
#define ADVICE_MAX 128

struct query_link {
    void *context;
    void *socket;
    struct brokers brokers;
    char address[BROKERS_TEXT_MAX + 1]; /* all of them, as given */
    int timeout_ms;
    bool (*over)(const void *arg); /* NULL: never */
    const void *over_arg;
    bool client; /* see query_link_set_client */
    uint64_t incarnation;
    uint64_t request;   /* the last number used */
    struct arena arena; /* of the answer being read */
    uint8_t frame[WIRE_FRAME_MAX];
};

/* A local socket takes no key, and a socket's options hold for what it connects to from then on:
 * local ones come first. */
static enum muster_status query_link_connect_all(struct query_link *link, bool local,
                                                 struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < link->brokers.count && status == MUSTER_OK; i++) {
        const char *address = link->brokers.address[i];

        if ((strncmp(address, "ipc://", strlen("ipc://")) == 0) != local)
            continue;
        status = link_key_use(link->socket, address, link_key_path(), err);
        if (status == MUSTER_OK && socket_connect(link->socket, address) != 0)
            status = error_set_code(err, MUSTER_E_ARGUMENT, errno,
                                    "%s is not a broker's address (%s): give tcp://host:port or "
                                    "ipc://path",
                                    address, zmq_strerror(errno));
    }
    return status;
}

static enum muster_status query_link_connect_to(struct query_link *link, struct muster_error *err)
{
    int linger_ms = 0;
    int64_t frame_max = WIRE_EVENT_MAX + WIRE_SEAL;
    int reconnect_ms = RESEND_MIN_MS, unacked_ms = TCP_MAXRT_MS;
    int several = link->brokers.count > 1; /* a question goes only where somebody is */
    enum muster_status status;

    link->context = zmq_ctx_new();
    if (link->context == NULL)
        return error_set_code(err, MUSTER_E_NOMEM, errno, "no socket context: %s",
                              zmq_strerror(errno));
    zmq_ctx_set(link->context, ZMQ_BLOCKY, 0);
    link->socket = zmq_socket(link->context, ZMQ_DEALER);
    if (link->socket == NULL)
        return error_set_code(err, MUSTER_E_NOMEM, errno, "no socket to ask the broker: %s",
                              zmq_strerror(errno));
    zmq_setsockopt(link->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt(link->socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max);
    zmq_setsockopt(link->socket, ZMQ_RECONNECT_IVL, &reconnect_ms, sizeof reconnect_ms);
    zmq_setsockopt(link->socket, ZMQ_TCP_MAXRT, &unacked_ms, sizeof unacked_ms);
    zmq_setsockopt(link->socket, ZMQ_IMMEDIATE, &several, sizeof several);
    status = query_link_connect_all(link, true, err);
    return status == MUSTER_OK ? query_link_connect_all(link, false, err) : status;
}

enum muster_status query_link_open(const char *address, int timeout_ms,
                                   struct query_link **ret_link, struct muster_error *err)
{
    struct brokers brokers;
    struct query_link *link;
    enum muster_status status = brokers_read(address, &brokers, err);

    if (status != MUSTER_OK)
        return status;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to ask the broker %s", address);
    link->brokers = brokers;
    memcpy(link->address, address, strlen(address) + 1);
    link->timeout_ms = timeout_ms;
    arena_init(&link->arena, 4 * (size_t)WIRE_FRAME_MAX);
    while (link->incarnation == 0)
        if (getrandom(&link->incarnation, sizeof link->incarnation, 0) < 0)
            link->incarnation = (uint64_t)clock_ms(CLOCK_MONOTONIC);
    status = query_link_connect_to(link, err);
    if (status != MUSTER_OK) {
        query_link_close(&link);
        return status;
    }
    *ret_link = link;
    return MUSTER_OK;
}

void query_link_set_timeout(struct query_link *link, int timeout_ms)
{
    link->timeout_ms = timeout_ms;
}

void query_link_set_over(struct query_link *link, bool (*over)(const void *arg), const void *arg)
{
    link->over = over;
    link->over_arg = arg;
}

void query_link_set_client(struct query_link *link)
{
    link->client = true;
}

void query_link_close(struct query_link **link)
{
    if (link == NULL || *link == NULL)
        return;
    if (link[0]->socket != NULL)
        zmq_close(link[0]->socket);
    if (link[0]->context != NULL)
        socket_end(link[0]->context);
    arena_free(&link[0]->arena);
    free(*link);
    *link = NULL;
}

/* --- one question and its answer -------------------------------------------------------------- */

/* Does msg answer the link's request? A REFUSED carries no number: it answers whatever was asked */
static bool query_link_is_answer(const struct query_link *link, const struct wire_msg *msg)
{
    if (msg->type == WIRE_ACK)
        return msg->u.ack.request == link->request;
    if (msg->type == WIRE_ROWS)
        return msg->u.rows.request == link->request;
    return msg->type == WIRE_REFUSED;
}

static enum muster_status query_link_refusal(const struct query_link *link, uint64_t code,
                                             const char *text, struct muster_error *err)
{
    enum muster_status status =
        code > 0 && code < MUSTER_STATUS_COUNT ? (enum muster_status)code : MUSTER_E_PROTOCOL;

    if (text == NULL || text[0] == '\0')
        return error_set(err, status, "the broker %s refused: %s; %s", link->address,
                         muster_status_sentence(status), muster_status_advice(status));
    return error_set(err, status, "%s", text);
}

/* Reads one frame if it comes before until_ms, or OVER_LOOK_MS are over. *ret_got: it answers the
 * request. */
static enum muster_status query_link_receive(struct query_link *link, int64_t until_ms,
                                             struct wire_msg *ret_answer, bool *ret_got,
                                             struct muster_error *err)
{
    zmq_pollitem_t item = {.socket = link->socket, .events = ZMQ_POLLIN};
    int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    enum muster_status status;
    int size;

    if (link->over != NULL && left_ms > OVER_LOOK_MS)
        left_ms = OVER_LOOK_MS;
    if (zmq_poll(&item, 1, left_ms > 0 ? (long)left_ms : 0) <= 0)
        return MUSTER_OK; /* nothing yet, or a signal */
    size = zmq_recv(link->socket, link->frame, sizeof link->frame, ZMQ_DONTWAIT);
    if (size < 0 || (size_t)size > sizeof link->frame)
        return MUSTER_OK;
    arena_reset(&link->arena);
    status = wire_decode(link->frame, (size_t)size, &link->arena, ret_answer, err);
    if (status == MUSTER_E_VERSION)
        return status;
    *ret_got = status == MUSTER_OK && query_link_is_answer(link, ret_answer);
    return MUSTER_OK; /* what is no answer of ours is dropped */
}

/* The broker cannot write now. It may hold the order in a batch that it writes later, so this is no
 * refusal: the order, which has its number, is repeated. */
static bool query_link_is_put_off(const struct wire_msg *answer)
{
    return answer->type == WIRE_ACK && answer->u.ack.code == MUSTER_E_STORAGE;
}

static const char *query_link_word(const struct query_link *link)
{
    return link->client ? query_place_broker_word() : "option broker";
}

/* The end of a text that tells what to do. */
static const char *query_link_advice(const struct query_link *link, char text[ADVICE_MAX])
{
    if (link->client)
        snprintf(text, ADVICE_MAX,
                 "correct the address (%s, MUSTER_BROKER), or read its database (%s)",
                 query_link_word(link), query_place_db_word());
    else
        snprintf(text, ADVICE_MAX, "or correct the address (%s, MUSTER_BROKER)",
                 query_link_word(link));
    return text;
}

/* MUSTER_OK: nothing is known that keeps a broker from answering. */
static enum muster_status query_link_trouble(const struct query_link *link,
                                             struct muster_error *err)
{
    char trouble[ADDRESS_TROUBLE_MAX], door[DOOR_TEXT_MAX], advice[ADVICE_MAX];

    if (link->brokers.count > 1)
        return MUSTER_OK; /* each would have to be in trouble: the timeout tells */
    if (query_address_trouble(link->address, trouble))
        return error_set(err, MUSTER_E_BROKER,
                         "%s: no broker can answer at %s. Start one with `musterd`, %s", trouble,
                         link->address, query_link_advice(link, advice));
    if (query_door_look(link->address, door) == DOOR_SHUT)
        return error_set(err, MUSTER_E_AUTH, "%s", door);
    return MUSTER_OK;
}

static bool query_link_is_over(const struct query_link *link)
{
    return link->over != NULL && link->over(link->over_arg);
}

static enum muster_status query_link_no_answer(const struct query_link *link, const char *put_off,
                                               struct muster_error *err)
{
    char door[DOOR_TEXT_MAX], tried[DOORS_TEXT_MAX], advice[ADVICE_MAX];

    if (put_off[0] != '\0')
        return error_set(err, MUSTER_E_STORAGE,
                         "%s; the order may still be carried out when the broker can write again",
                         put_off);
    if (link->brokers.count > 1 && !query_link_is_over(link))
        return error_set(
            err, query_door_tried(link->address, tried) ? MUSTER_E_AUTH : MUSTER_E_BROKER,
            "no broker answered within %.1f s: %s. Start one with `musterd`, or correct the "
            "addresses (%s, MUSTER_BROKER)",
            link->timeout_ms / 1000.0, tried, query_link_word(link));
    if (!query_link_is_over(link) && query_door_look(link->address, door) != DOOR_OPEN)
        return error_set(err, MUSTER_E_BROKER, "no answer within %.1f s: %s",
                         link->timeout_ms / 1000.0, door);
    return error_set(err, MUSTER_E_BROKER,
                     "no broker answered at %s within %.1f s: start one with `musterd`, %s",
                     link->address, link->timeout_ms / 1000.0, query_link_advice(link, advice));
}

/* Not sent: the next one is. To one of several it waits for a connection that stands. */
static void query_link_send(const struct query_link *link, const uint8_t *frame, size_t size,
                            int64_t until_ms)
{
    zmq_pollitem_t item = {.socket = link->socket, .events = ZMQ_POLLOUT};
    int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);

    if (link->brokers.count > 1 && left_ms > 0)
        zmq_poll(&item, 1, left_ms < OVER_LOOK_MS ? (long)left_ms : OVER_LOOK_MS);
    zmq_send(link->socket, frame, size, ZMQ_DONTWAIT);
}

static enum muster_status query_link_ask(struct query_link *link, struct wire_msg *msg,
                                         struct wire_msg *ret_answer, struct muster_error *err)
{
    char put_off[MUSTER_ERROR_TEXT_MAX - 128] = "";
    int64_t end_ms = clock_ms(CLOCK_MONOTONIC) + link->timeout_ms;
    int64_t wait_ms = RESEND_MIN_MS;
    enum muster_status trouble = MUSTER_OK;
    bool looked = false;
    size_t size;
    uint8_t frame[WIRE_FRAME_MAX];

    msg->up.request = ++link->request;
    msg->up.role = ROLE_TOOL;
    msg->up.incarnation = link->incarnation;
    size = wire_encode(msg, frame, sizeof frame);
    if (size == 0)
        return error_set(err, MUSTER_E_ARGUMENT, "a name or text is longer than a broker accepts");
    while (trouble == MUSTER_OK && clock_ms(CLOCK_MONOTONIC) < end_ms &&
           !query_link_is_over(link)) {
        int64_t again_ms = clock_ms(CLOCK_MONOTONIC) + wait_ms;

        if (again_ms > end_ms)
            again_ms = end_ms;
        query_link_send(link, frame, size, again_ms);
        while (clock_ms(CLOCK_MONOTONIC) < again_ms && !query_link_is_over(link)) {
            bool got = false;
            enum muster_status status = query_link_receive(link, again_ms, ret_answer, &got, err);

            if (got && query_link_is_put_off(ret_answer))
                snprintf(put_off, sizeof put_off, "%s",
                         ret_answer->u.ack.text[0] != '\0'
                             ? ret_answer->u.ack.text
                             : muster_status_sentence(MUSTER_E_STORAGE));
            else if (status != MUSTER_OK || got)
                return status;
        }
        if (!looked && put_off[0] == '\0')
            trouble = query_link_trouble(link, err);
        looked = true;
        wait_ms = wait_ms * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : wait_ms * 2;
    }
    return trouble != MUSTER_OK ? trouble : query_link_no_answer(link, put_off, err);
}

enum muster_status query_link_order(struct query_link *link, struct wire_msg *order,
                                    uint64_t *ret_value, struct muster_error *err)
{
    struct wire_msg answer = {.type = WIRE_NONE};
    enum muster_status status = query_link_ask(link, order, &answer, err);

    if (status != MUSTER_OK)
        return status;
    if (answer.type == WIRE_REFUSED)
        return query_link_refusal(link, answer.u.refused.code, answer.u.refused.text, err);
    if (answer.type != WIRE_ACK)
        return error_set(err, MUSTER_E_PROTOCOL, "the broker %s answered an order with rows",
                         link->address);
    *ret_value = answer.u.ack.value;
    if (answer.u.ack.code != MUSTER_OK)
        return query_link_refusal(link, answer.u.ack.code, answer.u.ack.text, err);
    return MUSTER_OK;
}

/* The broker answers an import once all its rows are written, after other work. For a large
 * manifest that takes longer than any other order. */
#define IMPORT_SURE_BYTES ((size_t)512 << 10)
#define IMPORT_TRIES 6

static enum muster_status query_link_import_part(struct query_link *link, struct wire_msg *msg,
                                                 bool last, uint64_t *ret_value,
                                                 struct muster_error *err)
{
    int tries = last && msg->u.import.total > IMPORT_SURE_BYTES ? IMPORT_TRIES : 1;
    enum muster_status status;

    do
        status = query_link_order(link, msg, ret_value, err);
    while (status == MUSTER_E_BROKER && --tries > 0);
    return status;
}

enum muster_status query_link_import(struct query_link *link, const char *job, const char *path,
                                     const char *manifest, size_t size, bool *ret_new,
                                     struct muster_error *err)
{
    struct wire_msg msg = {.type = WIRE_IMPORT, .up.job = job};
    enum muster_status status = MUSTER_OK;
    uint64_t value = 0;

    for (size_t at = 0; at < size && status == MUSTER_OK; at += MANIFEST_CHUNK_MAX) {
        size_t left = size - at;
        msg.u.import.path = path;
        msg.u.import.offset = at;
        msg.u.import.total = size;
        msg.u.import.bytes.data = (const uint8_t *)manifest + at;
        msg.u.import.bytes.size = left < MANIFEST_CHUNK_MAX ? left : MANIFEST_CHUNK_MAX;
        status = query_link_import_part(link, &msg, left <= MANIFEST_CHUNK_MAX, &value, err);
    }
    if (ret_new != NULL && (status == MUSTER_OK || status == MUSTER_E_BUSY))
        *ret_new = value != 0;
    return status;
}

/* --- rows ------------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    size_t left;
};

static bool query_link_take(struct reader *reader, size_t size, const uint8_t **ret_bytes)
{
    if (reader->left < size)
        return false;
    *ret_bytes = reader->at;
    reader->at += size;
    reader->left -= size;
    return true;
}

static bool query_link_take_number(struct reader *reader, size_t size, uint64_t *ret_number)
{
    const uint8_t *bytes;
    uint64_t number = 0;

    if (!query_link_take(reader, size, &bytes))
        return false;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    *ret_number = number;
    return true;
}

static bool query_link_take_text(struct reader *reader, size_t size, struct cell *cell)
{
    const uint8_t *bytes;

    if (!query_link_take(reader, size, &bytes))
        return false;
    cell->text = (const char *)bytes;
    cell->size = size;
    return memchr(bytes, '\0', size) == NULL;
}

static bool query_link_take_real(struct reader *reader, size_t size, struct cell *cell)
{
    uint64_t bits;
    uint32_t bits32;
    float real32;
    double real;

    if (!query_link_take_number(reader, size, &bits))
        return false;
    if (size == 4) {
        bits32 = (uint32_t)bits;
        memcpy(&real32, &bits32, sizeof real32);
        real = (double)real32;
    } else {
        memcpy(&real, &bits, sizeof real);
    }
    if (!(real > -9e18 && real < 9e18)) /* also what is no number */
        return false;
    cell->integer = (int64_t)real;
    return true;
}

/* msgpack's integers: 0xcc to 0xcf unsigned, 0xd0 to 0xd3 signed, of 1, 2, 4, 8 bytes each. */
static bool query_link_take_integer(struct reader *reader, uint8_t tag, struct cell *cell)
{
    static const uint64_t sign_bits[] = {0x80, 0x8000, 0x80000000, 0x8000000000000000};
    const uint64_t sign = tag >= 0xd0 ? sign_bits[tag & 3] : 0;
    uint64_t number = 0;
    bool ok = query_link_take_number(reader, (size_t)1 << (tag & 3), &number);

    cell->integer = (int64_t)((number ^ sign) - sign);
    return ok && (tag != 0xcf || number <= INT64_MAX);
}

/* One nil, boolean, integer, double or str: nothing else is a cell. */
static bool query_link_take_cell(struct reader *reader, struct cell *ret_cell)
{
    struct cell cell = {0};
    const uint8_t *bytes;
    uint64_t size = 0;
    bool ok = true;
    uint8_t tag;

    if (!query_link_take(reader, 1, &bytes))
        return false;
    tag = bytes[0];
    if (tag <= 0x7f)
        cell.integer = tag;
    else if (tag >= 0xe0)
        cell.integer = (int64_t)tag - 256;
    else if (tag >= 0xa0 && tag <= 0xbf)
        ok = query_link_take_text(reader, tag & 0x1f, &cell);
    else if (tag >= 0xd9 && tag <= 0xdb)
        ok = query_link_take_number(reader, (size_t)1 << (tag - 0xd9), &size) &&
             size <= reader->left && query_link_take_text(reader, (size_t)size, &cell);
    else if (tag >= 0xcc && tag <= 0xd3)
        ok = query_link_take_integer(reader, tag, &cell);
    else if (tag == 0xca || tag == 0xcb)
        ok = query_link_take_real(reader, tag == 0xca ? 4 : 8, &cell);
    else if (tag == 0xc3)
        cell.integer = 1;
    else
        ok = tag == 0xc0 || tag == 0xc2;
    if (ok)
        *ret_cell = cell;
    return ok;
}

enum muster_status query_link_cells(const uint8_t *bytes, size_t size, size_t columns, size_t count,
                                    muster_rows_t *rows, struct muster_error *err)
{
    struct reader reader = {.at = bytes, .left = size};
    struct cell cells[QUERY_COLUMNS_MAX];

    if (columns > QUERY_COLUMNS_MAX || (columns == 0 && count > 0))
        return error_set(err, MUSTER_E_PROTOCOL, "an answer has rows of %zu columns", columns);
    for (size_t row = 0; row < count; row++) {
        enum muster_status status;

        for (size_t i = 0; i < columns; i++)
            if (!query_link_take_cell(&reader, &cells[i]))
                return error_set(
                    err, MUSTER_E_PROTOCOL,
                    "row %zu, column %zu of an answer cannot be read: is the broker of "
                    "this muster's version?",
                    row, i);
        status = rows_append(rows, cells, columns, err);
        if (status != MUSTER_OK)
            return status;
    }
    return MUSTER_OK;
}

enum muster_status query_link_page(struct query_link *link, const struct question *question,
                                   muster_rows_t *rows, bool *ret_more, struct muster_error *err)
{
    struct wire_msg msg = {.type = WIRE_QUERY, .up.job = question->job};
    struct wire_msg answer = {.type = WIRE_NONE};
    const struct wire_rows *page = &answer.u.rows;
    enum muster_status status;

    msg.u.query = (struct wire_query){.name = question->query,
                                      .text_arg = question->text_arg,
                                      .number_arg = question->number_arg,
                                      .after = question->after};
    status = query_link_ask(link, &msg, &answer, err);
    if (status != MUSTER_OK)
        return status;
    if (answer.type == WIRE_REFUSED)
        return query_link_refusal(link, answer.u.refused.code, answer.u.refused.text, err);
    if (answer.type == WIRE_ACK)
        return query_link_refusal(link, answer.u.ack.code, answer.u.ack.text, err);
    if (page->code != MUSTER_OK)
        return query_link_refusal(link, page->code, page->text, err);
    if (page->more && page->rows == 0)
        return error_set(err, MUSTER_E_PROTOCOL, "the broker %s promises more rows and sends none",
                         link->address);
    status = query_link_cells(page->cells.data, page->cells.size, (size_t)page->columns,
                              (size_t)page->rows, rows, err);
    if (status == MUSTER_OK)
        *ret_more = page->more;
    return status;
}
