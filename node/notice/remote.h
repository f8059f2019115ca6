/* remote - a source that asks a provider over HTTP: the half of provider.h that is not pure.
 * Owns: the requests in flight, the sharing with the host's other nodes.
 * Never: a wait, a decision of the provider's. */
#ifndef NODE_NOTICE_REMOTE_H
#define NODE_NOTICE_REMOTE_H

#include "node/notice/providers/provider.h"

/* A source as in source_ops; all functions but open are the same for all providers. E_ARGUMENT: the
 * address does not begin with http://. */
enum muster_status remote_open(const struct provider *provider, const struct source_config *config,
                               void **ret_self, struct muster_error *err);
extern const struct source_ops remote_ops; /* open is NULL: see above */

#endif
