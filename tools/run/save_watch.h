/* save_watch - how far a long save has come, for people who watch `muster run`. A small process
 * asks the broker and looks at the files, so that the supervisor never waits for either.
 * Never: changes a launch, which goes on the same when the process fails or hangs. */
#ifndef TOOLS_SAVE_WATCH_H
#define TOOLS_SAVE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The job's newest round, as the process last saw it, and as it goes through the pipe. */
struct save_news {
    bool writes; /* the save is under way; else state tells its end */
    int64_t round;
    int64_t step;
    int64_t saved, writers; /* shards */
    int64_t bytes, of;      /* on the disk; as many as the newest checkpoint has; 0 = unknown */
    int64_t passed_ms;      /* since the process saw it begin */
    char state[16];
};

struct save_watch {
    pid_t pid; /* 0: none */
    int fd;    /* -1: none; readable when there are news */
    struct save_news news;
    int64_t next_ms; /* of CLOCK_MONOTONIC: when it is told again */
    bool told;       /* of this round */
};

/* broker NULL: MUSTER_BROKER, else the default one. A failure leaves it without news. */
void save_watch_start(struct save_watch *ret, const char *broker, const char *job);
void save_watch_stop(struct save_watch *watch); /* a zeroed one is fine */
/* Is it time to print a save's progress? Only of a save that lasts long, and not again at once. */
bool save_watch_due(struct save_watch *watch, bool bar);
/* Takes the newest news. False: there are none. */
bool save_watch_read(struct save_watch *watch);

/* "save at step 400: 3.1 GB of 8.0 GB, 210.3 MB/s, 23 s left (1 of 4 shards)". */
void save_watch_text(const struct save_news *news, char *text, size_t size);
/* The same as a bar of at most `width` characters. */
void save_watch_bar(const struct save_news *news, char *text, size_t size, int width);

#endif
