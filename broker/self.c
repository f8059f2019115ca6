/* self - see self.h. */
#include "broker/self.h"

#include "broker/bus_guard.h"
#include "broker/bus_peers.h"
#include "schema/status.h"

#include <assert.h>
#include <msgpack.h>
#include <string.h>
#include <unistd.h>

#define SELF_COLUMNS 3

static int self_cells_write(void *data, const char *bytes, size_t size)
{
    struct store_rows *rows = data;

    assert(size <= sizeof rows->cells - rows->size); /* two dozen short rows */
    memcpy(rows->cells + rows->size, bytes, size);
    rows->size += size;
    return 0;
}

static void self_row_add(void *arg, const char *name, int64_t number, const char *text)
{
    struct store_rows *rows = arg;
    msgpack_packer packer;

    msgpack_packer_init(&packer, rows, self_cells_write);
    msgpack_pack_str_with_body(&packer, name, strlen(name));
    msgpack_pack_int64(&packer, number);
    msgpack_pack_str_with_body(&packer, text, strlen(text));
    rows->rows++;
}

struct self_taker {
    self_take_fn *take;
    void *arg;
};

static void self_row_number(const struct self_taker *taker, const char *name, uint64_t number)
{
    taker->take(taker->arg, name, (int64_t)number, "");
}

static void self_row_text(const struct self_taker *taker, const char *name, const char *text)
{
    taker->take(taker->arg, name, 0, text);
}

static void self_process(const struct self *self, const struct self_taker *taker)
{
    char host[HOST_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    self_row_text(taker, "version", muster_version());
    self_row_text(taker, "host", host);
    self_row_number(taker, "pid", (uint64_t)getpid());
    self_row_number(taker, "started_unix_ms", (uint64_t)self->started_unix_ms);
    self_row_number(taker, "now_unix_ms", (uint64_t)self->now_unix_ms);
    self_row_text(taker, "endpoint", bus_command_endpoint(self->bus));
    self_row_text(taker, "events_endpoint", bus_events_endpoint(self->bus));
    self_row_number(taker, "asks_for_keys", bus_asks_for_keys(self->bus));
}

static void self_work(const struct self *self, const struct self_taker *taker)
{
    const struct store_disk disk = store_disk(self->store);
    const struct core_counts counts = core_count(self->core);
    const struct store_lease lease = store_lease(self->store);

    self_row_number(taker, "jobs_running", counts.jobs_running);
    self_row_number(taker, "processes", counts.processes);
    self_row_text(taker, "database", disk.path);
    self_row_number(taker, "database_bytes", (uint64_t)disk.bytes);
    self_row_number(taker, "disk_free_bytes", (uint64_t)disk.free_bytes);
    if (lease.name != NULL) {
        self_row_text(taker, "shared_database", lease.name);
        self_row_number(taker, "lease_left_ms", (uint64_t)lease.left_ms);
    }
    if (self->blocked_by != NULL)
        self_row_text(taker, "database_trouble", self->blocked_by);
    self_row_number(taker, "passes", self->loop->passes);
    self_row_number(taker, "pass_longest_ms", self->loop->pass_longest_ms);
    self_row_number(taker, "commits", store_commits(self->store));
    self_row_number(taker, "messages_received", bus_counters(self->bus)->received);
    self_row_number(taker, "messages_sent", bus_counters(self->bus)->sent);
    self_row_number(taker, "messages_published", bus_counters(self->bus)->published);
}

/* Since the start, a reason a row. */
static void self_refusals(const struct self *self, const struct self_taker *taker)
{
    const struct bus_counters *bus = bus_counters(self->bus);
    struct bus_guard_counters guard;
    struct bus_peers_counters peers;

    bus_peers_counters(&peers);
    bus_guard_counters(&guard);
    self_row_number(taker, "refused_malformed", self->loop->malformed);
    self_row_number(taker, "refused_version", self->loop->version);
    self_row_number(taker, "refused_unexpected", self->loop->unexpected);
    self_row_number(taker, "refused_frame", bus->dropped_shape + bus->dropped_identity);
    self_row_number(taker, "refused_authority", self->loop->denied);
    self_row_number(taker, "refused_connection", bus->refused_keys);
    self_row_number(taker, "refused_key", bus->dropped_keys);
    self_row_number(taker, "refused_topic", bus->dropped_topics);
    self_row_number(taker, "refused_busy", self->loop->busy);
    self_row_number(taker, "refused_disk", self->loop->refused);
    self_row_number(taker, "refused_share", self->loop->share);
    self_row_number(taker, "closed_hostile", guard.hostile);
    self_row_number(taker, "closed_files", guard.full);
    self_row_number(taker, "closed_address", peers.address);
    self_row_number(taker, "closed_key", peers.key);
    self_row_number(taker, "closed_silent", peers.silent);
    self_row_number(taker, "closed_unread", peers.unread);
    self_row_number(taker, "closed_unsent", peers.unsent);
    self_row_number(taker, "closed_revoked", peers.revoked);
    self_row_number(taker, "unsent_full", bus->full);
    self_row_number(taker, "unsent_gone", bus->unreachable);
    self_row_number(taker, "rebinds_failed", bus->rebinds_failed);
}

void self_facts(const struct self *self, self_take_fn *take, void *arg)
{
    const struct self_taker taker = {take, arg};

    self_process(self, &taker);
    self_work(self, &taker);
    self_refusals(self, &taker);
}

void self_rows(const struct self *self, struct store_rows *ret_rows)
{
    ret_rows->size = 0;
    ret_rows->rows = 0;
    ret_rows->more = false;
    ret_rows->columns = SELF_COLUMNS;
    self_facts(self, self_row_add, ret_rows);
}
