/* sums - see sums.h. */
#include "node/shard/sums.h"

#include <string.h>

uint64_t sums_piece_bytes(uint64_t data_bytes)
{
    uint64_t piece = SUMS_PIECE_MIN;

    while (piece < SUMS_PIECE_MAX && data_bytes / piece > SUMS_PIECES_WANTED)
        piece *= 2;
    return piece;
}

uint64_t sums_count(uint64_t tensor_bytes, uint64_t piece_bytes)
{
    return tensor_bytes / piece_bytes + (tensor_bytes % piece_bytes != 0);
}

static bool sums_is_whole(const void *data, size_t size, const unsigned char *sum)
{
    unsigned char found[CHECKSUM_RAW_BYTES];

    checksum_raw(data, size, found);
    return memcmp(found, sum, sizeof found) == 0;
}

void sums_seal(unsigned char *table, size_t table_bytes, const void *header, size_t header_bytes)
{
    unsigned char *tail = table + table_bytes - SUMS_TAIL_BYTES;

    checksum_raw(header, header_bytes, tail);
    checksum_raw(table, table_bytes - CHECKSUM_RAW_BYTES, tail + CHECKSUM_RAW_BYTES);
}

bool sums_header_is_whole(const unsigned char *table, size_t table_bytes, const void *header,
                          size_t header_bytes)
{
    return sums_is_whole(header, header_bytes, table + table_bytes - SUMS_TAIL_BYTES);
}

bool sums_table_is_whole(const unsigned char *table, size_t table_bytes)
{
    return sums_is_whole(table, table_bytes - CHECKSUM_RAW_BYTES,
                         table + table_bytes - CHECKSUM_RAW_BYTES);
}

bool sums_piece_is_whole(const unsigned char *table, uint64_t place, const void *piece, size_t size)
{
    return sums_is_whole(piece, size, table + place * CHECKSUM_RAW_BYTES);
}
