#!/bin/bash
# A manager's restore through a broker: back to an older step for all ranks, damage that is named, a fallback only
# where it is asked for; saves that fail; policies that the broker and the chief's own function decide.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

reader() { MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" "$@"; }

listen=$ipc # where it is again after its kill
broker_start
job=back options=(--every 1)
ranks_start 3 --steps 5
ranks_end 0
ranks_start 3 --steps 4 --restore 2
ranks_end 0
each_has resumed 2
all_have_saved 3
listed '0 1 2 3' # 3 is a new one, and 4 counts no more
alone() { MUSTER_CHECKPOINT_DIR=$dir/checkpoints-$job "$TESTS_DIR/proc/prog_reader" "$@"; }
same "what a reader of the directory lists" "$(alone list)" '0 1 2 3'
says "$(alone restore -1)" 'restored 3'
says "$(alone restore 4 || true)" MUSTER_E_NOT_FOUND superseded
ranks_start 3 --steps 5
ranks_end 0
each_has resumed 3
ranks_start 3 --restore 7
ranks_end 1
says "$(error_of 1)" MUSTER_E_NOT_FOUND 'no checkpoint of step 7'
same "generations after a restore of what is not there" "$(query "SELECT max(generation) FROM generation WHERE job = 'back'")" 3

job=branch options=(--every 1 --keep-latest 9) # what was given up goes as the new branch comes as far
there_is() { [ "$(cd "$dir/checkpoints-$job" && printf '%s\n' * | sort -V | xargs)" = "$*" ]; }
ranks_start 1 --steps 5
ranks_end 0
"$muster" pin 5 --job "$job" --broker "$broker" >"$dir/pin.txt" || fail "$(cat "$dir/pin.txt")"
ranks_start 1 --steps 6 --restore 1 --insist 1 --gate "$dir/go"
touch "$dir/go2"
await "step 2 of the new branch, and not of the old one" there_is 0 1 2.2-6 3 4
broker_kill
broker_start
touch "$dir/go3"
await "the same of step 3, by a broker that was started anew" there_is 0 1 2.2-6 3.2-7 4
touch "$dir/go4"
await "step 4 beside the one that is pinned" there_is 0 1 2.2-6 3.2-7 4 4.2-8
"$muster" unpin 5 --job "$job" --broker "$broker" >"$dir/pin.txt" || fail "$(cat "$dir/pin.txt")"
await "the pinned one to go" there_is 0 1 2.2-6 3.2-7 4.2-8
touch "$dir/go5"
ranks_end 0
ranks_start 1 --steps 7
ranks_end 0
each_has resumed 5
listed '0 1 2 3 4 5 6'
on_disk 0 1 2.2-6 3.2-7 4.2-8 5 6

job=moved options=(--every 1) # the whole directory, since the broker wrote down where its checkpoints are
ranks_start 2 --steps 4
ranks_end 0
mv "$dir/checkpoints-$job" "$dir/elsewhere"
says "$(reader restore -1 2>&1 || true)" "checkpoints-$job/3"
says "$(MOVED_TO=$dir/elsewhere reader restore -1)" 'restored 3'
same "what a reader lists that knows where it is" "$(MOVED_TO=$dir/elsewhere reader list)" '0 1 2 3'
checkpoints=$dir/elsewhere
ranks_start 2 --steps 6 --keep-latest 2
ranks_end 0
each_has resumed 3
on_disk 4 5
not [ -e "$dir/checkpoints-$job" ] || fail "the former place was made again"
mv "$dir/elsewhere" "$dir/away" # and nobody says where to: what the launch makes is in nobody's way
checkpoints=$dir/elsewhere
for ranks in 1 4 4 4; do # any of them may have made it, or a part of it
    ranks_start $ranks --steps 8
    ranks_end 1
    for ((rank = 0; rank < ranks; rank++)); do
        says "$(error_of $rank)" MUSTER_E_RESTORE 'it is not there' 'moved or is not mounted'
    done
    not [ -e "$dir/elsewhere" ] || fail "an empty directory is in the way of what is put back, left by $ranks ranks"
done
mv "$dir/away" "$dir/elsewhere"
ranks_start 2 --steps 8
ranks_end 0
each_has resumed 5
unset checkpoints

job=damaged options=(--every 1)
ranks_start 2 --steps 4
ranks_end 0
shard=$(echo "$dir/checkpoints-$job"/3/shard-*)
damage_byte "$shard" -1
ranks_start 2 --steps 5
ranks_end 1
says "$(error_of 0)" MUSTER_E_RESTORE /3 checksum
ranks_start 2 --steps 5 --fallback 1
ranks_end 0
each_has resumed 2
for rank in 0 1; do rank_said "$rank" '^restored 2 .*fell_back=1' || fail "rank $rank does not say that it fell back"; done
for rank in 0 1; do
    rank_said "$rank" 'log 1: restored step 2: a newer checkpoint could not be restored: .*/3' || fail "the log of rank $rank does not say it"
done
all_have_saved '3 4'

job=fails options=(--every 2 --fail-rank 0 --fail-step 4)
ranks_start 3 --steps 9
ranks_end 0
all_have_saved '0 2 6 8'
listed '0 2 6 8'
for rank in 0 1 2; do says "$(error_of "$rank")" 'step 4 was not saved' 'save_fn returned 5' 'peer=0'; done
on_disk 0 2 6 8
says "$(reader restore 4 || true)" MUSTER_E_NOT_FOUND 'step 4 is unfinished' failed

job=function options=(--function-every 3 --step-ms 20 --ask 1)
ranks_start 3 --steps 12
ranks_end 0
same_on_all "answers of should_save" 's/^should //p'
same_on_all "steps saved" 's/^saved //p'
listed "$said"
holds "saves of a function that wants every third step" "$(wc -w <<<"$said")" -ge 3 # one a second was all there were
rank_said 0 '^function asked of 3' || fail "the chief's function was not asked"
not rank_said 1 'function asked' || fail "another rank's function was asked"
same "causes of function" "$(query "SELECT DISTINCT cause FROM checkpoint WHERE job = 'function'")" period

job=once options=(--function-every 1000 --step-ms 20) # its one yes is one save
ranks_start 2 --steps 60
ranks_end 0
same_on_all "steps saved" 's/^saved //p'
same "saves of a function that says yes once" "$(wc -w <<<"$said")" 1

job=period options=(--period-ms 500 --step-ms 20 --ask 1)
ranks_start 3 --steps 150
ranks_end 0
same_on_all "answers of should_save" 's/^should //p'
same_on_all "steps saved" 's/^saved //p'
holds "saves by time of job $job" "$(wc -w <<<"$said")" -ge 2
same "saves that came sooner than 500 ms after the one before" "$(gaps 'b.opened_unix_ms - a.decided_unix_ms >= 499')" 0
listed "$said"

finish "all ranks go back to an older step, and the newer ones count no more; a step that is not there changes nothing" \
    "what was left behind is deleted as the new branch comes as far, over a kill of the broker, unless it is pinned" \
    "damage is named; a fallback only where asked, and told; a save that fails is told to all, leaves nothing, and training goes on" \
    "a function is asked on the chief alone and a period by the broker: the answers are the same on every rank"
