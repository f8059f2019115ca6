/* Any bytes: a bundle is refused as a whole, or its entries fill it to its end and make it again.
 * Each entry is also taken for a WELCOME that is to name another endpoint. */
#include "schema/wire/bundle.h"
#include "schema/wire/wire.h"
#include "schema/wire/wire_bytes.h"
#include "tests/fuzz/fuzz.h"

static void try_welcome(const uint8_t *frame, size_t size)
{
    static uint8_t moved[WIRE_FRAME_MAX];
    size_t moved_size = bundle_welcome_at(frame, size, "ipc:///e", moved);
    uint32_t items;

    if (moved_size > 0)
        must(wire_scan(moved, moved_size, &items) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bundle again;
    struct bundle_reader reader = {0};
    struct bundle_entry entry;
    struct bundle_hello hello;
    size_t bytes = BUNDLE_HEAD_BYTES;
    unsigned entries;

    try_welcome(data, size);
    if (bundle_open(data, size, &reader) != BUNDLE_WHOLE) {
        must(reader.data == NULL);
        return 0;
    }
    entries = reader.left;
    bundle_begin(&again, WIRE_EVENT_MAX);
    while (bundle_next(&reader, &entry)) {
        must(entry.frame >= data && entry.frame + entry.size <= data + size);
        bytes += entry.size;
        entries--;
        try_welcome(entry.frame, entry.size);
        (void)bundle_hello_read(entry.frame, entry.size, &hello);
        (void)bundle_add(&again, entry.peer, entry.frame, entry.size);
    }
    must(entries == 0 && bytes <= size);
    must(bundle_open(again.bytes, again.size, &reader) == BUNDLE_WHOLE);
    return 0;
}
