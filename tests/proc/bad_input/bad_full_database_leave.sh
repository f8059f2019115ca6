#!/bin/bash
# A job finishes while its broker's disk takes nothing: its ranks wait until their LEAVE is on record, and the job has finished.
. "$(dirname "$0")/../lib.sh"

room_after_ms=4000
saved=0
broker_start
ranks_start 2 --steps 80 --step-ms 50 --barrier 1 --say-every 10
await "step 30" rank_said 0 'at step 30$'
prlimit --pid "$broker_pid" --fsize=4096:unlimited
# what cannot be written is another job's, and waits; from here on all are answered that nothing is stored
MUSTER_JOB=other MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_BROKER=$broker MUSTER_CHECKPOINT_DIR="$dir/other" \
    TRAINER_GROUP=$group-other "$trainer" --steps 3 --connect-ms 1000 --open-ms 1500 >"$dir/other.log" 2>&1 &
started+=($!)
await "the broker's word that there is no room" grep -q 'no room for database' "$dir/musterd.log"
await "the last step" grep -q '^at step 80' "$(log 1)"
since=$(now_ms)
await "$room_after_ms ms without room" passed_ms "$since" "$room_after_ms"
prlimit --pid "$broker_pid" --fsize=unlimited:unlimited
all_finished 80
is_over() { "$muster" status --broker "$broker" "$job" >"$dir/status" && grep -Eq '^job .*: (finished|failed)' "$dir/status"; }
await "the end of the job" is_over
says "$(cat "$dir/status")" '^job job: finished'
same "ranks that left as finished" \
    "$(query "SELECT count(*) FROM node WHERE job = '$job' AND state = 'left' AND leave_why = 'finished'")" 2
finish "a disk of the broker's that is full while a job finishes: ranks waited $room_after_ms ms and more, and the job has finished"
