/* share - one poller per host: which process asks a service, and what the others learn from it.
 * Owns: for one service a lock file and a state file in the user's runtime directory.
 * Never: a wait; a lock that a forked child would keep (record locks are the process's own); a file
 * that another user made. If there is no such directory, every process asks for itself.
 *
 * The holder of the lock asks, and writes what it knows at least every SHARE_STAMP_MS. The others
 * try the lock as often: when the holder's process ends the kernel gives it up, and one of them
 * goes on. A holder that is stopped writes nothing: after SHARE_STALE_MS the others ask too, until
 * it writes again. So whatever happens to the process that asks, another asks within
 * SHARE_HANDOVER_MS, plus the time that it waits for the processor. */
#ifndef NODE_NOTICE_SHARE_H
#define NODE_NOTICE_SHARE_H

#include "node/notice/base/source.h"

#define SHARE_STAMP_MS 250
#define SHARE_STALE_MS 1000
#define SHARE_HANDOVER_MS 2000
_Static_assert(SHARE_STALE_MS + 2 * SHARE_STAMP_MS < SHARE_HANDOVER_MS,
               "a last stamp is stale, is looked at, and is asked instead of");
#define SHARE_TOPICS_MAX 6
#define SHARE_MEMORY_MAX 127 /* bytes of printable ASCII */

struct share_state { /* what the one who asks knows */
    int64_t stamp_boot_ms;
    struct source_status status;
    char memory[SHARE_MEMORY_MAX + 1]; /* the provider's: who asks next goes on with it */
    bool known[SHARE_TOPICS_MAX];      /* this topic was answered */
    struct notice_set sets[SHARE_TOPICS_MAX];
};

struct share;

/* key: names the service and its address. NULL: no directory, or no memory: nothing is shared. */
struct share *share_open(const char *runtime_dir, const char *source, const char *key);
/* True: this one asks. Tries for the lock. */
bool share_is_asker(struct share *share, int64_t now_boot_ms);
void share_write(struct share *share, const struct share_state *state);
/* False: nobody has written of late. */
bool share_read(struct share *share, int64_t now_boot_ms, struct share_state *ret_state);
void share_close(struct share **share);

/* A source's place among those of the host: whether it asks itself, and what it knows, by asking or
 * reading. */
struct share_seat {
    struct share *share;
    int64_t look_boot_ms; /* when it looks around next */
    bool asks;
    struct share_state state;
};
void share_seat_open(struct share_seat *seat, const char *runtime_dir, const char *source,
                     const char *key);
/* The source's own status; the one who asks writes it for the others. */
typedef void share_status_fn(const void *self, struct source_status *ret_status);
/* Sees who asks; writes what is known here, or says what another who asks has learnt. */
void share_seat_look(struct share_seat *seat, const struct notice_now *now, share_status_fn *status,
                     const void *self, const struct source_out *out);
/* One who asks learnt what a topic says. */
void share_seat_say(struct share_seat *seat, unsigned topic, const struct notice_set *set,
                    const struct source_out *out);
/* The earlier one of `at` and its next look around. */
int64_t share_seat_wakeup_boot_ms(const struct share_seat *seat, int64_t at);
/* The word of the asking process on the source, name apart. */
void share_seat_status(const struct share_seat *seat, struct source_status *ret_status);

/* The directory: MUSTER_RUNTIME_DIR, XDG_RUNTIME_DIR/muster, root's /run/muster, /tmp/muster-UID;
 * made if it is missing, taken only if it is ours and nobody else may write there. */
bool share_directory(char *ret_path, size_t size);

#endif
