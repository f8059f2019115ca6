/* store_check - do the rows of the database fit together? quick_check knows pages and types only; a file
 * that was edited, or put together from two, can say what the core must never be loaded with: rows of a
 * job that is not there, event numbers that were given away twice, two open rounds.
 * Each rule is one query that gives a sentence for the first row that breaks it, or nothing. */
#include "broker/store_internal.h"

#include <stdio.h>

/* Steps stay below 2^62 (step_ok), so that two of them can be added. */
#define COUNT_OK " BETWEEN 0 AND 4611686018427387903"
#define NONE_OR_COUNT_OK " BETWEEN -1 AND 4611686018427387903"
#define STRING(number) #number
#define STRING_OF(macro) STRING(macro)

/* clang-format off: one clause a line reads better than full lines */
static const char *const rules[] = {
    /* who belongs to whom */
    "SELECT printf('a row of %s names a %s that is not there', \"table\", parent)"
    " FROM pragma_foreign_key_check",
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
    " (SELECT job, generation, (SELECT max(generation) FROM generation g WHERE g.job = j.job)"
    "  AS last FROM job j)"
    " WHERE last > generation",
    "SELECT printf('job %s counts generation %d, round %d, event %d', job, generation, round, seq)"
    " FROM job"
    " WHERE generation < 0 OR round < 0 OR seq < 0", /* they may have jumped above 2^62 */

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
