/* metrics - what a save tells about the state besides its shards: metrics, one JSON object of name
 * and number, and custom metadata, any JSON object. Empty text: none. Text from outside is checked
 * here before it gets into a row or a manifest. Pure. */
#ifndef SCHEMA_METRICS_H
#define SCHEMA_METRICS_H

#include "schema/limits.h"

#include <stdbool.h>

/* A name of a metric: 1 to METRIC_NAME_MAX letters, digits and . _ - / */
bool metric_name_ok(const char *name);
/* "" or an object of at most METRICS_BYTES_MAX bytes whose values are all numbers and whose names
 * are metric_name_ok. */
bool metrics_ok(const char *text);
/* "" or an object of at most CUSTOM_BYTES_MAX bytes. */
bool custom_ok(const char *text);

/* A finite number as JSON has it, to the last bit, in whatever locale the program is: there a
 * decimal point may be a comma. */
#define METRIC_NUMBER_SIZE 40
void metrics_number(double value, char ret_text[METRIC_NUMBER_SIZE]);
/* The same of a text of printf's; *text is changed in place. */
void metrics_plain_number(char *text);

/* The value of one metric; false: it has none. */
bool metrics_get(const char *text, const char *name, double *ret_value);

#endif
