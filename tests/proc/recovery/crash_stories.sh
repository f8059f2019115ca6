#!/bin/bash
# Each point at which the broker can be killed has a story in crash_points.txt, or a reason why nobody comes by it. Here
# a few kills in stories of failures, withdrawals, deletions and tasks; slow_crash_stories.sh has all of them.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_crash_stories.sh"

points_min=406 # points that a story comes by: may grow, never fall

needs_fail_points
MUSTER_FAIL_POINT=list "$musterd" | sort -u >"$dir/of-the-binary"
grep -v '^#' "$crash_points_list" >"$dir/list"
cut -d' ' -f1 "$dir/list" | sort | diff - "$dir/of-the-binary" >"$dir/difference" ||
    fail "crash_points.txt (<) and the points of musterd (>) differ; a new one needs a story: $(cat "$dir/difference")"
same "what is wrong with crash_points.txt" "$(points_refused "$crash_points_list")" ''
# that is seen: no reason, one that nobody told, one that is for others, one that is for nobody
for wrong in 's/^(persist_before:history never) .*/\1/' 's/^(persist_before:history never) .*/\1 hardly/' \
    's/^(persist_before:history never) .*/\1 unicast/' '/^# computed /s/ - .*//' 's/^(send_after:HINT) never .*/\1 never unicast/' \
    '/^[a-z].* published$/d'; do
    sed -E "$wrong" "$crash_points_list" >"$dir/wrong"
    [ -n "$(points_refused "$dir/wrong")" ] || fail "a list is taken as it is: $wrong"
done
for story in $(cut -d' ' -f2 "$dir/list" | sort -u); do
    case $story in round | never) continue ;; esac
    [[ " $(xargs <<<"$stories") " == *" $story "* ]] || fail "crash_points.txt names the story $story, which nobody tells"
done
points=$(grep -vc ' never ' "$dir/list")
holds "points that a story comes by" "$points" -ge $points_min
lane_start "$dir/abort" story_lane failed_save <<<"kill commit_after:event-not-saved"
lane_start "$dir/cancel" story_lane withdrawn <<<"kill core_after:CANCEL"
lane_start "$dir/delete" story_lane keep <<<"kill send_before:DELETE"
lane_start "$dir/task" story_lane tasks_errors <<<"kill persist_before:task-cancel"
lane_start "$dir/request" story_lane thawed <<<"kill core_after:NOOP"
lane_start "$dir/repeat" story_lane asleep <<<"kill send_before:event-generation-ended"
lanes_end
holds "kills" "$(lane_sum reached)" -eq 6
finish "$points of $(wc -l <"$dir/list") points are come by in some story" \
    "the broker killed in an abort, a withdrawal, a deletion, the cancel of a task, a withdrawn request and a repeat, and started again: each went on to its end"
