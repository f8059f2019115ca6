#!/bin/bash
# A rank is killed, stopped for a while, or stopped until it is lost, at each phase of a termination's round.
# Here each phase and fault in one layout; slow_node_faults.sh has both.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_node_faults.sh"

needs_fail_points
turn=0
for phase in $phases; do
    for fault in kill stop long; do
        layout=sharded
        [ "$phase" = saved_first ] || [ $((turn++ % 2)) = 0 ] || layout=replicated
        lane_start "$dir/$phase-$fault-$layout" node_fault "$phase" "$fault" "$layout"
        [ ${#lanes[@]} -lt 8 ] || wait -n || true # so many at once; lanes_end tells how each ended
    done
done
lanes_end
finish "a rank killed, stopped for 1 s and stopped until it was lost, at each of $(wc -w <<<"$phases") phases: $(lane_sum faults) faults," \
    "$(lane_sum owed) checkpoints committed all the same, everybody ended, all resumed bit for bit, invariants hold"
