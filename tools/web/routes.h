/* routes - which path is which document. */
#ifndef TOOLS_WEB_ROUTES_H
#define TOOLS_WEB_ROUTES_H

#include "tools/web/web.h"

struct web_route {
    const char *pattern; /* "*" is a job, "#" a number */
    const char *type;
    web_make_fn *make; /* NULL: server-sent events */
};
extern const struct web_route web_routes[]; /* ends with pattern NULL */
extern const struct web_route web_order_routes[];

#endif
