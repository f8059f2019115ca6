/* failpoint - where a test build kills or deafens the broker, to see what a crash there costs.
 * Only with MUSTER_FAIL_POINTS; otherwise both calls are nothing.
 *   MUSTER_FAIL_POINT=name or name:n   SIGKILL to this process when `name` is reached the n-th time
 *   MUSTER_TEST_PUB_DROP=n             every n-th frame on PUB is thrown away (1 = all of them)
 * Points: before_commit, after_commit, after_commit_decision (the batch held a decision; nothing was
 * sent yet), before_send (as after_commit, only if the batch has something to send). */
#ifndef BROKER_FAILPOINT_H
#define BROKER_FAILPOINT_H

#include <stdbool.h>

#ifdef MUSTER_FAIL_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void failpoint(const char *name)
{
    static long reached;
    const char *asked = getenv("MUSTER_FAIL_POINT");
    size_t length = strlen(name);

    if (asked == NULL || strncmp(asked, name, length) != 0 ||
        (asked[length] != '\0' && asked[length] != ':'))
        return;
    reached++;
    if (reached >= (asked[length] == ':' ? strtol(asked + length + 1, NULL, 10) : 1))
        kill(getpid(), SIGKILL);
}

static inline bool failpoint_drop_publish(void)
{
    static long published;
    const char *asked = getenv("MUSTER_TEST_PUB_DROP");
    long every = asked == NULL ? 0 : strtol(asked, NULL, 10);

    published++;
    return every > 0 && published % every == 0;
}
#else
#define failpoint(name) ((void)0)
#define failpoint_drop_publish() false
#endif

#endif
