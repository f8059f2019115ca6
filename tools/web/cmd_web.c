/* cmd_web - `muster web`: where it listens, and how it ends. */
#include "tools/verbs.h"
#include "tools/web/web.h"

#include <stdlib.h>
#include <string.h>

#define WEB_LISTEN "127.0.0.1:7780"

/* "HOST:PORT", "[V6]:PORT"; HOST is an address, or localhost. */
static int web_parse_listen(struct web *web, const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    int64_t port = 0;

    if (length == 0 || length >= sizeof web->host)
        return tool_fail(TOOL_USAGE, "--listen is \"%s\"; give HOST:PORT, as in " WEB_LISTEN, text);
    if (tool_number(colon + 1, "the port of --listen", 0, 65535, &port) != TOOL_DONE)
        return TOOL_USAGE;
    if (text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    snprintf(web->host, sizeof web->host, "%.*s", (int)length, text);
    web->port = (int)port;
    return TOOL_DONE;
}

int cmd_web(struct tool *tool)
{
    const char *listen = tool->values[OPTION_LISTEN];
    struct web *web;
    int code;

    if (tool_json(tool))
        return tool_fail(TOOL_USAGE, "web is a page: `muster status --json` has the figures");
    web = calloc(1, sizeof *web);
    if (web == NULL)
        return tool_fail(TOOL_NO, "no memory for the page");
    web->tool = tool;
    pthread_mutex_init(&web->lock, NULL);
    code = web_parse_listen(web, listen == NULL ? WEB_LISTEN : listen);
    if (code == TOOL_DONE && tool->values[OPTION_ORDERS] != NULL)
        code = web_orders_begin(web);
    if (code == TOOL_DONE)
        code = web_serve(web);
    muster_client_set_interrupted(tool->client, NULL, NULL);
    web_forget_all(web);
    web_history_free(web);
    pthread_mutex_destroy(&web->lock);
    free(web);
    return code;
}
