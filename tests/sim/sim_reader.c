/* sim_reader - tools that come and go and pin what they read for a lease that they prolong, some of
 * which die with it; operators who pin for good, and who delete. What a reader was told that it
 * holds is not deleted. */
#include "tests/sim/sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS_MAX 200
#define OF_READERS (UINT64_C(1) << 41) /* in the numbers of these requests */

uint64_t some_checkpoint(struct sim *sim, const struct sim_job *job)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    uint64_t found = 0, seen = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct record_checkpoint *row = &table->rows[i].record.u.checkpoint;
        if (strcmp(row->job, job->name) == 0 && disk_counts(sim, row) &&
            side_range(sim, 0, (int64_t)seen++) == 0)
            found = row->round;
    }
    return found;
}

void drop_said(struct sim *sim, unsigned job, uint64_t number, bool newest)
{
    sim->drops = realloc(sim->drops, (sim->drops_count + 1) * sizeof *sim->drops);
    sim->drops[sim->drops_count++] = (struct sim_drop){job, number, newest};
}

/* --- one reader ------------------------------------------------------------------------------- */

static void goes_on(struct sim *sim, struct sim_event *event);

static void pin(struct sim *sim, struct sim_reader *reader)
{
    struct wire_msg message = tool_message(sim, WIRE_PIN, &sim->jobs[reader->job]);

    if (!sim->broker->alive)
        return;
    message.up.request |= OF_READERS;
    message.u.pin = (struct wire_pin){
        .checkpoint = reader->number, .id = reader->id, .lease_ms = reader->lease_ms};
    if (reader->number == 0 && side_chance(sim, 40))
        message.u.pin.checkpoint = some_checkpoint(sim, &sim->jobs[reader->job]);
    reader->request = message.up.request;
    reader->asked_us = sim->now_us;
    tool_say(sim, &message);
}

static void unpin(struct sim *sim, struct sim_reader *reader)
{
    struct wire_msg message = tool_message(sim, WIRE_UNPIN, &sim->jobs[reader->job]);

    reader->held_until_us = 0;
    reader->over = true; /* also if it hears only now that it is held */
    if (!sim->broker->alive)
        return; /* its lease ends */
    message.u.unpin = (struct wire_unpin){.checkpoint = side_chance(sim, 50) ? reader->number : 0,
                                          .id = reader->id};
    tool_say(sim, &message);
}

static void look_later(struct sim *sim, size_t index)
{
    const struct sim_reader *reader = &sim->readers[index];
    int64_t every_us = reader->lease_ms > 0 ? reader->lease_ms * 500 : 1000000;

    sim_after(sim, every_us, goes_on, NULL)->number = (int64_t)index;
}

static void goes_on(struct sim *sim, struct sim_event *event)
{
    struct sim_reader *reader = &sim->readers[event->number];

    if (sim->now_us >= reader->reads_until_us || sim_is_calm(sim)) {
        if (reader->lease_ms == 0 || side_chance(sim, 70))
            unpin(sim, reader);
        if (reader->lease_ms == 0 && !sim->broker->alive)
            look_later(sim, (size_t)event->number);
        return;
    }
    if (reader->lease_ms > 0 || reader->number == 0)
        pin(sim, reader);
    look_later(sim, (size_t)event->number);
}

static void add(struct sim *sim)
{
    unsigned job = (unsigned)side_range(sim, 0, (int64_t)sim->jobs_count - 1);
    char id[32];

    if (sim->readers_count == READERS_MAX)
        return;
    snprintf(id, sizeof id, "reader-%zu", sim->readers_count);
    sim->readers = realloc(sim->readers, (sim->readers_count + 1) * sizeof *sim->readers);
    sim->readers[sim->readers_count++] =
        (struct sim_reader){.job = job,
                            .id = sim_word(sim, id),
                            .lease_ms = side_chance(sim, 8) ? 0 : side_range(sim, 1000, 15000),
                            .reads_until_us = sim->now_us + side_range(sim, 200000, 25000000)};
    pin(sim, &sim->readers[sim->readers_count - 1]);
    look_later(sim, sim->readers_count - 1);
}

/* An operator deletes something, whatever the policies say. */
static void drop(struct sim *sim)
{
    unsigned index = (unsigned)side_range(sim, 0, (int64_t)sim->jobs_count - 1);
    struct wire_msg message = tool_message(sim, WIRE_DROP, &sim->jobs[index]);
    uint64_t number = some_checkpoint(sim, &sim->jobs[index]);

    if (!sim->broker->alive || number == 0)
        return;
    message.u.drop = (struct wire_drop){.checkpoint = number, .newest = side_chance(sim, 10)};
    drop_said(sim, index, number, message.u.drop.newest);
    tool_say(sim, &message);
}

void reader_comes(struct sim *sim, struct sim_event *event)
{
    (void)event;
    if (sim_is_calm(sim))
        return;
    if (side_chance(sim, 85) || sim->options.healthy)
        add(sim);
    else
        drop(sim);
    sim_after(sim, side_range(sim, 300000, 6000000), reader_comes, NULL);
}

/* --- what they are told ----------------------------------------------------------------------- */

void readers_hear(struct sim *sim, const struct wire_msg *message)
{
    const struct wire_ack *ack = &message->u.ack;

    if (message->type != WIRE_ACK || (ack->request & OF_READERS) == 0)
        return;
    for (size_t i = sim->readers_count; i-- > 0;) {
        struct sim_reader *reader = &sim->readers[i];
        if (reader->request != ack->request || ack->code != MUSTER_OK || reader->over)
            continue;
        if (reader->number != 0 && reader->number != ack->value)
            sim_broken(sim, "answers", "%s asked to pin %llu, and %llu was pinned", reader->id,
                       (unsigned long long)reader->number, (unsigned long long)ack->value);
        reader->number = ack->value;
        reader->held_until_us =
            reader->lease_ms > 0 ? reader->asked_us + reader->lease_ms * 1000 : NEVER;
        reader->starts = sim->broker->starts;
        reader->wall_offset_ms = sim->wall_offset_ms;
        sim->stats->pins++;
    }
}

void readers_forget(struct sim *sim)
{
    for (size_t i = 0; i < sim->readers_count; i++)
        sim->readers[i].held_until_us = 0;
}

void readers_let_go(struct sim *sim, const struct sim_job *job, uint64_t number)
{
    for (size_t i = 0; i < sim->readers_count; i++) {
        const struct sim_reader *reader = &sim->readers[i];
        struct wire_msg message;

        if (reader->job != job->index || reader->lease_ms > 0 || reader->held_until_us > 0)
            continue;
        message = tool_message(sim, WIRE_UNPIN, job);
        message.u.unpin = (struct wire_unpin){.checkpoint = number, .id = reader->id};
        tool_say(sim, &message);
    }
}

void readers_calm(struct sim *sim)
{
    for (size_t i = 0; i < sim->readers_count; i++)
        if (sim->readers[i].held_until_us == NEVER)
            sim_after(sim, 0, goes_on, NULL)->number = (int64_t)i;
}
