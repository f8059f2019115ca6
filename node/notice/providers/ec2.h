/* ec2 - notices of Amazon EC2's instance metadata service. Pure: see provider.h.
 * They are spot actions, the instance's scheduled events, and the target state of its auto-scaling
 * group. A recommendation to rebalance is only shown; it ends nothing. */
#ifndef NODE_NOTICE_EC2_H
#define NODE_NOTICE_EC2_H

#include "node/notice/providers/provider.h"

enum ec2_path { EC2_SPOT, EC2_EVENTS, EC2_SCALING, EC2_REBALANCE, EC2_PATH_COUNT };

extern const struct provider provider_ec2;

provider_parse_fn ec2_parse_spot, ec2_parse_events, ec2_parse_scaling, ec2_parse_rebalance;

#endif
