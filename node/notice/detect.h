/* detect - source "auto": finds out where this machine is, and lets that cloud's source be asked as
 * if it had been named. It asks the machine itself first (platform.h). Only if that has no DMI it
 * asks the network, in the background, see probe.h. It runs on watch's threads. It never forgets a
 * cloud that it found. If nobody answered, it asks again after PROBE_AGAIN_MS. */
#ifndef NODE_NOTICE_DETECT_H
#define NODE_NOTICE_DETECT_H

#include "node/notice/base/source.h"

struct runner;

extern const struct source_ops detect_ops; /* has no `open`: */
enum muster_status detect_open(struct runner *runner, void **ret_self, struct muster_error *err);

#endif
