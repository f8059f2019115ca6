#!/bin/bash
# SIGTERM in the last step, in close or behind it. Whoever has finished on record has finished for `muster run`, too: the
# job is not started again, and its exit code is 0.
. "$(dirname "$0")/../lib.sh"

count=32 # signals, 0 to 8 ms after the last step began

broker_start
finished=0
for ((i = 0; i < count; i++)); do
    job=job$i code=0
    MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" timeout "$hangs_after" "$muster" run -n 1 --job "$job" --broker "$broker" \
        -- "$TESTS_DIR/proc/prog_finishes" $((i * 250)) 4 >"$dir/$job.log" 2>&1 || code=$?
    same "exit code of muster run, SIGTERM after $((i * 250)) us" "$code" 0
    first=$(query "SELECT leave_why FROM node WHERE job = '$job' ORDER BY generation LIMIT 1")
    generations=$(query "SELECT count(*) FROM generation WHERE job = '$job'")
    if [ "$first" = finished ]; then
        same "generations of a job that had finished, SIGTERM after $((i * 250)) us" "$generations" 1
        finished=$((finished + 1))
    else
        same "SIGTERM after $((i * 250)) us: the rank left" "$first" preempted
        same "generations" "$generations" 2
    fi
done
holds "some had finished" "$finished" -gt 0
not_checked=1
finish "SIGTERM 0 to 8 ms after the last step: $finished of $count had finished, and none of them was started again"
