#!/bin/bash
# A key whose messages would fill the broker's disk is refused before the disk is full. A job beside it saves as if the disk
# were empty.
. "$(dirname "$0")/../lib.sh"

cd "$dir"
needs_tmpfs "$dir/small" 12m
db=$dir/small/muster.db
for name in own foreign; do
    "$muster" key add $name --job $name --db "$db" >/dev/null || fail "no key"
done
"$muster" key add all --job '*' --role operator --db "$db" >/dev/null || fail "no key"
broker_start

free_bytes() { df --output=avail -B 1 "$dir/small" | tail -n 1; }
refused() { broker_counted refused_share; } # messages of a key that had its share of the disk
is_refused() { [ "$(refused)" -ge 100 ]; }
stepping() { rank_said 0 '^at step' && rank_said 1 '^at step'; }

before=$(free_bytes)
mkfifo hold
"$TESTS_DIR/proc/prog_stranger" orders "$broker" foreign.key foreign 4 <hold >stranger.out 2>&1 &
attack=$!
started+=("$attack")
exec 8>hold
await "the key to be refused" is_refused
left=$(free_bytes)
holds "bytes that are left of $before" "$left" -ge $((before / 4))
told_why() { rank_said 0 'had as much written today as is free.*make room'; }
job=foreign options=()
MUSTER_KEY_FILE=$dir/foreign.key ranks_start 1 --steps 1 --connect-ms 1000 --open-ms 5000
await "the key's own rank to hear why" told_why

job=own options=(--step-ms 20 --barrier 1 --say-every 5)
export MUSTER_KEY_FILE=$dir/own.key
ranks_start 2 --steps 1000000
await "the ranks to step" stepping
kill -TERM "${pids[1]}"
all_preempted
committed_whole "$saved"
unset MUSTER_KEY_FILE
exec 8>&-
wait "$attack" || fail "the stranger ended badly: $(cat stranger.out)"
grep -q 'full\|cannot be written' musterd.log && fail "the disk was full: $(cat musterd.log)"
finish "a key wrote $(((before - left) / 1024)) KiB of $((before / 1024)) and was refused $(refused) times; a job beside it saved"
