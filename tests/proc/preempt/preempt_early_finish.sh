#!/bin/bash
# A rank has finished before the notice: replicated saves without it; sharded cannot, and says why.
. "$(dirname "$0")/../lib.sh"

broker_start
options=(--early-rank 2 --early-steps 20 --signal-rank 0 --signal-step 60)
job=replicated
ranks_start 3 --steps 120
ranks_end 0 2
ranks_end 42 0 1
saved=$(field 0 done)
holds "steps that rank 1 did" "$(field 1 done)" -le "$saved"
each_has done 20 2
sums_right
committed_whole "$saved"
# Again, and rank 2 has nothing left to do: it joins and leaves while rank 1 is still missing; nobody waits for it.
world=3 launch=2 pids=()
rank_start 0 --steps 120
await "rank 0 to join" rank_said 0 '^opened'
rank_start 2 --steps 120
ranks_end 0 2
rank_start 1 --steps 120
ranks_end 0
each_has resumed "$saved"
each_has done 120 0 1
sums_right

# Nobody has anything left to do: they come one after another, and the job has finished.
launch=3 pids=()
for rank in 0 2 1; do
    rank_start $rank --steps "$saved"
    ranks_end 0 $rank
done
"$muster" status "$job" --exit-code --broker "$broker" >"$dir/answer" || fail "exit code $? of a job that has finished: $(cat "$dir/answer")"

# Of the rank that has finished nothing is to be told; its host may go.
job=told
options=(--early-rank 2 --early-steps 20)
ranks_start 3 --steps 100000
ranks_end 0 2
code=0
"$muster" notify 2 --broker "$broker" --job "$job" 2>"$dir/refused.log" || code=$?
same "exit code of a notice for a rank that has finished" "$code" 4
says "$(cat "$dir/refused.log")" "rank 2 of job 'told' has finished and needs its host no more"
same "notices" "$(query "SELECT count(*) FROM notice WHERE job = '$job'")" 0
"$muster" notify 1 --broker "$broker" --job "$job" >"$dir/answer"
ranks_end 42 0 1
options=(--early-rank 2 --early-steps 20 --signal-rank 0 --signal-step 60)

job=sharded
options+=(--sharded 1 --grace-ms 3000)
ranks_start 3 --steps 1000
ranks_end 0 2
ranks_end 42 0 1
same "checkpoints" "$(committed)" ''
same "culprit" "$(query "SELECT DISTINCT culprit_rank FROM round WHERE job = '$job' AND state = 'aborted'")" 2
says "$(error_of 0)" MUSTER_PREEMPTED 'no checkpoint was committed' 'rank 2 finished'
same_why
says "$story" 'rank 2' finished
finish "a rank that finished early: replicated saves without it, sharded names it and leaves with the restart code"
