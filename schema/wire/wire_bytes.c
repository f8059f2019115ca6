/* wire_bytes - see wire_bytes.h; and wire.h for the texts. */
#include "schema/wire/wire_bytes.h"

#include "schema/wire/wire.h"

#include <string.h>

/* --- strings ---------------------------------------------------------------------------------- */

/* The bytes of the character that begins at text[0], or 0: not UTF-8 (RFC 3629), or NUL. */
static size_t wire_utf8_character(const unsigned char *text, size_t size)
{
    unsigned char lead = text[0];
    unsigned char low = 0x80; /* bounds of the second byte: no overlong form, no surrogate */
    unsigned char high = 0xbf;
    size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (lead != 0 && lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4 || size < length)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf4)
        high = 0x8f;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool wire_utf8_ok(const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length;

    for (size_t left = size; left > 0; left -= length, at += length) {
        length = wire_utf8_character(at, left);
        if (length == 0)
            return false;
    }
    return true;
}

bool wire_text_ok(const char *text, size_t max)
{
    size_t size = strlen(text);

    return size <= max && wire_utf8_ok(text, size);
}

char *wire_text_fit(struct arena *arena, const char *text, size_t max)
{
    size_t size = text ? strlen(text) : 0;
    char *copy = arena_alloc(arena, (size < max ? size : max) + 1);
    size_t used = 0;

    if (copy == NULL)
        return NULL;
    for (size_t at = 0; at < size;) {
        size_t length = wire_utf8_character((const unsigned char *)text + at, size - at);
        size_t wide = length ? length : 1;
        if (used + wide > max)
            break;
        if (length == 0)
            copy[used] = '?';
        else
            memcpy(copy + used, text + at, length);
        used += wide;
        at += wide;
    }
    copy[used] = '\0';
    return copy;
}

/* --- the scan --------------------------------------------------------------------------------- */

struct scan {
    const uint8_t *frame;
    size_t size;
    size_t at;
    uint32_t items;
    uint32_t depth;
    uint64_t left[WIRE_DEPTH_MAX]; /* elements still to come, by depth */
};

enum token { TOKEN_REFUSED, TOKEN_PLAIN, TOKEN_BYTES, TOKEN_ARRAY };

/* The bytes after a first byte: `extra` bytes of number, or of length for bytes and arrays (0: the
 * length is in the first byte, under `mask`). */
struct shape {
    uint8_t token;
    uint8_t extra;
    uint8_t mask;
};

static struct shape wire_shape_of(uint8_t first)
{
    static const struct shape shapes[0xe0 - 0xc0] = {
        /* nil, false, true */
        [0x00] = {TOKEN_PLAIN, 0, 0},
        [0x02] = {TOKEN_PLAIN, 0, 0},
        [0x03] = {TOKEN_PLAIN, 0, 0},
        /* bin */
        [0x04] = {TOKEN_BYTES, 1, 0},
        [0x05] = {TOKEN_BYTES, 2, 0},
        [0x06] = {TOKEN_BYTES, 4, 0},
        /* unsigned, signed */
        [0x0c] = {TOKEN_PLAIN, 1, 0},
        [0x0d] = {TOKEN_PLAIN, 2, 0},
        [0x0e] = {TOKEN_PLAIN, 4, 0},
        [0x0f] = {TOKEN_PLAIN, 8, 0},
        [0x10] = {TOKEN_PLAIN, 1, 0},
        [0x11] = {TOKEN_PLAIN, 2, 0},
        [0x12] = {TOKEN_PLAIN, 4, 0},
        [0x13] = {TOKEN_PLAIN, 8, 0},
        /* str, array; left out and so refused: 0xc1, ext, floats, maps */
        [0x19] = {TOKEN_BYTES, 1, 0},
        [0x1a] = {TOKEN_BYTES, 2, 0},
        [0x1b] = {TOKEN_BYTES, 4, 0},
        [0x1c] = {TOKEN_ARRAY, 2, 0},
        [0x1d] = {TOKEN_ARRAY, 4, 0},
    };

    if (first < 0x80 || first >= 0xe0)
        return (struct shape){TOKEN_PLAIN, 0, 0};
    if (first < 0x90)
        return (struct shape){TOKEN_REFUSED, 0, 0}; /* map */
    if (first < 0xa0)
        return (struct shape){TOKEN_ARRAY, 0, 0x0f};
    if (first < 0xc0)
        return (struct shape){TOKEN_BYTES, 0, 0x1f};
    return shapes[first - 0xc0];
}

static uint64_t wire_big_endian(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* One item; NULL, or what is wrong with it. An array is only opened: its elements come next. */
static const char *wire_scan_item(struct scan *scan)
{
    uint8_t first;
    struct shape shape;
    uint64_t length;

    if (scan->at == scan->size)
        return "it ends too early";
    if (++scan->items > WIRE_ITEMS_MAX)
        return "it has too many items";
    first = scan->frame[scan->at++];
    shape = wire_shape_of(first);
    if (shape.token == TOKEN_REFUSED)
        return "it holds a map, a float, an extension or no msgpack at all";
    if (shape.extra > scan->size - scan->at)
        return "it ends too early";
    scan->at += shape.extra;
    if (shape.token == TOKEN_PLAIN)
        return NULL;
    length = shape.extra == 0 ? first & shape.mask
                              : wire_big_endian(scan->frame + scan->at - shape.extra, shape.extra);
    if (length > scan->size - scan->at) /* an element takes a byte at least */
        return "a length in it is larger than what is left of it";
    if (shape.token == TOKEN_BYTES) {
        scan->at += length;
        return NULL;
    }
    if (scan->depth == WIRE_DEPTH_MAX)
        return "its lists are nested too deeply";
    scan->left[scan->depth++] = length + 1; /* the array itself is taken off below */
    return NULL;
}

/* One item, and the ends of the lists that it is the last of. */
static const char *wire_scan_step(struct scan *scan)
{
    const char *wrong = wire_scan_item(scan);

    while (wrong == NULL && scan->depth > 0 && --scan->left[scan->depth - 1] == 0)
        scan->depth--;
    return wrong;
}

const char *wire_scan(const uint8_t *frame, size_t size, uint32_t *ret_items)
{
    struct scan scan = {.frame = frame, .size = size};

    do {
        const char *wrong = wire_scan_step(&scan);

        if (wrong != NULL)
            return wrong;
    } while (scan.depth > 0);
    *ret_items = scan.items;
    return scan.at == scan.size ? NULL : "bytes follow its end";
}

bool wire_element(const uint8_t *frame, size_t size, size_t index, size_t *ret_at, size_t *ret_end)
{
    struct scan scan = {.frame = frame, .size = size};
    uint32_t items;
    size_t at = 0;

    if (wire_scan(frame, size, &items) != NULL || wire_scan_step(&scan) != NULL ||
        scan.depth == 0 || index >= scan.left[0])
        return false;
    for (size_t i = 0; i <= index; i++) {
        at = scan.at;
        for (uint64_t left = scan.left[0]; scan.left[0] == left;)
            (void)wire_scan_step(&scan);
    }
    *ret_at = at;
    *ret_end = scan.at;
    return true;
}

/* --- a frame's first numbers ------------------------------------------------------------------ */

/* An unsigned integer in any of its five forms at *at; moves *at past it. */
static bool wire_peek_unsigned(const uint8_t *frame, size_t size, size_t *at, uint64_t *ret_value)
{
    uint8_t first;
    size_t extra;

    if (*at >= size)
        return false;
    first = frame[*at];
    extra = first < 0x80 ? 0 : (size_t)1 << (first & 3);
    if ((first >= 0x80 && (first < 0xcc || first > 0xcf)) || extra > size - *at - 1)
        return false;
    *ret_value = extra == 0 ? first : wire_big_endian(frame + *at + 1, extra);
    *at += 1 + extra;
    return true;
}

size_t wire_peek(const uint8_t *frame, size_t size, uint64_t *ret_numbers, size_t count)
{
    struct shape shape = wire_shape_of(size > 0 ? frame[0] : 0);
    size_t at = (size_t)1 + shape.extra;
    size_t got = 0;

    while (shape.token == TOKEN_ARRAY && got < count &&
           wire_peek_unsigned(frame, size, &at, &ret_numbers[got]))
        got++;
    return got;
}
