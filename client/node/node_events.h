/* node_events - what happens at nodes, in a queue that a thread of the program's reads.
 * Owns: muster_events_*; which news of a node become events.
 * Never: a wait for a reader; a call into the program, except on_error on its own thread. Holds: at
 * most EVENTS_MAX events of a kind wait. Beyond that the oldest is dropped, and counted.
 */
#ifndef CLIENT_NODE_NODE_EVENTS_H
#define CLIENT_NODE_NODE_EVENTS_H

#include "node/core/member.h"

#include <muster/node.h>

#define EVENTS_MAX 1024

/* For as long as a node may tell something. All take NULL. */
void events_hold(struct muster_events *events);
void events_drop(struct muster_events *events);
/* Does it keep events of this kind? */
bool events_keeps(const struct muster_events *events, enum muster_event_kind kind);
/* Copies. Any thread. */
void events_put(struct muster_events *events, const struct muster_event *event);
/* A line of the log. */
void events_put_line(struct muster_events *events, int level, const char *text);

struct node_seen { /* what was told last */
    struct member_announced announced;
    struct member_announced alone; /* by the thread of a process alone */
    int64_t committed[MEMBER_COMMITS_MAX];
};

/* Hooks of the agent's threads, and of a process alone; node is a struct muster_node. */
void node_events_error(const struct muster_error *error, void *node);
void node_events_view(const struct member_view *view, void *node);
void node_events_announced(enum wire_notice_kind kind, int64_t deadline_boot_ms, void *node);
/* Any thread. So many steps are done. */
void node_events_committed(int64_t done, void *node);

#endif
