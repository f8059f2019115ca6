/* record_copy - see record_copy.h. */
#include "tests/support/record_copy.h"

#include <stddef.h>

struct record record_copy(const struct record *row, record_keep_fn *keep, void *arg)
{
    struct record copy = *row;

#define KEEP(field) copy.u.field = keep(arg, copy.u.field)
    switch (copy.kind) {
    case RECORD_JOB:
        KEEP(job.job);
        KEEP(job.save_now_id);
        KEEP(job.saves);
        KEEP(job.plan);
        KEEP(job.lineage);
        break;
    case RECORD_GENERATION:
        KEEP(generation.job);
        KEEP(generation.checkpoint_dir);
        KEEP(generation.end_text);
        KEEP(generation.error_text);
        break;
    case RECORD_NODE:
        KEEP(node.job);
        KEEP(node.host);
        break;
    case RECORD_PROGRESS:
        KEEP(progress.job);
        KEEP(progress.sources);
        break;
    case RECORD_NOTICE:
        KEEP(notice.job);
        KEEP(notice.id);
        KEEP(notice.source);
        KEEP(notice.text);
        break;
    case RECORD_EVENT:
        KEEP(event.job);
        KEEP(event.body.text);
        KEEP(event.body.path);
        copy.u.event.body.members.items = NULL;
        copy.u.event.body.members.count = 0;
        break;
    case RECORD_ROUND:
        KEEP(round.job);
        KEEP(round.reason);
        KEEP(round.plan);
        break;
    case RECORD_PARTICIPANT:
        KEEP(participant.job);
        KEEP(participant.failed);
        break;
    case RECORD_CHECKPOINT:
        KEEP(checkpoint.job);
        KEEP(checkpoint.path);
        KEEP(checkpoint.metrics);
        KEEP(checkpoint.trash);
        break;
    case RECORD_SUPERSEDE:
        KEEP(supersede.job);
        break;
    case RECORD_SHARD:
        KEEP(shard.job);
        break;
    case RECORD_FILE:
        KEEP(file.job);
        KEEP(file.path);
        KEEP(file.checksum);
        break;
    case RECORD_SHARDS_GONE:
        KEEP(shards_gone.job);
        break;
    case RECORD_POLICY:
        KEEP(policy.job);
        KEEP(policy.keep);
        KEEP(policy.save);
        KEEP(policy.trash);
        break;
    case RECORD_PIN:
    case RECORD_UNPIN:
        KEEP(pin.job);
        KEEP(pin.id);
        break;
    case RECORD_CUSTOM:
        KEEP(custom.job);
        KEEP(custom.custom);
        break;
    case RECORD_HISTORY:
        KEEP(history.job);
        break;
    default:
        break; /* has no string */
    }
#undef KEEP
    return copy;
}
