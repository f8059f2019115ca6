/* azure - notices of Azure's scheduled events. Pure: see provider.h.
 * Only events that name this machine count: the service lists those of its whole group. A freeze is
 * reported and ends nothing. */
#ifndef NODE_NOTICE_AZURE_H
#define NODE_NOTICE_AZURE_H

#include "node/notice/providers/provider.h"

enum azure_path { AZURE_NAME, AZURE_EVENTS, AZURE_PATH_COUNT };

extern const struct provider provider_azure;

provider_parse_fn azure_parse_name, azure_parse_events;

#endif
