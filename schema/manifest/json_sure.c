/* json_sure - see json_sure.h. */
#include "schema/manifest/json_sure.h"

#include <stdlib.h>
#include <string.h>

json_t *json_sure_read(const char *text, size_t size, json_error_t *ret_why, bool *ret_nomem)
{
    json_error_t again;
    json_t *first = json_loadb(text, size, JSON_REJECT_DUPLICATES, ret_why);
    json_t *second = json_loadb(text, size, JSON_REJECT_DUPLICATES, &again);
    bool wrong_twice = first == NULL && second == NULL && ret_why->text[0] != '\0' &&
                       ret_why->position == again.position &&
                       strcmp(ret_why->text, again.text) == 0;
    bool same = first != NULL && second != NULL && json_equal(first, second);

    json_decref(second);
    *ret_nomem = !same && !wrong_twice;
    if (same)
        return first;
    json_decref(first);
    return NULL;
}

char *json_sure_write(const json_t *value, size_t flags)
{
    char *first = json_dumps(value, flags);
    char *second = json_dumps(value, flags);
    bool same = first != NULL && second != NULL && strcmp(first, second) == 0;

    free(second);
    if (same)
        return first;
    free(first);
    return NULL;
}
