/* prog_web_rows KIND FILE [NOW_MS] - makes a database for `muster web` to show:
 *   ranks    a job of 10,000 ranks on 1,250 hosts, with a round in which all have a part; some are
 *            lost, stuck, silent or behind
 *   some     the same of 256 ranks on 32 hosts
 *   jobs     10,000 jobs
 *   hostile  HTML wherever a text comes from outside, also in the job's name
 *   small    a job of four ranks that runs
 * NOW_MS: the rows are of then (the moment of db_fixture.h). */
#include "tests/cli/stories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 10000
#define JOBS 10000
#define MARK "<script>alert(1)</script>\"'&"

static void rows_world(struct db_fixture *db, int ranks)
{
    make_periodic(db);
    db_sql(db, "UPDATE generation SET world_size = %d", ranks);
    db_sql(db, "BEGIN");
    for (int rank = DB_RANKS; rank < ranks; rank++)
        db_node(db, 1, rank, NULL);
    db_sql(db, "UPDATE node SET host = 'node-' || (rank / 8)");
    db_sql(db, "UPDATE progress SET begun = 60 - incarnation %% 5, done = 59 - incarnation %% 5");
    db_sql(db, "UPDATE progress SET phase = 'saving' WHERE incarnation %% 97 = 0");
    db_sql(db, "UPDATE progress SET begun = 20, done = 19 WHERE incarnation = 4001");
    db_sql(db, "UPDATE progress SET heard_unix_ms = %lld WHERE incarnation %% 1999 = 0",
           DB_NOW - 30000);
    db_sql(db, "UPDATE node SET state = 'lost', ended_unix_ms = %lld WHERE rank %% 1777 = 5",
           DB_T0 + 1000);
    db_sql(db, "DELETE FROM participant");
    for (int rank = 0; rank < ranks; rank++)
        db_member(db, 3, rank,
                  "writer = 1, begun = 40, done = 39, reported_ms = %d, at_step_ms = %d,"
                  " captured_ms = %d, saved_ms = %d, save_ms = 300",
                  2 + rank % 40, 60 + rank % 500, 90 + rank % 900, 400 + rank % 3000);
    db_sql(db, "COMMIT");
}

static void rows_ranks(struct db_fixture *db)
{
    rows_world(db, RANKS);
}

static void rows_some(struct db_fixture *db)
{
    rows_world(db, 256);
    db_sql(db, "INSERT INTO policy (job, generation, keep, save, trash) VALUES ('words', 1,"
               " 'latest 2; every 20; best 1 least loss', 'period-ms 60000', '')");
}

static void rows_jobs(struct db_fixture *db)
{
    char name[32];

    db_sql(db, "BEGIN");
    for (int i = 0; i < JOBS; i++) {
        snprintf(name, sizeof name, "job-%05d", i);
        db->job = name;
        db_job(db, "state = '%s'", i % 3 == 0 ? "running" : "ended");
        db_generation(db, 1, i % 3 == 0 ? NULL : "state = 'ended'");
    }
    db_sql(db, "COMMIT");
}

static void rows_hostile(struct db_fixture *db)
{
    const struct db_text mark = db_quoted(MARK);
    static const char *const columns[][2] = {
        {"node", "host"},           {"round", "reason"},       {"event", "text"},
        {"checkpoint", "path"},     {"notice", "text"},        {"notice", "source"},
        {"generation", "end_text"}, {"participant", "failed"}, {"job", "plan"},
    };

    make_committed(db);
    db_sql(db, "UPDATE notice SET state = 'active'");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        db_sql(db, "UPDATE %s SET %s = %s", columns[i][0], columns[i][1], mark.text);
    db->job = MARK;
    db_sql(db,
           "INSERT INTO job (job, state, state_unix_ms, generation, seq, round, created_unix_ms)"
           " VALUES (%s, 'running', %lld, 0, 0, 0, %lld)",
           mark.text, DB_T0, DB_T0);
}

/* All times, so that the job lives at that moment. */
static void rows_move(struct db_fixture *db, long long by_ms)
{
    static const char *const columns[][2] = {
        {"job", "state_unix_ms"},
        {"job", "created_unix_ms"},
        {"generation", "opened_unix_ms"},
        {"generation", "started_unix_ms"},
        {"generation", "ended_unix_ms"},
        {"node", "joined_unix_ms"},
        {"node", "ended_unix_ms"},
        {"progress", "heard_unix_ms"},
        {"notice", "received_unix_ms"},
        {"event", "unix_ms"},
        {"round", "opened_unix_ms"},
        {"round", "decided_unix_ms"},
        {"round", "captured_unix_ms"},
        {"round", "ended_unix_ms"},
        {"checkpoint", "committed_unix_ms"},
    };

    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        db_sql(db, "UPDATE %s SET %s = %s + (%lld) WHERE %s > 0", columns[i][0], columns[i][1],
               columns[i][1], by_ms, columns[i][1]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *kind;
        void (*fill)(struct db_fixture *db);
    } kinds[] = {{"ranks", rows_ranks},
                 {"some", rows_some},
                 {"jobs", rows_jobs},
                 {"hostile", rows_hostile},
                 {"small", make_periodic}};
    struct db_fixture db;

    for (size_t i = 0; argc >= 3 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, argv[1]) != 0)
            continue;
        db_open(&db, argv[2]);
        kinds[i].fill(&db);
        if (argc > 3)
            rows_move(&db, strtoll(argv[3], NULL, 10) - DB_NOW);
        db_close(&db);
        return 0;
    }
    fprintf(stderr, "usage: prog_web_rows ranks|some|jobs|hostile|small FILE [NOW_MS]\n");
    return 2;
}
