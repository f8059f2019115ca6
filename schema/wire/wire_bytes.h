/* wire_bytes - checks a frame's bytes before anything of it is unpacked or allocated. Never:
 * allocation, locale; reading beyond `size`. */
#ifndef SCHEMA_WIRE_BYTES_H
#define SCHEMA_WIRE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTF-8 (RFC 3629) without NUL. */
bool wire_utf8_ok(const char *text, size_t size);

/* Depth, count, kinds and lengths of all items, to the end. NULL, or what is wrong. */
const char *wire_scan(const uint8_t *frame, size_t size, uint32_t *ret_items);

/* The unsigned numbers that a list begins with, at most `count`. Returns how many there are. */
size_t wire_peek(const uint8_t *frame, size_t size, uint64_t *ret_numbers, size_t count);

/* Where element `index` of the frame's own list begins, and where it ends. False: there is none, or
 * the frame does not pass wire_scan. */
bool wire_element(const uint8_t *frame, size_t size, size_t index, size_t *ret_at, size_t *ret_end);

#endif
