#!/bin/bash
# A manager's saves at the steps that its policies name, through a broker, three ranks: the same answer on every
# rank, on disk and in the list, and after the job is opened again.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

broker_start
job=interval # of 2 over 6
options=(--every 2)
ranks_start 3 --steps 6
ranks_end 0
all_have_saved '0 2 4'
listed '0 2 4'
on_disk 0 2 4
ranks_start 3 --steps 9
ranks_end 0
each_has resumed 4
all_have_saved '6 8'
listed '0 2 4 6 8'
same "steps done of the checkpoints" "$(committed)" '1 3 5 7 9'

job=given # and an interval that hits 0 alone
options=(--given 1,3,5 --every 10000 --ask 1)
ranks_start 3 --steps 7
ranks_end 0
all_have_saved '0 1 3 5'
for rank in 0 1 2; do
    same "answers of rank $rank" "$(sed -n 's/^should //p' "$(log "$rank")" | xargs)" '0 1 1 1 2 0 3 1 4 0 5 1 6 0'
done
listed '0 1 3 5'
on_disk 0 1 3 5
ranks_start 3 --steps 9
ranks_end 0
each_has resumed 5
all_have_saved ''
listed '0 1 3 5'

job=preempted # interval 4, preempted at 2, ten steps
options=(--every 4 --steps 10)
ranks_start 3 --signal-rank 1 --signal-step 2
ranks_end 42
all_have_saved '0 2'
ranks_start 3
ranks_end 0
each_has resumed 2
all_have_saved '4 8'
listed '0 2 4 8'
on_disk 0 2 4 8

job=names
options=(--first 1 --prefix step_ --digits 4)
ranks_start 2 --steps 4 --force 2 # the first one always, and what is forced
ranks_end 0
all_have_saved '0 2'
on_disk step_0000 step_0002
ranks_start 2 --steps 5 --ask 1
ranks_end 0
each_has resumed 2
all_have_saved ''
on_disk step_0000 step_0002

job=late # rank 0 saves for all, and has committed when the others come to their save
options=(--every 2 --skew-ms 60 --look 1)
ranks_start 3 --steps 5
ranks_end 0
all_have_saved '0 2 4'
ranks_start 3 --steps 7 --force 5
ranks_end 0
all_have_saved '5 6'
ranks_start 3 --steps 9 --ask 1
ranks_end 0
all_have_saved 8
ranks_start 3 --steps 11 --ask 1 --force 9 # begin_save at 9
ranks_end 0
all_have_saved '9 10'
listed '0 2 4 5 6 8 9 10'

job=sharded
options=(--every 3 --sharded 1 --look 1)
ranks_start 3 --steps 5
ranks_end 0
all_have_saved '0 3'
ranks_start 3 --steps 7 --ask 1
ranks_end 0
each_has resumed 3
all_have_saved '6'

finish "interval 2 over 6 saves 0 2 4; steps 1 3 5 with interval 10000 save 0 1 3 5; interval 4 preempted at 2 saves 0 2 4 8" \
    "should_save gives the same answers on every rank, and save does what it said" \
    "what is told of a step as soon as it is saved is where it stays" \
    "a rank that comes late to a step that is committed is told the same as the others" \
    "names with prefix and digits; first and forced saves; replicated and sharded; all of it after a restart"
