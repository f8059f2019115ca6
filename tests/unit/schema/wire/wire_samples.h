/* wire_samples - messages to test the codec with, made by walking wire.def a second time.
 * Owns: sample values, their text, and an encoder of its own that can also make wrong frames.
 * Never: a call of schema/wire/wire.c, so that agreement of the two means something. */
#ifndef TESTS_UNIT_WIRE_SAMPLES_H
#define TESTS_UNIT_WIRE_SAMPLES_H

#include "schema/wire/wire.h"

enum sample_kind { SAMPLE_U, SAMPLE_I, SAMPLE_B, SAMPLE_S, SAMPLE_R, SAMPLE_L };

/* One field in the order of the wire; head fields first. A list is followed by the fields of each
 * of its entries, which have in_entry set and are elements of that entry's array. */
struct sample_field {
    const char *name;
    enum sample_kind kind;
    uint64_t max;
    bool in_head;
    bool in_entry;
    void *value; /* in the message; of a list its count, of bin its data pointer */
};

#define SAMPLE_FIELDS_MAX 10320 /* 1024 ends of tasks of ten fields, and the message's own */

extern const unsigned sample_types[];
extern const size_t sample_types_count;

/* Every field of msg set. Seed 0: the golden values, at most two entries a list; else random ones
 * inside the limits, often at their edges. Everything lives in arena. */
void sample_fill(struct wire_msg *msg, unsigned type, uint64_t seed, struct arena *arena);
/* msg with every body field from `from` on (counted in the body) zero or empty. */
void sample_clear_from(struct wire_msg *msg, size_t from);
size_t sample_fields(struct wire_msg *msg, struct sample_field fields[SAMPLE_FIELDS_MAX]);
/* One line of JSON, as in schema/vectors/README.md; in arena. */
const char *sample_text(const struct wire_msg *msg, struct arena *arena);

/* How sample_pack shall deviate from the grammar. Zero: not at all. */
struct sample_tweak {
    const char *replace_name; /* this field (and entry 0, if in a list) is replaced by bytes */
    bool replace_in_head;
    bool replace_in_entry;
    const uint8_t *replace;
    size_t replace_size;
    bool cut; /* only `keep` elements after version and type */
    size_t keep;
    bool cut_entries;     /* entries of lists keep only their first `keep` elements */
    const uint8_t *extra; /* one more element behind the last */
    size_t extra_size;
    bool extra_in_entries; /* ... of every entry instead */
};
/* Packs without any limit but capacity; 0 if that does not do. */
size_t sample_pack(const struct wire_msg *msg, const struct sample_tweak *tweak, uint8_t *buffer,
                   size_t capacity);

#endif
