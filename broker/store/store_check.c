/* store_check - do the rows of the database fit together? quick_check knows pages and types only. A
 * file that was edited, or joined from two, may hold rows that the core must never be loaded with:
 * rows of a job that is not there, an event number that was given twice, two open rounds. Each rule
 * is one query that gives a sentence for the first row that breaks it, or nothing. */
#include "broker/store/store_internal.h"

#include <stdio.h>

/* Steps stay below 2^62 (step_ok), so that two of them can be added. */
#define COUNT_OK " BETWEEN 0 AND 4611686018427387903"
#define NONE_OR_COUNT_OK " BETWEEN -1 AND 4611686018427387903"

/* clang-format off: one clause a line reads better than full lines */
static const char *const rules[] = {
    /* who belongs to whom */
    "SELECT printf('a row of %s names a %s that is not there', \"table\", parent)"
    " FROM sqlite_schema s, pragma_foreign_key_check(s.name) WHERE s.type = 'table'"
    "  AND s.name <> 'event'",
    /* each job that has events, by one look: there may be millions of events */
    "WITH RECURSIVE of(job) AS (SELECT min(job) FROM event UNION ALL"
    "  SELECT (SELECT min(e.job) FROM event e WHERE e.job > of.job) FROM of WHERE of.job NOT NULL)"
    " SELECT 'a row of event names a job that is not there' FROM of"
    " WHERE job NOT NULL AND job NOT IN (SELECT job FROM job)",
    "SELECT printf('generation %d of job %s is not there', generation, job) FROM job j"
    " WHERE generation > 0 AND NOT EXISTS"
    "  (SELECT 1 FROM generation g WHERE g.job = j.job AND g.generation = j.generation)",
    "SELECT printf('a job is named \"%s\"', job) FROM job"
    " WHERE job = '' OR job GLOB '[-.]*' OR job GLOB '*[^-A-Za-z0-9._]*'"
    "  OR length(job) > " STRING_OF(JOB_NAME_MAX),

    /* numbers that were given away */
    "SELECT printf('job %s has event %d, and its count says %d', job, last, seq) FROM"
    " (SELECT job, seq, (SELECT max(seq) FROM event e WHERE e.job = j.job) AS last FROM job j)"
    " WHERE last > seq",
    "SELECT printf('job %s has round %d, and its count says %d', job, last, round) FROM"
    " (SELECT job, round, (SELECT max(round) FROM round r WHERE r.job = j.job) AS last FROM job j)"
    " WHERE last > round",
    "SELECT printf('job %s has generation %d, and its count says %d', job, last, generation) FROM"
    " (SELECT job, generation, (SELECT max(generation) FROM generation g WHERE g.job = j.job"
    "  AND g.end_text <> '" FOUND_ON_DISK
    "') AS last FROM job j)" /* imported by a launch's rank 0 */
    " WHERE last > generation",
    "SELECT printf('job %s counts generation %d, round %d, event %d', job, generation, round, seq)"
    " FROM job"
    " WHERE generation < 0 OR round < 0 OR seq < 0", /* they may have jumped above 2^62 */

    /* starts of the broker: each has an id, and began with no more events than the next, or than
       there are */
    "WITH RECURSIVE start (job, seq, rest, colon, space, number, began, good) AS"
    " (SELECT job, seq, lineage || ' ', instr(lineage, ':'), instr(lineage || ' ', ' '), 0, 0, 1"
    "  FROM job WHERE lineage <> ''"
    "  UNION ALL SELECT job, seq, substr(rest, space + 1), instr(substr(rest, space + 1), ':'),"
    "   instr(substr(rest, space + 1), ' '), number + 1,"
    "   CAST(substr(rest, colon + 1, space - colon - 1) AS INTEGER),"
    "   colon BETWEEN 2 AND 17 AND space - colon BETWEEN 2 AND 20"
    "   AND CAST(substr(rest, colon + 1, space - colon - 1) AS INTEGER) BETWEEN began AND seq"
    "   AND substr(rest, 1, colon - 1) NOT GLOB '*[^0-9a-f]*'"
    "   AND substr(rest, colon + 1, space - colon - 1) NOT GLOB '*[^0-9]*'"
    "  FROM start WHERE good AND rest <> '')"
    " SELECT printf('job %s with %d events has a start of the broker, number %d of its lineage, "
    "that'"
    "  || ' does not fit', job, seq, number) FROM start WHERE NOT good OR number > " STRING_OF(
        LINEAGE_MAX),

    /* what a generation and its nodes are */
    "SELECT printf('generation %d of job %s is \"%s\", has %d ranks, layout \"%s\" and resume step "
    "%d',"
    "  generation, job, state, world_size, layout, resume_step) FROM generation"
    " WHERE world_size NOT BETWEEN 1 AND " STRING_OF(
        WORLD_SIZE_MAX) "  OR layout NOT IN ('replicated', 'sharded') OR NOT resume_step" COUNT_OK
                        "  OR state NOT IN ('joining', 'running', 'ending', 'ended')",
    "SELECT printf('a node of job %s, rank %d, is \"%s\"', n.job, rank, n.state)"
    " FROM node n JOIN generation g USING (job, generation)"
    " WHERE n.state = '' OR role = '' OR rank < 0 OR NOT last_request" COUNT_OK
    "  OR (role IN ('chief', 'worker') AND rank >= world_size)",
    "SELECT printf('rank %d of job %s is held by two nodes', rank, job) FROM node"
    " WHERE role IN ('chief', 'worker') AND state IN ('joined', 'restored')"
    " GROUP BY job, generation, rank HAVING count(*) > 1",
    "SELECT printf('a node of job %s has begun %d and done %d steps', job, begun, done)"
    " FROM progress"
    " WHERE NOT (begun" COUNT_OK " AND done" COUNT_OK
    ") OR step_p95_ms NOT BETWEEN 0 AND 2147483647",

    /* rounds */
    "SELECT printf('job %s has %d open rounds', job, count(*)) FROM round"
    " WHERE state IN ('freezing', 'decided') GROUP BY job HAVING count(*) > 1",
    "SELECT printf('job %s has %d rounds that have not ended', job, count(*)) FROM round"
    " WHERE state IN ('freezing', 'decided', 'writing')"
    " GROUP BY job HAVING count(*) > " STRING_OF(ROUNDS_ACTIVE_MAX),
    "SELECT printf('round %d of job %s is \"%s\" at step %d', round, job, state, step) FROM round"
    " WHERE state = '' OR round < 1 OR generation < 1 OR NOT step" NONE_OR_COUNT_OK
    "  OR (state IN ('decided', 'writing') AND step < 0)",
    "SELECT printf('round %d of job %s is %s at step %d, and its checkpoint is %s at step %d',"
    "  r.round, r.job, r.state, r.step, ifnull(c.state, 'not there'), ifnull(c.step, -1))"
    " FROM round r LEFT JOIN checkpoint c USING (job, round)"
    " WHERE r.state IN ('decided', 'writing')"
    "  AND (ifnull(c.state, '') <> 'writing' OR c.step <> r.step)",
    "SELECT printf('checkpoint %d of job %s is at step %d and has %d shards', round, job, step,"
    "  shards_required) FROM checkpoint"
    " WHERE NOT step" COUNT_OK " OR shards_required NOT BETWEEN 1 AND " STRING_OF(WORLD_SIZE_MAX),
    "SELECT printf('rank %d of round %d of job %s has begun %d and done %d', rank, round, job, "
    "begun,"
    "  done) FROM participant"
    " WHERE rank NOT BETWEEN 0 AND " STRING_OF(
        WORLD_SIZE_MAX) "  OR NOT (begun" NONE_OR_COUNT_OK " AND done" NONE_OR_COUNT_OK
                        "  AND reported_ms" NONE_OR_COUNT_OK " AND at_step_ms" NONE_OR_COUNT_OK
                        "  AND captured_ms" NONE_OR_COUNT_OK " AND saved_ms" NONE_OR_COUNT_OK ")",

    /* tasks: see broker/core/tasks/tasks.h. None is lost: all that are not released are there, and
     * as many have not ended as the queue counts. None is done twice: its attempts are its losses,
     * the excused ones, and the one that it has. */
    "SELECT printf('queue %d (%s of job %s) has taken %d tasks, %d ended, %d are released, %d had "
    "the error', queue,"
    "  name, job, taken, ended, released, error_number) FROM task_queue"
    " WHERE queue NOT BETWEEN 1 AND (1 << 22) - 1 OR taken NOT BETWEEN 0 AND (1 << 40) - 1"
    "  OR ended NOT BETWEEN 0 AND taken OR released NOT BETWEEN 0 AND taken"
    "  OR cancelled_to NOT BETWEEN 0 AND (1 << 40) - 1 OR error_pending NOT IN (0, 1)"
    "  OR error_number NOT BETWEEN error_pending AND taken OR max_attempts NOT BETWEEN 1 AND 255",
    "SELECT printf('queue %d has %d of the tasks behind %d to %d, the last is %d; %d have not "
    "ended, and its count"
    " says %d', queue, there, released, taken, last, live, taken - ended) FROM"
    " (SELECT queue, taken, ended, released, max(ifnull(id, 0)) & ((1 << 40) - 1) AS last,"
    "  count(id) FILTER (WHERE id > (queue << 40) + released) AS there,"
    "  count(id) FILTER (WHERE state IN ('queued', 'leased')) AS live"
    "  FROM task_queue LEFT JOIN task ON id BETWEEN queue << 40 AND (queue << 40) + (1 << 40) - 1"
    "  GROUP BY queue)"
    " WHERE there <> taken - released OR last > taken OR live <> taken - ended",
    "SELECT printf('task %d of queue %d is \"%s\" at attempt %d with %d losses, %d excused', id & "
    "((1 << 40) - "
    "1), id >> 40,"
    "  state, attempt, losses, excused) FROM task"
    " WHERE id & ((1 << 40) - 1) = 0 OR losses NOT BETWEEN 0 AND 255"
    "  OR excused NOT BETWEEN 0 AND 255 - losses"
    "  OR NOT (EXISTS (SELECT 1 FROM task_queue WHERE queue = id >> 40)"
    "   OR EXISTS (SELECT 1 FROM task_garbage WHERE queue = id >> 40"
    "    AND id & ((1 << 40) - 1) BETWEEN first AND last))"
    "  OR NOT CASE state WHEN 'queued' THEN worker = 0 AND attempt = losses + excused"
    "   WHEN 'leased' THEN worker <> 0 AND attempt = losses + excused + 1"
    "   WHEN 'done' THEN worker <> 0 AND attempt = losses + excused + 1"
    "   WHEN 'failed' THEN worker <> 0 AND attempt - losses - excused IN (0, 1)"
    "   WHEN 'cancelled' THEN attempt - losses - excused IN (0, 1) ELSE 0 END",
    "SELECT printf('task %d of queue %d is leased to worker %d, which is %s', id & ((1 << 40) - "
    "1), queue,"
    "  t.worker_index, CASE WHEN w.incarnation <> t.worker THEN 'another process now'"
    "   ELSE ifnull(w.state, 'not there') END)"
    " FROM task t JOIN task_queue q ON queue = id >> 40"
    " LEFT JOIN task_worker w ON w.job = q.job AND w.worker_index = t.worker_index"
    " WHERE t.state = 'leased' AND (w.incarnation IS NOT t.worker OR w.state <> 'live')",
    "SELECT printf('tasks %d to %d of queue %d are to be deleted', first, last, queue) FROM "
    "task_garbage"
    " WHERE queue NOT BETWEEN 1 AND (1 << 22) - 1 OR NOT 0 <= first OR NOT first <= last"
    "  OR NOT last < 1 << 40",
    "SELECT printf('a part of a result is of task %d of queue %d, which is not there', id & ((1 << "
    "40) - 1), id >> 40)"
    " FROM task_part p WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = p.id)",
    "SELECT printf('queue %d has %d values for each worker, numbered %d to %d', queue, count(*), "
    "min(number),"
    "  max(number)) FROM task_resource GROUP BY queue"
    " HAVING min(number) <> 1 OR max(number) <> count(*) OR count(*) > " STRING_OF(
        TASK_RESOURCES_MAX),
    "SELECT printf('worker %d of job %s is \"%s\", has %d slots and takes %d tasks', worker_index, "
    "job, state, slots,"
    "  takes) FROM task_worker"
    " WHERE state NOT IN ('live', 'left', 'lost') OR incarnation = 0"
    "  OR (state = 'live' AND NOT (slots BETWEEN 1 AND takes AND takes <= " STRING_OF(
        TASK_CREDIT_MAX) "))",
    "SELECT printf('one process is worker %d and worker %d of job %s', min(worker_index), "
    "max(worker_index), job)"
    " FROM task_worker WHERE state = 'live' GROUP BY incarnation HAVING count(*) > 1",
};
/* clang-format on */

static enum muster_status check_one(struct store *store, const char *rule, struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    char finding[256] = "";
    enum muster_status status = store_prepare(store, rule, &statement, err);
    int result;

    if (status != MUSTER_OK)
        return status;
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);

        snprintf(finding, sizeof finding, "%s", text == NULL ? "no text" : text);
        status = store_damaged(store, finding, err);
    } else if (result != SQLITE_DONE) {
        status = store_failed(store, result, "check the rows", err);
    }
    sqlite3_finalize(statement);
    return status;
}

enum muster_status store_check_rows(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < sizeof rules / sizeof *rules && status == MUSTER_OK; i++)
        status = check_one(store, rules[i], err);
    return status;
}
