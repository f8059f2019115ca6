#!/bin/bash
# The user's termination_watcher_fn is a source of notices, and so is `muster notify`.
. "$(dirname "$0")/../lib.sh"

broker_start
"$muster" events --follow --job "$job" --broker "$broker" >"$dir/followed" 2>"$dir/follower.log" &
started+=($!)
await "the follower to wait for the job" grep -q "knows no job \"$job\" yet: waiting for it" "$dir/follower.log"
options=(--steps 300 --barrier 1 --say-every 20 --watch-file "$dir/notice")
ranks_start 3
await "step 20" rank_said 1 'at step 20$'
touch "$dir/notice"
all_preempted
committed_whole "$saved"
same_why
says "$story" termination_watcher_fn "step $saved"
rm "$dir/notice"
ranks_start 3
first=$saved
await "40 more steps" rank_said 1 "at step $((first / 20 * 20 + 40))\$"
await "the follower's lines" grep -q 'generation opened' "$dir/followed"
"$muster" notify 2 --grace 1.5 --text 'rack 7 goes down' --broker "$broker" --job "$job" >"$dir/answer"
all_preempted
each_has resumed "$first"
holds "steps between the two saves" "$saved" -gt "$first"
committed_whole "$saved"
same_why
says "$story" 'rack 7 goes down \(1\.5 s were told: too short to save in\)' "step $saved"
says "$(cat "$dir/answer")" '1\.5 s is too short to save in: all save at once, as if no time had been told \(30\.0 s are assumed\)'
ranks_start 3
all_finished 300
finish "termination_watcher_fn and muster notify: all save at one step, leave, resume there; why tells who said it, and that the time was too short" \
    "muster events --follow waits for a job that is not known yet"
