/* lineage - whose events a job's database holds: the starts of the broker that wrote them, each
 * with the number of the newest event when it began. A database that is restored from an older copy
 * gives numbers again that were used. A node that heard the former events tells from which
 * start of the broker they were. That start is not in this list, or ended at a lower number. */
#include "broker/core/state/state.h"

#include <inttypes.h>
#include <stdio.h>

static void lineage_add(struct lineage *lineage, uint64_t start_id, uint64_t seq)
{
    if (lineage->count == LINEAGE_MAX)
        memmove(lineage->starts, lineage->starts + 1, --lineage->count * sizeof *lineage->starts);
    lineage->starts[lineage->count++] = (struct lineage_start){start_id, seq};
}

bool lineage_holds(const struct job *job, uint64_t start_id, uint64_t seq)
{
    const struct lineage *lineage = &job->lineage;

    for (size_t i = 0; i < lineage->count; i++)
        if (lineage->starts[i].id == start_id)
            return seq <= (i + 1 < lineage->count ? lineage->starts[i + 1].seq : job->seq);
    return lineage->count == LINEAGE_MAX && seq <= lineage->starts[0].seq; /* of one before them */
}

/* The row is written with every event, and this changes only here. */
static void lineage_write_text(struct lineage *lineage)
{
    size_t used = 0;

    lineage->text[0] = '\0';
    for (size_t i = 0; i < lineage->count; i++)
        used += (size_t)snprintf(lineage->text + used, sizeof lineage->text - used,
                                 "%s%" PRIx64 ":%" PRIu64, i > 0 ? " " : "", lineage->starts[i].id,
                                 lineage->starts[i].seq);
}

/* Once: a job that slept meanwhile has it already. */
void lineage_begin(const struct core *core, struct job *job)
{
    struct lineage *lineage = &job->lineage;

    if (lineage->count == 0 || lineage->starts[lineage->count - 1].id != core->options.start_id) {
        lineage_add(lineage, core->options.start_id, job->seq);
        lineage_write_text(lineage);
    }
}

/* A start that cannot be read is left out: a process that comes from it has to leave. */
void lineage_read(struct lineage *ret_lineage, const char *text)
{
    char *at = (char *)text;

    *ret_lineage = (struct lineage){.count = 0};
    while (*at != '\0') {
        uint64_t id = strtoull(at, &at, 16);
        if (*at != ':')
            break;
        uint64_t seq = strtoull(at + 1, &at, 10);
        lineage_add(ret_lineage, id, seq);
    }
    lineage_write_text(ret_lineage);
}
