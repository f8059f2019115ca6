#include "broker/outbox.h"

#include <string.h>

bool outbox_hold(struct outbox *outbox, uint64_t route, const uint8_t *frame, size_t size,
                 int64_t now_boot_ms)
{
    struct outbox_frame *held = &outbox->frames[outbox->count];

    if (outbox->count == OUTBOX_FRAMES || size > OUTBOX_FRAME_MAX)
        return false;
    held->route = route;
    held->due_boot_ms = now_boot_ms + OUTBOX_HOLD_MS;
    held->size = size;
    memcpy(held->data, frame, size);
    outbox->count++;
    return true;
}

static const struct outbox_frame *outbox_take_in(struct outbox *outbox, size_t index)
{
    struct outbox_frame *held = &outbox->frames[index];

    outbox->taken = *held;
    memmove(held, held + 1, (--outbox->count - index) * sizeof *held);
    return &outbox->taken;
}

const struct outbox_frame *outbox_take(struct outbox *outbox, uint64_t route)
{
    for (size_t i = 0; i < outbox->count; i++)
        if (outbox->frames[i].route == route)
            return outbox_take_in(outbox, i);
    return NULL;
}

const struct outbox_frame *outbox_take_due(struct outbox *outbox, int64_t now_boot_ms)
{
    bool due = outbox->count > 0 && now_boot_ms >= outbox->frames[0].due_boot_ms;

    return due ? outbox_take_in(outbox, 0) : NULL;
}

int64_t outbox_wakeup_boot_ms(const struct outbox *outbox)
{
    return outbox->count > 0 ? outbox->frames[0].due_boot_ms : INT64_MAX;
}
