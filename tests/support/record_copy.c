/* record_copy - see record_copy.h. */
#include "tests/support/record_copy.h"

#include <stddef.h>
#include <string.h>

/* Where the strings of each kind are, in the order in which they are kept; 0 is the kind's place
 * and so no string's. */
#define STRINGS_MAX 5
#define AT(field) offsetof(struct record, u.field)
static const size_t strings[RECORD_KIND_COUNT][STRINGS_MAX] = {
    [RECORD_JOB] = {AT(job.job), AT(job.save_now_id), AT(job.saves), AT(job.plan), AT(job.lineage)},
    [RECORD_GENERATION] = {AT(generation.job), AT(generation.checkpoint_dir),
                           AT(generation.end_text), AT(generation.error_text)},
    [RECORD_NODE] = {AT(node.job), AT(node.host)},
    [RECORD_PROGRESS] = {AT(progress.job), AT(progress.sources)},
    [RECORD_NOTICE] = {AT(notice.job), AT(notice.id), AT(notice.source), AT(notice.text)},
    [RECORD_EVENT] = {AT(event.job), AT(event.body.text), AT(event.body.path)},
    [RECORD_ROUND] = {AT(round.job), AT(round.reason), AT(round.plan)},
    [RECORD_PARTICIPANT] = {AT(participant.job), AT(participant.failed)},
    [RECORD_CHECKPOINT] = {AT(checkpoint.job), AT(checkpoint.path), AT(checkpoint.metrics),
                           AT(checkpoint.trash)},
    [RECORD_LAUNCH] = {AT(launch.job)},
    [RECORD_HOST] = {AT(host.job), AT(host.name), AT(host.address)},
    [RECORD_SHARD] = {AT(shard.job)},
    [RECORD_FILE] = {AT(file.job), AT(file.path), AT(file.checksum)},
    [RECORD_SHARDS_GONE] = {AT(shards_gone.job)},
    [RECORD_POLICY] = {AT(policy.job), AT(policy.keep), AT(policy.save), AT(policy.trash)},
    [RECORD_PIN] = {AT(pin.job), AT(pin.id)},
    [RECORD_UNPIN] = {AT(pin.job), AT(pin.id)},
    [RECORD_CUSTOM] = {AT(custom.job), AT(custom.custom)},
    [RECORD_JOB_ASLEEP] = {AT(job_asleep.job)},
    [RECORD_FORGET] = {AT(forget.job), AT(forget.by)},
    [RECORD_HISTORY] = {AT(history.job)},
};
#undef AT

struct record record_copy(const struct record *row, record_keep_fn *keep, void *arg)
{
    struct record copy = *row;

    for (size_t i = 0; i < STRINGS_MAX && strings[row->kind][i] != 0; i++) {
        unsigned char *at = (unsigned char *)&copy + strings[row->kind][i];
        const char *text;

        memcpy(&text, at, sizeof text);
        text = keep(arg, text);
        memcpy(at, &text, sizeof text);
    }
    if (copy.kind == RECORD_EVENT) {
        copy.u.event.body.members.items = NULL;
        copy.u.event.body.members.count = 0;
    }
    return copy;
}
