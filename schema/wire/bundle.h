/* bundle - what a relay and the broker say to each other: the frames of several peers in one
 * message. Its form is in WIRE.md ("Relays").
 * Owns: that form, its version and its limits.
 * Never: looks into a frame, allocates, reads beyond `size`.
 * What always holds: a bundle is checked to its end before the first frame of it is given out, so
 * one that was damaged or cut off has no effect at all. */
#ifndef SCHEMA_WIRE_BUNDLE_H
#define SCHEMA_WIRE_BUNDLE_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It stands where a frame has its version. A reader of no bundles, or of others, refuses it. */
#define BUNDLE_VERSION 257
#define BUNDLE_VERSION_LEAST 256 /* frames have lower ones */

#define BUNDLE_HEAD_BYTES 6
#define BUNDLE_ENTRY_BYTES 10 /* around a frame, at most */
#define BUNDLE_AROUND_BYTES (BUNDLE_HEAD_BYTES + BUNDLE_ENTRY_BYTES)
/* Of one frame alone. A bundle of several has at most WIRE_FRAME_MAX + BUNDLE_AROUND_BYTES. */
#define BUNDLE_BYTES_MAX (WIRE_EVENT_MAX + BUNDLE_AROUND_BYTES)
#define BUNDLE_ENTRIES_MAX 1024

/* Peers have numbers that the relay gives them. These two are nobody's. */
#define BUNDLE_CONTROL 0 /* the relay and the broker themselves */
#define BUNDLE_SELF 1    /* never sent: stands for a connection without a relay */
#define BUNDLE_PEER_MIN 2

struct bundle { /* one that is made */
    size_t size, frame_max;
    unsigned entries;
    uint8_t bytes[BUNDLE_BYTES_MAX];
};

/* frame_max: of the longest frame, WIRE_FRAME_MAX to a broker, WIRE_EVENT_MAX from one. */
void bundle_begin(struct bundle *bundle, size_t frame_max);
/* Copies. False: no room; there always is in one that has just begun. */
bool bundle_add(struct bundle *bundle, uint32_t peer, const uint8_t *frame, size_t size);

enum bundle_kind {
    BUNDLE_NONE,   /* a frame, or anything else */
    BUNDLE_OTHER,  /* a bundle of another version */
    BUNDLE_BROKEN, /* to be dropped as a whole */
    BUNDLE_WHOLE
};

struct bundle_reader { /* of one that came; borrows its bytes */
    const uint8_t *data;
    size_t size, at;
    unsigned left;
};

struct bundle_entry {
    uint32_t peer; /* never BUNDLE_SELF */
    const uint8_t *frame;
    size_t size;
};

/* *ret_reader is only written for BUNDLE_WHOLE. */
enum bundle_kind bundle_open(const uint8_t *data, size_t size, struct bundle_reader *ret_reader);
/* False: that was all. */
bool bundle_next(struct bundle_reader *reader, struct bundle_entry *ret_entry);

/* Relays above each other. It ends a circle of relays: see bundle_hello. */
#define BUNDLE_DEPTH_MAX 4

/* The words of a relay under BUNDLE_CONTROL, and the answer. A relay that reaches no broker, or
 * that has BUNDLE_DEPTH_MAX relays above it, does not answer. */
struct bundle_hello {
    uint64_t sender;                 /* random, of this life of it */
    uint32_t depth;                  /* 0: the broker; n: a relay below n - 1 others */
    char endpoint[ENDPOINT_MAX + 1]; /* where it publishes events; "": a relay that asks */
};

/* Returns the bytes written, at most BUNDLE_HELLO_MAX. */
#define BUNDLE_HELLO_MAX (12 + ENDPOINT_MAX)
size_t bundle_hello_write(const struct bundle_hello *hello, uint8_t ret_bytes[BUNDLE_HELLO_MAX]);
bool bundle_hello_read(const uint8_t *bytes, size_t size, struct bundle_hello *ret_hello);

/* A WELCOME tells where events are published: the same frame with another endpoint. Returns the new
 * size, 0: it is no WELCOME, or does not fit. ret_frame has WIRE_FRAME_MAX bytes. */
size_t bundle_welcome_at(const uint8_t *frame, size_t size, const char *endpoint,
                         uint8_t *ret_frame);

#endif
