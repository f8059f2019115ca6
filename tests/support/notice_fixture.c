/* notice_fixture - see notice_fixture.h. */
#include "tests/support/notice_fixture.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_MS 50

struct notice_now notice_clocks(void)
{
    struct timespec boot, wall;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &wall);
    return (struct notice_now){.boot_ms = (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000,
                               .unix_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000};
}

void notice_fixture_open(struct notice_fixture *f, const char *provider)
{
    char name[64];

    memset(f, 0, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "/tmp/notice-test-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    setenv("MUSTER_RUNTIME_DIR", f->directory, 1);
    f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (provider == NULL)
        return;
    f->server = http_server_start();
    snprintf(name, sizeof name, "MUSTER_%s_ENDPOINT", provider);
    for (char *c = name; *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    setenv(name, http_server_url(f->server), 1);
}

void notice_fixture_watch(struct notice_fixture *f, const char *sources)
{
    struct source_list list;
    struct muster_error err = {0};

    if (sources_parse(sources, &list, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    if (watch_open(
            &(struct watch_options){
                .sources = &list, .wake_fd = f->wake_fd, .seed = 42, .pace = f->pace},
            &f->watch, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

void notice_fixture_close(struct notice_fixture *f)
{
    char command[128];

    watch_close(&f->watch, 5000);
    http_server_stop(&f->server);
    close(f->wake_fd);
    snprintf(command, sizeof command, "rm -rf '%s'", f->directory);
    assert_int_equal(system(command), 0);
}

static void rest(struct notice_fixture *f)
{
    struct pollfd item = {.fd = f->wake_fd, .events = POLLIN};
    uint64_t count;

    poll(&item, 1, LOOK_MS);
    if (read(f->wake_fd, &count, sizeof count) < 0)
        return;
}

static void fail_with_states(struct notice_fixture *f, const char *what)
{
    struct notice_now now = notice_clocks();
    char json[WATCH_JSON_MAX + 1];

    watch_json(f->watch, &now, json);
    fail_msg("%s; sources: %s", what, json);
}

struct notice_record notice_await(struct notice_fixture *f, int limit_ms)
{
    int64_t until = notice_clocks().boot_ms + limit_ms;
    struct notice_record record;

    while (!watch_take(f->watch, &record)) {
        if (notice_clocks().boot_ms > until)
            fail_with_states(f, "no notice came");
        rest(f);
    }
    return record;
}

void notice_none(struct notice_fixture *f)
{
    struct notice_record record;

    if (watch_take(f->watch, &record))
        fail_msg("a notice that nobody gave: %s %s \"%s\"", record.source, record.item.key,
                 record.item.text);
}

static void read_status(const json_t *source, const struct notice_now *now,
                        struct source_status *ret_status)
{
    const char *word = json_string_value(json_object_get(source, "state"));
    int64_t ok_unix_ms = json_integer_value(json_object_get(source, "ok_unix_ms"));
    int64_t retry_ms = json_integer_value(json_object_get(source, "retry_ms"));

    *ret_status = (struct source_status){
        .last_ok_boot_ms = ok_unix_ms < 0 ? -1 : now->boot_ms - (now->unix_ms - ok_unix_ms),
        .retry_boot_ms = retry_ms < 0 ? -1 : now->boot_ms + retry_ms,
    };
    while (strcmp(source_state_name(ret_status->state), word) != 0)
        ret_status->state++;
    snprintf(ret_status->name, sizeof ret_status->name, "%s",
             json_string_value(json_object_get(source, "name")));
    snprintf(ret_status->text, sizeof ret_status->text, "%s",
             json_string_value(json_object_get(source, "text")));
}

bool notice_status(struct notice_fixture *f, const char *source, struct source_status *ret_status)
{
    struct notice_now now = notice_clocks();
    char text[WATCH_JSON_MAX + 1];
    json_t *sources, *one;
    size_t i;
    bool some = false;

    watch_json(f->watch, &now, text);
    sources = json_loads(text, 0, NULL);
    assert_non_null(sources);
    json_array_foreach(sources, i, one)
    {
        if (some || strcmp(json_string_value(json_object_get(one, "name")), source) != 0)
            continue;
        read_status(one, &now, ret_status);
        some = true;
    }
    json_decref(sources);
    return some;
}

struct source_status notice_state(struct notice_fixture *f, const char *source,
                                  enum source_state state, const char *text, int limit_ms)
{
    int64_t until = notice_clocks().boot_ms + limit_ms;
    struct source_status status;
    char what[256];

    while (!notice_status(f, source, &status) || status.state != state ||
           strstr(status.text, text) == NULL) {
        snprintf(what, sizeof what, "%s is not %s with \"%s\"", source, source_state_name(state),
                 text);
        if (notice_clocks().boot_ms > until)
            fail_with_states(f, what);
        rest(f);
    }
    return status;
}

static const char *date(const char *format, int64_t from_now_s)
{
    static char texts[4][64];
    static unsigned next;
    char *text = texts[next++ % 4];
    time_t at = (time_t)(notice_clocks().unix_ms / 1000 + from_now_s);
    struct tm parts;

    gmtime_r(&at, &parts);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    strftime(text, sizeof texts[0], format, &parts);
#pragma GCC diagnostic pop
    return text;
}

const char *notice_rfc3339(int64_t from_now_s)
{
    return date("%Y-%m-%dT%H:%M:%SZ", from_now_s);
}

const char *notice_plain(int64_t from_now_s)
{
    return date("%Y-%m-%d %H:%M:%S", from_now_s);
}

const char *notice_rfc1123(int64_t from_now_s)
{
    return date("%e %b %Y %H:%M:%S GMT", from_now_s);
}
