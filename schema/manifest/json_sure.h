/* json_sure - reads JSON without losing a byte when memory is short. If jansson gets no memory for
 * a buffer, it leaves out what had no room there, and reads on: it then returns another text, and
 * no error. */
#ifndef SCHEMA_JSON_SURE_H
#define SCHEMA_JSON_SURE_H

#include <jansson.h>
#include <stdbool.h>

/* As json_loadb with JSON_REJECT_DUPLICATES, read twice and compared. NULL: ret_why says what is
 * wrong with the text, or *ret_nomem is true. */
json_t *json_sure_read(const char *text, size_t size, json_error_t *ret_why, bool *ret_nomem);

/* As json_dumps, written twice and compared. Returns owned (free), NULL: no memory, or text that is
 * not UTF-8. */
char *json_sure_write(const json_t *value, size_t flags);

#endif
