#!/bin/bash
# A program that saves by itself between should_save and save: that time is the save's (R5.8), for each writer, in both
# layouts, with a broker and without one. So a notice is planned with it.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"
own_ms=${own_ms:-1500}
patience=$((patience + own_ms / 1000))

# Of the writers of the job's committed rounds: how many there were, and how many took less than the program's own save.
writers() { query "SELECT count(*), coalesce(sum(p.save_ms < $own_ms), 0) FROM participant p JOIN checkpoint c
    ON c.job = p.job AND c.round = p.round AND c.state = 'committed' WHERE p.job = '$job' AND p.writer"; }
own_saves() { # LAYOUT WRITERS
    job=$1
    options=(--ask 1 --own-ms "$own_ms" --progress 1 --given 2 --sharded "$([ "$1" = sharded ] && echo 1 || echo 0)")
    ranks_start 2 --steps 4
    ranks_end 0
    all_have_saved 2
    on_disk 2
    same "rounds of job $job" "$(query "SELECT count(*) FROM round WHERE job = '$job'")" 1
    same "writers of job $job, and those told to be faster" "$(writers)" "$2|0"
}

broker_start
own_saves sharded 2
own_saves replicated 1

job=alone broker=ipc://$dir/nobody
options=(--ask 1 --own-ms "$own_ms" --given 2 --offline 1)
ranks_start 1 --steps 4
ranks_end 0
all_have_saved 2
took=$(sed -n 's/^saves_ms //p' "$dir/checkpoints-alone/.muster/LOCAL")
holds "time of the save of a process alone ($took)" "$took" -ge "$own_ms"

finish "a program that saves by itself is saving from should_save on: its time is measured, and the round waits for it"
