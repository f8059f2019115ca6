/* json - reads a reply's JSON, and handles its traps once for all parsers. Pure. */
#ifndef NODE_NOTICE_JSON_H
#define NODE_NOTICE_JSON_H

#include "node/notice/base/http.h"

#include <jansson.h>

/* Owned (json_decref, which takes NULL); NULL: no JSON, text after it, or a key twice. A byte order
 * mark is skipped. */
json_t *json_read(const struct http_reply *reply);
/* The string of that key, without spaces around it. False: none, or it does not fit, or has a NUL.
 * root may be NULL. */
bool json_text(const json_t *root, const char *key, char *ret_text, size_t size);

#endif
