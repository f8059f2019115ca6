#!/bin/bash
# Processes that do not fit into a running job are refused by name, and do not disturb it.
. "$(dirname "$0")/../lib.sh"

# refused NAME RANK WORLD STATUS PATTERN... - one more process with `extra` is not let in.
refused() {
    local name=$1 rank=$2 status=$4 patterns code=0 text

    world=$3
    patterns=("${@:5}")
    (launch=$name rank_start "$rank" --open-ms 1500 ${extra[@]+"${extra[@]}"} && wait "${pids[rank]}") || code=$?
    same "exit code of the process with a wrong $name" "$code" 1
    text=$(launch=$name error_of "$rank")
    says "$text" "status=$status " "${patterns[@]}"
    say "$text"
}

broker_start
ranks_start 2 --steps 100000 --say-every 10
await "step 10" rank_said 0 'at step 10$'
running=("${pids[@]}")
refused world 2 3 MUSTER_E_WORLD_SIZE 'world' 2 3
refused range 5 3 '(MUSTER_E_RANK|MUSTER_E_ARGUMENT)' 'rank 5' 3
refused taken 0 2 MUSTER_E_RANK_TAKEN 'rank 0' "${running[0]}" "$(hostname)"
extra=(--sharded 1)
refused layout 1 2 '(MUSTER_E_LAYOUT|MUSTER_E_RANK_TAKEN)' '(layout|rank 1)'
extra=()
checkpoints="$dir/elsewhere" refused directory 1 2 '(MUSTER_E_LAYOUT|MUSTER_E_RANK_TAKEN)' '(directory|rank 1)'
said=$(MUSTER_BROKER=$broker "$muster" run -n 1 --job "$job" -- true 2>&1) || fail "muster run -- true: $said"
says "$said" "job $job is running already \(generation 1, step [0-9]+, 2 of 2 ranks live\)"
same "nodes that ever joined" "$(query "SELECT count(*) FROM node WHERE job = '$job'")" 2
launch=1 world=2 pids=("${running[@]}")
kill -TERM "${pids[0]}"
all_preempted
committed_whole "$saved"
for verb in status nodes rounds checkpoints latest events why; do
    code=0
    answer=$("$muster" $verb --broker "$broker" $([ $verb = status ] || echo --job) nosuch 2>&1) || code=$?
    same "exit code of muster $verb for an unknown job" "$code" 1
    says "$answer" 'knows no job "nosuch": its jobs are: job'
done
finish "wrong world size, rank out of range, rank taken (host and pid), layout, directory: named; the job saves undisturbed" \
    "the tool names an unknown job, and the jobs that there are"
