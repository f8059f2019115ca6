/* tencent - notices of Tencent Cloud's metadata service. Pure: see provider.h.
 * They tell when a spot instance is released. The instance's name is asked for first, because other
 * services answer 404, too.
 */
#ifndef NODE_NOTICE_TENCENT_H
#define NODE_NOTICE_TENCENT_H

#include "node/notice/providers/provider.h"

enum tencent_path { TENCENT_INSTANCE, TENCENT_SPOT, TENCENT_PATH_COUNT };

extern const struct provider provider_tencent;

provider_parse_fn tencent_parse_instance, tencent_parse_spot;

#endif
