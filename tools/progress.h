/* progress - how far long work is, on standard error: a bar on a terminal, a line every ten seconds
 * in a log. It shows nothing for work that takes less than a second. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum progress_unit { PROGRESS_BYTES, PROGRESS_COUNT };

struct progress {
    const char *what; /* borrowed: "verify" */
    enum progress_unit unit;
    int64_t all;
    int64_t begun_ms, next_ms;
    bool terminal, shown;
};

void progress_begin(struct progress *progress, const char *what, enum progress_unit unit,
                    int64_t all);
void progress_at(struct progress *progress, int64_t done);
/* Removes the bar; lines stay. */
void progress_end(struct progress *progress);

/* "2.0 GB of 8.0 GB, 512.0 MB/s, 12 s left", for the time that has passed. */
void progress_text(char *text, size_t size, enum progress_unit unit, int64_t done, int64_t all,
                   int64_t passed_ms);

#endif
