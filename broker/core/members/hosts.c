/* hosts - hosts that form a job's launches by themselves: `muster run --nodes MIN:MAX`.
 * Owns: which hosts are in a launch, and which ranks each of them has. Never: a rank, a process or
 * a generation; the ranks say HELLO as under any launcher.
 * Always: a launch has rows before a host is told of it; no launch is formed while a host that is
 * heard is in the one before. A host repeats HOST each second, which is its request and its sign
 * of life, so nothing is lost with a broker but the time until it is heard again. */
#include "broker/core/members/members.h"

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

/* Since the newest of those that wait came, and for how long the others wait for one more. */
static bool hosts_waited(const struct core *core, const struct hosts *hosts)
{
    int64_t came_ms = INT64_MIN, wait_ms = 0;

    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];

        if (hosts_waits(hosts, host) && host->came_boot_ms > came_ms)
            came_ms = host->came_boot_ms;
        if ((int64_t)host->wait_ms > wait_ms)
            wait_ms = (int64_t)host->wait_ms;
    }
    return came_ms != INT64_MIN && core->now - came_ms >= wait_ms;
}

/* A host that left the newest launch before its end; NULL: none has. After a start nobody is
 * gone before there was time to be heard. */
static const struct host_place *hosts_gone(const struct core *core, const struct hosts *hosts)
{
    if (core->now - core->start_boot_ms < LOST_MS)
        return NULL;
    for (size_t i = 0; i < hosts->places_count; i++)
        if (!hosts->places[i].over && !hosts->places[i].here)
            return &hosts->places[i];
    return NULL;
}

static bool hosts_all_back(const struct core *core, const struct hosts *hosts)
{
    return hosts->places_count > 0 && hosts_gone(core, hosts) == NULL;
}

static bool hosts_enough(const struct core *core, const struct hosts *hosts)
{
    size_t waiting = hosts_waiting(hosts);

    if (waiting < hosts->count || waiting == 0 || core->now - core->start_boot_ms < LOST_MS)
        return false; /* one is in a launch, or may be and was not heard yet */
    return waiting >= hosts->items[0].max ||
           (waiting >= hosts->items[0].min &&
            (hosts_waited(core, hosts) || hosts_all_back(core, hosts)));
}

/* Hosts wait that the running launch has room for. */
static bool hosts_grows(const struct core *core, const struct hosts *hosts)
{
    size_t waiting = hosts_waiting(hosts), max = hosts->items[0].max;

    return waiting > 0 && waiting < hosts->count && hosts->places_count < max &&
           (hosts_waited(core, hosts) || hosts->places_count + waiting >= max);
}

/* --- forming a launch ------------------------------------------------------------------------- */

/* Those who had a place first, in that order, then as they came. */
static int hosts_order(const void *a, const void *b)
{
    const struct host *left = *(struct host *const *)a, *right = *(struct host *const *)b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    if (left->came_boot_ms != right->came_boot_ms)
        return left->came_boot_ms < right->came_boot_ms ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* Who got a seat is taken from its list. */
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

static void hosts_persist(struct core *core, const struct job *job, size_t at,
                          const struct host *host)
{
    const struct host_place *place = &job->hosts->places[at];
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = RECORD_HOST;
    action->record.u.host = (struct record_host){.job = out_text(core, job->name),
                                                 .launch = job->hosts->launch,
                                                 .place = at,
                                                 .id = place->id,
                                                 .name = out_text(core, place->name),
                                                 .address = out_text(core, host->address),
                                                 .port = host->port,
                                                 .first_rank = place->first_rank,
                                                 .ranks = place->ranks,
                                                 .formed_unix_ms = core->now_unix};
}

/* The journal tells of it, which gives the job its row before those of its hosts. */
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

static void hosts_forget_places(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        hosts->items[i].place = HOSTS_MAX;
    hosts->places_count = 0;
}

static void hosts_place_all(struct core *core, struct job *job, struct host *const *seats,
                            struct host_place *places, size_t count)
{
    struct hosts *hosts = job->hosts;
    uint64_t ranks = 0;

    hosts_forget_places(hosts);
    free(hosts->places);
    hosts->places = places;
    hosts->places_count = count;
    hosts->launch++;
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct host_place){
            .id = seats[i]->id, .first_rank = ranks, .ranks = seats[i]->ranks, .here = true};
        memcpy(places[i].name, seats[i]->name, sizeof places[i].name);
        seats[i]->place = i;
        ranks += seats[i]->ranks;
    }
    hosts_tell(core, job, seats, ranks);
    for (size_t i = 0; i < count; i++)
        hosts_persist(core, job, i, seats[i]);
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
        places = NULL;
    }
    free(list);
    free(seats);
    free(places);
}

static void hosts_drop(struct hosts *hosts, struct host *host)
{
    if (host->place < hosts->places_count)
        hosts->places[host->place].here = false;
    *host = hosts->items[--hosts->count];
}

/* What else time brings is seen at the next word of one of them. */
static void hosts_consider(struct core *core, struct job *job)
{
    struct hosts *hosts = job->hosts;

    for (size_t i = hosts->count; i-- > 0;)
        if (core->now - hosts->items[i].heard_boot_ms > LOST_MS)
            hosts_drop(hosts, &hosts->items[i]);
    for (size_t i = 0; i < hosts->count; i++)
        job_timer(job, hosts->items[i].heard_boot_ms + LOST_MS + 1);
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
    if (!jobs_have_room(core, job, in->key_jobs))
        return (struct answer){MUSTER_E_BUSY, TOO_MANY_OF_KEY, 0};
    return (struct answer){MUSTER_OK, "", 0};
}

static bool hosts_differ(const struct host *one, const struct wire_host *other)
{
    return one->min != other->min || one->max != other->max ||
           (one->node_rank >= 0 && one->node_rank == other->node_rank);
}

/* A host of the newest launch is heard again, behind a start of the broker: who came in between and
 * contradicts it is told so when it asks again. */
static void hosts_make_way(struct hosts *hosts, const struct wire_host *m)
{
    for (size_t i = hosts->count; i-- > 0;)
        if (hosts->items[i].place == HOSTS_MAX && hosts_differ(&hosts->items[i], m))
            hosts_drop(hosts, &hosts->items[i]);
}

/* MUSTER_OK: it goes together with those that are there. */
static struct answer hosts_contradiction(struct core *core, const struct hosts *hosts,
                                         const struct wire_host *m)
{
    uint64_t ranks = m->ranks;

    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *other = &hosts->items[i];

        ranks += other->ranks;
        if (!hosts_differ(other, m))
            continue;
        if (other->min != m->min || other->max != m->max)
            return (struct answer){
                MUSTER_E_ARGUMENT,
                out_printf(core,
                           "host %s runs this job with --nodes %llu:%llu, this one with %llu:%llu: "
                           "give all hosts the same",
                           other->name, (unsigned long long)other->min,
                           (unsigned long long)other->max, (unsigned long long)m->min,
                           (unsigned long long)m->max),
                0};
        return (struct answer){
            MUSTER_E_ARGUMENT,
            out_printf(core,
                       "host %s has --node-rank %lld already: give each host a number of its "
                       "own, or none",
                       other->name, (long long)m->node_rank),
            0};
    }
    if (ranks > WORLD_SIZE_MAX || hosts->count >= HOSTS_MAX)
        return (struct answer){
            MUSTER_E_ARGUMENT,
            out_printf(core, "a job has at most %d ranks on %d hosts", WORLD_SIZE_MAX, HOSTS_MAX),
            0};
    return (struct answer){MUSTER_OK, "", 0};
}

static struct host *hosts_add(struct core *core, struct hosts *hosts, const struct wire_host *m)
{
    struct host *items =
        room_for_one(hosts->items, hosts->count, &hosts->capacity, 4, sizeof *items);

    if (items == NULL)
        return NULL;
    hosts->items = items;
    items[hosts->count] = (struct host){.id = m->id,
                                        .ranks = m->ranks,
                                        .min = m->min,
                                        .max = m->max,
                                        .wait_ms = m->wait_ms,
                                        .node_rank = m->node_rank,
                                        .place = hosts_place(hosts, m->id),
                                        .came_boot_ms = core->now};
    if (items[hosts->count].place < HOSTS_MAX)
        hosts->places[items[hosts->count].place].here = true;
    snprintf(items[hosts->count].name, sizeof items->name, "%s", m->name);
    return &items[hosts->count++];
}

static void hosts_hear(struct core *core, struct hosts *hosts, struct host *host,
                       const struct wire_host *m)
{
    host->heard_boot_ms = core->now;
    host->port = m->port;
    snprintf(host->address, sizeof host->address, "%s", m->address);
    if (m->ended > host->ended) {
        host->ended = m->ended;
        host->came_boot_ms = core->now;
    }
    if (m->ended > hosts->launch) { /* a database of before that launch: no number is used twice */
        hosts->launch = m->ended;
        hosts_forget_places(hosts);
    }
}

static struct answer hosts_wait_for(struct core *core, const struct hosts *hosts)
{
    unsigned long long min = hosts->items[0].min, max = hosts->items[0].max;
    size_t waiting = hosts_waiting(hosts);

    if (waiting < hosts->count)
        return (struct answer){
            MUSTER_E_BUSY,
            out_printf(core,
                       "launch %llu of this job runs on %zu host%s, and %zu wait%s for the next",
                       (unsigned long long)hosts->launch, hosts->count - waiting,
                       hosts->count - waiting == 1 ? "" : "s", waiting, waiting == 1 ? "s" : ""),
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
    const struct host_place *gone = hosts_gone(core, hosts);
    size_t more = hosts_waiting(hosts);

    if (hosts_waits(hosts, host))
        return hosts_wait_for(core, hosts);
    if (gone != NULL)
        return (struct answer){MUSTER_E_PEER,
                               out_printf(core, "host %s of launch %llu is gone", gone->name,
                                          (unsigned long long)hosts->launch),
                               hosts->launch};
    if (host->place == 0 && hosts_grows(core, hosts))
        return (struct answer){MUSTER_PREEMPTED,
                               out_printf(core, "%zu more host%s for the job", more,
                                          more == 1 ? " is there" : "s are there"),
                               hosts->launch};
    return (struct answer){MUSTER_OK, "", hosts->launch};
}

static void hosts_leave(struct hosts *hosts, struct host *host, const struct wire_host *m)
{
    size_t place = hosts_place(hosts, m->id);

    if (place < hosts->places_count && m->ended >= hosts->launch)
        hosts->places[place].over = true;
    if (host != NULL)
        hosts_drop(hosts, host);
}

struct answer hosts_take(struct core *core, struct job *job, const struct wire_host *m)
{
    struct answer answer = {MUSTER_OK, "", 0};
    struct host *host;

    if (job->hosts == NULL && (job->hosts = calloc(1, sizeof *job->hosts)) == NULL)
        return hosts_no_memory;
    host = hosts_find(job->hosts, m->id);
    if (m->leaving) {
        hosts_leave(job->hosts, host, m);
        hosts_consider(core, job);
        return answer;
    }
    if (host == NULL) {
        if (hosts_place(job->hosts, m->id) < HOSTS_MAX)
            hosts_make_way(job->hosts, m);
        else if ((answer = hosts_contradiction(core, job->hosts, m)).code != MUSTER_OK)
            return answer;
        host = hosts_add(core, job->hosts, m);
        if (host == NULL)
            return hosts_no_memory;
    }
    hosts_hear(core, job->hosts, host, m);
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

void hosts_load(struct core *core, const struct record_host *row)
{
    struct job *job = job_find(core, row->job);
    struct host_place *places;

    if (job == NULL || row->place >= HOSTS_MAX)
        return;
    if (job->hosts == NULL)
        job->hosts = calloc(1, sizeof *job->hosts);
    MUST(job->hosts != NULL);
    if (row->place != job->hosts->places_count)
        return;
    places = realloc(job->hosts->places, (row->place + 1) * sizeof *places);
    MUST(places != NULL);
    job->hosts->places = places;
    job->hosts->launch = row->launch;
    job->hosts->places_count++;
    places[row->place] =
        (struct host_place){.id = row->id, .first_rank = row->first_rank, .ranks = row->ranks};
    snprintf(places[row->place].name, sizeof places->name, "%s", row->name);
}
