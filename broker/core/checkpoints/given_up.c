/* given_up - checkpoints of a branch that a launch left: it went back to an earlier one (a
 * fallback, or a restore of a given step) and trained on from there. They no longer count: no list
 * has them and no policy keeps them. They stay for a while, because a person may still find out
 * that going back was wrong. */
#include "broker/core/checkpoints/keep.h"

#include "schema/room.h"

static void given_up_drop(struct job *job, size_t index)
{
    struct keep_state *keep = &job->keep;

    free(keep->given_up[index].path);
    free(keep->given_up[index].metrics);
    keep->given_up[index] = keep->given_up[--keep->given_up_count];
}

void given_up_forget(struct job *job, uint64_t round)
{
    for (size_t i = job->keep.given_up_count; i-- > 0;)
        if (job->keep.given_up[i].row.round == round)
            given_up_drop(job, i);
}

void given_up_add(struct job *job, const struct record_checkpoint *row)
{
    struct keep_state *keep = &job->keep;

    if (keep->given_up_count == CORE_CHECKPOINTS_MAX)
        return; /* a later start of the broker has room for it */
    keep->given_up = room_for_one(keep->given_up, keep->given_up_count, &keep->given_up_capacity, 8,
                                  sizeof *keep->given_up);
    MUST(keep->given_up != NULL);
    struct given_up *one = &keep->given_up[keep->given_up_count++];
    *one = (struct given_up){*row, strdup(row->path), strdup(row->metrics)};
    MUST(one->path != NULL && one->metrics != NULL);
    one->row.job = job->name;
    one->row.path = one->path;
    one->row.metrics = one->metrics;
    one->row.trash = "";
}

/* A later launch has saved as far, or is done: its checkpoints replace these. */
static bool given_up_is_made_up_for(const struct job *job, const struct record_checkpoint *row,
                                    bool closing)
{
    const struct checkpoint *whole = registry_newest_whole(job);

    return whole != NULL && whole->row.generation > row->generation &&
           (closing || whole->row.step >= row->step);
}

void given_up_consider(struct core *core, struct job *job, bool closing)
{
    const struct job_policies *policies = keep_policies_of(job);

    if (policies == NULL || policies->keep.count == 0)
        return; /* a job that keeps all keeps these, too */
    for (size_t i = job->keep.given_up_count; i-- > 0;) {
        const struct record_checkpoint *row = &job->keep.given_up[i].row;
        if (!given_up_is_made_up_for(job, row, closing) || pins_hold(job, row->round) ||
            keep_is_being_restored(job, row->round))
            continue;
        keep_delete(core, job, row);
        given_up_drop(job, i);
    }
}
