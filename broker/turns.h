/* turns - how much of a pass each key gets, when there are keys.
 * Owns: copies of messages whose key has already had its turn in this pass. They are taken in later
 * passes, in their order. So a key that asks without an end delays only itself: in each pass it
 * gets as much as any other. Questions have a lane of their own: a dashboard that asks too often
 * delays no heartbeat. It also owns how much of the disk each key has used today. Never: looks at
 * more of a message than its type and size. One thread. */
#ifndef BROKER_TURNS_H
#define BROKER_TURNS_H

#include "broker/bus.h"

#define TURN_WORK 1024             /* of a key and lane in a pass: plain messages, some 20 ms */
#define TURN_QUESTION_WORK 256     /* of a question: a page of rows is 1 to 3 ms */
#define TURN_PAGE_WORK 8           /* of what is answered by a page of events or tasks */
#define TURN_LIST_BYTES 512        /* of a list of tasks: some 40 of them, as a plain message */
#define TURNS_HELD_BYTES (4 << 20) /* of a lane; what comes then is dropped, and sent again */
#define TURNS_ALL_BYTES (64 << 20)
#define TURN_ROW_BYTES 512 /* of a message in the database, beside its own bytes ... */
#define TURN_ROWS 4        /* ... and both so often: indices, the journal, SQLite's log */

struct turns;

struct turns *turns_create(void); /* NULL: no memory */
void turns_destroy(struct turns **turns);

void turns_begin(struct turns *turns); /* a pass */

/* True: it is to be taken now. False: it was kept for later, or dropped. */
bool turns_take(struct turns *turns, const struct bus_frame *frame);

/* The next message that was kept and whose turn it is now. Its grant is NULL, because the list of
 * keys may have changed: ret_key names its key. Borrowed until the next call. False: none. */
bool turns_next(struct turns *turns, struct bus_frame *ret_frame, const char **ret_key);

/* May a message of this key be written? False: the key has used as much of the disk today as is
 * free now. So a key that writes all that it can leaves half of the disk to the others, and is
 * noticed. */
bool turns_write(struct turns *turns, const char *public_key, size_t size, int64_t free_bytes,
                 int64_t now_unix_ms);

bool turns_wait(const struct turns *turns); /* some are kept */
uint64_t turns_dropped(const struct turns *turns);

#endif
