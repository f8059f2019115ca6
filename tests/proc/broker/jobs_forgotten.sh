#!/bin/bash
# A job that has ended is forgotten: not while it runs, nothing on disk goes, and an import brings its checkpoints back.
# By number as well: --keep-jobs.
. "$(dirname "$0")/../lib.sh"

stepping() { rank_said 0 '^at step' && rank_said 1 '^at step'; }
jobs() { query "SELECT group_concat(job, ' ') FROM (SELECT job FROM job ORDER BY job)"; }

broker_start
options=(--step-ms 4 --say-every 10)
ranks_start 2 --steps 1000000
await "the ranks to step" stepping
code=0
said=$("$muster" forget job --broker "$broker" 2>&1) || code=$?
same "exit code for a job that runs" "$code" 4
says "$said" "still runs"
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
files=$(find "$dir/checkpoints-job" -type f | sort)

said=$("$muster" forget job --broker "$broker")
says "$said" "Job job is forgotten" "1 checkpoint stays in .*checkpoints-job.*muster import"
same "jobs" "$(jobs)" ''
same "files" "$(find "$dir/checkpoints-job" -type f | sort)" "$files"
code=0
"$muster" forget job --broker "$broker" >/dev/null 2>&1 || code=$?
same "exit code for a job that is not there" "$code" 1
"$muster" import "$dir/checkpoints-job" --job job --broker "$broker" >/dev/null
ranks_start 2 --steps $((saved + 20))
all_finished $((saved + 20))
broker_stop

# Those without checkpoints go first.
broker_options=(--keep-jobs 2)
broker_start
world=2
for job in one two three; do
    ranks_start 1 --steps 5
    ranks_end 0
done
job=job
kept() { [ "$(jobs)" = "job three" ]; }
await "only two ended jobs to be there" kept
finish "a job that has ended is forgotten by an order or by number, a running one is not, no file goes, and an import \
brings its checkpoints back"
