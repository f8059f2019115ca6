/* task_calls - what the coordinators of prog_tasks call, and insist on: the calls of coordinator.h
 * with a long time-out, of one thread. */
#ifndef TESTS_PROC_TASK_CALLS_H
#define TESTS_PROC_TASK_CALLS_H

#include <muster/muster.h>

#define PATIENCE_MS 60000

extern struct muster_error task_error;
#define err task_error /* check.h tells it */
extern muster_coordinator_t *task_coordinator;

void task_open_queue(const char *name, bool fresh, int64_t max_queued);
enum muster_status task_try_schedule(const char *function, const char *args,
                                     muster_remote_value_t **ret_value);
muster_remote_value_t *task_schedule(const char *function, const char *args);
muster_remote_value_t *task_schedule_use(muster_per_worker_t *made); /* "use" of it */
enum muster_status task_join(void);
enum muster_status task_fetch(muster_remote_value_t *value, const char **ret_text);
/* Fetches, and frees. */
void task_expect(muster_remote_value_t **value, const char *expected);
void task_expect_error(muster_remote_value_t **value, enum muster_status status);
/* Errors show at the next call that may raise them: waits until the failure is known. */
void task_await_failure(muster_remote_value_t *value);

/* task_scripts.c: what goes on between a script and this process. Nothing if there is none of this
 * name. */
void task_script(const char *name, int count, const char *word);

#endif
