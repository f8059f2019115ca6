#!/bin/bash
# `muster run --nodes 1:2`: two hosts form a job by themselves. One that is told to end leaves, and the other goes on
# with fewer ranks; one that comes makes the job grow; one that is killed is not waited for; a broker that is killed is
# no news. The job ends with all its steps. Hosts that contradict each other are told so.
# Rules: R15.1, R15.2, R15.3, R15.4, R15.5.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../lib_nodes.sh"

listen=$ipc # the same address for the broker that starts again
broker_start
export MUSTER_CHECKPOINT_DIR="$dir/checkpoints"
hosts_shown() { "$muster" status "$job" --broker "$broker"; }

host_start a
host_start b
await "both hosts in launch 1" trains 1 4
same "hosts of launch 1" "$(hosts_of 1)" 2
says "$(<"$dir/b.log")" 'launch 1 has 2 hosts: this is host [01], with ranks [02] to [13] of 4'

# One is told to end: it saves with all, and does not come back.
kill -TERM "$(supervisor b)"
host_ends b 42
await "the other one alone" trains 2 2
same "hosts of launch 2" "$(hosts_of 2)" 1
same "steps that were lost" "$(query "SELECT resume_step FROM generation WHERE job = '$job' AND generation = 2")" "$(committed)"

# One comes: the job saves, and begins again on both.
host_start c --node-rank 1
await "both hosts in launch 3" trains 3 4
says "$(query "SELECT text FROM notice WHERE job = '$job' AND id = 'grow-2'")" '^1 more host is there for the job$'

# A host loses its power, and begins again at once: its place is held until it is silent for long.
host_kill c
host_start d --node-rank 1
await "both hosts in launch 4" trains 4 4
says "$(<"$dir/d.log")" 'waiting for hosts: host .* has --node-rank 1 already: give each host a number of its own, or none'

says "$(hosts_shown)" '^  host 0 .*, ranks 0 to 1: running, since' '^  host 1 .*, ranks 2 to 3: running, since'

# The broker is killed: nobody ends for that.
broker_kill
broker_start
await "the launch after the broker's" trains 4 4

# Who contradicts them waits, and is told why.
"$muster" run --nodes 2:3 -n 1 --job "$job" --broker "$broker" -- true >"$dir/other.log" 2>&1 &
other=$!
started+=("$other")
await "the reason for which a host with other --nodes waits" grep -Eq \
    'waiting for hosts: host .* runs this job with --nodes 1:2, this one with 2:3: give all hosts the same' "$dir/other.log"
kill -TERM "$other"
code=0
wait "$other" || code=$?
same "exit code of a host with other --nodes" "$code" 42

# Both are told to end: the weights are those of a run that nobody interrupted, however often it was split.
kill -TERM "$(supervisor a)" "$(supervisor d)"
host_ends a 42
host_ends d 42
says "$(hosts_shown)" '^  host 0 .*: left, since' '^  host 1 .*: left, since'
saved=$(committed)
saved=${saved##* }
sum=0
for bits in $(cat "$dir/a.log" "$dir/d.log" | sed -n "s/.*trainer: .* done=$saved bits=\\([^ ]*\\) .*/\\1/p"); do
    sum=$((sum + bits))
done
same "bits of the weights at step $saved" "$sum" "$("$trainer" expect "$saved")"

# A job that finishes, on hosts that stay.
job=short steps=50
export MUSTER_CHECKPOINT_DIR="$dir/checkpoints-short"
host_start e
host_start f
host_ends e 0
host_ends f 0
job=job
same "hosts that had places" "$(query "SELECT COUNT(*) FROM host WHERE job = '$job' AND launch > 0")" 7
"$muster" forget "$job" --broker "$broker" >"$dir/forget.log" 2>&1 || fail "muster forget: $(<"$dir/forget.log")"
same "rows of hosts of a job that is forgotten" "$(query "SELECT COUNT(*) FROM host WHERE job = '$job'")" 0

# What ends at once ends on both, though one has left before the other asks.
code=0
"$muster" run --nodes 2 --job quick --broker "$broker" -- true >"$dir/quick.log" 2>&1 &
quick=$!
started+=("$quick")
timeout "$hangs_after" "$muster" run --nodes 2 --job quick --broker "$broker" -- true >"$dir/quick2.log" 2>&1 || code=$?
same "exit code of the one" "$code" 0
wait "$quick" || code=$?
same "exit code of the other" "$code" 0
finish "two hosts form a job, shrink and grow with it, and outlive a broker"
