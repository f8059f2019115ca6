#include "tools/render.h"

#include "tools/paint.h"
#include "tools/written.h"

#include "schema/wire/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- short texts ------------------------------------------------------------------------------ */

static void render_make_line(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

struct one_line render_line(const char *text)
{
    struct one_line line;

    snprintf(line.text, sizeof line.text, "%s", text);
    render_make_line(line.text);
    return line;
}

struct shown render_age(int64_t unix_ms, int64_t now_unix_ms)
{
    struct shown shown = {"-"};
    int64_t seconds = (now_unix_ms - unix_ms) / 1000;

    if (unix_ms <= 0)
        return shown;
    if (seconds < 0)
        seconds = 0; /* the broker's clock may be a little ahead */
    if (seconds < 120)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " s ago", seconds);
    else if (seconds < 120 * 60)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " min ago", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " h ago", seconds / 3600);
    else
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " days ago", seconds / 86400);
    return shown;
}

struct shown render_duration(int64_t ms)
{
    struct shown shown = {"-"};

    if (ms < 0)
        return shown;
    if (ms < 100)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " ms", ms);
    else if (ms < 120000)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 ".%" PRId64 " s", (ms + 50) / 1000,
                 (ms + 50) % 1000 / 100);
    else if (ms < 7200000)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " min", ms / 60000);
    else
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " h", ms / 3600000);
    return shown;
}

struct shown render_clock(int64_t unix_ms, int64_t now_unix_ms)
{
    struct shown shown = {"-"};
    time_t seconds = (time_t)(unix_ms / 1000);
    time_t now_seconds = (time_t)(now_unix_ms / 1000);
    struct tm then;
    struct tm now;

    if (unix_ms <= 0 || localtime_r(&seconds, &then) == NULL ||
        localtime_r(&now_seconds, &now) == NULL)
        return shown;
    if (then.tm_year == now.tm_year && then.tm_yday == now.tm_yday)
        strftime(shown.text, sizeof shown.text, "%H:%M:%S", &then);
    else
        strftime(shown.text, sizeof shown.text, "%Y-%m-%d %H:%M:%S", &then);
    return shown;
}

struct shown render_stamp(int64_t unix_ms)
{
    struct shown shown = {"-"};
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm then;

    if (unix_ms > 0 && localtime_r(&seconds, &then) != NULL)
        strftime(shown.text, sizeof shown.text, "%Y-%m-%d %H:%M:%S", &then);
    return shown;
}

struct shown render_zone(int64_t unix_ms)
{
    struct shown shown = {"UTC"};
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm then;
    long minutes;

    if (localtime_r(&seconds, &then) == NULL)
        return shown;
    minutes = labs(then.tm_gmtoff) / 60;
    snprintf(shown.text, sizeof shown.text, "UTC%c%02ld:%02ld", then.tm_gmtoff < 0 ? '-' : '+',
             minutes / 60, minutes % 60);
    return shown;
}

struct shown render_bytes(int64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    struct shown shown = {"-"};
    double value = (double)bytes / 1000;
    size_t unit = 0;

    if (bytes < 0)
        return shown;
    if (bytes < 1000) {
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " B", bytes);
        return shown;
    }
    for (; value >= 999.95 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    snprintf(shown.text, sizeof shown.text, "%.1f %s", value, units[unit]);
    return shown;
}

/* By hand: it is asked for each cell of a list, and snprintf takes ten times as long. */
struct shown render_number(int64_t number)
{
    struct shown shown = {"-"};
    char digits[24];
    size_t at = sizeof digits;

    if (number < 0)
        return shown;
    for (digits[--at] = '\0'; number > 0 || digits[at] == '\0'; number /= 10)
        digits[--at] = (char)('0' + number % 10);
    memcpy(shown.text, digits + at, sizeof digits - at);
    return shown;
}

struct shown render_count(int64_t number)
{
    return render_number(number == 0 ? -1 : number);
}

struct shown render_stuck(const struct muster_node_row *node)
{
    struct shown shown = {""}, time;

    if (node->stuck_unix_ms == 0)
        return shown;
    time =
        render_duration(node->heard_unix_ms - node->stuck_unix_ms); /* nobody knows of it since */
    if (node->begun > node->done)
        snprintf(shown.text, sizeof shown.text, "in step %" PRId64 " for %.20s", node->begun,
                 time.text);
    else if (strcmp(node->phase, "stepping") == 0)
        snprintf(shown.text, sizeof shown.text, "in no step since step %" PRId64 " for %.20s",
                 node->done, time.text);
    else
        snprintf(shown.text, sizeof shown.text, "saving for %.20s", time.text);
    return shown;
}

static int render_compare_stuck(const void *one, const void *other)
{
    const struct muster_node_row *a = *(const struct muster_node_row *const *)one;
    const struct muster_node_row *b = *(const struct muster_node_row *const *)other;

    if (a->stuck_unix_ms != b->stuck_unix_ms)
        return a->stuck_unix_ms < b->stuck_unix_ms ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

void render_stuck_find(const muster_rows_t *nodes, struct stuck *ret_stuck)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);
    size_t live = 0;

    *ret_stuck = (struct stuck){.nodes = calloc(muster_rows_count(nodes) + 1, sizeof(void *))};
    for (size_t i = 0; ret_stuck->nodes != NULL && i < muster_rows_count(nodes); i++) {
        live += strcmp(node[i].state, "joined") == 0 || strcmp(node[i].state, "restored") == 0;
        if (node[i].stuck_unix_ms != 0)
            ret_stuck->nodes[ret_stuck->count++] = &node[i];
    }
    ret_stuck->all = live > 1 && ret_stuck->count == live;
    if (ret_stuck->count > 0)
        qsort(ret_stuck->nodes, ret_stuck->count, sizeof(void *), render_compare_stuck);
}

/* --- tables ----------------------------------------------------------------------------------- */

static int render_width_of(const char *text) /* characters of UTF-8 */
{
    int width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void table_init(struct table *table, const char *const *titles, int columns)
{
    *table = (struct table){.titles = titles, .columns = columns};
    arena_init(&table->texts, 0);
    for (int i = 0; i < columns; i++)
        table->widths[i] = render_width_of(titles[i]) - (titles[i][0] == '>');
}

void table_add(struct table *table, const char *text)
{
    char *copy;
    int *width = &table->widths[table->cells_count % (size_t)table->columns], own;

    if (table->cells_count == table->cells_capacity) {
        size_t capacity = table->cells_capacity == 0 ? 64 : table->cells_capacity * 2;
        char **cells = realloc(table->cells, capacity * sizeof *cells);

        if (cells == NULL) {
            table->broken = true;
            return;
        }
        table->cells = cells;
        table->cells_capacity = capacity;
    }
    copy = arena_strdup(&table->texts, text[0] == '\0' ? "-" : text);
    if (copy == NULL) {
        table->broken = true;
        return;
    }
    render_make_line(copy);
    own = render_width_of(copy);
    *width = own > *width ? own : *width;
    table->cells[table->cells_count++] = copy;
}

/* A row is put together here and written at once: a list has hundreds of thousands of cells, and
 * each printf takes longer than all else that is done for one. */
struct row_text {
    char *bytes; /* owned; NULL: memory is out */
    size_t size;
    size_t capacity;
};

static bool table_reserve(struct row_text *row, size_t size)
{
    char *bytes;

    if (row->bytes == NULL || row->capacity - row->size >= size)
        return row->bytes != NULL;
    row->capacity = 2 * (row->size + size);
    bytes = realloc(row->bytes, row->capacity);
    if (bytes == NULL)
        free(row->bytes);
    row->bytes = bytes;
    return bytes != NULL;
}

static char *table_put(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    return at + size;
}

static void table_put_cell(struct row_text *row, const char *text, int width, bool right, bool last,
                           enum paint_hue hue)
{
    const char *begin = hue == 0 ? "" : paint(hue);
    const char *end = begin[0] == '\0' ? "" : paint(PAINT_PLAIN);
    size_t pad = (size_t)(width - render_width_of(text)), size = strlen(text);
    size_t before = right ? pad : 0, behind = last ? 0 : pad - before + 2;
    char *at;

    if (!table_reserve(row, pad + size + strlen(begin) + strlen(end) + 2))
        return;
    at = row->bytes + row->size;
    memset(at, ' ', before);
    at = table_put(at + before, begin, strlen(begin));
    at = table_put(at, text, size);
    at = table_put(at, end, strlen(end));
    memset(at, ' ', behind);
    at += behind;
    if (last)
        *at++ = '\n';
    row->size = (size_t)(at - row->bytes);
}

static int table_column(const struct table *table, const char *title)
{
    for (int i = 0; i < table->columns; i++)
        if (strcmp(table->titles[i] + (table->titles[i][0] == '>'), title) == 0)
            return i;
    return -1;
}

/* Columns that do not fit are hidden: width -1. */
static void table_hide(struct table *table, int limit)
{
    int all = -2;

    for (int i = 0; i < table->columns; i++)
        all += table->widths[i] + 2;
    for (const char *const *spare = table->spare;
         limit > 0 && all > limit && spare != NULL && *spare != NULL; spare++) {
        int column = table_column(table, *spare);

        all -= table->widths[column] + 2;
        table->widths[column] = -1;
    }
}

static void table_row(struct table *table, const char *const *cells, bool titles,
                      struct row_text *row, FILE *out)
{
    int last = table->columns - 1;

    while (table->widths[last] < 0)
        last--;
    row->size = 0;
    for (int i = 0; i <= last; i++) {
        bool right = table->titles[i][0] == '>';
        enum paint_hue hue = titles ? PAINT_TITLE : 0;

        if (!titles && strcmp(table->titles[i], "STATE") == 0)
            hue = paint_of_state(cells[i]);
        if (table->widths[i] >= 0)
            table_put_cell(row, cells[i] + (titles && right), table->widths[i], right, i == last,
                           hue);
    }
    if (row->bytes == NULL)
        table->broken = true;
    else
        fwrite(row->bytes, 1, row->size, out);
}

void table_print(struct table *table, FILE *out, int width)
{
    struct row_text row = {.bytes = malloc(256), .capacity = 256};
    size_t columns = (size_t)table->columns;

    table_hide(table, width);
    table_row(table, table->titles, true, &row, out);
    for (size_t i = 0; i + columns <= table->cells_count; i += columns)
        table_row(table, (const char *const *)table->cells + i, false, &row, out);
    free(row.bytes);
    arena_free(&table->texts);
    free(table->cells);
    if (table->broken)
        fputs("(out of memory: rows are missing)\n", out);
    *table = (struct table){0};
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Columns that hold an enum muster_status. */
static bool render_is_status(const char *name)
{
    static const char *const names[] = {"end_status", "reason_code", "error_status", "status"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

json_t *render_row(const muster_rows_t *rows, size_t row)
{
    json_t *object = json_object();

    for (size_t i = 0; object != NULL && i < muster_rows_columns(rows); i++) {
        const char *name = muster_rows_column_name(rows, i);
        enum muster_column_kind kind = muster_rows_column_kind(rows, i);
        json_t *value;

        if (kind == MUSTER_COLUMN_TEXT)
            value = json_string(muster_rows_text(rows, row, i));
        else if (kind == MUSTER_COLUMN_BOOLEAN)
            value = json_boolean(muster_rows_integer(rows, row, i) != 0);
        else if (render_is_status(name))
            value = json_string(
                muster_status_name((enum muster_status)muster_rows_integer(rows, row, i)));
        else
            value = json_integer((json_int_t)muster_rows_integer(rows, row, i));
        if (value == NULL) /* a text that is no UTF-8: damaged, but the rest is worth showing */
            value = json_null();
        json_object_set_new(object, name, value);
    }
    return object;
}

json_t *render_rows(const muster_rows_t *rows)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < muster_rows_count(rows); i++)
        json_array_append_new(array, render_row(rows, i));
    return array;
}

bool render_next_pin(const char **pins, struct pin *ret_pin)
{
    char *end;

    if (*pins == NULL || **pins == '\0')
        return false;
    ret_pin->until_unix_ms = strtoll(*pins, &end, 10);
    ret_pin->id = *end == ' ' ? end + 1 : end;
    ret_pin->length = (int)strcspn(ret_pin->id, "\n");
    *pins = ret_pin->id + ret_pin->length;
    *pins += **pins == '\n';
    return true;
}

/* [{"id", "until_unix_ms"}] of the lines of the column. */
static json_t *render_json_pins(const char *pins)
{
    json_t *array = json_array();
    struct pin pin;

    while (render_next_pin(&pins, &pin))
        json_array_append_new(array, json_pack("{s:s%, s:I}", "id", pin.id, (size_t)pin.length,
                                               "until_unix_ms", (json_int_t)pin.until_unix_ms));
    return array;
}

json_t *render_written(const char *custom)
{
    struct written written;

    if (custom == NULL || !written_find(custom, &written))
        return json_null();
    return json_pack("{s:s, s:I}", "path", written.path, "bytes", (json_int_t)written.bytes);
}

json_t *render_checkpoint(const muster_rows_t *rows, size_t row)
{
    static const char *const keys[] = {"metrics", "custom"};
    json_t *checkpoint;

    if (row >= muster_rows_count(rows))
        return json_null();
    checkpoint = render_row(rows, row);
    json_object_set_new(checkpoint, "pins",
                        render_json_pins(json_string_value(json_object_get(checkpoint, "pins"))));
    json_object_set_new(checkpoint, "written",
                        render_written(json_string_value(json_object_get(checkpoint, "custom"))));
    for (size_t i = 0; i < 2; i++) {
        const char *text = json_string_value(json_object_get(checkpoint, keys[i]));
        json_t *object = text != NULL ? json_loads(text, 0, NULL) : NULL;

        if (object != NULL)
            json_object_set_new(checkpoint, keys[i], object);
    }
    return checkpoint;
}

json_t *render_checkpoints(const muster_rows_t *rows)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < muster_rows_count(rows); i++)
        json_array_append_new(array, render_checkpoint(rows, i));
    return array;
}

json_t *render_stuck_rows(const muster_rows_t *nodes)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < muster_rows_count(nodes); i++)
        if (muster_rows_nodes(nodes)[i].stuck_unix_ms != 0)
            json_array_append_new(array, render_row(nodes, i));
    return array;
}

json_t *render_document(void)
{
    return json_pack("{s:i}", "schema_version", RENDER_SCHEMA_VERSION);
}

bool render_json(json_t *document, FILE *out, bool one_line)
{
    size_t flags = one_line ? JSON_COMPACT : (size_t)JSON_INDENT(2);
    char *text = document == NULL ? NULL : json_dumps(document, flags);
    bool ok = text != NULL && fprintf(out, "%s\n", text) > 0;

    free(text);
    json_decref(document);
    return ok;
}

bool render_ends(const char *notice_kind)
{
    return wire_notice_ends(wire_notice_kind_from_name(notice_kind));
}

const char *render_fate(const char *notice_kind)
{
    if (strcmp(notice_kind, "freeze") == 0)
        return "will stand still for a while (nobody leaves)";
    if (strcmp(notice_kind, "migrate") == 0)
        return "will be moved to another machine (nobody leaves)";
    return "will be ended";
}
