/* Ranks that hang, that came back, and that have finished while others work; and who is beside
 * them. */
#include "tests/cli/stories.h"

#include <stddef.h>

static void says_stuck(struct db_fixture *db, int seq, int rank, int step, const char *where)
{
    db_event(db, seq,
             "kind = 'stuck', rank = %d, step = %d, unix_ms = %lld, text ="
             " 'rank %d has been in %s %d for 61 s'",
             rank, step, DB_T0 + 4000, rank, where, step);
}

void make_stuck(struct db_fixture *db)
{
    make_periodic(db);
    db_event(db, 11,
             "kind = 'stuck', rank = 1, step = 44, unix_ms = %lld, text ="
             " 'rank 1 has been in step 44 for 61 s'",
             DB_T0 + 4000);
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

/* All hang at equal counts, in a loop that muster does not step: rank 2 for the longest. */
void make_stuck_all(struct db_fixture *db)
{
    make_periodic(db);
    for (int rank = 0; rank < DB_RANKS; rank++) {
        db_progress(db, 1, rank, "begun = 46, done = 46, phase = 'stepping'");
        says_stuck(db, 11 + rank, rank, 46, "no step since step");
    }
    db_sql(db, "UPDATE event SET unix_ms = unix_ms - 30000 WHERE kind = 'stuck' AND rank = 2");
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

/* A parameter server and two evaluators, who are no ranks of the world. */
void make_beside(struct db_fixture *db)
{
    make_periodic(db);
    db_node(db, 1, 10, "role = 'ps', rank = 0");
    db_node(db, 1, 11, "role = 'evaluator', rank = 0");
    db_node(db, 1, 12, "role = 'evaluator', rank = 1");
    db_node(db, 1, 13, "role = 'evaluator', rank = 2, state = 'left'");
}

/* Two notices fell because their ranks finished; a third came to one that had finished, and was
 * withdrawn. */
void make_fallen(struct db_fixture *db)
{
    make_periodic(db);
    db_sql(db,
           "UPDATE node SET state = 'left', leave_why = 'finished', ended_unix_ms = %lld WHERE"
           " rank < 2",
           DB_T0 + 7000);
    db_notice(db, "operator-7",
              "state = 'cancelled', rank = 1, incarnation = 0, kind = 'user',"
              " source = 'operator', cancellable = 1");
    db_event(db, 10, "kind = 'termination', rank = 1, text = 'operator-7'");
    db_event(db, 11, "kind = 'notice cancelled', rank = 1, text = 'operator-7', unix_ms = %lld",
             DB_T0 + 7000);
    db_notice(db, "operator-8",
              "state = 'cancelled', rank = 0, incarnation = 0, kind = 'user',"
              " source = 'operator', received_unix_ms = %lld",
              DB_T0 + 8000);
    db_event(db, 12, "kind = 'notice cancelled', rank = 0, text = 'operator-8', unix_ms = %lld",
             DB_T0 + 9000);
}

/* A notice joined the round that an operator had asked for. */
void make_joined(struct db_fixture *db)
{
    make_committed(db);
    db_sql(db, "UPDATE notice SET received_unix_ms = %lld", DB_T0 + 200);
    db_sql(db, "UPDATE round SET plan = 'at once: an operator asked for a checkpoint; the notice"
               " came later' WHERE round = 4");
}

/* As brokers before had it: the plan is the notice's. */
void make_joined_before(struct db_fixture *db)
{
    make_joined(db);
    db_sql(db, "UPDATE round SET plan = 'at once: notice signal-1 tells no time left to plan with'"
               " WHERE round = 4");
}

/* Nobody was left to be frozen. */
void make_nobody_left(struct db_fixture *db)
{
    make_unchanged(db);
    db_sql(db, "DELETE FROM participant WHERE round = 4");
    db_sql(db, "UPDATE round SET plan = 'at once: notice signal-1 tells no time left to plan with'"
               " WHERE round = 4");
}

static void host(struct db_fixture *db, int launch, int place, const char *name, const char *state,
                 int64_t state_unix_ms)
{
    db_sql(db,
           "INSERT INTO host VALUES ('words', %d, %d, %d, '%s', '192.0.2.1', 7000, %d, 2, 1, 3,"
           " 30000, -1, 0, '%s', %lld)",
           launch, 10 * launch + place + 2, place, name, place * 2, state,
           (long long)state_unix_ms);
}

/* `muster run --nodes 1:3`: two hosts, of which one was lost, and one that waits; and what is
 * history. */
void make_hosts(struct db_fixture *db)
{
    make_running(db);
    host(db, 1, 0, "node-old", "left", DB_T0 - 600000);
    host(db, 2, 0, "node-a", "running", DB_T0 - 62000);
    host(db, 2, 1, "node-b", "lost", DB_NOW - 7000);
    host(db, 0, -1, "node-c", "waiting", DB_NOW - 3000);
    db_sql(db, "INSERT INTO host SELECT job, launch, 99, place, 'node-past', address, port,"
               " first_rank, ranks, min_hosts, max_hosts, wait_ms, node_rank, ended, 'running',"
               " state_unix_ms FROM host WHERE launch = 0");
}

void make_hosts_first(struct db_fixture *db)
{
    db_job(db, "state = '', generation = 0");
    host(db, 0, -1, "node-a", "waiting", DB_NOW - 3000);
}
