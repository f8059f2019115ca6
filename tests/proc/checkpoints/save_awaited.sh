#!/bin/bash
# While a freeze waits for a rank that stands still, everything that people look at names it.
. "$(dirname "$0")/../lib.sh"

stops() { kill -STOP "${pids[1]}" && stopped_ms=$(now_ms); }
# A freeze lasts two seconds, so a look may come between two of them; and who stands for five seconds is lost.
names_it() {
    if passed_ms "$stopped_ms" 3000; then
        kill -CONT "${pids[1]}"
        "$muster" save --wait --broker "$broker" --job "$job" --timeout "$patience"
        stops
    fi
    "$muster" save --broker "$broker" --job "$job"
    "$muster" status "$job" --broker "$broker" | grep -E "waits for 1 of 2: rank 1 \($(uname -n)\)\$" || return
    "$muster" nodes --job "$job" --broker "$broker" >"$dir/nodes" || return
    grep -E '^ *1 .* awaited' "$dir/nodes" && grep -E '^ *0 .* reported' "$dir/nodes"
}

broker_start
job=awaited options=(--step-ms 4 --say-every 10 --sharded 1)
ranks_start 2 --steps 1000000
await "the ranks to step" rank_said 1 '^at step'
stops
await "status and nodes to tell whom the freeze waits for" names_it
kill -CONT "${pids[1]}"
kill -TERM "${pids[0]}"
all_preempted
finish "a freeze that lasts tells whom it waits for"
