#!/bin/bash
# The examples in muster-manager(3) and muster-training(3) do what the pages say: a first launch trains from the start, a
# notice in the middle loses nothing, the second launch goes on there and ends with the model of an uninterrupted run.
# README.md shows a story of the smallest example: the size in it is what the example saves.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

example() { # NAME - two ranks of it under `muster run`
    job=$1
    mkdir "$dir/$job"
    (cd "$dir/$job" && MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job exec "$muster" run -n 2 --job "$job" --broker "$broker" -- \
        "$EXAMPLES_DIR/$job") >"$dir/$job.log" 2>&1 &
    runs[$job]=$!
    started+=("$!")
}
is_deep() { [ "$(query "SELECT count(*) FROM checkpoint WHERE job = '$1' AND step > 100")" -gt 0 ]; }
is_saved() { "$muster" save --wait --job "$1" --broker "$broker" >"$dir/save.log" 2>&1; }
is_over() { not is_ours "${runs[$1]}"; }

# ends JOB - as its page says, after one preemption.
ends() {
    local code=0

    await "the end of job $1" is_over "$1"
    wait "${runs[$1]}" || code=$?
    same "exit code of job $1" "$code" 0
    says "$(cat "$dir/$1.log")" "job $1 finished \(2 launches, 1 preemption, 0 failures\)"
    same "ranks of job $1 that finished with the model of 500 steps" \
        "$(grep -c "finished, model $(awk 'BEGIN { printf "%.4f", 3 - 3 * 0.99 ^ 500 }')" "$dir/$1.log")" 2
}

declare -A runs
broker_start
example manager
example epochs
for each in manager epochs; do
    await "job $each to be in the middle of its first launch" is_deep "$each"
    "$muster" notify 1 --job "$each" --broker "$broker" >/dev/null
done

ends manager
job=manager
saved=$(query "SELECT resume_step FROM generation WHERE job = 'manager' AND generation = 2")
same "ranks that went on where the notice came" "$(grep -c "begun at step $saved\$" "$dir/manager.log")" 2
holds "the step where it came" "$saved" -gt 100
on_disk $(printf '%s\n' 300 400 $((saved - 1)) | sort -nu | tail -n 2) # the last two, of which the last is the best
latest=$("$muster" latest --job manager --broker "$broker") # a step has one number: the program's and the directory's
number=${latest%% *}
same "the step of $latest" "$number" "${latest##*/}"
says "$("$muster" status manager --broker "$broker")" "^  checkpoint    step $number, committed .*/$number\$"
says "$("$muster" checkpoints --job manager --broker "$broker")" "^ +[0-9]+ +$number .*/$number "
says "$("$muster" checkpoints --job manager --broker "$broker" --json | tr -d ' \n')" "\"step\":$number,"
says "$("$muster" events --job manager --broker "$broker")" " commit .* $number\$"
says "$("$muster" why round "$(query "SELECT max(round) FROM checkpoint WHERE job = 'manager' AND step = $((number + 1))")" \
    --job manager --broker "$broker")" "at step $number .* was committed"
"$muster" verify --job manager --broker "$broker" >"$dir/verify.log" || fail "verify says: $(cat "$dir/verify.log")"

ends epochs
saved=$(query "SELECT resume_step FROM generation WHERE job = 'epochs' AND generation = 2")
same "ranks that began with nothing" "$(grep -c 'begins with epoch 0, batch 0, sample 0' "$dir/epochs.log")" 2
same "ranks that went on at the batch where the notice came" \
    "$(grep -c "begins with epoch $((saved / 50)), batch $((saved % 50)), sample $((saved * 32))\$" "$dir/epochs.log")" 2
same "what is left of the back-up" "$(ls "$dir/epochs/backup/chief")" ''

example minimal
await "a save of job minimal" is_saved minimal
bytes=$(query "SELECT bytes FROM checkpoint WHERE job = 'minimal' AND state = 'committed' LIMIT 1")
same "size in README.md's story" "$(sed -n 's/^Checkpoint [0-9]* at step [0-9]* (\(.*\)) was committed .*/\1/p' "$SOURCE_DIR/README.md")" "$bytes B"
kill "${runs[minimal]}"
await "the end of job minimal" is_over minimal
wait "${runs[minimal]}" || true

finish "client/examples/manager.c: first launch, notice, second launch, the model of an uninterrupted run; two are kept" \
    "client/examples/epochs.c: the same to the batch and the sample; its back-up is gone when it has finished" \
    "client/examples/minimal.c: a checkpoint of it has the size that README.md shows"
