#!/bin/bash
# A process without a broker that is killed in the middle of a save leaves its round: the next one removes it, but never
# that of one which still lives.
. "$(dirname "$0")/../lib.sh"

root=$dir/checkpoints-$job
gate="$dir/gate"
broker=ipc://$dir/nobody
not_checked=1 # there is no database
options=(--offline 1 --connect-ms 50 --save-fn 1 --say-every 10 --step-ms 2 --save-every 100)
rounds() { find "$root/.muster" -maxdepth 1 -name '[0-9]*-*' | wc -l; }

touch "$gate"
ranks_start 1 --steps 100000 --save-gate "$gate"
await "its save" rank_said 0 '^in the save of step'
same "rounds that are written" "$(rounds)" 1
lives=${pids[0]}

# while that one lives another comes and goes
ranks_start 1 --steps 50
ranks_end 0
rank_said 0 'another process without a broker uses this checkpoint directory' || fail "it was not told of the other one"
same "rounds that are written by the one that lives" "$(rounds)" 1
kill -KILL "$lives"
wait "$lives" 2>/dev/null || true
same "rounds that are left by the kill" "$(rounds)" 1
mkdir -p "$root/.muster/1-77" # nobody's

ranks_start 1 --steps 250
ranks_end 0
each_has resumed 0
same "rounds that are left" "$(cd "$root/.muster" && echo [0-9]*-*)" 1-77
same "checkpoints" "$(cd "$root" && ls | sort -n | xargs)" '100 200'

finish "what a killed process without a broker left unfinished is removed by the next one, and never that of one that lives"
