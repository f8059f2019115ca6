/* failpoint - see failpoint.h. Single-threaded, as the loop is. */
#include "broker/base/failpoint.h"

#ifdef MUSTER_FAIL_POINTS
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POINT_BYTES 96
#define ORDER_BYTES 4096

enum whats { WHATS_PASS, WHATS_UP, WHATS_DOWN, WHATS_RECORD, WHATS_BATCH };

static const struct {
    const char *name;
    enum whats whats;
} places[FAILPOINT_COUNT] = {
#define FAILPOINT(PLACE, name, WHATS) [FAILPOINT_##PLACE] = {#name, WHATS_##WHATS},
#include "broker/base/failpoint.def"
#undef FAILPOINT
};

static const char *const records[] = {
    "none",        "broker",    "job",        "generation",      "node",         "progress",
    "notice",      "event",     "round",      "participant",     "checkpoint",   "launch",
    "host",        "shard",     "file",       "shards gone",     "policy",       "pin",
    "unpin",       "custom",    "task queue", "task queue gone", "task",         "task state",
    "task end",    "task text", "task part",  "task cancel",     "task release", "task resource",
    "task worker", "history",   "job asleep", "forget"};
_Static_assert(sizeof records / sizeof *records == RECORD_KIND_COUNT, "one word for each record");

/* --- what was asked --------------------------------------------------------------------------- */

#define SLOW_S 8                /* longer than a lease */
static char order[ORDER_BYTES]; /* the newest line of the file, or of the environment */
static long reached;            /* how often since it came */
static bool obeyed;

static void failpoint_read_order(void)
{
    const char *path = getenv("MUSTER_FAIL_POINT_FILE");
    const char *name = getenv("MUSTER_FAIL_POINT");
    char text[ORDER_BYTES] = "";
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size;

    if (fd >= 0) {
        size = read(fd, text, sizeof text - 1);
        close(fd);
        text[size > 0 ? size : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
    } else if (name != NULL) {
        snprintf(text, sizeof text, "kill %s", name);
    }
    if (strcmp(text, order) == 0)
        return;
    memcpy(order, text, sizeof order);
    reached = 0;
    obeyed = false;
}

static void failpoint_trace(const char *path, const char *point)
{
    char line[POINT_BYTES + 1];
    int length = snprintf(line, sizeof line, "%s\n", point);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, line, (size_t)length) != length)
        abort(); /* a trace with holes proves nothing */
    close(fd);
}

/* "POINT" or "POINT:n" */
static bool failpoint_is_asked(const char *asked, const char *point)
{
    size_t length = strlen(point);

    if (strncmp(asked, point, length) != 0 || (asked[length] != '\0' && asked[length] != ':'))
        return false;
    reached++;
    return reached >= (asked[length] == ':' ? strtol(asked + length + 1, NULL, 10) : 1);
}

static void failpoint_reach(enum failpoint place, const char *what)
{
    char point[POINT_BYTES];

    failpoint_read_order();
    if (order[0] == '\0')
        return;
    snprintf(point, sizeof point, "%s:%s", places[place].name, what);
    for (char *at = point; *at != '\0'; at++) /* "node lost": a point is one word */
        if (*at == ' ')
            *at = '-';
    if (strncmp(order, "trace ", 6) == 0)
        failpoint_trace(order + 6, point);
    else if (strncmp(order, "kill ", 5) == 0 && failpoint_is_asked(order + 5, point))
        kill(getpid(), SIGKILL);
    else if (strncmp(order, "stop ", 5) == 0 && !obeyed && failpoint_is_asked(order + 5, point)) {
        obeyed = true;
        kill(getpid(), SIGSTOP);
    } else if (strncmp(order, "wait ", 5) == 0 && !obeyed && failpoint_is_asked(order + 5, point)) {
        const struct timespec slow = {.tv_sec = SLOW_S};

        obeyed = true;
        nanosleep(&slow, NULL);
    }
}

/* --- the kinds of places ---------------------------------------------------------------------- */

void failpoint_pass(enum failpoint place)
{
    failpoint_reach(place, "pass");
}

static void failpoint_reach_event(enum failpoint place, enum wire_event_kind kind)
{
    char what[POINT_BYTES];

    snprintf(what, sizeof what, "event-%s", wire_event_kind_name(kind));
    failpoint_reach(place, what);
}

void failpoint_message(enum failpoint place, const struct wire_msg *message)
{
    if (message->type == WIRE_EVENT)
        failpoint_reach_event(place, (enum wire_event_kind)message->u.event.kind);
    else
        failpoint_reach(place, wire_type_name(message->type));
}

void failpoint_record(enum failpoint place, const struct record *record)
{
    if (record->kind == RECORD_EVENT)
        failpoint_reach_event(place, (enum wire_event_kind)record->u.event.body.kind);
    else
        failpoint_reach(place, records[record->kind]);
}

void failpoint_batch(enum failpoint place, const struct actions *batch)
{
    bool events = false;
    bool rows = false;

    for (size_t i = 0; i < batch->count; i++) {
        const struct action *action = &batch->items[i];

        if (action->kind != ACTION_PERSIST)
            continue;
        rows = rows || !action->lazy;
        if (action->record.kind != RECORD_EVENT)
            continue;
        events = true;
        failpoint_reach_event(place, (enum wire_event_kind)action->record.u.event.body.kind);
    }
    if (!events)
        failpoint_reach(place, rows ? "rows" : "nothing");
}

/* --- the list --------------------------------------------------------------------------------- */

static void failpoint_list_what(const char *place, const char *prefix, const char *what)
{
    char text[POINT_BYTES];

    snprintf(text, sizeof text, "%s:%s%s", place, prefix, what);
    for (char *at = text; *at != '\0'; at++)
        if (*at == ' ')
            *at = '-';
    puts(text);
}

static void failpoint_list_events(const char *place)
{
    for (unsigned kind = EVENT_NONE + 1; kind < EVENT_KIND_COUNT; kind++)
        failpoint_list_what(place, "event-", wire_event_kind_name(kind));
}

static void failpoint_list_messages(const char *place, bool up)
{
    for (unsigned type = 1; type < 256; type++) {
        if (strcmp(wire_type_name(type), "unknown") != 0 && wire_is_up(type) == up &&
            type != WIRE_EVENT)
            failpoint_list_what(place, "", wire_type_name(type));
    }
}

static void failpoint_list_place(const char *place, enum whats whats)
{
    switch (whats) {
    case WHATS_PASS:
        failpoint_list_what(place, "", "pass");
        return;
    case WHATS_UP:
        failpoint_list_messages(place, true);
        return;
    case WHATS_DOWN:
        failpoint_list_messages(place, false);
        failpoint_list_events(place);
        return;
    case WHATS_RECORD:
        for (unsigned kind = RECORD_NONE + 1; kind < RECORD_KIND_COUNT; kind++) {
            if (kind != RECORD_EVENT)
                failpoint_list_what(place, "", records[kind]);
        }
        failpoint_list_events(place);
        return;
    case WHATS_BATCH:
        failpoint_list_what(place, "", "nothing");
        failpoint_list_what(place, "", "rows");
        failpoint_list_events(place);
        return;
    }
}

bool failpoint_list(void)
{
    const char *asked = getenv("MUSTER_FAIL_POINT");

    if (asked == NULL || strcmp(asked, "list") != 0)
        return false;
    for (int place = 0; place < FAILPOINT_COUNT; place++)
        failpoint_list_place(places[place].name, places[place].whats);
    return true;
}

/* --- a deaf, a narrow and a talkative PUB ----------------------------------------------------- */

bool failpoint_drop_publish(void)
{
    static long published;
    const char *asked = getenv("MUSTER_TEST_PUB_DROP");
    long every = asked == NULL ? 0 : strtol(asked, NULL, 10);

    published++;
    return every > 0 && published % every == 0;
}

bool failpoint_small_queue(void)
{
    return getenv("MUSTER_TEST_PUB_SMALL") != NULL;
}

long failpoint_publish_times(void)
{
    const char *asked = getenv("MUSTER_TEST_PUB_REPEAT");

    return asked == NULL ? 1 : strtol(asked, NULL, 10);
}
#endif
