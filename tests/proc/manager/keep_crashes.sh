#!/bin/bash
# A chief is killed in the middle of its deletions, and the broker: nothing that is half deleted is ever listed, and
# what was decided is done after the restart of either.
# Rules: R12.7.
. "$(dirname "$0")/../lib.sh"
trainer=$TESTS_DIR/proc/prog_keep
listen=$ipc
job=keep

deleted() { query "SELECT count(*) FROM checkpoint WHERE state = 'deleted'"; }
deleted_at_least() { [ "$(deleted)" -ge "$1" ]; }

# Every checkpoint that is listed is whole, byte by byte.
chief_is_killed() {
    kill -KILL "${pids[0]}"
    rank_ends 0 137
    ask verify --broker "$broker" >"$dir/verify.txt" || fail "$(cat "$dir/verify.txt")"
}

broker_start
ranks_start 1 'latest 2' '' '' 100000 0
await "deletions" deleted_at_least 5
chief_is_killed
ranks_start 1 'latest 2' '' '' 100000 0
await "deletions of the next launch" deleted_at_least $(($(deleted) + 5))
for turn in 1 2 3; do
    broker_kill
    broker_start
    await "deletions after the broker's restart" deleted_at_least $(($(deleted) + 5))
done
chief_is_killed
ranks_start 1 'latest 2' '' old 100000 0 # and while they are moved to a folder
await "moves" deleted_at_least $(($(deleted) + 5))
chief_is_killed
for moved in "$dir/checkpoints-$job"/old/*; do
    [ -n "$(ls "$moved"/shard-*)" ] || fail "$moved has lost its shard"
    round=${moved##*-}
    [ -f "$moved/manifest.json" ] || # unless its chief died before it had written it, so that it has no name
        same "the name of checkpoint $round, which was moved without a manifest" \
            "$(query "SELECT path FROM checkpoint WHERE job = '$job' AND round = $round")" ''
done
last=$(committed)
ranks_start 1 'latest 2' '' '' 2 0
ranks_end 0
holds "checkpoints kept at the end" "$(committed | wc -w)" = 2
holds "steps kept at the end" "${last##* }" -lt "$(committed | cut -d' ' -f2)"
same "directories" "$(cd "$dir/checkpoints-$job" && ls -d [0-9]* | sort -n | xargs)" "$(committed)"
same "deletions that wait" "$(query "SELECT count(*) FROM checkpoint WHERE state = 'deleting'")" 0
same "leftovers" "$(find "$dir/checkpoints-$job/.muster" -name 'trash-*' | wc -l)" 0
finish "chief and broker killed in the middle of deletions: all that is listed is whole, and two are kept at the end"
