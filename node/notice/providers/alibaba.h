/* alibaba - notices of Alibaba Cloud's metadata service. Pure: see provider.h.
 * They tell when a spot instance is released. The instance's name is asked for first, because other
 * services answer 404, too.
 */
#ifndef NODE_NOTICE_ALIBABA_H
#define NODE_NOTICE_ALIBABA_H

#include "node/notice/providers/provider.h"

enum alibaba_path { ALIBABA_INSTANCE, ALIBABA_SPOT, ALIBABA_PATH_COUNT };

extern const struct provider provider_alibaba;

provider_parse_fn alibaba_parse_instance, alibaba_parse_spot;

#endif
