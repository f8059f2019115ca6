/* hosts - this host's part in a launch that hosts form by themselves: `muster run --nodes`.
 * Owns: a small process that tells the broker of this host each second, and hears which launch it
 * is in. Never: starts, ends or signals a rank.
 * That process ends with `muster run`: the broker then hears nothing more of this host. */
#ifndef TOOLS_RUN_HOSTS_H
#define TOOLS_RUN_HOSTS_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOSTS_GROW_ID "grow-" /* of the notice that makes room for hosts that wait */

#define HOSTS_ASK_MS 2000 /* for one answer of the broker */

struct hosts_options {  /* borrowed for hosts_start */
    const char *broker; /* NULL: as the library has it */
    const char *job;
    const char *address; /* where the other hosts reach this one; NULL: as the broker sees it */
    int ranks;
    int min, max;  /* max 0: no --nodes was given */
    int node_rank; /* -1 = any */
    int wait_ms;
};

enum hosts_news {
    HOSTS_NOTHING,
    HOSTS_WAIT,    /* text says for what; told once for each text */
    HOSTS_PLACE,   /* this host is in a launch */
    HOSTS_GONE,    /* another host of that launch is gone: text */
    HOSTS_REFUSED, /* this host cannot take part: text. Nothing more comes */
};

struct hosts_message { /* of the small process */
    enum hosts_news news;
    int64_t launch;
    int place;
    int count; /* hosts */
    int first_rank;
    int world_size;
    int port;                   /* free at the host of rank 0 */
    char address[HOST_MAX + 1]; /* of that host */
    char text[MUSTER_ERROR_TEXT_MAX];
};

struct hosts {
    pid_t pid;                           /* 0 = none */
    int fd;                              /* readable when there is news; -1 = no more comes */
    char refused[MUSTER_ERROR_TEXT_MAX]; /* why */
};

/* Forks the small process, which has nothing but its own link to the broker. Before any thread. */
bool hosts_start(struct hosts *ret, const struct hosts_options *options);
/* Does not block. It also returns HOSTS_REFUSED once the small process has ended, and from then
 * on. */
enum hosts_news hosts_read(struct hosts *hosts, struct hosts_message *ret_message);
/* The launch is over here. This host then waits for the next one, or no longer takes part. */
void hosts_ended(struct hosts *hosts, int64_t launch, bool leave);
/* This host no longer takes part: tells the broker, and waits for a second at most. NULL-safe in
 * all its parts. */
void hosts_stop(struct hosts *hosts);

#endif
