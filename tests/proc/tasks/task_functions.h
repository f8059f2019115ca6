/* task_functions - what the workers of prog_tasks can do. Every attempt is one line "ID ATTEMPT" in
 * the file TASKS_LOG, written before the function does anything.
 *
 *   echo
 *   fail CODE
 *   slow MS       or until it is cancelled
 *   die N         its process, in its first N attempts
 *   big BYTES
 *   gated         as echo, once the file TASKS_LOG.go is there; or until it is cancelled
 *   mark SIZE     once that file is there, cancelled or not: so many bytes, each the digit of the
 *                 attempt
 *   linger        until it is cancelled, and then 300 ms more; noted in TASKS_LOG.begun and .ended
 *   renew         3 s, saying that it goes on
 *   too_big       a result of one byte too many
 *   make, make_again, make_slowly, make_bad, use: per-worker values */
#ifndef TESTS_PROC_TASK_FUNCTIONS_H
#define TESTS_PROC_TASK_FUNCTIONS_H

#include <muster/muster.h>

enum muster_status task_functions_register(muster_worker_t *worker, struct muster_error *err);
/* Creates or removes TASKS_LOG.go. */
void task_gate(bool open);
void task_lingerers(size_t *ret_begun, size_t *ret_ended);
bool task_nap(int64_t ms); /* true */

#endif
