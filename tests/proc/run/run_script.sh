#!/bin/bash
# `muster run -- script`: the script's shell dies of SIGTERM at once; its trainer gets it next, saves, and is not killed for it.
. "$(dirname "$0")/../lib.sh"

broker_start
export TRAINER_GROUP=$group MUSTER_CHECKPOINT_DIR="$dir/checkpoints" MUSTER_RUNTIME_DIR="$dir/runtime"
printf '#!/bin/sh\n"$@"\nexit $?\n' >"$dir/train.sh"
chmod +x "$dir/train.sh"
code=0
timeout "$hangs_after" "$muster" run -n 2 --job "$job" --broker "$broker" -- "$dir/train.sh" "$trainer" --steps 100000 \
    --step-ms 5 --say-every 5 --exit-policy 1 >"$dir/run.log" 2>&1 &
pid=$!
started+=("$pid")
trains() { [ "$(grep -c 'at step 5$' "$dir/run.log")" = 2 ]; }
await "training" trains
kill -TERM "$(pgrep -P "$pid")"
wait "$pid" || code=$?
same "exit code of muster run" "$code" 42
same "checkpoints" "$(committed | wc -w)" 1
same "trainers that left in peace" "$(grep -c 'trainer: .* status=' "$dir/run.log")" 2
finish "a script that does not exec its trainer: SIGTERM to muster run saves, two ranks"
