/* sim_store_rows - rows as text: what broker/store hands out at a start is compared with what was
 * written. */
#include "tests/sim/sim_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE 2048

static void tell_round(const struct record_round *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "round %s %" PRIu64 " gen %" PRIu64 " att %" PRIu64 " cause %d state %d step %" PRId64
             " ab %d culprit %" PRId64 " code %u '%s' final %d deadline %" PRId64 " opened %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " margin %" PRId64,
             r->job, r->round, r->generation, r->attempt, (int)r->cause, (int)r->state, r->step,
             r->aborted_steps, r->culprit_rank, r->reason_code, r->reason, r->final,
             r->deadline_boot_ms, r->opened_boot_ms, r->opened_unix_ms, r->decided_unix_ms,
             r->captured_unix_ms, r->ended_unix_ms, r->margin_ms);
}

static void tell_generation(const struct record_generation *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "generation %s %" PRIu64 " state %d world %" PRIu64 " layout %d dir %s resume %" PRIu64
             " step %" PRId64 " ready %d fallback %d end %u '%s' error %" PRId64 " %" PRId64
             " '%s' times %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
             r->job, r->generation, (int)r->state, r->world_size, (int)r->layout, r->checkpoint_dir,
             r->resume_checkpoint, r->resume_step, r->resume_ready, r->fallback, r->end_status,
             r->end_text, r->error_rank, r->error_code, r->error_text, r->opened_unix_ms,
             r->started_unix_ms, r->ended_unix_ms, r->ending_unix_ms);
}

static void tell_node(const struct record_node *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "node %s %" PRIu64 " gen %" PRIu64 " role %d rank %" PRIu64 " host %s pid %" PRIu64
             " state %d last %" PRIu64 " %u %" PRIu64 " why %d exit %" PRId64 " times %" PRId64
             " %" PRId64,
             r->job, r->incarnation, r->generation, (int)r->role, r->rank, r->host, r->pid,
             (int)r->state, r->last_request, r->last_code, r->last_value, (int)r->leave_why,
             r->exit_code, r->joined_unix_ms, r->ended_unix_ms);
}

static void tell_participant(const struct record_participant *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "participant %s %" PRIu64 " rank %" PRIu64 " inc %" PRIu64 " writer %d at %" PRId64
             " %" PRId64 " times %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
             r->job, r->round, r->rank, r->incarnation, r->writer, r->begun, r->done,
             r->reported_ms, r->at_step_ms, r->captured_ms, r->saved_ms, r->save_ms);
}

static void tell_checkpoint(const struct record_checkpoint *r, char *text)
{
    snprintf(text, TEXT_SIZE,
             "checkpoint %s %" PRIu64 " gen %" PRIu64 " step %" PRId64
             " state %d cause %d layout %d world %" PRIu64 " shards %" PRIu64 " bytes %" PRIu64
             " path '%s' %" PRId64 " %" PRId64 " %" PRId64 " pinned %d '%s' %" PRId64,
             r->job, r->round, r->generation, r->step, (int)r->state, (int)r->cause, (int)r->layout,
             r->world_size, r->shards_required, r->bytes, r->path, r->epoch, r->step_in_epoch,
             r->data_position, r->pinned, r->metrics, r->committed_unix_ms);
}

static bool tell_row(const struct record *r, char *text)
{
    switch (r->kind) {
    case RECORD_BROKER:
        snprintf(text, TEXT_SIZE, "broker %" PRIu64 " older %d", r->u.broker.epoch,
                 r->u.broker.older);
        return true;
    case RECORD_JOB:
        snprintf(text, TEXT_SIZE,
                 "job %s state %d gen %" PRIu64 " seq %" PRIu64 " round %" PRIu64 " '%s'",
                 r->u.job.job, (int)r->u.job.state, r->u.job.generation, r->u.job.seq,
                 r->u.job.round, r->u.job.save_now_id);
        return true;
    case RECORD_GENERATION:
        tell_generation(&r->u.generation, text);
        return true;
    case RECORD_NODE:
        tell_node(&r->u.node, text);
        return true;
    case RECORD_NOTICE:
        snprintf(text, TEXT_SIZE,
                 "notice %s %s rank %" PRId64 " kind %d state %d left %" PRId64 " deadline %" PRId64
                 " round %" PRIu64 " '%s' '%s'",
                 r->u.notice.job, r->u.notice.id, r->u.notice.rank, (int)r->u.notice.kind,
                 (int)r->u.notice.state, r->u.notice.left_ms, r->u.notice.deadline_boot_ms,
                 r->u.notice.round, r->u.notice.source, r->u.notice.text);
        return true;
    case RECORD_ROUND:
        tell_round(&r->u.round, text);
        return true;
    case RECORD_PARTICIPANT:
        tell_participant(&r->u.participant, text);
        return true;
    case RECORD_CHECKPOINT:
        tell_checkpoint(&r->u.checkpoint, text);
        return true;
    case RECORD_FILE:
        snprintf(text, TEXT_SIZE, "file %s %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %s",
                 r->u.file.job, r->u.file.round, r->u.file.rank, r->u.file.path, r->u.file.bytes,
                 r->u.file.checksum);
        return true;
    case RECORD_LAUNCH:
        snprintf(text, TEXT_SIZE, "launch %s %" PRIu64 " from %" PRId64, r->u.launch.job,
                 r->u.launch.generation, r->u.launch.began_step);
        return true;
    case RECORD_POLICY:
        snprintf(text, TEXT_SIZE, "policy %s %" PRIu64 " '%.600s' '%.600s' '%s'", r->u.policy.job,
                 r->u.policy.generation, r->u.policy.keep, r->u.policy.save, r->u.policy.trash);
        return true;
    case RECORD_PIN:
        snprintf(text, TEXT_SIZE, "pin %s %" PRIu64 " %s until %" PRId64, r->u.pin.job,
                 r->u.pin.checkpoint, r->u.pin.id, r->u.pin.until_unix_ms);
        return true;
    case RECORD_HISTORY:
        snprintf(text, TEXT_SIZE, "history %s %" PRId64 " %" PRIu64, r->u.history.job,
                 r->u.history.run_ms, r->u.history.interruptions);
        return true;
    default:
        return false; /* progress may be held; shards are not asked for */
    }
}

void sim_texts_take(void *arg, const struct record *row)
{
    struct sim_texts *texts = arg;
    char text[TEXT_SIZE];

    if (texts->core != NULL)
        core_load(texts->core, row);
    if (!tell_row(row, text))
        return;
    texts->items = realloc(texts->items, (texts->count + 1) * sizeof *texts->items);
    texts->items[texts->count++] = strdup(text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void sim_texts_sort(struct sim_texts *texts)
{
    if (texts->count > 0)
        qsort(texts->items, texts->count, sizeof *texts->items, by_text);
}

bool sim_texts_same(const struct sim_texts *wanted, const struct sim_texts *found,
                    const char **ret_wanted, const char **ret_found)
{
    for (size_t i = 0; i < wanted->count || i < found->count; i++) {
        *ret_wanted = i < wanted->count ? wanted->items[i] : "nothing";
        *ret_found = i < found->count ? found->items[i] : "nothing";
        if (strcmp(*ret_wanted, *ret_found) != 0)
            return false;
    }
    return true;
}

void sim_texts_free(struct sim_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct sim_texts){.count = 0};
}
