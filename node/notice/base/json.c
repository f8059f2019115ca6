/* json - see json.h. */
#include "node/notice/base/json.h"

#include <string.h>

json_t *json_read(const struct http_reply *reply)
{
    const char *body = reply->body;
    size_t size = reply->size;

    if (size >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0)
        body += 3, size -= 3;
    return json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
}

bool json_text(const json_t *root, const char *key, char *ret_text, size_t size)
{
    const json_t *value = json_object_get(root, key);
    const char *text = json_string_value(value);
    size_t length;

    if (text == NULL || strlen(text) != json_string_length(value))
        return false;
    text += strspn(text, " \t\r\n");
    length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    if (length >= size)
        return false;
    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
    return true;
}
