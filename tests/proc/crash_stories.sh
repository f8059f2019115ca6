#!/bin/bash
# Each point at which the broker can be killed has a story in crash_points.txt, or is known to be come by in none. Here
# a few kills in stories of failures, withdrawals, deletions and tasks; slow_crash_stories.sh has all of them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_crash_stories.sh"

points_min=385 # points that a story comes by: may grow, never fall

needs_fail_points
MUSTER_FAIL_POINT=list "$musterd" | sort -u >"$dir/of-the-binary"
cut -d' ' -f1 "$crash_points_list" | sort | diff - "$dir/of-the-binary" >"$dir/difference" ||
    fail "crash_points.txt (<) and the points of musterd (>) differ; a new one needs a story: $(cat "$dir/difference")"
for story in $(cut -d' ' -f2 "$crash_points_list" | sort -u); do
    case $story in round | never) continue ;; esac
    [[ " $(xargs <<<"$stories") " == *" $story "* ]] || fail "crash_points.txt names the story $story, which nobody tells"
done
points=$(grep -vc ' never$' "$crash_points_list")
holds "points that a story comes by" "$points" -ge $points_min
lane_start "$dir/abort" story_lane failed_save <<<"kill commit_after:event-not-saved"
lane_start "$dir/cancel" story_lane withdrawn <<<"kill core_after:CANCEL"
lane_start "$dir/delete" story_lane keep <<<"kill send_before:DELETE"
lane_start "$dir/task" story_lane tasks_errors <<<"kill persist_before:task-cancel"
lanes_end
holds "kills" "$(lane_sum reached)" -eq 4
finish "$points of $(wc -l <"$crash_points_list") points are come by in some story" \
    "the broker killed in an abort, a withdrawal, a deletion and the cancel of a task, and started again: each went on to its end"
