#!/bin/bash
# A coordinator's errors, cancellations, structures and per-worker values, with three workers that live.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_tasks.sh"

broker_start
for index in 0 1 2; do worker_start "$index" 2 1; done
for scenario in error_in_schedule error_in_join fetch_behind_an_error another_value error_in_done many_errors cancelled_is_not_reported ten_threads \
    nested_results remote_value_is_refused per_worker_values longest_time_outs another_queues_value_is_refused big_results too_big_a_result renewed_lease size_two full_queue_blocks time_limits\
    nothing_runs_behind_an_error fire_and_forget unknown_function; do
    coordinate "$scenario"
done
same "tasks that have not ended" "$(query "SELECT count(*) FROM task WHERE state IN ('queued', 'leased')")" 0
workers_stop
same "workers that left" "$(query "SELECT count(*) FROM task_worker WHERE state = 'left'")" 3
finish "errors in schedule, join and done, cleared, many; cancelled ones not reported; 10 threads x 20; nested results;" \
    "a remote value refused; per-worker values and their errors; results up to 16 MiB, and one byte more refused; a lease that is renewed; a queue of two," \
    "which blocks; a time limit told from the wait's own; nothing that runs when an error has been returned"
