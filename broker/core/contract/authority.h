/* authority - who may send which message: one table of messages and the roles of keys.
 * Only a client's key and the job that the message is about decide. Nothing else in the message
 * counts. A client without a key is the broker's own user, on a socket that only this user reaches,
 * and may say everything. */
#ifndef BROKER_CORE_AUTHORITY_H
#define BROKER_CORE_AUTHORITY_H

#include "schema/keys/keys.h"
#include "schema/wire/wire.h"

/* May this key say this message now? On MUSTER_E_AUTH err says why not, and what may be done. */
enum muster_status authority_check(const struct key_grant *grant, const struct wire_msg *message,
                                   int64_t now_unix_ms, struct muster_error *err);

/* May it hear the events of this job? */
bool authority_hears(const struct key_grant *grant, const char *job, int64_t now_unix_ms);

#endif
