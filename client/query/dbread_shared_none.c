/* dbread_shared_none - dbread_shared.h in a muster that is built without libpq
 * (-DMUSTER_SHARED=OFF).
 */
#include "client/query/dbread_shared.h"

#include "schema/error.h"

enum muster_status dbread_shared_open(const char *uri, int timeout_ms,
                                      struct dbread_shared **ret_shared, struct muster_error *err)
{
    (void)uri;
    (void)timeout_ms;
    *ret_shared = NULL;
    return error_set(err, MUSTER_E_UNSUPPORTED,
                     "this muster was built without PostgreSQL; Debian's package has it, or ask "
                     "the broker by its address");
}

void dbread_shared_close(struct dbread_shared **shared)
{
    *shared = NULL;
}

enum muster_status dbread_shared_renew(struct dbread_shared *shared, void (*gone_fn)(void *arg),
                                       void *arg, sqlite3 **ret_db, struct muster_error *err)
{
    (void)shared;
    (void)gone_fn;
    (void)arg;
    (void)ret_db;
    return error_set(err, MUSTER_E_UNSUPPORTED, "this muster was built without PostgreSQL");
}

const char *dbread_shared_name(const struct dbread_shared *shared)
{
    (void)shared;
    return "";
}
