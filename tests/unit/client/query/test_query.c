/* libmuster-query: the queries and their columns, typed rows of a file, the cells of an answer. The
 * talk with a broker is in tests/proc/client/test_query_broker.c. */
#include "client/query/query_link.h"
#include "schema/sql/queries.h"
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[SCRATCH_PATH_MAX];

static const char *in_directory(const char *name)
{
    return scratch_path(directory, "%s", name);
}

static int set_up(void **state)
{
    struct db_fixture db;

    (void)state;
    scratch_make(directory);
    db_open(&db, in_directory("jobs.db"));
    db_job(&db, "state = 'running'");
    db_generation(&db, 1, "world_size = 2, resume_step = 10, resume_checkpoint = 1");
    db_node(&db, 1, 0, NULL);
    db_node(&db, 1, 1, "state = 'lost'");
    db_progress(&db, 1, 1, "begun = 42, done = 41");
    for (int round = 1; round <= 3; round++)
        db_round(&db, round, "attempt = %d, state = 'aborted'", round == 1 ? 1 : round - 1);
    db_sql(&db, "UPDATE round SET state = 'committed', step = 10 WHERE round = 1");
    db_sql(&db, "UPDATE round SET state = 'freezing', culprit_rank = 1 WHERE round = 3");
    db_member(&db, 3, 0, "begun = 46, done = 45, reported_ms = 7");
    db_member(&db, 3, 1, NULL);
    db_checkpoint(&db, 1, "step = 10, path = '10', pinned = 1, bytes = 5000000000");
    db_shard(&db, 1, 0, "save_ms = 9");
    db_shard(&db, 1, 1, "save_ms = 11");
    db_sql(&db,
           "INSERT INTO shard_file VALUES ('words', 1, 0, 'rank0.safetensors', 7, 'xxh3-128:00')");
    db_notice(&db, "signal-1", "round = 3, rank = 1, incarnation = 102");
    db_sql(&db, "BEGIN");
    for (int seq = 1; seq <= 450; seq++)
        db_event(&db, seq, "text = 'event %d', kind = '%s'", seq, seq == 400 ? "stuck" : "freeze");
    db_sql(&db, "COMMIT");
    db_close(&db);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(directory);
    return 0;
}

/* --- the queries ------------------------------------------------------------------------------ */

static void columns_are_those_of_the_selects(void **state)
{
#define NAME(name) #name,
#define QUERY(name, columns, sql) {#name, {columns(NAME, NAME, NAME) NULL}},
    static const struct {
        const char *query;
        const char *columns[QUERY_COLUMNS_MAX + 1];
    } expected[] = {
#include "schema/sql/queries.def"
    };
#undef QUERY
#undef NAME
    struct db_fixture db;

    (void)state;
    db_open(&db, ":memory:");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const char *sql = query_sql(expected[i].query);
        sqlite3_stmt *statement = NULL;
        int column = 0;

        assert_int_equal(sqlite3_prepare_v2(db.sqlite, sql, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_bind_parameter_count(statement), 4);
        assert_true(sqlite3_stmt_readonly(statement));
        assert_non_null(strstr(sql, " ORDER BY "));
        assert_true(strstr(sql, " LIMIT 200 OFFSET ?4") || strstr(sql, " LIMIT 1 OFFSET ?4"));
        for (; expected[i].columns[column] != NULL; column++)
            assert_string_equal(sqlite3_column_name(statement, column),
                                expected[i].columns[column]);
        assert_int_equal(sqlite3_column_count(statement), column);
        sqlite3_finalize(statement);
    }
    assert_null(query_sql("drop"));
    db_close(&db);
}

static void every_query_has_a_shape(void **state)
{
#define QUERY(name, columns, sql) #name,
    static const char *const names[] = {
#include "schema/sql/queries.def"
    };
#undef QUERY

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        muster_rows_t *rows = rows_create(names[i]);

        assert_non_null(rows);
        assert_int_equal(muster_rows_count(rows), 0);
        assert_true(muster_rows_columns(rows) > 4);
        muster_rows_destroy(&rows);
        assert_null(rows);
    }
    assert_null(rows_create("drop"));
}

/* --- what a list costs ------------------------------------------------------------------------ */

#define LISTED 1000

struct cost {
    int steps; /* of SQLite's machine */
    int rows, sorts;
};

static struct cost cost_of(struct db_fixture *db, const char *sql, int64_t after)
{
    sqlite3_stmt *statement = NULL;
    struct cost cost = {0, 0, 0};

    assert_int_equal(sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_text(statement, 1, "words", -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, "", -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, after);
    sqlite3_bind_int64(statement, 4, 0);
    while (sqlite3_step(statement) == SQLITE_ROW)
        cost.rows++;
    cost.steps = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0);
    cost.sorts = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_SORT, 0);
    sqlite3_finalize(statement);
    return cost;
}

/* A page that looked at more than its own rows, or sorted them, would make 10,000 of them slow. */
static void a_page_of_checkpoints_costs_its_own_rows(void **state)
{
    static const char bare[] = "SELECT * FROM checkpoint c WHERE c.job = ?1 AND c.round > ?3"
                               " AND ?2 = '' ORDER BY c.round LIMIT 200 OFFSET ?4";
    struct db_fixture db;
    struct cost first, last, plain;

    (void)state;
    db_open(&db, ":memory:");
    db_sql(&db, "BEGIN");
    db_job(&db, "round = %d", LISTED);
    db_generation(&db, 1, NULL);
    for (int i = 1; i <= LISTED; i++) {
        db_round(&db, i, "state = 'committed', step = %d", i);
        db_checkpoint(&db, i, "step = %d, state = 'committed'", i);
        db_shard(&db, i, 0, NULL);
    }
    db_sql(&db, "COMMIT");
    first = cost_of(&db, query_sql("checkpoints"), 0);
    last = cost_of(&db, query_sql("checkpoints"), LISTED - 300);
    plain = cost_of(&db, bare, 0);
    assert_int_equal(first.rows, 200);
    assert_int_equal(last.rows, 200);
    assert_int_equal(plain.rows, 200);
    assert_int_equal(first.sorts + last.sorts, 0);
    assert_int_equal(first.steps, last.steps);
    assert_in_range(first.steps, 0, 9 * plain.steps / 2); /* with its launch and its shards */
    db_close(&db);
}

/* --- pages by key ----------------------------------------------------------------------------- */

#define TASKS 450 /* of each queue */

/* Three queues, the one in the middle of another job. */
static void write_queues(struct db_fixture *db)
{
    static const char *const jobs[] = {"words", "other", "words"};

    db_sql(db, "BEGIN");
    for (int queue = 1; queue <= 3; queue++) {
        db_sql(db,
               "INSERT INTO task_queue (queue, job, name, coordinator, taken, ended, released,"
               " max_queued, max_attempts, error_pending, error_number, error_status, error_code,"
               " error_text, raised, cancelled_to, created_unix_ms) VALUES (%d, '%s', 'q%d', 7, %d,"
               " 0, 0, 262144, 3, 0, 0, 0, 0, '', 0, 0, 0)",
               queue, jobs[queue - 1], queue, TASKS);
        for (int number = 1; number <= TASKS; number++)
            db_sql(db,
                   "INSERT INTO task (id, state, attempt, losses, worker, worker_index, timeout_ms,"
                   " scheduled_unix_ms, fn, uses, args) VALUES ((%d << 40) + %d, '%s', 0, 0, 0, 0,"
                   " 0, 0, 'f', x'', x'')",
                   queue, number, number % 9 == 0 ? "done" : "queued");
    }
    db_sql(db, "COMMIT");
}

static void list_tasks(muster_client_t *client, const char *state, int64_t number, size_t count,
                       int64_t step)
{
    muster_rows_t *rows = NULL;
    const struct muster_task_row *tasks;

    assert_int_equal(muster_client_tasks(client, "words", state, number, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), count);
    tasks = muster_rows_tasks(rows);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(tasks[i].queue_name, i < count / 2 ? "q1" : "q3");
        assert_int_equal(tasks[i].number,
                         number > 0 ? number : (int64_t)(i % (count / 2) + 1) * step);
    }
    muster_rows_destroy(&rows);
}

static void tasks_of_all_queues_of_a_job_come_in_order(void **state)
{
    muster_client_t *client = NULL;
    struct db_fixture db;

    (void)state;
    db_open(&db, in_directory("tasks.db"));
    write_queues(&db);
    assert_int_equal(muster_client_open(in_directory("tasks.db"), 0, &client, NULL), MUSTER_OK);
    list_tasks(client, NULL, 0, (size_t)2 * TASKS, 1);
    list_tasks(client, "done", 0, (size_t)2 * TASKS / 9, 9);
    list_tasks(client, NULL, 17, 2, 1);
    muster_client_close(&client, NULL);
    db_close(&db);
}

/* A coordinator that frees its values has them forgotten while somebody lists them. */
static void a_list_misses_none_though_others_are_removed_meanwhile(void **state)
{
    struct question question = {.query = "tasks_after", .job = "words", .text_arg = ""};
    struct dbread *reader = NULL;
    struct db_fixture db;
    size_t count = 0;
    bool more = true;

    (void)state;
    db_open(&db, in_directory("fewer.db"));
    write_queues(&db);
    assert_int_equal(dbread_open(in_directory("fewer.db"), 100, &reader, NULL), MUSTER_OK);
    while (more) {
        muster_rows_t *rows = rows_create(question.query);
        const struct muster_task_row *tasks;

        assert_int_equal(dbread_page(reader, &question, rows, &more, NULL), MUSTER_OK);
        tasks = muster_rows_tasks(rows);
        for (size_t i = 0; i < muster_rows_count(rows); i++, count++) {
            assert_int_equal(tasks[i].number, count % TASKS + 1);
            question.number_arg = tasks[i].key;
        }
        db_sql(&db, "DELETE FROM task WHERE id <= %lld", (long long)question.number_arg);
        muster_rows_destroy(&rows);
    }
    assert_int_equal(count, 2 * TASKS);
    dbread_close(&reader);
    db_close(&db);
}

static void a_page_of_tasks_costs_its_own_rows(void **state)
{
    struct db_fixture db;
    struct cost first, last;

    (void)state;
    db_open(&db, ":memory:");
    write_queues(&db);
    first = cost_of(&db, query_sql("tasks_after"), 0);
    last = cost_of(&db, query_sql("tasks_after"), ((int64_t)3 << 40) + TASKS - 200);
    assert_int_equal(first.rows, 200);
    assert_int_equal(last.rows, 200);
    assert_in_range(first.sorts, 0, 1); /* of what is on the page */
    assert_in_range(last.steps, first.steps - first.steps / 20, first.steps + first.steps / 20);
    db_close(&db);
}

/* --- rows of a file --------------------------------------------------------------------------- */

static muster_client_t *open_file(void)
{
    muster_client_t *client = NULL;

    assert_int_equal(muster_client_open(in_directory("jobs.db"), 0, &client, NULL), MUSTER_OK);
    assert_true(muster_client_is_database(client));
    return client;
}

static void job_has_its_generation_round_and_checkpoint(void **state)
{
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;
    const struct muster_job_row *job;

    (void)state;
    assert_int_equal(muster_client_jobs(client, NULL, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 1);
    job = muster_rows_jobs(rows);
    assert_string_equal(job->job, "words");
    assert_int_equal(job->world_size, 2);
    assert_int_equal(job->nodes_live, 1);
    assert_int_equal(job->step, 46);
    assert_int_equal(job->steps_executed, 36);
    assert_int_equal(job->open_round, 3);
    assert_string_equal(job->open_round_state, "freezing");
    assert_int_equal(job->open_round_waits, 1);
    assert_int_equal(job->notices_active, 1);
    assert_int_equal(job->newest_step, 10);
    assert_string_equal(job->newest_path, DB_DIR "/10");
    assert_int_equal(job->error_rank, -1);
    assert_null(muster_rows_nodes(rows)); /* rows of another kind */
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
    assert_null(client);
}

/* A program of another muster has rows of another size. */
static void rows_have_the_size_that_the_program_knows(void **state)
{
    enum {
        OLD = offsetof(struct muster_node_row, role),
        NEW = sizeof(struct muster_node_row) + 16
    };
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;
    const struct muster_node_row *all;
    const unsigned char *old, *new;
    struct muster_node_row one = {.rank = -1};

    (void)state;
    assert_int_equal(muster_client_nodes(client, "words", 0, &rows, NULL), MUSTER_OK);
    all = muster_rows_nodes(rows);
    old = muster_rows_array(rows, MUSTER_ROW_NODE, OLD);
    new = muster_rows_array(rows, MUSTER_ROW_NODE, NEW);
    assert_non_null(old);
    assert_non_null(new);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(old + i * OLD, &all[i], OLD);
        memcpy(&one, new + i *NEW, sizeof one);
        assert_string_equal(one.role, all[i].role);
        assert_int_equal(one.rank, (int)i);
        for (size_t k = sizeof one; k < NEW; k++)
            assert_int_equal(new[i * NEW + k], 0);
    }
    assert_ptr_equal(old, muster_rows_array(rows, MUSTER_ROW_NODE, OLD)); /* made once */
    assert_ptr_equal(all, muster_rows_nodes(rows));
    assert_null(muster_rows_array(rows, MUSTER_ROW_NODE, 0));
    assert_null(muster_rows_array(rows, MUSTER_ROW_NODE, SIZE_MAX));
    assert_null(muster_rows_array(rows, MUSTER_ROW_JOB, OLD));
    assert_null(muster_rows_array(NULL, MUSTER_ROW_NODE, OLD));
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static void each_question_gives_its_rows(void **state)
{
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;

    (void)state;
    assert_int_equal(muster_client_nodes(client, "words", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 2);
    assert_string_equal(muster_rows_nodes(rows)[0].role, "chief");
    assert_string_equal(muster_rows_nodes(rows)[0].acknowledgement, "reported");
    assert_string_equal(muster_rows_nodes(rows)[1].acknowledgement, "awaited");
    assert_int_equal(muster_rows_nodes(rows)[1].lag, 5);
    assert_string_equal(muster_rows_nodes(rows)[1].incarnation, "0000000000000066");
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_rounds(client, "words", 1, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 2);
    assert_int_equal(muster_rows_rounds(rows)[1].culprit_rank, 1);
    assert_int_equal(muster_rows_rounds(rows)[1].reported, 1);
    assert_int_equal(muster_rows_rounds(rows)[1].members, 2);
    assert_int_equal(muster_rows_rounds(rows)[1].deadline_unix_ms, DB_T0 + 30000);
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_round(client, "words", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_rounds(rows)[0].round, 3);
    muster_rows_destroy(&rows);

    /* Rounds 2 and 3 are attempts 1 and 2 of one cause; round 1 is another. */
    assert_int_equal(muster_client_attempts(client, "words", 3, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 2);
    assert_int_equal(muster_rows_rounds(rows)[0].round, 2);
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_participants(client, "words", 3, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_participants(rows)[0].reported_ms, 7);
    assert_int_equal(muster_rows_participants(rows)[1].reported_ms, -1);
    assert_string_equal(muster_rows_participants(rows)[1].node_state, "lost");
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_latest(client, "words", &rows, NULL), MUSTER_OK);
    assert_true(muster_rows_checkpoints(rows)[0].pinned);
    assert_true(muster_rows_checkpoints(rows)[0].in_place);
    assert_int_equal(muster_rows_checkpoints(rows)[0].bytes, 5000000000);
    assert_int_equal(muster_rows_checkpoints(rows)[0].save_ms, 11);
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_shards(client, "words", 1, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 2);
    assert_string_equal(muster_rows_shards(rows)[1].host, "h1");
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_files(client, "words", 1, &rows, NULL), MUSTER_OK);
    assert_string_equal(muster_rows_files(rows)[0].path, "rank0.safetensors");
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_notices(client, "words", "signal-1", 1, &rows, NULL), MUSTER_OK);
    assert_string_equal(muster_rows_notices(rows)[0].host, "h1");
    assert_false(muster_rows_notices(rows)[0].by_operator);
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_generations(client, "words", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_generations(rows)[0].resume_step, 10);
    muster_rows_destroy(&rows);

    assert_int_equal(muster_client_incidents(client, "words", 1, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 1);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

/* A ps and an evaluator count calls of their own. */
static void steps_are_those_of_the_ranks(void **state)
{
    struct db_fixture db;
    muster_client_t *client;
    muster_rows_t *rows = NULL;

    (void)state;
    db_open(&db, in_directory("beside.db"));
    db_job(&db, "state = 'running'");
    db_generation(&db, 1, "world_size = 1, resume_step = 10");
    db_node(&db, 1, 0, NULL);
    db_node(&db, 1, 10, "role = 'ps', rank = 0");
    db_node(&db, 1, 11, "role = 'evaluator', rank = 0");
    db_progress(&db, 1, 0, "begun = 46, done = 45");
    db_progress(&db, 1, 10, "begun = 901, done = 900");
    db_progress(&db, 1, 11, "begun = 7, done = 7");
    db_close(&db);
    assert_int_equal(muster_client_open(in_directory("beside.db"), 0, &client, NULL), MUSTER_OK);
    assert_int_equal(muster_client_jobs(client, "words", &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_jobs(rows)[0].step, 45);
    assert_int_equal(muster_rows_jobs(rows)[0].steps_executed, 35);
    muster_rows_destroy(&rows);
    assert_int_equal(muster_client_generations(client, "words", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_generations(rows)[0].step, 45);
    muster_rows_destroy(&rows);
    assert_int_equal(muster_client_nodes(client, "words", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(muster_rows_nodes(rows)[i].lag,
                         strcmp(muster_rows_nodes(rows)[i].role, "chief") == 0 ? 0 : -1);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static void long_lists_come_whole_and_in_order(void **state)
{
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;

    (void)state;
    assert_int_equal(muster_client_events(client, "words", 0, NULL, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 450);
    for (int i = 0; i < 450; i++)
        assert_int_equal(muster_rows_events(rows)[i].seq, i + 1);
    assert_string_equal(muster_rows_events(rows)[449].text, "event 450");
    muster_rows_destroy(&rows);
    assert_int_equal(muster_client_events(client, "words", 449, NULL, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 1);
    muster_rows_destroy(&rows);
    assert_int_equal(muster_client_events(client, "words", 0, "stuck", &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_events(rows)[0].seq, 400);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static void what_is_not_there_gives_no_rows(void **state)
{
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;

    (void)state;
    assert_int_equal(muster_client_round(client, "words", 99, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 0);
    assert_null(muster_rows_rounds(rows));
    assert_string_equal(muster_rows_text(rows, 0, 3), "");
    assert_int_equal(muster_rows_integer(rows, 0, 0), 0);
    muster_rows_destroy(&rows);
    assert_int_equal(muster_client_nodes(client, "nobody", 0, &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_count(rows), 0);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static void a_file_is_read_while_its_owner_writes(void **state)
{
    muster_client_t *client = open_file();
    muster_rows_t *rows = NULL;
    sqlite3 *owner = NULL;

    (void)state;
    assert_int_equal(sqlite3_open(in_directory("jobs.db"), &owner), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(owner, "BEGIN IMMEDIATE; UPDATE job SET seq = 9999", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(muster_client_jobs(client, "words", &rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_jobs(rows)[0].seq, 450); /* what is committed */
    muster_rows_destroy(&rows);
    assert_int_equal(sqlite3_exec(owner, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(owner);
    muster_client_close(&client, NULL);
}

static void a_file_takes_no_orders(void **state)
{
    muster_client_t *client = open_file();
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_client_notify(client, "words", "x", 0, -1, "", NULL, &err),
                     MUSTER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "the broker's address (argument address)"));
    assert_int_equal(muster_client_cancel(client, "words", "x", &err), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_client_save_now(client, "words", "x", NULL, &err),
                     MUSTER_E_UNSUPPORTED);
    muster_client_close(&client, NULL);
}

static void wrong_arguments_are_named(void **state)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(muster_client_open("tcp://host:1", 0, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_open("tcp://host:1", -1, &client, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_open("", 0, &client, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_open("udp://host:1", 0, &client, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_open("tcp://nowhere", 0, &client, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_open(in_directory("none.db"), 0, &client, &err),
                     MUSTER_E_NOT_FOUND);
    assert_null(client);
    assert_int_equal(muster_client_jobs(NULL, NULL, &rows, &err), MUSTER_E_ARGUMENT);
    assert_null(rows);
    assert_int_equal(muster_client_open("tcp://127.0.0.1:9", 10, &client, &err), MUSTER_OK);
    assert_int_equal(muster_client_notify(client, "words", "x", -1, -1, "", NULL, &err),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_notify(client, "words", "x", 0, -2, "", NULL, &err),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_cancel(client, "../words", "x", &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_client_save_now(client, "words", "", NULL, &err), MUSTER_E_ARGUMENT);
    muster_client_close(&client, NULL);
    muster_client_close(NULL, NULL);
    muster_rows_destroy(NULL);
}

/* --- cells of a ROWS message ------------------------------------------------------------------ */

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void cells_of_every_kind_are_read(void **state)
{
    static const struct {
        const uint8_t *bytes;
        size_t size;
        int64_t integer;
        const char *text;
    } cases[] = {
        {BYTES("\xc0"), 0, ""},
        {BYTES("\x7f"), 127, ""},
        {BYTES("\xff"), -1, ""},
        {BYTES("\xe0"), -32, ""},
        {BYTES("\xc2"), 0, ""},
        {BYTES("\xc3"), 1, ""},
        {BYTES("\xcc\xff"), 255, ""},
        {BYTES("\xcd\x01\x00"), 256, ""},
        {BYTES("\xce\xff\xff\xff\xff"), 4294967295, ""},
        {BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), INT64_MAX, ""},
        {BYTES("\xd0\x80"), -128, ""},
        {BYTES("\xd1\x80\x00"), -32768, ""},
        {BYTES("\xd2\x80\x00\x00\x00"), -2147483648LL, ""},
        {BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), INT64_MIN, ""},
        {BYTES("\xcb\x40\x08\x00\x00\x00\x00\x00\x00"), 3, ""},
        {BYTES("\xca\x40\x40\x00\x00"), 3, ""},
        {BYTES("\xa0"), 0, ""},
        {BYTES("\xa3yes"), 0, "yes"},
        {BYTES("\xd9\x03yes"), 0, "yes"},
        {BYTES("\xda\x00\x03yes"), 0, "yes"},
        {BYTES("\xdb\x00\x00\x00\x03yes"), 0, "yes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* Events begin with integer seq, generation and text kind: read the cell as both. */
        uint8_t bytes[64];
        size_t size = cases[i].size;
        muster_rows_t *rows = rows_create("events");

        memcpy(bytes, cases[i].bytes, size);
        bytes[size] = 0;
        memcpy(bytes + size + 1, cases[i].bytes, size);
        assert_int_equal(query_link_cells(bytes, 2 * size + 1, 3, 1, rows, NULL), MUSTER_OK);
        assert_int_equal(muster_rows_events(rows)[0].seq, cases[i].integer);
        assert_string_equal(muster_rows_events(rows)[0].kind, cases[i].text);
        assert_string_equal(muster_rows_events(rows)[0].text, ""); /* a column that was not sent */
        muster_rows_destroy(&rows);
        /* Cut anywhere, it is refused. */
        for (size_t cut = 0; cut < size; cut++) {
            rows = rows_create("events");
            assert_int_equal(query_link_cells(cases[i].bytes, cut, 1, 1, rows, NULL),
                             MUSTER_E_PROTOCOL);
            assert_int_equal(muster_rows_count(rows), 0);
            muster_rows_destroy(&rows);
        }
    }
}

static void other_things_in_cells_are_refused(void **state)
{
    static const struct {
        const uint8_t *bytes;
        size_t size;
    } cases[] = {
        {BYTES("\xc1")},
        {BYTES("\x90")},                                 /* an array */
        {BYTES("\x80")},                                 /* a map */
        {BYTES("\xc4\x01z")},                            /* raw bytes */
        {BYTES("\xdd\xff\xff\xff\xff")},                 /* an array of four thousand millions */
        {BYTES("\xdb\xff\xff\xff\xffz")},                /* so long a text */
        {BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff")}, /* beyond int64 */
        {BYTES("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")}, /* not a number */
        {BYTES("\xa1\x00")},                             /* NUL inside a text */
    };
    muster_rows_t *rows = rows_create("events");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(query_link_cells(cases[i].bytes, cases[i].size, 1, 1, rows, NULL),
                         MUSTER_E_PROTOCOL);
    assert_int_equal(query_link_cells(BYTES("\x01"), QUERY_COLUMNS_MAX + 1, 1, rows, NULL),
                     MUSTER_E_PROTOCOL);
    assert_int_equal(query_link_cells(BYTES(""), 0, 5, rows, NULL), MUSTER_E_PROTOCOL);
    assert_int_equal(muster_rows_count(rows), 0);
    /* A column that is not known yet, behind those that are, is left out. */
    assert_int_equal(query_link_cells(BYTES("\1\2\3\4\5\6\7\10\11"), 9, 1, rows, NULL), MUSTER_OK);
    assert_int_equal(muster_rows_events(rows)[0].unix_ms, 8);
    muster_rows_destroy(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_of_the_selects),
        cmocka_unit_test(every_query_has_a_shape),
        cmocka_unit_test(a_page_of_checkpoints_costs_its_own_rows),
        cmocka_unit_test(a_page_of_tasks_costs_its_own_rows),
        cmocka_unit_test(tasks_of_all_queues_of_a_job_come_in_order),
        cmocka_unit_test(a_list_misses_none_though_others_are_removed_meanwhile),
        cmocka_unit_test(job_has_its_generation_round_and_checkpoint),
        cmocka_unit_test(rows_have_the_size_that_the_program_knows),
        cmocka_unit_test(each_question_gives_its_rows),
        cmocka_unit_test(steps_are_those_of_the_ranks),
        cmocka_unit_test(long_lists_come_whole_and_in_order),
        cmocka_unit_test(what_is_not_there_gives_no_rows),
        cmocka_unit_test(a_file_is_read_while_its_owner_writes),
        cmocka_unit_test(a_file_takes_no_orders),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(cells_of_every_kind_are_read),
        cmocka_unit_test(other_things_in_cells_are_refused),
    };

    return cmocka_run_group_tests_name("query", tests, set_up, tear_down);
}
