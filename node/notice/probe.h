/* probe - which cloud answers, if the machine's DMI says nothing: what is asked, and what proves
 * which cloud answered. Another cloud's metadata service, a captive proxy or OpenStack do not
 * count: each cloud has a proof of its own. Pure. */
#ifndef NODE_NOTICE_PROBE_H
#define NODE_NOTICE_PROBE_H

#include "node/notice/base/http.h"

#define PROBE_CONNECT_MS 1000
#define PROBE_TIMEOUT_MS 2000
#define PROBE_AGAIN_MS 600000 /* nobody answered: the network may come later */

/* By number, NULL after the last: the source of that cloud. */
const char *probe_source(size_t index);
void probe_request(size_t index, const char *endpoint, struct http_request *ret_request);
bool probe_proves(size_t index, const struct http_reply *reply);

#endif
