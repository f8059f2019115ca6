#!/bin/bash
# As node_faults.sh: each phase and fault in both layouts, ten times.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_node_faults.sh"

needs_fail_points
faults=0 owed=0 count=0
for turn in 1 2 3 4 5 6 7 8 9 10; do
    for phase in $phases; do
        for fault in kill stop long; do
            for layout in sharded replicated; do
                [ "$phase:$layout" != saved_first:replicated ] || continue # one writer: it is the first
                lane_start "$dir/$turn-$phase-$fault-$layout" node_fault "$phase" "$fault" "$layout"
                [ $((++count)) -lt 8 ] || wait -n || true
            done
        done
    done
    lanes_end
    faults=$((faults + $(lane_sum faults))) owed=$((owed + $(lane_sum owed)))
    lanes=() lane_logs=() count=0
done
finish "a rank killed, stopped for 1 s and stopped until it was lost, at each phase, both layouts: $faults faults," \
    "$owed checkpoints committed all the same, everybody ended, all resumed bit for bit, invariants hold"
