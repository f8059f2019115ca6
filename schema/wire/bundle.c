/* bundle - see bundle.h. The form is msgpack, so that a reader of frames finds the version where it
 * looks for one: [257, peer, frame, peer, frame, ...]. It is an array16 with a uint16 for the
 * version, a uint32 for each peer, and a bin16 or bin32 for each frame. */
#include "schema/wire/bundle.h"

#include "schema/wire/wire.h"
#include "schema/wire/wire_bytes.h"

#include <string.h>

#define TAG_ARRAY16 0xdc
#define TAG_UINT16 0xcd
#define TAG_UINT32 0xce
#define TAG_BIN16 0xc5
#define TAG_BIN32 0xc6
#define TAG_STR8 0xd9
#define WELCOME_ENDPOINT_AT 10 /* version, type, head of 5, nonce, generation, world_size */

static void bundle_put(uint8_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

static uint64_t bundle_get(const uint8_t *at, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

/* --- made ------------------------------------------------------------------------------------- */

static void bundle_count(struct bundle *bundle)
{
    bundle_put(bundle->bytes + 1, 1 + 2 * (uint64_t)bundle->entries, 2);
}

void bundle_begin(struct bundle *bundle, size_t frame_max)
{
    bundle->frame_max = frame_max;
    bundle->bytes[0] = TAG_ARRAY16;
    bundle->bytes[3] = TAG_UINT16;
    bundle_put(bundle->bytes + 4, BUNDLE_VERSION, 2);
    bundle->size = BUNDLE_HEAD_BYTES;
    bundle->entries = 0;
    bundle_count(bundle);
}

bool bundle_add(struct bundle *bundle, uint32_t peer, const uint8_t *frame, size_t size)
{
    uint8_t *at = bundle->bytes + bundle->size;
    size_t length_bytes = size <= UINT16_MAX ? 2 : 4;
    size_t most = bundle->entries == 0 ? bundle->frame_max : WIRE_FRAME_MAX;

    if (size > most || bundle->entries == BUNDLE_ENTRIES_MAX ||
        bundle->size + BUNDLE_ENTRY_BYTES + size > most + BUNDLE_AROUND_BYTES)
        return false;
    at[0] = TAG_UINT32;
    bundle_put(at + 1, peer, 4);
    at[5] = length_bytes == 2 ? TAG_BIN16 : TAG_BIN32;
    bundle_put(at + 6, size, length_bytes);
    if (size > 0)
        memcpy(at + 6 + length_bytes, frame, size);
    bundle->size += 6 + length_bytes + size;
    bundle->entries++;
    bundle_count(bundle);
    return true;
}

/* --- taken ------------------------------------------------------------------------------------ */

/* The entry at reader->at. False: it is no entry, or goes beyond the end. */
static bool bundle_entry_at(struct bundle_reader *reader, struct bundle_entry *ret_entry)
{
    const uint8_t *at = reader->data + reader->at;
    size_t left = reader->size - reader->at, length_bytes;

    if (left < 8 || at[0] != TAG_UINT32 || (at[5] != TAG_BIN16 && at[5] != TAG_BIN32))
        return false;
    length_bytes = at[5] == TAG_BIN16 ? 2 : 4;
    if (left < 6 + length_bytes)
        return false;
    *ret_entry = (struct bundle_entry){.peer = (uint32_t)bundle_get(at + 1, 4),
                                       .frame = at + 6 + length_bytes,
                                       .size = (size_t)bundle_get(at + 6, length_bytes)};
    if (ret_entry->size > left - 6 - length_bytes || ret_entry->size > WIRE_EVENT_MAX)
        return false;
    reader->at += 6 + length_bytes + ret_entry->size;
    return ret_entry->peer != BUNDLE_SELF;
}

bool bundle_next(struct bundle_reader *reader, struct bundle_entry *ret_entry)
{
    if (reader->left == 0 || !bundle_entry_at(reader, ret_entry))
        return false;
    reader->left--;
    return true;
}

static bool bundle_is_whole(struct bundle_reader reader)
{
    struct bundle_entry entry;

    while (bundle_next(&reader, &entry))
        continue;
    return reader.left == 0 && reader.at == reader.size;
}

enum bundle_kind bundle_open(const uint8_t *data, size_t size, struct bundle_reader *ret_reader)
{
    struct bundle_reader reader = {.data = data, .size = size, .at = BUNDLE_HEAD_BYTES};
    uint64_t version = 0, items;

    if (wire_peek(data, size, &version, 1) == 0 || version < BUNDLE_VERSION_LEAST)
        return BUNDLE_NONE;
    if (version != BUNDLE_VERSION)
        return BUNDLE_OTHER;
    if (size < BUNDLE_HEAD_BYTES || size > BUNDLE_BYTES_MAX || data[0] != TAG_ARRAY16 ||
        data[3] != TAG_UINT16)
        return BUNDLE_BROKEN;
    items = bundle_get(data + 1, 2);
    reader.left = (unsigned)(items / 2);
    if (items % 2 == 0 || reader.left > BUNDLE_ENTRIES_MAX || !bundle_is_whole(reader))
        return BUNDLE_BROKEN;
    *ret_reader = reader;
    return BUNDLE_WHOLE;
}

/* --- who speaks ------------------------------------------------------------------------------- */

size_t bundle_hello_write(const struct bundle_hello *hello, uint8_t ret_bytes[BUNDLE_HELLO_MAX])
{
    size_t length = strlen(hello->endpoint);

    bundle_put(ret_bytes, hello->sender, 8);
    bundle_put(ret_bytes + 8, hello->depth, 4);
    memcpy(ret_bytes + 12, hello->endpoint, length);
    return 12 + length;
}

bool bundle_hello_read(const uint8_t *bytes, size_t size, struct bundle_hello *ret_hello)
{
    struct bundle_hello hello = {0};

    if (size < 12 || size > BUNDLE_HELLO_MAX || memchr(bytes + 12, '\0', size - 12) != NULL)
        return false;
    hello.sender = bundle_get(bytes, 8);
    hello.depth = (uint32_t)bundle_get(bytes + 8, 4);
    memcpy(hello.endpoint, bytes + 12, size - 12);
    *ret_hello = hello;
    return true;
}

size_t bundle_welcome_at(const uint8_t *frame, size_t size, const char *endpoint,
                         uint8_t *ret_frame)
{
    size_t length = strnlen(endpoint, ENDPOINT_MAX + 1), at = 0, end = 0;
    uint64_t numbers[2] = {0, WIRE_NONE};

    if (wire_peek(frame, size, numbers, 2) < 2 || numbers[0] != WIRE_VERSION ||
        numbers[1] != WIRE_WELCOME || length > ENDPOINT_MAX ||
        !wire_element(frame, size, WELCOME_ENDPOINT_AT, &at, &end) ||
        size - (end - at) + 2 + length > WIRE_FRAME_MAX)
        return 0;
    memcpy(ret_frame, frame, at);
    ret_frame[at] = TAG_STR8;
    ret_frame[at + 1] = (uint8_t)length;
    memcpy(ret_frame + at + 2, endpoint, length);
    memcpy(ret_frame + at + 2 + length, frame + end, size - end);
    return at + 2 + length + size - end;
}
