#include "tests/fuzz/core_rules.h"

#include "tests/fuzz/fuzz.h"

#define SILENCE_PASSES_MAX \
    120 /* of a second each: 30 s of grace after a start, 5 s of silence, then the end */
#define ACTIONS_MAX 4096 /* of one input, with eight nodes */

/* The store refuses a row whose owner is not there, and the broker ends: rows are written in order.
 */
static const struct record *row_of(const struct core_fixture *f, enum record_kind kind,
                                   uint64_t round)
{
    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record *row = &f->rows[i];

        if (row->kind != kind)
            continue;
        if ((kind == RECORD_JOB && strcmp(row->u.job.job, f->job) == 0) ||
            (kind == RECORD_ROUND && row->u.round.round == round &&
             strcmp(row->u.round.job, f->job) == 0) ||
            (kind == RECORD_CHECKPOINT && row->u.checkpoint.round == round &&
             strcmp(row->u.checkpoint.job, f->job) == 0))
            return row;
    }
    return NULL;
}

static const struct record *node_of(const struct core_fixture *f, uint64_t incarnation)
{
    for (size_t i = 0; i < f->rows_count; i++)
        if (f->rows[i].kind == RECORD_NODE && f->rows[i].u.node.incarnation == incarnation &&
            strcmp(f->rows[i].u.node.job, f->job) == 0)
            return &f->rows[i];
    return NULL;
}

static bool is_open(enum wire_round_state state)
{
    return state == ROUND_FREEZING || state == ROUND_DECIDED;
}

static bool is_over(enum wire_round_state state)
{
    return state == ROUND_COMMITTED || state == ROUND_ABORTED || state == ROUND_UNCHANGED;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Its rows come in any order, and have no members. */
static bool is_imported(const struct core_fixture *f, uint64_t round)
{
    const struct record *row = row_of(f, RECORD_ROUND, round);

    return row != NULL && strcmp(row->u.round.reason, FOUND_ON_DISK) == 0;
}

/* I4: what is decided stays so, what has ended has ended. */
static void check_round(struct core_rules *rules, const struct record_round *row)
{
    size_t i = 0;

    while (i < rules->rounds_count && rules->rounds[i].round != row->round)
        i++;
    if (i == rules->rounds_count) {
        must(i == 0 || row->round > rules->rounds[i - 1].round);
        if (i == RULES_ROUNDS_MAX)
            return;
        rules->rounds_count++;
        rules->rounds[i].round = row->round;
    } else {
        must(row->state >= rules->rounds[i].state);
        must(!is_over(rules->rounds[i].state) || row->state == rules->rounds[i].state);
        must(rules->rounds[i].state == ROUND_FREEZING || row->step == rules->rounds[i].step);
    }
    must(row->state != ROUND_DECIDED || row->step >= 0);
    rules->rounds[i].state = row->state;
    rules->rounds[i].step = row->step;
}

static bool has_said(const struct core_rules *rules, const struct record_participant *part,
                     int64_t step)
{
    for (size_t i = 0; i < rules->saves_count; i++)
        if (rules->saves[i].round == part->round && rules->saves[i].step == step &&
            rules->saves[i].incarnation == part->incarnation)
            return true;
    return rules->saves_count == RULES_SAVES_MAX;
}

/* I1: every writer of the decision said SAVED, in this round, of this step. */
static void check_commit(const struct core_rules *rules, const struct core_fixture *f,
                         const struct record_checkpoint *row)
{
    const struct record *round = row_of(f, RECORD_ROUND, row->round);
    uint64_t shards = 0;

    must(round != NULL && round->u.round.step == row->step);
    must(round->u.round.generation == row->generation && row->generation == rules->generation);
    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record_participant *part = &f->rows[i].u.participant;

        if (f->rows[i].kind != RECORD_PARTICIPANT || part->round != row->round || !part->writer ||
            strcmp(part->job, f->job) != 0)
            continue;
        must(part->saved_ms >= 0 && has_said(rules, part, row->step));
        shards++;
    }
    must(shards == row->shards_required && shards > 0);
}

/* The first time that it is written as committed. */
static bool commits_now(struct core_rules *rules, const struct record_checkpoint *row)
{
    for (size_t i = 0; i < rules->rounds_count; i++) {
        if (rules->rounds[i].round != row->round || rules->rounds[i].committed)
            continue;
        return rules->rounds[i].committed = row->state == CHECKPOINT_COMMITTED;
    }
    return false;
}

static bool is_greatest_step(const struct core_fixture *f, const struct record_checkpoint *row)
{
    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record_checkpoint *other = &f->rows[i].u.checkpoint;

        if (f->rows[i].kind == RECORD_CHECKPOINT && strcmp(other->job, row->job) == 0 &&
            core_counts(f, other) &&
            (other->step > row->step || (other->step == row->step && other->round != row->round)))
            return false; /* of two of one step, which imports may leave, one stays */
    }
    return true;
}

/* I11: pinned, being restored by all, the newest. Its decision is never taken back. */
static void check_deletion(struct core_rules *rules, const struct core_fixture *f,
                           const struct record_checkpoint *row)
{
    struct job *job = job_find(f->core, f->job);
    size_t at = 0;

    while (at < rules->rounds_count && rules->rounds[at].round != row->round)
        at++;
    if (at < rules->rounds_count) {
        must(!rules->rounds[at].deleting || row->state == CHECKPOINT_DELETING ||
             row->state == CHECKPOINT_DELETED);
        rules->rounds[at].deleting |= row->state == CHECKPOINT_DELETING;
    }
    if (row->state != CHECKPOINT_DELETING)
        return;
    must(job->gen.state != GENERATION_JOINING);
    must(rules->gives_up || !is_greatest_step(f, row));
    for (size_t i = 0; i < f->rows_count; i++)
        must(f->rows[i].kind != RECORD_PIN || f->rows[i].u.pin.checkpoint != row->round ||
             strcmp(f->rows[i].u.pin.job, row->job) != 0);
}

/* The store has a word for each number, or the broker ends. */
static void check_words(const struct record *row)
{
    switch (row->kind) {
    case RECORD_GENERATION:
        must(row->u.generation.state < GENERATION_STATE_COUNT);
        must(row->u.generation.layout < LAYOUT_COUNT);
        break;
    case RECORD_NODE:
        must(row->u.node.role < ROLE_COUNT && row->u.node.state < NODE_STATE_COUNT);
        must(row->u.node.leave_why < LEAVE_WHY_COUNT);
        break;
    case RECORD_PROGRESS:
        must(row->u.progress.phase < PHASE_COUNT);
        break;
    case RECORD_NOTICE:
        must(row->u.notice.kind < NOTICE_KIND_COUNT);
        break;
    case RECORD_EVENT:
        must(row->u.event.body.kind < EVENT_KIND_COUNT && row->u.event.body.cause < CAUSE_COUNT);
        break;
    case RECORD_ROUND:
        must(row->u.round.cause < CAUSE_COUNT && row->u.round.state < ROUND_STATE_COUNT);
        break;
    case RECORD_CHECKPOINT:
        must(row->u.checkpoint.state < CHECKPOINT_STATE_COUNT);
        must(row->u.checkpoint.cause < CAUSE_COUNT && row->u.checkpoint.layout < LAYOUT_COUNT);
        break;
    default:
        break;
    }
}

static bool count_ok(int64_t number, int64_t least)
{
    return number >= least && number < (int64_t)1 << 62;
}

/* The next start refuses a database with other numbers, see broker/store/store_check.c. */
static void check_numbers(const struct record *row)
{
    const struct record_participant *part = &row->u.participant;

    switch (row->kind) {
    case RECORD_JOB:
        must((int64_t)row->u.job.seq >= 0 && (int64_t)row->u.job.round >= 0);
        must((int64_t)row->u.job.generation >= 0 && wire_job_name_ok(row->u.job.job));
        break;
    case RECORD_GENERATION:
        must(count_ok(row->u.generation.resume_step, 0));
        must(row->u.generation.world_size >= 1 && row->u.generation.world_size <= WORLD_SIZE_MAX);
        break;
    case RECORD_NODE:
        must((int64_t)row->u.node.rank >= 0 && count_ok((int64_t)row->u.node.last_request, 0));
        break;
    case RECORD_PROGRESS:
        must(count_ok(row->u.progress.begun, 0) && count_ok(row->u.progress.done, 0));
        must(row->u.progress.step_p95_ms <= INT32_MAX);
        break;
    case RECORD_ROUND:
        must(count_ok(row->u.round.step, -1));
        break;
    case RECORD_PARTICIPANT:
        must(count_ok(part->begun, -1) && count_ok(part->done, -1));
        must(count_ok(part->reported_ms, -1) && count_ok(part->at_step_ms, -1));
        must(count_ok(part->captured_ms, -1) && count_ok(part->saved_ms, -1));
        break;
    case RECORD_CHECKPOINT:
        must(count_ok(row->u.checkpoint.step, 0));
        must(row->u.checkpoint.shards_required >= 1);
        break;
    default:
        break;
    }
}

static void check_row(struct core_rules *rules, const struct core_fixture *f,
                      const struct record *row)
{
    check_words(row);
    check_numbers(row);
    switch (row->kind) {
    case RECORD_EVENT:
        if (strcmp(row->u.event.job, f->job) != 0)
            return;
        must(row->u.event.seq > rules->seq && row->u.event.seq == row->u.event.body.seq);
        rules->seq = row->u.event.seq;
        break;
    case RECORD_GENERATION:
        if (strcmp(row->u.generation.job, f->job) != 0)
            return;
        if (strcmp(row->u.generation.end_text, FOUND_ON_DISK) == 0 &&
            row->u.generation.generation < rules->generation)
            return;
        must(row->u.generation.generation >= rules->generation);
        must(row->u.generation.world_size >= 1);
        rules->generation = row->u.generation.generation;
        break;
    case RECORD_ROUND:
        if (strcmp(row->u.round.job, f->job) == 0 &&
            strcmp(row->u.round.reason, FOUND_ON_DISK) != 0)
            check_round(rules, &row->u.round);
        break;
    case RECORD_PARTICIPANT:
        if (strcmp(row->u.participant.job, f->job) == 0)
            must(row_of(f, RECORD_ROUND, row->u.participant.round) != NULL);
        break;
    case RECORD_CHECKPOINT:
        if (strcmp(row->u.checkpoint.job, f->job) != 0)
            return;
        must(row_of(f, RECORD_ROUND, row->u.checkpoint.round) != NULL);
        check_deletion(rules, f, &row->u.checkpoint);
        if (is_imported(f, row->u.checkpoint.round))
            return;
        if (commits_now(rules, &row->u.checkpoint))
            check_commit(rules, f, &row->u.checkpoint);
        break;
    case RECORD_SHARD:
        if (strcmp(row->u.shard.job, f->job) == 0)
            must(row_of(f, RECORD_CHECKPOINT, row->u.shard.round) != NULL);
        break;
    case RECORD_FILE:
        if (strcmp(row->u.file.job, f->job) == 0)
            must(row_of(f, RECORD_CHECKPOINT, row->u.file.round) != NULL);
        break;
    default:
        break;
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static void check_decision(struct core_rules *rules, const struct wire_event *event)
{
    for (size_t i = 0; i < rules->rounds_count; i++) {
        if (rules->rounds[i].round != event->round)
            continue;
        must(event->step == rules->rounds[i].step);
        return;
    }
    must(rules->rounds_count == RULES_ROUNDS_MAX);
}

/* I12: what is answered is written. */
static void check_ack(const struct core_fixture *f, const struct action *action)
{
    const struct wire_ack *ack = &action->message.u.ack;

    for (int n = 0; n < CORE_NODES; n++) {
        const struct record *row;

        if (f->nodes[n].route != action->route || ack->code != MUSTER_OK || ack->request == 0 ||
            strcmp(action->message.down.job, f->job) != 0)
            continue;
        row = node_of(f, f->nodes[n].incarnation);
        must(row == NULL || row->u.node.last_request >= ack->request ||
             row->u.node.state == NODE_LEFT);
    }
}

static void check_message(struct core_rules *rules, const struct core_fixture *f,
                          const struct action *action)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    const struct wire_msg *message = &action->message;
    const struct record *job = row_of(f, RECORD_JOB, 0);

    must(!wire_is_up(message->type) && wire_encode(message, frame, sizeof frame) > 0);
    if (strcmp(message->down.job, f->job) != 0)
        return;
    must(message->down.last_seq <= (job ? job->u.job.seq : 0)); /* I3 */
    if (message->type == WIRE_EVENT) {
        must(message->u.event.seq <= rules->seq);
        if (message->u.event.kind == EVENT_DECISION)
            check_decision(rules, &message->u.event);
    }
    if (message->type == WIRE_ACK)
        check_ack(f, action);
    if (message->type == WIRE_DELETE) { /* on record before it is told */
        const struct record *row = row_of(f, RECORD_CHECKPOINT, message->u.delete.checkpoint);
        must(row != NULL && row->u.checkpoint.state == CHECKPOINT_DELETING);
    }
}

/* --- all together ----------------------------------------------------------------------------- */

static bool is_live_trainer(const struct record_node *node)
{
    return role_is_trainer(node->role) &&
           (node->state == NODE_JOINED || node->state == NODE_RESTORED);
}

/* What the next start would call damaged. */
static void check_rows_fit(const struct core_fixture *f, const struct record *row)
{
    const struct record *checkpoint;

    if (row->kind == RECORD_ROUND &&
        (row->u.round.state == ROUND_DECIDED || row->u.round.state == ROUND_WRITING)) {
        checkpoint = row_of(f, RECORD_CHECKPOINT, row->u.round.round);
        must(checkpoint != NULL && checkpoint->u.checkpoint.state == CHECKPOINT_WRITING);
        must(checkpoint->u.checkpoint.step == row->u.round.step);
    }
    if (row->kind != RECORD_NODE || !is_live_trainer(&row->u.node))
        return;
    for (const struct record *other = f->rows; other < row; other++)
        must(other->kind != RECORD_NODE || other->u.node.rank != row->u.node.rank ||
             other->u.node.generation != row->u.node.generation ||
             !is_live_trainer(&other->u.node) || strcmp(other->u.node.job, row->u.node.job) != 0);
}

/* I7, and the bounds of what is kept. */
static void check_state(const struct core_fixture *f)
{
    struct job *job = job_find(f->core, f->job);
    size_t open = 0;
    size_t active = 0;

    for (size_t i = 0; i < f->rows_count; i++) {
        const struct record_round *row = &f->rows[i].u.round;

        if (f->rows[i].kind == RECORD_NODE)
            check_rows_fit(f, &f->rows[i]);
        if (f->rows[i].kind != RECORD_ROUND || strcmp(row->job, f->job) != 0)
            continue;
        check_rows_fit(f, &f->rows[i]);
        open += is_open(row->state);
        active += !is_over(row->state);
    }
    must(open <= 1 && active <= ROUNDS_ACTIVE_MAX);
    must(f->out.count <= ACTIONS_MAX);
    if (job == NULL)
        return;
    open = 0;
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        open += job->rounds[i].used && is_open(job->rounds[i].state);
    must(open <= 1);
    must(row_of(f, RECORD_JOB, 0) != NULL || job->peers_count == 0);
}

void core_rules_check(struct core_rules *rules, struct core_fixture *f)
{
    for (size_t i = 0; i < f->out.count; i++) {
        const struct action *action = &f->out.items[i];

        if (action->kind == ACTION_PERSIST)
            check_row(rules, f, &action->record);
        else if (action->kind == ACTION_SEND || action->kind == ACTION_PUBLISH ||
                 action->kind == ACTION_HINT)
            check_message(rules, f, action);
    }
    check_state(f);
}

void core_rules_said(struct core_rules *rules, uint64_t incarnation, const struct wire_saved *saved)
{
    if (rules->saves_count == RULES_SAVES_MAX)
        return;
    rules->saves[rules->saves_count].round = saved->round;
    rules->saves[rules->saves_count].incarnation = incarnation;
    rules->saves[rules->saves_count++].step = saved->step;
}

static void pass_silence(struct core_rules *rules, struct core_fixture *f)
{
    for (int i = 0; i < SILENCE_PASSES_MAX; i++) {
        f->now += 1000;
        core_tick(f);
        core_rules_check(rules, f);
    }
}

void core_rules_all_ends(struct core_rules *rules, struct core_fixture *f)
{
    struct job *job = job_find(f->core, f->job);

    pass_silence(rules, f);
    /* ranks may still come until then: too many passes, and a jump of the clock would count as the
     * broker's absence */
    if (job != NULL && f->now < job->gen.join_until_boot_ms) {
        job->gen.join_until_boot_ms = job->timer_boot_ms = f->now;
        pass_silence(rules, f);
    }
    if (job == NULL || job->gen.generation == 0)
        return;
    must(job->gen.state == GENERATION_ENDED);
    for (size_t i = 0; i < rules->rounds_count; i++)
        must(is_over(rules->rounds[i].state) || rules->rounds_count == RULES_ROUNDS_MAX);
}
