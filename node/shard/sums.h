/* sums - checksums of the pieces of a shard file's tensors, kept in the file itself.
 *
 * The last tensor of a file that muster wrote is "muster.sums", U8 [n], after all others:
 *   for each other tensor in the order of the data, for each piece of it (piece_bytes, the last one
 *   shorter; none for an empty tensor): 16 bytes, XXH3-128 in canonical form;
 *   16 bytes: the same of the file's header with its length prefix;
 *   16 bytes: the same of all that is before in this table.
 * piece_bytes is the fact "muster_sums" of __metadata__.
 *
 * The manifest's checksum is that of the whole file, and says that something in it is damaged. The
 * table says what: a restore names the tensor. A reader of a part of a tensor can check that part,
 * its header and the table, without reading the rest.
 * Pure: no I/O. */
#ifndef NODE_SHARD_SUMS_H
#define NODE_SHARD_SUMS_H

#include "node/shard/checksum.h"

#include <stdbool.h>

#define SUMS_NAME "muster.sums"
#define SUMS_FACT "muster_sums"
#define SUMS_PIECE_MIN ((uint64_t)1 << 20)
#define SUMS_PIECE_MAX ((uint64_t)1 << 40)
#define SUMS_PIECES_WANTED                                                \
    65536 /* larger files have larger pieces: the table stays about 1 MiB \
           */

uint64_t sums_piece_bytes(uint64_t data_bytes); /* for so much data, all tensors */
uint64_t sums_count(uint64_t tensor_bytes, uint64_t piece_bytes); /* pieces of one tensor */
#define SUMS_TAIL_BYTES ((size_t)2 * CHECKSUM_RAW_BYTES)          /* of the header, of the table */

/* Fills in the two last sums of a table whose others are there. */
void sums_seal(unsigned char *table, size_t table_bytes, const void *header, size_t header_bytes);
bool sums_header_is_whole(const unsigned char *table, size_t table_bytes, const void *header,
                          size_t header_bytes);
bool sums_table_is_whole(const unsigned char *table, size_t table_bytes);
/* Whether a piece is what the table has at `place` (counted in sums from the table's beginning). */
bool sums_piece_is_whole(const unsigned char *table, uint64_t place, const void *piece,
                         size_t size);

#endif
