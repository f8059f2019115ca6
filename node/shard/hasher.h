/* hasher - computes the checksum of what is being written, on a second thread while the first one
 * is busy with the disk. XXH3 runs at 6 to 9 GB/s, some five times a disk. On the same thread it
 * would cost a save a tenth of its time, and twice that with the sums of the pieces. On a thread of
 * its own it costs nothing. A cryptographic one is slower than a fast disk, and the save then waits
 * for it. Owns: its thread (all signals blocked), from create to finish or destroy.
 * Never: the bytes: what is pushed must stay as it is until it was hashed. No thread to be had: the
 * bytes are hashed inside push, which is only slower. One thread pushes. */
#ifndef NODE_SHARD_HASHER_H
#define NODE_SHARD_HASHER_H

#include "node/shard/checksum.h"
#include "node/shard/interrupt.h"

#define HASHER_AHEAD_MAX 16 /* entries pushed and not hashed; push waits beyond */

struct hasher;

struct hasher_entry {
    const void *data;
    uint64_t size;
    /* Not NULL: also a checksum of each piece of this entry, CHECKSUM_RAW_BYTES each. */
    unsigned char *ret_sums;
    uint64_t piece_bytes;
};

struct fs_watcher;

/* NULL: no memory. watcher: hears of each piece that is hashed, on the hasher's thread; NULL:
 * nobody does. interrupt: is asked while push and wait do, on their thread; NULL: nobody is. Once
 * one of the two said to break off nothing more is hashed. */
struct hasher *hasher_create(enum checksum_kind kind, const struct fs_watcher *watcher,
                             struct interrupt *interrupt);
/* Gives up what was not hashed yet. NULL-safe. */
void hasher_destroy(struct hasher **hasher);

/* Entries are hashed in the order of their pushing. May wait until an earlier one is hashed. */
void hasher_push(struct hasher *hasher, const struct hasher_entry *entry);
/* Waits until all that was pushed is hashed; more may follow. */
void hasher_wait(struct hasher *hasher);
/* Was it broken off? Then it has no checksum. */
bool hasher_gave_up(struct hasher *hasher);
/* The checksum of all so far, after hasher_wait. */
void hasher_text(struct hasher *hasher, char ret_text[MANIFEST_CHECKSUM_SIZE]);

#endif
