/* stories_restore - launches that could not restore what they were told to, or took an older
 * checkpoint. */
#include "tests/cli/stories.h"

#include "schema/status.h"

#include <stddef.h>

/* Checkpoint 3 was damaged for rank 1, so that all took an older one. */
void make_fell_back(struct db_fixture *db)
{
    make_periodic(db);
    db_sql(db, "UPDATE generation SET fallback = 1, resume_checkpoint = 2, resume_step = 30");
    db_event(db, 10,
             "kind = 'restore failed', rank = 1, round = 4, step = 45, unix_ms = %lld,"
             " text = 'checkpoint /ckpt/45 was not restored at rank 1: it is damaged'",
             DB_T0 - 60500);
}

/* The same, and the launch has ended since. */
void make_fell_back_ended(struct db_fixture *db)
{
    make_fell_back(db);
    db_event(db, 11, "kind = 'generation ended', unix_ms = %lld, text = 'its last process left'",
             DB_T0 + 4000);
    db_sql(db, "UPDATE generation SET state = 'ended', ended_unix_ms = %lld", DB_T0 + 4000);
    db_sql(db, "UPDATE job SET state = 'ended', state_unix_ms = %lld", DB_T0 + 4000);
}

/* A launch that was told checkpoint 4, which rank 1 could not restore. */
static void add_unrestored(struct db_fixture *db, int generation, const char *why)
{
    long long at = DB_T0 + 3000 + generation * 1000;

    db_generation(db, generation,
                  "state = 'ended', started_unix_ms = 0, resume_checkpoint = 4, resume_step = 47,"
                  " opened_unix_ms = %lld, ended_unix_ms = %lld, end_status = %d, error_rank = 1,"
                  " error_text = '%s', end_text = 'rank 1 could not restore: %s'",
                  at, at + 500, MUSTER_E_RESTORE, why, why);
    for (int rank = 0; rank < DB_RANKS; rank++) {
        db_node(db, generation, rank, "state = 'left', leave_why = 'failed'");
        db_progress(db, generation, rank, "begun = 47, done = 47");
    }
    db_event(db, generation * 10 + 1,
             "generation = %d, kind = 'restore failed', rank = 1, step = 47, unix_ms = %lld,"
             " text = '%s'",
             generation, at + 400, why);
    db_event(db, generation * 10 + 2,
             "generation = %d, kind = 'generation ended', unix_ms = %lld,"
             " text = 'rank 1 could not restore: %s'",
             generation, at + 500, why);
    db_sql(db, "UPDATE job SET generation = %d, state = 'ended', state_unix_ms = %lld", generation,
           at + 500);
}

void make_unrestored(struct db_fixture *db)
{
    make_committed(db);
    add_unrestored(db, 2, "checkpoint /ckpt/47 was not restored at rank 1: it is not there");
}

void make_unrestored_twice(struct db_fixture *db)
{
    make_unrestored(db);
    add_unrestored(db, 3, "checkpoint /ckpt/47 was not restored at rank 1: it is not there");
}

void make_unrestored_older(struct db_fixture *db)
{
    make_unrestored(db);
    db_sql(db, "UPDATE generation SET fallback = 1, resume_checkpoint = 3, resume_step = 40"
               " WHERE generation = 2");
}

/* The directory holds checkpoints that the broker does not know. */
void make_unrestored_unknown(struct db_fixture *db)
{
    make_running(db);
    db_sql(db, "DELETE FROM generation; DELETE FROM node; DELETE FROM progress; DELETE FROM event");
    add_unrestored(db, 1, "/ckpt holds checkpoints of this job; run `muster import /ckpt`");
    db_sql(db, "UPDATE generation SET resume_checkpoint = 0, resume_step = 0");
}

/* Behind such a launch one rank came alone, and was told that it is to end. */
void make_unrestored_noticed(struct db_fixture *db)
{
    make_committed(db);
    add_unrestored(db, 2,
                   "/ckpt holds checkpoint 61, which is newer; run `muster import /ckpt`, then "
                   "start the job again");
    db_generation(db, 3,
                  "state = 'ended', started_unix_ms = 0, resume_checkpoint = 4, resume_step = 47,"
                  " opened_unix_ms = %lld, ended_unix_ms = %lld, end_status = %d,"
                  " end_text = 'terminated; nothing new was to be saved'",
                  DB_T0 + 6000, DB_T0 + 17000, MUSTER_PREEMPTED);
    db_node(db, 3, 0, "state = 'left', leave_why = 'preempted'");
    db_progress(db, 3, 0, "begun = 47, done = 47");
    db_notice(db, "signal-9",
              "generation = 3, rank = 0, incarnation = 301, round = 0,"
              " state = 'active', received_unix_ms = %lld",
              DB_T0 + 16000);
    db_event(db, 31,
             "generation = 3, kind = 'generation ended', unix_ms = %lld,"
             " text = 'terminated; nothing new was to be saved'",
             DB_T0 + 17000);
    db_sql(db, "UPDATE job SET generation = 3, state = 'ended', state_unix_ms = %lld",
           DB_T0 + 17000);
}

/* A round was opened for the notice. */
void make_unrestored_round(struct db_fixture *db)
{
    make_unrestored_noticed(db);
    db_round(db, 5,
             "generation = 3, state = 'unchanged', step = 47, opened_unix_ms = %lld,"
             " reason = 'nothing was done since step 47', ended_unix_ms = %lld",
             DB_T0 + 16010, DB_T0 + 16020);
    db_member(db, 5, 0, "begun = 47, done = 47, reported_ms = 1");
    db_sql(db, "UPDATE notice SET round = 5, state = 'served' WHERE id = 'signal-9'");
}

/* Then the newer one was imported, and no launch has come since. */
void make_unrestored_put_right(struct db_fixture *db)
{
    make_unrestored_noticed(db);
    db_round(db, 6, "generation = 2, state = 'committed', step = 61, reason = 'found on disk'");
    db_checkpoint(db, 6, "generation = 2, step = 61, path = '/ckpt/61', committed_unix_ms = %lld",
                  DB_T0 + 18000);
}

/* And the next launch went on from it. */
void make_unrestored_imported(struct db_fixture *db)
{
    make_unrestored_noticed(db);
    db_generation(db, 4,
                  "resume_checkpoint = 6, resume_step = 61, opened_unix_ms = %lld,"
                  " started_unix_ms = %lld",
                  DB_T0 + 19000, DB_T0 + 19500);
    db_node(db, 4, 0, NULL);
    db_progress(db, 4, 0, "begun = 71, done = 70");
    db_sql(db, "UPDATE progress SET begun = 63, done = 62 WHERE incarnation < 200");
    db_sql(db, "UPDATE job SET generation = 4, state = 'running', state_unix_ms = %lld",
           DB_T0 + 19500);
}

/* It is whole, and of a program with another state. */
void make_unrestored_unfit(struct db_fixture *db)
{
    make_committed(db);
    add_unrestored(db, 2,
                   "checkpoint /ckpt/47 was not restored at rank 1 (MUSTER_E_RESTORE): "
                   "/ckpt/47/shard-00001-of-00004.safetensors: tensor \"w\" has shape [5], that of "
                   "the program [6]");
}

void make_unrestored_unfit_older(struct db_fixture *db)
{
    make_unrestored_unfit(db);
    db_sql(db, "UPDATE generation SET fallback = 1 WHERE generation = 2");
}

/* As a rank says it. */
void make_unrestored_damaged(struct db_fixture *db)
{
    make_committed(db);
    add_unrestored(db, 2,
                   "checkpoint /ckpt/47 was not restored at rank 1 (MUSTER_E_RESTORE): the "
                   "checkpoint /ckpt/47 is unfinished, or its manifest.json was lost; "
                   "`muster verify` names every damaged file: put them back from a copy");
    db_sql(db,
           "UPDATE event SET text = substr(text, 1, 60) || ' ... (`muster events` has it whole)'"
           " WHERE kind = 'generation ended' AND generation = 2");
}

/* Two launches could not restore; the third was let take an older one. */
void make_unrestored_then_older(struct db_fixture *db)
{
    make_unrestored_twice(db);
    db_sql(db, "INSERT INTO launch (job, generation, began_step) VALUES ('words', 4, 40)");
    db_generation(db, 4,
                  "fallback = 1, resume_checkpoint = 3, resume_step = 40, opened_unix_ms = %lld,"
                  " started_unix_ms = %lld",
                  DB_T0 + 9000, DB_T0 + 9500);
    db_node(db, 4, 0, NULL);
    db_progress(db, 4, 0, "begun = 61, done = 60");
    db_sql(db, "UPDATE job SET generation = 4, state = 'running', state_unix_ms = %lld",
           DB_T0 + 9500);
}
