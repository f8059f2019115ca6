#!/bin/bash
# A subscriber stalls past the high-water mark: PUB throws away what does not fit into its queue. Who is not needed holds
# nobody up meanwhile; whoever reads again learns what it missed, acts on it in order, and takes part in what is open.
. "$(dirname "$0")/../lib.sh"

jobs_min=3
needs_fail_points
listen=$ipc
repeat=4000   # each frame on PUB so many times, so that one event is more than the socket and the queue hold
stall_ms=3500 # less than the silence of 5 s after which a node is lost
few_saves=3
long=-whose-name-is-a-part-of-each-frame-and-long

applied() { query "SELECT coalesce(max(p.applied_seq), 0) FROM progress p JOIN node n ON n.job = p.job AND n.incarnation = p.incarnation
    WHERE n.job = '$job' AND n.role = 'evaluator'"; }
caught_up() { [ "$(applied)" -ge "$1" ]; }
last_seq() { query "SELECT seq FROM job WHERE job = '$job'"; }
commits() { query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'committed'"; }
saved_or_long() { [ "$(commits)" -ge "$1" ] || passed_ms "$2" "$stall_ms"; }
stepping() { rank_said 0 '^at step' && rank_said 1 '^at step'; }
# Were more bytes published after event $1 than the socket holds, libzmq's batch of 8 KiB and the queue of one frame?
thrown_away() {
    local bytes held

    bytes=$(query "SELECT coalesce(sum(length(body) + length(job) + 1), 0) * $repeat FROM event WHERE job = '$job' AND seq > $1")
    held=$(($(</proc/sys/net/core/wmem_default) + 8192 + 65536))
    holds "bytes published after event $1, while $held fit" "$bytes" -gt "$held"
}
freezing() { [ 1 = "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'freezing'")" ]; }

broker_start MUSTER_TEST_PUB_SMALL=1 MUSTER_TEST_PUB_REPEAT=$repeat

# One that is not needed: an evaluator, beside two ranks that save all the time.
job=beside$long options=(--step-ms 4 --say-every 10)
ranks_start 2 --steps 1000000 --save-every 25
keep
launch=evaluator
rank_start 0 --steps 1000000 --evaluator-rank 0 --step-ms 50
evaluator=${pids[0]}
recall "beside$long"
await "the ranks to step" stepping
await "the evaluator to hear" caught_up 1
kill -STOP "$evaluator"
began_ms=$(now_ms) before=$(commits) heard=$(last_seq)
await "saves without the evaluator" saved_or_long $((before + few_saves)) "$began_ms"
holds "saves while the evaluator stalls" "$(commits)" -gt "$before"
missed=$(last_seq)
thrown_away "$heard"
kill -CONT "$evaluator"
await "the evaluator to have applied event $missed" caught_up "$missed"
kill -TERM "${pids[1]}"
ranks_end 42
sums_right
saved=$(committed | tr ' ' '\n' | tail -n 1) # the notice may have joined a policy save, whose captured ranks trained on
pids=("$evaluator") launch=evaluator
rank_ends 0 42
same "lost nodes" "$(query "SELECT count(*) FROM event WHERE kind = 'node lost'")" 0
recall "beside$long"
committed_whole "$saved"
ranks_start 2 --steps $((saved + 20))
all_finished $((saved + 20))

# One that is needed: a rank stalls from before the freeze on; the round waits for it, and commits.
for job in replicated$long sharded$long; do
    options=(--step-ms 4 --say-every 10 --sharded 0)
    [ "$job" = "replicated$long" ] || options[-1]=1
    ranks_start 2 --steps 1000000
    await "the ranks to step" stepping
    kill -STOP "${pids[1]}"
    heard=$(last_seq)
    "$muster" save --broker "$broker" --job "$job" --wait >"$dir/save.log" 2>&1 &
    asked=$!
    await "the freeze" freezing
    thrown_away "$heard"
    kill -CONT "${pids[1]}"
    wait "$asked" || fail "muster save: $(<"$dir/save.log")"
    # the freeze waits 2 s for a rank; on a loaded machine it may have stood still for longer, and another try follows
    same "rounds aborted by anything else" "$(query "SELECT count(*) FROM round WHERE job = '$job' AND state = 'aborted'
        AND reason NOT LIKE '%did not answer the freeze%'")" 0
    kill -TERM "${pids[1]}"
    all_preempted
    committed_whole "$saved"
    ranks_start 2 --steps $((saved + 20))
    all_finished $((saved + 20))
done
jobs_resumed $jobs_min
finish "a subscriber that stalls past the high-water mark of PUB: each frame $repeat times; an evaluator holds nobody up \
($few_saves saves meanwhile) and learns what it missed, a rank takes part in the round as soon as it reads, both layouts: \
all resume bit for bit"
