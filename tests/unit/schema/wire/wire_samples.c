/* wire_samples - see wire_samples.h. */
#include "tests/unit/schema/wire/wire_samples.h"

#include <stdlib.h>
#include <string.h>

/* What is called for every field. A list's visit may replace items and count before its entries
 * are walked. */
struct walk {
    void *context;
    void (*u)(struct walk *, const char *name, uint64_t *value, uint64_t max);
    void (*i)(struct walk *, const char *name, int64_t *value);
    void (*b)(struct walk *, const char *name, bool *value);
    void (*s)(struct walk *, const char *name, const char **value, uint64_t max);
    void (*r)(struct walk *, const char *name, const uint8_t **bytes, size_t *size, uint64_t max);
    void (*l)(struct walk *, const char *name, void **items, size_t *count, uint64_t max,
              size_t entry_bytes);
    void (*entry)(struct walk *, size_t index, bool begins);
    void (*list_end)(struct walk *);
    bool in_head;
    bool in_entry;
};

/* --- the walk --------------------------------------------------------------------------------- */

#define U(name, max) w->u(w, #name, &m->name, max);
#define I(name) w->i(w, #name, &m->name);
#define B(name) w->b(w, #name, &m->name);
#define S(name, max) w->s(w, #name, &m->name, max);
#define R(name, max) w->r(w, #name, &m->name.data, &m->name.size, max);
#define L(name, kind, max)                                                  \
    {                                                                       \
        void *items = (void *)(uintptr_t)m->name.items;                     \
                                                                            \
        w->l(w, #name, &items, &m->name.count, max, sizeof *m->name.items); \
        m->name.items = items;                                              \
        w->in_entry = true;                                                 \
        for (size_t index = 0; index < m->name.count; index++) {            \
            w->entry(w, index, true);                                       \
            walk_##kind(w, (struct wire_##kind##_entry *)items + index);    \
            w->entry(w, index, false);                                      \
        }                                                                   \
        w->in_entry = false;                                                \
        w->list_end(w);                                                     \
    }

/* clang-format off */
static void walk_member(struct walk *w, struct wire_member *m)
{
    U(rank, WORLD_SIZE_MAX - 1) U(incarnation, UINT64_MAX) U(flags, UINT32_MAX)
}

static void walk_file(struct walk *w, struct wire_file *m)
{
    S(path, FILE_PATH_MAX) U(bytes, INT64_MAX) S(checksum, CHECKSUM_MAX)
}

static void walk_notice(struct walk *w, struct wire_notice_fact *m)
{
    S(id, NOTICE_ID_MAX) U(kind, 255) S(source, NAME_MAX_BYTES) I(left_ms) B(cancellable)
    S(text, TEXT_MAX) U(flags, UINT32_MAX)
}

static void walk_notice_id(struct walk *w, struct wire_notice_id *m)
{
    S(id, NOTICE_ID_MAX)
}

static void walk_task(struct walk *w, struct wire_task_entry *m)
{
    U(queue, TASK_QUEUE_ID_MAX) U(number, TASK_NUMBER_MAX) U(attempt, 255) U(kind, 255)
    U(serial, UINT64_MAX) U(timeout_ms, INT32_MAX) S(fn, NAME_MAX_BYTES) R(args, TASK_ARGS_MAX)
    R(uses, TASK_USES_MAX * 4)
}

static void walk_ended(struct walk *w, struct wire_ended_entry *m)
{
    U(queue, TASK_QUEUE_ID_MAX) U(number, TASK_NUMBER_MAX) U(attempt, 255) U(kind, 255)
    U(state, 255) U(status, 255) I(code) S(text, TASK_TEXT_MAX) U(bytes, TASK_RESULT_MAX)
    R(result, TASK_INLINE_MAX)
}

static void walk_lease(struct walk *w, struct wire_lease_entry *m)
{
    U(queue, TASK_QUEUE_ID_MAX) U(number, TASK_NUMBER_MAX) U(attempt, 255) U(kind, 255)
    U(code, 255)
}

static void walk_up(struct walk *w, struct wire_up *m)
{
    U(request, UINT64_MAX) S(job, JOB_NAME_MAX) U(role, 255) U(rank, INT32_MAX)
    U(incarnation, UINT64_MAX) U(generation, UINT64_MAX) U(broker_epoch, UINT64_MAX)
    U(applied_seq, UINT64_MAX)
}

static void walk_down(struct walk *w, struct wire_down *m)
{
    U(start_id, UINT64_MAX) U(broker_epoch, UINT64_MAX) S(job, JOB_NAME_MAX)
    U(generation, UINT64_MAX) U(last_seq, UINT64_MAX)
}
/* clang-format on */

#define WALK_UP walk_up(w, &msg->up)
#define WALK_DOWN walk_down(w, &msg->down)

static void walk_head(struct walk *w, struct wire_msg *msg)
{
    w->in_head = true;
    switch ((unsigned)msg->type) {
#define MSG(TYPE, number, direction, lower, ...) \
    case number:                                 \
        WALK_##direction;                        \
        break;
#include "schema/wire/wire.def"
#undef MSG
    default:
        break;
    }
    w->in_head = false;
}

static void walk_body(struct walk *w, struct wire_msg *msg)
{
    switch ((unsigned)msg->type) {
#define MSG(TYPE, number, direction, lower, ...) \
    case number: {                               \
        struct wire_##lower *m = &msg->u.lower;  \
                                                 \
        __VA_ARGS__                              \
        break;                                   \
    }
#include "schema/wire/wire.def"
#undef MSG
    default:
        break;
    }
}

const unsigned sample_types[] = {
#define MSG(TYPE, number, direction, lower, ...) number,
#include "schema/wire/wire.def"
#undef MSG
};
const size_t sample_types_count = sizeof sample_types / sizeof *sample_types;

static void no_entry(struct walk *w, size_t index, bool begins)
{
    (void)w, (void)index, (void)begins;
}

static void no_list_end(struct walk *w)
{
    (void)w;
}

/* --- values ----------------------------------------------------------------------------------- */

struct filler {
    struct arena *arena;
    uint64_t state; /* 0: golden */
    unsigned nth;
};

static uint64_t next(struct filler *f) /* splitmix64 */
{
    uint64_t z = f->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..max; one in four at an edge, else of a random bit length. */
static uint64_t some(struct filler *f, uint64_t max)
{
    uint64_t kind = next(f) % 8;
    uint64_t value = next(f) >> next(f) % 64;

    if (kind == 0)
        return 0;
    if (kind == 1 || value > max)
        return max;
    return value;
}

static void fill_u(struct walk *w, const char *name, uint64_t *value, uint64_t max)
{
    static const uint64_t golden[] = {7, 200, 60000, 3000000, (uint64_t)1 << 40, UINT64_MAX};
    struct filler *f = w->context;

    (void)name;
    *value = f->state != 0 ? some(f, max) : golden[f->nth++ % 6];
    if (*value > max)
        *value = max;
}

static void fill_i(struct walk *w, const char *name, int64_t *value)
{
    static const int64_t golden[] = {-1,    41,          -100,       -30000,
                                     70000, -3000000000, 5000000000, INT64_MIN};
    struct filler *f = w->context;
    uint64_t random = f->state != 0 ? some(f, UINT64_MAX) : 0;

    (void)name;
    if (f->state != 0)
        memcpy(value, &random, sizeof random);
    else
        *value = golden[f->nth++ % 8];
}

static void fill_b(struct walk *w, const char *name, bool *value)
{
    struct filler *f = w->context;

    (void)name;
    *value = f->state != 0 ? next(f) % 2 == 1 : f->nth++ % 2 == 0;
}

/* Characters of one to four bytes, up to exactly `size` bytes. */
static char *random_text(struct filler *f, size_t size)
{
    static const char *const characters[] = {"\xf0\x9f\x9a\x82", "\xe2\x82\xac", "\xc3\xa9", "a"};
    char *text = arena_alloc(f->arena, size + 1);
    size_t at = 0;

    if (text == NULL)
        abort();
    while (at < size) {
        const char *character = characters[next(f) % 8 < 4 ? next(f) % 4 : 3];
        size_t length = strlen(character);

        if (length > size - at)
            continue;
        memcpy(text + at, character, length);
        at += length;
    }
    return text;
}

static void fill_s(struct walk *w, const char *name, const char **value, uint64_t max)
{
    struct filler *f = w->context;
    uint64_t size = max < 48 ? max : 48;

    if (f->state == 0) {
        *value = arena_printf(f->arena, "%s \"%u\" \xe2\x82\xac", name, f->nth++);
        return;
    }
    size = next(f) % 8 == 0 ? max : some(f, size);
    *value = random_text(f, size);
}

static void fill_r(struct walk *w, const char *name, const uint8_t **bytes, size_t *size,
                   uint64_t max)
{
    static const uint8_t golden[] = {0x00, 0xc1, 0xff, 0x7f};
    struct filler *f = w->context;
    uint8_t *random;

    (void)name;
    *bytes = golden;
    *size = sizeof golden;
    if (f->state == 0)
        return;
    *size = some(f, w->in_entry && max > 1024 ? 1024 : max);
    random = arena_alloc(f->arena, *size);
    for (size_t i = 0; i < *size; i++)
        random[i] = (uint8_t)next(f);
    *bytes = random;
}

/* Lists of members stay below what any flags let into one frame. */
static void fill_l(struct walk *w, const char *name, void **items, size_t *count, uint64_t max,
                   size_t entry_bytes)
{
    struct filler *f = w->context;

    (void)name;
    if (entry_bytes == sizeof(struct wire_lease_entry))
        max = 80;
    else if (entry_bytes > sizeof(struct wire_notice_fact))
        max = 12; /* tasks and their ends: texts and bytes */
    *count = f->state == 0 ? 2 : some(f, max < 2500 ? max : 2500);
    *items = arena_alloc(f->arena, *count * entry_bytes);
    if (*items == NULL)
        abort();
}

void sample_fill(struct wire_msg *msg, unsigned type, uint64_t seed, struct arena *arena)
{
    struct filler f = {arena, seed, 0};
    struct walk w = {&f,     fill_u,   fill_i,      fill_b, fill_s, fill_r,
                     fill_l, no_entry, no_list_end, 0,      0};

    memset(msg, 0, sizeof *msg);
    msg->type = (enum wire_type)type;
    msg->up.job = msg->down.job = "";
    walk_head(&w, msg);
    walk_body(&w, msg);
}

/* --- a list of the fields --------------------------------------------------------------------- */

struct lister {
    struct sample_field *fields;
    size_t count;
};

static void list_add(struct walk *w, const char *name, enum sample_kind kind, uint64_t max,
                     void *value)
{
    struct lister *lister = w->context;

    if (lister->count == SAMPLE_FIELDS_MAX)
        abort();
    lister->fields[lister->count++] =
        (struct sample_field){name, kind, max, w->in_head, w->in_entry, value};
}

static void list_u(struct walk *w, const char *name, uint64_t *value, uint64_t max)
{
    list_add(w, name, SAMPLE_U, max, value);
}

static void list_i(struct walk *w, const char *name, int64_t *value)
{
    list_add(w, name, SAMPLE_I, INT64_MAX, value);
}

static void list_b(struct walk *w, const char *name, bool *value)
{
    list_add(w, name, SAMPLE_B, 1, value);
}

static void list_s(struct walk *w, const char *name, const char **value, uint64_t max)
{
    list_add(w, name, SAMPLE_S, max, value);
}

static void list_r(struct walk *w, const char *name, const uint8_t **bytes, size_t *size,
                   uint64_t max)
{
    (void)size;
    list_add(w, name, SAMPLE_R, max, bytes);
}

static void list_l(struct walk *w, const char *name, void **items, size_t *count, uint64_t max,
                   size_t entry_bytes)
{
    (void)items, (void)entry_bytes;
    list_add(w, name, SAMPLE_L, max, count);
}

size_t sample_fields(struct wire_msg *msg, struct sample_field fields[SAMPLE_FIELDS_MAX])
{
    struct lister lister = {fields, 0};
    struct walk w = {&lister, list_u,   list_i,      list_b, list_s, list_r,
                     list_l,  no_entry, no_list_end, 0,      0};

    walk_head(&w, msg);
    walk_body(&w, msg);
    return lister.count;
}

/* --- cleared trailing fields ------------------------------------------------------------------ */

struct clearer {
    size_t from;
    size_t at;
};

static bool cleared(struct walk *w)
{
    struct clearer *c = w->context;

    return !w->in_entry && c->at++ >= c->from;
}

static void clear_u(struct walk *w, const char *name, uint64_t *value, uint64_t max)
{
    (void)name, (void)max;
    if (cleared(w))
        *value = 0;
}

static void clear_i(struct walk *w, const char *name, int64_t *value)
{
    (void)name;
    if (cleared(w))
        *value = 0;
}

static void clear_b(struct walk *w, const char *name, bool *value)
{
    (void)name;
    if (cleared(w))
        *value = false;
}

static void clear_s(struct walk *w, const char *name, const char **value, uint64_t max)
{
    (void)name, (void)max;
    if (cleared(w))
        *value = NULL;
}

static void clear_r(struct walk *w, const char *name, const uint8_t **bytes, size_t *size,
                    uint64_t max)
{
    (void)name, (void)max;
    if (!cleared(w))
        return;
    *bytes = NULL;
    *size = 0;
}

static void clear_l(struct walk *w, const char *name, void **items, size_t *count, uint64_t max,
                    size_t entry_bytes)
{
    (void)name, (void)max, (void)entry_bytes;
    if (!cleared(w))
        return;
    *items = NULL;
    *count = 0;
}

void sample_clear_from(struct wire_msg *msg, size_t from)
{
    struct clearer c = {from, 0};
    struct walk w = {&c,      clear_u,  clear_i,     clear_b, clear_s, clear_r,
                     clear_l, no_entry, no_list_end, 0,       0};

    walk_body(&w, msg);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Not stdio: a random event has 7,500 numbers, and printf under a sanitizer is most of the time. */
struct writer {
    char *bytes;
    size_t size, capacity;
    bool first; /* no comma before the next */
};

/* Room for so many bytes, which the caller fills. */
static char *put_room(struct writer *writer, size_t size)
{
    while (size > writer->capacity - writer->size) {
        writer->capacity = writer->capacity == 0 ? 65536 : 2 * writer->capacity;
        writer->bytes = realloc(writer->bytes, writer->capacity);
        if (writer->bytes == NULL)
            abort();
    }
    writer->size += size;
    return writer->bytes + writer->size - size;
}

static void put_bytes(struct writer *writer, const char *bytes, size_t size)
{
    memcpy(put_room(writer, size), bytes, size);
}

static void put_text(struct writer *writer, const char *text)
{
    put_bytes(writer, text, strlen(text));
}

static struct writer *put_name(struct walk *w, const char *name)
{
    struct writer *writer = w->context;

    put_text(writer, writer->first ? "\"" : ",\"");
    put_text(writer, name);
    put_text(writer, "\":");
    writer->first = false;
    return writer;
}

static void put_unsigned(struct writer *writer, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    put_bytes(writer, digits + at, sizeof digits - at);
}

static void put_quoted(struct writer *writer, const char *text)
{
    put_text(writer, "\"");
    while (text != NULL && *text != '\0') {
        size_t plain = strcspn(text, "\"\\");

        put_bytes(writer, text, plain);
        text += plain;
        if (*text != '\0') {
            put_text(writer, "\\");
            put_bytes(writer, text++, 1);
        }
    }
    put_text(writer, "\"");
}

static void text_u(struct walk *w, const char *name, uint64_t *value, uint64_t max)
{
    (void)max;
    put_unsigned(put_name(w, name), *value);
}

static void text_i(struct walk *w, const char *name, int64_t *value)
{
    struct writer *writer = put_name(w, name);

    if (*value < 0)
        put_text(writer, "-");
    put_unsigned(writer, *value < 0 ? 0 - (uint64_t)*value : (uint64_t)*value);
}

static void text_b(struct walk *w, const char *name, bool *value)
{
    put_text(put_name(w, name), *value ? "true" : "false");
}

static void text_s(struct walk *w, const char *name, const char **value, uint64_t max)
{
    (void)max;
    put_quoted(put_name(w, name), *value);
}

static void text_r(struct walk *w, const char *name, const uint8_t **bytes, size_t *size,
                   uint64_t max)
{
    static const char digits[] = "0123456789abcdef";
    struct writer *writer = put_name(w, name);
    char *at;

    (void)max;
    put_text(writer, "{\"hex\":\"");
    at = put_room(writer, 2 * *size);
    for (size_t i = 0; i < *size; i++) {
        *at++ = digits[(*bytes)[i] >> 4];
        *at++ = digits[(*bytes)[i] & 15];
    }
    put_text(writer, "\"}");
}

static void text_l(struct walk *w, const char *name, void **items, size_t *count, uint64_t max,
                   size_t entry_bytes)
{
    (void)items, (void)count, (void)max, (void)entry_bytes;
    put_text(put_name(w, name), "[");
}

static void text_entry(struct walk *w, size_t index, bool begins)
{
    struct writer *writer = w->context;

    writer->first = begins;
    put_text(writer, !begins ? "}" : index == 0 ? "{" : ",{");
}

static void text_list_end(struct walk *w)
{
    put_text(w->context, "]");
}

const char *sample_text(const struct wire_msg *msg, struct arena *arena)
{
    struct writer writer = {.first = true};
    struct walk w = {&writer, text_u,     text_i,        text_b, text_s, text_r,
                     text_l,  text_entry, text_list_end, 0,      0};
    struct wire_msg copy = *msg; /* the walk's callbacks may write, these do not */
    const char *text;

    put_text(&writer, "{\"type\":");
    put_unsigned(&writer, (unsigned)msg->type);
    put_text(&writer, ",\"head\":{");
    walk_head(&w, &copy);
    put_text(&writer, "},\"body\":{");
    writer.first = true;
    walk_body(&w, &copy);
    put_text(&writer, "}}");
    text = arena_strndup(arena, writer.bytes, writer.size);
    free(writer.bytes);
    return text;
}

/* --- an encoder without limits ---------------------------------------------------------------- */

struct packer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool full;
    const struct sample_tweak *tweak;
    size_t element;       /* of the message, after version and type */
    size_t entry_element; /* of the entry */
    size_t entry_index;
    size_t entry_fields;
    bool counting; /* first pass: only `element` moves */
};

static void pack_bytes(struct packer *p, const void *bytes, size_t size)
{
    if (p->counting)
        return;
    if (size > p->capacity - p->size) {
        p->full = true;
        return;
    }
    if (size > 0)
        memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
}

static void pack_number(struct packer *p, uint8_t first, uint64_t value, unsigned size)
{
    uint8_t bytes[9] = {first};

    for (unsigned i = 0; i < size; i++)
        bytes[1 + i] = (uint8_t)(value >> (size - 1 - i) * 8);
    pack_bytes(p, bytes, 1 + size);
}

static void pack_unsigned(struct packer *p, uint64_t value)
{
    if (value < 0x80)
        pack_number(p, (uint8_t)value, 0, 0);
    else if (value <= UINT8_MAX)
        pack_number(p, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        pack_number(p, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        pack_number(p, 0xce, value, 4);
    else
        pack_number(p, 0xcf, value, 8);
}

static void pack_array(struct packer *p, size_t count)
{
    if (count < 16)
        pack_number(p, (uint8_t)(0x90 | count), 0, 0);
    else
        pack_number(p, count <= UINT16_MAX ? 0xdc : 0xdd, count, count <= UINT16_MAX ? 2 : 4);
}

/* Is this element left out or replaced? Counts it in any case. */
static bool tweaked(struct walk *w, const char *name)
{
    struct packer *p = w->context;
    const struct sample_tweak *t = p->tweak;
    size_t element = w->in_entry ? p->entry_element++ : p->element++;

    if (!w->in_entry && t->cut && element >= t->keep)
        return true;
    if (w->in_entry && t->cut_entries && element >= t->keep)
        return true;
    if (t->replace_name == NULL || strcmp(name, t->replace_name) != 0 ||
        t->replace_in_head != w->in_head || t->replace_in_entry != w->in_entry ||
        (w->in_entry && p->entry_index != 0))
        return false;
    pack_bytes(p, t->replace, t->replace_size);
    return true;
}

static void pack_u(struct walk *w, const char *name, uint64_t *value, uint64_t max)
{
    (void)max;
    if (!tweaked(w, name))
        pack_unsigned(w->context, *value);
}

static void pack_i(struct walk *w, const char *name, int64_t *value)
{
    struct packer *p = w->context;
    int64_t v = *value;

    if (tweaked(w, name))
        return;
    if (v >= 0)
        pack_unsigned(p, (uint64_t)v);
    else if (v >= -32)
        pack_number(p, (uint8_t)v, 0, 0);
    else if (v >= INT8_MIN)
        pack_number(p, 0xd0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        pack_number(p, 0xd1, (uint64_t)v, 2);
    else if (v >= INT32_MIN)
        pack_number(p, 0xd2, (uint64_t)v, 4);
    else
        pack_number(p, 0xd3, (uint64_t)v, 8);
}

static void pack_b(struct walk *w, const char *name, bool *value)
{
    if (!tweaked(w, name))
        pack_number(w->context, *value ? 0xc3 : 0xc2, 0, 0);
}

static void pack_s(struct walk *w, const char *name, const char **value, uint64_t max)
{
    struct packer *p = w->context;
    size_t size = *value == NULL ? 0 : strlen(*value);

    (void)max;
    if (tweaked(w, name))
        return;
    if (size < 32)
        pack_number(p, (uint8_t)(0xa0 | size), 0, 0);
    else if (size <= UINT8_MAX)
        pack_number(p, 0xd9, size, 1);
    else
        pack_number(p, 0xda, size, 2);
    pack_bytes(p, *value, size);
}

static void pack_r(struct walk *w, const char *name, const uint8_t **bytes, size_t *size,
                   uint64_t max)
{
    struct packer *p = w->context;

    (void)max;
    if (tweaked(w, name))
        return;
    pack_number(p, *size <= UINT8_MAX ? 0xc4 : 0xc5, *size, *size <= UINT8_MAX ? 1 : 2);
    pack_bytes(p, *bytes, *size);
}

/* A replaced or left out list has no entries; the message is the packer's own copy. */
static void pack_l(struct walk *w, const char *name, void **items, size_t *count, uint64_t max,
                   size_t entry_bytes)
{
    (void)items, (void)max, (void)entry_bytes;
    if (tweaked(w, name))
        *count = 0;
    else
        pack_array(w->context, *count);
}

static size_t entry_elements(struct packer *p)
{
    if (p->tweak->cut_entries && p->tweak->keep < p->entry_fields)
        return p->tweak->keep;
    return p->entry_fields + (p->tweak->extra_in_entries ? 1 : 0);
}

static void pack_entry(struct walk *w, size_t index, bool begins)
{
    struct packer *p = w->context;

    if (!begins) {
        if (p->tweak->extra_in_entries)
            pack_bytes(p, p->tweak->extra, p->tweak->extra_size);
        return;
    }
    p->entry_index = index;
    p->entry_element = 0;
    pack_array(p, entry_elements(p));
}

size_t sample_pack(const struct wire_msg *msg, const struct sample_tweak *tweak, uint8_t *buffer,
                   size_t capacity)
{
    static const struct sample_tweak none;
    struct wire_msg copy = *msg;
    struct packer p = {.bytes = buffer,
                       .capacity = capacity,
                       .tweak = tweak == NULL ? &none : tweak,
                       .counting = true};
    struct walk w = {&p,     pack_u,     pack_i,      pack_b, pack_s, pack_r,
                     pack_l, pack_entry, no_list_end, 0,      0};
    size_t elements;

    walk_head(&w, &copy);
    walk_body(&w, &copy);
    elements = p.tweak->cut && p.tweak->keep < p.element ? p.tweak->keep : p.element;
    copy = *msg;
    p.counting = false;
    p.element = 0;
    p.entry_fields = p.entry_element; /* of the last one that was counted */
    pack_array(&p, 2 + elements + (p.tweak->extra != NULL && !p.tweak->extra_in_entries ? 1 : 0));
    pack_unsigned(&p, WIRE_VERSION);
    pack_unsigned(&p, msg->type);
    walk_head(&w, &copy);
    walk_body(&w, &copy);
    if (!p.tweak->extra_in_entries)
        pack_bytes(&p, p.tweak->extra, p.tweak->extra_size);
    return p.full ? 0 : p.size;
}
