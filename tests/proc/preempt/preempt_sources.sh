#!/bin/bash
# Notice sources in a whole job: what each stands at is in nodes; a notice file ends all ranks, and why tells its words.
. "$(dirname "$0")/../lib.sh"

file=$dir/notices/host-goes-down
broker_start
options=(--steps 100000 --barrier 1 --say-every 20)
export MUSTER_NOTICE_SOURCES="file:$file,ec2" MUSTER_EC2_ENDPOINT=http://127.0.0.1:9 MUSTER_RUNTIME_DIR=$dir/run
ranks_start 2
await "step 20" rank_said 1 'at step 20$'

states() { # RANK - name=state ... as `muster nodes --json` has them
    local json

    json=$("$muster" nodes --json --broker "$broker" --job "$job") || return 1
    query "SELECT group_concat((s.value ->> 'name') || '=' || (s.value ->> 'state'), ' ')
           FROM json_each('${json//\'/\'\'}', '\$.nodes') n, json_each(n.value, '\$.sources') s
           WHERE n.value ->> 'rank' = $1"
}
is() { [ "$(states "$1")" = "$2" ]; }

# the directory is not there yet, nobody answers for ec2: said, and nothing else happens
await "rank 0's sources" is 0 'signal=healthy callback=off file=degraded ec2=absent'
await "rank 1's sources" is 1 'signal=healthy callback=off file=degraded ec2=absent'
says "$("$muster" nodes --broker "$broker" --job "$job")" 'signal, file degraded, ec2 absent'
mkdir "$dir/notices"
await "the file's source" is 1 'signal=healthy callback=off file=healthy ec2=absent'

echo 'preempt +60 rack 7 goes down' >"$file"
all_preempted
committed_whole "$saved"
same_why
says "$story" 'rack 7 goes down' file preempt "step $saved"
rm "$file"
finish "sources: states in nodes, a notice file ends the job with its own words"
