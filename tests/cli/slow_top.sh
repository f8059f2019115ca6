#!/bin/bash
# slow_top.sh - `muster top` with ten thousand ranks and with ten thousand jobs, on a small terminal and on a large one.
. "$(dirname "$0")/lib_top.sh"
for kind in ranks jobs; do "$rows" $kind "$dir/$kind.db"; done

# --- 10,000 ranks, small and large, and a window that changes
begin 80 24 top --db ranks.db
await 'each letter the worst of [0-9]+:'
fits 80 24
shows ': x 6 lost' || fail "the lost are not counted"
keys s
await 'sorted by lag'
screen | grep -A1 'RANK  HOST' | tail -n 1 | grep -q '^ *3900 ' || fail "the rank that is behind is not the first"
keys C-c
ends
begin 200 60 top --db ranks.db
await 'each letter the worst of [0-9]+:'
fits 200 60
terminal resize-window -t top -x 100 -y 30
await 'each letter the worst of [0-9]+:'
fits 100 30
keys q
ends

# --- 10,000 jobs: choose, open, go back
begin 80 24 top --db jobs.db
await '10000 jobs, 3334 running'
fits 80 24
shows '^> job-00000 ' || fail "no job is chosen"
keys Down Down
await '^> job-00006 '
keys Enter
await '^job-00006 '
keys Escape
await '10000 jobs'
keys q
ends
echo "ten thousand ranks, and ten thousand jobs, fit a terminal"
