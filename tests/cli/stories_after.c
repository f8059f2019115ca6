/* What is left when a launch is over, and what stands while it runs: pins, notices, checkpoints
 * that are gone. */
#include "tests/cli/stories.h"

#include "schema/status.h"

#include <stddef.h>

static void all_left(struct db_fixture *db)
{
    db_sql(db,
           "UPDATE node SET state = 'left', leave_why = 'preempted', exit_code = 42,"
           " ended_unix_ms = %lld",
           DB_T0 + 29100);
    db_sql(db, "UPDATE generation SET state = 'ended', ended_unix_ms = %lld", DB_T0 + 29100);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 29100);
}

/* Its last save failed, and seven steps went with it. */
void make_not_saved_ended(struct db_fixture *db)
{
    make_not_saved(db);
    all_left(db);
}

/* It was ended at a step that some ranks had left behind. */
void make_saved_behind(struct db_fixture *db)
{
    make_committed(db);
    db_progress(db, 1, 3, "begun = 94, done = 94, phase = 'ended'");
}

/* Two hold its checkpoint, which has the user's JSON. */
void make_pinned(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE checkpoint SET metrics = '{\"loss\":0.5}', pinned = 1 WHERE round = 4");
    db_sql(db, "INSERT INTO checkpoint_custom (job, round, custom) VALUES ('words', 4, "
               "'{\"by\":[\"ada\"]}')");
    db_sql(db,
           "INSERT INTO pin (job, checkpoint, id, until_unix_ms) VALUES ('words', 4, 'ci', %lld),"
           " ('words', 4, 'operator', 0)",
           DB_NOW + 600000);
}

/* The program wrote it by itself; muster's own is 86 bytes that point to it. */
void make_written(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE checkpoint SET bytes = 86 WHERE round = 4");
    db_sql(db, "INSERT INTO checkpoint_custom (job, round, custom) VALUES ('words', 4, "
               "'{\"path\":\"/own/checkpoint-95\",\"bytes\":12300000}')");
}

/* Six checkpoints, of which no policy wants two, nor the newest. */
void make_kept(struct db_fixture *db)
{
    static const double losses[] = {0.9, 0.2, 0.5, 0.7, 0.8};
    static const int steps[] = {50, 60, 70, 80, 95};

    make_periodic(db);
    for (int i = 0; i < 5; i++) {
        db_round(db, 5 + i, "cause = 'policy', state = 'committed', step = %d", steps[i]);
        db_checkpoint(db, 5 + i,
                      "step = %d, cause = 'policy', bytes = 1200000, path = '%d', pinned = %d,"
                      " metrics = '{\"loss\":%.1f}', committed_unix_ms = %lld",
                      steps[i], steps[i], steps[i] == 80, losses[i], DB_T0 - 8000 + i * 1000LL);
    }
    db_sql(db, "INSERT INTO pin (job, checkpoint, id, until_unix_ms) VALUES ('words', 8, 'ci', 0)");
    db_sql(db, "INSERT INTO policy (job, generation, keep, save, trash) VALUES ('words', 1,"
               " 'every 30; best 1 least loss; steps 50', '', '')");
}

/* An earlier launch told them. */
void make_kept_before(struct db_fixture *db)
{
    make_kept(db);
    db_sql(db, "UPDATE policy SET generation = 0");
}

/* Four ranks are told that they will be ended, none of them soon. */
void make_four_notices(struct db_fixture *db)
{
    static const char *const ids[DB_RANKS] = {"ec2-1", "ec2-2", "ec2-3", "ec2-4"};

    make_periodic(db);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_notice(db, ids[rank],
                  "rank = %d, incarnation = %d, left_ms = 600000, received_unix_ms = %lld", rank,
                  101 + rank, DB_T0 - 20000 + rank);
}

/* It finished, and has deleted the checkpoints that it made. */
void make_finished_without(struct db_fixture *db)
{
    make_periodic(db);
    db_sql(db, "UPDATE checkpoint SET state = 'deleted'");
    db_sql(db, "UPDATE node SET state = 'left', leave_why = 'finished'");
    db_sql(db, "UPDATE generation SET state = 'ended'");
    db_sql(db, "UPDATE job SET state = 'ended'");
}

/* All ranks left with an error before the launch had started, which is no error of the launch. What
 * its evaluator left as tells nothing of it. */
void make_unstarted(struct db_fixture *db)
{
    make_running(db);
    db_node(db, 1, DB_RANKS, "role = 'evaluator', rank = 0");
    db_sql(db, "UPDATE progress SET begun = 0, done = 0");
    db_sql(db, "UPDATE node SET state = 'left', leave_why = 'error', exit_code = 1");
    db_sql(db, "UPDATE generation SET state = 'ended', started_unix_ms = 0");
    db_sql(db, "UPDATE node SET leave_why = 'preempted', exit_code = 42 WHERE role = 'evaluator'");
    db_sql(db, "UPDATE job SET state = 'ended'");
}

/* A signal took one of them away before. */
void make_unstarted_preempted(struct db_fixture *db)
{
    make_unstarted(db);
    db_sql(db, "UPDATE node SET leave_why = 'preempted', exit_code = 42 WHERE rank = 2");
    db_notice(db, "signal-1", "received_unix_ms = %lld, state = 'active'", DB_T0 - 60500);
}

/* Each closed its node without an error before all had restored: no step was trained. */
void make_unstarted_finished(struct db_fixture *db)
{
    make_unstarted(db);
    db_sql(db, "UPDATE node SET leave_why = 'finished', exit_code = 0");
}

/* Rank 0's step broke because rank 2 had been killed: that was known later. */
void make_collective_broke(struct db_fixture *db)
{
    make_periodic(db);
    db_event(db, 11,
             "kind = 'peer error', rank = 0, step = 44, unix_ms = %lld, text ="
             " 'Connection reset by peer'",
             DB_T0 + 4000);
    db_sql(db,
           "UPDATE generation SET state = 'ended', end_status = %d, error_rank = 0, error_code = 1,"
           " end_text = 'rank 0 failed its step', error_text = 'Connection reset by peer'",
           MUSTER_E_PEER);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 9000);
    db_progress(db, 1, 2, "applied_seq = 10, heard_unix_ms = %lld", DB_T0 + 3700);
    db_sql(db, "UPDATE node SET state = 'lost', ended_unix_ms = %lld WHERE rank = 2", DB_T0 + 9000);
}

/* Rank 2 heard of that failure and was killed then: it is not the cause. */
void make_killed_behind(struct db_fixture *db)
{
    make_collective_broke(db);
    db_progress(db, 1, 2, "applied_seq = 11, heard_unix_ms = %lld", DB_T0 + 4100);
}
