#!/bin/bash
# The broker is killed at the boundaries of its loop around report, decision, save and commit, for each cause of a round.
# The points come from the broker itself: a new place in failpoint.def is in this test without an edit. All other points
# (each message, row and event) are in slow_crash_*.sh.
# Rules: R2.1, R9.1.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash.sh"

needs_fail_points
places=$(MUSTER_FAIL_POINT=list "$musterd" | cut -d: -f1 | sort -u)
declare -A layout_of=([termination]=sharded [operator]=replicated [policy]=sharded)
for cause in "${!layout_of[@]}"; do
    (crash_points "$cause" "${layout_of[$cause]}" "$dir/$cause") & lanes+=($!)
done
for lane in "${lanes[@]}"; do
    wait "$lane" || fail "the story without a kill"
done
lanes=()
for cause in "${!layout_of[@]}"; do
    grep -E ':(event-decision|event-commit|REPORT|SAVED|SAVE_AT|checkpoint|pass)$' "$dir/$cause" | grep -v send_ >"$dir/$cause.some"
    for place in $places; do # every place in each story
        case $place in send_* | copy_*) continue ;; esac # by chance: see slow_crash_*.sh; of --shared: shared_take_over.sh
        grep -q " $place:" "$dir/$cause.some" || fail "no point of place $place in a round by $cause"
    done
    crash_lanes_start 2 "$cause" "${layout_of[$cause]}" "$dir/$cause.some"
done
lanes_end
finish "the broker killed at $(lane_sum reached) boundaries (receive, core, persist, commit, publish, sent) in rounds by termination," \
    "operator and policy, and started again: $(lane_sum databases) databases with integrity and invariants, weights bit for bit"
