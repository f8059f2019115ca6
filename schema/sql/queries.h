/* queries - the named questions about a broker's database, as text.
 * Owns: every SELECT that a tool may ask, with the names and kinds of its columns. The broker runs
 * them for QUERY messages, libmuster-query runs them on the file itself; so both answers are the
 * same. One question has no SELECT: QUERY_BROKER, about the broker's process. Never: SQLite itself,
 * memory, state. Everything here is constant.
 *
 * Every query takes the same four parameters, all of them always bound:
 *   ?1 job, text ('' = all jobs where that makes sense), ?2 text_arg, ?3 number_arg,
 *   ?4 how many rows to leave out: the rows that the asker has already (QUERY.after).
 * Every query has a fixed order and answers at most QUERY_PAGE_ROWS rows. An answer is followed by
 * more (ROWS.more) if it has exactly QUERY_PAGE_ROWS rows, or was cut because a page was full.
 * Columns are only appended: an asker that knows fewer leaves the rest out, one that knows more
 * takes the missing ones for 0 and ''. */
#ifndef SCHEMA_QUERIES_H
#define SCHEMA_QUERIES_H

#include <stddef.h>

#define QUERY_PAGE_ROWS 200  /* the LIMIT of all lists */
#define QUERY_COLUMNS_MAX 64 /* ROWS.columns */

/* clang-format off */
/* The columns of each kind of row, in the order of the SELECTs: T(text) I(integer) B(0 or 1). */
#define COLUMNS_JOB(T, I, B) \
    T(job) T(state) I(state_unix_ms) I(generation) I(world_size) T(layout) T(checkpoint_dir) \
    I(nodes_live) I(step) I(steps_executed) I(seq) I(open_round) T(open_round_state) \
    T(open_round_cause) I(open_round_waits) I(notices_active) I(newest_checkpoint) \
    I(newest_step) T(newest_path) I(newest_unix_ms) I(resume_checkpoint) I(resume_step) \
    I(error_rank) I(error_code) T(error_text) I(end_status) T(end_text) I(created_unix_ms) \
    I(opened_unix_ms) I(started_unix_ms) I(ended_unix_ms) I(step_p95_ms) I(save_p95_ms) \
    I(freeze_unix_ms) T(plan) I(unknown_ranks)
#define COLUMNS_NODE(T, I, B) \
    I(generation) T(role) I(rank) T(host) I(pid) T(incarnation) T(state) I(begun) I(done) I(lag) \
    T(phase) I(step_p95_ms) I(applied_seq) I(heard_unix_ms) T(acknowledgement) T(leave_why) \
    I(exit_code) I(joined_unix_ms) I(ended_unix_ms) T(sources) I(stuck_unix_ms)
#define COLUMNS_ROUND(T, I, B) \
    I(round) I(generation) I(attempt) T(cause) T(state) I(step) B(aborted_steps) I(culprit_rank) \
    I(reason_code) T(reason) B(final) I(opened_unix_ms) I(decided_unix_ms) I(captured_unix_ms) \
    I(ended_unix_ms) I(deadline_unix_ms) I(margin_ms) I(members) I(reported) I(captured) \
    I(writers) I(saved) I(failed) T(plan)
#define COLUMNS_PARTICIPANT(T, I, B) \
    I(round) I(rank) T(host) I(pid) T(incarnation) B(writer) I(begun) I(done) I(reported_ms) \
    I(at_step_ms) I(captured_ms) I(saved_ms) I(save_ms) T(failed) T(node_state)
#define COLUMNS_CHECKPOINT(T, I, B) \
    I(checkpoint) I(generation) I(step) T(state) T(cause) T(layout) I(world_size) \
    I(shards_required) I(shards) I(bytes) T(path) B(in_place) I(epoch) I(step_in_epoch) \
    I(data_position) B(pinned) T(metrics) I(save_ms) I(committed_unix_ms) I(blocked_ms) \
    I(waited_ms) I(total_ms) I(bytes_per_s) T(custom) T(pins)
#define COLUMNS_SHARD(T, I, B) \
    I(checkpoint) I(rank) T(host) T(incarnation) I(files) I(bytes) I(save_ms) I(blocked_ms) \
    I(saved_unix_ms) I(waited_ms)
#define COLUMNS_FILE(T, I, B) I(checkpoint) I(rank) T(path) I(bytes) T(checksum)
#define COLUMNS_EVENT(T, I, B) \
    I(seq) I(generation) T(kind) I(round) I(rank) I(step) T(text) I(unix_ms)
#define COLUMNS_NOTICE(T, I, B) \
    T(id) I(generation) I(rank) T(host) I(pid) B(by_operator) T(kind) T(source) T(state) \
    B(cancellable) I(left_ms) T(left_from) T(text) I(round) I(received_unix_ms)
#define COLUMNS_GENERATION(T, I, B) \
    I(generation) T(state) I(world_size) T(layout) T(checkpoint_dir) I(nodes) I(step) \
    I(resume_checkpoint) I(resume_step) B(resume_ready) B(fallback) I(end_status) T(end_text) \
    I(error_rank) I(error_code) T(error_text) I(opened_unix_ms) I(started_unix_ms) \
    I(ended_unix_ms) I(unknown_ranks) I(unknown_unix_ms)
#define COLUMNS_TASK_QUEUE(T, I, B) \
    T(queue_name) T(job) I(queue) I(taken) I(ended) I(queued) I(leased) I(done) I(failed) \
    I(cancelled) I(workers) I(max_queued) I(max_attempts) B(error_pending) I(error_number) \
    I(error_status) I(error_code) T(error_text) I(raised) I(created_unix_ms)
#define COLUMNS_TASK(T, I, B) \
    T(queue_name) I(number) T(state) T(function) I(attempt) I(losses) I(worker_index) \
    T(worker_host) I(worker_pid) T(worker_state) I(status) I(code) T(text) I(bytes) \
    I(timeout_ms) I(scheduled_unix_ms) I(leased_unix_ms) I(ended_unix_ms) I(key)
#define COLUMNS_TASK_WORKER(T, I, B) \
    I(worker_index) T(host) I(pid) T(state) I(slots) I(takes) I(held) T(holds) I(unix_ms)
#define COLUMNS_HOST(T, I, B) \
    I(launch) I(place) T(host) T(address) I(port) I(first_rank) I(ranks) T(id) T(state) \
    I(state_unix_ms)
#define COLUMNS_POLICY(T, I, B) T(job) I(generation) T(keep) T(save) T(trash)
/* The broker's facts about its own process: a text, or a number where that is "". */
#define COLUMNS_BROKER(T, I, B) T(name) I(number) T(text)
/* clang-format on */

/* Answered by broker/self.c, since a database file cannot know it. */
#define QUERY_BROKER "broker"

/* The SELECT of that name, or NULL. A name comes from outside: an unknown one is the asker's
 * mistake. */
const char *query_sql(const char *name);

#endif
