/* wire - encode and decode the messages of wire.def; WIRE.md describes the form.
 * One table entry a field, made from wire.def; nothing here names a message.
 * Invariants: what wire_encode makes, wire_decode takes. A frame is scanned to its end for depth,
 * count, kinds and lengths before anything is allocated. The scan's item count bounds the memory of
 * the unpacked form (WIRE_ITEMS_MAX x sizeof(msgpack_object)). */
#include "schema/wire/wire.h"

#include "schema/error.h"
#include "schema/wire/wire_bytes.h"

#include <msgpack.h>
#include <string.h>

enum direction { UP, DOWN };
enum field_kind { FIELD_U, FIELD_I, FIELD_B, FIELD_S, FIELD_R, FIELD_L };
/* clang-format off */
enum entry {
    entry_none,
#define MSG(...)
#define ENTRY(kind, type, ...) entry_##kind,
#include "schema/wire/wire.def"
#undef MSG
    ENTRY_COUNT
};
/* clang-format on */

struct field {
    const char *name;
    uint64_t max; /* U: value; S, R: bytes; L: entries */
    uint32_t offset;
    uint8_t kind;
    uint8_t entry; /* L: what it is a list of */
};
struct fields {
    const struct field *items;
    uint32_t count;
    uint32_t size_bytes; /* of the struct */
};
struct message {
    const char *name;
    struct fields body;
    enum direction direction;
};

/* L() and R() of wire.h in memory, for all kinds of entries alike. */
struct span {
    const void *at;
    size_t count;
};

#define FIELD(name, max, kind, entry) {#name, (max), offsetof(self, name), (kind), (entry)},
#define U(name, max) FIELD(name, max, FIELD_U, entry_none)
#define I(name) FIELD(name, 0, FIELD_I, entry_none)
#define B(name) FIELD(name, 0, FIELD_B, entry_none)
#define S(name, max) FIELD(name, max, FIELD_S, entry_none)
#define R(name, max) FIELD(name, max, FIELD_R, entry_none)
#define L(name, list_of, max) FIELD(name, max, FIELD_L, entry_##list_of)
#define FIELDS(table, type)                                                          \
    {                                                                                \
        (table), (uint32_t)(sizeof(table) / sizeof *(table)), (uint32_t)sizeof(type) \
    }

/* The table's entry of a type, or NULL. The struct of each message goes by the name `self` inside
 * its case, because the field macros are not told which message they stand in. */
static const struct message *wire_message_of(unsigned type)
{
    switch (type) {
#define MSG(TYPE, number, heading, lower, ...)                                       \
    case WIRE_##TYPE: {                                                              \
        typedef struct wire_##lower self;                                            \
        static const struct field items[] = {__VA_ARGS__};                           \
        static const struct message message = {#TYPE, FIELDS(items, self), heading}; \
        return &message;                                                             \
    }
#include "schema/wire/wire.def"
#undef MSG
    default:
        return NULL;
    }
}

/* The fields of a head or an entry, as a case of its switch. */
#define PART(key, type, ...)                                     \
    case key: {                                                  \
        typedef struct type self;                                \
        static const struct field items[] = {__VA_ARGS__};       \
        static const struct fields fields = FIELDS(items, self); \
        return &fields;                                          \
    }

static const struct fields *wire_head_of(enum direction direction)
{
    switch (direction) {
#define MSG(...)
#define HEAD(way, type, ...) PART(way, type, __VA_ARGS__)
#include "schema/wire/wire.def"
#undef MSG
    }
    return NULL;
}

static const struct fields *wire_entry_of(uint8_t entry)
{
    switch (entry) {
#define MSG(...)
#define ENTRY(kind, type, ...) PART(entry_##kind, type, __VA_ARGS__)
#include "schema/wire/wire.def"
#undef MSG
    default:
        return NULL;
    }
}

/* Every union member begins where the union does. */
static unsigned char *wire_body_of(struct wire_msg *msg)
{
    return (unsigned char *)&msg->u;
}

/* --- encode ----------------------------------------------------------------------------------- */

struct sink {
    uint8_t *at;
    size_t left;
};

static int wire_sink_write(void *data, const char *bytes, size_t size)
{
    struct sink *sink = data;

    if (size > sink->left)
        return -1;
    memcpy(sink->at, bytes, size);
    sink->at += size;
    sink->left -= size;
    return 0;
}

static bool wire_put_fields(msgpack_packer *packer, const struct fields *fields,
                            const unsigned char *from);

static bool wire_put_string(msgpack_packer *packer, const char *text, uint64_t max)
{
    size_t size = text == NULL ? 0 : strnlen(text, max + 1);

    return size <= max && wire_utf8_ok(text, size) && msgpack_pack_str(packer, size) == 0 &&
           (size == 0 || msgpack_pack_str_body(packer, text, size) == 0);
}

static bool wire_put_raw(msgpack_packer *packer, const struct span *bytes, uint64_t max)
{
    return bytes->count <= max && msgpack_pack_bin(packer, bytes->count) == 0 &&
           (bytes->count == 0 || msgpack_pack_bin_body(packer, bytes->at, bytes->count) == 0);
}

static bool wire_put_list(msgpack_packer *packer, const struct span *list,
                          const struct field *field)
{
    const struct fields *entry = wire_entry_of(field->entry);
    const unsigned char *at = list->at;

    if (list->count > field->max || msgpack_pack_array(packer, list->count) != 0)
        return false;
    for (size_t i = 0; i < list->count; i++, at += entry->size_bytes)
        if (msgpack_pack_array(packer, entry->count) != 0 || !wire_put_fields(packer, entry, at))
            return false;
    return true;
}

/* Fields are read by memcpy: `at` is a struct seen through the table, and the compiler makes a
 * plain load of it. */
static bool wire_put_field(msgpack_packer *packer, const struct field *field,
                           const unsigned char *at)
{
    struct span span;
    const char *text;
    uint64_t number;
    int64_t integer;
    bool yes;

    switch ((enum field_kind)field->kind) {
    case FIELD_U:
        memcpy(&number, at, sizeof number);
        return number <= field->max && msgpack_pack_uint64(packer, number) == 0;
    case FIELD_I:
        memcpy(&integer, at, sizeof integer);
        return msgpack_pack_int64(packer, integer) == 0;
    case FIELD_B:
        memcpy(&yes, at, sizeof yes);
        return (yes ? msgpack_pack_true(packer) : msgpack_pack_false(packer)) == 0;
    case FIELD_S:
        memcpy(&text, at, sizeof text);
        return wire_put_string(packer, text, field->max);
    case FIELD_R:
        memcpy(&span, at, sizeof span);
        return wire_put_raw(packer, &span, field->max);
    case FIELD_L:
        memcpy(&span, at, sizeof span);
        return wire_put_list(packer, &span, field);
    }
    return false;
}

static bool wire_put_fields(msgpack_packer *packer, const struct fields *fields,
                            const unsigned char *from)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (!wire_put_field(packer, &fields->items[i], from + fields->items[i].offset))
            return false;
    return true;
}

void wire_set_left(struct wire_msg *msg, int64_t deadline_boot_ms, int64_t now_boot_ms)
{
    int64_t left = deadline_boot_ms > now_boot_ms ? deadline_boot_ms - now_boot_ms : 0;

    if (deadline_boot_ms == 0)
        return;
    if (msg->type == WIRE_EVENT)
        msg->u.event.left_ms = left;
    else if (msg->type == WIRE_HINT)
        msg->u.hint.left_ms = left;
    else if (msg->type == WIRE_SNAPSHOT)
        msg->u.snapshot.left_ms = left;
}

size_t wire_encode(const struct wire_msg *msg, uint8_t *buffer, size_t capacity)
{
    const struct message *message = wire_message_of(msg->type);
    size_t limit = capacity < WIRE_EVENT_MAX ? capacity : WIRE_EVENT_MAX;
    struct sink sink = {buffer, limit};
    const struct fields *head;
    const void *head_from;
    msgpack_packer packer;

    if (message == NULL)
        return 0;
    head = wire_head_of(message->direction);
    head_from = message->direction == UP ? (const void *)&msg->up : (const void *)&msg->down;
    msgpack_packer_init(&packer, &sink, wire_sink_write);
    if (msgpack_pack_array(&packer, 2u + head->count + message->body.count) != 0 ||
        msgpack_pack_uint64(&packer, WIRE_VERSION) != 0 ||
        msgpack_pack_uint64(&packer, msg->type) != 0 ||
        !wire_put_fields(&packer, head, head_from) ||
        !wire_put_fields(&packer, &message->body, (const unsigned char *)&msg->u))
        return 0;
    return limit - sink.left;
}

/* --- decode ----------------------------------------------------------------------------------- */

struct reader {
    struct arena *arena;
    struct muster_error *err;
    const char *message; /* names for the error text */
    const char *list;    /* field whose entries are being read, or NULL */
};

static enum muster_status wire_refuse(const struct reader *reader, const struct field *field,
                                      const char *what)
{
    return error_set(reader->err, MUSTER_E_PROTOCOL, "message %s: field %s%s%s %s", reader->message,
                     reader->list == NULL ? "" : reader->list, reader->list == NULL ? "" : ".",
                     field->name, what);
}

static enum muster_status wire_refuse_memory(const struct reader *reader, const struct field *field)
{
    return error_set(reader->err, MUSTER_E_NOMEM,
                     "message %s: no room for field %s: the memory limit of one batch is reached",
                     reader->message, field->name);
}

static enum muster_status wire_get_fields(struct reader *reader, const struct fields *fields,
                                          const msgpack_object *from, uint32_t count,
                                          unsigned char *to);

static enum muster_status wire_get_string(struct reader *reader, const struct field *field,
                                          const msgpack_object *from, unsigned char *to)
{
    const char *text = "";
    size_t size;
    char *copy;

    if (from->type != MSGPACK_OBJECT_STR)
        return wire_refuse(reader, field, "is not a string");
    size = from->via.str.size;
    if (size > field->max)
        return wire_refuse(reader, field, "is longer than allowed");
    if (!wire_utf8_ok(from->via.str.ptr, size))
        return wire_refuse(reader, field, "is not UTF-8 text");
    if (size > 0) {
        copy = arena_strndup(reader->arena, from->via.str.ptr, size);
        if (copy == NULL)
            return wire_refuse_memory(reader, field);
        text = copy;
    }
    memcpy(to, &text, sizeof text);
    return MUSTER_OK;
}

static enum muster_status wire_get_raw(struct reader *reader, const struct field *field,
                                       const msgpack_object *from, unsigned char *to)
{
    struct span span = {"", 0};
    void *copy;

    if (from->type != MSGPACK_OBJECT_BIN)
        return wire_refuse(reader, field, "is not binary");
    span.count = from->via.bin.size;
    if (span.count > field->max)
        return wire_refuse(reader, field, "is longer than allowed");
    if (span.count > 0) {
        copy = arena_alloc(reader->arena, span.count);
        if (copy == NULL)
            return wire_refuse_memory(reader, field);
        memcpy(copy, from->via.bin.ptr, span.count);
        span.at = copy;
    }
    memcpy(to, &span, sizeof span);
    return MUSTER_OK;
}

static enum muster_status wire_get_list(struct reader *reader, const struct field *field,
                                        const msgpack_object *from, unsigned char *to)
{
    const struct fields *entry = wire_entry_of(field->entry);
    struct span span = {NULL, 0};
    enum muster_status status = MUSTER_OK;
    unsigned char *at;

    if (from->type != MSGPACK_OBJECT_ARRAY)
        return wire_refuse(reader, field, "is not a list");
    span.count = from->via.array.size;
    if (span.count > field->max)
        return wire_refuse(reader, field, "has more entries than allowed");
    if (span.count == 0)
        return MUSTER_OK; /* the struct was zeroed */
    at = arena_alloc(reader->arena, span.count * entry->size_bytes);
    if (at == NULL)
        return wire_refuse_memory(reader, field);
    span.at = at;
    reader->list = field->name;
    for (size_t i = 0; i < span.count && status == MUSTER_OK; i++, at += entry->size_bytes) {
        const msgpack_object *item = &from->via.array.ptr[i];

        if (item->type != MSGPACK_OBJECT_ARRAY)
            return error_set(reader->err, MUSTER_E_PROTOCOL,
                             "message %s: entry %zu of field %s is not a list", reader->message, i,
                             field->name);
        status = wire_get_fields(reader, entry, item->via.array.ptr, item->via.array.size, at);
    }
    reader->list = NULL;
    memcpy(to, &span, sizeof span);
    return status;
}

static enum muster_status wire_get_integer(struct reader *reader, const struct field *field,
                                           const msgpack_object *from, unsigned char *to)
{
    if (from->type != MSGPACK_OBJECT_POSITIVE_INTEGER &&
        from->type != MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return wire_refuse(reader, field, "is not an integer");
    if (from->type == MSGPACK_OBJECT_POSITIVE_INTEGER && from->via.u64 > INT64_MAX)
        return wire_refuse(reader, field, "is out of range");
    memcpy(to, &from->via.i64, sizeof from->via.i64);
    return MUSTER_OK;
}

static enum muster_status wire_get_field(struct reader *reader, const struct field *field,
                                         const msgpack_object *from, unsigned char *to)
{
    switch ((enum field_kind)field->kind) {
    case FIELD_U:
        if (from->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
            return wire_refuse(reader, field, "is not an unsigned integer");
        if (from->via.u64 > field->max)
            return wire_refuse(reader, field, "is out of range");
        memcpy(to, &from->via.u64, sizeof from->via.u64);
        return MUSTER_OK;
    case FIELD_B:
        if (from->type != MSGPACK_OBJECT_BOOLEAN)
            return wire_refuse(reader, field, "is not a boolean");
        memcpy(to, &from->via.boolean, sizeof(bool));
        return MUSTER_OK;
    case FIELD_I:
        return wire_get_integer(reader, field, from, to);
    case FIELD_S:
        return wire_get_string(reader, field, from, to);
    case FIELD_R:
        return wire_get_raw(reader, field, from, to);
    case FIELD_L:
        return wire_get_list(reader, field, from, to);
    }
    return wire_refuse(reader, field, "is of no known kind");
}

/* `to` is zeroed. Elements beyond the table are a newer sender's and are skipped; fields that an
 * older sender did not have stay zero, and strings become "". */
static enum muster_status wire_get_fields(struct reader *reader, const struct fields *fields,
                                          const msgpack_object *from, uint32_t count,
                                          unsigned char *to)
{
    static const char *const empty = "";
    static const struct span empty_raw = {"", 0};
    uint32_t there = count < fields->count ? count : fields->count;

    for (uint32_t i = 0; i < there; i++) {
        const struct field *field = &fields->items[i];
        enum muster_status status = wire_get_field(reader, field, &from[i], to + field->offset);

        if (status != MUSTER_OK)
            return status;
    }
    for (uint32_t i = there; i < fields->count; i++) {
        if (fields->items[i].kind == FIELD_S)
            memcpy(to + fields->items[i].offset, &empty, sizeof empty);
        if (fields->items[i].kind == FIELD_R)
            memcpy(to + fields->items[i].offset, &empty_raw, sizeof empty_raw);
    }
    return MUSTER_OK;
}

static enum muster_status wire_get_message(const msgpack_object *frame, struct arena *arena,
                                           struct wire_msg *msg, struct muster_error *err)
{
    const msgpack_object *items = frame->via.array.ptr;
    uint32_t count = frame->via.array.size;
    const struct message *message;
    const struct fields *head;
    struct reader reader = {.arena = arena, .err = err};
    void *head_to;
    enum muster_status status;

    if (frame->type != MSGPACK_OBJECT_ARRAY || count < 2 ||
        items[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
        items[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return error_set(err, MUSTER_E_PROTOCOL,
                         "a frame does not begin with protocol version and message type");
    message =
        items[1].via.u64 <= WIRE_TYPE_MAX ? wire_message_of((unsigned)items[1].via.u64) : NULL;
    if (message == NULL)
        return error_set(err, MUSTER_E_PROTOCOL, "message type %llu is not known",
                         (unsigned long long)items[1].via.u64);
    msg->type = (enum wire_type)items[1].via.u64;
    head = wire_head_of(message->direction);
    head_to = message->direction == UP ? (void *)&msg->up : (void *)&msg->down;
    reader.message = message->name;
    if (count - 2 < head->count)
        return error_set(err, MUSTER_E_PROTOCOL, "message %s: its head is not complete",
                         message->name);
    status = wire_get_fields(&reader, head, items + 2, head->count, head_to);
    if (status != MUSTER_OK)
        return status;
    return wire_get_fields(&reader, &message->body, items + 2 + head->count,
                           count - 2 - head->count, wire_body_of(msg));
}

/* The version is read before the scan: whatever another version's frames hold, its sender is to
 * hear E_VERSION. True: the version is ours, or there is none to read. */
static bool wire_version_ok(const uint8_t *frame, size_t size, struct wire_msg *ret_msg,
                            struct muster_error *err)
{
    uint64_t numbers[2]; /* version, type */
    size_t count = wire_peek(frame, size, numbers, 2);

    if (count == 0 || numbers[0] == WIRE_VERSION)
        return true;
    if (count == 2 && numbers[1] <= WIRE_TYPE_MAX)
        ret_msg->type = (enum wire_type)numbers[1];
    error_set(err, MUSTER_E_VERSION,
              "the sender speaks protocol version %llu, here it is %d: install the same muster on "
              "both sides",
              (unsigned long long)numbers[0], WIRE_VERSION);
    return false;
}

enum muster_status wire_decode(const uint8_t *frame, size_t size, struct arena *arena,
                               struct wire_msg *ret_msg, struct muster_error *err)
{
    uint32_t items_count = 0;
    struct wire_msg msg = {.type = WIRE_NONE, .up.job = "", .down.job = ""};
    msgpack_object root;
    msgpack_unpack_return unpacked;
    msgpack_zone zone;
    size_t offset = 0;
    const char *wrong;
    enum muster_status status;

    if (size > WIRE_EVENT_MAX)
        return error_set(err, MUSTER_E_PROTOCOL, "a frame of %zu bytes is larger than %d", size,
                         WIRE_EVENT_MAX);
    if (!wire_version_ok(frame, size, ret_msg, err))
        return MUSTER_E_VERSION;
    wrong = wire_scan(frame, size, &items_count);
    if (wrong != NULL)
        return error_set(err, MUSTER_E_PROTOCOL, "a frame of %zu bytes is refused: %s", size,
                         wrong);
    /* The zone is as large as what the scan counted, so unpacking takes one malloc. */
    if (!msgpack_zone_init(&zone, ((size_t)items_count + 1) * sizeof(msgpack_object)))
        return error_set(err, MUSTER_E_NOMEM, "no memory to decode a frame of %zu bytes", size);
    unpacked = msgpack_unpack((const char *)frame, size, &offset, &zone, &root);
    if (unpacked == MSGPACK_UNPACK_SUCCESS)
        status = wire_get_message(&root, arena, &msg, err);
    else if (unpacked == MSGPACK_UNPACK_NOMEM_ERROR)
        status = error_set(err, MUSTER_E_NOMEM, "no memory to decode a frame of %zu bytes", size);
    else
        status = error_set(err, MUSTER_E_PROTOCOL, "a frame of %zu bytes is not one msgpack value",
                           size);
    msgpack_zone_destroy(&zone);
    if (status == MUSTER_OK)
        *ret_msg = msg;
    return status;
}

/* --- copy ------------------------------------------------------------------------------------- */

static bool wire_copy_fields(const struct fields *fields, unsigned char *to, struct arena *arena);

static bool wire_copy_span(struct span *span, const struct field *field, struct arena *arena)
{
    const struct fields *entry = field->kind == FIELD_L ? wire_entry_of(field->entry) : NULL;
    size_t entry_bytes = entry == NULL ? 1 : entry->size_bytes;
    unsigned char *copy;

    if (span->count == 0)
        return true;
    copy = arena_alloc(arena, span->count * entry_bytes);
    if (copy == NULL)
        return false;
    memcpy(copy, span->at, span->count * entry_bytes);
    span->at = copy;
    for (size_t i = 0; entry != NULL && i < span->count; i++)
        if (!wire_copy_fields(entry, copy + i * entry_bytes, arena))
            return false;
    return true;
}

/* `to` is already a flat copy; what it points to is replaced by copies. */
static bool wire_copy_fields(const struct fields *fields, unsigned char *to, struct arena *arena)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->items[i];
        unsigned char *at = to + field->offset;
        struct span span;
        const char *text;

        if (field->kind == FIELD_S) {
            memcpy(&text, at, sizeof text);
            text = text == NULL || text[0] == '\0' ? "" : arena_strdup(arena, text);
            if (text == NULL)
                return false;
            memcpy(at, &text, sizeof text);
        } else if (field->kind == FIELD_R || field->kind == FIELD_L) {
            memcpy(&span, at, sizeof span);
            if (!wire_copy_span(&span, field, arena))
                return false;
            memcpy(at, &span, sizeof span);
        }
    }
    return true;
}

bool wire_copy(struct wire_msg *ret_copy, const struct wire_msg *msg, struct arena *arena)
{
    const struct message *message = wire_message_of(msg->type);
    struct wire_msg copy = *msg;

    if (!wire_copy_fields(wire_head_of(UP), (unsigned char *)&copy.up, arena) ||
        !wire_copy_fields(wire_head_of(DOWN), (unsigned char *)&copy.down, arena) ||
        (message != NULL && !wire_copy_fields(&message->body, wire_body_of(&copy), arena)))
        return false;
    *ret_copy = copy;
    return true;
}

/* --- types ------------------------------------------------------------------------------------ */

bool wire_is_up(unsigned type)
{
    const struct message *message = wire_message_of(type);

    return message != NULL && message->direction == UP;
}

bool wire_is_request(unsigned type)
{
    return type == WIRE_LEAVE || (type >= WIRE_NOOP && type <= WIRE_HOST && type != WIRE_REPORT);
}

bool wire_is_task(unsigned type)
{
    return type >= WIRE_QUEUE_OPEN && type <= WIRE_WORK_LEFT;
}

const char *wire_type_name(unsigned type)
{
    const struct message *message = wire_message_of(type);

    return message == NULL ? "unknown" : message->name;
}
