/* wire_fixture - what the tests of the codec share: room for frames, and what they assert of one.
 */
#ifndef TESTS_UNIT_WIRE_FIXTURE_H
#define TESTS_UNIT_WIRE_FIXTURE_H

#include "schema/wire/wire.h"
#include "tests/unit/schema/wire/wire_samples.h"

#define WIRE_ROOM (WIRE_EVENT_MAX + 4096)
#define WIRE_ARENA_BYTES ((size_t)1 << 22)

extern uint8_t wire_buffer[WIRE_ROOM];
extern uint8_t wire_other[WIRE_ROOM];
extern struct arena wire_arena;    /* of the sample */
extern struct arena wire_in_arena; /* of the decoded message */

/* A broker takes no longer frames than WIRE_FRAME_MAX, and sends only events that are. */
size_t wire_longest(enum wire_type type);

/* Before each test and after the last: both arenas are empty. */
int wire_fresh(void **state);
int wire_done(void **state);

/* Decodes from memory of exactly the frame's size, so that a read behind it is found. */
enum muster_status wire_decode_exactly(const uint8_t *frame, size_t size, struct wire_msg *ret_msg,
                                       struct muster_error *err);
/* With an error whose text contains in_text, and without a message. */
void wire_assert_refused(const uint8_t *frame, size_t size, enum muster_status expected,
                         const char *in_text);
void wire_assert_decodes_to(const uint8_t *frame, size_t size, const struct wire_msg *expected);
/* Fills msg with the golden values, and wire_buffer with its frame, whose size it returns. */
size_t wire_golden(struct wire_msg *msg, unsigned type);

#endif
