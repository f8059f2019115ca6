/* self - see self.h. */
#include "broker/self.h"

#include "broker/bus_guard.h"
#include "broker/bus_peers.h"
#include "schema/status.h"

#include <assert.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SELF_COLUMNS 3

static int cells_write(void *data, const char *bytes, size_t size)
{
    struct store_rows *rows = data;

    assert(size <= sizeof rows->cells - rows->size); /* two dozen short rows */
    memcpy(rows->cells + rows->size, bytes, size);
    rows->size += size;
    return 0;
}

static void row_add(struct store_rows *rows, const char *name, int64_t number, const char *text)
{
    msgpack_packer packer;

    msgpack_packer_init(&packer, rows, cells_write);
    msgpack_pack_str_with_body(&packer, name, strlen(name));
    msgpack_pack_int64(&packer, number);
    msgpack_pack_str_with_body(&packer, text, strlen(text));
    rows->rows++;
}

static void row_number(struct store_rows *rows, const char *name, uint64_t number)
{
    row_add(rows, name, (int64_t)number, "");
}

static void row_text(struct store_rows *rows, const char *name, const char *text)
{
    row_add(rows, name, 0, text);
}

static void self_process(const struct self *self, struct store_rows *rows)
{
    char host[HOST_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    row_text(rows, "version", muster_version());
    row_text(rows, "host", host);
    row_number(rows, "pid", (uint64_t)getpid());
    row_number(rows, "started_unix_ms", (uint64_t)self->started_unix_ms);
    row_number(rows, "now_unix_ms", (uint64_t)self->now_unix_ms);
    row_text(rows, "endpoint", bus_command_endpoint(self->bus));
    row_text(rows, "events_endpoint", bus_events_endpoint(self->bus));
    row_number(rows, "asks_for_keys", bus_asks_for_keys(self->bus));
}

static void self_work(const struct self *self, struct store_rows *rows)
{
    const struct store_disk disk = store_disk(self->store);
    const struct core_counts counts = core_count(self->core);

    row_number(rows, "jobs_running", counts.jobs_running);
    row_number(rows, "processes", counts.processes);
    row_text(rows, "database", disk.path);
    row_number(rows, "database_bytes", (uint64_t)disk.bytes);
    row_number(rows, "disk_free_bytes", (uint64_t)disk.free_bytes);
    if (self->blocked_by != NULL)
        row_text(rows, "database_trouble", self->blocked_by);
    row_number(rows, "passes", self->loop->passes);
    row_number(rows, "pass_longest_ms", self->loop->pass_longest_ms);
    row_number(rows, "messages_received", bus_counters(self->bus)->received);
    row_number(rows, "messages_sent", bus_counters(self->bus)->sent);
    row_number(rows, "messages_published", bus_counters(self->bus)->published);
}

/* Since the start, a reason a row. */
static void self_refusals(const struct self *self, struct store_rows *rows)
{
    const struct bus_counters *bus = bus_counters(self->bus);
    struct bus_guard_counters guard;
    struct bus_peers_counters peers;

    bus_peers_counters(&peers);
    bus_guard_counters(&guard);
    row_number(rows, "refused_malformed", self->loop->malformed);
    row_number(rows, "refused_version", self->loop->version);
    row_number(rows, "refused_unexpected", self->loop->unexpected);
    row_number(rows, "refused_frame", bus->dropped_shape + bus->dropped_identity);
    row_number(rows, "refused_authority", self->loop->denied);
    row_number(rows, "refused_connection", bus->refused_keys);
    row_number(rows, "refused_key", bus->dropped_keys);
    row_number(rows, "refused_topic", bus->dropped_topics);
    row_number(rows, "refused_busy", self->loop->busy);
    row_number(rows, "refused_disk", self->loop->refused);
    row_number(rows, "refused_share", self->loop->share);
    row_number(rows, "closed_hostile", guard.hostile);
    row_number(rows, "closed_files", guard.full);
    row_number(rows, "closed_address", peers.address);
    row_number(rows, "closed_key", peers.key);
    row_number(rows, "closed_silent", peers.silent);
    row_number(rows, "closed_unread", peers.unread);
    row_number(rows, "closed_unsent", peers.unsent);
    row_number(rows, "unsent_full", bus->full);
    row_number(rows, "unsent_gone", bus->unreachable);
    row_number(rows, "rebinds_failed", bus->rebinds_failed);
}

void self_rows(const struct self *self, struct store_rows *ret_rows)
{
    ret_rows->size = 0;
    ret_rows->rows = 0;
    ret_rows->more = false;
    ret_rows->columns = SELF_COLUMNS;
    self_process(self, ret_rows);
    self_work(self, ret_rows);
    self_refusals(self, ret_rows);
}
