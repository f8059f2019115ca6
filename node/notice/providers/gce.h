/* gce - notices of Google Compute Engine's metadata server. Pure: see provider.h.
 * The preemption of a spot VM and the host's maintenance, each by a long poll. A live migration is
 * reported and ends nothing; nor does maintenance that is planned for a day to come: its event is
 * what ends the machine. The machine type says how long before its maintenance a host with
 * accelerators tells. */
#ifndef NODE_NOTICE_GCE_H
#define NODE_NOTICE_GCE_H

#include "node/notice/providers/provider.h"

enum gce_path { GCE_PREEMPTED, GCE_MAINTENANCE, GCE_MACHINE_TYPE, GCE_UPCOMING, GCE_PATH_COUNT };

extern const struct provider provider_gce;

provider_parse_fn gce_parse_preempted, gce_parse_maintenance, gce_parse_machine_type,
    gce_parse_upcoming;

#endif
