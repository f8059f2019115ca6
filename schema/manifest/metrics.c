/* metrics - see metrics.h. */
#include "schema/manifest/metrics.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

bool metric_name_ok(const char *name)
{
    size_t length = strlen(name);

    return length >= 1 && length <= METRIC_NAME_MAX &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/") ==
               length;
}

static json_t *metrics_object_of(const char *text)
{
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    if (root != NULL && !json_is_object(root)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

bool metrics_ok(const char *text)
{
    json_t *root;
    json_t *value;
    const char *name;
    bool good = true;

    if (*text == '\0')
        return true;
    if (strlen(text) > METRICS_BYTES_MAX || (root = metrics_object_of(text)) == NULL)
        return false;
    json_object_foreach(root, name, value)
    {
        good = good && metric_name_ok(name) && json_is_number(value);
    }
    json_decref(root);
    return good;
}

bool custom_ok(const char *text)
{
    json_t *root;

    if (*text == '\0')
        return true;
    if (strlen(text) > CUSTOM_BYTES_MAX || (root = metrics_object_of(text)) == NULL)
        return false;
    json_decref(root);
    return true;
}

bool metrics_get(const char *text, const char *name, double *ret_value)
{
    json_t *root = *text == '\0' ? NULL : metrics_object_of(text);
    json_t *value = json_object_get(root, name);
    bool found = json_is_number(value);

    if (found)
        *ret_value = json_number_value(value);
    json_decref(root);
    return found;
}

void metrics_plain_number(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (strchr("0123456789+-e", *from) != NULL)
            *to++ = *from;
        else if (to == text || to[-1] != '.') /* a locale's point, of one byte or several */
            *to++ = '.';
    *to = '\0';
}

void metrics_number(double value, char ret_text[METRIC_NUMBER_SIZE])
{
    snprintf(ret_text, METRIC_NUMBER_SIZE, "%.17g", value);
    metrics_plain_number(ret_text);
}
