/* safetensors_file - one safetensors file that is being read: its header, and what its table of
 * sums says of its bytes. Owns: the descriptor, the header and the table, until
 * safetensors_file_close. Never: the state. Errors name the file. */
#ifndef NODE_SHARD_SAFETENSORS_FILE_H
#define NODE_SHARD_SAFETENSORS_FILE_H

#include "node/shard/safetensors_header.h"

#include <stdbool.h>

struct safetensors_file {
    int fd;
    const char *path; /* borrowed */
    uint64_t size;
    char *header; /* with its prefix; NULL before safetensors_file_read_header */
    uint64_t header_size;
    struct safetensors_index *index;
    unsigned char *table; /* NULL: none was looked for, or there is none that fits */
    size_t table_bytes;
    uint64_t piece_bytes;
};

/* E_NOT_FOUND, E_IO; E_CORRUPT: no regular file. On failure nothing is to be closed. */
enum muster_status safetensors_file_open(const char *path, struct safetensors_file *ret_file,
                                         struct muster_error *err);
void safetensors_file_close(struct safetensors_file *file); /* idempotent */

/* E_CORRUPT: no header, or one that lies. E_UNSUPPORTED, E_IO, E_NOMEM. */
enum muster_status safetensors_file_read_header(struct safetensors_file *file,
                                                struct muster_error *err);

/* After the header: the table of sums, if the file has one. E_CORRUPT: it has one, and that or the
 * header is damaged. E_IO, E_NOMEM. */
enum muster_status safetensors_file_read_sums(struct safetensors_file *file,
                                              struct muster_error *err);

/* Where in a damaged file the damage is: " in tensor \"w\"" or the like, "" when nobody can say.
 * Reads the whole file again. */
void safetensors_file_find_damage(struct safetensors_file *file, char *text, size_t text_size);

#endif
