/* orders - the orders that a page can give with `muster web --orders`, and the check of who may.
 * Owns: the secret of this run, which the printed address tells.
 * Always: an order comes by POST, with that secret in a header of its own. A page of another site
 * does not know the secret and may send no such header. Its Origin is refused, too. */
#include "tools/web/routes.h"

#include "node/link_key.h"
#include "schema/keys/secret.h"
#include "tools/verbs.h"

#include <string.h>
#include <sys/random.h>

/* --- who may ---------------------------------------------------------------------------------- */

/* A broker with keys refuses all orders of another role. Says so now, not at the first order. */
static int orders_check_key(const struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    const char *path = tool->values[OPTION_KEY];
    struct key_file key;
    enum key_role role;

    if (path == NULL || strstr(tool->address, "tcp://") == NULL)
        return TOOL_DONE;
    if (link_key_read(path, &key, &err) != MUSTER_OK)
        return tool_fail_status(err.status, &err);
    role = key.role;
    secret_wipe(&key, sizeof key);
    if (role == KEY_OPERATOR)
        return TOOL_DONE;
    return tool_fail(TOOL_REFUSED,
                     "--orders needs an operator's key, and %s is a %s's: make one with `muster "
                     "key add NAME --role operator`, or leave --orders out",
                     path, key_role_name(role));
}

int web_orders_begin(struct web *web)
{
    unsigned char bytes[(sizeof web->secret - 1) / 2];
    int code = tool_check_broker(web->tool);

    if (code == TOOL_DONE)
        code = orders_check_key(web->tool);
    if (code != TOOL_DONE)
        return code;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tool_fail(TOOL_NO, "there are no random numbers for the secret of --orders");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(web->secret + 2 * i, sizeof web->secret - 2 * i, "%02x", bytes[i]);
    return TOOL_DONE;
}

/* Takes the same time wherever the two differ. */
static bool orders_is_secret(const struct web *web, const char *text)
{
    unsigned differ = 0;

    if (text == NULL || web->secret[0] == '\0' || strlen(text) != sizeof web->secret - 1)
        return false;
    for (size_t i = 0; i < sizeof web->secret - 1; i++)
        differ |= (unsigned)(text[i] ^ web->secret[i]);
    return differ == 0;
}

/* Is this the page's own address, by whichever scheme a proxy before us speaks? */
static bool orders_origin_ok(const char *origin, const char *host)
{
    const char *name = origin == NULL ? NULL : strstr(origin, "://");

    return origin == NULL || (name != NULL && host != NULL && strcmp(name + 3, host) == 0);
}

const char *web_orders_wrong(const struct web *web, struct MHD_Connection *connection)
{
    const char *secret = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, WEB_SECRET);
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

    if (!orders_origin_ok(origin, host))
        return "this order was sent by another site's page";
    if (!orders_is_secret(web, secret))
        return "this tab may not give orders: open the address that `muster web --orders` printed "
               "at its newest start";
    return NULL;
}

/* --- what ------------------------------------------------------------------------------------- */

static int orders_run(struct tool *tool, const char *arg, int (*verb)(struct tool *tool))
{
    if (arg != NULL && arg[0] != '\0')
        tool->args[tool->args_count++] = arg;
    tool->values[OPTION_JSON] = "";
    return verb(tool);
}

static int orders_save(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web, (void)request;
    return orders_run(tool, NULL, cmd_save);
}

static int orders_notify(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    if (request->rank == NULL)
        return tool_fail(TOOL_USAGE, "notify needs a rank: notify?rank=N");
    tool->values[OPTION_GRACE] = request->grace;
    tool->values[OPTION_TEXT] = request->text;
    return orders_run(tool, request->rank, cmd_notify);
}

static int orders_pin(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return orders_run(tool, request->checkpoint, cmd_pin);
}

const struct web_route web_order_routes[] = {
    {"/api/v1/jobs/*/save", "application/json", orders_save},
    {"/api/v1/jobs/*/notify", "application/json", orders_notify},
    {"/api/v1/jobs/*/pin", "application/json", orders_pin},
    {.pattern = NULL},
};
