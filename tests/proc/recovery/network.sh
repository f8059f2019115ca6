#!/bin/bash
# A network that delays, loses, repeats and reorders packets, and that is cut: in one direction, in both, for a while and
# until ranks are taken for lost. Every round ends, what can be saved is, and what is resumed is right bit for bit.
. "$(dirname "$0")/../lib_network.sh"
. "$(dirname "$0")/../lib.sh"

jobs_min=6
listen=tcp://$here:7700
"$muster" key add all --job '*' --role node --db "$db" --file "$dir/all.key" >/dev/null
export MUSTER_KEY_FILE=$dir/all.key
seed=${MUSTER_TEST_SEED:-1}
wire_start "$seed"
broker_start

committed_in_time() { # what `all_preempted` leaves, and nobody was given up meanwhile
    committed_whole "$saved"
    same "lost ranks" "$(query "SELECT count(*) FROM event WHERE job = '$job' AND kind = 'node lost'")" 0
}

committed_some() { [ -n "$(committed)" ]; }

# Delay, jitter, loss, duplicates.
for job in bad-replicated bad-sharded; do
    options=(--steps 120 --step-ms 5 --barrier 1 --signal-rank 2 --signal-step 40 --sharded 0)
    [ "$job" = bad-replicated ] || options[-1]=1
    wire 20 20 100 50 0
    far_ranks_start 3
    all_preempted
    committed_in_time
    far_ranks_start 3
    all_finished 120
    same_why
done

# A cut from the moment of the notice on that is shorter than the silence of 5 s: the round waits, and commits.
# A packet lost in it is sent again 0.2, 0.6, 1.4, 3.0 and 6.2 s after: a cut beyond 3 s would be a loss of the rank.
short_ms=1000
for cut in "$cut_from_here" "$cut_to_here" "$cut_both"; do
    job=cut-${cut##* } options=(--step-ms 5 --sharded 1 --barrier 1 --say-every 10)
    wire "$good"
    far_ranks_start 3 --steps 100000
    await "rank 1 to step" rank_said 1 '^at step'
    wire "$cut"
    kill -TERM "${pids[1]}" # behind the cut
    began_ms=$(now_ms)
    await "$short_ms ms" passed_ms "$began_ms" "$short_ms"
    wire "$good"
    all_preempted
    committed_in_time
    far_ranks_start 3 --steps $((saved + 40))
    all_finished $((saved + 40))
done

# A cut until the ranks behind it are taken for lost. They train on, and are told when they are heard again.
job=lost options=(--step-ms 5 --sharded 1 --say-every 10)
wire "$good"
far_ranks_start 3 --steps 100000 --save-every 50
await "a checkpoint" committed_some
wire "$cut_both"
await "the end of rank 0" rank_is_gone 0
rank_ends 0 1
says "$(error_of 0)" 'MUSTER_E_PEER'
wire "$good"
for rank in 1 2; do
    rank_ends "$rank" 1
    says "$(error_of "$rank")" 'MUSTER_E_(PEER|STALE)'
done
saved=$(committed | tr ' ' '\n' | tail -n 1)
far_ranks_start 3 --steps $((saved + 40)) --save-every 0
all_finished $((saved + 40))
committed_whole "$saved"
jobs_resumed $jobs_min

wire_stop
for what in lost duplicated cut; do
    holds "packets $what" "$(wire_count $what)" -ge 10
done
finish "a network with 20 to 40 ms of delay in each direction, 10 % loss and 5 % duplicates, both layouts; cuts of $short_ms ms in \
one direction, the other and both; a cut until ranks were lost ($(wire_count passed) packets passed, $(wire_count lost) lost, \
$(wire_count duplicated) duplicated, $(wire_count cut) cut): each save commits, each job resumes bit for bit"
