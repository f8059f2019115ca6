#!/bin/bash
# `muster run` beside a damaged newest checkpoint: without --fallback the launch ends and names the file, with it (or with
# MUSTER_FALLBACK=1) all ranks take the next older one; the program has no word of it.
. "$(dirname "$0")/../lib.sh"

export MUSTER_CHECKPOINT_DIR="$dir/checkpoints-$job" TRAINER_GROUP=$group
run() { # OPTION... - ends with the code of muster run; its output is in run.log
    timeout 120 "$muster" run -n 2 --job "$job" --broker "$broker" --max-failures 0 "$@" -- "$trainer" --sharded 1 \
        --barrier 1 --save-every 25 --steps "$steps" >"$dir/run.log" 2>&1
}

broker_start
steps=60
run || fail "the first run: $(cat "$dir/run.log")"
steps=50
run || fail "a run that finds its work done: $(cat "$dir/run.log")" # and writes a manifest that may be missing
same "committed" "$(committed)" '25 50'
shard=$(echo "$MUSTER_CHECKPOINT_DIR"/50/shard-00001-*)
cp "$shard" "$dir/whole"
spoil() { damage_byte "$shard" -3; }
spoil
steps=60
! run || fail "a damaged checkpoint was restored"
grep -q "${shard##*/}" "$dir/run.log" || fail "no word of the damaged file: $(cat "$dir/run.log")"
same "checkpoints that count, without --fallback" "$(committed)" '25 50'
run --fallback || fail "with --fallback: $(cat "$dir/run.log")"
grep -q 'resumed=25 ' "$dir/run.log" || fail "it did not resume at step 25: $(cat "$dir/run.log")"
same "checkpoints of step 50" "$(query "SELECT state, $gone_back FROM checkpoint WHERE step = 50 ORDER BY round" | xargs)" 'committed|1 committed|0'
shard=$(echo "$MUSTER_CHECKPOINT_DIR"/50.*/shard-00001-*)
spoil
MUSTER_FALLBACK=1 run || fail "with MUSTER_FALLBACK: $(cat "$dir/run.log")"
code=0
MUSTER_FALLBACK=yes run || code=$?
holds "exit code with MUSTER_FALLBACK=yes" "$code" != 0
grep -q 'MUSTER_FALLBACK is "yes"; give 0 or 1' "$dir/run.log" || fail "no word of it: $(cat "$dir/run.log")"
code=0
MUSTER_AZURE_ACKNOWLEDGE=yes run || code=$?
holds "exit code with MUSTER_AZURE_ACKNOWLEDGE=yes" "$code" != 0
grep -q 'MUSTER_AZURE_ACKNOWLEDGE is "yes"; give 0 or 1' "$dir/run.log" || fail "no word of it: $(cat "$dir/run.log")"
finish "a damaged checkpoint ends muster run and is named; --fallback and MUSTER_FALLBACK=1 take the older one, whatever the program says"
