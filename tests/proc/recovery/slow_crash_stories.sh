#!/bin/bash
# The broker is killed at every point that the stories of lib_crash_stories.sh have in crash_points.txt.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash_stories.sh"

kills_min=234 # may grow, never fall

needs_fail_points
read -ra told <<<"${CRASH_STORIES:-$(xargs <<<"$stories")}"
story_lanes_start 3 "${told[@]}"
lanes_end
reached=$(lane_sum reached)
[ -n "${CRASH_STORIES:-}" ] || holds "kills" "$reached" -ge $kills_min
finish "the broker killed at $reached points ($(lane_sum missed) by chance not reached) of ${#told[@]} stories of failures, losses," \
    "withdrawals, deletions, imports and tasks, and started again: each story went on to its end, invariants hold in" \
    "$(lane_sum databases) databases"
