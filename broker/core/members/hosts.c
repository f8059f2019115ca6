/* hosts - hosts that form a job's launches by themselves: `muster run --nodes MIN:MAX`.
 * Owns: which hosts are in a launch, and which ranks each of them has. Never: a rank, a process or
 * a generation; the ranks say HELLO as under any launcher.
 * Always: a launch has rows before a host is told of it; no launch is formed while a host that is
 * heard is in the one before. A host repeats HOST each second, which is its request and its sign
 * of life. After a start the broker takes each host in the rows for heard, until the host was
 * silent. */
#include "broker/core/members/members.h"
#include "broker/core/state/orders.h"

#include "schema/room.h"

#include <stdio.h>

static const struct answer hosts_no_memory = {MUSTER_E_NOMEM, "no memory for another host", 0};

/* --- questions -------------------------------------------------------------------------------- */

static struct host *hosts_find(const struct hosts *hosts, uint64_t id)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].id == id)
            return &hosts->items[i];
    return NULL;
}

/* In the newest launch; HOSTS_MAX: none. */
static size_t hosts_place(const struct hosts *hosts, uint64_t id)
{
    for (size_t place = 0; place < hosts->places_count; place++)
        if (hosts->places[place].id == id)
            return place;
    return HOSTS_MAX;
}

/* For the next launch: it has none, or its last one is over there. */
static bool hosts_waits(const struct hosts *hosts, const struct host *host)
{
    return host->place == HOSTS_MAX || host->ended >= hosts->launch;
}

static size_t hosts_waiting(const struct hosts *hosts)
{
    size_t count = 0;

    for (size_t i = 0; i < hosts->count; i++)
        count += hosts_waits(hosts, &hosts->items[i]);
    return count;
}

/* How long the hosts that are there wait for one more. */
static int64_t hosts_wait_ms(const struct hosts *hosts)
{
    int64_t wait_ms = 0;

    for (size_t i = 0; i < hosts->count; i++)
        if ((int64_t)hosts->items[i].wait_ms > wait_ms)
            wait_ms = (int64_t)hosts->items[i].wait_ms;
    return wait_ms;
}

/* Since the newest of those that wait came. */
static bool hosts_waited(const struct core *core, const struct hosts *hosts)
{
    int64_t came_ms = INT64_MIN;

    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];

        if (hosts_waits(hosts, host) && host->came_boot_ms > came_ms)
            came_ms = host->came_boot_ms;
    }
    return came_ms != INT64_MIN && core->now - came_ms >= hosts_wait_ms(hosts);
}

/* A host that left the newest launch before its end; NULL: none has. */
static const struct host_place *hosts_gone(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->places_count; i++)
        if (hosts->places[i].gone)
            return &hosts->places[i];
    return NULL;
}

/* A host on which the newest launch is over; NULL: it runs on all. */
static const struct host *hosts_over(const struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].place < HOSTS_MAX && hosts->items[i].ended >= hosts->launch)
            return &hosts->items[i];
    return NULL;
}

static bool hosts_all_back(const struct hosts *hosts)
{
    return hosts->places_count > 0 && hosts_gone(hosts) == NULL;
}

/* Before that, one may be there that no row tells of, and another be dead that a row tells of. */
static bool hosts_are_known(const struct core *core)
{
    return core->now - core->start_boot_ms >= LOST_MS;
}

static bool hosts_enough(const struct core *core, const struct hosts *hosts)
{
    size_t waiting = hosts_waiting(hosts);

    if (waiting < hosts->count || waiting == 0 || !hosts_are_known(core))
        return false;
    return waiting >= hosts->items[0].max ||
           (waiting >= hosts->items[0].min && (hosts_waited(core, hosts) || hosts_all_back(hosts)));
}

/* Hosts wait that the running launch has room for. */
static bool hosts_grows(const struct core *core, const struct hosts *hosts)
{
    size_t waiting = hosts_waiting(hosts), max = hosts->items[0].max;

    return waiting > 0 && waiting < hosts->count && hosts->places_count < max &&
           hosts_are_known(core) &&
           (hosts_waited(core, hosts) || hosts->places_count + waiting >= max);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The job's own row comes first, and a job may begin with its hosts. */
static void hosts_persist_job(struct core *core, struct job *job, const struct host *host)
{
    struct wire_event event = event_make(job, EVENT_ORDER);

    event.text = out_printf(core, "muster run: host %s is the first one of the job", host->name);
    event_emit(core, job, event, 0);
}

static void hosts_persist(struct core *core, struct job *job, const struct host *host,
                          enum host_state state)
{
    const bool placed = host->place < job->hosts->places_count;
    int64_t since_ms = state == HOST_LOST ? core->now - host->heard_boot_ms : 0;
    struct action *action;

    if (!job_has_row(job))
        hosts_persist_job(core, job, host);
    action = action_add(core, ACTION_PERSIST);
    action->record.kind = RECORD_HOST;
    action->record.u.host =
        (struct record_host){.job = out_text(core, job->name),
                             .launch = placed ? job->hosts->launch : 0,
                             .id = host->id,
                             .place = placed ? (int64_t)host->place : -1,
                             .name = out_text(core, host->name),
                             .address = out_text(core, host->address),
                             .port = host->port,
                             .first_rank = placed ? job->hosts->places[host->place].first_rank : 0,
                             .ranks = host->ranks,
                             .min_hosts = host->min,
                             .max_hosts = host->max,
                             .wait_ms = host->wait_ms,
                             .node_rank = host->node_rank,
                             .ended = host->ended,
                             .state = state,
                             .state_unix_ms = core->now_unix - since_ms};
}

/* --- forming a launch ------------------------------------------------------------------------- */

/* Hosts that had a place come first, in that order, then the others as they came. */
static int hosts_order(const void *a, const void *b)
{
    const struct host *left = *(struct host *const *)a, *right = *(struct host *const *)b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    if (left->came_boot_ms != right->came_boot_ms)
        return left->came_boot_ms < right->came_boot_ms ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* A host that got a seat is taken from its list. */
static void hosts_seat(struct host **seats, size_t count, struct host **host, size_t wanted)
{
    if (*host == NULL || wanted >= count || seats[wanted] != NULL)
        return;
    seats[wanted] = *host;
    *host = NULL;
}

/* A place that a host asks for is its own; who had one keeps it; the others fill what is free. */
static void hosts_seat_all(struct host **seats, size_t count, struct host **list)
{
    size_t next = 0;

    for (size_t i = 0; i < count; i++)
        if (list[i]->node_rank >= 0)
            hosts_seat(seats, count, &list[i], (size_t)list[i]->node_rank);
    for (size_t i = 0; i < count; i++)
        if (list[i] != NULL)
            hosts_seat(seats, count, &list[i], list[i]->place);
    for (size_t i = 0; i < count; i++) {
        while (next < count && seats[next] != NULL)
            next++;
        hosts_seat(seats, count, &list[i], next);
    }
}

/* The journal tells of it, too. */
static void hosts_tell(struct core *core, struct job *job, struct host *const *seats,
                       uint64_t ranks)
{
    const size_t count = job->hosts->places_count;
    struct wire_event event = event_make(job, EVENT_ORDER);
    char names[512] = "";

    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(names);

        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", seats[i]->name);
    }
    event.text = out_printf(core, "muster run: launch %llu of %llu ranks on %zu host%s: %s",
                            (unsigned long long)job->hosts->launch, (unsigned long long)ranks,
                            count, count == 1 ? "" : "s", names);
    event_emit(core, job, event, 0);
}

/* The rows of those that had none tell no more that they wait. */
static void hosts_forget_places(struct core *core, struct job *job)
{
    struct hosts *hosts = job->hosts;

    hosts->places_count = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts->items[i].place == HOSTS_MAX)
            hosts_persist(core, job, &hosts->items[i], HOST_RUNNING);
        hosts->items[i].place = HOSTS_MAX;
    }
}

static void hosts_place_all(struct core *core, struct job *job, struct host *const *seats,
                            struct host_place *places, size_t count)
{
    struct hosts *hosts = job->hosts;
    uint64_t ranks = 0;

    hosts_forget_places(core, job);
    free(hosts->places);
    hosts->places = places;
    hosts->places_count = count;
    hosts->launch++;
    for (size_t i = 0; i < count; i++) {
        places[i] =
            (struct host_place){.id = seats[i]->id, .first_rank = ranks, .ranks = seats[i]->ranks};
        memcpy(places[i].name, seats[i]->name, sizeof places[i].name);
        seats[i]->place = i;
        ranks += seats[i]->ranks;
    }
    hosts_tell(core, job, seats, ranks);
    for (size_t i = 0; i < count; i++)
        hosts_persist(core, job, seats[i], HOST_RUNNING);
}

/* All that wait, and no more than fit. Without memory it is tried again with the next word. */
static void hosts_form(struct core *core, struct job *job)
{
    struct hosts *hosts = job->hosts;
    size_t count = hosts->count < hosts->items[0].max ? hosts->count : hosts->items[0].max;
    struct host **list = calloc(hosts->count, sizeof(struct host *));
    struct host **seats = calloc(count, sizeof(struct host *));
    struct host_place *places = calloc(count, sizeof *places);

    if (list != NULL && seats != NULL && places != NULL) {
        for (size_t i = 0; i < hosts->count; i++)
            list[i] = &hosts->items[i];
        qsort(list, hosts->count, sizeof(struct host *), hosts_order);
        hosts_seat_all(seats, count, list);
        hosts_place_all(core, job, seats, places, count);
        for (size_t i = 0; i < hosts->count; i++)
            if (list[i] != NULL)
                hosts_persist(core, job, list[i], HOST_WAITING);
        places = NULL;
    }
    free(list);
    free(seats);
    free(places);
}

static void hosts_drop(struct core *core, struct job *job, struct host *host, enum host_state state)
{
    struct hosts *hosts = job->hosts;

    hosts_persist(core, job, host, state);
    if (host->place < hosts->places_count)
        hosts->places[host->place].gone = host->ended < hosts->launch;
    *host = hosts->items[--hosts->count];
}

/* All else that time brings is seen at the next word of one of them. */
static void hosts_consider(struct core *core, struct job *job)
{
    struct hosts *hosts = job->hosts;

    for (size_t i = hosts->count; i-- > 0;)
        if (core->now - hosts->items[i].heard_boot_ms >= LOST_MS)
            hosts_drop(core, job, &hosts->items[i], HOST_LOST);
    for (size_t i = 0; i < hosts->count; i++)
        job_timer(job, hosts->items[i].heard_boot_ms + LOST_MS);
    if (hosts_enough(core, hosts))
        hosts_form(core, job);
}

/* --- what a host says ------------------------------------------------------------------------- */

struct answer hosts_refusal(struct core *core, const struct input *in, const struct job *job)
{
    const struct wire_host *m = &in->message->u.host;

    if (!wire_job_name_ok(in->message->up.job) || m->id == 0 || m->ranks == 0 || m->min == 0 ||
        m->max < m->min || m->node_rank >= (int64_t)m->max || m->ended >= INT64_MAX)
        return (struct answer){
            MUSTER_E_ARGUMENT,
            "job name, ranks, --nodes or --node-rank of this host are not "
            "acceptable: --nodes MIN:MAX with 1 <= MIN <= MAX, node ranks from 0 "
            "to MAX - 1",
            0};
    const char *refusal = jobs_refusal(core, job, in->key_jobs);
    if (refusal != NULL)
        return (struct answer){MUSTER_E_BUSY, refusal, 0};
    return (struct answer){MUSTER_OK, "", 0};
}

/* NULL: it goes together with those that are there. Else it waits: who of them is wrong, and who is
 * dead and not known to be, shows later. */
static const char *hosts_contradiction(struct core *core, const struct hosts *hosts,
                                       const struct wire_host *m)
{
    uint64_t ranks = m->ranks;

    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *other = &hosts->items[i];

        ranks += other->ranks;
        if (other->min != m->min || other->max != m->max)
            return out_printf(
                core,
                "host %s runs this job with --nodes %llu:%llu, this one with %llu:%llu: give all "
                "hosts the same",
                other->name, (unsigned long long)other->min, (unsigned long long)other->max,
                (unsigned long long)m->min, (unsigned long long)m->max);
        if (other->node_rank >= 0 && other->node_rank == m->node_rank)
            return out_printf(core,
                              "host %s has --node-rank %lld already: give each host a number of "
                              "its own, or none",
                              other->name, (long long)m->node_rank);
    }
    if (ranks > WORLD_SIZE_MAX || hosts->count >= HOSTS_MAX)
        return out_printf(core, "a job has at most %d ranks on %d hosts", WORLD_SIZE_MAX,
                          HOSTS_MAX);
    return NULL;
}

static struct host *hosts_add(struct hosts *hosts, const struct host *host)
{
    struct host *items =
        room_for_one(hosts->items, hosts->count, &hosts->capacity, 4, sizeof *items);

    if (items == NULL)
        return NULL;
    hosts->items = items;
    items[hosts->count] = *host;
    return &items[hosts->count++];
}

static struct host *hosts_come(struct core *core, struct hosts *hosts, const struct wire_host *m)
{
    struct host host = {.id = m->id,
                        .ranks = m->ranks,
                        .min = m->min,
                        .max = m->max,
                        .wait_ms = m->wait_ms,
                        .node_rank = m->node_rank,
                        .ended = m->ended,
                        .place = hosts_place(hosts, m->id),
                        .came_boot_ms = core->now};

    if (host.place < HOSTS_MAX) {
        MUST(hosts->places != NULL);
        hosts->places[host.place].gone = false;
    }
    snprintf(host.name, sizeof host.name, "%s", m->name);
    return hosts_add(hosts, &host);
}

static void hosts_hear(struct core *core, struct job *job, struct host *host,
                       const struct wire_host *m, bool is_new)
{
    host->heard_boot_ms = core->now;
    host->port = m->port;
    snprintf(host->address, sizeof host->address, "%s", m->address);
    if (m->ended > host->ended) {
        host->ended = m->ended;
        host->came_boot_ms = core->now;
        is_new = true;
    }
    if (is_new)
        hosts_persist(core, job, host, hosts_waits(job->hosts, host) ? HOST_WAITING : HOST_RUNNING);
}

/* The database is of before a launch that a host saw end. Its word of hosts is old, and no number
 * is used twice. A host that is there says so within a second. */
static void hosts_begin_behind(struct core *core, struct job *job, uint64_t launch)
{
    while (job->hosts->count > 0)
        hosts_drop(core, job, &job->hosts->items[0], HOST_LOST);
    job->hosts->places_count = 0;
    job->hosts->launch = launch;
}

static struct answer hosts_wait_for(struct core *core, const struct hosts *hosts)
{
    unsigned long long min = hosts->items[0].min, max = hosts->items[0].max;
    size_t waiting = hosts_waiting(hosts);
    int64_t wait_ms = hosts_wait_ms(hosts);

    if (waiting < hosts->count)
        return (struct answer){
            MUSTER_E_BUSY,
            out_printf(core,
                       "launch %llu of this job runs on %zu host%s, and %zu wait%s for the next",
                       (unsigned long long)hosts->launch, hosts->count - waiting,
                       hosts->count - waiting == 1 ? "" : "s", waiting, waiting == 1 ? "s" : ""),
            0};
    if (waiting >= min && waiting < max)
        return (struct answer){
            MUSTER_E_BUSY,
            out_printf(core,
                       "%zu %s here, a launch has %llu to %llu: it begins when no other has come "
                       "for %lld.%01lld s",
                       waiting, waiting == 1 ? "is" : "are", min, max, (long long)(wait_ms / 1000),
                       (long long)(wait_ms % 1000 / 100)),
            0};
    return (struct answer){MUSTER_E_BUSY,
                           min == max ? out_printf(core, "%zu of %llu %s here", waiting, max,
                                                   waiting == 1 ? "is" : "are")
                                      : out_printf(core, "%zu %s here, a launch has %llu to %llu",
                                                   waiting, waiting == 1 ? "is" : "are", min, max),
                           0};
}

static struct answer hosts_answer(struct core *core, const struct hosts *hosts,
                                  const struct host *host)
{
    const struct host_place *gone = hosts_gone(hosts);
    const struct host *over = hosts_over(hosts);
    size_t more = hosts_waiting(hosts);

    if (hosts_waits(hosts, host))
        return hosts_wait_for(core, hosts);
    if (gone != NULL)
        return (struct answer){MUSTER_E_PEER,
                               out_printf(core, "host %s of launch %llu is gone", gone->name,
                                          (unsigned long long)hosts->launch),
                               hosts->launch};
    if (over != NULL)
        return (struct answer){MUSTER_E_PEER,
                               out_printf(core, "launch %llu is over on host %s",
                                          (unsigned long long)hosts->launch, over->name),
                               hosts->launch};
    if (host->place == 0 && hosts_grows(core, hosts))
        return (struct answer){MUSTER_PREEMPTED,
                               out_printf(core, "%zu more host%s for the job", more,
                                          more == 1 ? " is there" : "s are there"),
                               hosts->launch};
    return (struct answer){MUSTER_OK, "", hosts->launch};
}

/* A host that was silent before that may have seen the launch end, too. */
static void hosts_leave(struct core *core, struct job *job, const struct wire_host *m)
{
    struct host *host = hosts_find(job->hosts, m->id);

    if (host == NULL && hosts_place(job->hosts, m->id) < HOSTS_MAX)
        host = hosts_come(core, job->hosts, m);
    if (host == NULL)
        return;
    if (m->ended > host->ended)
        host->ended = m->ended;
    hosts_drop(core, job, host, HOST_LEFT);
}

struct answer hosts_take(struct core *core, struct job *job, const struct input *in)
{
    const struct wire_host *m = &in->message->u.host;
    const char *why;
    struct host *host;
    bool is_new;

    if (job->hosts == NULL && (job->hosts = calloc(1, sizeof *job->hosts)) == NULL)
        return hosts_no_memory;
    if (m->leaving) {
        hosts_leave(core, job, m);
        hosts_consider(core, job);
        return (struct answer){MUSTER_OK, "", 0};
    }
    if (m->ended > job->hosts->launch)
        hosts_begin_behind(core, job, m->ended);
    host = hosts_find(job->hosts, m->id);
    is_new = host == NULL;
    if (is_new) {
        why = hosts_contradiction(core, job->hosts, m);
        if (why != NULL)
            return (struct answer){MUSTER_E_BUSY, why, 0};
        host = hosts_come(core, job->hosts, m);
    }
    if (host == NULL)
        return hosts_no_memory;
    hosts_hear(core, job, host, m, is_new);
    if (is_new)
        order_host(core, job, in);
    hosts_consider(core, job);
    host = hosts_find(job->hosts, m->id); /* those that were dropped may have moved it */
    MUST(host != NULL);
    return hosts_answer(core, job->hosts, host);
}

/* --- time and rows ---------------------------------------------------------------------------- */

void hosts_tick(struct core *core, struct job *job)
{
    if (job->hosts != NULL)
        hosts_consider(core, job);
}

void hosts_take_for_heard(struct core *core, struct job *job)
{
    for (size_t i = 0; job->hosts != NULL && i < job->hosts->count; i++)
        job->hosts->items[i].came_boot_ms = job->hosts->items[i].heard_boot_ms = core->now;
}

/* They come in the order of their places. */
static void hosts_load_place(struct hosts *hosts, const struct record_host *row)
{
    size_t count = hosts->places_count;
    struct host_place *places = realloc(hosts->places, (count + 1) * sizeof *places);

    MUST(places != NULL);
    hosts->places = places;
    hosts->places_count++;
    hosts->launch = row->launch;
    places[count] = (struct host_place){
        .id = row->id,
        .first_rank = row->first_rank,
        .ranks = row->ranks,
        .gone = (row->state == HOST_LEFT || row->state == HOST_LOST) && row->ended < row->launch};
    snprintf(places[count].name, sizeof places->name, "%s", row->name);
}

static void hosts_load_host(struct hosts *hosts, const struct record_host *row)
{
    struct host host = {.id = row->id,
                        .port = row->port,
                        .ranks = row->ranks,
                        .min = row->min_hosts,
                        .max = row->max_hosts,
                        .wait_ms = row->wait_ms,
                        .node_rank = row->node_rank,
                        .ended = row->ended,
                        .place = row->launch > 0 ? (size_t)row->place : HOSTS_MAX};

    snprintf(host.name, sizeof host.name, "%s", row->name);
    snprintf(host.address, sizeof host.address, "%s", row->address);
    MUST(hosts_add(hosts, &host) != NULL);
}

void hosts_load(struct core *core, const struct record_host *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL)
        return;
    if (job->hosts == NULL)
        job->hosts = calloc(1, sizeof *job->hosts);
    MUST(job->hosts != NULL);
    if (row->launch > 0 ? row->place != (int64_t)job->hosts->places_count || row->place >= HOSTS_MAX
                        : row->state != HOST_WAITING)
        return;
    if (row->launch > 0)
        hosts_load_place(job->hosts, row);
    if (row->state == HOST_WAITING || row->state == HOST_RUNNING)
        hosts_load_host(job->hosts, row);
}
