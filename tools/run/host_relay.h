/* host_relay - the relay of `muster run --relay`: one connection of this host to the broker.
 * Owns: the process `musterd --relay` and the folder of its socket. Never: starts it again, or
 * stands between a rank and the broker. What always holds: the ranks' addresses are the relay's and
 * then the broker's, so they go to the broker when the relay is gone. */
#ifndef TOOLS_RUN_HOST_RELAY_H
#define TOOLS_RUN_HOST_RELAY_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define HOST_RELAY_ADDRESSES (2 * PATH_MAX)

struct host_relay {
    pid_t pid; /* 0: none */
    char dir[PATH_MAX];
    char broker[HOST_RELAY_ADDRESSES]; /* what the ranks get: the relay, then the broker */
};

/* Returns when it listens, within 10 s. It ends with this process, and no signal of a terminal
 * reaches it. broker: NULL, or what the user gave. False: said on stderr what is wrong. */
bool host_relay_start(struct host_relay *relay, const char *broker);
/* Waits 2 s for its end, then kills it. Does nothing without one. */
void host_relay_stop(struct host_relay *relay);

#endif
