#!/bin/bash
# A rank of `muster run` is killed by SIGKILL: the supervisor tells the broker, so that the others hear of it at once
# instead of after 5 s of silence; the box names the first cause. A stale or false report does no harm.
# Rules: R8.4.
. "$(dirname "$0")/../lib.sh"

mkdir "$dir/runtime"
export XDG_RUNTIME_DIR="$dir/runtime" # where muster run keeps the ranks' files
broker_start
job=killed
code=0
TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
    timeout "$hangs_after" "$muster" run -n 3 --job $job --broker "$broker" --max-failures 0 -- "$trainer" --steps 100000 \
    --barrier 1 --kill-rank 2 --kill-step 35 >"$dir/run.log" 2>&1 || code=$?
same "exit code of muster run" "$code" 137
row=$(query "SELECT rank, text FROM event WHERE job = '$job' AND kind = 'node lost'")
says "$row" '^2\|rank 2 \(process [0-9]+ on .*was lost at step [0-9]+ or later: its supervisor saw it killed by signal 9; it was last heard [01]\.[0-9] s ago$'
same "ranks that ended with the peer's error" "$(grep -c 'status=MUSTER_E_PEER peer=2 .*supervisor saw it killed' "$dir/run.log")" 2
says "$(<"$dir/run.log")" 'first error: failed, rank 2 was killed by signal 9' \
    '^\| rank 2 on [^ ]+ at [0-9-]{10} [0-9:]{8}' '1 launch, 0 preemptions, 1 failure; exit code 137'

# The wrapper's child dies, not the rank's own process.
job=wrapped
code=0
TRAINER_GROUP=proc-$$-$job MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" \
    timeout "$hangs_after" "$muster" run -n 2 --job $job --broker "$broker" --max-failures 0 -- \
    bash -c '"$@"; exit $?' wrapper "$trainer" --steps 100000 --barrier 1 --kill-rank 1 --kill-step 20 \
    >"$dir/wrapped.log" 2>&1 || code=$?
same "exit code of muster run" "$code" 137
says "$(query "SELECT text FROM event WHERE job = '$job' AND kind = 'node lost'")" \
    'rank 1 .*its supervisor saw it end with exit code 137, without leaving'

# Nothing of the supervisor's stays behind.
same "files of muster run" "$(find "$XDG_RUNTIME_DIR" -mindepth 1 | wc -l)" 0
finish "a rank of muster run that is killed: the others end with MUSTER_E_PEER by its report, not by silence" \
    "also when the killed process was started by the rank's own program"
