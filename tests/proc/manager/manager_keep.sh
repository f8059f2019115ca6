#!/bin/bash
# What a manager's policies keep, through a broker, on disk and after the job is opened again; metrics, the best
# step, deletion; readers that list, restore, follow and hold on to a checkpoint.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

# read_as WHAT... - a reader of the job.
reader() { MUSTER_JOB=$job MUSTER_BROKER=$broker "$TESTS_DIR/proc/prog_reader" "$@"; }

# kept STEPS - listed by the broker, and on disk; the directories go in the background.
kept() {
    same "what a reader lists of job $job" "$(reader list)" "$*"
    await "the deleted directories of job $job to be gone" disk_has "$@"
}
disk_has() { [ "$(cd "$dir/checkpoints-$job" && ls | sort -n | xargs)" = "$*" ]; }

# twice STEPS KEPT... - half of the steps in one life, the rest in another, and between them the broker's death.
twice() {
    local steps=$1

    shift
    ranks_start 2 --steps $((steps / 2))
    ranks_end 0
    broker_kill
    broker_start
    ranks_start 2 --steps "$steps"
    ranks_end 0
    kept "$@"
}

broker_start
job=two options=(--every 1 --keep-latest 2)
twice 5 3 4
job=four options=(--every 2 --keep-latest 2 --keep-every 4)
twice 12 0 4 8 10
job=near options=(--given 0,1,2,4,5,8,9,13,14,25 --keep-near 3)
twice 26 0 4 8 13 25

job=best options=(--every 1 --keep-best 2 --keep-latest 1) # loss is (step - 3) squared
ranks_start 2 --steps 6
ranks_end 0
kept 3 4 5
same "the best step" "$(reader best least)" 3 # and 4, the newer of 2 and 4, which are equal
says "$(reader metadata 4)" '"loss": *1' 'made at.*step 4' 'epoch=1'
same "the worst step" "$(reader best greatest)" 5
same "what is restored" "$(reader restore 3)" 'restored 3 right'
says "$(reader restore 2 || true)" MUSTER_E_NOT_FOUND 'step 2 is delet'
same "the latest step" "$(reader latest)" 5
same "the loss of step 4" "$(reader metric 4 loss)" 1
says "$(reader metric 4 gain || true)" MUSTER_E_NOT_FOUND
same "the same after the job was opened again" "$(
    ranks_start 2 --steps 7
    ranks_end 0
    kept 3 4 6
    reader best least
    reader latest
    reader metric 6 loss
    reader metadata 4
)" '3
6
9
{"loss":1} {"made at":"step 4"} epoch=1'
same "a newer one than step 4" "$(reader wait 4 1000)" 6
says "$(reader wait 6 100 || true)" MUSTER_E_TIMEOUT
same "lists while one is pinned, and after" "$(reader twice 3)" '3* 4 6
3 4 6'
same "a forked child's calls, and what is pinned after its close" "$(reader fork 3)" 'child 0
3* 4 6'

job=zero options=(--every 1 --keep-latest 0)
ranks_start 2 --steps 3
ranks_end 0
says "$(steps_listed 0)" '^([01] )*2$' # before the close; the one before goes once its manifest is written
kept '' # the newest too, since the job is done

job=held options=(--every 1 --keep-latest 1)
ranks_start 2 --steps 1
ranks_end 0
reader hold 0 60000 "$dir/go" >"$dir/held.log" &
holder=$!
started+=("$holder")
await "the reader's pin" grep -q held "$dir/held.log"
ranks_start 2 --steps 3
ranks_end 0
same "what is listed while one is held" "$(reader list)" '0* 2'
same "what is restored while it is held" "$(reader restore 0)" 'restored 0 right'
ranks_start 2 --steps 1000000 --step-ms 20 # a job that runs, so that somebody can delete
await "a further checkpoint" rank_said 0 '^saved 4'
says "$(reader list)" '^0\*'
touch "$dir/go"
wait "$holder" || fail "the reader that held failed"
listing_has() { reader list | grep -q -- "$1"; }
await "step 0 to go once nobody holds it" not listing_has '^0'
says "$(reader hold -1 300 -)" '^held [0-9]+$' # a reader that dies holds nothing for longer than its lease
await "the lease to fall" not listing_has '[*]'
reader follow 3 >"$dir/follow.txt" || fail "a reader that follows: $(cat "$dir/follow.txt")"
same "what a reader met that follows" "$(sed 's/ [0-9]* / /; s/ [0-9]*$//' "$dir/follow.txt" | xargs)" 'new restored right new restored right new restored right'
sed -n 's/^new //p' "$dir/follow.txt" | sort -nuc || fail "steps that are not rising: $(cat "$dir/follow.txt")"
kill -TERM "${pids[1]}"
ranks_end 42

job=deleted options=(--every 1)
ranks_start 2 --steps 4 --delete 1
ranks_end 0
kept 0 2 3
ranks_start 2 --steps 5 --delete 4 # the newest stays
ranks_end 0
kept 0 2 3 4
says "$(error_of 0)" MUSTER_E_BUSY 'step 4 stays: it is the newest'

finish "keep 2 over 5; keep 2 and every 4 with interval 2 over 12; every 3 from the last kept: kept as they should, on disk too" \
    "best by metric, custom metadata, keep 0, deletion of one; a pinned one stays, a lease falls, a reader follows"
