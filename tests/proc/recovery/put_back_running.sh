#!/bin/bash
# A copy of the database that was made before is put back while the job runs: its launch ends. And a copy that was made while a
# round was decided, which is then committed. In both the next launch does not go on from the older checkpoint: it imports what
# was forgotten, under the numbers that were jumped over or that were aborted since, and the job resumes from the newest.
# Rules: R10.1 R10.2.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"

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

# The import comes before the job's processes have found the broker again: they leave, and nothing is lost.
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
ranks_end 42
saved=$newest
ranks_start 1 --steps $((newest + 10))
all_finished $((newest + 10))

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
