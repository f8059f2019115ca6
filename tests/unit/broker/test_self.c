/* What the broker tells of itself: names that monitors read, their order, and which counter each
 * of them shows. */
#define store_disk give_disk
#define store_lease give_lease
#define store_commits give_commits
#define core_count give_count
#define bus_command_endpoint give_command_endpoint
#define bus_events_endpoint give_events_endpoint
#define bus_asks_for_keys give_asks_for_keys
#define bus_counters give_bus_counters
#define bus_peers_counters give_peers_counters
#define bus_guard_counters give_guard_counters
#include "broker/self.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool is_shared;

struct store_disk store_disk(const struct store *store)
{
    (void)store;
    return (struct store_disk){.path = "/var/lib/muster.db", .bytes = 901, .free_bytes = 902};
}

struct store_lease store_lease(const struct store *store)
{
    (void)store;
    return (struct store_lease){.name = is_shared ? "postgresql://db" : NULL, .left_ms = 903};
}

uint64_t store_commits(const struct store *store)
{
    (void)store;
    return 904;
}

struct core_counts core_count(const struct core *core)
{
    (void)core;
    return (struct core_counts){.jobs_running = 905, .processes = 906};
}

const char *bus_command_endpoint(const struct bus *bus)
{
    (void)bus;
    return "tcp://h:7700";
}

const char *bus_events_endpoint(const struct bus *bus)
{
    (void)bus;
    return "tcp://h:7701";
}

bool bus_asks_for_keys(const struct bus *bus)
{
    (void)bus;
    return true;
}

const struct bus_counters *bus_counters(const struct bus *bus)
{
    static const struct bus_counters counters = {.received = 1,
                                                 .dropped_shape = 10,
                                                 .dropped_identity = 5,
                                                 .refused_keys = 21,
                                                 .dropped_keys = 22,
                                                 .dropped_topics = 23,
                                                 .rebinds_failed = 24,
                                                 .sent = 2,
                                                 .unreachable = 25,
                                                 .full = 26,
                                                 .published = 3};

    (void)bus;
    return &counters;
}

void bus_peers_counters(struct bus_peers_counters *ret_counters)
{
    *ret_counters = (struct bus_peers_counters){31, 32, 33, 34, 35, 36};
}

void bus_guard_counters(struct bus_guard_counters *ret_counters)
{
    *ret_counters = (struct bus_guard_counters){.hostile = 41, .full = 42};
}

static const struct loop_counters loop = {51, 52, 53, 54, 55, 56, 57, 58, 59};
static char told[4096]; /* "name=number" or "name=text", one a word */

static void take(void *arg, const char *name, int64_t number, const char *text)
{
    size_t used = strlen(told);

    (void)arg;
    if (strcmp(name, "version") == 0 || strcmp(name, "host") == 0 || strcmp(name, "pid") == 0)
        return;
    if (text[0] != '\0')
        snprintf(told + used, sizeof told - used, "%s=%s ", name, text);
    else
        snprintf(told + used, sizeof told - used, "%s=%d ", name, (int)number);
}

static struct self self(void)
{
    told[0] = '\0';
    return (struct self){.loop = &loop, .started_unix_ms = 61, .now_unix_ms = 62};
}

static void each_fact_has_its_name_and_its_counter(void **state)
{
    const struct self facts = self();

    (void)state;
    is_shared = false;
    self_facts(&facts, take, NULL);
    assert_string_equal(
        told, "started_unix_ms=61 now_unix_ms=62 endpoint=tcp://h:7700 "
              "events_endpoint=tcp://h:7701 asks_for_keys=1 jobs_running=905 processes=906 "
              "database=/var/lib/muster.db database_bytes=901 disk_free_bytes=902 passes=58 "
              "pass_longest_ms=59 commits=904 messages_received=1 messages_sent=2 "
              "messages_published=3 refused_malformed=51 refused_version=52 refused_unexpected=53 "
              "refused_frame=15 refused_authority=54 refused_connection=21 refused_key=22 "
              "refused_topic=23 refused_busy=57 refused_disk=55 refused_share=56 "
              "closed_hostile=41 closed_files=42 closed_address=31 closed_key=32 "
              "closed_silent=33 closed_unread=34 closed_unsent=35 closed_revoked=36 "
              "unsent_full=26 unsent_gone=25 rebinds_failed=24 ");
}

static void a_lease_and_a_trouble_are_told_where_there_are_any(void **state)
{
    struct self facts = self();

    (void)state;
    is_shared = true;
    facts.blocked_by = "disk-full";
    self_facts(&facts, take, NULL);
    assert_non_null(strstr(told, "disk_free_bytes=902 shared_database=postgresql://db "
                                 "lease_left_ms=903 database_trouble=disk-full passes="));
}

static void rows_have_a_name_a_number_and_a_text(void **state)
{
    static struct store_rows rows = {.size = 7, .rows = 7, .more = true};
    const struct self facts = self();
    msgpack_unpacked cell;
    size_t at = 0;

    (void)state;
    is_shared = false;
    self_rows(&facts, &rows);
    assert_int_equal(rows.columns, 3);
    assert_int_equal(rows.rows, 41);
    assert_false(rows.more);
    msgpack_unpacked_init(&cell);
    for (uint64_t i = 0; i < 3 * rows.rows; i++) {
        assert_int_equal(msgpack_unpack_next(&cell, (char *)rows.cells, rows.size, &at),
                         MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(cell.data.type == MSGPACK_OBJECT_STR, i % 3 != 1);
    }
    msgpack_unpacked_destroy(&cell);
    assert_int_equal(at, rows.size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fact_has_its_name_and_its_counter),
        cmocka_unit_test(a_lease_and_a_trouble_are_told_where_there_are_any),
        cmocka_unit_test(rows_have_a_name_a_number_and_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
