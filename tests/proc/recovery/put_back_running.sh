#!/bin/bash
# A copy of the database that was made while the job ran is put back: while it runs still, and it dies before it saves again;
# and a copy that was made while a round was decided, which is then committed. In both the next launch does not go on from
# the older checkpoint: it imports what was forgotten, under the numbers that were jumped over or that were aborted since,
# and the job resumes from the newest.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
is_running() { [ "$(query "SELECT state FROM job WHERE job = '$job'")" = running ]; }

job=running
broker_start
kept_at_20
ranks_start 1 --steps 1000000 --step-ms 20
await "the launch to run" rank_said 0 '^opened'
saves
saves
newest=$(query "SELECT max(step) FROM checkpoint")
broker_kill
records_put_back
broker_start
two_saves_are_found

# The import comes before the job's processes have found the broker again: they go on.
job=first
kept_at_20
ranks_start 1 --steps 1000000 --step-ms 20
await "the launch to run" rank_said 0 '^opened'
saves
newest=$(query "SELECT max(step) FROM checkpoint WHERE job = '$job'")
broker_kill
records_put_back
kill -STOP "${pids[0]}"
broker_start
import_as_told 1 "muster import '$dir/checkpoints-$job'"
same "the launch that was found" "$(query "SELECT generation, state FROM generation WHERE job = '$job' AND end_text = 'found on disk'")" '2|ended'
kill -CONT "${pids[0]}"
await "the launch to be taken over" is_running
saves
again=$(query "SELECT max(step) FROM checkpoint WHERE job = '$job' AND state = 'committed'")
[ "$again" -gt "$newest" ] || fail "the launch that was taken over saved nothing new"
kill_child "${pids[0]}" "rank 0"
await "the launch to be over" has_ended
saved=$again
ranks_start 1 --steps $((again + 10))
all_finished $((again + 10))

job=decided
second_save_is_decided
broker_kill
records_keep
broker_start
saved=20
all_finished 50
same "committed" "$(committed)" "20 40"
broker_stop
records_put_back
broker_start
on_disk 40 || fail "what was committed is not there"
ranks_start 1 --steps 60 # the one before it is taken for lost, and its round for aborted
imports 1 40
same "committed" "$(committed)" "20 40"
says "$(query "SELECT round, state, reason FROM round WHERE job = '$job' AND step = 40")" '^2\|committed\|found on disk$'
rules_hold I1_shards I1_required I1_round I1_files I4_decided I4_step I4_ended I4_undecided I5_ended I5_reason
says "$("$muster" why --job "$job" --broker "$broker" round 2)" 'Round 2 was found on disk'
saved=40
ranks_start 1 --steps 60
all_finished 60
finish "a copy of the database that was made while the job ran, or while a round was decided, loses no checkpoint: the next launch imports all"
