/* Any bytes: decode is refused cleanly, or what it gives can be encoded, copied and decoded again
 * without a difference. */
#include "schema/wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t first[WIRE_FRAME_MAX];
    static uint8_t second[WIRE_FRAME_MAX];
    struct muster_error err = {0};
    struct wire_msg msg;
    struct wire_msg again;
    struct wire_msg copy;
    struct arena arena;
    enum muster_status status;
    size_t length;

    arena_init(&arena, (size_t)1 << 22);
    status = wire_decode(data, size, &arena, &msg, &err);
    must(status == MUSTER_OK || (err.status == status && err.text[0] != '\0'));
    must(status == MUSTER_OK || status == MUSTER_E_PROTOCOL || status == MUSTER_E_VERSION);
    if (status == MUSTER_OK) {
        /* Missing fields are written out, a byte each: only a frame that was nearly full of short
         * entries may become too long. */
        length = wire_encode(&msg, first, sizeof first);
        must(length > 0 || size > WIRE_FRAME_MAX / 2);
        if (length > 0) {
            must(wire_decode(first, length, &arena, &again, &err) == MUSTER_OK);
            must(wire_copy(&copy, &again, &arena));
            must(wire_encode(&copy, second, sizeof second) == length);
            must(memcmp(first, second, length) == 0);
            must(again.type == msg.type);
        }
    }
    arena_free(&arena);
    return 0;
}
