#!/bin/bash
# A launch whose processes all die in the middle of a save leaves its round unfinished: it is never listed nor restored,
# and the next launch's chief removes it; what is committed, and what is not the job's, stays.
. "$(dirname "$0")/../lib.sh"

root=$dir/checkpoints-$job
gate="$dir/gate"
options=(--sharded 1 --save-fn 1 --save-gate "$gate" --say-every 10 --step-ms 2 --steps 1000000)

broker_start
ranks_start 3
await "step 10" rank_said 0 'at step 10$'
"$muster" save --broker "$broker" --job "$job" --wait >/dev/null || fail "the first save"
first=$(committed)
touch "$gate"
"$muster" save --broker "$broker" --job "$job" >/dev/null
for rank in 0 1 2; do await "rank $rank in its save" rank_said "$rank" '^in the save of step'; done
left=$root/.muster/1-2
await "the round's directory" test -e "$left/ROUND"
for rank in 0 1 2; do kill -KILL "${pids[rank]}"; done
for rank in 0 1 2; do rank_ends "$rank" 137; done
rm "$gate"
[ -d "$left" ] || fail "nothing was left: the test tests nothing"
mkdir -p "$root/.muster/1-77" "$root/.muster/notes" # no round that the broker knows; no round at all

ranks_start 3
await "the next launch" rank_said 0 "at step"
await "what was left to be removed" test ! -e "$left"
same "checkpoints" "$(committed)" "$first"
"$muster" save --broker "$broker" --job "$job" --wait >/dev/null || fail "the next launch's save"
[ -d "$root/.muster/1-77" ] || fail "a directory that the broker knows nothing of is gone"
[ -d "$root/.muster/notes" ] || fail "a directory of somebody else's is gone"
ask verify --broker "$broker" >/dev/null || fail "what is committed is not whole"
same "trash" "$(find "$root/.muster" -name 'trash-*' | wc -l)" 0
for rank in 0 1 2; do kill -TERM "${pids[rank]}"; done
ranks_end 42
each_has resumed "$first"
finish "a round whose processes all died is not listed, not restored, and removed by the next launch; nothing else is"
