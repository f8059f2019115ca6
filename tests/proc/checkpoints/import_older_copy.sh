#!/bin/bash
# The broker's database is restored from a copy that lists a checkpoint which was deleted since: the launch ends at once and
# says what to do, with nothing newer on disk; a newer one it imports, and the next launch resumes from that.
# Rules: R11.6.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_put_back.sh"
trainer=$TESTS_DIR/proc/prog_keep
root=$dir/checkpoints-$job
keep='latest 1'

on_disk() { [ "$(ls "$root" | sort -n | xargs)" = "$*" ]; }

broker_start
ranks_start 1 "$keep" '' '' 2 0
ranks_end 0
await "step 1 to be deleted" on_disk 2
broker_stop
records_keep
broker_start
ranks_start 1 "$keep" '' '' 2 0
ranks_end 0
await "steps 2 and 3 to be deleted" on_disk 4
broker_stop
records_put_back
broker_start
says "$(cat "$dir/musterd.log")" 'was restored from an older copy; saves that were open in that copy were given up'
mv "$root/4" "$dir/newer"
ranks_start 1 "$keep" '' '' 2 0
ranks_end 1
says "$(cat "$(log 0)")" "checkpoint $root/2 was not restored at rank 0: it is not there" "muster import $root"
mv "$dir/newer" "$root/4"
ranks_start 1 "$keep" '' '' 2 0
ranks_end 42
says "$(cat "$(log 0)")" "$root/4 is there" '1 checkpoint of job job was imported'
ranks_start 1 "$keep" '' '' 1 0
ranks_end 0
says "$(cat "$(log 0)")" '^resumed 4'
await "what is listed and what is on disk to be the same" on_disk 5
same "committed" "$(query "SELECT step FROM checkpoint WHERE state = 'committed'")" 5
finish "an older copy of the database that lists a deleted checkpoint: the launch says what to do, or imports a newer one, and then the job resumes from that"
