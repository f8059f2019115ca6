/* outbox - frames that may wait some milliseconds for company: the next frame to the same peer
 * takes them along, and the peer wakes once for both. Owns: their copies. Never: sends, or lets a
 * later frame to the same peer overtake an earlier one (a sender first takes out what is held for
 * that peer). */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTBOX_HOLD_MS \
    3 /* far below what a sender waits before it repeats itself (RESEND_MIN_MS) */
#define OUTBOX_FRAMES 64
#define OUTBOX_FRAME_MAX 256

struct outbox_frame {
    uint64_t route;
    int64_t due_boot_ms;
    size_t size;
    uint8_t data[OUTBOX_FRAME_MAX];
};

struct outbox {
    size_t count;
    struct outbox_frame frames[OUTBOX_FRAMES]; /* oldest first */
    struct outbox_frame taken;
};

/* False: too long, or no room: it has to be sent now. */
bool outbox_hold(struct outbox *outbox, uint64_t route, const uint8_t *frame, size_t size,
                 int64_t now_boot_ms);
/* The oldest for this peer, valid until the next call. NULL: none. */
const struct outbox_frame *outbox_take(struct outbox *outbox, uint64_t route);
/* The oldest, if its time has come by then. */
const struct outbox_frame *outbox_take_due(struct outbox *outbox, int64_t now_boot_ms);
/* When the oldest is due; INT64_MAX: none is held. */
int64_t outbox_wakeup_boot_ms(const struct outbox *outbox);

#endif
