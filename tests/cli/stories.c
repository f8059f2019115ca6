#include "tests/cli/stories.h"

#include "schema/status.h"

#include <stddef.h>

/* Generation 1 of job words, four ranks in step 47, checkpoint 3 committed at step 40. */
void make_running(struct db_fixture *db)
{
    db_job(db, NULL);
    db_generation(db, 1, NULL);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_node(db, 1, rank, NULL);
    db_progress(db, 1, 1, "begun = 44, done = 43");
    db_progress(db, 1, 3, "begun = 47");
    db_event(db, 1, "kind = 'generation opened', step = 0, unix_ms = %lld", DB_T0 - 61000);
    db_event(db, 2, "unix_ms = %lld", DB_T0 - 60000);
}

void make_periodic(struct db_fixture *db)
{
    make_running(db);
    db_round(db, 3,
             "cause = 'policy', state = 'committed', step = 40, deadline_boot_ms = 0,"
             " opened_unix_ms = %lld, decided_unix_ms = %lld, captured_unix_ms = %lld,"
             " ended_unix_ms = %lld",
             DB_T0 - 9000, DB_T0 - 9000, DB_T0 - 8900, DB_T0 - 8500);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_member(db, 3, rank,
                  "writer = 1, at_step_ms = %d, captured_ms = %d, saved_ms = %d,"
                  " save_ms = 300",
                  60 + rank, 90 + rank, 400 + rank);
    db_checkpoint(db, 3,
                  "step = 40, cause = 'policy', bytes = 1200000, path = '40', epoch = 1,"
                  " step_in_epoch = 8, committed_unix_ms = %lld",
                  DB_T0 - 8500);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_shard(db, 3, rank, NULL);
}

static void member_came(struct db_fixture *db, int round, int rank, int begun)
{
    db_member(db, round, rank, "begun = %d, done = %d, reported_ms = %d", begun, begun - 1,
              3 + rank * 3);
}

static void round_4(struct db_fixture *db)
{
    static const int begun[DB_RANKS] = {46, 44, 46, 47};

    make_periodic(db);
    db_notice(db, "signal-1", "round = 4");
    db_event(db, 10, "kind = 'termination', rank = 2, text = 'signal-1', round = 4");
    db_round(db, 4, NULL);
    for (int rank = 0; rank < DB_RANKS; rank++)
        member_came(db, 4, rank, begun[rank]);
}

static void all_captured(struct db_fixture *db)
{
    db_sql(db, "UPDATE participant SET writer = 1, at_step_ms = 300 + rank * 30,"
               " captured_ms = 310 + rank * 30 WHERE round = 4");
    db_sql(db,
           "UPDATE round SET state = 'decided', step = 47, decided_unix_ms = %lld,"
           " captured_unix_ms = %lld WHERE round = 4",
           DB_T0 + 20, DB_T0 + 405);
}

void make_committed(struct db_fixture *db)
{
    round_4(db);
    all_captured(db);
    db_sql(db, "UPDATE participant SET saved_ms = 700 + rank * 20, save_ms = 250 + rank * 10"
               " WHERE round = 4");
    db_sql(db,
           "UPDATE round SET state = 'committed', ended_unix_ms = %lld, margin_ms = 29190"
           " WHERE round = 4",
           DB_T0 + 810);
    db_sql(db, "UPDATE notice SET state = 'served'");
    db_checkpoint(db, 4,
                  "step = 47, bytes = 1200000, path = '/ckpt/47', epoch = 1,"
                  " step_in_epoch = 15, committed_unix_ms = %lld",
                  DB_T0 + 810);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_shard(db, 4, rank, NULL);
    db_event(db, 11, "kind = 'commit', round = 4, step = 47, rank = 0");
    db_event(db, 12,
             "kind = 'generation ended', unix_ms = %lld,"
             " text = 'terminated; its checkpoint is committed'",
             DB_T0 + 900);
    db_sql(db,
           "UPDATE generation SET state = 'ended', end_status = 1,"
           " end_text = 'terminated; its checkpoint is committed', ended_unix_ms = %lld",
           DB_T0 + 900);
    db_sql(db,
           "UPDATE node SET state = 'left', leave_why = 'preempted', exit_code = 42,"
           " ended_unix_ms = %lld",
           DB_T0 + 880);
    db_sql(db, "UPDATE progress SET begun = 47, done = 47, phase = 'ended'");
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 900);
}

static void make_resumed(struct db_fixture *db)
{
    make_committed(db);
    db_generation(db, 2,
                  "resume_checkpoint = 4, resume_step = 47, opened_unix_ms = %lld,"
                  " started_unix_ms = %lld",
                  DB_T0 + 3000, DB_T0 + 4000);
    for (int rank = 0; rank < DB_RANKS; rank++) {
        db_node(db, 2, rank, "joined_unix_ms = %lld", DB_T0 + 3000);
        db_progress(db, 2, rank, "begun = 60, done = 60");
    }
    db_sql(db, "UPDATE job SET generation = 2, state = 'running', state_unix_ms = %lld",
           DB_T0 + 4000);
}

void make_unchanged(struct db_fixture *db)
{
    make_periodic(db);
    db_sql(db, "UPDATE progress SET begun = 40, done = 40");
    db_notice(db, "signal-1", "round = 4, state = 'served'");
    db_round(db, 4,
             "state = 'unchanged', step = 40, reason = 'nothing was done since step 40',"
             " ended_unix_ms = %lld",
             DB_T0 + 20);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_member(db, 4, rank, "begun = 40, done = 40, reported_ms = %d", 3 + rank * 3);
    db_event(db, 12,
             "kind = 'generation ended', unix_ms = %lld,"
             " text = 'terminated; nothing new was to be saved'",
             DB_T0 + 900);
    db_sql(db, "UPDATE generation SET state = 'ended', end_status = 1,"
               " end_text = 'terminated; nothing new was to be saved'");
    db_sql(db, "UPDATE node SET state = 'left', leave_why = 'preempted'");
    db_sql(db, "UPDATE job SET state = 'ended'");
}

static void make_open(struct db_fixture *db)
{
    round_4(db);
    db_sql(db, "UPDATE participant SET begun = -1, done = -1, reported_ms = -1 WHERE round = 4 AND"
               " rank IN (1, 2)");
}

static void make_several(struct db_fixture *db)
{
    make_periodic(db);
    db->job = "images";
    db_job(db, "state = 'ended', state_unix_ms = %lld", DB_T0 - 86400000LL * 3);
    db_generation(db, 1, "state = 'ended'");
    db->job = "words";
}

/* Seven jobs that ended on seven days, and of the one that runs a checkpoint that is deleted. */
static void make_many_ended(struct db_fixture *db)
{
    static const char *const jobs[] = {"a1", "a2", "a3", "a4", "a5", "a6", "a7"};

    make_periodic(db);
    db_round(db, 2, "cause = 'policy', state = 'committed', step = 30");
    db_checkpoint(db, 2, "state = 'deleted', cause = 'policy', step = 30, path = '30'");
    for (int i = 0; i < 7; i++) {
        db->job = jobs[i];
        db_job(db, "state = 'ended', state_unix_ms = %lld", DB_T0 - 86400000LL * (9 - i));
        db_generation(db, 1, "state = 'ended'");
    }
    db->job = "words";
}

static void make_retried(struct db_fixture *db)
{
    make_periodic(db);
    db_notice(db, "signal-1", "round = 5, state = 'served', text = 'spot reclaim'");
    db_round(db, 4,
             "state = 'aborted', culprit_rank = 1, reason_code = %d, ended_unix_ms = %lld,"
             " reason = 'rank 1 was lost'",
             MUSTER_E_PEER, DB_T0 + 4000);
    for (int rank = 0; rank < DB_RANKS; rank++)
        if (rank != 1)
            member_came(db, 4, rank, 46);
        else
            db_member(db, 4, rank, NULL);
    db_event(db, 11,
             "kind = 'node lost', rank = 1, step = 43, unix_ms = %lld, text ="
             " 'rank 1 (process 4102 on h1) was lost at step 43 or later: it was silent for 5.0 s'",
             DB_T0 + 4000);
    db_sql(db, "UPDATE node SET state = 'lost' WHERE rank = 1");
    db_sql(db, "UPDATE generation SET layout = 'replicated', error_rank = 1,"
               " error_text = 'node lost'");
    db_round(db, 5,
             "attempt = 2, state = 'committed', step = 46, aborted_steps = 1,"
             " opened_boot_ms = 104010, opened_unix_ms = %lld, decided_unix_ms = %lld,"
             " captured_unix_ms = %lld, ended_unix_ms = %lld, margin_ms = 25000",
             DB_T0 + 4010, DB_T0 + 4030, DB_T0 + 4300, DB_T0 + 5000);
    for (int rank = 0; rank < DB_RANKS; rank++)
        if (rank != 1)
            db_member(db, 5, rank,
                      "begun = 46, done = 46, reported_ms = 9, captured_ms = %d,"
                      " writer = %d, saved_ms = %d, save_ms = %d",
                      250 + rank, rank == 0, rank == 0 ? 980 : -1, rank == 0 ? 700 : 0);
    db_checkpoint(db, 5,
                  "step = 46, layout = 'replicated', shards_required = 1, bytes = 999,"
                  " committed_unix_ms = %lld",
                  DB_T0 + 5000);
}

void make_not_saved(struct db_fixture *db)
{
    round_4(db);
    all_captured(db);
    db_sql(db,
           "UPDATE participant SET saved_ms = 900, save_ms = 600 WHERE round = 4 AND rank <> 3");
    db_sql(db,
           "UPDATE round SET state = 'aborted', final = 1, culprit_rank = 3, reason_code = %d,"
           " reason = 'the deadline''s margin was reached while rank 3 had not saved',"
           " ended_unix_ms = %lld WHERE round = 4",
           MUSTER_E_NOT_SAVED, DB_T0 + 29005);
    db_sql(db, "UPDATE notice SET state = 'served'");
    db_checkpoint(db, 4, "step = 47, state = 'failed'");
    db_event(db, 11,
             "kind = 'not saved', rank = 3, round = 4, unix_ms = %lld,"
             " text = 'the deadline''s margin was reached while rank 3 had not saved'",
             DB_T0 + 29005);
    db_sql(db,
           "UPDATE generation SET state = 'ending', end_status = %d, end_text ="
           " 'the deadline''s margin was reached while rank 3 had not saved'",
           MUSTER_E_NOT_SAVED);
    db_sql(db, "UPDATE progress SET begun = 47, done = 47");
    db_sql(db, "UPDATE job SET state = 'ending'");
}

static void make_not_saved_restarted(struct db_fixture *db)
{
    make_not_saved(db);
    db_generation(db, 2, "resume_checkpoint = 3, resume_step = 40");
    db_node(db, 2, 0, NULL);
    db_progress(db, 2, 0, "begun = 61, done = 60");
    db_sql(db, "UPDATE job SET generation = 2, state = 'running'");
}

static void make_first_not_saved(struct db_fixture *db)
{
    make_running(db);
    db_notice(db, "signal-1", "state = 'served', left_ms = -1");
    db_event(db, 11,
             "kind = 'not saved', rank = 2, unix_ms = %lld, text = 'no rank is left that"
             " could save'",
             DB_T0 + 40);
    db_sql(db,
           "UPDATE generation SET state = 'ended', end_status = %d,"
           " end_text = 'no rank is left that could save'",
           MUSTER_PREEMPTED);
}

static void make_cancelled(struct db_fixture *db)
{
    make_periodic(db);
    db_notice(db, "operator-7",
              "state = 'cancelled', incarnation = 0, kind = 'user',"
              " source = 'operator', cancellable = 1, text = 'host h2 needs a new disk'");
    db_event(db, 10, "kind = 'termination', rank = 2, text = 'operator-7'");
    db_event(db, 11, "kind = 'notice cancelled', rank = 2, text = 'operator-7', unix_ms = %lld",
             DB_T0 + 7000);
}

static void make_cancelled_late(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE notice SET state = 'cancelled', incarnation = 0, kind = 'user',"
               " source = 'operator', cancellable = 1");
    db_event(db, 13, "kind = 'notice cancelled', rank = 2, text = 'signal-1', unix_ms = %lld",
             DB_T0 + 300);
}

/* Taken back between two attempts, which is in time: the job trains on. */
static void make_cancelled_between(struct db_fixture *db)
{
    round_4(db);
    db_sql(db, "UPDATE participant SET begun = -1, done = -1, reported_ms = -1 WHERE round = 4");
    db_sql(db,
           "UPDATE round SET state = 'aborted', reason_code = %d, ended_unix_ms = %lld,"
           " reason = 'the broker was restarted before a step was decided' WHERE round = 4",
           MUSTER_E_ABORTED, DB_T0 + 2000);
    db_sql(db, "UPDATE notice SET state = 'cancelled'");
    db_event(db, 13, "kind = 'notice cancelled', rank = 2, text = 'signal-1', unix_ms = %lld",
             DB_T0 + 2500);
}

/* Two rounds died with their brokers; the third made up for them. */
static void add_retry(struct db_fixture *db, const char *cause)
{
    db_sql(db, "UPDATE participant SET begun = -1, done = -1, reported_ms = -1 WHERE round = 4");
    db_sql(db,
           "UPDATE round SET state = 'aborted', cause = '%s', reason_code = %d,"
           " ended_unix_ms = %lld, reason = 'the broker was restarted before a step was decided'"
           " WHERE round = 4",
           cause, MUSTER_E_ABORTED, DB_T0 + 2000);
    for (int round = 5; round <= 6; round++)
        db_round(db, round, "cause = '%s', opened_unix_ms = %lld", cause,
                 DB_T0 + 3000 + round * 1000);
    db_sql(db,
           "UPDATE round SET state = 'aborted', reason_code = %d, ended_unix_ms = %lld,"
           " reason = 'the broker was restarted before a step was decided' WHERE round = 5",
           MUSTER_E_ABORTED, DB_T0 + 8500);
    db_sql(db,
           "UPDATE round SET state = 'committed', step = 50, decided_unix_ms = opened_unix_ms + 20,"
           " captured_unix_ms = opened_unix_ms + 300, ended_unix_ms = opened_unix_ms + 900"
           " WHERE round = 6");
    for (int rank = 0; rank < DB_RANKS; rank++) {
        db_member(db, 5, rank, NULL);
        db_member(db, 6, rank,
                  "begun = 50, done = 50, reported_ms = 9, captured_ms = %d, writer = 1,"
                  " saved_ms = 880, save_ms = 700",
                  250 + rank);
    }
    db_checkpoint(db, 6, "step = 50, path = '50', bytes = 999, committed_unix_ms = %lld",
                  DB_T0 + 9900);
    db_sql(db,
           "INSERT INTO broker_past (unix_ms, kind, text) VALUES (%lld, 'broker started', ''),"
           " (%lld, 'broker started', '')",
           DB_T0 + 1990, DB_T0 + 8490);
}

static void make_operator_retried(struct db_fixture *db)
{
    round_4(db);
    db_sql(db, "DELETE FROM notice");
    add_retry(db, "operator");
    db_round(db, 7,
             "cause = 'operator', state = 'aborted', final = 1, opened_unix_ms = %lld,"
             " ended_unix_ms = %lld, reason = 'rank 1 was lost'",
             DB_T0 + 20000, DB_T0 + 20100);
}

/* Beside the operator's round, which was being written, the job's own was opened: it is none of its
 * attempts. */
static void make_operator_between(struct db_fixture *db)
{
    round_4(db);
    db_sql(db, "DELETE FROM notice");
    add_retry(db, "operator");
    all_captured(db);
    db_sql(db, "DELETE FROM broker_past");
    db_sql(db,
           "UPDATE round SET state = 'aborted', culprit_rank = 2, reason_code = %d,"
           " reason = 'rank 2 could not save: save_fn returned 5' WHERE round = 4",
           MUSTER_E_SAVE);
    db_sql(db,
           "UPDATE round SET cause = 'period', final = 1, opened_unix_ms = %lld, ended_unix_ms ="
           " %lld, reason = 'no rank answered the freeze in 2.0 s' WHERE round = 5",
           DB_T0 + 1500, DB_T0 + 3500);
    db_sql(db, "UPDATE round SET attempt = 2 WHERE round = 6");
}

static void make_termination_retried(struct db_fixture *db)
{
    round_4(db);
    add_retry(db, "termination");
    db_sql(db, "UPDATE notice SET round = 6, state = 'served'");
}

static void make_waiting(struct db_fixture *db)
{
    make_periodic(db);
    db_notice(db, "signal-1", "left_ms = 600000");
}

#define PLAN                                                             \
    "53.4 s before the deadline of notice signal-1, which gave 600.0 s " \
    "(step p95 950 ms, save p95 19200 ms, ranks 1 step apart)"

static void make_planned(struct db_fixture *db)
{
    make_waiting(db);
    db_sql(db,
           "UPDATE job SET step_p95_ms = 950, save_p95_ms = 19200, freeze_unix_ms = %lld,"
           " plan = '" PLAN "'",
           DB_T0 + 546600);
}

static void make_planned_committed(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE notice SET left_ms = 600000, received_unix_ms = received_unix_ms - 546600");
    db_sql(db, "UPDATE round SET plan = '" PLAN "' WHERE round = 4");
}

static void make_at_once_of(struct db_fixture *db, const char *plan)
{
    make_committed(db);
    db_sql(db, "UPDATE round SET plan = '%s' WHERE round = 4", plan);
}

static void make_at_once(struct db_fixture *db)
{
    make_at_once_of(db, "at once: no save of this job was measured yet");
}

static void make_assumed(struct db_fixture *db)
{
    make_at_once_of(db, "at once: notice signal-1 tells no time left to plan with");
    db_sql(db, "UPDATE notice SET flags = 5, text = 'SIGTERM from process 1; docker gives 10 s',"
               " left_ms = 10000");
}

static void make_assumed_waiting(struct db_fixture *db)
{
    make_waiting(db);
    db_sql(db, "UPDATE notice SET flags = 5, left_ms = 30000");
}

static void make_grace_period(struct db_fixture *db)
{
    make_waiting(db);
    db_sql(db, "UPDATE notice SET flags = 8");
}

void make_operator(struct db_fixture *db)
{
    make_periodic(db);
    db_round(db, 4,
             "cause = 'operator', state = 'aborted', final = 1, culprit_rank = 0,"
             " deadline_boot_ms = 0, reason_code = %d, ended_unix_ms = %lld,"
             " reason = 'rank 0 could not save: /ckpt/.muster/1-4: No space left on device'",
             MUSTER_E_SAVE, DB_T0 + 500);
    for (int rank = 0; rank < DB_RANKS; rank++)
        member_came(db, 4, rank, 47);
    all_captured(db);
    db_sql(db, "UPDATE round SET state = 'aborted' WHERE round = 4");
    db_sql(db, "UPDATE participant SET saved_ms = 450, save_ms = 40 WHERE round = 4 AND rank > 1");
    db_sql(db, "UPDATE participant SET failed = '/ckpt/.muster/1-4: No space left on device'"
               " WHERE round = 4 AND rank = 0");
}

/* Rank 1 is killed after a periodic save; the job ends for good. */
static void make_killed(struct db_fixture *db)
{
    make_periodic(db);
    db_event(db, 11,
             "kind = 'node lost', rank = 1, step = 43, unix_ms = %lld, text ="
             " 'rank 1 (process 4102 on h1) was lost at step 43 or later: its process ended'",
             DB_T0 + 4000);
    db_event(db, 12,
             "kind = 'generation ended', unix_ms = %lld, text ="
             " 'rank 1 (process 4102 on h1) was lost at step 43 or later: its process ended'",
             DB_T0 + 5000);
    db_sql(db, "UPDATE node SET state = 'lost' WHERE rank = 1");
    db_sql(db,
           "UPDATE generation SET state = 'ended', end_status = %d, error_rank = 1,"
           " end_text = 'rank 1 (process 4102 on h1) was lost at step 43 or later: its process "
           "ended',"
           " error_text = 'rank 1 (process 4102 on h1) was lost at step 43 or later: its process "
           "ended'",
           MUSTER_E_PEER);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 5000);
}

/* A save; then the broker dies, and no rank comes back to the one that is started after it. */
static void make_broker_away(struct db_fixture *db)
{
    static const char *const text =
        "rank 0 (process 4100 on h0) was lost at step 40 or later: in 30.0 s it did not come "
        "back"
        " to the restarted broker, and what it did while none ran is not known";

    make_periodic(db);
    db_sql(db, "UPDATE progress SET begun = 40, done = 40, heard_unix_ms = %lld", DB_T0 - 8000);
    db_event(db, 11, "kind = 'node lost', rank = 0, step = 40, unix_ms = %lld, text = '%s'",
             DB_T0 + 40000, text);
    db_sql(db, "UPDATE node SET state = 'lost'");
    db_sql(
        db,
        "UPDATE generation SET state = 'ended', end_status = %d, error_rank = 0, end_text = '%s',"
        " error_text = '%s'",
        MUSTER_E_PEER, text, text);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 40000);
}

/* A preemption, then in generation 2 a killed rank, then generation 3 that resumed. */
static void make_killed_later(struct db_fixture *db)
{
    make_resumed(db);
    db_event(db, 21,
             "generation = 2, kind = 'node lost', rank = 1, step = 60, unix_ms = %lld, text ="
             " 'rank 1 (process 4202 on h1) was lost at step 60 or later: its process ended'",
             DB_T0 + 20000);
    db_sql(db, "UPDATE generation SET state = 'ended', end_status = %d WHERE generation = 2",
           MUSTER_E_PEER);
    db_generation(db, 3, "resume_checkpoint = 4, resume_step = 47");
    db_sql(db, "UPDATE job SET generation = 3, state = 'joining'");
    db_node(db, 3, 0, NULL);
    db_progress(db, 3, 0, "begun = 47, done = 47");
}

/* A second notice, after the save that the first one asked for. */
static void make_late_notice(struct db_fixture *db)
{
    make_committed(db);
    db_notice(db, "signal-2", "rank = 0, incarnation = 101, received_unix_ms = %lld", DB_T0 + 850);
}

/* Saved without rank 1, which is in a step that does not end: the others have left. */
static void make_hung(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE participant SET captured_ms = -1, saved_ms = -1, writer = 0"
               " WHERE round = 4 AND rank = 1");
    db_sql(db, "UPDATE node SET state = 'restored', leave_why = '', exit_code = 0,"
               " ended_unix_ms = 0 WHERE rank = 1");
    db_sql(db, "UPDATE progress SET begun = 47, done = 46 WHERE incarnation ="
               " (SELECT incarnation FROM node WHERE rank = 1)");
    db_sql(db, "UPDATE generation SET state = 'ending', layout = 'replicated', ended_unix_ms = 0");
    db_sql(db, "DELETE FROM event WHERE kind = 'generation ended'");
    db_sql(db, "UPDATE job SET state = 'ending'");
}

/* --- what befalls the broker ------------------------------------------------------------------ */

static void make_broker_restarted(struct db_fixture *db) /* its first start is older than the job */
{
    make_committed(db);
    db_sql(db,
           "INSERT INTO broker_past (unix_ms, kind, text) VALUES (%lld, 'broker started', ''),"
           " (%lld, 'broker started', ''), (%lld, 'broker started', '')",
           DB_T0 - 9000000, DB_T0 + 350, DB_T0 + 850);
}

static void make_broker_blocked(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db,
           "INSERT INTO broker_past (unix_ms, kind, text) VALUES (%lld, 'broker blocked',"
           " 'for 0.3 s it could write nothing and decide nothing: cannot commit: no room for"
           " database /var/lib/muster/state.db (database or disk is full); free disk space')",
           DB_T0 + 350);
}

/* Its times are the decision's, which waited for the disk. */
static void make_broker_blocked_at_the_end(struct db_fixture *db)
{
    make_operator(db);
    db_sql(db,
           "INSERT INTO broker_past (unix_ms, kind, text) SELECT ended_unix_ms, 'broker blocked',"
           " 'for 20.0 s it could write nothing and decide nothing: cannot commit: no room for"
           " database /var/lib/muster/state.db (database or disk is full); free disk space'"
           " FROM round WHERE round = 4");
}

static void make_step_failed(struct db_fixture *db)
{
    make_periodic(db);
    db_event(db, 11,
             "kind = 'peer error', rank = 1, step = 44, unix_ms = %lld, text ="
             " 'the step function returned 7'",
             DB_T0 + 4000);
    db_sql(db,
           "UPDATE generation SET state = 'ended', end_status = %d, error_rank = 1,"
           " error_code = 7, end_text = 'rank 1 failed its step',"
           " error_text = 'the step function returned 7'",
           MUSTER_E_PEER);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 5000);
}

/* Told that it will end, it saves by itself meanwhile. */
/* Of these notices nobody leaves. */
static void make_frozen_host(struct db_fixture *db)
{
    make_running(db);
    db_notice(db, "ec2-3", "kind = 'freeze', source = 'ec2', left_ms = 120000");
    db_event(db, 3, "kind = 'termination', rank = 2, text = 'ec2-3'");
    db_notice(db, "gce-1", "kind = 'migrate', source = 'gce', left_ms = 60000, rank = 1");
    db_event(db, 4, "kind = 'termination', rank = 1, text = 'gce-1'");
}

static void make_frozen_host_later(struct db_fixture *db)
{
    make_operator(db);
    db_notice(db, "ec2-3", "kind = 'freeze', source = 'ec2', received_unix_ms = %lld",
              DB_T0 + 50000);
}

static void make_standing(struct db_fixture *db)
{
    make_periodic(db);
    db_notice(db, "signal-1", "left_ms = 600000, received_unix_ms = %lld", DB_T0 - 20000);
}

static void make_joining(struct db_fixture *db)
{
    db_job(db, "state = 'joining'");
    db_generation(db, 1, "state = 'joining', started_unix_ms = 0");
    db_node(db, 1, 0, "state = 'joined'");
}

static void make_finished(struct db_fixture *db)
{
    make_running(db);
    db_sql(db, "UPDATE generation SET state = 'ended'");
    db_sql(db, "UPDATE job SET state = 'ended'");
}

/* It finished, though its last save had failed. */
static void make_finished_unsaved(struct db_fixture *db)
{
    round_4(db);
    db_sql(db,
           "UPDATE round SET state = 'aborted', cause = 'operator', step = 47,"
           " reason = 'rank 1 could not save: /ckpt/.muster/1-4: No space left on device',"
           " culprit_rank = 1, ended_unix_ms = %lld WHERE round = 4",
           DB_T0 + 405);
    db_sql(db, "DELETE FROM notice");
    db_sql(db, "UPDATE generation SET state = 'ended'");
    db_sql(db, "UPDATE job SET state = 'ended'");
}

static void make_empty(struct db_fixture *db)
{
    (void)db;
}

const struct cli_story cli_stories[] = {
    {"empty", make_empty},
    {"running", make_running},
    {"periodic", make_periodic},
    {"committed", make_committed},
    {"resumed", make_resumed},
    {"unchanged", make_unchanged},
    {"not_saved", make_not_saved},
    {"not_saved_restarted", make_not_saved_restarted},
    {"first_not_saved", make_first_not_saved},
    {"open", make_open},
    {"several", make_several},
    {"many_ended", make_many_ended},
    {"retried", make_retried},
    {"cancelled", make_cancelled},
    {"cancelled_late", make_cancelled_late},
    {"cancelled_between", make_cancelled_between},
    {"operator_retried", make_operator_retried},
    {"operator_between", make_operator_between},
    {"termination_retried", make_termination_retried},
    {"waiting", make_waiting},
    {"planned", make_planned},
    {"planned_committed", make_planned_committed},
    {"at_once", make_at_once},
    {"assumed", make_assumed},
    {"assumed_waiting", make_assumed_waiting},
    {"grace_period", make_grace_period},
    {"operator", make_operator},
    {"killed", make_killed},
    {"killed_later", make_killed_later},
    {"broker_away", make_broker_away},
    {"late_notice", make_late_notice},
    {"hung", make_hung},
    {"broker_restarted", make_broker_restarted},
    {"broker_blocked", make_broker_blocked},
    {"broker_blocked_end", make_broker_blocked_at_the_end},
    {"stuck", make_stuck},
    {"stuck_all", make_stuck_all},
    {"stuck_later", make_stuck_later},
    {"stuck_no_more", make_stuck_no_more},
    {"stuck_once", make_stuck_once},
    {"stuck_in_save", make_stuck_in_save},
    {"stuck_in_save_no_more", make_stuck_in_save_no_more},
    {"stuck_in_save_once", make_stuck_in_save_once},
    {"one_finished", make_one_finished},
    {"beside", make_beside},
    {"hosts", make_hosts},
    {"hosts_first", make_hosts_first},
    {"fallen", make_fallen},
    {"joined", make_joined},
    {"joined_before", make_joined_before},
    {"nobody_left", make_nobody_left},
    {"step_failed", make_step_failed},
    {"collective_broke", make_collective_broke},
    {"killed_behind", make_killed_behind},
    {"frozen_host", make_frozen_host},
    {"frozen_host_later", make_frozen_host_later},
    {"standing", make_standing},
    {"joining", make_joining},
    {"finished", make_finished},
    {"fell_back", make_fell_back},
    {"fell_back_ended", make_fell_back_ended},
    {"unrestored", make_unrestored},
    {"unrestored_twice", make_unrestored_twice},
    {"unrestored_older", make_unrestored_older},
    {"unrestored_unknown", make_unrestored_unknown},
    {"unrestored_noticed", make_unrestored_noticed},
    {"unrestored_round", make_unrestored_round},
    {"unrestored_put_right", make_unrestored_put_right},
    {"unrestored_imported", make_unrestored_imported},
    {"unrestored_unfit", make_unrestored_unfit},
    {"unrestored_unfit_older", make_unrestored_unfit_older},
    {"unrestored_damaged", make_unrestored_damaged},
    {"unrestored_then_older", make_unrestored_then_older},
    {"finished_unsaved", make_finished_unsaved},
    {"not_saved_ended", make_not_saved_ended},
    {"saved_behind", make_saved_behind},
    {"pinned", make_pinned},
    {"written", make_written},
    {"kept", make_kept},
    {"kept_before", make_kept_before},
    {"four_notices", make_four_notices},
    {"finished_without", make_finished_without},
    {"unstarted", make_unstarted},
    {"unstarted_preempted", make_unstarted_preempted},
    {"unstarted_finished", make_unstarted_finished},
    {NULL, NULL},
};

/* --- every reason for which a round is aborted ------------------------------------------------ */

const struct cli_abort cli_aborts[] = {
    {"freeze_timeout", 0, 1, MUSTER_E_TIMEOUT,
     "rank 1 did not answer the freeze in 2.0 s, and a sharded checkpoint needs every rank", NULL},
    {"freeze_cut_short", 0, 1, MUSTER_E_TIMEOUT,
     "the notice left 0.4 s: rank 1 did not answer the freeze in that time", NULL},
    {"member_lost", 1, 1, MUSTER_E_PEER, "rank 1 was lost",
     "UPDATE node SET state = 'lost' WHERE rank = 1"},
    {"member_finished", 1, 1, MUSTER_E_ABORTED, "rank 1 finished before the save", NULL},
    {"member_left", 1, 1, MUSTER_E_ABORTED, "rank 1 left before the save", NULL},
    {"step_failed", 0, 1, MUSTER_E_STEP, "rank 1 failed its step", NULL},
    {"unreachable", 0, 1, MUSTER_E_UNREACHABLE,
     "the survivors stand at different steps (rank 0 at 46, rank 3 at 47), so no step can be saved "
     "by all",
     "UPDATE round SET aborted_steps = 1 WHERE round = 4"},
    {"save_failed", 2, 1, MUSTER_E_SAVE,
     "rank 1 could not save: /ckpt/.muster/1-4: No space left on device",
     "UPDATE participant SET failed = '/ckpt/.muster/1-4: No space left on device' WHERE rank = 1"
     " AND round = 4"},
    {"disk_full", 2, 1, MUSTER_E_STORAGE,
     "rank 1 could not save: cannot write /ckpt/.muster/tmp-1: No space left on device; free disk "
     "space or raise the quota",
     NULL},
    {"way_timeout", 1, 1, MUSTER_E_TIMEOUT,
     "rank 1 did not reach step 47 in time (it stands at 44, stepping since 61 s)", NULL},
    {"save_timeout", 2, 1, MUSTER_E_TIMEOUT, "rank 1 did not finish its save in 60 s", NULL},
    {"past", 1, 1, MUSTER_E_ABORTED, "rank 1 had begun step 49 already, past the save step 47",
     NULL},
    {"other_step", 1, 1, MUSTER_E_ABORTED, "rank 1 is at step 50, past the save step 47", NULL},
    {"broker_restarted", 0, -1, MUSTER_E_ABORTED,
     "the broker was restarted before a step was decided", NULL},
    {"margin", 2, 1, MUSTER_E_NOT_SAVED,
     "the deadline's margin was reached while rank 1 had not saved", NULL},
    {"margin_report", 0, 1, MUSTER_E_NOT_SAVED,
     "the deadline's margin was reached while rank 1 had not reported", NULL},
    {"older", 1, -1, MUSTER_E_ABORTED,
     "the broker's database was restored from an older copy: this round may have ended since, and "
     "its shards be deleted",
     "INSERT INTO broker_past (unix_ms, kind, text) SELECT opened_unix_ms + 1000, 'broker started',"
     " 'its database had been restored from an older copy' FROM round WHERE round = 4"},
    {"broken_off", 1, 3, MUSTER_E_PEER,
     "the step of rank 1 towards the save step 47 was broken off because of rank 3",
     "UPDATE node SET state = 'lost' WHERE rank = 3"},
    {"next_generation", 1, -1, MUSTER_E_ABORTED,
     "the next generation was opened before it was committed", NULL},
    {"nobody", 1, -1, MUSTER_E_NOT_SAVED, "no rank is left that could save", NULL},
    {"sharded_lost", 0, 1, MUSTER_E_PEER,
     "rank 1 was lost, and a sharded checkpoint needs every rank",
     "UPDATE node SET state = 'lost' WHERE rank = 1"},
    {"sharded_finished", 0, 1, MUSTER_E_ABORTED,
     "rank 1 finished, and a sharded checkpoint needs every rank", NULL},
    {"sharded_failed", 0, 1, MUSTER_E_STEP,
     "rank 1 failed its step, and a sharded checkpoint needs every rank", NULL},
    {"sharded_left", 0, 1, MUSTER_E_ABORTED,
     "rank 1 left, and a sharded checkpoint needs every rank", NULL},
    {"no_reason", 0, -1, MUSTER_E_STORAGE, "", NULL},
    {NULL, 0, 0, 0, NULL, NULL},
};

void cli_abort_make(struct db_fixture *db, const struct cli_abort *abort_story)
{
    struct db_text reason = db_quoted(abort_story->reason);

    round_4(db);
    if (abort_story->phase == 0)
        db_sql(db, "UPDATE participant SET begun = -1, done = -1, reported_ms = -1 WHERE round = 4"
                   " AND rank = 1");
    else
        all_captured(db);
    if (abort_story->phase == 1)
        db_sql(db, "UPDATE participant SET at_step_ms = -1, captured_ms = -1 WHERE round = 4 AND"
                   " rank = 1");
    if (abort_story->phase > 0)
        db_sql(db, "UPDATE participant SET saved_ms = 700, save_ms = 300 WHERE round = 4 AND rank"
                   " <> 1");
    db_sql(db,
           "UPDATE round SET state = 'aborted', final = 1, culprit_rank = %d, reason_code = %d,"
           " reason = %s, ended_unix_ms = %lld WHERE round = 4",
           abort_story->culprit, abort_story->code, reason.text, DB_T0 + 2005);
    if (abort_story->extra != NULL)
        db_sql(db, "%s", abort_story->extra);
    db_event(db, 11, "kind = 'not saved', rank = %d, round = 4, unix_ms = %lld, text = %s",
             abort_story->culprit, DB_T0 + 2005, reason.text);
    db_sql(db, "UPDATE generation SET state = 'ending', end_status = %d, end_text = %s",
           MUSTER_E_NOT_SAVED, reason.text);
}
