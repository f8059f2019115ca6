/* generation - one launch of a job. */
#ifndef BROKER_CORE_GENERATION_H
#define BROKER_CORE_GENERATION_H

#include "schema/wire/wire.h"

struct generation {
    uint64_t generation;
    enum wire_generation_state state;
    uint64_t world_size;
    enum wire_layout layout;
    char checkpoint_dir[PATH_BYTES_MAX + 1];
    uint64_t
        directory; /* its number, and who told it; 0 = since the start of the broker nobody did */
    uint64_t directory_rank;
    char directory_host[HOST_MAX + 1];
    uint64_t resume_checkpoint;
    int64_t resume_step;
    bool resume_ready;
    bool fallback;
    unsigned end_status;
    char end_text[512];
    int64_t error_rank;
    int64_t error_code;
    char *error_text;
    int64_t opened_unix_ms;
    int64_t started_unix_ms;
    int64_t ending_unix_ms; /* when it began to end, 0 = it did not, or not known */
    int64_t ended_unix_ms;
    int64_t join_ms; /* the join timeout, and when it is over */
    int64_t join_until_boot_ms;
    int64_t ending_boot_ms;
};

#endif
