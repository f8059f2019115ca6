#!/bin/bash
# A signal every 20 microseconds to the thread that trains, restores, lists, schedules and serves, as a profiler's
# timer or many children give it, with a handler that restarts no call: nothing that any call does is told otherwise.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"
. "$(dirname "$0")/../lib_tasks.sh"

reader() { MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" "$@"; }
of_directory() { MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job "$TESTS_DIR/proc/prog_reader" "$@"; }

broker_start
export MUSTER_TEST_STORM=20
for kind in 0 1; do
    job=storm$kind options=(--every 2 --keep-latest 3 --sharded "$kind" --behind "$kind")
    ranks_start 2 --steps 9 --signal-rank 1 --signal-step 5
    ranks_end 42
    saved=$(steps_saved 0 | sed 's/.* //')
    ranks_start 2 --steps 13
    ranks_end 0
    each_has resumed "$saved"
    same "what a reader lists of job $job" "$(reader list)" '8 10 12'
    same "what a reader lists of its directory" "$(of_directory list)" '8 10 12'
    says "$(reader restore 10)" 'restored 10'
    says "$(of_directory restore -1)" 'restored 12'
done

job=tasks
for index in 0 1; do worker_start "$index" 2 1; done
for scenario in error_in_join ten_threads nested_results per_worker_values big_results size_two; do
    coordinate "$scenario"
done
same "tasks that have not ended" "$(query "SELECT count(*) FROM task WHERE state IN ('queued', 'leased')")" 0
workers_stop
finish "a signal each 20 us to the user's thread: preempted, resumed, listed, restored, tasks and their results, as without"
