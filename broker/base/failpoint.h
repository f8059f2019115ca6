/* failpoint - the places where a test build kills or stops the broker, to see what a crash there
 * costs. Only with MUSTER_FAIL_POINTS; otherwise every call is nothing. failpoint.def lists the
 * places; a place and what is there make a point, as "commit_after:decision".
 *   MUSTER_FAIL_POINT=POINT[:n]    SIGKILL to this process when POINT is reached the n-th time
 *   MUSTER_FAIL_POINT=list         musterd prints every point that there is, and ends
 *   MUSTER_FAIL_POINT_FILE=PATH    while this file exists, its one line is an order:
 *       "kill POINT[:n]"           as above, counted from the moment the line was written
 *       "stop POINT[:n]"           SIGSTOP instead, once
 *       "wait POINT[:n]"           this thread sleeps for 8 s, once: a disk that is slow
 *       "trace PATH2"              each point that is reached is a line of PATH2
 *   MUSTER_TEST_PUB_DROP=n         every n-th frame on PUB is thrown away (1 = all of them)
 *   MUSTER_TEST_PUB_SMALL=1        PUB keeps few frames: a subscriber that stalls loses some
 *   MUSTER_TEST_PUB_REPEAT=n       each frame on PUB is sent n times, so that they are soon many */
#ifndef BROKER_FAILPOINT_H
#define BROKER_FAILPOINT_H

#include "broker/core/contract/core.h"

#include <stdbool.h>

#ifdef MUSTER_FAIL_POINTS
enum failpoint {
#define FAILPOINT(PLACE, name, WHATS) FAILPOINT_##PLACE,
#include "broker/base/failpoint.def"
#undef FAILPOINT
    FAILPOINT_COUNT
};

void failpoint_pass(enum failpoint place);
void failpoint_message(enum failpoint place, const struct wire_msg *message);
void failpoint_record(enum failpoint place, const struct record *record);
void failpoint_batch(enum failpoint place, const struct actions *batch);
/* True if the list was asked for; it was printed. */
bool failpoint_list(void);
bool failpoint_drop_publish(void);
bool failpoint_small_queue(void);
long failpoint_publish_times(void);
#else
#define failpoint_pass(place) ((void)0)
#define failpoint_message(place, message) ((void)(message))
#define failpoint_record(place, record) ((void)(record))
#define failpoint_batch(place, batch) ((void)(batch))
#define failpoint_list() false
#define failpoint_drop_publish() false
#define failpoint_small_queue() false
#define failpoint_publish_times() 1
#endif

#endif
