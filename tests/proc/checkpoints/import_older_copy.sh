#!/bin/bash
# The broker's database is restored from a copy that lists a checkpoint which was deleted since: the launch ends at once and
# says what to do, with nothing newer on disk and with a newer one; after `muster import` the next one resumes from that.
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
says "$(cat "$dir/musterd.log")" 'was restored from a copy that is older'
mv "$root/4" "$dir/newer"
ranks_start 1 "$keep" '' '' 2 0
ranks_end 1
says "$(cat "$(log 0)")" "checkpoint $root/2 was not restored at rank 0: it is not there" "muster import $root"
mv "$dir/newer" "$root/4"
ranks_start 1 "$keep" '' '' 2 0
ranks_end 1
says "$(cat "$(log 0)")" "has this launch resume at step 2" "$root/4 is there" "muster import '$root'"
"$muster" import "$root" --broker "$broker" >"$dir/import.txt"
says "$(cat "$dir/import.txt")" '^1 checkpoints? of job job'
ranks_start 1 "$keep" '' '' 1 0
ranks_end 0
says "$(cat "$(log 0)")" '^resumed 4'
await "what is listed and what is on disk to be the same" on_disk 5
same "committed" "$(query "SELECT step FROM checkpoint WHERE state = 'committed'")" 5
finish "an older copy of the database that lists a deleted checkpoint: the launch says to import, and then the job resumes from the newest"
