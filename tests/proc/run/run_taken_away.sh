#!/bin/bash
# `muster run` on a host whose notice stands: the checkpoint is saved, every restart is told to end at once; after three
# that brought nothing it ends with the restart code, and its box says by what it was told.
. "$(dirname "$0")/../lib.sh"

broker_start
export MUSTER_NOTICE_SOURCES="file:$dir/notice" MUSTER_CHECKPOINT_DIR="$dir/checkpoints" MUSTER_RUNTIME_DIR="$dir/runtime"
export TRAINER_GROUP=$group
code=0
timeout "$hangs_after" "$muster" run -n 1 --job "$job" --broker "$broker" --backoff-ms 20 -- "$trainer" --steps 100000 \
    --step-ms 5 --say-every 5 --exit-policy 1 >"$dir/run.log" 2>&1 &
pid=$!
started+=("$pid")
await "training" grep -q "at step 5$" "$dir/run.log"
echo "taken away by the test" >"$dir/notice"
wait "$pid" || code=$?
same "exit code of muster run" "$code" 42
same "checkpoints" "$(committed | wc -w)" 1
same "launches" "$(grep -c 'muster run: launch .*starting' "$dir/run.log")" 5
grep -q 'each launch was told to end: this host or this job is being taken away' "$dir/run.log" || fail "no word of it in the box"
grep -q '^| rank 0: told to end by file: .*taken away by the test' "$dir/run.log" || fail "the box does not say by what"
finish "muster run on a host that is being taken away: one checkpoint, four idle launches, the restart code, the notice in the box"
