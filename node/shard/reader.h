/* reader - a file's tensors read into memory by two threads, and checksummed in their order on the
 * way. Both threads read chunks, the second one only what is in the cache; it also hashes, in the
 * file's order. Hashing takes about as long as reading from a warm cache: so a restore is as fast
 * as a plain read, or faster. Owns: the second thread (all signals blocked) for the time of a call;
 * buffers for what is skipped. Never: reads more of the file than the chunks that it is told. If
 * there is no second thread, the first one does it all. */
#ifndef NODE_SHARD_READER_H
#define NODE_SHARD_READER_H

#include "node/shard/checksum.h"
#include "node/shard/interrupt.h"

struct reader_range { /* of a file, in its order, without a hole */
    uint64_t offset, size;
    char *to; /* NULL: only past the checksum */
};

/* Reads all ranges, and updates sum with them. Returns 0, an errno value (ENOMEM: nothing was
 * read; ECANCELED: interrupt, which may be NULL, broke it off), or FS_END: the file is shorter. */
int reader_read(int fd, const struct reader_range *ranges, size_t count, struct checksum *sum,
                struct interrupt *interrupt);

#endif
