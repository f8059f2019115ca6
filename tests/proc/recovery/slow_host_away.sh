#!/bin/bash
# The broker's host loses its power for a minute: nothing ends the connections of its ranks, and what they say is lost. When
# the host is back, they are back within START_GRACE_MS, and none of them is taken for lost.
. "$(dirname "$0")/../lib_network.sh"
. "$(dirname "$0")/../lib.sh"

away_ms=60000
listen=tcp://$here:7700
"$muster" key add all --job '*' --role node --db "$db" --file "$dir/all.key" >/dev/null
export MUSTER_KEY_FILE=$dir/all.key
wire_start 1
broker_start

job=away options=(--step-ms 20 --say-every 10)
far_ranks_start 3 --steps 1000000
await "rank 1 to step" rank_said 1 '^at step'
wire "$cut_both"
broker_kill
ss --kill state all dst "$there" >/dev/null 2>&1 || true # a host without power says nothing more
for half in first second; do
    began_ms=$(now_ms)
    await "the $half half of $away_ms ms" passed_ms "$began_ms" $((away_ms / 2))
done
wire "$good"
broker_start
began_ms=$(now_ms)
kill -TERM "${pids[1]}"
all_preempted
say "all have saved $(($(now_ms) - began_ms)) ms after the broker's host was back"
committed_whole "$saved"
same "lost ranks" "$(query "SELECT count(*) FROM event WHERE job = '$job' AND kind = 'node lost'")" 0
finish "the broker's host was away for $away_ms ms, and no rank was lost"
