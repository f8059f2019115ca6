#!/bin/bash
# One of two brokers is told to end while the answer to its last batch is lost. It ends, and does not begin again: the
# other one takes over, and the job is preempted and finishes there.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_shared.sh"

postgres_start
listen_of=([a]="ipc://$dir/a.sock" [b]="ipc://$dir/b.sock")
both=${listen_of[a]},${listen_of[b]}
options=(--steps 400 --barrier 1 --save-every 5)
job=doubted
stopped() { grep -q "^State:.T" "/proc/$1/status"; }
trains() { [ 0 != "$(query "SELECT count(*) FROM progress WHERE job = '$job' AND done > 0")" ]; }

sharer_start a
sharer_is_active a
sharer_start b
sharer_says b 'standby: musterd at .* is the active broker'
ranks_start 2 --step-ms 20 --signal-rank 1 --signal-step 300
await "its first step" trains
kill -STOP "${broker_pids[a]}"
await "the stop" stopped "${broker_pids[a]}"
asked "WITH fence AS (UPDATE muster_lease SET seq = seq + 1 RETURNING epoch, seq)
    INSERT INTO muster_batch SELECT seq, epoch, ''::bytea FROM fence" # as one whose answer was lost
kill -TERM "${broker_pids[a]}"
kill -CONT "${broker_pids[a]}"
sharer_ends a 0
holds "times that it said why its last inputs were not written" "$(times_said a 'answer to the last one was lost')" -le 1
sharer_is_active b
all_preempted
committed_whole 300
ranks_start 2 --step-ms 1
all_finished 400
finish "a broker that is told to end ends, also when it does not know what became of its last batch"
