#!/bin/bash
# A manager's broker is killed in the middle and comes back: training goes on, and what any rank told as saved is
# there afterwards. (A rank that waits 4 s in vain goes on without a save that the others may make.)
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_manager.sh"

listen=$ipc
broker_start
options=(--every 2 --step-ms 20)
ranks_start 3 --steps 40
await "some saves" rank_said 0 '^saved 4'
broker_kill
broker_start
ranks_end 0
all=" $(steps_listed 0) "
for rank in 0 1 2; do
    for step in $(steps_saved "$rank"); do
        case $all in *" $step "*) ;; *) fail "rank $rank told step $step as saved, but listed are:$all" ;; esac
    done
done
says "$all" ' 38 $' # the last one, by the new broker
ranks_start 3 --steps 1
ranks_end 0
each_has resumed 38

# The program is over and closes while its last save is written behind it; meanwhile the broker is killed. One that comes
# back at once, or after it was missed, commits the save.
options=(--every 1 --behind 1 --save-ms 1500 --close 1)
for missed in '^closing' 'no broker was heard for'; do
    job=closing-${#missed}
    ranks_start 2 --steps 1
    for rank in 0 1; do await "rank $rank to close" rank_said $rank '^closing'; done
    not rank_said 0 '^closed' || fail "rank 0 did not wait for its save"
    broker_kill
    for rank in 0 1; do await "rank $rank: $missed" rank_said $rank "$missed"; done
    broker_start
    ranks_end 0
    for rank in 0 1; do rank_said $rank '^closed MUSTER_OK' || fail "rank $rank lost its save: $(cat "$(log $rank)")"; done
    same "what is committed" "$(committed)" 1
    ranks_start 2 --steps 1
    ranks_end 0
    each_has resumed 0
done
finish "the broker was killed between saves: training went on, every step that was told as saved is there, and the last is resumed from" \
    "a manager that closes while its last save is written waits for a broker that is started again: the save is committed"
