/* query_place - which broker or database answers when none is named. See query_place.h. */
#include "client/query/query_place.h"

#include "client/query/query_address.h"
#include "schema/error.h"
#include "schema/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_SCHEME "ipc://"

#define ARGUMENT_WORD "argument address"

static const char *query_place_words[2] = {ARGUMENT_WORD, ARGUMENT_WORD};

void query_place_name_options(void)
{
    query_place_words[0] = "--broker";
    query_place_words[1] = "--db";
}

const char *query_place_broker_word(void)
{
    return query_place_words[0];
}

const char *query_place_db_word(void)
{
    return query_place_words[1];
}

static const char *query_place_variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static enum muster_status query_place_take(const char *name, const char *value,
                                           char ret_place[QUERY_PLACE_MAX + 1],
                                           struct muster_error *err)
{
    if (strlen(value) > QUERY_PLACE_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "%s is longer than %d characters", name,
                         QUERY_PLACE_MAX);
    memcpy(ret_place, value, strlen(value) + 1);
    return MUSTER_OK;
}

bool query_place_broker(char ret_endpoint[ENDPOINT_MAX + 1])
{
    if (!paths_default_endpoint((unsigned)geteuid(), getenv("XDG_RUNTIME_DIR"), ret_endpoint)) {
        ret_endpoint[0] = '\0';
        return false;
    }
    return access(ret_endpoint + strlen(SOCKET_SCHEME), F_OK) == 0;
}

enum muster_status query_place_find(char ret_place[QUERY_PLACE_MAX + 1], struct muster_error *err)
{
    const char *broker = query_place_variable("MUSTER_BROKER");
    const char *named = query_place_variable("MUSTER_DB");
    char endpoint[ENDPOINT_MAX + 1], db[PATH_BYTES_MAX + 1];

    if (broker != NULL && !query_address_is(broker))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_BROKER is \"%.200s\", which is not a broker's address: give "
                         "tcp://host:port or ipc://path",
                         broker);
    if (broker != NULL)
        return query_place_take("MUSTER_BROKER", broker, ret_place, err);
    if (named != NULL)
        return query_place_take("MUSTER_DB", named, ret_place, err);
    if (query_place_broker(endpoint))
        return query_place_take("the default address", endpoint, ret_place, err);
    if (!paths_default_db((unsigned)geteuid(), getenv("XDG_STATE_HOME"), getenv("HOME"), db))
        db[0] = '\0';
    if (access(db, F_OK) == 0)
        return query_place_take("the default path", db, ret_place, err);
    return error_set(
        err, MUSTER_E_BROKER,
        "MUSTER_BROKER is not set, no broker runs here (no socket%s%s), and there is no "
        "database%s%s: start `musterd`, or name a broker's address (%s, MUSTER_BROKER) or a "
        "database (%s, MUSTER_DB)",
        endpoint[0] != '\0' ? " " : ", as XDG_RUNTIME_DIR is too long",
        endpoint[0] != '\0' ? endpoint + strlen(SOCKET_SCHEME) : "",
        db[0] != '\0' ? " " : ", as HOME is not set", db, query_place_broker_word(),
        query_place_db_word());
}
