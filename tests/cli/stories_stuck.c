/* Ranks that hang, that came back, and that have finished while others work. */
#include "tests/cli/stories.h"

#include <stddef.h>

static void says_stuck(struct db_fixture *db, int seq, int rank, int step, const char *where)
{
    db_event(db, seq,
             "kind = 'stuck', rank = %d, step = %d, unix_ms = %lld, text ="
             " 'rank %d has been in %s %d for 61 s'",
             rank, step, DB_T0 + 4000, rank, where, step);
}

/* Rank 1 hangs in step 44; a save that was asked for later failed. */
void make_stuck_later(struct db_fixture *db)
{
    make_operator(db);
    says_stuck(db, 11, 1, 44, "step");
    db_event(db, 12,
             "kind = 'stuck', rank = 1, step = 44, unix_ms = %lld, text ="
             " 'rank 1 has been in step 44 for 60 s'",
             DB_T0 + 54000);           /* of a restarted broker */
    says_stuck(db, 13, 3, 46, "step"); /* it went on since */
}

/* It came out of its step, and trains. */
void make_stuck_no_more(struct db_fixture *db)
{
    make_stuck_later(db);
    db_progress(db, 1, 1, "begun = 48, done = 47");
}

/* The only thing that ever befell the job. */
void make_stuck_once(struct db_fixture *db)
{
    make_periodic(db);
    says_stuck(db, 11, 1, 43, "step");
}

/* Rank 0 does not come out of its save_fn: a further attempt waits for it. */
void make_stuck_in_save(struct db_fixture *db)
{
    make_operator(db);
    db_progress(db, 1, 0, "begun = 47, done = 47, phase = 'saving'");
    says_stuck(db, 11, 0, 47, "its save at step");
    db_sql(db, "UPDATE round SET final = 0 WHERE round = 4");
    db_round(db, 5, "cause = 'operator', attempt = 2, opened_unix_ms = %lld", DB_T0 + 600);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_member(db, 5, rank, NULL);
}

/* Its save is over; it is in another one at a later step. */
void make_stuck_in_save_no_more(struct db_fixture *db)
{
    make_stuck_in_save(db);
    db_progress(db, 1, 0, "begun = 48, done = 48, phase = 'saving'");
}

/* It came out of that save, and is in another one at the same step. */
void make_stuck_in_save_once(struct db_fixture *db)
{
    make_stuck_in_save(db);
    db_sql(db, "UPDATE round SET opened_unix_ms = %lld WHERE round = 5", DB_T0 + 30000);
    db_sql(db,
           "UPDATE participant SET begun = 47, done = 47, reported_ms = 3, at_step_ms = 10 WHERE"
           " round = 5");
}

/* Rank 0 has finished, the others have not. */
void make_one_finished(struct db_fixture *db)
{
    make_operator(db);
    db_sql(db,
           "UPDATE node SET state = 'left', leave_why = 'finished', ended_unix_ms = %lld WHERE "
           "rank = 0",
           DB_T0 + 7000);
}
